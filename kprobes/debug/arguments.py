"""Parameters of a function call, kept from its entry: ri.args of a return probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from attrs import frozen

from ..errors import GuestFault, Unsupported
from ..regs import Regs
from .expression import UnknownValue
from .file import DAMAGE
from .passing import Arrival
from .scopes import Variable
from .types import CType


@frozen(repr=False)
class Arguments:
    """The parameters of one call, read as attributes, by name or index: `args.len`, `args[0]`.

    A number is an int or float; of a pointer there is a view, whose guest memory is read when the
    view is used. None: the parameter was not kept.

    Attributes:
        values: name -> value, in the order of the parameters.
    """

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a parameter by its name. Raises AttributeError, which lists the parameters: there
        is none.
        """
        try:
            return self.values[name]
        except KeyError:
            there = ", ".join(self.values) or "none"
            raise AttributeError(f"there is no parameter {name!r}; there are: {there}") from None

    def __getitem__(self, key: str | int) -> Any:
        """Return a parameter by its name, or by its index in the order of the parameters
        (`key`).
        """
        return self.values[key] if isinstance(key, str) else [*self.values.values()][key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values.values())

    def __len__(self) -> int:
        return len(self.values)

    def __dir__(self) -> list[str]:
        return [*self.values]

    def __repr__(self) -> str:
        return f"Arguments({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


def keep_arguments(ri: Any, regs: Regs) -> int:
    """Keep the call's parameters as `ri.args`, so that the handler of the return can read
    `ri.args.len`.

    Give it as the entry handler of a return probe, or call it from your own. The parameters are
    those that debug information names (m.debug); of a pointer the pointer is kept, not its target.

    Args:
        ri: the instance of the return probe; gets the attribute `args`.
        regs: the registers at the function's entry.

    Returns:
        0, always: an entry handler's word that the return is wanted.

    Raises:
        Unsupported: the machine has no debug information to ask.
    """
    ri.args = Arguments(regs.debug.passed.now(regs))
    return 0


class Info(Protocol):
    """The debug information of a guest, as far as EntryArguments asks it."""

    @property
    def files(self) -> tuple[Any, ...]: ...
    def arrivals(self, address: int) -> list[tuple[Variable, Arrival]]: ...
    def typed(self, type: CType, raw: int) -> Any: ...


class EntryArguments:
    """Reads parameters at functions' entries; looks up once for each function where they are.

    Args:
        info: the guest's debug information.
        value: (parameter, where it arrives, registers at the entry) -> its value. Called for a
            parameter that is not in the place of a plain integer by the calling convention.
    """

    def __init__(self, info: Info, value: Callable[[Variable, Arrival, Regs], Any]) -> None:
        self._info = info
        self._elsewhere = value
        self._known = info.files
        self._found: dict[int, list[tuple[Variable, Arrival]]] = {}

    def now(self, regs: Regs) -> dict[str, Any]:
        """Return the values of the parameters of the function at whose entry the guest stands.
        Where they are is looked up at the first call for a function, and kept until files are
        loaded or unloaded.

        Args:
            regs: the registers at the entry; regs.pc tells the function.

        Returns:
            name -> value, None where that is not known; {} where nothing is known of the function.
        """
        if self._known is not self._info.files:
            self._known = self._info.files
            self._found.clear()
        found = self._found.get(regs.pc)
        if found is None:
            found = self._found[regs.pc] = self._info.arrivals(regs.pc)
        return {variable.name: self._value(variable, arrival, regs) for variable, arrival in found}

    def _value(self, variable: Variable, arrival: Arrival, regs: Regs) -> Any:
        """Read a parameter's value at its function's entry.

        Args:
            variable: the parameter.
            arrival: where the caller puts it.
            regs: the registers at the entry.

        Returns:
            The value; None where it is not known, or guest memory cannot be read.
        """
        try:
            if arrival.kind == "argument":
                return self._info.typed(variable.type, regs.arg(arrival.number))
            return None if arrival.kind == "refused" else self._elsewhere(variable, arrival, regs)
        except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
            return None
