"""Watchpoints: every write is seen, with the value before and after, and the guest does what it does without them."""

from __future__ import annotations

from typing import Any

import pytest
import unicorn
from arches import RUNNABLE, integer, programs_of
from unicorn import unicorn_const as const

from kprobes import BadArgument, BadLocation, GuestFault, Kprobe, Kprobes, UnicornMachine, UnknownSymbol

WATCHED = {"counter": "test_atomics", "lock": "test_spinlock", "shared": "test_spinlock"}


@pytest.mark.parametrize("program", [pytest.param(p, id=p.stem) for name in RUNNABLE for p in programs_of(name)])
def test_writes_follow_one_another(program: Any) -> None:
    """What one write left is what the next one finds: none is missing."""
    results = []
    for watched in (False, True):
        with UnicornMachine.load(program) as m, Kprobes(m) as k:
            seed, order = integer(m.arch, 3), m.arch.order.value
            hits: dict[str, list[Any]] = {name: [] for name in WATCHED if name in m.symbols}
            assert hits or not watched or program.stem.startswith("thumb")
            for name in hits if watched else ():
                k.watchpoint(name, 4, "w",
                             lambda w, regs, m=m, to=hits[name]: to.append((w.before, w.value,
                                 m.symbols.at(regs.pc)[0].name, w.access)))
            start = {name: m.read(m.symbols[name].address, 4) for name in hits}
            results.append([m.call(function, seed) for function in sorted({WATCHED[name] for name in hits})])
            for name, seen in hits.items() if watched else ():
                chain = [int.from_bytes(start[name], order), *(value for _, value, _, _ in seen)]
                assert ([before for before, _, _, _ in seen] == chain[:-1]
                        and chain[-1] == int.from_bytes(m.read(m.symbols[name].address, 4), order))
                assert len(seen) > 1 and {kind for _, _, _, kind in seen} == {"w"}
                assert ({where.lstrip('.') for _, _, where, _ in seen}
                        <= {WATCHED[name], "acquire", "release", "add_if_below", "mix"})
    assert results[0] == results[1]


CODE = ("mov [rdi], rsi; mov [rdi + 2], dl; mov rax, [rdi]; add word ptr [rdi + 6], 1; mov [rdi + 8], rsi; mov [rdi - "
        "4], rsi; ret")


@pytest.fixture
def world() -> Any:
    with UnicornMachine.from_code(CODE, arch="x86_64", base=0x10000, symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        cell = m.alloc(64) + 16
        m.write(cell, bytes(range(8)))
        yield m, k, cell


@pytest.mark.parametrize(("access", "kinds"), [("w", "wwww"), ("r", "rr"), ("rw", "wwrrww")])
@pytest.mark.parametrize("probed", [False, True])
def test_accesses_that_touch_it(world: Any, access: str, kinds: str, probed: bool) -> None:
    m, k, cell = world
    if probed:  # the instructions run in slots, and are shown at home
        for offset in (0, 3, 6, 9, 14, 18):
            k.register(Kprobe(symbol_name="f", offset=offset, optimize=False, post_handler=lambda p, regs, flags: None))
    seen = []
    w = k.watchpoint(cell, 8, access, lambda w, regs: seen.append((w.access, w.accessed - cell, w.accessed_size,
                                                                   regs.pc - 0x10000, w.before, w.value)))
    assert m.call("f", cell, 0x1122334455667788, 0xEE) == 0x1122334455EE7788
    everything = [("w", 0, 8, 0, 0x0706050403020100, 0x1122334455667788),
                  ("w", 2, 1, 3, 0x1122334455667788, 0x1122334455EE7788),
                  ("r", 0, 8, 6, 0x1122334455EE7788, 0x1122334455EE7788),
                  ("r", 6, 2, 9, 0x1122334455EE7788, 0x1122334455EE7788),
                  ("w", 6, 2, 9, 0x1122334455EE7788, 0x1123334455EE7788),
                  ("w", -4, 8, 18, 0x1123334455EE7788, 0x1123334411223344)]
    assert (seen == [hit for hit in everything if hit[0] in access] and "".join(hit[0] for hit in seen) == kinds
            and w.nhit == len(seen))
    w.remove()
    w.remove()
    m.call("f", cell, 0, 0)
    assert (w.nhit == len(seen) and not w.registered and "6 hits" in repr(w)) or len(seen) != 6


def test_a_handler_may_call_the_guest_remove_itself_and_raise(world: Any) -> None:
    m, k, cell = world
    w = k.watchpoint(cell, 8, "w", lambda w, regs: m.call("f", cell, 1, 2))
    m.call("f", cell, 1, 2)
    assert (w.nhit, w.nmissed) == (4, 16)
    w.handler = lambda w, regs: w.remove()
    m.call("f", cell, 1, 2)
    assert w.nhit == 5

    def bad(w: Any, regs: Any) -> None:
        raise ZeroDivisionError("mine")

    with k.watchpoint(cell, 8, "r", bad), pytest.raises(ZeroDivisionError, match="mine"):
        m.call("f", cell, 1, 2)
    assert m.call("f", cell, 5, 5) == 0x50005


def test_closing_removes_them(world: Any) -> None:
    m, k, cell = world
    w = k.watchpoint(cell, 4)
    k.close()
    m.call("f", cell, 1, 2)
    assert w.nhit == 0 and not w.registered


@pytest.mark.parametrize(("fields", "error"), [
    (("nowhere", 4, "w"), UnknownSymbol), ((1 << 64, 4, "w"), BadLocation), ((-1, 4, "w"), BadLocation),
    ((8, 4, "w"), GuestFault), ((None, 4, "w"), BadArgument), (((1 << 64) - 2, 4, "w"), BadLocation),
    (("f", 0, "w"), BadArgument), (("f", 65537, "w"), BadArgument), (("f", True, "w"), BadArgument),
    (("f", "4", "w"), BadArgument), (("f", 4, "rq"), BadArgument), (("f", 4, ""), BadArgument),
    (("f", 4, "w", 3), BadArgument)])
def test_what_makes_no_sense_is_refused(world: Any, fields: Any, error: Any) -> None:
    _, k, _ = world
    with pytest.raises(error):
        k.watchpoint(*fields)


@pytest.mark.quick
def test_code_that_was_executed_before(world: Any) -> None:
    """Reads by code that the engine has translated when nothing was watched are seen; it is quick again afterwards."""
    m, k, cell = world
    m.call("f", cell, 1)
    for _ in range(2):
        with k.watchpoint(cell, 4, "r") as w:
            m.call("f", cell, 1)
            assert w.nhit == 1
        m.call("f", cell, 1)
        assert w.nhit == 1


class Fifo:
    """A device each of whose reads takes a byte out of it. written: what was written to it."""

    def __init__(self) -> None:
        self.left, self.written = list(b"hello"), list[int]()

    def read(self, offset: int, size: int) -> int:
        return self.left.pop(0) if self.left else 0

    def write(self, offset: int, size: int, value: int) -> None:
        self.written.append(value)


#: takes five bytes of the device at rdi, writes each back, and has them in rax
TAKES = ("xor eax, eax; mov ecx, 5; more: shl rax, 8; movzx edx, byte ptr [rdi]; or al, dl; mov byte ptr [rdi], dl; "
         "dec ecx; jnz more; ret")


def fifo() -> tuple[UnicornMachine, Fifo]:
    m = UnicornMachine.from_code(TAKES, arch="x86_64", base=0x10000, symbols={"take": 0x10000})
    device = Fifo()
    m.mmio(0x900000, 0x1000, device.read, device.write)
    return m, device


@pytest.mark.quick
@pytest.mark.parametrize("start, size", [(0x900000, 1), (0x900000, 4), (0x8FFFFE, 4)])
@pytest.mark.parametrize("access", ["r", "w", "rw"])
def test_a_device_is_not_read(start: int, size: int, access: str) -> None:
    """Reading a device may change it: the guest reads all that it reads without a watchpoint."""
    m, device = fifo()
    m.map(0x8FF000, 0x1000)
    seen: list[tuple[str, Any, Any]] = []
    with Kprobes(m) as k, k.watchpoint(start, size, access, lambda w, regs: seen.append((w.access, w.before, w.value))):
        assert m.call("take", 0x900000) == int.from_bytes(b"hello", "big")
    written = [byte if size == 1 else None for byte in b"hello"]
    assert device.written == list(b"hello")
    assert [hit for hit in seen if hit[0] == "r"] == [("r", None, None)] * 5 * ("r" in access)
    assert [hit for hit in seen if hit[0] == "w"] == [("w", None, value) for value in written * ("w" in access)]


@pytest.mark.quick
def test_an_event_does_not_read_a_device() -> None:
    m, _device = fifo()
    with Kprobes(m) as k:
        e = k.event("w:io rw@0x900000:1")
        assert m.call("take", 0x900000) == int.from_bytes(b"hello", "big")
        lines = [e.definition.format(tuple(record.args.values()), record.caller) for record in e]
    assert "before=(fault) value=(fault)" in lines[0] and "before=(fault) value=0x68" in lines[1]


@pytest.mark.quick
def test_a_device_whose_end_is_not_mapped_is_refused() -> None:
    m, device = fifo()
    with Kprobes(m) as k, pytest.raises(GuestFault):
        k.watchpoint(0x900FFE, 4)
    assert len(device.left) == 5


@pytest.mark.quick
def test_a_script_s_watchpoint_does_not_read_a_device() -> None:
    m, _device = fifo()
    with Kprobes(m) as k:
        with k.script("watchpoint:0x900000:1:rw { @n++; }") as script:
            assert m.call("take", 0x900000) == int.from_bytes(b"hello", "big")
        assert "@n: 10" in script.output


@pytest.mark.quick
def test_an_owner_s_device_is_not_read() -> None:
    """A device of an attached engine's owner."""
    uc = unicorn.Uc(const.UC_ARCH_X86, const.UC_MODE_64)
    uc.mem_map(0x10000, 0x1000)
    with UnicornMachine.from_code(TAKES, arch="x86_64", base=0x10000) as made:
        uc.mem_write(0x10000, made.read(0x10000, 64))
    device = Fifo()
    uc.mmio_map(0x900000, 0x1000, lambda uc, offset, size, data: device.read(offset, size), None,
                lambda uc, offset, size, value, data: device.write(offset, size, value), None)
    m = UnicornMachine.attach(uc, symbols={"take": 0x10000})
    with Kprobes(m) as k, k.watchpoint(0x900000, 4, "rw") as w:
        m.regs["rdi"] = 0x900000
        uc.emu_start(0x10000, 0x10000 + m.read(0x10000, 64).index(0xC3))
        assert m.regs["rax"] == int.from_bytes(b"hello", "big")
        assert w.nhit == 10


@pytest.mark.quick
def test_sizes_that_nobody_says() -> None:
    """Those of a symbol, or a word of the guest; and the result decorates a handler."""
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        seen: list[int | None] = []

        @k.watchpoint("free_list")
        def handler(w: Any, regs: Any) -> None:
            seen.append(w.value)

        m.call("table_init")
        assert seen == [int.from_bytes(m.read(m.symbols["free_list"].address, 8), "little")]
        assert callable(handler)
        sizes = [k.watchpoint(where, access=access).size for where, access in (
            ("buckets", "rw"), (m.symbols["buckets"].address, "w"), (hex(m.symbols["buckets"].address + 8), "w"), ("fib", "x"))]
        assert sizes == [128, 8, 8, 1]
        with pytest.raises(UnknownSymbol):
            k.watchpoint("bucket")
        with pytest.raises(BadArgument, match="is no handler"):
            k.watchpoint("free_list")(5)  # type: ignore[arg-type]
