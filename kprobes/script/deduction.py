"""Types of a whole script: what `inference` finds, with builtins and functions."""

from __future__ import annotations

from typing import Final

from . import signatures, tree, types
from .definitions import Definitions
from .inference import Inference, TypedProbe, Typing
from .promotion import settled
from .settings import Settings
from .source import Diagnostics
from .tree import Expression
from .types import ValueType
from .world import World

#: how often a script is walked at most
ROUNDS: Final = 40


class Deduction(Inference):
    """The inference of types, one walk after the other, with builtins and functions."""

    def aggregate(self, node: tree.FunctionCall) -> types.AggregateType | None:
        """Return the type of a map that is assigned by `count()` and its like.

        Returns:
            None: not known yet, or an error was noted.
        """
        return signatures.aggregate(self, node)

    def named(self, node: tree.Name) -> ValueType | None:
        """Return the type of a builtin, an enumerator or a constant.

        Returns:
            None: not known yet, or an error was noted.
        """
        return signatures.name(self, node)

    def called(self, node: tree.FunctionCall) -> ValueType | None:
        """Return the type of a call; None: not known yet, or an error was noted."""
        return signatures.call(self, node)

    def constant(self, node: Expression) -> str | int | None:
        """Return the value that an expression has at compile time; None: it has none."""
        return signatures.constant(self, node)


def infer(
    script: tree.ParsedScript,
    probes: list[TypedProbe],
    definitions: Definitions,
    world: World,
    settings: Settings,
    unsafe: bool,
    found: Diagnostics,
) -> Typing:
    """Find the types of a script: walk it until no type changes, then once more for errors.

    Args:
        script: the tree, without macros.
        probes: its blocks, one for each kind of attach points.
        definitions: C types and constants of the script.
        world: the guest.
        settings: the script's.
        unsafe: True where functions that change the guest, or run programs of the host, are
            allowed.
        found: takes errors and warnings of the last walk; nothing is raised.

    Returns:
        The types; where errors were found some are missing.
    """
    typing = Typing(probes)
    inference = Deduction(typing, definitions, world, settings, unsafe, Diagnostics(found.source))
    for declaration in script.maps:
        inference.declare(declaration)
    for _ in range(ROUNDS):
        inference.changed = False
        inference.walk()
        if not inference.changed and not inference.default():
            break
    inference.found = found
    for declaration in script.maps:
        inference.declare(declaration)
    inference.final = True
    before = len(found.messages)
    inference.walk()
    found.messages[before:] = sorted(
        found.messages[before:],
        key=lambda message: (message.text, message.span) not in inference.early,
    )
    for declaration in script.maps:
        facts = typing.maps.get(declaration.name)  # None: its kind is wrong, which is an error
        if facts is not None and facts.keyed is None:
            inference.warn(f"Unused map: {declaration.name}", declaration)
    typing.of = {node: settled(type) for node, type in typing.of.items()}
    for slot in {id(slot): slot for slot in typing.slots.values()}.values():
        slot.type = settled(slot.type) if slot.type is not None else None
    for facts in typing.maps.values():
        facts.key = settled(facts.key) if facts.key is not None else None
        facts.value = settled(facts.value) if facts.value is not None else None
    return typing
