"""bpftrace's own runtime tests: all that apply here and passed before still pass.

They are not in this repository: KPROBES_BPFTRACE names the folder of a checkout of bpftrace.
"""

import json
import os
from pathlib import Path

import pytest
from script.bpftrace_classes import ALONE, GUEST, KINDS, rule_for
from script.bpftrace_suite import Outcome, arguments, guest_of, judge, run_tests
from script.bpftrace_tests import RuntimeTest, read_suite, read_tests

RECORDED = Path(__file__).resolve().parents[2] / "docs" / "bpftrace-tests.json"
CHECKOUT = os.environ.get("KPROBES_BPFTRACE", "")

needs_checkout = pytest.mark.skipif(
    not CHECKOUT, reason="KPROBES_BPFTRACE names no folder of a checkout of bpftrace"
)

EXAMPLE = """\
# A comment.
NAME two lines
PROG begin { print(1);
     print(2); }
EXPECT 1
       2
EXPECT_NONE 3
TIMEOUT 2

NAME uses a program
RUN {{BPFTRACE}} -q -e 'u:./testprogs/a:f { exit(); }' 5 -- --x=1
EXPECT_REGEX ^[0-9]$
AFTER ./testprogs/a one
ENV A=1 B=2
WILL_FAIL
"""


@pytest.fixture
def example(tmp_path: Path) -> list[RuntimeTest]:
    """The tests of `EXAMPLE`."""
    path = tmp_path / "made_up"
    path.write_text(EXAMPLE)
    return read_suite(path)


@pytest.mark.quick
def test_reads_directives(example: list[RuntimeTest]) -> None:
    first, second = example
    assert first.id == "made_up.two lines"
    assert first.program == "begin { print(1);\nprint(2); }"
    assert [(e.mode, e.text) for e in first.expects] == [("text", "1\n2"), ("text_none", "3")]
    assert first.timeout == 2
    assert second.environment == {"A": "1", "B": "2"}
    assert second.after == "./testprogs/a one"


@pytest.mark.quick
def test_judges(example: list[RuntimeTest], tmp_path: Path) -> None:
    first, second = example
    assert judge(first, Outcome("x\n1\n2\n", "", 0, 0.1), tmp_path) == ""
    assert judge(first, Outcome("1\n2\n3\n", "", 0, 0.1), tmp_path) == "text_none: 3"
    assert judge(first, Outcome("1\n2\n", "", 4, 0.1), tmp_path) == "exit status 4, expected 0"
    assert judge(first, Outcome("1\n2\n", "", None, 0.1), tmp_path) == ""
    assert judge(second, Outcome("7\n", "", 0, 0.1), tmp_path) == "exit status 0, expected another"
    assert judge(second, Outcome("7\n", "", 1, 0.1), tmp_path) == ""


@pytest.mark.quick
def test_chooses_a_guest(example: list[RuntimeTest]) -> None:
    first, second = example
    assert rule_for(first).kind == ALONE
    assert rule_for(second).kind == GUEST
    assert guest_of(second) == ["./testprogs/a", "--qemu", "--arg=one"]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["-e", "begin {}", "5"], ["-e", "begin {}", "--", "5"]),
        (["a.bt", "1", "--", "--x"], ["a.bt", "--", "1", "--x"]),
        (["-lv", "uprobe:x:*"], ["uprobe:x:*", "-lv"]),
        (["-", "-q"], ["-", "-q"]),
    ],
)
def test_arguments(words: list[str], ours: list[str]) -> None:
    assert arguments(words, []) == ours


def recorded() -> dict[str, list[str]]:
    """Return what docs/bpftrace-tests.json says: a test's name -> its row."""
    return {row[0]: row for row in json.loads(RECORDED.read_text())["tests"]}


@pytest.mark.quick
def test_every_row_has_a_kind_and_a_reason() -> None:
    rows = json.loads(RECORDED.read_text())["tests"]
    assert len({row[0] for row in rows}) == len(rows) > 1000
    for name, kind, reason, result in rows:
        assert kind in KINDS, name
        assert reason or kind == ALONE, name
        assert result in ("passed", "failed", ""), name
        assert bool(result) == (kind in (ALONE, GUEST)), name


@needs_checkout
def test_classification_is_recorded() -> None:
    found = {test.id: (rule_for(test).kind, rule_for(test).reason) for test in read_tests(CHECKOUT)}
    rows = recorded()
    wrong = [
        name for name, row in rows.items() if found.get(name, tuple(row[1:3])) != tuple(row[1:3])
    ]
    assert not wrong, "write the table anew: python -m script.bpftrace_suite --help, in tests/"


@needs_checkout
@pytest.mark.parametrize("kind", [ALONE, GUEST])
def test_suites_pass(kind: str) -> None:
    rows = recorded()
    passing = {name for name, row in rows.items() if row[3] == "passed"}
    results = run_tests(Path(CHECKOUT), kinds=[kind])
    failed = {result.test.id: result.why for result in results if result.passed is False}
    assert not {name: why for name, why in failed.items() if name in passing}
