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
        """Return True if bytes that were read from memory are those of the patch.

        Args:
            now: what is in memory from byte `lo` of the patch on; it may be shorter than the patch.
            lo: that byte's number, counted from the patch's first.
        """
        return only(now, self.mask[lo:]) == self.new[lo : lo + len(now)]


def only(data: bytes, mask: bytes) -> bytes:
    """Return `data` with the bits outside of a mask set to 0.

    Args:
        data: bytes, at most as many as the mask has.
        mask: 1 in each bit that stays; b"": all stay.
    """
    return bytes(byte & bits for byte, bits in zip(data, mask, strict=False)) if mask else data


def over(now: bytes | bytearray, data: bytes, mask: bytes) -> bytes:
    """Return `now` with the bits of a mask replaced by those of `data`.

    Args:
        now: the bytes in memory.
        data: as many bytes; where there is a mask, 0 outside of it.
        mask: 1 in each bit that is replaced; b"": all are replaced, so `data` is returned.
    """
    return (
        bytes(byte & ~bits | new for byte, new, bits in zip(now, data, mask, strict=False))
        if mask
        else data
    )
