"""Counts of source lines in optimized programs, beside gcov's, which counts before the compiler optimizes."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kprobes import Coverage, UnicornMachine

PROGRAMS = Path(__file__).resolve().parent / "data" / "gcov"
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gcov") is None,
                                reason="programs of x86-64 are compiled here, and gcov runs")


def gcov(source: Path, level: str, folder: Path) -> dict[int, int]:
    """Executions of each line as gcov counts them; lines that it does not count are left out."""
    folder.mkdir()
    subprocess.run(["gcc", level, "--coverage", "-o", folder / "counted", source], check=True, cwd=folder)
    subprocess.run([folder / "counted"], check=False, cwd=folder)
    (data,) = folder.glob("*.gcda")
    text = subprocess.run(["gcov", "-t", data], check=True, cwd=folder, capture_output=True, text=True).stdout
    found = re.findall(r"^ *([\d#=]+)\*?: *(\d+):", text, re.MULTILINE)
    return {int(line): int(count) if count.isdigit() else 0 for count, line in found if int(line)}


def ours(source: Path, level: str, folder: Path, *options: str) -> dict[int, int]:
    """Executions of each line in a run of the program without gcov's counters."""
    subprocess.run(["gcc", level, *options, "-g", "-static", "-no-pie", "-o", folder / "plain", source], check=True)
    with UnicornMachine.load(folder / "plain") as m, Coverage(m) as c:
        m.serve_system_calls()
        m.process([b"plain"])
        m.run()
        c.save(folder / "x.info")
    records = (folder / "x.info").read_text().split("end_of_record\n")
    (record,) = (each for each in records if re.search(rf"^SF:.*/{source.name}$", each, re.MULTILINE))
    return {int(line): int(count) for line, count in re.findall(r"^DA:(\d+),(\d+)$", record, re.MULTILINE)}


@pytest.mark.parametrize(("level", "same", "less", "more", "zero"), [("-O0", 123, 0, 0, 0), ("-O1", 80, 6, 5, 9), ("-O2", 70, 12, 6, 9)])
def test_lines_are_counted_as_by_gcov(level: str, same: int, less: int, more: int, zero: int, tmp_path: Path) -> None:
    """At least so many are the same; the others are of code that is not as written any more: branches that became
    arithmetic, loops of vectors or replaced by calls, returns whose rows are left at cold copies.
    """
    found = Counter[str]()
    for source in sorted(PROGRAMS.glob("*.c")):
        want = gcov(source, level, tmp_path / source.stem)
        got = ours(source, level, tmp_path / source.stem)
        for line in want.keys() & got.keys():
            a, b = want[line], got[line]
            found["same" if a == b else "zero" if not a or not b else "less" if b < a else "more"] += 1
    assert found["same"] >= same and found["less"] <= less and found["more"] <= more and found["zero"] <= zero, found


@pytest.mark.parametrize("level", ["-O1", "-O2"])
def test_copies_of_a_loop_are_added_up(level: str, tmp_path: Path) -> None:
    """The test of a loop, which stands before it and in it, and what is done in each of its copies."""
    source = PROGRAMS / "e.c"
    want, got = gcov(source, level, tmp_path / "e"), ours(source, level, tmp_path / "e")
    for line in (5, 7, 15, 17, 19, 27, 32):  # while (n--), for (k < 8), for (i < n), while (..), out[o++] = run, ..
        assert got[line] == want[line], line


PARTS = """volatile int sink;
struct row { int a, b, c, d; };
__attribute__((noinline)) int work(struct row *p, int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += p[i].a * p[i].b + p[i].c / (p[i].d | 1) - (p[i].a > 3 ? p[i].c : p[i].d);
    return sink = s;
}
int main(void)
{
    struct row p[10];
    for (int i = 0; i < 10; i++)
        p[i].a = p[i].b = p[i].c = p[i].d = i;
    return work(p, 10) & 1;
}
"""


@pytest.mark.parametrize("option", ["-gno-statement-frontiers", "-flto"])
def test_parts_of_a_statement_are_not_added_up(option: str, tmp_path: Path) -> None:
    """Without the marks of where statements begin, as before GCC 8, the rows of one statement are its parts."""
    (tmp_path / "parts.c").write_text(PARTS)
    got = ours(tmp_path / "parts.c", "-O2", tmp_path, option)
    assert got[7] == 10 and all(count <= 11 for count in got.values()), got
    assert {got[line] for line in (5, 8, 10, 15) if line in got} == {1}, got
