"""Fixtures that every suite shares."""

from __future__ import annotations

import gc
import re
import signal
import zlib
from collections.abc import Generator, Iterator
from importlib.util import find_spec

import pytest
from arches import cases_of
from host import host_code

from kprobes.machine.unicorn import assembler
from kprobes.testing import Bench

if find_spec("keystone") is None:  # tests that write assembly text need it; the library does not
    assembler._keystone = lambda: pytest.skip("Keystone is not installed", allow_module_level=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in a shell's background: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin of --conformance, unless `-p kprobes.conformance` has."""
    name = "kprobes.conformance"
    if not any(getattr(plugin, "__name__", "") == name for plugin in pluginmanager.get_plugins()):
        pluginmanager.import_plugin(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end, a million objects: the collector need not walk over them again and again. A
    gc.collect() of a test would take most of a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: Cases of a parametrized test that `-m quick` runs. With all of them it took four minutes of a processor.
CASES = 3


def thinned(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(tests that `-m quick` runs, those that it leaves out): of the cases of each test a few, evenly spread.

    Which ones depends on the test's name, so that all tests together have every architecture, and every process of
    pytest-xdist the same.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for name, several in cases.items()
            for item in (several if len(several) <= CASES else _spread(several, zlib.crc32(name.encode())))}
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _spread(several: list[pytest.Item], start: int) -> list[pytest.Item]:
    step = len(several) / CASES
    return [several[(start + int(n * step)) % len(several)] for n in range(CASES)]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a test that is named by an address: every process of pytest-xdist would know it by another name. Skip tests
    of host code where there is none. Thin what `-m quick` runs, unless a test is asked for by name."""
    if config.getoption("markexpr") == "quick" and not config.getoption("keyword"):
        items[:], left = thinned(items)
        config.hook.pytest_deselected(items=left)
    named = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]+>", item.nodeid)]
    if named:
        raise pytest.UsageError(f"name these tests by ids=...: {', '.join(named)}")
    for item in items:
        if item.get_closest_marker("host_code") and not host_code():
            item.add_marker(pytest.mark.skip(reason="host code is turned off, or not to be had here"))


class _Benches(dict[str, Bench]):
    def __getitem__(self, arch: str) -> Bench:
        if arch not in self or not self.get(arch).usable:  # type: ignore[union-attr]
            self[arch] = Bench(arch, cases_of(arch))
        return super().__getitem__(arch)


@pytest.fixture(scope="session")
def benches() -> Iterator[dict[str, Bench]]:
    """Benches of this process by architecture, made when first asked for."""
    made = _Benches()
    yield made
    for bench in made.values():
        bench.close()
