"""Faults in delay slots under QEMU: where they are without the probe on the branch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qemu import qemu_for

from kprobes import GuestFault, Kprobe, Kprobes, QemuMachine

NOWHERE = 0x10  # a page that no process has
MIPS = (("10000003", "04110003", "03e00008", "0320f809", "50000003", "04030003", "04130003"),
        ("8c820000", "ac820000", "8c820001"))
SPARC = ("10800004", "00800004", "12a00004", "40000004", "81c3e008", "9fc3e008"), ("c2022000", "c2222000")
SUPERH = ("a002", "b002", "000b", "8d02", "8f02"), ("6042", "2442")
#: how a program's name begins -> (branches, which do not lead back into themselves; accesses through the first
#: argument), as words
WORDS = {"mips": MIPS, "mipsel": MIPS, "mips64": MIPS, "mips64el": MIPS, "sh4": SUPERH, "sh4eb": SUPERH,
         "sparc": SPARC, "sparc64": SPARC,
         "parisc": (("e840c000", "e8000010", "e8400010", "a75a1fd5", "875a0010", "cb5a8010"), ("0f40109c", "0f5a1280"))}


@pytest.fixture(params=WORDS)
def m(request: pytest.FixtureRequest, programs: Callable[[str], Path]) -> Iterator[QemuMachine]:
    qemu_for(f"{request.param}-O2")
    with QemuMachine.user([programs(f"{request.param}-O2")], env={}, timeout=20, stdout=subprocess.DEVNULL) as machine:
        yield machine


def outcome(m: QemuMachine, function: int) -> tuple[object, ...]:
    with pytest.raises(GuestFault) as caught:
        m.call(function, NOWHERE)
    fault = caught.value
    return fault.access, fault.address, fault.pc, fault.number


def test_they_are_where_they_are_without_the_probe(m: QemuMachine) -> None:
    branches, accesses = WORDS[m.arch.name]
    page, size = m.map_code(), m.arch.insn_align
    m.symbols.add("page", page, m.page_size)
    for branch in branches:
        for access in accesses:
            words = (int(word, 16).to_bytes(size, m.arch.order.value) for word in (branch, access))
            m.write(page, b"".join(words))
            plain = outcome(m, page)
            assert plain[2] == page + size
            with Kprobes(m) as k:
                for fields in ({}, {"post_handler": lambda *_: None}):
                    with k.kprobe(addr=page, **fields) as probe:
                        assert [outcome(m, page) for _ in range(2)] == [plain] * 2, (branch, access)
                        assert isinstance(probe, Kprobe) and probe.nhit == 2
