"""Boards behind OpenOCD, by JTAG: one of ours, and Spike where it is on PATH."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kprobes import RemoteMachine

FIRMWARE = Path(__file__).parent / "firmware"
BOARDS = ("jtag_board", "spike")
NAMES = ("riscv32", "riscv64")
#: Where a board has memory that its firmware does not use
SCRATCH = 0x800A0000, 0x10000
SETUP = ("adapter driver remote_bitbang", "remote_bitbang host localhost", "remote_bitbang port {port}",
         "jtag newtap riscv cpu -irlen 5", "target create riscv.cpu riscv -chain-position riscv.cpu", "gdb_port 0",
         "telnet_port disabled", "tcl_port disabled", "gdb_report_data_abort enable", "init",
         "log_output /dev/null", "halt")


def openocd() -> str:
    """Its path; skips where there is none."""
    found = shutil.which("openocd")
    if found is None:
        pytest.skip("no openocd here: the package openocd")
    return found


def _jtag_board(stack: ExitStack, image: Path, *arguments: str) -> int:
    """The port where it speaks JTAG."""
    process = _started(stack, [sys.executable, str(Path(__file__).with_name("jtag_board.py")), str(image),
                               *arguments])
    assert process.stdout is not None
    return int(process.stdout.readline())


def _spike(stack: ExitStack, image: Path) -> int:
    found = shutil.which("spike")
    if found is None:
        pytest.skip("no spike here: riscv-isa-sim")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = int(free.getsockname()[1])
    isa = f"rv{image.stem[-2:]}gc"
    _started(stack, [found, "--halted", f"--isa={isa}", "-m0x80000000:0x200000", f"--rbb-port={port}", str(image)])
    return port


def _started(stack: ExitStack, command: list[str], stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
    stack.callback(process.communicate)
    stack.callback(process.kill)
    return process


@contextmanager
def board(kind: str, name: str, *arguments: str, also: tuple[str, ...] = ()) -> Iterator[RemoteMachine]:
    """One that stands at its firmware's first instruction. arguments: of jtag_board.py. also: commands of OpenOCD's,
    before it begins."""
    server, image = openocd(), FIRMWARE / f"{name}.elf"
    with ExitStack() as stack:
        port = _spike(stack, image) if kind == "spike" else _jtag_board(stack, image, *arguments)
        for _ in range(50):  # Spike listens when it likes
            words = "; ".join((*SETUP[:5], *also, *SETUP[5:])).format(port=port)
            process = _started(stack, [server, "-c", words], subprocess.STDOUT)
            assert process.stdout is not None
            said = b""
            while line := process.stdout.readline():
                said += line
                if gdb := re.search(rb"Listening on port (\d+) for gdb", line):
                    m = RemoteMachine.connect(f"localhost:{int(gdb[1])}", image=image, scratch=SCRATCH, timeout=60)
                    yield stack.enter_context(m)
                    return
            time.sleep(0.1)
        raise AssertionError(said.decode())
