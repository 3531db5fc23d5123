#!/usr/bin/env python3
"""Compare the variables of any static Linux program of x86-64 with what gdb shows of them.

    python tests/tracing/judge_program.py [--seed 1] [--share 0.02] [--places 1000] PROGRAM [ARGUMENT ...]

The program runs in a machine whose system calls are served. At drawn instructions of its functions that
have debug information, each hit's variables and stack are read, and its state is written as a core,
where gdb reads the same. Shown are values that differ; what gdb does not show and the library does is
listed apart: entry values that gdb gives up, mostly. Exit status 1: values differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import value_judge as judge
from capstone import CS_ARCH_X86, CS_MODE_64, Cs
from elftools.elf.elffile import ELFFile
from value_core import write_core

from kprobes import Kprobe, KprobeError, Kprobes, UnicornMachine

AT_ONCE = 64  #: cores that one gdb reads


def drawn(program: Path, seed: int, share: float, most: int) -> list[tuple[int, str]]:
    """(address, function) of at most `most` instructions: entries of functions that have debug information and a
    symbol, and each other instruction of theirs but `ret` with the probability `share`."""
    rng = random.Random(seed)
    found: list[tuple[int, str]] = []
    with program.open("rb") as file:
        elf = ELFFile(file)
        text = elf.get_section_by_name(".text")
        code, base = text.data(), text["sh_addr"]
        sizes = {s["st_value"]: (s.name, s["st_size"]) for s in elf.get_section_by_name(".symtab").iter_symbols()
                 if s["st_info"]["type"] == "STT_FUNC"}
        entries = sorted({die.attributes["DW_AT_low_pc"].value for unit in elf.get_dwarf_info().iter_CUs()
                          for die in unit.iter_DIEs()
                          if die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes})
    decoder = Cs(CS_ARCH_X86, CS_MODE_64)
    for start in entries:
        name, size = sizes.get(start, ("", 0))
        for address, _, mnemonic, _ in decoder.disasm_lite(code[start - base:start - base + size], start):
            if address == start or (rng.random() < share and mnemonic != "ret"):
                found.append((address, name))
    return found if len(found) <= most else sorted(rng.sample(found, most))


def asked(program: Path, cores: dict[str, str], folder: Path) -> dict[str, Any]:
    """What gdb shows of cores, key -> variables; where it answers nothing halves are tried, to leave out the core
    at fault."""
    task, out = folder / "task.json", folder / "answer.json"
    task.write_text(json.dumps({"file": str(program), "cores": cores, "out": str(out)}))
    subprocess.run(["gdb", "-nx", "-batch", "-x", str(judge.HERE / "value_gdb.py")], capture_output=True,
                   env=os.environ | {"VALUES_TASK": str(task)}, timeout=600, check=False)
    if out.exists():
        answer: dict[str, Any] = json.loads(out.read_text())
        out.unlink()
        return answer
    if len(cores) == 1:
        return {}
    keys = [*cores]
    halves = keys[:len(keys) // 2], keys[len(keys) // 2:]
    return {key: value for half in halves for key, value in asked(program, {k: cores[k] for k in half}, folder).items()}


def judged(program: Path, words: list[str], places: list[tuple[int, str]], folder: Path) -> judge.Verdicts:
    """Run a program with probes at places, and compare each one's first hit with gdb's core."""
    seen: dict[str, dict[str, Any]] = {}
    cores: dict[str, str] = {}
    verdicts = judge.Verdicts()
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        m.serve_system_calls()
        m.process([os.fsencode(word) for word in (str(program), *words)])

        def hit(p: Kprobe, regs: Any) -> None:
            key = f"{p.addr:#x}"
            if key in seen:
                return
            values = {name: judge.ours(value) for name, value in m.debug.locals(regs).items()}
            seen[key] = {**values, judge.STACKS: [*k.stack_trace(regs)]}
            path = folder / f"{key}.core"
            write_core(m, regs, path)
            cores[key] = str(path)
        for address, _ in places:
            try:
                k.register(Kprobe(addr=address, pre_handler=hit))
            except KprobeError:
                continue  # it is refused: in a sequence that must not be left, for example
        m.run()
    keys = [*cores]
    answer: dict[str, Any] = {}
    for n in range(0, len(keys), AT_ONCE):
        answer |= asked(program, {key: cores[key] for key in keys[n:n + AT_ONCE]}, folder)
    names = {f"{address:#x}": name for address, name in places}
    for key, theirs in answer.items():
        mine, where = seen[key], f"{key} {names[key]}"
        above, gdbs = mine.pop(judge.STACKS), theirs.pop(judge.STACKS)
        verdicts.stacks += 1
        if above[:len(gdbs)] != gdbs:  # gdb ends at main
            verdicts.wrong.append((where, judge.STACKS, above, gdbs))
        for variable, value in theirs.items():
            judge._judge(verdicts, where, variable, mine, value)
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="draws the instructions")
    parser.add_argument("--share", type=float, default=0.02, help="of the instructions of a function")
    parser.add_argument("--places", type=int, default=1000, help="at most")
    parser.add_argument("program", type=Path)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    options = parser.parse_args()
    places = drawn(options.program, options.seed, options.share, options.places)
    with tempfile.TemporaryDirectory() as folder:
        verdicts = judged(options.program.resolve(), options.words, places, Path(folder))
    more = [each for each in verdicts.wrong if not judge.known(each[3])]
    wrong = [each for each in verdicts.wrong if judge.known(each[3])]
    print(f"{len(places)} places, {verdicts.stacks} hits: {verdicts.right} values are right, {verdicts.refused} refused, "
          f"{len(more)} beyond gdb, {len(wrong)} differ")
    for title, found in (("beyond gdb", more), ("differs", wrong)):
        for where, variable, mine, theirs in found:
            print(f"{title}: {where} {variable}: {str(mine)[:120]}; gdb: {str(theirs)[:120]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
