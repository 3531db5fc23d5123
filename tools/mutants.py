#!/usr/bin/env python3
"""Mutants of kprobes/core and kprobes/arch, drawn at random: does a test notice that the code is another one?

    pip install cosmic-ray
    nice -n 19 tools/mutants.py /work/mutants --count 24

A mutant is the project with one operator, number or condition changed (cosmic-ray makes it). It is
tried on the tests that are nearest to it: in a family of architectures on all cases of its own,
elsewhere on those that test the core; one that survives these is tried on the tests of all folders
that use both. --rings leaves the latter out. The tool works in a clone of this repository's last
commit in the folder it is given, keeps a line of JSON for each mutant there, and goes on where it
was killed. At the end it says how many survived, and shows each of them. Limits are of processor
time, so that other work on the computer changes nothing.

Not drawn are changes that nothing can notice: in annotations, which are never evaluated, and in
what only a type checker executes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("core", "arch")
TESTED = ("tests/arch", "tests/core", "tests/machine", "tests/differential", "tests/ebpf")
#: processor seconds that a ring of tests may take, some four times what it takes: one that takes longer has noticed
SECONDS = {"own": 400, "all": 3600}
WAITING = 10.0  #: as many times these seconds may pass: a test that waits for ever takes no processor

Span = tuple[tuple[int, int], tuple[int, int]]  #: (line, column) of the begin, and of the end


def unevaluated(tree: ast.AST) -> Iterator[Span]:
    """Places in a file that are never executed: annotations, and blocks for type checkers."""
    for node in ast.walk(tree):
        found: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif "TYPE_CHECKING" in _named(node) or "Protocol" in _named(node):
            found.append(node)
        for each in found:
            if each is not None:
                yield (each.lineno, each.col_offset), (each.end_lineno, each.end_col_offset)  # type: ignore[attr-defined]


def _named(node: ast.AST) -> set[str]:
    """Names in an `if`'s condition, or in the list of a class's bases."""
    heads: list[ast.expr] = []
    if isinstance(node, ast.If):
        heads = [node.test]
    elif isinstance(node, ast.ClassDef):
        heads = node.bases
    return {each.id for head in heads for each in ast.walk(head) if isinstance(each, ast.Name)}


def mutations(path: Path) -> list[Any]:
    """Mutations of one file that a test could notice, as cosmic-ray's MutationSpec."""
    from cosmic_ray.commands.init import _all_work_items

    spans = [*unevaluated(ast.parse(path.read_text()))]
    return [item.mutations[0] for item in _all_work_items([path], {})
            if not any(start <= tuple(item.mutations[0].start_pos) < end for start, end in spans)]


def draw(tree: Path, package: str, count: int, seed: int) -> list[Any]:
    """Mutations of a package, each of its lines of code as likely as any other.

    Args:
        tree: the clone.
        package: a folder of kprobes/.
        count: how many.
        seed: the same one draws the same mutations of the same commit.
    """
    rng = random.Random(f"{package} {seed}")
    files = sorted((tree / "kprobes" / package).rglob("*.py"))
    sizes = [len(path.read_text().splitlines()) for path in files]
    drawn: list[Any] = []
    while len(drawn) < count:
        path = rng.choices(files, sizes)[0]
        found = mutations(path)
        if found:
            drawn.append(rng.choice(found))
    return drawn


def own_tests(path: Path) -> tuple[str, ...]:
    """Pytest's arguments for the tests that are nearest to a file."""
    package = path.parent.name
    if path.parent.parent.name != "arch":
        return ("--part", "tests/core", "tests/arch")
    names = importlib.import_module(f"kprobes.arch.{package}").NAMES
    return ("tests/arch", "tests/differential/test_instructions.py", "tests/core/test_neighbours.py",
            "-k", '"' + " or ".join(names) + '"')


def command(ring: str, path: Path) -> str:
    """The command that runs a ring of tests for a changed file, in the clone."""
    chosen = own_tests(path) if ring == "own" else ("--part", *TESTED)
    tests = " ".join([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen])
    return f"bash -c 'ulimit -t {SECONDS[ring]}; exec {tests}'"


def check_tests(rings: list[str]) -> None:
    """Run rings on what is not changed: a test that fails there would notice everything."""
    from cosmic_ray.testing import run_tests
    from cosmic_ray.work_item import TestOutcome

    for ring in rings:
        outcome, output = run_tests(command(ring, ROOT / "kprobes" / "core" / "probe.py"), WAITING * SECONDS[ring])
        if outcome != TestOutcome.SURVIVED:
            sys.exit(f"the {ring} tests fail on what is not changed:\n{output[-2000:]}")


def tried(mutation: Any, rings: list[str]) -> tuple[str, str]:
    """The first of some rings of tests that notices a mutation, and what was changed.

    Returns:
        ("", difference) where none does; ("none", "") where the operator changes nothing.
    """
    from cosmic_ray.mutating import mutate_and_test

    difference = ""
    for ring in rings:
        result = mutate_and_test([mutation], command(ring, mutation.module_path), WAITING * SECONDS[ring])
        if result.test_outcome is None:
            return "none", ""
        difference = result.diff or ""
        if result.is_killed:
            return ring, difference
    return "", difference


def clone(folder: Path) -> Path:
    """A clone of the repository's last commit, made once; without the change that a kill has left."""
    tree = folder / "tree"
    if not tree.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    subprocess.run(["git", "-C", tree, "checkout", "--quiet", "."], check=True)
    return tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the clone and the journal are, or come")
    parser.add_argument("--count", type=int, default=24, help="mutants, half of them of each package")
    parser.add_argument("--seed", type=int, default=0, help="another one draws others")
    parser.add_argument("--rings", nargs="+", choices=[*SECONDS], default=[*SECONDS], help="tests to try")
    options = parser.parse_args()
    try:
        import cosmic_ray  # noqa: F401
    except ImportError:
        sys.exit("tools/mutants.py needs cosmic-ray: pip install cosmic-ray")
    folder = options.folder.resolve()
    tree = clone(folder)
    os.chdir(tree)
    journal = folder / "mutants.jsonl"
    journal.touch()
    done = {entry["mutant"]: entry for entry in map(json.loads, journal.read_text().splitlines())}
    if not done:
        check_tests(options.rings)
    shown: list[dict[str, str]] = []
    for package in PACKAGES:
        for mutation in draw(tree, package, options.count // 2, options.seed):
            where = f"{mutation.module_path.relative_to(tree)}:{mutation.start_pos[0]}"
            name = f"{where} {mutation.operator_name} {mutation.occurrence}"
            if name not in done:
                ring, difference = tried(mutation, options.rings)
                done[name] = {"mutant": name, "package": package, "noticed": ring, "difference": difference}
                with journal.open("a") as out:
                    out.write(json.dumps(done[name]) + "\n")
                print(f"{name}: {ring or 'survived'}", flush=True)
            shown.append(done[name])
    for package in PACKAGES:
        count = Counter(each["noticed"] for each in shown if each["package"] == package and each["noticed"] != "none")
        noticed = ", ".join(f"noticed by {ring} tests {count[ring]}" for ring in options.rings)
        print(f"{package}: {sum(count.values())} mutants, {noticed}, survived {count['']}")
    for each in shown:
        if not each["noticed"]:
            print(f"\n{each['mutant']}\n{each['difference']}")


if __name__ == "__main__":
    main()
