"""A target for AFL++: a MIPS firmware whose frames come out of its receiver's registers.

    afl-fuzz -U -i examples/frames -o found -- kprobes fuzz examples/fuzz_radio.py @@
    kprobes fuzz examples/fuzz_radio.py INPUT

radio.bin begins at the processor's reset vector. It sets itself up, once; each run begins in its main loop, with an
input in the receiver, and ends when the firmware asks for more.
"""

from pathlib import Path

from kprobes import UnicornMachine

HERE = Path(__file__).resolve().parent
FLASH, RAM, RECEIVER = 0xBFC00000, 0x80000000, 0xBF000000
MOST = 1_000_000  # instructions of a run


class Receiver:
    """Two registers: +0 status (bit 0: a byte has come), +4 data."""

    def __init__(self) -> None:
        self.left = b""

    def read(self, offset: int, size: int) -> int:
        """The firmware reads a register."""
        if offset == 0:
            if not self.left:
                machine.stop()
            return bool(self.left)
        byte, self.left = self.left[:1], self.left[1:]
        return byte[0] if byte else 0


receiver = Receiver()
machine = UnicornMachine.load_raw(HERE / "radio.bin", arch="mips", base=FLASH, symbols=HERE / "radio.symbols")
machine.map(RAM, 0x10000, "rw")
machine.mmio(RECEIVER, 0x1000, receiver.read)
machine.run(max_insns=MOST)  # from the reset vector until it asks for a byte


def fuzz(data: bytes) -> None:
    """Have the receiver deliver an input, and nothing of the one before: Python's objects do not go back."""
    receiver.left = data
    machine.run(max_insns=MOST)
