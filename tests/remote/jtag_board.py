"""A RISC-V board without hardware, for OpenOCD: a JTAG port, a debug module, one hart, which is Unicorn's.

    python jtag_board.py IMAGE.elf [flash]

prints the TCP port where it speaks OpenOCD's "remote bitbang": one character sets TCK, TMS and TDI, one asks for TDO.
The rest is "RISC-V External Debug Support" 0.13: chapter 6 (the port: dtmcs, dmi), chapter 3 (the module: abstract
commands for registers, the system bus for memory; there is no program buffer), section 4.8 (dcsr, dpc). A fault of the
guest's leaves it standing at address 0, where mtvec points. flash: its code is in such memory, where the system bus
writes nothing, and says that it has.
"""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from jtag_triggers import Triggers
from unicorn import UC_ARCH_RISCV, UC_HOOK_INTR, UC_MODE_RISCV32, UC_MODE_RISCV64, Uc, UcError, riscv_const

from kprobes.image import read_elf

START, SIZE = 0x80000000, 0x200000  #: memory
IDCODE, IR, ABITS = 0x10E31913, 5, 7
QUANTUM = 20_000  #: instructions between two looks at the port
EBREAKS = (b"\x73\x00\x10\x00", b"\x02\x90")
#: IEEE 1149.1: state -> the next one where TMS is 0, is 1
STATES = {
    "reset": ("idle", "reset"), "idle": ("idle", "dr"), "dr": ("capture dr", "ir"), "ir": ("capture ir", "reset"),
    **{f"{name} {kind}": (f"{low} {kind}", f"{high} {kind}") for kind in ("dr", "ir") for name, low, high in (
        ("capture", "shift", "exit1"), ("shift", "shift", "exit1"), ("exit1", "pause", "update"),
        ("pause", "pause", "exit2"), ("exit2", "shift", "update"))},
    **{f"update {kind}": ("idle", "dr") for kind in ("dr", "ir")},
}
DCSR, DPC, MISA, GENERAL, FLOATING = 0x7B0, 0x7B1, 0x301, 0x1000, 0x1020
CSRS = {1: "FFLAGS", 2: "FRM", 3: "FCSR", 0x300: "MSTATUS", MISA: "MISA", 0x304: "MIE", 0x305: "MTVEC",
        0x340: "MSCRATCH", 0x341: "MEPC", 0x342: "MCAUSE", 0xF14: "MHARTID"}
EBREAKM, STEP, MACHINE = 1 << 15, 1 << 2, 3
CAUSE_EBREAK, CAUSE_TRIGGER, CAUSE_REQUEST, CAUSE_STEP = 1, 2, 3, 4
UNKNOWN, NO_REGISTER, WHILE_RUNNING = 2, 3, 4  #: abstractcs.cmderr


class Hart:
    """A CPU in machine mode, and its memory.

    Attributes:
        halted. bits: 32 or 64. pc.
    """

    def __init__(self, file: Path, flash: bool) -> None:
        image = read_elf(file)
        self.bits, self.pc, self.halted = image.bits, image.entry, True
        self._uc = Uc(UC_ARCH_RISCV, UC_MODE_RISCV64 if self.bits == 64 else UC_MODE_RISCV32)
        self._uc.mem_map(START, SIZE)
        for segment in image.segments:
            self._uc.mem_write(segment.addr, bytes(segment.data))
        self._uc.hook_add(UC_HOOK_INTR, lambda uc, number, data: uc.emu_stop())
        self._uc.reg_write(riscv_const.UC_RISCV_REG_MSTATUS, 1 << 13)  # FS: floating point is on
        self._dcsr = 4 << 28 | CAUSE_REQUEST << 6 | MACHINE
        self._flash = [(s.addr, s.addr + s.memsz) for s in image.segments if flash and "x" in s.perms]
        self._triggers = Triggers(self._uc, self.bits, lambda: self.halt(CAUSE_TRIGGER))

    def halt(self, cause: int = CAUSE_REQUEST) -> None:
        """Stand still."""
        self.halted, self._dcsr = True, self._dcsr & ~(7 << 6) | cause << 6

    def run(self) -> None:
        """Some instructions: one where dcsr.step is set."""
        one = bool(self._dcsr & STEP)
        try:
            self._uc.emu_start(self.pc, 0, count=1 if one else QUANTUM)
            self.pc = self._read(riscv_const.UC_RISCV_REG_PC)
        except UcError:
            self.pc = self._read(riscv_const.UC_RISCV_REG_PC)
            if self._dcsr & EBREAKM and any(self.memory(self.pc, len(code)) == code for code in EBREAKS):
                self.halt(CAUSE_EBREAK)
                return
            self.pc = self._read(riscv_const.UC_RISCV_REG_MTVEC)
        if one and not self.halted:
            self.halt(CAUSE_STEP)

    def memory(self, addr: int, size: int) -> bytes | None:
        """What is there; None: no memory."""
        return bytes(self._uc.mem_read(addr, size)) if START <= addr <= START + SIZE - size else None

    def store(self, addr: int, data: bytes) -> bool:
        """False: no memory."""
        there = START <= addr <= START + SIZE - len(data)
        if there and not any(start <= addr < end for start, end in self._flash):
            self._uc.mem_write(addr, data)
            self._uc.ctl_remove_cache(addr, addr + len(data))
        return there

    def _read(self, register: int) -> int:
        return int(self._uc.reg_read(register)) & (1 << self.bits) - 1

    def _register(self, number: int) -> int | None:
        """Unicorn's number of one."""
        if GENERAL <= number < FLOATING + 32:
            first = riscv_const.UC_RISCV_REG_X0 if number < FLOATING else riscv_const.UC_RISCV_REG_F0
            return first + number % 32
        return getattr(riscv_const, f"UC_RISCV_REG_{CSRS[number]}") if number in CSRS else None

    def get(self, number: int) -> int | None:
        """A register by its number in the debug specification; None: there is none."""
        if number in (DCSR, DPC):
            return self._dcsr if number == DCSR else self.pc
        if (found := self._triggers.get(number)) is not None:
            return found
        register = self._register(number)
        return None if register is None else self._read(register)

    def put(self, number: int, value: int) -> bool:
        """False: there is none."""
        if number == DCSR:
            self._dcsr = self._dcsr & ~0xFFFF | value & 0xFE3C | self._dcsr & 0x1C3
        elif number == DPC:
            self.pc = value & -2
        elif self._triggers.put(number, value):
            return True
        elif (register := self._register(number)) is None:
            return False
        elif number not in (GENERAL, MISA):
            self._uc.reg_write(register, value)
        return True


class Module:
    """The debug module: registers of the DMI."""

    def __init__(self, hart: Hart) -> None:
        self._hart = hart
        self._data, self._error, self._active, self._acknowledged, self._was_reset = [0, 0], 0, 0, 0, 1
        self._bus, self._bus_error, self._bus_addr, self._bus_data = 0, 0, 0, 0
        self._reads: dict[int, Callable[[], int]] = {
            0x04: lambda: self._data[0], 0x05: lambda: self._data[1], 0x10: lambda: self._active, 0x11: self._status,
            0x16: lambda: self._error << 8 | len(self._data), 0x38: self._bus_status,
            0x39: lambda: self._bus_addr & 0xFFFFFFFF, 0x3A: lambda: self._bus_addr >> 32, 0x3C: self._bus_read,
            0x3D: lambda: self._bus_data >> 32, 0x40: lambda: int(self._hart.halted)}
        self._writes: dict[int, Callable[[int], None]] = {
            0x04: lambda value: self._data.__setitem__(0, value), 0x05: lambda value: self._data.__setitem__(1, value),
            0x10: self._control, 0x16: self._clear_error, 0x17: self._command, 0x38: self._bus_control,
            0x39: self._bus_low, 0x3A: self._bus_high, 0x3C: self._bus_write,
            0x3D: lambda value: setattr(self, "_bus_data", self._bus_data & 0xFFFFFFFF | value << 32)}

    def read(self, address: int) -> int:
        """A register; those that are not there are 0."""
        return self._reads.get(address, int)()

    def write(self, address: int, value: int) -> None:
        """Write one."""
        self._writes.get(address, lambda value: None)(value)

    def _status(self) -> int:
        """dmstatus: version 2, authenticated; each of halted, running, resumeack, havereset as any and as all."""
        state = 0x300 if self._hart.halted else 0xC00
        return 2 | 1 << 7 | state | self._acknowledged * 0x30000 | self._was_reset * 0xC0000

    def _control(self, value: int) -> None:
        self._active = value & 1
        if value >> 28 & 1:
            self._was_reset = 0
        if value >> 31:
            self._hart.halt() if not self._hart.halted else None
        elif value >> 30 & 1 and self._hart.halted:
            self._hart.halted, self._acknowledged = False, 1
            if self._hart.get(DCSR) & STEP:
                self._hart.run()

    def _clear_error(self, value: int) -> None:
        self._error &= ~(value >> 8 & 7)

    def _command(self, value: int) -> None:
        """Access a register: aarsize, postexec, transfer, write, regno."""
        size, number = 1 << (value >> 20 & 7), value & 0xFFFF
        if self._error:
            return
        if value >> 24 or value >> 18 & 1 or size * 8 > max(self._hart.bits, 32):
            self._error = UNKNOWN
        elif not self._hart.halted:
            self._error = WHILE_RUNNING
        elif value >> 17 & 1 and value >> 16 & 1:
            given = self._data[0] | (self._data[1] << 32 if size == 8 else 0)
            self._error = 0 if self._hart.put(number, given) else NO_REGISTER
        elif value >> 17 & 1:
            found = self._hart.get(number)
            self._error = NO_REGISTER if found is None else 0
            self._data = [(found or 0) & 0xFFFFFFFF, (found or 0) >> 32]

    def _bus_status(self) -> int:
        """sbcs: version 1, accesses of 1, 2, 4 and (64 bits) 8 bytes."""
        widths = 0b1111 if self._hart.bits == 64 else 0b111
        return 1 << 29 | self._bus | self._bus_error << 12 | self._hart.bits << 5 | widths

    def _bus_control(self, value: int) -> None:
        self._bus = value & (1 << 20 | 0xF << 15 | 7 << 17)
        self._bus_error &= ~(value >> 12 & 7)

    def _bus_low(self, value: int) -> None:
        self._bus_addr = self._bus_addr >> 32 << 32 | value
        if self._bus >> 20 & 1:
            self._fetch()

    def _bus_high(self, value: int) -> None:
        self._bus_addr = self._bus_addr & 0xFFFFFFFF | value << 32

    def _fetch(self) -> None:
        found = self._hart.memory(self._bus_addr, 1 << (self._bus >> 17 & 7))
        self._bus_error = self._bus_error or (2 if found is None else 0)
        self._bus_data = int.from_bytes(found or b"", "little")
        self._next()

    def _next(self) -> None:
        if self._bus >> 16 & 1 and not self._bus_error:
            self._bus_addr += 1 << (self._bus >> 17 & 7)

    def _bus_read(self) -> int:
        low = self._bus_data & 0xFFFFFFFF
        if self._bus >> 15 & 1:
            self._fetch()
        return low

    def _bus_write(self, value: int) -> None:
        self._bus_data = self._bus_data >> 32 << 32 | value
        size = 1 << (self._bus >> 17 & 7)
        data = (self._bus_data & (1 << 8 * size) - 1).to_bytes(size, "little")
        self._bus_error = self._bus_error or (0 if self._hart.store(self._bus_addr, data) else 2)
        self._next()


class Port:
    """The JTAG port: registers of a scan chain of one."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._state, self._instruction, self._tck = "reset", 1, 0
        self._shift, self._length, self._result = 0, 1, 0  # _result: of the last access by dmi
        self.tdo = 0

    def pins(self, value: int) -> None:
        """Bits: TCK, TMS, TDI."""
        tck, tms, tdi = value >> 2, value >> 1 & 1, value & 1
        if tck and not self._tck:
            self._rise(tms, tdi)
        elif self._tck and not tck:
            self.tdo = self._shift & 1
        self._tck = tck

    def _rise(self, tms: int, tdi: int) -> None:
        step, _, kind = self._state.partition(" ")
        if step == "capture":
            self._shift, self._length = (1, IR) if kind == "ir" else self._captured()
        elif step == "shift":
            self._shift = self._shift >> 1 | tdi << self._length - 1
        self._state = STATES[self._state][tms]
        if self._state == "update dr" and self._instruction == 0x11:
            self._access()
        elif self._state == "update ir":
            self._instruction = self._shift
        elif self._state == "reset":
            self._instruction = 1

    def _captured(self) -> tuple[int, int]:
        """A data register, and its length."""
        return {1: (IDCODE, 32), 0x10: (1 << 12 | ABITS << 4 | 1, 32),
                0x11: (self._result, ABITS + 34)}.get(self._instruction, (0, 1))

    def _access(self) -> None:
        address, value, action = self._shift >> 34, self._shift >> 2 & 0xFFFFFFFF, self._shift & 3
        if action == 2:
            self._module.write(address, value)
        self._result = address << 34 | (self._module.read(address) if action == 1 else value) << 2


def serve(file: Path, flash: bool) -> None:
    """Until OpenOCD goes."""
    hart = Hart(file, flash)
    port = Port(Module(hart))
    with socket.create_server(("localhost", 0)) as server:
        print(server.getsockname()[1], flush=True)
        channel, _ = server.accept()
    with channel:
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            if not hart.halted and not select.select([channel], [], [], 0)[0]:
                hart.run()
                continue
            answer = bytearray()
            for letter in (commands := channel.recv(1 << 16)):
                if 0x30 <= letter <= 0x37:
                    port.pins(letter - 0x30)
                elif letter == 0x52:
                    answer.append(0x30 + port.tdo)
            if not commands or b"Q" in commands:
                return
            channel.sendall(answer)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), "flash" in sys.argv[2:])
