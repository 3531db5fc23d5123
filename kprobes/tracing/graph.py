"""Call trees: who called whom with what, and what came back, from a function down."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Protocol

from attrs import Factory, define

from ..arguments import checked
from ..core.probe import Kretprobe, Probe
from ..debug.expression import UnknownValue
from ..debug.info import DebugInfo
from ..debug.view import SCALARS, load
from ..debug.whole import whole
from ..errors import BadArgument, GuestFault, KprobeError, Unsupported
from ..events._styles import Type
from ..machine._base import Machine
from ..names import readable
from ..newfile import NewFile
from ..pictures.page import ChartView, Picture, page
from ..regs import Regs
from ..symbols import CONTROLS, Symbol, name_matcher
from .charts import flame_data, graph_data, of_stacks
from .profile import write_folded
from .text import for_json

MOST_CALLS, ACTIVE = 1_000_000, 4096
COLUMN = 12  #: characters of the number of instructions
INDENTED = 50  #: calls inside each other whose lines are shown so; ftrace follows no more
_WORDS = SCALARS - {"float", "complex"}  #: kinds of types whose results are in the result register
_VALUE = Type(name="result", style="value", bits=64, size=8)
FORMATS = ("text", "jsonl", "folded", "speedscope", "svg", "html")


class Owner(Protocol):
    """The part of a Kprobes that a call tree needs: it registers probes, and reads code as it was
    before these.
    """

    machine: Machine

    def register(self, probe: Probe) -> None: ...
    def unregister(self, probe: Probe) -> None: ...
    def original(self, addr: int, size: int) -> bytes: ...


@define
class GraphedCall:
    """One call of a function.

    Attributes:
        name: of the function.
        depth: 0 for a call of the function that the tree begins with, 1 for a call that this one
            makes.
        args: its first arguments, as many as were asked for; None for one that cannot be read.
        result: the return value, as debug information types it: a number, a text, a tuple or
            Members, as the values of events; the result register without debug information. None:
            the function returns nothing, or the call has not returned (a longjmp, the end of the
            run).
        calls: the calls that it has made, in order.
        instructions: how many it and the calls that it made have executed; None: they were not
            counted, or it has not returned.
        address: of the function.
    """

    name: str
    address: int
    depth: int
    args: tuple[int | None, ...] = ()
    result: Any = None
    calls: list[GraphedCall] = Factory(list)
    instructions: int | None = None

    @property
    def own(self) -> int:
        """Instructions of its own, without those of the calls that it has made; 0 where they are
        not known.
        """
        return max((self.instructions or 0) - sum(call.instructions or 0 for call in self.calls), 0)

    def __iter__(self) -> Iterator[GraphedCall]:
        """Yield this call and all below it, in the order in which they began."""
        todo = [self]
        while todo:
            call = todo.pop()
            yield call
            todo += reversed(call.calls)


@checked()
class CallTree:
    """The calls below a function; str() shows it as ftrace's function graph does.

    Attributes:
        calls: the calls of the function that the tree begins with, in order; the calls inside them
            are in their own `calls`.
        skipped: function -> why it is not in the tree.
        missed: calls that could not be recorded.
        counted: calls have the number of their instructions.
        count: number of calls in the tree, those inside of others too.
        dropped: number of calls that were left out because the tree has MOST_CALLS.
        probes: the registered return probes, until forget_probes().
    """

    def __init__(self, counted: bool = False) -> None:
        """Make an empty tree.

        Args:
            counted: calls have the number of their instructions.
        """
        self.counted = counted
        self.calls: list[GraphedCall] = []
        self.skipped: dict[str, str] = {}
        self.count = self.dropped = 0
        self.probes: list[Any] = []
        self._before = 0

    @property
    def missed(self) -> int:
        """Number of calls that were not recorded: because another probe was running, too many calls
        were open, or the tree has MOST_CALLS (`dropped` of them).
        """
        return (
            self.dropped
            + self._before
            + sum(int(probe.nmissed + probe.entry_nmissed) for probe in self.probes)
        )

    def forget_probes(self) -> None:
        """Forget the probes, which are unregistered; what they have counted stays in `missed`."""
        self._before = self.missed - self.dropped
        self.probes = []

    def __iter__(self) -> Iterator[GraphedCall]:
        """Yield all calls, those inside of others too, in the order in which they began."""
        for call in self.calls:
            yield from call

    def __len__(self) -> int:
        return self.count

    def __str__(self) -> str:
        return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield the lines that str() joins: where instructions are counted, a heading; then the
        calls.
        """
        if self.counted:
            yield f"{'instructions':>{COLUMN}} |\n"
        yield from _lines(self.calls, self.counted)

    def __repr__(self) -> str:
        return f"<CallTree of {self.count} calls, {self.missed} missed>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def folded(self) -> dict[tuple[str, ...], int]:
        """Return the stacks of functions that calls make, with their weights.

        Returns:
            (names of the functions, outermost first) -> number of calls; where instructions are
            counted, the instructions that the innermost function itself has executed.
        """
        found: Counter[tuple[str, ...]] = Counter()
        todo: list[tuple[GraphedCall, tuple[str, ...]]] = [(call, ()) for call in self.calls]
        while todo:
            call, above = todo.pop()
            here = (*above, call.name)
            found[here] += call.own if self.counted else 1
            todo += [(inner, here) for inner in call.calls]
        return dict(found)

    def export(
        self, path: str | os.PathLike[str] | IO[Any], format: str, demangle: bool = True
    ) -> None:
        """Write the tree to a file.

        Args:
            path: of the file, or an open file.
            format: "text", "jsonl" (a line for each call; infinity and NaN are texts), "folded",
                "speedscope", "svg" or "html".
            demangle: False: C++ and Rust names are as in the symbol table also in the last four.

        Raises:
            BadArgument: there is no such format.
            OSError: the file cannot be written; then what was at `path` before is still there.
        """
        if format not in FORMATS:
            raise BadArgument(f"no format {format!r}", hint=f"there are: {', '.join(FORMATS)}")
        if not isinstance(path, str | os.PathLike):
            self._write(path, format, demangle)
            return
        with NewFile(path, binary=False) as new:
            self._write(new.file, format, demangle)

    def _write(self, file: IO[str], format: str, demangle: bool) -> None:
        """Write the tree to an open file.

        Args:
            file: open for text.
            format: a format that export() has checked: "text", "jsonl", "html", or one of
                write_folded().
            demangle: as export() takes it.
        """
        shown = readable if demangle else str
        if format == "text":
            file.writelines(self._lines())
        elif format == "jsonl":
            for c in self:
                facts = {
                    "name": c.name,
                    "address": c.address,
                    "depth": c.depth,
                    "args": c.args,
                    "result": for_json(c.result),
                }
                if self.counted:
                    facts["instructions"] = c.instructions
                file.write(json.dumps(facts) + "\n")
        elif format == "html":
            file.write(self._page(shown))
        else:
            write_folded(self.folded(), file, format, self._unit, shown)

    @property
    def _unit(self) -> str:
        """The unit of the weights of stacks: "instructions" or "calls"."""
        return "instructions" if self.counted else "calls"

    def _page(self, shown: Callable[[str], str]) -> str:
        """Return the text of a page with a flame graph and a call graph.

        Args:
            shown: returns a function's name as it is shown.
        """
        stacks = Counter[tuple[str, ...]]()
        for frames, many in self.folded().items():
            stacks[tuple(map(shown, frames))] += many
        roots = list(dict.fromkeys(shown(call.name) for call in self.calls))
        own, weight, _ = of_stacks(stacks)
        edges = Counter(
            (shown(call.name), shown(inner.name)) for call in self for inner in call.calls
        )
        flame = flame_data([(f"{self._unit.capitalize()} by stack", self._unit, stacks, None)])
        views = [
            ChartView(key="flame", title="Flame graph", chart="flame", data=flame),
            ChartView(
                key="callgraph",
                title="Call graph",
                chart="callgraph",
                data=graph_data(self._unit, own, weight, edges),
            ),
        ]
        lost = [f"{self.missed:,} calls could not be recorded."] * bool(self.missed)
        skipped = [f"{len(self.skipped):,} functions could not be probed."] * bool(self.skipped)
        return page(
            f"Calls below {', '.join(roots) or 'nothing'}",
            views,
            facts=[f"{len(self):,} calls"],
            warnings=lost + skipped,
        )

    def picture(self) -> Picture:
        """Return the page that export() writes as html, for a notebook to show."""
        return Picture(self._page(readable))


def _lines(calls: Sequence[GraphedCall], counted: bool) -> Iterator[str]:
    """Yield the lines of calls and of all calls inside them, as ftrace's function graph has them.

    Args:
        calls: the calls.
        counted: True: the line on which a call ends begins with the number of its instructions,
            other lines with blanks.
    """
    todo: list[GraphedCall | str] = [*reversed(calls)]
    while todo:
        call = todo.pop()
        if isinstance(call, str):
            yield call
            continue
        indent = "  " * min(call.depth, INDENTED)
        shown = ", ".join("(fault)" if arg is None else f"{arg:#x}" for arg in call.args)
        result = "" if call.result is None else f" = {_shown(call.result)}"
        head = f"{indent}{call.name.translate(CONTROLS)}({shown})"
        column = blank = ""
        if counted:
            count = "" if call.instructions is None else call.instructions
            column = f"{count:>{COLUMN}} | "
            blank = f"{'':{COLUMN}} | "
        if call.calls:
            yield f"{blank}{head} {{\n"
            todo += [f"{column}{indent}}}{result}\n", *reversed(call.calls)]
        else:
            yield f"{column}{head}{result};\n"


def _shown(result: Any) -> str:
    """Return a call's result as the tree shows it: integers in hexadecimal, unless negative."""
    if isinstance(result, bool):
        return str(result).lower()
    if isinstance(result, int):
        return f"{result:#x}" if result >= 0 else str(result)
    return _VALUE.show(result).translate(CONTROLS)


class _Result:
    """How a function's result is read at its return.

    Attributes:
        register: whose value at the entry is the address of the result; "": it is not needed.
    """

    def __init__(self, machine: Machine, address: int) -> None:
        """Look up the type of the result, and where it is.

        Args:
            machine: the guest.
            address: of the function's entry.
        """
        self._machine = machine
        self._info = info = DebugInfo(machine)
        self._type = type = info.result(address)
        self._parts: tuple[Any, ...] = ()
        self.register = ""
        if type is None or type.kind == "void":
            return
        is_word = type.kind in (*_WORDS, "pointer") and 0 < 8 * type.size <= machine.arch.bits
        if is_word and not info.result_changed(address):
            return
        arrival = info.result_arrival(address)
        if arrival is None or arrival.kind != "parts":
            self._type = None  # the register is all that is known
            return
        self._parts = tuple(arrival.parts)
        if self._parts[0].kind == "given":
            self.register = self._parts[0].name

    def read(self, regs: Regs, kept: int) -> Any:
        """Return the result, as GraphedCall has it.

        Args:
            regs: the registers at the return.
            kept: what `register` had at the entry.
        """
        type = self._type
        if type is None:
            return regs.return_value
        if type.kind == "void":
            return None
        try:
            if self.register:
                return whole(load(self._machine, type, kept))
            if self._parts:
                return whole(self._info.in_parts(type, self._parts, regs))
            return whole(self._info.typed(type, regs.return_value))
        except (KprobeError, UnknownValue):
            return regs.return_value


@checked()
class Graph:
    """Records a call tree from entering to leaving the `with` statement: `with
    k.graph("parse_settings") as tree`.
    """

    def __init__(
        self,
        k: Owner,
        function: str,
        functions: str = "*",
        args: int = 0,
        depth: int | None = None,
        instructions: bool = False,
    ) -> None:
        """Prepare; probes are registered when the `with` statement is entered.

        Args:
            k: the Kprobes that registers the probes.
            function: the function that the tree begins with.
            functions: a glob of the functions of its image that are in the tree.
            args: number of arguments that are read at each call.
            depth: how deep the tree goes; 0: only the function itself; None: as deep as the calls.
            instructions: count those of each call.

        Raises:
            BadArgument: `args` is no number from 0 to 16.
            UnknownSymbol: there is no such function.
            AmbiguousSymbol: several addresses have that name.
            Unsupported: instructions are to be counted, and the machine does not count them.
        """
        if isinstance(args, bool) or not isinstance(args, int) or not 0 <= args <= 16:
            raise BadArgument(f"args={args!r} is no number of arguments", hint="give 0 to 16")
        self._k = k
        self._root = k.machine.symbols.place(function)
        self._args = args
        self._depth = depth
        self._clock = k.machine.clock if instructions else None
        if instructions and self._clock is None:
            raise Unsupported(
                "this machine does not count instructions",
                hint="leave out instructions=True, or use a UnicornMachine",
            )
        self.tree = self._tree = CallTree(instructions)
        self._begun: dict[int, int] = {}  # id of a call that has not returned -> what the clock was
        self._stop_counting: Callable[[], None] | None = None
        self._open: dict[Any, list[GraphedCall]] = {}  # of each task, those that have not returned
        self._frames: dict[int, int] = {}  # id of such a call -> the stack pointer at its entry
        self._symbols = [self._root, *_functions(k.machine, self._root, functions)]

    def __enter__(self) -> CallTree:
        """Probe the functions, and return the tree, which grows with each call. Functions that
        cannot be probed are in the tree's `skipped`.

        With `instructions` the machine begins to count. Where an error is raised, all of this is
        undone.

        Raises:
            KprobeError: the function that the tree begins with cannot be probed.
        """
        try:
            if self._clock is not None:
                self._stop_counting = self._clock.start()
            for symbol in self._symbols:
                self._arm(symbol)
        except BaseException:
            self.__exit__()
            raise
        return self._tree

    def __exit__(self, *exc: object) -> None:
        """Unregister the probes, and stop counting instructions. The tree stays.

        Raises:
            MachineBusy: another thread runs the machine; the probes that are left stay, until this
                is called again.
        """
        for probe in self._tree.probes:
            if probe.registered:
                self._k.unregister(probe)
        self._tree.forget_probes()
        if self._stop_counting is not None:
            self._stop_counting()

    def _arm(self, symbol: Symbol) -> None:
        """Register a return probe for a function and add it to the tree's `probes`, or note in the
        tree's `skipped` why the function cannot be probed.

        Args:
            symbol: the function.

        Raises:
            KprobeError: the function that the tree begins with cannot be probed.
        """
        start = self._k.machine.arch.pointers.code_address(
            symbol.address | symbol.mode, self._k.original
        )
        probe = Kretprobe(
            addr=start.place(0) | start.mode,
            entry_handler=self._entry(symbol),
            handler=self._returned,
            maxactive=ACTIVE,
        )
        try:
            self._k.register(probe)
        except KprobeError as error:
            if symbol is self._root:
                raise
            self._tree.skipped[symbol.name] = error.reason
            return
        self._tree.probes.append(probe)

    def _entry(self, symbol: Symbol) -> Callable[[Any, Regs], int]:
        """Return the handler of a function's entry, called with the instance of the return probe
        and the registers: it puts the call into the tree.

        The handler returns 1 where the call is not put there, and its return is not wanted: it is
        not below the root function, too deep, or one more than MOST_CALLS (`dropped` counts these).
        Else it returns 0. Before, it closes open calls of the task that were left without a return.

        Args:
            symbol: the function.
        """
        root = symbol is self._root
        name = symbol.name
        address = symbol.address
        clock = self._clock
        result = _Result(self._k.machine, address)

        def entered(ri: Any, regs: Regs) -> int:
            """Put a call into the tree. Return 1 if its return is not wanted, else 0.

            The return is not wanted if the call is not below the root function, too deep, or one
            more than MOST_CALLS; the last is counted in the tree's `dropped`. Open calls of the
            task that were left without a return are closed first.

            Args:
                ri: the instance of the return probe; its `data` becomes the call, how its result
                    is read, and the value of the register that this needs.
                regs: the registers at the function's entry.
            """
            calls = self._open.setdefault(ri.task, [])
            while calls and self._left(ri, self._frames[id(calls[-1])]):
                self._frames.pop(id(calls.pop()))
            depth = len(calls)
            if (not calls and not root) or (self._depth is not None and depth > self._depth):
                return 1
            if self._tree.count >= MOST_CALLS:
                self._tree.dropped += 1
                return 1
            call = GraphedCall(
                name, address, depth, tuple([_argument(regs, n) for n in range(self._args)])
            )
            (calls[-1].calls if calls else self._tree.calls).append(call)
            calls.append(call)
            self._frames[id(call)] = ri.frame
            self._tree.count += 1
            ri.data = call, result, regs[result.register] if result.register else 0
            if clock is not None:
                self._begun[id(call)] = clock() - 1  # it has counted the one at the entry already
            return 0

        return entered

    def _left(self, ri: Any, frame: int) -> bool:
        """Return True if an open call was left without a return: by a longjmp, or by a run's end.

        Called as another call of the same task begins: the stack pointer says whether the open call
        can still be around it. A tail call begins with the same stack pointer as the call that it
        replaces, and its return address is the trampoline's; the replaced call then still waits for
        its return.

        Args:
            ri: the instance of the call that begins.
            frame: the stack pointer at the entry of the open call.
        """
        linkage = self._k.machine.arch.linkage
        alone = linkage is None or not linkage.returning.shares_frames
        return bool(ri.frame > frame or (ri.frame == frame and ri.link == ri.ret_addr and alone))

    def _returned(self, ri: Any, regs: Regs) -> None:
        """Store a call's result and close it, with all calls inside it that have not returned.

        The handler of the return probes.

        Where the call was closed before, as left without a return, only its result and the number
        of its instructions are stored.

        Args:
            ri: the instance of the return probe, whose `data` the entry has made.
            regs: the registers after the return.
        """
        call, result, kept = ri.data
        calls = self._open[ri.task]
        call.result = result.read(regs, kept)
        if self._clock is not None:
            call.instructions = self._clock() - self._begun.pop(id(call))
        if any(each is call for each in calls):
            while True:
                last = calls.pop()
                self._frames.pop(id(last), None)
                if last is call:
                    break


def _functions(machine: Machine, root: Symbol, pattern: str) -> list[Symbol]:
    """Return the functions of an image that a glob names, by address, one name for each address.

    Args:
        machine: the guest.
        root: the function that the tree begins with; its image is searched, and it is not in the
            list.
        pattern: the glob.
    """
    known = {root.address}
    found = []
    matches = name_matcher(pattern)
    for symbol in sorted(machine.symbols, key=lambda s: (s.address, s.name)):
        if (
            symbol.kind == "func"
            and symbol.module == root.module
            and matches(symbol.name)
            and symbol.address not in known
        ):
            known.add(symbol.address)
            found.append(symbol)
    return found


def _argument(regs: Regs, n: int) -> int | None:
    """Return the argument with number `n`, from 0, of the call that begins; None: its memory cannot
    be read.
    """
    try:
        return regs.arg(n)
    except GuestFault:
        return None
