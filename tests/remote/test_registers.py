"""Registers that a stub hides are none of the machine's, on every architecture."""

from __future__ import annotations

from functools import partial

import pytest
from arches import ARCHES

from kprobes import UnknownRegister, arch
from kprobes.arch._stub import Slot
from kprobes.machine.paper import PaperMachine
from kprobes.machine.remote.registers import StubRegisterFile
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


class OneByOne:
    """A stub that gives registers one by one: register n has the value n + 5."""

    def choose(self, thread: str) -> None:
        pass

    def register(self, number: int) -> bytes:
        return (number + 5).to_bytes(8, "little")

    def registers(self, numbers: list[int]) -> list[bytes]:
        return [self.register(number) for number in numbers]


def test_registers_whose_names_come_from_an_iterator() -> None:
    """All of them are returned: the names are looked at twice."""
    slots = {name: Slot(name, number, 8) for number, name in enumerate(("rax", "rbx"))}
    file = StubRegisterFile(OneByOne(), arch.get("x86_64"), slots, {})  # type: ignore[arg-type]
    file.thread = "1"
    assert file.read_all(iter(slots)) == {"rax": 5, "rbx": 6}
