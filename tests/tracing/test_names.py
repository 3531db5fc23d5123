"""Names of C++ and Rust as c++filt prints them (-i: without what an implementation hides), over those of big libraries."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kprobes import EventError, Kprobes, UnicornMachine, UnknownSymbol
from kprobes import names as names_module
from kprobes import symbols as symbols_module
from kprobes.names import _runtime, demangle, literal_words, plain, spellings

COUNT = int(os.environ.get("NAMES", "4000"))  #: names of each library that are compared
LIBRARIES = [*itertools.islice(itertools.chain(*(
    sorted(Path(folder).glob(pattern)) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
    for pattern in ("libstdc++.so.6", "libicui18n.so.*", "libLLVM*.so*"))), 4)]
needs = pytest.mark.skipif(shutil.which("c++filt") is None or _runtime() is None,
                           reason="there is no c++filt, or no C++ library")


def _names(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        for symbol in table.iter_symbols():
            if symbol.name.startswith("_Z"):
                yield symbol.name


def _filtered(names: list[str]) -> list[str]:
    done = subprocess.run(["c++filt", "-i"], input="\n".join(names) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@needs
@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.name)
def test_names_of_libraries(path: Path) -> None:
    names = sorted(set(_names(path)))
    names = random.Random(1).sample(names, min(COUNT, len(names)))
    wrong = [(name, got, want) for name, want in zip(names, _filtered(names), strict=True)
             if (got := demangle(name)) != want and got != name]
    # binutils and the C++ library are of different years: one writes more brackets
    assert [each for each in wrong if each[1].replace("(", "") != each[2].replace("(", "").replace("))", ")")
            and "decltype" not in each[1]] == []
    left = [name for name in names if demangle(name) == name]
    assert len(left) <= len(names) // 50, left[:5]


@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: path.name)
def test_words_that_stand_in_mangled_names(path: Path) -> None:
    """Symbols are looked for by these words before names are demangled: none may be missing in the mangled name."""
    names = sorted(set(_names(path)))
    names = random.Random(2).sample(names, min(COUNT, len(names)))
    missing = [(name, spelled, word) for name in names for spelled in spellings(name)
               for word in literal_words(spelled) if word not in name]
    assert missing == []


def test_few_names_are_demangled_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of big programs' hundred thousand; a glob's parts beside wildcards are no words."""
    asked = []
    for module in (names_module, symbols_module):
        monkeypatch.setattr(module, "demangle", lambda name: asked.append(name) or demangle(name))
    names = {f"_ZN5Table{len(name)}{name}Ei": 0x10000 + 2 * n
             for n, name in enumerate(["find", "insert", *(f"f{n}" for n in range(500))])}
    with UnicornMachine.from_code(b"\x90\xc3" * 600, arch="x86_64", symbols=names) as m, Kprobes(m) as k:
        assert m.symbols["Table::insert"].name == "_ZN5Table6insertEi" and asked == ["_ZN5Table6insertEi"]
        assert "Table::insert(int)" in m.symbols and "table.c" not in m.symbols and len(asked) == 2
        assert "0x10000" not in m.symbols and len(asked) == 2
        assert len(k.event("p 'Table::find'").places) == 1 and len(asked) <= 4
        assert len(k.event("p:g Table::inse*").places) == 1
    assert literal_words("geo::Sq*::are?[ab]c::of<std::vector<mine>>") == ["geo", "of", "vector", "mine"]


@needs
def test_names_that_were_wrong() -> None:
    names = ["_ZNK3geo6Square4areaEi", "_Z3putI3VecIiLi4EEEvT_", "_ZN3geo6SquareD1Ev", "_ZN3geo6SquareC2Ei",
             "_ZZ6drivervENKUliE_clEi.isra.0", "_Z1fILb1EEvv.constprop.0", "_ZN1AcvbEv", "_ZTV3Foo", "_ZGVZ1fvE1x",
             "_ZN12_GLOBAL__N_11fEv", "_Z1fRKSt6vectorIiSaIiEE", "_ZN1AIXadL_Z1gvEEE1fEv"]
    assert [demangle(name) for name in names] == _filtered(names)


def test_plain_names() -> None:
    assert [plain(name) for name in ("geo::Square::area(int) const", "f(void (*)(int))", "f(int) [clone .isra.0]", "g")] == [
        "geo::Square::area", "f", "f(int) [clone .isra.0]", "g"]


@pytest.mark.parametrize("name", [
    "_Z1f" + "1AIS_S_" * 40, "_Z1fI" + "".join(f"St4pairIS{n if n else ''}_S{n if n else ''}_E" for n in range(10)) * 30,
    "_Z1f" + "P" * 4000 + "i", "_Z1f" + "I" * 3000, "_ZN" + "1a" * 2000 + "E", "_R" + "I" * 3000, "_RNv" + "B_" * 1000,
    "_Z1fSt4pairIS_IiiES_IS0_S0_EES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_E" * 20, "_Z\udcff", "_Z1f\0v"])
def test_hostile_names(name: str) -> None:
    start = time.process_time()
    assert len(demangle(name)) < 1 << 22
    assert time.process_time() - start < 60  # what grows without bound takes hours


@pytest.mark.parametrize("levels", [16, 18, 19, 34])
def test_a_name_that_doubles_is_left_alone(levels: int) -> None:
    """Each level is twice as long as the one before: up to 2 to the power of 40 characters."""
    name, digits = "_Z1fSt4pairIiiE", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for n in range(levels):
        last = "_" if n == 0 else f"{digits[n - 1]}_"
        name += f"St4pairIS{last}S{last}E"
    start = time.process_time()
    assert len(demangle(name)) < 1 << 21
    assert time.process_time() - start < 60  # 0.06 s alone, a few times as much late in a suite


@needs
def test_names_as_people_write_them_are_hinted_at() -> None:
    """Of C++ and Rust; of many only those that share a word."""
    names = {"_ZN1b4areaEi": 0x10000, "_ZN1b4areaEd": 0x10002, "_Z6volumei": 0x10004, "_ZN1b5scaleIiEET_S1_": 0x10006,
             "_RNvNtC4shop4bank8withdraw": 0x10008, "main": 0x1000A, "circle": 0x1000C}
    with UnicornMachine.from_code(b"\x90\xc3" * 8, arch="x86_64", symbols=names) as m, Kprobes(m) as k:
        for name, meant in {"b::aera": "b::area", "b::scael<int>": "b::scale<int>", "volmue": "volume", "shop::bnak::withdraw":
                            "shop::bank::withdraw", "mian": "main", "_Z6volmuei": "_Z6volumei", "circel": "circle"}.items():
            with pytest.raises(UnknownSymbol, match=rf"did you mean {meant}\?"):
                m.symbols[name]
        with pytest.raises(EventError, match=r"did you mean b::area\?"):
            k.event("p b::aera")
        with pytest.raises(UnknownSymbol, match="lists what there is"):
            m.symbols["zzzzzzzzz"]


def test_few_names_are_demangled_for_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(names_module, "demangle", lambda name: asked.append(name) or demangle(name))
    names = {f"_ZN5Table{len(name)}{name}Ei": 0x10000 + 2 * n for n, name in enumerate(["find", *(f"f{n}" for n in range(3000))])}
    with UnicornMachine.from_code(b"\x90\xc3" * 3001, arch="x86_64", symbols=names) as m:
        for name, most in {"Tabel::find": 1, "Table::fnid": 2000, "Tabel::fnid": 2000}.items():
            asked.clear()
            with pytest.raises(UnknownSymbol):
                m.symbols[name]
            assert 0 < len(asked) <= most
