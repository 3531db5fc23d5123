"""Text: what is underneath our patches, and what becomes of it when somebody else writes there."""

from __future__ import annotations

from typing import Any

import pytest
from arches import RUNNABLE
from scenes import BASE as BASE_OF
from scenes import Scene, paper_machine, subject_machine, unicorn_machine

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.core.patch.bits import Patch
from kprobes.core.patch.text import AT_A_TIME, Text, TextOverwritten
from kprobes.errors import GuestFault
from kprobes.machine.paper import PaperMachine

BASE = 0x1000
ORIGINAL = bytes(range(16))


@pytest.fixture
def text() -> Text:
    m = PaperMachine(ORIGINAL)
    return Text(m)


def memory(text: Text, size: int = 16) -> bytes:
    return text._machine.read(BASE, size)


def test_apply_and_revert(text: Text) -> None:
    patch = text.apply(BASE + 4, b"\xaa\xbb")
    assert patch == Patch(BASE + 4, b"\xaa\xbb", b"\x04\x05")
    assert memory(text) == ORIGINAL[:4] + b"\xaa\xbb" + ORIGINAL[6:]
    assert text.read(BASE, 16) == ORIGINAL
    text.revert(patch)
    assert memory(text) == ORIGINAL
    assert text.patches == []


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("others", [0, 20])
def test_reads_that_overlap_a_patch_at_either_end(text: Text, start: int, size: int, others: int) -> None:
    """Few patches and many are looked up in different ways."""
    text._machine.write(BASE + 16, bytes(32))
    text.apply(BASE + 3, b"\xaa\xbb\xcc")
    for n in range(others):
        text.apply(BASE + 20 + n, b"\xee")
    assert text.read(BASE + start, size) == ORIGINAL[start : start + size]


def test_patches_are_listed_by_address(text: Text) -> None:
    made = [text.apply(BASE + n, b"\xee") for n in (9, 2, 5)]
    assert text.patches == [made[1], made[2], made[0]]
    for n, patch in enumerate(made):
        text.revert(patch)
        assert len(text.patches) == 2 - n
    assert memory(text) == ORIGINAL


def test_a_patch_that_was_overwritten_is_left_and_warned_about(text: Text) -> None:
    patch = text.apply(BASE + 4, b"\xaa\xbb")
    text._machine.write(BASE + 5, b"\x77")
    text.revert(patch)
    with pytest.warns(TextOverwritten, match="0x1004"):
        text.warn()
    text.warn()
    assert memory(text) == ORIGINAL[:4] + b"\xaa\x77" + ORIGINAL[6:]
    assert text.patches == []


def test_a_patch_of_some_bits_leaves_the_others(text: Text) -> None:
    """Itanium's instructions share bytes: the bits around a patch's own are somebody else's, whatever they become."""
    mask, new = b"\xf0\x3c", b"\xa5\xff"
    now = memory(text)
    patch = text.apply(BASE + 4, new, mask=mask)
    assert memory(text)[4:6] == bytes([0xA0 | now[4] & 0x0F, 0x3C | now[5] & 0xC3])
    for others in (b"\x0f\xc3", bytes(2), b"\x0a\x41"):  # the bits outside of the mask
        around = bytes([patch.new[0] | others[0], patch.new[1] | others[1]])
        text._machine.write(BASE + 4, around)
        assert patch.stands_in(around) and patch.stands_in(around[1:], 1)
        assert not patch.stands_in(bytes([around[0] ^ 0x10, around[1]]))
        assert not patch.stands_in(bytes([around[1] ^ 4]), 1)
    text.revert(patch)
    assert memory(text) == now[:4] + bytes([now[4] & 0xF0 | 0x0A, now[5] & 0x3C | 0x41]) + now[6:]


def test_what_somebody_else_wrote_is_the_text_now(text: Text) -> None:
    text.apply(BASE + 4, b"\xaa\xbb")
    text._machine.write(BASE + 4, b"\x77\x78")
    assert text.read(BASE + 3, 4) == b"\x03\x77\x78\x06"


def test_forget_touches_no_memory(text: Text) -> None:
    patch = text.apply(BASE + 4, b"\xaa")
    text.forget(patch)
    assert memory(text)[4] == 0xAA
    assert text.patches == []


def test_replace_by_a_longer_and_by_a_shorter_patch(text: Text) -> None:
    patch = text.apply(BASE + 4, b"\xcc")
    longer = text.replace(patch, patch.addr, b"\xe9\x01\x02")
    assert (longer.new, longer.old) == (b"\xe9\x01\x02", b"\x04\x05\x06")
    assert memory(text, 8) == b"\0\1\2\3\xe9\1\2\7"
    assert text.read(BASE, 16) == ORIGINAL
    shorter = text.replace(longer, patch.addr, b"\xcc")
    assert memory(text, 8) == b"\0\1\2\3\xcc\5\6\7"
    assert (shorter.new, shorter.old, text.patches) == (b"\xcc", b"\x04", [shorter])
    text.revert(shorter)
    assert memory(text) == ORIGINAL


@pytest.mark.parametrize("addr", [BASE - 1, BASE + 0x1000])
def test_unmapped(text: Text, addr: int) -> None:
    with pytest.raises(GuestFault):
        text.read(addr, 1)
    with pytest.raises(GuestFault):
        text.apply(addr, b"\xcc")
    assert text.patches == []


def test_a_read_that_begins_in_mapped_memory_and_ends_outside(text: Text) -> None:
    with pytest.raises(GuestFault):
        text.read(BASE + 0xFFF, 2)


def test_a_guest_that_overwrites_its_own_probed_code(scene: Scene) -> None:
    """The new code runs, the probe is not hit any more, and unregistering warns and leaves the guest's bytes."""
    m, k = scene.m, scene.k
    p = scene.probe("a")
    addr = scene.at("inc")
    size = len(k.get_kprobe(addr).insn.raw)
    # adds 2; on x86_64 a nop
    new = {"paper": b"\x01\x00\x02", "x86_64": b"\x8d\x47\x02\x90", "arm64": b"\x00\x08\x00\x91"}[scene.name]
    m.write(addr, new)
    assert scene.play("inc", 4) == ["= 6"]
    with pytest.warns(TextOverwritten):
        k.unregister_kprobe(p)
    assert m.read(addr, size) == new and k.rearmed == 0
    assert not p.registered
    scene.original = scene.text()
    again = scene.probe("again")
    assert scene.play("inc", 4) == ["pre again", "post again", "= 6"]
    assert again.opcode is not None
    assert new.startswith(again.opcode)


# --- somebody else restores


@pytest.mark.parametrize("optimize", [True, False])
def test_text_that_was_restored_is_probed_again(scene: Scene, optimize: bool) -> None:
    """As it was before registration: whoever runs the guest next finds the probe, and the counter tells."""
    p = scene.probe("a", optimize=optimize)
    p.post_handler = None
    for n in (1, 2):
        assert scene.play("inc", 4) == ["pre a", "= 5"]
        assert scene.k.rearmed == n - 1
        scene.m.write(scene.at("inc"), scene.original[scene.at("inc") - BASE_OF[scene.name] :][:16])
        assert scene.play("inc", 4) == ["pre a", "= 5"]
        assert scene.k.rearmed == n
    scene.k.unregister_kprobe(p)
    assert scene.text() == scene.original


@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize("beneath", [True, False])
def test_a_snapshot_of_another_time(arch: str, beneath: bool) -> None:
    """Taken with breakpoints, with jumps, and without; restored at every other time, by the machine or beneath it."""
    m, seen = subject_machine(arch), []

    def restore(text: bytes) -> None:
        m.uc.mem_write(0x10000, text) if beneath else m.write(0x10000, text)

    def runs(hits: int) -> None:
        for _ in range(2):
            assert m.call("loop", 1, 6) == 7
            assert len(seen) == hits
            seen.clear()

    plain = m.read(0x10000, 0x200)
    k = Kprobes(m)
    p = Kprobe(symbol_name="tiny", pre_handler=lambda p, regs: seen.append(regs.pc))
    k.register_kprobe(p)
    trap = m.read(0x10000, 0x200)
    runs(1)
    jump = m.read(0x10000, 0x200)
    for text in (plain, trap, jump, trap):
        restore(text)
        runs(1)
    k.unregister_kprobe(p)
    for text in (trap, jump, trap, plain):
        restore(text)
        runs(0)
        assert m.read(0x10000, 0x200) == plain
    k.close()
    for text in (jump, trap):
        restore(text)
        runs(0)
        assert m.read(0x10000, 0x200) == plain
    restore(jump)
    with Kprobes(m):
        runs(0)
        assert m.read(0x10000, 0x200) == plain
    m.close()


def test_a_stray_breakpoint_in_the_middle_of_a_run(scene: Scene) -> None:
    """A handler restores what was there while another probe was."""
    p = scene.probe("gone")
    text = scene.text()
    scene.k.unregister_kprobe(p)

    def restore(p: Kprobe, regs: Any) -> None:
        scene.m.write(BASE_OF[scene.name], text)

    with scene.k.kprobe("twice", pre_handler=restore, optimize=False) as q:
        assert scene.play("twice", 4) == ["= 6"]
        assert q.nhit == 1
    assert scene.text() == scene.original


@pytest.mark.parametrize("optimize", [True, False])
def test_an_owner_who_changes_what_is_behind_the_breakpoint(optimize: bool) -> None:
    """x86_64: the copy is executed; whoever unregisters is told."""
    m = unicorn_machine("x86_64", g="mov eax, 1; ret", h="mov rax, 0x1122334455667788; ret")
    with Kprobes(m) as k:
        for function, offset in (("g", 4), ("h", 9)):  # within the jump that covers it, and behind that
            k.register_kprobe(p := Kprobe(symbol_name=function, optimize=optimize))
            k.flush_optimizer()
            before = m.call(function)
            m.write(m.symbols[function].address + offset, b"\7")
            if not (optimize and function == "g"):
                assert m.call(function) == before
            with pytest.warns(TextOverwritten):
                k.unregister_kprobe(p)


@pytest.mark.parametrize("page", [0, 1])
def test_half_of_a_jump_that_the_owner_restores(page: int) -> None:
    """The jump is partly in one page and partly in the next; the owner writes the original text over either page's."""
    code = b"\x90" * 0x1040 + b"\xc3"
    m = UnicornMachine.from_code(code, arch="x86_64", base=BASE_OF["x86_64"], symbols={"f": (BASE_OF["x86_64"] + 0xFF0, 0x51)})
    place = BASE_OF["x86_64"] + 0xFFD
    with Kprobes(m) as k:
        k.register(p := Kprobe(addr=place, pre_handler=lambda p, regs: None))
        k.flush_optimizer()
        jump = m.read(place, 5)
        assert jump[0] == 0xE9
        m.call("f")
        m.write(place + 3 * page, bytes([0x90]) * (2 if page else 3))
        m.call("f")
        assert (p.nhit, m.read(place, 5)) == (2, jump)


def test_checking_costs_little_however_many_pages() -> None:
    """At most so many pages are looked at, unless one has changed; then all are."""
    m = unicorn_machine("x86_64")
    m.map(0x100000, 0x100000)
    m.write(0x100000, bytes(0x100000))
    read: list[int] = []
    real = m.read
    with Kprobes(m) as k:
        text = k._text
        patches = [text.apply(0x100000 + 0x1000 * n, b"\xcc") for n in range(256)]
        text.check()
        m.read = lambda addr, size: read.append(size) or real(addr, size)  # type: ignore[method-assign,func-returns-value]
        assert text.check() == 0 and read.count(0x1000) <= AT_A_TIME
        m.write(0x100000, bytes(0x100000))
        assert text.check() == 256 and text.check() == 0
        del m.read
        for patch in patches:
            text.revert(patch)


def test_the_rest_of_the_batch_is_unregistered_when_one_was_overwritten() -> None:
    m = paper_machine()
    with Kprobes(m) as k:
        before = m.snapshot()[0x1000]
        batch = [Kprobe(symbol_name=name) for name in ("inc", "twice", "hop")]
        k.register_kprobes(batch)
        addr = m.symbols["twice"].address
        m.write(addr, b"\x02")
        with pytest.warns(TextOverwritten, match=f"{addr:#x}"):
            k.unregister_kprobes(batch)
        assert not any(p.registered for p in batch)
        after = bytearray(m.snapshot()[0x1000])
        assert after[addr - 0x1000] == 2
        after[addr - 0x1000] = before[addr - 0x1000]
        assert bytes(after) == before


@pytest.mark.parametrize("end", ["unregister", "disarm", "close"])
def test_the_warning_as_an_error_comes_when_all_is_done(end: str) -> None:
    """python -W error, as in this suite."""
    m = paper_machine()
    k = Kprobes(m)
    names = ("inc", "twice", "hop", "probed")
    batch = [Kprobe(symbol_name=name) for name in names]
    k.register_kprobes(batch)
    original = {name: k._text.read(m.symbols[name].address, 1) for name in names}
    overwritten = [m.symbols[name].address for name in ("inc", "hop")]
    for addr in overwritten:
        m.write(addr, b"\x02")
    with pytest.raises(TextOverwritten, match=", ".join(f"{addr:#x}" for addr in overwritten)):
        k.unregister_kprobes(batch) if end == "unregister" else k.close() if end == "close" else setattr(k, "enabled",
            False)
    assert not any(p.registered for p in batch) or end == "disarm"
    assert {name: m.read(m.symbols[name].address, 1) for name in names} == {**original, "inc": b"\x02", "hop": b"\x02"}
    assert k._text.patches == []
    k.close()
    assert m.sink is None
