"""The shipped kit of the Machine contract, on every guest that Unicorn runs, and on the toy engine."""

from __future__ import annotations

from typing import Any

import pytest
from arches import RUNNABLE

from kprobes import GuestFault, UnicornMachine
from kprobes import arch as architectures
from kprobes.conformance import Conformance
from kprobes.machine.paper import PaperMachine
from kprobes.testing import check_machine

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("arch", RUNNABLE)
def test_unicorn(arch: str, conformance: Conformance) -> None:
    if architectures.get(arch).linkage is None:
        conformance.blank(arch, "engine", "no Linkage: the kit calls guest code")
        pytest.skip("no linkage")
    assert check_machine(lambda: UnicornMachine.from_code(bytes(0x1000), arch=arch, base=0x100000)) == []
    conformance(arch, "engine")


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_a_second_error_is_like_the_first(arch: str) -> None:
    # xor ecx, ecx; xor eax, eax; div ecx
    with UnicornMachine.from_code(bytes.fromhex("31c931c0f7f1"), arch=arch) as machine:
        for _ in range(3):
            with pytest.raises(GuestFault) as fault:
                machine.run(0x10000)
            assert (fault.value.access, fault.value.pc) == ("arithmetic", 0x10004)


def test_paper() -> None:
    assert check_machine(lambda: PaperMachine(bytes(16))) == []


@pytest.mark.parametrize(("broken", "complaint"), [
    ("trap_pc", "trap_pc"), ("swallow", "not_ours"), ("forget_registers", "registers_come_back"),
    ("lose_exceptions", "exceptions"),
    ("stale_pages", "pages"), ("deep", "depth"), ("inner_ends", "run_ends"),
])
def test_the_kit_finds(broken: str, complaint: str) -> None:
    """A toy engine with one promise broken."""

    class Broken(PaperMachine):
        def _report(self, cpu: int, pc: int) -> bool:
            if broken == "trap_pc":
                self._values[cpu]["pc"] = pc = pc + 1
            if broken == "lose_exceptions":
                try:
                    return super()._report(cpu, pc)
                except Exception as error:
                    if type(error).__name__ == "_MarkError":
                        self._values[cpu]["pc"] = 0xE000
                        return True
                    raise
            reported = super()._report(cpu, pc)
            if broken == "swallow" and not reported:
                self._values[cpu]["pc"] = 0xE000
                return True
            return reported

        def invoke(self, target: int) -> None:
            if broken == "forget_registers":
                before = self._values[0]["r0"]
                super().invoke(target)
                self._values[0]["r0"] = before + 1
                return
            if broken == "deep":
                self._depth = 0
            super().invoke(target)
            if broken == "inner_ends" and self._depth and self._sink is not None:
                self._sink.run_ended()

        def unmap_code(self, page: int, pages: int = 1) -> None:
            if broken == "stale_pages":
                self._code.discard(page)
                self._kept: Any = self._pages[page]
                self._pages[page][:1] = b"\\xff"
                return
            super().unmap_code(page)

    problems = check_machine(lambda: Broken(bytes(16)))
    assert [p for p in problems if p.startswith(f"{complaint}:")], problems
