"""Guests that jump into the library's pages, at any byte, write there, or move their stack there: a fault, a bound or a
counted miss."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from arches import RUNNABLE, programs_of

from kprobes import (
    GuestFault,
    GuestTimeout,
    Jprobe,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    UnicornMachine,
    Unsupported,
)
from kprobes.core.hit.ctlblk import HitState
from kprobes.machine.unicorn.host.translator import bounded
from kprobes.testing import instructions

# a guest that calls for ever reaches any ceiling
pytestmark = pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")
PROGRAMS = [pytest.param(path, id=path.stem) for arch in RUNNABLE for path in programs_of(arch)
            if path.stem.endswith("-O2")]
ARGS = tuple(3 + 1000 * n for n in range(12))
SUM = sum((n + 1) * value for n, value in enumerate(ARGS))
LONG = 60.0  # seconds that no trial takes, on a busy machine
TRIALS = 250


class Victim:
    """A program with probes of all kinds, which works."""

    def __init__(self, path: Path) -> None:
        self.m = UnicornMachine.load(path)
        self.k = Kprobes(self.m)
        self.places = instructions(self.k, self.m.symbols["sum_of_12"])
        for n, addr in enumerate(self.places):
            with suppress(KprobeError):
                self.k.register(Kprobe(addr=addr, optimize=n % 2 == 0,
                                       pre_handler=(lambda p, regs: None) if n % 3 else None,
                                       post_handler=(lambda p, regs, flags: None) if n % 4 == 1 else None))
        self.k.register(Kretprobe(symbol_name="sum_of_12", handler=lambda ri, regs: None))
        self.k.register(Kretprobe(symbol_name="memset", handler=lambda ri, regs: None,
                                  entry_handler=lambda ri, regs: 0))
        self.k.register(Jprobe(symbol_name="memcpy", entry=lambda: None))
        self.data = self.m.alloc(256)
        self.usual = self.m.parts.memory.engine.save()
        for _ in range(3):
            self.works()

    def works(self) -> None:
        self.m.parts.memory.engine.restore(self.usual)
        assert self.m.call("sum_of_12", *ARGS, timeout=LONG) & 0xFFFFFFFF == SUM
        self.m.call("memset", self.data, 5, 16, timeout=LONG)
        assert self.m.read(self.data, 16) == bytes([5] * 16)
        self.m.call("memcpy", self.data + 32, self.data, 16, timeout=LONG)
        assert self.m.read(self.data + 32, 16) == bytes([5] * 16)
        assert all(block.state is HitState.IDLE for block in self.k._driver.blocks)

    def pages(self) -> list[tuple[int, int]]:
        """The library's, each with the bytes of it that are in use."""
        filler = self.m.arch.end_bytes(min(self.m.arch.traps.end))
        out = []
        for start, end in [*self.k._rooms.ranges(), (self.m.parts.state.exit, self.m.parts.state.exit + 64)]:
            code = self.m.read(start, end - start)
            used = len(code.rstrip(filler).rstrip(b"\0"))
            out.append((start, min(used + 32, end - start)))
        return out


def places(victim: Victim, rng: random.Random) -> Iterator[int]:
    pages = victim.pages()
    while True:
        start, used = rng.choice(pages)
        yield start + rng.randrange(used)


@pytest.fixture
def victim(path: Path) -> Iterator[Victim]:
    yield Victim(path)


@pytest.mark.parametrize("path", PROGRAMS)
def test_anywhere_in_the_librarys_pages(victim: Victim, path: Path) -> None:
    """With any registers, its stack there as well."""
    rng = random.Random(path.stem)
    where = places(victim, rng)
    ended: dict[str, int] = {}
    for n in range(TRIALS):
        m, regs = victim.m, victim.m.regs
        for name in m.arch.abi.args if m.arch.abi else ():
            regs[name] = rng.choice((victim.data, next(where), rng.getrandbits(m.arch.bits) & -4, 0))
        with suppress(KprobeError):
            regs.sp = rng.choice((regs.sp, victim.data + 128, next(where) & -16))
        target, began = next(where), time.monotonic()
        bound = ({"timeout": 0.1} if rng.random() < 0.3 or not m.guest.blocks.hooked_delay_slots
                 else {"max_insns": 10_000, "timeout": LONG})
        kind = "end"
        try:
            m.run(target, **bound)  # type: ignore[arg-type]
        except KprobeError as error:
            kind = type(error).__name__
        assert time.monotonic() - began < LONG, hex(target)
        ended[kind] = ended.get(kind, 0) + 1
        if n % 10 == 0:
            victim.works()
    victim.works()
    victim.k.close()
    victim.m.parts.memory.engine.restore(victim.usual)
    assert victim.m.call("sum_of_12", *ARGS, timeout=LONG) & 0xFFFFFFFF == SUM
    assert ended.get("GuestFault", 0) + ended.get("ReentryError", 0) > 0


@pytest.mark.parametrize("path", PROGRAMS)
def test_stores_into_the_librarys_pages(victim: Victim, path: Path) -> None:
    """They fault, but on s390x, whose engine executes nothing in pages that cannot be written."""
    for start, used in victim.pages():
        m = victim.m
        before = m.read(start, used)
        if m.guest.memory.text_writable:
            continue
        with pytest.raises(GuestFault) as caught:
            m.call("memset", start, 0x55, 4, timeout=LONG)
        assert caught.value.access == "write"
        assert m.read(start, used) == before
        victim.works()


@pytest.mark.parametrize("path", [p for p in PROGRAMS if "s390x" in str(p.id)])
def test_scribbled_pages(path: Path) -> None:
    """Where it can, the guest spoils what is there: the run ends all the same."""
    rng = random.Random(7)
    for n in range(8):
        victim = Victim(path)
        for start, used in victim.pages():
            for _ in range(1 + used // 16):
                with suppress(KprobeError):
                    victim.m.call("memset", start + rng.randrange(used),
                                  rng.choice((0, 0x07, 0xA7, 0xF4, rng.randrange(256))), rng.randrange(1, 8),
                                  timeout=0.3)
        for _ in range(10):
            began = time.monotonic()
            with suppress(KprobeError):
                victim.m.call("sum_of_12", *ARGS, max_insns=20_000, timeout=1)
            assert time.monotonic() - began < LONG + n


LOOPS = {"x86_64": "b8ebfe0000c3", "i386": "b8ebfe0000c3"}  # mov eax, 0xfeeb; ret: at its second byte a loop


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("bound", [{"max_insns": 20_000}, {"timeout": 0.05}])
@pytest.mark.parametrize("post", [True, False])
def test_a_loop_in_a_slot(name: str, bound: dict[str, float], post: bool) -> None:
    m = UnicornMachine.from_code(bytes.fromhex(LOOPS[name]), arch=name, symbols={"f": (0x10000, 6)})
    with Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="f", post_handler=(lambda *_: None) if post else None, optimize=False))
        assert m.call("f") == 0xFEEB
        slot = p._point.slot  # type: ignore[union-attr]
        at = m.read(slot, 16).index(b"\xeb\xfe")
        for _ in range(3):
            with pytest.raises(GuestTimeout):
                m.run(slot + at, **bound)  # type: ignore[arg-type]
            assert m.call("f") == 0xFEEB
        assert (p.nhit, p.nmissed) == (4, 0)


@pytest.mark.parametrize(("arch", "code"), [
    ("mips", "10000002 1000ffff 00000000"), ("mips", "10000002 03e00008 00000000"),
    ("mips32r6", "10000002 cbffffff 00000000"), ("mips32r6", "10000002 d81f0000 00000000")],
    ids=["branch", "register", "compact", "compact register"])
@pytest.mark.parametrize("bound", [{"max_insns": 20}, {"max_insns": 1 << 40, "timeout": 0.05}], ids=["counted", "timed"])
def test_a_loop_behind_a_branch(arch: str, code: str, bound: dict[str, float]) -> None:
    """Where a delay slot would be, but the guest has come there by itself."""
    m = UnicornMachine.from_code(bytes.fromhex(code), arch=arch)
    m.regs["ra"] = m.regs.pc = 0x10004
    with pytest.raises(GuestTimeout) as stopped:
        m.run(**bound)
    assert stopped.value.pc in (0x10004, 0x10008)


def test_machines_that_cannot_count_say_so() -> None:
    path = next(p for p in programs_of("sparc") if p.stem.endswith("-O2"))
    with pytest.raises(Unsupported, match="timeout"):
        UnicornMachine.load(path).call("sum_of_12", max_insns=100)


#: Instructions at which the engine's translators end the process, reserved ones mostly.
DEADLY = {
    # LDUBA, STDA and LDSTUBA from ASI 80; STA and LDSTUBA to the MMU's block fill, STDA to its block copy
    "sparc": "c0885002 c0b85002 c0e85002 c0a043e2 c0e843e2 c0b842e2",
    # BPr, MOVr and FMOVr with the conditions 000 and 100; LDFA, LDDFA and LDSTUBA from a two-word ASI
    "sparc64": "00c80004 08c80004 10c80004 8d780002 8d7a113e 99a800a2 99a810c2 99a800e2 cb82dd49 c1985c42 c0e85c62",
    # FBcc.W, FBcc.L and FScc with the condition 1xxxxx; extended, double and packed numbers in data registers
    "m68k": "f2a30110 f2fa0001 f240003b f20248bc f20054a2 f2034ca9 f2006880 f2047480 f2006c00 f2017c00",
    # SCK; RNSBG with the bit T
    "s390x": "b2041000 ec1fc0006054 ec00fb936354",
}
RUN_DEADLY = """
import sys
from kprobes import GuestFault, UnicornMachine
for word in sys.argv[2].split():
    m = UnicornMachine.from_code(bytes.fromhex(word), arch=sys.argv[1], base=0x10000)
    try:
        m.run(0x10000, timeout=5)
    except GuestFault as fault:
        print(fault.access, fault.pc == m.regs.pc == 0x10000)
"""


@pytest.mark.skipif(not bounded(), reason="host code gives the translators other instructions")
@pytest.mark.parametrize("arch", DEADLY)
def test_instructions_do_not_end_the_process(arch: str) -> None:
    """They are illegal instructions (docs/unicorn-defects.md)."""
    done = subprocess.run([sys.executable, "-c", RUN_DEADLY, arch, DEADLY[arch]], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["undefined True"] * len(DEADLY[arch].split())


def test_operands_that_look_like_reserved_instructions_are_what_they_are() -> None:
    """move.l #, d0; rts. llihf r2, ...; br r14. larl r1; ex r2, 0(r1) of mvc 0x204(8,r11), ...; br r14."""
    m = UnicornMachine.from_code(bytes.fromhex("203c f2a3 f2fa 4e75"), arch="m68k", base=0x10000, symbols={"f": 0x10000})
    assert m.call("f") == 0xF2A3F2FA
    code = bytes.fromhex("c02e b204 b204 07fe" "c0100000000b 44001000 07fe 0000 0000000000000000 d207 b204 a000")
    m = UnicornMachine.from_code(code, arch="s390x", base=0x10000, symbols={"f": 0x10000, "g": 0x10008})
    assert m.call("f") == 0xB204B204_00000000
    data = m.alloc(0x400)
    m.write(data, b"12345678")
    m.regs["r11"], m.regs["r10"] = data, data
    m.call("g")
    assert m.read(data + 0x204, 8) == b"12345678"
