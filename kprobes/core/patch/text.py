"""What is underneath our patches."""

from __future__ import annotations

import warnings

from attrs import frozen

from ...machine._base import Machine


class TextOverwritten(RuntimeWarning):
    """The guest, or its owner, has overwritten a patch of ours; its bytes are left as they are."""


class ExecutedElsewhere(RuntimeWarning):
    """The guest has executed a probed instruction out of its place, by an instruction that executes another one (EXECUTE)."""


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
        self._patches: dict[int, Patch] = {}
        self._longest = 1
        self._overwritten: list[int] = []

    def read(self, addr: int, size: int) -> bytes:
        """Original bytes; GuestFault where memory is not mapped."""
        data = self._machine.read(addr, size)
        touching = self._touching(addr, size)
        if not touching:
            return data
        out = bytearray(data)
        for patch in touching:
            if self._holds(patch, addr, data):
                lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.old), addr + size)
                out[lo - addr : hi - addr] = patch.old[lo - patch.addr : hi - patch.addr]
        return bytes(out)

    def _touching(self, addr: int, size: int) -> list[Patch]:
        """Patches with a byte in [addr, addr + size). Looks at the addresses or at the patches, whichever are fewer."""
        if size + self._longest < len(self._patches):
            near = (self._patches[a] for a in range(addr - self._longest + 1, addr + size) if a in self._patches)
            return [p for p in near if addr < p.addr + len(p.new)]
        return [p for p in self._patches.values() if p.addr < addr + size and addr < p.addr + len(p.new)]

    def apply(self, addr: int, new: bytes) -> Patch:
        """Put `new` over the text at `addr`; revert() takes it away."""
        patch = Patch(addr, new, self._machine.read(addr, len(new)))
        self._machine.patch(addr, new)
        self._patches[addr] = patch
        self._longest = max(self._longest, len(new))
        return patch

    def replace(self, patch: Patch, new: bytes) -> Patch:
        """Put `new` where `patch` is, in one write; the longer of the two is covered. Returns the patch that is there now.

        A patch that somebody has overwritten meanwhile is left alone; revert() will say so.
        """
        if self._machine.read(patch.addr, len(patch.new)) != patch.new:
            return patch
        covered = self.read(patch.addr, max(len(new), len(patch.new)))
        self._machine.patch(patch.addr, new + covered[len(new) :])
        del self._patches[patch.addr]
        made = self._patches[patch.addr] = Patch(patch.addr, new, covered[: len(new)])
        self._longest = max(self._longest, len(new))
        return made

    def revert(self, patch: Patch) -> None:
        """Put the covered bytes back, unless somebody has overwritten the patch meanwhile: they are left, and warn() will say so."""
        self.forget(patch)
        if self._machine.read(patch.addr, len(patch.new)) == patch.new:
            self._machine.patch(patch.addr, patch.old)
        else:
            self._overwritten.append(patch.addr)

    def warn(self) -> None:
        """Warn of overwritten patches that were reverted. A warning may be raised (python -W error): so this is the last thing done."""
        if self._overwritten:
            where, self._overwritten = ", ".join(f"{addr:#x}" for addr in self._overwritten), []
            warnings.warn(f"text at {where} was overwritten while probed; it is left as it is", TextOverwritten, stacklevel=2)

    def forget(self, patch: Patch) -> None:
        """Drop a patch without touching memory (the text is gone)."""
        del self._patches[patch.addr]

    @property
    def patches(self) -> list[Patch]:
        """Every patch in memory, by address."""
        return sorted(self._patches.values(), key=lambda p: p.addr)

    def _holds(self, patch: Patch, addr: int, data: bytes) -> bool:
        """True if the patch is still in memory, as far as `data` shows it: guest code may have replaced itself."""
        lo, hi = max(patch.addr, addr), min(patch.addr + len(patch.new), addr + len(data))
        return lo >= hi or data[lo - addr : hi - addr] == patch.new[lo - patch.addr : hi - patch.addr]
