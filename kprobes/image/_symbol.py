"""A name of guest memory."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen


@frozen
class Symbol:
    """A named stretch of guest memory.

    Attributes:
        name: as in the symbol table.
        address: code address as the symbol table has it, mode bits stripped.
        size: bytes; 0 where unknown, then it reaches to the next symbol.
        module: image it came from, "" for the main one.
        mode: mode bits of the code there (ARM: 1 for Thumb).
        kind: "func", "ifunc", "object" or "import".
    """

    name: str
    address: int
    size: int = 0
    module: str = ""
    mode: int = 0
    kind: str = "func"


@frozen(eq=False)
class LoadedFile:
    """A file that is in guest memory, for what it says beyond symbols.

    Attributes:
        data: the file.
        bias: guest address less link address.
        module: as of its symbols.
        path: of it; "" where it is not known.
        cache: what readers made of it.
    """

    data: bytes = field(repr=False)
    bias: int
    module: str
    path: str = ""
    cache: dict[str, Any] = field(factory=dict, repr=False)
