"""Probes: what the user hands in and gets back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field, fields

from ..errors import AlreadyRegistered, NotRegistered
from ..native import quick
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
    `offset`, in bytes, is added. The library never changes them: a probe that was refused or
    unregistered can be registered again. Setting an attribute to a value that makes no sense raises
    BadLocation or BadArgument; setting one that a registered probe would ignore raises
    AlreadyRegistered. A copy (copy.copy, pickle) has the same settings; it is not registered, and
    its counters are 0.
    """

    _symbol_name: str | None = None
    _offset: int = 0
    _addr: int | None = None
    _fault_handler: FaultHandler | None = None
    _disabled: bool = False
    _optimize: bool = True
    _nhit: int = field(default=0, init=False)
    _missed: int = field(default=0, init=False)
    #: the Probepoint it is registered at (not imported: that module imports this one); else None
    _point: Any = field(default=None, init=False)
    #: disabled now; `disabled` is what the user asked for at registration
    _off: bool = field(default=False, init=False)
    #: the text it stood in was unloaded or overwritten
    _gone: bool = field(default=False, init=False)
    #: registered, not disabled, not gone: handlers may run
    _active: bool = field(default=False, init=False)
    #: the Registry it is registered with; else None
    _owner: Any = field(default=None, init=False)
    #: called before the instruction: the user's pre_handler; for a return probe or a jprobe the
    #: core's entry hook
    _pre: Callable[[Any, Regs], Any] | None = field(default=None, init=False)
    #: called after the instruction: the user's post_handler
    _post: Callable[[Any, Regs, int], Any] | None = field(default=None, init=False)
    #: a HostProgram or GuestProgram that does what the handler does, and that a machine may run at
    #: a call site in its place; None: only the handler can serve a hit
    _host: Any = field(default=None, init=False)
    #: the order of probes at one address: 0 runs first; then 1, a return probe that must not hide
    #: the true return address from the others; 2 runs last
    _late: int = field(default=0, init=False)
    family: ClassVar[str] = "?"  #: letter in the debugfs list

    symbol_name = Setting[str | None]("Symbol of the place, or None.", settings.text, instead=AGAIN)
    offset = Setting[int]("Bytes behind the place.", settings.place, instead=AGAIN)
    addr = Setting[int | None]("Address of the place, or None.", settings.place, instead=AGAIN)
    disabled = Setting[bool](
        "Register without arming.",
        settings.switch,
        instead="call its disable_kprobe() or enable_kprobe()",
    )
    optimize = Setting[bool](
        "Allow boost and jump optimization. It may be changed while registered.",
        settings.switch,
        told=True,
    )
    fault_handler = Setting[FaultHandler | None](
        """fault_handler(p, regs, trapnr) -> 1 if handled.

        Called for a guest fault in the displaced instruction (regs.fault; trapnr is a POSIX signal
        number) and for an exception in the probe's own handlers (regs.exception; trapnr is 0).
        When handled, the guest continues at regs.pc.""",
        settings.handler,
    )

    def __attrs_post_init__(self) -> None:
        for setting in settings.of(type(self)):
            setting.admit(self)

    def _repr_html_(self) -> str:
        """Return a table of place, state and hits, for a notebook."""
        state = "enabled" if self.enabled else "disabled"
        if not self.registered:
            state = "not registered"
        return table(
            type(self).__name__,
            ("place", "state", "hits", "optimized"),
            [(self.place(), state, self.nhit, self.optimized)],
        )

    def __repr__(self) -> str:
        given = (
            (f.name.lstrip("_"), getattr(self, f.name))
            for f in fields(type(self))
            if f.init and getattr(self, f.name) != f.default
        )
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
        """True from registration to unregistration, even where the text is gone meanwhile."""
        return self._point is not None

    @property
    def enabled(self) -> bool:
        """True if registered, not disabled and not gone. Kprobes.enabled is not looked at."""
        return self._active

    @property
    def gone(self) -> bool:
        """True if the probed text was unloaded, or the guest has overwritten it."""
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
        """True if a hit takes only one trap: a jump back follows the displaced instruction."""
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
        """Unregister from the Kprobes that the probe is registered with.

        Raises:
            NotRegistered: it is registered with none.
        """
        if self._owner is None:
            raise not_registered(self)
        self._owner.unregister(self)

    def place(self) -> str:
        """Return the place in the user's words: symbol and offset, or address; "(nowhere)" where
        none is given.
        """
        if self.symbol_name is not None:
            return self.symbol_name + (f"+{self.offset:#x}" if self.offset else "")
        return "(nowhere)" if self.addr is None else f"{self.addr + self.offset:#x}"


def not_registered(probe: Probe) -> NotRegistered:
    """Return (not raise) the error for a probe that is not registered."""
    return NotRegistered("probe is not registered", symbol=probe.place(), hint="register it first")


def serve_by_program(probe: Probe, host: Any, *, late: bool, keeping: Any = None) -> None:
    """Have a program do what a probe's handlers do, where the machine can run it at a call site.

    Called before the probe is registered. A step of its own, since these settings are none of the
    user's: constructors of probes take no others.

    Args:
        probe: the probe; its handlers serve a hit where the program does not run.
        host: a HostProgram or GuestProgram; None: only the handlers can serve a hit.
        late: True: the probe runs after the others at its address, but jprobes.
        keeping: for a Kretprobe, the programs.keeping.Keeping that runs at entry; None: none does.
    """
    probe._host = host
    probe._late = int(late)
    if isinstance(probe, Kretprobe):
        probe._keeping = keeping


# --- registration: fields of a probe that are none of the user's, written here only


def enter_point(
    probe: Probe, owner: Any, point: Any, hook: Callable[[Any, Regs], Any] | None
) -> None:
    """Note that a probe is registered, and set its counters to 0.

    Args:
        probe: the probe.
        owner: the Registry that it is registered with.
        point: the Probepoint at its address.
        hook: what a return probe or a jprobe runs in place of a pre-handler; None for a kprobe.
    """
    probe._owner = owner
    probe._point = point
    probe._pre = hook
    probe._off = probe.disabled
    probe._gone = False
    probe._active = not probe.disabled
    probe._nhit = 0
    probe._missed = 0
    if isinstance(probe, Kretprobe):
        probe.nmissed = 0
        probe._nreturned = 0


def leave_point(probe: Probe) -> None:
    """Note that a probe is registered no more. Its counters stay."""
    probe._owner = None
    probe._point = None
    probe._active = False
    probe._gone = False
    probe._off = False


def switch_probe(probe: Probe, on: bool) -> None:
    """Note that a registered probe is enabled, or disabled."""
    probe._off = not on
    probe._active = on


def lose_probe(probe: Probe) -> None:
    """Note that the text of a registered probe is gone."""
    probe._gone = True
    probe._active = False


def is_off(probe: Probe) -> bool:
    """Return True where a registered probe is disabled now."""
    return probe._off


def point_of(probe: Probe) -> Any:
    """Return the Probepoint that a probe is registered at; None: it is not registered."""
    return probe._point


def owner_of(probe: Probe) -> Any:
    """Return the Registry that a probe is registered with; None: it is not registered."""
    return probe._owner


def missed_of(probe: Probe) -> int:
    """Return how many hits of a probe were missed because another probe was running on the CPU."""
    return probe._missed


def program_of(probe: Probe) -> Any:
    """Return the HostProgram or GuestProgram that does what a probe's handlers do; None: only these
    do it.
    """
    return probe._host


def why_without_room(probe: Probe) -> str:
    """Return what there was no room for, where a registered probe has stayed or become a
    breakpoint because of that; "": there was room.
    """
    return str(probe._point.failure)


def why_never_optimized(probe: Probe) -> str:
    """Return why a registered probe cannot be jump-optimized, now and later; "": it can be."""
    return str(probe._owner.optimizer.never(probe._point))


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
        "Runs before the instruction. It may be replaced while the probe is registered: "
        "the next hit uses the new one.",
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
        rp: the Kretprobe that follows the call.
        ret_addr: the true return address.
        task: the guest task that called.
        data: private to this call: a bytearray of rp.data_size zero bytes, or a fresh dict when
            data_size is 0.
        frame: stack pointer at entry.
        args: the call's parameters by name, if the entry handler is (or calls)
            kprobes.keep_arguments; else None.
        link: the return address found at entry; where another instance of the same frame has
            replaced that already, the trampoline's address.
        pool: the list of free instances that this one came from and is recycled to.
        aside: the call looks abandoned (longjmp, unwinding), and `pool` was given another instance
            in this one's place.
    """

    rp: Kretprobe
    ret_addr: int = 0
    task: Any = None
    frame: int = 0
    args: Any = field(default=None, repr=False)
    _data: Any = field(default=None, repr=False)
    link: int = field(default=0, repr=False)
    pool: list[KretprobeInstance] = field(factory=list, repr=False)
    aside: bool = field(default=False, repr=False)

    @property
    def data(self) -> Any:
        """The call's private data; made when it is first asked for."""
        if self._data is None:
            self._data = bytearray(size) if (size := self.rp._data_size) else {}
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._data = value


def begin_call(instance: KretprobeInstance, frame: int, link: int) -> None:
    """Note a call of task 0 in an instance that was just taken from its pool.

    Args:
        instance: gets the call.
        frame: stack pointer at entry.
        link: return address found at entry.
    """
    instance.task = 0
    instance.frame = frame
    instance.link = link
    instance.ret_addr = link


@define(eq=False, kw_only=True, repr=False)
class Kretprobe(Probe):
    """A probe on a function's return (Linux: struct kretprobe). Only at function entry.

    - handler(ri, regs) runs when the function has returned: regs.pc is the return address,
      regs.return_value its value.
    - entry_handler(ri, regs) runs at entry and may return non-zero: this call is not followed to
      its return.

    Attributes:
        nmissed: calls not followed because no instance was free.
        entry_nmissed: entries missed because another probe was running.
    """

    _handler: ReturnHandler | None = None
    _entry_handler: ReturnHandler | None = None
    _maxactive: int = 0
    _data_size: int = 0
    nmissed: int = field(default=0, init=False)
    _nreturned: int = field(default=0, init=False)
    #: free instances; a new list with each registration
    _pool: list[KretprobeInstance] = field(factory=list, init=False)
    #: the most instances there may be; 0 while not registered
    _most: int = field(default=0, init=False)
    #: instances made so far, at most `_most`
    _made: int = field(default=0, init=False)
    #: instances of calls that the machine follows, which an entry handler has seen; oldest first
    _held: list[KretprobeInstance] = field(factory=list, init=False)
    #: the function's return probes whose calls the machine follows, this one among them; else None
    _follow: Followers | None = field(default=None, init=False)
    #: programs.keeping.Keeping, a program that runs at entry and keeps values; None: none does
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
        """The most calls followed at a time. 0 or less asks for Kprobes.instances.

        While the probe is registered this is the number in use.
        """
        return self._most or self._maxactive

    @maxactive.setter
    def maxactive(self, value: int) -> None:
        """Set the most calls followed at a time.

        Raises:
            AlreadyRegistered: the probe is registered.
            BadArgument: `value` is no integer.
        """
        if self._point is not None and value != self.maxactive:
            raise AlreadyRegistered(
                "maxactive does not change while the probe is registered",
                symbol=self.place(),
                hint=AGAIN,
            )
        self._maxactive = settings.number("maxactive", value)

    @property
    def nreturned(self) -> int:
        """Number of returns seen, those that the machine has served by itself included."""
        return self._nreturned if self._follow is None else self._nreturned + self._follow.returns

    @property
    def entry_nmissed(self) -> int:
        """Function entries whose hit was missed because another probe was running on the CPU."""
        return self._missed


#: instances made at registration; more when they are needed, up to maxactive
FIRST_INSTANCES: Final = 16


def open_pool(rp: Kretprobe, ceiling: int) -> None:
    """Give a return probe a new pool, with its first instances.

    Args:
        rp: the probe, which is being registered.
        ceiling: the most instances of a probe that has no maxactive of its own.
    """
    rp._most = rp._maxactive if rp._maxactive > 0 else ceiling
    rp._made = 0
    rp._pool = []
    grow_pool(rp)


def grow_pool(rp: Kretprobe) -> bool:
    """Double the number of a probe's instances (but add FIRST_INSTANCES at least), up to the most
    it may have.

    Args:
        rp: the probe; the new instances are added to its pool.

    Returns:
        False where it has the most already: nothing was added.
    """
    pool = rp._pool
    more = min(max(rp._made, FIRST_INSTANCES), rp._most - rp._made)
    instance = quick(KretprobeInstance, "instance")
    pool.extend(instance(rp=rp, pool=pool) for _ in range(more))
    rp._made += more
    return more > 0


def close_pool(rp: Kretprobe) -> None:
    """Take a probe's pool away; calls that are followed keep it, and return their instances to
    it.
    """
    rp._pool = []
    rp._most = 0


def chooses_maxactive(rp: Kretprobe) -> bool:
    """Return True where the user has set how many calls are followed at a time."""
    return rp._maxactive > 0


def instances_made(rp: Kretprobe) -> int:
    """Return how many instances a registered probe has, free or not."""
    return rp._made


class Followers:
    """The return probes of one function whose calls the machine follows by itself, without the
    core.

    Attributes:
        probes: in the order in which they run at the entry.
        program: the machine's program at the entry, which follows the calls.
    """

    def __init__(self, probes: Sequence[Kretprobe], program: BuiltIn) -> None:
        """Keep what is given; make_room() tells the machine how many calls it may follow.

        Args:
            probes: the function's return probes, in the order in which they run at the entry.
            program: the machine's program at the entry.
        """
        self.probes = tuple(probes)
        self.program = program

    def make_room(self) -> None:
        """Tell the machine how many more calls it may follow: as many as every probe has free
        instances for.
        """
        self.program.room(min(len(rp._pool) for rp in self.probes))

    @property
    def returns(self) -> int:
        """Number of calls whose return the machine has served without the core."""
        return self.program.returns

    def take(
        self, frame: int, link: int, trampoline: int, slot: int
    ) -> Iterator[KretprobeInstance]:
        """Yield an instance of each probe for a call that the machine has followed, and that the
        core follows now.

        The order is that in which the probes run at the entry. The oldest instance in the probe's
        `_held` is taken, which its entry handler has seen; where there is none, one of its `_pool`,
        whose `data` becomes what the probe's program has kept of the call, if one keeps values. The
        first probe's instance gets the true return address as its `link`, the others' `trampoline`.

        Args:
            frame: stack pointer at the call's entry.
            link: the call's true return address.
            trampoline: the address that stands in the place of the return address.
            slot: how many calls the machine was following when this one began; where a program has
                kept values of the call, it has kept them under this number.
        """
        for rp in self.probes:
            if rp._held:
                ri = rp._held.pop(0)
            else:
                ri = rp._pool.pop()
                if rp._keeping is not None:
                    ri.data = rp._keeping.kept(slot)
            begin_call(ri, frame, link)
            if rp is not self.probes[0]:
                ri.link = trampoline  # what a later probe finds as the return address
            yield ri


@define(eq=False, kw_only=True, repr=False)
class Jprobe(Probe):
    """A probe on a function's entry whose handler mirrors the function.

    Linux had it up to 4.14 (struct jprobe). `entry` is one of:

    - a Python callable, which gets as many of the function's arguments as it takes positionally
      (annotations such as ctypes.c_int32 or ctypes.c_char_p convert them);
    - a guest function (address or symbol name), which runs on a copy of registers and stack.

    Either way the function's own arguments stay as they are.
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
