"""EXECUTE of relative instructions under QEMU, which counts from the executed instruction, as z/Architecture does."""

from __future__ import annotations

from typing import Any

import pytest
from arches import PROGRAMS
from qemu import process

from kprobes import Kprobe, Kprobes

BR = "07fe"  # br %r14
AT = 0x20  #: offset of the executed instruction
EX, EXRL = "44001000 0700", "c60000000010"  # ex %r0,0(%r1); exrl %r0,.+0x20
RELATIVE = {"BRXH": "84230010", "BRC": "a7f40010", "LARL": "c02000000010", "LGRL": "c42800000010", "BRCL": "c0f400000010"}


@pytest.mark.parametrize("post", [False, True])
@pytest.mark.parametrize("execute", [EX, EXRL])
def test_relative_instructions_are_executed_as_without_a_probe(execute: str, post: bool) -> None:
    with process(PROGRAMS / "bin" / "s390x-O2.elf") as m:
        assert m.counts_from_executed
        home = m.map_code()
        m.symbols.add("lab", home, 8)
        hits: list[int] = []
        after = (lambda p, regs, flags: hits.append(0)) if post else None
        for name, target in RELATIVE.items():
            text = f"{execute} {BR}".replace(" ", "").ljust(2 * AT, "0") + target
            text = text.ljust(4 * AT, "0") + ("41202003" + BR + "0000") * 8  # 0x20 behind what is executed: la %r2,3(%r2)
            m.write(home, bytes.fromhex(text))

            def outcome() -> Any:
                m.regs["r1"] = home + AT
                return m.call("lab", 5, 2), [m.regs[each] for each in ("r1", "r2", "r3", "pswm")]

            plain = outcome()
            if name in ("BRXH", "BRC", "BRCL"):
                assert plain[0] == 5 + 2 * (name == "BRXH") + 3, name
            with Kprobes(m) as k:
                hits.clear()
                k.register_kprobe(Kprobe(symbol_name="lab", pre_handler=lambda p, regs: hits.append(1), post_handler=after))
                assert [outcome(), outcome()] == [plain, plain], name
                assert hits == ([1, 0] if post else [1]) * 2
