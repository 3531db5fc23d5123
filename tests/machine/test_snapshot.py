"""Snapshots: what was comes back, on every guest; the library's own stays as it is now. The two ways of keeping memory
agree."""

from __future__ import annotations

import gc
import os
import pickle
import random
import sys
import threading
from typing import Any

import pytest
import unicorn
from arches import RUNNABLE, programs_of, results
from unicorn import unicorn_const as const

from kprobes import (
    BadArgument,
    GuestFault,
    Kprobe,
    Kprobes,
    Kretprobe,
    MachineBusy,
    NoMemory,
    UnicornMachine,
    Unsupported,
)
from kprobes.machine.unicorn import hostpages
from kprobes.machine.unicorn.hostpages import HostPages, PageCopies

WAYS = {"pages": HostPages, "copies": PageCopies}
BASE = 0x10000
X86 = bytes.fromhex("89f801f083c001c3")  # mov eax, edi; add eax, esi; add eax, 1; ret
X86_STORE = bytes.fromhex("893789b7000400 00c3")  # mov [rdi], esi; mov [rdi + 0x400], esi; ret


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    if request.param == "pages" and (sys.platform != "linux" or os.sysconf("SC_PAGESIZE") != 4096):
        pytest.skip("this system does not tell which pages were written")
    return WAYS[request.param]


def permissions(m: UnicornMachine) -> dict[int, int]:
    return {at: perms for start, end, perms in m.uc.mem_regions() for at in range(start, end, m.page_size)}


def with_way(m: UnicornMachine, way: Any) -> UnicornMachine:
    m.parts.snapshots.pages = way()
    return m


def raw(arch: str, way: Any) -> UnicornMachine:
    return with_way(UnicornMachine.from_code(bytes(64), arch=arch, base=BASE), way)


def registers(m: UnicornMachine) -> dict[str, int]:
    return {name: m.regs[name] for name in m.arch.regs.names}


def memory(m: UnicornMachine, k: Kprobes | None = None) -> dict[int, bytes]:
    """Every page but the library's own code; text as it is under the probes."""
    read, page = m.read if k is None else k._rooms.text.read, m.page_size
    return {at: read(at, page) for start, end in m.parts.memory.regions()
            if not (m.parts.memory.own.has(start) and m.executable(start)) for at in range(start, end, page)}


SPECIAL = {"fcx", "pcxi", "psw", "cpsr", "xpsr", "msr", "status", "cs", "ds", "es", "ss", "fs", "gs"}


def scramble(m: UnicornMachine, rng: random.Random) -> None:
    """Other values in every register but those that a CPU cannot have any value in."""
    for name in m.arch.regs.names:
        if name not in {m.arch.regs.pc, m.arch.regs.sp, m.arch.regs.flags, *SPECIAL}:
            m.regs[name] = rng.getrandbits(30) & ~3
    m.regs.sp -= 4 * rng.randrange(4) * m.page_size


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_registers_and_memory(arch: str, way: Any) -> None:
    m, rng = raw(arch, way), random.Random(arch)
    block = m.alloc(100)
    m.write(block, b"before")
    scramble(m, rng)
    then = registers(m), memory(m)
    s = m.snapshot()
    for n in range(3):
        m.write(block, b"later")
        m.write(m.regs.sp - 4096 * n, b"stack")
        m.write(BASE + 8 * n, b"code")
        m.alloc(1 << n)
        scramble(m, rng)
        m.restore(s)
        assert registers(m) == then[0]
        now = memory(m)
        assert now.keys() == then[1].keys() and not [hex(start) for start in now if now[start] != then[1][start]]
    assert "mapped" in repr(s)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_in_the_midst_of_a_program(arch: str, way: Any) -> None:
    """A program is stopped in several places; from each it comes to the same end as often as one likes, whatever ran
    meanwhile.

    That needs all of the CPU's state, floating point and modes included.
    """
    for path in programs_of(arch)[:2]:
        m = with_way(UnicornMachine.load(path), way)
        names = list(results(path.stem, m))
        with Kprobes(m) as k:
            stops = [0]

            def count(p: Kprobe, regs: Any, m: UnicornMachine = m, stops: list[int] = stops) -> None:
                stops[0] -= 1
                if not stops[0]:
                    m.stop()

            for name in names:
                if name != "run_all":
                    k.register(Kprobe(symbol_name=name, pre_handler=count))
            total = 0
            snapshots: list[Any] = []
            first = m.snapshot()
            stops[0] = 1 << 40
            m.run("run_all")
            total = (1 << 40) - stops[0]
            end = m.regs.return_value, memory(m, k)
            for n in range(1, max(total, 1), max(1, total // 5)):
                m.restore(first)
                stops[0] = n
                m.run("run_all")
                snapshots.append(m.snapshot())
            for s in (*reversed(snapshots), *snapshots):
                m.restore(s)
                stops[0] = 1 << 40
                m.run()
                assert (m.regs.return_value, memory(m, k)) == end


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_random_histories(arch: str) -> None:
    """Writes, maps, unmaps, protections, allocations, snapshots and restores at random: both ways, and a record of what
    was, agree."""
    rng = random.Random(arch)
    machines = [raw(arch, HostPages if sys.platform == "linux" else PageCopies), raw(arch, PageCopies)]
    page = machines[0].page_size
    base = 0x900000 & -page
    taken: list[tuple[list[Any], Any]] = []

    def both(act: Any, *args: Any) -> None:
        seen = []
        for m in machines:
            try:
                seen.append(act(m, *args))
            except (GuestFault, NoMemory, BadArgument) as error:
                seen.append(type(error))
        assert seen[0] == seen[1]

    for _ in range(100):
        at, size, what = base + rng.randrange(12) * page, rng.choice((1, 1, 2, 4)) * page, rng.randrange(9)
        perms, data = rng.choice(("rw", "rwx", "rx")), rng.randbytes(rng.choice((1, 8, 300)))
        if what <= 1:
            both(UnicornMachine.map, at, size, perms)
        elif what == 2:
            both(UnicornMachine.unmap, at, size)
        elif what == 3:
            both(UnicornMachine.protect, at, size, perms)
        elif what == 4:
            both(lambda m, n, data: m.write(m.alloc(n), data), rng.choice((300, 5000, 40000)), data)
        elif what <= 6:
            both(UnicornMachine.write, at + size - len(data), data)
        elif what == 7 or not taken:
            now = [(memory(m), permissions(m)) for m in machines]
            assert now[0] == now[1]
            taken.append(([m.snapshot() for m in machines], now[0]))
        else:
            snapshots, then = rng.choice(taken)
            for m, s in zip(machines, snapshots, strict=True):
                m.restore(s)
            for m in machines:
                assert (memory(m), permissions(m)) == then
                assert all(m.parts.memory.engine.read(start, len(data)) == data for start, data in then[0].items())


@pytest.mark.parametrize("arch", ["x86_64", "mips", "s390x", "sparc64"])
def test_many_returns_to_one_snapshot(arch: str, way: Any) -> None:
    """Restored again and again, memory of all sizes is what it was, wherever the guest or its user wrote.

    Host code copies pages in small blocks and in windows of larger ones, and drops the rest.
    """
    rng = random.Random(arch)
    m = raw(arch, way)
    page = m.page_size
    sizes = {0x900000: page, 0xA00000: 20 * page, 0x1000000: 200 * page, 0x2000000: 1500 * page}
    for at, size in sizes.items():
        m.map(at, size, "rw")
        for offset in range(0, size, 3 * page):
            m.write(at + offset, rng.randbytes(16))
    m.map(0x3000000, 2 * page, "rwx")
    then = {at: m.read(at, size) for at, size in {**sizes, 0x3000000: 2 * page}.items()}
    code = then.keys() - sizes.keys()
    snapshot = m.snapshot()
    favourite = [rng.randrange(1400) * page for _ in range(6)]
    for turn in range(600):
        written = [rng.randrange(1500) * page for _ in range(rng.randrange(3))]
        for offset in (*written, *rng.sample(favourite, 2)):
            for at, size in sizes.items():
                if offset < size:
                    m.write(at + offset + rng.randrange(page - 8), rng.randbytes(8))
        if turn % 7 == 0:
            m.write(0x3000000 + rng.randrange(page), b"code")
        m.restore(snapshot)
        looked_at = then if turn % 50 == 0 else {0x900000, 0xA00000, *code}
        for at in looked_at:
            assert m.read(at, len(then[at])) == then[at]
        for offset in written:
            if offset < sizes[0x2000000]:
                assert m.read(0x2000000 + offset, page) == then[0x2000000][offset : offset + page]
    for at, data in then.items():
        assert m.read(at, len(data)) == data


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_registers_come_back_with_each_of_many_returns(arch: str, way: Any) -> None:
    """By host code or not, those that the engine's contexts lack as well, and in the returns that drop all pages."""
    m = raw(arch, way)
    names = [name for name in m.arch.regs.names if name in m.regs]
    at = m.alloc(64)
    m.write(at, b"then")
    m.regs.sp = at + 32
    m.regs.return_value = 5
    then = {name: m.regs[name] for name in names}
    snapshot = m.snapshot()
    for turn in range(hostpages._ALL_DROPPED + 4):
        m.regs.sp = at + 48
        m.regs.return_value = turn
        m.regs.pc = at
        m.write(at, b"now")
        m.restore(snapshot)
        assert {name: m.regs[name] for name in names} == then and m.read(at, 4) == b"then"


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_code_that_is_written_between_two_of_many_returns(arch: str, way: Any) -> None:
    """Whoever writes it: code that the guest cannot write is looked at when the library has written some."""
    rng = random.Random(arch)
    m = raw(arch, way)
    m.map(0x900000, m.page_size, "rx")
    m.map(0xA00000, m.page_size, "rwx")
    m.map(0xB00000, m.page_size, "rw")
    places = (BASE, 0x900000, 0xA00000, 0xB00000)
    for at in places:
        m.write(at, rng.randbytes(64))
    then = {at: m.read(at, 64) for at in places}
    snapshot = m.snapshot()
    for _ in range(40):
        for at in rng.sample(places, rng.randrange(3)):
            rng.choice((m.write, m.parts.memory.patch))(at + rng.randrange(60), rng.randbytes(4))
        m.restore(snapshot)
        assert {at: m.read(at, 64) for at in places} == then


@pytest.mark.quick
def test_pages_that_are_written_between_two_of_many_returns(way: Any) -> None:
    """The same ones again and again, others, none, more than are noted; by this thread, by another one, by the guest;
    and pages that are only read."""
    m = with_way(UnicornMachine.from_code(X86_STORE, arch="x86_64", base=BASE), way)
    pages, page = 800, m.page_size
    there = 0x1000000
    m.map(there, pages * page, "rw")
    rng = random.Random(22)
    content = bytearray(rng.randbytes(pages * page))
    m.write(there, bytes(content))
    begin = m.snapshot()

    def write(n: int) -> None:
        m.write(there + n * page + rng.randrange(page - 8), b"written!")

    def by_another(n: int) -> None:
        thread = threading.Thread(target=write, args=(n,))
        thread.start()
        thread.join()

    usual = [3, 4, 5, 700]
    for turn in range(120):
        some = usual if turn % 8 else rng.sample(range(pages), pages - 1 if turn == 64 else turn % 5 * 4)
        for n in some:
            rng.choice((write, write, write, by_another) if turn % 3 == 0 else (write,))(n)
        if turn % 5 == 0:
            m.call(BASE, there + rng.randrange(pages) * page, turn)
        for n in rng.sample(range(pages), turn % 4):
            assert m.read(there + n * page, 1)
        m.restore(begin)
        assert m.read(there, pages * page) == content, turn


@pytest.mark.quick
def test_a_return_that_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that was mapped from another snapshot when a signal's handler raised is looked at the next time."""
    m = raw("x86_64", HostPages)
    m.map(0x900000, 20 * m.page_size, "rw")  # more than are compared
    m.write(0x900000, b"first")
    first = m.snapshot()
    for _ in range(3):  # from then on host code copies pages that were written
        m.restore(first)
    m.write(0x900000, b"other")
    m.snapshot()
    m.restore(first)
    for _ in range(3):
        m.restore(first)
    m.write(0x900000, b"third")
    third = m.snapshot()
    m.restore(first)
    for _ in range(3):
        m.restore(first)
    libc = hostpages._libc()

    class Interrupted:
        madvise = libc.madvise

        @staticmethod
        def mmap(*args: Any) -> Any:
            if libc.mmap(*args) != args[0]:
                raise AssertionError
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hostpages, "_libc", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            while True:
                m.restore(third)
    m.restore(first)
    assert m.read(0x900000, 5) == b"first"
    m.restore(third)
    assert m.read(0x900000, 5) == b"third"


def hits(arch: str) -> tuple[UnicornMachine, str, int]:
    """A program, a function that it calls often, and the result of all of it."""
    path = programs_of(arch)[0]
    m = UnicornMachine.load(path)
    table = results(path.stem, m)
    name = next(n for n in table if n != "run_all")
    return m, name, table[name][0]


@pytest.mark.parametrize("arch", [a for a in RUNNABLE if programs_of(a)])
def test_probes_stay_as_they_are_now(arch: str, way: Any) -> None:
    """Of breakpoints, jumps and return probes that were there at the snapshot, and those made since: those of now are
    hit, no others."""
    m, name, _ = hits(arch)
    with_way(m, way)
    with Kprobes(m) as k:
        bare = m.snapshot()
        seen: list[str] = []
        one = Kprobe(symbol_name=name, pre_handler=lambda p, regs: seen.append("one"))
        two = Kretprobe(symbol_name=name, handler=lambda ri, regs: seen.append("two"))
        value = m.call(name, 1)
        k.register(one)
        k.flush_optimizer()
        armed = m.snapshot()
        text = memory(m, k)
        k.register(two)
        for s, expected in ((bare, ["one", "two"]), (armed, ["one", "two"])):
            m.restore(s)
            seen.clear()
            assert m.call(name, 1) == value and seen == expected
            m.restore(s)
            assert memory(m, k).keys() == text.keys()
        k.unregister(one)
        m.restore(armed)
        seen.clear()
        assert m.call(name, 1) == value and seen == ["two"]
        k.unregister(two)
        k.flush_optimizer()
        m.restore(bare)
        plain = {start: m.read(start, len(data)) for start, data in memory(m).items()}
        m.restore(armed)
        assert {start: m.read(start, len(data)) for start, data in plain.items() if m.executable(start)} == {
            start: data for start, data in plain.items() if m.executable(start)}
        seen.clear()
        assert m.call(name, 1) == value and not seen and k.rearmed == 0
    m.restore(armed)
    assert m.call(name, 1) == value and not seen


@pytest.mark.parametrize("arch", [a for a in RUNNABLE if programs_of(a)])
def test_calls_under_way(arch: str, way: Any) -> None:
    """A snapshot amid a call that is followed: each restore has the call return once more, to the right place, and to
    its handler."""
    m, name, _ = hits(arch)
    with_way(m, way)
    k = Kprobes(m)
    returned: list[int] = []
    r = Kretprobe(symbol_name=name, handler=lambda ri, regs: returned.append(regs.return_value),
                  entry_handler=lambda ri, regs: m.stop())
    value = m.call(name, 1)
    k.register(r)
    start = m.snapshot()
    m.regs.sp -= 4096
    m.run(name)
    amid = m.snapshot()
    m.run()
    assert len(returned) == 1
    pool = len(r._pool)
    for n in range(2, 5):
        m.restore(amid)
        if n == 3:
            m.restore(start)
            m.restore(amid)
        m.run()
        assert len(returned) == n and returned[-1] == returned[0] and len(r._pool) == pool
    m.restore(amid)
    k.unregister(r)
    m.restore(start)
    m.restore(amid)
    m.run()
    assert len(returned) == 4
    m.restore(start)
    assert m.call(name, 1) == value
    k.close()
    with pytest.raises(Unsupported, match="under way"):
        m.restore(amid)
    m.restore(start)
    assert m.call(name, 1) == value


@pytest.mark.quick
def test_refusals(way: Any) -> None:
    m, other = with_way(UnicornMachine.from_code(X86, arch="x86_64", symbols={"f": BASE}), way), raw("x86_64", way)
    s = m.snapshot()
    with pytest.raises(BadArgument, match="no snapshot of this machine"):
        other.restore(s)
    with pytest.raises(BadArgument):
        m.restore(None)  # type: ignore[arg-type]
    with Kprobes(m) as k:
        for act in m.snapshot, lambda: m.restore(s):
            with k.kprobe("f", pre_handler=lambda p, regs, act=act: act() and 0), pytest.raises(MachineBusy,
                match="in a run"):
                m.call("f", 1, 2)
            assert m.call("f", 1, 2) == 4
    with pytest.raises(ValueError, match="pickled"):
        pickle.dumps(s)


@pytest.mark.quick
def test_the_librarys_own_page_in_the_way(way: Any) -> None:
    """Guest memory was where a slot is now: refused, and nothing has changed."""
    m = with_way(UnicornMachine.from_code(X86, arch="x86_64", symbols={"f": (BASE, 8)}), way)
    page = BASE + m.page_size
    m.map(page, m.page_size)
    s = m.snapshot()
    m.unmap(page, m.page_size)
    own = m.map_code(page)
    assert own == page
    m.regs["rax"] = 5
    with pytest.raises(NoMemory, match="own pages"):
        m.restore(s)
    assert m.regs["rax"] == 5
    m.unmap_code(own)
    m.restore(s)
    assert m.regs["rax"] == 0 and m.read(page, 1) == b"\0"


@pytest.mark.quick
def test_memory_that_cannot_be_mapped_again(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two ranges is refused: nothing has changed, and the snapshot can be restored later."""
    m = with_way(UnicornMachine.from_code(X86, arch="x86_64", symbols={"f": (BASE, 8)}), way)
    first, second, later = (BASE + n * m.page_size for n in (1, 3, 5))
    m.map(first, m.page_size)
    m.map(second, m.page_size)
    m.mmio(BASE + 7 * m.page_size, m.page_size, read=lambda offset, size: 1)
    s = m.snapshot()
    m.unmap(BASE + 7 * m.page_size, m.page_size)
    m.unmap(first, m.page_size)
    m.unmap(second, m.page_size)
    m.map(later, m.page_size)
    m.write(later, b"later")
    m.mmio(BASE + 9 * m.page_size, m.page_size, read=lambda offset, size: 2)
    m.regs["rax"] = 5
    before, devices = permissions(m), m.parts.memory.devices.devices
    map_memory = m.parts.memory.map

    def refuse(addr: int, size: int, perms: str = "rwx") -> None:
        if addr == second:
            raise NoMemory("the system has no more", address=addr)
        map_memory(addr, size, perms)

    with monkeypatch.context() as patch:
        patch.setattr(m.parts.memory, "map", refuse)
        with pytest.raises(NoMemory, match="no more"):
            m.restore(s)
    assert (permissions(m), m.parts.memory.devices.devices) == (before, devices)
    assert m.regs["rax"] == 5 and m.read(later, 5) == b"later"
    m.restore(s)
    assert m.regs["rax"] == 0 and m.read(second, 1) == b"\0" and later not in permissions(m)


@pytest.mark.quick
def test_nothing_runs_while_the_machine_is_held(way: Any) -> None:
    """Also not on the thread that restores a snapshot: what it restores is half there."""
    m = with_way(UnicornMachine.from_code(X86, arch="x86_64", symbols={"f": (BASE, 8)}), way)
    runner = m.parts.runner
    runner.hold()
    try:
        with pytest.raises(MachineBusy, match="snapshot"):
            m.call("f", 1, 2)
    finally:
        runner.let_go()
    assert m.call("f", 1, 2) == 4


@pytest.mark.quick
def test_a_failed_call_is_forgotten(way: Any) -> None:
    m = with_way(UnicornMachine.from_code(bytes.fromhex("4831c08b00c3") + X86, arch="x86_64",
                                          symbols={"bad": BASE, "f": BASE + 6}), way)
    m.regs["rbx"] = 7
    s = m.snapshot()
    for _ in range(3):
        with pytest.raises(GuestFault):
            m.call("bad")
        m.restore(s)
        assert m.regs["rbx"] == 7
        m.regs["rbx"] = 8
        assert m.call("f", 1, 1) == 3 and m.regs["rbx"] == 8


@pytest.mark.quick
def test_modules_heap_and_input(way: Any) -> None:
    path = programs_of("x86_64")[0]
    m = with_way(UnicornMachine.load(path), way)
    big = m.alloc(1 << 20)
    m.write(big, b"big")
    m.process(["prog"], stdin=b"some input")
    m.stdin.read(4)
    s = m.snapshot()
    m.stdin.read()
    m.free(big)
    later = m.alloc(64)
    m.load_module(path, name="x", base=0x5000000) if m.arch.name == "none" else None
    m.restore(s)
    assert m.stdin.read() == b" input" and m.read(big, 3) == b"big"
    m.free(big)
    with pytest.raises(GuestFault):
        m.free(later)


@pytest.mark.quick
def test_files_are_few() -> None:
    """Machines without snapshots have no file open for them, those with some have one, and dropped ones none."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("nobody tells which files are open here")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    machines = [UnicornMachine.from_code(X86, arch="x86_64") for _ in range(10)]
    assert len(os.listdir("/proc/self/fd")) == before
    snapshots = [m.snapshot() for m in machines for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) <= before + 11
    del snapshots, machines
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


@pytest.mark.quick
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_both_sides_of_a_fork(way: Any) -> None:
    """Each process goes back to the same, writes, and takes snapshots of its own, without the other one's noticing."""
    m = with_way(UnicornMachine.from_code(X86, arch="x86_64", symbols={"f": BASE}), way)
    block = m.alloc(16)
    m.write(block, b"common")
    s = m.snapshot()
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    data = b"child!" if pid == 0 else b"parent"
    status = 1
    try:
        for _ in range(2):
            m.write(block, data)
            own = m.snapshot()
            if pid == 0:
                os.write(ready[1], b"x")
                os.read(go[0], 1)
            else:
                os.read(ready[0], 1)
                os.write(go[1], b"x")
            m.restore(s)
            assert m.read(block, 6) == b"common" and m.call("f", 2, 3) == 6
            m.restore(own)
            assert m.read(block, 6) == data
        status = 0
    finally:
        if pid == 0:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def attached(arch: str) -> tuple[unicorn.Uc, UnicornMachine]:
    """An engine whose owner has mapped its memory himself."""
    here = UnicornMachine.from_code(bytes(64), arch=arch, base=BASE)
    guest = here.guest
    uc = guest.cpu.open()
    if guest.cpu.setup is not None:
        guest.cpu.setup(here.parts.memory.engine.__class__(uc))
    uc.mem_map(BASE & -here.page_size, here.page_size, const.UC_PROT_ALL)
    uc.mem_map(0x800000, 3 * here.page_size, const.UC_PROT_READ | const.UC_PROT_WRITE)
    return uc, UnicornMachine.attach(uc, arch=arch)


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_attached(arch: str) -> None:
    """An owner's memory and mappings, too."""
    uc, m = attached(arch)
    page = m.page_size
    uc.mem_write(0x800000 + page, b"before")
    m.regs[m.arch.regs.names[3]] = 0x1230
    s = m.snapshot()
    then = memory(m)
    for n in range(3):
        uc.mem_write(0x800000 + page, b"later")
        uc.mem_write(BASE, bytes([n] * 4))
        m.regs[m.arch.regs.names[3]] = 4
        uc.mem_map(0xA00000, page)
        if n == 1:
            uc.mem_unmap(0x800000, page)
        m.restore(s)
        assert memory(m) == then and m.regs[m.arch.regs.names[3]] == 0x1230


@pytest.mark.quick
def test_attached_and_probed() -> None:
    uc = unicorn.Uc(const.UC_ARCH_X86, const.UC_MODE_64)
    uc.mem_map(BASE, 0x2000)
    uc.mem_map(0x800000, 0x4000)
    uc.mem_write(BASE, X86)
    m = UnicornMachine.attach(uc, symbols={"f": (BASE, 8)})
    with Kprobes(m) as k:
        p = Kprobe(symbol_name="f", pre_handler=lambda p, regs: None)
        m.regs.sp = 0x803000
        bare = m.snapshot()
        k.register(p)
        armed = m.snapshot()
        for s in (bare, armed, bare):
            m.restore(s)
            before = p.nhit
            uc.emu_start(BASE, BASE + 7)
            assert p.nhit == before + 1
        k.unregister(p)
        m.restore(armed)
        assert uc.mem_read(BASE, 8) == X86
        uc.emu_start(BASE, BASE + 7)
        assert k.rearmed == 0
