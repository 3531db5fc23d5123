"""The return address, as a return probe sees it on every hit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from ...arch._base import Linkage
from ...regs import Regs


@frozen
class Link:
    """How one CPU reaches the stack pointer and the return address, looked up beforehand.

    Attributes:
        get, put: of the return address at function entry; at the trampoline: of where
            Linkage.back goes to.
        load, store: of a word of memory, where calls push it; else None.
        swap: (frame, target): put, and what was there, where that is one call; None: get
            and put do it.
        skip: what get() finds at function entry -> where the function returns to; None:
            there is no difference. See Returning.skips.
        read, bias: what get() adds up.
    """

    get_sp: Callable[[], int]
    get: Callable[[], int]
    put: Callable[[int], Any]
    load: Callable[[int], int] | None = None
    store: Callable[[int, int], None] | None = None
    swap: Callable[[int, int], int] | None = None
    skip: Callable[[int], int] | None = None
    read: Callable[[], int] = int
    bias: int = 0

    @classmethod
    def of(cls, regs: Regs, linkage: Linkage, *, returning: bool = False) -> Link:
        """Make the link of the CPU of `regs`, at function entry or, `returning`, at the trampoline.
        """
        read_sp = regs.accessors(regs.arch.regs.sp)[0]
        above = regs.arch.regs.sp_bias
        mask = regs.arch.mask
        get_sp = (lambda: read_sp() + above & mask) if above else read_sp
        if linkage.pushed:
            load, store, swap = regs.words()
            return cls(
                get_sp,
                lambda: load(get_sp()),
                lambda target: store(get_sp(), target),
                load,
                store,
                swap,
            )
        if not linkage.register:
            found = partial(linkage.get, regs)
            return cls(get_sp, found, lambda target: linkage.set(regs, target), read=found)
        get, put = regs.accessors(linkage.register)
        read, both, cell = get, None, regs.cell(linkage.register)
        if cell is not None and not returning:
            put = partial(cell[0].__setitem__, cell[1])  # the trampoline, which needs no cutting
        if linkage.bias:
            get, put, both = _biased(get, put, linkage.bias, mask)
        if linkage.returning.skips is None:
            return cls(get_sp, get, put, swap=both, read=read, bias=linkage.bias)
        skip, unskip = linkage.returning.skips(regs)
        return (
            cls(get_sp, get, lambda target: put(unskip(target)), read=read, bias=linkage.bias)
            if returning
            else cls(get_sp, get, put, swap=both, skip=skip)
        )


def _biased(read: Callable[[], int], write: Callable[[int], Any], bias: int, mask: int) -> tuple[
        Callable[[], int], Callable[[int], Any], Callable[[int, int], int]]:
    """get, put and swap of a register from which the return address is `bias` away; `& mask` costs
    more than `<=`.
    """
    last, raw = -1, 0

    def swap(frame: int, target: int) -> int:
        nonlocal last, raw
        if target is not last:  # the trampoline, always the same
            last, raw = target, target - bias & mask
        value = read() + bias
        write(raw)
        return value if value <= mask else value & mask

    return (lambda: value if (value := read() + bias) <= mask else value & mask,
            lambda target: write(target - bias & mask), swap)
