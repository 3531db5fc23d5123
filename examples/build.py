"""Rebuild the executables in this directory from their C files: `python examples/build.py [--check]`.

Needs `pip install ziglang==0.17.0` (a C compiler for every machine, as a Python package). The same version gives the
same bytes on every computer; --check builds into a temporary directory and compares instead of writing.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ZIG = "0.17.0"
TARGETS = {"x86_64": ["-target", "x86_64-freestanding-none"], "arm64": ["-target", "aarch64-freestanding-none"]}
PACKETS = TARGETS | {"arm": ["-target", "arm-freestanding-eabi"], "mips": ["-target", "mips-freestanding-eabi"]}
COMMON = [
    "-std=c11", "-O1", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fno-pic", "-fno-pie",
    "-fno-sanitize=all", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
    "-fomit-frame-pointer", "-fno-unroll-loops", "-fno-ident", "-g0", "-Wall", "-Wextra", "-Werror",
    "-Wl,--build-id=none",
]  # fmt: skip
#: no path of the compiler's own headers gets into debug information
FOUND = importlib.util.find_spec("ziglang")
NO_FOLDER = [f"-ffile-prefix-map={Path(FOUND.origin).parent}=zig"] if FOUND is not None and FOUND.origin else []
FLAGS = [*COMMON, "-Wl,-e,_start", "-Wl,--image-base=0x400000", "-Wl,-z,noexecstack"]
DEBUGGED = [*(flag for flag in FLAGS if flag != "-g0"), "-g", "-fdebug-compilation-dir=.", *NO_FOLDER]
UNSHARED = ("-static", "-fno-pic", "-fno-pie", "-g0")
LIBRARY = [*(flag for flag in COMMON if flag not in UNSHARED),
           "-shared", "-fPIC", "-g", "-fdebug-compilation-dir=.", *NO_FOLDER]
TAGS = {"arm64": "aarch64-linux-musl", "x86_64": "x86_64-linux-musl"}
RADIO = ["-target", "mips-freestanding-eabi", *COMMON, "-mno-abicalls", "-mno-gpopt", "-Wl,-e,reset", "-Wl,-T,radio.ld"]
ROUTER = ["-target", "mips-freestanding-eabi", *COMMON, "-mno-abicalls", "-mno-gpopt", "-Wl,--no-gc-sections",
          "-Wl,-e,start", "-Wl,-T,router.ld"]
LICENCE = ["-target", "arm-linux-musleabihf", "-std=c11", "-Os", "-static", "-fno-sanitize=all", "-fno-ident", "-g0",
           "-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none", "-Wl,-s"]
FIRMWARE = ["-target", "thumb-freestanding-eabi", "-mcpu=cortex_m3", *COMMON, "-Wl,-e,reset", "-Wl,-T,firmware.ld"]


def check_compiler() -> None:
    """Exit with a message unless the pinned ziglang is installed: another version gives other bytes."""
    try:
        version = metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        version = "none"
    if version != ZIG:
        sys.exit(f"examples are built with ziglang {ZIG}, found {version}: pip install ziglang=={ZIG}")


def build(source: str, target: list[str], output: Path) -> None:
    """Compile a program for one machine. Runs in this directory, so no path of the builder gets into the file."""
    command = [sys.executable, "-m", "ziglang", "cc", *target, f"{source}.c", "-o", str(output)]
    subprocess.run(command, cwd=HERE, check=True)


def build_library(source: str, target: str, folder: Path) -> bytes:
    """A C file as a shared library with debug information, which imports malloc() and free()."""
    output = folder / "library"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *LIBRARY, f"{source}.c", "-o", str(output)]
    subprocess.run(command, cwd=HERE, check=True)
    return output.read_bytes()


def build_firmware(name: str, flags: list[str], folder: Path) -> dict[str, bytes]:
    """File name -> contents: the image as it is in flash memory, and its functions as `nm` lists them."""
    from elftools.elf.elffile import ELFFile

    program = folder / f"{name}.elf"
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *flags, f"{name}.c", "-o", str(program)], cwd=HERE,
                   check=True)
    with program.open("rb") as file:
        elf = ELFFile(file)
        functions = [s for s in elf.get_section_by_name(".symtab").iter_symbols() if s["st_info"]["type"] == "STT_FUNC"]
        listing = "".join(sorted(f"{s['st_value'] & ~1:08x} {s['st_size']:08x} T {s.name}\n" for s in functions))
        return {f"{name}.bin": elf.get_section_by_name(".text").data(), f"{name}.symbols": listing.encode()}


def build_router(folder: Path) -> bytes:
    """The router's image, as it is in flash memory."""
    from elftools.elf.elffile import ELFFile

    program = folder / "router.elf"
    build("router", ROUTER, program)
    with program.open("rb") as file:
        return bytes(ELFFile(file).get_section_by_name(".text").data())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the files here, change nothing")
    options = parser.parse_args()
    check_compiler()
    with tempfile.TemporaryDirectory() as directory:
        programs = {(source, arch): [*target, *FLAGS] for source in ("demo", "kernel_init")
                    for arch, target in TARGETS.items()}
        programs |= {("packets", arch): [*target, *DEBUGGED] for arch, target in PACKETS.items()}
        for (source, arch), target in programs.items():
            build(source, target, Path(directory, f"{source}.{arch}"))
        fresh = {f"{source}.{arch}": Path(directory, f"{source}.{arch}").read_bytes() for source, arch in programs}
        fresh |= build_firmware("firmware", FIRMWARE, Path(directory)) | build_firmware("radio", RADIO, Path(directory))
        fresh["router.bin"] = build_router(Path(directory))
        build("licence", LICENCE, Path(directory, "licence"))
        fresh["licence.armhf"] = Path(directory, "licence").read_bytes()
        fresh["notes.arm64"] = build_library("notes", TAGS["arm64"], Path(directory))
        fresh |= {f"tags.{arch}": build_library("tags", target, Path(directory)) for arch, target in TAGS.items()}
    for name, made in fresh.items():
        kept = HERE / name
        same = kept.exists() and kept.read_bytes() == made
        print(f"{name}: {len(made)} bytes, {'unchanged' if same else 'different'}")
        if options.check and not same:
            sys.exit(f"{name} is not what its source compiles to; run python examples/build.py")
        if not same:
            kept.write_bytes(made)


if __name__ == "__main__":
    main()
