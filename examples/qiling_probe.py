"""Probes in a program that Qiling runs: Qiling is the operating system, kprobes looks into the functions.

    python examples/qiling_probe.py [PROGRAM ARGUMENT ...]

Needs `pip install qiling`, and runs x86-64 programs of this system. Qiling makes the engine, `ql.uc`, and goes on to
drive it;
`UnicornMachine.attach` wraps it.
"""

import sys
from contextlib import ExitStack

from qiling import Qiling
from qiling.const import QL_VERBOSE

from kprobes import Kprobes, UnicornMachine

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def main(command: list[str]) -> None:
    """Run a program of this system, and record what it asks of its C library."""
    ql = Qiling(command, "/", verbose=QL_VERBOSE.DISABLED)
    with ExitStack() as stack:
        traces = []

        def loaded() -> None:
            """The dynamic linker has done its work: the C library is where it will be."""
            start = next(start for start, _, _, label, _ in ql.mem.get_mapinfo() if "libc.so" in label)
            machine = stack.enter_context(UnicornMachine.attach(ql.uc))
            machine.symbols.load(LIBC, bias=start)
            k = stack.enter_context(Kprobes(machine))
            traces.append(stack.enter_context(k.trace("p write fd=$arg1:s32 bytes=$arg3",
                                                      "r malloc size=$arg1 $retval")))

        ql.os.register_function_after_load(loaded)
        ql.run()
        for record in traces[0]:
            print(record.event, dict(record.args))


if __name__ == "__main__":
    main(sys.argv[1:] or ["/bin/echo", "hello"])
