"""What reads text and files that others wrote: each parser, and inputs to begin from.

A parser is a function of bytes. It returns, or raises a KprobeError; anything else is a defect.
`python tests/fuzzers/parsers.py SECONDS [NAME ...]` mutates for that long and prints what was wrong.

Inputs to begin from are seeds, which are right, and those of the folder corpus/, most of which are
wrong: each executes lines of the library that the others of its parser do not. With --grow the
command adds to that folder what it finds of this kind.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from attrs import frozen
from stub import damaged_replies, damaged_session, sound_replies

from kprobes import KprobeError, Kprobes, Program, ScriptError, Symbols, Trace, UnicornMachine
from kprobes.board import Board
from kprobes.board.svd import read_svd
from kprobes.events import parse_event
from kprobes.machine.remote.packets import frame
from kprobes.script.script import Script

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).resolve().parent / "corpus"
LARGEST = 16384  #: bytes of an input that is kept in the corpus
DATA = ROOT / "tests" / "data"
DEMO = ROOT / "examples" / "demo.x86_64"


@frozen
class Parser:
    """
    Attributes:
        parse: is given an input.
        seeds: inputs that are right.
        words: what mutations insert, besides bytes.
        sound: parses an input that has to be right, where `parse` accepts wrong ones without an error; None: it is `parse`.
    """

    parse: Callable[[bytes], Any]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()
    sound: Callable[[bytes], Any] | None = None


def on_file(parse: Callable[[str], Any], suffix: str) -> Callable[[bytes], Any]:
    """A parser of files as a function of bytes."""
    def of(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, f"input{suffix}")
            Path(path).write_bytes(data)
            parse(path)

    return of


def _member(archive: str, ending: str) -> bytes:
    """The first file of an archive of tests/data whose name has this ending."""
    with tarfile.open(DATA / archive) as found:
        member = next(m for m in found.getmembers() if m.isfile() and m.name.endswith(ending))
        file = found.extractfile(member)
        assert file is not None
        return file.read()


#: what symbols are read from, besides ELF files
FORMATS = ("nm", "map", "ida", "idc", "json", "table")


def _symbols(data: bytes) -> None:
    """The first byte says which format the others are in."""
    format = FORMATS[data[0] % len(FORMATS)] if data else FORMATS[0]
    on_file(lambda path: Symbols().load(path, format=format), ".txt")(data[1:])


def _elf(data: bytes) -> None:
    with UnicornMachine.load(data) as machine:
        list(machine.symbols)


def _debug(data: bytes) -> None:
    with UnicornMachine.load(data) as machine:
        for symbol in list(machine.symbols)[:40]:
            machine.debug.where(symbol.address)
            machine.debug.function(symbol.address)
        for name in ("struct item", "int", "unsigned long"):
            try:
                machine.type(name)
            except KprobeError:
                continue


def _recording() -> bytes:
    """A file of records."""
    with UnicornMachine.load(DEMO) as machine, Kprobes(machine) as k, tempfile.TemporaryDirectory() as folder:
        with k.trace("p fib n=$arg1", "r crc32 $retval", stack=True) as trace:
            machine.call("fib", 4)
            machine.call("crc32", 0, b"hello", 5)
        trace.save(Path(folder) / "x.arrow")
        return (Path(folder) / "x.arrow").read_bytes()


#: of what machine.symbols.export() does not write, a file each
LINKER = b""" .text          0x0000000000401000       0x30 main.o
                0x0000000000401000                main
"""
IDA = b""" Start         Length     Name                   Class
 0001:00401000 000001000H .text                  CODE

  Address         Publics by Value

 0001:00000010       main
"""


def _names(machine: UnicornMachine) -> Iterator[bytes]:
    """A file of each format, with its number in front."""
    def export(format: str) -> bytes:
        return machine.symbols.export(format, "f*").encode()

    files = {"nm": export("map"), "map": LINKER, "ida": IDA, "idc": export("ida"), "json": export("binja"),
             "table": export("ghidra")}
    return (bytes([FORMATS.index(name)]) + data for name, data in files.items())


def _object() -> bytes:
    """A compiled program with a map, or the head of one where there is no compiler."""
    try:
        from kprobes.programs.object.clang import compiled

        return compiled(OBJECT, "seed.c", ())
    except KprobeError:
        return b"\x7fELF\x02\x01\x01"


OBJECT = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, u32); __type(value, u64); } m SEC(".maps");
SEC("kprobe/crc32") int f(struct pt_regs *ctx) {
    u32 key = 1; u64 *found = bpf_map_lookup_elem(&m, &key);
    if (found) *found += 1;
    bpf_printk("%d", key);
    return 0;
}
"""


def parsers() -> Mapping[str, Parser]:
    """All of them, by name."""
    machine = UnicornMachine.load(DEMO)
    k = Kprobes(machine)
    debugged = _member("debug.tar.xz", "")
    replies = sound_replies()
    packets = b"".join(b"+" + frame(line) for line in replies.split(b"\n"))
    event = "p:g/name crc32 a=+8(%di):u32 b=$arg3:x64 c=@crc32:string d=-4(+8($stack1)):b3@2/8 e=%ax:u8"
    return {
        "events": Parser(lambda data: parse_event(data.decode(errors="surrogateescape"), machine),
                         (event.encode(), b"r10:x fib $retval:s64", b"w:wp w@0x401000:4"),
                         (b"$arg1", b"+0(", b")", b":string", b"\\1", b"@", b"%", b"[9]", b"$comm")),
        "scripts": Parser(lambda data: Script(data.decode(errors="surrogateescape"), kprobes=k),
                          (b'begin { @a[1, "x"] = count(); printf("%d %s\\n", 3, "y"); } end { clear(@a); }',
                           b"kprobe:crc32 / arg2 > 3 / { $n = (uint8)arg2; @h = hist($n); if ($n == 5) { print(@h); } }"),
                          (b"{", b"}", b"@x", b"$y", b"=", b"hist(", b"for (", b"/*", b'"', b"1 << 70", b"kprobe:f")),
        "symbols": Parser(_symbols, tuple(_names(machine))),
        "elf": Parser(_elf, (DEMO.read_bytes(), (ROOT / "examples" / "licence.armhf").read_bytes())),
        "debug information": Parser(_debug, (debugged,)),
        "objects": Parser(Program.from_elf, (_object(),)),
        "boards": Parser(on_file(Board.load, ".toml"),
                         tuple(path.read_bytes() for path in (DATA / "board.toml", ROOT / "examples" / "firmware.toml")),
                         (b"[", b"]", b"=", b'"', b"0x", b"size", b"ram", b"devices")),
        "svd": Parser(on_file(read_svd, ".svd"), ((DATA / "chip.svd").read_bytes(),),
                      (b"<", b">", b"</", b"<peripheral>", b"&x;")),
        "recordings": Parser(on_file(Trace.load, ".arrow"), (_recording(),)),
        "packets": Parser(damaged_session, (packets,), (b"$", b"#", b"-", b"+", b"$E01#a6", b"$T05#b9", b"}", b"*~"),
                          partial(damaged_session, sound=True)),
        "replies": Parser(damaged_replies, (replies,),
                          (b"\n", b"E01", b"T05thread:p1.1;", b"W00", b"X0b", b"Fwrite,1,10,2", b"O41", b"l", b"m", b"x", b"*~", b"}"),
                          partial(damaged_replies, sound=True)),
    }


def mutated(seeds: tuple[bytes, ...], words: tuple[bytes, ...], random: random.Random) -> bytes:
    """A seed with some bytes changed, left out, put in, doubled, or cut off."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        at = random.randrange(len(data) + 1)
        many = random.choice((1, 1, 2, 4, 8))
        match random.randrange(6):
            case 0:
                data[at:at + many] = random.randbytes(many)
            case 1:
                del data[at:at + many * random.choice((1, 8))]
            case 2:
                data[at:at] = random.choice(words) if words else random.randbytes(many)
            case 3:
                data[at:at] = data[at:at + many * 8]
            case 4:
                data[at:at + many] = random.choice((b"\x00", b"\xff", b"\x7f", b"\x80")) * many
            case 5 if random.random() < 0.1:
                del data[at:]
    return bytes(data)


def defects(parser: Parser, inputs: Iterator[bytes]) -> Iterator[tuple[bytes, str]]:
    """(input, traceback) for each that raises what it should not."""
    for data in inputs:
        try:
            parser.parse(data)
        except (KprobeError, ScriptError):
            continue
        except Exception:
            yield data, traceback.format_exc(limit=-6)


def corpus(name: str) -> tuple[bytes, ...]:
    """The inputs that are kept for a parser."""
    return tuple(path.read_bytes() for path in sorted((CORPUS / name.replace(" ", "-")).glob("*")))


def lines_of(parser: Parser, data: bytes) -> set[tuple[str, int]]:
    """The lines of the library that a parser executes for an input: (file, number) each."""
    found: set[tuple[str, int]] = set()
    ours = str(ROOT / "kprobes")

    def local(frame: FrameType, event: str, _: Any) -> Any:
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(ours) else None

    sys.settrace(entered)
    try:
        list(defects(parser, iter([data])))
    finally:
        sys.settrace(None)
    return found


def grow(name: str, parser: Parser, seconds: float) -> int:
    """Add mutated inputs that execute further lines to a parser's corpus, and return how many."""
    chance, end, added = random.Random(time.time_ns()), time.monotonic() + seconds, 0
    inputs = [*parser.seeds, *corpus(name)]
    seen = set[tuple[str, int]]().union(*(lines_of(parser, data) for data in inputs))
    folder = CORPUS / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    while time.monotonic() < end:
        data = mutated(tuple(inputs), parser.words, chance)
        new = lines_of(parser, data) - seen
        if new:
            seen |= new
            inputs.append(data)
            if len(data) <= LARGEST:
                (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
                added += 1
    return added


def main(seconds: float, names: list[str], seed: int) -> int:
    """Mutate each parser's inputs for a share of the time; print and keep what was wrong. The same seed gives the same
    inputs, as many as there is time for."""
    wrong = 0
    found = {name: parser for name, parser in parsers().items() if not names or name in names}
    for name, parser in found.items():
        chance, end, tried = random.Random(f"{seed} {name}"), time.monotonic() + seconds / len(found), [0]

        def inputs(parser: Parser = parser, chance: random.Random = chance, end: float = end, tried: list[int] = tried,
                   begin: tuple[bytes, ...] = (*parser.seeds, *corpus(name))) -> Iterator[bytes]:
            while time.monotonic() < end:
                tried[0] += 1
                yield mutated(begin, parser.words, chance)

        seen = set()
        for data, trace in defects(parser, inputs()):
            where = trace.splitlines()[-3:]
            if (key := "".join(where)) in seen:
                continue
            seen.add(key)
            wrong += 1
            path = Path(tempfile.gettempdir()) / f"kprobes-{name.replace(' ', '-')}-{len(seen)}"
            path.write_bytes(data)
            print(f"{name}: {path}\n{trace}")
        print(f"{name}: {tried[0]} inputs, {len(seen)} wrong", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("seconds", type=float, help="how long, for all parsers together")
    arguments.add_argument("names", nargs="*", help="of parsers; none: all")
    arguments.add_argument("--seed", type=int, default=time.time_ns(), help="of the inputs; the time unless given")
    arguments.add_argument("--grow", action="store_true", help="add to the corpora")
    given = arguments.parse_args()
    if not given.grow:
        sys.exit(main(given.seconds, given.names, given.seed))
    chosen = {name: parser for name, parser in parsers().items() if not given.names or name in given.names}
    for name, parser in chosen.items():
        print(f"{name}: {grow(name, parser, given.seconds / len(chosen))} inputs added", flush=True)
