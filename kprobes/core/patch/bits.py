"""A patch: bytes that the library has written over guest text, or some bits of them."""

from __future__ import annotations

from attrs import frozen


@frozen
class Patch:
    """The library's bytes at an address, and the text that they cover.

    Attributes:
        addr: address of the first byte.
        new: the library's bytes.
        old: the guest's bytes that they replace.
        tail: the guest's bytes behind them that belong to the same instruction (or bundle); they
            are in memory unchanged, and a hit executes an old copy of them.
        mask: the bits of these bytes that are replaced, where other bits belong to neighbours in a
            bundle; `new` and `old` have 0 there. b"": all bits.
    """

    addr: int
    new: bytes
    old: bytes
    tail: bytes = b""
    mask: bytes = b""

    def stands_in(self, now: bytes, lo: int = 0) -> bool:
        """Return True if the patch is in memory.

        Args:
            now: what is in memory from byte `lo` of the patch on; it may be shorter than the patch.
            lo: that byte's number.
        """
        return only(now, self.mask[lo:]) == self.new[lo : lo + len(now)]


def only(data: bytes, mask: bytes) -> bytes:
    """Return `data` with the bits outside of `mask` set to 0; an empty mask has all bits."""
    return bytes(byte & bits for byte, bits in zip(data, mask, strict=False)) if mask else data


def over(now: bytes | bytearray, data: bytes, mask: bytes) -> bytes:
    """Return `now` with the bits of `mask` replaced by those of `data`; an empty mask has all."""
    return (
        bytes(byte & ~bits | new for byte, new, bits in zip(now, data, mask, strict=False))
        if mask
        else data
    )
