"""Registers that a stub hides are none of the machine's, on every architecture."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest
from arches import ARCHES

from kprobes import UnknownRegister, arch
from kprobes.arch._stub import StubRegister
from kprobes.machine.paper import PaperMachine
from kprobes.machine.remote.registers import StubRegisterFile, places
from kprobes.regs import Regs

pytestmark = pytest.mark.quick


def hiding(name: str) -> tuple[Regs, list[str]]:
    """Registers of an architecture, and those among them that are hidden: whatever neither probes nor calls need."""
    of = arch.get(name)
    abi = of.abi
    needed = {of.regs.pc, of.regs.sp, *(abi.args if abi else ()), *(abi.returns if abi else ())}
    hidden = [name for name in of.regs.names if name not in needed][-3:]
    values = {name: 7 for name in of.regs.names if name not in hidden}
    regs = Regs(PaperMachine(b"", arch=of), {n: partial(values.__getitem__, n) for n in values},
                {n: partial(values.__setitem__, n) for n in values})
    return regs, hidden


@pytest.mark.parametrize("name", ARCHES)
def test_hidden_registers(name: str) -> None:
    regs, hidden = hiding(name)
    assert hidden and regs.names == tuple(name for name in regs.arch.regs.names if name not in hidden)
    assert {regs[name] for name in regs.names} == {7}
    aliases = [alias for alias, of in regs.arch.regs.aliases.items() if of in hidden]
    for missing in [*hidden, *aliases]:
        assert missing not in regs
        for act in (lambda missing=missing: regs[missing], lambda missing=missing: regs.__setitem__(missing, 1),
                    lambda missing=missing: regs.accessors(missing)):
            with pytest.raises(UnknownRegister, match=f"does not show register '{missing}'"):
                act()
    if regs.arch.regs.flags in hidden:
        with pytest.raises(UnknownRegister, match="does not show"):
            print(regs.flags)
        with pytest.raises(UnknownRegister, match="does not show"):
            regs.flags = 1
    with pytest.raises(UnknownRegister, match="no register"):
        print(regs["no such"])


class Stub:
    """A stub with eight registers of 8 bytes, of which P packets write the first four only."""

    def __init__(self) -> None:
        self.values = [n * 8 for n in range(8)]

    def choose(self, thread: str) -> None:
        pass

    def register(self, number: int) -> bytes:
        return self.values[number].to_bytes(8, "little")

    def all_registers(self) -> bytes:
        return b"".join(map(self.register, range(8)))

    def set_registers(self, pairs: list[tuple[int, bytes]]) -> list[bool]:
        for number, data in pairs:
            if number < 4:
                self.values[number] = int.from_bytes(data, "little")
        return [number < 4 for number, _ in pairs]

    def set_all_registers(self, data: bytes) -> None:
        self.values = [int.from_bytes(data[n : n + 8], "little") for n in range(0, 64, 8)]


def test_registers_written_one_by_one_and_together() -> None:
    """Those that P packets have written are not set back by the G packet for the others."""
    stub = Stub()
    slots = {f"r{n}": StubRegister(f"r{n}", n, 8) for n in range(8)}
    registers = StubRegisterFile(cast(Any, stub), arch.get("x86_64"), slots, places(slots, 64))
    registers.thread = "1"
    assert registers.read("r2") == 16  # the g packet is known
    for name, value in (("r1", 100), ("r5", 500), ("r3", 300)):
        registers.write(name, value)
    registers.flush()
    assert stub.values == [0, 100, 16, 300, 32, 500, 48, 56]
