"""What `-m quick` runs: a few cases of each test, the same in every process, and every architecture somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from arches import ARCHES

pytestmark = pytest.mark.quick


class Item:
    """A test that has a name.

    Attributes:
        marks: names of its markers.
    """

    def __init__(self, nodeid: str, *fixturenames: str, marks: tuple[str, ...] = ()) -> None:
        self.nodeid, self.fixturenames, self.marks = nodeid, fixturenames, marks

    def iter_markers(self) -> list[pytest.Mark]:
        """Its markers."""
        return [getattr(pytest.mark, name).mark for name in self.marks]


def test_cases_are_spread(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    items = [Item(f"tests/test_a.py::test_{n}[{arch}]") for n in range(120) for arch in ARCHES]
    kept, left = conftest.thinned(items)
    assert len(kept) == conftest.CASES * 120 and len(kept) + len(left) == len(items)
    assert {item.nodeid.partition("[")[2].rstrip("]") for item in kept} == {*ARCHES}
    assert conftest.thinned(items)[0] == kept
    alone = [Item(f"tests/test_a.py::test_{n}") for n in range(9)]
    assert conftest.thinned(alone) == (alone, [])


def test_capabilities_have_every_architecture_unless_it_is_to_be_quick(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    items = [Item(f"tests/test_a.py::test_one[{arch}-O{n}]", "conformance") for arch in ARCHES for n in range(2)]
    assert {item.nodeid.partition("[")[2].partition("-")[0] for item in conftest.thinned(items)[0]} == {*ARCHES}
    assert len(conftest.thinned(items, quick=True)[0]) == conftest.CASES


def test_what_takes_long_is_left_out_unless_it_proves_a_capability(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    items = [Item("tests/test_a.py::test_a"), Item("tests/test_a.py::test_b", marks=("quick", "long"))]
    items.append(Item("tests/test_a.py::test_c", "conformance", marks=("long",)))
    assert conftest.thinned(items, quick=True) == (items[:1], items[1:])
    assert conftest.thinned(items) == ([items[0], items[2]], [items[1]])


class Config:
    """What a command asks for."""

    def __init__(self, *args: str, **options: object) -> None:
        self.args = [*args] or [str(Path(__file__).parent)]
        self._options = {"all": False, "thorough": False, "part": False, "keyword": "", "markexpr": "", **options}

    def getoption(self, name: str) -> object:
        """An option, also by its name in a command."""
        return self._options[name.lstrip("-")]


def test_files_that_are_named_run_whole_or_in_part(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    assert conftest._thins(Config()) and not conftest._thins(Config(all=True))
    assert not conftest._thins(Config("tests/core")) and not conftest._thins(Config(keyword="fib"))
    assert conftest._thins(Config("tests/core", part=True)) and conftest._thins(Config(keyword="fib", part=True))


def test_what_is_named_is_tried_thoroughly(pytestconfig: pytest.Config) -> None:
    """--all runs every case, and each in a portion: README's command runs nothing that it does not."""
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py")))
    thorough = [Config(thorough=True), Config("tests/core"), Config(keyword="fib"), Config("tests/core", thorough=True)]
    not_so = [Config(), Config(all=True), Config("tests/core", all=True), Config("tests/core", part=True),
              Config(markexpr="quick"), Config(thorough=True, part=True)]
    assert all(map(conftest._thorough, thorough)) and not any(map(conftest._thorough, not_so))
    assert not any(map(conftest._thins, thorough)) and not conftest._thins(Config("tests/core", all=True))
