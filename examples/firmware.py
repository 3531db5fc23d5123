"""Firmware for a Cortex-M3 with its peripherals in Python, and a probe in it.

    python examples/firmware.py [LINE ...]

firmware.bin answers each line that comes over its serial port with the line in capitals and a checksum. The port and
the power switch are devices here; the probe is on `checksum`, and sees what was computed.
"""

import sys
from collections import deque
from pathlib import Path

from kprobes import Kprobes, Kretprobe, UnicornMachine

HERE = Path(__file__).resolve().parent
FLASH, RAM, UART, POWER = 0x08000000, 0x20000000, 0x40000000, 0x40001000


class Uart:
    """Two registers: +0 status (bit 0: a byte has come; bit 1: one may be sent), +4 data."""

    def __init__(self, received: bytes) -> None:
        self.received, self.sent = deque(received), bytearray()

    def read(self, offset: int, size: int) -> int:
        """The guest reads a register."""
        if offset == 0:
            return 2 | bool(self.received)
        return self.received.popleft() if self.received else 0

    def write(self, offset: int, size: int, value: int) -> None:
        """The guest writes one."""
        if offset == 4:
            self.sent.append(value & 0xFF)


def main(lines: list[str]) -> None:
    """Run the firmware until it switches the board off."""
    uart = Uart("".join(f"{line}\n" for line in [*lines, ""]).encode())
    with UnicornMachine.load_raw(HERE / "firmware.bin", arch="cortexm", base=FLASH,
                                 symbols=HERE / "firmware.symbols") as board:
        board.map(RAM, 0x1000, "rw")
        board.mmio(UART, 0x1000, uart.read, uart.write)
        board.mmio(POWER, 0x1000, write=lambda offset, size, value: board.stop())
        with Kprobes(board) as k:
            r = Kretprobe(symbol_name="checksum",
                          handler=lambda ri, regs: print(f"checksum is {regs.return_value:#04x}"))
            k.register(r)
            board.run(timeout=10)
            print(uart.sent.decode(), end="")
            print(f"{r.nreturned} lines, probed while the board ran")


if __name__ == "__main__":
    main(sys.argv[1:] or ["hello", "a longer line"])
