"""Commands that are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class LazyCommands(MutableMapping[str, click.Command]):
    """`click.Group.commands`, whose modules are imported at the first look at a command.

    So `kprobes --version` and a shell's completion do not load an engine.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        """Note where commands are; nothing is imported.

        Args:
            places: name of a command -> the module beside this one where it is, and behind a colon
                the function's name where that is another one.
        """
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        """Return a command; import its module the first time."""
        if name not in self._loaded:
            module, _, function = self._places[name].partition(":")
            self._loaded[name] = getattr(import_module(f"{__package__}.{module}"), function or name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name] = ""
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
