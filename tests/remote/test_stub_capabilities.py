"""What each stub can do, found out by trying: docs/remote.json says the same, and docs/remote.md shows it.

KPROBES_CAPABILITIES=docs/remote.json writes what is found instead of comparing; then python docs/generate.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from arch_rows import QEMU_NAMES
from arches import ARCH_OF_PROGRAM
from openocd import BOARDS as BEHIND_OPENOCD
from openocd import NAMES as RISCV
from openocd import board as behind_openocd
from qemu import RUN_HERE, qemu_for
from test_gdbserver import served
from test_qemu_system import BOARDS, board

from kprobes import Kprobe, Kprobes, Kretprobe, QemuMachine, RemoteMachine, Unsupported
from kprobes.machine.remote.launch import find_qemu
from kprobes.machine.remote.target import RemoteTarget

Programs = Callable[[str], Path]
Found = dict[str, bool | int | str]
KNOWN = Path(__file__).resolve().parents[2] / "docs" / "remote.json"
USER = [stem for stem in RUN_HERE if ARCH_OF_PROGRAM.get(stem.rpartition("-")[0]) is None]
WATCHES = {"Z1": "hardware breakpoints", "Z2": "watches writes", "Z3": "watches reads", "Z4": "watches both"}


def packets(m: RemoteMachine, place: int) -> Found:
    """What the stub answers. place: code."""
    target: RemoteTarget = m._target
    file = m._threads._files[m._threads.current]
    pc = m._threads.slots[m._threads._pc]
    target.choose(m._threads.name)
    data = target.register(pc.number)
    text = target.read(place, 4)
    target.write(place, text[::-1])
    written = target.read(place, 4) == text[::-1]
    target.write(place, text)
    target.stops.add(place)
    shown = bytes.fromhex(target.link.ask(b"m%x,4" % place).decode())
    target.stops.remove(place)
    file.forget()
    return {
        "registers described": bool(target.described()[1]), "read alone": len(data) == pc.size,
        "written alone": bool(data) and target.set_registers([(pc.number, data)])[0], "writes text": written,
        "hides its breakpoints": shown == text,
        "threads": target.link.ask(b"qfThreadInfo").startswith(b"m"), "resumes one thread": target.resumes_threads,
        "libraries": "qXfer:auxv:read" in target.features, "fault's address": "qXfer:siginfo:read" in target.features,
        **{what: watched(target, kind, m.regs.sp & -8) for kind, what in WATCHES.items()},
    }


def watched(target: RemoteTarget, kind: str, addr: int) -> bool:
    """True where the stub takes, and gives back, one of these."""
    said = target.link.ask(b"%s,%x,4" % (kind.encode(), addr))
    return said == b"OK" and target.link.ask(b"%s,%x,4" % (kind.lower().encode(), addr)) == b"OK"


def probes(m: RemoteMachine, function: str) -> Found:
    """What probes do, and how often a hit stops the guest."""
    stops = 0
    wait = m._target.wait

    def counting(*args: Any) -> Any:
        nonlocal stops
        stops += 1
        return wait(*args)

    m._target.wait = counting  # type: ignore[method-assign]

    def during(*registered: Kprobe | Kretprobe) -> int:
        """Stops of a call that are the probes'."""
        nonlocal stops
        with Kprobes(m) as k:
            for probe in registered:
                k.register(probe)
            stops = 0
            m.call(function, 3, timeout=20)
            return stops

    m.call(function, 3, timeout=20)  # gets the page that it returns to
    none = during()
    plain = Kprobe(symbol_name=function, optimize=False)
    lean = Kprobe(symbol_name=function)
    back = Kretprobe(symbol_name=function, handler=lambda ri, regs: None)
    cost = during(plain) - none, during(lean) - none, during(lean, back) - none
    assert plain.nhit == 1 and lean.nhit and back.nreturned == 1
    return {"stops of a hit": cost[0], "where it jumps back": cost[1], "and of a return": cost[2] - cost[1]}


def refused(m: RemoteMachine) -> Found:
    """What no such machine does."""
    tries: dict[str, Callable[[], object]] = {
        "snapshots": m.snapshot, "mmio": lambda: m.mmio(0, 16), "blocks counted": m.count_blocks,
        "accesses reported": lambda: m.watch_at(0, 4, "w", lambda *_: None)}
    out: Found = {"programs in the guest": m.can_run, "calls in place": m.call_sites is not None and m.call_sites.jumps(None, 0)}
    for what, attempt in tries.items():
        with suppress(Unsupported):
            attempt()
            out[what] = True
        out.setdefault(what, False)
    return out


def check(stub: str, arch: str, m: RemoteMachine, function: str) -> None:
    """Compare with docs/remote.json, or write there."""
    entry = m.arch.pointers.code_address(m.symbols[function].address, m.read).addr
    found = {**packets(m, entry), **probes(m, function), **refused(m)}
    file = os.environ.get("KPROBES_CAPABILITIES")
    if file is None:
        assert json.loads(KNOWN.read_text())[stub][arch] == found
        return
    known = json.loads(Path(file).read_text()) if Path(file).exists() else {}
    known.setdefault(stub, {})[arch] = found
    Path(file).write_text(json.dumps({stub: dict(sorted(known[stub].items())) for stub in sorted(known)}, indent=1) + "\n")


@pytest.mark.parametrize("stem", USER)
def test_qemu_user(stem: str, programs: Programs) -> None:
    qemu_for(stem)
    with QemuMachine.user([programs(stem)], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        check("qemu-user", m.arch.name, m, "test_arith32")


@pytest.mark.parametrize("name", BOARDS)
def test_qemu_system(name: str) -> None:
    try:
        find_qemu(f"qemu-system-{QEMU_NAMES.get(name, name)}", 7)
    except Unsupported as error:
        pytest.skip(str(error))
    with board(name) as m:
        check("qemu-system", name, m, "leaf")


def test_gdbserver(programs: Programs) -> None:
    found = shutil.which("gdbserver")
    if found is None:
        pytest.skip("no gdbserver here: the package gdbserver")
    with served(found, programs("x86_64-O2")) as (m, _):
        check("gdbserver", "x86_64", m, "test_arith32")


@pytest.mark.parametrize("name", RISCV)
@pytest.mark.parametrize("kind", BEHIND_OPENOCD)
def test_openocd(kind: str, name: str) -> None:
    with behind_openocd(kind, name) as m:
        m.run("_start", until="body", timeout=20)
        check("openocd", name, m, "leaf")
