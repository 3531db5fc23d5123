"""A patch: bytes of ours, or some of their bits."""

from __future__ import annotations

from attrs import frozen


@frozen
class Patch:
    """Bytes of ours at an address, and what they cover.

    tail: what it stands for besides, behind them, which is the guest's. mask: which bits of these
    bytes they are, where the others are neighbours' (b"": all); new and old have 0 there.
    """

    addr: int
    new: bytes
    old: bytes
    tail: bytes = b""
    mask: bytes = b""

    def stands_in(self, now: bytes, lo: int = 0) -> bool:
        """Return True if it stands in `now`, the bytes from its `lo`-th on."""
        return only(now, self.mask[lo:]) == self.new[lo : lo + len(now)]


def only(data: bytes, mask: bytes) -> bytes:
    """Return the bits of a mask."""
    return bytes(byte & bits for byte, bits in zip(data, mask, strict=False)) if mask else data


def over(now: bytes | bytearray, data: bytes, mask: bytes) -> bytes:
    """`now` with these bits of a mask."""
    return (
        bytes(byte & ~bits | new for byte, new, bits in zip(now, data, mask, strict=False))
        if mask
        else data
    )
