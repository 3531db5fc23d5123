"""Split DWARF: what .dwo files and a .dwp tell is what the same program tells that has it in itself."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kprobes import EventError, Kprobes, UnicornMachine
from kprobes.cli import main
from kprobes.debug import units as units_module
from kprobes.debug.units import Units

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "split.tar.xz"
with tarfile.open(ARCHIVE) as archive:
    FILES = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
ARCHES = sorted({name.partition("/")[0] for name in FILES} - {"types", "types.4"})
pytestmark = pytest.mark.quick


def unpack(arch: str, folder: Path, *left_out: str) -> Path:
    """Write an architecture's files into a folder, but for some. Return the folder."""
    for name, data in FILES.items():
        own, _, file = name.partition("/")
        if own == arch and file not in left_out:
            (folder / file).write_bytes(data)
    return folder


def told(path: Path) -> list[object]:
    """What debug information tells of a program: its functions, lines, types, and values as it runs."""
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        found: list[object] = []
        for name in ("work", "weigh", "main"):
            symbol = m.symbols[name]
            found += [(line.path, line.line) for line in m.debug.lines(symbol.address, symbol.address + symbol.size)]
            found += [m.debug.names(symbol.address), m.debug.where(symbol.address + 8)]
        point = m.type("struct point")
        found += [(member.name, member.offset, member.type.name) for member in point.members.values()]
        found += [m.type("enum color").values, m.type("enum color").size]
        events = [k.event("p work n d x=p->x name=p->name:string"), k.event("p weigh c y=p->y"), k.event("r work $retval")]
        returned = m.call("main")
        records = [record.args for event in events for record in event]
        return [*found, returned, records]


@pytest.mark.parametrize("arch", ARCHES)
def test_dwo_files_tell_what_the_program_itself_would(arch: str, tmp_path: Path) -> None:
    unpack(arch, tmp_path, "split.dwp")
    expected = told(tmp_path / "whole")
    assert told(tmp_path / "split") == expected
    assert expected[-2] == 107


@pytest.mark.parametrize("arch", ["x86_64", "x86_64.4"])
def test_debug_information_is_read_by_need(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the program's two units an event with types and a list of lines read the one that has the function; the other
    is read for a type by its name, which may stand in any."""
    read: set[tuple[str, int]] = set()
    contents, lines = Units._contents, units_module.line_table

    def scanned(units: Units, n: int, *args: Any, **more: Any) -> Any:
        read.add(("entries", units.headers[n].offset))
        return contents(units, n, *args, **more)

    def with_lines(info: Any, unit: Any) -> Any:
        read.add(("lines", unit.cu_offset))
        return lines(info, unit)

    monkeypatch.setattr(Units, "_contents", scanned)
    monkeypatch.setattr(units_module, "line_table", with_lines)
    path = unpack(arch, tmp_path) / "whole"
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        event = k.event("p weigh c y=p->y")
        ((_, unit),) = read
        k.event("p:again weigh x=p->x")
        m.call("main")
        assert next(iter(event)).args["y"] == 4 and read == {("entries", unit)}
        m.type("struct point")
        assert len(read) == 2 and {kind for kind, _ in read} == {"entries"}
    read.clear()
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["list", str(path), "weigh:*"])
    assert read == {("entries", unit), ("lines", unit)}


@pytest.mark.parametrize("arch", ["x86_64", "x86_64.4"])
def test_a_dwp_does(arch: str, tmp_path: Path) -> None:
    unpack(arch, tmp_path, "shop.dwo", "item.dwo")
    assert told(tmp_path / "split") == told(tmp_path / "whole")


def test_lines_are_listed_without_the_dwo_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(unpack("x86_64", tmp_path, "shop.dwo", "item.dwo", "split.dwp") / "split")
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["list", path, "weigh:*", "--json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) > 3 and all(row["line"] and row["file"].endswith(".c") and row["n"] is None for row in rows)


@pytest.mark.parametrize("folder", ["types", "types.4"])
@pytest.mark.parametrize(("name", "left_out"), [("signed", ""), ("split", "split.dwp"), ("split", "split.dwo")])
def test_types_in_units_of_their_own(folder: str, name: str, left_out: str, tmp_path: Path) -> None:
    """They are named by signatures: `-fdebug-types-section`, without split DWARF and with it, in .dwo or .dwp."""
    unpack(folder, tmp_path, left_out)

    def seen(path: Path) -> list[object]:
        with UnicornMachine.load(path) as m, Kprobes(m) as k:
            start = next(symbol.address for symbol in m.symbols if "look" in symbol.name)
            types = [m.debug.type_of(start, each) for each in m.debug.names(start)]
            event = k.event(f"p {start:#x} side=b->side id=b->id c d")
            found = [m.call("main"), [record.args for record in event]]
            target = types[0] and types[0].target
            return [*found, [each and each.size for each in types], target and target.size, m.type("struct geo::Square").size]

    expected = seen(tmp_path / "whole")
    assert seen(tmp_path / name) == expected
    assert expected[3] == expected[4] == 16


def test_a_debug_file_has_its_programs_dwp(tmp_path: Path) -> None:
    """PROGRAM.debug, which the program names, and PROGRAM.dwp."""
    unpack("x86_64", tmp_path, "shop.dwo", "item.dwo")
    expected = told(tmp_path / "whole")
    if shutil.which("objcopy") is None:
        pytest.skip("there is no objcopy")

    def run(*words: str) -> None:
        subprocess.run(["objcopy", *words], cwd=tmp_path, check=True)
    run("--only-keep-debug", "split", "split.debug")
    run("--strip-debug", "--add-gnu-debuglink=split.debug", "split", "bare")
    assert told(tmp_path / "bare") == expected


def test_one_file_is_missing(tmp_path: Path) -> None:
    """Of its unit only lines are known, and the message says what to keep; the other one's are whole."""
    unpack("x86_64", tmp_path, "split.dwp", "item.dwo")
    with UnicornMachine.load(tmp_path / "split") as m, Kprobes(m) as k:
        assert m.debug.names(m.symbols["work"].address)[:2] == ["p", "n"]
        assert m.debug.names(m.symbols["weigh"].address) == []
        line = m.debug.line(m.symbols["weigh"].address)
        assert line is not None and line.path.endswith("item.c")
        with pytest.raises(EventError, match=r"\.dwo"):
            k.event("p weigh c")


def test_one_of_another_build(tmp_path: Path) -> None:
    unpack("x86_64", tmp_path, "split.dwp")
    (tmp_path / "item.dwo").write_bytes(FILES["x86_64/shop.dwo"])
    with UnicornMachine.load(tmp_path / "split") as m:
        assert m.debug.names(m.symbols["weigh"].address) == []
        assert m.debug.names(m.symbols["work"].address)


@pytest.mark.parametrize("arch", ["x86_64", "x86_64.4"])
@pytest.mark.parametrize("name", ["shop.dwo", "split.dwp"])
def test_damage(name: str, arch: str, tmp_path: Path) -> None:
    """A file with bytes turned or cut off tells what it tells, or nothing, and nobody falls over it."""
    unpack(arch, tmp_path, *({"shop.dwo", "split.dwp"} - {name}))
    whole = (tmp_path / name).read_bytes()
    chance = random.Random(name)
    for turn in range(30 if arch == "x86_64" else 15):
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[chance.randrange(len(data)):]
        else:
            for _ in range(chance.choice((1, 4, 40))):
                data[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / name).write_bytes(data)
        with UnicornMachine.load(tmp_path / "split") as m:
            start = m.symbols["work"].address
            line = m.debug.line(start)
            assert line is not None and line.path.endswith("shop.c")
            assert isinstance(m.debug.names(start), list)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """The file's name is the guest's choice."""
    unpack("x86_64", tmp_path, "split.dwp", "shop.dwo")
    os.mkfifo(tmp_path / "shop.dwo")
    with UnicornMachine.load(tmp_path / "split") as m:
        assert m.debug.names(m.symbols["work"].address) == []
