"""The return address, as a return probe sees it on every hit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from ..arch._base import Linkage
from ..regs import Regs


@frozen
class Link:
    """How one CPU reaches the stack pointer and the return address, looked up beforehand.

    Attributes:
        get, put: of the return address at function entry. load, store: of a word of memory, where calls push it; else None.
    """

    get_sp: Callable[[], int]
    get: Callable[[], int]
    put: Callable[[int], Any]
    load: Callable[[int], int] | None = None
    store: Callable[[int, int], None] | None = None

    @classmethod
    def of(cls, regs: Regs, linkage: Linkage) -> Link:
        """That of the CPU of `regs`."""
        get_sp = regs.accessors(regs.arch.regs.sp)[0] if not regs.arch.regs.sp_bias else lambda: regs.sp
        if linkage.pushed:
            load, store = regs.words()
            return cls(get_sp, lambda: load(get_sp()), lambda target: store(get_sp(), target), load, store)
        if linkage.register:
            return cls(get_sp, *regs.accessors(linkage.register))
        return cls(get_sp, lambda: linkage.get(regs), lambda target: linkage.set(regs, target))
