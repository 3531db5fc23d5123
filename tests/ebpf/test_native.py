"""What is checked in of C sources: it is what they compile to, and all that a run needs."""

from __future__ import annotations

import re
import struct
from importlib import metadata, util
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kprobes import Program, UnicornMachine
from kprobes.machine.unicorn.assembler import assemble
from kprobes.native import HERE, build, library_path
from kprobes.programs import llvm, native, support
from kprobes.programs.inline import Inlined
from kprobes.programs.writer import CodeTarget

pytestmark = pytest.mark.quick
SUPPORT = [output for output in build.OUTPUTS if output.sources == ("support.c",)]


def names(outputs: object) -> object:
    return pytest.mark.parametrize("output", outputs, ids=lambda output: output.path)


def needs_compiler() -> None:
    if util.find_spec("ziglang") is None or metadata.version("ziglang") != build.pinned():
        pytest.skip("needs the version of ziglang that the extra jit pins")


@names(build.OUTPUTS)
def test_it_is_what_the_source_compiles_to(output: build.Output) -> None:
    needs_compiler()
    assert (HERE / output.path).read_bytes() == build.made(output), "run python -m kprobes.native.build"


@pytest.mark.parametrize("host", ["x86_64", "aarch64"])
def test_what_the_library_needs_of_python(host: str) -> None:
    """Python 3.10 exports no PyObject_Vectorcall: whoever needs it cannot be loaded there."""
    with library_path(host).open("rb") as file:
        symbols = [*ELFFile(file).get_section_by_name(".dynsym").iter_symbols()]
    needed = {symbol.name for symbol in symbols
              if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"}
    assert "PyObject_CallFunctionObjArgs" in needed
    assert "PyObject_Vectorcall" not in needed
    assert all(re.match("_?Py", name) for name in needed - {""}), "it has no C library"


def test_functions_of_python_that_may_be_missing_are_called_by_one() -> None:
    """call_with() in python.h looks first: a call of one that is missing would end the process."""
    assert [path.name for path in HERE.glob("*.[ch]") if "PyObject_Vectorcall" in path.read_text()] == ["python.h"]


@pytest.mark.long
@pytest.mark.parametrize("host", ["x86_64", "aarch64"])
def test_the_library_compiles_for_macos(host: str) -> None:
    """More cannot be tried here: a Mach-O library comes out that leaves Python's functions to its process."""
    needs_compiler()
    made = build.made(build.for_macos(host))
    assert made.startswith(b"\xcf\xfa\xed\xfe") and f"@rpath/{host}.dylib".encode() in made
    assert made == build.made(build.for_macos(host)), "two builds differ"


@pytest.mark.long
def test_the_library_compiles_for_windows() -> None:
    """A PE library that needs python3.dll and nothing else."""
    needs_compiler()
    made = build.made(build.for_windows())
    assert made.startswith(b"MZ") and {*re.findall(rb"[\w-]+\.(?:dll|DLL)\b", made)} == {b"python3.dll"}
    assert made == build.made(build.for_windows()), "two builds differ"


def test_what_a_windows_library_imports_is_what_the_header_declares() -> None:
    lines = [line.strip() for line in build.for_windows().imports.splitlines()]
    assert lines[:2] == ["LIBRARY python3.dll", "EXPORTS"]
    named = {line.removesuffix(" DATA") for line in lines[2:]}
    code = re.sub(r"/\*.*?\*/", "", (HERE / "python.h").read_text(), flags=re.DOTALL)
    called = {name for path in HERE.glob("*.c") for name in re.findall(r"\b(Py[A-Z]\w*_\w+)\(", path.read_text())}
    assert called - {"PyObject_Vectorcall"} <= named <= {*re.findall(r"\w+", code)}
    assert {line for line in lines if line.endswith(" DATA")} == {
        "_Py_NoneStruct DATA", "PyExc_TypeError DATA", "PyExc_IndexError DATA"}


def test_the_folder_for_others_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "made", lambda output: output.path.encode())
    build.main(["--others", str(tmp_path / "new" / "others")])
    assert {path.name for path in (tmp_path / "new" / "others").iterdir()} == {
        "x86_64.dylib", "aarch64.dylib", "x86_64.dll"}


@names(SUPPORT)
def test_it_is_the_same_for_both_byte_orders(output: build.Output) -> None:
    """So one file does for all targets with such pointers."""
    needs_compiler()
    machine, _, system = output.target.partition("-")
    other = {"aarch64": "aarch64_be", "arm": "armeb"}[machine]
    assert build.made(output, f"{other}-{system}") == (HERE / output.path).read_bytes()


@names(SUPPORT)
def test_llvm_reads_it(output: build.Output) -> None:
    binding = pytest.importorskip("llvmlite.binding")
    attributes = "attributes #0 = { nounwind }\nattributes #1 = { alwaysinline nounwind }\n"
    with binding.parse_assembly((HERE / output.path).read_text() + attributes) as module:
        module.verify()


@names(SUPPORT)
def test_functions_call_nothing_else(output: build.Output) -> None:
    """They call what the head declares, and functions that are put into no caller: #2."""
    head, *functions = (HERE / output.path).read_text().split("\n\n")
    known = set(re.findall(r"@[\w.]+", head))
    aside = {re.findall(r"@[\w.]+", text)[0] for text in functions if text.partition("\n")[0].endswith("#2 {")}
    assert {text.partition(" ")[0] for text in functions} == {"define"}
    for text in functions:
        own, *called = re.findall(r"@[\w.]+", text)
        assert set(called) <= known | aside - {own}, own
        assert own not in aside or set(called) <= known, own
        assert "#" not in text.partition("\n")[2], "an attribute, or metadata of what is not there"


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("program_order", ["little", "big"])
def test_every_guest_has_a_file(bits: int, order: object, program_order: object) -> None:
    target = CodeTarget(bits=bits, order=order, program_order=program_order, alone=True)  # type: ignore[arg-type]
    assert {"read", "read_string", "quotient", "rest", "reserve", "commit", "table_find"} <= set(
        support.library(target).functions)


# --- what is rare saves all registers: code of each host, run as a guest

HOSTS = {"x86_64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
#: clock_gettime(): 1 s and 5 ns. uc_mem_read(): 77. Both leave nothing in registers that a function may change.
CALLED = {
    "x86_64": ("mov qword ptr [rsi], 1; mov qword ptr [rsi + 8], 5; {spoil}; xor eax, eax; ret",
               "mov qword ptr [rdx], 77; {spoil}; xor eax, eax; ret",
               "; ".join(f"mov {name}, -1" for name in ["rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"])),
    "arm64": ("mov x2, #1; str x2, [x1]; mov x2, #5; str x2, [x1, #8]; {spoil}; mov x0, #0; ret",
              "mov x4, #77; str x4, [x2]; {spoil}; mov x0, #0; ret",
              "; ".join(f"mov x{n}, #-1" for n in range(1, 18))),
}
SLOW = """
#include <kprobes/bpf.h>
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8);
    __type(key, u64);
    __type(value, u64);
} h SEC(".maps");
SEC("kprobe") int slow(u64 *ctx)
{
    u64 key = ctx[0], now = bpf_ktime_get_ns(), there = 0, *n;

    bpf_probe_read_kernel(&there, 8, (void *)ctx[1]);
    n = bpf_map_lookup_elem(&h, &key);
    return key * 1000 + now % 1000 * 100 + there + (n ? *n : 0);
}
"""


def pack(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words)


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_rare_saves_registers(host: str) -> None:
    pytest.importorskip("ziglang")
    pytest.importorskip("llvmlite")
    pytest.importorskip("keystone")
    program = Program.from_c(SLOW)
    code, table = program.code, program.maps["h"]
    table[3] = 2
    inlined = Inlined(code.maps, guest=True, clock="host")
    made, slots = llvm.generate(code.instructions, CodeTarget(), inlined, cleared=program.verify().cleared)
    text = native.translate(made, native.Triple(HOSTS[host], relocation="pic"))
    *functions, spoil = CALLED[host]
    with UnicornMachine.from_code(text.ljust(4096, b"\0"), arch=host, base=0x100000) as m:
        def put(data: bytes) -> int:
            at = m.alloc(len(data) + 16) + 15 & ~15
            m.write(at, data)
            return at

        stubs = []
        for n, one in enumerate(functions):
            stubs.append(0x100000 + 0xe00 + 0x100 * n)
            m.write(stubs[n], assemble(one.format(spoil=spoil).replace("; ", "\n"), host, stubs[n]))
        words = {
            "clock": put(pack(stubs[0], 0, 0, 0, 0, 0)),
            "uc_mem_read": stubs[1],
            "uc": 0,
            "blocks": put(pack(0, 0)),
            "map": put(bytes(table.block.view)),
        }
        environment = put(pack(0, 0, *(words[name] for name, _ in slots)))
        context = put(pack(3, 0x1234))
        assert m.call(0x100000, environment, context, 16) == 3000 + 500 + 77 + 2
