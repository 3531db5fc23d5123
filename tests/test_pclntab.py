"""Functions of stripped Go programs, from the table that the runtime needs. Its versions are those of Go's debug/gosym."""

from __future__ import annotations

import random
import struct
import time

import pytest

from kprobes import Kprobes, UnicornMachine
from kprobes.image._elf import Elf, Relocation
from kprobes.image._pclntab import V2, V16, V18, V20, GoFunction, functions, go_functions

pytestmark = pytest.mark.quick
TEXT = 0x10000
FUNCTIONS = [GoFunction("runtime.text", TEXT, 16), GoFunction("main.(*T[go.shape.int]).M", TEXT + 16, 32),
             GoFunction("main.main", TEXT + 48, 16)]
VERSIONS = [(V2, True), (V16, True), (V18, True), (V20, True), (V20, False)]


def table(magic: int, order: str, word: int, known: list[GoFunction], tells: bool = True) -> bytes:
    """A table; tells: where the text begins, which Go 1.26 leaves out."""
    end = "<" if order == "little" else ">"
    w = "Q" if word == 8 else "I"
    late = magic in (V18, V20)
    names, at = bytearray(b"\0"), []
    for f in known:
        at.append(len(names))
        names += f.name.encode() + b"\0"
    entry, base = ("I", TEXT) if late else (w, 0)
    rows_size = (2 * len(known) + 1) * struct.calcsize(end + entry)
    header = 8 + (8 if late else 7) * word if magic != V2 else 8 + word
    about_size = struct.calcsize(end + entry) + 4
    names_at = header if magic != V2 else header + rows_size + about_size * len(known)
    rows_at = header + len(names) if magic != V2 else header
    rows, about = b"", b""
    for n, f in enumerate(known):
        offset = rows_size + n * about_size + (header if magic == V2 else 0)
        rows += struct.pack(end + 2 * entry, f.address - base, offset)
        about += struct.pack(end + entry + "i", f.address - base, at[n] + (names_at if magic == V2 else 0))
    rows += struct.pack(end + entry, known[-1].address + known[-1].size - base)
    head = struct.pack(end + "IBBBB", magic, 0, 0, 1, word)
    if magic == V2:
        return head + struct.pack(end + w, len(known)) + rows + about + bytes(names)
    fields = [len(known), 0, *([TEXT if tells else 0] if late else []), names_at, 0, 0, 0, rows_at]
    return head + struct.pack(end + w * len(fields), *fields) + bytes(names) + rows + about


@pytest.mark.parametrize("word", [4, 8])
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(("magic", "tells"), VERSIONS)
def test_every_version_is_read(magic: int, tells: bool, order: str, word: int) -> None:
    assert list(functions(table(magic, order, word, FUNCTIONS, tells), order, TEXT)) == FUNCTIONS


@pytest.mark.parametrize(("magic", "tells"), VERSIONS)
def test_a_damaged_table_names_fewer_functions(magic: int, tells: bool) -> None:
    """Cut off or with other bytes: no error, no more functions than it has room for, and soon."""
    whole, rng, start = table(magic, "little", 8, FUNCTIONS, tells), random.Random(magic), time.process_time()
    for size in range(len(whole)):
        assert len(list(functions(whole[:size], "little", TEXT))) <= len(FUNCTIONS)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        found = list(functions(bytes(data), "little", TEXT))
        assert len(found) <= len(whole) and all(f.size > 0 and f.name for f in found)
    many = table(magic, "little", 8, [GoFunction("f", TEXT + n, 1) for n in range(20000)], tells)
    assert len(list(functions(many, "little", TEXT))) == 20000
    assert time.process_time() - start < 60  # a table read again for each function takes hours


def program(sections: list[tuple[str, int, bytes]]) -> bytes:
    """A static x86-64 program of sections (name, address, bytes), of which the first is code."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in sections) + b".shstrtab\0"
    body, rows = bytearray(0x1000), [bytes(64)]
    for name, address, data in sections:
        at = names.index(name.encode())
        rows.append(struct.pack("<IIQQQQIIQQ", at, 1, 2, address, len(body), len(data), 0, 0, 1, 0))
        body += data
    rows.append(struct.pack("<IIQQQQIIQQ", names.index(b".shstrtab"), 3, 0, 0, len(body), len(names), 0, 0, 1, 0))
    body += names
    code = sections[0]
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, code[1], 64, len(body), 0, 64, 56, 1, 64,
                       len(rows), len(rows) - 1)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, code[1], code[1], len(code[2]), len(code[2]), 0x1000)
    body[: len(head) + len(load)] = head + load
    return bytes(body) + b"".join(rows)


@pytest.mark.parametrize("name", [".gopclntab", ".data.rel.ro.gopclntab"])
def test_a_stripped_program_has_its_functions(name: str) -> None:
    code = b"\x90" * 47 + b"\xc3" + b"\xb8\x2a\0\0\0\xc3" + b"\xcc" * 10
    beyond = [*FUNCTIONS, GoFunction("lies.outside", TEXT + 64, 1 << 40)]
    for known in (FUNCTIONS, beyond):
        data = program([(".text", TEXT, code), (name, 0x20000, table(V2 if known is beyond else V20, "little", 8, known))])
        with UnicornMachine.load(data) as m, Kprobes(m) as k:
            assert {(s.name, s.address, s.size) for s in m.symbols} == {(f.name, f.address, f.size) for f in FUNCTIONS}
            with k.kprobe("main.main", pre_handler=lambda p, regs: None) as p:
                assert m.call("main.main") == 42
            assert p.nhit == 1
            assert m.symbols.describe(TEXT + 20) == "main.(*T[go.shape.int]).M+0x4"


@pytest.mark.parametrize("magic", [V2, V16, V18, V20])
def test_addresses_of_position_independent_programs(magic: int) -> None:
    """The file has zeros in place of them; relocations have the values."""
    known = table(magic, "little", 8, FUNCTIONS)
    starts = [known.find(struct.pack("<Q", f.address)) for f in FUNCTIONS] if magic in (V2, V16) else [24]
    if magic in (V2, V16):
        starts.append(known.find(struct.pack("<Q", TEXT + 64)))
    zeroed = bytearray(known)
    relocations = []
    for at in starts:
        relocations.append(Relocation(0x20000 + at, 8, 0, int.from_bytes(known[at : at + 8], "little")))
        zeroed[at : at + 8] = bytes(8)
    data = program([(".text", TEXT - 0x1000, bytes(0x1040)), (".gopclntab", 0x20000, bytes(zeroed))])
    assert list(go_functions(Elf(data, "pie"), relocations)) == FUNCTIONS
