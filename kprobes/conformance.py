"""A pytest plugin: which architecture proved which capability, in this very run.

    pytest -p kprobes.conformance --conformance=matrix.md        (or matrix.json)

A test asks for the `conformance` fixture and says what it proves: `conformance("arm64", "simulate",
12)`. If the test passes, 12 is added to that cell; if it fails, the cell says so.
`conformance.blank("m68k", "jprobe", "no Abi")` explains an empty cell, `conformance.note("ia64",
"on a model")` what an architecture's numbers are of, `conformance.absent("alpha", "no QEMU")` why
nobody has tried. `conformance.under("In QEMU")` fills another table. Works under pytest-xdist;
needs nothing of this project's own tests.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: The columns, in order; others that tests name are appended.
CAPABILITIES = (
    "decode",
    "step",
    "simulate",
    "engine",
    "kprobe",
    "colocated",
    "post",
    "nested",
    "divert",
    "return probe",
    "jprobe",
    "arguments",
    "stack arguments",
    "fault",
    "boost",
    "optimize",
    "real program",
)
Cells = dict[str, dict[str, dict[str, Any]]]
Tables = dict[str, Cells]  # by title
_PROPERTY = "kprobes-conformance"
_BLANK = "kprobes-conformance-blank"
_NOTE = "kprobes-conformance-note"
_ABSENT = "kprobes-conformance-absent"


class Conformance:
    """The proofs of one test. Call it with an architecture, a capability and how many cases.

    Its methods take names of architectures ("arm64") and capabilities ("simulate"), which are the
    rows and columns of the table.
    """

    def __init__(self, record: Callable[[str, Any], None], title: str = "") -> None:
        """
        Args:
            record: (name, value): pytest's record_property of the test.
            title: of the table that reports go into; "": the first one.
        """
        self._record, self._title = record, title

    def __call__(self, arch: str, capability: str, count: int = 1) -> None:
        """Report that this test proves `count` cases of a capability on an architecture, if it
        passes.

        Raises:
            ValueError: the capability is a standard one that is misspelt.
        """
        if capability not in CAPABILITIES:
            meant = difflib.get_close_matches(capability, CAPABILITIES, 1, 0.8)
            if meant:
                raise ValueError(f"no capability {capability!r}: did you mean {meant[0]!r}?")
        self._record(_PROPERTY, [self._title, arch, capability, count])

    def blank(self, arch: str, capability: str, reason: str) -> None:
        """Report that a cell of the table stays empty.

        Args:
            arch: the architecture.
            capability: the capability.
            reason: why there is nothing to prove; a note below the table.
        """
        self._record(_BLANK, [self._title, arch, capability, reason])

    def note(self, arch: str, text: str) -> None:
        """Add a note to each of an architecture's numbers.

        Args:
            arch: the architecture.
            text: the note, such as "on a model".
        """
        self._record(_NOTE, [self._title, arch, text])

    def absent(self, arch: str, reason: str) -> None:
        """Report that an architecture's tests are skipped, as what they need is not here.

        Args:
            arch: the architecture.
            reason: given for each of its cells that has no reason of its own.
        """
        self._record(_ABSENT, [self._title, arch, reason])

    def under(self, title: str) -> Conformance:
        """Return a Conformance whose reports go into another table.

        Args:
            title: of that table: another machine's name, say.
        """
        return Conformance(self._record, title)


class TableReports:
    """The reports of the tests for one table."""

    def __init__(self) -> None:
        self.proved: dict[str, dict[str, int]] = {}
        self.failed: dict[str, dict[str, int]] = {}
        self.blank: dict[str, dict[str, str]] = {}
        self.notes: dict[str, str] = {}
        self.absent: dict[str, str] = {}

    def cells(self) -> Cells:
        """Return the table: {architecture: {capability: facts}}, facts as _facts() gives them.

        It has the architectures, sorted, that tests have named but in notes alone; each has all of
        CAPABILITIES, then the other columns that tests have named, sorted.
        """
        seen = {
            c
            for part in (self.proved, self.failed, self.blank)
            for row in part.values()
            for c in row
        }
        columns = [*CAPABILITIES, *sorted(seen - set(CAPABILITIES))]
        return {
            arch: {c: self._facts(arch, c) for c in columns}
            for arch in sorted({*self.proved, *self.failed, *self.blank, *self.absent})
        }

    def _facts(self, arch: str, capability: str) -> dict[str, Any]:
        """Return what a cell says.

        Args:
            arch: the row.
            capability: the column.

        Returns:
            {"proved": cases, "failed": tests} and perhaps "note", where a test of the cell has
            passed or failed. Else {"blank": the cell's own reason}, or {"blank": the
            architecture's, "absent": True}, or {"blank": "not tested in this run"}.
        """
        proved, failed = (
            self.proved.get(arch, {}).get(capability, 0),
            self.failed.get(arch, {}).get(capability, 0),
        )
        if proved or failed:
            note = {"note": self.notes[arch]} if arch in self.notes else {}
            return {"proved": proved, "failed": failed, **note}
        if reason := self.blank.get(arch, {}).get(capability):
            return {"blank": reason}
        if arch in self.absent:
            return {"blank": self.absent[arch], "absent": True}
        return {"blank": "not tested in this run"}


class Matrix:
    """Tables collected from the reports of a run (on xdist's controller: of all workers)."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: dict[str, TableReports] = {"": TableReports()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what a test has declared to prove, and keep the reasons and notes that it has
        declared.

        A hook: pytest calls it for each test's phase. Proofs count after the call itself: all
        declared cases of a test that has passed, one for each declaration of a test that has
        failed, none of a skipped one. Of several reasons or notes for one place the last stays.
        """
        properties: list[tuple[str, Any]] = report.user_properties
        for name, value in properties:
            if name not in (_PROPERTY, _BLANK, _NOTE, _ABSENT):
                continue
            title, arch, *said = value
            found = self._found.setdefault(title, TableReports())
            if name == _PROPERTY and report.when == "call" and not report.skipped:
                row = (found.proved if report.passed else found.failed).setdefault(arch, {})
                row[said[0]] = row.get(said[0], 0) + (said[1] if report.passed else 1)
            elif name == _BLANK:
                found.blank.setdefault(arch, {})[said[0]] = said[1]
            elif name in (_NOTE, _ABSENT):
                (found.notes if name == _NOTE else found.absent)[arch] = said[0]

    def pytest_sessionfinish(self) -> None:
        """Write the tables to the file, as JSON if its name ends in .json, else as Markdown.

        Its folder is made where it is missing.
        """
        tables = self.tables()
        if self._file.suffix == ".json":
            text = json.dumps(tables, indent=1, ensure_ascii=False) + "\n"
        else:
            text = "\n".join(
                f"## {title}\n\n{table(cells)}" if title else table(cells)
                for title, cells in tables.items()
            )
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, encoding="utf-8")

    def tables(self) -> Tables:
        """Return {title: what TableReports.cells() gives for it}, sorted by title, "" first."""
        return {title: self._found[title].cells() for title in sorted(self._found)}


def table(cells: Cells) -> str:
    """Return a table of the cases proved as Markdown, and the reasons of blanks below.

    An architecture all of whose cells are blank for one reason has no row: the last lines name it.

    Args:
        cells: {architecture: {capability: facts}}, from TableReports.cells().
    """
    columns = next(iter(cells.values()), {})
    lines = ["| " + " | ".join(["architecture", *columns]) + " |", "|---|" + "---:|" * len(columns)]
    notes: list[str] = []
    nowhere: dict[str, list[str]] = {}
    for arch, row in cells.items():
        reasons = {facts.get("blank") for facts in row.values()}
        if len(reasons) == 1 and (reason := reasons.pop()):
            nowhere.setdefault(reason, []).append(arch)
        else:
            lines.append(
                "| " + " | ".join([arch, *(_cell(facts, notes) for facts in row.values())]) + " |"
            )
    lines += ["", "Numbers: cases proved in the test run that wrote this.", ""]
    lines += [f"{n}. {note}" for n, note in enumerate(notes, 1)]
    lines += [
        "",
        *(f"- without a row: {', '.join(names)}: {reason}" for reason, names in nowhere.items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _cell(facts: dict[str, Any], notes: list[str]) -> str:
    """Return the Markdown of a cell: the count proved, failures, and the number of its note.

    Args:
        facts: what TableReports gathered for the cell.
        notes: texts of the footnotes so far; the cell's is added where it is new.
    """
    said = facts.get("blank") or facts.get("note")
    if said and said not in notes:
        notes.append(said)
    mark = f" ({notes.index(said) + 1})" if said else ""
    if "blank" in facts:
        return f"-{mark}"
    return (
        f"{facts['proved']}" + (f", **{facts['failed']} FAILED**" if facts["failed"] else "") + mark
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --conformance to pytest."""
    parser.addoption(
        "--conformance",
        metavar="FILE",
        default=None,
        help="write which architecture proved which kprobes capability to FILE (Markdown, or "
        "JSON if it "
        "ends in .json)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect the reports of the run if --conformance is given; with xdist on the controller
    only.
    """
    file = config.getoption("--conformance")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Matrix(Path(file)), "kprobes-conformance-matrix")


@pytest.fixture
def conformance(record_property: Callable[[str, Any], None]) -> Conformance:
    """A fixture: what the test calls to declare what it proves, conformance(arch, capability,
    count).
    """
    return Conformance(record_property)
