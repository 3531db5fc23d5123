"""The findings of a heap check."""

from __future__ import annotations

from typing import Any, Final

from attrs import define, field

from .functions import shown
from .memory import FreedBlock, HeapBlock

#: Kinds of findings, and how a text begins.
KINDS: Final = {
    "overflow": "heap overflow",
    "underflow": "heap underflow",
    "use-after-free": "use after free",
    "wild-access": "access to heap memory that is in no block",
    "uninitialized-read": "read of memory that was never written",
    "double-free": "double free",
    "invalid-free": "invalid free",
    "mismatched-free": "mismatched free",
    "leak": "leak",
}
_ACCESSES: Final = {"r": "read of", "w": "write of"}


@define(eq=False, kw_only=True)
class HeapFinding:
    """A mistake of the guest's.

    Attributes:
        kind: one of "overflow", "underflow", "use-after-free", "wild-access", "uninitialized-read",
            "double-free", "invalid-free", "mismatched-free" and "leak".
        address: guest address that was accessed or freed; of a leak, the first block's.
        size: bytes that were accessed; of a leak, the bytes of all its blocks.
        access: "r", "w", or "" where nothing was accessed.
        pc: address of the instruction that accessed it; of a call, the address that it returns to;
            0: not known.
        stack: code addresses, innermost first, the first being `pc`.
        block: the block concerned, or the closest one; None: there is none.
        freed: how the block was freed; None: it was not.
        note: what else there is to say, or "".
        noticed: True where the access was not seen, but what it has left: `pc` and `stack` are then
            of the call at which it was noticed.
        count: how often it happened at this place.
        frames: `stack` as text: symbol, source line, for each address.
        allocated, released: `block.stack` and `freed.stack` as text likewise.
    """

    kind: str
    address: int
    size: int = 0
    access: str = ""
    pc: int = 0
    stack: tuple[int, ...] = ()
    block: HeapBlock | None = None
    freed: FreedBlock | None = None
    note: str = ""
    noticed: bool = False
    count: int = 1
    frames: list[str] = field(factory=list, repr=False)
    allocated: list[str] = field(factory=list, repr=False)
    released: list[str] = field(factory=list, repr=False)

    @property
    def headline(self) -> str:
        """The finding in one line, without the stacks: kind, access, place, note and count."""
        what = f"{KINDS[self.kind]}"
        if self.access:
            what += (
                f": {_ACCESSES[self.access]} {self.size} byte{'s' * (self.size != 1)} at "
                f"{self.address:#x}"
            )
        elif self.kind != "leak":
            what += f" of {self.address:#x}"
        where = self._where()
        note = f" ({self.note})" if self.note else ""
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{what}{where}{note}{times}"

    def _where(self) -> str:
        """Return where the address is, as the end of a sentence; "" without a block.

        Such as ", 4 bytes behind a block of 16 bytes"; of a leak " of 16 bytes at 0x1000", the
        block's size and address.
        """
        block = self.block
        if block is None:
            return ""
        if self.kind == "leak":
            return f" of {block.size} bytes at {block.address:#x}"
        size = f"block of {block.size} bytes"
        if self.address >= block.end:
            distance = self.address - block.end
            return (
                f", {distance} bytes behind a {size}" if distance else f", directly behind a {size}"
            )
        if self.address < block.address:
            return f", {block.address - self.address} bytes in front of a {size}"
        return f", {self.address - block.address} bytes into a {size}"

    def __str__(self) -> str:
        """The headline, and the stacks: where it happened, where the block was allocated and
        freed.
        """
        lines = [self.headline]
        if self.frames:
            lines += ["  noticed at" if self.noticed else "  at", *self._lines(self.frames)]
        if self.block is not None:
            lines += [
                f"  allocated by {shown(self.block.function)} at",
                *self._lines(self.allocated),
            ]
        if self.freed is not None:
            lines += [f"  freed by {shown(self.freed.function)} at", *self._lines(self.released)]
        return "\n".join(lines)

    @staticmethod
    def _lines(frames: list[str]) -> list[str]:
        """Return the frames of a stack as indented lines; "(unknown)" where there are none."""
        return [f"    {frame}" for frame in frames] or ["    (unknown)"]

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for JSON. Addresses are integers, stacks lists of {"address", "text"}.

        Returns:
            "kind", "text" (the headline), "address", "size", "access", "pc", "count", "noticed" and
            "stack"; "block" ({"address", "size", "function", "stack"}) and "freed" ({"function",
            "stack"}), None where there is none.
        """
        found: dict[str, Any] = {
            "kind": self.kind,
            "text": self.headline,
            "address": self.address,
            "size": self.size,
            "access": self.access,
            "pc": self.pc,
            "count": self.count,
            "noticed": self.noticed,
            "stack": _stack(self.stack, self.frames),
            "block": None,
            "freed": None,
        }
        if self.block is not None:
            found["block"] = {
                "address": self.block.address,
                "size": self.block.size,
                "function": shown(self.block.function),
                "stack": _stack(self.block.stack, self.allocated),
            }
        if self.freed is not None:
            found["freed"] = {
                "function": shown(self.freed.function),
                "stack": _stack(self.freed.stack, self.released),
            }
        return found


def _stack(stack: tuple[int, ...], frames: list[str]) -> list[dict[str, Any]]:
    """Return a stack for JSON: {"address", "text"} for each frame.

    Args:
        stack: code addresses.
        frames: text of each address.
    """
    return [
        {"address": address, "text": text} for address, text in zip(stack, frames, strict=False)
    ]
