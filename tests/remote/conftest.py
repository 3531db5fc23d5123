"""QEMU for the tests, where it is, and stubs that are made of Python."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from arches import PROGRAMS


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
