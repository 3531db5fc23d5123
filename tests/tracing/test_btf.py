"""BTF: types and prototypes of programs without DWARF are what the same program's DWARF tells."""

from __future__ import annotations

import random
import tarfile
from pathlib import Path

import pytest

from kprobes import EventError, ImageError, KprobeError, Kprobes, UnicornMachine
from kprobes.debug import units

with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "btf.tar.xz") as archive:
    FILES = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
pytestmark = pytest.mark.quick


def unpack(arch: str, folder: Path) -> Path:
    """Write an architecture's files into a folder. Return the folder."""
    for name, data in FILES.items():
        if name.startswith(f"{arch}/"):
            (folder / name.partition("/")[2]).write_bytes(data)
    return folder


def told(path: Path, types: Path | None = None) -> list[object]:
    """What is known of a program: its types, prototypes, and events' values as it runs.

    Args:
        path: of the program.
        types: of a file of BTF that is loaded beside it.
    """
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        if types is not None:
            assert m.symbols.load(types) == 0
        found: list[object] = [str(m.type(name)) for name in ("struct point", "struct inner", "enum color", "enum wide")]
        members = m.type("struct point").members.values()
        found += [(each.name, each.offset, each.bits, each.shift, each.type.signed) for each in members]
        for name in ("weigh", "two"):
            address = m.symbols[name].address
            names = m.debug.names(address)
            shown = [m.debug.type_of(address, each) for each in names]
            found += [names, [each and each.name for each in shown], str(m.debug.result(address))]
        view = m.view("struct point", m.symbols["given"].address)
        found += [view.x, view.high, view.side, str(view.name), view.color, view.ok, view.wide, view.rows[2].a]
        events = ["p weigh x=p->x s=p->side h=p->high n=p->name:string c k", "p two n f", "r two $retval"]
        recorded = [k.event(event) for event in events]
        if "x86_64" in m.arch.name:
            recorded.append(k.event("p:all weigh $arg*"))
        result = m.call("main")
        return [*found, result, [record.args for event in recorded for record in event]]


@pytest.mark.parametrize("arch", ["x86_64", "s390x"])
def test_a_section_tells_what_dwarf_would(arch: str, tmp_path: Path) -> None:
    unpack(arch, tmp_path)
    expected = told(tmp_path / "dwarf")
    assert told(tmp_path / "btf") == expected


@pytest.mark.parametrize("arch", ["x86_64", "s390x"])
def test_a_file_does_beside_a_stripped_program(arch: str, tmp_path: Path) -> None:
    """As /sys/kernel/btf/vmlinux beside a kernel's names."""
    unpack(arch, tmp_path)
    assert told(tmp_path / "bare", tmp_path / "types") == told(tmp_path / "dwarf")


@pytest.mark.parametrize("arch", ["x86_64", "s390x"])
def test_entries_are_kept(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's types are turned into entries once; a damaged file of them is made again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(units, "SMALL", 0)
    unpack(arch, tmp_path)
    expected = told(tmp_path / "dwarf")
    made: list[object] = []
    make = units._made_of_btf
    monkeypatch.setattr(units, "_made_of_btf", lambda *given: made.append(given) or make(*given))
    for _ in range(2):
        assert told(tmp_path / "bare", tmp_path / "types") == expected
    count = len(made)
    assert count
    (kept,) = (tmp_path / "cache" / "kprobes" / "debug").glob("*.entries")
    whole = kept.read_bytes()
    for n, damage in enumerate((b"", whole[:60], whole[:-1], whole[:70] + b"?" + whole[71:]), 1):
        kept.write_bytes(damage)
        assert told(tmp_path / "bare", tmp_path / "types") == expected
        assert len(made) == count + n and kept.read_bytes() == whole


def test_functions_whose_names_come_later(tmp_path: Path) -> None:
    unpack("x86_64", tmp_path)
    with UnicornMachine.load(tmp_path / "bare") as m:
        m.symbols.load(tmp_path / "types")
        start = m.symbols["two"].address
        m.symbols.remove_module("")
        m.symbols.load(tmp_path / "types")
        assert m.debug.names(start) == []
        m.symbols.add("two", start)
        assert m.debug.names(start) == ["n", "f"]


def test_a_modules_types_count_on_from_the_programs(tmp_path: Path) -> None:
    unpack("x86_64", tmp_path)
    with UnicornMachine.load(tmp_path / "bare") as m:
        m.symbols.load(tmp_path / "types")
        m.symbols.load(tmp_path / "module", bias=0x500000, module="module")
        own = m.type("struct own")
        assert own.size == 24 and own.members["i"].type.target is not None
        assert own.members["i"].type.target.size == 6  # which only the program's own BTF defines
        assert m.debug.names(m.symbols["extra"].address) == ["o", "i"]


def test_damage(tmp_path: Path) -> None:
    """Sections with bytes turned or cut off tell what they tell, or nothing; a damaged file may be refused."""
    unpack("x86_64", tmp_path)
    whole = FILES["x86_64/types"]
    program = FILES["x86_64/btf"]
    at = program.index(whole)
    chance = random.Random(5)
    for turn in range(24):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 4, 40))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "btf").write_bytes(program[:at] + bytes(data) + program[at + len(whole):])
        cut = data[:chance.randrange(2, len(data))] if turn % 3 == 0 else data
        (tmp_path / "types").write_bytes(cut)
        for path, more in (("btf", None), ("bare", "types")):
            with UnicornMachine.load(tmp_path / path) as m, Kprobes(m) as k:
                try:
                    if more is not None:
                        m.symbols.load(tmp_path / more)
                    str(m.type("struct point"))
                    k.event("p weigh p k")
                except KprobeError:
                    pass
                assert isinstance(m.debug.names(m.symbols["weigh"].address), list)


def test_what_is_no_btf(tmp_path: Path) -> None:
    unpack("x86_64", tmp_path)
    (tmp_path / "cut").write_bytes(FILES["x86_64/types"][:200])
    with UnicornMachine.load(tmp_path / "bare") as m:
        with pytest.raises(ImageError, match="cut off"):
            m.symbols.load(tmp_path / "cut")
        with pytest.raises(ImageError, match="no BTF"):
            m.symbols.load(tmp_path / "bare", format="btf")


@pytest.mark.parametrize("file", ["btf", "dwarf"])
def test_whatever_is_not_0_is_true(file: str, tmp_path: Path) -> None:
    """As C 6.3.1.2 has it, and gdb's `set var`."""
    with UnicornMachine.load(unpack("x86_64", tmp_path) / file) as m:
        view = m.view("struct point", m.symbols["given"].address)
        member = m.type("struct point").members["ok"]
        for value, stored in ((256, 1), (0, 0), (-2, 1), (False, 0)):
            view.ok = value
            assert m.read(m.symbols["given"].address + member.offset, 1) == bytes([stored])
            assert view.ok is bool(stored)


@pytest.mark.parametrize("arch", ["x86_64", "s390x"])
def test_a_parameter_in_the_body_is_refused(arch: str, tmp_path: Path) -> None:
    """BTF has no locations: a function's entry is the only place where its parameters are known."""
    with UnicornMachine.load(unpack(arch, tmp_path) / "btf") as m, Kprobes(m) as k:
        weigh = m.symbols["weigh"].address
        inside = next(n for n in range(5, 40) if k.check(weigh + n).probeable)
        for fetch in "c", "p->x", "k:u8":
            with pytest.raises(EventError, match="BTF does not say where parameters are behind the entry"):
                k.event(f"p weigh+{inside} {fetch}")
        with pytest.raises(EventError, match="known at function entry only"):
            k.event(f"p weigh+{inside} $arg1")
        event = k.event("p weigh c")
        m.call("main")
        assert next(iter(event)).args["c"] == 5
