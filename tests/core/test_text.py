"""Text: what is underneath our patches, and what becomes of it when somebody else writes there."""

from __future__ import annotations

import pytest
from scenes import Scene, paper_machine

from kprobes import Kprobe, Kprobes
from kprobes.core.patch.text import Patch, Text, TextOverwritten
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
    longer = text.replace(patch, b"\xe9\x01\x02")
    assert (longer.new, longer.old) == (b"\xe9\x01\x02", b"\x04\x05\x06")
    assert memory(text, 8) == b"\0\1\2\3\xe9\1\2\7"
    assert text.read(BASE, 16) == ORIGINAL
    shorter = text.replace(longer, b"\xcc")
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
    other = m.read(scene.at("probed", 1), scene.at("probed", 2) - scene.at("probed", 1))  # adds 1 to the result
    size = len(k.get_kprobe(addr).insn.raw)
    new = (other + other)[:size] if scene.name != "x86_64" else b"\x8d\x47\x01\x90"  # lea eax, [rdi + 1]; nop
    m.write(addr, new)
    assert scene.play("inc", 4) == ["= 5"]
    with pytest.warns(TextOverwritten):
        k.unregister_kprobe(p)
    assert m.read(addr, size) == new
    assert not p.registered
    scene.original = scene.text()
    again = scene.probe("again")
    assert scene.play("inc", 4) == ["pre again", "post again", "= 5"]
    assert again.opcode is not None
    assert new.startswith(again.opcode)


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
        k.unregister_kprobes(batch) if end == "unregister" else k.close() if end == "close" else setattr(k, "enabled", False)
    assert not any(p.registered for p in batch) or end == "disarm"
    assert {name: m.read(m.symbols[name].address, 1) for name in names} == {**original, "inc": b"\x02", "hop": b"\x02"}
    assert k._text.patches == []
    k.close()
    assert m._sink is None
