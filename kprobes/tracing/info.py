"""The part of an event that a trace keeps: enough to show its hits where there is no machine any
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen

from ..events._event import Event, place_of
from ..events._styles import STYLES, Type, Value
from ..symbols import CONTROLS


@frozen(kw_only=True)
class Field:
    """An argument of an event, as a trace keeps it: its name and type."""

    name: str
    type: Type

    @property
    def text(self) -> bool:
        """Whether the values are texts, or have texts within."""
        return not self.type.is_integer


@frozen(kw_only=True)
class EventInfo:
    """The facts that a trace keeps of an event, without its machine.

    Attributes:
        kind: "p" (a probe), "r" (a return) or "w" (a watched place).
        where: the place as ftrace shows it: `sym+0xOFF/0xSIZE`; of return events the function's
            name, of watch events the memory.
        text: the definition.
        symbol: the symbol that the definition names; None: it has a bare address.
        offset: bytes from the symbol.
        address: guest address of the place; of watch events of the memory.
        fields: the arguments, in order.
    """

    name: str
    group: str
    kind: str
    symbol: str | None
    offset: int
    address: int
    where: str
    text: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, event: Event) -> EventInfo:
        """Return the facts that a trace keeps of an event."""
        fields = tuple(Field(name=arg.name, type=arg.type) for arg in event.args)
        return cls(
            name=event.name,
            group=event.group,
            kind=event.kind,
            symbol=event.symbol,
            offset=event.offset,
            address=event.address,
            where=place_of(event),
            text=str(event),
            fields=fields,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the facts as from_json() takes them, of types that JSON has."""
        return asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> EventInfo:
        """Make an event of facts from a file. Characters that control a terminal are replaced in
        the texts, which others may have written.

        Raises:
            KeyError, TypeError: the facts are not those of an event.
        """
        facts = {
            name: text.translate(CONTROLS) if isinstance(text, str) else text
            for name, text in facts.items()
        }
        fields = []
        for each in facts["fields"]:
            type = Type(**each["type"])
            STYLES[type.style]  # a KeyError where there is no such style
            fields.append(Field(name=each["name"].translate(CONTROLS), type=type))
        return cls(**{**facts, "fields": tuple(fields)})

    @property
    def function(self) -> str:
        """The probed function's name, or the address where it has none; of watch events the watched
        memory.
        """
        return self.where if self.kind == "w" else self.where.partition("+")[0]

    def place(self, caller: str) -> str:
        """Return what ftrace shows in brackets: where the hit was; of return events "CALLER <-
        FUNCTION".

        Args:
            caller: name of the address that the function returns to, or that has accessed the
                memory.
        """
        return {"p": self.where, "w": caller}.get(self.kind, f"{caller} <- {self.where}")

    def arguments(self, values: Sequence[Value]) -> str:
        """Return the values as ftrace shows them: ` a=0x1 b=2`, "" where there are none."""
        return "".join(
            [
                f" {field.name}={field.type.show(value)}"
                for field, value in zip(self.fields, values, strict=True)
            ]
        )
