"""docs/unicorn-defects.md: every report's program shows what the report says."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from attrs import frozen

PAGE = Path(__file__).resolve().parent.parent / "docs" / "unicorn-defects.md"
#: seconds after which a program is said not to end; the longest that does takes a tenth of one
ENDLESS = 10
_REPORT = re.compile(
    r"^## (?P<title>.+)\n(?:.|\n)*?```python\n(?P<program>(?:.|\n)*?)^```\n\nExpected:\n\n```\n(?P<expected>(?:.|\n)*?)```\n\n"
    r"Seen:\n\n```\n(?P<seen>(?:.|\n)*?)```\n",
    re.MULTILINE,
)


@frozen
class Report:
    """A defect. expected, seen: what the program prints, and how it ends."""

    title: str
    program: str
    expected: str
    seen: str


REPORTS = [Report(**found.groupdict()) for found in _REPORT.finditer(PAGE.read_text())]


def outcome(program: str) -> str:
    """What a program prints on stdout, and how it ends where that is not by itself."""
    try:
        done = subprocess.run([sys.executable, "-u", "-c", program], capture_output=True, text=True, timeout=ENDLESS, check=False)
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode() + "(does not end)\n"
    if done.returncode < 0:
        return f"{done.stdout}(crashes)\n"
    return done.stdout if done.returncode == 0 else f"{done.stdout}{done.stderr}"


@pytest.mark.long
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.title)
def test_the_engine_does_what_the_report_says(report: Report) -> None:
    seen = outcome(report.program)
    if seen == report.expected:
        pytest.fail(f"Unicorn {version('unicorn')} has mended this: {report.title}. Say so in {PAGE.name}, with the "
                    "version; the workaround stays until that version is the oldest supported one.")
    assert seen == report.seen


def test_each_section_is_a_report_that_needs_the_engine_alone() -> None:
    titles = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    assert titles == [report.title for report in REPORTS]
    assert len(titles) >= 20
    for report in REPORTS:
        assert set(re.findall(r"^(?:from|import) (\w+)", report.program, re.MULTILINE)) == {"unicorn"}
        assert report.expected != report.seen
