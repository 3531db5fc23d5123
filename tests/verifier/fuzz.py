"""Random programs, and whether those that the verifier accepts keep its word in the interpreter, which checks every
access.

`python tests/verifier/fuzz.py SEEDS [FIRST]` (with the project and `tests` on the path) goes on beyond what the tests
do.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator

from attrs import evolve
from verifier.asm import assemble, maps

from kprobes import ProgramError
from kprobes.programs import isa
from kprobes.programs.code import Code
from kprobes.programs.interpreter import Interpreter
from kprobes.programs.isa import Instruction
from kprobes.programs.nowhere import Nowhere
from kprobes.programs.verifier import Facts, verify

EDGES = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 55, 56, 57, 60, 63, 64, 65, 127, 128, 255, 256, 511, 512, 1000, 4095,
         0x7FFF, 0x8000, 0xFFFF, 0x10000, (1 << 31) - 1, -1, -2, -7, -8, -9, -56, -57, -64, -128, -(1 << 31)]
JUMPS = ["jeq", "jne", "jgt", "jge", "jlt", "jle", "jsgt", "jsge", "jslt", "jsle", "jset"]
OPS = ["add", "sub", "mul", "or", "and", "xor", "lsh", "rsh", "arsh", "mov", "div", "mod", "sdiv", "smod"]
SMALL = [0, 1, 3, 7, 8, 16, 31, 32, 33, 56, 57, 63, 64]


class Guest(Nowhere):
    """Guest memory that is there, but not everywhere; a clock that stands still."""

    def clock(self) -> int:
        return 123_456_789

    def comm(self) -> bytes:
        return b"fuzz"

    def override(self, value: int) -> None:
        pass

    def read(self, addr: int, size: int) -> bytes:
        if addr & 0x100:
            return super().read(addr, size)
        return bytes((addr + i) * 7 & 0xFF for i in range(size))


class Writer:
    """Writes programs that are nearly right: numbers in r6..r8, pointers in r9 and r5, one exit."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.lines: list[str] = []
        self.labels = 0

    def say(self, text: str) -> None:
        self.lines.append(text)

    def number(self) -> str:
        return f"r{self.r.choice((6, 7, 8))}"

    def imm(self) -> int:
        return self.r.choice(EDGES) if self.r.random() < 0.8 else self.r.randrange(-70, 70)

    def load(self) -> None:
        for reg in (6, 7, 8):
            size = self.r.choice(("dw", "dw", "w", "h", "b"))
            sign = "s" if size != "dw" and self.r.random() < 0.3 else ""
            self.say(f"ldx{sign}{size} r{reg}, [r1{self.r.randrange(8) * 8:+}]")

    def arithmetic(self) -> None:
        op, bits, dst = self.r.choice(OPS), self.r.choice((32, 64)), self.number()
        kind = self.r.random()
        if kind < 0.06:
            self.say(f"neg{bits} {dst}")
        elif kind < 0.12:
            self.say(f"{self.r.choice(('le', 'be', 'bswap'))}{self.r.choice((16, 32, 64))} {dst}")
        elif kind < 0.2:
            width = self.r.choice((8, 16, 32) if bits == 64 else (8, 16))
            self.say(f"movsx{width}_{bits} {dst}, {self.number()}")
        elif kind < 0.5:
            self.say(f"{op}{bits} {dst}, {self.number()}")
        else:
            imm = (self.imm() if op not in ("lsh", "rsh", "arsh")
                   else self.r.choice((1, 2, 3, 4, 8, 16, 24, 31, 32, 33, 48, 63)))
            self.say(f"{op}{bits} {dst}, {imm}")

    def branch(self, to: str = "out") -> None:
        bits = "32" if self.r.random() < 0.4 else ""
        other = (self.number() if self.r.random() < 0.25 else self.r.choice(SMALL) if self.r.random() < 0.6
                 else self.imm())
        self.say(f"{self.r.choice(JUMPS)}{bits} {self.number()}, {other}, {to}")

    def diamond(self, depth: int) -> None:
        self.labels += 1
        a, b = f"a{self.labels}", f"b{self.labels}"
        self.branch(a)
        self.block(depth + 1, 2)
        self.say(f"ja {b}")
        self.say(f"{a}:")
        self.block(depth + 1, 2)
        self.say(f"{b}:")

    def loop(self, depth: int) -> None:
        self.labels += 1
        at, reg = f"l{self.labels}", self.number()
        self.say(f"mov64 {reg}, {self.r.choice((0, 0, 1, -4))}")
        self.say(f"{at}:")
        self.block(depth + 1, 2)
        self.say(f"add{self.r.choice((32, 64))} {reg}, {self.r.choice((1, 1, 1, 2, 3))}")
        self.branch() if self.r.random() < 0.2 else None
        self.say(f"{self.r.choice(('jne', 'jlt', 'jle', 'jslt', 'jsle'))}{self.r.choice(('', '32'))} {reg}, "
                 f"{self.r.choice((3, 4, 7, 8, 20))}, {at}")

    def spill(self) -> None:
        reg, at = self.number(), -8 * self.r.randrange(1, 5)
        kind = self.r.random()
        if kind < 0.4:
            size = self.r.choice(("dw", "dw", "w", "h", "b"))
            self.say(f"stx{size} [r10{at + self.r.choice((0, 0, 4)) * (size != 'dw'):+}], {reg}")
        elif kind < 0.8:
            size = self.r.choice(("dw", "dw", "w", "h", "b"))
            self.say(f"ldx{size} {reg}, [r10{at + self.r.choice((0, 0, 4)) * (size != 'dw'):+}]")
        else:
            self.say(f"stx{self.r.choice(('dw', 'w', 'b'))} [r10{at:+}], {reg}")

    def access(self) -> None:
        kind = self.r.randrange(5)
        if kind < 3:
            self.say(f"lddw r5, map[3].value{self.r.choice((0, 0, 0, 4, 8)):+}")
            reach = 64
        elif kind == 3:
            self.say("mov64 r5, r10")
            self.say(f"add64 r5, {-32}")
            reach = 32
        else:
            self.say("mov64 r5, r9")
            reach = 64
        reg = self.number()
        guard = self.r.random()
        if guard < 0.3:
            self.say(f"and64 {reg}, {self.r.choice((7, 15, 31, 56, 63))}")
        elif guard < 0.75:
            bits = self.r.choice(("", "32"))
            self.say(f"jgt{bits} {reg}, {reach - self.r.choice((1, 2, 4, 8, 9, 20))}, out")
            self.say(f"mov32 {reg}, {reg}") if bits and self.r.random() < 0.7 else None
        elif guard < 0.9:
            self.say(f"jsgt {reg}, {reach - self.r.choice((1, 8, 9))}, out")
            self.say(f"jslt {reg}, {self.r.choice((0, 0, -1))}, out")
        self.say(f"{self.r.choice(('add64', 'add64', 'add64', 'sub64'))} r5, {reg}")
        size = self.r.choice(("dw", "w", "b", "b"))
        offset = self.r.choice((0, 0, 0, 1, -1, 4, 7))
        if self.r.random() < 0.6:
            self.say(f"ldx{size} {self.number()}, [r5{offset:+}]")
        elif self.r.random() < 0.8:
            self.say(f"stx{size} [r5{offset:+}], {self.number()}")
        else:
            self.say(f"lock {self.r.choice(('add', 'xor_fetch', 'xchg'))}{64 if size == 'dw' else 32} "
                     f"[r5{offset & -4:+}], {self.number()}")

    def helper(self) -> None:
        kind = self.r.randrange(4)
        if kind == 0:
            self.say(f"stxw [r10-4], {self.number()}; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1")
            self.say("jeq r0, 0, out") if self.r.random() < 0.9 else None
            self.say(f"ldxdw {self.number()}, [r0{self.r.choice((0, 0, 0, 1)):+}]")
        elif kind == 1:
            self.say(f"mov64 r1, r10; add64 r1, -32; mov64 r2, {self.number()}; mov64 r3, {self.number()}")
            self.say(f"and64 r2, {self.r.choice((15, 31, 32))}") if self.r.random() < 0.8 else None
            self.say(f"call {self.r.choice((113, 115))}; mov64 {self.number()}, r0")
        elif kind == 2:
            self.say("lddw r1, map[2]; mov64 r2, 24; mov64 r3, 0; call 131; jeq r0, 0, out; stxdw "
                     f"[r0{self.r.choice((0, 8, 16)):+}], {self.number()}")
            self.say(f"mov64 r1, r0; mov64 r2, 0; call {self.r.choice((132, 133))}") if self.r.random() < 0.95 else None
        else:
            self.say(f"mov64 r1, {self.r.choice(('r9', 'r10'))}; mov64 r2, {self.number()}; mov64 r3, "
                     f"{self.number()}; call local f; mov64 {self.number()}, r0")

    def block(self, depth: int, most: int) -> None:
        for _ in range(self.r.randrange(1, most + 1)):
            kind = self.r.random()
            if kind < 0.4 or (depth > 2 and kind > 0.75):
                self.arithmetic()
            elif kind < 0.5:
                self.branch()
            elif kind < 0.6:
                self.spill()
            elif kind < 0.75:
                self.access()
            elif kind < 0.85:
                self.helper()
            elif kind < 0.95:
                self.diamond(depth)
            else:
                self.loop(depth)

    def function(self) -> None:
        """f(r1 = .bss or a frame's end, r2, r3): a number."""
        self.say("f: mov64 r6, r2; mov64 r7, r3; mov64 r8, 0; mov64 r5, r1")
        for _ in range(self.r.randrange(4)):
            self.arithmetic()
        if self.r.random() < 0.7:
            reg = self.number()
            self.say(f"and64 {reg}, {self.r.choice((7, 24, 31))}; {self.r.choice(('add64', 'sub64'))} r5, {reg}")
            self.say(f"ldxb r8, [r5{self.r.choice((0, -1, -32)):+}]")
        self.say("mov64 r0, r8; exit")

    def program(self) -> str:
        self.load()
        self.say("lddw r9, map[3].value+0")
        if self.r.random() < 0.8:
            self.say("stdw [r10-8], 0; stdw [r10-16], 9; stdw [r10-24], -1; stdw [r10-32], 0")
        self.block(0, 12)
        self.access()
        self.say(f"mov64 r0, {self.number()}; exit")
        self.say("out: mov64 r0, 0; exit")
        if any("call local f" in line for line in self.lines):
            self.function()
        return "\n".join(self.lines)


def written(seed: int) -> Code:
    """A random program."""
    return Code("fuzz", assemble(Writer(random.Random(seed)).program()), maps(), "kprobe/f", {0: "fuzz"})


def mutated(code: Code, r: random.Random) -> Code:
    """A program with a few things changed."""
    insns = list(code.instructions)
    at = [pc for pc, _ in isa.steps(insns)]
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        pc = r.choice(at)
        insns[pc] = r.choice(CHANGES)(insns[pc], r)
    return evolve(code, instructions=tuple(insns))


def _imm(i: Instruction, r: random.Random) -> Instruction:
    if i.wide:
        return i if i.src == 0 else evolve(i, high=i.high + r.choice((0, 1, 8, 32)))
    return evolve(i, imm=isa.signed(r.choice((r.choice(EDGES), i.imm + r.choice((-8, -1, 1, 8)),
                                              i.imm ^ 1 << r.randrange(32))), 32))


CHANGES: list[Callable[[Instruction, random.Random], Instruction]] = [
    _imm, _imm,
    lambda i, r: evolve(i, offset=isa.signed(i.offset + r.choice((-8, -4, -1, 1, 2, 4, 8)), 16)),
    lambda i, r: evolve(i, dst=r.randrange(10)),
    lambda i, r: i if i.wide or i.opcode == isa.JMP | isa.CALL else evolve(i, src=r.randrange(11)),
    lambda i, r: i if i.wide or i.is_exit or i.opcode == isa.JMP | isa.CALL
    else evolve(i, opcode=i.opcode ^ r.choice((1, 4, 8, 0x10, 0x20, 0x40, 0x80))),
    lambda i, r: i if i.wide or i.cls not in (5, 6) or i.is_exit else evolve(i, opcode=i.opcode ^ 3)
    if i.is_conditional else i,
]


def contexts(r: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        words = []
        for _ in range(32):
            kind = r.randrange(5)
            word = r.choice(EDGES) if kind < 2 else r.randrange(70) if kind == 2 else r.getrandbits(64) if kind == 3 else \
                r.randrange(70) | r.choice((0, 1 << 63, 0xFFFF_FFFF << 32, 1 << 32, 1 << 31))
            words.append((word & isa.U64).to_bytes(8, "little"))
        yield b"".join(words)


def held(code: Code, facts: Facts, r: random.Random, runs: int) -> None:
    """Runs an accepted program; ProgramError where it does what the verifier said it would not."""
    engine = Interpreter(code)
    for context in contexts(r, runs):
        engine.run(context, Guest(), limit=facts.steps)
        ring = code.maps[2] if len(code.maps) > 2 else None
        if ring is not None and hasattr(ring, "__iter__") and r.random() < 0.3:
            list(ring)


def tried(code: Code, seed: int, runs: int = 12, seconds: float = 1.0) -> bool:
    """Whether a program is accepted within some time of the processor; then it has been run."""
    try:
        facts = verify(code, seconds)
    except ProgramError:
        return False
    held(code, facts, random.Random(seed), runs)
    return True


if __name__ == "__main__":
    accepted, first = 0, int(sys.argv[2]) if len(sys.argv) > 2 else 0
    pool: list[Code] = []
    for seed in range(first, first + int(sys.argv[1])):
        one = written(seed)
        for variant in range(3):
            if variant:
                source = random.Random(seed * 3 + variant)
                one = mutated(source.choice(pool) if pool and source.random() < 0.5 else one, source)
            try:
                ok = tried(one, seed)
            except Exception as e:
                print(f"seed {seed} variant {variant}: {type(e).__name__} {e}")
                for pc, i in isa.steps(one.instructions):
                    print(f"  {pc:3} {isa.disassemble(i) if hasattr(isa, 'disassemble') else i}")
                raise SystemExit(1) from e
            accepted += ok
            if ok:
                pool = [*pool[-200:], one]
    print(f"{accepted} of {3 * int(sys.argv[1])} accepted")
