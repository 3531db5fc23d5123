"""Where no probe may go. docs/linux.md A10, B1 row 9, E."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest
from arches import PROGRAMS, RUNNABLE, programs_of
from scenes import Scene, paper_machine

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.errors import BadLocation, Blacklisted, NotText, UnknownSymbol


def extent(scene: Scene, name: str) -> tuple[int, int]:
    symbol = scene.m.symbols[name]
    return symbol.address, symbol.address + symbol.size


def test_a_symbol_forbids_the_whole_function(scene: Scene) -> None:
    start, end = extent(scene, "twice")
    assert scene.k.blacklist.add("twice") == end - start, "function size in bytes"
    assert [addr in scene.k.blacklist for addr in (start - 1, start, end - 1, end)] == [False, True, True, False]
    for n in range(3):
        with pytest.raises(Blacklisted):
            scene.k.register_kprobe(Kprobe(addr=scene.at("twice", n)))
    scene.k.register_kprobe(Kprobe(symbol_name="inc"))


def test_a_range(scene: Scene) -> None:
    start, _ = extent(scene, "twice")
    first, second = scene.at("twice"), scene.at("twice", 1)
    assert scene.k.blacklist.add((start, second)) == second - start
    with pytest.raises(Blacklisted) as raised:
        scene.k.register_kprobe(Kprobe(addr=first))
    assert raised.value.errno == errno.EINVAL
    scene.k.register_kprobe(Kprobe(addr=second))


def test_remove(scene: Scene) -> None:
    scene.k.blacklist.add("twice")
    scene.k.blacklist.add((0x10, 0x20))
    scene.k.blacklist.remove("twice")
    assert scene.at("twice") not in scene.k.blacklist
    assert 0x10 in scene.k.blacklist
    scene.k.blacklist.remove((0x10, 0x20))
    assert 0x10 not in scene.k.blacklist
    scene.k.register_kprobe(Kprobe(symbol_name="twice"))


@pytest.mark.parametrize("what", ["twice", (0x10, 0x20)])
def test_removing_what_is_not_there(scene: Scene, what: str | tuple[int, int]) -> None:
    with pytest.raises(BadLocation, match="not on the blacklist"):
        scene.k.blacklist.remove(what)


def test_bad_entries(scene: Scene) -> None:
    with pytest.raises(UnknownSymbol) as unknown:
        scene.k.blacklist.add("twise")
    assert "twice" in str(unknown.value)
    for empty in ((0x20, 0x20), (0x20, 0x10)):
        with pytest.raises(BadLocation, match="empty"):
            scene.k.blacklist.add(empty)
    scene.m.symbols.add("last", 0x7FFF0000)  # no size, and nothing after it
    with pytest.raises(NotText):
        scene.k.blacklist.add("last")
    assert list(scene.k.blacklist) == []


@pytest.fixture
def suffixed() -> Iterator[Kprobes]:
    functions = ("inc", "inc.cold", "inc.part.0", "twice", "twice.cold", "increment.cold")
    with Kprobes(paper_machine(**dict.fromkeys(functions, "nop; nop; ret"))) as k:
        yield k


def probeable(k: Kprobes) -> list[str]:
    return [symbol.name for symbol in k.machine.symbols if k.check(symbol.name).probeable]


def test_a_suffix_is_forbidden_with_its_base(suffixed: Kprobes) -> None:
    """`name.suffix` (name.cold, name.part.0, name.constprop.0) is forbidden with `name`, wherever it lies."""
    suffixed.blacklist.add("inc")
    for forbidden in ("inc", "inc.cold", "inc.part.0"):
        with pytest.raises(Blacklisted, match="inc is blacklisted") as raised:
            suffixed.register_kprobe(Kprobe(symbol_name=forbidden))
        assert raised.value.symbol == forbidden
    assert probeable(suffixed) == ["twice", "twice.cold", "increment.cold"]


def test_the_base_need_not_be_named(suffixed: Kprobes) -> None:
    """What counts is that the base function lies in a forbidden range (docs/linux.md B1: "via base name")."""
    symbols = suffixed.machine.symbols
    suffixed.blacklist.add((symbols["inc.part.0"].address, symbols["twice.cold"].address))
    assert probeable(suffixed) == ["inc", "inc.cold", "increment.cold"]


def test_a_range_within_the_base_does_not_forbid_the_suffix(suffixed: Kprobes) -> None:
    start = suffixed.machine.symbols["twice"].address
    suffixed.blacklist.add((start + 1, start + 2))
    assert {"twice", "twice.cold"} <= set(probeable(suffixed))
    with pytest.raises(Blacklisted):
        suffixed.register_kprobe(Kprobe(symbol_name="twice", offset=1))


def test_forbidding_the_suffix_leaves_the_base(paper: Scene) -> None:
    paper.m.symbols.add("inc.cold", paper.at("twice"), 3)
    paper.k.blacklist.add("inc.cold")
    paper.k.register_kprobe(Kprobe(symbol_name="inc"))


def test_the_librarys_own_pages(scene: Scene) -> None:
    scene.probe("a")
    slot = scene.k.get_kprobe(scene.at("inc")).slot
    assert slot in scene.k.blacklist
    for addr in (slot, slot & -0x1000, (slot & -0x1000) + 0xFFC):
        with pytest.raises(Blacklisted, match="library's own") as raised:
            scene.k.register_kprobe(Kprobe(addr=addr))
        assert raised.value.address == addr
    assert any(start <= slot < end for start, end, _ in scene.k.blacklist)


def test_iteration_is_by_address(paper: Scene) -> None:
    k = paper.k
    k.blacklist.add("twice")
    k.blacklist.add("inc")
    k.blacklist.add((0x100, 0x200))
    (a, b), (c, d) = extent(paper, "inc"), extent(paper, "twice")
    assert list(k.blacklist) == [(0x100, 0x200, ""), (a, b, "inc"), (c, d, "twice")]


def test_adding_twice_is_adding_once(paper: Scene) -> None:
    paper.k.blacklist.add("inc")
    paper.k.blacklist.add("inc")
    assert len(list(paper.k.blacklist)) == 1
    paper.k.blacklist.remove("inc")
    assert paper.at("inc") not in paper.k.blacklist


def test_probes_that_are_there_already_stay(scene: Scene) -> None:
    """As in Linux the blacklist is consulted when a probe is registered."""
    p = scene.probe("a")
    scene.k.blacklist.add("inc")
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]
    scene.k.disable_kprobe(p)
    scene.k.enable_kprobe(p)
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


def test_the_file_byte_for_byte(paper: Scene) -> None:
    """docs/linux.md E: 0x<16-hex start>-0x<16-hex end>, a tab, the symbol."""
    paper.k.blacklist.add("twice")
    paper.k.blacklist.add((0x100, 0x200))
    start, end = extent(paper, "twice")
    assert paper.k.format_blacklist() == f"0x0000000000000100-0x0000000000000200\t0x100\n0x{start:016x}-0x{end:016x}\ttwice\n"


def test_our_own_pages_are_in_the_file(paper: Scene) -> None:
    assert paper.k.format_blacklist() == ""
    paper.probe("a")
    page = paper.k.get_kprobe(paper.at("inc")).slot & -0x1000
    assert f"0x{page:016x}-0x{page + 0x1000:016x}\tkprobe_insn_page\n" in paper.k.format_blacklist()


@pytest.mark.parametrize("stem", sorted(path.stem for arch in RUNNABLE for path in programs_of(arch)
                                        if path.stem.endswith("-O2")))
def test_a_name_forbids_the_functions_code(stem: str) -> None:
    """Also where the symbol is that of a descriptor, and where calls arrive behind the first instructions."""
    with UnicornMachine.load(PROGRAMS / "bin" / f"{stem}.elf") as m, Kprobes(m) as k:
        start, size = k.check("test_crc").addr, k.blacklist.add("test_crc")
        entry = m.arch.pointers.code_address(m.symbols["test_crc"].address, m.read).addr
        assert size > 20 and entry <= start < entry + size
        assert [(first, end) for first, end, name in k.blacklist if name == "test_crc"] == [(entry, entry + size)]
        for probe in Kprobe(symbol_name="test_crc"), Kretprobe(symbol_name="test_crc"), Kprobe(addr=start):
            with pytest.raises(Blacklisted):
                k.register(probe)
        assert not k.check("test_crc").probeable and k.check("test_strings").probeable
        k.blacklist.remove("test_crc")
        k.register(Kprobe(symbol_name="test_crc"))
