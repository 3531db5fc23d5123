"""Breakpoints of lone probes, served by host code in the engine's hook of interrupts. See
kprobes/native/hits.c.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. A slot is memory of the library's with the copy of a probed instruction, which
is executed there. The core is the part of the library that serves probes (kprobes.core).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ...native import address as library_address
from ...native import words
from .._base import Rest, UsualTrap
from .cpu import UNKNOWN_MODE, UnicornCpu
from .guests.guest import INTR
from .host import hostcode
from .host.callsites import FollowedCalls
from .host.usual import SharedHits, Usual

_GOLDEN = 0x9E3779B97F4A7C15
_WORDS = (1 << 64) - 1
_FREE, _GONE = _WORDS, _WORDS - 1  # a row's address, where it has none
_ROW = 3  # words: address, trap, kind
_AT_HIT, _AT_SLOT_END = 0, 1

Finish = Callable[[Any, Any, "BaseException | None"], None]


class HostServedTrap:
    """The words of one breakpoint that host code serves (struct trap). Implements
    machine._base.ServedTrap.

    Attributes:
        address: of the words.
        rows: address of a breakpoint -> its kind: the hit's, or the one at the slot's end.
    """

    def __init__(self, traps: ServedBreakpoints, usual: UsualTrap) -> None:
        """Make the words; ServedBreakpoints.add() has them used.

        Args:
            traps: the table that they will be in.
            usual: the core's description of the breakpoint.
        """
        self._traps = traps
        self._places = words("trap")
        self._words = (ctypes.c_uint64 * len(self._places))()
        self._resume = usual.next
        self._kept = usual
        self.address = ctypes.addressof(self._words)
        self.rows = {usual.address: _AT_HIT}
        if usual.slot_end is not None:
            self.rows[usual.slot_end] = _AT_SLOT_END
        self._hits: dict[str, Usual] = {}
        for name, hit in (("usual", usual.before), ("post", usual.after)):
            if hit is not None:
                self._hits[name] = Usual(traps.shared, traps.finishing(hit.rest), hit, owner=self)
                self._set(name, self._hits[name].address)
        self._set("boosted", int(usual.slot_end is None))
        self._set("slot", usual.slot or 0)
        self._set("next", usual.next)
        self._set("mode", (usual.next if usual.slot is None else usual.slot) & traps.modes)
        for name, kept in (
            ("point", usual.point),
            ("probes", usual.probes),
            ("resume", self._resume),
        ):
            self._set(name, id(kept))

    def _set(self, name: str, value: int) -> None:
        """Set one of the words.

        Args:
            name: of the word.
            value: what it becomes.
        """
        self._words[self._places[name]] = value

    @property
    def hits(self) -> int:
        """The number of hits that host code has served since take_hits()."""
        return int(self._words[self._places["hits"]])

    def take_hits(self) -> int:
        """Return the number of hits that host code has served since the last call of this
        method.
        """
        hits = self.hits
        self._set("hits", 0)
        return hits

    def end(self) -> None:
        """Have host code serve the breakpoint no more: its next hit is reported to the core."""
        self._traps.remove(self)


class ServedBreakpoints:
    """The breakpoints of a guest that are served here (struct traps), in a hash table.

    Attributes:
        hook: address of the engine's hook.
        data: address of what the hook is given.
        modes: bits of an address that are the mode's.
        shared: what all hits of the CPU have in common.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        followed: FollowedCalls,
        shared: SharedHits,
        python: int,
        finishing: Callable[[Rest], Finish],
    ) -> None:
        """Make an empty table.

        Args:
            cpu: whose breakpoints they are; possible() is True for it.
            followed: has the gate: while that is closed Python serves all hits.
            shared: what all hits of the CPU have in common.
            python: address of the hook that serves what host code does not.
            finishing: (the core's function for the rest of a hit) -> what host code calls where a
                hit is not the usual one.
        """
        cell = cpu.cells[cpu.arch.regs.pc]
        self._places = words("traps")
        self._words = (ctypes.c_uint64 * len(self._places))()
        self._served: dict[int, HostServedTrap] = {}
        self._rows: dict[int, int] = {}  # address -> its row's first word
        self.shared = shared
        self.finishing = finishing
        self.hook = library_address("interrupt")
        self.data = ctypes.addressof(self._words)
        self.modes = cpu.guest.pc.modes
        mode = cpu.mode_word(cell)
        self._kept: dict[str, object] = {"flags": 0}
        values = {
            "calls": followed.address,
            "hits": shared.address,
            "number": cpu.guest.breakpoint.number,
            "python": python,
            "pc": cell.address,
            "size": cpu.arch.bits // 8,
            "bias": cpu.guest.breakpoint.bias,
            "mask": cpu.arch.mask & ~self.modes,
            "modes": self.modes,
            "flags": id(0),
        }
        # where pc alone says it: no target with mode bits is served
        self._one_mode = (ctypes.c_uint32 * 1)()
        values["mode"] = (
            ctypes.addressof(ctypes.c_char.from_buffer(mode))
            if isinstance(mode, memoryview)
            else ctypes.addressof(self._one_mode)
        )
        for name, value in values.items():
            self._set(name, value)
        self._write(16)

    @staticmethod
    def possible(cpu: UnicornCpu) -> bool:
        """Return True if host code can serve the breakpoints of a CPU.

        The host code must be built for this computer; the engine must report the CPU's breakpoints
        as interrupts; and it must be known where in the engine's memory pc is, and the mode of the
        code.
        """
        cell = cpu.cells.get(cpu.arch.regs.pc)
        return (
            hostcode.available()
            and cpu.guest.breakpoint.channel == INTR
            and cell is not None
            and cpu.mode_word(cell) != UNKNOWN_MODE
        )

    def _set(self, name: str, value: int) -> None:
        """Set one of the words of the table: name, value (cut to 64 bits)."""
        self._words[self._places[name]] = value & _WORDS

    def begin(self, stepped: object, settled: object) -> None:
        """Set the control block's states that hits go through behind their handlers.

        Args:
            stepped: its state while the instruction is executed in a slot.
            settled: its state while post-handlers run.
        """
        self._kept |= {"stepped": stepped, "settled": settled}
        self._set("stepped", id(stepped))
        self._set("settled", id(settled))

    def check_targets(self, now: bool) -> None:
        """Choose who finishes a hit whose handler has sent the guest elsewhere.

        Args:
            now: True: the core does, from now on; False: host code does again.
        """
        self._set("covered", int(now))

    def add(self, usual: UsualTrap) -> HostServedTrap:
        """Have host code serve a breakpoint, and the one at its slot's end, from now on.

        Args:
            usual: the core's description of the breakpoint.

        Returns:
            The breakpoint's words, for remove().
        """
        made = HostServedTrap(self, usual)
        for address in made.rows:
            self._served[address] = made
        if 2 * (len(self._served) + self._gone) > self._size:
            self._write(4 * len(self._served))
        else:
            self._put(made)
        return made

    def remove(self, served: HostServedTrap) -> None:
        """Have host code serve a breakpoint no more: its next hit comes to the core.

        Args:
            served: what add() has returned.
        """
        if self._words[self._places["stepping"]] == served.address:
            self._set("stepping", 0)
        for address in served.rows:
            del self._served[address]
            # Rows are found by going on from where their address leads: a free one would hide those
            # behind it.
            self._table[self._rows.pop(address)] = _GONE
        self._gone += len(served.rows)
        if 2 * (len(self._served) + self._gone) > self._size:
            self._write(self._size)

    def _write(self, size: int) -> None:
        """Make a new table of all served breakpoints, with at least `size` rows, a power of two of
        them.
        """
        self._size = 1 << max(size - 1, 15).bit_length()
        self._rows = {}
        self._gone = 0
        self._table = (ctypes.c_uint64 * (_ROW * self._size))()
        for row in range(0, _ROW * self._size, _ROW):
            self._table[row] = _FREE
        for served in dict.fromkeys(self._served.values()):
            self._put(served)
        self._set("rows", ctypes.addressof(self._table))
        self._set("last", self._size - 1)

    def _put(self, served: HostServedTrap) -> None:
        """Add the addresses of a breakpoint to the table, each in the first free row from its hash
        on.

        Args:
            served: the breakpoint.
        """
        for address, kind in served.rows.items():
            n = (address * _GOLDEN & _WORDS) >> 40 & self._size - 1
            while self._table[_ROW * n] != _FREE:
                n = (n + 1) % self._size
            self._table[_ROW * n : _ROW * n + _ROW] = [address, served.address, kind]
            self._rows[address] = _ROW * n
