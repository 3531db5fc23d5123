"""What is underneath our patches."""

from __future__ import annotations

import warnings

from attrs import frozen

from ..machine._base import Machine


class TextOverwritten(RuntimeWarning):
    """The guest, or its owner, has overwritten a patch of ours; its bytes are left as they are."""


@frozen
class Patch:
    """Bytes of ours at an address, and what they cover."""

    addr: int
    new: bytes
    old: bytes


class Text:
    """Guest text with our patches seen through. Every change of guest code by the core goes through here."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._pages: dict[int, dict[int, Patch]] = {}  # page number -> address -> patch that touches the page

    def read(self, addr: int, size: int) -> bytes:
        """Original bytes; GuestFault where memory is not mapped."""
        data = self._machine.read(addr, size)
        patches = {a: p for page in self._span(addr, size) for a, p in self._pages.get(page, {}).items()}
        if not patches:
            return data
        out = bytearray(data)
        for patch in patches.values():
            if self._holds(patch, addr, data):
                lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.old), addr + size)
                if lo < hi:
                    out[lo - addr : hi - addr] = patch.old[lo - patch.addr : hi - patch.addr]
        return bytes(out)

    def apply(self, addr: int, new: bytes) -> Patch:
        """Put `new` over the text at `addr`; revert() takes it away."""
        patch = Patch(addr, new, self._machine.read(addr, len(new)))
        self._machine.patch(addr, new)
        for page in self._span(addr, len(new)):
            self._pages.setdefault(page, {})[addr] = patch
        return patch

    def revert(self, patch: Patch) -> None:
        """Put the covered bytes back, unless somebody has overwritten the patch meanwhile: then warn and leave them."""
        self.forget(patch)
        if self._machine.read(patch.addr, len(patch.new)) == patch.new:
            self._machine.patch(patch.addr, patch.old)
        else:
            warnings.warn(f"text at {patch.addr:#x} was overwritten while probed; it is left as it is", TextOverwritten, stacklevel=2)

    def forget(self, patch: Patch) -> None:
        """Drop a patch without touching memory (the text is gone)."""
        for page in self._span(patch.addr, len(patch.new)):
            del self._pages[page][patch.addr]

    @property
    def patches(self) -> list[Patch]:
        """Every patch in memory, by address."""
        return sorted({p.addr: p for page in self._pages.values() for p in page.values()}.values(), key=lambda p: p.addr)

    def _holds(self, patch: Patch, addr: int, data: bytes) -> bool:
        """True if the patch is still in memory, as far as `data` shows it: guest code may have replaced itself."""
        lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.new), addr + len(data))
        return lo >= hi or data[lo - addr : hi - addr] == patch.new[lo - patch.addr : hi - patch.addr]

    def _span(self, addr: int, size: int) -> range:
        return range(addr >> 12, (addr + max(size, 1) - 1 >> 12) + 1)
