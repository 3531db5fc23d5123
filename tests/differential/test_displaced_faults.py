"""Faults in displaced code: the guest sees them at home, with nothing changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kprobes import Kprobe, UnicornMachine
from kprobes.machine.unicorn.assembler import assemble
from kprobes.testing import Comparison

BASE = 0x10000
NOWHERE = 0x50000000
ASSEMBLED = {"x86_64", "i386", "arm64"}

#: name -> (architecture, code before the probed instruction, and from there on); in hex what no assembler is there for
CASES = {
    "x86_64 call, no stack": ("x86_64", "mov esp, 0x1000", "call f; f: ret"),
    "x86_64 ret, no stack": ("x86_64", "mov esp, 0x1000", "nop; nop; nop; nop; ret"),
    "x86_64 jmp memory, nothing there": ("x86_64", f"mov eax, {NOWHERE:#x}", "jmp [rax + 0x1234567]"),
    "x86_64 jmp to nowhere": ("x86_64", "nop", f"jmp {NOWHERE:#x}"),
    "x86_64 jcc to nowhere": ("x86_64", "cmp eax, eax", f"je {NOWHERE:#x}"),
    "x86_64 in the middle of a region": ("x86_64", "xor eax, eax", "nop; nop; mov ecx, [rax]; ret"),
    "x86_64 behind a branch in a region": ("x86_64", "xor eax, eax", "jnz away; mov ecx, [rax]; nop; away: ret"),
    "i386 call, no stack": ("i386", "mov esp, 0x1000", "call f; f: ret"),
    "i386 ret, no stack": ("i386", "mov esp, 0x1000", "nop; nop; ret 8"),
    "arm64 br to nowhere": ("arm64", f"movz x9, #{NOWHERE >> 16:#x}, lsl #16", "br x9"),
    "arm64 blr to nowhere": ("arm64", f"movz x9, #{NOWHERE >> 16:#x}, lsl #16", "blr x9"),
    "arm64 b to nowhere": ("arm64", "nop", "b #0x4000000"),
    "arm64 bl to nowhere": ("arm64", "nop", "bl #0x4000000"),
    "arm64 cbz to nowhere": ("arm64", "mov x3, #0", "cbz x3, #0x80000"),
    "arm64 ret to nowhere": ("arm64", f"movz x30, #{NOWHERE >> 16:#x}, lsl #16", "ret"),
    "ppc b to nowhere": ("ppc", "60000000", "48800000"),
    "ppc bdnz to nowhere": ("ppc", "60000000", "42007ff0"),
    "ppc blr to nowhere": ("ppc", "3c205000 7c2803a6", "4e800020"),  # lis r1; mtlr r1
    "ppc64 bctr to nowhere": ("ppc64", "3c205000 7c2903a6", "4e800420"),
    "s390x brasl to nowhere": ("s390x", "1811", "c0e528000000"),
    "s390x basr to nowhere": ("s390x", "c01950000000", "18111811 0de1"),  # iilf %r1; lr, lr, basr %r14,%r1
    "s390x behind a branch in a region": ("s390x", "c01950000000 1211", "a7840004 58001000"),  # ltr; je, l %r0,0(%r1)
    "m68k bsr, no stack": ("m68k", "2e7c00001000", "61ff00000010"),
    "m68k jsr, no stack": ("m68k", "2e7c00001000", "4eb900010020"),
    "m68k rtd, no stack": ("m68k", "2e7c00001000", "4e71 4e740008"),
    "m68k jmp ([NOWHERE])": ("m68k", "4e71", "4ef001f150000000"),
    "m68k beq to nowhere": ("m68k", "4280", "67ff50000000"),
    "tricore fcall, no stack": ("tricore", "910000a5", "61000800"),  # movh.a a10
    "tricore fret, no stack": ("tricore", "910000a5", "0d00c000"),
    "tricore ji to nowhere": ("tricore", "91000025", "2d023000"),  # movh.a a2
    "tricore jli to nowhere": ("tricore", "91000025", "2d022000"),
    "tricore calli to nowhere": ("tricore", "91000025", "2d020000"),
    "tricore jeq to nowhere": ("tricore", "8202", "df020040"),
    "tricore ret, no context": ("tricore", "8202 cd02e00f", "0d008001"),  # mov d2, 0; mtcr pcxi, d2
}


@pytest.fixture(params=CASES)
def scene(request: pytest.FixtureRequest) -> Iterator[tuple[Comparison, int]]:
    arch, before, rest = CASES[request.param]
    encode = assemble if arch in ASSEMBLED else lambda text, arch, base: bytes.fromhex(text)
    head = encode(before, arch, BASE)
    code = head + encode(rest, arch, BASE + len(head))
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": (BASE, len(code))})
    found = Comparison(m, lambda machine: machine.call("f"))
    yield found, BASE + len(head)
    found.close()
    m.close()


def test_faults_at_home(scene: tuple[Comparison, int]) -> None:
    """Stepped, as a jump, and counted by the machine: the same fault, at the same address, with the same registers."""
    comparison, probed = scene
    assert comparison.plain.fault, "it does not fault"
    for fields in ({"optimize": False}, {"pre_handler": lambda p, regs: None}, {}):
        probe = Kprobe(addr=probed, **fields)
        with comparison.probed([probe]):
            comparison.kprobes.flush_optimizer()
            assert probe.optimized == ("optimize" not in fields), probe.why_not_optimized
            for _ in range(2):
                found = comparison.again(str(fields))
                assert not found, "\n".join(map(str, found))
            assert (probe.nhit, probe.nmissed) == (2, 0)
