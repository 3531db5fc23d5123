"""FreeRTOS's kernel with its tasks on a Cortex-M3, probed: switches are counted, tasks named, and nothing changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.board import Board, Uart
from kprobes.cli import main

pytestmark = pytest.mark.quick
GUEST = Path(__file__).resolve().parent.parent.parent / "examples" / "freertos"
BOARD = GUEST / "board.toml"
TEXT = "".join(f"got {n * n}\n" for n in range(1, 13)) + "total 650\n"


def machine(received: bytes = b"") -> UnicornMachine:
    board = Board.load(BOARD)
    uart = board.devices[0]
    return evolve(board, devices=(evolve(uart, settings={**uart.settings, "received": received}),
                                  *board.devices[1:])).machine(GUEST / "freertos.bin")


def outcome(m: UnicornMachine) -> tuple[Any, ...]:
    uart = m.board["UART"]
    assert isinstance(uart, Uart)
    values = [m.read(m.symbols[name].address, 4) for name in ("total", "crunched", "received", "xTickCount")]
    return bytes(uart.sent).decode(), values, m.interrupts.now, m.regs.pc


def test_its_tasks_run() -> None:
    with machine(b"abc") as m:
        m.run(timeout=30)
        text, values, _, _ = outcome(m)
        assert text == TEXT
        assert [int.from_bytes(value, "little") for value in values[:1]] == [650]
        assert int.from_bytes(values[2], "little") == sum(b"abc")  # the serial port's interrupt


def test_probes_on_its_scheduler_change_nothing() -> None:
    with machine(b"abc") as m:
        m.run(timeout=30)
        plain = outcome(m)
    with machine(b"abc") as m, Kprobes(m) as k:
        running: list[str] = []
        returned: Counter[str] = Counter()
        assert m.cpu_task is not None
        task = m.cpu_task
        switches = Kprobe(symbol_name="vTaskSwitchContext", pre_handler=lambda p, regs: running.append(task(regs)))
        delays = Kretprobe(symbol_name="vTaskDelay", maxactive=8,
                           handler=lambda ri, regs: returned.update([task(regs)]))
        receives = Kretprobe(symbol_name="xQueueReceive", maxactive=8,
                             handler=lambda ri, regs: returned.update([task(regs)]))
        ticks = Kprobe(symbol_name="xPortSysTickHandler", post_handler=lambda p, regs, flags: None)
        crosses = Kprobe(symbol_name="xPortPendSVHandler")
        for probe in (switches, delays, receives, ticks, crosses):
            k.register(probe)
        m.run(timeout=60)
        assert outcome(m) == plain
        assert switches.nhit == crosses.nhit == len(running) > 40
        assert {*running} == {"producer", "consumer", "cruncher", "IDLE"}
        assert ticks.nhit > 20
        # each return is its own task's, although the others have called the same function meanwhile
        assert returned == {"consumer": 12, "producer": 11, "cruncher": 4}
        assert (delays.nmissed, receives.nmissed) == (0, 0)


def test_a_probe_on_every_function_changes_nothing() -> None:
    with machine() as m:
        m.run(timeout=30)
        plain = outcome(m)
    with machine() as m, Kprobes(m) as k:
        probes = [Kprobe(addr=s.address | 1, pre_handler=lambda p, regs: None) for s in m.symbols
                  if s.kind == "func" and k.check(s.address | 1).probeable]
        for probe in probes:
            k.register(probe)
        m.run(timeout=60)
        assert outcome(m) == plain
        assert sum(probe.nhit for probe in probes) > 500


def test_a_snapshot_in_the_middle() -> None:
    with machine() as m, Kprobes(m) as k:
        stop = Kprobe(symbol_name="consume", pre_handler=lambda p, regs: m.stop())
        k.register(stop)
        for _ in range(4):
            m.run(timeout=30)
        s = m.snapshot()
        k.unregister(stop)
        sent = len(m.board["UART"].sent)
        m.run(timeout=30)
        first = outcome(m)
        m.restore(s)
        del m.board["UART"].sent[sent:]  # a device's own state is Python's
        m.run(timeout=30)
        assert outcome(m)[1:] == first[1:]


def test_task_names_in_the_commands_trace() -> None:
    result = CliRunner().invoke(main, ["trace", str(GUEST / "freertos.bin"), "--board", str(BOARD), "--run",
                                       "--timeout", "30", "-e", "p:got consume task=$comm n=$arg1:u32"])
    assert result.exit_code == 0, result.output
    hits = [line for line in result.stdout.splitlines() if line.startswith("got:")]
    assert [line.partition(" task=")[2] for line in hits] == [f'"consumer" n={n * n}' for n in range(1, 13)]
    assert "total 650" in result.stderr
