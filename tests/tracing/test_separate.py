"""Separate debug information is found as gdb finds it: beside the file, by build-id, packed in it, on servers, by name."""

from __future__ import annotations

import contextlib
import functools
import http.server
import lzma
import os
import random
import shutil
import socket
import struct
import subprocess
import tarfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kprobes import BadArgument, ImageError, Kprobes, UnicornMachine
from kprobes.cli import main
from kprobes.debug import cache as cache_module
from kprobes.debug import file as file_module
from kprobes.image import SectionedElf, build_id
from kprobes.image._sections import section_places

DATA = Path(__file__).resolve().parents[1] / "data"
with tarfile.open(DATA / "debug.tar.xz") as archive:
    FILES = {member.name.removesuffix(".elf"): archive.extractfile(member).read()  # type: ignore[union-attr]
             for member in archive.getmembers() if member.name.endswith("-eh.elf") and not member.name.startswith("sparc")}  # SPARC's are objects
SOURCE = """struct item { int n; double d; }; struct item one = {5, 2.5};
__attribute__((noinline)) static int inner(struct item *it, int k) { return it->n * k; }
int outer(int k) { return inner(&one, k) + 1; }
void _start(void) {}
"""
pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", FILES)
def test_another_file_has_it(name: str) -> None:
    """On every architecture: types and lines come of the second file, at the first one's bias, and not before."""
    data = FILES[name]
    bare = data.replace(b".debug_", b".gebug_")  # as if it had been stripped
    with UnicornMachine.load(bare, arch="cortexm" if name.startswith("cortexm") else None) as m:
        assert m.debug.line(m.symbols["walk"].address) is None
        m.symbols.add_file(data, 0)
        assert m.debug.line(m.symbols["walk"].address) is not None and m.type("struct entry").size


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or shutil.which("objcopy") is None:
        pytest.skip("there is no compiler of C, or no objcopy")
    made = tmp_path_factory.mktemp("separate")
    (made / "shop.c").write_text(SOURCE)

    def run(*words: str) -> None:
        subprocess.run(words, cwd=made, check=True, capture_output=True)
    run("gcc", "-g", "-O1", "-nostdlib", "-pie", "-fPIE", "-Wl,--build-id,-E", "-o", "full", "shop.c")
    run("objcopy", "--only-keep-debug", "full", "shop.debug")
    run("objcopy", "--strip-all", "full", "bare")
    run("objcopy", "--strip-all", "--add-gnu-debuglink=shop.debug", "full", "linked")
    run("objcopy", "-S", "--keep-symbol=inner", "full", "mini")
    (made / "packed.xz").write_bytes(lzma.compress((made / "mini").read_bytes()))
    run("objcopy", "--add-section", ".gnu_debugdata=packed.xz", "bare", "packed")
    return made


def seen(m: UnicornMachine) -> tuple[object, ...]:
    """What debug information tells: a parameter, a line."""
    with Kprobes(m) as k:
        e = k.event("p:t inner it->d k")
        assert m.call("outer", 3) == 16
        (record,) = e
        line = m.debug.line(m.symbols["inner"].address)
        return record.args["d"], record.args["k"], line is not None and line.line


def test_beside_the_file(folder: Path, tmp_path: Path) -> None:
    """By .gnu_debuglink, there and in `.debug`; one that is of another build is not taken."""
    for where in (tmp_path, tmp_path / ".debug"):
        where.mkdir(exist_ok=True)
        shutil.copy(folder / "linked", tmp_path)
        shutil.copy(folder / "shop.debug", where)
        with UnicornMachine.load(tmp_path / "linked") as m:
            assert m.type("struct item").size == 16  # of itself
            assert "inner" not in m.symbols and m.symbols.find_debug() == [str(where / "shop.debug")]
            assert seen(m) == (2.5, 3, 2) and m.symbols.find_debug() == []
        identity = bytes.fromhex(build_id((folder / "linked").read_bytes()))
        there = where / "shop.debug"
        there.write_bytes(there.read_bytes().replace(identity, identity[::-1]))
        with UnicornMachine.load(tmp_path / "linked") as m:
            assert m.symbols.find_debug() == []
        (where / "shop.debug").unlink()


def test_as_elfutils_writes_it(folder: Path, tmp_path: Path) -> None:
    """eu-strip -f leaves the program's own headers in the file of debug information, with sizes of what is not there."""
    whole, made = (folder / "full").read_bytes(), bytearray((folder / "shop.debug").read_bytes())
    first, (size, count) = struct.unpack_from("<Q", whole, 32)[0], struct.unpack_from("<HH", whole, 54)
    assert made[54:58] == whole[54:58]
    headers = whole[first:first + size * count]
    there = struct.unpack_from("<Q", made, 32)[0]
    made[there:there + len(headers)] = headers
    (tmp_path / "eu.debug").write_bytes(made)
    with UnicornMachine.load(folder / "bare") as m:
        m.symbols.load(tmp_path / "eu.debug")
        assert seen(m) == (2.5, 3, 2)


def test_by_build_id(folder: Path, tmp_path: Path) -> None:
    identity = build_id((folder / "bare").read_bytes())
    there = tmp_path / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    there.parent.mkdir(parents=True)
    shutil.copy(folder / "shop.debug", there)
    with UnicornMachine.load((folder / "bare").read_bytes()) as m:
        assert m.symbols.find_debug() == [] and m.symbols.find_debug(folders=[str(tmp_path)]) == [str(there)]
        assert seen(m) == (2.5, 3, 2)


def test_packed_symbols(folder: Path) -> None:
    with UnicornMachine.load(folder / "bare") as bare, UnicornMachine.load(folder / "packed") as m:
        assert "inner" not in bare.symbols
        assert m.symbols["inner"].size and m.call("outer", 3) == 16


def test_bias_is_found(folder: Path) -> None:
    """A position-independent program's file is named without saying where the program is."""
    with UnicornMachine.load(folder / "bare") as m:
        assert m.symbols["outer"].address > 0x100000
        m.symbols.load(folder / "shop.debug")
        assert seen(m) == (2.5, 3, 2)


@pytest.fixture
def server(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a debuginfod server, as far as clients see."""
    identity = build_id((folder / "bare").read_bytes())
    there = tmp_path / "served" / "buildid" / identity
    there.mkdir(parents=True)
    shutil.copy(folder / "shop.debug", there / "debuginfo")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()
        thread.join()


def test_servers(folder: Path, server: str) -> None:
    """Asked when they are named, and then what they gave is kept; else never."""
    identity = build_id((folder / "bare").read_bytes())
    for servers in ([server], ["http://127.0.0.1:9/"]):  # the second is not asked
        with UnicornMachine.load(folder / "bare") as m:
            assert m.symbols.find_debug() == [] and m.symbols.find_debug(servers=servers) == [identity]
            assert seen(m) == (2.5, 3, 2)


def test_what_servers_gave_is_in_the_users_cache(folder: Path, server: str, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """Where elfutils' client keeps it, so that gdb finds it there."""
    monkeypatch.delenv("DEBUGINFOD_CACHE_PATH")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    identity = build_id((folder / "bare").read_bytes())
    with UnicornMachine.load(folder / "bare") as m:
        assert m.symbols.find_debug(servers=[server]) == [identity]
    kept = tmp_path / "mine" / "debuginfod_client" / identity / "debuginfo"
    assert kept.read_bytes() == (folder / "shop.debug").read_bytes()


def test_what_a_server_gave_is_looked_at_before_it_is_kept(folder: Path, server: str, tmp_path: Path) -> None:
    """A page of a proxy's with status 200, another build's file, one without build-id: the next server is asked."""
    identity = build_id((folder / "bare").read_bytes())
    served = tmp_path / "served" / "buildid" / identity / "debuginfo"
    kept = tmp_path / "cache" / identity / "debuginfo"
    right = served.read_bytes()
    for wrong, said in ((b"<html>log in first</html>", "no ELF file"), (b"", "no ELF file"), (right[:60], "build"),
                        (right.replace(bytes.fromhex(identity), bytes.fromhex(identity)[::-1]), "another build")):
        served.write_bytes(wrong)
        with UnicornMachine.load(folder / "bare") as m, pytest.raises(ImageError, match=said):
            m.symbols.find_debug(servers=[server])
        assert not kept.exists()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"<html>what an older client has kept</html>")
    served.write_bytes(right)
    with UnicornMachine.load(folder / "bare") as m:
        assert m.symbols.find_debug(servers=[server]) == [identity] and seen(m) == (2.5, 3, 2)
    assert kept.read_bytes() == right


@pytest.mark.parametrize("servers", [["ftp://here"], ["http://127.0.0.1:9"]])
def test_no_server_has_it(folder: Path, servers: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path))
    with UnicornMachine.load(folder / "bare") as m:
        with pytest.raises(ImageError, match="no server has debug information"):
            m.symbols.find_debug(servers=servers)
        with pytest.raises(BadArgument, match="servers is"):
            m.symbols.find_debug(servers="http://here")


def test_a_silent_server_is_given_up(folder: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After $DEBUGINFOD_TIMEOUT; the next one is asked."""
    monkeypatch.setenv("DEBUGINFOD_TIMEOUT", "0.3")
    with socket.create_server(("127.0.0.1", 0)) as silent, UnicornMachine.load(folder / "bare") as m:
        begun = time.monotonic()
        assert m.symbols.find_debug(servers=[f"http://127.0.0.1:{silent.getsockname()[1]}", server])
        assert time.monotonic() - begun < 30


def test_on_the_command_line(folder: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["trace", str(folder / "bare"), "p:t inner it->d k", "--call", "outer(3)"]

    def run(*more: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, [*words, *more])
        return result.exit_code, result.output
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert run()[0] == 2
    status, output = run("--debug-file", str(folder / "shop.debug"))
    assert status == 0 and " d=2.5 k=3" in output
    other = folder / "other.debug"
    identity = bytes.fromhex(build_id((folder / "bare").read_bytes()))
    other.write_bytes((folder / "shop.debug").read_bytes().replace(identity, identity[::-1]))
    status, output = run("--debug-file", str(other))
    assert status == 2 and "of another build" in output and identity.hex()[:16] in output
    status, output = run("--debuginfod")
    assert status == 2 and "DEBUGINFOD_URLS" in output
    monkeypatch.setenv("DEBUGINFOD_URLS", server)
    status, output = run("--debuginfod")
    assert status == 0 and " d=2.5 k=3" in output


def test_packed_sections_are_kept_unpacked(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Zlib takes a second for a large program's; who comes later maps them. Files that others may write, or that are cut
    off, are made again, and the oldest ones go where there are too many."""
    subprocess.run(["objcopy", "--compress-debug-sections=zlib", "full", "zipped"], cwd=folder, check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(file_module, "LARGE", 0)
    unpacked = []
    start = cache_module.UnpackedSection._start
    names: dict[int, str] = {}
    make = file_module.unpacked_section

    def noted(identity: bytes, name: str, packed: memoryview, size: int) -> Any:
        names[size] = name
        return make(identity, name, packed, size)
    monkeypatch.setattr(file_module, "unpacked_section", noted)
    monkeypatch.setattr(cache_module.UnpackedSection, "_start",
                        lambda section: unpacked.append(names[len(section)]) or start(section))

    def look() -> list[str]:
        unpacked.clear()
        with UnicornMachine.load(folder / "zipped") as m, Kprobes(m) as k:
            assert m.type("struct item").size == 16 and m.debug.line(m.symbols["inner"].address).line == 2
            event = k.event("p inner it->d k")
            assert m.call("outer", 3) == 16 and [dict(r.args) for r in event] == [{"d": 2.5, "k": 3}]
        return [name for name in unpacked if name == "debug_info"]
    assert look() == ["debug_info"]
    kept = next((tmp_path / "kprobes" / "debug").glob("*.debug_info"))
    whole = kept.read_bytes()
    assert look() == [] and whole[:-32] in UnicornMachine.load(folder / "full").symbols.files[0].data
    for damage in (b"", whole[:-1], whole[:-33] + whole[-32:], whole + b"x"):
        kept.write_bytes(damage)
        assert look() == ["debug_info"] and kept.read_bytes() == whole
    kept.chmod(0o666)
    assert look() == ["debug_info"] and kept.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(cache_module, "_MOST", len(whole))
    os.utime(kept, (1, 1))
    cache_module._write(kept.parent / "new", b"n" * 9)
    assert (kept.parent / "new").exists() and not kept.exists()


def test_packed_sections_are_unpacked_as_far_as_they_are_read(
        folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An event in the first of many units of a large program needs a hundredth of what is packed. What one process has
    unpacked the next one maps, and it goes on behind it; where the disk is full memory has the rest."""
    units = 16
    for n in range(units):
        many = "\n".join(f"int part_{n}_{k}(int given) {{ return given + {k}; }}" for k in range(120))
        (tmp_path / f"unit{n:02}.c").write_text(many + ("\nint _start(void) { return 0; }" if not n else ""))
    subprocess.run(["gcc", "-g", "-O1", "-nostdlib", "-static", "-gz=zlib", "-Wl,--build-id", "-Wl,--compress-debug-sections=zlib",
                    *sorted(each.name for each in tmp_path.glob("*.c")), "-o", "large"], check=True, cwd=tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(file_module, "LARGE", 1 << 12)
    monkeypatch.setattr(cache_module, "_STEP", 1 << 10)

    def ask(function: str) -> Any:
        """Trace a function, and return the program's .debug_info."""
        with UnicornMachine.load(tmp_path / "large") as m, Kprobes(m) as k:
            event = k.event(f"p {function} given")
            m.call(function, 7)
            assert [dict(r.args) for r in event] == [{"given": 7}]
            info = file_module.dwarf(m.symbols.files[0]).debug_info_sec.stream
            whole = isinstance(info, cache_module.UnpackedSection)
            return info._reached if whole else len(info), len(info)
    first, size = ask("part_0_3")
    assert first < size / 8
    assert ask("part_0_3") == (first, size)
    middle, _ = ask("part_8_3")
    assert first < middle < size * 3 / 4
    kept = next((tmp_path / "kprobes" / "debug").glob("*.debug_info"))
    assert ask(f"part_{units - 1}_3") == (size, size) and ask("part_0_3") == (size, size)
    whole = kept.read_bytes()
    kept.unlink()

    def fail(*_: object) -> int:
        raise OSError("no space left on device")
    file = ask("part_8_3")
    monkeypatch.setattr(os, "pwrite", fail)
    assert ask(f"part_{units - 1}_5") == (size, size) and file == (middle, size)
    monkeypatch.undo()
    with UnicornMachine.load(tmp_path / "large") as m:
        assert m.debug.line(m.symbols["part_15_3"].address).line == 4
    assert whole.startswith(kept.read_bytes()[: middle])


def test_a_packed_section_that_is_damaged_is_refused() -> None:
    """It has more bytes than it says, or fewer, or other ones; what is before that can be read."""
    content = bytes(range(256)) * 64
    packed = zlib.compress(content)

    def section(data: bytes, size: int) -> cache_module.UnpackedSection:
        return cache_module.UnpackedSection(memoryview(data), size, -1, 0)
    assert section(packed, len(content))[-1] == 255
    found = section(packed, len(content))
    assert found[:256] == content[:256] and found[300] == content[300] and found.find(b"\xff\x00") == 255
    assert found.find(b"none") == -1 and found.find(b"\x07", 8, 20) == -1 and found[-1] == 255
    found.seek(len(content) - 2)
    assert found.read(9) == b"\xfe\xff" and found.read() == b""
    for data, size in ((packed, len(content) - 1), (packed, len(content) + 1), (packed[:-9], len(content)),
                       (b"x" + packed, len(content)), (b"", 8)):
        with pytest.raises((ValueError, zlib.error)):
            section(data, size).reach(size)


def test_threads_unpack_a_section_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """zlib lets other threads run; each byte is made once, and in its place."""
    monkeypatch.setattr(cache_module, "_STEP", 1 << 6)
    content = random.Random(1).randbytes(1 << 18)
    found = cache_module.UnpackedSection(memoryview(zlib.compress(content)), len(content), -1, 0)
    wrong: list[int] = []

    def look(seed: int) -> None:
        rng = random.Random(seed)
        for end in sorted(rng.randrange(1, len(content)) for _ in range(200)):
            if found[end - 1] != content[end - 1]:
                wrong.append(end)
    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and found[:] == content


@pytest.mark.parametrize("name", FILES)
def test_sections_are_where_pyelftools_says(name: str) -> None:
    """Damage is an error of few kinds; a file's build-id is nothing then."""
    data = FILES[name]
    wanted = [(each.name.encode(), each["sh_addr"], each["sh_offset"], each["sh_size"])
              for each in SectionedElf(data).iter_sections()]
    assert [(each.name, each.address, each.offset, each.size) for each in section_places(data)] == wanted != []
    for n in range(0, 64, 3):
        for damaged in (data[:n], data[:n] + b"\xff" * 8 + data[n + 8:]):
            with contextlib.suppress(ValueError, IndexError, struct.error):
                section_places(damaged)
            assert isinstance(build_id(damaged), str)
