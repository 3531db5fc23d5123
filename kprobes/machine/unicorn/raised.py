"""Notes where an interrupt was raised, on guests whose pc is another one by the time that the
engine reports it.

Before it reports an interrupt the engine writes pc: on SPARC it becomes the next pc, which is a
branch's target where a delay slot was executed, on MIPS whatever was noted last. Before that it
asks a function of the guest's, whose address is in its handle, whether the interrupt ends the run;
the function gets the handle and the number. One of the library's is put in front of it, which notes
pc: host code, or Python where there is none.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable

from .engine import WRITE, Engine, address_of
from .host.noting import give_back, take
from .registers.cells import Cell

# bytes from the handle to that address; 0 is there on guests that have no such function
ASKS = 0xE0
WITHIN = 1 << 27  # bytes that the engine's library is smaller than
_ASKED = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int)


def known(engine: Engine) -> bool:
    """Return True if the engine's handle looks as it is known: addresses of functions of the
    engine's are at the place of the one that is replaced (0 is there, too, if the guest has none),
    before it and behind it.

    The engine must have made its CPU: it does when it is first asked for a register.
    """
    before, there, behind = (_word(engine, ASKS + offset).value for offset in (-8, 0, 8))
    return all(abs(function - WRITE) < WITHIN for function in (before, there or before, behind))


def _word(engine: Engine, offset: int) -> ctypes.c_uint64:
    """Return the word of 64 bits at a distance of `offset` bytes from the start of the engine's
    handle.
    """
    return ctypes.c_uint64.from_address((engine.handle.value or 0) + offset)


class Raised:
    """Notes the pc of interrupts of one engine."""

    def __init__(
        self, engine: Engine, mask: int, read_pc: Callable[[], int], cell: Cell | None
    ) -> None:
        """Prepare; begin() comes before the first interrupt.

        Args:
            engine: the engine.
            mask: the largest address.
            read_pc: returns pc.
            cell: pc's word in the engine; None: it is not known.
        """
        self._engine = engine
        self._mask = mask
        self._read_pc = read_pc
        self._cell = cell
        self._place = _word(engine, ASKS)
        self._theirs = 0  # address of the guest's own function; 0: it has none
        self._note: ctypes.Array[ctypes.c_uint64] = (ctypes.c_uint64 * 1)()
        self._callback: object = None
        self._end: Callable[[], object] | None = None

    @property
    def pc(self) -> int:
        """Pc of the instruction that has raised the last interrupt. Right only in that interrupt's
        hook, before anything else is executed.
        """
        return self._note[0] & self._mask

    def begin(self) -> None:
        """Put the library's function in front of the guest's own, so that pc is noted at each
        interrupt from now on, until end(). A second call does nothing.
        """
        if self._end is not None:
            return
        self._theirs = self._place.value
        taken = take(self._cell.address, self._theirs) if self._cell is not None else None
        if taken is not None:
            self._place.value = taken.function
            self._note = taken.note
            self._end = weakref.finalize(self._engine.uc, give_back, taken)
            return
        self._callback = _ASKED(self._by_python())
        self._place.value = address_of(self._callback)
        self._end = self._nothing

    def end(self) -> None:
        """Put the guest's own function back: pc is noted no more, and a host function is given
        back. Nothing is done without begin().
        """
        if self._end is not None:
            self._place.value = self._theirs
            self._end()
            self._end = None

    def _by_python(self) -> Callable[[int, int], bool]:
        """Make the Python function that the engine asks whether an interrupt ends the run.

        The function notes pc where an interrupt was raised. Then it asks the engine's own function
        for the guest's architecture, in whose place it stands, and returns that one's answer.

        Returns:
            (address of the engine's handle, number of the interrupt; less than 0: none was raised)
            -> True: the interrupt ends the run. False where the engine has no function of its own
            for this.
        """
        note, read_pc = self._note, self._read_pc
        theirs = _ASKED(self._theirs) if self._theirs else None

        def asked(uc: int, number: int) -> bool:
            """Note pc if an interrupt was raised (`number` is 0 or more), and return the answer of
            the engine's own function; False where it has none.
            """
            if number >= 0:  # else nothing has been raised
                note[0] = read_pc()
            return theirs is not None and bool(theirs(uc, number))

        return asked

    def _nothing(self) -> None:
        """Do nothing, at the end: where Python notes pc there is no host function to give back."""
