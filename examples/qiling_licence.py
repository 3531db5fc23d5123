"""A probe on a function of a stripped Arm program that Qiling runs, with a folder of its own for the program's files.

    python examples/qiling_licence.py FUNCTION FOLDER [ARGUMENT ...]

Needs `pip install qiling`. FUNCTION is the address of a function whose first argument is a string.
"""

import sys
from pathlib import Path

from qiling import Qiling
from qiling.const import QL_VERBOSE

from kprobes import Kprobes, UnicornMachine

PROGRAM = Path(__file__).resolve().parent / "licence.armhf"
BREAKPOINT = 7  # the engine's number; Qiling ends a program for interrupts that nobody has asked for


def main(function: str, folder: str, arguments: list[str]) -> None:
    """Run the program, and print what its function is called with."""
    ql = Qiling([str(PROGRAM), *arguments], folder, verbose=QL_VERBOSE.DISABLED)
    ql.hook_intno(lambda ql, number: None, BREAKPOINT)
    event = f"p:check {function} key=+0($arg1):string"
    with UnicornMachine.attach(ql.uc) as machine, Kprobes(machine) as k, k.trace(event) as trace:
        ql.run()
        for record in trace:
            print(record.event, dict(record.args))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
