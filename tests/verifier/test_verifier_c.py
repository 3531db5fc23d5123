"""What clang makes of sensible C is accepted: each program of c/programs.c, at several levels and for several CPUs,
both byte orders.

And it is safe: accepted programs are run in the interpreter, which checks every access, within the steps that the
verifier promised.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from verifier.fuzz import held

from kprobes.programs.program import Program
from kprobes.programs.verifier import verify

HERE = Path(__file__).parent / "c"
NAMES = re.findall(r'^SEC\("k\w+/\w+"\) int (\w+)', (HERE / "programs.c").read_text(), re.M)
#: the levels that clang is called with, beside from_c's
BUILDS = [("bpfel", opt, cpu) for opt in ("-O1", "-O2", "-Os")
          for cpu in ("v1", "v2", "v3", "v4")] + [("bpfeb", "-O2", "v3"), ("bpfel", "-O3", "v3")]
#: what clang before -mcpu=v3 makes such that bounds are checked on one copy and another is used: Linux refuses it as
#: well
LOST_BOUNDS = {("big_value", "v1"), ("big_value", "v2")}
V3 = {"exchange"}


@cache
def built(target: str, opt: str, cpu: str) -> Program:
    pytest.importorskip("ziglang")
    command = [sys.executable, "-m", "ziglang", "clang", "-target", target, opt, "-g", f"-mcpu={cpu}",
               "-fno-stack-protector", "-c", "-o", "-", str(HERE / "programs.c")]
    return Program.from_elf(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_sensible_c_is_accepted_and_safe(name: str) -> None:
    code = built("bpfel", "-O2", "v3")[name].code
    facts = verify(code)
    held(code, facts, random.Random(name), 12)


@pytest.mark.parametrize("build", BUILDS, ids="-".join)
def test_however_it_is_compiled(build: tuple[str, str, str]) -> None:
    target, _, cpu = build
    program = built(*build)
    names = [n for n in NAMES if (n, cpu) not in LOST_BOUNDS and (n not in V3 or cpu in ("v3", "v4"))]
    assert set(names) - set(program.codes) == set()
    for name in names:
        code = program[name].code
        facts = verify(code)
        if target == "bpfel":
            held(code, facts, random.Random(name), 3)


def test_there_are_enough() -> None:
    assert len(NAMES) >= 45
