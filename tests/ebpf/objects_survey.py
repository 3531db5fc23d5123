"""Which programs of a folder of objects can be at a guest's probes, as a table in Markdown.

    PYTHONPATH=tests python -m ebpf.objects_survey FOLDER GUEST

Objects are of any tools for libbpf: clang -target bpf -O2 -g -D__TARGET_ARCH_x86 -c, for GUEST's
architecture. A program that is for something that only Linux's kernel has, by its section or by the types that it reads,
needs a live kernel; every other one is verified as it would be where it is attached.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kprobes import Program, ProgramError, UnicornMachine
from kprobes.debug.info import DebugInfo
from kprobes.programs.adapting import adapted
from kprobes.programs.sections import target_of

#: what is said of a program that reads a kernel's types
_TYPES = "the guest has no type"


def rows(folder: Path, machine: UnicornMachine) -> list[tuple[str, str, str]]:
    """(object, what became of it, why) of each object that has a program which needs no live kernel."""
    debug = DebugInfo(machine)
    out = []
    for path in sorted(folder.glob("*.o")):
        try:
            program = Program.from_elf(path)
        except ProgramError as error:
            out.append((path.stem, "refused", error.reason))
            continue
        good, refused, kernels = 0, list[str](), 0
        for name, code in program.codes.items():
            try:
                target = target_of(code)
            except ProgramError:
                kernels += 1
                continue
            try:
                listed = target is not None and target.listed and target.on == "entry"
                adapted(program[name], machine.arch, lambda: debug, listed).verify()
                good += 1
            except ProgramError as error:
                if _TYPES in error.reason:
                    kernels += 1
                else:
                    refused.append(f"{name}: {error.reason}")
        refused += [f"{name}: {error.reason}" for name, error in program.broken.items()]
        if refused:
            out.append((path.stem, f"{good} of {good + len(refused)} programs", "; ".join(refused[:2])))
        elif good and not kernels:
            out.append((path.stem, f"{good} of {good} programs", ""))
        elif good:
            out.append((path.stem, f"{good} of {good} programs", f"{kernels} more need a live kernel"))
    return out


def main() -> None:
    """Print the table."""
    folder, guest = sys.argv[1:]
    found = rows(Path(folder), UnicornMachine.load(guest))
    print("| object | loads | what does not |\n|---|---|---|")
    for name, what, why in found:
        print(f"| {name} | {what} | {why.replace('|', chr(92) + '|')} |")
    print(f"\n{len(list(Path(folder).glob('*.o')))} objects, {len(found)} of them with programs that need no live kernel.")


if __name__ == "__main__":
    main()
