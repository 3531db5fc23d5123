"""A program's global variables, as a mapping."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from attrs import frozen

from ...arguments import SORTS, look, shown
from ...errors import BadArgument, ProgramError
from ..maps import Codec, Map, stored


@frozen(eq=False)  # its map would be compared entry by entry
class GlobalVariable:
    """A global variable of a program.

    Attributes:
        map: the map of its section.
        at: offset of the variable in the map's value, in bytes.
        size: bytes of the variable.
        codec: translates between its bytes and what Python shows.
        pointer: True where it holds an address.
    """

    map: Map
    at: int
    size: int
    codec: Codec
    pointer: bool = False


def is_compilers(name: str) -> bool:
    """Return True for a name that the compiler has made, such as `function.____fmt`."""
    return "." in name


class Variables(MutableMapping[str, Any]):
    """The global variables by name.

    Those of .rodata are set before the program is verified or run for the first time; others at any
    time.
    """

    def __init__(self, known: Mapping[str, GlobalVariable]) -> None:
        """Prepare.

        Args:
            known: name -> variable.
        """
        self._known = dict(known)
        self.frozen = False

    def __getitem__(self, name: str) -> Any:
        v = self._find(name)
        return v.codec.load(bytes(v.map.block.view[v.at : v.at + v.size]))

    def __setitem__(self, name: str, value: Any) -> None:
        v = self._find(name)
        if v.map.frozen or (v.map.readonly and self.frozen):
            raise ProgramError(
                f"{name} is constant, and the program has been verified with its value",
                hint="set it before, or load the program again",
            )
        v.map.block.view[v.at : v.at + v.size] = stored(name, v.codec, value)

    def counts(self, name: str) -> bool:
        """Return True for a variable that programs change and that is no address.

        Raises:
            KeyError: there is no variable of this name.
        """
        found = self._find(name)
        return not found.map.readonly and not found.pointer

    def __delitem__(self, name: str) -> None:
        raise BadArgument(f"{shown(name)}: variables cannot be deleted", hint="set it to 0")

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def _find(self, name: str) -> GlobalVariable:
        """Return a variable, given by its name.

        Raises:
            KeyError: there is no variable of this name; the text names those that there are.
            BadArgument: `name` is no text.
        """
        look("name", name, SORTS["str"])
        if name not in self._known:
            shown_names = [one for one in self._known if not is_compilers(one)]
            near = difflib.get_close_matches(name, shown_names, 3)
            known = (
                f"did you mean {' or '.join(near)}"
                if near
                else f"the variables are {', '.join(shown_names)}"
            )
            raise KeyError(f"{name}: {known}")
        return self._known[name]

    def __repr__(self) -> str:
        return repr(dict(self))
