"""What a remote machine is given: see tests/test_wrong_values.py."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_packets import GOOD, remembered
from wrong import methods, refused

from kprobes import (
    BadArgument,
    GuestTimeout,
    Kprobe,
    KprobeError,
    Kprobes,
    MachineBusy,
    MachineClosed,
    QemuMachine,
    RemoteError,
    RemoteMachine,
    Unsupported,
)
from kprobes.machine.remote.packets import frame

pytestmark = pytest.mark.quick


def sound(channel: socket.socket, data: bytes) -> None:
    """A stub whose every answer is right."""
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        found = next((value for key, value in sorted(GOOD.items(), key=lambda item: -len(item[0]))
                      if packet.startswith(key)), b"")
        channel.sendall(b"+" + frame(found))


def dying(channel: socket.socket, data: bytes) -> None:
    """A stub that is gone when it is to stop somewhere."""
    if b"$Z0" in data:
        channel.close()
    else:
        sound(channel, data)


def running(channel: socket.socket, data: bytes) -> None:
    """A stub that has all memory, and whose guest runs until it is interrupted."""
    if b"\x03" in data:
        channel.sendall(frame(b"T02thread:p1.1;"))
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        if (answer := remembered(packet)) is not None:
            channel.sendall(b"+" + frame(answer))
        elif packet.startswith((b"vCont;", b"c")):
            channel.sendall(b"+")
        else:
            sound(channel, frame(packet))


def machine(stub: Callable[[Any], str], answer: Any = sound) -> RemoteMachine:
    return RemoteMachine.connect(stub(answer), arch="mips", symbols={"f": (0x1000, 16)}, scratch=(0x100000, 0x10000),
                                 timeout=5)


@pytest.mark.parametrize("name", methods(RemoteMachine, ("snapshot", "restore", "mmio", "watch_at", "count_blocks",
                                                         "report_to")))
def test_methods(stub: Callable[[Any], str], name: str) -> None:
    with machine(stub) as m:
        good = {"addr": 0x1000, "size": 4, "function": "f", "args": 1, "timeout": 0.02, "start": "f", "until": 0x1000,
                "data": b"x", "near": 0x1000, "page": 0x100000,
                "target": 0x1000, "address": "127.0.0.1:1", "arch": "mips", "type": "int", "name": "int",
                "code": b"\0\0\0\0"}
        if name == "view":
            good["address"] = 0x1000
        assert (refused(getattr(m, name), good, lambda: (len(m.symbols), m.regs.sp))
                or name in ("count", "ran", "release", "stop_at", "writable"))


def test_a_closed_machine_says_so(stub: Callable[[Any], str]) -> None:
    m = machine(stub, running)
    regs, k = m.regs, Kprobes(m)
    k.register(p := Kprobe(symbol_name="f"))
    m.close()
    assert not p.registered and m.arch.name == "mips" and m.exit_status is None
    for use in (lambda: m.read(0x1000, 4), lambda: m.call("f"), lambda: m.regs, lambda: regs.pc, lambda: m.alloc(4),
                lambda: Kprobes(m)):
        with pytest.raises(MachineClosed):
            use()
    k.close()
    m.close()


@contextmanager
def run_by_another_thread(m: RemoteMachine) -> Iterator[None]:
    """It runs inside, for half a second."""
    def run() -> None:
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.5)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and not m._control.state.depth:
        time.sleep(0.001)
    yield
    thread.join()


def test_a_machine_is_one_threads(stub: Callable[[Any], str]) -> None:
    """While one thread runs it another neither runs it, nor changes probes, nor closes it."""
    with machine(stub, running) as m, Kprobes(m) as k:
        with run_by_another_thread(m):
            for use in (lambda: m.call("f"), m.run, m.close, lambda: k.register(Kprobe(symbol_name="f"))):
                with pytest.raises(MachineBusy):
                    use()
        k.register(Kprobe(symbol_name="f"))


def test_a_guest_that_is_lost_before_it_runs(stub: Callable[..., str]) -> None:
    """Registers read as 0 then, and nothing that is closed afterwards raises."""
    m = machine(stub, dying)
    m.cpu_task = lambda regs: regs.sp
    with Kprobes(m), pytest.raises(RemoteError):
        m.run(until=0x1000)
    assert m.regs.sp == 0
    m.close()


@pytest.mark.parametrize("name", ["argv", "arch", "sysroot", "env", "stdin", "stdout", "threads", "timeout"])
def test_programs_in_qemu(name: str, programs: Callable[[str], Any]) -> None:
    """None is started with what it cannot have: whether there is a QEMU, none, or an old one."""
    wrong = {"argv": [None, "", [], [5], ["a\0b"], {}, b"x"], "arch": [[], 5, "no such"], "sysroot": [5, [], 2.5],
             "env": [5, {"A=": "b"}, {1: "x"}, {"A": "\0"}, [1]], "threads": [None, 0, -1, 1 << 70, 2.5],
             "timeout": [None, 0, -1, 1 << 70, float("nan"), "1"], "stdin": [1 << 70, 2.5, [], object()],
             "stdout": [1 << 70, 2.5, "x", object()]}[name]
    for value in wrong:
        given = {"argv": [programs("arm64-O2")], "timeout": 5.0, name: value}
        with pytest.raises(KprobeError) as caught:
            QemuMachine.user(given.pop("argv"), **given).close()
        assert isinstance(caught.value, BadArgument) or name == "arch", caught.value


def test_a_qemu_that_is_too_old_is_as_none(programs: Callable[[str], Any], tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12's: what is wrong with the arguments is said first, and then which version there is."""
    old = tmp_path / "qemu-aarch64"
    old.write_text("#!/bin/sh\necho qemu-aarch64 version 7.2.22\n")
    old.chmod(0o755)
    monkeypatch.setenv("KPROBES_QEMU_DIR", str(tmp_path))
    program = programs("arm64-O2")
    for wrong in ({"env": 5}, {"stdin": 2.5}, {"stdout": "x"}):
        with pytest.raises(BadArgument):
            QemuMachine.user([program], **wrong)
    with pytest.raises(Unsupported, match=r"no qemu-aarch64 of version 9 or newer here.*is version 7"):
        QemuMachine.user([program])


@pytest.mark.parametrize("name", ["arguments", "arch", "timeout"])
def test_whole_machines(name: str) -> None:
    for value in {"arguments": [None, "-S", [5], ["a\0b"]], "arch": [None, [], "no such"],
                  "timeout": [None, 0, float("nan"), 1 << 70]}[name]:
        given = {"arguments": ["-machine", "none"], "arch": "x86_64", name: value}
        with pytest.raises((BadArgument, Unsupported)):
            QemuMachine.system(given.pop("arguments"), **given).close()


@pytest.mark.parametrize("threads", [0, -1, 1 << 70, None, 2.5])
def test_numbers_of_threads(stub: Callable[[Any], str], threads: Any) -> None:
    with pytest.raises(BadArgument, match="threads is"):
        RemoteMachine.connect(stub(sound), arch="mips", scratch=(0x100000, 0x10000), threads=threads)


def test_memory_in_a_run(stub: Callable[[Any], str]) -> None:
    """Another thread gets a clear answer meanwhile, and the connection stays in step."""
    with machine(stub, running) as m:
        with run_by_another_thread(m):
            for use in (lambda: m.read(0x1000, 4), lambda: m.write(0x1000, b"abcd"), lambda: m.patch(0x1000, b"abcd"),
                        lambda: m.read_cstr(0x1000)):
                with pytest.raises(MachineBusy):
                    use()
        assert m.read(0x1000, 4) == bytes(4)


def leaving(channel: socket.socket, data: bytes) -> None:
    """A stub whose guest ends while one of its threads is looked at: all that is asked for then is answered so."""
    running_on = b"$c#" in data or b"$vCont;c" in data
    for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
        if packet.startswith((b"c", b"vCont;")):
            channel.sendall(b"+" + frame(b"T05thread:p1.1;") + frame(b"W07"))
        elif not running_on:
            sound(channel, b"$%s#00" % packet)


def test_the_status_of_a_guest_that_ends_meanwhile(stub: Callable[[Any], str]) -> None:
    """By what the stub has said, not by how it ends itself without us."""
    m = machine(stub, leaving)
    with Kprobes(m):
        m.run(timeout=5)
    assert m.exit_status == 7
