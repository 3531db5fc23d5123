"""A fuzzer's map: host code and Python fill it alike on every guest, and the library's own code is not in it."""

from __future__ import annotations

import ctypes
from contextlib import suppress

import pytest
from arches import RUNNABLE, programs_of, results

from kprobes import BadArgument, GuestFault, Kprobes, UnicornMachine
from kprobes.machine.unicorn.edgemap import mixed
from kprobes.machine.unicorn.host import hostcode

LOOP = bytes.fromhex("31c0 01f8 ffcf 75fa c3")  # xor eax, eax; add eax, edi; dec edi; jne to the second; ret
COMPARING = bytes.fromhex("81ff 44332211 0f94c0 c3")  # cmp edi, 0x11223344; sete al; ret


@pytest.fixture(params=("host code", "python"))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    elif not hostcode.available():
        pytest.skip("no host code here")
    return str(request.param)


def edge(before: int, to: int, size: int = 1 << 16) -> int:
    """The number of an edge, by its definition; before: 0 where there is no block before."""
    place = (mixed(before) & size - 1) >> 1 if before else 0
    return place ^ mixed(to) & size - 1


def hits(counters: ctypes.Array[ctypes.c_uint8]) -> dict[int, int]:
    return {number: count for number, count in enumerate(counters) if count}


@pytest.mark.quick
def test_numbers(way: str) -> None:
    """Each edge's number is that of its definition; a counter goes from 255 to 1."""
    with UnicornMachine.from_code(LOOP, arch="x86_64", symbols={"sum": (0x10000, len(LOOP))}) as m:
        counters = (ctypes.c_uint8 * (1 << 16))()
        edges = m.map_edges(counters)
        assert m.call("sum", 10) == 55
        whole, again, end = 0x10000, 0x10002, 0x10008
        assert hits(counters) == {edge(0, whole): 1, edge(whole, again): 1, edge(again, again): 8, edge(again, end): 1}
        ctypes.memset(counters, 0, 1 << 16)
        edges.begin()
        m.call("sum", 300)
        assert hits(counters)[edge(again, again)] == 298 - 255
        edges.close()
        edges.close()
        ctypes.memset(counters, 0, 1 << 16)
        m.call("sum", 3)
        assert hits(counters) == {}


@pytest.mark.quick
def test_comparisons(way: str) -> None:
    """The more bytes are equal, from the highest one on, the more counters."""
    with UnicornMachine.from_code(COMPARING, arch="x86_64", symbols={"compare": (0x10000, len(COMPARING))}) as m:
        found = []
        for value in (0x55667788, 0x11667788, 0x11227788, 0x11223388, 0x11223344):
            counters = (ctypes.c_uint8 * (1 << 12))()
            edges = m.map_edges(counters, comparisons=True)
            m.call("compare", value)
            edges.close()
            found.append(len(hits(counters)))
        assert found == [1, 2, 3, 4, 4]


@pytest.mark.parametrize("arch", [a for a in RUNNABLE if programs_of(a)])
def test_programs(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways count the same on every guest. Probes at functions' entries, which split blocks, add no block of the
    library's own."""
    path = programs_of(arch)[-1]
    maps = []
    for available in (hostcode.available(), False):
        monkeypatch.setattr(hostcode, "available", lambda available=available: available)
        with UnicornMachine.load(path) as m:
            counters = (ctypes.c_uint8 * (1 << 14))()
            edges = m.map_edges(counters, comparisons=not arch.startswith("sparc"))
            names = [name for name in results(path.stem, m) if name != "run_all"][:6]
            for name in names:
                edges.begin()
                m.call(name, 1)
            maps.append(hits(counters))
            counted: list[int] = []
            with Kprobes(m) as k:
                for name in names:
                    k.kprobe(name, pre_handler=lambda p, regs, counted=counted: counted.append(p.address)).__enter__()
                last = m.last_blocks(1 << 12)
                m.call(names[0], 1)
                last.close()
                assert counted and last.addresses
                text = [m.symbols.covering(address) for address in last.addresses]
                assert all(symbol is not None for symbol in text[:-1])
    assert maps[0] == maps[1] and len(maps[0]) > 20


def test_own_code_is_not_counted(way: str) -> None:
    """A probe's detour is none of the guest's blocks: each number is that of an edge between two addresses of the
    guest's."""
    with UnicornMachine.from_code(LOOP, arch="x86_64", symbols={"sum": (0x10000, len(LOOP))}) as m, Kprobes(m) as k:
        counters = (ctypes.c_uint8 * (1 << 16))()
        edges = m.map_edges(counters)
        with k.kprobe("sum", pre_handler=lambda p, regs: None):
            for _ in range(4):
                edges.begin()
                assert m.call("sum", 5) == 15
        places = [0, *range(0x10000, 0x10000 + len(LOOP))]
        possible = {edge(before, to) for before in places for to in places[1:]}
        assert hits(counters).keys() <= possible


def test_spans(way: str) -> None:
    with UnicornMachine.from_code(LOOP, arch="x86_64", symbols={"sum": (0x10000, len(LOOP))}) as m:
        counters = (ctypes.c_uint8 * 256)()
        edges = m.map_edges(counters, [(0x10008, 0x10009)])
        m.call("sum", 10)
        assert hits(counters) == {edge(0, 0x10008, 256): 1}
        edges.close()


@pytest.mark.quick
@pytest.mark.parametrize("size", [0, 100, 255, 3000, 1 << 24])
def test_sizes(size: int) -> None:
    with UnicornMachine.from_code(LOOP, arch="x86_64") as m, pytest.raises(BadArgument, match="a power of two"):
        m.map_edges((ctypes.c_uint8 * size)())


@pytest.mark.parametrize("arch", ["arm64", "mips", "ppc64", "sparc64"])
def test_snapshots_and_faults(arch: str, way: str) -> None:
    """A run after a restore, and one after a fault, have the map of the first."""
    path = programs_of(arch)[-1]
    with UnicornMachine.load(path) as m:
        counters = (ctypes.c_uint8 * (1 << 14))()
        edges = m.map_edges(counters)
        name = next(name for name in results(path.stem, m) if name != "run_all")
        start, maps = m.snapshot(), []
        for n in range(4):
            m.restore(start)
            ctypes.memset(counters, 0, len(counters))
            edges.begin()
            if n == 2:
                with suppress(GuestFault):
                    m.call(0x10, 1)
                continue
            m.call(name, 1)
            maps.append(hits(counters))
        assert maps[0] == maps[1] == maps[2]
