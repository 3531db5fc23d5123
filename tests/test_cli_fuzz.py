"""The command itself under damage: mutated files of every architecture, mutated arguments. A status and a sentence,
always, and soon.

KPROBES_FUZZ_COUNT: files tried for each architecture. KPROBES_FUZZ_SEED: for other damage.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arches import PROGRAMS
from click.testing import CliRunner, Result

from kprobes import UnicornMachine
from kprobes.cli import main
from kprobes.cli._main import DEFECT

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DEMO = str(EXAMPLES / "demo.x86_64")
FILES = sorted((PROGRAMS / "bin").glob("*-O2.elf"))
COUNT = int(os.environ.get("KPROBES_FUZZ_COUNT", "25"))
SEED = os.environ.get("KPROBES_FUZZ_SEED", "")
SECONDS = 120  # much more than any of these takes
STATUSES = {0, 1, 2}


class Hang(BaseException):
    """Nothing of ours catches it."""


@contextmanager
def bounded() -> Iterator[None]:
    """Hang after SECONDS."""
    def hang(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(*words: str) -> Result:
    """The command, which ends by an exit status of its own and prints no control character of the file's."""
    with bounded():
        result = CliRunner().invoke(main, words, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exception)
    assert result.exit_code in STATUSES and DEFECT not in result.stderr, (words, result.stderr)
    assert result.exit_code == 0 or "rror" in result.stderr or "kprobes: " in result.stderr, words
    assert not any(ord(c) < 32 and c != "\n" for c in result.output), words
    return result


EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62, (1 << 63) - 1,
            1 << 63, (1 << 64) - 1]


def interesting(data: bytes) -> list[range]:
    """Where damage tells: the header, the program headers, the section headers, and what the sections of tables
    hold."""
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    phoff, shoff = struct.unpack_from(order + ("QQ" if wide else "II"), data, 32 if wide else 28)
    found = [range(0, 64), range(phoff, phoff + 0x200), range(shoff, len(data))]
    for at in range(shoff, len(data) - 63, 64 if wide else 40):
        kind = struct.unpack_from(order + "I", data, at + 4)[0]
        start, size = struct.unpack_from(order + ("QQ" if wide else "II"), data, at + (24 if wide else 16))
        if kind in (2, 3, 4, 6, 9, 11) and size:
            found.append(range(start, start + size))
    return [r for r in found if len(r)]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A few words or bytes replaced; sometimes cut."""
    changed, places = bytearray(data), interesting(data)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        width = rng.choice([1, 2, 4, 8])
        at = rng.choice(rng.choice(places)) & -width
        value = rng.choice([rng.choice(EXTREMES), rng.getrandbits(64), rng.randrange(256)]) & (1 << 8 * width) - 1
        changed[at : at + width] = value.to_bytes(width, rng.choice(["little", "big"]))
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.05 else changed)


def commands(file: str, rng: random.Random) -> list[str]:
    """A command for a damaged file."""
    place = rng.choice(["fib", "test_structs", "run_all", "run_all+4", "nobody"])
    return rng.choice([
        ["symbols", file, "test_s*"], ["check", file, place], ["check", file, "test_structs+0"],
        ["trace", file, "-e", f"p {place} a=$arg1", "--call", "test_structs(3)", "--timeout", "1"],
        ["trace", file, "-e", "r test_structs $retval:symbol", "--run", "--timeout", "1"],
        ["trace", file, "p *struct* a=+0($arg1):string", "--stack", "--call", "test_structs(3)", "--timeout", "1"],
        ["stat", file, "-i", "*", "--call", "test_structs(3)", "--timeout", "1"],
        ["graph", file, "test_structs", "--call", "test_structs(3)", "--timeout", "1"],
        ["cover", file, "--call", "test_structs(3)", "--timeout", "1"], ["list", file, f"{place}:*"],
        ["hist", file, "p test_structs a=$arg1", "a", "--call", "test_structs(3)", "--timeout", "1"],
    ])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_damaged_files(path: Path, tmp_path: Path) -> None:
    data, file = path.read_bytes(), tmp_path / "damaged.elf"
    rng = random.Random(path.stem + SEED)
    for _ in range(COUNT):
        file.write_bytes(mutated(data, rng))
        run(*commands(str(file), rng))


def objects() -> dict[str, bytes]:
    """A relocatable file and a shared object for each target."""
    with tarfile.open(Path(__file__).with_name("data") / "images.tar.xz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.name.endswith(("/a.o", "/a.so"))}  # type: ignore[union-attr]


OBJECTS = objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_damaged_objects(name: str, tmp_path: Path) -> None:
    file = tmp_path / "damaged.o"
    rng = random.Random(name + SEED)
    for _ in range(COUNT):
        file.write_bytes(mutated(OBJECTS[name], rng))
        run(*rng.choice([["symbols", str(file)], ["check", str(file)],
                         ["trace", str(file), "-e", "p 0x400000", "--run", "--timeout", "1"]]))


PIECES = ["fib", "crc32", "main", "+", "0x10", "-1", ":", "%di", "$arg1", "$retval", "$stack", "@", "(", ")", ",", '"',
          "'", "\\", "\\x", " ", "=", "u8", "string", "[", "]",
          "p", "r", "b4@2/8", "\udcff", "\u0664", "\x1b[31m", "\n", "é", "9" * 30, "9" * 5000, "1e300", "nan", "inf",
          "-", "", "/", "%return", "*", "p:", "r1:", "+0(", "\U0001f40d"]


@pytest.mark.quick
@pytest.mark.parametrize("seed", range(8))
def test_damaged_arguments(seed: int) -> None:
    rng = random.Random(f"{seed}{SEED}")

    def text() -> str:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 6)))

    for _ in range(12):
        run(*rng.choice([
            lambda: ["check", DEMO, text()], lambda: ["symbols", DEMO, text()], lambda: ["check", text()],
            lambda: ["check", DEMO, f"fib+{text()}"],
            lambda: ["trace", DEMO, "-e", f"p {text()}", "--call", "fib(3)"],
            lambda: ["trace", DEMO, "-e", f"p fib {text()}={text()}", "--call", "fib(3)"],
            lambda: ["trace", DEMO, "-e", "p fib", "--call", f"fib({text()})", "--max-insns", "2000"],
            lambda: ["trace", DEMO, "-e", "p fib", "--call", text()],
            lambda: ["graph", DEMO, text(), "--args", text(), "--run"],
            lambda: ["hist", DEMO, "p fib a=$arg1", text(), "--call", "fib(3)"],
            lambda: ["trace", DEMO, text(), "--filter", text(), "--call", "fib(3)"],
            lambda: ["stat", DEMO, "-i", text(), "-x", text(), "--call", "fib(3)"],
            lambda: ["list", DEMO, f"fib:{text()}"], lambda: ["report", text()], lambda: ["convert", text(), text()],
            lambda: ["trace", DEMO, "p fib", "--base", text(), "--arch", "x86_64", "--run"],
            lambda: ["trace", DEMO, "p fib", "--symbols", text(), "--run"],
            lambda: ["trace", DEMO, "p fib", "--call", "fib(3)", "--timeout", text()],
            lambda: ["trace", DEMO, "-e", "p fib", "--arch", text(), "--run"],
        ])())


@pytest.mark.quick
@pytest.mark.parametrize(("words", "status"), [
    (["--call", 'string_equal("\udcff", "\udcff")'], 0),
    (["--call", "fib(3)", "--timeout", "1e300"], 0),
    (["--call", "fib(3)", "--timeout", "inf"], 0),
    (["--call", "fib(3)", "--timeout", "nan"], 2),
])
def test_arguments_that_were_tracebacks(words: list[str], status: int) -> None:
    assert run("trace", DEMO, "-e", "p fib", *words).exit_code == status


@pytest.mark.quick
@pytest.mark.parametrize("offset", ["\u0660", "08", "9" * 5000, "0x", "0x" + "f" * 17, "-1"])
def test_offsets_that_are_none(offset: str) -> None:
    assert run("check", DEMO, f"fib+{offset}").exit_code == 2


@pytest.mark.quick
def test_offsets_in_octal() -> None:
    assert run("check", DEMO, "fib+0").stdout.startswith("fib:") and "+0x00d" in run("check", DEMO, "fib+015").stdout


def symbol_rows(data: bytes) -> Iterator[int]:
    """Where the rows of .symtab are, in a 64-bit little-endian file."""
    shoff, = struct.unpack_from("<Q", data, 40)
    for at in range(shoff, len(data) - 63, 64):
        if struct.unpack_from("<I", data, at + 4)[0] == 2:
            start, size = struct.unpack_from("<QQ", data, at + 24)
            yield from range(start + 24, start + size, 24)


@pytest.mark.quick
def test_sizes_of_gigabytes(tmp_path: Path) -> None:
    """A size that goes on beyond the symbol's segment is damage, and nobody walks it."""
    data = bytearray(Path(DEMO).read_bytes())
    for at in symbol_rows(data):
        struct.pack_into("<Q", data, at + 16, 8 << 30)
    (file := tmp_path / "huge.elf").write_bytes(data)
    with UnicornMachine.load(file) as m:
        assert m.symbols["fib"].size < 1 << 20
    assert run("symbols", str(file)).exit_code == 0
    assert run("trace", str(file), "-e", "p fib", "-e", "r fib $retval:symbol", "--call", "fib(3)").exit_code == 0


@pytest.mark.quick
def test_names_of_symbols_reach_the_terminal_escaped(tmp_path: Path) -> None:
    data = Path(DEMO).read_bytes().replace(b"\0string_equal\0", b"\0s\x1b]0;g_equ\x07l\0")
    (file := tmp_path / "escapes.elf").write_bytes(data)
    name = "s\x1b]0;g_equ\x07l"
    for words in (["symbols", str(file)], ["check", str(file), name], ["check", str(file), name + "x"],
                  ["trace", str(file), "-e", f"p {name}", "-e", f"p fib a=@{name}:symbol", "--call",
                   f'{name}("a", "a")'],
                  ["trace", str(file), "-e", f"p {name}", "--call", f"{name}(3)"]):
        assert "s\\x1b]0;g_equ\\x07l" in run(*words).output


@pytest.mark.quick
def test_a_byte_that_is_no_text() -> None:
    """As the shell hands it over: $'f("\\xff")'."""
    command = [sys.executable, "-c", "from kprobes.cli import main; main()", "trace", DEMO, "-e",
               'p string_equal a=+0($arg1):x8 b=\\"\udcff"', "--call", b'string_equal("\xff", "a")']
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, cwd=EXAMPLES.parent)
    assert done.returncode == 0, done.stderr
    assert b"a=0xff" in done.stdout
