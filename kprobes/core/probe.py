"""Probes: what the user hands in and gets back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field, fields

from ..errors import AlreadyRegistered, NotRegistered
from ..notebook import table
from ..regs import Regs
from . import settings
from .settings import Setting

if TYPE_CHECKING:
    from ..machine._base import BuiltIn

#: What a pre-handler returns when it has set regs.pc itself: no step, no younger siblings, no
#: post-handlers.
DIVERTED: Final = 1

FaultHandler = Callable[[Any, Regs, int], Any]
AGAIN = "unregister it, set it, and register it again"


@define(eq=False, kw_only=True, repr=False)
class Probe:
    """The common part of all kinds of probes.

    Exactly one of `symbol_name` ("vfs_read", "module:symbol", "symbol+0x10") and `addr` says where;
    `offset`, in bytes, is added. None of these is ever changed by the library: a probe that was
    refused or unregistered can be registered again. What makes no sense is refused where it is set
    (BadLocation, BadArgument), and so is what a registered probe would ignore (AlreadyRegistered).
    A copy (copy.copy, pickle) has the same settings, is registered nowhere and has seen nothing.
    """

    _symbol_name: str | None = None
    _offset: int = 0
    _addr: int | None = None
    _fault_handler: FaultHandler | None = None
    _disabled: bool = False
    _optimize: bool = True
    _nhit: int = field(default=0, init=False)
    _missed: int = field(default=0, init=False)
    #: its probepoint, which knows this room; None: not registered
    _point: Any = field(default=None, init=False)
    _off: bool = field(default=False, init=False)  #: disabled now, whatever it was registered with
    _gone: bool = field(default=False, init=False)
    #: registered, not disabled, not gone: handlers may run
    _active: bool = field(default=False, init=False)
    _owner: Any = field(default=None, init=False)  #: the Kprobes it is registered with
    #: What the aggregate calls: the user's handler, or the core's entry hook of a return probe or
    #: jprobe.
    _pre: Callable[[Any, Regs], Any] | None = field(default=None, init=False)
    _post: Callable[[Any, Regs, int], Any] | None = field(default=None, init=False)
    #: What a machine may run at a call site in place of the handler: a program, which does the
    #: same.
    _host: Any = field(default=None, init=False)  # a HostProgram, or a GuestProgram
    # 1: acts behind the others, which see where a call returns; 2: last
    _late: int = field(default=0, init=False)
    family: ClassVar[str] = "?"  #: letter in the debugfs list

    symbol_name = Setting[str | None]("Symbol of the place, or None.", settings.text, instead=AGAIN)
    offset = Setting[int]("Bytes behind the place.", settings.place, instead=AGAIN)
    addr = Setting[int | None]("Address of the place, or None.", settings.place, instead=AGAIN)
    disabled = Setting[bool]("Register without arming.", settings.switch,
                             instead="call its disable_kprobe() or enable_kprobe()")
    optimize = Setting[bool](
        "Allow boost and jump optimization. It may be changed while registered.",
        settings.switch,
        told=True,
    )
    fault_handler = Setting[FaultHandler | None](
        """fault_handler(p, regs, trapnr) -> 1 if handled. Asked about a guest fault in the displaced instruction
        (regs.fault; trapnr is a POSIX signal number) and about an exception in the probe's own handlers
        (regs.exception; trapnr is 0). When handled, the guest goes on where regs.pc says.""",
        settings.handler,
    )

    def __attrs_post_init__(self) -> None:
        for setting in settings.of(type(self)):
            setting.admit(self)

    def _repr_html_(self) -> str:
        state = "enabled" if self.enabled else "disabled"
        if not self.registered:
            state = "not registered"
        return table(type(self).__name__, ("place", "state", "hits", "optimized"),
                     [(self.place(), state, self.nhit, self.optimized)])

    def __repr__(self) -> str:
        given = ((f.name.lstrip("_"), getattr(self, f.name)) for f in fields(type(self))
                 if f.init and getattr(self, f.name) != f.default)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given)})"

    def __reduce__(self) -> Any:
        values = {f.name: getattr(self, f.name) for f in fields(type(self)) if f.init}
        return settings.remade, (type(self), values, getattr(self, "__dict__", {}))

    @property
    def nhit(self) -> int:
        """Hits whose handlers ran; for a probe without handlers, hits."""
        point = self._point
        return self._nhit if point is None or not self._active else self._nhit + point.uncounted

    @property
    def registered(self) -> bool:
        """True between a successful registration and unregistration, gone or not."""
        return self._point is not None

    @property
    def enabled(self) -> bool:
        """True if registered, not disabled and not gone; the global switch does not count."""
        return self._active

    @property
    def gone(self) -> bool:
        """True if the probed text was unloaded."""
        return self._gone

    @property
    def address(self) -> int | None:
        """Guest address of the probepoint; None while not registered."""
        return None if self._point is None else self._point.address

    @property
    def symbol(self) -> str | None:
        """`name+0xOFF` of the probepoint; None while not registered."""
        return None if self._point is None else self._point.where

    @property
    def opcode(self) -> bytes | None:
        """Original bytes of the probed instruction; None while not registered."""
        return None if self._point is None else self._point.insn.raw

    @property
    def boosted(self) -> bool:
        """True if a hit takes one trap only: the displaced instruction is followed by a jump back.
        """
        return self._point is not None and self._point.boosted

    @property
    def optimized(self) -> bool:
        """True if a jump to a detour is in memory in place of the breakpoint."""
        return self._point is not None and self._point.optimized

    @property
    def why_not_optimized(self) -> str:
        """Why the probepoint is not jump-optimized; "" where it is."""
        return "not registered" if self._owner is None else str(self._owner.explain(self._point))

    def unregister(self) -> None:
        """Unregister from the subsystem the probe is registered with; NotRegistered where there is
        none.
        """
        if self._owner is None:
            raise self.not_registered()
        self._owner.unregister(self)

    def not_registered(self) -> Exception:
        """Return the error for a probe that is not registered."""
        return NotRegistered(
            "probe is not registered", symbol=self.place(), hint="register it first"
        )

    def place(self) -> str:
        """Return the place in the user's words: symbol and offset, or address."""
        if self.symbol_name is not None:
            return self.symbol_name + (f"+{self.offset:#x}" if self.offset else "")
        return "(nowhere)" if self.addr is None else f"{self.addr + self.offset:#x}"


PreHandler = Callable[["Kprobe", Regs], Any]
PostHandler = Callable[["Kprobe", Regs, int], Any]


@define(eq=False, kw_only=True, repr=False)
class Kprobe(Probe):
    """A probe on one instruction (Linux: struct kprobe).

    - pre_handler(p, regs) runs before the instruction; regs.pc is the probepoint. It returns None
      or 0, or DIVERTED when it has set regs.pc itself (any true value counts): then the
      instruction, the other probes there and all post-handlers are skipped. Without DIVERTED a
      changed regs.pc is ignored.
    - post_handler(p, regs, flags) runs after it; regs.pc is the architecturally next instruction.
      flags is 0.
    """

    _pre_handler: PreHandler | None = None
    _post_handler: PostHandler | None = None
    family: ClassVar[str] = "k"

    pre_handler = Setting[PreHandler | None](
        "Runs before the instruction. It may be replaced while the probe is registered: the next hit uses the new one.",
        settings.handler,
        told=True,
    )
    post_handler = Setting[PostHandler | None](
        "Runs after the instruction. It may be replaced while the probe is registered, too.",
        settings.handler,
        told=True,
    )

    @property
    def nmissed(self) -> int:
        """Hits whose handlers did not run because another probe was running on the CPU."""
        return self._missed


ReturnHandler = Callable[["KretprobeInstance", Regs], Any]
Mirror = Callable[..., Any] | int | str | None


@define(eq=False)
class KretprobeInstance:
    """A call of a probed function, from entry to return (Linux: struct kretprobe_instance).

    Attributes:
        rp: its Kretprobe.
        ret_addr: the true return address.
        task: the guest task.
        data: private to this call: a bytearray of rp.data_size zero bytes, or a fresh dict when
            data_size is 0.
        frame: stack pointer at entry.
        args: the call's parameters by name, where kprobes.keep_arguments is the entry handler (or
            that calls it); else None.
    """

    rp: Kretprobe
    ret_addr: int = 0
    task: Any = None
    frame: int = 0
    args: Any = field(default=None, repr=False)
    _data: Any = field(default=None, repr=False)
    #: the return address found at entry; the trampoline's under a sibling
    link: int = field(default=0, repr=False)
    pool: list[KretprobeInstance] = field(factory=list, repr=False)  #: where it goes when recycled
    #: it looks left: its pool has another one in its place
    aside: bool = field(default=False, repr=False)

    def begin(self, frame: int, link: int) -> None:
        """A call that the machine follows; it has only one task."""
        self.task = 0
        self.frame = frame
        self.link = self.ret_addr = link

    @property
    def data(self) -> Any:
        """The call's private data; made when it is first asked for."""
        if self._data is None:
            self._data = bytearray(size) if (size := self.rp._data_size) else {}
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._data = value


@define(eq=False, kw_only=True, repr=False)
class Kretprobe(Probe):
    """A probe on a function's return (Linux: struct kretprobe). Only at function entry.

    - handler(ri, regs) runs when the function has returned: regs.pc is the return address,
      regs.return_value its value.
    - entry_handler(ri, regs) runs at entry and may return non-zero: this call is not followed to
      its return.

    Attributes:
        nmissed: calls not followed because no instance was free.
        entry_nmissed: entries missed because another probe
        was running.
    """

    _handler: ReturnHandler | None = None
    _entry_handler: ReturnHandler | None = None
    _maxactive: int = 0
    _data_size: int = 0
    nmissed: int = field(default=0, init=False)
    _nreturned: int = field(default=0, init=False)
    _pool: list[KretprobeInstance] = field(factory=list, init=False)
    #: instances that there may be; 0 while not registered
    _most: int = field(default=0, init=False)
    _made: int = field(default=0, init=False)  #: of them, those that were needed so far
    #: of calls that the machine follows
    _held: list[KretprobeInstance] = field(factory=list, init=False)
    #: it and others whose calls the machine follows
    _follow: Followers | None = field(default=None, init=False)
    #: a Keeping: a program that runs at entry; None: none does
    _keeping: Any = field(default=None, init=False)
    family: ClassVar[str] = "r"

    handler = Setting[ReturnHandler | None](
        "Runs when the function has returned. It may be replaced while registered.",
        settings.handler,
        told=True,
    )
    entry_handler = Setting[ReturnHandler | None](
        "Runs at function entry. It may be replaced while registered.", settings.handler, told=True
    )
    data_size = Setting[int](
        "Bytes of ri.data, at most 4096; 0: it is a dict.", settings.number, instead=AGAIN
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.maxactive = self._maxactive

    @property
    def maxactive(self) -> int:
        """Calls followed at a time. While registered, the number in use; <= 0 at registration:
        Kprobes.instances.
        """
        return self._most or self._maxactive

    @maxactive.setter
    def maxactive(self, value: int) -> None:
        if self._point is not None and value != self.maxactive:
            raise AlreadyRegistered(
                "maxactive does not change while the probe is registered",
                symbol=self.place(),
                hint=AGAIN,
            )
        self._maxactive = settings.number("maxactive", value)

    @property
    def nreturned(self) -> int:
        """Returns seen."""
        return self._nreturned if self._follow is None else self._nreturned + self._follow.returns

    @property
    def entry_nmissed(self) -> int:
        """Function entries whose hit was missed because another probe was running on the CPU."""
        return self._missed


class Followers:
    """Return probes of one function whose calls the machine follows.

    Attributes:
        probes: as they come at the entry.
        program: the machine's, which follows.
    """

    def __init__(self, probes: Sequence[Kretprobe], program: BuiltIn) -> None:
        self.probes = tuple(probes)
        self.program = program

    def make_room(self) -> None:
        """Let the machine follow as many more calls as there are instances of every probe."""
        self.program.room(min(len(rp._pool) for rp in self.probes))

    @property
    def returns(self) -> int:
        """How many calls have returned without the core's doing."""
        return self.program.returns

    def take(
        self, frame: int, link: int, trampoline: int, slot: int
    ) -> Iterator[KretprobeInstance]:
        """The instances of a call that the machine follows no more: of each probe one, in the order
        of the entry.

        Args:
            frame: stack pointer at the call's entry.
            link: where it returns to.
            trampoline: where the guest believes that it does.
            slot: how many calls were being followed when this one began.
        """
        for rp in self.probes:
            if rp._held:
                ri = rp._held.pop(0)
            else:
                ri = rp._pool.pop()
                if rp._keeping is not None:
                    ri.data = rp._keeping.kept(slot)
            ri.begin(frame, link)
            if rp is not self.probes[0]:
                ri.link = trampoline  # who comes later finds that there
            yield ri


@define(eq=False, kw_only=True, repr=False)
class Jprobe(Probe):
    """A probe on a function's entry whose handler mirrors the function (Linux up to 4.14: struct
    jprobe).

    entry is a Python callable that gets the function's first arguments, as many as it takes
    positionally (annotations such as ctypes.c_int32 or ctypes.c_char_p convert), or a guest
    function (address or symbol name) that runs on a copy of registers and stack. Either way the
    target's own arguments stay as they are.
    """

    _entry: Mirror = None
    _late: int = field(default=2, init=False)
    family: ClassVar[str] = "j"

    entry = Setting[Mirror](
        "The mirror. It does not change while registered.", settings.mirror, instead=AGAIN
    )

    @property
    def nmissed(self) -> int:
        """Hits whose mirror did not run because another probe was running on the CPU."""
        return self._missed
