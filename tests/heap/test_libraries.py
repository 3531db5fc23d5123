"""Nothing is found in libraries without mistakes, the system's own; and they do what they did."""

from __future__ import annotations

import platform
import zlib
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
