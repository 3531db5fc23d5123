"""The findings of a replay, in a folder that is complete at any moment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from ..errors import BadArgument
from ..newfile import NewFile
from .crash import Finding
from .reports import Kept, json_of, sarif_of, text_of

JOURNAL, CRASHES, CORPUS = "journal.jsonl", "crashes", "corpus"  #: names in the folder
_INPUT: Final = "input"


@define
class _KnownFinding:
    """A finding so far. bytes: of its input."""

    finding: Finding
    input: str
    bytes: int
    count: int = 1


@define
class Findings:
    """Findings by their hash. Of several inputs that lead to one the smallest is kept.

    Attributes:
        words: words of the command that repeats a finding, all but the input.
        folder: where they are written as they come; None: nowhere.
    """

    words: Sequence[str]
    folder: Path | None = None
    _known: dict[str, _KnownFinding] = field(factory=dict, init=False)

    def note(self, item: str, result: Any) -> None:
        """Note what a run has found, and write it down.

        Args:
            item: the input's path.
            result: what Replay said of it; None: nothing.

        Raises:
            OSError: it cannot be written.
            KeyError, TypeError, ValueError: the result is none of Replay's.
        """
        if not isinstance(result, dict) or result["finding"] is None:
            return
        finding, size = Finding.from_json(result["finding"]), int(result["bytes"])
        known = self._known.get(finding.hash)
        if known is not None:
            known.count += 1
            if (size, item) >= (known.bytes, known.input):
                return
            known.finding = finding
            known.input = item
            known.bytes = size
        else:
            known = self._known[finding.hash] = _KnownFinding(finding, item, size)
        self._write(known)

    def _write(self, known: _KnownFinding) -> None:
        """Write a finding's input and reports into the folder, if there is one."""
        if self.folder is None:
            return
        place = self.folder / CRASHES / known.finding.hash
        place.mkdir(parents=True, exist_ok=True)
        write(place / _INPUT, Path(known.input).read_bytes())
        kept = self._kept(known)
        write(place / "report.txt", encoded(text_of(kept)))
        write(place / "report.json", json_of([kept], self.words).encode())

    def _kept(self, known: _KnownFinding) -> Kept:
        """Return a finding with its number of inputs, and with the command that repeats it."""
        path = (
            known.input
            if self.folder is None
            else str(self.folder / CRASHES / known.finding.hash / _INPUT)
        )
        return Kept(known.finding, known.input, known.count, [*self.words, path])

    def __len__(self) -> int:
        return len(self._known)

    @property
    def all(self) -> list[Kept]:
        """All findings, those that most inputs lead to first."""
        known = sorted(self._known.values(), key=lambda one: (-one.count, one.finding.hash))
        return [self._kept(one) for one in known]

    def report(self) -> None:
        """Write what was found altogether: report.txt, report.json and report.sarif. Raises
        OSError.
        """
        if self.folder is None:
            return
        for one in self._known.values():  # their numbers have grown
            self._write(one)
        found = self.all
        write(self.folder / "report.txt", encoded("\n".join(map(text_of, found))))
        write(self.folder / "report.json", json_of(found, self.words).encode())
        write(self.folder / "report.sarif", sarif_of(found).encode())


def encoded(text: str) -> bytes:
    """Return a text as a file has it. Paths in it may hold bytes that are no text, which stay as
    they are.
    """
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a name of the guest's, which is no path
        return text.encode(errors="backslashreplace")


def write(path: Path, content: bytes) -> None:
    """Write a file that is there when it is complete. Raises OSError."""
    with NewFile(path, binary=True) as new:
        new.file.write(content)


def check_folder(folder: Path, inputs: Path) -> None:
    """Refuse a folder for findings that has something else in it, or lies amid the inputs.

    Args:
        folder: for findings.
        inputs: where inputs come from.

    Raises:
        BadArgument: it is refused.
    """
    real, source = os.path.realpath(folder), os.path.realpath(inputs)
    if os.path.commonpath([real, source]) == source:
        raise BadArgument(
            f"{folder} lies in {inputs}, whose files are the inputs", hint="give another -o FOLDER"
        )
    if (folder / CORPUS).exists() and not (folder / JOURNAL).exists():
        raise BadArgument(
            f"{folder / CORPUS} is there, and no replay has made it", hint="give another -o FOLDER"
        )


def write_corpus(folder: Path, items: Sequence[str]) -> None:
    """Copy inputs into the folder's corpus, which has no others then.

    Args:
        folder: for findings.
        items: the inputs' paths.

    Raises:
        OSError: one cannot be read or written.
    """
    place = folder / CORPUS
    place.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    for item in items:
        content = Path(item).read_bytes()
        name = os.path.basename(item)
        if name in names:  # of two instances' queues
            name = f"{name},{hashlib.sha256(content).hexdigest()[:8]}"
        names.add(name)
        write(place / name, content)
    for entry in os.scandir(place):
        if entry.is_file(follow_symlinks=False) and entry.name not in names:
            os.unlink(entry.path)
