"""Probes: what the user hands in and gets back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field

from ..regs import Regs

if TYPE_CHECKING:
    from .patch.probepoint import Probepoint

#: What a pre-handler returns when it has set regs.pc itself: no step, no younger siblings, no post-handlers.
DIVERTED: Final = 1

FaultHandler = Callable[[Any, Regs, int], Any]


@define(eq=False, kw_only=True)
class Probe:
    """What every kind of probe has.

    Exactly one of `symbol_name` ("vfs_read", "module:symbol", "symbol+0x10") and `addr` says where; `offset`, in bytes, is
    added. None of these is ever changed by the library: a probe that was refused or unregistered can be registered again.

    Attributes:
        disabled: register without arming. optimize: allow boost and jump optimization.
        fault_handler: fault_handler(p, regs, trapnr) -> 1 if handled. Asked about a guest fault in the displaced instruction
            (regs.fault; trapnr is a POSIX signal number) and about an exception in the probe's own handlers
            (regs.exception; trapnr is 0). When handled, the guest goes on where regs.pc says.
    """

    symbol_name: str | None = None
    offset: int = 0
    addr: int | None = None
    fault_handler: FaultHandler | None = None
    disabled: bool = False
    optimize: bool = True
    _nhit: int = field(default=0, init=False, repr=False)
    _missed: int = field(default=0, init=False, repr=False)
    _point: Probepoint | None = field(default=None, init=False, repr=False)
    _disabled: bool = field(default=False, init=False, repr=False)
    _gone: bool = field(default=False, init=False, repr=False)
    _active: bool = field(default=False, init=False, repr=False)  #: registered, not disabled, not gone: handlers may run
    _owner: Any = field(default=None, init=False, repr=False)  #: the Kprobes it is registered with
    #: What the aggregate calls: the user's handler, or the core's entry hook of a return probe or jprobe.
    _pre: Callable[[Any, Regs], Any] | None = field(default=None, init=False, repr=False)
    _post: Callable[[Any, Regs, int], Any] | None = field(default=None, init=False, repr=False)
    family: ClassVar[str] = "?"  #: letter in the debugfs list

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
        """True if a hit takes one trap only: the displaced instruction is followed by a jump back."""
        return self._point is not None and self._point.boosted

    @property
    def optimized(self) -> bool:
        """True if a jump to a detour is in memory in place of the breakpoint."""
        return self._point is not None and self._point.optimized

    @property
    def why_not_optimized(self) -> str:
        """Why the probepoint is not jump-optimized; "" where it is."""
        return "not registered" if self._point is None else self._point.why_not_optimized

    def unregister(self) -> None:
        """Unregister from the subsystem the probe is registered with; NotRegistered where there is none."""
        if self._owner is None:
            raise self.not_registered()
        self._owner.unregister(self)

    def _changed(self) -> None:
        if self._owner is not None:
            self._owner.handlers_changed(self)

    def not_registered(self) -> Exception:
        """The error for a probe that is not registered."""
        from ..errors import NotRegistered

        return NotRegistered("probe is not registered", symbol=self.place(), hint="register it first")

    def place(self) -> str:
        """What the user called the place."""
        if self.symbol_name is not None:
            return self.symbol_name + (f"+{self.offset:#x}" if self.offset else "")
        return "(nowhere)" if self.addr is None else f"{self.addr + self.offset:#x}"


PreHandler = Callable[["Kprobe", Regs], Any]
PostHandler = Callable[["Kprobe", Regs, int], Any]


@define(eq=False, kw_only=True)
class Kprobe(Probe):
    """A probe on one instruction (Linux: struct kprobe).

    - pre_handler(p, regs) runs before the instruction; regs.pc is the probepoint. It returns None or 0, or DIVERTED when it
      has set regs.pc itself (any true value counts): then the instruction, the other probes there and all post-handlers
      are skipped. Without DIVERTED a changed regs.pc is ignored.
    - post_handler(p, regs, flags) runs after it; regs.pc is the architecturally next instruction. flags is 0.
    """

    # Properties, not attrs' on_setattr: that would put a Python call on every attribute a hit writes.
    _pre_handler: PreHandler | None = None
    _post_handler: PostHandler | None = None
    family: ClassVar[str] = "k"

    @property
    def pre_handler(self) -> PreHandler | None:
        """Runs before the instruction. It may be replaced while the probe is registered: the next hit uses the new one."""
        return self._pre_handler

    @pre_handler.setter
    def pre_handler(self, handler: PreHandler | None) -> None:
        self._pre_handler = handler
        self._changed()

    @property
    def post_handler(self) -> PostHandler | None:
        """Runs after the instruction. It may be replaced while the probe is registered, too."""
        return self._post_handler

    @post_handler.setter
    def post_handler(self, handler: PostHandler | None) -> None:
        self._post_handler = handler
        self._changed()

    @property
    def nmissed(self) -> int:
        """Hits whose handlers did not run because another probe was running on the CPU."""
        return self._missed


@define(eq=False)
class KretprobeInstance:
    """One call of a probed function, from entry to return (Linux: struct kretprobe_instance).

    Attributes:
        rp: its Kretprobe. ret_addr: the true return address. task: the guest task.
        data: private to this call: a bytearray of rp.data_size zero bytes, or a fresh dict when data_size is 0.
        frame: stack pointer at entry.
    """

    rp: Kretprobe
    ret_addr: int = 0
    task: Any = None
    frame: int = 0
    _data: Any = field(default=None, repr=False)
    link: int = field(default=0, repr=False)  #: the return address found at entry; the trampoline's under a sibling
    pool: list[KretprobeInstance] = field(factory=list, repr=False)  #: where it goes when recycled

    def begin(self, frame: int, link: int) -> None:
        """A call that the machine follows; it has only one task."""
        self.task, self.frame = 0, frame
        self.link = self.ret_addr = link

    @property
    def data(self) -> Any:
        """This call's private data; made when it is first asked for."""
        if self._data is None:
            self._data = bytearray(self.rp.data_size) if self.rp.data_size else {}
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        self._data = value


@define(eq=False, kw_only=True)
class Kretprobe(Probe):
    """A probe on a function's return (Linux: struct kretprobe). Only at function entry.

    - handler(ri, regs) runs when the function has returned: regs.pc is the return address, regs.return_value its value.
    - entry_handler(ri, regs) runs at entry and may return non-zero: this call is not followed to its return.

    Attributes:
        maxactive: instances preallocated; <= 0 at registration means max(10, 2 * CPUs). data_size: bytes, at most 4096.
        nmissed: calls not followed because no instance was free. entry_nmissed: entries missed because another probe was
        running. nreturned: returns seen.
    """

    handler: Callable[[KretprobeInstance, Regs], Any] | None = None
    _entry_handler: Callable[[KretprobeInstance, Regs], Any] | None = None
    maxactive: int = 0
    data_size: int = 0
    nmissed: int = field(default=0, init=False)
    nreturned: int = field(default=0, init=False)
    _pool: list[KretprobeInstance] = field(factory=list, init=False, repr=False)
    _asked: int = field(default=0, init=False, repr=False)  #: maxactive as the user set it
    _held: list[KretprobeInstance] = field(factory=list, init=False, repr=False)  #: of calls that the machine follows
    #: Tells the machine how many calls it may follow by itself; None: it follows none.
    _refill: Callable[[int], None] | None = field(default=None, init=False, repr=False)
    family: ClassVar[str] = "r"

    @property
    def entry_handler(self) -> Callable[[KretprobeInstance, Regs], Any] | None:
        """Runs at function entry. It may be replaced while the probe is registered."""
        return self._entry_handler

    @entry_handler.setter
    def entry_handler(self, handler: Callable[[KretprobeInstance, Regs], Any] | None) -> None:
        self._entry_handler = handler
        self._changed()

    @property
    def entry_nmissed(self) -> int:
        """Function entries whose hit was missed because another probe was running on the CPU."""
        return self._missed


@define(eq=False, kw_only=True)
class Jprobe(Probe):
    """A probe on a function's entry whose handler mirrors the function (Linux up to 4.14: struct jprobe).

    entry is a Python callable that gets the function's first arguments, as many as it takes positionally (annotations such
    as ctypes.c_int32 or ctypes.c_char_p convert), or a guest function (address or symbol name) that runs on a copy of
    registers and stack. Either way the target's own arguments stay as they are.
    """

    entry: Callable[..., Any] | int | str | None = None
    family: ClassVar[str] = "j"

    @property
    def nmissed(self) -> int:
        """Hits whose mirror did not run because another probe was running on the CPU."""
        return self._missed
