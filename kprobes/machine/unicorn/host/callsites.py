"""Call sites: what is called when the guest executes one, by host code where that can do it. See
kprobes.native.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. The words are numbers of 64 bits in this process's memory, which host code
reads and writes. A call site is an address in memory of the library's, to which a jump in the
guest's text leads; there a service is called, a function of the core's (kprobes.core), or host code
(kprobes/native) does the same.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....arch._base import Linkage
from ..blocks import HostBlock
from ..cpu import UnicornCpu
from ..engine import address_of
from ..registers.cells import Cell
from ..registers.windows import Windowed
from . import hostcode
from .usual import Usual

_TOP, _BASE, _INSIDE = (hostcode.CALLS[name] for name in ("top", "base", "inside"))

FOLLOWED = 1024  # calls that host code may follow at a time, before Python is to look after them
UNIT = 8  # bytes of guest code that a call site takes at least


class CallSite:
    """A call site's words, by which host code serves it; `site[name]` reads and writes one by its
    name (hostcode.SITE).

    Attributes:
        address: of the words, see kprobes/native/words.h.
        programs: what host code runs here.
        usual: name of a word -> the hit whose words it leads to.
    """

    __slots__ = ("_python", "_words", "address", "programs", "usual")

    def __init__(self, calls: int, python: Any) -> None:
        """Make the words; the word "function" is still to be set.

        Args:
            calls: address of the words of FollowedCalls.
            python: the ctypes callback that serves the call site where nothing else does.
        """
        self._words = (ctypes.c_uint64 * len(hostcode.SITE))()
        self._python = python
        self.address = ctypes.addressof(self._words)
        self.programs: tuple[object, ...] = ()
        self.usual: dict[str, object] = {}
        self["calls"] = calls
        self["python"] = address_of(python)

    def __getitem__(self, name: str) -> int:
        """Return the word that is called `name` (hostcode.SITE)."""
        return int(self._words[hostcode.SITE[name]])

    def __setitem__(self, name: str, value: int) -> None:
        """Set the word that is called `name` (hostcode.SITE) to `value`."""
        self._words[hostcode.SITE[name]] = value

    def lead(self, name: str, usual: Usual) -> None:
        """Have a word lead to a usual hit, for the host function that serves it.

        Args:
            name: of the word, as "usual" or "at_return".
            usual: the hit, which is kept alive.
        """
        self.usual[name] = usual
        self[name] = usual.address

    def serve_by_python(self) -> None:
        """Have the Python callback serve the call site at each execution from now on; usual hits
        are forgotten.
        """
        self["quick"] = 0
        self["function"] = self["python"]
        # a hit that is being served sees by it that it is not the usual one any more
        for name in self.usual:
            self[name] = 0
        self.usual = {}


class CallSiteTable:
    """The call sites of one area, in a table in which host code looks them up by address.

    They live as long as the table does: a callback must not go while it runs.

    Attributes:
        sites: guest address -> call site.
        data: address of the table, which the area's hook is given.
    """

    def __init__(self, size: int) -> None:
        """Make an empty table; begin() comes before the first call site.

        Args:
            size: bytes of an area.
        """
        self._words = (ctypes.c_uint64 * (2 + size // UNIT))()
        self._words[1] = size
        self.sites: dict[int, CallSite] = {}
        self.data = ctypes.addressof(self._words)

    def begin(self, area: int) -> None:
        """Use the table for the area at address `area`, which has no call sites yet."""
        self._words[0] = area
        self.sites = {}

    def add(self, addr: int, site: CallSite) -> None:
        """Add a call site to the table, for host code.

        Args:
            addr: its guest address.
            site: its words.
        """
        self.sites[addr] = site
        self._words[2 + (addr - self._words[0]) // UNIT] = site.address

    def end(self) -> None:
        """Remove all call sites from the table: the area is unmapped.

        Nothing is called there afterwards, though the engine may call a deleted hook once more.
        """
        for addr in self.sites:
            self._words[2 + (addr - self._words[0]) // UNIT] = 0


class FollowedCalls:
    """The words of the calls that host code follows from a function's entry to its return: the
    young ones, which Python does not know of yet.

    Calls are followed while the gate is open; what is out of the ordinary closes it, or is left to
    Python.

    Attributes:
        address: of the words.
        gate: bytes, each a reason why Python is to be asked (see hostcode); not 0: the gate is
            closed.
        places: address of a call site's words in this process -> guest address of the call site.
        skip: (return address) -> where the caller wants the function to return to; None: that is
            the same.
        possible: True where host code can follow calls of this guest.
        idle: (the word with the top of the list, its value while no call is followed).
        enter: address of the host function that follows a call at its entry.
        ask: address of the one that asks an entry handler first.
        leave: address of the one that serves returns.
    """

    def __init__(self, cpu: UnicornCpu) -> None:
        """Make the words, and find out whether host code can follow calls of this guest
        (`possible`). No call is followed.

        Args:
            cpu: the guest's CPU.
        """
        self._words = (ctypes.c_uint64 * len(hostcode.CALLS))()
        self._calls = (ctypes.c_uint64 * (FOLLOWED * hostcode.CALL // 8))()
        self.address = ctypes.addressof(self._words)
        self.view = memoryview(self._words).cast("B").cast("Q")
        self.gate = memoryview(self._words).cast("B")  # its first word
        base = ctypes.addressof(self._calls)
        self._set(top=base, base=base, limit=base + ctypes.sizeof(self._calls))
        cpu.memory.blocks.on_remove(self._forget_stack)
        self.places: dict[int, int] = {}
        self._sp: Callable[[], int] | None = None
        #: where the function returns to by itself -> where its caller wants it to; None: there is
        #: no difference. See Returning.skips
        self.skip: Callable[[int], int] | None = None
        self.possible = hostcode.available() and self._learn(cpu)
        self.idle: tuple[Sequence[int], int] = self.view[_TOP : _TOP + 1], base  # see Following

    def _set(self, **words: int) -> None:
        """Set words of host code: name (hostcode.CALLS) -> value, which is cut to 64 bits."""
        for name, value in words.items():
            self.view[hostcode.CALLS[name]] = value & (1 << 64) - 1

    def _learn(self, cpu: UnicornCpu) -> bool:
        """Tell host code where the guest's calls leave the return address, and choose the host
        functions for that: `enter`, `ask`, `leave` and `skip` are set.

        Args:
            cpu: says where its registers are in the engine.

        Returns:
            False where it is not known where the engine keeps the stack pointer or the return
            address, or a return has more to restore than host code can: it then follows no calls.
        """
        linkage, table = cpu.arch.linkage, cpu.arch.regs
        cells: Mapping[str, Cell | Windowed] = cpu.windowed or cpu.cells
        if (
            linkage is None
            or not linkage.back
            or (linkage.returning.restore and not linkage.returning.reloaded)
            or table.sp not in cells
        ):
            return False
        if (not linkage.pushed and linkage.register not in cells) or (
            table.sp_bias and not cpu.windowed
        ):
            return False
        self._word = cpu.arch.bits // 8
        self._set(sp=cells[table.sp].address, pushed=linkage.pushed)
        if linkage.pushed:
            self._sp = cells[table.sp].reader()
        else:
            self._set(link=cells[linkage.register].address)
        if linkage.returning.skips is not None:
            self.skip = linkage.returning.skips(cpu.regs)[0]
        convention = self._convention(cpu, linkage)
        self._set(way=hostcode.address(convention.function("way")), **convention.words)
        self.enter = hostcode.address(convention.function("enter"))
        self.ask = hostcode.address(convention.function("ask"))
        self.leave = hostcode.address(convention.function("leave"))
        return True

    def _convention(self, cpu: UnicornCpu, linkage: Linkage) -> hostcode.CallConvention:
        """Return what host code has to know of where a call leaves the return address: on the
        stack, in a register's word, or in a register of a window.

        Args:
            cpu: says where the registers are.
            linkage: how the architecture calls and returns.
        """
        table = cpu.arch.regs
        bits = cpu.arch.bits
        reloaded = linkage.returning.reloaded
        words = {"bias": linkage.bias}
        if linkage.pushed:
            return hostcode.CallConvention(
                bits, "stack" if cpu.arch.order.value == sys.byteorder else "swapped"
            )
        if not cpu.windowed:
            return hostcode.CallConvention(bits, "cell", reloaded, words)
        sp, link = (cpu.windowed[name].index * self._word for name in (table.sp, linkage.register))
        return hostcode.CallConvention(
            bits,
            "window",
            reloaded,
            words | {"sp_at": sp, "link_at": link, "sp_bias": table.sp_bias},
        )

    def close(self, reason: int, closed: bool = True) -> None:
        """Close the gate for one reason, so that Python serves every call site; or take that reason
        back.

        Host code serves call sites while no reason is left; TASKS is one only where calls are
        followed.

        Args:
            reason: index in `gate`, one of hostcode's constants such as NESTED.
            closed: True: Python is asked; False: not for this reason.
        """
        self.gate[reason] = closed

    @property
    def serving(self) -> bool:
        """Whether host code is serving a call site now."""
        return bool(self.view[_INSIDE])

    def returns_to(self, trampoline: int) -> None:
        """Set the address to which followed calls return, mode bits included."""
        self._set(trampoline=trampoline)

    def find_stack(self, block: Callable[[int, int], HostBlock | None]) -> bool:
        """Have host code reach the guest's stack, if that is in a block that it may write.

        Args:
            block: (address, bytes) -> the block of guest memory that holds them, or None.

        Returns:
            True where host code reaches the block that sp points into from now on, or needs no
            stack. False: nothing was changed.
        """
        if self._sp is None:
            return True
        found = block(self._sp(), self._word)
        if found is None or not found.room:
            return False
        self._set(stack=found.start, room=found.room - self._word + 1, host=found.host)
        return True

    def _forget_stack(self) -> None:
        """Have host code reach no stack until find_stack(). Called when a block of guest memory is
        removed.
        """
        self._set(room=0)

    def take(self) -> list[tuple[int, int, int]]:
        """Return the calls that are followed, and have host code follow them no more: they are
        Python's now.

        Returns:
            (address of the call site's words, stack pointer at entry, return address as the caller
            wants it: `skip`) of each, oldest first.
        """
        view = self.view
        top, base = view[_TOP], view[_BASE]
        if top == base:
            return []
        words = self._calls[: (top - base) // 8]
        self._set(top=base)
        return [
            (site, frame, link if self.skip is None else self.skip(link))
            for frame, link, site in zip(words[::3], words[1::3], words[2::3], strict=True)
        ]
