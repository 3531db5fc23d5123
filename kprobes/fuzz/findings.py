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
    """A finding, and the smallest of the inputs that have led to it so far.

    Attributes:
        finding: the finding of that input.
        input: path of that input.
        bytes: size of that input.
        count: how many inputs have led to the finding.
    """

    finding: Finding
    input: str
    bytes: int
    count: int = 1


@define
class Findings:
    """Collects the findings of a replay, one for each hash, with the smallest input for each.

    Attributes:
        words: words of the command that repeats a finding; the input's path is added to them.
        folder: folder that findings are written to as they come; None: they are not written.
    """

    words: Sequence[str]
    folder: Path | None = None
    _known: dict[str, _KnownFinding] = field(factory=dict, init=False)

    def note(self, item: str, result: Any) -> None:
        """Count the finding of a run, if it has one, and keep the smallest input that leads to it.

        A finding that is new, or whose input is smaller than the one kept so far (of equally small
        ones the first by name), takes the place of the one kept, and is written to the folder.

        Args:
            item: path of the run's input.
            result: the value that Replay returned for it; None: the item has failed, and nothing is
                done.

        Raises:
            OSError: the finding cannot be written, or the input cannot be read.
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
        """Write a finding's input and reports to folder/crashes/HASH; nothing without a folder.

        Raises:
            OSError: a file cannot be written, or the input cannot be read.
        """
        if self.folder is None:
            return
        place = self.folder / CRASHES / known.finding.hash
        place.mkdir(parents=True, exist_ok=True)
        write(place / _INPUT, Path(known.input).read_bytes())
        kept = self._kept(known)
        write(place / "report.txt", encoded(text_of(kept)))
        write(place / "report.json", json_of([kept], self.words, indent=1).encode())

    def _kept(self, known: _KnownFinding) -> Kept:
        """Return a finding for reports, with its number of inputs and the words of the command that
        repeats it: with the copy of the input in `folder`, or, without a folder, the input itself.
        """
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
        """Write report.txt, report.json and report.sarif of all findings to the folder.

        Nothing is written without a folder. The reports of single findings are written again, as
        their numbers of inputs have grown.

        Raises:
            OSError: a file cannot be written.
        """
        if self.folder is None:
            return
        for one in self._known.values():  # their numbers have grown
            self._write(one)
        found = self.all
        write(self.folder / "report.txt", encoded("\n".join(map(text_of, found))))
        write(self.folder / "report.json", json_of(found, self.words, indent=1).encode())
        write(self.folder / "report.sarif", sarif_of(found).encode())


def encoded(text: str) -> bytes:
    """Return a text as UTF-8 for a file; bytes of paths that are no UTF-8 stay as they are."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a name of the guest's, which is no path
        return text.encode(errors="backslashreplace")


def write(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it to `path` when it is complete: what was there
    before is then replaced. Raises OSError.
    """
    with NewFile(path, binary=True) as new:
        new.file.write(content)


def check_folder(folder: Path, inputs: Path) -> None:
    """Check that findings may be written to a folder.

    Args:
        folder: the folder for findings; it need not exist.
        inputs: the folder, or file, that inputs come from.

    Raises:
        BadArgument: `folder` lies in `inputs`, or has a corpus that no replay has made.
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
    """Copy inputs to folder/corpus under their own names, and delete all other files there. To a
    name that another input has already, a hash of the content is added.

    Args:
        folder: the folder for findings.
        items: the inputs' paths.

    Raises:
        OSError: an input cannot be read or written.
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
