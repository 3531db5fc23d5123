"""Fuzzing: AFL++ searches, this runs the guest, and what was found is run again.

Targets are described in `target`; `bench` runs one input from the same state every time. `server`
speaks AFL++'s protocol, `replay` runs a folder of inputs as a campaign, `crash` and `findings` say
what went wrong. Begin with docs/fuzzing.md.

    from kprobes import UnicornMachine

    machine = UnicornMachine.load("examples/packets.arm64")
    text = machine.alloc(4096)

    def fuzz(data: bytes) -> None:
        machine.write(text, data[:4096])
        machine.call("parse", text, len(data[:4096]))
"""

from .bench import Fate, InputRunner
from .crash import CodePlace, Crash, Finding, examine
from .target import CallTarget, PythonTarget, Target

__all__ = [
    "CallTarget",
    "CodePlace",
    "Crash",
    "Fate",
    "Finding",
    "InputRunner",
    "PythonTarget",
    "Target",
    "examine",
]
