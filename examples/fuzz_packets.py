"""A target for AFL++: a parser of packets, one input a run.

    afl-fuzz -U -i examples/packets -o found -- kprobes fuzz examples/fuzz_packets.py @@
    kprobes fuzz examples/fuzz_packets.py INPUT
    kprobes fuzz examples/fuzz_packets.py --replay found -o replayed

Every run begins in the state that this file leaves the guest in. The guest's faults are crashes, and so is what an
oracle raises: here, more records than the input has room for.
"""

from pathlib import Path

from kprobes import UnicornMachine
from kprobes.fuzz import Crash

SIZE = 4096

machine = UnicornMachine.load(Path(__file__).resolve().parent / "packets.arm64")
text = machine.alloc(SIZE)


def fuzz(data: bytes) -> None:
    """Parse one packet."""
    data = data[:SIZE]
    machine.write(text, data)
    records = machine.call("parse", text, len(data))
    if records != 0xFFFFFFFF and records > len(data) // 2:
        raise Crash(f"{records} records in {len(data)} bytes")
