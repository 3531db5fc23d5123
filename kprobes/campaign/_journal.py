"""Keeps a campaign's results on disk, so that it goes on after it was killed; and puts results
together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from attrs import frozen

from ..arguments import SORTS, checked, look, looking, shown
from ..errors import BadArgument, KprobeError
from ._run import Outcome

_SHOWN: Final = 60  #: characters of a campaign that a message shows, at most


class JournalError(KprobeError):
    """A file that is no journal, or another campaign's."""


@frozen
class JournalEntry:
    """An item's outcome, as a line of a journal has it.

    Attributes:
        item: the item as text.
        result: the job's result, as JSON gives it back; None where there is an error.
        error: "CLASS: MESSAGE"; "": there is no error.
        seconds: how long the item took.
    """

    item: str
    result: Any
    error: str
    seconds: float


def _line(content: dict[str, Any]) -> bytes:
    """Return the bytes of a line of the journal: an object in JSON."""
    return json.dumps(content).encode() + b"\n"


def _difference(text: str, other: str) -> str:
    """Return the word of a text in which it begins to differ from another one, in quotes, and a
    little of what follows; `...` stands for the rest.

    Args:
        text: the text.
        other: the text that it is compared with.
    """
    pairs = enumerate(zip(text, other, strict=False))
    same = next((n for n, (a, b) in pairs if a != b), min(len(text), len(other)))
    word = max(text.rfind(mark, 0, same) + 1 for mark in " (")
    start = max(word, same - _SHOWN // 2)
    end = start + _SHOWN
    before = "..." if start else ""
    behind = "..." if end < len(text) else ""
    return repr(f"{before}{text[start:end]}{behind}")


def entry_of(outcome: Outcome[Any, Any]) -> JournalEntry:
    """Return an outcome as a journal has it, with the seconds rounded to microseconds."""
    said = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
    return JournalEntry(str(outcome.item), outcome.result, said, round(outcome.seconds, 6))


@checked()
class Journal:
    """A file of a campaign's outcomes, so that a campaign which was killed goes on with the rest.

    The file has lines of JSON: which campaign it is, then a line for each outcome. A line that a
    kill has cut is dropped. A context manager.

    Attributes:
        entries: item as text -> its entry: those that the file had, and those noted since.

    Raises:
        JournalError: the file is something else, or another campaign's.
    """

    def __init__(self, path: str | Path, campaign: str) -> None:
        """Open the file, or create it, and read the outcomes that it has.

        Args:
            path: path of the file.
            campaign: what the campaign does, in words of the caller's; they must be those that the
                file was made with.
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
            How many bytes its whole lines have; 0: there is no file, or its first line is cut.

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
            theirs = _difference(str(known), self._campaign)
            ours = _difference(self._campaign, str(known))
            raise JournalError(
                f"{self._path} is the journal of another campaign: it has {theirs}, "
                f"this has {ours}",
                hint="give another file, or the same words as then",
            )
        self.entries = {entry.item: entry for entry in entries}
        return whole

    def _write(self, line: dict[str, Any]) -> None:
        """Append a line to the file, and flush it."""
        self._file.write(_line(line))
        self._file.flush()

    def left(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield those items that have no entry yet, by `str(item)`: what is left to do."""
        return (item for item in items if str(item) not in self.entries)

    def note(self, outcome: Outcome[Any, Any]) -> JournalEntry:
        """Append an outcome to the file, and add it to `entries`, in place of an earlier one of
        that item.

        Args:
            outcome: what run() gave; its result must be what JSON can say.

        Returns:
            The new entry.

        Raises:
            JournalError: JSON cannot say the result, or the journal is closed.
            BadArgument: `outcome` is no Outcome.
            OSError: the file cannot be written.
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
        """Close the file: nothing can be noted any more."""
        # what note() could not write it has raised; newer Pythons try, and raise, once more
        with suppress(OSError):
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
        results: the result of each item.

    Returns:
        The merged result; None: there were none, or all are None.

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
    with a method `merged(other)` does it itself. If one of the two is None, the other is returned.

    Args:
        one: the first result, or None.
        other: the second, of a kind that fits the first; or None.

    Raises:
        TypeError: two kinds that do not go together; also two texts.
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
