"""Fixtures that every suite shares."""

from __future__ import annotations

import gc
import re
import signal
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
    """--conformance, also where the package is on the path but not installed."""
    if not any(pluginmanager.has_plugin(name) for name in ("kprobes_conformance", "kprobes.conformance")):
        pluginmanager.import_plugin("kprobes.conformance")


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that is named by an address: every process of pytest-xdist would know it by another name. Skip tests
    of host code where there is none."""
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
