"""Which architecture an ELF file is for: its header, Arm's build attributes, or whoever loads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from arches import ARCHES, PROGRAMS, programs_of
from elftools.elf.elffile import ELFFile

from kprobes import UnicornMachine, Unsupported
from kprobes import arch as architectures
from kprobes.image import read_elf

FIRMWARE = PROGRAMS / "bin" / "cortexm-O2.elf"
A_PROFILE = PROGRAMS / "bin" / "thumb-O2.elf"
ARCHITECTURE, PROFILE = 6, 7  # tags of the build attributes


def chosen(file: Path | bytes, name: str | None = None) -> str:
    image = read_elf(file)
    return architectures.of_elf(image.machine, image.bits, image.order, image.flags, image.profile, name).name


def attributes(file: Path) -> tuple[bytearray, int, int]:
    """(the file, offset and size of its build attributes)."""
    with file.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".ARM.attributes")
        return bytearray(file.read_bytes()), section["sh_offset"], section["sh_size"]


def changed(file: Path, **tags: int) -> bytes:
    """The file with other values of its Tag_CPU_arch (architecture=) and Tag_CPU_arch_profile (profile=)."""
    image, start, size = attributes(file)
    model = image.index(b"\x05", start + 16, start + size)  # Tag_CPU_name, a string; behind it the two of ours
    at = image.index(b"\0", model) + 1
    assert (image[at], image[at + 2]) == (ARCHITECTURE, PROFILE)
    image[at + 1], image[at + 3] = tags.get("architecture", image[at + 1]), tags.get("profile", image[at + 3])
    return bytes(image)


@pytest.mark.parametrize(("arch", "path"), [pytest.param(arch, path, id=path.stem) for arch in ARCHES
                                            for path in programs_of(arch)])
def test_every_program_is_run_by_its_own_architecture(arch: str, path: Path) -> None:
    assert chosen(path) == arch


@pytest.mark.parametrize(("architecture", "profile", "wanted"), [
    (10, ord("M"), "cortexm"), (10, ord("A"), "arm"), (10, ord("R"), "arm"), (10, 0, "arm"), (11, 0, "cortexm"),
    (13, 0, "cortexm"),
    (14, 0, "arm"), (16, 0, "cortexm"), (17, 0, "cortexm"), (21, 0, "cortexm"), (6, 0, "arm")])
def test_arms_build_attributes(architecture: int, profile: int, wanted: str) -> None:
    """v7 by its profile; v6-M, v7E-M, v8-M also by their number."""
    assert chosen(changed(FIRMWARE, architecture=architecture, profile=profile)) == wanted


def test_attributes_that_cannot_be_read_are_none() -> None:
    image, start, size = attributes(FIRMWARE)
    image[start + 1 : start + size] = b"\xff" * (size - 1)
    assert chosen(bytes(image)) == "arm"


def test_firmware_without_sections_is_told_what_it_is() -> None:
    """Nothing but the program headers is left; T32 code would run as `arm`, too, but under the wrong rules."""
    image = bytearray(FIRMWARE.read_bytes())
    image[32:36], image[48:50] = bytes(4), bytes(2)  # e_shoff, e_shnum
    assert chosen(bytes(image)) == "arm"
    with UnicornMachine.load(FIRMWARE) as plain, UnicornMachine.load(bytes(image), arch="cortexm") as m:
        assert plain.arch.name == m.arch.name == "cortexm"
        assert m.call(plain.symbols["fib"].address | 1, 10) == plain.call("fib", 10)


@pytest.mark.parametrize(("file", "name", "wanted"), [
    (FIRMWARE, "arm", "arm"), (A_PROFILE, "cortexm", "cortexm"), (PROGRAMS / "bin" / "mipsel-O2.elf", "mips32r6el",
                                                                  "mips32r6el")])
def test_a_name_decides(file: Path, name: str, wanted: str) -> None:
    assert chosen(file, name) == wanted


@pytest.mark.parametrize(("name", "why"), [
    ("x86_64", r"x86_64 does not run ELF machine 40.*these do: arm cortexm"), ("armeb", "armeb does not run"),
    ("pdp11", "no architecture 'pdp11'")])
def test_a_name_that_does_not_run_such_files_is_refused(name: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        UnicornMachine.load(FIRMWARE, arch=name)
