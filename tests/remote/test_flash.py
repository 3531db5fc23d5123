"""Code that cannot be written: hardware breakpoints, as many as there are, of a RISC-V board behind OpenOCD."""

from __future__ import annotations

import time
from collections.abc import Iterator
from errno import ENOSPC
from typing import Any

import pytest
from jtag_triggers import COUNT
from openocd import board

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, NoBreakpoint, NoMemory, RemoteError, RemoteMachine

#: OpenOCD is told of flash there, and tells us
MAPPED = "flash bank text faux 0x80000000 0x10000 4 4 riscv.cpu riscv.cpu"


@pytest.fixture(params=[("riscv32", ()), ("riscv64", (MAPPED,))], ids=["riscv32", "riscv64-mapped"])
def m(request: pytest.FixtureRequest) -> Iterator[RemoteMachine]:
    """Where the firmware calls body()."""
    name, also = request.param
    with board("jtag_board", name, "flash", also=also) as machine:
        machine.run("_start", until="body", timeout=200)
        yield machine


def test_probes_in_flash(m: RemoteMachine) -> None:
    """They are hit, and text stays as it is; one more than there are is refused, and whatever asked for it as it was."""
    leaf, work, body = (m.symbols[name].address for name in ("leaf", "work", "body"))
    text, arguments, results = m.read(leaf, 64), list[int](), list[int]()
    with Kprobes(m) as k:
        probe = Kprobe(addr=leaf, pre_handler=lambda p, regs: arguments.append(regs.arg(0)))
        after = Kprobe(addr=work, post_handler=lambda p, regs, flags: None)
        back = Kretprobe(symbol_name="work", handler=lambda ri, regs: results.append(regs.return_value))
        k.register_kprobes([probe, after])
        k.register_kretprobe(back)
        m.run(until="finished", timeout=300)
        assert (arguments, results, after.nhit) == (list(range(10)), [100], 1)
        k.register(third := Kprobe(addr=body))
        with pytest.raises(NoBreakpoint, match=rf"in use: {COUNT}") as refused:
            k.register(more := Kprobe(symbol_name="finished"))
        assert refused.value.errno == ENOSPC and not more.registered
        with pytest.raises(NoBreakpoint):
            m.run(until="finished")
        k.disable(third)
        k.register(more)
        with pytest.raises(NoBreakpoint):
            k.enable(third)
        assert not third.enabled and more.enabled
        assert m.call("work", 5, timeout=200) == 25 and probe.nhit == 15
    assert m._target.link.ask(b"m%x,40" % leaf) == text.hex().encode()
    for addr in (leaf, work, body):  # nothing is left of them
        assert m._target.link.ask(b"Z1,%x,2" % addr) == b"OK"
        assert m._target.link.ask(b"z1,%x,2" % addr) == b"OK"


def test_what_is_written_and_stays(m: RemoteMachine) -> None:
    """OpenOCD says that it has written: it is not believed, neither of text nor of memory that shall hold slots."""
    text = m.symbols["body"].address
    m.write(text, m.read(text, 2))
    with pytest.raises(GuestFault, match="stays as it is"):
        m.write(text, bytes(2))
    server = f"localhost:{m._target.link._socket.getpeername()[1]}"  # type: ignore[union-attr]
    m.close()
    with again(server, arch=m.arch.name, scratch=(text & -4096, 4096), timeout=60) as other, \
            pytest.raises(NoMemory, match="stays as it is"):
        other.map_code()


def again(server: str, **settings: Any) -> RemoteMachine:
    """Connected to a stub that may not have noticed yet that somebody else has gone: it takes one at a time."""
    for _ in range(100):
        try:
            return RemoteMachine.connect(server, **settings)
        except RemoteError:
            time.sleep(0.1)
    return RemoteMachine.connect(server, **settings)


def test_all_at_once(m: RemoteMachine) -> None:
    """Switched on together they are refused together."""
    places = [m.symbols[name].address for name in ("leaf", "work", "body", "finished")]
    with Kprobes(m) as k:
        k.enabled = False
        k.register_kprobes(probes := [Kprobe(addr=place) for place in places])
        with pytest.raises(NoBreakpoint):
            k.enabled = True
        assert not k.enabled and m.call("leaf", 1, timeout=200) == 3 and not any(probe.nhit for probe in probes)
        k.unregister(probes[-1])
        k.enabled = True
        assert m.call("leaf", 1, timeout=200) == 3 and probes[0].nhit == 1
