"""Variables at hits are what gdb shows, or are not shown: random programs in C, C++ and Rust, run natively by gdb.

By hand: `VALUES=40 VALUES_SHARE=0.5 pytest tests/tracing/test_values.py` compares 40 programs of each kind.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from value_judge import compared
from value_programs import build, compiler

from kprobes import UnicornMachine, UnknownSymbol, Unsupported

COUNT = int(os.environ.get("VALUES", "1"))  #: programs of each kind
SHARE = float(os.environ.get("VALUES_SHARE", "0.08"))  #: of their instructions
#: language, optimization, version of DWARF
KINDS = [("c", 0, 5), ("c", 1, 4), ("c", 2, 5), ("c++", 0, 4), ("c++", 2, 5), ("rust", 0, 4), ("rust", 2, 4)]
if COUNT > 1:
    KINDS = [(language, level, dwarf) for language in ("c", "c++", "rust") for level in (0, 1, 2)
             for dwarf in ((2, 3, 4, 5) if language == "c" else (4, 5))]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("gdb") is None,
                                reason="gdb shows values of x86-64 programs, natively")


@pytest.mark.parametrize(("language", "level", "dwarf"), KINDS)
@pytest.mark.parametrize("seed", range(COUNT))
def test_variables_are_what_gdb_shows(seed: int, language: str, level: int, dwarf: int, tmp_path: Path) -> None:
    if compiler(language) is None:
        pytest.skip(f"there is no compiler of {language}")
    program = build(language, seed, level, dwarf, tmp_path)
    verdicts = compared(program, seed, SHARE, level > 0, tmp_path)
    print(f"{program.name}: {verdicts.right} right, {verdicts.refused} refused, {len(verdicts.wrong)} wrong, "
          f"{verdicts.stacks} stacks")
    assert verdicts.wrong == []
    if not verdicts.right + verdicts.refused:
        pytest.skip("gdb finds no variables in this program")
    assert verdicts.right > 50


def test_types_of_cpp(tmp_path: Path) -> None:
    """Namespaces tell types of one name apart; members of virtual bases and static ones are at no constant place."""
    if compiler("c++") is None:
        pytest.skip("there is no compiler of C++")
    for dwarf in (4, 5):
        with UnicornMachine.load(build("c++", 1, 0, dwarf, tmp_path)) as m:
            assert [*m.type("struct N").members] == ["c", "d"] and [*m.type("struct geo::N").members] == ["x", "y"]
            assert [*m.type("struct Text").members] == ["at", "size", "room"]
            left = m.type("struct geo::Left")
            assert "left" in left.members and "counted" not in left.members and "base" in left.hidden
            with pytest.raises(Unsupported, match="virtual base"):
                _ = m.view("struct geo::Left", m.symbols["_start"].address).base


def test_a_name_of_types_that_differ(tmp_path: Path) -> None:
    if compiler("c") is None:
        pytest.skip("there is no compiler of C")
    for n, member in enumerate(("int first", "long second[3]")):
        (tmp_path / f"{n}.c").write_text("\n" * n + f"struct node {{ {member}; }}; struct node node{n}; typedef int same;"
                                         f" same same{n}; void _start(void);" + "void _start(void) {}" * (n == 0))
    out = tmp_path / "both"
    subprocess.run([str(compiler("c")), "-g", "-nostdlib", "-static", "-no-pie", str(tmp_path / "0.c"), str(tmp_path / "1.c"),
                    "-o", str(out)], check=True)
    with UnicornMachine.load(out) as m:
        assert m.type("same").size == 4
        with pytest.raises(UnknownSymbol, match="several types"):
            m.type("struct node")
