"""Actions that programs leave to Python: records of the ring, in their order."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from . import layout, types
from .compiler import Compiled
from .histograms import HistogramCounts
from .output import MapShape, ScriptOutput, SourceReference
from .printf import Format
from .settings import Settings
from .source import ScriptSource, Span
from .storage import FLAG, Action
from .times import time_of_day
from .values import Decoder, hashable

if TYPE_CHECKING:
    from ..programs.maps import Hash, Ring

_ENOENT: Final = -2


class Performer:
    """Does what a script's programs ask for.

    Each kind of action has a method of its name, which takes the action's number (from 0, as in the
    record), the action, and (type, value) of each of its values.

    Attributes:
        status: what exit() was given.
        ended: exit() was called.
    """

    def __init__(
        self,
        source: ScriptSource,
        settings: Settings,
        compiled: Compiled,
        decoder: Decoder,
        output: ScriptOutput,
    ) -> None:
        """Prepare.

        Args:
            source: the script's text.
            settings: the script's.
            compiled: its programs.
            decoder: decodes its values.
            output: takes what it prints.
        """
        self._source = source
        self._settings = settings
        self._compiled = compiled
        self._decoder = decoder
        self._output = output
        self.status = 0
        self.ended = False
        self._formats: dict[int, Format] = {}

    def drain(self) -> None:
        """Do what the complete records in the ring ask for, in their order, and remove them from
        the ring.

        Actions write to the output, change maps, and set `ended` and `status`. A record without a
        known action is dropped.
        """
        ring: Ring = self._compiled.ring  # type: ignore[assignment]
        actions = self._compiled.storage.actions
        for record in ring:
            number = int.from_bytes(record[:8], sys.byteorder)
            if number < len(actions):
                action = actions[number]
                getattr(self, f"_{action.kind}")(number, action, self._values(action, record))

    def _values(self, action: Action, record: bytes) -> list[tuple[types.ValueType, Any]]:
        """Return (type, value) of a record's values."""
        return [
            (kind, self._decoder.value(kind, record[at : at + layout.room_of(kind)]))
            for at, kind in action.fields
        ]

    def _place(self, span: Span) -> list[SourceReference]:
        """Return a list with one SourceReference: a part of the script as messages name it."""
        return [
            SourceReference(
                self._source.mark(span),
                self._source.name,
                span.line,
                span.column,
                tuple(self._source.excerpt(span)),
            )
        ]

    def _places(self, action: Action) -> list[SourceReference]:
        """Return the parts of the script that a message names.

        They are: the call in bpftrace's library, if it is one; the call in the script; and, if the
        call comes from macros, where these were called, innermost first.
        """
        places = [
            place for span in (action.span, *action.data["expanded"]) for place in self._place(span)
        ]
        if "library" in action.data:
            file, line, column, end = action.data["library"]
            places.insert(0, SourceReference(f"{file}:{line}:{column}-{end}", file, line, column))
        return places

    # --- one method for each kind of action

    def _text(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> str:
        """Return the text of an action's format with its values.

        Args:
            number: number of the action; its parsed format is kept.
            action: the action, whose data have the format.
            values: (type, value) of each argument.
        """
        if number not in self._formats:
            self._formats[number] = Format.parse(action.data["format"])
        return self._formats[number].apply(values)

    def _printf(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the text of printf(): the format in `action`, filled with `values`."""
        self._output.printf(self._text(number, action, values))

    def _errorf(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the text of errorf(): the format in `action`, filled with `values`."""
        self._output.message(True, self._text(number, action, values), self._places(action))

    def _warnf(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the text of warnf(): the format in `action`, filled with `values`."""
        self._output.message(False, self._text(number, action, values), self._places(action))

    def _print(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the value of print().

        Args:
            number: not used.
            action: not used.
            values: (type, value) of what is printed, alone.
        """
        self._output.value(*values[0])

    def _print_map(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the map of print().

        Args:
            number: not used.
            action: the action, whose data have the map's name, `top` and `div`.
            values: not used.
        """
        self.show(action.data["map"], action.data["top"], action.data["div"])

    def _clear(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Remove all entries of a map; one without keys becomes unset.

        Args:
            number: not used.
            action: the action, whose data name the map.
            values: none.
        """
        name = action.data["map"]
        if name in self._compiled.maps:
            table: Hash = self._compiled.maps[name]  # type: ignore[assignment]
            table.fetch_from_guests()
            table.clear()
        else:
            view, size = self._scalar(name)
            view[: FLAG + size] = bytes(FLAG + size)

    def _zero(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Zero all values of a map; its keys stay. A map without keys that is not set stays unset.

        Args:
            number: not used.
            action: the action, whose data name the map.
            values: none.
        """
        name = action.data["map"]
        if name in self._compiled.maps:
            self._zero_all(self._compiled.maps[name])
        else:
            view, size = self._scalar(name)
            if view[0]:
                view[FLAG : FLAG + size] = bytes(size)

    @staticmethod
    def _zero_all(table: Any) -> None:
        """Zero all values of a map with keys, one of the programs' hash maps; the keys stay."""
        table.fetch_from_guests()
        at = 0
        zero = bytes(table.value_size)
        while True:
            at, key = table.next_key(at)
            if not at:
                return
            table.update_elem(key, zero)

    def _exit(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Set `ended`, and `status` to the given status's lowest 8 bits; only the first exit()
        counts.

        Args:
            number: not used.
            action: the action.
            values: (type, value) of the status; none: it is 0.
        """
        if not self.ended:
            self.ended = True
            self.status = (values[0][1] if values else 0) & 255

    def _time(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the time of day as time() formats it; nothing where the text is empty or too long.

        Args:
            number: not used.
            action: the action, whose data have the format.
            values: none.
        """
        text = time_of_day(action.data["format"], time.time())
        if text is not None:
            self._output.time(text)

    def _cat(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write a file's content, up to max_cat_bytes; or a message that it cannot be opened.

        Args:
            number: number of the action.
            action: the action, whose data have the format of the path.
            values: (type, value) of the format's arguments.
        """
        path = self._text(number, action, values)
        try:
            with open(path, "rb") as file:
                data = file.read(self._settings.max_cat_bytes)
        except OSError as error:
            self._output.failure(f"failed to open file '{path}' ({error.strerror})")
            return
        self._output.cat(data.decode("utf-8", "surrogateescape"))

    def _join(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write the strings of join() with the delimiter between them.

        Args:
            number: not used.
            action: the action, whose data have the delimiter.
            values: (type, value) of a buffer: the strings, each with its NUL.
        """
        texts = values[0][1].split(b"\0")[:-1]
        self._output.join(
            action.data["delimiter"].join(text.decode("utf-8", "surrogateescape") for text in texts)
        )

    def _system(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Run a command of the shell on this computer, wait for it, and write what it printed, also
        on standard error. A status that is not 0 is told.

        Args:
            number: number of the action.
            action: the action, whose data have the format of the command.
            values: (type, value) of the format's arguments.
        """
        import subprocess

        done = subprocess.run(
            self._text(number, action, values),
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self._output.syscall(done.stdout.decode("utf-8", "surrogateescape"))
        if done.returncode < 0:
            self._output.failure("child process did not exit normally")
        elif done.returncode:
            self._output.failure(f"command exited with code {done.returncode}")

    def _runtime_error(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write a warning of what went wrong while a program ran.

        Args:
            number: not used.
            action: the action, whose data name the error.
            values: not used.
        """
        self._output.runtime_error(action.data["error"], self._place(action.span))

    def _helper_error(
        self, number: int, action: Action, values: Sequence[tuple[types.ValueType, Any]]
    ) -> None:
        """Write a warning of a helper that failed.

        Args:
            number: not used.
            action: the action, whose data have the helper's name.
            values: (type, value) of what the helper returned.
        """
        self._output.helper_error(action.data["helper"], values[0][1], self._place(action.span))

    # --- maps

    def names(self) -> list[str]:
        """Return the names of the maps whose type is known, in the order in which they are printed
        at the end.
        """
        known = [
            name for name, facts in self._compiled.typing.maps.items() if facts.value is not None
        ]
        return sorted(known, key=str.encode)

    def _scalar(self, name: str) -> tuple[memoryview, int]:
        """Return where the value of a map without keys lies.

        Args:
            name: the map's, with its `@`.

        Returns:
            (memory from the map's flag on, the value being FLAG bytes behind it; bytes of the
            value). The flag is 0 where the map was not set.
        """
        area = self._compiled.storage.scalars[name]
        kind = self._compiled.typing.maps[name].value
        assert kind is not None
        return self._compiled.globals.block.view[area.offset :], layout.room_of(kind)

    def items(self, name: str) -> list[tuple[Any, Any]]:
        """Return the entries of a map, with keys and values decoded.

        Args:
            name: the map's, with its `@`.

        Returns:
            (key, value) of each entry; of a map without keys (None, value), nothing if it is not
            set.
        """
        facts = self._compiled.typing.maps[name]
        assert facts.value is not None
        if name not in self._compiled.maps:
            view, size = self._scalar(name)
            if not view[0]:
                return []
            return [(None, self._decoder.value(facts.value, bytes(view[FLAG : FLAG + size])))]
        table: Any = self._compiled.maps[name]
        table.fetch_from_guests()
        assert facts.key is not None
        out = list[tuple[Any, Any]]()
        at = 0
        while True:
            at, key = table.next_key(at)
            if not at:
                return out
            raw = table.value_bytes(at - 1)
            out.append((self._decoder.value(facts.key, key), self._decoder.value(facts.value, raw)))

    def show(
        self,
        name: str,
        top: int = 0,
        div: int = 1,
        final: bool = False,
        output: ScriptOutput | None = None,
    ) -> None:
        """Print a map.

        Args:
            name: the map's.
            top: how many of the last entries are shown; 0 for all.
            div: divides numbers before they are shown.
            final: True where it is printed because the script ends.
            output: where to; None: where the script prints.
        """
        facts = self._compiled.typing.maps[name]
        assert facts.value is not None
        (output or self._output).map(
            MapShape(name, facts.key if facts.keyed else None, facts.value),
            self.items(name),
            top,
            div,
            final,
        )

    def contents(self, name: str) -> Any:
        """Return a map as Python shows it.

        Args:
            name: its name, with its `@`.

        Returns:
            A dictionary; of a map without keys its value, None where it is not set. Values of
            hist() and lhist() are HistogramCounts.

        Raises:
            KeyError: there is no such map.
        """
        if name not in self._compiled.maps and name not in self._compiled.storage.scalars:
            raise KeyError(f"{name}: the script's maps are {', '.join(self.names()) or 'none'}")
        kind = self._compiled.typing.maps[name].value
        found = self.items(name)
        if isinstance(kind, types.HistogramType | types.LinearHistogramType):
            found = [(key, HistogramCounts(kind, counts)) for key, counts in found]
        if name in self._compiled.maps:
            return {hashable(key): value for key, value in found}
        return found[0][1] if found else None
