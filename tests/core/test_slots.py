"""SlotCache: executable memory in slots; reuse, garbage, nearness, areas given back. docs/linux.md A8."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scenes import Scene, hook, paper_machine

from kprobes import Kprobe, Kprobes
from kprobes.core.patch.slots import Areas, SlotCache
from kprobes.errors import NoMemory, OutOfReach
from kprobes.machine.paper import PaperMachine

SIZE = 0x400  # four slots in a page


class Kit:
    """A cache of four slots per area and a record of what it asked for."""

    def __init__(self, size: int = SIZE) -> None:
        self.m = PaperMachine(b"\x05")
        self.near: list[int] = []
        self.slots = SlotCache(self.m, Areas(self.m.page_size, self._take, self.m.unmap_code), size, b"\xcc")

    def _take(self, near: int, count: int) -> int:
        self.near.append(near)
        return self.m.map_code(near, count)

    def take(self, near: int = 0x1000, fill: Callable[[int], int] = lambda slot: slot) -> int:
        slot, made = self.slots.take(near, fill)
        assert made == fill(slot)
        return slot

    def free(self, slot: int, log: list[int] | None = None) -> None:
        self.slots.give_back(slot, lambda: None if log is None else log.append(slot))

    @property
    def areas(self) -> list[int]:
        return [start for start, _ in self.slots.ranges]


@pytest.fixture
def kit() -> Kit:
    return Kit()


def test_slots_are_distinct_and_one_area_serves_many(kit: Kit) -> None:
    taken = [kit.take() for _ in range(4)]
    assert len(set(taken)) == 4
    assert len(kit.areas) == 1
    assert sorted(taken) == [kit.areas[0] + n * SIZE for n in range(4)]
    kit.take()
    assert len(kit.areas) == 2


def test_a_new_area_is_asked_for_near_the_probed_text(kit: Kit) -> None:
    kit.take(0x1234)
    assert kit.near == [0x1234]
    kit.take(0x5678)
    assert kit.near == [0x1234], "there was room"


def test_unused_slots_hold_traps(kit: Kit) -> None:
    slot = kit.take(fill=lambda slot: kit.m.patch(slot, b"\x02\x05") or slot)
    area = kit.areas[0]
    assert kit.m.read(area, 0x1000).replace(b"\xcc", b"") == b"\x02\x05"
    kit.free(slot)
    kit.slots.collect(pc=0)
    assert kit.m.read(area, 0x1000) == b"\xcc" * 0x1000


def test_what_is_left_of_an_area_holds_traps() -> None:
    kit = Kit(0x300)
    kit.take()
    assert kit.m.read(kit.areas[0], 0x1000) == b"\xcc" * 0x1000


def test_garbage_is_reused_only_when_nobody_can_be_inside(kit: Kit) -> None:
    a, b = kit.take(), kit.take()
    done: list[int] = []
    kit.free(a, done)
    kit.free(b, done)
    assert done == []
    assert kit.take() not in (a, b), "not collected yet"
    kit.slots.collect(pc=a)
    assert done == [b], "a CPU is in a"
    assert kit.take() == b
    kit.slots.collect(pc=0)
    assert done == [b, a]
    assert kit.take() == a


def test_empty_areas_are_given_back_but_for_one(kit: Kit) -> None:
    taken = [kit.take() for _ in range(12)]
    assert len(kit.areas) == 3
    for slot in taken:
        kit.free(slot)
    kit.slots.collect(pc=0)
    assert len(kit.areas) == 1
    assert sum(page in kit.m._pages for page in range(0x4000, 0xC000, 0x1000)) == 1


def test_close_gives_everything_back(kit: Kit) -> None:
    before = sorted(PaperMachine(b"\x05")._pages)
    for _ in range(9):
        kit.take()
    kit.free(kit.take())
    kit.slots.close()
    assert kit.areas == []
    assert sorted(kit.m._pages) == before
    kit.take()


def test_membership(kit: Kit) -> None:
    slot = kit.take()
    area = kit.areas[0]
    assert area in kit.slots
    assert area + 0xFFF in kit.slots
    assert area - 1 not in kit.slots
    assert area + 0x1000 not in kit.slots
    assert kit.slots.slot_of(slot + 5) == slot
    assert kit.slots.slot_of(area + SIZE) == area + SIZE
    assert kit.slots.slot_of(0x1000) is None


def test_an_area_out_of_reach_is_passed_over(kit: Kit) -> None:
    far = kit.take()

    def fill(slot: int) -> int:
        if slot & -0x1000 == far & -0x1000:
            raise OutOfReach("too far", address=slot)
        return slot

    near = kit.take(0x2000, fill)
    assert near & -0x1000 != far & -0x1000
    assert kit.near[-1] == 0x2000
    assert kit.take(0x2000, fill) & -0x1000 == near & -0x1000, "the second area serves again"
    assert kit.take() & -0x1000 in (near & -0x1000, far & -0x1000)


def test_out_of_reach_everywhere_leaves_nothing_behind(kit: Kit) -> None:
    kit.take()
    before = kit.areas, kit.m.snapshot().keys()

    def fill(slot: int) -> int:
        raise OutOfReach("too far", address=slot)

    for _ in range(3):
        with pytest.raises(OutOfReach):
            kit.slots.take(0x1000, fill)
    assert (kit.areas, kit.m.snapshot().keys()) == before
    assert sorted(kit.take() for _ in range(3)) == [kit.areas[0] + n * SIZE for n in (1, 2, 3)], "no slot was lost"


def test_no_memory(kit: Kit) -> None:
    with pytest.raises(NoMemory, match="slots"):
        for _ in range(100):
            kit.take()
    assert len(kit.areas) == 8, "0x4000 to 0xC000"


class Runs:
    """A cache whose areas may have several units, and which of them are there."""

    def __init__(self, room: int = 1000) -> None:
        self.there: dict[int, int] = {}
        self.room = room  # units that may be in a row
        self.next = 0x4000
        self.slots = SlotCache(self, Areas(0x1000, self._take, self._give_back, several=True), SIZE, b"\xcc")  # type: ignore[arg-type]

    def _take(self, near: int, count: int) -> int:
        if count > self.room:
            raise NoMemory("no row as long", hint="ask for less")
        start, self.next = self.next, self.next + (count + 1) * 0x1000
        self.there[start] = count
        return start

    def _give_back(self, start: int, count: int) -> None:
        assert self.there.pop(start) == count

    def patch(self, addr: int, code: bytes) -> None:
        assert any(start <= addr and addr + len(code) <= start + count * 0x1000 for start, count in self.there.items())


def test_areas_grow_with_their_number() -> None:
    """Machines are slow at many mappings: four thousand units are some forty areas, and every slot is found in its
    own."""
    runs = Runs()
    slots = [runs.slots.take(0, lambda slot: slot)[0] for _ in range(16000)]
    assert len(set(slots)) == len(slots)
    assert len(runs.there) < 60
    assert sum(runs.there.values()) < 4000 * 1.3
    for slot in slots[::7]:
        assert slot + 5 in runs.slots
        assert runs.slots.slot_of(slot + SIZE - 1) == slot
    for start, count in runs.there.items():
        assert start - 1 not in runs.slots
        assert start + count * 0x1000 not in runs.slots
        assert runs.slots.slot_of(start + count * 0x1000) is None
    for slot in slots:
        runs.slots.give_back(slot, lambda: None)
    runs.slots.collect(pc=0)
    assert len(runs.there) == 1
    runs.slots.close()
    assert not runs.there


def test_where_no_long_area_has_room_or_is_in_reach_a_short_one_serves() -> None:
    tight = Runs(room=1)
    for _ in range(100):
        tight.slots.take(0, lambda slot: slot)
    assert set(tight.there.values()) == {1}
    runs = Runs()
    for _ in range(64):
        runs.slots.take(0, lambda slot: slot)
    before = dict(runs.there)

    def fill(slot: int) -> int:
        if runs.there.get(slot) != 1:
            raise OutOfReach("too far", address=slot)
        return slot

    slot, _ = runs.slots.take(0, fill)
    assert runs.there == {**before, slot: 1}


# --- as the probes use it


def test_ten_times_the_probes_a_page_holds_come_and_go(scene: Scene) -> None:
    """Registering and unregistering does not eat memory."""
    p = Kprobe(symbol_name="inc", pre_handler=hook("hit", scene.lines))
    regions = None
    for n in range(300):
        scene.k.register_kprobe(p)
        if n % 100 == 0:
            assert scene.play("inc", 4) == ["hit", "= 5"]
        scene.k.unregister_kprobe(p)
        if n == 10:
            regions = scene._regions()
    assert scene._regions() == regions


def test_probes_in_far_apart_text() -> None:
    """x86_64: a rip-relative instruction keeps its operand from a slot, so each text needs slots within 2 GiB."""
    from kprobes import UnicornMachine

    m = UnicornMachine.from_code("mov eax, dword ptr [rip + 10]; ret", arch="x86_64", symbols={"near": (0x10000, 7)})
    code = m.read(0x10000, 16)
    far = 0x7000_0000_0000 >> 1
    m.map(far, 0x1000, "rwx")
    m.write(far, code)
    m.symbols.add("far", far, 7)
    for base, value in ((0x10000, 11), (far, 22)):
        m.write(base + 16, value.to_bytes(4, "little"))
    assert (m.call("near"), m.call("far")) == (11, 22)
    hits: list[str] = []
    with Kprobes(m) as k:
        for name in ("near", "far"):
            k.register_kprobe(Kprobe(symbol_name=name, pre_handler=hook(name, hits), post_handler=hook("post", hits)))
        assert (m.call("near"), m.call("far")) == (11, 22)
        slots = [k.get_kprobe(base).slot for base in (0x10000, far)]
        assert all(abs(slot - base) < 1 << 31 for slot, base in zip(slots, (0x10000, far), strict=True))
    assert hits == ["near", "post", "far", "post"]


def test_a_slot_is_not_reused_while_its_handler_runs() -> None:
    """Unregistered from its own handler, its displaced instruction still executes: another probe gets another slot."""
    m = paper_machine()
    with Kprobes(m) as k:
        second = Kprobe(symbol_name="twice")

        def pre(p: Kprobe, regs) -> None:
            slot = k.get_kprobe(p.address).slot
            p.unregister()
            k.register_kprobe(second)
            assert k.get_kprobe(second.address).slot != slot

        k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, optimize=False))
        assert m.call("inc", 4) == 5
        assert m.call("twice", 4) == 6
        assert second.nhit == 1
