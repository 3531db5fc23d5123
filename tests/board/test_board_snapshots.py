"""What devices hold goes back with the machine's snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kprobes import UnicornMachine
from kprobes.board import Board, Fitted, Part

pytestmark = pytest.mark.quick
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SELF_JUMP = bytes.fromhex("feffffea")  # b .
TIMER, LOAD, VALUE, CONTROL, RAW = 0x40000000, 0, 4, 8, 0x10
RUNNING = 0xE2  # enabled, periodic, interrupt, 32 bits


def board_of(*devices: Part) -> UnicornMachine:
    return Board(arch="arm", base=0, ram=((0x1000, 0x1000),), devices=devices).machine(SELF_JUMP)


def word(m: UnicornMachine, at: int) -> int:
    return int.from_bytes(m.read(TIMER + at, 4), "little")


def test_what_a_serial_port_has_received_goes_back() -> None:
    with board_of(Part("pl011", TIMER, {})) as m:
        assert isinstance(m.board, Fitted)
        [port] = m.board.uarts
        port.feed(b"abc")
        then = m.snapshot()
        for _ in range(3):
            assert [word(m, 0) for _ in range(3)] == [*b"abc"]
            assert not port.received
            m.restore(then)
            assert m.board.uarts == [port] and bytes(port.received) == b"abc"


def test_a_running_timer_goes_back_with_the_machines_time() -> None:
    """The counter stays the object whose function the machine calls when it is due."""
    with board_of(Part("sp804", TIMER, {})) as m:
        m.regs.pc = 0
        m.write(TIMER + LOAD, (1000).to_bytes(4, "little"))
        m.write(TIMER + CONTROL, RUNNING.to_bytes(4, "little"))
        run(m, 300)
        then, value = m.snapshot(), word(m, VALUE)
        seen = []
        for _ in range(3):
            run(m, 400)
            middle = word(m, VALUE)
            run(m, 500)
            seen.append((middle, word(m, VALUE), word(m, RAW)))
            m.restore(then)
            assert (word(m, VALUE), word(m, RAW)) == (value, 0)
        assert len({*seen}) == 1 and seen[0][0] < value and seen[0][2] == 1


def test_a_timer_that_was_started_later_is_stopped_by_a_restore() -> None:
    with board_of(Part("sp804", TIMER, {})) as m:
        then = m.snapshot()
        m.write(TIMER + LOAD, (100).to_bytes(4, "little"))
        m.write(TIMER + CONTROL, RUNNING.to_bytes(4, "little"))
        m.restore(then)
        run(m, 1000)
        assert word(m, RAW) == 0
        m.write(TIMER + LOAD, (100).to_bytes(4, "little"))
        m.write(TIMER + CONTROL, RUNNING.to_bytes(4, "little"))
        run(m, 200)
        assert word(m, RAW) == 1


def test_counts_of_accesses_stay() -> None:
    with board_of(Part("pl011", TIMER, {})) as m:
        then = m.snapshot()
        word(m, 0)
        m.restore(then)
        assert isinstance(m.board, Fitted)
        assert m.board.bus.devices[0].reads == 1


def test_numbers_with_a_fraction_go_back_and_what_the_host_does_stays() -> None:
    shown: list[bytes] = []

    def show(byte: bytes) -> None:
        shown.append(byte)

    with board_of(Part("pl011", TIMER, {})) as m:
        assert isinstance(m.board, Fitted)
        port: Any = m.board.uarts[0]
        port.level = 1.5  # as a model of one's own may have
        then = m.snapshot()
        port.level = 2.5
        port.show = show
        m.restore(then)
        assert port.level == 1.5
        m.write(TIMER, b"a")
        assert shown == [b"a"]


def test_a_model_of_ones_own() -> None:
    class Model:
        snapshot_state: Any = 1

    with UnicornMachine.from_code(SELF_JUMP, arch="arm") as m:
        before = m.snapshot()
        model = Model()
        end = m.keep_snapshot_state(model)
        then = m.snapshot()
        model.snapshot_state = 2
        m.restore(then)
        assert model.snapshot_state == 1
        m.restore(before)
        assert model.snapshot_state is None
        end()
        model.snapshot_state = 3
        m.restore(then)


def run(m: UnicornMachine, instructions: int) -> None:
    """Run so many instructions of the guest."""
    with pytest.raises(Exception, match="instructions"):
        m.run(0, max_insns=instructions)
