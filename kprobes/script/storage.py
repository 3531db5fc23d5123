"""Storage that a script's programs share: areas of memory, constants, maps; and actions that Python
does for them.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import define, field, frozen

from . import layout
from .inference import BlockVariable, MapFacts
from .source import Span
from .types import ValueType

#: numbers of the maps that every program of a script has
RING: Final = 0
VARIABLES: Final = 1
CONSTANTS: Final = 2
GLOBALS: Final = 3
SCRATCH: Final = 4
KEYED: Final = 5  #: the first of the script's own maps with keys
#: byte of the variables that says whether Python wants to be called; the next one: the script is
#: over
TICK: Final = 8
#: word of the variables: the time when the next timer is due, by the script's clock
DUE: Final = 16
#: bytes before a scalar map's value: 1 where it was set
FLAG: Final = 8


@frozen
class Area:
    """A part of the only value of an array map.

    Attributes:
        map: its number.
        offset: bytes from the value's beginning.
    """

    map: int
    offset: int

    def at(self, offset: int) -> Area:
        """Return the place so many bytes behind this one."""
        return Area(self.map, self.offset + offset)


@frozen
class Action:
    """The work of Python when it finds a record in the ring.

    A record is the action's number in 8 bytes, then its values.

    Attributes:
        kind: `printf`, `print`, `clear`, `exit`, ...
        span: the call's part of the script.
        fields: (offset in the record, type) of the values.
        data: what else the kind needs: a format, a map's name.
    """

    kind: str
    span: Span
    fields: tuple[tuple[int, ValueType], ...] = ()
    data: dict[str, Any] = field(factory=dict)


@define
class Storage:
    """All that the programs of one script share.

    Attributes:
        variables: bytes of scratch variables so far; the first words are the time when the script
            began, TICK and DUE.
        texts: formats of `strftime()`.
        scratch: bytes of temporary values at most.
        constants: bytes that no program changes.
        globals: bytes of scalar maps so far.
        scalars: name of a scalar map -> its flag; the value is behind it.
        keyed: name of a map with keys -> its number.
        actions: the actions, by number.
        at_once: True where Python reads the ring after each record: the guest stops there anyway,
            and the ring cannot be read while the guest runs. False: Python reads it when it is
            full, and from time to time.
    """

    variables: int = 24
    scratch: int = 8
    constants: bytearray = field(factory=lambda: bytearray(8))
    globals: int = 0
    scalars: dict[str, Area] = field(factory=dict)
    keyed: dict[str, int] = field(factory=dict)
    actions: list[Action] = field(factory=list)
    at_once: bool = False
    texts: list[str] = field(factory=list)
    _slots: dict[BlockVariable, Area] = field(factory=dict)
    _known: dict[bytes, int] = field(factory=dict)

    def take(self, facts: MapFacts) -> None:
        """Reserve room for a script's map: a number in `keyed` for one with keys, an area in
        `scalars` for one without.

        Args:
            facts: the map, whose types are known by now.
        """
        assert facts.value is not None
        if facts.keyed:
            self.keyed[facts.name] = KEYED + len(self.keyed)
        else:
            self.scalars[facts.name] = Area(GLOBALS, self.globals)
            self.globals += FLAG + _up(layout.room_of(facts.value))

    def variable(self, size: int) -> Area:
        """Return a new area of `size` bytes that is kept from run to run."""
        area = Area(VARIABLES, self.variables)
        self.variables += _up(size)
        return area

    def slot(self, slot: BlockVariable) -> Area:
        """Return the area of a scratch variable, which is reserved at the first call for it.

        Args:
            slot: the variable, whose type is known by now: it says how many bytes.
        """
        if slot not in self._slots:
            assert slot.type is not None
            self._slots[slot] = self.variable(layout.room_of(slot.type))
        return self._slots[slot]

    def constant(self, data: bytes) -> Area:
        """Return the area of bytes that no program changes, padded with zeros to a multiple of 8.

        The same bytes are stored once.
        """
        data = data.ljust(_up(len(data)), b"\0")
        if data not in self._known:
            self._known[data] = len(self.constants)
            self.constants += data
        return Area(CONSTANTS, self._known[data])

    def action(self, action: Action) -> int:
        """Enter an action of Python, and return its number."""
        self.actions.append(action)
        return len(self.actions) - 1


def _up(size: int) -> int:
    """Return a size rounded up to a multiple of 8."""
    return size + 7 & ~7
