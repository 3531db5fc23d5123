"""Children that a guest forks under QEMU's user mode: they run on as if no probe had ever been there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from qemu import qemu_for

from kprobes import Kprobe, Kprobes, Kretprobe, QemuMachine

PROGRAMS = Path(__file__).parent / "children"
CHILDREN = [10, 11, 12]  # what those of children.c say


@pytest.fixture(params=sorted(path.stem for path in PROGRAMS.glob("*.elf")))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    qemu_for(f"{request.param}-O2")
    copy = tmp_path / request.param
    shutil.copyfile(PROGRAMS / f"{request.param}.elf", copy)
    copy.chmod(0o755)
    return copy


@pytest.fixture
def m(program: Path) -> Iterator[QemuMachine]:
    with QemuMachine.user([program], env={}, timeout=20) as machine:
        yield machine


def test_children_call_what_is_probed(m: QemuMachine) -> None:
    """Their text is the program's own; the parent's probes stay, and see its own hits alone."""
    hits: list[int] = []
    with Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="work", pre_handler=lambda p, regs: hits.append(regs.arg(0)),
                                   post_handler=lambda p, regs, flags: None))
        m.run(timeout=60)
        assert m.exit_status == 7 and hits == CHILDREN and probe.nhit == len(CHILDREN)


def test_children_return_from_what_is_followed(m: QemuMachine) -> None:
    """From two functions that their parent had entered, in each of them where they were called."""
    returned: list[tuple[str, int]] = []

    def back(ri: Any, regs: Any) -> None:
        returned.append((ri.rp.symbol_name, regs.return_value))

    with Kprobes(m) as k:
        for name in ("divide", "family"):
            k.register(Kretprobe(symbol_name=name, handler=back))
        m.run(timeout=60)
        assert m.exit_status == 7
        assert [value for name, value in returned if name == "family"] == CHILDREN
        assert sum(name == "divide" for name, _ in returned) == len(CHILDREN)
