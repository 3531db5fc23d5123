"""Pages that are really guarded (AArch64's PROT_BTI): where indirect branches lead, only landing pads may stand."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qemu import qemu_for

from kprobes import GuestFault, Kprobes, Kretprobe, Program, QemuMachine

pytest.importorskip("llvmlite")
pytest.importorskip("ziglang")
CALLED, CALLER, FUNCTION = "test_strings", "test_crc", "test_arith32"
BTI_C, PACIASP, NOP, RET = 0xD503245F, 0xD503233F, 0xD503201F, 0xD65F03C0
MPROTECT, GUARDED = 226, 0x17  #: mprotect's number; PROT_READ, WRITE, EXEC and BTI
SOURCE = """
#include <kprobes/bpf.h>
u64 calls;
SEC("kprobe") int on(struct pt_regs *ctx) { calls += 1; return 0; }
"""


@pytest.fixture(params=["arm64-O2", "arm64be-O2"])
def m(request: pytest.FixtureRequest, programs: Callable[[str], Path]) -> Iterator[Any]:
    """Where CALLER(n, function) calls a function by its address, x19 keeping the way back."""
    qemu_for(request.param)
    with QemuMachine.user([programs(request.param)], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        put(m, CALLER, 0xA9BF7BF3, 0xD63F0020, 0xA8C17BF3, RET)  # STP x19, x30, [sp, #-16]!; BLR x1; LDP
        guard(m, m.symbols[CALLER].address, 64)
        yield m


def put(m: Any, function: str, *words: int) -> None:
    m.write(m.symbols[function].address, b"".join(word.to_bytes(4, "little") for word in words))


def guard(m: Any, start: int, size: int) -> None:
    page = m.page_size
    first = start & -page
    assert m._pages._source._call(MPROTECT, [first, -(-(start + size - first) // page) * page, GUARDED], b"") == 0


def by_pointer(m: Any) -> int:
    return m.call(CALLER, 0, m.symbols[CALLED].address, timeout=20) & 0xFFFFFFFF


def test_the_pages_are_guarded(m: Any) -> None:
    """What is no pad is refused: else nothing here would be proved."""
    guard(m, m.symbols[CALLED].address, 64)
    put(m, CALLED, BTI_C, 0x528000E0, RET)  # MOV w0, #7
    assert by_pointer(m) == 7
    put(m, CALLED, NOP, 0x528000E0, RET)
    with pytest.raises(GuestFault):
        by_pointer(m)


@pytest.mark.parametrize(("pad", "end"), [(BTI_C, NOP), (PACIASP, 0xD50323BF)])  # AUTIASP
def test_a_program_at_a_landing_pad_says_why_it_runs_by_stops(m: Any, pad: int, end: int) -> None:
    """And behind it, it runs in the guest. The calls by a pointer go on in both."""
    guard(m, m.symbols[CALLED].address, 64)
    put(m, CALLED, pad, NOP, 0x528000E0, end, RET)
    with Kprobes(m) as k:
        for offset, inside in ((0, False), (4, True)):
            with k.attach(program := Program.from_c(SOURCE), CALLED, offset) as a, \
                    k.event(f"p:e {CALLED}+{offset} n=%x0:u32") as e:
                assert [by_pointer(m) for _ in range(3)] == [7] * 3
                probe, = a
                assert probe.optimized == inside and a.runs == program.variables["calls"] == 3 == len(list(e))
                assert [("indirect branches may lead to" in why) for why in (a.why_python["on"], e.why_python)] == [
                    not inside] * 2
                assert ("indirect branches" in repr(a)) == ("indirect branches" in repr(e)) == (not inside)
        assert by_pointer(m) == 7


@pytest.mark.parametrize("sign", [NOP, PACIASP])
def test_return_addresses_that_are_signed_on_the_stack(m: Any, sign: int) -> None:
    """Stacks and return probes see the addresses themselves."""
    put(m, CALLER, sign, 0xA9BF7BFD, 0x910003FD, 0xD63F0020, 0xA8C17BFD,  # STP x29, x30; MOV x29, sp; BLR x1; LDP
        0xD50323BF if sign == PACIASP else NOP, RET)
    put(m, CALLED, BTI_C, 0x528000E0, RET)
    caller, called = (m.symbols[name].address for name in (CALLER, CALLED))
    returned: list[int] = []
    stacks: list[Any] = []
    ends: list[int] = []

    def called_now(p: Any, regs: Any) -> None:
        stacks.append(k.stack_trace(regs))
        ends.append(m.exit_address)

    with Kprobes(m) as k:
        for follow in (False, True):
            with k.kprobe(CALLED, pre_handler=called_now):
                if follow:
                    k.register(Kretprobe(symbol_name=CALLER, handler=lambda i, regs: returned.append(i.ret_addr)))
                assert by_pointer(m) == 7
    assert stacks == [[called, caller + 16, end] for end in ends] and not any(s.incomplete for s in stacks)
    assert len(stacks) == 2 and returned == ends[:1]


def test_code_of_ours_may_be_guarded_too(m: Any) -> None:
    """As the memory is that a kernel with branch protection gives: what detours call by a register begins with a
    pad."""
    with Kprobes(m) as k:
        heap = m.alloc(64)
        m.write(heap, b"text")
        text = f"p:e {FUNCTION} n=$arg1:u64 t=+0($arg1):string"
        with k.event(text) as e, k.attach(program := Program.from_c(SOURCE), FUNCTION) as a:
            plain = [m.call(FUNCTION, heap) for _ in range(3)]
            assert e.places[0].probe.optimized and not a.why_python["on"]
            pages = {(start, end) for start, end in (*m.guest_view.code, *m._sites._code)}
            pages |= {(page, page + 1) for page in m._pages._code} | {(m.symbols[FUNCTION].address,) * 2}
            for start, end in pages:
                guard(m, start, max(end - start, 4))
            assert [m.call(FUNCTION, heap) for _ in range(3)] == plain
            assert [dict(r.args) for r in e] == [{"n": heap, "t": "text"}] * 6 and program.variables["calls"] == 6
