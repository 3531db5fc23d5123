"""How a return probe reads and replaces the return address, as quickly as that can be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from ...arch._base import Linkage
from ...regs import Regs


@frozen
class Link:
    """Functions that reach one CPU's stack pointer and return address, looked up beforehand.

    Attributes:
        get_sp: () -> the stack pointer.
        get: () -> the return address at function entry; at the trampoline, the address that
            Linkage.back returns to.
        put: (address): sets what `get` returns.
        load: (address) -> the word there, where calls push the return address; else None.
        store: (address, word): writes the word there; None where `load` is.
        swap: (stack pointer, target) sets the return address and returns the former one, where one
            call can do both; None: call get() and put().
        skip: what get() returns at function entry -> where the function returns to; None: they are
            the same. They differ where a return skips something at the caller, as in SPARC version
            8 the UNIMP behind a call that returns a structure (Returning.skips).
        read: get() returns read() + bias.
        bias: bytes that the return address is above the value of its register.
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
        """Make the link of a CPU.

        The return address is on top of the stack where calls push it, else in the linkage's
        register, else where the linkage's own functions find it.

        Args:
            regs: the CPU's registers.
            linkage: how the architecture calls and returns.
            returning: False at function entry, True at the trampoline.
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
            # at entry only the trampoline's address is put, which fits the register as it is
            put = partial(cell[0].__setitem__, cell[1])
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


def _biased(
    read: Callable[[], int], write: Callable[[int], Any], bias: int, mask: int
) -> tuple[Callable[[], int], Callable[[int], Any], Callable[[int, int], int]]:
    """Return get, put and swap for a register that holds the return address minus `bias`.

    They run on every hit; comparing with `mask` is quicker than cutting by it.

    Args:
        read: () -> the register's value.
        write: (value): sets the register.
        bias: bytes that the return address is above the register's value.
        mask: the largest address.

    Returns:
        get() -> the return address; put(address): sets it; swap(frame, address): sets it and
        returns the one before (`frame` is not used).
    """
    last = -1
    raw = 0

    def swap(frame: int, target: int) -> int:
        """Set the return address, and return the one before. `frame` is not used."""
        nonlocal last, raw
        if target is not last:  # the trampoline's address: nearly always the same object
            last = target
            raw = target - bias & mask
        value = read() + bias
        write(raw)
        return value if value <= mask else value & mask

    def get() -> int:
        """Return the return address: the register's value plus the bias, cut to an address."""
        value = read() + bias
        return value if value <= mask else value & mask

    return get, lambda target: write(target - bias & mask), swap
