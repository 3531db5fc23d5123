"""QEMU for the tests, where it is, and stubs that are made of Python."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from arch_rows import QEMU_NAMES
from arches import PROGRAMS
from qemu import RUN_HERE, executable, start

from kprobes import QemuMachine, Unsupported
from kprobes.machine.remote.launch import find_qemu

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kernel.py"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Programs that may be executed."""
    folder = tmp_path_factory.mktemp("programs")

    def copied(stem: str) -> Path:
        return folder / stem if (folder / stem).exists() else executable(PROGRAMS / "bin" / f"{stem}.elf", folder)

    return copied


@pytest.fixture(params=RUN_HERE)
def m(request: pytest.FixtureRequest, programs: Callable[[str], Path]) -> Iterator[QemuMachine]:
    """A process of each program that runs programs of ours."""
    with start(request.param, programs) as machine:
        yield machine


@pytest.fixture
def x86(programs: Callable[[str], Path]) -> Iterator[QemuMachine]:
    """One of x86-64."""
    with start("x86_64-O2", programs) as machine:
        yield machine


Answer = Callable[[socket.socket, bytes], None]


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[Callable[[Answer], str]]:
    """Starts a server that hands whatever arrives to a function; returns its address."""
    listening: list[socket.socket] = []

    def serve(answer: Answer) -> str:
        address = str(tmp_path / f"s{len(listening)}")
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(1)
        listening.append(server)

        def run() -> None:
            try:
                channel, _ = server.accept()
                with channel:
                    while data := channel.recv(1 << 16):
                        answer(channel, data)
            except OSError:
                pass

        threading.Thread(target=run, daemon=True).start()
        return address

    yield serve
    for server in listening:
        server.close()


@pytest.fixture(scope="module")
def example() -> ModuleType:
    specification = importlib.util.spec_from_file_location("kernel_example", EXAMPLE)
    assert specification is not None and specification.loader is not None
    made = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def kernel_cpus() -> int:
    """Processors of the kernel below; tests that want others have a fixture of this name."""
    return 1


@pytest.fixture(scope="module", params=["arm64", "x86_64"])
def kernel(request: pytest.FixtureRequest, example: ModuleType, kernel_cpus: int) -> Iterator[object]:
    """One that asks what to do, with its symbols loaded."""
    folder = os.environ.get("KPROBES_KERNEL_DIR")
    if not folder:
        pytest.skip("no kernels here: tests/fetch_kernel FOLDER, then set KPROBES_KERNEL_DIR=FOLDER and "
                    "KPROBES_QEMU_DIR=FOLDER/bin")
    try:
        find_qemu(f"qemu-system-{QEMU_NAMES.get(request.param, request.param)}", 7)
    except Unsupported as error:
        pytest.skip(str(error))
    made = example.Kernel(Path(folder), request.param, kernel_cpus)
    with made.m:
        made.wait()
        made.load_symbols()
        yield made
