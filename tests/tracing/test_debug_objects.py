"""Debug information of files that nobody has linked: it follows their sections to where they were loaded."""

from __future__ import annotations

import io
import tarfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from debug_guests import load as linked_guest
from elftools.elf.elffile import ELFFile

from kprobes import Kprobes, UnicornMachine

pytestmark = pytest.mark.quick
DATA = Path(__file__).resolve().parents[1] / "data"


def _read(name: str) -> dict[str, bytes]:
    with tarfile.open(DATA / name) as archive:
        files = ((m.name, archive.extractfile(m)) for m in archive.getmembers())
        return {name.removesuffix(".o"): file.read() for name, file in files if file is not None}


OBJECTS, MARKED = _read("debug_objects.tar.xz"), _read("sdt_objects.tar.xz")
LOADABLE = [name for name in OBJECTS if name != "armeb-eh"]  # Unicorn runs linked files of that kind only


def load(name: str, base: int | None = None) -> UnicornMachine:
    return UnicornMachine.load(OBJECTS[name], name=name, base=base,
                               arch="cortexm" if name.startswith("cortexm") else None)


@pytest.mark.parametrize("base", [None, 0x50_0000])
@pytest.mark.parametrize("name", LOADABLE)
def test_an_object_file_says_what_its_linked_file_says(name: str, base: int | None) -> None:
    """Lines of all code of a function, parameters, types, and values at hits."""
    with load(name, base) as m, Kprobes(m) as k, linked_guest(name) as other:
        for function in ("table_insert", "outer"):
            mine, theirs = (machine.symbols[function] for machine in (m, other))
            lines = [[(line.path, line.line, line.address - s.address)
                      for line in machine.debug.lines(s.address, s.address + s.size)]
                     for machine, s in ((m, mine), (other, theirs))]
            assert lines[0] == lines[1] != []
            assert ([(v.name, v.type.name) for v in m.debug.parameters(mine.address) or ()]
                    == [(v.name, v.type.name) for v in other.debug.parameters(theirs.address) or ()] != [])
        e, seen = k.event("p:t table_insert $arg*", stack=True), list[Any]()
        with k.kprobe("table_insert", pre_handler=lambda p, regs: seen.append(regs.local("value"))):
            m.call("outer", 1)
        record = next(iter(e))
        assert seen[0] == record.args["value"] == 640 and record.args["table"] == m.symbols["the_table"].address
        assert [m.symbols.describe(each).partition("+")[0] for each in record.stack[:2]] == ["table_insert", "outer"]
        assert m.view("struct table *", m.symbols["the_table"].address).count == 1


@pytest.mark.parametrize("name", ["x86_64-eh", "mips-eh", "riscv64-eh"])
def test_damaged_relocations_leave_the_program_and_take_the_information(name: str) -> None:
    raw = bytearray(OBJECTS[name])
    file = ELFFile(io.BytesIO(OBJECTS[name]))
    section = next(s for s in file.iter_sections() if s.name in (".rela.debug_info", ".rel.debug_info"))
    raw[section["sh_offset"]:section["sh_offset"] + section["sh_size"]] = b"\xff" * section["sh_size"]
    with UnicornMachine.load(bytes(raw), name=name) as m:
        address = m.symbols["table_insert"].address
        assert m.debug.parameters(address) is None and m.debug.line(address) is None
        assert m.call("outer", 1) is not None


@pytest.mark.parametrize("name", [name for name in MARKED if name != "armeb-sdt"])
def test_markers_are_where_their_sections_are(name: str) -> None:
    arch = "cortexm" if name.startswith("cortexm") else None
    with UnicornMachine.load(MARKED[name], name=name, arch=arch) as m, Kprobes(m) as k:
        e = k.event("p:w %lab:work n=$arg1 text=+0($arg2):string number=$arg3 small=$arg4")
        m.call("call", 1)
        assert [dict(r.args) for r in e] == [{"n": 1, "text": "height", "number": -7, "small": 1},
                                             {"n": -5, "text": "width", "number": -7, "small": 9}]
        busy = next(marker for marker in m.debug.markers() if marker.name == "busy")
        assert busy.semaphore and m.read(busy.semaphore, 2) == bytes(2)
        with k.event("p:b %lab:busy"):
            assert m.read(busy.semaphore, 2) != bytes(2)


@pytest.mark.parametrize("name", ["x86_64-eh", "s390x-eh"])
def test_compressed_sections_are_relocated_too(name: str) -> None:
    """As gcc -gz leaves them: the same, behind a header that tells the size."""
    raw = bytearray(OBJECTS[name])
    file = ELFFile(io.BytesIO(OBJECTS[name]))
    order: Any = "little" if file.little_endian else "big"
    for n, section in enumerate(file.iter_sections()):
        if section.name in (".debug_info", ".debug_line", ".debug_addr"):
            data = section.data()
            packed = b"".join((1 if i < 1 else 0).to_bytes(4, order) for i in range(2)) + len(data).to_bytes(8, order)
            packed += (1).to_bytes(8, order) + zlib.compress(data)
            head = file.header["e_shoff"] + n * file.header["e_shentsize"]
            for at, value in ((8, section["sh_flags"] | 0x800), (24, len(raw)), (32, len(packed))):
                raw[head + at:head + at + 8] = value.to_bytes(8, order)
            raw += packed
    with UnicornMachine.load(bytes(raw), name=name) as m, load(name) as plain:
        address = m.symbols["table_insert"].address
        assert m.debug.lines(address, address + 64) == plain.debug.lines(address, address + 64) != []
        assert [v.name for v in m.debug.parameters(address) or ()] == ["table", "key", "value"]
