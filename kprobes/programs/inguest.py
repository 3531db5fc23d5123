"""Programs at probes of machines that run them in the guest: code, environments and maps in its
memory.

Guest code does not lock: two threads of a process that add to one number at once may lose one of
them; a kernel's processors take turns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from ..clocknames import HOST_CLOCK
from ..errors import Unsupported
from ..machine._views import GuestCodeView
from ..regs import Regs
from . import framed
from .atprobe import AtProbe
from .copies import MapCopy
from .guest import known
from .inline import TASK
from .maps import Hash, Map
from .program import Program
from .writer import HEADER, Slot

#: why programs at returns are none of the guest's
RETURNS: Final = "a remote guest's calls are followed to their returns by stops"
#: words of the environment that only a process has
_OF_PROCESSES: Final = ("comm", "task_source", "clock_source")
COUNT: Final = 8  # of the environment: how often it has run
RUNS: Final = 2  # whole ones, after which nobody is in the code of a program whose probe is gone


class GuestMaps:
    """The copies of maps in one guest, and the code of the programs that use them.

    Attributes:
        environments: the programs that add() has entered.
        running: True from push() to stopped(): the guest's copies are valid, Python's maps are not.
        table: guest address of the table of memory that programs may read.
    """

    def __init__(self, view: GuestCodeView) -> None:
        """Write the table of readable memory into the guest.

        Args:
            view: the machine's access to guest memory and code.
        """
        self._view = view
        self._maps: dict[int, MapCopy] = {}  # by address here
        self._used: list[MapCopy] = []  # of programs whose code somebody may be in
        self._codes: dict[bytes, int] = {}
        self.environments: list[InGuest] = []
        self.running = False
        self._ask = 0
        blocks = view.readable()
        self.table = view.alloc(16 + 24 * len(blocks))
        words = [
            len(blocks),
            self.table + 16,
            *(word for start, size in blocks for word in (start, size, start)),
        ]
        view.write(self.table, b"".join(self.word(word) for word in words))

    def word(self, value: int) -> bytes:
        """Return a number as 8 bytes in the guest's byte order."""
        return value.to_bytes(8, self._view.arch.order.value)

    def at(self, m: Map) -> int:
        """Return the guest address of a map's copy, which is made if there is none."""
        if m.address not in self._maps:
            self._maps[m.address] = MapCopy(self._view, m)
        return self._maps[m.address].at

    @property
    def ask(self) -> int:
        """The guest address that programs call to read memory which may not be mapped.

        It is a function, or its descriptor where the architecture has these. Written into the guest
        when first asked for.
        """
        if not self._ask:
            self._ask = self._described(self._view.asked(framed.asked(self._view.arch)))
        return self._ask

    @cached_property
    def gettime(self) -> int:
        """The clock_gettime() of the guest that programs call, as `ask`; 0: there is none."""
        function = self._view.gettime
        return function and self._described(function)

    def _described(self, function: int) -> int:
        """Return what programs call a function by: its address, or, where the architecture calls by
        descriptors, that of a new descriptor, which is written into the guest.
        """
        view = self._view
        if not known(view.arch).described:
            return function
        at = view.alloc(24)
        view.write(at, b"".join(map(self.word, (function, 0, 0))))
        return at

    def entry(self, text: bytes) -> int:
        """Return the guest address of machine code, which is written into the guest if it is new.

        New code's addresses are added to the view's `code`.

        Args:
            text: the code's bytes.
        """
        if text not in self._codes:
            at = self._codes[text] = self._view.fresh(len(text))
            self._view.write(at, text)
            self._view.code.append((at, at + len(text)))
        return self._codes[text]

    def add(self, one: InGuest, maps: Sequence[Map]) -> None:
        """Have push() and stopped() copy the maps of a program from now on.

        Called when the program's probe is registered.

        Args:
            one: the program; its attribute `copies` is set.
            maps: the maps that it uses, for each of which at() was called.
        """
        self.environments.append(one)
        one.copies = [self._maps[m.address] for m in maps]
        self._used = list(dict.fromkeys(self._used + one.copies))

    def threads_begin(self) -> None:
        """Tell programs that they may run in several threads from now on: the host is asked which
        thread it is.
        """
        for one in self.environments:
            one.set(TASK, 0)

    def push(self) -> None:
        """Copy Python's maps into the guest; called just before the guest goes on.

        From then until stopped() the guest's copies are valid, and `running` is True. Only maps of
        programs whose code a thread of the guest may be in are copied.
        """
        if not self.running:
            self._used = list(
                dict.fromkeys(copy for one in self.environments if one.used for copy in one.copies)
            )
        self.running = True
        for copy in self._used:
            copy.push()

    def stopped(self) -> None:
        """Copy the guest's copies into Python's maps; called when the guest has stopped.

        Hash tables are large: theirs are copied when Python looks at them (Map.fetch_from_guests).
        Also reads how often each program has run, and counts `idle` of programs whose probe was
        unregistered. Nothing happens where push() was not called before, or the guest exists no
        more.
        """
        running = self.running
        self.running = False
        if not running or not self._view.there:
            return
        for copy in self._used:
            if not copy.large:
                copy.pull()
        for one in self.environments:
            if one.used:
                one.read_count()
            one.idle = 0 if one.placed else one.idle + 1

    def pull(self) -> None:
        """Copy all of the guest's copies into Python's maps; called before the guest's memory goes.

        Otherwise as stopped().
        """
        self.stopped()
        for copy in self._maps.values():
            copy.pull()


class InGuest:
    """A program at a probe, in the guest (a machine._jumps.GuestProgram).

    Attributes:
        probe: the probe that runs it, once that is made.
        idle: how many runs of the guest have ended since the probe was unregistered.
        copies: the copies of its maps, once GuestMaps.add() was called.
        text: the program's machine code.
        reads: names of registers that must be in the detour's frame.
    """

    def __init__(
        self,
        program: Program,
        view: GuestCodeView,
        place: AtProbe,
        clock: str,
        printed: Callable[[str], None],
    ) -> None:
        """Compile a program for the guest, and write code, maps and environment into guest memory.

        For the first program of a guest, `view.copies` is set to a new GuestMaps. The maps are
        copied to and fro only after at().

        Args:
            program: the program.
            view: the machine's access to guest memory and code.
            place: the guest at a hit, for what the host tells the program.
            clock: name of the clock of ktime_get_ns; "": it has none.
            printed: called with an empty line where the program calls wake().

        Raises:
            Unsupported: the program cannot run there.
        """
        self.probe: Any = None
        self.idle = 0
        self.copies = list[MapCopy]()
        made = program.in_guest(view)
        if not place.is_process and any(kind in _OF_PROCESSES for kind, _ in made.slots):
            raise Unsupported(
                "it asks for the time or the task, which a kernel's code does not have"
            )
        self._view = view
        self._place = place
        self._clock = clock
        self._printed = printed
        self._maps = program.code.maps
        guest = view.copies
        if not isinstance(guest, GuestMaps):
            guest = view.copies = GuestMaps(view)
        self._guest = guest
        self.text = made.text
        self.reads = made.reads
        self._slots = made.slots
        self._runs = 0
        self.entry = guest.entry(made.text)
        self.environment = view.alloc(8 * (HEADER + len(self._slots)))
        values = self._values(guest, [guest.at(m) for m in self._maps])
        view.write(self.environment, b"".join(map(guest.word, (self.entry, 0, *values))))

    def _values(self, guest: GuestMaps, maps: list[int]) -> Iterator[int]:
        """Yield the first values of the environment's words behind the header; words that at() sets
        later begin as 0.

        Args:
            guest: the copies in the guest.
            maps: guest addresses of the copies of the program's maps, in the program's order.
        """
        for kind, n in self._slots:
            if kind in ("map", "value"):
                yield maps[n]
            elif kind == "blocks":
                yield guest.table
            elif kind == "uc_mem_read":
                yield guest.ask
            elif kind == "waker":
                yield self._view.waker(self._woken)
            elif kind == "task_source":
                yield self._view.teller(self._task)
            elif kind == "clock_source":
                yield self._view.teller(lambda regs: self._place.clock())
            elif kind == "gettime":
                yield guest.gettime if self._clock == HOST_CLOCK else 0
            elif kind == "comm":
                name = self._place.comm().ljust(16, b"\0")
                yield int.from_bytes(name[8 * n : 8 * n + 8], self._view.arch.order.value)
            elif kind == "random":
                yield random.getrandbits(64) | 1
            else:
                yield 0

    def _task(self, regs: Regs) -> int:
        """Return numbers of process and thread, as bpf_get_current_pid_tgid has them.

        Args:
            regs: registers of the thread.
        """
        self._place.regs = regs
        return self._place.pid_tgid()

    def set(self, what: Slot, value: int) -> None:
        """Write a word of the environment in guest memory; nothing happens if it has no such word.

        Args:
            what: what the word is.
            value: its value, 64 bits.
        """
        if what in self._slots:
            where = self.environment + 8 * (HEADER + self._slots.index(what))
            self._view.write(where, self._guest.word(value))

    @property
    def placed(self) -> bool:
        """True while the probe that runs it is registered."""
        return bool(self.probe.registered)

    @property
    def used(self) -> bool:
        """True while some thread of the guest may be in its code: a while after unregistering,
        too.
        """
        return self.idle < RUNS or self.placed

    def at(self, address: int, function: int, cookie: int) -> None:
        """Tell the program where its probe is: write it into the environment in guest memory.

        Called when the probe is registered. From then on the program's maps are copied to and fro.

        Args:
            address: the probe's address.
            function: what the helper get_func_ip returns.
            cookie: what the helper get_attach_cookie returns.
        """
        for name, value in (("pc", address), ("func_ip", function), ("cookie", cookie)):
            self.set((name, 0), value)
        if self._view.watched and TASK in self._slots:
            self.set(TASK, self._task(self._place.stopped))
        self._guest.add(self, self._maps)

    @property
    def runs(self) -> int:
        """How often the program has run in the guest; read from guest memory at each access."""
        self.read_count()
        return self._runs

    def read_count(self) -> None:
        """Read from guest memory how often the program has run, for `runs`.

        Nothing is read, and the count stays, where the guest exists no more.
        """
        if self._view.there:
            raw = self._view.read(self.environment + COUNT, 8)
            self._runs = int.from_bytes(raw, self._view.arch.order.value)

    def _woken(self) -> None:
        """Call `printed` with an empty line, as the program has called wake(): Python is to look at
        what it has left.

        All maps but hash tables, which are large, are copied from the guest before. A hash table
        is copied when Python looks at it.
        """
        for m in self._maps:
            if not isinstance(m, Hash):
                m.fetch_from_guests()
        self._printed("")

    def fetch_maps(self) -> None:
        """Copy what programs in the guest have written to this program's maps into Python's maps.

        Python's maps are valid then until the guest goes on.
        """
        for m in self._maps:
            m.fetch_from_guests()
