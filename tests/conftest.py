"""Fixtures that every suite shares."""

from __future__ import annotations

import gc
import re
import signal
import zlib
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from arches import ARCHES, cases_of
from host import host_code

from kprobes.machine.unicorn import assembler
from kprobes.testing import Bench

TESTS = Path(__file__).parent.resolve()

if find_spec("keystone") is None:  # tests that write assembly text need it; the library does not
    assembler._keystone = lambda: pytest.skip("Keystone is not installed", allow_module_level=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in a shell's background: tests of Ctrl-C would wait for ever
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]:  # by nohup, say: what tests start would inherit it, and never end
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin of --conformance, unless `-p kprobes.conformance` has."""
    parser.addoption("--all", action="store_true",
                     help="every case; else, where no test is asked for by name, a part of them that takes minutes")
    parser.addoption("--thorough", action="store_true",
                     help="every case, and each tries as much as it can, as where tests are asked for by name")
    parser.addoption("--part", action="store_true", help="the part also where tests are asked for by name")
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


#: Cases of a parametrized test that run unless `--all` or the test's name asks for every one.
CASES = 2
#: Of a test that proves a capability, so many cases of an architecture let one more run.
MORE = 10


def thinned(items: list[pytest.Item], quick: bool = False) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Choose the tests that run unless every case is asked for.

    Of the cases of a test a few are chosen, evenly spread. Where a minute is not the limit, a test that proves a
    capability has one for each architecture and engine, or more where there are many, and a test that is marked `whole`
    has all. Which ones depends on the test's name, so that all tests together have every architecture, and every
    process of pytest-xdist the same. A test that is marked `long` and proves no capability is left out.

    Args:
        items: every case.
        quick: True for a minute's part.

    Returns:
        (the tests to run, those to leave out).
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[pytest.Item] = set()
    for name, several in cases.items():
        start = zlib.crc32(name.encode())
        marks = {mark.name for mark in several[0].iter_markers()}
        if "long" in marks and (quick or "conformance" not in several[0].fixturenames):
            continue
        if "whole" in marks and not quick:
            kept.update(several)
        elif "conformance" in several[0].fixturenames and "sweep" not in marks and not quick:
            kept.update(_of_each(several, start))
        else:
            kept.update(_spread(several, start, CASES))
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _spread(several: list[pytest.Item], start: int, count: int) -> list[pytest.Item]:
    """So many of them, evenly spread; all where there are no more."""
    if len(several) <= count:
        return several
    step = len(several) / count
    return [several[(start + int(n * step)) % len(several)] for n in range(count)]


def _of_each(several: list[pytest.Item], start: int) -> list[pytest.Item]:
    """Of the cases of a test that proves a capability some for each architecture, in each engine."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in several:
        words = re.split(r"[-\[\]]", item.nodeid)
        arch = next((word for word in words if word in ARCHES), "")
        cases.setdefault(f"{arch} {'qemu' in words}" if arch else "", []).append(item)
    chosen = []
    for of_one in cases.values():
        count = 1 + len(of_one) // MORE
        chosen += _spread(of_one, start, count)
    return chosen


def _named(config: pytest.Config) -> bool:
    """True where somebody has asked for tests by name."""
    paths = [Path(arg.partition("::")[0]).resolve() for arg in config.args]
    return bool(config.getoption("keyword")) or any(path != TESTS for path in paths)


def _thins(config: pytest.Config) -> bool:
    """True where nobody has asked for every case, or for tests by name; and where a part was asked for."""
    if config.getoption("--part"):
        return True
    if config.getoption("markexpr") == "quick" and not config.getoption("keyword"):
        return True
    return not (config.getoption("--all") or config.getoption("--thorough") or _named(config))


def _thorough(config: pytest.Config) -> bool:
    """True where each test tries as much as it can: asked for by --thorough, or by naming tests without another word."""
    if _thins(config):
        return False
    return bool(config.getoption("--thorough")) or (_named(config) and not config.getoption("--all"))


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> bool:
    """True where every case was asked for."""
    return not _thins(request.config)


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """True where a test tries as much as it can, and not a portion, another one in each case (tests/portion.py)."""
    return _thorough(request.config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a test that is named by an address: every process of pytest-xdist would know it by another name. Skip tests
    of host code where there is none. Choose a part, unless everything or a test is asked for."""
    if _thins(config):
        items[:], left = thinned(items, config.getoption("markexpr") == "quick")
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
