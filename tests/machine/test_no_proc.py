"""Hosts without /proc: the engine's registers are found by other means, or its API serves."""

from __future__ import annotations

import builtins
import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, integer, programs_of

from kprobes import Kprobes, UnicornMachine
from kprobes.machine.unicorn.registers import cells

pytestmark = pytest.mark.quick
#: Whose condition codes the API gets wrong, so that without the engine's own words there is no machine.
NEED_CELLS = {"m68k", "s390x", "sparc", "sparc64"}
COMPILED = [arch for arch in RUNNABLE if arch not in NO_PROGRAMS]


@pytest.fixture
def no_proc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing beneath /proc can be opened, and nothing is known of engines from before."""
    real = builtins.open

    def opened(file: Any, *rest: Any, **named: Any) -> Any:
        if str(file).startswith("/proc"):
            raise PermissionError(file)
        return real(file, *rest, **named)

    known = dict(cells._layouts)
    cells._layouts.clear()
    monkeypatch.setattr(builtins, "open", opened)
    yield
    cells._layouts.clear()
    cells._layouts.update(known)


@pytest.mark.parametrize("arch", COMPILED)
def test_registers_are_found_without_proc(arch: str, no_proc: None) -> None:
    path = next(iter(programs_of(arch)))
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        assert m.parts.cpu.cells or m.parts.cpu.windowed
        with k.kretprobe("test_structs", handler=lambda ri, regs: None) as r:
            assert m.call("test_structs", integer(m.arch, 3)) is not None
        assert (r.nhit, r.nreturned) == (1, 1)


def test_memory_that_is_not_there(no_proc: None) -> None:
    text = ctypes.create_string_buffer(b"here", 10_000)
    assert cells.peek(ctypes.addressof(text), 10_000) == text.raw
    assert cells.peek(0x1000, 8) == b""
    assert cells.peek((1 << 47) - 4096, 8192) == b""


@pytest.mark.parametrize("arch", sorted(set(COMPILED) - NEED_CELLS))
def test_the_api_serves_where_registers_are_not_found(arch: str, no_proc: None,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_peek_by_pipe", lambda address, size: b"")
    path = next(iter(programs_of(arch)))
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        assert not m.parts.cpu.cells and not m.following
        with k.kretprobe("test_structs", handler=lambda ri, regs: None) as r:
            assert m.call("test_structs", integer(m.arch, 3)) is not None
        assert (r.nhit, r.nreturned) == (1, 1)


def test_memory_is_read_page_by_page_where_windows_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the first page that its call refuses, here the third of three."""
    text = ctypes.create_string_buffer(bytes(range(256)) * 64, 1 << 14)
    start = (ctypes.addressof(text) | 0xFFF) + 1
    asked = []

    def read(process: ctypes.c_void_p, place: ctypes.c_void_p, piece: ctypes.Array[ctypes.c_char], size: ctypes.c_size_t,
             count: object) -> bool:
        asked.append(size.value)
        if place.value >= start + 8192:
            return False
        ctypes.memmove(piece, place, size.value)
        return True

    monkeypatch.setattr(ctypes, "WinDLL", lambda name: SimpleNamespace(ReadProcessMemory=read), raising=False)
    assert cells._peek_on_windows(start + 16, 12_000) == ctypes.string_at(start + 16, 8192 - 16)
    assert asked == [4080, 4096, 16 + 12_000 - 8192]
    assert cells._peek_on_windows(-8, 16) == cells._peek_on_windows(1 << 70, 8) == b""
