"""Kprobes, the user's object for the probes of a machine: registers, switches, lists and closes
them, and begins what is made of probes: programs, scripts, events, traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from .arguments import checked, key
from .core.hit.ctlblk import HitState
from .core.hit.trace import Stacks
from .core.patch.probepoint import Probepoint
from .core.probe import (
    FaultHandler,
    Jprobe,
    Kprobe,
    Kretprobe,
    Mirror,
    PostHandler,
    PreHandler,
    Probe,
    ReturnHandler,
)
from .core.register import listing
from .core.register.admission import typed
from .core.register.listener import Listener
from .core.register.locate import locate
from .core.register.shorthand import Shorthand
from .core.register.verdict import Verdict, verdict
from .core.settings import count, switch
from .debug.registers import sp_at_call
from .errors import BadLocation, KprobeError, MachineClosed, Uncopied, Unsupported
from .machine._base import Machine
from .notebook import table
from .regs import Regs
from .stacks import INCOMPLETE, Stack

if TYPE_CHECKING:
    from .debug.info import DebugInfo
    from .debug.unwind import Unwinder
    from .events._armed import TraceEvent
    from .events._table import Events
    from .events._watchpoint import WatchHandler, Watchpoint
    from .heap.check import HeapCheck
    from .programs.attach import Attachment
    from .programs.program import Program
    from .script.output import ScriptOutput
    from .script.script import Script
    from .tracing.coverage import Coverage
    from .tracing.graph import Graph
    from .tracing.recorder import Recording

Records = list[listing.Listed]  # named here: inside the class, `list` is the method


@checked("__init__")
class Kprobes(Uncopied):
    """The probes of one machine.

    A context manager: on exit every probe is gone and the guest's text restored.

    Attributes:
        machine: the engine that runs the guest; the probes are in its memory.
        optimizer: decides which of the probes are jumps.
        blacklist: addresses where no probe may be.
        kept_stack: (registers at a hit) -> its stack as records keep it.
    """

    def __init__(self, machine: Machine) -> None:
        """Take part in the runs of a machine, until close().

        Args:
            machine: the guest's.

        Raises:
            AlreadyRegistered: the machine has a Kprobes already.
        """
        self.machine = machine
        self._listener = Listener(machine)
        self._registry = registry = self._listener.registry
        self._rooms, self._calls = self._listener.rooms, self._listener.returns.calls
        self._sites = self._rooms.sites
        self._text = self._rooms.text
        self._survey = self._rooms.survey
        self._points, self._driver = registry.points, registry.driver
        self._watchpoints: list[Watchpoint] = []
        self.optimizer, self.blacklist = registry.optimizer, registry.admission.blacklist
        self._stacks = Stacks(
            self._calls,
            self._make_unwinder,
            sp_at_call(machine.arch, 0),
            machine,
            self._points,
            lambda pc: self._entry(pc, machine.symbols.changes),
        )
        #: regs -> a hit's stack as records keep it: pc and INCOMPLETE alone where stack_trace()
        #: raises Unsupported
        self.kept_stack = self._stacks.keeper(self._keep_stack)
        self._entry = lru_cache(1 << 12)(
            lambda pc, changes, text=self._text: locate(machine, text, None, pc, 0).entry
        )

    # --- registration

    def register(self, probe: Probe) -> None:
        """Register a probe of any kind, and arm it unless it is disabled.

        A refusal changes nothing.

        Args:
            probe: a Kprobe, Kretprobe or Jprobe.

        Raises:
            BadLocation: it is no probe, its fields make no sense, or this Kprobes is closed.
            UnknownSymbol, AmbiguousSymbol: there is no such symbol, or there are several.
            AlreadyRegistered: this object is registered.
            NotText, NotAnInstruction, NotFunctionEntry: the place is no code, or no place for this
                kind.
            Blacklisted, Unprobeable: no probe may be there.
            JprobeExists: another jprobe is there.
            TooBig: the probe asks for too much memory.
            Unsupported: the architecture or machine cannot do it.
            OutOfReach, NoMemory: there is no room for the code that it needs.
            MachineBusy: another thread runs the machine.
        """
        if self._listener.closing:
            raise BadLocation(
                "this Kprobes is closed",
                symbol=typed(probe, Probe).place(),
                hint="make another one for the machine",
            )
        self._registry.register(probe)

    def unregister(self, probe: Probe) -> None:
        """Unregister a probe of any kind; it is then as the user made it. Raises NotRegistered."""
        self._registry.unregister(probe)

    # --- the same, by kind and in batches

    def register_kprobe(self, p: Kprobe) -> None:
        """Register a kprobe.

        Raises what register() does, and BadLocation for a probe of another kind.
        """
        self.register(typed(p, Kprobe))

    def register_kretprobe(self, r: Kretprobe) -> None:
        """Register a return probe.

        Raises what register() does, and BadLocation for a probe of another kind.
        """
        self.register(typed(r, Kretprobe))

    def register_jprobe(self, j: Jprobe) -> None:
        """Register a jprobe.

        Raises what register() does, and BadLocation for a probe of another kind.
        """
        self.register(typed(j, Jprobe))

    def unregister_kprobe(self, p: Kprobe) -> None:
        """Unregister a kprobe.

        Raises NotRegistered, and BadLocation for a probe of another kind.
        """
        self.unregister(typed(p, Kprobe))

    def unregister_kretprobe(self, r: Kretprobe) -> None:
        """Unregister a return probe. Calls being followed still return to the right place.

        No handler runs for them any more. Raises NotRegistered, and BadLocation for a probe of
        another kind.
        """
        self.unregister(typed(r, Kretprobe))

    def unregister_jprobe(self, j: Jprobe) -> None:
        """Unregister a jprobe.

        Raises NotRegistered, and BadLocation for a probe of another kind.
        """
        self.unregister(typed(j, Jprobe))

    def register_all(self, probes: Sequence[Probe]) -> None:
        """Register several probes, all or none.

        Args:
            probes: the probes, in the order in which they are registered.

        Raises:
            BadLocation: `probes` is empty, or no batch of probes.
            Others: what register() has raised for the first that it has refused.
        """
        probes = _batch(probes)
        if not probes:
            raise BadLocation("the batch is empty", hint="pass at least one probe")
        done: list[Probe] = []
        try:
            for probe in probes:
                self.register(probe)
                done.append(probe)
        except BaseException:
            for probe in reversed(done):
                self._registry.leave(probe)
            self._registry.collect()
            raise

    def unregister_all(self, probes: Iterable[Probe]) -> None:
        """Unregister several probes; those behind one that is not registered, too.

        Args:
            probes: the probes.

        Raises:
            NotRegistered: one was not registered; the first such error, raised at the end.
            BadLocation: `probes` is a single probe, or cannot be iterated; nothing was done.
        """
        first: Exception | None = None
        for probe in _batch(probes):
            try:
                self._registry.check_mine(probe)
                self._registry.leave(probe)
            except KprobeError as error:
                first = first or error
        self._registry.collect()
        if first is not None:
            raise first

    register_kprobes = register_kretprobes = register_jprobes = register_all
    unregister_kprobes = unregister_kretprobes = unregister_jprobes = unregister_all

    # --- enable, disable, the switch

    def disable(self, probe: Probe) -> None:
        """Stop calling a probe's handlers; no effect on a disabled or gone one.

        Raises NotRegistered.
        """
        self._registry.disable(probe)

    def enable(self, probe: Probe) -> None:
        """Call a probe's handlers again.

        Raises:
            NotRegistered: the probe is not registered here.
            Gone: its text was unloaded, or the guest has overwritten it.
            Others: it cannot be armed, and stays disabled.
        """
        self._registry.enable(probe)

    disable_kprobe = disable_kretprobe = disable_jprobe = disable
    enable_kprobe = enable_kretprobe = enable_jprobe = enable

    @property
    def enabled(self) -> bool:
        """/sys/kernel/debug/kprobes/enabled.

        False disarms every probe; each keeps its own state.
        """
        return self._registry.enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._registry.enabled = switch("enabled", on)

    @property
    def optimization(self) -> bool:
        """The sysctl debug.kprobes-optimization.

        False turns every jump back into a breakpoint, at once; True queues all.
        """
        return self.optimizer.allowed

    @optimization.setter
    def optimization(self, on: bool) -> None:
        self._registry.optimize(switch("optimization", on))

    def flush_optimizer(self) -> None:
        """Make all queued probepoints jumps now, and take out the jumps that no probe needs.

        Inside a hit nothing is done: the queue waits for the next safe point.
        """
        if self._driver.at_rest:
            self._registry.flush()

    @property
    def instances(self) -> int:
        """The most calls at a time that a return probe follows whose maxactive is not set.

        Instances are made when they are needed.
        """
        return self._listener.returns.ceiling

    @instances.setter
    def instances(self, most: int) -> None:
        self._listener.returns.ceiling = count("instances", most)

    # --- looking

    @property
    def idle(self) -> bool:
        """True while no CPU is in a hit."""
        return self._driver.idle

    @property
    def rearmed(self) -> int:
        """Number of breakpoints and jumps that were put back before a run.

        Somebody had taken them away by restoring text.
        """
        return self._registry.rearmed

    def get_kprobe(self, addr: int) -> Probepoint | None:
        """Return the probepoint at an address; None: there is no probe."""
        point = self._points.get(addr)
        return point if point is not None and point.probes else None

    def check(self, where: str | int) -> Verdict:
        """Foretell what would happen to a kprobe at a place; nothing is registered.

        A place where no probe may be is no error: the verdict says why.

        Args:
            where: symbol ("f", "f+0x10") or address.

        Returns:
            The verdict: the instruction there, whether a kprobe may be registered, how a hit would
            execute the instruction, and whether a jump could replace the breakpoint.

        Raises:
            BadLocation, UnknownSymbol, AmbiguousSymbol: `where` does not name a place: an unknown
                or ambiguous symbol, an offset out of the function, wrong mode bits.
        """
        name, addr = (where, None) if isinstance(where, str) else (None, where)
        place = locate(self.machine, self._text, name, addr, 0)
        insn, reason = self._survey.decode(place.address, place.mode), ""
        try:
            insn = self._registry.admission.admit(place)
        except KprobeError as error:
            reason = error.reason
        found = verdict(insn, reason, self.optimizer, partial(self._debug.line, insn.addr))
        if self._driver.at_rest:
            self._rooms.collect()
        return found

    def _make_unwinder(self) -> Unwinder:
        """Make the object that reads the guest's call frame information."""
        from .debug.unwind import Unwinder

        return Unwinder(self.machine.arch, self.machine.symbols)

    @cached_property
    def _debug(self) -> DebugInfo:
        """The guest's debug information, for source lines; made when it is first asked for."""
        from .debug.info import DebugInfo

        return DebugInfo(self.machine)

    def list(self) -> Records:
        """Return one record per registered probe, by address."""
        return listing.records(self._points.values())

    def format_list(self) -> str:
        """Return the text of the debugfs file kprobes/list for these probes, byte for byte."""
        return listing.format_list(self.list())

    def format_blacklist(self) -> str:
        """Return the text of the debugfs file kprobes/blacklist for `blacklist`, byte for byte."""
        return listing.format_blacklist(self.blacklist)

    def attach(
        self,
        program: Program,
        where: str | int | None = None,
        offset: int = 0,
        retprobe: bool = False,
        *,
        cookie: int = 0,
        clock: Callable[[], int] | str = "host",
        engine: str | None = None,
        maxactive: int = 0,
        printed: Callable[[str], None] | None = None,
        only: Sequence[str] | None = None,
    ) -> Attachment:
        """Run a program at probes from now on, until detach() of the result. All of its probes are
        registered, or none.

        Args:
            program: what runs there. Without `where`, each program of an object runs where its
                section says, as libbpf has them: `kprobe/SYMBOL[+OFFSET]`, `kretprobe/SYMBOL`,
                `kprobe.multi/GLOB`, `uprobe/FILE:SYMBOL`, `usdt/FILE:PROVIDER:NAME`,
                `fentry/SYMBOL`.
            where: a symbol or an address, for one program.
            offset: bytes behind `where`.
            retprobe: run when the function returns.
            cookie: what get_attach_cookie gives.
            clock: what ktime_get_ns gives: "host" (its monotonic clock), "instructions" (as many ns
                as the guest has executed instructions; counting makes it slow), or a function.
            engine: "interpreter" or "host"; None: the best that can run it.
            maxactive: of the return probe; 0: Kprobes.instances.
            printed: is called with each line of trace_printk, which is kept in the attachment's
                `printed` otherwise.
            only: names of the programs of an object that are meant; None: all.

        Raises:
            ProgramError: the program is not safe, not for this machine, or its section
                does not say where to attach it.
            Unsupported: no instructions are counted here.
            BadArgument: an argument makes no sense.
            Others: as register().
        """
        from .programs.attach import attach

        return attach(
            self,
            program,
            where,
            offset,
            retprobe,
            cookie=cookie,
            clock=clock,
            engine=engine,
            maxactive=maxactive,
            printed=printed,
            only=only,
        )

    def script(
        self,
        text: str,
        *params: str | int,
        named: Mapping[str, str | bool] | None = None,
        unsafe: bool = False,
        clock: Callable[[], int] | str = "host",
        engine: str | None = None,
        output: ScriptOutput | None = None,
        name: str = "stdin",
        quiet: bool = False,
        probe_filter: str = "",
        mode: str | None = None,
    ) -> Script:
        """Run a script in bpftrace's language: `with k.script("kprobe:f { @[arg0] = count(); }") as
        s: ...`.

        The script's probes are attached, and `begin` runs, when the result is entered as a context
        manager; `end` runs, and maps are printed, when that is left.

        Args:
            text: the script.
            params: `$1`, `$2` ...
            named: {"name": "value"} is what `--name=value` gives to getopt().
            unsafe: functions are allowed that change the guest or run programs of the host.
            clock: what `nsecs` is: "host" (the host's monotonic clock), "instructions" (as many ns
                as the guest has executed instructions), or a function.
            engine: what runs its programs: "interpreter" or "host"; None: the best that can.
            output: takes what is printed; without it `s.output` has it.
            name: what messages call the script.
            quiet: do not say how many probes there are.
            probe_filter: a regular expression; probes whose name it is not found in are left out,
                but for `begin` and `end`.
            mode: "test" or "bench", whose probes are there only then.

        Raises:
            ScriptError: the script is wrong; it says where, and what to do.
            BadArgument: an argument makes no sense.
        """
        from .script import script_at

        return script_at(
            self,
            text,
            params,
            named,
            unsafe=unsafe,
            clock=clock,
            engine=engine,
            output=output,
            name=name,
            quiet=quiet,
            probe_filter=probe_filter,
            mode=mode,
        )

    def event(self, text: str, filter: str = "", stack: bool = False) -> TraceEvent:
        """Arm a kprobe event, as Linux writes them: its hits become records.

        Args:
            text: the definition: "p:crc crc32 len=$arg3:u32". The place may be a glob, or a
                /regular expression/.
            filter: which hits are recorded, in ftrace's language; "": all.
            stack: True: records have stacks.

        Raises:
            EventError: the definition or the filter is wrong; nothing is armed.
        """
        return self.events.add(text, filter, stack)

    @cached_property
    def events(self) -> Events:
        """The events that are defined: a mapping of names to TraceEvents. Those of trace() are not
        among them.
        """
        from .events._table import Events

        return Events(self)

    def trace(
        self,
        *events: str,
        filter: str = "",
        stack: bool = False,
        records: int = 1 << 20,
        clock: str | Callable[[], int] = "counter",
        exclude: Sequence[str] = (),
    ) -> Recording:
        """Record the hits of events inside a with block.

        `with k.trace("p crc32 len=$arg3", "r crc32 $retval", "w @counter") as t: ...`

        Args:
            events: definitions. A place may be a glob or a /regular expression/.
            filter: which hits are recorded, in ftrace's language; "": all.
            stack: record with each hit the return addresses above it.
            records: how many there is room for; then the oldest are overwritten.
            clock: the time of records: "counter" (no time), "host" (ns), "instructions" (the
                guest's so far; that is slow), or a function that gives ns.
            exclude: globs of functions that patterns leave out.

        Returns:
            The recording, to be entered as a context manager.

        Raises:
            EventError: a definition or the filter is wrong.
            BadArgument: an argument makes no sense.
            Unsupported: no instructions are counted here.
        """
        from .tracing.recorder import Recording

        return Recording(
            self,
            events,
            stack=stack,
            records=records,
            clock=clock,
            filter=filter,
            exclude=exclude,
        )

    def coverage(
        self,
        modules: str | Sequence[str] = (),
        functions: str | Sequence[str] = (),
        edges: bool = False,
    ) -> Coverage:
        """Count every block that the guest executes from now on, until the result's close().

        close() of this object does not end it.

        Args:
            modules: a glob of modules, or several; only blocks in these are counted. (): all.
            functions: a glob of functions, or several; only blocks in these are counted. (): all.
            edges: True: count each edge by itself, for the result's `edges`, besides its `bitmap`.

        Raises:
            Unsupported: the engine tells of no blocks.
            MachineBusy: another thread runs the machine.
            BadArgument, UnknownSymbol: there is no such module or function.
        """
        from .tracing.coverage import Coverage

        return Coverage(self.machine, modules, functions, edges)

    def heap(
        self,
        functions: Mapping[str | int, str] | None = None,
        *,
        defaults: bool = True,
        zone: int = 32,
        quarantine: int = 1 << 20,
        limit: int = 1 << 28,
        uninitialized: bool = False,
        leaks: bool = True,
        accesses: bool | None = None,
        raising: bool = False,
        depth: int = 8,
        reads_lines: Sequence[str] | None = None,
    ) -> HeapCheck:
        """Stand in for the guest's allocator until close() of the result, and find what the guest
        does wrong with memory.

        `with k.heap() as heap: ...; print(heap.report())`

        Args:
            functions: allocator functions besides those with usual names:
                {"pool_get": "malloc", 0x1234: "free"}.
            defaults: False: `functions` are all there are.
            zone: bytes of the red zone in front of a block and behind it, at least.
            quarantine: bytes of freed blocks that are kept back before they are used again.
            limit: bytes that the guest may have at a time.
            uninitialized: report reads of bytes that were never written.
            leaks: look for leaks at the end.
            accesses: watch accesses to memory; None: where the engine can.
            raising: raise findings as HeapError, out of the guest's run.
            depth: return addresses that are kept with each block.
            reads_lines: globs of modules, and of "module:function", that may read whole words and
                lines of which some bytes are a block's; None: those of C libraries.

        Raises:
            BadArgument: no function is known, or an argument makes no sense.
            Unsupported: the machine's memory cannot be checked.
            Others: as register().
        """
        from .heap.check import READS_LINES, HeapCheck

        return HeapCheck(
            self,
            functions,
            defaults=defaults,
            zone=zone,
            quarantine=quarantine,
            limit=limit,
            uninitialized=uninitialized,
            leaks=leaks,
            accesses=accesses,
            raising=raising,
            depth=depth,
            reads_lines=READS_LINES if reads_lines is None else reads_lines,
        )

    def graph(
        self,
        function: str,
        functions: str = "*",
        *,
        args: int = 0,
        depth: int | None = None,
        instructions: bool = False,
    ) -> Graph:
        """Record a function's call tree inside a with block.

        `with k.graph("parse_settings") as tree: ...; print(tree)`

        Args:
            function: the root.
            functions: a glob: which functions of its image are in the tree.
            args: how many arguments of each call are kept, 0 to 16.
            depth: how many levels of calls below the root; None: all.
            instructions: count the instructions of each call, which makes the guest slow.

        Raises:
            UnknownSymbol: there is no such function.
            BadArgument: an argument makes no sense.
            Unsupported: no instructions are counted here.
            Others: as register(), where the function itself cannot be probed.
        """
        from .tracing.graph import Graph

        return Graph(self, function, functions, args=args, depth=depth, instructions=instructions)

    def program_calls(self, begins: bool) -> None:
        """Mark CPU 0 as in a hit while a program at a call site calls Python.

        Args:
            begins: True where such a call begins, False where it is done.
        """
        self._driver.blocks[0].state = HitState.HIT_ACTIVE if begins else HitState.IDLE

    def is_entry(self, addr: int) -> bool:
        """Return True where an address is a function's entry, or no symbol covers it.

        Raises:
            BadLocation: its mode bits are not those of the function's code.
        """
        return locate(self.machine, self._text, None, addr, 0).entry

    def original(self, addr: int, size: int) -> bytes:
        """Return guest memory as it is without probes.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is not mapped.
        """
        return self._text.read(addr, size)

    def stack_trace(self, regs: Regs, limit: int = 64) -> Stack:
        """Return the stack of a hit: pc, then return addresses from the innermost frame outwards.

        A return address that a return probe has replaced is given as it was. Where the code at pc
        has call frame information (.eh_frame, .debug_frame), SFrame or ORC, the stack is walked by
        that. Elsewhere the calls that return probes follow tell it, as far as these are without a
        gap, and then frame pointers: these are right at a function's entry, in return handlers, and
        in code that keeps them.

        Args:
            regs: the registers of a handler.
            limit: the most addresses, pc included.

        Returns:
            The addresses; `incomplete` of the list is True where the outermost caller was not
            reached.

        Raises:
            Unsupported: only pc is known, and the architecture has no convention of frame pointers.
        """
        return self._stacks.of(regs, limit)

    def _keep_stack(self, regs: Regs) -> tuple[int, ...]:
        """Return a hit's stack as records keep it: code addresses, innermost first.

        INCOMPLETE stands behind the last where callers are missing; it stands behind pc alone where
        stack_trace() raises Unsupported.
        """
        try:
            return self.stack_trace(regs).kept()
        except Unsupported:
            return (regs.pc, INCOMPLETE)

    def watchpoint(
        self,
        where: str | int,
        size: int | None = None,
        access: str = "w",
        handler: WatchHandler | None = None,
    ) -> Watchpoint:
        """Call a handler at each access of the guest's to some bytes of memory, until the
        watchpoint's remove() or this Kprobes' close(). The result decorates a handler, too:
        ``@k.watchpoint("count")``.

        Args:
            where: address or symbol of the first byte.
            size: bytes, 1 to 65536; None: those of the symbol, or else a word of the guest; of "x"
                one.
            access: "r", "w" or "rw"; "x": before each instruction that is executed there. Nothing
                is written to guest memory then, as a probe's breakpoint is, so that code that
                copies or checksums itself sees nothing. A function's name is its code then, as for
                a kprobe, and what the handler raises leaves pc there.
            handler: (watchpoint, regs) is called; None: the accesses are only counted.

        Raises:
            BadLocation, BadArgument: an argument makes no sense.
            UnknownSymbol, AmbiguousSymbol: there is no such symbol, or there are several.
            GuestFault: nothing is mapped there.
            Unsupported: the engine cannot report accesses without changing what the guest does.
            MachineBusy: another thread runs the machine.
        """
        from .events._watchpoint import Watchpoint

        if access == "x" and isinstance(
            where, str
        ):  # a function's symbol may be its descriptor's, on PowerPC say
            where = locate(self.machine, self._text, where, None, 0).address
        self._watchpoints = [w for w in self._watchpoints if w.registered]
        self._watchpoints.append(Watchpoint(self.machine, where, size, access, handler))
        return self._watchpoints[-1]

    # --- guest tasks and modules
    def flush_task(self, task: Any) -> None:
        """Forget the followed calls of a guest task that has ended, without calling handlers.

        Args:
            task: what machine.cpu_task has returned for it.
        """
        self._calls.flush(key("task", task))
        self._listener.finish()

    # --- ways to write it

    def kprobe(
        self,
        symbol_name: str | None = None,
        *,
        offset: int = 0,
        addr: int | None = None,
        pre_handler: PreHandler | None = None,
        post_handler: PostHandler | None = None,
        fault_handler: FaultHandler | None = None,
        disabled: bool = False,
        optimize: bool = True,
    ) -> Shorthand[Kprobe]:
        """Return a decorator of a kprobe's pre_handler that is a context manager, too.

        Decorating a function registers the probe, and gives the function the attribute `probe`.
        Entering the context registers the probe, too, and leaving it unregisters it. Nothing is
        registered before.

        Args:
            symbol_name: symbol of the place: "f", "module:f", "f+0x10".
            offset: bytes behind the place.
            addr: address of the place, instead of `symbol_name`.
            pre_handler: (probe, registers): runs before the instruction, where none is decorated.
                It returns a true value where it has set pc itself, and the guest goes on there.
            post_handler: (probe, registers, flags): runs after the instruction.
            fault_handler: (probe, registers, number of the signal) -> True where it has handled a
                guest fault in the instruction, or an exception of a handler (number 0).
            disabled: register without arming.
            optimize: allow boost and jump optimization.

        Raises:
            BadLocation: the fields make no sense; further errors as register() raises them, where
                the handler is decorated or the context entered.
        """
        probe = Kprobe(
            symbol_name=symbol_name,
            offset=offset,
            addr=addr,
            pre_handler=pre_handler,
            post_handler=post_handler,
            fault_handler=fault_handler,
            disabled=disabled,
            optimize=optimize,
        )
        return Shorthand(self, probe, "pre_handler")

    def kretprobe(
        self,
        symbol_name: str | None = None,
        *,
        offset: int = 0,
        addr: int | None = None,
        handler: ReturnHandler | None = None,
        entry_handler: ReturnHandler | None = None,
        fault_handler: FaultHandler | None = None,
        maxactive: int = 0,
        data_size: int = 0,
        disabled: bool = False,
        optimize: bool = True,
    ) -> Shorthand[Kretprobe]:
        """Return a decorator of a return probe's handler that is a context manager, too.

        Decorating a function registers the probe, and gives the function the attribute `probe`.
        Entering the context registers the probe, too, and leaving it unregisters it. Nothing is
        registered before.

        Args:
            symbol_name: the function: "f", "module:f".
            offset: bytes behind the place; 0, or where the function's entry is.
            addr: address of the function, instead of `symbol_name`.
            handler: (instance, registers): runs when the function has returned, where none is
                decorated.
            entry_handler: (instance, registers): runs at the function's entry; returns a true value
                where the call is not to be followed.
            fault_handler: (probe, registers, number of the signal) -> True where it has handled a
                guest fault in the instruction, or an exception of a handler (number 0).
            maxactive: calls followed at a time; 0: Kprobes.instances.
            data_size: bytes of ri.data; 0: it is a dict.
            disabled: register without arming.
            optimize: allow boost and jump optimization.

        Raises:
            BadLocation: as kprobe() does.
        """
        probe = Kretprobe(
            symbol_name=symbol_name,
            offset=offset,
            addr=addr,
            handler=handler,
            entry_handler=entry_handler,
            fault_handler=fault_handler,
            maxactive=maxactive,
            data_size=data_size,
            disabled=disabled,
            optimize=optimize,
        )
        return Shorthand(self, probe, "handler")

    def jprobe(
        self,
        symbol_name: str | None = None,
        *,
        offset: int = 0,
        addr: int | None = None,
        entry: Mirror = None,
        fault_handler: FaultHandler | None = None,
        disabled: bool = False,
        optimize: bool = True,
    ) -> Shorthand[Jprobe]:
        """Return a decorator of a jprobe's mirror that is a context manager, too.

        Decorating a function registers the probe, and gives the function the attribute `probe`.
        Entering the context registers the probe, too, and leaving it unregisters it. Nothing is
        registered before.

        Args:
            symbol_name: the function: "f", "module:f".
            offset: bytes behind the place.
            addr: address of the function, instead of `symbol_name`.
            entry: the mirror, where none is decorated: a function of Python's, or a guest's (its
                address or name).
            fault_handler: (probe, registers, number of the signal) -> True where it has handled a
                guest fault in the instruction, or an exception of a handler (number 0).
            disabled: register without arming.
            optimize: allow boost and jump optimization.

        Raises:
            BadLocation: as kprobe() does.
        """
        probe = Jprobe(
            symbol_name=symbol_name,
            offset=offset,
            addr=addr,
            entry=entry,
            fault_handler=fault_handler,
            disabled=disabled,
            optimize=optimize,
        )
        return Shorthand(self, probe, "entry")

    def close(self) -> None:
        """Unregister all probes, those of events too, remove the watchpoints, and restore the
        guest's text.

        Calls being followed still return to the right place.

        In a handler the library's memory goes, and the machine is free for another Kprobes, when
        the run has ended. While calls are followed the memory that they return through stays until
        they have returned, or are left: another Kprobes of the machine takes it over.

        Raises:
            MachineBusy: another thread runs the machine or changes its probes, or a device's or a
                watchpoint's function is called now; nothing was done.
        """
        with suppress(MachineClosed):
            self._listener.check_changing()
        for watchpoint in self._watchpoints:
            watchpoint.remove()
        if "events" in self.__dict__:
            self.events.leave()
        with suppress(MachineClosed):  # that has unregistered everything
            self._listener.close()

    def __repr__(self) -> str:
        return (
            f"<Kprobes of {self.machine.arch.name}: {len(self.list())} "
            f"probes{'' if self.enabled else ', all disarmed'}>"
        )

    def _repr_html_(self) -> str:
        """Return a table of the registered probes, for a notebook."""
        return table(
            repr(self),
            ("address", "type", "symbol", "offset", "flags", "missed"),
            [
                (f"{p.address:#x}", p.type, p.symbol, p.offset, " ".join(p.flags), p.nmissed)
                for p in self.list()
            ],
        )

    def __enter__(self) -> Kprobes:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _batch(probes: Iterable[Probe]) -> list[Probe]:
    """Return the probes of a batch as a list.

    Raises:
        BadLocation: `probes` is a single probe, or cannot be iterated.
    """
    if isinstance(probes, Probe) or not isinstance(probes, Iterable):
        raise BadLocation(f"{probes!r} is no batch of probes", hint="pass a list of them")
    return list(probes)
