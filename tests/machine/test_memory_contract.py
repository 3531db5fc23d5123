"""What docstrings of read() and write() promise, of each machine in this process."""

from __future__ import annotations

import pytest

from kprobes import BadArgument, GuestFault, UnicornMachine

pytestmark = pytest.mark.quick
END = 0x701000


@pytest.fixture
def machine() -> UnicornMachine:
    m = UnicornMachine.from_code(bytes.fromhex("1e ff 2f e1"), arch="arm")
    m.map(END - 0x1000, 0x1000, "r")
    m.write(END - 2, b"ab")
    return m


def test_an_access_beyond_the_mapping_does_nothing(machine: UnicornMachine) -> None:
    with pytest.raises(GuestFault) as read:
        machine.read(END - 2, 4)
    with pytest.raises(GuestFault):
        machine.write(END - 2, b"wxyz")
    assert read.value.address == END
    assert machine.read(END - 2, 2) == b"ab"


def test_what_can_be_written_and_read(machine: UnicornMachine) -> None:
    for data in (b"xy", bytearray(b"xy"), memoryview(b"xy")):
        machine.write(END - 2, b"ab")
        machine.write(END - 2, data)
        assert machine.read(END - 2, 2) == b"xy"
    assert machine.read(END - 2, 0) == b""


@pytest.mark.parametrize("wrong", [("x", 1), (END - 2, -1), (END - 2, 1.5)])
def test_wrong_arguments(machine: UnicornMachine, wrong: tuple[object, object]) -> None:
    with pytest.raises(BadArgument):
        machine.read(*wrong)  # type: ignore[arg-type]


def test_text_is_no_bytes(machine: UnicornMachine) -> None:
    with pytest.raises(BadArgument):
        machine.write(END - 2, "xy")  # type: ignore[arg-type]
