"""Reads CMSIS-SVD files: the names of a microcontroller's peripherals and their registers.

Written here because what is needed of the format is five elements; the packages that read all of it
bring an XML library along. A file with a document type declaration is refused: only those can grow
in memory, or name other files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from attrs import frozen

from ..errors import ImageError

LARGEST = 64 << 20  #: bytes of a file
MOST = 4096  #: registers of one array


@frozen
class Register:
    """A register of a peripheral.

    Attributes:
        name: of the register.
        offset: bytes from the peripheral's start.
        size: bytes.
        reset: its value after a reset.
    """

    name: str
    offset: int
    size: int
    reset: int = 0


@frozen
class Peripheral:
    """A peripheral of a microcontroller.

    Attributes:
        name: of the peripheral.
        start: its address.
        size: bytes that it takes.
        registers: all of them, those of arrays one by one.
        interrupts: name -> number.
    """

    name: str
    start: int
    size: int
    registers: tuple[Register, ...]
    interrupts: dict[str, int]


class _Builder(ElementTree.TreeBuilder):
    """Builds the XML tree of a file, and refuses document type declarations."""

    def doctype(self, *declared: Any) -> None:
        """Raise ImageError; the parser calls this at a document type declaration."""
        raise ImageError(
            "it has a document type declaration, which no SVD file needs",
            hint="take that line out, and what belongs to it",
        )


def read_svd(path: str | os.PathLike[str]) -> tuple[Peripheral, ...]:
    """Read a CMSIS-SVD file.

    Args:
        path: path of the file.

    Raises:
        ImageError: it cannot be read, is damaged, too large (LARGEST), or has no peripherals.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ImageError(f"{name}: {error.strerror or error}") from None
    if len(data) > LARGEST:
        raise ImageError(f"{name}: it is larger than any SVD file", hint="give a .svd file")
    parser = ElementTree.XMLParser(target=_Builder())
    try:
        parser.feed(data)
        root = parser.close()
        out = tuple(_peripherals(root))
    except ElementTree.ParseError as error:
        raise ImageError(f"{name}: no XML ({error})", hint="give a .svd file") from None
    except (
        ValueError,
        LookupError,
        RecursionError,
    ) as error:  # LookupError: an encoding that is none
        raise ImageError(f"{name}: {error}") from None
    except ImageError as error:
        raise ImageError(f"{name}: {error.reason}") from None
    if not out:
        raise ImageError(f"{name}: no peripherals are in it", hint="give a .svd file")
    return out


def _peripherals(root: Any) -> Iterator[Peripheral]:
    """Yield the peripherals of a device description.

    Where a peripheral lacks registers, their size or value after a reset, or an address block,
    these are taken from the one that it is derived from, or from what that is derived from. Without
    an address block it ends behind its last register.

    Args:
        root: the file's XML element.

    Raises:
        ValueError: a number is none, an array has too many elements, or what something is derived
            from is not there.
    """
    elements = {
        element.findtext("name", ""): element for element in root.iterfind("peripherals/peripheral")
    }
    of_all = root.findtext("resetValue") or "0"
    for name, element in elements.items():
        inherited = _derivation(element, elements)
        bits = _number(next((text for each in inherited if (text := each.findtext("size"))), "32"))
        reset = next((text for each in inherited if (text := each.findtext("resetValue"))), of_all)
        found = next((r for each in inherited if (r := each.find("registers")) is not None), None)
        registers = (
            tuple(_registers(found, 0, "", bits, _number(reset))) if found is not None else ()
        )
        block = next(
            (b for each in inherited if (b := each.find("addressBlock")) is not None), None
        )
        last = max((r.offset + r.size for r in registers), default=4)
        size = (
            last
            if block is None
            else _number(block.findtext("offset", "0")) + _number(block.findtext("size", "0"))
        )
        yield Peripheral(
            name,
            _number(element.findtext("baseAddress", "")),
            max(size, 1),
            registers,
            {
                i.findtext("name", ""): _number(i.findtext("value", ""))
                for i in element.iterfind("interrupt")
            },
        )


def _derivation(element: Any, siblings: dict[str, Any]) -> list[Any]:
    """Return a peripheral or register, the one that it is derived from, the one that that is
    derived from, and so on.

    Args:
        element: its XML element.
        siblings: elements of the same level, by their names.

    Raises:
        ValueError: there is none of such a name, or one is derived from itself.
    """
    found = [element]
    while (name := found[-1].get("derivedFrom")) is not None:
        # the name may be a path, as UART.STATUS: its last part is the sibling's
        base = siblings.get(name, siblings.get(name.rpartition(".")[2]))
        of = element.findtext("name", "")
        if base is None:
            raise ValueError(f"{of} is derived from {name}, which is not in it")
        if base in found:
            raise ValueError(f"{of} is derived from itself")
        found.append(base)
    return found


def _registers(parent: Any, at: int, prefix: str, bits: int, reset: int) -> Iterator[Register]:
    """Yield the registers of a peripheral or a cluster, those of arrays one by one.

    Args:
        parent: the element that holds registers and clusters.
        at: offset of the parent, in bytes.
        prefix: of the names: "" or "CLUSTER_".
        bits: of a register that does not say how many it has.
        reset: value after a reset of a register that does not say which.

    A register that is derived from another has that one's size and value after a reset, and a
    derived cluster the other one's registers and its own.

    Raises:
        ValueError: a number is none, an array has too many elements, or what something is derived
            from is not there.
    """
    siblings = {
        element.findtext("name", ""): element
        for element in parent
        if element.tag in ("register", "cluster")
    }
    for element in parent:
        if element.tag not in ("register", "cluster"):
            continue
        inherited = _derivation(element, siblings)
        width = _number(next((t for each in inherited if (t := each.findtext("size"))), str(bits)))
        value = _number(
            next((t for each in inherited if (t := each.findtext("resetValue"))), str(reset))
        )
        for name, offset in _array(element):
            where = at + offset
            if element.tag == "register":
                yield Register(prefix + name, where, max(width // 8, 1), value)
            else:
                for holder in inherited:
                    yield from _registers(holder, where, f"{prefix}{name}_", width, value)


def _array(element: Any) -> Iterator[tuple[str, int]]:
    """Yield (name, offset in bytes) of each register of an array, or of the only one.

    Args:
        element: the XML element of a register or cluster.

    Raises:
        ValueError: a number is none, or an array has too many elements.
    """
    name, offset = element.findtext("name", ""), _number(element.findtext("addressOffset", "0"))
    if (count := element.findtext("dim")) is None:
        yield name, offset
        return
    many, step = _number(count), _number(element.findtext("dimIncrement", "4"))
    if not 0 < many <= MOST:
        raise ValueError(f"an array of {many} registers: {name}")
    for n, index in zip(range(many), _indices(element.findtext("dimIndex", ""), many), strict=True):
        yield name.replace("[%s]", index).replace("%s", index), offset + n * step


def _indices(text: str, many: int) -> list[str]:
    """Return the indices of an array's elements, as texts.

    Args:
        text: "0-3", "A,B,C" or "" as the file has it. Where that is not `many` indices, numbers
            from 0 are returned.
        many: how many elements there are.
    """
    numbers = re.fullmatch(r"(\d+)-(\d+)", text)
    names = text.split(",") if text and not numbers else []
    if numbers is not None and int(numbers[2]) - int(numbers[1]) + 1 == many:
        return [str(int(numbers[1]) + n) for n in range(many)]
    return names if len(names) == many else [str(n) for n in range(many)]


_NUMBER = re.compile(r"\+?(?:0x([0-9a-f]+)|#([01x]+)|([0-9]{1,30}))([kmgt]?)")
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}  #: bits that a number is shifted to the left


def _number(text: str) -> int:
    """Parse a number as SVD files write it: 16, 016, +16, 0x10, #10000, #1xx, 4k (4096).

    An x of a binary number is any digit, and taken for 0 (CMSIS-SVD, scaledNonNegativeInteger).
    Raises ValueError: it is none.
    """
    text = text.strip().lower()
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no number")
    hexadecimal, binary, decimal, unit = match.groups()
    if hexadecimal is not None:
        number = int(hexadecimal, 16)
    elif binary is not None:
        number = int(binary.replace("x", "0"), 2)
    else:
        number = int(decimal)
    return number << _UNITS.get(unit, 0)
