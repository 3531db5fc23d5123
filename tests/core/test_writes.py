"""Guests that write over their own probed text: what they wrote runs, and whoever probes it is told at once."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from arches import RUNNABLE
from portion import portion
from scenes import subject_machine, unicorn_machine

from kprobes import GuestTimeout, Kprobe, KprobeError, Kprobes, UnicornMachine
from kprobes.core.patch.text import TextOverwritten
from kprobes.core.patch.writes import MOST
from kprobes.errors import Gone, NotAnInstruction, Unsupported

#: architectures whose guests this engine changes when it reports an access: nobody is told before the run has ended, or
#: the breakpoint is hit
UNTOLD = ("arm", "cortexm", "mips", "mips64el")  # to be tried on a machine that reports no accesses
GUEST_WRITES = {
    "itself, in front of it": "mov byte ptr [rdi], sil; mov eax, 0x01010101; ret",
    "itself, from far": "mov byte ptr [rdi], sil; jmp l; nop; nop; l: mov eax, 0x01010101; ret",
    "a word": "mov word ptr [rdi - 1], si; mov eax, 0x01010101; ret",
}
PARAMETER_LOADS = {"i386": 2, "m68k": 2}  # instructions before the first store of `stores`
# x86_64, seed 50, writes a RETF, which reads where in the probed machine a page of the library's is: a guest can see
# those
TRIALS = 40
TEXT, SIZE = 0x10000, 0x200


def outcome(m: UnicornMachine, function: str) -> tuple[Any, ...]:
    """What a call that may do anything comes to."""
    try:
        return "returns", m.call(function, 5, 7, max_insns=200)
    except GuestTimeout:
        return ("loops",)
    except KprobeError as error:
        return type(error).__name__, error.address, getattr(error, "access", "")


def store(m: UnicornMachine, value: int, to: int) -> None:
    """Have the guest execute one store."""
    start = m.symbols["stores"].address
    with Kprobes(subject_machine(m.arch.name)) as decoder:
        at = start & ~m.arch.pointers.mode_bits
        for _ in range(PARAMETER_LOADS.get(m.arch.name, 0) + 1):
            at = decoder._survey.decode(at, start & m.arch.pointers.mode_bits).next
    m.regs.set_arg(0, value)
    m.regs.set_arg(1, to)
    m.run(start, at)


@cache
def width(arch: str) -> int:
    """Bytes of the store."""
    with subject_machine(arch) as m:
        m.regs.sp, cell = m.alloc(0x1000) + 0x800, m.alloc(16)
        m.write(cell, b"\xaa" * 16)
        store(m, 0, cell)
        return m.read(cell, 16).count(0)


def trial(arch: str, seed: int) -> None:
    """One program, with and without a probe."""
    choose, results = random.Random(f"{arch} {seed}"), []
    to, flipped, filler = choose.randrange(-8, 12), 1 << choose.randrange(32), choose.random() < 0.5
    optimize, post = choose.random() < 0.7, choose.random() < 0.2
    for probed in (False, True):
        with subject_machine(arch) as m, Kprobes(m) as k:
            m.regs.sp = m.alloc(0x1000) + 0x800
            tiny = m.symbols["tiny"].address & ~m.arch.pointers.mode_bits
            word = int.from_bytes(m.read(tiny + (0 if filler else to), 4), m.arch.order.value) ^ flipped
            if probed:
                p = Kprobe(symbol_name="tiny", optimize=optimize,
                           post_handler=(lambda p, regs, flags: None) if post else None)
                k.register_kprobe(p)
            m.call("loop", 2, 3)
            if probed:
                stands_for = range(tiny, max(k._text.writes._kept.values()))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    store(m, word, tiny + to)
                    wrote = True
                except KprobeError:
                    wrote = False  # unaligned
            after = outcome(m, "tiny"), k._text.read(TEXT, SIZE)
            if probed:
                touched = wrote and any(byte in stands_for for byte in range(tiny + to, tiny + to + width(arch)))
                assert [w.category for w in told] == [TextOverwritten] * touched, (to, told)
                assert k.list()[0].flags.count("GONE") == len(told), k.list()
                assert not told or f"{tiny:#x}" in str(told[0].message)
            results.append(after)
    assert results[0] == results[1], (hex(to), hex(word))


@pytest.mark.parametrize("arch", RUNNABLE)
def test_random_programs(arch: str, thorough: bool) -> None:
    """The probed program does what the other one does, and no old instruction is executed."""
    for seed in portion(range(TRIALS), thorough, arch, 4):
        trial(arch, seed)


def rewriting(choose: random.Random, wide: bool) -> tuple[bytes, int]:
    """A loop of five turns that changes EAX by constants, and constants by ECX, its own block's and others'. And where
    one of the instructions with constants is: what overwrites that ends its block.

    Behind a store that is noticed, the rest of its block is executed as it was, though it changes that itself.
    """
    parts = [choose.choice(["constant", "store", "nop", "nop", "next block"]) for _ in range(choose.randrange(8, 24))]
    parts += ["constant", "store", "constant", "store"]
    size = {"constant": 5, "store": 8, "nop": 1, "next block": 2}
    starts = [5 + sum(size[part] for part in parts[:n]) for n in range(len(parts))]
    constants = [start for start, part in zip(starts, parts, strict=True) if part == "constant"]
    place = choose.choice(constants)
    code = bytearray.fromhex("b905000000")  # MOV ECX,5
    for start, part in zip(starts, parts, strict=True):
        if part == "constant":  # XOR, ADD, SUB
            code += choose.choice([b"\x35", b"\x05", b"\x2d"]) + choose.randbytes(4)
        elif part == "store":
            to = choose.choice(constants) + 1
            code += b"\x89\x0d" + (to - start - 6 if wide else TEXT + to).to_bytes(4, "little", signed=True)
            code += b"\xeb\x00" if to == place + 1 else b"\x90\x90"
        else:
            code += b"\x90" if part == "nop" else b"\xeb\x00"
    code += b"\xff\xc9\x0f\x85"  # DEC ECX; JNE
    return bytes(code + (5 - len(code) - 4).to_bytes(4, "little", signed=True) + b"\xc3"), TEXT + place


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_blocks_that_rewrite_themselves(arch: str, thorough: bool) -> None:
    """Stores are noticed behind one that has changed its own block, where the engine itself reports no more."""
    noticed = 0
    for seed in portion(range(60), thorough, arch, 4):
        choose = random.Random(f"{arch} {seed}")
        code, place = rewriting(choose, arch == "x86_64")
        results = []
        for optimize in (None, False, True):
            m = UnicornMachine.from_code(code, arch=arch, base=TEXT, symbols={"f": (TEXT, len(code))})
            with Kprobes(m) as k, warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                if optimize is not None:
                    with suppress(NotAnInstruction):  # a store beside it: for all that anybody knows, it is data
                        k.register(Kprobe(addr=place, pre_handler=lambda p, regs: None, optimize=optimize))
                results.append((m.call("f", timeout=60), m.read(TEXT, len(code)) if told else None))
                assert all("overwrites text" in str(one.message) for one in told), (seed, optimize)
                noticed += len(told)
            m.close()
        assert len({result for result, _ in results}) == 1, (seed, hex(place), code.hex())
        assert results[1][1] == results[2][1]
    assert noticed > (8 if thorough else 2)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("offset", range(5))
@pytest.mark.parametrize("code", GUEST_WRITES.values(), ids=GUEST_WRITES)
def test_the_next_instruction(code: str, offset: int, optimize: bool) -> None:
    """It is in the block that is being executed, which leads to the breakpoint or jump still."""
    results = []
    for probed in (False, True):
        m = unicorn_machine("x86_64", f=code)
        size = m.symbols["f"].size
        at = m.symbols["f"].address + m.read(m.symbols["f"].address, size).index(b"\xb8\1\1\1\1")
        with Kprobes(m) as k, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if probed:
                k.register_kprobe(p := Kprobe(addr=at, optimize=optimize))
                k.flush_optimizer()
                assert m.call("f", m.alloc(16) + 1, 7) == 0x01010101 and p.nhit == 1 and not told
            value = {(0, False): 0xB9, (0, True): 0xB942, (1, True): 0x42B8}.get((offset, "word" in code), 0x4242)
            m.regs["rax"] = 5
            results.append((m.call("f", at + offset, value), k._text.read(at, 5)))
            assert len(told) == probed
        results[-1] += (m.read(at, 5),)
    assert results[0] == results[1]


def test_another_probe_takes_its_place() -> None:
    """The old one stays gone, with its hits; the new one is hit."""
    m = unicorn_machine("x86_64", f="mov eax, 1; ret", w="mov byte ptr [rdi + 1], sil; ret")
    with Kprobes(m) as k:
        k.register_kprobe(old := Kprobe(symbol_name="f"))
        for _ in range(3):
            assert m.call("f") == 1
        with pytest.warns(TextOverwritten, match=r"at 0x10040 overwrites text at 0x10000"):
            m.call("w", m.symbols["f"].address, 2)
        assert m.call("f") == 2 and old.nhit == 3
        with pytest.raises(Gone):
            k.enable_kprobe(old)
        k.register_kprobe(new := Kprobe(symbol_name="f"))
        assert m.call("f") == 2 and (old.nhit, new.nhit) == (3, 1)
        k.unregister_kprobe(old)
        assert m.call("f") == 2 and new.nhit == 2
    assert m.read(m.symbols["f"].address, 6) == b"\xb8\2\0\0\0\xc3"


def test_the_warning_as_an_error_ends_the_run() -> None:
    """python -W error. The write has happened, and everything goes on."""
    m = unicorn_machine("x86_64", f="mov eax, 1; ret", w="mov byte ptr [rdi + 1], sil; ret")
    with Kprobes(m) as k, k.kprobe("w") as p:
        k.register_kprobe(Kprobe(symbol_name="f"))
        with pytest.raises(TextOverwritten):
            m.call("w", m.symbols["f"].address, 2)
        assert m.call("f") == 2 and m.call("w", m.alloc(16), 1) is not None and p.nhit == 2 and k.idle


def test_only_text_that_may_be_written_is_watched() -> None:
    """And as soon as it may be: a run is told at once."""
    m = unicorn_machine("x86_64", f="mov eax, 1; ret", w="mov byte ptr [rdi + 1], sil; ret")
    text = m.symbols["f"].address
    with Kprobes(m) as k:
        watches = k._text.writes._ends
        with k.kprobe("f"):
            assert watches
            m.protect(text, 0x1000, "rx")
            assert not watches
        assert not watches
        k.register_kprobe(Kprobe(symbol_name="f"))
        assert not watches
        with k.kprobe("w", pre_handler=lambda p, regs: m.protect(text, 0x1000, "rwx")), pytest.warns(TextOverwritten):
            m.call("w", text, 2)
        assert m.call("f") == 2


def test_many_probes_have_few_watches() -> None:
    code = bytes.fromhex("408837c3") + b"\xb8\1\0\0\0" * 400 + b"\xc3"  # mov [rdi], sil; ret. mov eax, 1; ...; ret
    text = 0x10004
    with UnicornMachine.from_code(code, arch="x86_64",
                                  symbols={"w": (text - 4, 4), "f": (text, 2001)}) as m, Kprobes(m) as k:
        k.register_kprobes([Kprobe(addr=text + 5 * n) for n in range(400)])
        writes = k._text.writes
        assert 0 < len(writes._ends) <= MOST
        with pytest.warns(TextOverwritten) as told:
            m.call("w", text + 5 * 123 + 3, 2)
        assert len(told) == 1 and [p.address for p in k.list() if p.flags] == [text + 5 * 123]
        m.call("w", text + 5 * 400, 0xC3)
        k.close()
    assert not writes._ends and not writes._lines and not writes._kept


STORES = ["mov byte ptr [rdi], sil", "lock xadd byte ptr [rdi], sil", "rep stosb", "movups [rdi - 8], xmm0",
          "movups [rdi - 15], xmm0",
          "cmpxchg16b [rdi]", "fxsave [rdi]", "mov rsp, rdi; push rsi; push rsi; add rsp, 16"]  # fmt: skip


@pytest.mark.parametrize("code", STORES)
def test_every_kind_of_store(code: str) -> None:
    m = unicorn_machine("x86_64", f=f"mov rbp, rsp; {code}; mov rsp, rbp; ret", g="mov eax, 1; ret")
    g = m.symbols["g"].address
    with Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="g"))
        m.regs["rcx"] = 3
        with pytest.warns(TextOverwritten, match=f"overwrites text at {g:#x}"):
            m.call("f", g + 8 * code.startswith("mov rsp"), 5)
        assert "GONE" in k.list()[0].flags


def test_a_displaced_instruction_that_overwrites_the_next_one() -> None:
    """Both are under one jump: the old one is executed this once, and whoever probes it is told."""
    m = unicorn_machine("x86_64", f="mov byte ptr [rdi], sil; mov eax, 0x01010101; ret")
    with Kprobes(m) as k:
        k.register_kprobe(p := Kprobe(symbol_name="f"))
        k.flush_optimizer()
        assert p.optimized
        with pytest.warns(TextOverwritten, match="0x10000 overwrites text at 0x10000"):
            m.call("f", 0x10004, 0x42)
        assert m.call("f", m.alloc(8), 0x42) == 0x01010142 and m.read(0x10003, 5) == b"\xb8\x42\1\1\1" and k.idle


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("arch", UNTOLD)
def test_where_nobody_reports_stores(arch: str, optimize: bool) -> None:
    """The warning comes when the run has ended; the guest's bytes stay."""
    with subject_machine(arch) as m:
        m.watching.watch_at = _refuse
        _overwritten(m, optimize)


def _refuse(*_: Any) -> Any:
    raise Unsupported("accesses are not reported", hint="look elsewhere")


def _overwritten(m: UnicornMachine, optimize: bool) -> None:
    with Kprobes(m) as k:
        m.regs.sp = m.alloc(0x1000) + 0x800
        tiny = m.symbols["tiny"].address & ~m.arch.pointers.mode_bits & -4
        k.register_kprobe(p := Kprobe(symbol_name="tiny", optimize=optimize))
        k.flush_optimizer()
        with pytest.warns(TextOverwritten, match=f"{tiny:#x} was overwritten while probed, by stores that nobody"):
            store(m, 0x12345678, tiny)
        assert p.registered and "GONE" in k.list()[0].flags
        k.unregister_kprobe(p)
        assert m.read(tiny, 4) == (0x12345678).to_bytes(4, m.arch.order.value)


_THUMB = ("0180 ffe7 40f20100 7047", 4, 6, b"\2\0")
#: guests whose stores nobody reports: f(p, n) stores n, leaves the block, and returns 1; where the instruction is that
#: is probed, what of it is behind a breakpoint, and what makes it return 2
CHANGED_BEHIND = {
    # str[h] r1, [r0]; b .+2; movw r0, 1; bx lr
    "arm": _THUMB, "cortexm": _THUMB,
    # sw a1, 0(a0); b .+8; nop; b .+8; li v0, 1; jr ra; nop
    **{arch: ("ac850000 10000001 00000000 10000001 24020001 03e00008 00000000", 12, 16, bytes.fromhex("24020002"))
       for arch in ("mips", "mips64")},
}


@pytest.mark.parametrize("arch", CHANGED_BEHIND)
def test_a_hit_of_what_has_changed_behind_the_breakpoint(arch: str) -> None:
    """In the run that has changed it: what the guest wrote is executed, as without the probe."""
    code, at, behind, new = CHANGED_BEHIND[arch]
    mode, order = int(arch in ("arm", "cortexm")), "big" if arch.startswith("mips") else "little"
    for probed in (False, True):
        m = UnicornMachine.from_code(bytes.fromhex(code), arch=arch, base=TEXT, symbols={"f": TEXT | mode})
        cell = m.alloc(8)
        with Kprobes(m) as k, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if probed:
                k.register_kprobe(p := Kprobe(addr=TEXT + at | mode, optimize=False))
            value = int.from_bytes(new, order)  # type: ignore[arg-type]
            assert [m.call("f", to, value) for to in (cell, TEXT + behind, cell)] == [1, 2, 2]
            assert len(told) == probed and (not probed or (p.nhit, k.list()[0].flags) == (1, ("GONE",)))


#: a block move of length - 1 in its second byte, from q to p; j .+4; lghi %r2, 0x101; br %r14
BLOCK_MOVE = "{}{:02x}20003000 a7f40002 a7290101 07fe"


def moved(code: str, length: int, offset: int, data: bytes, *, probed: bool, optimize: bool) -> tuple[bytes, int, int]:
    """f(TEXT + 10 + offset, data) on s390x: the text afterwards, how often the probe was said to be gone, and the end of
    what it stood for."""
    m = UnicornMachine.from_code(bytes.fromhex(BLOCK_MOVE.format(code, length - 1)), arch="s390x", base=TEXT,
                                 symbols={"f": TEXT})
    cell = m.alloc(16)
    with Kprobes(m) as k, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if probed:
            k.register_kprobe(Kprobe(addr=TEXT + 10, optimize=optimize))
            m.call("f", cell + 8, cell)
        end = max(k._text.writes._kept.values(), default=TEXT) - TEXT
        m.write(cell, data)
        with suppress(KprobeError):
            m.call("f", TEXT + 10 + offset, cell, timeout=2)
        text, gone = k._text.read(TEXT, 16), len(told)
        assert not probed or k.list()[0].flags.count("GONE") == gone
    assert m.read(TEXT, 16) == text and len(told) == gone
    return text, gone, end


@pytest.mark.parametrize("optimize", [True, False])
def test_block_moves(optimize: bool, thorough: bool) -> None:
    """Of s390x, whose engine does not report them: when the run has ended, what they wrote is there, and whoever probes
    it is told."""
    choose = random.Random(optimize)
    for _ in range(40 if thorough else 10):
        length, offset, data = choose.randrange(1, 7), choose.randrange(-3, 6), choose.randbytes(6).replace(b"\n", b"N")
        before, *_ = moved("d2", length, 30, data, probed=False, optimize=optimize)
        bare, *_ = moved("d2", length, offset, data, probed=False, optimize=optimize)
        text, gone, end = moved("d2", length, offset, data, probed=True, optimize=optimize)
        assert (text, gone) == (bare, bare[10:end] != before[10:end]), (length, offset, data.hex())


@pytest.mark.parametrize("code", ["d7", "d6", "d4"], ids=["xc", "oc", "nc"])
def test_block_moves_that_read_what_they_write(code: str) -> None:
    """They see our bytes, as every guest that reads its probed text."""
    assert moved(code, 2, 0, b"\x55\x55", probed=True, optimize=False)[1] == 1
