"""What docstrings of read() and write() promise (GuestText), of each kind of machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from qemu import executable, start
from scenes import paper_machine

from kprobes import BadArgument, GuestFault, UnicornMachine

pytestmark = pytest.mark.quick
UNICORN = ("arm", "x86_64", "mips", "ppc64", "s390x", "sparc", "m68k", "riscv64")
PROGRAMS = Path(__file__).parent.parent / "programs" / "bin"
PAGE = 0x1000


@frozen
class Bounded:
    """A machine, and where memory of it ends that the guest may write.

    Attributes:
        machine: any.
        end: the first address that is not mapped; two pages in front of it are.
    """

    machine: Any
    end: int


def behind(machine: Any, addr: int) -> int:
    """The first address behind a mapped one that is not mapped."""
    page = (addr | PAGE - 1) + 1
    while True:
        try:
            machine.read(page, 1)
        except GuestFault:
            return int(page)
        page += PAGE


@pytest.fixture(scope="module", params=[*UNICORN, "paper", "remote"])
def bounded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bounded]:
    if request.param == "paper":
        paper = paper_machine()
        first = paper.map_code()
        assert paper.map_code() == first + PAGE
        yield Bounded(paper, first + 2 * PAGE)
    elif request.param == "remote":
        folder = tmp_path_factory.mktemp("programs")
        with start("x86_64-O2", lambda stem: executable(PROGRAMS / f"{stem}.elf", folder)) as process:
            yield Bounded(process, behind(process, process.regs.sp))
    else:
        with UnicornMachine.from_code(bytes(16), arch=request.param) as engine:
            engine.map(0x701000, 2 * PAGE, "r")
            yield Bounded(engine, 0x701000 + 2 * PAGE)


@pytest.fixture
def end(bounded: Bounded) -> int:
    """The end of its memory, which begins with what writes must not change."""
    bounded.machine.write(bounded.end - 8, b"abcdefgh")
    return bounded.end


@pytest.fixture
def machine(bounded: Bounded) -> Any:
    return bounded.machine


@pytest.mark.parametrize("size", [4, PAGE, 3 * PAGE])
def test_a_read_beyond_the_mapping_names_the_first_address(machine: Any, end: int, size: int) -> None:
    at = end - min(size - 2, 2 * PAGE - 2)
    with pytest.raises(GuestFault) as read:
        machine.read(at, size)
    assert (read.value.address, read.value.access) == (end, "read")


@pytest.mark.parametrize("size", [4, PAGE, 3 * PAGE])
def test_a_write_beyond_the_mapping_does_nothing(machine: Any, end: int, size: int) -> None:
    at = end - min(size - 2, 2 * PAGE - 2)
    before = machine.read(at, end - at)
    with pytest.raises(GuestFault) as write:
        machine.write(at, b"w" * size)
    assert write.value.access == "write"
    assert machine.read(at, end - at) == before


def test_what_can_be_written_and_read(machine: Any, end: int) -> None:
    for data in (b"xy", bytearray(b"xy"), memoryview(b"xy")):
        machine.write(end - 2, b"ab")
        machine.write(end - 2, data)
        assert machine.read(end - 2, 2) == b"xy"
    assert machine.read(end - 2, 0) == b""
    machine.write(end - 2, b"")
    across = bytes(range(256)) * 8
    machine.write(end - PAGE - 1024, across)
    assert machine.read(end - PAGE - 1024, 2048) == across


@pytest.mark.parametrize("wrong", [("x", 1), (-2, -1), (-2, 1.5), (-2, None)])
def test_wrong_arguments_of_reads(machine: Any, end: int, wrong: tuple[Any, Any]) -> None:
    addr, size = wrong
    with pytest.raises(BadArgument):
        machine.read(end + addr if isinstance(addr, int) else addr, size)


@pytest.mark.parametrize("wrong", ["xy", 5, None, ["a"]])
def test_what_is_no_bytes_is_not_written(machine: Any, end: int, wrong: Any) -> None:
    with pytest.raises(BadArgument):
        machine.write(end - 2, wrong)
    with pytest.raises(BadArgument):
        machine.write("x", b"xy")
    assert machine.read(end - 8, 8) == b"abcdefgh"
