"""QEMU for the tests, where it is, and stubs that are made of Python."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from arches import ARCH_OF_PROGRAM, PROGRAMS

from kprobes import Unsupported
from kprobes.machine.remote.launch import NAMES, OLDEST, find_qemu

#: Programs of tests/programs that qemu-user does not run, each with the reason.
NOT_HERE = {
    "armeb32": "no architecture yet", "cortexm": "a microcontroller's program is no Linux process",
    "sparc64": "linked for 4 KiB pages: QEMU wants 8", "sparc": "QEMU's default CPU lacks LEON's casa", "sparcw": "the same",
}
RUN_HERE = sorted(p.stem for p in (PROGRAMS / "bin").glob("*-O2.elf") if p.stem.rpartition("-")[0] not in NOT_HERE)


def qemu_for(stem: str) -> str:
    """Skips where there is no QEMU for a program."""
    name = stem.rpartition("-")[0]
    arch = ARCH_OF_PROGRAM.get(name, name)
    try:
        return find_qemu(f"qemu-{NAMES.get(arch, arch)}", OLDEST)
    except Unsupported as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Programs that may be executed."""
    folder = tmp_path_factory.mktemp("programs")

    def executable(stem: str) -> Path:
        copy = folder / stem
        if not copy.exists():
            shutil.copy(PROGRAMS / "bin" / f"{stem}.elf", copy)
            copy.chmod(0o755)
        return copy

    return executable


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
