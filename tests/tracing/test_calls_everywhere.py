"""Parameters and results of any type are what the program itself keeps of them, on many architectures.

By hand: `CALLS=50 pytest tests/tracing/test_calls_everywhere.py -s` compares 50 programs for each architecture.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from call_programs import GNU_TARGETS, TARGETS, build, compiled, gnu
from elftools.elf.elffile import ELFFile

from kprobes import EventError, Kprobes, QemuMachine, UnicornMachine

COUNT = int(os.environ.get("CALLS", "1"))  #: programs for each architecture
#: the usual ones of those that Unicorn runs; the others by hand
FOREIGN = ("loongarch64", "ppc64le")  #: those that no Unicorn runs
USUAL = ("riscv64", "riscv64 soft", "riscv32", "s390x", "arm64", "arm64be", "x86_64", "mips64", "mips32el", "arm", "armeb soft", "cortexm", "ppc64")
USUAL_GNU = ("riscv64", "s390x", "arm64", "mips32", "arm", "arm soft", "armeb", "ppc64", "ppc64le", "ppc", "i386")
GNU_KINDS = [target for target in GNU_TARGETS if target in USUAL_GNU or COUNT > 1]
KINDS = [target for target in TARGETS if target in USUAL or COUNT > 1]

pytestmark = pytest.mark.skipif(find_spec("ziglang") is None, reason="there is no clang of all targets: pip install ziglang")


def same(mine: Any, kept: Any) -> bool:
    """Whether two values are equal, but for members that are not kept; a NaN, of a union's bytes, is equal to another."""
    if mine is None or mine == "(not kept)":
        return True
    if isinstance(kept, dict):
        return mine.keys() == kept.keys() and all(same(mine[name], value) for name, value in kept.items())
    if isinstance(kept, tuple):
        return len(mine) == len(kept) and all(map(same, mine, kept))
    return mine == kept or (isinstance(kept, float) and math.isnan(kept) and math.isnan(mine))


def compared(target: str, seed: int, level: int, folder: Path, cpp: bool, with_gnu: bool = False) -> tuple[Counter[str], list[Any]]:
    """Compare a program's parameters and results with what it keeps.

    Returns:
        (how many were "right", and how often each reason was given for a refusal; (where, ours, the program's) of others).
    """
    program = build(target, seed, level, folder, cpp, with_gnu)
    found: Counter[str] = Counter()
    wrong = []
    foreign = target in FOREIGN
    with QemuMachine.user([program.path], env={}, timeout=20) if foreign else UnicornMachine.load(program.path) as m, Kprobes(m) as k:
        events = {}
        for name, (count, returns) in program.functions.items():
            wanted = [(f"got_{name[1:]}_{n}", f"p:{name}_{n} {name} got=a{n}") for n in range(count)]
            if returns:
                wanted.append((f"got_{name[1:]}", f"r:{name}_r {name} got=$retval"))
            for kept, definition in wanted:
                try:
                    events[kept] = k.event(definition)
                except EventError as error:
                    found[error.reason] += 1
        keeping = {}
        for kept in events:
            keeping[kept] = k.event(f"p:k_{kept} after_all {kept}")
        if foreign:
            behind = 8 if target == "ppc64le" else 0  # its local entry, to which calls within a program go
            m.run(until=m.symbols["finished"].address + behind)
        else:
            m.call("driver")
        for kept, event in events.items():
            (mine,), (theirs,) = [next(iter(each)).args.values() for each in (event, keeping[kept])]
            if same(mine, theirs):
                found["right" if mine is not None else "not kept at the hit"] += 1
            else:
                wrong.append((f"{target} {seed} -O{level} {kept} of {event}", mine, theirs))
    return found, wrong


def compare_programs(target: str, cpp: bool, with_gnu: bool, folder: Path) -> None:
    """Compare COUNT programs, each without optimization and with."""
    total: Counter[str] = Counter()
    for seed in range(COUNT):
        for level in (0, 2):
            found, wrong = compared(target, seed, level, folder, cpp, with_gnu)
            assert wrong == []
            total += found
    print(target, "C++" if cpp else "C", total.most_common())
    assert total["right"] > 40 * COUNT


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("cpp", [False, True])
def test_values_of_calls_are_what_the_program_keeps(target: str, cpp: bool, tmp_path: Path) -> None:
    compare_programs(target, cpp, False, tmp_path)


@pytest.mark.parametrize("target", GNU_KINDS)
@pytest.mark.parametrize("cpp", [False, True])
def test_values_of_calls_are_what_a_program_of_gcc_keeps(target: str, cpp: bool, tmp_path: Path) -> None:
    if not gnu(target, cpp):
        pytest.skip(f"there is no cross-compiler of GCC 12 for {target} in {'C++' if cpp else 'C'}")
    compare_programs(target, cpp, True, tmp_path)


MIPS = """
double first(double a, float b, int c) { return a; }
float second(float a, int b) { return a; }
double third(int a, double b) { return b; }
_Complex float fourth(int a) { return 1; }
int fifth(float a, ...) { return 1; }
struct two { float a, b; } sixth(int a) { return (struct two){ 1, 2 }; }
void _start(void) { }
"""


@pytest.mark.parametrize(("target", "changed", "refused"), [
    ("mips32", None, {"fifth a": "which floating-point register", "sixth a": ""}),
    ("mips32 any", None, {"first a": "which floating-point", "first b": "", "first $retval": "depends on the CPU",
                          "third $retval": "depends on the CPU", "fifth a": "which floating-point"}),
    ("mips32 soft", None, {"fourth $retval": "does not say"}),
    ("mips32", 0, {"first a": "which floating-point", "first b": "which floating-point", "second a": "which floating-point",
                   "fifth a": "which floating-point", "first $retval": "does not say", "second $retval": "does not say",
                   "third $retval": "does not say", "fourth $retval": "does not say"}),
    ("mips64", 0, {"first a": "does not say", "first b": "does not say", "first c": "does not say", "second a": "does not say",
                   "second b": "does not say", "third b": "does not say", "fifth a": "does not say", "first $retval": "does not say",
                   "second $retval": "does not say", "third $retval": "does not say", "fourth $retval": "does not say",
                   "sixth $retval": "does not say"}),
])
def test_floating_point_of_mips_is_as_the_file_says(target: str, changed: int | None, refused: dict[str, str], tmp_path: Path) -> None:
    """`changed`: the number that .MIPS.abiflags has in place of the compiler's."""
    program = compiled(target, MIPS, tmp_path / "mips", 0)
    if changed is not None:
        data = bytearray(program.read_bytes())
        with program.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".MIPS.abiflags")
            data[section["sh_offset"] + 7] = changed
        program.write_bytes(data)
    found = refusals(program, {"first": "abc", "second": "ab", "third": "ab", "fourth": "a", "fifth": "a", "sixth": "a"})
    wanted = {what: why for what, why in refused.items() if why}
    assert found.keys() == wanted.keys()
    assert all(why in found[what] for what, why in wanted.items())


def refusals(program: Path, functions: dict[str, str]) -> dict[str, str]:
    """The parameters and results of a program that are refused: "function parameter" or "function $retval" -> why.

    Args:
        program: the file.
        functions: name -> names of its parameters, of one letter each.
    """
    found = {}
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        for name, values in functions.items():
            for value in (*values, "$retval"):
                try:
                    k.event(f"{'r' if value == '$retval' else 'p'}:{name}_{value.strip('$')} {name} {value}")
                except EventError as error:
                    found[f"{name} {value}"] = error.reason
    return found


ARM = """
struct two { float a, b; };
struct mixed { float a; int b; };
double first(int a, double b, int c) { return b; }
struct two second(int a, struct two b, int c) { return b; }
struct mixed third(struct mixed a, long long b, int c) { return a; }
float fourth(int a, float b, ...) { return b; }
int fifth(struct mixed a) { return 1; }
void _start(void) { }
"""


@pytest.mark.parametrize("target", ["arm", "arm soft"])
@pytest.mark.parametrize(("attribute", "flags"), [(True, True), (True, False), (False, True), (False, False)])
def test_floating_point_of_arm_is_as_the_file_says(target: str, attribute: bool, flags: bool, tmp_path: Path) -> None:
    """Where neither the attributes nor the header says it, what depends on it is refused, and no more.

    Args:
        target: of the compiler.
        attribute: True: the file has its section of attributes.
        flags: True: the header says it.
        tmp_path: for the program.
    """
    program = compiled(target, ARM, tmp_path / "arm", 0)
    data = bytearray(program.read_bytes())
    with program.open("rb") as file:
        elf = ELFFile(file)
        section = elf.get_section_by_name(".ARM.attributes")
        assert elf["e_flags"] & 0x600
        at = section["sh_offset"] + section.data().index(b"aeabi")
    if not attribute:
        data[at:at + 5] = b"other"
    if not flags:
        data[36:40] = (int.from_bytes(data[36:40], "little") & ~0x600).to_bytes(4, "little")
    program.write_bytes(data)
    found = refusals(program, {"first": "abc", "second": "abc", "third": "abc", "fourth": "ab", "fifth": "a"})
    depend = {"first b", "first c", "first $retval", "second a", "second b", "second c", "second $retval"}
    assert found.keys() == (set() if attribute or flags else depend)
    found.pop("second a", "")  # whether memory for the result comes before it depends, too
    assert all("the file does not say how floating-point numbers are passed" in why for why in found.values())


def test_bit_fields_that_reach_into_the_next_member(tmp_path: Path) -> None:
    """GCC passes the float apart, clang in the register of the bit field."""
    source = """struct mixed { unsigned long long bits : 15; float real; }; float got;
    __attribute__((noinline)) void look(struct mixed m) { got = m.real; }
    void _start(void) { struct mixed m = { 5, 2.5f }; look(m); }"""
    guest = compiled("riscv64", source, tmp_path / "guest", 0)
    differ = "compilers differ about bit fields"
    with UnicornMachine.load(guest) as m, Kprobes(m) as k, pytest.raises(EventError, match=differ):
        k.event("p look real=m.real")
