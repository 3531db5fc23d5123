"""Guest memory: maps, holes, permissions and what callers get wrong, held against a model on every guest."""

from __future__ import annotations

import gc
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from arches import RUNNABLE
from unicorn import unicorn_const as const

from kprobes import BadArgument, GuestFault, Kprobe, KprobeError, Kprobes, NoMemory, UnicornMachine

pytestmark = pytest.mark.quick
BASE, PAGES = 0x900000, 24


def machine_of(arch: str) -> UnicornMachine:
    return UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_hole_in_a_mapping(arch: str) -> None:
    """What is left on either side keeps its contents and its host memory."""
    m = machine_of(arch)
    page = m.page_size
    base = BASE & -page
    m.map(base, 5 * page)
    for n in range(5):
        m.write(base + n * page, bytes([n + 1] * 5))
    m.unmap(base + 2 * page, page)
    gc.collect()
    for n in (0, 1, 3, 4):
        assert m.read(base + n * page, 5) == bytes([n + 1] * 5) == m.parts.memory.engine.read(base + n * page, 5)
    m.write(base + 3 * page, b"later")
    assert m.parts.memory.engine.read(base + 3 * page, 5) == b"later"
    with pytest.raises(GuestFault) as fault:
        m.read(base + 2 * page - 1, 3)
    assert fault.value.address == base + 2 * page


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_page_of_the_stack_and_one_of_the_text_go(arch: str) -> None:
    m = machine_of(arch)
    sp = m.regs.sp & -m.page_size
    m.write(sp, b"stack")
    m.unmap(sp - 4 * m.page_size, m.page_size)
    m.map(0x10000 + m.page_size, 2 * m.page_size)
    m.unmap(0x10000, m.page_size)
    gc.collect()
    assert m.read(sp, 5) == b"stack"
    assert m.read(0x10000 + m.page_size, 1) == bytes(1)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_random_changes(arch: str) -> None:
    """Maps, unmaps, protections, reads and writes at random: the machine agrees with a dictionary of pages, and with
    its engine."""
    m, rng = machine_of(arch), random.Random(arch)
    page = m.page_size
    base, model = BASE & -page, dict[int, bytearray]()

    def stretch() -> range:
        first = rng.randrange(PAGES)
        return range(first, min(first + rng.choice((1, 1, 2, 3, 8)), PAGES))

    def whole(pages: range) -> tuple[int, int]:
        return base + pages[0] * page, len(pages) * page

    for _ in range(250):
        pages, kind = stretch(), rng.choice(("map", "map", "unmap", "protect", "read", "write", "write", "code"))
        there = [n in model for n in pages]
        if kind == "map":
            perms = rng.choice(("rw", "rwx", "r", "rx"))
            if any(there):
                with pytest.raises(NoMemory):
                    m.map(*whole(pages), perms)
            else:
                m.map(*whole(pages), perms)
                model.update((n, bytearray(page)) for n in pages)
        elif kind == "unmap":
            if all(there):
                m.unmap(*whole(pages))
                for n in pages:
                    del model[n]
            else:
                with pytest.raises(GuestFault):
                    m.unmap(*whole(pages))
        elif kind == "protect" and all(there):
            m.protect(*whole(pages), rng.choice(("r", "rw", "rx", "rwx")))
        elif kind == "code" and all(there):
            assert m.executable(whole(pages)[0]) == any(s <= whole(pages)[0] <= e and p & const.UC_PROT_EXEC
                                                        for s, e, p in m.uc.mem_regions())
        elif kind in ("read", "write"):
            start = base + pages[0] * page + rng.randrange(page)
            size = rng.randrange(1, len(pages) * page)
            touched = range((start - base) // page, (start + size - 1 - base) // page + 1)
            data = rng.randbytes(size)
            missing = next((n for n in touched if n not in model), None)
            act: Callable[[], Any] = ((lambda a=start, s=size: m.read(a, s)) if kind == "read"
                                      else (lambda a=start, d=data: m.write(a, d)))
            if missing is not None:
                with pytest.raises(GuestFault) as fault:
                    act()
                assert fault.value.address == max(start, base + missing * page)
                continue
            at = start - base - touched[0] * page
            image = bytearray().join(model[n] for n in touched)
            if kind == "read":
                assert act() == image[at : at + size] == m.parts.memory.engine.read(start, size)
            else:
                act()
                image[at : at + size] = data
                for place, n in enumerate(touched):
                    model[n][:] = image[place * page : (place + 1) * page]
        if rng.random() < 0.1:
            gc.collect(0)
    for n, contents in model.items():
        assert m.read(base + n * page, page) == contents == m.parts.memory.engine.read(base + n * page, page)


def test_host_memory_goes_with_the_last_piece() -> None:
    m = machine_of("x86_64")
    size = 64 << 20
    for _ in range(3):
        m.map(BASE, size)
        for at in range(BASE, BASE + size, 1 << 20):
            m.write(at, b"x" * 0x1000)
        block = next(b for b in m.parts.memory.blocks.held if b.start == BASE)
        host = block.host
        del block
        m.unmap(BASE + 0x1000, size - 0x2000)
        assert mapped(host)
        m.unmap(BASE, 0x1000)
        assert m.read(BASE + size - 0x1000, 4) == bytes(4)
        m.unmap(BASE + size - 0x1000, 0x1000)
        assert not mapped(host)


def mapped(host: int) -> bool:
    with open("/proc/self/maps") as maps:
        return any(int(low, 16) <= host < int(high, 16) for low, high in (line.split()[0].split("-") for line in maps))


def test_the_engine_outlives_its_machine() -> None:
    m = machine_of("x86_64")
    m.map(BASE, 0x2000)
    m.write(BASE, b"here")
    uc = m.uc
    m.close()
    del m
    gc.collect()
    assert uc.mem_read(BASE, 4) == b"here"


@pytest.mark.parametrize("arch", RUNNABLE)
def test_numbers_that_are_none(arch: str) -> None:
    """Addresses and sizes that are negative, too large, or no numbers: refused, and nothing has changed."""
    m = machine_of(arch)
    page, beyond = m.page_size, 1 << m.arch.bits
    before = list(m.uc.mem_regions())
    nonsense: list[Callable[[], Any]] = [
        *(lambda a=a, s=s, f=f: f(a, s) for f in (m.map, m.unmap, lambda a, s: m.protect(a, s, "r")) for a, s in (
            (-page, page), (1 << 64, page), (1 << 70, page), (beyond, page), (beyond - page, 2 * page), (BASE, 0),
            (BASE, -page), (BASE + 1, page),
            (BASE, 1 << 64), (0x10000, 1 << 70), ("f", page), (BASE, 1.5), (None, None))),
        *(lambda a=a, s=s: m.read(a, s) for a, s in (
            (0x10000, 1 << 62), (0x10000, 1 << 70), (0x10000, -1), (-1, 1), (-1, 4), (1 << 64, 1), (beyond - 1, 2),
            (1 << 70, 1), ("f", 1), (0x10000, 1.5))),
        *(lambda a=a, d=d: m.write(a, d) for a, d in ((-1, b"x"), (1 << 64, b"x"), (beyond - 1, b"xx"), (0x10000, 5),
                                                      (0x10000, "text"), ("f", b"x"))),
        lambda: m.map(BASE, page, "rwz"), lambda: m.alloc(-1), lambda: m.alloc(1 << 62), lambda: m.alloc(1 << 70),
        lambda: m.free(0x10000),
    ]
    for number, act in enumerate(nonsense):
        with pytest.raises(KprobeError):
            act()
            pytest.fail(f"number {number} is accepted")
    assert list(m.uc.mem_regions()) == before
    assert not m.executable(-page)
    assert not m.executable(1 << 70)


@pytest.mark.parametrize("arch", ["x86_64", "arm64", "m68k"])
def test_pages_of_ours_stay(arch: str) -> None:
    code = {"x86_64": "90" * 8 + "c3", "arm64": "1f2003d5" * 4 + "c0035fd6", "m68k": "4e71" * 4 + "4e75"}[arch]
    m = UnicornMachine.from_code(bytes.fromhex(code), arch=arch, base=0x10000, symbols={"f": (0x10000, len(code) // 2)})
    with Kprobes(m) as k:
        hits: list[int] = []
        k.register_kprobe(Kprobe(symbol_name="f", pre_handler=lambda p, regs: hits.append(1)))
        k.flush_optimizer()
        block = m.alloc(100)
        for start, end in {*m.parts.memory.own.items(), (m.parts.state.exit, m.parts.state.exit + m.page_size),
                           (block & -m.page_size, (block & -m.page_size) + m.page_size)}:
            for at in (start, end - m.page_size):
                with pytest.raises(BadArgument, match="library"):
                    m.unmap(at, m.page_size)
        m.call("f")
        assert hits == [1]
    m.free(block)
    m.call("f")
    assert hits == [1]


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_write_from_data_into_code(arch: str) -> None:
    """Translations are dropped wherever the code in a write begins."""
    m = machine_of(arch)
    page = m.page_size
    base = BASE & -page
    m.map(base, page, "rw")
    m.map(base + page, page, "rwx")
    dropped: list[tuple[int, int]] = []
    m.parts.memory.engine.drop_translations = lambda start, end: dropped.append((start, end))  # type: ignore[method-assign]
    m.write(base + page - 4, bytes(8))
    assert any(start <= base + page < end for start, end in dropped)


def test_a_word_that_is_stored_into_what_became_code() -> None:
    """mov eax, 1; ret: the word of the number changes by way of Regs, which takes the short way into data only."""
    m = machine_of("x86_64")
    m.map(BASE, 0x3000, "rw")
    m.write(BASE + 0x1000, bytes.fromhex("48b80100000000000000c3").rjust(17, b"\x90"))  # the number is an aligned word
    m.protect(BASE + 0x1000, 0x1000, "rx")
    m.parts.memory.load_word(BASE)
    assert m.call(BASE + 0x1000) == 1
    m.parts.memory.load_word(BASE + 0x1008)
    m.parts.memory.store_word(BASE + 0x1008, 2)
    assert m.call(BASE + 0x1000) == 2
    m.protect(BASE + 0x1000, 0x1000, "rw")
    with pytest.raises(GuestFault, match="non-executable"):
        m.call(BASE + 0x1000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_memory_of_its_own() -> None:
    m = machine_of("x86_64")
    m.map(BASE, 0x1000)
    m.write(BASE, b"parent")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there may be threads
        child = os.fork()
    if not child:
        m.write(BASE, b"child!")
        m.write(0x10000, b"\xcc" * 8)
        os._exit(0 if m.read(BASE, 6) == b"child!" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert m.read(BASE, 6) == b"parent" == m.parts.memory.engine.read(BASE, 6)
    assert m.read(0x10000, 8) == bytes(8)


#: Where linkers put programs with fixed addresses, and processors their memory.
CUSTOMARY = {"x86_64": [0x400000], "i386": [0x8048000, 0x400000], "arm": [0x8000], "armeb": [0x10000],
             "cortexm": [0x0, 0x8000000, 0x20000000, 0x40000000], "arm64": [0x400000], "arm64be": [0x400000],
             "mips": [0x400000], "mipsel": [0x400000], "mips64": [0x10000000], "mips64el": [0x10000000],
             "ppc": [0x10000000], "ppc64": [0x10000000], "ppc64le": [0x10000000], "riscv32": [0x10000],
             "riscv64": [0x10000], "s390x": [0x1000000], "sparc": [0x10000], "sparc64": [0x100000],
             "m68k": [0x80000000], "tricore": [0x80000000]}


@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize("base", [0x50000000, 0x10000])
def test_customary_addresses_stay_free(arch: str, base: int) -> None:
    """The image is elsewhere: a program with fixed addresses can be mapped besides, 16 MiB from each."""
    with UnicornMachine.from_code(bytes(4), arch=arch, base=base) as m, Kprobes(m):
        m.alloc(100)
        for start in CUSTOMARY.get(arch, []):
            if start > 0x10000 or base > 0x10000:
                m.map(max(start, 0x1000), 1 << 24)


def test_errors_of_python_s_accesses_name_the_address_alone() -> None:
    """Nothing has run: pc says nothing."""
    with UnicornMachine.from_code(bytes(4), arch="mips") as m:
        for access in (lambda: m.read(0x10, 4), lambda: m.write(0x10, b"a"), lambda: m.regs.word(0x10)):
            with pytest.raises(GuestFault) as caught:
                access()
            assert str(caught.value) == "0x10: memory is not mapped" and caught.value.address == 0x10
        with pytest.raises(GuestFault, match=r"^0x1234: was not allocated here$"):
            m.free(0x1234)
