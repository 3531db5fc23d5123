"""An error that comes from damaged debug information names the file and the section."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kprobes import UnicornMachine, UnknownSymbol

pytestmark = pytest.mark.quick
DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture(scope="module")
def sound() -> bytes:
    """A program with debug information."""
    with tarfile.open(DATA / "debug.tar.xz") as found:
        member = next(m for m in found.getmembers() if m.isfile())
        file = found.extractfile(member)
        assert file is not None
        return file.read()


def damaged(data: bytes, name: str, byte: bytes) -> bytes:
    section = ELFFile(io.BytesIO(data)).get_section_by_name(name)
    at, size = section["sh_offset"], section["sh_size"]
    return data[:at] + byte * size + data[at + size:]


@pytest.mark.parametrize(("section", "byte"), [
    (".debug_info", b"\xff"), (".debug_info", b"\0"), (".debug_abbrev", b"\xff"), (".debug_abbrev", b"\0"),
    (".debug_str", b"\xff")])
def test_the_file_and_the_section_are_named(sound: bytes, section: str, byte: bytes, tmp_path: Path) -> None:
    (path := tmp_path / "guest").write_bytes(damaged(sound, section, byte))
    with UnicornMachine.load(path) as m, pytest.raises(UnknownSymbol) as error:
        m.type("int")
    assert f"the debug information of {path} is damaged: section {section}" in str(error.value)


def test_what_is_sound_is_not_blamed(sound: bytes) -> None:
    with UnicornMachine.load(sound) as m:
        assert m.type("int").size == 4
        with pytest.raises(UnknownSymbol, match="build the guest with -g"):
            m.type("struct zzzzzzzzzzzzzz")
