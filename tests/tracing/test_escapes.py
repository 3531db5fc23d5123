"""What a guest or a file says reaches a terminal as text: no escape sequences, no lines of its own, no end of a quoted
string."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from debug_guests import FILES
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENT

from kprobes import EventError, KprobeError, Kprobes, Trace, UnicornMachine
from kprobes.cli import main
from kprobes.events._styles import Type
from kprobes.symbols import CONTROLS

pytestmark = pytest.mark.quick
DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64"
NAME = 's\x1b[31m\nFAKE"\\'  #: of the function string_length() in the guest here
TEXT = 'a\x1b[2J\nFAKE" b="c\\\x9b\u202e'


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The demo with another function name."""
    (path := tmp_path_factory.mktemp("hostile") / "demo").write_bytes(
        DEMO.read_bytes().replace(b"\0string_length\0", b"\0" + NAME.encode() + b"\0"))
    return str(path)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A guest whose line tables name another file."""
    data = FILES["mips-eh"]
    assert b"debug.c\0" in data
    (path := tmp_path_factory.mktemp("sources") / "mips").write_bytes(data.replace(b"debug.c\0", b"d\x1b[m\nF\0"))
    return str(path)


def said(*words: str) -> str:
    """Both outputs of a command, without its lines' ends; nothing in them is more than text."""
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    out = str(result.stdout + result.stderr)
    assert "defect" not in out and out
    assert not {*out} & {*map(chr, CONTROLS)} - {"\n"}, (words, out)
    assert not any(line.startswith(("FAKE", "F")) for line in out.splitlines()), (words, out)
    return out


STRING = "text=+0($arg1):string c=+0($arg1):char at=$stack0:symbol who=$comm"


def test_names_and_strings(hostile: str, tmp_path: Path) -> None:
    call = ("--call", f'table_lookup("{TEXT}", 0)'.replace("\\", "\\\\").replace('FAKE"', 'FAKE\\"').replace('b="',
                                                                                                          'b=\\"'))
    event = f"p:s s* {STRING}"
    for more in ((), ("--stack",), ("--json",), ("--json", "--stack"), ("-C",)):
        out = said("trace", hostile, event, *more, *call)
        if "--json" not in more:
            assert 'text="a\\x1b[2J\\nFAKE\\" b=\\"c\\\\' in out
    recording = str(tmp_path / "x.arrow")
    said("record", hostile, event, "r s*", "--stack", "-o", recording, *call)
    for by in ("event", "function", "caller", "task", "stack"):
        said("report", recording, "--by", by)
    for format in ("ftrace", "jsonl", "folded", "speedscope", "chrome", "svg"):
        said("convert", recording, "-", "--format", format)
    for keys in ("text", "c", "at", "who", "common_pid.execname", "common_stacktrace", "__probe_ip.sym",
                 "__probe_ip.sym-offset", "__probe_ip.hex"):
        said("hist", hostile, event, keys, *call)
        said("hist", hostile, event, keys, "--json", *call)
    for command in ("stat", "top"):
        said(command, hostile, "p s*", *call)
        said(command, hostile, "p s*", "--json", *call)
    said("graph", hostile, "table_lookup", *call)
    said("graph", hostile, "table_lookup", "--format", "folded", *call)
    said("cover", hostile, *call)


def test_names_that_are_listed(hostile: str) -> None:
    for words in (("list", "FILE"), ("list", "FILE", "s*"), ("symbols", "FILE"), ("check", "FILE"), ("check", "FILE", NAME),
                  ("check", "FILE", NAME + "+4"), ("check", "FILE", "sFAKE"), ("check", "FILE", "-e", "p s*"),
                  ("check", "FILE", "-e", "p s*+1"), ("list", "FILE", NAME + "x"), ("symbols", "FILE", NAME + "x"),
                  ("trace", "FILE", f"p {NAME}x", "--run"), ("trace", "FILE", f"p s* {NAME}", "--run"),
                  ("trace", "FILE", "p s*", "-x", "sFAKE", "--call", "sFAKE(1)"),
                  ("graph", "FILE", NAME, "--call", "main()"), ("graph", "FILE", NAME + "x", "--run")):
        said(*(hostile if word == "FILE" else word for word in words))


def test_source_files(sources: str, tmp_path: Path) -> None:
    for words in (("check", "FILE", "leaf"), ("list", "FILE", "leaf:*"),
                  ("trace", "FILE", "p leaf", "--stack", "--call", "outer(1)"),
                  ("trace", "FILE", "p leaf", "--stack", "--json", "--call", "outer(1)"),
                  ("record", "FILE", "p leaf", "--stack", "--call", "outer(1)", "-o", str(tmp_path / "x.arrow")),
                  ("report", str(tmp_path / "x.arrow"), "--by", "stack"),
                  ("cover", "FILE", "--call", "outer(1)")):
        said(*(sources if word == "FILE" else word for word in words))


def test_recordings_of_others(hostile: str, tmp_path: Path) -> None:
    """A file's own names of events, fields and places are not what kprobes has written."""
    import pyarrow

    recording = tmp_path / "x.arrow"
    said("record", hostile, "p:s s* text=+0($arg1):string", "--stack", "-o", str(recording), "--run")
    table = Trace.load(recording).to_arrow()
    facts = json.loads(table.schema.metadata[b"kprobes"])
    for event in facts["events"]:
        event |= {"where": NAME + "+0x1/0x2", "symbol": NAME, "name": NAME, "group": NAME}
    facts["names"] = dict.fromkeys(facts["names"], NAME)
    facts["lines"] = dict.fromkeys(facts["names"], NAME)
    names = pyarrow.array([NAME] * len(table)).dictionary_encode()
    table = table.set_column(1, "event", names).replace_schema_metadata({b"kprobes": json.dumps(facts).encode()})
    with pyarrow.OSFile(str(recording), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    for by in ("event", "function", "caller", "task", "stack"):
        said("report", str(recording), "--by", by)
    for format in ("ftrace", "jsonl", "folded", "speedscope", "chrome", "svg"):
        said("convert", str(recording), "-", "--format", format)


@PATIENT
@given(st.text())
def test_what_is_in_quotes_is_the_text(value: str) -> None:
    """A reader of Python's or C's literals finds what was recorded."""
    for style, quote in (("string", '"'), ("char", "'")):
        shown = Type(name=style, style=style, bits=8, size=1).show(value)
        assert shown[0] == shown[-1] == quote and ast.literal_eval(shown) == value
        assert not {*shown} & {*map(chr, CONTROLS)}


def test_errors_from_python(hostile: str) -> None:
    """Their sentences are shown by others, too."""
    with UnicornMachine.load(hostile) as m, Kprobes(m) as k:
        failing: list[Any] = [lambda: k.event(f"p {NAME}x"), lambda: k.check(NAME + "x"), lambda: m.symbols[NAME + "y"]]
        for fail in failing:
            with pytest.raises(KprobeError) as caught:
                fail()
            assert isinstance(caught.value, EventError) or "\x1b" not in str(caught.value).translate(CONTROLS)
