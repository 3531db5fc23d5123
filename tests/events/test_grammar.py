"""What Linux's kprobe_events takes: a model of its grammar, written from its documentation and from what its parser was
seen to do (6.12, without type information), against ours. Where the two differ docs/differences.md says so."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest
from test_events import ToyMachine

from kprobes import EventError
from kprobes.events import parse_event

pytestmark = pytest.mark.quick
DIFFERENCES = (Path(__file__).resolve().parents[2] / "docs" / "differences.md").read_text()
NUMBER = r"(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)"
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
SYMBOLS = {"vfs_read": 0x1000, "libtoy:only.isra.0": 0x1300}


def unsigned(text: str, limit: int = 1 << 64) -> int | None:
    """kstrtoul(): one plus sign may be there."""
    if not re.fullmatch(rf"\+?{NUMBER}", text):
        return None
    digits = text.removeprefix("+").lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    value = int(digits, base)
    return value if value < limit else None


def signed(text: str) -> int | None:
    """kstrtol(): a minus sign, or one plus sign."""
    value = unsigned(text.removeprefix("-"), 1 << 63) if not text.startswith("-+") else None
    return -value if value is not None and text.startswith("-") else value


def takes_head(word: str) -> bool:
    between, colon, name = word[1:].partition(":")
    if between[:1].isdigit():
        count = unsigned(between)
        if word[0] != "r" or count is None or not 1 <= count <= 4096:
            return False
    if not colon:
        return True
    group, slash, event = name.partition("/" if "/" in name else ".")
    if not slash:
        return bool(re.fullmatch(NAME, name)) and len(name) < 64
    good = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", group) and len(group) < 64
    return bool(good) and (not event or (bool(re.fullmatch(NAME, event)) and len(event) < 64))


def place(word: str) -> tuple[bool, bool, bool]:
    """(taken, at a function's entry, a return event's)."""
    address = unsigned(word)
    if address is not None:
        return True, address in SYMBOLS.values(), False
    symbol, percent, suffix = word.partition("%")
    if percent and suffix != "return":
        return False, False, False
    split = re.search(r"[+-]", symbol)
    name = symbol if split is None else symbol[:split.start()]
    offset = 0 if split is None else signed(symbol[split.start():])
    if offset is None or not 0 <= offset < 1 << 32 or (name not in SYMBOLS and not name.startswith("absent:")):
        return False, False, False
    return True, offset in (0, 4), bool(percent)  # the toy has a landing pad of four bytes


def takes_fetch(text: str, entry: bool, returns: bool, steps: int = 1) -> str:
    """"": refused; "word", "memory", "user", "number", "text"."""
    if steps > 14:
        return ""
    if text.startswith("$"):
        name = text[1:]
        if name.startswith("retval"):
            return "word" if returns else ""
        if name.startswith("stack"):
            rest = name[5:]
            return "word" if not rest or (rest.isdigit() and int(rest) <= 2048) else ""
        if name in ("comm", "COMM"):
            return "text"
        found = re.fullmatch(r"arg\+?([0-9]+)", name)
        return "word" if found and 1 <= int(found[1]) <= 2048 and entry else ""
    if text.startswith("%"):
        return "word" if text[1:] in ("di", "si", "ax", "rdi") else ""
    if text.startswith("@"):
        if text[1:2].isdigit():
            return "memory" if unsigned(text[1:]) is not None else ""
        split = re.search(r"[+-]", text)
        name = text[1:] if split is None else text[1:split.start()]
        return "memory" if name == "counter" and (split is None or signed(text[split.start():]) is not None) else ""
    if text[:1] in ("+", "-"):
        user = text[1:2] == "u"
        body = text[0] + text[2:] if user else text
        offset, bracket, inner = body.removeprefix("+").partition("(")
        inner, close, _ = inner.rpartition(")")
        if not bracket or not close or signed(offset) is None:
            return ""
        return ("user" if user else "memory") if takes_fetch(inner, entry, returns, steps + 1) not in ("", "text") else ""
    if text.startswith('\\"'):
        return "text" if len(text) > 2 and text.endswith('"') else ""
    if text.startswith("\\"):
        body = text[1:]
        value = unsigned(body) if body[:1].isdigit() else signed(body) if body[:1] == "-" else (
            signed(body[1:]) if body[:1] == "+" else None)
        return "number" if value is not None else ""
    return ""


def takes_type(text: str | None, kind: str) -> bool:
    name, bracket, rest = (text or "").partition("[")
    if bracket:
        digits, close, more = rest.partition("]")
        count = unsigned(digits)
        if not close or more or count is None or not 1 <= count <= 64:
            return False
    if kind == "text":
        return not bracket and name in ("string", *([""] if text is None else []))
    if text is not None and name.startswith("b"):
        found = re.fullmatch(rf"b({NUMBER})@({NUMBER})/(.*)", name)
        size = unsigned(found[3]) if found else None
        if found is None or size not in (8, 16, 32, 64):
            return False
        width, low = (unsigned(found[n]) or 0 for n in (1, 2))
        if not width or width + low > size:
            return False
    elif text is not None and not re.fullmatch(r"[usx](8|16|32|64)|char|u?string|symbol|symstr", name):
        return False
    if name in ("string", "ustring") and kind == "word":
        return False
    if name == "symstr" and kind in ("number", "user"):
        return False
    return not bracket or kind == "memory" or (kind == "user" and name in ("string", "ustring"))


def takes(text: str) -> bool:
    """Whether Linux takes a definition."""
    words = text.split()
    if len(words) < 2 or words[0][0] not in "pr" or not takes_head(words[0]):
        return False
    found, entry, returns = place(words[1])
    returns = returns or words[0][0] == "r"
    if not found or (returns and not entry):
        return False
    names: list[str] = []
    for n, word in enumerate(words[2:], 1):
        name, equals, body = word.partition("=")
        if not equals:
            name, body = f"arg{n}", word
        if not re.fullmatch(NAME, name) or len(name) > 32 or name in names or not 0 < len(body) <= 63:
            return False
        names.append(name)
        fetch, colon, type = body.partition(":")
        kind = takes_fetch(fetch, entry, returns)
        if not kind or not takes_type(type if colon else None, kind):
            return False
    return True


ZEROS = "0" * 30
HEADS = ["p", "r", "r5", "r05", "r0x5", "r+5", "r-1", "r4096", "r4097", "r0", "r5a", f"r{ZEROS}7", "p5", "pxyz", "p+5",
         "rfoo", "x", "-"]
NAMES = ["", ":e", ":g/e", ":g.e", ":g/", ":", ":/e", ":1e", ":g-h/e", ":e-f", ":g.h/e", f":{'n' * 63}", f":{'n' * 64}"]
PLACES = ["vfs_read", "vfs_read+0", "vfs_read+4", "vfs_read+0x10", "vfs_read+010", "vfs_read+08", "vfs_read-0",
          "vfs_read-4", "vfs_read++4", "vfs_read+-4", f"vfs_read+{ZEROS}", "vfs_read%return", "vfs_read+16%return",
          "vfs_read%hoge", "0x1010", "+0x1010", "-0x1010", "4112", "0x1000", "+0x1000", f"0x{ZEROS}1000",
          "libtoy:only.isra.0", "absent:vfs_read", "nowhere", "vfs_read+", "+"]
FETCHES = ["%di", "%rdi", "%no", "$stack", "$stack0", "$stack010", "$stack+1", "$stack2048", "$stack2049", "$stackx",
           "$arg1", "$arg01", "$arg+1", "$arg0", "$arg-1", "$arg2048", "$arg2049", "$arg1x", "$retval", "$retvalx",
           "$retval1", "$comm", "$COMM", "$comms", "@0x5000", f"@{ZEROS}", "@+5", "@counter", "@counter+8", "@counter-8",
           "@counter+-8", "@counter++8", "@12x", "@", "+0(%di)", "-0(%di)", "+-10(%di)", "++10(%di)", "+++1(%di)",
           "--10(%di)", "-+10(%di)", "+u0(%di)", "+u-8(%di)", "-u8(%di)", "+u+8(%di)", "u0(%di)", "+(%di)", "+0x(%di)",
           "+0x10(%di)", f"+{ZEROS}(%di)", "+08(%di)", "+0(%di)+10", "+0(%di", "+0(%di))", "+0(+8(%di))", "+0($comm)",
           '+0(\\"a")', "+0(\\8)", "\\1", "\\-1", "\\+1", "\\+-1", "\\++1", "\\--1", "\\-+1", "\\0x10", "\\0X1f",
           "\\010", "\\08", "\\", "\\x", f"\\{ZEROS}", f"\\{ZEROS}9", f"\\0x{ZEROS}f", '\\"a"', '\\"a', '\\""', "\\1a",
           "hoge", "&1", ""]
TYPES = ["", ":u8", ":x64", ":s16", ":s", ":", ":u8[4]", ":u8[+4]", ":u8[04]", ":u8[0x4]", ":u8[0]", ":u8[64]",
         ":u8[65]", ":u8[-1]", ":u8[4", ":u8[4]x", ":u8[]", f":u8[{ZEROS}4]", ":string", ":string[2]", ":ustring",
         ":char", ":symbol", ":symstr", ":U8", ":b4@2/8", ":b4@2/0x10", ":b4@2/+8", ":b4@2/010", ":b0x4@0x2/8",
         ":b+4@2/8", ":b4@+2/8", ":b4@/8", ":b@2/8", ":b0@0/8", ":b9@0/8", ":b4@2/24", ":b4@2/8/8", ":b4", ":b4@0/8[2]"]
ARGUMENTS = ["", "a=", "=", "1a=", "a-b=", f"{'a' * 32}=", f"{'a' * 33}=", "__probe_ip2="]

#: what a definition has in it that we refuse and Linux takes -> words of the row that says so
STRICTER = {
    r"^p[^:\d\s]|^r[^:\d\s]": "`pxyz`",
    r"\$retval\w": "`$retvalx`",
    r"\$arg\+": "`$arg+1`",
    r"\)[^):\s]": "`+0(%di)+10`",
    r"\)\)": "`+0(%di)+10`",
    r"\\[-+0-9a-fA-FxX]+:(u?string|\w+\[)": "`\\1:string`",
    r"^\w*:g-h/": "group names of events may have `-`",
    r" absent:": "an event in a module that is not loaded",
}
#: what we take and Linux refuses -> words of the row
LOOSER = {
    r":symstr": "`\\1:symstr` is refused",
    r"\+u.*\[|-u.*\[": "`+u0(...)` takes no",
    r'\\"[^ ]*=|\\"[^ ]*:': "a constant text",
}


def why(text: str, rows: dict[str, str]) -> str:
    """The words of the row that says why the two differ over a definition; "": none does."""
    return next((words for pattern, words in rows.items() if re.search(pattern, text)), "")


def definitions() -> list[str]:
    """Each piece in an otherwise plain definition, and some with several unusual ones."""
    found = [f"{head}{name} vfs_read" for head in HEADS for name in NAMES]
    found += [f"{head} {where}{more}" for head in ("p", "r") for where in PLACES for more in ("", " %di", " $arg1")]
    found += [f"{head} vfs_read {name}{fetch}" for head in ("p", "r") for name in ("", "a=") for fetch in FETCHES]
    found += [f"p vfs_read {fetch}{type}" for fetch in ("%di", "+0(%di)", "+u0(%di)", "@counter", "\\1", '\\"a"', "$comm",
                                                        "$arg1", "$stack0") for type in TYPES]
    found += [f"p vfs_read {name}%di{more}" for name in ARGUMENTS for more in ("", " a=%si", " %si")]
    rng = random.Random(28)
    pieces = [[f"{a}{b}" for a, b in itertools.product(HEADS, NAMES)], PLACES,
              [f"{a}{b}{c}" for a, b, c in itertools.product(ARGUMENTS[:2], FETCHES, TYPES)]]
    found += [" ".join(map(rng.choice, (*pieces, *[pieces[2]] * rng.randrange(2)))) for _ in range(4000)]
    return found


def test_what_linux_takes() -> None:
    """Both ways: what is refused there and taken here is a difference, too."""
    machine: Any = ToyMachine()
    wrong, seen = [], set[str]()
    for text in definitions():
        want, error = takes(text), ""
        try:
            parse_event(text, machine)
        except EventError as refused:
            error = refused.kind
        if want == (not error):
            continue
        row = why(text, STRICTER if want else LOOSER)
        seen.add(row)
        if row not in DIFFERENCES or not row:
            wrong.append((text, "taken by Linux" if want else "refused by Linux", error))
    assert not wrong, "\n".join(map(str, wrong[:60]))
    assert seen >= {*STRICTER.values()} - {"`+0(%di)+10`"}, "a row that nothing needs"
