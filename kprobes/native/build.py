"""Compile the C sources of this folder to what is checked in beside them.

    python -m kprobes.native.build            # write what has changed
    python -m kprobes.native.build --check    # name what would change, and write nothing
    python -m kprobes.native.build --checked  # this host's library, with traps for undefined C
    python -m kprobes.native.build --others X # libraries for macOS and Windows, into the folder X

The compiler is the clang of ziglang, of the version that the extra `jit` of pyproject.toml pins:
the same source gives the same bytes everywhere. OUTPUTS is all there is to make.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from attrs import frozen

from . import HERE, library_path, support_path


@frozen
class Output:
    """A file that is compiled and checked in.

    Attributes:
        path: path of the file, from this folder.
        sources: paths of the C files, from this folder.
        target: what clang compiles for, as zig names it: "x86_64-linux-gnu".
        options: clang's options, but for the target and the output.
        finish: (bytes that clang has written) -> bytes of the file.
        imports: what a Windows library imports: text of a module definition file, which names the
            library that has it; "": nothing, or the system has no such thing.
    """

    path: str
    sources: tuple[str, ...]
    target: str
    options: tuple[str, ...]
    finish: Callable[[bytes], bytes]
    imports: str = ""


# --- LLVM IR

#: No calls of libraries, no vectors, and no loops unrolled but those that ask for it: the text is
#: to stay small, since LLVM reads it each time a program is compiled.
_IR_OPTIONS: Final = (
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
    "-Wno-unused-command-line-argument",
    "-O2",
    "-S",
    "-emit-llvm",
    "-g0",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-strict-aliasing",
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-fno-unroll-loops",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-Xclang",
    "-disable-lifetime-markers",
)
#: What clang says of values, which LLVM finds out again. LLVM 20 does not know all of it, and some
#: of the names have changed ("nocapture", now "captures(none)").
_SAID: Final = re.compile(
    r"\b(?:noundef|nonnull|readonly|readnone|writeonly|noalias|signext|zeroext|returned"
    r"|dso_local|local_unnamed_addr"
    r"|(?:captures|range|initializes|dereferenceable|memory)\((?:[^()]|\([^()]*\))*\)) ?"
)
#: Markers of variables' lifetimes, whose arguments LLVM 22 has changed. Inlining makes some, in
#: spite of the option against them.
_LIFETIME: Final = "@llvm.lifetime."
_FUNCTION: Final = re.compile(r"^define ((?:preserve_mostcc )?\S+ @\w+\(.*\)) #(\d+) \{$")
_LOOP: Final = re.compile(r", !llvm\.loop !\d+$")
_CALLED_WITH: Final = re.compile(r"\) #\d+$")
_INLINING: Final = re.compile(
    r"^attributes #(\d+) = \{.* (alwaysinline|noinline) .*\}$", re.MULTILINE
)
_NUMBERS: Final = {"": 0, "alwaysinline": 1, "noinline": 2}


def normalised(written: bytes) -> bytes:
    """Reduce clang's LLVM IR to the form that kprobes/programs/support.py reads. An Output.finish.

    The first paragraph has types and declarations; then comes a paragraph for each function.
    Functions are internal, of the attributes #0; #1 where they are always to be inlined, #2 never.

    Args:
        written: the IR, in UTF-8.
    """
    ir = written.decode()
    return ("\n\n".join(["\n".join(_head(ir)), *_functions(ir)]) + "\n").encode()


def _head(ir: str) -> Iterator[str]:
    """Yield the lines of LLVM IR that define structures, or declare functions, which are LLVM's
    own, without attributes. Markers of variables' lifetimes are left out.
    """
    for line in ir.splitlines():
        if line.startswith("%struct."):
            yield line
        elif line.startswith("declare ") and _LIFETIME not in line:
            yield _SAID.sub("", line.rpartition(" #")[0])


def _functions(ir: str) -> Iterator[str]:
    """Yield the text of each function in LLVM IR as normalised() describes it: internal, with its
    attributes' number, without comments, empty lines, and what LLVM versions write differently.
    """
    inlining = dict(_INLINING.findall(ir))
    lines: list[str] = []
    for raw in ir.splitlines():
        line = raw.partition(";")[0].rstrip()
        if line.startswith("define "):
            found = _FUNCTION.match(_SAID.sub("", line))
            assert found is not None, line
            number = _NUMBERS[inlining.get(found[2], "")]
            lines = [f"define internal {found[1].rstrip()} #{number} {{"]
        elif line == "}":
            yield "\n".join([*lines, line])
            lines = []
        elif lines and line and _LIFETIME not in line:
            line = _CALLED_WITH.sub(")", _LOOP.sub("", line)).replace(" tail call ", " call ")
            lines.append(_SAID.sub("", line))


def _support(bits: int, guest: bool, swapped: bool) -> Output:
    """Describe how to make a file of support.c's functions, as LLVM IR; nothing is compiled yet.

    Of a target the IR depends on the size of a pointer only, not on byte order or CPU.

    Args:
        bits: width of a pointer in bits, 32 or 64.
        guest: True where the code runs in a guest, False where it runs in this process.
        swapped: True where the program's byte order is not that of the memory that it runs in.
    """
    defined = (f"-DGUEST={int(guest)}", f"-DSWAPPED={int(swapped)}")
    target = "aarch64-freestanding" if bits == 64 else "arm-freestanding"
    path = support_path(bits, guest, swapped).relative_to(HERE)
    return Output(str(path), ("support.c",), target, (*_IR_OPTIONS, *defined), normalised)


# --- the host's library

#: No C library: the same file serves glibc and musl. Functions of Python's are found in the process
#: that loads it.
_LIBRARY_OPTIONS: Final = (
    "-std=gnu11",
    "-O2",
    "-fomit-frame-pointer",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-fno-asynchronous-unwind-tables",
    "-fno-builtin",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    "-Werror",
    "-g0",
    "-shared",
    "-nostdlib",
    "-Wl,-z,now",
    "-Wl,--build-id=none",
    "-Wl,-s",
    "-Wl,-z,undefs",
)


#: Instead of -fno-sanitize=all: clang's checks of undefined behaviour, each of which ends the
#: process by a trap (no library is needed). Of alignment there is none: the library reads guests'
#: words where they stand.
_CHECKS: Final = (
    "-fsanitize=undefined",
    "-fno-sanitize=alignment",
    "-fsanitize-trap=all",
)


#: the library's sources
_LIBRARY_SOURCES: Final = (
    "sites.c",
    "calls.c",
    "counting.c",
    "dwarf.c",
    "edges.c",
    "engine.c",
    "events.c",
    "hits.c",
    "pages.c",
    "signals.c",
    "stacks.c",
)
#: The oldest macOS that a library is for: Python's own, on each processor.
MACOS: Final = {"x86_64": "11.0", "aarch64": "11.0"}
_OF_ELF: Final = "-Wl,-z,now", "-Wl,--build-id=none", "-Wl,-s", "-Wl,-z,undefs"


def _as_it_is(written: bytes) -> bytes:
    """Return the bytes that clang has written, unchanged. An Output.finish."""
    return written


def _library(host: str, checked: bool = False) -> Output:
    """Describe how to make the host code's library for Linux; nothing is compiled yet.

    Args:
        host: the host's architecture, as platform.machine() calls it.
        checked: True for one that traps where C's behaviour is undefined.
    """
    options: tuple[str, ...] = _LIBRARY_OPTIONS
    if checked:
        options = tuple(option for option in options if option != "-fno-sanitize=all") + _CHECKS
    target = f"{host}-linux-gnu"
    return Output(library_path(host).name, _LIBRARY_SOURCES, target, options, _as_it_is)


def for_macos(host: str) -> Output:
    """Describe how to make the library for macOS, where it was never run; nothing is compiled yet.

    Args:
        host: the host's architecture: "x86_64" or "aarch64".
    """
    options = [option for option in _LIBRARY_OPTIONS if option not in _OF_ELF]
    name = library_path(host, "Darwin").name
    linking = (*options, "-undefined", "dynamic_lookup", f"-Wl,-install_name,@rpath/{name}")
    return Output(
        name,
        _LIBRARY_SOURCES,
        f"{host}-macos.{MACOS[host]}-none",
        linking,
        _as_it_is,
    )


def for_windows() -> Output:
    """Describe how to make the library for Windows on x86-64; nothing is compiled yet.

    It imports Python's functions from python3.dll. The entry of zig's C library is left out, as it
    has nothing to begin; without it zig links no C library, which would be compiled first.
    """
    options = [option for option in _LIBRARY_OPTIONS if option not in (*_OF_ELF, "-fPIC")]
    linking = (*options, "-mno-stack-arg-probe", "-Wl,--no-entry", "-Wl,-s")
    return Output(
        library_path("x86_64", "Windows").name,
        _LIBRARY_SOURCES,
        "x86_64-windows-gnu",
        linking,
        _as_it_is,
        _python3_dll(),
    )


def _python3_dll() -> str:
    """Return the module definition of what python.h declares, as python3.dll has it."""
    header = re.sub(r"/\*.*?\*/", "", (HERE / "python.h").read_text(), flags=re.DOTALL)
    functions = sorted({*re.findall(r"^[\w ]+[ *](Py\w+)\(.*\);$", header, re.MULTILINE)})
    data = [
        name
        for line in header.splitlines()
        if line.startswith("DATA_OF_PYTHON")
        for name in re.findall(r"\b_?Py(?!Object\b)\w+", line)
    ]
    rows = [*functions, *(f"{name} DATA" for name in data)]
    return "\n".join(["LIBRARY python3.dll", "EXPORTS", *(f"  {row}" for row in rows), ""])


#: all that is made
OUTPUTS: Final = (
    _support(64, guest=False, swapped=False),
    _support(64, guest=True, swapped=False),
    _support(64, guest=True, swapped=True),
    _support(32, guest=True, swapped=False),
    _support(32, guest=True, swapped=True),
    _library("x86_64"),
    _library("aarch64"),
)


# --- the command


def compiler() -> list[str]:
    """Return the words of the command that runs zig; "cc" behind them is clang.

    Raises:
        SystemExit: ziglang is not installed, or has another version than pinned() says.
    """
    try:
        version = metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        raise SystemExit("this takes ziglang's compiler: pip install 'kprobes[jit]'") from None
    wanted = pinned()
    if wanted and version != wanted:
        raise SystemExit(
            f"ziglang is {version}, and what is checked in comes from {wanted}: "
            f"pip install ziglang=={wanted}"
        )
    return [sys.executable, "-m", "ziglang"]


def pinned() -> str:
    """Return the version of ziglang that the extra `jit` of kprobes names.

    Returns:
        "": kprobes is not installed, or the extra names no version.
    """
    try:
        lines = metadata.requires("kprobes") or []
    except metadata.PackageNotFoundError:
        return ""
    for line in lines:
        if line.startswith("ziglang=="):
            return line.partition("==")[2].partition(";")[0].strip()
    return ""


def made(output: Output, target: str = "") -> bytes:
    """Compile an output, and return the bytes that its file should have; the file is not written.

    Args:
        output: what to make.
        target: what to compile for instead of the output's own target; "": that target.

    Raises:
        SystemExit: there is no compiler, or it refuses the source.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "out"
        zig = compiler()
        libraries = [_import_library(zig, output.imports, Path(folder))] if output.imports else []
        command = [
            *zig,
            "cc",
            "-target",
            target or output.target,
            *output.options,
            "-o",
            str(written),
            *output.sources,
            *libraries,
        ]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{output.path}: {done.stderr}")
        return output.finish(written.read_bytes())


def _import_library(zig: list[str], imports: str, folder: Path) -> str:
    """Make what a Windows library is linked with to import from another one; return its path.

    Args:
        zig: the words that run zig.
        imports: text of the module definition file.
        folder: where both files are written.

    Raises:
        SystemExit: zig refuses the definition.
    """
    definition = folder / "imports.def"
    definition.write_text(imports)
    library = folder / "imports.lib"
    command = [*zig, "dlltool", "-m", "i386:x86-64", "-d", str(definition), "-l", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{definition}: {done.stderr}")
    return str(library)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command: compile OUTPUTS, write the files that have changed, and print their paths.
    The module's docstring says what the options change.

    Args:
        arguments: of the command line; None: the process's.

    Raises:
        SystemExit: there is no compiler, or it refuses the source; or with `--check`, something
            would change.
    """
    parser = argparse.ArgumentParser(
        prog="python -m kprobes.native.build",
        description="Compile kprobes/native/*.c to what is checked in beside them.",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where something would change"
    )
    parser.add_argument(
        "--checked",
        action="store_true",
        help="write this host's library only, with traps for undefined behaviour",
    )
    parser.add_argument(
        "--others",
        metavar="FOLDER",
        type=Path,
        help="write the libraries for macOS and Windows there, and nothing else; it is made",
    )
    options = parser.parse_args(arguments)
    if options.others is not None:
        options.others.mkdir(parents=True, exist_ok=True)
        for output in (for_macos("x86_64"), for_macos("aarch64"), for_windows()):
            (options.others / output.path).write_bytes(made(output))
        return
    outputs = [_library(platform.machine(), checked=True)] if options.checked else OUTPUTS
    stale = []
    for output in outputs:
        path = HERE / output.path
        content = made(output)
        if path.exists() and path.read_bytes() == content:
            continue
        stale.append(output.path)
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            # A process that has the old library mapped would die of SIGBUS where it is truncated.
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            print(f"{path}: written")
    if options.check and stale:
        raise SystemExit(f"stale: {', '.join(stale)}; run python -m kprobes.native.build")


if __name__ == "__main__":
    main()
