"""A run is over when its time is, whatever the stub says meanwhile, and whoever executes the guest's instructions."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from test_wrong_remote import running

from kprobes import GuestTimeout, Kprobe, Kprobes, RemoteError, RemoteMachine
from kprobes.machine.remote.packets import frame
from kprobes.machine.remote.sites import DetourHooks

pytestmark = pytest.mark.quick
FOREVER = bytes.fromhex("1000ffff 00000000")  # b . of MIPS, and its delay slot
LATEST = 30.0  # seconds: then a stub gives up, and the test fails


def goes(packet: bytes) -> bool:
    return packet.startswith((b"c", b"s", b"vCont;"))


def stopping(said: bytes, channel: socket.socket, data: bytes) -> None:
    """A stub whose guest stops at once, each time that it is let go."""
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        if goes(packet):
            channel.sendall(b"+" + frame(said))
        else:
            running(channel, frame(packet))


def talking(said: bytes, channel: socket.socket, data: bytes) -> None:
    """A stub whose guest says something again and again until it is interrupted."""
    if not any(map(goes, re.findall(rb"\$([^#]*)#..", data, re.DOTALL))):
        return running(channel, data)
    started, came = time.monotonic(), b""
    channel.sendall(b"+")
    while b"\x03" not in came and time.monotonic() < started + LATEST:
        channel.sendall(frame(said))
        channel.settimeout(0.01)
        try:
            came = channel.recv(1 << 16)
        except TimeoutError:
            pass
    channel.settimeout(None)
    return channel.sendall(frame(b"T02thread:p1.1;" if b"\x03" in came else b"W00"))


def looping(channel: socket.socket, data: bytes) -> None:
    """A stub whose memory is full of branches to themselves."""
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        if (asked := re.fullmatch(rb"m(\w+),(\w+)", packet)) is not None:
            start, size = int(asked[1], 16), int(asked[2], 16)
            code = (FOREVER * (size // 8 + 2))[start % 8:][:size]
            channel.sendall(b"+" + frame(code.hex().encode()))
        else:
            running(channel, frame(packet))


STUBS = {**{f"stops {said}": partial(stopping, said.encode())
            for said in ("T02thread:p1.1;", "S00", "T0ethread:p1.1;", "T13thread:p1.1;", "T0bthread:p1.1;")},
         **{f"says {said}": partial(talking, said.encode()) for said in ("O41", "Fwrite,1,1000,1")}}


def machine(stub: Callable[..., str], answer: Callable[[socket.socket, bytes], None],
            timeout: float = LATEST) -> RemoteMachine:
    return RemoteMachine.connect(stub(answer), arch="mips", symbols={"f": (0x1000, 16)}, scratch=(0x100000, 0x10000),
                                 timeout=timeout)


@pytest.mark.parametrize("max_insns", [None, 1 << 60], ids=["freely", "by steps"])
@pytest.mark.parametrize("what", STUBS)
def test_of_a_stub(stub: Callable[..., str], what: str, max_insns: int | None) -> None:
    with machine(stub, STUBS[what], timeout=5) as m:  # which closing waits for as well
        before = time.monotonic()
        with pytest.raises(GuestTimeout, match="time is over"):
            m.run(timeout=0.1, max_insns=max_insns)
        assert time.monotonic() - before < LATEST / 2
        assert m.read(0x1000, 4) == bytes(4), "the stub's answers are in step"


def test_of_instructions_that_are_simulated(stub: Callable[..., str]) -> None:
    """No step is made for them: nothing is heard of the stub."""
    with machine(stub, looping) as m, Kprobes(m) as k:
        pcs: list[int] = []
        k.register(Kprobe(symbol_name="f", pre_handler=lambda p, regs: pcs.append(regs.pc)))
        before = time.monotonic()
        with pytest.raises(GuestTimeout, match="time is over"):
            m.run("f", timeout=0.1, max_insns=100_000)
        assert time.monotonic() - before < LATEST / 2 and set(pcs) == {0x1000} and m.regs.pc == 0x1000


def test_of_a_guest_that_never_leaves_a_detour(stub: Callable[..., str]) -> None:
    with machine(stub, partial(stopping, b"T02thread:p1.1;"), 1) as m, suppress(RemoteError), Kprobes(m):
        detours = DetourHooks(inside=lambda pc: True)
        m._control._detours = m._control._interrupts._detours = detours
        before = time.monotonic()
        with pytest.raises(RemoteError, match="does not stop"):
            m.run(timeout=0.1)
        assert time.monotonic() - before < LATEST
