"""What every suite shares: architectures, their case files, one bench each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kprobes import arch as architectures
from kprobes.machine._guests import GUESTS
from kprobes.testing import Bench, CaseFile, read_cases

HERE = Path(__file__).resolve().parent
CASES = HERE / "arch" / "cases"
PROGRAMS = HERE / "programs"
ARCHES = architectures.names()
RUNNABLE = tuple(name for name in ARCHES if name in GUESTS)

#: Architectures that have no case file or no programs, each with the reason. Nothing else may lack them.
NO_CASES: dict[str, str] = {}
NO_PROGRAMS: dict[str, str] = {}
NO_ENGINE: dict[str, str] = {}


def cases_of(arch: str) -> CaseFile:
    """The case file of an architecture; empty where there is none (test_contract.py says whether that is allowed)."""
    path = CASES / f"{arch}.txt"
    return read_cases(path) if path.exists() else CaseFile()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """--conformance, also where the package is on the path but not installed."""
    if not any(pluginmanager.has_plugin(name) for name in ("kprobes_conformance", "kprobes.conformance")):
        pluginmanager.import_plugin("kprobes.conformance")


@pytest.fixture(scope="session")
def benches() -> Iterator[dict[str, Bench]]:
    """Benches of this process by architecture, made when first asked for."""
    made = _Benches()
    yield made
    for bench in made.values():
        bench.close()


class _Benches(dict[str, Bench]):
    def __missing__(self, arch: str) -> Bench:
        self[arch] = bench = Bench(arch, cases_of(arch))
        return bench
