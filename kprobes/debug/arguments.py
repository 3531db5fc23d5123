"""Parameters of a function call, kept from its entry: ri.args of a return probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..errors import GuestFault
from ..regs import Regs
from .expression import Unknown
from .types import CType
from .units import takes_a_word


@frozen(repr=False)
class Arguments:
    """A call's parameters as attributes: numbers, and views of what pointers point at (read when they are asked for);
    None where one was not kept."""

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
    """An entry handler of return probes that keeps the call's parameters: `ri.args.len` at the return. One of your own
    may call it, too.

    They are those that debug information names (m.debug); of pointers it is the pointer that is kept. Raises
    Unsupported: the machine knows of none.
    """
    ri.args = Arguments(regs.debug.passed.now(regs))
    return 0



class Info(Protocol):
    """What is known of functions."""

    arch: Any

    @property
    def files(self) -> tuple[Any, ...]: ...
    def parameters(self, address: int) -> Sequence[Any] | None: ...
    def typed(self, type: CType, raw: int) -> Any: ...


class Passed:
    """Parameters at functions' entries. How they are passed is looked up once for each function."""

    def __init__(self, info: Info) -> None:
        self._info, self._known = info, info.files
        self._ways: dict[int, list[tuple[str, CType | None]]] = {}

    def now(self, regs: Regs) -> dict[str, Any]:
        """The parameters of the function whose entry regs.pc is, by name; None of those that are not passed as
        integers."""
        if self._known is not self._info.files:
            self._known = self._info.files
            self._ways.clear()
        ways = self._ways.get(regs.pc)
        if ways is None:
            ways = self._ways[regs.pc] = [*self._look_up(regs.pc)]
        return {name: self._value(type, regs, n) for n, (name, type) in enumerate(ways)}

    def _value(self, type: CType | None, regs: Regs, n: int) -> Any:
        try:
            return None if type is None else self._info.typed(type, regs.arg(n))
        except (Unknown, GuestFault):
            return None

    def _look_up(self, address: int) -> Iterator[tuple[str, CType | None]]:
        """(name, type) of each; type None: it and those behind it are passed otherwise than in a word each."""
        plain = self._info.arch.abi is not None
        for variable in self._info.parameters(address) or ():
            plain = plain and takes_a_word(variable.type, self._info.arch)
            yield variable.name, variable.type if plain else None
