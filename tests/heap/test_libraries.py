"""Nothing is found in libraries without mistakes, and they do what they did.

zlib and expat are the system's own, with the C library's functions in Python. With KPROBES_LIBRARIES, a folder of Debian's
packages of another architecture (.ci/more: arm64), these and cJSON, Lua and SQLite run on their own C library.
"""

from __future__ import annotations

import os
import platform
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kprobes import Kprobes, Regs, UnicornMachine

FOLDER = Path("/usr/lib") / f"{platform.machine()}-linux-gnu"


def library(name: str) -> UnicornMachine:
    """A library whose imports of the C library are served here, but for the allocator."""
    if not (FOLDER / name).exists():
        pytest.skip(f"there is no {name} here")
    m = UnicornMachine.load(FOLDER / name)

    def copy(regs: Regs) -> int:
        m.write(regs.arg(0), m.read(regs.arg(1), regs.arg(2)))
        return regs.arg(0)

    def fill(regs: Regs) -> int:
        m.write(regs.arg(0), bytes([regs.arg(1) & 255]) * regs.arg(2))
        return regs.arg(0)

    def compare(regs: Regs) -> int:
        a, b = m.read(regs.arg(0), regs.arg(2)), m.read(regs.arg(1), regs.arg(2))
        return (a > b) - (a < b) & m.arch.mask

    def random(regs: Regs) -> int:
        m.write(regs.arg(0), bytes(regs.arg(1)))
        return 0

    for import_, function in {"memcpy": copy, "memmove": copy, "memset": fill, "memcmp": compare,
                              "arc4random_buf": random, "getrandom": lambda regs: regs.arg(1),
                              "getenv": lambda regs: 0, "getpid": lambda regs: 1,
                              "strlen": lambda regs: len(m.read_cstr(regs.arg(0)))}.items():
        m.bind(import_, function)
    m.process()
    return m


def test_zlib() -> None:
    text = b"to be, or not to be, that is the question: " * 100 + bytes(range(256)) * 4
    with library("libz.so.1") as m, Kprobes(m) as k:
        with k.heap() as heap:
            packed, size = bytearray(1 << 14), bytearray((1 << 14).to_bytes(8, m.arch.order.value))  # type: ignore[arg-type]
            assert m.call("compress2", packed, size, text, len(text), 9) == 0
            count = int.from_bytes(size, m.arch.order.value)  # type: ignore[arg-type]
            assert zlib.decompress(bytes(packed[:count])) == text
            out, size = bytearray(len(text)), bytearray(len(text).to_bytes(8, m.arch.order.value))  # type: ignore[arg-type]
            assert m.call("uncompress", out, size, bytes(packed[:count]), count) == 0 and bytes(out) == text
            damaged = bytes(packed[:40]) + b"\xff" * 40
            assert m.call("uncompress", out, size, damaged, len(damaged))
        assert heap.report() == "no findings"


def test_expat() -> None:
    text = (b'<?xml version="1.0"?><root a="1" b="two">'
            + b"".join(b'<item n="%d">text &amp; more %d<sub/></item>' % (n, n) for n in range(100)) + b"</root>")
    with library("libexpat.so.1") as m, Kprobes(m) as k:
        with k.heap() as heap:
            for document, result in ((text, 1), (text[:-7], 0), (b"<a><b></a>", 0)):
                parser = m.call("XML_ParserCreate", None)
                assert m.call("XML_Parse", parser, document, len(document), 1) & 0xFFFFFFFF == result
                m.call("XML_ParserFree", parser)
            assert {*heap.functions.values()} == {"malloc", "realloc", "free"}
        assert heap.report() == "no findings"


# --- on a C library of their own

def json(m: UnicornMachine) -> None:
    text = b'{"a": [1, 2.5, "x\\u00e9\\n", null, true, {"b": {}}], "c": "' + b"y" * 300 + b'"}'
    for document in (text, text[:-1], b"[1,2", b'{"a":"\\uD800"}'):
        tree = m.call("cJSON_Parse", document)
        assert bool(tree) is (document == text)
        if tree:
            printed = m.call("cJSON_Print", tree)
            assert '"xé\\n"'.encode() in m.read_cstr(printed)
            m.call("cJSON_free", printed)
        m.call("cJSON_Delete", tree)


LUA = b"""
local t = {}
for i = 1, 200 do t[i] = ('x'):rep(i) .. i end
table.sort(t)
local s = table.concat(t, ',')
local broken = load('return 1 +')
collectgarbage()
coroutine.wrap(function() coroutine.yield(1) end)()
return #s .. string.format('%6.2f', 3.14159) .. tostring(broken)
"""


def lua(m: UnicornMachine) -> None:
    state = m.call("luaL_newstate")
    m.call("luaL_openlibs", state)
    assert m.call("luaL_loadstring", state, LUA) & 0xFFFFFFFF == 0
    assert m.call("lua_pcallk", state, 0, 1, 0, 0, 0) & 0xFFFFFFFF == 0
    assert m.read_cstr(m.call("lua_tolstring", state, -1, 0)) == b"20791  3.14nil"
    m.call("lua_close", state)


SQL = b"""
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 60)
    insert into t select x, hex(randomblob(x)) from c;
create index i on t(b);
update t set b = lower(b) where a % 3 = 0;
delete from t where a % 7 = 0;
select group_concat(b) from t order by b;
"""


def sqlite(m: UnicornMachine) -> None:
    for name in ("openat", "fcntl"):
        m.system_calls[name] = lambda *_: -2  # no such file: of random bytes
    place = bytearray(8)
    assert m.call("sqlite3_open", b":memory:", place) & 0xFFFFFFFF == 0
    base = int.from_bytes(place, m.arch.order.value)  # type: ignore[arg-type]
    assert m.call("sqlite3_exec", base, SQL, 0, 0, 0) & 0xFFFFFFFF == 0
    assert m.call("sqlite3_exec", base, b"select nonsense from t", 0, 0, 0) & 0xFFFFFFFF == 1
    assert m.call("sqlite3_total_changes", base) & 0xFFFFFFFF == 60 + 20 + 8
    assert m.call("sqlite3_close", base) & 0xFFFFFFFF == 0
    m.call("sqlite3_shutdown")


def pack(m: UnicornMachine) -> None:
    text = b"to be, or not to be, that is the question: " * 100
    packed, size = bytearray(1 << 12), bytearray((1 << 12).to_bytes(8, m.arch.order.value))  # type: ignore[arg-type]
    assert m.call("compress2", packed, size, text, len(text), 9) == 0
    assert zlib.decompress(bytes(packed[:int.from_bytes(size, m.arch.order.value)])) == text  # type: ignore[arg-type]


def markup(m: UnicornMachine) -> None:
    text = b'<?xml version="1.0"?><root a="1">' + b"<item>text &amp; more<sub/></item>" * 50 + b"</root>"
    parser = m.call("XML_ParserCreate", None)
    assert m.call("XML_Parse", parser, text, len(text), 1) & 0xFFFFFFFF == 1
    m.call("XML_ParserFree", parser)


USES: dict[str, Callable[[UnicornMachine], None]] = {
    "libcjson.so.1": json, "liblua5.4.so.0": lua, "libsqlite3.so.0": sqlite, "libz.so.1": pack, "libexpat.so.1": markup}


@pytest.mark.skipif("KPROBES_LIBRARIES" not in os.environ, reason="KPROBES_LIBRARIES names no folder of libraries")
@pytest.mark.parametrize("name", USES)
def test_on_their_own_c_library(name: str) -> None:
    folder = Path(os.environ["KPROBES_LIBRARIES"])
    files = [sorted(folder.rglob(glob))[0] for glob in (name, "libm.so.6", "libc.so.6", "ld-linux-*.so.*")]
    m = UnicornMachine.load(files[0])
    for file in files[1:]:
        m.load_module(file)
    m.serve_system_calls()
    m.process((name,))
    with m, Kprobes(m) as k:
        with k.heap() as heap:
            USES[name](m)
        assert heap.watching and heap.report() == "no findings"
