"""A type is one row of the table of styles: everything else that reads, shows and exports values goes by it."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from trace_processor import ask

from kprobes import EventError, KprobeError, Kprobes, Trace, UnicornMachine
from kprobes.events import _styles as styles
from kprobes.symbols import Symbols

pytestmark = pytest.mark.quick
DEMO = "examples/demo.x86_64"


def truth(type: styles.Type, symbols: Symbols) -> Callable[[int], styles.Scalar]:
    return lambda word: "yes" if word & (1 << type.bits) - 1 else "no"


def fixed(type: styles.Type, symbols: Symbols) -> Callable[[int], styles.Scalar]:
    """Binary, half of the bits behind the point."""
    return lambda word: (word & (1 << type.bits) - 1) / (1 << type.bits // 2)


#: of each kind of values that a number can be shown as
ADDED = (
    styles.Style(name="truth", names={"truth8": 8, "truth32": 32}, written="truth8 truth32", values="text",
                 converter=truth, quote="", compared="{}", compared_as_text=True, printf="%u"),
    styles.Style(name="fixed", names={"q16": 16, "q32": 32}, written="q16 q32", values="float", converter=fixed,
                 printf="%f"),
    styles.Style(name="octets", names={"o16": 16}, written="o16", values="integer", hexadecimal=True, compared="{}",
                 printf="%x"),
)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    for style in ADDED:
        monkeypatch.setitem(styles.STYLES, style.name, style)


EVENT = "p:hit crc32 ok=$arg1:truth8 each=+0($arg1):truth8[2] q=+0($arg1):q32 o=$arg2:o16 none=+0(%r15):truth8"


def recorded(filter: str = "") -> Trace:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        at = m.alloc(8)
        m.write(at, bytes((0, 128, 1, 0)))
        m.regs["r15"] = 8  # not mapped
        with k.trace(EVENT, filter=filter) as t:
            m.call("crc32", at, 0x12, 0)
            m.call("crc32", at + 1, 0x13, 0)
    return t


VALUES = [{"ok": "no", "each": ("no", "yes"), "q": 1.5, "o": 0x12, "none": None},
          {"ok": "yes", "each": ("yes", "yes"), "q": 0x180 / (1 << 16), "o": 0x13, "none": None}]


def test_a_new_type_is_refused_where_there_is_none() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, pytest.raises(EventError, match="f32 f64 char"):
        k.event(EVENT)


@pytest.mark.parametrize("facts", [{"values": "integer", "converter": fixed}, {"values": "float"},
                                   {"values": "text", "read": "string", "converter": truth}])
def test_a_converter_that_nothing_would_ask_is_refused(facts: dict[str, object]) -> None:
    """Programs and machines cut integers out by themselves, and Python does so in registers."""
    with pytest.raises(ValueError, match="converter"):
        styles.Style(name="odd", names={"odd8": 8}, printf="%u", **facts)  # type: ignore[arg-type]


def test_a_new_type_is_recorded_and_printed(added: None) -> None:
    t = recorded()
    assert [record.args for record in t] == VALUES
    t.export(out := io.StringIO(), "ftrace")
    assert "ok=no each={no,yes} q=1.5 o=0x12 none=(fault)\n" in out.getvalue()


def test_a_new_type_is_filtered(added: None) -> None:
    assert [record.args for record in recorded('ok == "yes"')] == VALUES[1:]
    assert [record.args for record in recorded("o < 0x13 && ok ~ 'n*'")] == VALUES[:1]
    with pytest.raises(EventError, match="q"):
        recorded("q > 1")


def test_a_new_type_is_an_event_of_the_machine(added: None) -> None:
    """By Python, or by a program where there is a compiler."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        at = m.alloc(8)
        m.write(at, bytes((0, 128, 1, 0)))
        m.regs["r15"] = 8
        event = k.event(EVENT)
        event.enabled = True
        m.call("crc32", at, 0x12, 0)
        assert [record.args for record in event] == VALUES[:1]


def test_a_new_type_is_in_arrow_and_comes_back(added: None, tmp_path: object) -> None:
    pytest.importorskip("pyarrow")
    t = recorded()
    table = t.to_arrow()
    assert [str(table.schema.field(name).type) for name in ("ok", "each", "q", "o")] == [
        "string", "list<item: string>", "double", "uint16"]
    t.save(path := f"{tmp_path}/t.arrow")
    assert [record.args for record in Trace.load(path)] == VALUES


def test_a_new_type_is_in_perfetto(added: None) -> None:
    recorded().export(file := io.BytesIO(), "perfetto")
    sql = "select key, coalesce(int_value, string_value, real_value), value_type from args"
    (rows,) = ask(file.getvalue(), sql)
    found = {(key.rpartition(".")[2], value, kind) for key, value, kind in rows if key[-3:] in (".ok", "g.q", "g.o")}
    assert found == {("ok", "no", "string"), ("ok", "yes", "string"), ("o", 0x12, "pointer"), ("o", 0x13, "pointer"),
                     ("q", 1.5, "real"), ("q", 0x180 / (1 << 16), "real")}


def test_a_file_with_an_unknown_type_is_refused(added: None, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    recorded().save(path := f"{tmp_path}/t.arrow")
    monkeypatch.delitem(styles.STYLES, "truth")
    with pytest.raises(KprobeError, match="is no trace of kprobes"):
        Trace.load(path)
