"""Findings as text, as JSON, and as SARIF, which code hosts and editors show."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen

from .. import __version__
from ..controls import CONTROLS
from ..stacks import MARK
from .crash import CodePlace, Finding

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SHOWN: Final = 16  # places of a stack or a path that text shows
_IN_A_LINE: Final = 4  # registers


@frozen
class Kept:
    """A finding for reports, with what is known of the inputs that lead to it.

    Attributes:
        finding: the finding of the smallest of these inputs.
        input: path of that input.
        count: how many inputs led to the same finding.
        again: words of the command that repeats it.
    """

    finding: Finding
    input: str
    count: int
    again: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a value for json.dumps(): the attributes of `finding` by name, and
        "input", "count" and "again" (the command as text).
        """
        return {
            "input": self.input,
            "count": self.count,
            "again": typed(self.again),
            **self.finding.to_json(),
        }


def typed(words: Sequence[str]) -> str:
    """Return a command line for a shell, with words quoted where they need it.

    A word with bytes that cannot be printed is quoted as $'...'.
    """
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    """Return a word quoted as the shell's $'...': all but plain ASCII as octal escapes."""
    shown = [
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\{byte:03o}"
        for byte in word.encode(errors="surrogateescape")
    ]
    return f"$'{''.join(shown)}'"


def headline(finding: Finding) -> str:
    """Return a finding in one line: signal, place, reason."""
    top = finding.stack[0]
    where = f"{top.name}{f' ({top.line})' if top.line else ''}"
    return f"{finding.signal} in {where}: {finding.reason}".translate(CONTROLS)


def text_of(kept: Kept) -> str:
    """Return a finding as lines of text, for people: stack and last blocks (at most _SHOWN of
    each), registers, command.
    """
    finding = kept.finding
    lines = [f"{finding.hash}  {headline(finding)}", f"  input: {kept.input}"]
    if kept.count > 1:
        lines.append(f"  {kept.count} inputs lead here")
    lines += [f"  {detail}" for detail in finding.details]
    lines.append("  stack:")
    lines += _places(finding.stack[:_SHOWN])
    if finding.incomplete or len(finding.stack) > _SHOWN:
        lines.append(f"    {MARK}")
    lines.append("  blocks executed last, the latest first:")
    lines += _places([*reversed(finding.path)][:_SHOWN])
    lines.append("  registers:")
    cells = [f"{name}={value:#x}" for name, value in finding.registers.items()]
    lines += [
        f"    {'  '.join(cells[n : n + _IN_A_LINE])}" for n in range(0, len(cells), _IN_A_LINE)
    ]
    lines.append(f"  again: {typed(kept.again)}")
    return "".join(f"{line.translate(CONTROLS)}\n" for line in lines)


def _places(places: Iterable[CodePlace]) -> list[str]:
    """Return a line of text for each place: address, symbol, source line."""
    return [
        f"    {place.address:#x} {place.name}{f' ({place.line})' if place.line else ''}"
        for place in places
    ]


def json_of(kept: Iterable[Kept], target: Sequence[str], indent: int | None = None) -> str:
    """Return findings as the text of one JSON object: {"kprobes", "target", "findings"}.

    Args:
        kept: the findings.
        target: words of a command line that name the target.
        indent: columns that each level is indented by, for files; None: it is one line.
    """
    content = {
        "kprobes": __version__,
        "target": [*target],
        "findings": [one.to_json() for one in kept],
    }
    return json.dumps(content, indent=indent) + "\n"


def sarif_of(kept: Iterable[Kept]) -> str:
    """Return findings as the text of a SARIF 2.1.0 log, an OASIS standard."""
    found = [*kept]
    rules = {_rule(one.finding): one.finding for one in found}
    run = {
        "tool": {"driver": {
            "name": "kprobes fuzz", "version": __version__,
            "rules": [{"id": rule, "shortDescription": {"text": _described(finding)}}
                      for rule, finding in sorted(rules.items(), key=lambda pair: pair[0])],
        }},
        "results": [_result(one) for one in found],
    }  # fmt: skip
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(finding: Finding) -> str:
    """Return the name of the rule that a finding breaks: `GuestFault/write`, or a class's name."""
    return f"{finding.kind}/{finding.access}" if finding.access else finding.kind


def _described(finding: Finding) -> str:
    """Return the short description of the rule that a finding breaks."""
    return (
        f"{finding.signal}: {finding.access} fault"
        if finding.access
        else f"{finding.signal}: {finding.kind}"
    )


def _result(kept: Kept) -> dict[str, Any]:
    """Return a finding as SARIF's `result` object."""
    finding = kept.finding
    places = [_location(place) for place in finding.stack]
    return {
        "ruleId": _rule(finding),
        "level": "error",
        "message": {"text": f"{headline(finding)}\nagain: {typed(kept.again)}"},
        "locations": places[:1],
        "stacks": [{"frames": [{"location": place} for place in places]}],
        "partialFingerprints": {"stackHash/v1": finding.hash},
        "occurrenceCount": kept.count,
    }  # fmt: skip


def _location(place: CodePlace) -> dict[str, Any]:
    """Return a place as SARIF's `location` object: its address, and its source line if known."""
    found: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": place.name}],
        "message": {"text": f"{place.address:#x} {place.name}"},
    }
    file, _, line = place.line.rpartition(":")
    physical: dict[str, Any] = {"address": {"absoluteAddress": place.address}}
    if file and line.isdecimal() and int(line) > 0:
        physical |= {
            "artifactLocation": {"uri": file.replace("\\", "/")},
            "region": {"startLine": int(line)},
        }
    return found | {"physicalLocation": physical}
