"""What a remote machine is given: see tests/test_wrong_values.py."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from test_packets import GOOD
from wrong import methods, refused

from kprobes import RemoteMachine
from kprobes.machine.remote.packets import frame

pytestmark = pytest.mark.quick


def sound(channel: socket.socket, data: bytes) -> None:
    """A stub whose every answer is right."""
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        found = next((value for key, value in sorted(GOOD.items(), key=lambda item: -len(item[0])) if packet.startswith(key)), b"")
        channel.sendall(b"+" + frame(found))


def machine(stub: Callable[[Any], str]) -> RemoteMachine:
    return RemoteMachine.connect(stub(sound), arch="mips", symbols={"f": (0x1000, 16)}, scratch=(0x100000, 0x10000), timeout=5)


@pytest.mark.parametrize("name", methods(RemoteMachine, ("snapshot", "restore", "mmio", "watch_at", "count_blocks", "call_at", "unmap_calls", "program_at",
                                                         "report_to", "map_calls")))
def test_methods(stub: Callable[[Any], str], name: str) -> None:
    with machine(stub) as m:
        good = {"addr": 0x1000, "size": 4, "function": "f", "args": 1, "timeout": 0.02, "start": "f", "until": 0x1000, "data": b"x", "near": 0x1000, "page": 0x100000,
                "target": 0x1000, "address": "127.0.0.1:1", "arch": "mips", "type": "int", "name": "int", "code": b"\0\0\0\0"}
        if name == "view":
            good["address"] = 0x1000
        assert refused(getattr(m, name), good, lambda: (len(m.symbols), m.regs.sp)) or name in ("count", "ran", "release", "stop_at")
