"""Variables and stacks at hits are what gdb-multiarch shows, on each architecture that a compiler here knows.

gdb reads the machine itself, by a stub. By hand: `python tests/tracing/judge_program.py --generate 10` compares many
random programs, and with a program's name that program.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Any

import judge_program
import pytest
from value_judge import known, ours
from value_programs import TARGETS, cross_compiler
from value_stub import debugger

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.inventory import instructions

#: target, language, optimization, version of DWARF
KINDS = [("arm64", "c++", 1, 5), ("arm", "c", 2, 4), ("thumb", "clang", 1, 5), ("riscv64", "c", 2, 5),
         ("mips", "c", 1, 4), ("mips64el", "clang", 2, 4), ("s390x", "c", 2, 5), ("ppc64", "c", 1, 5),
         ("ppc64le", "c++", 0, 5), ("i386", "clang", 2, 5), ("x86_64", "clang++", 2, 5)]


@pytest.mark.skipif(debugger() is None, reason="gdb-multiarch is not here")
@pytest.mark.parametrize(("target", "language", "level", "dwarf"), KINDS)
def test_variables_are_what_gdb_shows(target: str, language: str, level: int, dwarf: int, tmp_path: Path) -> None:
    if cross_compiler(language, target) is None:
        pytest.skip(f"there is no compiler of {language} for {target}")
    verdicts = judge_program.judged_random(target, language, 1, level, dwarf, 0.08, tmp_path)
    assert [each for each in verdicts.wrong if known(each[3])] == []
    assert verdicts.right > 50 and verdicts.stacks > 15 and verdicts.silent == 0 and verdicts.ended == ""


@pytest.mark.skipif(debugger() is None, reason="gdb-multiarch is not here")
def test_gdb_judges_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                              monkeypatch: pytest.MonkeyPatch) -> None:
    """judge_program.py compares any Linux program's variables, also those that are not set yet; a wrong one is told."""
    if cross_compiler("c", "x86_64") is None:
        pytest.skip("there is no compiler of C")
    program = tmp_path / "words"
    (tmp_path / "words.c").write_text("""
        #include <stdio.h>
        #include <string.h>
        struct word { char text[256]; unsigned char counts[200]; double share; struct word *next; };
        static struct word *longest(struct word *one) {
            struct word *best = one; for (; one; one = one->next) if (strlen(one->text) > strlen(best->text)) best = one;
            return best; }
        int main(int argc, char **argv) {
            struct word all[3], *found; int n;
            for (n = 0; n < 3; n++) { snprintf(all[n].text, 256, "%s-%d", argv[argc - 1], n * 5); all[n].share = n / 2.;
                memset(all[n].counts, n, 200); all[n].next = n ? &all[n - 1] : 0; }
            found = longest(&all[2]); puts(found->text); return 0; }""")
    subprocess.run(["gcc", "-g", "-O1", "-static", "words.c", "-o", "words"], check=True, cwd=tmp_path)
    judge = [str(program), "pear"]
    monkeypatch.setattr("sys.argv", ["judge_program.py", "--share", "0.5", *judge])
    assert judge_program.main() == 0
    said = capsys.readouterr().out
    assert re.search(r"[1-9][0-9]+ values are right, 0 refused, [0-9]+ beyond gdb, 0 differ", said), said
    monkeypatch.setattr("value_judge.ours", lambda value: 7)
    assert judge_program.main() == 1


@pytest.mark.parametrize(("target", "option"), [("x86_64", "-fcf-protection=full"),
                                                ("arm64", "-mbranch-protection=standard")])
def test_an_entry_behind_a_breakpoint(target: str, option: str, tmp_path: Path) -> None:
    """Where a probe stands on the landing that a function begins with, it is entered behind that all the same."""
    compiler = cross_compiler("c", target)
    if compiler is None:
        pytest.skip(f"there is no compiler of C for {target}")
    (tmp_path / "two.c").write_text("""
        __attribute__((noinline)) int two(int a, int b) { return a * 10 + b; }
        int main(void) { return two(4, 2); }""")
    subprocess.run([*compiler, "-g", "-O0", option, "-static", "-nostdlib", "-no-pie", "-Wl,-e,main", "two.c", "-o", "two"],
                   check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "two") as m, Kprobes(m) as k:
        start = m.symbols["two"].address
        seen = []
        k.register(Kprobe(addr=start, pre_handler=lambda p, regs: seen.append(m.debug.locals(regs))))
        k.register(Kprobe(addr=start + 4, pre_handler=lambda p, regs: seen.append(m.debug.locals(regs))))
        assert m.call("main") == 42
    assert seen == [{"a": 4, "b": 2}] * 2


KEPT = """
volatile double sink; volatile int turns = 3;
#define NI __attribute__((noinline))
#define KEEP __asm__ volatile ("" ::: "memory")
NI double reals(double a, float b, int n) { int i; double more = a * b; float less = b - 1;
    for (i = 0; i < n; i++) { more = more * a + i; less += b; sink = more; KEEP; } return more - less; }
NI long long pairs(long long c, int n) { int i; long long twice = c * 2;
    for (i = 0; i < n; i++) { twice ^= c << i; sink = i; KEEP; } return twice; }
NI int length(int n) { int i; int row[n]; for (i = 0; i < n; i++) { row[i] = i; sink = i; KEEP; } return row[n - 1]; }
int main(void) { return reals(1.5, 2.25f, turns) + pairs(0x123456789abcLL, turns) + length(turns); }
"""


@pytest.mark.skipif(debugger() is None, reason="gdb-multiarch is not here")
@pytest.mark.parametrize(("target", "level"), [("arm", 1), ("arm", 2), ("i386", 1), ("i386", 2), ("mips", 1), ("ppc", 2)])
def test_numbers_in_registers(target: str, level: int, tmp_path: Path) -> None:
    """Of Arm's single ones, of x87 and MIPS, and in pairs of a guest whose byte order is big: GCC has one order for them."""
    command = cross_compiler("c", target)
    if command is None:
        pytest.skip(f"there is no compiler of C for {target}")
    (tmp_path / "kept.c").write_text(KEPT)
    subprocess.run([*command, "-g", f"-O{level}", "-static", "-nostdlib", "-no-pie", "-Wl,-e,main", *TARGETS[target].flags,
                    "kept.c", "-lgcc", "-o", "kept"], check=True, cwd=tmp_path)
    with UnicornMachine.load(tmp_path / "kept") as m, Kprobes(m) as k:
        places = [place for place in judge_program.drawn(m, k, tmp_path / "kept", random.Random(1), 1, 1000)
                  if place[1] in ("reals", "pairs")]
        verdicts = judge_program.judged(m, k, tmp_path / "kept", places, lambda: m.call("main"), tmp_path)
    assert [each for each in verdicts.wrong if known(each[3])] == []
    assert verdicts.right > 30
    # a piece of 8 bytes in a register of 4, on MIPS: gdb shows half of it
    assert verdicts.refused <= (4 if target == "mips" else 0)


def test_lengths_below_zero_are_not_known(tmp_path: Path) -> None:
    """GCC says that an array's length is in a register, also where that has something else."""
    command = cross_compiler("c", "i386")
    if command is None:
        pytest.skip("there is no compiler of C for i386")
    (tmp_path / "row.c").write_text("""
        volatile int turns = 2, sink;
        __attribute__((noinline)) int rows(int a) { int i, length = turns + 1; int row[length];
            for (i = 0; i < length; i++) row[i] = i * 7;
            __asm__ volatile ("" :: "r"(row) : "memory"); return -19 * a - sink; }
        int main(void) { return rows(1); }""")
    subprocess.run([*command, "-g", "-O2", "-static", "-nostdlib", "-no-pie", "-Wl,-e,main", "row.c", "-o", "row"], check=True, cwd=tmp_path)
    seen = []
    with UnicornMachine.load(tmp_path / "row") as m, Kprobes(m) as k:
        for address in instructions(m, k, m.symbols["rows"]):
            if k.check(address).probeable:
                k.register(Kprobe(addr=address, pre_handler=lambda p, regs: seen.append(m.debug.locals(regs)["row"])))
        m.call("main")
    shown = [len(row) for row in seen if row is not None]
    assert shown and 0 not in shown


def test_bits_of_a_register_of_s390x(tmp_path: Path) -> None:
    """LLVM says that a number of 4 bytes is in bits 32 to 63 of f0, counted from the lowest: gdb 13 counts them from
    the highest."""
    command = cross_compiler("clang", "s390x")
    if command is None:
        pytest.skip("there is no clang")
    (tmp_path / "bits.c").write_text("""
        volatile double sink; volatile int turns = 2;
        __attribute__((noinline)) int take(int n, float a) { sink = a * n; __asm__ volatile ("" ::: "memory"); sink = a; return n; }
        int main(void) { return take(turns, turns + 12.3125f); }""")
    subprocess.run([*command, "-g", "-O1", "-static", "-nostdlib", "-no-pie", "-Wl,-e,main", "bits.c", "-o", "bits"],
                   check=True, cwd=tmp_path)
    seen = []
    with UnicornMachine.load(tmp_path / "bits") as m, Kprobes(m) as k:
        for address in instructions(m, k, m.symbols["take"]):
            if k.check(address).probeable:
                k.register(Kprobe(addr=address, pre_handler=lambda p, regs: seen.append(m.debug.locals(regs)["a"])))
        m.call("main")
    assert {value for value in seen if value is not None} == {14.3125}
    assert sum(value is not None for value in seen) > len(seen) // 2


@pytest.mark.parametrize(("target", "level"), [("x86_64", 1), ("riscv64", 2), ("mips", 2), ("arm64", 2)])
def test_parts_of_structures_that_callers_leave_out(target: str, level: int, tmp_path: Path) -> None:
    """LLVM has callers pass anything for words that the function does not use: they are not kept at the entry."""
    command = cross_compiler("clang", target)
    if command is None:
        pytest.skip("there is no clang")
    (tmp_path / "parts.c").write_text("""
        volatile long sink; volatile int turns = 2;
        struct parts { long first, unused, last; };
        struct two { long unused, last; };
        __attribute__((noinline)) int take(int k, struct two t) { sink += t.last + k; return k; }
        __attribute__((noinline)) int more(int k, struct two t, struct parts p) { sink += p.last + k + t.last; return k; }
        int main(void) { struct two t = { 5, turns }; struct parts p = { 7, 8, 9 }; return take(turns, t) + more(turns, t, p); }""")
    subprocess.run([*command, "-g", f"-O{level}", "-static", "-nostdlib", "-no-pie", "-fno-sanitize=all", "-Wl,-e,main",
                    *TARGETS[target].zig_flags, "parts.c", "-o", "parts"], check=True, cwd=tmp_path)
    seen: dict[str, Any] = {}
    with UnicornMachine.load(tmp_path / "parts") as m, Kprobes(m) as k:
        for name in ("take", "more"):
            k.register(Kprobe(symbol_name=name, pre_handler=lambda p, regs: seen.update(
                {f"{p.symbol_name} {key}": ours(value) for key, value in m.debug.locals(regs).items()})))
        m.call("main")
    assert seen["take k"] == 2
    for shown in (seen["take t"], seen["more t"]):
        assert shown is None or (shown["unused"] in (None, 5) and shown["last"] in (None, 2))
    if target in ("x86_64", "arm64"):  # where LLVM says in which register the word is that is passed
        assert seen["take t"] == {"unused": None, "last": 2}
    # passed on the stack or by address as a whole; on 32-bit guests in words, of which one may be left out
    assert seen["more p"] == (None if target == "mips" else {"first": 7, "unused": 8, "last": 9})
