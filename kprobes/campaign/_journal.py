"""Keeps a campaign's results on disk, so that it goes on after it was killed; and puts results
together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import frozen

from ..arguments import SORTS, checked, look, looking, shown
from ..errors import BadArgument, KprobeError
from ._run import Outcome


class JournalError(KprobeError):
    """A file that is no journal, or another campaign's."""


@frozen
class JournalEntry:
    """A line of the journal. item: its name. result: as JSON gives it back, or None. error: a
    sentence, or empty.
    """

    item: str
    result: Any
    error: str
    seconds: float


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def entry_of(outcome: Outcome[Any, Any]) -> JournalEntry:
    """Return an outcome as the journal has it: the item as text, the error as "CLASS: MESSAGE", ""
    without one, and the seconds rounded to microseconds.
    """
    said = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
    return JournalEntry(str(outcome.item), outcome.result, said, round(outcome.seconds, 6))


@checked()
class Journal:
    """A file of JSON lines: which campaign it is, then an outcome a line. What stands in it is not
    done again.

    A line that a kill has cut is dropped. For use as a context manager.

    Attributes:
        entries: by item, those that were there and those noted since.

    Raises:
        JournalError: the file is something else, or another campaign's.
    """

    def __init__(self, path: str | Path, campaign: str) -> None:
        """path: made where it is not there. campaign: what is done, in words; a journal goes on
        with the same only.
        """
        self._path = Path(path)
        self._campaign = campaign
        self.entries: dict[str, JournalEntry] = {}
        whole = self._read()
        self._file = self._path.open("r+b" if whole else "wb")
        self._file.truncate(whole)
        self._file.seek(whole)
        if not whole:
            self._write({"campaign": campaign})

    def _read(self) -> int:
        """Read the file's outcomes into `entries`.

        Returns:
            The bytes of its whole lines; 0: there is no file, or its first line is not whole.

        Raises:
            JournalError: the file is no journal, or another campaign's.
        """
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        if _line({"campaign": self._campaign}).startswith(raw):
            return 0  # the kill came very early
        whole = raw.rfind(b"\n") + 1
        lines = raw[:whole].splitlines()
        try:
            first, *others = map(json.loads, lines)
            known = first["campaign"]
            entries = [JournalEntry(**other) for other in others]
        except (ValueError, TypeError, KeyError):
            raise JournalError(
                f"{self._path} is no journal of a campaign", hint="give another file"
            ) from None
        if known != self._campaign:
            raise JournalError(
                f"{self._path} is the journal of another campaign ({known!r})",
                hint="give another file, or the same words as then",
            )
        self.entries = {entry.item: entry for entry in entries}
        return whole

    def _write(self, line: dict[str, Any]) -> None:
        """Write a line at once."""
        self._file.write(_line(line))
        self._file.flush()

    def left(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items that the journal has not, by `str(item)`."""
        return (item for item in items if str(item) not in self.entries)

    def note(self, outcome: Outcome[Any, Any]) -> JournalEntry:
        """Write an outcome down, before anything is made of it. Its result must be what JSON can
        say. Raises JournalError, BadArgument.
        """
        if not isinstance(outcome, Outcome):
            raise BadArgument(f"outcome is {shown(outcome)}", hint="pass what run() gives")
        look("seconds", outcome.seconds, SORTS["float"])
        entry = entry_of(outcome)
        try:
            self._write(
                {
                    "item": entry.item,
                    "result": entry.result,
                    "error": entry.error,
                    "seconds": entry.seconds,
                }
            )
        except (TypeError, ValueError) as error:
            raise JournalError(
                f"{self._path}: {shown(entry.item)} is not noted: {error}",
                hint="keep the journal open, and let jobs return what JSON can say",
            ) from None
        self.entries[entry.item] = entry
        return entry

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@looking
def merged(results: Iterable[Any]) -> Any:
    """Merge the results of many items into one.

    Numbers are added, mappings merged key by key, sets united, sequences joined; None counts for
    nothing. A result that has a method `merged(other)` is merged by that.

    Args:
        results: of the items.

    Returns:
        What they give together; None: there were none.

    Raises:
        TypeError: two kinds that do not go together.
    """
    total: Any = None
    for result in results:
        total = _plus(total, result)
    return total


def _plus(one: Any, other: Any) -> Any:
    """Combine two results into one, as merged() describes.

    Numbers are added, lists and tuples joined, sets united, mappings combined key by key; an object
    with a method `merged(other)` does it itself.

    Args:
        one: the first result; None: there is none, and the other is returned.
        other: the second, of a kind that fits the first; or None.

    Raises:
        TypeError: two kinds that do not go together.
    """
    if one is None or other is None:
        return other if one is None else one
    if hasattr(one, "merged"):
        return one.merged(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {key: _plus(one.get(key), other.get(key)) for key in {**one, **other}}
    if isinstance(one, (set, frozenset)):
        return one | other
    if isinstance(one, (list, tuple, int, float)) and not isinstance(other, (str, bytes)):
        return one + other
    raise TypeError(f"{type(one).__name__} and {type(other).__name__} do not go together")
