"""The public interface: what stands in tests/data/public.txt, no more and no less.

`python tests/test_public.py` writes the file anew. What leaves it, or changes there in a way that a
caller notices, wants a former name (kprobes/deprecation.py) and a line in CHANGELOG.md: docs/public.md.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import has

import kprobes
from kprobes import Graph, HeapCheck, Recording, Script
from kprobes.deprecation import FORMER, FormerName, Renamed
from kprobes.programs.attach import attach

quick = pytest.mark.quick
ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "tests" / "data" / "public.txt"
#: classes whose members are Python's
BUILT_IN = (object, BaseException, list, dict, tuple)
PAGE = ROOT / "docs" / "public.md"
REFERENCE = ROOT / "docs" / "reference.md"


def modules() -> list[str]:
    """The modules that docs/public.md names as public."""
    return re.findall(r"^\| `(kprobes[.\w]*)` \|", PAGE.read_text(), re.MULTILINE)


def signature(function: object) -> str:
    """A callable's parameters and their defaults; annotations are mypy's business."""
    try:
        found = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=inspect.Parameter.empty, default=plain(p.default))
                  for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def plain(default: object) -> object:
    """A default whose repr is the same in every process: itself, or Ellipsis for functions and objects."""
    if default is inspect.Parameter.empty or default is None:
        return default
    return default if isinstance(default, (bool, int, float, str, bytes, tuple)) else ...


#: class of `kprobes` -> members that docs/reference.md leaves out, as they are the library's own
HIDDEN = {name: {*words.replace("-", "").split()}
          for name, words in re.findall(r"<!-- generated: reference (?:\w+\.)*(\w+)((?: -\w+)*) -->", REFERENCE.read_text())}


def members(name: str, kind: type) -> Iterator[str]:
    """A line for each public member of a class."""
    hidden = HIDDEN.get(kind.__name__, set())
    if issubclass(kind, enum.Enum):
        yield from (f"{name}.{member}" for member in sorted(kind.__members__))
        return
    made = "__init__" not in hidden and not issubclass(kind, BaseException)
    if made and (has(kind) or "__init__" in vars(kind)):
        yield f"{name}{signature(kind)}"
    else:
        yield name
    for member in sorted(dir(kind)):
        if member.startswith("_") or member in hidden or any(member in vars(base) for base in BUILT_IN):
            continue
        value = inspect.getattr_static(kind, member)
        if isinstance(value, (classmethod, staticmethod)):
            yield f"{name}.{member}{signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"{name}.{member}{signature(value)}"
        else:
            yield f"{name}.{member}"


def surface() -> Iterator[str]:
    """The lines of the file."""
    for module in modules():
        found = importlib.import_module(module)
        for public in sorted(found.__all__):
            name, value = f"{module}.{public}", getattr(found, public)
            if inspect.isclass(value):
                yield from members(name, value)
            elif callable(value):
                yield f"{name}{signature(value)}"
            else:
                yield name


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 tells other signatures of protocols")
@quick
def test_public_interface_is_what_the_file_says() -> None:
    assert sorted(surface()) == sorted(FILE.read_text().splitlines()), \
        "public names have changed: see docs/public.md; python tests/test_public.py writes the file anew"


@quick
def test_former_names_of_the_package_lead_to_the_present_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMER, "Probes", Renamed("Kprobes", "1.3"))
    with pytest.warns(DeprecationWarning, match=r"kprobes\.Probes is called Kprobes; .* goes in kprobes 1\.3") as told:
        assert kprobes.Probes is kprobes.Kprobes
    assert told[0].filename == __file__


@quick
def test_former_names_of_members_lead_to_the_present_ones() -> None:
    class Counted:
        hits = 3
        nhits = FormerName("hits", goes="1.3")

    counted = Counted()
    with pytest.warns(DeprecationWarning, match=r"Counted\.nhits is called hits") as told:
        assert counted.nhits == 3
    assert told[0].filename == __file__
    with pytest.warns(DeprecationWarning):
        counted.nhits = 4
    assert counted.hits == 4


@quick
def test_former_names_stay_for_two_minor_versions() -> None:
    """None of those that are there should have gone by now."""
    now = [int(number) for number in re.findall(r"\d+", kprobes.__version__)[:2]]
    assert [former for former, renamed in FORMER.items()
            if [int(number) for number in renamed.goes.split(".")[:2]] <= now] == []


@quick
@pytest.mark.parametrize(("method", "made"), [("trace", Recording), ("graph", Graph), ("heap", HeapCheck),
                                              ("script", Script), ("attach", attach)])
def test_methods_have_the_defaults_of_what_they_make(method: str, made: Callable[..., object]) -> None:
    """A method of Kprobes names the parameters again, for type checkers."""
    named = inspect.signature(getattr(kprobes.Kprobes, method)).parameters
    theirs = inspect.signature(made).parameters
    shared = {name for name in {*named} & {*theirs} if named[name].default is not inspect.Parameter.empty}
    assert len(shared) >= 3
    assert [name for name in sorted(shared - {"reads_lines"}) if named[name].default != theirs[name].default] == []


#: a mistake, as a line of a user's file that has what PREAMBLE has -> what mypy says of it
PREAMBLE = """import kprobes
from kprobes import Kprobe, Kprobes, QemuMachine, RemoteMachine
from kprobes.board import (Board, Clint, Pl011, Sp804, Stm32F4Usart, Stm32L4Usart, SystemControl,
                           Uart16550)
from kprobes.testing import Recorder, kretprobes_everywhere

"""
HEAD = "def f{}(k: Kprobes, board: Board, said: Recorder, remote: RemoteMachine, qemu: QemuMachine) -> None:\n"
MISTAKES = {
    'said.both("a", symbol_nam="f")': 'Unexpected keyword argument "symbol_nam"',
    "kretprobes_everywhere(k, [], max_active=3)": 'Unexpected keyword argument "max_active"',
    'board.with_more(archs="arm")': 'Unexpected keyword argument "archs"',
    'board.with_more(base="0x1000")': 'Argument "base" to "with_more" of "Board" has incompatible type',
    'Pl011(0, recieved=b"x")': 'Unexpected keyword argument "recieved" for "Pl011"',
    "Uart16550(0, strid=4)": 'Unexpected keyword argument "strid" for "Uart16550"',
    "Stm32F4Usart(0, lin=4)": 'Unexpected keyword argument "lin" for "Stm32F4Usart"',
    "Stm32L4Usart(0, siz=4)": 'Unexpected keyword argument "siz" for "Stm32L4Usart"',
    "Clint(0, dividr=4)": 'Unexpected keyword argument "dividr" for "Clint"',
    'Sp804(0, received=b"")': 'Unexpected keyword argument "received" for "Sp804"',
    "SystemControl(nam='x')": 'Unexpected keyword argument "nam" for "SystemControl"',
    'Pl011(0, line=b"x")': 'Argument "line" to "Pl011" has incompatible type',
    "remote.mmio(0, 16, reed=None)": 'Unexpected keyword argument "reed" for "mmio"',
    "remote.count_blocks(arc=True)": 'Unexpected keyword argument "arc" for "count_blocks"',
    'qemu.watch_at(0, 4, "w")': 'Missing positional argument "report" in call to "watch_at"',
    "qemu.restore()": 'Missing positional argument "snapshot" in call to "restore"',
    "qemu.snapshot(1)": 'Too many arguments for "snapshot"',
    'k.kprobe("f", pre_handlr=print)': 'Unexpected keyword argument "pre_handlr"',
    'k.kretprobe("f", max_active=3)': 'Unexpected keyword argument "max_active"',
    'k.trace("p f", stacks=True)': 'Unexpected keyword argument "stacks"',
    'k.script("begin {}", unsave=True)': 'Unexpected keyword argument "unsave"',
    "k.heap(raises=True)": 'Unexpected keyword argument "raises"',
    "Kprobe(pre_handlr=print)": 'Unexpected keyword argument "pre_handlr"',
    "kprobes.Kprobez": 'Module has no attribute "Kprobez"',
}


def test_a_wrong_name_is_an_error_in_the_editor(tmp_path: Path) -> None:
    """Each line of a user's file has its mistake; mypy names all of them."""
    mypy = pytest.importorskip("mypy.api")
    file = tmp_path / "wrong.py"
    # a function each: mypy does not look behind what never returns
    file.write_text(PREAMBLE + "".join(HEAD.format(number) + f"    {line}\n" for number, line in enumerate(MISTAKES)))
    out, _, _ = mypy.run([str(file), "--config-file", str(ROOT / "pyproject.toml")])
    assert [said for said in MISTAKES.values() if said not in out] == []


def callables() -> Iterator[tuple[str, Callable[..., object]]]:
    """(name, function) of each public function, constructor and method."""
    for module in modules():
        found = importlib.import_module(module)
        for public in sorted(found.__all__):
            name, value = f"{module}.{public}", getattr(found, public)
            if not inspect.isclass(value):
                if inspect.isfunction(value):
                    yield name, value
                continue
            hidden = HIDDEN.get(public, set())
            for member in ["__init__", *(each for each in dir(value) if not each.startswith("_"))]:
                if member in hidden or isinstance(inspect.getattr_static(value, member), FormerName):
                    continue
                function = getattr(value, member)
                if inspect.isroutine(function) and str(getattr(function, "__module__", "")).startswith("kprobes"):
                    yield f"{name}.{member}", function


def annotations(kind: type, hidden: set[str]) -> Iterator[tuple[str, str]]:
    """(member, its type as text) of attributes and properties of a class that are public."""
    for base in kind.__mro__:
        if base.__module__.startswith("kprobes"):
            for member, value in vars(base).items():
                if isinstance(value, property) and value.fget is not None:
                    yield member, str(getattr(value.fget, "__annotations__", {}).get("return", ""))
            yield from ((member, str(text)) for member, text in vars(base).get("__annotations__", {}).items())


def given() -> Iterator[tuple[str, str]]:
    """(name, its type as text) of what public functions, properties and attributes give."""
    for name, function in callables():
        yield name, str(inspect.signature(function).return_annotation)
    for module in modules():
        found = importlib.import_module(module)
        for public in found.__all__:
            kind = getattr(found, public)
            if inspect.isclass(kind) and kind is not kprobes.Machine:  # it is the contract
                hidden = HIDDEN.get(public, set())
                yield from ((f"{module}.{public}.{member}", text) for member, text in annotations(kind, hidden)
                            if not member.startswith("_") and member not in hidden)


def classes() -> dict[str, set[str]]:
    """Class of the package -> modules that define one of that name."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "kprobes").rglob("*.py"):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


#: Engines and architectures have these, which docs/contract.md is about.
CONTRACT = ("kprobes.machine._base", "kprobes.arch.")


def test_what_public_names_give_can_be_imported() -> None:
    """So that users can write the types of what they keep."""
    sources = "".join(path.read_text() for path in (ROOT / "kprobes" / "campaign").glob("*.py"))
    ours, exported = classes(), {name for module in modules() for name in importlib.import_module(module).__all__}
    found = {f"{name}: {word}" for name, text in given() for word in re.findall(r"\b[A-Z]\w+", text)
             if word in ours and word not in exported and f"{word} = TypeVar" not in sources
             and not any(home.startswith(CONTRACT) for home in ours[word])}
    assert found == set()


@quick
def test_the_reference_has_every_name_of_the_package() -> None:
    text = REFERENCE.read_text()
    assert [name for name in kprobes.__all__
            if not re.search(rf"<!-- generated: reference {name}\b|`{name}\b|^### {name}$", text, re.MULTILINE)] == []


def named(name: str) -> type:
    """The public class of this name."""
    found = next(module for module in modules() if name in importlib.import_module(module).__all__)
    kind = getattr(importlib.import_module(found), name)
    assert inspect.isclass(kind)
    return kind


@quick
def test_what_the_reference_leaves_out_exists() -> None:
    """A member that has another name now would be shown."""
    assert [f"{name}.{member}" for name, hidden in HIDDEN.items() for member in sorted(hidden)
            if not hasattr(kind := named(name), member)
            and not any(member in inspect.get_annotations(base) or f"self.{member}" in inspect.getsource(base)
                        for base in kind.__mro__ if base.__module__.startswith("kprobes"))] == []


@quick
def test_every_public_parameter_has_a_type() -> None:
    """`**more: Any` would take every misspelt name, and `*args: Any` every value."""
    found = [f"{name}: {'*' if parameter.kind is parameter.VAR_POSITIONAL else '**'}{parameter.name}"
             for name, function in callables() for parameter in inspect.signature(function).parameters.values()
             if (parameter.kind is parameter.VAR_KEYWORD and not str(parameter.annotation).startswith("Unpack["))
             or (parameter.kind is parameter.VAR_POSITIONAL and parameter.annotation in ("", "Any", "object", parameter.empty))]
    assert found == []


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in sorted(surface())))
