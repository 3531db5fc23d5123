"""Static tracepoints of a file: what sys/sdt.h's macros leave in its section .note.stapsdt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from ..image import LoadedFile
from .file import DAMAGE, cached, elf_of

SECTION: Final = ".note.stapsdt"
_BASE: Final = ".stapsdt.base"
_KIND: Final = 3
_OPERAND: Final = re.compile(r"\s+(?=-?\d+f?@)")


@frozen
class Marker:
    """An address that a static tracepoint (DTRACE_PROBE, STAP_PROBE) of a program's source marks.

    A tracepoint that is compiled several times has a marker for each place, with its own operands.

    Attributes:
        provider: first part of the tracepoint's name.
        name: second part of it.
        address: guest address of the place.
        semaphore: guest address of a 16-bit counter of tracers; 0: it has none.
        arguments: operands as the compiler wrote them: `-4@%eax`, a signed number of 4 bytes that
            is in eax.
        module: of the file, as symbols have it.
    """

    provider: str
    name: str
    address: int
    semaphore: int
    arguments: tuple[str, ...]
    module: str


def markers_of(file: LoadedFile) -> list[Marker]:
    """Return the static tracepoints of a file; [] where it has none, or is damaged."""
    try:
        return cached(file, "markers", lambda: [*_read(file)])
    except DAMAGE:
        return []


def _read(file: LoadedFile) -> Iterator[Marker]:
    """Yield the static tracepoints of a file; notes that lack texts are left out.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    elf = elf_of(file)
    section, base = elf.get_section_by_name(SECTION), elf.get_section_by_name(_BASE)
    if section is None:
        return
    order: Any = "little" if elf.little_endian else "big"
    for desc in _notes(section.data(), order):
        marker = _marker(
            desc, elf.elfclass // 8, order, base["sh_addr"] if base is not None else 0, file
        )
        if marker is not None:
            yield marker


def _notes(data: bytes, order: Any) -> Iterator[bytes]:
    """Yield the contents of each stapsdt note in a section. Notes begin at multiples of 4 bytes.

    Args:
        data: contents of the section.
        order: the byte order, "little" or "big".
    """
    at = 0
    while at + 12 <= len(data):
        name, size, kind = (int.from_bytes(data[at + n : at + n + 4], order) for n in (0, 4, 8))
        begin = at + 12 + (name + 3 & ~3)
        if (
            kind == _KIND
            and data[at + 12 : at + 12 + name] == b"stapsdt\0"
            and begin + size <= len(data)
        ):
            yield data[begin : begin + size]
        at = begin + (size + 3 & ~3)


def _marker(desc: bytes, word: int, order: Any, base: int, file: LoadedFile) -> Marker | None:
    """Decode a note of a static tracepoint: three words, then three texts.

    Args:
        desc: the note's contents.
        word: bytes of a word.
        order: the byte order, "little" or "big".
        base: address of section .stapsdt.base; 0: there is none. The note has the address that it
            had at link time; the difference is how far a tool has moved the code since.
        file: the file that the note is in.

    Returns:
        None: the note lacks texts.
    """
    texts = desc[3 * word :].split(b"\0")
    if len(texts) < 4:
        return None
    provider, name, arguments = (text.decode("utf-8", "backslashreplace") for text in texts[:3])
    address, then, semaphore = (
        int.from_bytes(desc[n * word : (n + 1) * word], order) for n in range(3)
    )
    moved, mask = (base - then if base and then else 0) + file.bias, (1 << 8 * word) - 1
    return Marker(
        provider,
        name,
        address + moved & mask,
        semaphore + moved & mask if semaphore else 0,
        _operands(arguments),
        file.module,
    )


def _operands(text: str) -> tuple[str, ...]:
    """Split the text of a note's operands into single ones: `-4@%eax 8@16(%rsp)` gives two.

    An operand may have blanks in its brackets.
    """
    text = text.strip()
    return tuple(_OPERAND.split(text) if "@" in text else text.split())
