"""Random programs for many architectures whose functions pass and return every kind of C value, compiled by clang.

Each function keeps what it got in a variable for each parameter, `got_FUNCTION_PARAMETER`, and what it returns in
`got_FUNCTION`: the program itself says what was passed. `driver` calls all functions.
"""

from __future__ import annotations

import random
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
    "ppc64": ("powerpc64-freestanding-none",),
    "x86_64": ("x86_64-freestanding-none",),
    "loongarch64": ("loongarch64-freestanding-none", "-mabi=lp64d"),
}
FLAGS = ("-g", "-ffreestanding", "-fno-builtin", "-fno-pic", "-fno-stack-protector", "-fno-sanitize=all", "-fomit-frame-pointer", "-w", "-gz=none",
         "-c")
INTEGERS = {"signed char": 8, "unsigned char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned": 32, "long long": 64,
            "unsigned long long": 64}
FRAME = """
#define KEEP __attribute__((noinline))
volatile int sink;
static inline void use(const volatile void *p) { __asm__ volatile ("" :: "r"(p) : "memory"); }
%(extern)s {
void *memcpy(void *to, const void *from, __SIZE_TYPE__ n)
{ volatile char *t = (char *)to; const char *f = (const char *)from; while (n--) *t++ = *f++; return to; }
void *memset(void *to, int c, __SIZE_TYPE__ n) { volatile char *t = (char *)to; while (n--) *t++ = (char)c; return to; }
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


def build(target: str, seed: int, level: int, folder: Path, cpp: bool = False) -> CallProgram:
    """A random program for a target of TARGETS.

    Args:
        target: its name.
        seed: of the program.
        level: of optimization.
        folder: where its source and the program are written.
        cpp: True: in C++, else C.
    """
    rng = random.Random(f"{seed} {cpp}")
    source, functions = Generator(rng, "32" not in target, cpp).program()
    path = folder / f"{target.replace(' ', '_')}-{seed}-O{level}"
    return CallProgram(compiled(target, source, path, level, cpp), functions)


def compiled(target: str, source: str, path: Path, level: int, cpp: bool = False) -> Path:
    """Compile a program for a target of TARGETS, and return `path`.

    Args:
        target: its name.
        source: of the program.
        path: of the executable file; beside it are the source and the object file.
        level: of optimization.
        cpp: True: in C++, else C.
    """
    triple, *options = TARGETS[target]
    folder, name = path.parent, path.name
    language = "c++" if cpp else "c"
    (folder / f"{name}.c").write_text(source)
    zig = [sys.executable, "-m", "ziglang"]
    commands = [[*zig, "clang", "-target", triple, *options, *FLAGS, f"-O{level}", "-x", language, f"{name}.c", "-o", f"{name}.o"],
                [*zig, "ld.lld", "-static", "-e", "_start", "--image-base=0x400000", f"{name}.o", "-o", name]]
    for command in commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[:3000]}")
    return path
