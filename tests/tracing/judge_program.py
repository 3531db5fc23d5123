#!/usr/bin/env python3
"""Compare the variables of any static Linux program with what gdb shows of them.

    python tests/tracing/judge_program.py [--seed 1] [--share 0.02] [--places 1000] PROGRAM [ARGUMENT ...]
    python tests/tracing/judge_program.py --generate 10 [--targets arm64,mips] [--languages c,clang++] [--share 0.3]

The program, of any architecture in value_stub.py, runs in a machine whose system calls are served. At drawn
instructions of its functions that have debug information, each hit's variables and stack are read, and
gdb-multiarch reads the same there: from the machine itself, by a stub. Shown are values that differ; what gdb
does not show and the library does is listed apart: entry values that gdb gives up, mostly. Exit status 1:
values differ. With --generate, random programs (value_programs.py) are compiled and compared instead.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import value_judge as judge
from elftools.elf.elffile import ELFFile
from value_programs import TARGETS, build_for, cross_compiler
from value_stub import GdbStub, run_gdb

from kprobes import Kprobe, KprobeError, Kprobes, UnicornMachine
from kprobes.debug.expression import UnknownValue
from kprobes.debug.units import is_of_gnu, location
from kprobes.inventory import functions, instructions


def drawn(m: UnicornMachine, k: Kprobes, program: Path, rng: random.Random, share: float,
          most: int) -> list[tuple[int, str]]:
    """(address, function) of at most `most` instructions: entries of functions that have debug information and a
    symbol, and each other instruction of theirs with the probability `share`."""
    found: dict[int, str] = {}
    with program.open("rb") as file:
        entries = {die.attributes["DW_AT_low_pc"].value for unit in ELFFile(file).get_dwarf_info().iter_CUs()
                   for die in unit.iter_DIEs()
                   if die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes}
    for symbol in functions(m):
        for n, address in enumerate(instructions(m, k, symbol)):
            if n == 0 and address not in entries:
                break
            if n == 0 or rng.random() < share:
                found.setdefault(address, symbol.name)
    places = sorted(found.items())
    return places if len(places) <= most else sorted(rng.sample(places, most))


def judged(m: UnicornMachine, k: Kprobes, program: Path, places: list[tuple[int, str]], run: Callable[[], object],
           folder: Path) -> judge.Verdicts:
    """Run a program with probes at places, and compare each one's first hit with what gdb shows.

    At the entry of a function that has yet to store its parameters gdb is asked behind the prologue. Optimized
    code may store them later still: gdb reads there before that, and these are not compared.

    Args:
        m: the machine that has the program.
        k: its Kprobes.
        program: the program's file.
        places: (address, function) of drawn().
        run: runs the program.
        folder: for files that are shared with gdb.
    """
    behind = {address: end for address, end in behind_prologues(m, k, program, places, folder).items()
              if unwritten(m, address) and not is_optimized(m, address)}
    later = {end: address for address, end in behind.items()}
    names = {address: name for address, name in places
             if not any(start < address < end for start, end in behind.items())}
    seen: dict[int, dict[str, Any]] = {}
    stub = GdbStub(m, program, folder)
    stops: set[str] = set()

    def shown_to_gdb(address: int, regs: Any) -> None:
        if str(address) not in stops:
            stops.add(str(address))
            stub.stop(str(address), regs)

    def hit(p: Kprobe, regs: Any) -> None:
        address = p.addr
        entry = later.get(address)
        if entry in seen:
            shown_to_gdb(entry, regs)
        if address in seen or address not in names:
            return
        values = {name: judge.ours(value) for name, value in m.debug.locals(regs).items()}
        seen[address] = {**values, judge.STACKS: [*k.stack_trace(regs)]}
        if address not in behind:
            shown_to_gdb(address, regs)
    for address in {*names, *later}:
        try:
            k.register(Kprobe(addr=address, pre_handler=hit))
        except KprobeError:
            continue  # it is refused: in a sequence that must not be left, for example
    ended = ""
    try:
        run()
    except KprobeError as error:
        ended = str(error)
    answers = stub.answers()
    verdicts = judge.Verdicts(silent=len(stops) - len(answers), ended=ended)
    for key, theirs in answers.items():
        address = int(key)
        mine, where = seen[address], f"{program.name} {address:#x} {names[address]}"
        above, gdbs = mine.pop(judge.STACKS), theirs.pop(judge.STACKS)
        compared = {*theirs}
        if address in behind:
            compared &= {variable.name for variable in m.debug.parameters(address) or ()}
        else:
            if k.is_entry(address):
                compared -= unwritten(m, address)
            verdicts.stacks += 1
            gdbs = [address & m.arch.mask for address in gdbs]  # MIPS has them sign-extended
            while gdbs[-1] == 0:  # a return address that has been taken from the stack already
                gdbs.pop()
            if above[:len(gdbs)] != gdbs:  # gdb ends at main
                verdicts.wrong.append((where, judge.STACKS, above, gdbs))
        for variable in sorted(compared - misread(m, address)):
            judge._judge(verdicts, where, variable, mine, theirs[variable])
    return verdicts


def unwritten(m: UnicornMachine, entry: int) -> set[str]:
    """The parameters whose only place is one that the function writes behind its entry."""
    return {variable.name for variable in m.debug.parameters(entry) or ()
            if "DW_AT_location" in variable.die.attributes
            and variable.die.attributes["DW_AT_location"].form == "DW_FORM_exprloc"}


def misread(m: UnicornMachine, address: int) -> set[str]:
    """The variables that gdb misreads: those in bits of a register where the byte order is big.

    DWARF counts such bits from the lowest one on; gdb 13 counts them from the highest.
    """
    known = m.debug.function(address)
    if m.arch.order.value == "little" or known is None:
        return set()
    file, function = known
    found = set()
    for variable in m.debug._variables(function, address - file.bias):
        with suppress(UnknownValue):
            ops = location(variable.die, function, address - file.bias)
            if any("_reg" in before.op_name and op.op_name == "DW_OP_bit_piece" and op.args[1]
                   for before, op in pairwise(ops)):
                found.add(variable.name)
    return found


def is_optimized(m: UnicornMachine, entry: int) -> bool:
    """True where a parameter of a function has a list of places, or none."""
    return len(unwritten(m, entry)) < len(m.debug.parameters(entry) or ())


def behind_prologues(m: UnicornMachine, k: Kprobes, program: Path, places: list[tuple[int, str]],
                     folder: Path) -> dict[int, int]:
    """Entry -> where gdb's breakpoints of a function go, of the entries among places.

    LLVM may store parameters that came on the stack behind that: its next row of lines is taken then.
    """
    entries = {name: address for address, name in places if k.is_entry(address)}
    task, out = folder / "functions", folder / "prologues"
    task.write_text(json.dumps({"file": str(program), "prologues": [*entries], "out": str(out)}))
    run_gdb(task)
    found = {}
    for name, end in json.loads(out.read_text()).items():
        if end > entries[name]:
            rows = m.debug.lines(end, m.symbols.extent(m.symbols[name]))
            known = m.debug.function(end)
            late = known is not None and not is_of_gnu(known[1]) and len(rows) > 1 and rows[0].line == rows[1].line
            found[entries[name]] = rows[1].address if late else end
    return found


def told(title: str, verdicts: judge.Verdicts) -> bool:
    """Print what comparing has found; True where values differ, or there are none."""
    more = [each for each in verdicts.wrong if not judge.known(each[3])]
    wrong = [each for each in verdicts.wrong if judge.known(each[3])]
    print(f"{title}, {verdicts.stacks} hits: {verdicts.right} values are right, {verdicts.refused} refused, "
          f"{len(more)} beyond gdb, {len(wrong)} differ; gdb fails at {verdicts.silent} hits")
    if verdicts.ended:
        print(f"the program ends by an error: {verdicts.ended}")
    for kind, found in (("beyond gdb", more), ("differs", wrong)):
        for where, variable, mine, theirs in found:
            print(f"{kind}: {where} {variable}: {_text(mine)}; gdb: {_text(theirs)}")
    return bool(wrong) or not verdicts.stacks


def told_total(title: str, total: judge.Verdicts) -> None:
    """Print the figures of many programs."""
    stacks = [each for each in total.wrong if each[1] == judge.STACKS]
    beyond = [each for each in total.wrong if not judge.known(each[3])]
    print(f"TOTAL {title}: values {total.right} equal, {len(total.wrong) - len(stacks) - len(beyond)} different, "
          f"{total.refused} refused, {len(beyond)} beyond gdb; stacks {total.stacks - len(stacks)} equal, "
          f"{len(stacks)} different; gdb fails at {total.silent}", flush=True)


def _text(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
        return " ".join(map(hex, value))[:200]
    return str(value)[:120]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="draws the instructions")
    parser.add_argument("--share", type=float, default=0.02, help="of the instructions of a function")
    parser.add_argument("--places", type=int, default=1000, help="at most")
    parser.add_argument("program", type=Path, nargs="?")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    parser.add_argument("--generate", type=int, metavar="N", help="compare N random programs of each kind instead")
    parser.add_argument("--targets", default=",".join(TARGETS), help="of value_programs.py")
    parser.add_argument("--languages", default="c,c++,clang,clang++")
    options = parser.parse_args()
    if options.generate:
        return generated(options)
    if options.program is None:
        parser.error("name a program, or give --generate")
    program = options.program.resolve()
    with tempfile.TemporaryDirectory() as folder, UnicornMachine.load(program) as m, Kprobes(m) as k:
        places = drawn(m, k, program, random.Random(options.seed), options.share, options.places)
        m.serve_system_calls()
        m.process([os.fsencode(word) for word in (str(program), *options.words)])
        verdicts = judged(m, k, program, places, m.run, Path(folder))
    return told(f"{len(places)} places", verdicts)


def generated(options: argparse.Namespace) -> int:
    """Compare random programs of all kinds that options name, for which there is a compiler."""
    failed = False
    for target in options.targets.split(","):
        total = judge.Verdicts()
        for language in options.languages.split(","):
            if cross_compiler(language, target) is None:
                print(f"{target} {language}: there is no compiler")
                continue
            for seed in range(options.seed, options.seed + options.generate):
                for level, dwarf in ((0, 5), (1, 4), (2, 5), (2, 4)):
                    with tempfile.TemporaryDirectory() as folder:
                        verdicts = judged_random(target, language, seed, level, dwarf, options.share, Path(folder))
                    failed |= told(f"{target} {language} {seed} -O{level} DWARF {dwarf}", verdicts)
                    total.add(verdicts)
        told_total(target, total)
    return failed


def judged_random(target: str, language: str, seed: int, level: int, dwarf: int, share: float,
                  folder: Path) -> judge.Verdicts:
    """Compile a random program of value_programs.build_for(), and compare it."""
    program = build_for(target, language, seed, level, dwarf, folder)
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        places = drawn(m, k, program, random.Random(seed), share, 10000)
        return judged(m, k, program, places, lambda: m.call("main"), folder)


if __name__ == "__main__":
    sys.exit(main())
