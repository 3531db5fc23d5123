"""ELF images. The oracles are others': the C source (guests run it), linkers (relocations), ld.so (this very
process)."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import gc
import importlib
import io
import itertools
import os
import pathlib
import random
import re
import struct
import tarfile
import time
from collections.abc import Callable, Iterator

import pytest
import unicorn
from attrs import frozen
from elftools.construct.core import Construct
from elftools.elf import enums
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from kprobes.errors import ImageError
from kprobes.image import Image, Placed, page_size, read_elf
from kprobes.image import _relocations as relocations
from kprobes.image import _types as types
from kprobes.image._elf import Elf
from kprobes.symbols import Symbol

DATA = pathlib.Path(__file__).parent / "data"
BASE, OTHER, STOP, STACK = 0x1000000, 0x1800000, 0x1F00000, 0x70000000
BIG = unicorn.UC_MODE_BIG_ENDIAN


@functools.cache
def images() -> dict[str, bytes]:
    """Files built by tests/data/build_images.py: "target/file" -> bytes."""
    with tarfile.open(DATA / "images.tar.xz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}  # type: ignore[union-attr]


def image(name: str) -> Image:
    return read_elf(images()[name], name)


# guests that run what was placed


@frozen(kw_only=True)
class Guest:
    """How Unicorn calls int f(int) of a target. argument None: on the stack. filler: harmless code, for the place of
    return."""

    arch: int
    mode: int
    prefix: str
    argument: str | None
    result: str
    sp: str
    link: str | None
    filler: bytes = b"\0\0\0\0"
    model: int | None = None
    set_up: Callable[[unicorn.Uc, Callable[[str], int]], None] = lambda uc, register: None


def ppc64(little: bool) -> Callable[[unicorn.Uc, Callable[[str], int]], None]:
    def set_up(uc: unicorn.Uc, register: Callable[[str], int]) -> None:
        uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        uc.reg_write(register("MSR"), uc.reg_read(register("MSR")) | little)
    return set_up


def mips64(uc: unicorn.Uc, register: Callable[[str], int]) -> None:
    uc.reg_write(register("CP0_STATUS"), uc.reg_read(register("CP0_STATUS")) | 0x240000E0)


X86, ARM, ARM64, MIPS, PPC = (unicorn.UC_ARCH_X86, unicorn.UC_ARCH_ARM, unicorn.UC_ARCH_ARM64, unicorn.UC_ARCH_MIPS,
                              unicorn.UC_ARCH_PPC)
SPARC = unicorn.UC_ARCH_SPARC
X64 = Guest(arch=X86, mode=unicorn.UC_MODE_64, prefix="x86", argument="RDI", result="RAX", sp="RSP", link=None)


def arm(mode: int) -> Guest:
    return Guest(arch=ARM, mode=mode, prefix="arm", argument="R0", result="R0", sp="SP", link="LR")


def arm64(mode: int) -> Guest:
    return Guest(arch=ARM64, mode=mode, prefix="arm64", argument="X0", result="X0", sp="SP", link="LR")


def mips(mode: int) -> Guest:
    filler = (13).to_bytes(4, "big" if mode & BIG else "little")  # break: a block of some hundred nops crashes Unicorn
    wide = bool(mode & unicorn.UC_MODE_MIPS64)
    return Guest(arch=MIPS, mode=mode, prefix="mips", argument="A0", result="V0", sp="SP", link="RA", filler=filler,
                 model=unicorn.mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC if wide else None,
                 set_up=mips64 if wide else lambda uc, register: None)


def ppc(mode: int, little: bool = False) -> Guest:
    wide = bool(mode & unicorn.UC_MODE_PPC64)
    return Guest(arch=PPC, mode=mode | BIG, prefix="ppc", argument="3", result="3", sp="1", link="LR",
                 set_up=ppc64(little) if wide else lambda uc, register: None)


def riscv(mode: int) -> Guest:
    return Guest(arch=unicorn.UC_ARCH_RISCV, mode=mode, prefix="riscv", argument="A0", result="A0", sp="SP", link="RA")


def sparc(mode: int, set_up: Callable[[unicorn.Uc, Callable[[str], int]], None]) -> Guest:
    return Guest(arch=SPARC, mode=mode | BIG, prefix="sparc", argument="O0", result="O0", sp="SP", link="O7",
                 filler=b"\1\0\0\0", set_up=set_up)


SPARC32 = sparc(unicorn.UC_MODE_SPARC32, lambda uc, register: uc.reg_write(register("PSR"), 0x10C0))
GUESTS: dict[str, Guest] = {
    "x86_64": X64, "x86_64gnu": X64,
    "i386": Guest(arch=X86, mode=unicorn.UC_MODE_32, prefix="x86", argument=None, result="EAX", sp="ESP", link=None),
    "arm": arm(unicorn.UC_MODE_ARM), "thumb": arm(unicorn.UC_MODE_ARM), "armeb": arm(unicorn.UC_MODE_ARM | BIG),
    "aarch64": arm64(unicorn.UC_MODE_ARM), "aarch64_be": arm64(unicorn.UC_MODE_ARM | BIG),
    "mips": mips(unicorn.UC_MODE_MIPS32 | BIG), "mipsel": mips(unicorn.UC_MODE_MIPS32),
    "mips64": mips(unicorn.UC_MODE_MIPS64 | BIG), "mips64el": mips(unicorn.UC_MODE_MIPS64),
    "ppc": ppc(unicorn.UC_MODE_PPC32), "ppc64": ppc(unicorn.UC_MODE_PPC64), "ppc64small": ppc(unicorn.UC_MODE_PPC64),
    "ppc64v2": ppc(unicorn.UC_MODE_PPC64), "ppc64le": ppc(unicorn.UC_MODE_PPC64, little=True),
    "riscv64": riscv(unicorn.UC_MODE_RISCV64), "riscv32": riscv(unicorn.UC_MODE_RISCV32),
    "s390x": Guest(arch=unicorn.UC_ARCH_S390X, mode=BIG, prefix="s390x", argument="R2", result="R2", sp="R15",
                   link="R14",
                   filler=b"\7\0\7\0", set_up=lambda uc, register: uc.reg_write(register("PSWM"), 0x180000000)),
    "sparc": SPARC32, "sparcgnu": SPARC32, "sparc64": sparc(unicorn.UC_MODE_SPARC64, lambda uc, register: None),
    "m68k": Guest(arch=unicorn.UC_ARCH_M68K, mode=BIG, prefix="m68k", argument=None, result="D0", sp="A7", link=None,
                  model=3),
}


class Running:
    """Placed images in an engine."""

    def __init__(self, target: str, placed: list[Placed], bits: int, order: str) -> None:
        self.guest, self.target, self.bits, self.order = GUESTS[target], target, bits, order
        self.symbols = {s.name: s for p in reversed(placed) for s in p.symbols}
        self.uc = unicorn.Uc(self.guest.arch, self.guest.mode)
        if self.guest.model is not None:
            self.uc.ctl_set_cpu_model(self.guest.model)
        self.guest.set_up(self.uc, self.register)
        for segment in itertools.chain.from_iterable(p.segments for p in placed):
            self.uc.mem_map(segment.addr, segment.memsz, self._protection(segment.perms))
            self.uc.mem_write(segment.addr, segment.data)
        for copy in itertools.chain.from_iterable(p.copies for p in placed):
            self.uc.mem_write(copy.to, bytes(self.uc.mem_read(copy.frm, copy.size)))
        self.uc.mem_map(STOP, 0x2000)
        self.uc.mem_write(STOP, self.guest.filler * 0x800)
        self.uc.mem_map(STACK, 0x10000)
        self.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, *_: uc.emu_stop(), begin=STOP, end=STOP + 64)

    def _protection(self, perms: str) -> int:
        every = self.guest.arch == unicorn.UC_ARCH_S390X  # Unicorn faults there on anything less
        return unicorn.UC_PROT_ALL if every else sum({"r": 1, "w": 2, "x": 4}[p] for p in perms)

    def register(self, name: str) -> int:
        constants = importlib.import_module(f"unicorn.{self.guest.prefix}_const")
        return int(getattr(constants, f"UC_{self.guest.prefix.upper()}_REG_{name}"))

    def _set(self, name: str | None, value: int) -> None:
        if name is not None:
            self.uc.reg_write(self.register(name), value & (1 << self.bits) - 1)

    def call(self, name: str, argument: int) -> int:
        """The 32-bit result of int name(int)."""
        guest, sp, word = self.guest, STACK + 0x8000, self.bits // 8
        on_stack = [STOP.to_bytes(word, self.order), (argument & 0xFFFFFFFF).to_bytes(word, self.order)]  # type: ignore[arg-type]
        if guest.link is None:
            sp -= word if guest.argument else 0
            self.uc.mem_write(sp, b"".join(on_stack))
        self._set(guest.sp, sp - 2047 if self.target == "sparc64" else sp)
        self._set(guest.link, STOP - 8 if guest.arch == SPARC else STOP)
        self._set(guest.argument, argument)
        self.uc.emu_start(self._entry(self.symbols[name]), 0, timeout=5_000_000)
        value = self.uc.reg_read(self.register(guest.result)) & 0xFFFFFFFF
        return int(value - (value >> 31 << 32))

    def _entry(self, symbol: Symbol) -> int:
        """The ABI's registers that hold the function's address or TOC; where it begins."""
        if self.guest.arch == MIPS:
            self._set("T9", symbol.address)
        if self.target in ("ppc64", "ppc64small"):
            code, toc = struct.unpack(">QQ", self.uc.mem_read(symbol.address, 16))
            self._set("2", toc)
            assert self.symbols[f".{symbol.name}"].address == code
            return int(code)
        if self.guest.arch == PPC and self.bits == 64:
            self._set("12", symbol.address)
        return symbol.address | symbol.mode


def expected(x: int) -> int:
    """What call(x) of image_a.c returns, the first time."""
    def ext(value: int) -> int:
        return 2 * value + 1
    pick = [18, ext(1), 385, 3, 1234, x ^ 7, -7, 1000][x & 7]
    return (ext(x) + 1234 + x * 3 + 5 + b"alphbeta"[(x & 1) * 4 + (x & 3)] + pick + (3, 1, 4, 1, 5, 9, 2, 6)[x & 7] + 7
            + x
            + x - 5 + x)


def link(target: str, first: str, second: str, base: int = BASE, other: int = OTHER,
         second_target: str = "") -> Running:
    """Two images, the first one's imports bound to the second's symbols."""
    a, b = image(f"{target}/{first}"), image(f"{second_target or target}/{second}")
    absent = {"__aeabi_unwind_cpp_pr0": STOP, "__aeabi_unwind_cpp_pr1": STOP}
    placed_b = b.place(other, absent.get)
    known = {s.name: s.address | s.mode for s in placed_b.symbols}
    return Running(target, [a.place(base, lambda name: known.get(name, absent.get(name))), placed_b], a.bits, a.order)


def check(running: Running, *numbers: int) -> None:
    for x in numbers:
        running.uc.mem_write(running.symbols["zero"].address, bytes(256))
        running.uc.mem_write(running.symbols["common"].address, bytes(4))
        assert running.call("call", x) == expected(x), x
    assert running.call("tail", 20) == 43


PAIRS = [(target, a, b) for target in GUESTS for a, b in (("a.o", "b.o"), ("a.pic.o", "b.o"), ("a.so", "b.o"),
                                                          ("a.o", "b.so"))
         if {f"{target}/{a}", f"{target}/{b}"} <= images().keys()]


@pytest.mark.parametrize(("target", "first", "second"), PAIRS)
def test_a_placed_program_does_what_its_source_says(target: str, first: str, second: str) -> None:
    check(link(target, first, second), *range(8))


def test_every_target_is_there() -> None:
    assert {target for target, _, _ in PAIRS} == set(GUESTS)
    assert {name.split("/")[0] for name in images()} == {*GUESTS, "features", "relocations"}


@pytest.mark.parametrize("target", ["x86_64", "aarch64", "riscv64", "ppc64", "ppc64le"])
def test_shared_objects_run_anywhere(target: str) -> None:
    check(link(target, "a.so", "b.so", 0x2345_6780_0000, 0x1234_5000_0000), 3)


@pytest.mark.parametrize(("caller", "callee"), [("arm", "thumb"), ("thumb", "arm")])
@pytest.mark.parametrize("other", [OTHER, 0x30000000])
def test_calls_and_jumps_between_arm_and_thumb_and_far_away(caller: str, callee: str, other: int) -> None:
    check(link(caller, "a.o", "b.o", other=other, second_target=callee), *range(8))


# relocations


def with_absolute(data: bytes, symbols: dict[str, int]) -> bytes:
    """An object with values for its undefined symbols."""
    file, changed = ELFFile(io.BytesIO(data)), bytearray(data)
    table, order = file.get_section_by_name(".symtab"), "<" if file.little_endian else ">"
    for n, symbol in enumerate(table.iter_symbols()):
        at = table["sh_offset"] + n * table["sh_entsize"]
        if symbol.name in symbols and file.elfclass == 64:
            struct.pack_into(f"{order}HQ", changed, at + 6, 0xFFF1, symbols[symbol.name])
        elif symbol.name in symbols:
            struct.pack_into(f"{order}I", changed, at + 4, symbols[symbol.name])
            struct.pack_into(f"{order}H", changed, at + 14, 0xFFF1)
    return bytes(changed)


@pytest.mark.parametrize("target", sorted(name[12:-2] for name in images() if name.startswith("relocations/")
                                          and name.endswith(".o")))
def test_relocations_are_what_a_linker_makes_of_them(target: str) -> None:
    lines = (DATA / "relocations.txt").read_text().splitlines()
    symbols = {line.split()[1]: int(line.split()[2], 16) for line in lines if line.startswith("#=")}
    data = with_absolute(images()[f"relocations/{target}.o"], symbols)  # as it was for the linker
    placed = read_elf(data).place(0x10000000, lambda name: None)
    linked = images()[f"relocations/{target}.text"]
    assert placed.segments[0].data[:len(linked)] == linked


WRONG_IN_PYELFTOOLS = {"R_ARM_IRELATIVE", "R_ARM_TLS_DESC"}
#: by e_machine; older versions do not have PowerPC's
KNOWN_NUMBERS = {types.X86_64: enums.ENUM_RELOC_TYPE_x64, types.I386: enums.ENUM_RELOC_TYPE_i386,
                 types.ARM: enums.ENUM_RELOC_TYPE_ARM,
                 types.AARCH64: enums.ENUM_RELOC_TYPE_AARCH64,
                 **({types.PPC: enums.ENUM_RELOC_TYPE_PPC} if hasattr(enums, "ENUM_RELOC_TYPE_PPC") else {}),
                 types.PPC64: enums.ENUM_RELOC_TYPE_PPC64, types.S390: enums.ENUM_RELOC_TYPE_S390X,
                 types.MIPS: enums.ENUM_RELOC_TYPE_MIPS}


@pytest.mark.parametrize("machine", KNOWN_NUMBERS)
def test_numbers_and_names_agree_with_pyelftools(machine: int) -> None:
    theirs = {name: number for name, number in KNOWN_NUMBERS[machine].items() if isinstance(number, int)}
    ours = {row.name: number for number, row in relocations.table(machine, 64).items()}
    shared = ours.keys() & theirs.keys() - WRONG_IN_PYELFTOOLS
    assert len(shared) > 15
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


def test_unknown_relocations_are_named() -> None:
    data = bytearray(images()["x86_64/a.o"])
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".rela.text")
    struct.pack_into("<I", data, section["sh_offset"] + 8, 99)
    with pytest.raises(ImageError, match=r"relocation type 99 of e_machine 62 is not supported; link it"):
        read_elf(bytes(data)).place(BASE, lambda name: OTHER)


def test_what_does_not_reach_is_named() -> None:
    with pytest.raises(ImageError,
                       match=r"R_X86_64_32S to '.rodata' is out of reach: 0x1000001000 does not fit in 32 bits; .* "
                             r"-fPIC"):
        image("x86_64/a.o").place(0x10_0000_0000, lambda name: None if name == "maybe" else OTHER)
    with pytest.raises(ImageError,
                       match=r"R_AARCH64_JUMP26 to 'ext' is out of reach: .* does not fit in 28 bits; place the image"):
        image("aarch64/a.pic.o").place(BASE, lambda name: None if name == "maybe" else 0x20000000)


def test_undefined_symbols_are_named_unless_they_are_weak() -> None:
    with pytest.raises(ImageError, match=r"ext: .*undefined symbol"):
        image("x86_64/a.so").place(BASE, lambda name: None if name == "ext" else OTHER)
    assert image("x86_64/a.so").imports["there"].weak and not image("x86_64/a.so").imports["ext"].weak
    placed = image("x86_64/a.o").place(BASE, lambda name: OTHER if name in ("ext", "evar") else None)
    assert not placed.warnings


# symbols, and what GNU's linker adds


def test_symbols_have_kinds_sizes_and_modes() -> None:
    arm_symbols = {s.name: s for s in image("arm/a.o").symbols}
    thumb = {s.name: s for s in image("thumb/a.o").symbols}
    assert (thumb["call"].mode, arm_symbols["call"].mode, thumb["call"].address % 2) == (1, 0, 0)
    assert (thumb["zero"].kind, thumb["zero"].size, thumb["zero"].mode) == ("object", 256, 0)
    assert thumb["helper"].kind == "func" and thumb["helper"].size > 0
    for name in images():
        if "/a." in name and not name.startswith("relocations"):
            found = [s.name for s in image(name).symbols]
            assert not [n for n in found if not n or n[:2] in ("$a", "$t", "$d", "$x", ".L")], name
            assert {"call", "helper", "pub", "zero", "common", "fp"} <= set(found), name
            assert len(found) == len({(s.name, s.address) for s in image(name).symbols})


def test_labels_that_have_no_type_take_their_mode_from_the_assemblers_marks() -> None:
    symbols = image("relocations/arm.o").symbols
    assert {s.name: s.mode for s in symbols} == {"armf": 0, "thumbf": 1}


def test_powerpc64_descriptors_and_local_entries() -> None:
    placed = image("ppc64/a.so").place(BASE, lambda name: OTHER)
    by_name = {s.name: s.address for s in placed.symbols}
    executable = [s for s in placed.segments if "x" in s.perms]
    assert any(s.addr <= by_name[".call"] < s.addr + s.memsz for s in executable)
    assert not any(s.addr <= by_name["call"] < s.addr + s.memsz for s in executable)
    assert image("ppc64/a.so").descriptors and not image("ppc64v2/a.so").descriptors
    second = image("ppc64le/a.so").place(BASE, lambda name: OTHER)
    address = {s.name: s.address for s in second.symbols}
    assert second.local_entries[address["call"]] == 8
    assert address["there"] not in second.local_entries if "there" in address else True


def test_symbol_versions_ifuncs_thread_locals_and_initialisation() -> None:
    library = image("features/features.so")
    symbols = {s.name: s for s in library.symbols}
    assert symbols["f"].address == symbols["new_f"].address
    assert symbols["f@V1"].address == symbols["old_f"].address
    assert symbols["g"].kind == "ifunc" and symbols["g"].address == symbols["choose_g"].address
    asked: list[int] = []
    placed = library.place(BASE, lambda name: OTHER,
                           lambda resolver: asked.append(resolver) or BASE + symbols["fast_g"].address)
    assert asked == [BASE + symbols["choose_g"].address]
    assert placed.init == (BASE + symbols["begin"].address,)
    assert library.tls and "thread-local words (the first: mine)" in placed.warnings[0]
    assert "ifuncs are bound to 0" in library.place(BASE, lambda name: OTHER).warnings[1]
    assert "mine" not in symbols


@pytest.mark.parametrize("target", ["riscv64", "aarch64"])
def test_thread_local_code_does_not_keep_an_object_from_being_loaded(target: str) -> None:
    program = image(f"features/tls.{target}.o")
    assert "mine" not in program.imports and "(the first: mine)" in program.place(BASE, lambda name: OTHER).warnings[0]


def test_calls_through_the_plt_and_an_ifunc_run() -> None:
    library = image("features/features.so")
    fast = next(s.address for s in library.symbols if s.name == "fast_g")
    other = image("x86_64/b.o").place(OTHER, lambda name: None)
    known = {s.name: s.address for s in other.symbols} | {"__tls_get_addr": STOP}
    running = Running("x86_64", [library.place(BASE, known.get, lambda resolver: BASE + fast), other], 64, "little")
    assert running.call("call_ext", 10) == 21
    assert running.call("g@plt", 0) == 42
    assert running.call("ext@plt", 4) == 9


def test_plt_stubs_have_names() -> None:
    assert {s.name for s in image("x86_64gnu/a.so").symbols if s.name.endswith("@plt")} >= {"ext@plt", "there@plt"}
    running = link("aarch64", "a.so", "b.o")
    assert running.call("ext@plt", 4) == 9


def test_static_executables_have_their_ifuncs_bound() -> None:
    program = image("features/static")
    symbols = {s.name: s.address for s in program.symbols}
    placed = program.place(0, lambda name: None, lambda resolver: {symbols["choose_g"]: 0x123456}[resolver])
    assert any((0x123456).to_bytes(8, "little") in s.data for s in placed.segments)
    assert (program.kind, placed.entry) == ("exec", symbols["_start"])


def test_an_executables_own_copies_are_left_to_the_machine() -> None:
    program = image("features/copy")
    evar = next(s.address for s in program.symbols if s.name == "evar")
    placed = program.place(0, {"evar": 0x7000, "ext": 0x8000}.get)
    assert [(c.to, c.frm, c.size) for c in placed.copies] == [(evar, 0x7000, 4)]
    assert "original of evar" in program.place(0, {"ext": 0x8000}.get).warnings[0]


def test_a_static_pie_is_relocated_once_by_whom_one_wants() -> None:
    program = image("features/relr")
    where = {s.name: s.address for s in program.symbols}

    def pointer(placed: Placed) -> int:
        segment = next(s for s in placed.segments if s.addr <= BASE + where["at"] < s.addr + s.memsz)
        return int.from_bytes(segment.data[BASE + where["at"] - segment.addr:][:8], "little")

    assert pointer(program.place(BASE, lambda name: None)) == BASE + where["evar"]
    assert pointer(program.place(BASE, lambda name: None, relocate=False)) == where["evar"]
    assert "relocate=False" in program.place(BASE, lambda name: None).warnings[0]


# this machine's own libraries


def loaded_at(path: str) -> int:
    """Where ld.so put a library in this process."""
    with open("/proc/self/maps") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(os.path.realpath(path)))


def library(name: str) -> tuple[ctypes.CDLL, str]:
    found = ctypes.util.find_library(name)
    if found is None or not os.path.exists("/proc/self/maps"):
        pytest.skip(f"no {name} here")
    handle = ctypes.CDLL(found)
    with open("/proc/self/maps") as maps:
        return handle, next(line.split()[-1] for line in maps
                            if re.search(rf"/{re.escape(found.split('.so')[0])}[.-]", line))


def address_here(handle: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(handle, name), ctypes.c_void_p).value
    except AttributeError:
        return None


@pytest.mark.parametrize("name", ["z", "m"])
def test_relocated_data_equals_what_ld_so_made_of_it_in_this_process(name: str) -> None:
    handle, path = library(name)
    base, everything = loaded_at(path), ctypes.CDLL(None)
    placed = read_elf(path).place(base, lambda symbol: address_here(everything, symbol), lambda resolver: 0)
    with open(path, "rb") as file:
        header = {h["p_type"]: h.header for h in ELFFile(file).iter_segments()}
        got = next((tag["d_ptr"] for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_PLTGOT")),
                   0) + base
    start, end = (header["PT_GNU_RELRO"]["p_vaddr"] + base,
                  header["PT_GNU_RELRO"]["p_vaddr"] + base + header["PT_GNU_RELRO"]["p_memsz"])
    dynamic = range(header["PT_DYNAMIC"]["p_vaddr"] + base,
                    header["PT_DYNAMIC"]["p_vaddr"] + base + header["PT_DYNAMIC"]["p_memsz"])
    segment = next(s for s in placed.segments if s.addr <= start < s.addr + s.memsz)
    data = segment.data.ljust(segment.memsz, b"\0")
    ld_so_uses = {got + 8, got + 16, *range(dynamic.start, dynamic.stop, 8)}
    words = [at for at in range(start, end // 8 * 8, 8) if at not in ld_so_uses]
    ours = {at: int.from_bytes(data[at - segment.addr:][:8], "little") for at in words}
    theirs = {at: int.from_bytes(ctypes.string_at(at, 8), "little") for at in words}
    differing = {at for at in words if ours[at] != theirs[at]}
    thread_local = sum(int(w.split()[0]) for w in placed.warnings if "thread-local" in w)
    assert sum(map(bool, ours.values())) >= 5
    assert len(differing) <= thread_local
    ours_at = {s.name: s.address for s in placed.symbols if s.kind == "func"}
    names = [n for n in ("crc32", "inflate", "deflate", "cbrt", "frexp", "lgamma") if address_here(handle, n)
             and n in ours_at]
    assert names and all(ours_at[n] == address_here(handle, n) for n in names)


@pytest.mark.parametrize("name", ["c", "python3.11", "crypto", "stdc++"])
def test_big_libraries_load_in_little_time(name: str) -> None:
    _, path = library(name)
    began = time.process_time()
    big = read_elf(path)
    placed = big.place(0x7F00_0000_0000, lambda symbol: 0x7E00_0000_0000, lambda resolver: resolver)
    assert time.process_time() - began < 10
    assert (big.kind, big.name, placed.base) == ("dyn", os.path.basename(path), 0x7F00_0000_0000)
    assert len(placed.symbols) > 500 and placed.init
    if name == "c":
        assert {"malloc", "memcpy", "strlen"} <= {s.name for s in placed.symbols}
        assert big.tls and "thread-local" in placed.warnings[0]


# tables


PROGRAMS = sorted((DATA.parent / "programs" / "bin").glob("*.elf"))
TABLES = [*(pytest.param(data, id=name) for name, data in sorted(images().items()) if data[:4] == b"\x7fELF"),
          *(pytest.param(path.read_bytes(), id=path.stem) for path in PROGRAMS)]


@pytest.mark.parametrize("data", TABLES)
def test_tables_hold_what_pyelftools_reads(data: bytes) -> None:
    """Symbols and relocations are read as arrays: in every byte order and width, with and without addends."""
    file, ours = ELFFile(io.BytesIO(data)), Elf(data, "file")
    for section in file.iter_sections():
        if isinstance(section, SymbolTableSection):
            assert [tuple(entry)[:6] for entry in ours.symbols(section)] == [
                (s.name, s["st_value"], s["st_size"], s["st_info"]["type"], s["st_info"]["bind"], s["st_shndx"])
                for s in section.iter_symbols()]
            assert [e.local for e in ours.symbols(section)] == [s["st_other"]["local"] for s in section.iter_symbols()]
        elif isinstance(section, RelocationSection):
            composed = file["e_machine"] == "EM_MIPS" and file.elfclass == 64
            found = ours.section_relocations(lambda s, at=section["sh_offset"]: s["sh_offset"] == at)[0][1]
            assert [tuple(r) for r in found] == [
                (r["r_offset"], r["r_info"] & 0xFFFFFF if composed else r["r_info_type"], r["r_info_sym"],
                 r["r_addend"] if section.is_RELA() else None) for r in section.iter_relocations()]


def test_large_tables_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyelftools, which takes 30 microseconds for a row, reads headers only; the collector walks over nothing."""
    parsed: list[object] = []
    parse = Construct.parse_stream
    monkeypatch.setattr(Construct, "parse_stream", lambda shape, stream: parsed.append(shape) or parse(shape, stream))
    _, path = library("c")
    walks: list[str] = []
    gc.callbacks.append(note := lambda phase, about: walks.append(phase))
    try:
        big = read_elf(path)
    finally:
        gc.callbacks.remove(note)
    assert len(big.symbols) + len(big.relocations) > 2000
    assert len(parsed) < 1000
    assert gc.isenabled() and len(walks) < 10


# layout


def elf(loads: list[tuple[int, int, bytes, int]], kind: int = 3, bits: int = 64) -> bytes:
    """A minimal x86-64 file: LOAD segments (vaddr, flags, bytes, size in memory)."""
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", kind, 62, 1, 0, 64, 0, 0, 64, 56, len(loads), 64, 0, 0)
    offset, headers, body = 64 + 56 * len(loads), b"", b""
    for vaddr, flags, data, memsz in loads:
        headers += struct.pack("<IIQQQQQQ", 1, flags, offset + len(body), vaddr, vaddr, len(data), memsz, 1)
        body += data
    return head + headers + body


def test_segments_that_share_a_page_are_merged_with_both_permissions() -> None:
    shared = read_elf(elf([(0x1000, 5, b"code", 0x1800), (0x2900, 6, b"data", 0x2000), (0x6000, 4, b"", 1)]))
    assert [(s.addr, s.memsz, s.perms) for s in shared.segments] == [
        (0x1000, 0x1000, "rx"), (0x2000, 0x1000, "rwx"), (0x3000, 0x2000, "rw"), (0x6000, 0x1000, "r")]
    assert shared.segments[1].data == bytes(0x900) + b"data"
    assert (shared.lowest, shared.span) == (0x1000, 0x6000)


@pytest.mark.parametrize("name", sorted(n for n in images() if n.endswith((".o", ".so"))))
def test_segments_are_disjoint_pages_and_code_is_not_writable(name: str) -> None:
    placed = image(name).place(BASE, lambda symbol: OTHER) if not name.startswith("relocations") else None
    segments = placed.segments if placed else image(name).segments
    page = page_size(image(name).machine)
    ends = [0]
    for segment in segments:
        assert (segment.addr % page == segment.memsz % page == 0 and segment.addr >= ends[-1]
                and len(segment.data) <= segment.memsz)
        ends.append(segment.addr + segment.memsz)
    if name.endswith(".o"):
        assert all(s.perms in ("rx", "r", "rw") for s in segments)


# refusals


def changed(name: str, at: int, value: bytes) -> bytes:
    data = bytearray(images()[name])
    data[at:at + len(value)] = value
    return bytes(data)


SO = "x86_64/a.so"


def refusals() -> Iterator[tuple[bytes, str]]:
    yield b"", "not an ELF file"
    yield b"\x90\x90\xc3", r"not an ELF file; raw machine code is loaded with from_code"
    yield b"MZ\x90", "a Windows executable"
    yield b"!<arch>\n", "an archive, not an ELF file; take a member"
    yield b"#!/bin/sh", "a script"
    yield b"/* GNU ld script\n", "a linker script"
    yield changed(SO, 4, b"\3"), "EI_CLASS"
    yield changed(SO, 5, b"\7"), "EI_DATA"
    yield changed(SO, 16, b"\4"), "a core file"
    yield changed(SO, 16, b"\0"), "of type ET_NONE"
    yield changed(SO, 54, b"\1"), "program headers of 1 bytes"
    yield images()[SO][:0x400], "truncated: it needs"
    yield elf([]), "no LOAD segments"
    yield elf([(0x1000, 5, b"code", 1 << 31)]), "more than 1024 MiB"
    yield elf([(0x1000, 5, b"code", 3)]), "does not fit in memory"
    yield elf([((1 << 64) - 2, 5, b"code", 4)]), "does not fit in memory"
    yield elf([(0x1000 * n, 5, b"code", 4) for n in range(300)]), "300 LOAD segments"
    yield elf([(0x1000, 5, b"code", 4)], kind=1), "nothing in it is to be loaded"


@pytest.mark.parametrize(("data", "message"), list(refusals()))
def test_refused_with_the_files_name_and_a_hint(data: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=message) as caught:
        read_elf(data, "victim")
    assert "victim: " in str(caught.value) and "; " in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    for path in (tmp_path / "absent", tmp_path, "a\0b"):
        with pytest.raises(ImageError, match="give the path of an ELF file"):
            read_elf(path)
    (tmp_path / "libx.so").write_bytes(images()[SO])
    assert read_elf(tmp_path / "libx.so").name == "libx.so" and read_elf(str(tmp_path / "libx.so"), "x").name == "x"


@pytest.mark.parametrize(("name", "base"), [(SO, 0x123), (SO, -0x1000), (SO, 1 << 64), ("features/static", 0x1000),
                                            ("sparc64/a.so", 0x1000), ("i386/a.so", 0xFFFFF000)])
def test_bases_that_cannot_be(name: str, base: int) -> None:
    with pytest.raises(ImageError, match="cannot be moved by"):
        image(name).place(base, lambda symbol: OTHER)


def test_an_object_without_any_bytes_is_refused_as_one_without_sections_is() -> None:
    """All its sections are empty: there is nothing that could have an address."""
    names = b"\0.text\0.shstrtab\0"
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, 96, 0, 64, 0, 0, 64, 3, 2)
    sections = [(0,) * 10, (1, 1, 6, 0, 64, 0, 0, 0, 16, 0), (7, 3, 0, 0, 64, len(names), 0, 0, 1, 0)]
    data = (head + names).ljust(96, b"\0") + b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in sections)
    with pytest.raises(ImageError, match="nothing in it is to be loaded"):
        read_elf(data)


def test_without_section_headers_the_dynamic_tables_do() -> None:
    for target in ("x86_64", "mips", "arm", "ppc64le", "x86_64gnu"):
        whole, data = image(f"{target}/a.so"), images()[f"{target}/a.so"]
        wide, order = whole.bits == 64, whole.order
        cut = bytearray(data)
        cut[0x28 if wide else 0x20:0x30 if wide else 0x24] = (len(data) + 64).to_bytes(8 if wide else 4, order)
        stripped = read_elf(bytes(cut))
        assert stripped.relocations == whole.relocations and stripped.segments[1:] == whole.segments[1:]
        assert {"call", "tail", "pub"} <= {s.name for s in stripped.symbols} < {s.name for s in whole.symbols}
        assert "section headers are damaged" in stripped.warnings[0] and not whole.warnings


# damage: whatever it is, the answer is an image or an ImageError, and it comes soon


def attempt(data: bytes) -> bool:
    began = time.process_time()
    try:
        damaged = read_elf(data, "damaged")
        damaged.place(0 if damaged.kind == "exec" else BASE, lambda symbol: OTHER, lambda resolver: OTHER)
    except ImageError as error:
        assert "; " in str(error)
        return False
    finally:
        assert time.process_time() - began < 5
    return True


@pytest.mark.parametrize("name", ["sparc/b.o", "x86_64/b.o"])
def test_every_prefix_of_an_object_is_refused(name: str) -> None:
    data = images()[name]
    assert attempt(data)
    assert not any(attempt(data[:size]) for size in range(len(data)))


@pytest.mark.parametrize("name", [SO, "mips/a.so", "ppc64/a.so", "features/relr"])
def test_prefixes_of_linked_files_load_only_with_all_their_segments(name: str) -> None:
    data = images()[name]
    needed = max(h["p_offset"] + h["p_filesz"] for h in ELFFile(io.BytesIO(data)).iter_segments("PT_LOAD"))
    assert attempt(data)
    for size in [*range(0, len(data), 37), needed - 1, needed]:
        if attempt(data[:size]):
            assert size >= needed


def test_a_segment_without_bytes_may_begin_behind_the_end_of_the_file() -> None:
    """GNU ld writes .bss alone so."""
    data = bytearray(images()[SO])
    elf = ELFFile(io.BytesIO(data))
    last = max(n for n, header in enumerate(elf.iter_segments()) if header["p_type"] == "PT_LOAD")
    at = elf["e_phoff"] + last * elf["e_phentsize"]
    page = elf.get_segment(last)["p_align"]
    struct.pack_into("<Q", data, at + 8, elf.get_segment(last)["p_offset"] + page * (len(data) // page + 1))
    assert not attempt(bytes(data))
    struct.pack_into("<Q", data, at + 32, 0)
    assert attempt(bytes(data))


DAMAGED = [n for n in sorted(images()) if n.endswith(("a.o", "a.so")) or n.startswith("features/")]


@pytest.mark.parametrize("seed", range(12))
def test_damaged_files_are_refused_or_loaded(seed: int) -> None:
    chance = random.Random(seed)
    outcomes = set()
    for _ in range(60):
        data = bytearray(images()[chance.choice(DAMAGED)])
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.choice((chance.randrange(64), chance.randrange(700), chance.randrange(len(data)),
                                len(data) - 1 - chance.randrange(1400)))
            data[at] = chance.choice((data[at] ^ 1 << chance.randrange(8), 0, 255, chance.randrange(256)))
        outcomes.add(attempt(bytes(data)))
    assert outcomes == {True, False}
