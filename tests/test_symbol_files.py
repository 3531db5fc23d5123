"""Symbols from files that only name addresses: nm, kallsyms, linkers' maps, what Ghidra and IDA export."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from arches import PROGRAMS, RUNNABLE, programs_of

from kprobes import ImageError, UnicornMachine
from kprobes.image import read_elf
from kprobes.symbols import Symbols

pytestmark = pytest.mark.quick

NM = """\
                 U puts
0000000000401126 T main
0000000000401140 0000000000000020 t helper
0000000000404010 0000000000000004 D counter
not a line of nm's
"""
KALLSYMS = """\
ffffffff81000000 T _text
ffffffff81234560 t vfs_read
ffffffffc0001000 t ext4_read\t[ext4]
ffffffff82000000 D init_task
"""
LD_MAP = """\
Memory Configuration

Name             Origin             Length
Linker script and memory map

 .text          0x0000000000008000       0x40 main.o
                0x0000000000008000                reset
                0x0000000000008020                main
 .data          0x0000000020000000        0x4 main.o
                0x0000000020000000                state
                0x0000000000000400                _stack = 0x400
"""
LLD_MAP = """\
             VMA              LMA     Size Align Out     In      Symbol
          201000           201000       1b     4 .text
          201000           201000       1b     4         main.o:(.text)
          201000           201000        b     1                 main
          20100c           20100c        f     1                 helper
          202000           202000        4     4 .data
          202000           202000        4     4         main.o:(.data)
          202000           202000        4     1                 state
"""
IDA_MAP = """\
 Start         Length     Name                   Class
 0001:00010000 000000400H .text                  CODE
 0002:00020000 000000100H .data                  DATA

  Address         Publics by Value

 0001:00000000       start
 0001:00000120       parse
 0002:00000010       table
"""
GHIDRA = '"Name","Location","Type","Namespace"\n"FUN_00101139","00101139","Function","Global"\n"DAT_00104010","ram:00104010","Data Label","Global"\n'
IDA_FUNCTIONS = "Function name\tSegment\tStart\tLength\nsub_1130\t.text\t00001130\t0000002A\n"


def loaded(tmp_path: Path, text: str, **options: object) -> dict[str, tuple[int, int, str, str]]:
    path = tmp_path / "names"
    path.write_text(text)
    symbols = Symbols()
    assert symbols.load(path, **options) == len(symbols)  # type: ignore[arg-type]
    return {s.name: (s.address, s.size, s.kind, s.module) for s in symbols}


def test_nm(tmp_path: Path) -> None:
    assert loaded(tmp_path, NM) == {"main": (0x401126, 0, "func", ""), "helper": (0x401140, 32, "func", ""),
                                    "counter": (0x404010, 4, "object", "")}


def test_kallsyms_keeps_modules(tmp_path: Path) -> None:
    assert loaded(tmp_path, KALLSYMS)["ext4_read"] == (0xFFFFFFFFC0001000, 0, "func", "ext4")


def test_an_absolute_value_covers_nothing_behind_it(tmp_path: Path) -> None:
    """A kernel's offsets of its processors' data are below the code of programs, which has no name there."""
    (tmp_path / "names").write_text(f"000000000002d000 A __per_cpu_end\n{KALLSYMS}")
    symbols = Symbols()
    symbols.load(tmp_path / "names")
    assert symbols["__per_cpu_end"].address == 0x2D000
    assert symbols.covering(0x2D000) is not None and symbols.covering(0x401000) is None


def test_what_covers_an_address_is_what_a_search_of_all_symbols_finds() -> None:
    """Long symbols lie over short ones, two share an address, and gaps lie between them."""
    chance = random.Random(5)
    starts = [0x1000 + 16 * chance.randrange(400) for _ in range(120)]
    symbols = Symbols()
    for n, start in enumerate(starts):
        symbols.add(f"s{n}", start, chance.choice((4, 8, 40, 900)))
    for address in range(0xFF0, 0x1000 + 16 * 460, 4):
        found = symbols.covering(address)
        around = [s.address for s in symbols if s.address <= address < s.address + s.size]
        # of those at an address the preferred one counts
        best = [s for at in around for s in [symbols.at(at)[0]] if s.address <= address < s.address + s.size]
        assert (found and found.address) == max((s.address for s in best), default=None)


def test_files_lines_are_not_looked_for_among_mangled_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place of the source is tried as a name first: a big program has 16,000 to look through."""
    symbols = Symbols()
    symbols.add("_ZN3geo5Table6insertEi", 0x1000, 16)
    symbols.add("_ZN4core3ops8functionE.llvm.12", 0x2000, 16)
    assert "geo::Table::insert" in symbols
    monkeypatch.setattr("kprobes.symbols.perhaps_spelled", lambda *_: pytest.fail("names were searched"))
    assert "Table.cc:12" not in symbols and "src/geo.h" not in symbols


def test_maps_of_linkers(tmp_path: Path) -> None:
    wanted = {"reset": (0x8000, 0, "func", ""), "main": (0x8020, 0, "func", ""), "state": (0x20000000, 0, "object", "")}
    assert loaded(tmp_path, LD_MAP) == wanted
    assert loaded(tmp_path, LLD_MAP) == {"main": (0x201000, 11, "func", ""), "helper": (0x20100C, 15, "func", ""),
                                         "state": (0x202000, 4, "object", "")}


def test_what_disassemblers_export(tmp_path: Path) -> None:
    assert loaded(tmp_path, IDA_MAP) == {"start": (0x10000, 0, "func", ""), "parse": (0x10120, 0, "func", ""),
                                         "table": (0x20010, 0, "object", "")}
    assert loaded(tmp_path, GHIDRA) == {"FUN_00101139": (0x101139, 0, "func", ""),
                                        "DAT_00104010": (0x104010, 0, "object", "")}
    assert loaded(tmp_path, IDA_FUNCTIONS) == {"sub_1130": (0x1130, 0x2A, "func", "")}


def test_objects_of_json_without_an_address_are_left_out(tmp_path: Path) -> None:
    text = '[{"name": "main", "address": "0x8020", "size": "?"}, {"name": "nowhere"}, {"address": 16}]'
    assert loaded(tmp_path, text) == {"main": (0x8020, 0, "func", "")}


@pytest.mark.parametrize("text", ["0x8000 reset\n0x8020 main\n", "reset 8000h\nmain,0x8020\n"])
def test_plain_lists(tmp_path: Path, text: str) -> None:
    assert {name: row[0] for name, row in loaded(tmp_path, text).items()} == {"reset": 0x8000, "main": 0x8020}


def test_a_bias_and_a_module(tmp_path: Path) -> None:
    assert loaded(tmp_path, NM, bias=0x1000, module="prog")["main"] == (0x402126, 0, "func", "prog")


def test_thumb_functions_have_odd_addresses(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("0x10001 f\n")
    with UnicornMachine.from_code(bytes.fromhex("704700bf"), arch="arm") as m:
        m.symbols.load(tmp_path / "names")
        assert (m.symbols["f"].address, m.symbols["f"].mode) == (0x10000, 1)


def test_an_elf_file_of_the_same_code() -> None:
    file = PROGRAMS / "bin" / "arm64-O2.elf"
    with UnicornMachine.from_code(bytes(16), arch="arm64", base=0x400000) as m:
        assert m.symbols.load(file) > 20
        with UnicornMachine.load(file) as whole:
            assert m.symbols["test_crc"].address == whole.symbols["test_crc"].address


def test_a_real_nm_agrees_with_the_file(tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    file = PROGRAMS / "bin" / "x86_64-O2.elf"
    (tmp_path / "names").write_text(subprocess.run(["nm", "-S", file], capture_output=True, text=True,
                                                   check=True).stdout)
    by_nm, by_elf = Symbols(), Symbols()
    by_nm.load(tmp_path / "names")
    by_elf.load(file)
    assert {(s.name, s.address, s.size) for s in by_elf
            if s.kind == "func"} <= {(s.name, s.address, s.size) for s in by_nm}


@pytest.mark.parametrize("text", ["", "nothing\n", "\0\0\0"])
def test_files_without_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "names").write_text(text)
    with pytest.raises(ImageError, match="names no address"):
        Symbols().load(tmp_path / "names")


def test_a_cell_that_is_too_large(tmp_path: Path) -> None:
    """A table is read up to there: Python's reader of CSV gives up."""
    (tmp_path / "names").write_text(f'name,address\nmain,0x1000\n"{"a" * 200_000}",0x2000\n')
    symbols = Symbols()
    symbols.load(tmp_path / "names")
    assert [(symbol.name, symbol.address) for symbol in symbols] == [("main", 0x1000)]


def test_bad_formats_and_files(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no format 'x'"):
        Symbols().load(tmp_path, format="x")
    with pytest.raises(ImageError):
        Symbols().load(tmp_path / "none")


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files_are_errors(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    data = bytearray(random_.choice((NM, KALLSYMS, LD_MAP, LLD_MAP, IDA_MAP, GHIDRA, IDA_FUNCTIONS)).encode())
    for _ in range(20):
        data[random_.randrange(len(data))] = random_.randrange(256)
    (tmp_path / "names").write_bytes(data)
    try:
        Symbols().load(tmp_path / "names")
    except ImageError:
        pass


# --- how far symbols reach


def test_symbols_end_with_their_image() -> None:
    """Linkers' symbols have no size."""
    symbols = Symbols()
    symbols.add_image([(0x400000, 0x401000), (0x403000, 0x404000), (0x404000, 0x405000)])
    symbols.add_image([(0x500000, 0x502000)], "lib")
    symbols.add("f", 0x400100, 0x20)
    symbols.add("_DYNAMIC", 0x403800, kind="object")
    symbols.add("_end", 0x405000)
    symbols.add("last", 0x501000, module="lib")
    assert symbols.describe(0x404FFF) == "_DYNAMIC+0x17ff"
    assert [symbols.describe(addr) for addr in (0x402000, 0x405000, 0x406000, 0x500100)] == [
        "0x402000", "0x405000", "0x406000", "0x500100"]
    assert symbols.describe(0x501FFF) == "last+0xfff"
    assert symbols.describe(0x502000) == "0x502000"
    assert symbols.extent(symbols["_DYNAMIC"]) == 0x405000
    symbols.remove_module("lib")
    symbols.add("jit", 0x4F0000)  # somebody's own, in no image
    assert symbols.describe(0x500100) == "jit+0x10100"


def test_a_symbol_of_no_image_does_not_reach_without_end() -> None:
    """A kernel's symbol of an offset among its addresses."""
    symbols = Symbols()
    symbols.add("__per_cpu_end", 0x36000)
    symbols.add("_text", 0xFFFF800008000000)
    assert symbols.describe(0x36010) == "__per_cpu_end+0x10"
    assert symbols.describe(0x44A801D000000) == "0x44a801d000000"
    assert symbols.describe(0xFFFF800008000040) == "_text+0x40"
    symbols.add_image([(0x1000000, 0x1001000)], "lib")
    assert symbols.describe(0x1000010) == "0x1000010"


@pytest.mark.parametrize("path", [path for arch in RUNNABLE for path in programs_of(arch)[-1:]],
                         ids=lambda path: path.stem)
def test_no_symbol_reaches_into_another_image(path: Path) -> None:
    """Addresses all over a second copy of a program that a first one stands before: none is the first's."""
    with UnicornMachine.load(path) as m:
        image = read_elf(path.read_bytes(), "second")
        bias = 0x1000000
        m.symbols.add_image([(s.addr + bias, s.addr + s.memsz + bias) for s in image.segments], "second")
        for s in image.symbols[::2]:
            m.symbols.add(s.name, s.address + bias, s.size, "second", s.mode, s.kind)
        for segment in image.segments:
            for at in range(segment.addr + bias, segment.addr + bias + segment.memsz, 61):
                found = m.symbols.covering(at)
                assert found is None or found.module == "second", found
