"""Rebuild tests/programs/bin and expected.json from src: `python tests/programs/build.py [--check] [arch...]`.

The executables are part of the repository: run this only after a change in src. Compilers: zig cc (`pip install
ziglang`, the version below) for most machines, Debian's gcc cross compilers for those zig cannot build or cannot build
usefully. A machine whose compiler is missing is skipped with a message. The same compilers give the same bytes.

The expected values come from the same C compiled for this computer, by gcc and by zig at -O0 and -O2, which must agree.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).resolve().parent
BIN = HERE / "bin"
EXPECTED = HERE / "expected.json"
ZIG = "0.17.0"
GCC = "12.2.0"
SEEDS = (1, 2, 7, 1000, 0x7FFFFFFF, 0xDEADBEEF)
LEVELS = {"O0": ("-O0",), "O2": ("-O2", "-fomit-frame-pointer")}

COMMON_FLAGS = [
    "-std=gnu11", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-fno-stack-protector", "-ffp-contract=off",
    "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-ident", "-ffunction-sections", "-fno-unroll-loops",
    "-g0",
    "-Wall", "-Wextra", "-Werror", "-Isrc",
]  # fmt: skip
LINK_FLAGS = ["--gc-sections", "--build-id=none", "-e", "_start", "-z", "noexecstack"]
ZIG_BASE = "--image-base=0x400000"
GCC_BASE = "-Ttext-segment=0x400000"
ALWAYS = ("run_all", "arithmetic", "recursion", "calls", "control", "memory", "structures", "runtime")
FEATURE_FILES = {"SETJMP": "jumps", "ATOMICS": "atomics", "FLOAT": "floating"}


@frozen(kw_only=True)
class Target:
    """How one machine's programs are built.

    Attributes:
        compiler: "zig", or the gcc command. flags: machine flags. features: which of FEATURE_FILES it gets.
        helpers: sources of 64-bit arithmetic, for 32-bit machines.
        levels: keys of LEVELS; variants of a machine that has -O0 already get -O2 only.
        page: bytes to which segments are aligned.
    """

    compiler: str = "zig"
    flags: tuple[str, ...]
    features: tuple[str, ...] = ("SETJMP", "ATOMICS", "FLOAT")
    helpers: tuple[str, ...] = ()
    levels: tuple[str, ...] = ("O0", "O2")
    page: int = 4096

    def sources(self) -> list[str]:
        names = [*ALWAYS, *(FEATURE_FILES[f] for f in self.features), *self.helpers]
        return [f"src/{name}.c" for name in names]

    def defines(self) -> list[str]:
        return [f"-DWITH_{feature}" for feature in self.features]


def zig(triple: str, *flags: str, **rest: tuple[str, ...] | str) -> Target:
    return Target(flags=("-target", triple, *flags), **rest)  # type: ignore[arg-type]


NO_SETJMP = ("ATOMICS", "FLOAT")
NO_FLOAT = ("SETJMP", "ATOMICS")
OPTIMIZED = ("O2",)
WORD = ("helpers",)
ARM_WORD = ("helpers", "helpers_arm")
SH_WORD = ("helpers", "helpers_sh")
ARM_OLD = (*ARM_WORD, "helpers_arm_divide")
N64 = ("-Wno-option-ignored",)  # zig asks for -fno-pic, which this ABI does not have

TARGETS = {
    "x86_64": zig("x86_64-freestanding-none", "-fno-pic"),
    "i386": zig("x86-freestanding-none", "-fno-pic", helpers=WORD),
    "arm": zig("arm-freestanding-eabi", "-mcpu=cortex_a15-fpregs", features=NO_FLOAT, helpers=ARM_WORD),
    "armhf": zig("arm-freestanding-eabihf", "-mcpu=cortex_a15", helpers=ARM_WORD),
    "thumb": zig("thumb-freestanding-eabihf", "-mcpu=cortex_a15", helpers=ARM_WORD),
    "armeb": zig("armeb-freestanding-eabi", "-mcpu=cortex_a15-fpregs", features=NO_FLOAT, helpers=ARM_WORD),
    "armeb32": zig("armeb-freestanding-eabi", "-mcpu=arm926ej_s", features=("SETJMP",), helpers=ARM_OLD,
                   levels=OPTIMIZED),
    "cortexm": zig("thumb-freestanding-eabi", "-mcpu=cortex_m3", features=NO_FLOAT, helpers=ARM_WORD),
    "arm64": zig("aarch64-freestanding-none", features=NO_SETJMP),
    "arm64be": zig("aarch64_be-freestanding-none", features=NO_SETJMP),
    "mips": zig("mips-freestanding-eabihf", "-mcpu=mips32r2", features=NO_SETJMP, helpers=WORD),
    "mipsel": zig("mipsel-freestanding-eabihf", "-mcpu=mips32r2", features=NO_SETJMP, helpers=WORD),
    "mips64": zig("mips64-freestanding-none", "-mcpu=mips64r2", *N64, features=NO_SETJMP),
    "mips64el": zig("mips64el-freestanding-none", "-mcpu=mips64r2", *N64, features=NO_SETJMP),
    "mips32r6el": zig("mipsel-freestanding-eabihf", "-mcpu=mips32r6", features=NO_SETJMP, helpers=WORD,
                      levels=OPTIMIZED),
    "mips64r6el": zig("mips64el-freestanding-none", "-mcpu=mips64r6", *N64, features=NO_SETJMP, levels=OPTIMIZED),
    "ppc": zig("powerpc-freestanding-eabihf", helpers=WORD),
    "ppc64": zig("powerpc64-freestanding-none"),
    "ppc64le": zig("powerpc64le-freestanding-none"),
    "ppc64v1": Target(compiler="powerpc64-linux-gnu-gcc", flags=("-mabi=elfv1", "-mcpu=power4"), levels=OPTIMIZED),
    "riscv32": zig("riscv32-freestanding-none", "-mcpu=baseline_rv32", features=NO_SETJMP, helpers=WORD),
    "riscv64": zig("riscv64-freestanding-none", "-mcpu=baseline_rv64", features=NO_SETJMP),
    "loongarch64": zig("loongarch64-freestanding-none", features=NO_SETJMP),
    "s390x": zig("s390x-freestanding-none", "-mcpu=z10"),
    "sparc": Target(compiler="sparc64-linux-gnu-gcc", flags=("-m32", "-mcpu=leon3", "-mflat"), helpers=WORD),
    "sparcw": Target(compiler="sparc64-linux-gnu-gcc", flags=("-m32", "-mcpu=leon3"), helpers=WORD, levels=OPTIMIZED),
    "sparc64": Target(compiler="sparc64-linux-gnu-gcc", flags=("-m64", "-mcpu=v9", "-mflat", "-mno-fpu"),
                      features=NO_FLOAT),
    "alpha": Target(compiler="alpha-linux-gnu-gcc", flags=("-mcpu=ev67", "-mieee"), helpers=("helpers_alpha",),
                    page=1 << 16),
    "parisc": Target(compiler="hppa-linux-gnu-gcc", flags=("-march=1.1", "-Wl,--defsym=$global$=0"),
                     features=("SETJMP", "FLOAT"), helpers=(*WORD, "helpers_parisc")),
    "sh4": Target(compiler="sh4-linux-gnu-gcc", flags=("-m4", "-ml", "-mno-ieee"), helpers=SH_WORD),
    "sh4eb": Target(compiler="sh4-linux-gnu-gcc", flags=("-m4", "-mb", "-mno-ieee", "-Wl,-mshlelf_linux,-EB"),
                    helpers=SH_WORD),
    "m68k": Target(compiler="m68k-linux-gnu-gcc", flags=("-m68040",), helpers=WORD),
}


def zig_command() -> list[str]:
    return [sys.executable, "-m", "ziglang", "cc"]


def gcc_version(command: str) -> str:
    if shutil.which(command) is None:
        return "none"
    run = subprocess.run([command, "-dumpfullversion"], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def missing(compiler: str) -> str:
    """What to tell a user who lacks the compiler; empty if it is there in the pinned version."""
    if compiler != "zig":
        found = gcc_version(compiler)
        return ("" if found == GCC
                else f"needs {compiler} {GCC} (Debian 12: apt-get install gcc-{compiler[:-4]}), found {found}")
    try:
        found = metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        found = "none"
    return "" if found == ZIG else f"needs ziglang {ZIG} (pip install ziglang=={ZIG}), found {found}"


def run(command: list[str]) -> None:
    """Runs in this directory, so no path of the builder gets into a file."""
    if subprocess.run(command, cwd=HERE, check=False).returncode:
        sys.exit("failed: " + " ".join(command))


def compiler_of(target: Target) -> list[str]:
    if target.compiler == "zig":
        return [*zig_command(), "-fno-sanitize=all"]
    return [target.compiler, "-no-pie", "-fno-pic", "-Wno-psabi"]


def compile_target(target: Target, level: str, output: Path) -> None:
    flags = [*COMMON_FLAGS, *LEVELS[level], *target.flags, *target.defines()]
    link = [*LINK_FLAGS, "-z", f"max-page-size={target.page}", ZIG_BASE if target.compiler == "zig" else GCC_BASE]
    run([*compiler_of(target), *flags, *target.sources(), "-Wl," + ",".join(link), "-o", str(output)])


def place(fresh: Path, kept: Path, check: bool) -> bool:
    """Put a fresh build in place and say so; with check only compare. True unless a check failed."""
    same = kept.exists() and kept.read_bytes() == fresh.read_bytes()
    print(f"{kept.name}: {fresh.stat().st_size} bytes, {'unchanged' if same else 'different'}")
    if not same and not check:
        kept.write_bytes(fresh.read_bytes())
    return same or not check


def build(arch: str, directory: Path, check: bool) -> bool:
    target = TARGETS[arch]
    problem = missing(target.compiler)
    if problem:
        print(f"{arch}: skipped: {problem}")
        return True
    results = []
    for level in target.levels:
        fresh = directory / f"{arch}-{level}"
        compile_target(target, level, fresh)
        results.append(place(fresh, BIN / f"{arch}-{level}.elf", check))
    return all(results)


ORACLE = """
#include "src/suite.h"
int printf(const char *, ...);
#define SHOW(name) printf("test_" #name " %u\\n", test_##name(seed));
int main(void) {
    static const uint32_t seeds[] = {SEEDS};
    for (unsigned n = 0; n < 2 * COUNT(seeds); n++) {
        uint32_t seed = seeds[n % COUNT(seeds)];
        EVERY_TEST(SHOW)
#ifdef WITH_SETJMP
        SETJMP_TESTS(SHOW)
#endif
#ifdef WITH_ATOMICS
        ATOMIC_TESTS(SHOW)
#endif
#ifdef WITH_FLOAT
        FLOAT_TESTS(SHOW)
#endif
        printf("run_all %u\\n", run_all(seed));
    }
    return 0;
}
"""


def native_values(compiler: list[str], features: tuple[str, ...], directory: Path) -> dict[str, list[int]]:
    """Name -> result for each of SEEDS, from the tests compiled for this computer."""
    program, source = directory / "oracle", directory / "oracle.c"
    source.write_text(ORACLE)
    target = Target(flags=(), features=features)
    sources = [s for s in target.sources() if s != "src/runtime.c"]
    seeds = "-DSEEDS=" + ",".join(f"{seed}u" for seed in SEEDS)
    flags = ["-std=gnu11", "-fno-builtin", "-ffp-contract=off", "-I.", "-Isrc", "-D_start=suite_start", seeds,
             *target.defines()]
    run([*compiler, *flags, *sources, str(source), "-o", str(program)])
    lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    values: dict[str, list[int]] = {}
    for name, value in (line.split() for line in lines):
        values.setdefault(name, []).append(int(value))
    return {name: once(name, found) for name, found in values.items()}


def once(name: str, found: list[int]) -> list[int]:
    """Every seed was run twice: a result must not depend on what ran before."""
    first, second = found[: len(SEEDS)], found[len(SEEDS) :]
    if first != second:
        sys.exit(f"{name} keeps something from one call to the next: {first} {second}")
    return first


def oracles() -> Iterator[list[str]]:
    for level in LEVELS:
        yield [*zig_command(), "-fno-sanitize=all", f"-{level}"]
        if shutil.which("gcc"):
            yield ["gcc", f"-{level}"]


def agreed_values(features: tuple[str, ...], directory: Path) -> dict[str, list[int]]:
    found = [native_values(compiler, features, directory) for compiler in oracles()]
    if any(values != found[0] for values in found):
        sys.exit("the native compilers disagree: a test depends on something C leaves open")
    return found[0]


def expected(directory: Path) -> str:
    """The text of expected.json: results of each test, and of run_all, which depends on what the machine's build
    has."""
    by_features = {t.features: agreed_values(t.features, directory) for t in TARGETS.values()}
    tests = {name: values for found in by_features.values() for name, values in found.items() if name != "run_all"}
    run_all = {arch: by_features[target.features]["run_all"] for arch, target in TARGETS.items()}
    sections = {"tests": tests, "run_all": run_all}
    lines = [
        f"  {json.dumps(key)}: {{\n" + ",\n".join(f"    {json.dumps(n)}: {json.dumps(v)}"
                                                  for n, v in rows.items()) + "\n  }"
        for key, rows in sections.items()
    ]
    return "{\n" + f'  "seeds": {json.dumps(SEEDS)},\n' + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is here, change nothing")
    parser.add_argument("arch", nargs="*", help="default: all")
    options = parser.parse_args()
    unknown = sorted(set(options.arch) - set(TARGETS))
    if unknown:
        parser.error(f"no such arch: {' '.join(unknown)}; there are: {' '.join(TARGETS)}")
    BIN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        results = [build(arch, directory, options.check) for arch in options.arch or TARGETS]
        if not missing("zig"):
            fresh = directory / "expected.json"
            fresh.write_text(expected(directory))
            results.append(place(fresh, EXPECTED, options.check))
    if not all(results):
        sys.exit("different from what src compiles to; run python tests/programs/build.py")


if __name__ == "__main__":
    main()
