"""A session with a stub whose packets are all known beforehand: what a fuzzer damages."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from kprobes import GuestFault, KprobeError, RemoteMachine
from kprobes.arch import get
from kprobes.machine.remote.files import auxiliary
from kprobes.machine.remote.packets import Connection, frame
from kprobes.machine.remote.target import RemoteTarget

DESCRIPTION = ('l<?xml version="1.0"?><target version="1.0"><architecture>mips</architecture><feature name="f">'
               + "".join(f'<reg name="{name}" bitsize="32"/>' for name in get("mips").regs.names)
               + '<xi:include href="more.xml"/></feature></target>').encode()
#: beginning of a request -> what a sound stub of a MIPS machine answers; the longest beginning counts
ANSWERS = {
    b"qSupported": b"PacketSize=1000;qXfer:features:read+;qXfer:auxv:read+;QStartNoAckMode+;multiprocess+;vContSupported+",
    b"QStartNoAckMode": b"OK", b"vCont?": b"vCont;c;C;s;S", b"vCont;": b"T05thread:p1.1;swbreak:;", b"H": b"OK",
    b"?": b"T05thread:p1.1;", b"g": b"0* " * 76, b"G": b"OK", b"p": b"00000012", b"P": b"OK", b"m": b"00000000", b"M": b"OK",
    b"Z0": b"OK", b"z0": b"OK", b"c": b"T05thread:p1.1;", b"s": b"T05thread:p1.1;",
    b"qfThreadInfo": b"mp1.1,p1.2", b"qsThreadInfo": b"l", b"qXfer:features:read:target.xml": DESCRIPTION,
    b"qXfer:features:read:more.xml": b'l<feature><reg name="a}\x03" bitsize="64"/></feature>',
    b"qXfer:auxv": b"l" + bytes.fromhex("00000006 00001000 00000009 00400000 00000000 00000000"), b"D": b"OK",
}


def talk(channel: socket.socket, timeout: float, sound: bool = False) -> None:
    """Ask a stub for all that it may be asked for, until the connection is lost.

    Args:
        channel: leads to the stub.
        timeout: seconds that an answer may take.
        sound: True: every question has to be answered rightly.

    Raises:
        KprobeError: `sound` is True, and an answer is wrong, or none comes.
    """
    link = Connection(channel, timeout)
    try:
        target = RemoteTarget(link)
        machine: list[RemoteMachine] = []
        def run() -> None:
            machine[0].run(until=0x1000, timeout=timeout)

        def call() -> None:
            machine[0].call("f", 1, b"text", timeout=timeout)

        def ends_in_fault(ask: Callable[[], object]) -> tuple[type[Exception], ...]:
            """The stub says that the guest has stopped, but never where it was sent."""
            return (GuestFault,) if ask in (run, call) else ()

        asked: list[Callable[[], object]] = [
            target.described, target.threads, target.why, target.all_registers,
            lambda: target.registers([0, 1, 300]), lambda: target.set_registers([(1, bytes(4))]),
            lambda: target.read(0x1000, 16), lambda: target.read(0x1000, 5000), lambda: target.write(0x1000, b"#$}*"),
            lambda: auxiliary(target.transfer("auxv"), 4, "big"), lambda: target.choose("p1.2"),
            target.resume, lambda: target.wait(timeout, print),
            lambda: machine.append(RemoteMachine(target, get("mips"), symbols={"f": (0x1000, 16)}, scratch=(0x100000, 0x20000))),
            lambda: machine[0].regs.pc, run, call, target.detach,
        ]
        for ask in asked:
            if sound:
                with suppress(*ends_in_fault(ask)):
                    ask()
                continue
            with suppress(KprobeError, IndexError if not machine else KprobeError):
                ask()
            if link.closed:
                return
    finally:
        link.close()


def damaged_session(stream: bytes, sound: bool = False) -> None:
    """Talk to a stub that has sent these bytes, whatever it is asked, and has gone.

    Args:
        stream: the bytes.
        sound: as of talk().
    """
    ours, stubs = socket.socketpair()
    with ours, stubs:
        ours.setblocking(True)
        stubs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)
        stubs.sendall(stream[:1 << 17])
        stubs.shutdown(socket.SHUT_WR)
        talk(ours, 2.0, sound)


def damaged_replies(lines: bytes, sound: bool = False) -> None:
    """The same, of a stub that frames its replies as it should: one of a line each."""
    damaged_session(b"".join(b"+" + frame(line) for line in lines.split(b"\n")), sound)


def sound_replies() -> bytes:
    """The replies of a stub that answers everything, one of a line each."""
    said: list[bytes] = []
    memory: dict[int, bytes] = {}

    def contents(request: bytes) -> bytes:
        """The answer to a request to read memory, which has what was written; b"" to any other, and note a write."""
        if written := re.fullmatch(rb"M(\w+),\w+:(\w*)", request):
            memory.update((int(written[1], 16) + n, written[2][2 * n:2 * n + 2]) for n in range(len(written[2]) // 2))
        if read := re.fullmatch(rb"m(\w+),(\w+)", request):
            start = int(read[1], 16)
            return b"".join(memory.get(at, b"00") for at in range(start, start + int(read[2], 16)))
        return b""

    def serve() -> None:
        unread = b""
        with suppress(OSError):
            while data := stubs.recv(1 << 16):
                unread += data
                for request in re.findall(rb"\$([^#]*)#..", unread, re.DOTALL):
                    found = max((key for key in ANSWERS if request.startswith(key)), key=len, default=b"")
                    said.append(contents(request) or ANSWERS.get(found, b""))
                    stubs.sendall(b"+" + frame(said[-1]))
                unread = unread[unread.rfind(b"#") + 3:] if b"#" in unread else unread

    ours, stubs = socket.socketpair()
    thread = threading.Thread(target=serve)
    thread.start()
    with stubs:
        talk(ours, 2.0, sound=True)
        stubs.shutdown(socket.SHUT_RDWR)
        thread.join()
    return b"\n".join(said)
