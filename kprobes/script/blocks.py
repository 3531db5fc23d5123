"""From a typed block to eBPF: statements, numbers, and where values lie.

Methods write code; "compute into r0" is what that code does when the script runs. Registers: r6 is
the context, r7 a map's value while it is changed; a number is computed into r0. Numbers that wait
for others are spilled to the frame. Variables and temporary values of more than a register lie in
array maps, so that what the verifier knows does not differ from one round of a loop to the next.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ..errors import ProgramError
from ..programs.assembler import Assembler
from ..programs.code import CodeLine
from ..programs.verifier.flow import LIMIT
from . import layout, tree, types
from .definitions import Definitions
from .inference import MapFacts, TypedProbe, Typing
from .promotion import base_name, both, name_of, settled
from .settings import Settings
from .source import NOWHERE, ScriptSource, Span
from .storage import DUE, FLAG, RING, SCRATCH, TICK, VARIABLES, Action, Area, Storage
from .tree import Expression
from .types import IntegerType, ValueType
from .world import World

if TYPE_CHECKING:
    from ..programs.isa import Instruction

_CONTEXT: Final = 6
_POINTER: Final = 7
_FRAME: Final = 10
#: the most bytes of the frame that numbers are spilled to
_SPILLED: Final = 400
_LONG: Final = 512  #: bytes; more are copied and zeroed by a loop
_CHUNK: Final = 64  #: bytes of a round of it
_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_I32: Final = range(-(1 << 31), 1 << 31)


class BlockWriter(ABC):
    """Writes the program of one block.

    Attributes:
        asm: takes the instructions.
        storage: memory, constants and actions that all programs of the script share.
        typing: types of all expressions, variables and maps.
        probe: the block.
        world: the guest.
        settings: the script's settings.
        definitions: C types and constants of the script.
        end: label behind the block, where the program ends.
        reading: part of the script that reads guest memory, for messages.
        written: part of the script that instructions are being written for.
    """

    def __init__(
        self,
        storage: Storage,
        typing: Typing,
        probe: TypedProbe,
        world: World,
        settings: Settings,
        definitions: Definitions,
        source: ScriptSource,
        ticks: bool = False,
        warns_missing: bool = False,
    ) -> None:
        """Begin a program without instructions.

        Args:
            storage: memory, constants and actions that all programs of the script share.
            typing: types of all expressions, variables and maps.
            probe: the block.
            world: the guest.
            settings: the script's settings.
            definitions: C types and constants of the script.
            source: the script's text, whose lines go into the program.
            ticks: True where a word of the variables says when Python wants to be called: at once,
                or from a time on.
            warns_missing: True where Python gets warnings of keys that are not there and of guest
                memory that cannot be read.
        """
        self.storage = storage
        self.typing = typing
        self.probe = probe
        self.world = world
        self.settings = settings
        self.definitions = definitions
        self._source = source
        self._lines = source.text.split("\n")
        self._ticks = ticks
        self._warns_missing = warns_missing
        self.reading = NOWHERE
        self.written = probe.probe.span
        self.asm = Assembler()
        self.end = self.asm.label()
        self._done = self.asm.label()
        self._depth = self._temporary = 0
        self._loops: list[tuple[str, str]] = []

    def program(self) -> tuple[Sequence[Instruction], dict[int, CodeLine]]:
        """Write the whole program: the check for a waiting Python, the predicate, the block, the
        exit.

        The check is written where `ticks` is True: the program calls Python first if Python waits
        for it, and then ends if exit() was called. Code behind the predicate runs only where it
        holds. The program returns 0 in any case, but for a test's `return` with a value.

        Returns:
            (its instructions, slot -> line of the script from that slot on).

        Raises:
            ProgramError: the block cannot be compiled.
        """
        asm, block = self.asm, self.probe.probe
        asm.move(_CONTEXT, 1)
        if self._ticks:
            quiet = asm.label()
            if self.storage.at_once:
                asm.call("ktime_get_ns")
                self.point(1, Area(VARIABLES, DUE))
                asm.load(1, 1, 0, 8)
                asm.jump_if("<", 0, 1, quiet)
            else:
                self.point(1, Area(VARIABLES, TICK))
                asm.load(1, 1, 0, 8)
                asm.jump_if_number("==", 1, 0, quiet)
            self.wake()
            self.point(1, Area(VARIABLES, TICK))
            asm.load(1, 1, 1, 1)
            asm.jump_if_number("!=", 1, 0, self.end)
            asm.place(quiet)
        if block.predicate is not None:
            self._line(block.predicate.span)
            self.jump_unless(block.predicate, self.end)
        self.block(block.body)
        asm.place(self.end)
        asm.set(0, 0)
        asm.place(self._done)
        asm.exit()
        return asm.finish()

    # --- what functions and aggregates are: see Generator

    @abstractmethod
    def function_effect(self, node: tree.FunctionCall | tree.Name, used: bool) -> None:
        """Write code for a call whose value is not needed.

        Args:
            node: the call, or the name of a function without parentheses.
            used: matters for delete() only. False: the code warns Python where the key is missing;
                True: it does not.
        """

    @abstractmethod
    def function_number(self, node: tree.FunctionCall | tree.Name) -> None:
        """Load into r0 the number that a builtin or a function gives."""

    @abstractmethod
    def function_store(
        self, node: tree.FunctionCall | tree.Name, kind: ValueType, area: Area
    ) -> None:
        """Store a builtin's or a function's value in an area.

        Args:
            node: the builtin or the call.
            kind: the type that the value is stored as.
            area: where it is stored.
        """

    @abstractmethod
    def comparison(self, node: tree.Binary, label: str) -> None:
        """Write code that jumps to a label if `==` or `!=` of two values in memory does not hold.

        Where it holds, the code goes on with the next instruction.

        Args:
            node: the comparison.
            label: the label.
        """

    @abstractmethod
    def zero_behind_nul(self, area: Area, size: int) -> None:
        """Write code that clears what is behind a string's NUL, so that it can be compared.

        Args:
            area: the string.
            size: bytes of it, its NUL included.
        """

    @abstractmethod
    def argument(self, node: tree.FieldAccess) -> None:
        """Load `args.name`, a number, into r0."""

    @abstractmethod
    def argument_store(self, node: tree.FieldAccess, area: Area) -> None:
        """Store `args.name`, which is no number, in an area of its type."""

    @abstractmethod
    def aggregate_update(
        self, target: tree.MapName | tree.MapAccess, facts: MapFacts, value: Expression
    ) -> None:
        """Write `@x[key] = count()` and its like: the update of an aggregate.

        Args:
            target: the map, or the map with a key.
            facts: the map's types.
            value: the call of count() or its like.
        """

    @abstractmethod
    def aggregate_read(self, kind: ValueType) -> None:
        """Load into r0 the number that an aggregate counts as, from the address in r7.

        Args:
            kind: the aggregate's type.
        """

    # --- room

    def type(self, node: Expression) -> ValueType:
        """Return the type of an expression."""
        return self.typing.of[node]

    def temporary(self, size: int) -> Area:
        """Return an area of `size` bytes for a temporary value, free again at the end of the
        statement.

        `storage.scratch`, the bytes of the map that has such areas, grows where needed.
        """
        area = Area(SCRATCH, self._temporary)
        self._temporary += size + 7 & ~7
        self.storage.scratch = max(self.storage.scratch, self._temporary)
        return area

    @contextmanager
    def released(self) -> Iterator[None]:
        """Free, at the end of a with block, the temporary areas that were taken inside it."""
        before = self._temporary
        yield
        self._temporary = before

    def push(self) -> int:
        """Write code that spills r0 to the frame; return the spilled number's offset from r10.

        Raises:
            ProgramError: the frame is full.
        """
        self._depth += 8
        if self._depth > _SPILLED:
            raise ProgramError(
                "an expression is too deep: its numbers do not fit into a program's stack",
                hint="put parts of it into variables",
            )
        self.asm.store(_FRAME, -self._depth, 0, 8)
        return -self._depth

    def pop(self, place: int, register: int) -> None:
        """Write code that loads the number that was spilled last into a register; free its place.

        Args:
            place: what push() returned for the number.
            register: the register's number.
        """
        assert place == -self._depth, "spilled numbers come back in reverse"
        self.asm.load(register, _FRAME, place, 8)
        self._depth -= 8

    def point(self, register: int, area: Area) -> None:
        """Load the address of an area into a register."""
        self.asm.value(register, area.map, area.offset)

    # --- statements

    def block(self, block: tree.BlockExpression) -> None:
        """Write a block's statements; then its last expression, if it has one, with the value
        dropped.
        """
        for statement in block.statements:
            self.statement(statement)
        if block.value is not None:
            self.effect(block.value)

    def statement(self, statement: tree.Statement) -> None:
        """Write the code of one statement.

        `reading` and `written` are set to its span. Temporary areas that its code takes are free
        again afterwards.
        """
        self._line(statement.span)
        self.reading = statement.span
        with self.released():
            _STATEMENTS[type(statement)](self, statement)

    def _line(self, span: Span) -> None:
        """Note that the following instructions are made of a part of the script.

        `written` is set to that part, and its first line goes into the program.
        """
        self.written = span
        text = self._lines[span.line - 1]
        end = span.end_column if span.end_line == span.line else len(text) + 1
        self.asm.line(CodeLine(self._source.name, span.line, span.column, text, end))

    @contextmanager
    def made_of(self, span: Span) -> Iterator[None]:
        """Note that the instructions which a with block writes are made of a part of the script.

        Args:
            span: the part. `written` keeps it where the with block raises an exception.
        """
        around = self.written
        self._line(span)
        yield
        self._line(around)

    def _evaluate(self, statement: tree.Evaluate) -> None:
        """Write code for an expression that is a statement; its value is dropped."""
        self.effect(statement.expression, statement.discarded)

    def effect(self, node: Expression, used: bool = False) -> None:
        """Write code that computes an expression and drops its value.

        Nothing is written for an aggregate, which has no effect when it is read.

        Args:
            node: the expression.
            used: matters for delete() only. False: the code warns Python where the key is missing;
                True: it does not.
        """
        if isinstance(node, tree.BlockExpression):
            self.block(node)
        elif isinstance(node, tree.Conditional):
            self._branches(node)
        elif isinstance(node, tree.Unary) and node.operator in ("x++", "x--", "++x", "--x"):
            self.number(node)
        elif isinstance(node, (tree.FunctionCall, tree.Name)):
            self.function_effect(node, used)
        elif layout.is_number(self.type(node)):
            self.number(node)
        elif not isinstance(self.type(node), (types.VoidType, types.AggregateType)):
            self.place(node)

    def _branches(self, node: tree.Conditional) -> None:
        """Write code for an `if` whose value is not needed: the branches, and the jumps around
        them.

        Of an `if` whose condition is `comptime` only the branch that is taken is written.
        """
        asm = self.asm
        chosen = self._chosen(node)
        if chosen is not None:
            for one in chosen:
                self.effect(one)
            return
        otherwise = asm.label()
        done = asm.label()
        self.jump_unless(node.condition, otherwise)
        self.effect(node.then)
        asm.jump(done)
        asm.place(otherwise)
        if node.otherwise is not None:
            self.effect(node.otherwise)
        asm.place(done)

    def _chosen(self, node: tree.Conditional) -> list[Expression] | None:
        """Return, for an `if` whose condition is `comptime`, the branch that is taken, in a list.

        Returns:
            The branch; an empty list where a missing `else` is taken; None: the condition is no
            `comptime`, and both branches are compiled.
        """
        if not isinstance(node.condition, tree.CompileTime):
            return None
        if node.then in self.typing.of:
            return [node.then]
        return [node.otherwise] if node.otherwise is not None else []

    def _declare(self, statement: tree.Declare) -> None:
        """Write `let $x = value`; without a value, `$x` is zeroed. Nothing for a variable without a
        type.
        """
        slot = self.typing.slots[statement.variable]
        if slot.type is None:
            return  # it is never assigned to
        area = self.storage.slot(slot)
        if statement.value is None:
            self.clear(area, layout.room_of(slot.type))
        else:
            self.store(statement.value, slot.type, area)

    def _assign(self, statement: tree.Assign) -> None:
        """Write an assignment to a variable or a map, or the update of an aggregate in a map.

        A value that mentions the variable itself, and is no number, is computed into a temporary
        area first.
        """
        target = statement.target
        if isinstance(target, tree.ScratchVariable):
            slot = self.typing.slots[target]
            assert slot.type is not None
            area = self.storage.slot(slot)
            if layout.is_number(slot.type) or not self._mentions(statement.value, target.name):
                self.store(statement.value, slot.type, area)
            else:
                between = self.temporary(layout.room_of(slot.type))
                self.store(statement.value, slot.type, between)
                self.copy(between, area, layout.room_of(slot.type))
            return
        facts = self.facts(target)
        if isinstance(facts.value, types.AggregateType):
            self.aggregate_update(target, facts, statement.value)
        else:
            self._assign_map(target, facts, statement.value)

    @staticmethod
    def _mentions(node: Expression, name: str) -> bool:
        """Return True if an expression has a scratch variable of this name, `$` included."""
        return any(
            isinstance(one, tree.ScratchVariable) and one.name == name for one in tree.walk(node)
        )

    def facts(self, target: tree.MapName | tree.MapAccess) -> MapFacts:
        """Return the types of the map that is read or written.

        Args:
            target: the map, or the map with a key.
        """
        return self.typing.maps[
            target.name if isinstance(target, tree.MapName) else target.map.name
        ]

    def _assign_map(
        self, target: tree.MapName | tree.MapAccess, facts: MapFacts, value: Expression
    ) -> None:
        """Write an assignment to a map without keys, or to an entry of a map.

        A map without keys is also marked as having a value.

        Args:
            target: the map, or the map with a key.
            facts: the map's types.
            value: what is assigned.
        """
        assert facts.value is not None
        room = layout.room_of(facts.value)
        if isinstance(target, tree.MapName):
            flag = self.storage.scalars[facts.name]
            if layout.is_number(facts.value):
                self.number(value, facts.value)
                self.point(1, flag)
                self.asm.store(1, FLAG, 0, room)
                self.asm.store_number(1, 0, 1, 8)
                return
            between = self.temporary(room)
            self.store(value, facts.value, between)
            self.copy(between, flag.at(FLAG), room)
            self.point(1, flag)
            self.asm.store_number(1, 0, 1, 8)
            return
        area = self.temporary(room)
        self.store(value, facts.value, area)
        key = self.key(facts, target.key)
        self.update(facts, key, area, target.span)

    def update(self, facts: MapFacts, key: Area, value: Area, span: Span, flags: int = 0) -> None:
        """Write an update of a map's entry, and a warning to Python where it fails, as in a map
        that is full.

        Args:
            facts: the map.
            key: where the key lies.
            value: where the value lies.
            span: the assignment's part of the script, for the warning.
            flags: flags of map_update_elem.
        """
        asm = self.asm
        asm.map(1, self.storage.keyed[facts.name])
        self.point(2, key)
        self.point(3, value)
        asm.set(4, flags)
        asm.call("map_update_elem")
        done = asm.label()
        asm.jump_if_number("==", 0, 0, done)
        self.failed("map_update_elem", span)
        asm.place(done)

    def failed(self, helper: str, span: Span) -> None:
        """Write code that tells Python, always, that a helper has returned the error in r0.

        The caller has written the jump around it for when there is no error.

        Args:
            helper: its name.
            span: the call's part of the script, for the message.
        """
        area = self.temporary(16)
        self.point(1, area)
        self.asm.store(1, 8, 0, 8)
        action = Action("helper_error", span, ((8, IntegerType(64, True)),), {"helper": helper})
        self.send(area, 16, action)

    def warn_if_missing(self, node: tree.MapName | tree.MapAccess) -> None:
        """With option -k: write code that warns Python that a map has no such key.

        Without -k, nothing is written. The code warns always: it must be reached only where the key
        is missing. r0 is overwritten.

        Args:
            node: the access to the map.
        """
        if self._warns_missing:
            self.asm.set(0, 0)
            with self.released():
                self.failed("map_lookup_elem", node.span)

    def warn_if_failed(self, helper: str, at: Span | None = None) -> None:
        """With option -k: write code that warns Python if r0 is negative, as a helper's
        error.

        Without -k, nothing is written.

        Args:
            helper: name of the helper that has read guest memory.
            at: the part of the script that reads; None: that in `reading`.
        """
        if not self._warns_missing:
            return
        fine = self.asm.label()
        self.asm.jump_if_number("s>=", 0, 0, fine)
        with self.released():
            self.failed(helper, at or self.reading)
        self.asm.place(fine)

    def key(self, facts: MapFacts, node: Expression) -> Area:
        """Compute a map's key into a temporary area, and return the area.

        Args:
            facts: the map's types.
            node: the key.
        """
        assert facts.key is not None
        area = self.temporary(layout.room_of(facts.key))
        self.store(node, facts.key, area)
        return area

    def _while(self, statement: tree.While) -> None:
        """Write a while loop: its condition is computed before each round.

        After too many rounds, the code warns Python and leaves the loop.
        """
        asm = self.asm
        top = asm.label()
        out = asm.label()
        self._counted_top(top, out, statement.span)
        self.jump_unless(statement.condition, out)
        self._body(statement.body, top, out)
        asm.jump(top)
        asm.place(out)

    def _counted_top(self, top: str, out: str, span: Span) -> None:
        """Write the beginning of a loop's round: the code asks the engine for one more round.

        After too many rounds, the code sends Python a warning and leaves the loop.

        Args:
            top: label that is placed there, for the jump back.
            out: label behind the loop, jumped to after too many rounds; the caller places it.
            span: the loop's part of the script, for the warning.
        """
        body = self.asm.label()
        self.asm.place(top)
        self.asm.call("may_loop")
        self.asm.jump_if_number("!=", 0, 0, body)
        with self.released():
            self.act("runtime_error", span, error="loop")
        self.asm.jump(out)
        self.asm.place(body)

    def top(self, top: str, out: str) -> None:
        """Write the beginning of a loop's round: engines count rounds, and may end the loop there.

        The label `top` is placed; the code then asks the engine for one more round.

        Args:
            top: label that is placed there, for the jump back.
            out: label behind the loop, jumped to after too many rounds; the caller places it.
        """
        self.asm.place(top)
        self.asm.call("may_loop")
        self.asm.jump_if_number("==", 0, 0, out)

    def _body(self, body: tree.BlockExpression, onward: str, out: str) -> None:
        """Write a loop's body; the caller writes the jump back.

        Args:
            body: the statements.
            onward: label that `continue` goes to; the caller places it.
            out: label that `break` goes to; the caller places it.
        """
        self._loops.append((onward, out))
        self.block(body)
        self._loops.pop()

    def _unroll(self, statement: tree.Unroll) -> None:
        """Write a body as often as unroll() says: `continue` goes on with the next copy, `break`
        behind the last one.

        Raises:
            ProgramError: the program has too many instructions.
        """
        assert isinstance(statement.count, tree.NumberLiteral)
        out = self.asm.label()
        for _ in range(statement.count.value):
            onward = self.asm.label()
            self._body(statement.body, onward, out)
            self.asm.place(onward)
            if self.asm.size > LIMIT:
                self.written = statement.span
                raise ProgramError(
                    f"a program has at most {LIMIT:,} instructions, and unroll makes "
                    "this one longer",
                    hint="use `for ($i : 0..n) { ... }`, whose body is there once",
                )
        self.asm.place(out)

    def _for_range(self, statement: tree.ForRange) -> None:
        """Write a loop over the numbers from `first` to below `last`, both computed once before the
        loop, and compared as signed numbers.

        What the body assigns to the loop's variable does not change the count. After too many
        rounds, the code warns Python and leaves the loop.
        """
        asm = self.asm
        bounds = self.storage.variable(16)
        self.number(statement.first)
        place = self.push()
        self.number(statement.last)
        self.pop(place, 2)
        self.point(1, bounds)
        asm.store(1, 0, 2, 8)
        asm.store(1, 8, 0, 8)
        slot = self.typing.slots[statement.variable]
        assert slot.type is not None
        top = asm.label()
        onward = asm.label()
        out = asm.label()
        self._counted_top(top, out, statement.span)
        self.point(1, bounds)
        asm.load(0, 1, 0, 8)
        asm.load(2, 1, 8, 8)
        asm.jump_if("s>=", 0, 2, out)
        self.point(1, self.storage.slot(slot))
        asm.store(1, 0, 0, layout.size_of(slot.type))
        self._body(statement.body, onward, out)
        asm.place(onward)
        self.point(1, bounds)
        asm.load(0, 1, 0, 8)
        asm.compute_with("+", 0, 1)
        asm.store(1, 0, 0, 8)
        asm.jump(top)
        asm.place(out)

    def _for_map(self, statement: tree.ForMap) -> None:
        """Write a loop over a map's entries; its variable is a tuple (key, value), a copy.

        An entry that is deleted meanwhile is passed over. An aggregate's value is one number. After
        too many rounds, the code warns Python and leaves the loop.
        """
        asm = self.asm
        facts = self.typing.maps[statement.map.name]
        slot = self.typing.slots[statement.variable]
        assert (
            isinstance(slot.type, types.TupleType)
            and facts.key is not None
            and facts.value is not None
        )
        (_, key_type), (value_at, value_type) = layout.members(slot.type)
        key = self.storage.variable(layout.room_of(facts.key))
        cursor = self.storage.variable(8)
        pair = self.storage.slot(slot)
        self.point(1, cursor)
        asm.store_number(1, 0, 0, 8)
        top = asm.label()
        out = asm.label()
        self._counted_top(top, out, statement.span)
        asm.map(1, self.storage.keyed[facts.name])
        self.point(2, key)
        self.point(3, cursor)
        asm.load(3, 3, 0, 8)
        asm.call("map_next_key")
        asm.jump_if_number("==", 0, 0, out)
        self.point(1, cursor)
        asm.store(1, 0, 0, 8)
        self.lookup(facts, key)
        asm.jump_if_number("==", 0, 0, top)
        asm.move(_POINTER, 0)
        if isinstance(facts.value, types.AggregateType):
            self.aggregate_read(facts.value)
            self.point(1, pair.at(value_at))
            asm.store(1, 0, 0, 8)
        else:
            self.copy_from(_POINTER, pair.at(value_at), layout.room_of(value_type))
        self.transfer(key, facts.key, pair, key_type)
        self._body(statement.body, top, out)
        asm.jump(top)
        asm.place(out)

    def _jump(self, statement: tree.JumpStatement) -> None:
        """Write `return`, `break` or `continue`.

        The value of a `return` is the program's result in a test probe; elsewhere it is dropped.

        Args:
            statement: the statement.
        """
        if statement.kind == "return":
            if statement.value is None:
                self.asm.jump(self.end)
            elif self.probe.points[0].kind == "test":  # what a test returns says whether it passed
                self.number(statement.value)
                self.asm.jump(self._done)
            else:
                self.effect(statement.value)
                self.asm.jump(self.end)
        else:
            onward, out = self._loops[-1]
            self.asm.jump(out if statement.kind == "break" else onward)

    # --- actions of Python

    def act(
        self,
        action: str,
        span: Span,
        values: Sequence[tuple[Expression, ValueType]] = (),
        **data: Any,
    ) -> None:
        """Write code that computes values and sends Python a record of them, with an action.

        Args:
            action: kind of the action, such as "printf".
            span: the call's part of the script.
            values: expressions and the types that they are sent as.
            data: facts of the action that are known now: name -> value, such as `format`.
        """
        fields = list[tuple[int, ValueType]]()
        at = 8
        for _, kind in values:
            fields.append((at, kind))
            at += layout.room_of(kind) + 7 & ~7
        area = self.temporary(at)
        for (node, kind), (offset, _) in zip(values, fields, strict=True):
            self.store(node, kind, area.at(offset))
        self.send(area, at, Action(action, span, tuple(fields), data))

    def send(self, area: Area, size: int, action: Action) -> None:
        """Write code that puts a record into the ring.

        With `storage.at_once` the code then always wakes Python. Without, it wakes Python only
        where the ring is full, and then puts the record once more.

        Args:
            area: where the record lies; its first word becomes the action's number.
            size: bytes of it.
            action: what Python is to do with it.
        """
        asm = self.asm
        self.point(2, area)
        asm.store_number(2, 0, self.storage.action(action), 8)
        self._output(size)
        if self.storage.at_once:
            self.wake()
            return
        done = asm.label()
        asm.jump_if_number("==", 0, 0, done)
        self.wake()
        self.point(2, area)
        self._output(size)
        asm.place(done)

    def _output(self, size: int) -> None:
        """Write the record that r2 points at into the ring; r0 is 0, or an error.

        Args:
            size: bytes of the record.
        """
        self.asm.map(1, RING)
        self.asm.set(3, size)
        self.asm.set(4, 0)
        self.asm.call("ringbuf_output")

    def wake(self) -> None:
        """Have Python read the ring at once."""
        self.asm.call("wake")

    # --- numbers: into r0

    def number(self, node: Expression, to: ValueType | None = None) -> None:
        """Compute a number into r0.

        Args:
            node: the expression.
            to: the type that it is converted to; None: its own.
        """
        _NUMBERS[type(node)](self, node)
        if to is not None:
            self.convert(self.type(node), to)

    def _no_value(self, node: tree.TypeArgument) -> None:
        """Refuse `typeof(...)` where a value is needed.

        Raises:
            ProgramError: always.
        """
        raise ProgramError("typeof() is a type, and no value", hint="typeinfo() tells about a type")

    def convert(self, of: ValueType, to: ValueType) -> None:
        """Convert r0 from one type of numbers to another.

        Args:
            of: the type that r0 has.
            to: the type that it gets: cut, extended by its sign or zeros, or of a boolean 0 or 1.
        """
        bits, signed = layout.width(to)
        if isinstance(to, types.BooleanType):
            if not isinstance(of, types.BooleanType):
                self._truth()
            return
        if isinstance(of, types.BooleanType) or not layout.is_number(of):
            if bits < 64 and not isinstance(of, types.BooleanType):
                self.asm.extend(0, bits, signed)
            return
        before, sign = layout.width(of)
        if (
            bits < before
            or (bits == before and sign != signed)
            or (bits < 64 and sign and not signed)
        ):
            self.asm.extend(0, bits, signed)

    def _truth(self) -> None:
        """Write code that replaces r0 by 1 unless r0 is 0."""
        done = self.asm.label()
        self.asm.jump_if_number("==", 0, 0, done)
        self.asm.set(0, 1)
        self.asm.place(done)

    def _literal(self, node: tree.NumberLiteral | tree.BooleanLiteral) -> None:
        """Load a literal into r0."""
        self.asm.set(0, int(node.value))

    def _load(self, area: Area, kind: ValueType) -> None:
        """Load the number in an area into r0.

        Args:
            area: where it lies.
            kind: its type.
        """
        bits, signed = layout.width(kind)
        self.point(1, area)
        self.asm.load(0, 1, 0, bits // 8, signed)

    def _variable(self, node: tree.ScratchVariable) -> None:
        """Load a variable into r0."""
        slot = self.typing.slots[node]
        assert slot.type is not None
        self._load(self.storage.slot(slot), slot.type)

    def _map(self, node: tree.MapName | tree.MapAccess) -> None:
        """Load a map's number into r0, or the number that an aggregate in the map counts as.

        r0 is 0 where there is no such key; with -k, Python gets a warning then.
        """
        facts = self.facts(node)
        asm = self.asm
        assert facts.value is not None
        missing = asm.label()
        if isinstance(node, tree.MapName):
            self.point(0, self.storage.scalars[facts.name].at(FLAG))
        else:
            with self.released():
                self.lookup(facts, self.key(facts, node.key))
            if self._warns_missing:
                there = asm.label()
                asm.jump_if_number("!=", 0, 0, there)
                self.warn_if_missing(node)
                asm.set(0, 0)
                asm.jump(missing)
                asm.place(there)
            else:
                asm.jump_if_number("==", 0, 0, missing)
        if isinstance(facts.value, types.AggregateType):
            asm.move(_POINTER, 0)
            self.aggregate_read(facts.value)
        else:
            bits, signed = layout.width(facts.value)
            asm.load(0, 0, 0, bits // 8, signed)
        asm.place(missing)

    def lookup(self, facts: MapFacts, key: Area) -> None:
        """Load the address of a map's value into r0; 0 where there is no such key.

        Args:
            facts: the map.
            key: where the key lies.
        """
        self.asm.map(1, self.storage.keyed[facts.name])
        self.point(2, key)
        self.asm.call("map_lookup_elem")

    def _named(self, node: tree.Name | tree.FunctionCall) -> None:
        """Compute a builtin or a function into r0."""
        self.function_number(node)

    def _unary(self, node: tree.Unary) -> None:
        """Compute an operator with one operand into r0; `++` and `--` also change the operand.

        `*` reads guest memory, and sets `reading`.

        Raises:
            ProgramError: the operator is `&`.
        """
        asm, operator = self.asm, node.operator
        if operator in ("x++", "x--", "++x", "--x"):
            self._count(node)
        elif operator == "&":
            self.written = node.span
            raise ProgramError(
                "the address of a variable is one of this computer's, and means nothing in the "
                "guest",
                hint="use the variable itself",
            )
        elif operator == "*":
            self.number(node.operand)
            of = self.type(node.operand)
            kind = of.target if isinstance(of, types.PointerType) else self.type(node)
            self.reading = node.span
            self.read_number(kind if layout.is_number(kind) else IntegerType(64, False))
        elif operator == "!":
            yes = asm.label()
            done = asm.label()
            self.jump_unless(node.operand, yes)
            asm.set(0, 0)
            asm.jump(done)
            asm.place(yes)
            asm.set(0, 1)
            asm.place(done)
        else:
            self.number(node.operand)
            if operator == "-":
                asm.negate(0)
            else:
                asm.set(1, -1)
                asm.compute("^", 0, 1)

    def _count(self, node: tree.Unary) -> None:
        """Write `++` or `--` of a variable or map; r0 is the value before or after it.

        A pointer moves by the size of its target. A map's entry that is not there counts from 0;
        where the map has no room for it, Python gets a warning, and r0 is 0.
        """
        asm, operand = self.asm, node.operand
        step = -1 if "-" in node.operator else 1
        before = node.operator.startswith("x")
        kind = self.type(node)
        if isinstance(kind, types.PointerType):
            step *= max(1, layout.size_of(kind.target, self.world.bits // 8))
        skip = asm.label()
        if isinstance(operand, tree.ScratchVariable):
            slot = self.typing.slots[operand]
            assert slot.type is not None
            kind = slot.type
            self.point(_POINTER, self.storage.slot(slot))
        else:
            assert isinstance(operand, tree.MapName | tree.MapAccess)
            facts = self.facts(operand)
            assert facts.value is not None
            kind = facts.value
            self.entry(operand, facts, skip)
        bits, signed = layout.width(kind)
        asm.load(0, _POINTER, 0, bits // 8, signed)
        if before:
            asm.move(2, 0)
            asm.compute_with("+", 2, step)
            asm.store(_POINTER, 0, 2, bits // 8)
        else:
            asm.compute_with("+", 0, step)
            asm.extend(0, bits, signed)
            asm.store(_POINTER, 0, 0, bits // 8)
        asm.place(skip)

    def entry(self, target: tree.MapName | tree.MapAccess, facts: MapFacts, full: str) -> None:
        """Load the address of a map's value into r7; where there is no entry, make one of zeros.

        Where a map is full, Python gets a warning. A map without keys is marked as having a value.

        Args:
            target: the map, or the map with a key, that is written.
            facts: the map's types.
            full: label that is jumped to, with r0 == 0, where the map has no room for the entry.
        """
        asm = self.asm
        if isinstance(target, tree.MapName):
            self.point(_POINTER, self.storage.scalars[facts.name])
            asm.store_number(_POINTER, 0, 1, 8)
            asm.compute_with("+", _POINTER, FLAG)
            return
        assert facts.value is not None
        there = asm.label()
        with self.released():
            key = self.key(facts, target.key)
            self.lookup(facts, key)
            asm.jump_if_number("!=", 0, 0, there)
            self.update(
                facts, key, self.storage.constant(bytes(layout.room_of(facts.value))), target.span
            )
            self.lookup(facts, key)
        asm.jump_if_number("==", 0, 0, full)
        asm.place(there)
        asm.move(_POINTER, 0)

    def _binary(self, node: tree.Binary) -> None:
        """Compute an operator with two operands into r0.

        A comparison, `&&` or `||` gives 1 or 0; of a shift's distance only the lowest 6 bits count;
        a number that is added to a pointer, or subtracted, counts elements.
        """
        if node.operator in (*_COMPARISONS, "&&", "||"):
            asm = self.asm
            no = asm.label()
            done = asm.label()
            self.jump_unless(node, no)
            asm.set(0, 1)
            asm.jump(done)
            asm.place(no)
            asm.set(0, 0)
            asm.place(done)
            return
        left = self.type(node.left)
        right = self.type(node.right)
        if isinstance(left, types.PointerType) or isinstance(right, types.PointerType):
            self._move_pointer(node, left, right)
            return
        self._two(node.left, node.right)
        if node.operator in ("/", "%"):
            self._divide(node)
        else:
            if node.operator in ("<<", ">>"):
                self.asm.compute_with("&", 2, 63)
            self.asm.compute(node.operator, 0, 2)

    def _two(self, left: Expression, right: Expression) -> None:
        """Compute two numbers: the left one into r0, the right one into r2.

        Args:
            left: computed first.
            right: computed second.
        """
        if isinstance(right, tree.NumberLiteral | tree.BooleanLiteral):
            self.number(left)
            self.asm.set(2, int(right.value))
            return
        self.number(left)
        place = self.push()
        self.number(right)
        self.asm.move(2, 0)
        self.pop(place, 0)

    def _divide(self, node: tree.Binary) -> None:
        """Divide r0 by r2 into r0, or take the remainder; both count as unsigned, whatever their
        types.

        A division by zero gives 1, and Python gets a warning. By a literal that is not 0, no check
        is written.

        Args:
            node: the division, or the remainder.
        """
        asm = self.asm
        if isinstance(node.right, tree.NumberLiteral) and node.right.value:
            asm.compute(node.operator, 0, 2)
            return
        fine = asm.label()
        done = asm.label()
        asm.jump_if_number("!=", 2, 0, fine)
        with self.released():
            self.act("runtime_error", node.span, error="divide_by_zero")
        asm.set(0, 1)
        asm.jump(done)
        asm.place(fine)
        asm.compute(node.operator, 0, 2)
        asm.place(done)

    def _move_pointer(self, node: tree.Binary, left: ValueType, right: ValueType) -> None:
        """Compute `p + n` or `p - n` into r0: n counts elements, whose size it is multiplied by.

        Args:
            node: the sum or difference.
            left: type of its left operand.
            right: type of its right operand.
        """
        first, pointer = (
            (node.left, left) if isinstance(left, types.PointerType) else (node.right, right)
        )
        second = node.right if first is node.left else node.left
        assert isinstance(pointer, types.PointerType)
        size = max(1, layout.size_of(pointer.target, self.world.bits // 8))
        self.number(first)
        place = self.push()
        self.number(second)
        if size > 1:
            self.asm.compute_with("*", 0, size)
        self.asm.move(2, 0)
        self.pop(place, 0)
        self.asm.compute(node.operator, 0, 2)

    # --- conditions

    def jump_unless(self, node: Expression, label: str) -> None:
        """Write code that jumps to a label where a condition does not hold.

        Where the condition holds, the code goes on with the next instruction.

        Args:
            node: the condition.
            label: the label.
        """
        asm = self.asm
        if isinstance(node, tree.Binary) and node.operator == "&&":
            self.jump_unless(node.left, label)
            self.jump_unless(node.right, label)
        elif isinstance(node, tree.Binary) and node.operator == "||":
            right = asm.label()
            yes = asm.label()
            self.jump_unless(node.left, right)
            asm.jump(yes)
            asm.place(right)
            self.jump_unless(node.right, label)
            asm.place(yes)
        elif isinstance(node, tree.Binary) and node.operator in _COMPARISONS:
            self._compare(node, label)
        else:
            self.number(node)
            asm.jump_if_number("==", 0, 0, label)

    def _compare(self, node: tree.Binary, label: str) -> None:
        """Write code that jumps to a label where a comparison does not hold.

        Where the comparison holds, the code goes on with the next instruction. Values that are no
        numbers are left to comparison().

        Args:
            node: the comparison.
            label: the label.
        """
        left = self.type(node.left)
        right = self.type(node.right)
        if not self._comparable(left) or not self._comparable(right):
            self.comparison(node, label)
            return
        signed = False
        a = self._integer(left)
        b = self._integer(right)
        if not isinstance(left, types.PointerType) and not isinstance(right, types.PointerType):
            signed = both(a, b).signed if not self._literals(node) else True
            signed = signed and not self._unsigned_with_literal(node, a, b)
        opposite = _OPPOSITE[node.operator]
        condition = f"s{opposite}" if signed and opposite not in ("==", "!=") else opposite
        if (
            isinstance(node.right, tree.NumberLiteral | tree.BooleanLiteral)
            and int(node.right.value) in _I32
        ):
            self.number(node.left)
            self.asm.jump_if_number(condition, 0, int(node.right.value), label)
            return
        self._two(node.left, node.right)
        self.asm.jump_if(condition, 0, 2, label)

    @staticmethod
    def _literals(node: tree.Binary) -> bool:
        """Return True if both sides are literal numbers."""
        return isinstance(node.left, tree.NumberLiteral) and isinstance(
            node.right, tree.NumberLiteral
        )

    @staticmethod
    def _unsigned_with_literal(node: tree.Binary, a: IntegerType, b: IntegerType) -> bool:
        """Return True where a literal that is not negative is compared with an unsigned number.

        The comparison is unsigned then.

        Args:
            node: the comparison.
            a: type of its left operand.
            b: type of its right operand.
        """
        if isinstance(node.right, tree.NumberLiteral) and node.right.value >= 0:
            return not a.signed
        if isinstance(node.left, tree.NumberLiteral) and node.left.value >= 0:
            return not b.signed
        return False

    @staticmethod
    def _comparable(kind: ValueType) -> bool:
        """Return True for values that are compared as numbers."""
        return layout.is_number(kind) or isinstance(kind, types.AggregateType)

    @staticmethod
    def _integer(kind: ValueType) -> IntegerType:
        """Return the integer type as which a number is compared: one of its width and sign.

        An aggregate counts as 64 bits, with a sign unless its type is unsigned.
        """
        if isinstance(kind, types.AggregateType):
            return IntegerType(64, getattr(kind, "signed", True))
        bits, signed = layout.width(kind)
        return IntegerType(bits, signed)

    # --- the guest's memory

    def read_number(self, kind: ValueType, bit: int = 0, bits: int | None = None) -> None:
        """Write code that replaces r0, an address in guest memory, by the number at that address.

        The address is cut to the guest's width. The number is 0 where no memory is mapped there;
        with option -k, Python is then told to warn. Bytes are swapped where the guest's order is
        not the host's. A bit field is unsigned, whatever its type.

        Args:
            kind: the number's type.
            bit: position of the lowest bit of a bit field.
            bits: width of the bit field in bits; None: the number is not a bit field.
        """
        asm = self.asm
        size = layout.size_of(kind, self.world.bits // 8)
        self.guest_address(0)
        asm.move(3, 0)
        asm.set(0, 0)
        place = self.push()
        asm.move(1, _FRAME)
        asm.compute_with("+", 1, place)
        asm.set(2, size)
        asm.call("probe_read_user")
        self.warn_if_failed("probe_read_user")
        asm.load(0, _FRAME, place, size)
        self._depth -= 8
        self.as_guest(kind, size, bit, bits)

    def as_guest(self, kind: ValueType, size: int, bit: int, bits: int | None) -> None:
        """Convert r0 from bytes as they lie in guest memory, loaded by the host, to a number of a
        type.

        Bytes are swapped where the guest's order is the other one, and the bits of a bit field
        taken out, without a sign.

        Args:
            kind: the number's type.
            size: bytes that were loaded.
            bit: the lowest bit of a bit field.
            bits: bits of a bit field; None: it is none.
        """
        asm = self.asm
        width, signed = layout.width(kind)
        if self.world.order != sys.byteorder and size > 1:
            asm.swap(0, 8 * size)
        if bits is not None:
            shift = bit if self.world.order == "little" else 8 * size - bit - bits
            asm.compute_with("<<", 0, 64 - shift - bits)
            asm.compute_with(">>", 0, 64 - bits)  # without a sign, as in bpftrace
        elif width < 64:
            asm.extend(0, width, signed)

    def guest_address(self, register: int) -> None:
        """Cut a register to as many bits as the guest's addresses have."""
        if self.world.bits < 64:
            self.asm.extend(register, self.world.bits, False)

    def in_guest(self, node: Expression) -> bool:
        """Return True for an expression whose value is in the guest's memory.

        That is `*p`, `p->member`, `p[i]`, and a member or element of another such expression.
        """
        if isinstance(node, tree.Unary) and node.operator == "*":
            return True
        if isinstance(node, tree.FieldAccess):
            of = self.type(node.of)
            if isinstance(of, types.PointerType):
                return True
            return isinstance(of, types.StructType) and self.in_guest(node.of)
        if isinstance(node, tree.Index):
            of = self.type(node.of)
            return isinstance(of, types.PointerType) or (
                isinstance(of, types.ArrayType) and self.in_guest(node.of)
            )
        return False

    def address(self, node: Expression, outside: str) -> None:
        """Compute into r0 the guest address of a place in the guest's memory.

        Args:
            node: `*p`, a member, or an element.
            outside: label that is jumped to where an index is outside its array, after a warning to
                Python.
        """
        word = self.world.bits // 8
        if isinstance(node, tree.Unary):
            self.number(node.operand)
        elif isinstance(node, tree.FieldAccess):
            field = self.member(node)
            self._base(node.of, outside)
            if field.offset:
                self.asm.compute_with("+", 0, field.offset)
        else:
            assert isinstance(node, tree.Index)
            size = max(1, layout.size_in_guest(self.type(node), word))
            self._base(node.of, outside)
            place = self.push()
            self._subscript(node, outside)
            self.asm.compute_with("*", 0, size)
            self.asm.move(2, 0)
            self.pop(place, 0)
            self.asm.compute("+", 0, 2)

    def _base(self, node: Expression, outside: str) -> None:
        """Compute into r0 the guest address that a pointer holds, or of a structure or array.

        Args:
            node: a pointer, structure or array.
            outside: label that is jumped to where an index inside `node` is outside its array.
        """
        if isinstance(self.type(node), types.PointerType):
            self.number(node)
        else:
            self.address(node, outside)

    def _subscript(self, node: tree.Index, outside: str) -> None:
        """Compute an index into r0; for arrays and strings, write the check that it is inside, if
        needed.

        No check is written for a pointer, or a literal index that is inside.

        Args:
            node: the access with the index.
            outside: label that is jumped to where the array has no such element; Python gets a
                warning before.
        """
        self.number(node.index)
        if not self._may_miss(node):
            return
        inside = self.asm.label()
        self.asm.jump_if_number("<", 0, self._elements(node), inside)
        with self.released():
            self.act("runtime_error", node.span, error="array_access")
        self.asm.jump(outside)
        self.asm.place(inside)

    def _elements(self, node: tree.Index) -> int:
        """Return the number of elements of an indexed array, or bytes of a string; else 0."""
        of = self.type(node.of)
        if isinstance(of, types.ArrayType):
            return of.count
        return of.size if isinstance(of, types.StringType) else 0

    def _may_miss(self, node: tree.Index) -> bool:
        """Return True for an index that may be outside its array when the script runs; a pointer
        has none.
        """
        count = self._elements(node)
        literal = isinstance(node.index, tree.NumberLiteral) and 0 <= node.index.value < count
        return bool(count) and not literal

    def at_address(
        self, node: Expression, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Compute the guest address of an expression into r0, and write what is done with the
        address.

        Sets `reading` to the expression's part of the script.

        Args:
            node: an expression in the guest's memory.
            then: called at once, without arguments; writes what is done with r0.
            otherwise: called at once, too; writes what is done where an index is outside its array.
                Not called where no index can be.
        """
        if not any(isinstance(one, tree.Index) and self._may_miss(one) for one in tree.walk(node)):
            self.address(node, "")
            self.reading = node.span
            then()
            return
        outside = self.asm.label()
        done = self.asm.label()
        self.address(node, outside)
        self.reading = node.span
        then()
        self.asm.jump(done)
        self.asm.place(outside)
        otherwise()
        self.asm.place(done)

    def _guest_number(
        self, node: tree.FieldAccess | tree.Index, bit: int = 0, bits: int | None = None
    ) -> None:
        """Load a number in the guest's memory into r0; 0 where an index is behind its array.

        Args:
            node: the place.
            bit: the lowest bit of a bit field.
            bits: bits of a bit field; None: it is none.
        """
        kind = self.type(node)
        self.at_address(node, lambda: self.read_number(kind, bit, bits), lambda: self.asm.set(0, 0))

    def member(self, node: tree.FieldAccess) -> types.RecordField:
        """Return the field of a structure or record that `x.name` or `x->name` means.

        A structure of which only the name is known is looked up. The field exists: types were
        inferred before.
        """
        of = self.type(node.of)
        if isinstance(of, types.PointerType):
            of = of.target
        if isinstance(of, types.StructType) and not of.fields:
            found = self.definitions.type(of.name) or self.world.type(of.name)
            of = found if isinstance(found, types.StructType) else of
        assert isinstance(of, (types.StructType, types.RecordType))
        return next(field for field in of.fields if field.name == node.name)

    def read(self, area: Area, size: int, text: bool = False, room: int = 0) -> None:
        """Read guest memory at r0 into an area; with -k, Python gets a warning where that fails.

        Args:
            area: where to.
            size: bytes; of a text, its NUL included. A text of 0 bytes is only zeroed.
            text: True for a text that ends with a NUL: the area is zeroed first. False: nothing is
                zeroed.
            room: bytes of the area that are zeroed before, for a text; 0: as many as `size`.
        """
        asm = self.asm
        self.guest_address(0)
        if text:
            place = self.push()
            self.clear(area, room or size)
            self.pop(place, 3)
            if not size:
                return
        else:
            asm.move(3, 0)
        self.point(1, area)
        asm.set(2, size)
        helper = "probe_read_user_str" if text else "probe_read_user"
        asm.call(helper)
        self.warn_if_failed(helper)

    def _field(self, node: tree.FieldAccess) -> None:
        """Load a member that is a number into r0: of `args`, of guest memory, or of the script's
        own value.
        """
        if isinstance(node.of, tree.Name) and node.of.name == "args":
            self.argument(node)
            return
        field = self.member(node)
        if self.in_guest(node):
            self._guest_number(node, field.bit_offset, field.bit_size)
            return
        area = self._raw(node.of).at(field.offset)
        of = self.type(node.of)
        if isinstance(of, types.StructType):
            size = layout.size_of(field.type, self.world.bits // 8)
            self.point(1, area)
            self.asm.load(0, 1, 0, size)
            self.as_guest(field.type, size, field.bit_offset, field.bit_size)
        else:
            self._load(area, field.type)

    def _part(self, node: tree.TupleAccess | tree.Index) -> tuple[int, ValueType]:
        """Return (offset in bytes, type) of the item of a tuple or record that `x.1` or `x[1]`
        means.
        """
        of = self.type(node.of)
        assert isinstance(of, (types.TupleType, types.RecordType))
        if isinstance(node, tree.TupleAccess):
            number = node.index
        else:
            assert isinstance(node.index, tree.NumberLiteral)
            number = node.index.value
        return layout.members(of)[number]

    def _item(self, node: tree.TupleAccess) -> None:
        """Load an item of a tuple into r0."""
        at, kind = self._part(node)
        self._load(self.place(node.of).at(at), kind)

    def _index(self, node: tree.Index) -> None:
        """Load an element into r0: of a tuple, of an array or string, or of guest memory.

        r0 is 0 where the index is outside the array or string; Python gets a warning then.
        """
        of = self.type(node.of)
        if isinstance(of, types.TupleType):
            at, kind = self._part(node)
            self._load(self.place(node.of).at(at), kind)
            return
        if self.in_guest(node):
            self._guest_number(node)
            return
        assert isinstance(of, (types.ArrayType, types.StringType))
        size = layout.size_of(self.type(node), self.world.bits // 8)
        area = self._raw(node.of)
        asm = self.asm
        outside = asm.label()
        done = asm.label()
        self._subscript(node, outside)
        asm.compute_with("*", 0, size)
        self.point(1, area)
        asm.compute("+", 1, 0)
        asm.load(0, 1, 0, size)
        self.as_guest(self.type(node), size, 0, None)
        asm.jump(done)
        asm.place(outside)
        asm.set(0, 0)
        asm.place(done)

    def _cast(self, node: tree.Cast) -> None:
        """Compute a cast to a number, pointer or boolean into r0; a string is True where it is not
        empty.

        The bytes of an array are one number in the guest's order. A signed number of less than 64
        bits is extended by zeros where it becomes a pointer.
        """
        of = self.type(node.operand)
        to = self.type(node)
        if isinstance(of, types.ArrayType):
            self.point(1, self.place(node.operand))
            size = layout.size_of(of, self.world.bits // 8)
            self.asm.load(0, 1, 0, size)
            self.as_guest(to, size, 0, None)
            return
        if isinstance(of, types.StringType):
            self.point(1, self.place(node.operand))
            self.asm.load(0, 1, 0, 1)
            self._truth()
            return
        self.number(node.operand)
        self.convert(of, to)
        bits, signed = layout.width(of) if layout.is_number(of) else (64, False)
        if isinstance(to, types.PointerType) and signed and bits < 64:
            self.asm.extend(0, bits, False)  # as in bpftrace, an address is no negative number

    def _conditional(self, node: tree.Conditional) -> None:
        """Compute `a ? b : c` into r0. Of an `if` whose condition is `comptime`, only the branch
        that is taken is compiled.
        """
        asm = self.asm
        kind = self.type(node)
        chosen = self._chosen(node)
        if chosen is not None:
            self.number(chosen[0], kind)
            return
        assert node.otherwise is not None
        otherwise = asm.label()
        done = asm.label()
        self.jump_unless(node.condition, otherwise)
        self.number(node.then, kind)
        asm.jump(done)
        asm.place(otherwise)
        self.number(node.otherwise, kind)
        asm.place(done)

    def _block_number(self, node: tree.BlockExpression) -> None:
        """Write a block, and compute its value into r0."""
        for statement in node.statements:
            self.statement(statement)
        assert node.value is not None
        self.number(node.value)

    def _size(self, node: tree.SizeOf | tree.OffsetOf) -> None:
        """Load the number that sizeof() or offsetof() gives, known at compile time, into r0."""
        self.asm.set(0, self.typing.sizes[node])

    def _compile_time(self, node: tree.CompileTime) -> None:
        """Compute the operand of comptime into r0."""
        self.number(node.operand)

    # --- values that lie in memory

    def place(self, node: Expression) -> Area:
        """Return the area where an expression's value lies, in the expression's own type.

        For a value without an area of its own, code is written that computes it into a temporary
        area.

        Raises:
            ProgramError: the value is an element without a constant index, or cannot be compiled.
        """
        kind = self.type(node)
        if isinstance(node, tree.ScratchVariable):
            slot = self.typing.slots[node]
            return self.storage.slot(slot)
        if isinstance(node, tree.TupleAccess) or (
            isinstance(node, tree.Index) and isinstance(self.type(node.of), types.TupleType)
        ):
            return self.place(node.of).at(self._part(node)[0])
        if self._is_part(node):
            raw = self._raw(node)
            if not isinstance(self.type(node.of), (types.StructType, types.ArrayType)):
                return raw
            return self._copied(raw, kind)
        area = self.temporary(layout.room_of(kind))
        self.store(node, kind, area)
        return area

    def _is_part(self, node: Expression) -> TypeGuard[tree.FieldAccess | tree.Index]:
        """Return True for a member or an element of a value in the program's own memory.

        `args.name` and an item of a tuple are none.
        """
        if isinstance(node, tree.FieldAccess):
            return not self.in_guest(node) and not self._is_argument(node)
        return (
            isinstance(node, tree.Index)
            and not self.in_guest(node)
            and not isinstance(self.type(node.of), types.TupleType)
        )

    def _raw(self, node: Expression) -> Area:
        """Return the area where a value lies; a part of a structure or array as the guest has it.

        Such a part is not padded: what follows it is the next one.

        Raises:
            ProgramError: the value is an element without a constant index, or cannot be compiled.
        """
        if not self._is_part(node):
            return self.place(node)
        if isinstance(node, tree.FieldAccess):
            return self._raw(node.of).at(self.member(node).offset)
        return self._element(node)

    def _copied(self, raw: Area, kind: ValueType) -> Area:
        """Write code that copies a part of a structure, and return the temporary area of the copy.

        The copy is padded with zeros, also behind a string's NUL.

        Args:
            raw: where the guest's bytes lie.
            kind: the part's type, which is no number.
        """
        room = layout.room_of(kind)
        area = self.temporary(room)
        self.clear(area, room)
        self.copy(raw, area, layout.size_in_guest(kind, self.world.bits // 8))
        if isinstance(kind, types.StringType):
            self.zero_behind_nul(area, kind.size)
        return area

    def _element(self, node: tree.Index) -> Area:
        """Return the area of an array's element, in the program's own memory.

        Raises:
            ProgramError: the index is no literal number, or what is indexed is no array.
        """
        of = self.type(node.of)
        if not isinstance(of, types.ArrayType) or not isinstance(node.index, tree.NumberLiteral):
            self.written = node.span
            raise ProgramError(
                "an element that is no number is found by a constant index only",
                hint="write the index as a number, or index down to a number",
            )
        return self._raw(node.of).at(
            node.index.value * layout.size_in_guest(of.element, self.world.bits // 8)
        )

    @staticmethod
    def _is_argument(node: tree.FieldAccess) -> bool:
        """Return True for `args.name`."""
        return isinstance(node.of, tree.Name) and node.of.name == "args"

    def store(self, node: Expression, kind: ValueType, area: Area) -> None:
        """Write code that puts an expression's value into an area, converted to the area's type.

        Args:
            node: the expression.
            kind: the type that the area has.
            area: where to.

        Raises:
            ProgramError: the expression cannot be compiled.
        """
        if layout.is_number(kind):
            self.number(node, kind)
            self.point(1, area)
            self.asm.store(1, 0, 0, layout.size_of(kind))
        elif isinstance(node, tree.TypeArgument):
            self._no_value(node)
        elif isinstance(node, tree.StringLiteral) and isinstance(kind, types.StringType):
            self.text(node.value, kind, area)
        elif isinstance(node, tree.TypeInfo) and isinstance(kind, types.RecordType):
            self._describe(self.typing.described[node], kind, area)
        elif isinstance(node, tree.TupleLiteral) and isinstance(kind, types.TupleType):
            self._gaps(kind, area)
            for item, (at, part) in zip(node.items, layout.members(kind), strict=True):
                self.store(item, part, area.at(at))
        elif isinstance(node, tree.RecordLiteral) and isinstance(kind, types.RecordType):
            self._gaps(kind, area)
            fields = {field.name: field for field in kind.fields}
            for name, value in node.fields:
                self.store(value, fields[name].type, area.at(fields[name].offset))
        elif isinstance(node, tree.Conditional):
            self._store_branches(node, kind, area)
        elif isinstance(node, tree.BlockExpression):
            for statement in node.statements:
                self.statement(statement)
            assert node.value is not None
            self.store(node.value, kind, area)
        elif isinstance(node, tree.FunctionCall | tree.Name):
            self.function_store(node, kind, area)
        elif isinstance(node, tree.MapName | tree.MapAccess):
            self._store_map(node, kind, area)
        elif isinstance(node, tree.Cast):
            self._store_cast(node, kind, area)
        elif self.in_guest(node):
            self._store_guest(node, kind, area)
        elif isinstance(node, tree.FieldAccess) and self._is_argument(node):
            self.argument_store(node, area)
        elif isinstance(node, tree.CompileTime):
            self.store(node.operand, kind, area)
        else:
            self.transfer(self.place(node), self.type(node), area, kind)

    def _describe(self, described: ValueType, kind: types.RecordType, area: Area) -> None:
        """Store what `typeinfo` tells of a type.

        Args:
            described: the type.
            kind: a record with the fields btf_id (0: guests have no BTF), base_type and full_type.
            area: where to.
        """
        self._gaps(kind, area)
        names = {"base_type": base_name(described), "full_type": name_of(settled(described))}
        for part in kind.fields:
            if isinstance(part.type, types.StringType):
                self.text(names[part.name].encode(), part.type, area.at(part.offset))
            else:
                self.point(1, area.at(part.offset))
                self.asm.store_number(1, 0, 0, layout.size_of(part.type))

    def _gaps(self, kind: types.TupleType | types.RecordType, area: Area) -> None:
        """Zero an area for a tuple or record that has padding, as keys are compared byte by byte.

        Without padding, nothing is written.

        Args:
            kind: the tuple's or record's type.
            area: where it lies; all of it is zeroed, so this comes before its parts are stored.
        """
        at = 0
        gaps = False
        for offset, part in layout.members(kind):
            gaps = gaps or offset != at
            at = offset + layout.room_of(part)
        room = layout.room_of(kind)
        if gaps or at != room:
            self.clear(area, room)

    def text(self, value: bytes, kind: types.StringType, area: Area) -> None:
        """Store a literal string in an area, cut to its type and padded with zeros.

        Args:
            value: the string's bytes.
            kind: the type that it is stored as.
            area: where it is stored.
        """
        room = layout.room_of(kind)
        data = value[: kind.size].ljust(room, b"\0")
        self.point(1, area)
        for at in range(0, room, 8):
            word = int.from_bytes(data[at : at + 8], sys.byteorder, signed=True)
            if word in _I32:
                self.asm.store_number(1, at, word, 8)
            else:
                self.asm.set(2, word)
                self.asm.store(1, at, 2, 8)

    def _store_branches(self, node: tree.Conditional, kind: ValueType, area: Area) -> None:
        """Store the value of `a ? b : c` in an area. Of an `if` whose condition is `comptime`, only
        the branch that is taken is compiled.

        Args:
            node: the expression.
            kind: the type that it is stored as.
            area: where it is stored.
        """
        asm = self.asm
        chosen = self._chosen(node)
        if chosen is not None:
            self.store(chosen[0], kind, area)
            return
        assert node.otherwise is not None
        otherwise = asm.label()
        done = asm.label()
        self.jump_unless(node.condition, otherwise)
        self.store(node.then, kind, area)
        asm.jump(done)
        asm.place(otherwise)
        self.store(node.otherwise, kind, area)
        asm.place(done)

    def _store_map(self, node: tree.MapName | tree.MapAccess, kind: ValueType, area: Area) -> None:
        """Store a map's value in an area; zeros where the map has no such key, and with -k a
        warning.

        Args:
            node: the map, or the map with a key.
            kind: the type that it is stored as; an aggregate is stored in its own type.
            area: where it is stored.
        """
        facts = self.facts(node)
        asm = self.asm
        assert facts.value is not None
        if isinstance(facts.value, types.AggregateType):
            self.copy_aggregate(node, facts, area)
            return
        if isinstance(node, tree.MapName):
            self.transfer(self.storage.scalars[facts.name].at(FLAG), facts.value, area, kind)
            return
        missing = asm.label()
        done = asm.label()
        room = layout.room_of(facts.value)
        own = area if facts.value == kind else self.temporary(room)
        self.lookup(facts, self.key(facts, node.key))
        asm.jump_if_number("==", 0, 0, missing)
        asm.move(_POINTER, 0)
        self.copy_from(_POINTER, own, room)
        asm.jump(done)
        asm.place(missing)
        self.warn_if_missing(node)
        self.clear(own, room)
        asm.place(done)
        if own is not area:
            self.transfer(own, facts.value, area, kind)

    def copy_aggregate(
        self, node: tree.MapName | tree.MapAccess, facts: MapFacts, area: Area
    ) -> None:
        """Copy an aggregate with all its words, not as one number, into an area, for print(@x[1]).

        Zeros are stored where there is no such key; with -k, Python gets a warning then.

        Args:
            node: the map, or the map with a key.
            facts: the map's types.
            area: where it is copied to.
        """
        assert facts.value is not None
        room = layout.room_of(facts.value)
        if isinstance(node, tree.MapName):
            self.copy(self.storage.scalars[facts.name].at(FLAG), area, room)
            return
        missing = self.asm.label()
        done = self.asm.label()
        self.lookup(facts, self.key(facts, node.key))
        self.asm.jump_if_number("==", 0, 0, missing)
        self.asm.move(_POINTER, 0)
        self.copy_from(_POINTER, area, room)
        self.asm.jump(done)
        self.asm.place(missing)
        self.warn_if_missing(node)
        self.clear(area, room)
        self.asm.place(done)

    def _store_cast(self, node: tree.Cast, kind: ValueType, area: Area) -> None:
        """Store the value of a cast to a type that is no number in an area.

        A number that becomes an array is stored in the guest's byte order. A string or array is cut
        to the area, or padded with zeros; a symbol or text gets the number as its address.

        Args:
            node: the cast: to a string, an array, an address with a symbol, or another such type.
            kind: the type that it is stored as.
            area: where it is stored.
        """
        of = self.type(node.operand)
        to = self.type(node)
        if isinstance(to, types.ArrayType) and layout.is_number(of):
            size = layout.size_of(to, self.world.bits // 8)
            self.number(node.operand)
            if self.world.order == "big":
                self.asm.compute_with("<<", 0, 64 - 8 * size)
                if sys.byteorder == "little":
                    self.asm.swap(0, 64)
            self.point(1, area)
            self.asm.store(1, 0, 0, 8 if layout.room_of(to) >= 8 else size)
            return
        if isinstance(of, (types.StringType, types.ArrayType)):
            room = min(layout.room_of(of), layout.room_of(kind))
            self.copy(self.place(node.operand), area, room)
            if layout.room_of(kind) > room:
                self.clear(area.at(room), layout.room_of(kind) - room)
            return
        if isinstance(to, (types.SymbolType, types.TextType)) and layout.is_number(of):
            self.clear(area, layout.room_of(to))
            self.number(node.operand)
            self.point(1, area)
            self.asm.store(1, 0, 0, 8)
            return
        self.store(node.operand, kind, area)

    def _store_guest(self, node: Expression, kind: ValueType, area: Area) -> None:
        """Copy a value from the guest's memory to an area.

        Zeros are stored where the memory cannot be read, or an index is outside its array.

        Args:
            node: the expression in the guest's memory.
            kind: the type that a string is stored as; other values are copied as they are.
            area: where it is stored.

        Raises:
            ProgramError: the size of the expression's type is not known.
        """
        own = self.type(node)
        if isinstance(own, types.StringType):
            target = area if own == kind else self.temporary(layout.room_of(own))
            self.at_address(
                node,
                lambda: self.read(target, own.size, True),
                lambda: self.clear(target, layout.room_of(own)),
            )
            if target is not area:
                self.transfer(target, own, area, kind)
            return
        size = layout.size_of(own, self.world.bits // 8)
        if not size:
            self.written = node.span
            raise ProgramError(
                f"the size of {getattr(own, 'name', 'a value')} is not known",
                hint="define the structure in the script",
            )
        self.at_address(
            node, lambda: self.read(area, size), lambda: self.clear(area, layout.room_of(own))
        )

    # --- copies

    def clear(self, area: Area, size: int) -> None:
        """Zero an area; r1, and r5 if it is long, are overwritten.

        Args:
            area: where the bytes are.
            size: how many.
        """
        self.point(1, area)
        with self._rounds(size, (1,)) as chunk:
            for at in range(0, chunk, 8):
                self.asm.store_number(1, at, 0, 8)
        size -= size // _CHUNK * chunk
        at = 0
        for width in (8, 4, 2, 1):
            while size - at >= width:
                self.asm.store_number(1, at, 0, width)
                at += width

    def copy(self, source: Area, to: Area, size: int) -> None:
        """Copy bytes from one area to another; r1, r2 and r3 are overwritten, and r4 and r5 if it
        is long.

        Args:
            source: where they are copied from.
            to: where they are copied to.
            size: how many.
        """
        self.point(2, source)
        self.copy_from(2, to, size)

    def copy_from(self, register: int, to: Area, size: int) -> None:
        """Copy bytes from the address in a register to an area; r1 and r3 are overwritten, and r4
        and r5 if it is long.

        Args:
            register: number of the register.
            to: where they are copied to.
            size: bytes.
        """
        self.point(1, to)
        if size > _LONG:
            self.asm.move(4, register)
            register = 4
        with self._rounds(size, (1, 4)) as chunk:
            for at in range(0, chunk, 8):
                self.asm.load(3, 4, at, 8)
                self.asm.store(1, at, 3, 8)
        size -= size // _CHUNK * chunk
        at = 0
        for width in (8, 4, 2, 1):
            while size - at >= width:
                self.asm.load(3, register, at, width)
                self.asm.store(1, at, 3, width)
                at += width

    @contextmanager
    def _rounds(self, size: int, pointers: Sequence[int]) -> Iterator[int]:
        """Write a loop around the code that the body writes, if a size is large; r5 counts.

        Straight code for each word of a long text takes a compiler seconds.

        Args:
            size: bytes that the whole loop is for.
            pointers: registers that each round moves on by the bytes of a round.

        Yields:
            The bytes that a round is for; 0: there is no loop, and nothing is to be written.
        """
        if size <= _LONG:
            yield 0
            return
        again = self.asm.label()
        self.asm.set(5, size // _CHUNK)
        self.asm.place(again)
        yield _CHUNK
        for register in pointers:
            self.asm.compute_with("+", register, _CHUNK)
        self.asm.compute_with("-", 5, 1)
        self.asm.jump_if_number("!=", 5, 0, again)

    def transfer(self, source: Area, of: ValueType, to: Area, kind: ValueType) -> None:
        """Copy a value from one area to another, converted from its type to the other area's type.

        Numbers are extended or cut, items of tuples and fields of records (by name) converted one
        by one; all else is copied as bytes, cut or padded with zeros.

        Args:
            source: where the value lies.
            of: its type.
            to: where to.
            kind: the type of `to`.
        """
        if of == kind and not isinstance(kind, (types.TupleType, types.RecordType)):
            if source != to:
                self.copy(source, to, layout.room_of(kind))
        elif layout.is_number(kind):
            self._load(source, of)
            self.convert(of, kind)
            self.point(1, to)
            self.asm.store(1, 0, 0, layout.size_of(kind))
        elif isinstance(kind, types.TupleType) and isinstance(of, types.TupleType):
            self._gaps(kind, to)
            for (at, part), (there, whole) in zip(
                layout.members(of), layout.members(kind), strict=True
            ):
                self.transfer(source.at(at), part, to.at(there), whole)
        elif isinstance(kind, types.RecordType) and isinstance(of, types.RecordType):
            self._gaps(kind, to)
            fields = {field.name: field for field in of.fields}
            for field in kind.fields:
                self.transfer(
                    source.at(fields[field.name].offset),
                    fields[field.name].type,
                    to.at(field.offset),
                    field.type,
                )
        else:
            room = layout.room_of(of)
            rest = layout.room_of(kind)
            self.copy(source, to, min(room, rest))
            if rest > room:
                self.clear(to.at(room), rest - room)


_STATEMENTS: Final[dict[type, Callable[[BlockWriter, Any], None]]] = {
    tree.Evaluate: BlockWriter._evaluate,
    tree.Declare: BlockWriter._declare,
    tree.Assign: BlockWriter._assign,
    tree.While: BlockWriter._while,
    tree.Unroll: BlockWriter._unroll,
    tree.ForRange: BlockWriter._for_range,
    tree.ForMap: BlockWriter._for_map,
    tree.JumpStatement: BlockWriter._jump,
}
_NUMBERS: Final[dict[type, Callable[[BlockWriter, Any], None]]] = {
    tree.NumberLiteral: BlockWriter._literal,
    tree.BooleanLiteral: BlockWriter._literal,
    tree.ScratchVariable: BlockWriter._variable,
    tree.MapName: BlockWriter._map,
    tree.MapAccess: BlockWriter._map,
    tree.Name: BlockWriter._named,
    tree.FunctionCall: BlockWriter._named,
    tree.Unary: BlockWriter._unary,
    tree.Binary: BlockWriter._binary,
    tree.Conditional: BlockWriter._conditional,
    tree.FieldAccess: BlockWriter._field,
    tree.TupleAccess: BlockWriter._item,
    tree.Index: BlockWriter._index,
    tree.Cast: BlockWriter._cast,
    tree.SizeOf: BlockWriter._size,
    tree.OffsetOf: BlockWriter._size,
    tree.BlockExpression: BlockWriter._block_number,
    tree.CompileTime: BlockWriter._compile_time,
    tree.TypeArgument: BlockWriter._no_value,
}
