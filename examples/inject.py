"""Fault injection: every allocation of a run fails once, one after the other, and each time the program must survive.

    python examples/inject.py

A program of three lines (programs/inject.bpf.c) sits at the function and returns in its place; `period` says which
call. The run is repeated from a snapshot until a run comes to its end without having reached that call.
"""

from pathlib import Path

from kprobes import GuestFault, Kprobes, Program, UnicornMachine

HERE = Path(__file__).resolve().parent
SETTINGS = b"width=640, height=480, depth=24, scale=-3"


def main() -> None:
    """Let table_insert() say "no room" at each of its calls in turn."""
    with UnicornMachine.load(HERE / "demo.arm64") as machine, Kprobes(machine) as k:
        machine.call("table_init")
        start = machine.snapshot()
        for call in range(1, 100):
            machine.restore(start)
            program = Program.from_c((HERE / "programs" / "inject.bpf.c").read_text(), "inject.bpf.c")
            program.variables["period"], program.variables["error"] = call, -2
            with k.attach(program, "table_insert"):
                try:
                    result = machine.call("parse_settings", SETTINGS) & 0xFFFFFFFF
                except GuestFault as fault:
                    print(f"call {call} fails: the parser crashes, {fault}")
                    continue
            if program.variables["calls"] < call:
                print(f"no call {call}: all settings are stored, {result}")
                return
            kept = [name for name in ("width", "height", "depth", "scale") if machine.call("table_lookup", name, 0)]
            print(f"call {call} fails: column {-1 - (result - (1 << 32))} is named, and there are {kept}")


if __name__ == "__main__":
    main()
