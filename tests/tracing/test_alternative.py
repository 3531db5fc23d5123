"""Debug information of which dwz -m has moved a part into a file for several programs, as Debian's packages have it."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kprobes import EventError, Kprobes, UnicornMachine, UnknownSymbol
from kprobes.debug.units import Units
from kprobes.events._lines import source_places
from kprobes.image import LoadedFile, alternative_link, find_alternative

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "alternative.tar.xz"
EVENTS = ("p:named look_first t->count t->nested[1].b s->in.y s->in.name:string s->flags s->colour colour s->u.i s->in",
          "p:inlined weigh%inlined times s->in.x", "p:line first.c:6 s->weight", "p:global look_first keep_first.link")
TYPES = ("struct shared", "struct inner", "table_t", "struct unused_b", "enum colour")

pytestmark = pytest.mark.quick


@pytest.fixture(params=["4", "5", "sup"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `plain`, `moved` and the file `moved` refers to; there is nothing in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / f"plain{request.param}").rename(tmp_path / "plain")
    (tmp_path / f"first{request.param}").rename(tmp_path / "moved")
    return tmp_path


def common(folder: Path) -> Path:
    """The file that `moved` refers to."""
    with UnicornMachine.load(folder / "moved") as m:
        data = m.symbols.files[0].data
    return next(path for path in folder.glob("common*.debug") if path.name.encode() in data)


def told(path: Path) -> dict[str, Any]:
    """What debug information says of a program, and what is recorded of a call."""
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        events = [k.event(text) for text in EVENTS]
        m.call("run")
        start = m.symbols["look_first"].address
        parameters = m.debug.parameters(start)
        assert parameters is not None
        return {
            "records": [(each.name, [record.args for record in each]) for each in events],
            "types": {name: (m.type(name).size, [*m.type(name).members], dict(m.type(name).values)) for name in TYPES},
            "parameters": [(one.name, one.type.name, one.type.size) for one in parameters],
            "frames": [m.debug.where(start + n) for n in range(m.symbols["look_first"].size)],
            "names": {name for name in m.debug.type_names() if "struct" in name},
            "variable": m.debug.variable("keep_first")[1].name,  # type: ignore[index]
        }


@pytest.mark.parametrize("without", ["", "kprobes.debug.units.copy_scanner", "kprobes.debug.units.quick_scanner",
                                     "kprobes.debug.units.place_scanner"])
def test_what_was_moved_is_found_as_before(folder: Path, without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By host code and without; types, parameters, inlined functions, places, values."""
    before = told(folder / "plain")
    assert before["records"][0][1][0]["name"] == "first" and before["records"][1][1][0] == {"times": 2, "x": 3}
    if without:
        monkeypatch.setattr(without, lambda *given: None)
    assert told(folder / "moved") == before


@pytest.mark.parametrize("without", ["", "kprobes.debug.units.copy_scanner", "kprobes.debug.units.quick_scanner"])
def test_inlined_functions_of_moved_classes_are_found(folder: Path, without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their entries are here, and their names are those of their declarations, which are in the other file."""
    def places(path: Path) -> list[Any]:
        with UnicornMachine.load(path) as m, Kprobes(m):
            texts = ("weigh%inlined", "Shape::weigh%inlined", "classes.cpp:6", "classes.cpp:8")
            return [source_places(text, m, f"p {text}", len("p ")) for text in texts]

    if without:
        monkeypatch.setattr(without, lambda *given: None)
    found = places(folder / "plain_classes")
    assert [each.inlined for some in found[:3] for each in some] == ["weigh", "Shape::weigh", "weigh"]
    assert places(folder / "classes") == found


def test_types_that_only_other_programs_import_are_not_found(folder: Path) -> None:
    assert b"only_in_others" in common(folder).read_bytes()
    with UnicornMachine.load(folder / "moved") as m, pytest.raises(UnknownSymbol, match="struct elsewhere: no such type"):
        m.type("struct elsewhere")


def test_the_file_is_found_as_gdb_finds_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path from the folder of the program, and by its build-id among the system's; another build is not taken."""
    wanted = common(folder)
    other = next(path for path in sorted(folder.glob("common*.debug")) if path != wanted)
    aside = folder / "aside"
    wanted.rename(aside)
    shutil.copy(other, wanted)
    refused = f"a part of the debug information of {folder / 'moved'} is in {wanted.name}, which is not here"
    with UnicornMachine.load(folder / "moved") as m, Kprobes(m) as k:
        with pytest.raises(UnknownSymbol) as missing:
            m.type("struct shared")
        assert refused in str(missing.value)
        for text in ("p look_first t", "p weigh%inlined"):
            with pytest.raises(EventError) as failed:
                k.event(text)
            assert refused in str(failed.value)
        assert k.event("p look_first $arg1").places  # what needs no more than symbols works
    _, identity = alternative_link((folder / "moved").read_bytes()) or ("", "")
    system = folder / "system" / ".build-id" / identity[:2]
    system.mkdir(parents=True)
    os.rename(aside, system / f"{identity[2:]}.debug")
    monkeypatch.setattr(find_alternative, "__defaults__", ((str(folder / "system"),),))
    with UnicornMachine.load(folder / "moved") as m:
        assert m.type("struct shared").size and not m.debug.lacking()


def test_any_file_is_none_where_no_identity_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (folder / "moved").read_bytes()
    path, found = find_alternative(data, str(folder / "moved"))
    monkeypatch.setattr("kprobes.image._separate.alternative_link", lambda data: (path, ""))
    assert found and find_alternative(data, str(folder / "moved")) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_that_is_named_is_not_read(folder: Path) -> None:
    """Nobody writes into it: it was waited for."""
    wanted = common(folder)
    wanted.unlink()
    os.mkfifo(wanted)
    assert find_alternative((folder / "moved").read_bytes(), str(folder / "moved")) is None


def test_one_without_debug_information_is_none(folder: Path) -> None:
    """It has the right identity. What the program itself has is read as before."""
    wanted = common(folder)
    wanted.write_bytes(wanted.read_bytes().replace(b".debug_info\0", b".other_info\0"))
    with UnicornMachine.load(folder / "moved") as m:
        assert "first.c:" in str(m.debug.where(m.symbols["look_first"].address))
        assert wanted.name in m.debug.lacking()


def test_names_are_kept_apart_for_a_file_with_and_without_its_other_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of types of the program's own are in the other file: what is noted without it is not what counts with it."""
    monkeypatch.setattr("kprobes.debug.units.SMALL", 0)
    wanted = common(folder)
    wanted.rename(folder / "aside")
    with UnicornMachine.load(folder / "moved") as m:
        before = [*m.debug.type_names()]
    (folder / "aside").rename(wanted)
    for _ in range(2):  # from the file, and from the cache
        with UnicornMachine.load(folder / "moved") as m:
            assert m.type("struct shared").size and {*before} < {*m.debug.type_names()}


def test_names_are_kept_apart_for_programs_that_import_others_of_its_units(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file may have no build-id, and is told by its contents then."""
    monkeypatch.setattr("kprobes.debug.units.SMALL", 0)
    path = common(folder)

    def found(only: frozenset[int]) -> int:
        units = Units(LoadedFile(path.read_bytes(), 0, "", str(path)), only=only)
        return len([*units.types("struct shared")])

    every = frozenset(each.offset for each in Units(LoadedFile(path.read_bytes(), 0, "", str(path))).headers)
    assert [found(only) for only in (frozenset(), every, frozenset())] == [0, 1, 0]
