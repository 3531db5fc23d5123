"""Definitions and filters of events, drawn by chance, and guests to try them on."""

from __future__ import annotations

import random

from kprobes import UnicornMachine
from kprobes.events._filter import NUMERIC

TYPES = ("", ":u8", ":s8", ":x16", ":s16", ":u32", ":s32", ":x64", ":s64", ":b3@2/8", ":b8@0/32", ":char", ":symbol")
IN_MEMORY = (*TYPES[:-1], ":f32", ":symstr", ":u8[3]", ":s16[2]", ":x32[4]", ":s64[2]", ":b3@2/8[5]", ":symbol[2]")


class Generated:
    """Definitions and filters of an event on a machine: any registers, constants, words of the stack and memory behind
    them, some of it not mapped."""

    def __init__(self, m: UnicornMachine, chance: random.Random, data: int) -> None:
        self._m, self._chance, self._data = m, chance, data
        self.cells = [name for name in m.regs.names if m.regs.cell(name)]

    def argument(self) -> str:
        chance, m = self._chance, self._m
        roots = [f"%{chance.choice(self.cells)}", f"%{m.arch.regs.pc}", f"%{chance.choice(m.regs.names)}",
                 f"\\{chance.getrandbits(m.arch.bits - 1)}", "$stack", f"$stack{chance.randrange(4)}"]
        if m.arch.abi is not None:
            roots += [f"$arg{chance.randrange(1, 12)}"] * 2
        root = chance.choice(roots)
        depth = 0 if root[0] == "\\" else chance.choice((0, 0, 1, 1, 2, 3))
        if chance.random() < 0.1:
            root, depth = f"@{self._data + 8 * chance.randrange(8):#x}", max(depth, 0)
        text = root
        for _ in range(depth):
            text = f"{chance.choice('+-')}{chance.randrange(0, 33)}({text})"
        memory = depth or root[0] == "@"
        if chance.random() < 0.05:
            return '\\"text"'
        type = chance.choice(IN_MEMORY if memory else TYPES)
        if type == ":s64" and not memory and not text.startswith("$stack") and m.arch.bits < 64:
            type = ":s32"  # no word has so many bits
        return text + type

    def filter(self, names: list[str], depth: int = 0, common: tuple[str, ...] = ("common_pid", "cpu", "__probe_ip")) -> str:
        chance = self._chance
        if depth < 3 and chance.random() < 0.5:
            parts = [self.filter(names, depth + 1, common) for _ in range(chance.randrange(2, 4))]
            return f"({chance.choice((' && ', ' || ')).join(parts)})"
        name = chance.choice([*names, *common])
        value = chance.choice((0, 1, 5, -1, 0x10000, chance.getrandbits(8), chance.getrandbits(16)))
        text = f"{name} {chance.choice([*NUMERIC])} {value}"
        if chance.random() < 0.15:
            text = f"{name}.function {chance.choice(('==', '!='))} here"
        return f"!({text})" if chance.random() < 0.2 else text

    def draw_guest(self) -> None:
        """Set the memory and all registers."""
        chance, m, data = self._chance, self._m, self._data
        m.write(data, b"".join(chance.choice((data + 8 * chance.randrange(400), chance.getrandbits(64),
                                              0x10000 + chance.randrange(32)))
                               .to_bytes(8, m.arch.order.value)[-m.arch.bits // 8:] for _ in range(256)))
        for name in self.cells:
            if name != m.arch.regs.pc:
                m.regs[name] = chance.choice((data + 8 * chance.randrange(100), chance.getrandbits(m.arch.bits),
                                              chance.randrange(9), 0x10000 + chance.randrange(32)))
        m.regs.sp = data + 8 * chance.randrange(8, 60)
