"""Types of all expressions, variables and maps of a script.

Variables, keys and values of maps take the type that holds everything assigned to them anywhere in
the script. So the script is walked until no type changes any more, and once more to say what is
wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from . import layout, tree, types
from .definitions import Definitions
from .names import AGGREGATES, TYPES
from .points import Point
from .promotion import Flexible, both, literal, name_of, promoted, settled
from .settings import Settings
from .source import Diagnostics, Span, did_you_mean
from .tree import Expression, Statement
from .types import IntegerType, ValueType
from .world import World

_COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")
_BOOLEAN: Final = types.BooleanType()
_COUNTING = ("++x", "--x", "x++", "x--")
_INT64 = IntegerType(64, True)
_UINT64 = IntegerType(64, False)


@define(eq=False)
class BlockVariable:
    """A scratch variable of one block.

    Attributes:
        name: its name, with its `$`.
        span: where it was first.
        type: found so far.
        fixed: True where a declaration says the type.
        assigned: True where it gets a value somewhere.
        filled: False between its declaration and its first value, as the walk goes.
    """

    name: str
    span: Span
    type: ValueType | None = None
    fixed: bool = False
    assigned: bool = False
    filled: bool = True


@define(eq=False)
class MapFacts:
    """A map.

    Attributes:
        name: its name, with its `@`.
        span: where it was first.
        key: type of its keys; None where there are none, or not known yet.
        value: type of its values, found so far.
        keyed: True for a map with keys, False for a scalar one, None: not known yet.
        kind: `hash` or what the declaration says.
        entries: the most keys; None: what the settings say.
    """

    name: str
    span: Span
    key: ValueType | None = None
    value: ValueType | None = None
    keyed: bool | None = None
    kind: str = "hash"
    entries: int | None = None


@frozen
class ArgumentPart:
    """A part of a named argument.

    Attributes:
        word: number of the context's word that has it, or the address where it is.
        size: bytes of the part.
        offset: bytes behind that address; None: the word itself has the part, in its lowest bytes.
    """

    word: int
    size: int
    offset: int | None = None


@frozen
class ArgumentSource:
    """The place of a named argument of a probe.

    Attributes:
        word: number of the context's word that has it, or the address where it is.
        offset: bytes behind that address; None: the word itself is the argument.
        parts: its parts in the order of its bytes, for one that lies in several words, or that is
            a structure; empty for others.
        reason: why its place is not known, as one clause; "": it is known.
        given: of a result, the register that has its address at the entry, which the context has as
            `word` at the return; "": it is elsewhere.
    """

    word: int
    offset: int | None = None
    parts: tuple[ArgumentPart, ...] = ()
    reason: str = ""
    given: str = ""

    @property
    def words(self) -> set[int]:
        """Numbers of the context's words that are needed to read it."""
        if self.reason:
            return set()
        return {part.word for part in self.parts} or {self.word}

    @property
    def in_memory(self) -> bool:
        """Whether a part of it, or all of it, is in guest memory."""
        return self.offset is not None or any(part.offset is not None for part in self.parts)


@frozen(kw_only=True)
class MarkerArgument:
    """How an argument of a USDT marker is read.

    Attributes:
        type: the argument's type.
        word: number of the context's word that has its register; None: there is no register.
        shift: bits of the register below the argument.
        number: what is added to the register; without one, the argument or its address.
        memory: True where the sum is an address.
    """

    type: IntegerType
    word: int | None = None
    shift: int = 0
    number: int = 0
    memory: bool = False


@define(eq=False)
class TypedProbe:
    """A probe's block for attach points that have the same types.

    Attributes:
        probe: the tree.
        points: the attach points.
        arguments: type of `args`, or None.
        result: type of `retval`, or None for a plain word.
        sources: name of an argument -> where it is.
        result_source: where `retval` is, if it is of a type that is no word; None: it is in the
            context's word for results, or nowhere.
        operands: number of a USDT marker's argument that the block reads -> how it is read.
    """

    probe: tree.ProbeDefinition
    points: list[Point]
    arguments: types.StructType | None = None
    result: ValueType | None = None
    sources: Mapping[str, ArgumentSource] = field(factory=dict)
    result_source: ArgumentSource | None = None
    operands: Mapping[int, MarkerArgument] = field(factory=dict)

    @property
    def entry_words(self) -> set[int]:
        """Numbers of the context's words that are those of the entry: at fexit, the arguments'."""
        if not any(point.returns for point in self.points):
            return set()
        return set().union(*(source.words for source in self.sources.values()))


@define(eq=False)
class Typing:
    """The known types of a script.

    Attributes:
        of: expression -> type.
        slots: variable -> what it stands for.
        maps: name -> map.
        probes: the blocks.
        sizes: SizeOf, OffsetOf -> number.
        described: TypeInfo -> the type that it tells of.
    """

    probes: list[TypedProbe]
    of: dict[Expression, ValueType] = field(factory=dict)
    slots: dict[tree.ScratchVariable, BlockVariable] = field(factory=dict)
    maps: dict[str, MapFacts] = field(factory=dict)
    sizes: dict[Expression, int] = field(factory=dict)
    described: dict[tree.TypeInfo, ValueType] = field(factory=dict)


class Inference(ABC):
    """The inference of types, one walk after the other through a script.

    Methods named after a kind of node walk through it, note errors, and return its type; None where
    it is not known yet, or wrong.

    Attributes:
        typing: types found so far.
        definitions: C types and constants of the script.
        world: the guest.
        settings: the script's settings.
        unsafe: True where functions that change the guest, or run programs of the host, are
            allowed.
        found: where errors and warnings go.
        final: True in the last walk, whose errors count.
        changed: True once a type has changed in this walk.
        probe: the block that is walked.
        early: (text, place) of warnings that come before those of types.
    """

    def __init__(
        self,
        typing: Typing,
        definitions: Definitions,
        world: World,
        settings: Settings,
        unsafe: bool,
        found: Diagnostics,
    ) -> None:
        """Begin before the first walk.

        Args:
            typing: takes the types.
            definitions: C types and constants of the script.
            world: the guest.
            settings: the script's settings.
            unsafe: True where functions that change the guest, or run programs of the host, are
                allowed.
            found: where errors and warnings go.
        """
        self.typing = typing
        self.definitions = definitions
        self.world = world
        self.settings = settings
        self.unsafe = unsafe
        self.found = found
        self.final = self.changed = False
        self.probe: TypedProbe
        self.early: set[tuple[str, Span | None]] = set()
        self._scopes: list[dict[str, BlockVariable]] = []
        self._loops = self._measured = 0
        self._known: dict[str, int] = {}

    # --- what builtins and functions are: see Deduction

    @abstractmethod
    def aggregate(self, node: tree.FunctionCall) -> types.AggregateType | None:
        """Return the type of a map that is assigned by `count()` and its like.

        Returns:
            None: not known yet, or an error was noted.
        """

    @abstractmethod
    def named(self, node: tree.Name) -> ValueType | None:
        """Return the type of a name: a builtin, an enumerator or a constant.

        Returns:
            None: not known yet, or an error was noted.
        """

    @abstractmethod
    def called(self, node: tree.FunctionCall) -> ValueType | None:
        """Return the type of a call, after walking its arguments.

        Returns:
            None: not known yet, or an error was noted.
        """

    @abstractmethod
    def constant(self, node: Expression) -> str | int | None:
        """Return the value that an expression has at compile time; None: it has none. Notes no
        error.
        """

    # --- messages

    def error(self, text: str, at: tree.Node | Span, *hints: str) -> None:
        """Note an error.

        Args:
            text: what is wrong.
            at: the part of the script that it is about.
            hints: what to do.
        """
        self.found.error(text, at if isinstance(at, Span) else at.span, *hints)

    def warn(self, text: str, at: tree.Node, *hints: str, early: bool = False) -> None:
        """Note a warning, in the last walk only, when types are final.

        Args:
            text: what is doubtful.
            at: the node that it is about.
            hints: what to do.
            early: True for what bpftrace finds, and says, before it knows any types: such warnings
                come first.
        """
        if self.final:
            self.found.warn(text, at.span, *hints)
            if early:
                self.early.add((text, at.span))

    # --- walking

    def declare(self, declaration: tree.MapDeclaration) -> None:
        """Enter the kind and the number of entries of a declared map.

        A kind that does not exist is an error, and nothing is entered. Fewer than 1 entry is an
        error, too, but entered.

        Args:
            declaration: `let @x = KIND(ENTRIES)`.
        """
        known = ("hash", "lruhash", "percpuhash", "percpulruhash", "percpuarray", "array")
        if declaration.kind not in known:
            self.error(
                f"Invalid bpf map type: {declaration.kind}",
                declaration,
                f"Valid map types: {', '.join(known[:4])}",
            )
            return
        if declaration.entries < 1:
            self.error("max entries of a map is a number above 0", declaration)
        facts = self.map(declaration.name, declaration.span)
        facts.kind = declaration.kind
        facts.entries = declaration.entries

    def walk(self) -> None:
        """Walk through all blocks once, and widen types; `changed` tells whether any has
        changed.
        """
        for probe in self.typing.probes:
            self.probe = probe
            self._scopes = [{}]
            self._loops = 0
            if probe.probe.predicate is not None:
                self.condition(probe.probe.predicate)
            self.block(probe.probe.body)

    def default(self) -> bool:
        """Give a signed integer type to maps that are counted or read, and whose values have no
        type yet.

        Such is a map that only gets values of its own, as by `@x++`. Called after a walk that has
        changed nothing.

        Returns:
            True where there was such a map: another walk is needed.
        """
        some = False
        for facts in self.typing.maps.values():
            if facts.value is None and facts.keyed is not None and facts.name in self._known:
                facts.value = Flexible(8, True)
                some = True
        return some

    def block(self, block: tree.BlockExpression) -> ValueType | None:
        """Walk through a block, with a scope of its own; warn of statements that cannot be reached.

        Returns:
            The type of the block's value; VoidType() where it has none; None: not known yet, or
            wrong.
        """
        self._scopes.append({})
        left = False
        for statement in block.statements:
            if left:
                self.warn("Unreachable statement.", statement)
            self.statement(statement)
            left = isinstance(statement, tree.JumpStatement) or (
                isinstance(statement, tree.Evaluate)
                and isinstance(statement.expression, tree.FunctionCall)
                and statement.expression.name == "exit"
            )
        result: ValueType | None = types.VoidType()
        if block.value is not None:
            result = self.type(block.value)
        self._scopes.pop()
        return result

    def statement(self, statement: Statement) -> None:
        """Walk through one statement."""
        _STATEMENTS[type(statement)](self, statement)

    def _evaluate(self, statement: tree.Evaluate) -> None:
        """Walk through an expression that is a statement.

        Warn where its value is dropped, unless it is that of `++` or `--`, or assigned to `_`.

        An aggregate's call, such as count(), that is not assigned to a map is an error.
        """
        expression = statement.expression
        if isinstance(expression, tree.FunctionCall) and expression.name in AGGREGATES:
            self.error(
                f"{expression.name}() must be assigned directly to a map",
                expression,
                f"@ = {expression.name}({'...' if expression.arguments else ''})",
            )
            return
        result = self.type(expression)
        counted = isinstance(expression, tree.Unary) and expression.operator in _COUNTING
        nothing = result is None or isinstance(result, types.VoidType)
        if not (counted or nothing or statement.discarded):
            self.warn("Return value discarded.", expression)

    def _declare(self, statement: tree.Declare) -> None:
        """Walk through `let $x: type = value`: enter the variable in the innermost scope.

        Notes an error where the name is declared already or the value does not fit the type, and a
        warning where nothing is assigned anywhere. A declared type stays as it is, whatever is
        assigned later; one without a size (`string`) counts as none.
        """
        variable = statement.variable
        if self._is_shadowing(variable):
            self.error(
                f"Variable {variable.name.partition('#')[0]} was already declared. Variable "
                "shadowing is not allowed.",
                statement.span.to(variable.span),
            )
        slot = self.typing.slots.get(variable) or BlockVariable(variable.name, variable.span)
        self._scopes[-1][variable.name] = slot
        self.typing.slots[variable] = slot
        value = self.type(statement.value) if statement.value is not None else None
        slot.filled = statement.value is not None
        if statement.value is None and not slot.assigned:
            self.warn(f"Variable {variable.name} was never assigned to.", statement, early=True)
        if statement.type is not None:
            written = self.written(statement.type)
            if written is not None and _sized(written):
                slot.fixed = True
                self._set(slot, written)
                if statement.value is not None and value is not None:
                    self._fits(slot, value, statement.value, statement)
                return
        if statement.value is not None and value is not None:
            self.assign(slot, value, statement)

    def _fits(self, slot: BlockVariable, value: ValueType, node: Expression, at: tree.Node) -> None:
        """Note an error where a value does not fit the type that a declaration gives a variable.

        A literal must be in the range of an integer type, another integer must not be wider; for
        all other types the type that holds both must be the declared one.

        Args:
            slot: the variable.
            value: type of the value.
            node: the value.
            at: where the error is shown.
        """
        assert slot.type is not None
        kind = slot.type
        if isinstance(kind, IntegerType) and isinstance(node, tree.NumberLiteral):
            low, high = (
                (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1)
                if kind.signed
                else (0, (1 << kind.bits) - 1)
            )
            if not low <= node.value <= high:
                self.error(
                    f"Type mismatch for {slot.name}: trying to assign value of type "
                    f"'{name_of(value)}' when variable already has a type '{name_of(kind)}'",
                    at,
                )
            return
        if isinstance(kind, IntegerType) and isinstance(value, IntegerType):
            if value.bits > kind.bits:
                self.error(
                    f"Type mismatch for {slot.name}: trying to assign value of type "
                    f"'{name_of(value)}' when variable already has a type '{name_of(kind)}'",
                    at,
                )
            return
        together = promoted(kind, value)
        if together is None or settled(together) != kind:
            self.error(
                f"Type mismatch for {slot.name}: trying to assign value of type '{name_of(value)}' "
                f"when variable already has a type '{name_of(kind)}'",
                at,
            )

    def assign(self, slot: BlockVariable, value: ValueType, at: tree.Node) -> None:
        """Widen a variable's type so that it holds a value, too; note an error where no type does.

        A type that a declaration has fixed stays. An aggregate counts as the integer that it is
        read as. To assign no value (VoidType), or an aggregate that cannot be read, is an error.

        Args:
            slot: the variable; its type is changed.
            value: type of the value.
            at: the assignment, for errors.
        """
        if isinstance(value, types.VoidType):
            self.error(f"Invalid expression for assignment: {slot.name} is given no value", at)
            return
        if isinstance(value, types.AggregateType):
            value = self.readable(value, at) or value
        if slot.fixed:
            return
        together = value if slot.type is None else promoted(slot.type, value)
        if together is None:
            self.error(
                f"Type mismatch for {slot.name}: trying to assign value of type '{name_of(value)}' "
                f"when variable already has a type '{name_of(slot.type)}'",
                at,
            )
        else:
            self._set(slot, together)

    def _set(self, slot: BlockVariable, value: ValueType) -> None:
        """Set a variable's type; set `changed` where the type was another one.

        Args:
            slot: the variable.
            value: the type.
        """
        if slot.type != value:
            slot.type = value
            self.changed = True

    def _assign(self, statement: tree.Assign) -> None:
        """Walk through an assignment: widen the type of the variable, or of the map's keys and
        values.

        A variable that is not declared is entered in the innermost scope. Notes an error where the
        value does not fit the variable's declared type.
        """
        target = statement.target
        if isinstance(target, tree.ScratchVariable):
            value = self.type(statement.value)
            slot = self._find(target.name)
            if slot is None:
                slot = self.typing.slots.get(target) or BlockVariable(target.name, target.span)
                self._scopes[-1][target.name] = slot
            self.typing.slots[target] = slot
            slot.assigned = slot.filled = True
            if value is not None:
                self.assign(slot, value, statement)
                if slot.fixed:
                    self._fits(slot, value, statement.value, statement)
                self.typing.of[target] = slot.type or value
                self._warn_of_sign(statement.value, value, slot.type)
            return
        self.key(target)
        value = self._assigned(statement.value)
        if value is not None:
            self.assign_map(target, value, statement)
            self._warn_of_sign(statement.value, value, self._facts(target).value)

    def _assigned(self, value: Expression) -> ValueType | None:
        """Walk what is assigned to a map, and return its type; None: not known yet, or wrong.

        Here, and only here, count() and its like are allowed (`count` also without parentheses, and
        the calls also at the end of a block). Their type is entered in `typing`, but not that of a
        call at the end of a block.
        """
        if isinstance(value, tree.FunctionCall) and value.name in AGGREGATES:
            made = self.aggregate(value)
            if made is not None:
                self.typing.of[value] = made
            return made
        if (
            isinstance(value, tree.BlockExpression)
            and isinstance(value.value, tree.FunctionCall)
            and value.value.name in AGGREGATES
        ):
            self._scopes.append({})
            for statement in value.statements:
                self.statement(statement)
            made = self.aggregate(value.value)
            self._scopes.pop()
            return made
        if isinstance(value, tree.Name) and value.name == "count":
            made = types.CountType()
            self.typing.of[value] = made
            return made
        return self.type(value)

    def assign_map(
        self, target: tree.MapName | tree.MapAccess, value: ValueType, at: tree.Node
    ) -> None:
        """Widen the type of a map's values to hold a value, too; note an error where none does.

        An aggregate stays one only where `at` assigns a call such as count(); else it counts as the
        integer that it is read as. To assign no value is an error, and so is a plain value for a
        map of aggregates.

        Args:
            target: the map, or the map with a key.
            value: type of the value.
            at: the assignment, for errors.
        """
        facts = self._facts(target)
        whole = (
            isinstance(at, tree.Assign)
            and isinstance(at.value, tree.FunctionCall | tree.Name | tree.BlockExpression)
            and isinstance(value, types.AggregateType)
        )
        if isinstance(value, types.VoidType):
            self.error(f"Invalid expression for assignment: {facts.name} is given no value", at)
            return
        if isinstance(value, types.AggregateType) and not whole:
            value = self.readable(value, at) or value
        if isinstance(facts.value, types.AggregateType) and not isinstance(
            value, types.AggregateType
        ):
            self.error(
                f"Type mismatch for {facts.name}: trying to assign value of type "
                f"'{name_of(value)}' when map already has a type '{name_of(facts.value)}'",
                at,
            )
            return
        together = value if facts.value is None else promoted(facts.value, value)
        if together is None:
            self.error(
                f"Type mismatch for {facts.name}: trying to assign value of type "
                f"'{name_of(value)}' when map already has a type '{name_of(facts.value)}'",
                at,
            )
        elif facts.value != together:
            facts.value = together
            self.changed = True

    def map(self, name: str, span: Span) -> MapFacts:
        """Return the MapFacts of a map; for a name that is new, empty ones are entered in `typing`.

        Args:
            name: its name, with its `@`.
            span: where it is named.
        """
        facts = self.typing.maps.get(name)
        if facts is None:
            facts = self.typing.maps[name] = MapFacts(name, span)
        return facts

    def _facts(self, target: tree.MapName | tree.MapAccess) -> MapFacts:
        """Return the MapFacts of the map that is read or written.

        Args:
            target: the map, or the map with a key.
        """
        named = target if isinstance(target, tree.MapName) else target.map
        return self.map(named.name, named.span)

    def key(self, target: tree.MapName | tree.MapAccess) -> MapFacts:
        """Widen the type of a map's keys so that it holds the key of an access; return the map.

        The map is noted as used, and as one with or without keys. An error is noted where it is
        used with keys in one place and without in another.

        Args:
            target: the map, or the map with a key.
        """
        facts = self._facts(target)
        self._known.setdefault(facts.name, 1)
        keyed = isinstance(target, tree.MapAccess)
        if facts.keyed is None:
            facts.keyed = keyed
            self.changed = True
        elif facts.keyed != keyed:
            if keyed:
                self.error(
                    f"{facts.name} used as a map with an explicit key (non-scalar map), previously "
                    "used without an explicit key (scalar map)",
                    target,
                )
            else:
                self.error(
                    f"{facts.name} used as a map without an explicit key (scalar map), previously "
                    "used with an explicit key (non-scalar map)",
                    target,
                )
            return facts
        if isinstance(target, tree.MapAccess):
            self.widen_key(facts, target.key, target)
        return facts

    def widen_key(self, facts: MapFacts, node: Expression, at: tree.Node) -> None:
        """Widen the type of a map's keys so that it holds the type of one more key.

        An aggregate counts as the integer that it is read as. Note an error where no type holds
        both, or the key has no value that can be read.

        Args:
            facts: the map; its key type is changed.
            node: the key, which is walked.
            at: where errors are shown.
        """
        key = self.type(node)
        if key is None:
            return
        if isinstance(key, types.AggregateType):
            key = self.readable(key, node) or key
        if isinstance(key, (types.VoidType, types.AggregateType)):
            self.error(f"Invalid map key type: {name_of(key)}", node)
            return
        together = key if facts.key is None else promoted(facts.key, key)
        if together is None:
            assert facts.key is not None
            self.error(
                f"Argument mismatch for {facts.name}: trying to access with arguments: "
                f"'{name_of(key)}' when map expects arguments: '{name_of(facts.key)}'",
                at,
            )
        elif facts.key != together:
            facts.key = together
            self.changed = True

    def _while(self, statement: tree.While) -> None:
        """Walk through a while loop; note the warning that such loops are deprecated."""
        self.warn(
            "While loops are deprecated and may be removed in the future.",
            statement,
            "For loops support ranges (e.g. `for ($x : $start..$end) { ... }`), and can be "
            "used in place of while. These are more easily proven to be bounded by the "
            "verifier.",
            early=True,
        )
        self.condition(statement.condition)
        self._loop(statement.body)

    def _loop(self, body: tree.BlockExpression) -> None:
        """Walk through a loop's body; while it is walked, `break` and `continue` are allowed."""
        self._loops += 1
        self.block(body)
        self._loops -= 1

    def _unroll(self, statement: tree.Unroll) -> None:
        """Walk through an unrolled loop's body once; note an error unless its count is a literal, 1
        to 100.
        """
        count = statement.count
        if not isinstance(count, tree.NumberLiteral):
            self.error("unroll() expects an integer literal", count)
        elif not 1 <= count.value <= 100:
            self.error(
                "unroll minimum value is 1" if count.value < 1 else "unroll maximum value is 100",
                count,
            )
        self._loop(statement.body)

    def _for_range(self, statement: tree.ForRange) -> None:
        """Walk through a loop over numbers; note an error where a bound is no integer. The loop's
        variable is a signed integer of 64 bits.
        """
        for bound in (statement.first, statement.last):
            kind = self.type(bound)
            if kind is not None and not isinstance(kind, (IntegerType, types.EnumType)):
                self.error(
                    "Loop range requires an integer for the "
                    f"{'start' if bound is statement.first else 'end'} value, got "
                    f"'{name_of(kind)}'",
                    bound,
                )
        self._each(statement.variable, _INT64, statement.body)

    def _each(
        self, variable: tree.ScratchVariable, value: ValueType, body: tree.BlockExpression
    ) -> None:
        """Walk through the body of a for loop; note an error where its variable's name is in use.

        Args:
            variable: the loop's variable, which is known in the body only.
            value: the type that the variable has.
            body: the loop's statements.
        """
        if self._is_shadowing(variable):
            self.error(f"Loop declaration shadows existing variable: {variable.name}", variable)
        slot = self.typing.slots.get(variable) or BlockVariable(variable.name, variable.span)
        self.typing.slots[variable] = slot
        self._set(slot, value)
        self._scopes.append({variable.name: slot})
        self._loop(body)
        self._scopes.pop()

    def _for_map(self, statement: tree.ForMap) -> None:
        """Walk through a loop over a map's entries; its variable is a tuple (key, value).

        While the types of the map are not known, key and value count as integers of 64 bits. Notes
        an error where the map has no keys (the body is not walked then), and in the last walk where
        nothing is assigned to it.
        """
        facts = self.map(statement.map.name, statement.map.span)
        if facts.keyed is False:
            self.error(
                f"{facts.name} has no explicit keys (scalar map), and cannot be used for iteration",
                statement.map,
            )
            return
        if facts.key is None or facts.value is None:
            if self.final:
                self.error(
                    f"Undefined map: {facts.name}",
                    statement.map,
                    *did_you_mean(facts.name, self.known_maps()),
                )
            self._each(statement.variable, types.TupleType((_INT64, _INT64)), statement.body)
            return
        value = facts.value
        if isinstance(value, types.AggregateType):
            readable = self.readable(value, statement.map)
            value = readable if readable is not None else _INT64
        self._each(
            statement.variable,
            types.TupleType((settled(facts.key), settled(value))),
            statement.body,
        )

    def _jump(self, statement: tree.JumpStatement) -> None:
        """Walk through `return`, `break` or `continue`; `break` and `continue` are errors outside a
        loop.
        """
        if statement.value is not None:
            self.type(statement.value)
        if statement.kind != "return" and not self._loops:
            self.error(
                f"The {statement.kind} statement can only be used inside of a loop.", statement
            )

    # --- names

    def _is_shadowing(self, declared: tree.ScratchVariable) -> bool:
        """Return True where a declared variable's name means another variable until then."""
        known = self._find(declared.name)
        return known is not None and known is not self.typing.slots.get(declared)

    def _find(self, name: str) -> BlockVariable | None:
        """Return the variable that a name means here; None: there is none."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def fill(self, variable: tree.ScratchVariable) -> None:
        """Note that a function assigns a value to a variable, where one of its name is known."""
        slot = self._find(variable.name)
        if slot is not None:
            slot.assigned = slot.filled = True

    def known_maps(self) -> list[str]:
        """Return the names of maps that something is assigned to."""
        return [name for name, facts in self.typing.maps.items() if facts.value is not None]

    # --- expressions

    def type(self, node: Expression) -> ValueType | None:
        """Walk through an expression, enter its type in `typing.of`, and return the type.

        Returns:
            None: not known yet, or an error was noted; then nothing is entered.
        """
        result: ValueType | None = _EXPRESSIONS[type(node)](self, node)
        if result is not None:
            self.typing.of[node] = result
        return result

    def number(self, node: Expression, what: str) -> IntegerType | None:
        """Return the type of an expression that must count as an integer.

        Args:
            node: the expression.
            what: the error if it does not, with `{}` for its type.

        Returns:
            The type; None: not known yet, or an error was noted.
        """
        result = self.type(node)
        if result is None:
            return None
        found = self.as_integer(result, node)
        if found is None:
            self.error(what.format(name_of(result)), node)
        return found

    def as_integer(self, type: ValueType, at: tree.Node) -> IntegerType | None:
        """Return the integer type that a value counts as. Notes no error.

        Args:
            type: the value's type: an integer, enumerator, boolean, or an aggregate that is read as
                an integer.
            at: the expression.

        Returns:
            An integer type itself; the integer of an enumeration's size and sign; 8 bits, unsigned,
            for a boolean; what readable() says for an aggregate. None: it counts as no integer.
        """
        if isinstance(type, IntegerType):
            return type
        if isinstance(type, types.EnumType):
            return IntegerType(type.bits, type.signed)
        if isinstance(type, types.BooleanType):
            return IntegerType(8, False)
        if isinstance(type, types.AggregateType):
            readable = self.readable(type, at, False)
            return readable if isinstance(readable, IntegerType) else None
        return None

    def readable(self, type: ValueType, at: tree.Node, loud: bool = True) -> ValueType | None:
        """Return the type that a map's aggregate, such as count(), has where a script reads it.

        Args:
            type: the aggregate's type.
            at: the expression, for the error.
            loud: True to note an error where it cannot be read.

        Returns:
            An integer type; None: it cannot be read as a number (a histogram, a series, stats()).
        """
        if isinstance(type, types.CountType):
            return _INT64
        if isinstance(
            type, (types.SumType, types.AverageType, types.MinimumType, types.MaximumType)
        ):
            return IntegerType(64, type.signed)
        if loud:
            self.error(
                f"Map value '{name_of(type)}' cannot be assigned from one map to another, or read "
                "by a script. The function that returns this type must be called directly on a "
                "map",
                at,
                "print() shows it",
            )
        return None

    def condition(self, node: Expression) -> None:
        """Walk through a condition; it is an error unless it is a number, a pointer or a
        boolean.
        """
        result = self.type(node)
        if (
            result is None
            or isinstance(result, types.PointerType)
            or self.as_integer(result, node) is not None
        ):
            return
        self.error(f"Invalid condition: {name_of(result)}", node)

    def _number(self, node: tree.NumberLiteral) -> ValueType:
        """Return the type of a number."""
        return literal(node.value)

    def _text(self, node: tree.StringLiteral) -> ValueType:
        """Return the type of a literal string."""
        return types.StringType(len(node.value) + 1)

    def _variable(self, node: tree.ScratchVariable) -> ValueType | None:
        """Return a scratch variable's type, and note in `typing` which variable the node means.

        An undeclared name is an error; a variable that is read before it has a value, a warning. In
        the last walk a variable still without a type becomes a signed integer of 8 bits.

        Args:
            node: the variable, where it is read.

        Returns:
            None: the name is undeclared, or no type is known yet.
        """
        slot = self._find(node.name)
        if slot is None:
            names = {name for scope in self._scopes for name in scope}
            self.error(
                f"Undefined or undeclared variable: {node.name.partition('#')[0]}",
                node,
                *did_you_mean(node.name, names),
            )
            return None
        self.typing.slots[node] = slot
        if not slot.filled and not self._measured:
            name = slot.name.partition("#")[0]
            self.warn(f"Variable used before it was assigned: {name}", node, early=True)
        if slot.type is None and self.final:
            self._set(slot, IntegerType(8, True))
        return slot.type

    def _whole_map(self, node: tree.MapName) -> ValueType | None:
        """Return the type of a map that is read without a key; None: not known yet, or an error was
        noted.
        """
        facts = self.key(node)
        return self._value_of(facts, node)

    def _value_of(self, facts: MapFacts, node: tree.Node) -> ValueType | None:
        """Return the type of a map's values.

        In the last walk, a map that nothing is assigned to is an error.

        Args:
            facts: the map.
            node: where the map is read, for the error.

        Returns:
            None: the type is not known.
        """
        if facts.value is None and self.final:
            self.error(
                f"Undefined map: {facts.name}", node, *did_you_mean(facts.name, self.known_maps())
            )
        return facts.value

    def _map_access(self, node: tree.MapAccess) -> ValueType | None:
        """Walk through a read of a map's entry, and return the type of the map's values.

        Returns:
            None: not known yet, or an error was noted.
        """
        return self._value_of(self.key(node), node.map)

    def _parameter(self, node: tree.Parameter) -> ValueType:
        """Return the type of a positional parameter that is still in the tree: an integer of 64
        bits.
        """
        return _INT64

    def _name(self, node: tree.Name) -> ValueType | None:
        """Return the type of a name."""
        return self.named(node)

    def _call(self, node: tree.FunctionCall) -> ValueType | None:
        """Return the type of a call."""
        return self.called(node)

    def _type_argument(self, node: tree.TypeArgument) -> ValueType | None:
        """Return the type that `typeof(...)` is."""
        return self.written(node.type)

    def _unary(self, node: tree.Unary) -> ValueType | None:
        """Return the type of an operator with one operand; `++` and `--` also widen the operand's
        type.

        `!` gives a boolean, `-` a signed and `~` an integer of 64 bits, `*` the pointer's target
        (of an integer: an unsigned one of 64 bits; of `args`: the structure itself), `&` a pointer.
        For `-` and `~`, a boolean is an error.

        Returns:
            None: not known yet, or an error was noted.
        """
        operator = node.operator
        if operator in _COUNTING:
            return self._count(node)
        if operator == "&":
            result = self.type(node.operand)
            if isinstance(node.operand, tree.MapName):
                return types.PointerType(types.VoidType())
            return types.PointerType(result) if result is not None else None
        result = self.type(node.operand)
        if result is None:
            return None
        if operator == "!":
            if isinstance(result, types.PointerType) or self.as_integer(result, node) is not None:
                return _BOOLEAN
        elif operator == "*":
            if isinstance(result, types.PointerType):
                return self.completed(result.target)
            if isinstance(result, IntegerType):
                return _UINT64
            if isinstance(result, types.StructType) and isinstance(node.operand, tree.Name):
                return result
            self.error(f"Can not dereference type '{name_of(result)}'. It is not a pointer.", node)
            return None
        elif (number := self.as_integer(result, node)) is not None and not isinstance(
            result, types.BooleanType
        ):
            if operator == "-":
                return _INT64
            return IntegerType(64, number.signed)
        self.error(
            f"The {operator} operator can not be used on expressions of type '{name_of(result)}'",
            node,
        )
        return None

    def _count(self, node: tree.Unary) -> ValueType | None:
        """Return the type of `++` or `--`; the variable or map becomes 64 bits wide.

        Pointers, and variables whose declaration fixes the type, keep theirs.

        Returns:
            None: not known yet, as for a map that is only counted up, or an error was noted.
        """
        operand = node.operand
        down = "-" in node.operator
        if isinstance(operand, tree.ScratchVariable):
            result = self.type(operand)
            if result is None or isinstance(result, types.PointerType):
                return result
            if not isinstance(result, IntegerType):
                self.error(
                    f"The {node.operator.strip('x')} operator can not be used on expressions of "
                    f"type '{name_of(result)}'",
                    node,
                )
                return None
            slot = self.typing.slots[operand]
            if slot.fixed:
                return slot.type
            wide = IntegerType(64, down or result.signed)
            self.assign(slot, wide, node)
            return wide
        assert isinstance(operand, tree.MapName | tree.MapAccess)
        facts = self.key(operand)
        value = facts.value
        if isinstance(value, types.PointerType):
            return value
        if value is not None and not isinstance(value, IntegerType):
            self.error(
                f"Type mismatch for {facts.name}: trying to assign value of type 'int64' when map "
                f"already has a type '{name_of(value)}'",
                node,
            )
            return None
        wide = IntegerType(64, True if down or value is None else value.signed)
        if value is None and not down:
            self._known[facts.name] = 1
            return None
        self.assign_map(operand, wide, node)
        self.typing.of[operand] = facts.value or wide
        return wide

    def _binary(self, node: tree.Binary) -> ValueType | None:
        """Return the type of an operator with two operands, after walking both.

        Comparisons, `&&` and `||` give a boolean, arithmetic gives an integer of 64 bits, or a
        pointer where one operand is one.

        Returns:
            None: not known yet, or an error was noted.
        """
        left = self.type(node.left)
        right = self.type(node.right)
        if left is None or right is None:
            return None
        if node.operator in ("&&", "||"):
            for side, kind in ((node.left, left), (node.right, right)):
                if not isinstance(kind, types.PointerType) and self.as_integer(kind, side) is None:
                    self._mismatch(node, left, right)
                    return None
            return _BOOLEAN
        if node.operator in _COMPARISONS:
            return self._comparison(node, left, right)
        if isinstance(left, types.PointerType) or isinstance(right, types.PointerType):
            return self._pointer(node, left, right)
        a = self.as_integer(left, node.left)
        b = self.as_integer(right, node.right)
        if (
            a is None
            or b is None
            or isinstance(left, types.BooleanType)
            or isinstance(right, types.BooleanType)
        ):
            self._mismatch(node, left, right)
            return None
        result = self._arithmetic(node, a, b)
        self._warn_of_sign(node.left, left, result)
        self._warn_of_sign(node.right, right, result)
        return result

    def _warn_of_sign(self, node: Expression, kind: ValueType, target: ValueType | None) -> None:
        """Warn where an unsigned number of 64 bits becomes a signed one, which may not hold it.

        Args:
            node: the number; a literal is not warned of.
            kind: its type.
            target: the type that it gets.
        """
        if kind == _UINT64 and target == _INT64 and not isinstance(node, tree.NumberLiteral):
            self.warn(
                "Expression of type: uint64 being cast to type: int64. This may cause "
                "unexpected results. Use an explicit cast to suppress this warning.",
                node,
            )

    def _arithmetic(self, node: tree.Binary, a: IntegerType, b: IntegerType) -> ValueType:
        """Return the type of arithmetic on two integers, of 64 bits; warn of divisions with mixed
        signs.

        It is signed for `-`, as the left operand is for a shift, and else as the type that holds
        both.

        Args:
            node: the expression.
            a: type of its left operand.
            b: type of its right operand.
        """
        if node.operator in ("/", "%"):
            signs = [kind.signed for kind in (a, b)]
            for at, kind in enumerate((a, b)):
                if isinstance(kind, Flexible):
                    signs[at] = signs[1 - at]
            if any(signs) and (a.bits, signs[0]) != (b.bits, signs[1]):
                self.warn(
                    f"signed operands for '{node.operator}' can lead to undefined behavior (cast "
                    "to unsigned to silence warning)",
                    node,
                )
        if node.operator == "-":
            return _INT64
        if node.operator in ("<<", ">>"):
            return IntegerType(64, a.signed)
        together = both(a, b)
        return IntegerType(64, together.signed)

    def _mismatch(self, node: tree.Binary, left: ValueType, right: ValueType) -> None:
        """Note the error of an operator that cannot be used with its operands.

        Args:
            node: the expression.
            left: type of its left operand.
            right: type of its right operand.
        """
        if isinstance(left, types.ArrayType) or isinstance(right, types.ArrayType):
            self.error(f"The {node.operator} operator cannot be used on arrays.", node)
            return
        self.error(
            f"The {node.operator} operator can not be used on expressions of types "
            f"{name_of(left)}, {name_of(right)}",
            node,
        )

    def _pointer(self, node: tree.Binary, left: ValueType, right: ValueType) -> ValueType | None:
        """Return the type of `+` or `-` with a pointer; note an error where it has no meaning.

        Args:
            node: the expression.
            left: type of its left operand.
            right: type of its right operand.

        Returns:
            The pointer's type; None after an error.
        """
        if (
            isinstance(left, types.PointerType) and isinstance(right, types.PointerType)
        ) or node.operator not in ("+", "-"):
            self._mismatch(node, left, right)
            return None
        pointer, number = (left, right) if isinstance(left, types.PointerType) else (right, left)
        if self.as_integer(number, node) is None or (node.operator == "-" and pointer is right):
            self._mismatch(node, left, right)
            return None
        return pointer

    def _comparison(self, node: tree.Binary, left: ValueType, right: ValueType) -> ValueType | None:
        """Return the type of a comparison, a boolean; note an error where it has no meaning.

        Args:
            node: the comparison.
            left: type of its left operand.
            right: type of its right operand.

        Returns:
            A boolean, also after the error of arrays, strings or tuples of unlike types; None after
            any other error.
        """
        whole = node.operator in ("==", "!=")
        numbers = [
            isinstance(kind, types.PointerType) or self.as_integer(kind, node) is not None
            for kind in (left, right)
        ]
        if all(numbers):
            if isinstance(left, IntegerType) and isinstance(right, IntegerType):
                together = both(left, right)
                self._warn_of_sign(node.left, left, together)
                self._warn_of_sign(node.right, right, together)
            return _BOOLEAN
        same = promoted(left, right) is not None
        texts = (
            types.StringType,
            types.BufferType,
            types.ArrayType,
            types.TupleType,
            types.RecordType,
        )
        if isinstance(left, types.TextType) and left == right and left.kind == "inet" and whole:
            return _BOOLEAN
        if isinstance(left, texts) and isinstance(right, texts) and whole:
            if (
                isinstance(left, types.ArrayType)
                and isinstance(right, types.ArrayType)
                and left != right
            ):
                self.error("Only arrays of same size support comparison operators.", node)
            elif not same and not (
                isinstance(left, types.StringType) and isinstance(right, types.StringType)
            ):
                self.error(
                    f"Type mismatch for '{node.operator}': comparing {name_of(left)} with "
                    f"{name_of(right)}",
                    node,
                )
            return _BOOLEAN
        if isinstance(left, texts) and isinstance(right, texts) and same:
            self.error(
                f"The {node.operator} operator can not be used on expressions of types "
                f"{name_of(left)}, {name_of(right)}",
                node,
            )
            return None
        self.error(
            f"Type mismatch for '{node.operator}': comparing {name_of(left)} with {name_of(right)}",
            node,
        )
        return None

    def _conditional(self, node: tree.Conditional) -> ValueType | None:
        """Return the type of `a ? b : c`, or of `if`.

        Where the condition is `comptime`, only the branch that is taken is walked.

        Returns:
            The type that holds both branches' values; VoidType() where one of them has none; None:
            not known yet, or an error was noted. Where the type of one branch is not known yet, the
            other's.
        """
        if isinstance(node.condition, tree.CompileTime):
            known = self.known(node.condition.operand)
            if known is not None:
                chosen = node.then if known else node.otherwise
                return self.type(chosen) if chosen is not None else types.VoidType()
            if self.final:
                self.error("Unable to evaluate at compile time.", node.condition)
            return None
        self.condition(node.condition)
        then = self.type(node.then)
        otherwise = self.type(node.otherwise) if node.otherwise is not None else types.VoidType()
        if then is None or otherwise is None:
            return then or otherwise
        if isinstance(then, types.VoidType) and isinstance(otherwise, types.VoidType):
            return then
        if isinstance(then, types.VoidType) != isinstance(otherwise, types.VoidType):
            return types.VoidType()
        then = (
            (self.readable(then, node) or then) if isinstance(then, types.AggregateType) else then
        )
        otherwise = (
            (self.readable(otherwise, node) or otherwise)
            if isinstance(otherwise, types.AggregateType)
            else otherwise
        )
        together = promoted(then, otherwise)
        if together is None:
            self.error(
                f"Branches must return the same type or compatible types: have '{name_of(then)}' "
                f"and '{name_of(otherwise)}'",
                node,
            )
            return None
        return together

    def known(self, node: Expression) -> bool | None:
        """Return what a condition is at compile time, True or False; None: it is not known.

        Known are what constant() knows, and `!`, `==`, `!=`, `&&` and `||` of what is known; both
        sides must be.
        """
        if isinstance(node, tree.NumberLiteral | tree.BooleanLiteral):
            return bool(node.value)
        if isinstance(node, tree.Unary) and node.operator == "!":
            inner = self.known(node.operand)
            return None if inner is None else not inner
        if isinstance(node, tree.Binary) and node.operator in ("&&", "||"):
            left = self.known(node.left)
            right = self.known(node.right)
            if None in (left, right):
                return None
            return bool(left and right) if node.operator == "&&" else bool(left or right)
        if isinstance(node, tree.Binary) and node.operator in ("==", "!="):
            texts = [self.constant(side) for side in (node.left, node.right)]
            if None in texts:
                return None
            return (texts[0] == texts[1]) == (node.operator == "==")
        value = self.constant(node)
        return None if value is None else bool(value)

    def _field(self, node: tree.FieldAccess) -> ValueType | None:
        """Return the type of a member; None: not known yet, or an error was noted."""
        of = self.type(node.of)
        if of is None:
            return None
        if isinstance(of, types.PointerType):
            of = of.target
        if isinstance(of, types.RecordType):
            fields = {one.name: one.type for one in of.fields}
        elif isinstance(of, types.StructType):
            of = self.complete(of)
            fields = {one.name: one.type for one in of.fields}
            if not of.fields and not of.size:
                self.error(f"Unknown struct/union: '{of.name}'", node)
                return None
        else:
            self.error(
                f"Can not access field '{node.name}' on expression of type '{name_of(of)}'", node
            )
            return None
        if node.name not in fields:
            kind = (
                "Record"
                if isinstance(of, types.RecordType)
                else f"Struct/union of type '{name_of(of)}'"
            )
            if of is self.probe.arguments:
                self.error(
                    f"Can't find function parameter {node.name}",
                    node,
                    *did_you_mean(node.name, fields),
                )
            else:
                self.error(
                    f"{kind} does not contain a field named '{node.name}'",
                    node,
                    *did_you_mean(node.name, fields),
                )
            return None
        return fields[node.name]

    def completed(self, of: ValueType) -> ValueType:
        """Return the type behind a pointer: a structure with its fields, another type as it is."""
        return self.complete(of) if isinstance(of, types.StructType) else of

    def complete(self, of: types.StructType) -> types.StructType:
        """Return a structure with its fields, looked up where only its name was known; as it is
        where no such structure is found.
        """
        if of.fields:
            return of
        found = self.definitions.type(of.name) or self.world.type(of.name)
        return found if isinstance(found, types.StructType) else of

    def _tuple_access(self, node: tree.TupleAccess) -> ValueType | None:
        """Return the type of an item of a tuple or record; None: not known yet, or an error was
        noted.
        """
        of = self.type(node.of)
        if of is None:
            return None
        items = of.items if isinstance(of, types.TupleType) else ()
        if isinstance(of, types.RecordType):
            items = tuple(one.type for one in of.fields)
        if not items and not isinstance(of, types.TupleType):
            self.error(
                f"Can not access index '{node.index}' on expression of type '{name_of(of)}'", node
            )
            return None
        if node.index >= len(items):
            self.error(
                f"Invalid tuple index: {node.index}. Found {len(items)} elements in tuple.", node
            )
            return None
        return items[node.index]

    def _index(self, node: tree.Index) -> ValueType | None:
        """Return the type of an element; None: not known yet, or an error was noted.

        A literal index that is outside an array is an error, too, but the type is returned.
        """
        of = self.type(node.of)
        at = self.type(node.index)
        if of is None or at is None:
            return None
        if isinstance(of, types.TupleType) and isinstance(node.index, tree.NumberLiteral):
            if node.index.value >= len(of.items):
                self.error(
                    f"Invalid tuple index: {node.index.value}. Found {len(of.items)} elements in "
                    "tuple.",
                    node,
                )
                return None
            return of.items[node.index.value]
        if self.as_integer(at, node.index) is None:
            self.error(
                "The array index operator [] only accepts positive (unsigned) integer indices. Got "
                f"{name_of(at)}",
                node,
            )
            return None
        if isinstance(of, types.ArrayType):
            literal = node.index.value if isinstance(node.index, tree.NumberLiteral) else None
            if literal is not None and of.count and not 0 <= literal < of.count:
                self.error(
                    f"the index {literal} is out of bounds for array of size {of.count}", node
                )
            return of.element
        if isinstance(of, types.PointerType):
            return self.completed(of.target)
        if isinstance(of, types.StringType):
            return IntegerType(8, True)
        self.error(f"The array index operator [] cannot be used on type '{name_of(of)}'", node)
        return None

    def _cast(self, node: tree.Cast) -> ValueType | None:
        """Return the type of a cast; None: not known yet, or an error was noted.

        Numbers, enumerators, booleans and pointers can be cast to each other, a number to an array
        of its size and back, a string to a boolean, a string or array to a string or array, a
        number to a symbol or text; else only what promoted() joins with the type. An array without
        a size gets one that fits the value. Of an aggregate that a script can read the type is
        returned, whatever it is. Warns where an integer has the type already.
        """
        of = self.type(node.operand)
        to = self.written(node.type)
        if of is None or to is None:
            return None
        if isinstance(of, types.AggregateType):
            if isinstance(
                of,
                types.StatsType
                | types.HistogramType
                | types.LinearHistogramType
                | types.TimeSeriesType,
            ):
                self.error(f'Cannot cast from "{name_of(of)}" to "{name_of(to)}"', node)
                return None
            return to
        number = self.as_integer(of, node.operand)
        if isinstance(to, types.ArrayType) and to.count == 0:
            size = layout.size_of(settled(of))
            each = layout.size_of(to.element, self.world.bits // 8)
            if not each or size % each:
                self.error(
                    "Cannot determine array size: the element size is incompatible with the cast "
                    "integer size",
                    node,
                )
                return None
            to = types.ArrayType(to.element, size // each)
        ok = False
        if isinstance(to, (IntegerType, types.EnumType, types.BooleanType, types.PointerType)):
            ok = number is not None or isinstance(of, types.PointerType)
            if isinstance(of, types.ArrayType) and isinstance(to, IntegerType):
                ok = layout.size_of(of, self.world.bits // 8) * 8 == to.bits
            if isinstance(of, types.StructType) and isinstance(to, types.PointerType):
                ok = False
            if isinstance(of, types.StringType) and isinstance(to, types.BooleanType):
                ok = True
        elif isinstance(to, types.ArrayType):
            size = layout.size_of(to, self.world.bits // 8)
            ok = number is not None or isinstance(of, (types.ArrayType, types.StringType))
            if (
                number is not None
                and size != layout.size_of(settled(of))
                and not isinstance(node.operand, tree.NumberLiteral)
            ):
                ok = False
        elif isinstance(to, types.StringType):
            ok = isinstance(of, (types.StringType, types.ArrayType))
        else:
            ok = promoted(to, of) is not None or (
                isinstance(to, (types.SymbolType, types.TextType)) and number is not None
            )
        if not ok:
            self.error(f'Cannot cast from "{name_of(of)}" to "{name_of(to)}"', node)
            return None
        if isinstance(to, IntegerType) and of == to and not isinstance(of, Flexible):
            self.warn(f"Unnecessary cast: expression is already of type {name_of(of)}", node)
        return to

    def _tuple(self, node: tree.TupleLiteral) -> ValueType | None:
        """Return the type of a tuple; None: a part's type is not known, or an error was noted."""
        items = [self.type(item) for item in node.items]
        out = list[ValueType]()
        for item, kind in zip(node.items, items, strict=True):
            if kind is None:
                return None
            value = self.readable(kind, item) if isinstance(kind, types.AggregateType) else kind
            if value is None:
                return None
            if isinstance(value, types.VoidType):
                self.error("A tuple has values only, and this is none", item)
                return None
            out.append(value)
        return types.TupleType(tuple(out))

    def _record(self, node: tree.RecordLiteral) -> ValueType | None:
        """Return the type of a record; None: a field's type is not known, or an error was noted."""
        fields = list[tuple[str, ValueType]]()
        for name, value in node.fields:
            kind = self.type(value)
            if isinstance(kind, types.AggregateType):
                kind = self.readable(kind, value)
            if kind is None:
                return None
            fields.append((name, kind))
        return layout.record(fields)

    def _size_of(self, node: tree.SizeOf) -> ValueType | None:
        """Return the type of sizeof(), an unsigned integer; enter the bytes in `typing.sizes`, if
        known.
        """
        of = self.written(node.type)
        if of is not None:
            self.typing.sizes[node] = layout.stated(
                settled(of),
                self.world.bits // 8
                if isinstance(of, (types.StructType, types.ArrayType, types.PointerType))
                else 8,
            )
        return _UINT64

    def _offset_of(self, node: tree.OffsetOf) -> ValueType | None:
        """Return the type of offsetof(), an unsigned integer; enter the bytes in `typing.sizes`, if
        known.

        An error is noted where there is no such field.
        """
        of = self.written(node.type)
        offset = 0
        for name in node.fields:
            of = self.complete(of) if isinstance(of, types.StructType) else of
            fields = of.fields if isinstance(of, (types.StructType, types.RecordType)) else ()
            part = next((one for one in fields if one.name == name), None)
            if part is None:
                if of is not None:
                    self.error(
                        f"'{name_of(of)}' has no field named '{name}'",
                        node,
                        *did_you_mean(name, [one.name for one in fields]),
                    )
                return _UINT64
            offset = offset + part.offset
            of = part.type
        self.typing.sizes[node] = offset
        return _UINT64

    def _type_info(self, node: tree.TypeInfo) -> ValueType | None:
        """Return the type of typeinfo(), a record; enter the type that it tells of in
        `typing.described`.

        Returns:
            None: the type that it tells of is not known.
        """
        kind = self.written(node.type)
        if kind is None:
            return None
        self.typing.described[node] = kind
        text = types.StringType(64)
        return layout.record([("btf_id", _UINT64), ("base_type", text), ("full_type", text)])

    def _compile_time(self, node: tree.CompileTime) -> ValueType | None:
        """Return the type of comptime's operand."""
        return self.type(node.operand)

    # --- types as written

    def written(self, name: tree.TypeName) -> ValueType | None:
        """Return the type that a script writes, with its pointers and arrays.

        `string[N]` is a string of N bytes; an array without a size has no elements.

        Returns:
            None: it is not known yet, or there is no such type, which the last walk notes as an
            error.
        """
        self._measured += 1  # what has no value yet has a type
        base = self._base(name)
        self._measured -= 1
        if base is None:
            return None
        for _ in range(name.pointers):
            base = types.PointerType(base)
        sizes = name.sizes
        if isinstance(base, types.StringType) and base.size == 0 and sizes and sizes[0]:
            base = types.StringType(sizes[0])
            sizes = sizes[1:]
        for size in reversed(sizes):
            base = types.ArrayType(base, size or 0)
        return base

    def _base(self, name: tree.TypeName) -> ValueType | None:
        """Return the type that a written one begins with, without pointers and arrays; None: it is
        not known yet, or there is none, which the last walk notes as an error.

        The name of a map, as in `typeof(@x)`, means its keys' type, or its values' where it has no
        keys.
        """
        text = name.name
        if text:
            if text == "string":
                return types.StringType(0)
            if text in TYPES:
                return TYPES[text]
            if text == "buffer":
                return types.BufferType(self.settings.max_strlen)
            known = self.definitions.type(text) or self.world.type(text)
            if known is not None:
                return known
        if name.expression is not None:
            if isinstance(name.expression, tree.MapName):
                facts = self.map(name.expression.name, name.expression.span)
                kind = facts.key if facts.keyed else facts.value
                if kind is None and self.final:
                    self.error(
                        f"Undefined map: {facts.name}",
                        name.expression,
                        *did_you_mean(facts.name, self.known_maps()),
                    )
                return kind
            return self.type(name.expression)
        if name.pointers and text.startswith(("struct ", "union ")):
            return types.StructType(text, 0, ())
        if self.final:
            if text.startswith("enum "):
                self.error(f"Unknown enum: {text.removeprefix('enum ')}", name)
            else:
                self.error(
                    f'Cannot resolve unknown type "{text}"',
                    name,
                    *did_you_mean(text, self.definitions.names()),
                )
        return None


def _sized(type: ValueType) -> bool:
    """Return True but for a string whose size is not known."""
    return not (isinstance(type, types.StringType) and type.size == 0)


_STATEMENTS: Final[Mapping[type, Callable[[Inference, Any], None]]] = {
    tree.Evaluate: Inference._evaluate,
    tree.Declare: Inference._declare,
    tree.Assign: Inference._assign,
    tree.While: Inference._while,
    tree.Unroll: Inference._unroll,
    tree.ForRange: Inference._for_range,
    tree.ForMap: Inference._for_map,
    tree.JumpStatement: Inference._jump,
}
_EXPRESSIONS: Final[Mapping[type, Callable[[Inference, Any], ValueType | None]]] = {
    tree.NumberLiteral: Inference._number,
    tree.StringLiteral: Inference._text,
    tree.BooleanLiteral: lambda self, node: _BOOLEAN,
    tree.Name: Inference._name,
    tree.ScratchVariable: Inference._variable,
    tree.MapName: Inference._whole_map,
    tree.MapAccess: Inference._map_access,
    tree.Parameter: Inference._parameter,
    tree.FunctionCall: Inference._call,
    tree.TypeArgument: Inference._type_argument,
    tree.Unary: Inference._unary,
    tree.Binary: Inference._binary,
    tree.Conditional: Inference._conditional,
    tree.FieldAccess: Inference._field,
    tree.TupleAccess: Inference._tuple_access,
    tree.Index: Inference._index,
    tree.Cast: Inference._cast,
    tree.TupleLiteral: Inference._tuple,
    tree.RecordLiteral: Inference._record,
    tree.SizeOf: Inference._size_of,
    tree.OffsetOf: Inference._offset_of,
    tree.TypeInfo: Inference._type_info,
    tree.CompileTime: Inference._compile_time,
    tree.BlockExpression: Inference.block,
}
