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
    """A call's parameters as attributes: numbers, and views of what pointers point at (read when
    they are asked for); None where one was not kept.
    """

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            there = ", ".join(self.values) or "none"
            raise AttributeError(f"there is no parameter {name!r}; there are: {there}") from None

    def __getitem__(self, key: str | int) -> Any:
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
    """Keep the call's parameters as `ri.args`, for the handler of the return: `ri.args.len`.

    An entry handler of return probes; one of your own may call it, too. The parameters are those
    that debug information names (m.debug); of a pointer the pointer is kept.

    Args:
        ri: the instance of the return probe.
        regs: the registers at the function's entry.

    Returns:
        0: the return is wanted.

    Raises:
        Unsupported: the machine knows of no parameters.
    """
    ri.args = Arguments(regs.debug.passed.now(regs))
    return 0


class Info(Protocol):
    """The source of what is known of functions."""

    @property
    def files(self) -> tuple[Any, ...]: ...
    def arrivals(self, address: int) -> list[tuple[Variable, Arrival]]: ...
    def typed(self, type: CType, raw: int) -> Any: ...


class Passed:
    """Parameters at functions' entries. Where they are is looked up once for each function.

    Args:
        info: what is known of functions.
        value: gives a parameter that is somewhere else than where the calling convention has it.
    """

    def __init__(self, info: Info, value: Callable[[Variable, Arrival, Regs], Any]) -> None:
        self._info = info
        self._elsewhere = value
        self._known = info.files
        self._found: dict[int, list[tuple[Variable, Arrival]]] = {}

    def now(self, regs: Regs) -> dict[str, Any]:
        """Return the parameters of the function whose entry regs.pc is: name -> value.

        Args:
            regs: the registers at the entry.

        Returns:
            The value is None where it is not known. {} where nothing is known of the function.
        """
        if self._known is not self._info.files:
            self._known = self._info.files
            self._found.clear()
        found = self._found.get(regs.pc)
        if found is None:
            found = self._found[regs.pc] = self._info.arrivals(regs.pc)
        return {variable.name: self._value(variable, arrival, regs) for variable, arrival in found}

    def _value(self, variable: Variable, arrival: Arrival, regs: Regs) -> Any:
        """Return a parameter's value at the function's entry; None: unknown, or it cannot be read.

        Args:
            variable: the parameter.
            arrival: where it is.
            regs: the registers at the entry.
        """
        try:
            if arrival.kind == "argument":
                return self._info.typed(variable.type, regs.arg(arrival.number))
            return None if arrival.kind == "refused" else self._elsewhere(variable, arrival, regs)
        except (UnknownValue, GuestFault, Unsupported, *DAMAGE):
            return None
