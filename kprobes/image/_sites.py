"""The inputs of a relocation: bytes, symbol, addend, place; and the shape of its type."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from attrs import define, frozen

from ..errors import ImageError

_LETTERS = {4: "I", 8: "Q"}  #: of `struct`, by size in bytes
NEARER = "place the image and what it imports nearer to each other, or build it with -fPIC"


class ImageMemory:
    """The image's bytes at their addresses, which relocations read and write.

    Attributes:
        regions: (address, size in memory, bytes from the file), by address; what is beyond the
            bytes is zero.
        little: True where numbers are little-endian.
    """

    def __init__(self, regions: Iterable[tuple[int, int, bytes]], order: str, image: str) -> None:
        """
        Args:
            regions: (address, size in memory, bytes from the file).
            order: "little" or "big".
            image: names the image in errors.
        """
        self.regions = [(start, size, bytearray(data)) for start, size, data in sorted(regions)]
        self.little = order == "little"
        self._starts = [start for start, _, _ in self.regions]
        self._image = image

    def read(self, addr: int, size: int, little: bool | None = None) -> int:
        """Return the unsigned number at an address.

        Args:
            addr: of the first byte.
            size: bytes.
            little: True: little-endian; False: big-endian; None: in the image's byte order.

        Raises:
            ImageError: the bytes are outside the image.
        """
        data, at = self._find(addr, size)
        return int.from_bytes(data[at : at + size], self._order(little))

    def write(self, addr: int, size: int, value: int, little: bool | None = None) -> None:
        """Store the low `size` bytes of a number.

        Args:
            addr: of the first byte.
            size: bytes.
            value: the number; higher bits are dropped.
            little: True: little-endian; False: big-endian; None: in the image's byte order.

        Raises:
            ImageError: the bytes are outside the image.
        """
        data, at = self._find(addr, size)
        number = value & (1 << 8 * size) - 1
        data[at : at + size] = number.to_bytes(size, self._order(little))

    def write_words(self, words: Iterable[tuple[int, int]], size: int) -> None:
        """Store many numbers in the image's byte order.

        It is quicker than write() where most are in one region.

        Args:
            words: (address, number), in the order in which they are stored.
            size: bytes of each, 4 or 8.

        Raises:
            ImageError: an address is outside the image.
        """
        word = struct.Struct(f"{'<' if self.little else '>'}{_LETTERS[size]}")
        mask = (1 << 8 * size) - 1
        start = end = 0
        data = bytearray()
        for addr, value in words:
            if not start <= addr <= end - size:
                data, at = self._find(addr, size)
                start = addr - at
                end = start + len(data)
            word.pack_into(data, addr - start, value & mask)

    def _order(self, little: bool | None) -> Literal["little", "big"]:
        """Return the byte order to use: "little" or "big".

        Args:
            little: True or False; None: the image's.
        """
        if little is None:
            little = self.little
        return "little" if little else "big"

    def _find(self, addr: int, size: int) -> tuple[bytearray, int]:
        """Return the bytes of the region that an address is in; they are made long enough first.

        Args:
            addr: the address.
            size: bytes that are needed from there on.

        Returns:
            (bytes of the region, index of the address in them).

        Raises:
            ImageError: the bytes are outside the image.
        """
        i = bisect.bisect_right(self._starts, addr) - 1
        start, room, data = self.regions[i] if i >= 0 else (0, 0, bytearray())
        if addr + size > start + room:
            raise ImageError(
                f"{self._image}: a relocation or table lies outside every segment",
                address=addr,
                hint="the file is damaged: build or fetch it again",
            )
        if (end := addr - start + size) > len(data):  # in BSS
            data.extend(bytes(end - len(data)))
        return data, addr - start


@frozen
class RelocationTarget:
    """The meaning of a relocation's symbol at run time.

    Attributes:
        name: of the symbol.
        address: mode bits stripped; of a thread-local symbol, its offset.
        thumb: 1 for Thumb code.
        size: bytes.
        local: known in this file only.
        imported: of another image.
        absent: weak, and not defined anywhere.
    """

    name: str = ""
    address: int = 0
    thumb: int = 0
    size: int = 0
    local: bool = True
    imported: bool = False
    absent: bool = False


class Binder(Protocol):
    """The values that formulas need besides place, symbol and addend.

    Attributes:
        memory: the image's, relocated in place.
        image: names the image in errors.
        bias: run address less link address.
        got, gp, toc: addresses that the formulas' GOT, GP and TOC stand for.
        hi20: address of a RISC-V high part -> the value that it holds.
    """

    memory: ImageMemory
    image: str
    bias: int
    got: int
    gp: int
    toc: int
    hi20: dict[int, int]
    #: the image's number, where its thread-local storage is from the thread pointer, what offsets
    #: in it leave out
    tls: tuple[int, int, int]

    def slot(self, content: int) -> int:
        """Return the address of a GOT slot that holds `content`; the first time, fill one."""

    def veneer(self, target: int, kind: str) -> int:
        """Return the address of code that jumps to a target; write that code the first time.

        Args:
            target: run address, with the Thumb bit.
            kind: of the code, a key of _veneers.CODE.
        """

    def code(self, x: RelocationSite) -> int:
        """Return the address that a direct call of the site's symbol is to jump to; write a veneer
        where the call needs one.
        """

    def describe(self, x: RelocationSite) -> int:
        """Write the second word of a thread-local variable's descriptor, and return the first
        one.
        """

    def ifunc(self, resolver: int) -> int:
        """Return the address of the function that the resolver at this address chooses."""


@define
class RelocationSite:
    """A relocation that is being computed.

    Attributes:
        p: run address of the field that it writes.
        a: the addend.
        target: what its symbol means.
        binder: gives the other values that formulas need.
        row: its type.
        extra: SPARC's second addend.
    """

    p: int
    a: int
    target: RelocationTarget
    binder: Binder
    row: RelocationRow
    extra: int = 0

    @property
    def sum(self) -> int:
        """S + A: the symbol's address plus the addend."""
        return self.target.address + self.a

    @property
    def thumb_sum(self) -> int:
        """(S + A) | T: the symbol's address plus the addend, with bit 0 set for Thumb code."""
        return self.sum | self.target.thumb

    def refuse(self, reason: str, hint: str) -> ImageError:
        """Return (not raise) the error that refuses this relocation.

        Args:
            reason: ends the sentence "relocation NAME to SYMBOL ...".
            hint: what to do about it.
        """
        to = f" to {self.target.name!r}" if self.target.name else ""
        return ImageError(
            f"{self.binder.image}: relocation {self.row.name}{to} {reason}",
            address=self.p,
            hint=hint,
        )


class RelocationField(Protocol):
    """The bits in memory that a value goes to."""

    def read(self, memory: ImageMemory, p: int) -> int:
        """Return the value that stands in the field at run address `p`."""

    def write(self, x: RelocationSite, value: int) -> None:
        """Write a value into the field of a relocation.

        Args:
            x: the relocation; x.p is the field's address.
            value: its value.

        Raises:
            ImageError: it does not fit.
        """


@frozen
class RelocationRow:
    """A relocation type.

    Attributes:
        name: as the supplement prints it.
        formula: what is computed, in _types' notation.
        field: where the value goes.
        compute: (relocation site) -> the value.
        calls: it is a direct call or jump.
        late: it is computed after the others.
        slots: it makes a GOT slot.
        veneers: it may need a veneer.
        tls: it is thread-local.
        plain: it makes a whole address the sum of two or three numbers, which is all that most
            entries of a large library do.
    """

    name: str
    formula: str
    field: RelocationField
    compute: Callable[[RelocationSite], int]
    calls: bool
    late: bool
    slots: bool
    veneers: bool
    tls: bool
    plain: bool


def signed(value: int, bits: int) -> int:
    """Return the two's complement value of the low `bits` bits of a number."""
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)
