"""Serial ports: they keep, and may show, what the guest sends, and have bytes for it to receive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from .devices import KINDS, Device, DeviceSettings
from .wires import Wires

if TYPE_CHECKING:
    from typing_extensions import Unpack


class UartSettings(DeviceSettings, total=False):
    """Arguments of all serial ports that are given by name.

    Attributes:
        received: bytes for the guest to receive.
        show: called with each byte that the guest sends; None: nothing is.
    """

    received: bytes
    show: Callable[[bytes], object] | None


class Uart(Device):
    """The common part of serial ports.

    Args:
        start: its address.
        size: bytes; None: SIZE.
        line: interrupt of the CPU that it raises; None: none.
        name: what tables call it; "": its addresses.
        received: bytes for the guest to receive.
        show: called with each byte that the guest sends; None: nothing is.

    Attributes:
        received: bytes that the guest has not read yet.
        sent: bytes that it has written.
        show: called with each byte that it writes; None: nothing is.
    """

    def __init__(
        self,
        start: int,
        *,
        size: int | None = None,
        line: int | str | None = None,
        name: str = "",
        received: bytes = b"",
        show: Callable[[bytes], object] | None = None,
    ) -> None:
        super().__init__(start, size=size, line=line, name=name)
        self.received = deque(received)
        self.sent = bytearray()
        self.show = show

    def feed(self, data: bytes) -> None:
        """Add bytes for the guest to receive; raise the interrupt where it is enabled."""
        self.received.extend(data)
        self.update()

    def take(self) -> int:
        """Remove and return the next byte for the guest; 0 where none has come."""
        return self.received.popleft() if self.received else 0

    def send(self, value: int) -> None:
        """Keep and show a byte that the guest sends: the low eight bits of `value`."""
        byte = bytes([value & 0xFF])
        self.sent += byte
        if self.show is not None:
            self.show(byte)

    def update(self) -> None:
        """Raise the interrupt, or end it, as the registers say; models override this."""


class SimpleUart(Uart):
    """A serial port of two 32-bit registers.

    +0 is the status (bit 0: a byte has come; bit 1: one may be sent), +4 the data. Its interrupt is
    raised while a byte has come.
    """

    SIZE = 8

    def connect(self, wires: Wires) -> None:
        """Become part of a machine, and set the level of the interrupt as the registers say.

        Called once, when the board is put together.

        Args:
            wires: the machine: its registers, interrupts and stop().

        Raises:
            Unsupported: the machine has no interrupts.
        """
        super().connect(wires)
        self.update()

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset`, 0 where none is; `size` does not matter. Reading data
        takes a received byte.
        """
        if offset == 0:
            return 2 | bool(self.received)
        if offset != 4:
            return 0
        value = self.take()
        self.update()
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Send the byte where `offset` is the data register's; other writes do nothing."""
        if offset == 4:
            self.send(value)

    def update(self) -> None:
        """Raise the interrupt while a byte has come."""
        self.ask(bool(self.received))


class Pl011(Uart):
    """Arm's PL011 (DDI 0183). Its FIFOs are never full; baud rates may be set and mean nothing.

    Args:
        start: its address.
        settings: of UartSettings.
    """

    DR, FR, IMSC, RIS, MIS, ICR = 0x00, 0x18, 0x38, 0x3C, 0x40, 0x44
    KEPT = (0x20, 0x24, 0x28, 0x2C, 0x30, 0x34, 0x48)  #: ILPR, IBRD, FBRD, LCR_H, CR, IFLS, DMACR
    IDENTITY = bytes.fromhex("111014000df005b1")
    RECEIVED, SENT, TIMEOUT = 1 << 4, 1 << 5, 1 << 6  #: interrupts

    def __init__(self, start: int, **settings: Unpack[UartSettings]) -> None:
        super().__init__(start, **settings)
        self._kept = dict.fromkeys(self.KEPT, 0) | {0x30: 0x300, 0x34: 0x12}
        self._mask = 0
        self._ready = 0  # SENT, once a byte was sent and until that is cleared

    def _raw(self) -> int:
        """Return the register RIS: which conditions for an interrupt hold, masked or not."""
        return self._ready | (self.RECEIVED | self.TIMEOUT if self.received else 0)

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset`, 0 where none is; `size` does not matter. Reading DR
        takes a received byte. Registers in KEPT are as they were written.
        """
        if offset == self.DR:
            value = self.take()
            self.update()
            return value
        if offset == self.FR:
            return 0x80 | (0 if self.received else 0x10)  # nothing to send; nothing has come
        if offset >= 0xFE0:
            return self.IDENTITY[(offset - 0xFE0) // 4]
        registers = {
            self.IMSC: self._mask,
            self.RIS: self._raw(),
            self.MIS: self._raw() & self._mask,
        }
        return registers.get(offset, self._kept.get(offset, 0))

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `value` to the register at `offset`; `size` does not matter. Writing DR sends a
        byte.

        IMSC and ICR enable and clear interrupts, registers in KEPT keep what is written, others are
        left alone; then the interrupt is raised or ended.
        """
        if offset == self.DR:
            self.send(value)
            self._ready = self.SENT
        elif offset == self.IMSC:
            self._mask = value & 0x7FF
        elif offset == self.ICR:
            self._ready &= ~value
        elif offset in self._kept:
            self._kept[offset] = value & 0xFFFF
        self.update()

    def update(self) -> None:
        """Raise the interrupt while a condition holds that IMSC enables; else end it."""
        self.ask(bool(self._raw() & self._mask))


class Uart16550(Uart):
    """A 16550 (National Semiconductor PC16550D).

    Args:
        start: its address.
        stride: bytes from a register to the next.
        settings: of UartSettings.

    Attributes:
        stride: bytes from a register to the next.
    """

    RECEIVED, EMPTY = 1, 2  #: bits of the interrupt enable register

    def __init__(self, start: int, *, stride: int = 1, **settings: Unpack[UartSettings]) -> None:
        settings.setdefault("size", 8 * stride)
        super().__init__(start, **settings)
        self.stride = stride
        self._registers = [0] * 8  # 1 IER, 3 LCR, 4 MCR, 7 SCR
        self._divisor = [1, 0]
        self._fifo = 0
        self._empty = (
            False  # the interrupt of an empty transmitter, until it is read or a byte is sent
        )

    def _why(self) -> int:
        """Return the interrupt identification register (IIR), without the FIFOs' bits; 1: no
        interrupt.
        """
        if self._registers[1] & self.RECEIVED and self.received:
            return 4
        if self._registers[1] & self.EMPTY and self._empty:
            return 2
        return 1

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset`; `size` does not matter.

        Reading data takes a received byte; reading IIR ends the interrupt of an empty transmitter.
        """
        number = offset // self.stride & 7
        if number < 2 and self._registers[3] & 0x80:
            return self._divisor[number]
        value = self._registers[number]
        if number == 0:
            value = self.take()
        elif number == 2:
            value = self._why() | self._fifo
            if value & 0xF == 2:
                self._empty = False
        elif number == 5:
            value = 0x60 | bool(self.received)
        elif number == 6:
            value = 0xB0  # carrier, ready, clear to send
        self.update()
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Write the low byte of `value` to the register at `offset`; `size` does not matter.

        Writing data sends a byte; enabling the interrupt of an empty transmitter raises it. With
        LCR's bit 7 set, the first two registers are the divisor.
        """
        number = offset // self.stride & 7
        value &= 0xFF
        if number < 2 and self._registers[3] & 0x80:
            self._divisor[number] = value
        elif number == 0:
            self.send(value)
            self._empty = True
        elif number == 2:
            self._fifo = 0xC0 if value & 1 else 0
        else:
            if number == 1 and value & ~self._registers[1] & self.EMPTY:
                self._empty = True
            self._registers[number] = value
        self.update()

    def update(self) -> None:
        """Raise the interrupt while IIR tells a cause; else end it."""
        self.ask(self._why() != 1)


class Stm32F4Usart(Uart):
    """The USART of STM32F1, F2, F4 and L1 (RM0090, 30.6).

    It sends and receives even where it is not enabled, but raises no interrupts then; a byte is
    sent at once; baud rates may be set and mean nothing.

    Args:
        start: its address.
        settings: of UartSettings.
    """

    SIZE = 0x400
    STATUS, DATA, CR1 = 0x00, 0x04, 0x0C
    KEPT: tuple[int, ...] = (0x08, CR1, 0x10, 0x14, 0x18)  #: BRR, CR1, CR2, CR3, GTPR
    ENABLED = 1 << 13  #: UE, of CR1
    RECEIVED, SENT, EMPTY = (
        1 << 5,
        1 << 6,
        1 << 7,
    )  #: RXNE, TC, TXE; CR1 has their interrupts at the same bits

    def __init__(self, start: int, **settings: Unpack[UartSettings]) -> None:
        super().__init__(start, **settings)
        self._kept = dict.fromkeys(self.KEPT, 0)
        self._sent = self.SENT

    def _status(self) -> int:
        """Return the status register (SR)."""
        return self.EMPTY | self._sent | (self.RECEIVED if self.received else 0)

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset`, 0 where none is; `size` does not matter. Reading DR
        takes a received byte. Registers in KEPT are as they were written.
        """
        if offset == self.STATUS:
            return self._status()
        if offset != self.DATA:
            return self._kept.get(offset, 0)
        value = self.take()
        self.update()
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `value` to the register at `offset`; `size` does not matter. Writing DR sends a
        byte.

        Bits of SR that are written as 0 are cleared, registers in KEPT keep what is written, others
        are left alone; then the interrupt is raised or ended.
        """
        if offset == self.DATA:
            self.send(value)
            self._sent = self.SENT
        elif offset == self.STATUS:
            self._clear(
                ~value
            )  # what is written as 0 is cleared ("rc_w0"), bytes that have come since as well
        elif offset in self._kept:
            self._kept[offset] = value
        self.update()

    def _clear(self, bits: int) -> None:
        """Clear bits of the status: TC; or RXNE, and then a received byte is lost."""
        self._sent &= ~bits
        if bits & self.RECEIVED:
            self.take()

    def update(self) -> None:
        """Raise the interrupt while a condition holds whose bit is set in CR1; else end it."""
        control = self._kept[self.CR1]
        self.ask(
            bool(
                control & self.ENABLED
                and self._status() & control & (self.RECEIVED | self.SENT | self.EMPTY)
            )
        )


class Stm32L4Usart(Stm32F4Usart):
    """The USART of STM32F0, F3, F7, G0, G4, H7, L0 and L4 (RM0351, 40.8), without its FIFOs.

    RQR and ICR clear what the status says; a byte is sent as by Stm32F4Usart.
    """

    CR1, RQR, STATUS, ICR, DATA, TDR = 0x00, 0x18, 0x1C, 0x20, 0x24, 0x28
    KEPT = (CR1, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x2C)  #: CR1, CR2, CR3, BRR, GTPR, RTOR, PRESC
    ENABLED = 1 << 0
    FLUSH = 1 << 3  #: RXFRQ, of RQR
    RECEIVES, SENDS = 1 << 2, 1 << 3  #: RE and TE, of CR1
    SENDING_READY, RECEIVING_READY = 1 << 21, 1 << 22  #: TEACK and REACK, of ISR

    def _status(self) -> int:
        """Return the status register (ISR): the F4's, and whether sender and receiver are
        enabled.
        """
        control = self._kept[self.CR1]
        enabled = control if control & self.ENABLED else 0
        sends = self.SENDING_READY if enabled & self.SENDS else 0
        receives = self.RECEIVING_READY if enabled & self.RECEIVES else 0
        return super()._status() | sends | receives

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `value` to the register at `offset`; `size` does not matter. Writing TDR sends a
        byte.

        ICR and RQR clear bits of the status, registers in KEPT keep what is written, others are
        left alone; then the interrupt is raised or ended.
        """
        if offset == self.ICR:
            self._clear(value & self.SENT)
        elif offset == self.RQR and value & self.FLUSH:
            self._clear(self.RECEIVED)
        elif offset == self.TDR:
            self.send(value)
            self._sent = self.SENT
        elif offset in self._kept:
            self._kept[offset] = value
        self.update()


KINDS["simple-uart"] = SimpleUart
KINDS["pl011"] = Pl011
KINDS["16550"] = Uart16550
KINDS["stm32f4-usart"] = Stm32F4Usart
KINDS["stm32l4-usart"] = Stm32L4Usart
