"""Random programs for many architectures whose functions pass and return every kind of C value, compiled by clang, or
by the cross-compilers of GCC that are installed.

Each function keeps what it got in a variable for each parameter, `got_FUNCTION_PARAMETER`, and what it returns in
`got_FUNCTION`: the program itself says what was passed. `driver` calls all functions.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import frozen

#: architecture -> clang's target and options
TARGETS = {
    "riscv64": ("riscv64-freestanding-none", "-march=rv64gc", "-mabi=lp64d"),
    "riscv64 soft": ("riscv64-freestanding-none", "-march=rv64gc", "-mabi=lp64"),
    "riscv32": ("riscv32-freestanding-none", "-march=rv32gc", "-mabi=ilp32d"),
    "riscv32 soft": ("riscv32-freestanding-none", "-march=rv32gc", "-mabi=ilp32"),
    "s390x": ("s390x-freestanding-none", "-march=z10"),
    "arm64": ("aarch64-freestanding-none",),
    "arm64be": ("aarch64_be-freestanding-none",),
    "mips64": ("mips64-freestanding-none", "-march=mips64r2", "-mhard-float"),
    "mips64el": ("mips64el-freestanding-none", "-march=mips64r2", "-mhard-float"),
    "mips32": ("mips-freestanding-none", "-march=mips32r2", "-mhard-float", "-mfp32"),
    "mips32el": ("mipsel-freestanding-none", "-march=mips32r2", "-mhard-float", "-mfp32"),
    "mips32 any": ("mips-freestanding-none", "-march=mips32r2", "-mhard-float"),
    "mips32 soft": ("mipsel-freestanding-none", "-march=mips32r2", "-msoft-float"),
    "mips32r6": ("mips-freestanding-none", "-march=mips32r6", "-mhard-float", "-mfp64"),
    "ppc64": ("powerpc64-freestanding-none", "-mabi=elfv2"),
    "ppc64le": ("powerpc64le-freestanding-none",),
    "ppc": ("powerpc-freestanding-none",),
    "i386": ("i386-unknown-none-elf",),
    "x86_64": ("x86_64-freestanding-none",),
    "loongarch64": ("loongarch64-freestanding-none", "-mabi=lp64d"),
    "arm": ("armv7a-freestanding-eabihf",),
    "arm soft": ("armv7a-freestanding-eabi",),
    "armeb": ("armebv7a-freestanding-eabihf",),
    "armeb soft": ("armebv7a-freestanding-eabi",),
    "thumb": ("thumbv7a-freestanding-eabihf",),
    "cortexm": ("thumbv7em-freestanding-eabihf", "-mcpu=cortex-m4"),
    "cortexm soft": ("thumbv7m-freestanding-eabi",),
}
_ARM = ("arm-linux-gnueabihf", "-march=armv7-a+fp")
_MIPS = ("-mno-abicalls", "-G0")  #: no register points at data
#: architecture -> the prefix of GCC's names, and options
GNU_TARGETS = {
    "riscv64": ("riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64d"),
    "riscv64 soft": ("riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64"),
    "s390x": ("s390x-linux-gnu", "-march=z10"),
    "arm64": ("aarch64-linux-gnu",),
    "arm64be": ("aarch64-linux-gnu", "-mbig-endian"),
    "mips64el": ("mips64el-linux-gnuabi64", "-march=mips64r2", *_MIPS),
    "mips32": ("mips-linux-gnu", "-march=mips32r2", "-mfp32", *_MIPS),
    "mips32el": ("mips-linux-gnu", "-march=mips32r2", "-mfp32", "-EL", *_MIPS),
    "mips32 any": ("mips-linux-gnu", "-march=mips32r2", "-mfpxx", *_MIPS),
    "mips32 soft": ("mips-linux-gnu", "-march=mips32r2", "-msoft-float", *_MIPS),
    "ppc64": ("powerpc64-linux-gnu",),
    "ppc64le": ("powerpc64le-linux-gnu",),
    "ppc": ("powerpc64-linux-gnu", "-m32"),
    "ppc soft": ("powerpc64-linux-gnu", "-m32", "-msoft-float"),
    "i386": ("x86_64-linux-gnu", "-m32"),
    "x86_64": ("x86_64-linux-gnu",),
    "arm": _ARM,
    "arm soft": (*_ARM, "-mfloat-abi=soft"),
    "armeb": (*_ARM, "-mbig-endian"),
    "armeb soft": (*_ARM, "-mbig-endian", "-mfloat-abi=soft"),
    "thumb": (*_ARM, "-mthumb"),
    "cortexm": ("arm-linux-gnueabihf", "-mcpu=cortex-m4", "-mthumb"),
    "cortexm soft": ("arm-linux-gnueabihf", "-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"),
}
#: beginning of a target -> options
LINKING = {"riscv": ("--no-relax",), "armeb": ("-EB", "--be8"), "mips32el": ("-EL",), "arm64be": ("-EB",), "ppc64": (),
           "ppc": ("-m", "elf32ppc"), "i386": ("-m", "elf_i386")}
NARROW = ("ppc", "ppc soft", "i386", "arm", "arm soft", "armeb", "armeb soft", "thumb", "cortexm", "cortexm soft")  #: of 32 bits, besides those with 32 in their names
VERSION = 12  #: of GCC
FLAGS = ("-g", "-ffreestanding", "-fno-builtin", "-fno-pic", "-fno-stack-protector", "-fno-sanitize=all", "-fomit-frame-pointer", "-w", "-gz=none",
         "-c")
INTEGERS = {"signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned": 32, "long long": 64,
            "unsigned long long": 64}
FRAME = """
#define KEEP __attribute__((noinline, noipa))
volatile int sink;
static inline void use(const volatile void *p) { __asm__ volatile ("" :: "r"(p) : "memory"); }
%(extern)s {
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n)
{ volatile char *t = (char *)to; const char *f = (const char *)from; while (n--) *t++ = *f++; return to; }
void *memset(void *to, int c, __SIZE_TYPE__ n) { volatile char *t = (char *)to; while (n--) *t++ = (char)c; return to; }
#ifdef __arm__
#define COPIES(n) void __aeabi_memcpy##n(void *to, const void *from, __SIZE_TYPE__ size) { memcpy(to, from, size); } \\
    void __aeabi_memclr##n(void *to, __SIZE_TYPE__ size) { memset(to, 0, size); }
COPIES() COPIES(4) COPIES(8)
#endif
void *memmove(void *to, const void *from, __SIZE_TYPE__ n) { return memcpy(to, from, n); }
}
"""
END = """
%(extern)s {
KEEP void after_all(void) { sink = 1; }
KEEP void driver(void) { %(calls)s after_all(); }
KEEP void finished(void) { sink = 2; }
KEEP void _start(void) { driver(); for (;;) finished(); }
}
"""


@frozen
class CallProgram:
    """A compiled program.

    Attributes:
        path: of the executable file.
        functions: name -> number of parameters, and whether it returns something.
    """

    path: Path
    functions: dict[str, tuple[int, bool]]


class Generator:
    """Draws a program.

    Args:
        rng: draws everything.
        wide: True: the target has __int128.
        cpp: True: C++.
    """

    def __init__(self, rng: random.Random, wide: bool, cpp: bool) -> None:
        self.rng, self.wide, self.cpp = rng, wide, cpp
        self.types: list[tuple[str, str]] = []  # (type, statements that fill *p)
        self.text: list[str] = []

    def scalar(self, long_double: bool = True) -> str:
        """A type that is no structure."""
        rng = self.rng
        rare = ["void *", "enum color", "bool" if self.cpp else "_Bool"]
        rare += ["long double"] * long_double + ["_Complex float", "_Complex double"] * (not self.cpp) + ["__int128"] * self.wide
        return rng.choice([*INTEGERS, "float", "double", "float", "double", "long", rng.choice(rare)])

    def number(self, type: str) -> str:
        """A constant of a type."""
        rng = self.rng
        if type.startswith("_Complex"):
            return f"({type})({rng.randrange(1, 999) / 8} + {rng.randrange(1, 999) / 8}j)"
        if type in ("float", "double", "long double"):
            return f"({type}){rng.randrange(-4000, 4000) / 16}"
        if type == "__int128":
            return f"(((__int128){rng.randrange(1 << 62)} << 61) ^ {rng.randrange(1 << 60)})"
        if type in ("_Bool", "bool"):
            return "1"
        if type == "void *":
            return f"(void *){rng.randrange(1 << 31)}"
        if type == "enum color":
            return rng.choice(["GREEN", "BLUE"])
        return f"({type}){rng.randrange(1 << INTEGERS.get(type, 31))}ull"

    def fill(self, place: str, type: str) -> str:
        """The statements that give a place a value."""
        if "struct" in type or "union" in type:
            return dict(self.types)[type].replace("p->", f"{place}.")
        return f"{place} = {self.number(type)}; "

    def structure(self, n: int) -> None:
        """Add a structure or union."""
        rng = self.rng
        keyword = "union" if rng.random() < 0.15 else "struct"
        reals = rng.choice(["", "", "float", "double", "real"])
        members, filled = [], []
        for m in range(rng.choice([1, 1, 2, 2, 2, 3, 4, 5])):
            name, place = f"m{m}", f"p->m{m}"
            type = self.scalar()
            if reals:
                type = rng.choice(["float", "double"]) if reals == "real" else reals
                if rng.random() < 0.15:
                    type = self.scalar()
            chance = rng.random()
            if self.types and chance < 0.15:
                type = rng.choice(self.types)[0]
                members.append(f"{type} {name};")
                filled.append(self.fill(place, type))
            elif chance < 0.3:
                count = rng.randrange(1, 4)
                members.append(f"{type} {name}[{count}];")
                filled += [self.fill(f"{place}[{i}]", type) for i in range(count)]
            elif type in INTEGERS and chance < 0.5 and keyword == "struct":
                members.append(f"{type} {name} : {rng.randrange(1, INTEGERS[type] + 1)};")
                filled.append(self.fill(place, type))
            else:
                members.append(f"{type} {name};")
                filled.append(self.fill(place, type))
        packed = ""
        if keyword == "struct" and rng.random() < 0.12:  # visibly: where no member is moved debug information does not tell
            packed = "__attribute__((packed)) "
            members.insert(0, "char first; double second;")
            filled.insert(0, "p->first = 'x'; p->second = 2.5;")
        self.text.append(f"{keyword} {packed}s{n} {{ {' '.join(members)} }};")
        self.types.append((f"{keyword} s{n}", "".join(filled) if keyword == "struct" else filled[0]))

    def function(self, n: int) -> tuple[int, bool, str]:
        """Add a function; return its number of parameters, whether it returns something, and a call of it."""
        rng = self.rng
        count = rng.choice([1, 2, 3, 4, 6, 9, 12])
        structures = [type for type, _ in self.types]
        types = [rng.choice(structures) if rng.random() < 0.55 else self.scalar() for _ in range(count)]
        result = rng.choice(["void", self.scalar(), *[rng.choice(structures)] * 4])
        kept = "".join(f"{type} got_{n}_{i};" for i, type in enumerate(types))
        if result != "void":
            kept += f"{result} got_{n};"
        body = "".join(f"got_{n}_{i} = a{i}; use(&got_{n}_{i}); " for i in range(count))
        if result != "void":
            body += f"{result} out; memset(&out, 0, sizeof out); {self.fill('out', result)} got_{n} = out; use(&got_{n}); return out;"
        extern = 'extern "C" ' if self.cpp else ""
        self.text.append(f"{kept} {extern}KEEP {result} f{n}({', '.join(f'{type} a{i}' for i, type in enumerate(types))}) {{ {body} }}")
        given = "".join(f"{type} v{i}; memset(&v{i}, 0, sizeof v{i}); {self.fill(f'v{i}', type)}" for i, type in enumerate(types))
        return count, result != "void", f"{{ {given} f{n}({', '.join(f'v{i}' for i in range(count))}); }}"

    def program(self) -> tuple[str, dict[str, tuple[int, bool]]]:
        """The source, and its functions as CallProgram has them."""
        extern = {"extern": 'extern "C"' if self.cpp else "", "calls": ""}
        self.text += [FRAME % extern, "enum color { RED, GREEN = 5, BLUE = 200 };"]
        empty = "struct none { };"
        self.text.append(empty)
        for n in range(self.rng.randrange(5, 9)):
            self.structure(n)
        if self.rng.random() < 0.5:
            self.types.append(("struct none", ""))
        functions = {}
        for n in range(8):
            count, returns, call = self.function(n)
            functions[f"f{n}"] = count, returns
            extern["calls"] += call
        self.text.append((END if self.cpp else END.replace("%(extern)s {", "").rstrip().removesuffix("}")) % extern)
        text = "\n".join(self.text)
        if not self.cpp:
            text = text.replace("\n {\nvoid *memcpy", "\nvoid *memcpy").replace("n); }\n}\n", "n); }\n")
        return text, functions


def gnu(target: str, cpp: bool) -> str:
    """GCC's command for a target of GNU_TARGETS; "": it is not installed.

    Args:
        target: its name.
        cpp: True: that of C++.
    """
    return shutil.which(f"{GNU_TARGETS[target][0]}-{'g++' if cpp else 'gcc'}-{VERSION}") or ""


def build(target: str, seed: int, level: int, folder: Path, cpp: bool = False, with_gnu: bool = False) -> CallProgram:
    """A random program for a target of TARGETS.

    Args:
        target: its name.
        seed: of the program.
        level: of optimization.
        folder: where its source and the program are written.
        cpp: True: in C++, else C.
        with_gnu: True: GCC compiles it, else clang.
    """
    rng = random.Random(f"{seed} {cpp}")
    wide = "32" not in target and target not in NARROW
    source, functions = Generator(rng, wide, cpp).program()
    path = folder / f"{target.replace(' ', '_')}-{seed}-O{level}{'-gnu' if with_gnu else ''}"
    return CallProgram(compiled(target, source, path, level, cpp, with_gnu), functions)


def compiled(target: str, source: str, path: Path, level: int, cpp: bool = False, with_gnu: bool = False) -> Path:
    """Compile a program for a target of TARGETS, and return `path`.

    Args:
        target: its name.
        source: of the program.
        path: of the executable file; beside it are the source and the object file.
        level: of optimization.
        cpp: True: in C++, else C.
        with_gnu: True: GCC compiles it, else clang.
    """
    folder, name = path.parent, path.name
    language = "c++" if cpp else "c"
    (folder / f"{name}.c").write_text(source)
    linking = next((options for first, options in LINKING.items() if target.startswith(first)), ())
    if with_gnu:
        prefix, *options = GNU_TARGETS[target]
        compiler = [gnu(target, cpp), *options]
        linker = [f"{prefix}-ld", *linking, "-Ttext-segment=0x400000"]
    else:
        triple, *options = TARGETS[target]
        zig = [sys.executable, "-m", "ziglang"]
        compiler = [*zig, "clang", "-target", triple, *options]
        linker = [*zig, "ld.lld", *linking, "--image-base=0x400000"]
    commands = [[*compiler, *FLAGS, f"-O{level}", "-x", language, f"{name}.c", "-o", f"{name}.o"],
                [*linker, "-static", "-e", "_start", f"{name}.o", "-o", name]]
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[:3000]}")
    return path
