"""Memory of whole machines: breakpoints are shown, and are not there."""

from __future__ import annotations

from typing import cast

import pytest

from kprobes.arch import get
from kprobes.arch._stub import StubRegister
from kprobes.errors import GuestFault
from kprobes.machine.remote.deferred import DeferredText
from kprobes.machine.remote.memory import RemoteMemory
from kprobes.machine.remote.scratch import ProcessPages, RemotePages
from kprobes.machine.remote.target import RemoteTarget
from kprobes.machine.remote.threads import RemoteThreads

pytestmark = pytest.mark.quick
TEXT = 0xFFFF_8000_8000_0000


class Stub:
    """Text of a kernel, and a byte of a program, as an AArch64 CPU may access them."""

    def __init__(self, cpsr: int) -> None:
        self.text, self.cpsr, self.slots = bytearray(range(64)), cpsr, {"cpsr": StubRegister("cpsr", 33, 4)}
        self.name, self.states = "1", [cpsr]

    def choose(self, thread: str) -> None: ...

    def register(self, number: int) -> bytes:
        return self.cpsr.to_bytes(4, "little")

    def set_registers(self, values: list[tuple[int, bytes]]) -> list[bool]:
        [(_, data)] = values
        self.cpsr = int.from_bytes(data, "little")
        self.states.append(self.cpsr)
        return [True]

    def _may(self, addr: int) -> None:
        if not (self.cpsr & 0xC if addr >= TEXT else not self.cpsr & 1 << 22):
            raise GuestFault("memory is not mapped", address=addr, access="read")

    def read(self, addr: int, size: int) -> bytes:
        self._may(addr)
        return bytes(self.text[addr - TEXT:addr - TEXT + size]) if addr >= TEXT else b"u" * size

    code = read

    def write(self, addr: int, data: bytes) -> None:
        self._may(addr)
        self.text[addr - TEXT:addr - TEXT + len(data)] = data


def memory(stub: Stub, system: bool = True) -> RemoteMemory:
    return RemoteMemory(cast(RemoteTarget, stub), cast(RemoteThreads, stub), get("arm64"), lambda addr: addr >= TEXT + 32, system,
                        lambda addr: addr >= TEXT, DeferredText())


def test_breakpoints_are_only_shown() -> None:
    stub = Stub(5)
    m, before = memory(stub), bytes(stub.text)
    m.patch(TEXT + 8, b"trap")
    assert stub.text == before and m.read(TEXT + 6, 8) == before[6:8] + b"trap" + before[12:14]
    assert m.read(TEXT + 9, 2) == b"ra" and m.read(TEXT, 8) == before[:8]
    m.patch(TEXT + 8, before[8:12])
    assert stub.text == before == m.read(TEXT, 64)


def test_what_the_guest_has_written_meanwhile_stays() -> None:
    """A kernel patches its own text beneath a breakpoint; the breakpoint's end does not undo that."""
    stub = Stub(5)
    m, before = memory(stub), bytes(stub.text)
    m.patch(TEXT + 8, b"trap")
    stub.text[8:12] = b"call"
    m.patch(TEXT + 8, before[8:12])
    assert m.read(TEXT + 8, 4) == b"call"


def test_writes_go_over_breakpoints() -> None:
    stub = Stub(5)
    m = memory(stub)
    m.patch(TEXT + 8, b"trap")
    m.write(TEXT + 10, b"new")
    assert m.read(TEXT + 8, 6) == stub.text[8:14] == bytes([8, 9, *b"new", 13])


def test_own_pages_and_processes_are_written() -> None:
    stub = Stub(5)
    memory(stub).patch(TEXT + 40, b"slot")
    memory(stub, system=False).patch(TEXT, b"trap")
    assert stub.text[40:44] == b"slot" and stub.text[:4] == b"trap"


@pytest.mark.parametrize(("cpsr", "addr"), [(0, TEXT), (0x1000, TEXT), (5 | 1 << 22, 0x400000)])
def test_what_the_cpu_may_not_access_just_now(cpsr: int, addr: int) -> None:
    """The kernel's memory while a program runs, and a program's while the kernel guards itself; the state is put back."""
    stub = Stub(cpsr)
    m = memory(stub)
    assert len(m.read(addr, 4)) == 4
    assert stub.cpsr == cpsr and len(stub.states) == 3
    with pytest.raises(GuestFault):
        memory(stub, system=False).read(addr, 4)


class Far:
    """A process that has 44 MiB of data behind its text, and nothing else: it gives what it is asked for."""

    def __init__(self) -> None:
        self.there: set[int] = set()

    def map(self, hint: int, size: int) -> int:
        page = hint if hint not in self.there else (1 << 46) + len(self.there) * size
        self.there.add(page)
        return page

    def unmap(self, addr: int, size: int) -> None:
        self.there.discard(addr)


def test_pages_far_from_text_within_reach() -> None:
    """Those beside others are as good, as far as a jump reaches; and not beyond."""
    arch = get("x86_64")
    pages = RemotePages(cast(ProcessPages, Far()), 4096, arch)
    text, library = 0x400000, 0x7F0000000000
    near = [pages.map_near(text, text + (44 << 20)) for _ in range(20)]
    other = pages.map_near(library, library + 4096)
    assert near == [near[0] + 4096 * n for n in range(20)] and abs(other - library) < 1 << 20
