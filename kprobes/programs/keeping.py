"""Programs at entries of functions to whose returns another program is attached: values kept in
between.

They are kept in an array with a value for each call that a machine follows by itself: call_slot()
is the same at a call's entry and at its return. For calls that the core follows, they are in the
call's instance.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

from ..errors import Unsupported
from .inline import FOLLOWED_CALL
from .maps import Map
from .meanings import SLOTS

if TYPE_CHECKING:
    from ..machine._views import HostCodeView
    from .site import SiteProgram

_TOP: Final = "followed_top"


class Keeping:
    """The program at one function's entry that keeps values for the program at its return.

    Attributes:
        program: the program at the entry.
    """

    def __init__(self, program: SiteProgram, kept: Map, view: HostCodeView) -> None:
        """Prepare.

        Args:
            program: the program at the entry.
            kept: the array that it writes: a value for each call that is being followed.
            view: the machine's view for host code, which tells how many calls are being followed.

        Raises:
            Unsupported: the machine does not tell which calls it follows.
        """
        if _TOP not in view.words:
            raise Unsupported("this machine does not tell which calls it follows")
        self.program = program
        self._array: Any = kept
        self._top = ctypes.c_uint64.from_address(view.words[_TOP])
        self._base = view.words["followed_base"]

    def kept(self, slot: int) -> bytes:
        """Return the bytes that the program has kept at the entry of a followed call.

        Args:
            slot: the call's index in the array: how many calls were being followed when it began.
        """
        start = slot * self._array.stride
        return bytes(self._array.block.view[start : start + self._array.value_size])

    def begin(self, address: int) -> bytes:
        """Run the program at a function's entry that the core serves in Python.

        Args:
            address: address of the function.

        Returns:
            The bytes that the program has kept, for give(); b"": SLOTS calls are being followed
            already, and there is no place for this one.
        """
        self.program.run(address)
        slot = self._slot
        return self.kept(slot) if slot < SLOTS else b""

    def give(self, kept: bytes) -> None:
        """Write the values that were kept at an entry into the array, where the program at the
        return reads them.

        Called at a return that the core serves in Python, before the program there runs. Nothing
        is written where SLOTS calls are being followed.

        Args:
            kept: the bytes that begin() or kept() gave.
        """
        slot = self._slot
        if slot < SLOTS:
            start = slot * self._array.stride
            self._array.block.view[start : start + len(kept)] = kept

    @property
    def _slot(self) -> int:
        """The number of calls that are being followed."""
        return (self._top.value - self._base) // FOLLOWED_CALL
