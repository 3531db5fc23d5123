"""Sentences of the documentation that have been wrong, held against what they are about."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE, programs_of

import kprobes
from kprobes import Blacklisted, EventError, Kprobe, Kprobes, UnicornMachine

pytestmark = pytest.mark.quick
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_warning_is_on_the_page_of_errors() -> None:
    page = (DOCS / "errors.md").read_text()
    warnings = [name for name in kprobes.__all__ if inspect.isclass(found := getattr(kprobes, name))
                and issubclass(found, Warning)]
    assert len(warnings) >= 5
    assert [name for name in warnings if f"| `{name}` |" not in page] == []


def test_what_events_do_not_have_is_refused() -> None:
    """Each thing that the page says guests do not have; and what it says they have, with -g, is taken."""
    sentence = re.search(r"What Linux has and guests do not: ([^.]*)\.", (DOCS / "events.md").read_text())
    assert sentence is not None
    missing = re.findall(r"`([^`]+)`", sentence[1])
    assert missing
    with tarfile.open(ROOT / "tests" / "data" / "debug.tar.xz") as archive:
        member = next(member for member in archive.getmembers() if "mips" in member.name)
        data = archive.extractfile(member).read()  # type: ignore[union-attr]
    with UnicornMachine.load(data) as m, Kprobes(m) as k:
        for word in missing:
            with pytest.raises(EventError):
                k.event(f"p table_insert x=$arg1:{word}" if word.startswith("%") else f"p table_insert {word}")
        for given in ("$arg*", "key", "table->count"):
            k.event(f"p table_insert {given}").remove()


def test_the_advice_of_the_blacklist_can_be_followed() -> None:
    """An entry of the user's can be taken off it, a page of ours cannot, and nothing says so."""
    m = UnicornMachine.from_code(bytes.fromhex("90909090c3"), arch="x86_64", symbols={"f": (0x10000, 5)})
    with m, Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="f"))
        k.blacklist.add("f")
        for start, _, name in k.blacklist:
            with pytest.raises(Blacklisted) as refused:
                k.register_kprobe(Kprobe(addr=start))
            assert ("blacklist.remove" in str(refused.value)) == (name == "f"), name
        k.blacklist.remove("f")
        k.register_kprobe(Kprobe(symbol_name="f"))


EXAMPLES = [path for arch in RUNNABLE for path in programs_of(arch)[-1:] if "crc32" in path.read_bytes().decode("latin1")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_sample_runs_on_every_architecture(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the registers of the machine at hand, and says how many handlers it has."""
    sample = runpy.run_path(str(ROOT / "examples" / "kprobe_example.py"))
    sample["main"](str(path), "crc32")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["Planted", "<crc32>", "<crc32>", "kprobe"]
    assert "all three" not in sample["__doc__"]


def documented() -> list[Any]:
    """The classes of the API pages."""
    found = []
    for page in (DOCS / "api").glob("*.rst"):
        for kind, name in re.findall(r"auto(class|module):: (\S+)", page.read_text()):
            module, _, last = name.rpartition(".")
            if kind == "class":
                found.append(getattr(__import__(module, fromlist=[last]), last))
            else:
                of = __import__(name, fromlist=[last])
                found += [c for c in vars(of).values() if inspect.isclass(c) and c.__module__.startswith(name)]
    return found


def attributes_of(doc: str) -> list[str]:
    """The text of each entry of a docstring's Attributes."""
    section = re.search(r"^(?:Attributes|Args):\n((?:    .*\n|\n)+)", inspect.cleandoc(doc) + "\n", re.M)
    return re.split(r"\n(?=\S)", inspect.cleandoc(section[1])) if section else []


@pytest.mark.parametrize("kind", documented(), ids=lambda kind: kind.__name__)
def test_attributes_stand_one_a_line(kind: Any) -> None:
    """Else the book runs them together: the first one's description has all others."""
    several = [entry for entry in attributes_of(kind.__doc__ or "")
               if re.search(r"[.;]\s+[a-z_]\w*(?:, [a-z_]\w*)*:\s", entry)]
    assert several == []


def test_properties_are_no_types_in_the_book() -> None:
    """`text: text` in a property's docstring is not a type and a description."""
    napoleon = pytest.importorskip("sphinx.ext.napoleon.docstring")
    code = f"""import runpy
runpy.run_path({str(DOCS / "conf.py")!r})
from sphinx.ext.napoleon.docstring import GoogleDocstring, NumpyDocstring
for kind in (GoogleDocstring, NumpyDocstring):
    print(kind(["text -> True: text; None: more"], what="property"))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split("\n") == ["text -> True: text; None: more"] * 2 + [""], napoleon
