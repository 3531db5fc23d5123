"""Lists of probes: which fit a search, and how they are written."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from kprobes.script.listing import (
    ListedProgram,
    Listing,
    lines,
    looks_like_a_missing_file,
    missing_file_warning,
    programs_of,
)
from kprobes.script.points import read
from kprobes.script.source import NOWHERE, Diagnostics, ScriptSource
from kprobes.script.tree import AttachPoint

pytestmark = pytest.mark.quick


class Names:
    """Two functions, an import and two markers."""

    def functions(self) -> Sequence[tuple[str, int]]:
        return [("main", 16), ("add", 32), ("puts@plt", 48)]

    def markers(self) -> Sequence[tuple[str, str]]:
        return [("heap", "grow"), ("heap", "shrink"), ("heap", "grow")]

    def parameters(self, address: int) -> Sequence[str]:
        return {16: ["int argc", "char** argv"], 32: ["int a"]}[address]

    def result(self, address: int) -> str:
        return {16: "int", 32: ""}[address]


def load(path: str) -> Names:
    """Take files that end in .so for programs."""
    if not path.endswith(".so"):
        raise OSError("no program")
    return Names()


GUEST = ListedProgram("./demo", Names())


def test_markers_are_listed_under_their_own_file() -> None:
    """A program's and a library's markers each stand under the file that has them."""
    files = [SimpleNamespace(module="", path="./demo"), SimpleNamespace(module="libc.so.6", path="/lib/libc.so.6")]
    markers = [SimpleNamespace(provider="heap", name="grow", module=""),
               SimpleNamespace(provider="libc", name="setjmp", module="libc.so.6")]
    machine = SimpleNamespace(symbols=[], debug=SimpleNamespace(files=files, markers=lambda: markers))
    program, library = programs_of(machine, "./demo")
    assert program.names.markers() == [("heap", "grow")]
    assert library.names.markers() == [("libc", "setjmp")]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("uprobe:./demo:*", ["uprobe:./demo:add", "uprobe:./demo:main"]),
        ("uretprobe:demo:ma*", ["uretprobe:./demo:main"]),
        ("u:main", ["uprobe:./demo:main"]),
        ("kprobe:a*,kr:main", ["kprobe:add", "kretprobe:main"]),
        ("usdt:*:heap:*", ["usdt:./demo:heap:grow", "usdt:./demo:heap:shrink"]),
        ("usdt:./demo:gr*", ["usdt:./demo:heap:grow"]),
        ("interval:*", ["interval:hz:", "interval:ms:", "interval:s:", "interval:us:"]),
        ("profile:ms", ["profile:ms:"]),
        ("self:*", ["self:signal:SIGUSR1"]),
        (
            "*dd",
            [
                "fentry:add",
                "fexit:add",
                "kprobe:add",
                "kretprobe:add",
                "uprobe:./demo:add",
                "uretprobe:./demo:add",
            ],
        ),
        ("uprobe:./other:*", []),
    ],
)
def test_search(pattern: str, found: list[str]) -> None:
    assert [probe.text for probe in Listing(GUEST, load).search(pattern)] == found


class WrittenNames(Names):
    """Functions of C++ and Rust."""

    def functions(self) -> Sequence[tuple[str, int]]:
        return [("_ZN3geo5scaleEii", 16), ("_ZN3geo5scaleEd", 16), ("_ZN1b4area17h672610d0173b35e4E", 32)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("uprobe:geo:*b::*", ["_ZN1b4area17h672610d0173b35e4E"]),
        ("uprobe:geo:cpp:*o::sc*", ["_ZN3geo5scaleEd", "_ZN3geo5scaleEii"]),
        ('uprobe:geo:cpp:"geo::scale(int, int)"', ["_ZN3geo5scaleEii"]),
        ('uprobe:geo:"geo::scale(int, int)",uprobe:geo:b::*', ["_ZN3geo5scaleEii", "_ZN1b4area17h672610d0173b35e4E"]),
        ("uprobe:geo:*c::*", []),
    ],
)
def test_names_as_people_write_them(pattern: str, found: list[str]) -> None:
    guest = ListedProgram("./geo", WrittenNames())
    texts = [probe.text for probe in Listing(guest, load).search(pattern)]
    assert texts == [f"uprobe:./geo:{name}" for name in found]
    texts = [probe.text for probe in Listing(guest, load).search(pattern.replace("uprobe:geo:", "kprobe:").replace("cpp:", ""))]
    assert texts == [f"kprobe:{name}" for name in found]


def test_verbose() -> None:
    probes = Listing(GUEST, load).search("uprobe:./demo:*")
    assert list(lines(probes, True)) == [
        "uprobe:./demo:add",
        "    int a",
        "uprobe:./demo:main",
        "    int argc",
        "    char** argv",
    ]


def test_verbose_shows_the_result_at_fexit_alone() -> None:
    probes = Listing(GUEST, load).search("fexit:*,fentry:main")
    assert list(lines(probes, True)) == [
        "fexit:add",
        "    int a",
        "fexit:main",
        "    int argc",
        "    char** argv",
        "    int retval",
        "fentry:main",
        "    int argc",
        "    char** argv",
    ]


def test_files(tmp_path: Path) -> None:
    for name in ("a.so", "b.so", "c.txt"):
        (tmp_path / name).touch()
    listing = Listing(None, load)
    found = [probe.text for probe in listing.search(f"uprobe:{tmp_path}/*:main")]
    assert found == [f"uprobe:{tmp_path}/a.so:main", f"uprobe:{tmp_path}/b.so:main"]
    found = [probe.text for probe in listing.search(f"*:{tmp_path}/a.so:main")]
    assert f"uprobe:{tmp_path}/a.so:main" in found
    assert listing.search("uprobe:*:main") == []


def test_points_of_a_script() -> None:
    diagnostics = Diagnostics(ScriptSource("stdin", ""))
    texts = ("begin", "i:ms:100", "uprobe:./demo:m*", "usdt:./demo:heap:grow", "kprobe:add")
    points = [
        point for text in texts for point in read(AttachPoint(span=NOWHERE, text=text), diagnostics)
    ]
    assert not diagnostics.messages
    assert [probe.text for probe in Listing(GUEST, load).of_points(points)] == [
        "interval:ms:",
        "uprobe:./demo:main",
        "usdt:./demo:heap:grow",
        "kprobe:add",
    ]


class LibraryNames(Names):
    """A function of its own, and one that the guest has, too."""

    def functions(self) -> Sequence[tuple[str, int]]:
        return [("malloc", 16), ("add", 32)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("uprobe:libc:*", ["uprobe:/lib/libc.so.6:add", "uprobe:/lib/libc.so.6:malloc"]),
        ("uprobe:libc.so.6:m*", ["uprobe:/lib/libc.so.6:malloc"]),
        ("uprobe:*:ma*", ["uprobe:./demo:main", "uprobe:/lib/libc.so.6:malloc"]),
        ("kprobe:*", ["kprobe:add", "kprobe:main", "kprobe:malloc"]),
    ],
)
def test_libraries_of_the_guest(pattern: str, found: list[str]) -> None:
    listing = Listing(GUEST, load, libraries=[ListedProgram("/lib/libc.so.6", LibraryNames())])
    assert [probe.text for probe in listing.search(pattern)] == found


def test_missing_file() -> None:
    assert looks_like_a_missing_file("tool.bt")
    assert not looks_like_a_missing_file("uprobe:./a.out:*")
    assert missing_file_warning("tool.bt").startswith("WARNING: It appears that 'tool.bt' is")


def test_a_glob_of_files_means_the_guest_and_others(tmp_path: Path) -> None:
    """The guest is listed once, and files beside it as well."""
    for name in ("one.so", "two.so", "text.c"):
        (tmp_path / name).write_text("")
    guest = ListedProgram(str(tmp_path / "one.so"), Names())
    found = Listing(guest, load).search(f"uprobe:{tmp_path}/*:main")
    assert [probe.text for probe in found] == [
        f"uprobe:{tmp_path}/one.so:main",
        f"uprobe:{tmp_path}/two.so:main",
    ]
    assert [probe.text for probe in Listing(guest, load).search("uprobe:*:main")] == [
        f"uprobe:{tmp_path}/one.so:main"
    ]
