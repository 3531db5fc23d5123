"""Definitions whose place names many functions: globs, /regular expressions/, names in quotes,
places in sources, and markers.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from ..errors import AmbiguousSymbol, EventError, UnknownSymbol
from ..machine._base import Machine
from ..symbols import Symbols, perhaps_spelled, spellings, where_names_are
from ._clones import clones_of, is_part
from ._messages import make_error

QUOTES = ("'", '"')
#: a name of C++ or Rust, in scopes or with arguments of a template
_READABLE = re.compile(r"[A-Za-z_]\w*(?:(?:::|[<>,~])\w*)*", re.ASCII)
_HEAD = re.compile(r"([prf])([^:]*)(?::(.*))?", re.ASCII | re.DOTALL)


@frozen
class ExpandedPattern:
    """A definition for each place that a pattern names.

    Attributes:
        text: the definition as written, its words joined by single blanks.
        pattern: the place as written.
        texts: (place, definition) of each, all with the same event's name.
        inside: name of the function some of whose inlined copies the places are; "": they are none.
    """

    text: str
    pattern: str
    texts: tuple[tuple[str, str], ...]  # (place, definition)
    inside: str = ""

    def original(self, error: EventError, definition: str) -> EventError:
        """Return an error in one of the definitions as an error in what was written.

        A column in the arguments becomes the same place there, one in the place the beginning of
        the pattern.

        Args:
            error: the error, whose column is one of `definition`.
            definition: the definition that was parsed.
        """
        words = self.text.split(" ", 2)
        ours = definition.split(" ", 2)
        argument, theirs = (len(w[0]) + len(w[1]) + 2 for w in (words, ours))
        place = len(words[0]) + 1
        if error.position >= theirs:
            at = error.position - theirs + argument
        elif error.position > len(ours[0]):
            at = place
        else:
            at = error.position
        raised = EventError(error.kind, error.reason, self.text, at)
        raised.errno = error.errno
        return raised


def expand_pattern(text: str, machine: Machine) -> ExpandedPattern | None:
    """Return the definitions that a definition with a pattern stands for.

    A pattern is a glob or a /regular expression/, a name in quotes, a place in the source, a marker
    (%PROVIDER:NAME), or a C++ or Rust name that several functions have.

    Args:
        text: the definition.
        machine: the guest, whose symbols and debug information are searched.

    Returns:
        The definitions; None where the place is no pattern, or there is none.

    Raises:
        EventError: the pattern names no place, or is no regular expression; or a marker's arguments
            cannot be fetched.
    """
    words = _words(text)
    if len(words) > 1 and words[1][0] == "%":
        from ._markers import marked

        return ExpandedPattern(" ".join(words), words[1], marked(words, machine))
    if len(words) < 2:
        return None
    quoted = words[1][0] in QUOTES
    source = None if quoted else _in_source(words, machine)
    if source is not None:
        return source
    if quoted:
        return _quoted(words, machine)
    if not _is_pattern(words[1]):
        return _of_one_name(words, machine)
    joined = " ".join(words)
    pattern = words[1].removesuffix("%return")
    head = _head(words[0], pattern, words[1] != pattern)
    at = len(words[0]) + 1
    matches = _matcher(pattern, joined, at)
    places = sorted(set(_places(machine.symbols, pattern, matches)))
    if not places:
        raise make_error(
            "BAD_PROBE_ADDR",
            at,
            joined,
            f"no function is called {pattern}; {_where(pattern, machine.symbols)}",
        )
    rest = _rest(words)
    return ExpandedPattern(
        joined, words[1], tuple((place, f"{head} {place}{rest}") for place in places)
    )


def _where(pattern: str, symbols: Symbols) -> str:
    """Return what to write instead of a pattern that no symbol's name fits.

    Args:
        pattern: the pattern as written.
        symbols: of the guest.
    """
    mangled = next(perhaps_spelled(symbols, ""), None)
    if pattern[0] != "/" and "::" not in pattern and mangled is not None:
        return f"write '{pattern}' in quotes for names of C++ and Rust as people write them"
    return where_names_are(symbols)


def _words(text: str) -> list[str]:
    """Split the text of a definition at blanks; a place in quotes stays one word."""
    found = re.fullmatch(r"""\s*(\S+)\s+("[^"]*"|'[^']*')(%return)?(?:\s+(.*))?""", text, re.DOTALL)
    if found is None:
        return text.split()
    return [found[1], found[2] + (found[3] or ""), *(found[4] or "").split()]


def _definitions(
    words: list[str], places: list[tuple[str, int]], machine: Machine
) -> ExpandedPattern:
    """Make a definition for each of some addresses, all with one event's name.

    Args:
        words: of the definition as written; words[1] is the place.
        places: for each address (what the place is called, address without mode bits).
        machine: the guest, whose symbols give addresses their mode bits.
    """
    body = words[1].removesuffix("%return")
    head = _head(words[0], body.strip("".join(QUOTES)), words[1] != body)
    rest = _rest(words)
    texts = []
    for name, address in places:
        covering = machine.symbols.covering(address)
        texts.append(
            (name, f"{head} {address | (covering.mode if covering is not None else 0):#x}{rest}")
        )
    return ExpandedPattern(" ".join(words), words[1], tuple(texts))


def _in_source(words: list[str], machine: Machine) -> ExpandedPattern | None:
    """Make a definition for each place that a place in the source stands for.

    Args:
        words: the definition; words[1] is its place, such as `table.c:12` or `insert%inlined`.
        machine: the guest.

    Returns:
        The definitions; None: words[1] is no place in the source, or a symbol's name, or no file of
        the guest is known.

    Raises:
        EventError: words[1] is a place in the source, and no code is there; or the event is one of
            returns, and all code there is inlined.
    """
    body = words[1].removesuffix("%return")
    if not machine.symbols.files or body in machine.symbols:
        return None  # the usual case, which takes no debug information
    from ._lines import INLINED, source_places

    found = source_places(body, machine, " ".join(words), len(words[0]) + 1)
    if found is None:
        return None
    returns = words[0][:1] == "r" or words[1] != body
    if returns:
        found = [place for place in found if not is_part(place.function)]
    if returns and all(place.inlined for place in found):
        at = len(words[0]) + 1
        inlined = f"{body} is inlined, and inlined code has no return; use p"
        raise make_error("BAD_PROBE_ADDR", at, " ".join(words), inlined)
    definitions = _definitions(
        words,
        [(f"{body} in {place.function or hex(place.address)}", place.address) for place in found],
        machine,
    )
    name = body.removesuffix(INLINED)
    is_named = any(p.inlined == name for p in found)
    return evolve(definitions, inside=name if is_named else "")


def _quoted(words: list[str], machine: Machine) -> ExpandedPattern:
    """Make a definition for each function that a quoted name stands for; where there is none, for
    each place of the source that it stands for.

    Args:
        words: the definition; words[1] is the place: a name in quotes, which may have blanks or be
            a glob, perhaps with %return behind it.
        machine: the guest.

    Raises:
        EventError: no function is called so, and it is no place in the source.
    """
    body = words[1].removesuffix("%return")[1:-1]
    joined = " ".join(words)
    at = len(words[0]) + 1
    matches: Callable[[str], object] = body.__eq__
    if re.search(r"[*?]", body):
        matches = re.compile(fnmatch.translate(body)).match
    symbols = machine.symbols
    found = [symbol for symbol in symbols if matches(symbol.name)]
    found += [
        symbol
        for symbol in perhaps_spelled(symbols, body)
        if any(map(matches, spellings(symbol.name)))
    ]
    functions = [symbol for symbol in found if symbol.kind == "func"]
    places = [*{each.address: (each.name, each.address) for each in functions}.values()]
    if not places:
        source = _in_source([words[0], body, *words[2:]], machine)
        if source is not None:  # a place in the source with blanks in it
            return evolve(source, text=joined, pattern=words[1])
        raise make_error(
            "BAD_PROBE_ADDR",
            at,
            joined,
            f"no function is called {body}; `kprobes list FILE -C` lists what there is",
        )
    return _definitions(words, places, machine)


def _of_one_name(words: list[str], machine: Machine) -> ExpandedPattern | None:
    """Make a definition for each function that one name stands for: instances of a C++ or Rust
    template, functions whose parameters differ, or GCC's and Clang's copies of a function of C that
    has no code of its own any more (`name.isra.0`). Of a name that libraries have as well it is the
    main image's function.

    Args:
        words: the definition; words[1] is its place.
        machine: the guest.

    Returns:
        The definitions; None: the name is one of the symbol table, or stands for one address.
    """
    body = words[1].removesuffix("%return")
    if not _READABLE.fullmatch(body):
        return None
    symbols = machine.symbols
    same = symbols.of_name(body)
    own = {symbol.address for symbol in same if not symbol.module}
    if len(own) == 1 and len({symbol.address for symbol in same}) > 1:
        return _definitions(words, [(body, own.pop())], machine)
    if same:
        return None
    try:
        symbols[body]
    except AmbiguousSymbol as error:
        named = [(f"{body} at {address:#x}", address) for address in error.addresses]
        return _definitions(words, named, machine)
    except UnknownSymbol:
        if copies := clones_of(symbols, body):
            return _definitions(words, [(each.name, each.address) for each in copies], machine)
    return None


def _is_pattern(place: str) -> bool:
    """Return True where a place is a glob or a /regular expression/."""
    body = place.removesuffix("%return")
    return (len(body) > 2 and body[0] == body[-1] == "/") or bool(
        re.search(r"[*?\[]", body) and body[0] not in "@/"
    )


def _rest(words: list[str]) -> str:
    """Return what each definition has behind the address: `%return` of an f event, then the
    arguments.

    Args:
        words: of the definition as written.
    """
    returns = words[0][:1] == "f" and words[1].endswith("%return")
    return "%return" * returns + "".join(f" {word}" for word in words[2:])


def _head(word: str, pattern: str, returns: bool) -> str:
    """Complete the first word of a definition to `KIND[MAXACTIVE]:[GROUP/]NAME`.

    All definitions that a pattern stands for begin with this word, so have the same name. A word
    that does not begin with p, r or f is returned unchanged.

    Args:
        word: the first word as written.
        pattern: the place; where `word` has no name, the name is made of the pattern.
        returns: True where the place ends in %return: kind p becomes r; f stays f.
    """
    found = _HEAD.fullmatch(word)
    if found is None:
        return word
    kind, count, name = found.groups()
    returns = returns and kind != "f"
    if name is None or name.endswith(("/", ".")):
        default = re.sub(r"\W", "_", pattern, flags=re.ASCII).strip("_")[:50]
        name = f"{name or ''}{'r' if returns else kind}_{default or 'all'}"
    return f"{'r' if returns else kind}{count}:{name}"


def _matcher(pattern: str, text: str, at: int) -> Callable[[str], object]:
    """Return a function from a name to a true value where it fits a pattern, else None.

    Args:
        pattern: a glob, or a /regular expression/. MODULE: in front of a glob is left out, as it is
            no part of the name.
        text: the definition, for the error.
        at: the pattern's column.

    Raises:
        EventError: it is no regular expression.
    """
    if pattern[0] != "/":
        body = pattern if "::" in pattern else pattern.rpartition(":")[2]
        return re.compile(fnmatch.translate(body)).match
    try:
        return re.compile(pattern[1:-1]).search
    except (re.error, OverflowError, RecursionError) as error:
        raise make_error(
            "BAD_PROBE_ADDR", at, text, f"{pattern} is no regular expression: {error}"
        ) from None


def _places(symbols: Symbols, pattern: str, matches: Callable[[str], object]) -> Iterator[str]:
    """Yield the functions that a pattern names, each address once.

    Args:
        symbols: of the guest.
        pattern: the pattern as written, perhaps with MODULE: in front.
        matches: True for a name that the pattern names.

    Yields:
        A function's name, or its address in hexadecimal where the name does not stand for it alone.
    """
    readable = "::" in pattern  # C++'s and Rust's names as people write them
    module, colon, _ = (
        pattern.rpartition(":") if pattern[0] != "/" and not readable else ("", "", "")
    )
    wanted = "" if module == symbols.main else module
    spelled: set[str] = set()  # mangled names that the pattern names as people write them
    if readable:
        perhaps = perhaps_spelled(symbols, "" if pattern[0] == "/" else pattern)
        names = dict.fromkeys(symbol.name for symbol in perhaps)
        spelled = {name for name in names if any(map(matches, spellings(name)))}
    known: dict[str, set[int]] = {}
    for symbol in symbols:
        if symbol.kind == "func":
            known.setdefault(symbol.name, set()).add(symbol.address)
    seen: set[int] = set()
    for symbol in symbols:
        if (
            symbol.kind != "func"
            or symbol.address in seen
            or (colon and symbol.module != wanted)
            or not (symbol.name in spelled or matches(symbol.name))
        ):
            continue
        seen.add(symbol.address)
        plain = len(known[symbol.name]) == 1 and not re.search(r"[\s%+:]", symbol.name)
        yield symbol.name if plain else hex(symbol.address | symbol.mode)
