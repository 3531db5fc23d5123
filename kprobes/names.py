"""C++ and Rust names as people write them: demangling, and the way back.

C++ names are read by the C++ library of this computer, whose code c++filt has, too; where there is
none they stay as they are. Rust's take the extra `dwarf` (rust_demangler).
"""

from __future__ import annotations

import ctypes
import fnmatch
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

_MANGLED = re.compile(r"\b__?[ZR][\w$.]+", re.ASCII)
LONGEST = 4096  #: characters of a name that is looked at
_HASH = re.compile(r"::h[0-9a-f]{16}$")
_LEGACY_RUST: Final = re.compile(r"17h[0-9a-f]{16}E(?:\.|$)")
#: what stands for something before it: a name can be made of these that is longer than memory when
#: it is written out
_PARENTHESES: Final = re.compile(r"[()]")
#: code that only adjusts `this`, and calls the function that follows
_SPECIAL: Final = re.compile(r"(?:(?:non-)?virtual|covariant return) thunk to ")
_TAG: Final = re.compile(r"\[abi:\w+\]")
_BRACKETS: Final = re.compile(r"[<>() ]")
_REFERENCE: Final = re.compile(r"S[0-9A-Z]*_|T[0-9]*_")
_FEW: Final = 12  #: references that make a name at most 2 to this power times as long
#: references that are looked into: reading a name takes up to 2 to half of their number; libraries'
#: have at most 30
_MANY: Final = 36
_LARGEST: Final = 1 << 20  #: characters of a name that is written out
_BEHIND: Final = (
    "",
    " const",
    " volatile",
    " const volatile",
    " &",
    " &&",
    " const&",
    " const &",
    " const &&",
)
_RUNTIMES: Final = ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib")


@cache
def _library(name: str) -> Any:
    """Import a module, and return it; None: it is not installed. The result is remembered."""
    try:
        return import_module(name)
    except ImportError:
        return None


@cache
def _runtime() -> tuple[Any, Any] | None:
    """Return (__cxa_demangle, free) of this computer; None where there is no C++ library. The
    result is remembered.
    """
    for name in _RUNTIMES:
        try:
            demangler, free = ctypes.CDLL(name).__cxa_demangle, ctypes.CDLL(None).free
        except (OSError, AttributeError):
            continue
        demangler.restype = ctypes.c_void_p
        demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        free.restype, free.argtypes = None, [ctypes.c_void_p]
        return demangler, free
    return None


def _cpp(name: str) -> str | None:
    """Return a C++ name demangled; None: it is none, there is no C++ library, or it is too long.

    Args:
        name: the mangled name, from `_Z` on.
    """
    runtime = _runtime()
    if runtime is None or not _is_bounded(name):
        return None
    demangler, free = runtime
    found = demangler(name.encode(), None, None, None)
    if not found:
        return None
    try:
        return ctypes.string_at(found).decode("utf-8", "backslashreplace")
    finally:
        free(found)


def _is_bounded(name: str) -> bool:
    """Return True for a name that does not become too long when it is demangled.

    A guest's name may be made to be longer than memory: it refers to its own parts again and again.
    With up to _FEW references it is short, with more than _MANY too long. In between it is parsed
    and measured; it counts as too long where that fails, or itanium_demangler is not installed.

    Args:
        name: the mangled name, from `_Z` on.
    """
    references = len(_REFERENCE.findall(name))
    if references <= _FEW:
        return True
    if references > _MANY:
        return False
    library = _library("itanium_demangler")
    try:
        tree = library.parse(name) if library is not None else None
    except Exception:  # damaged names meet whatever comes up there
        return False
    return tree is not None and _size(tree, {}) * references <= _LARGEST


def _size(node: Any, known: dict[int, int]) -> int:
    """Return about how many characters a parsed name has when it is written out.

    Args:
        node: of the parsed name: a text, or a tuple of nodes.
        known: identity of a node -> its size; is filled, since one node may stand in many places.
    """
    if isinstance(node, str):
        return len(node)
    if not isinstance(node, tuple):
        return 1
    if id(node) not in known:
        known[id(node)] = 2 + sum(_size(each, known) for each in node)
    return known[id(node)]


def _rust(name: str) -> str | None:
    """Return a Rust name demangled, without its hash; None: rust_demangler is not installed."""
    library = _library("rust_demangler")
    if library is None:
        return None
    with redirect_stdout(io.StringIO()):  # it prints what it finds odd
        found = str(library.demangle(name))
    return re.sub(r"\{(\w+):#", r"{\1#", _HASH.sub("", found))


def demangle(name: str) -> str:
    """Return a mangled C++ or Rust name as source has it.

    `_ZN5Table6insertEPKci` -> `Table::insert(char const*, int)`. What is no mangled name, cannot be
    read, or is longer than LONGEST is returned as it is.
    """
    if len(name) > LONGEST:
        return name
    try:
        if name.startswith("_R") or (name.startswith("_ZN") and _LEGACY_RUST.search(name)):
            return _rust(name) or name
        if name.startswith(("_Z", "__Z")):
            return _cpp(name[name.index("Z") - 1 :]) or name
    except Exception:  # damaged names meet whatever comes up there
        return name
    return name


_cached = lru_cache(1 << 12)(demangle)


def can_demangle() -> bool:
    """Return True where C++ or Rust names can be read on this computer."""
    return _runtime() is not None or _library("rust_demangler") is not None


def readable(text: str, shown: Callable[[str], str] = lambda name: name) -> str:
    """Return a text with its mangled names demangled, as c++filt does.

    Args:
        text: the text.
        shown: what is done to each demangled name, such as JSON's escapes.
    """
    return _MANGLED.sub(lambda found: shown(_cached(found[0])), text)


#: words that a demangled name can have without them standing in the mangled one: what both
#: languages' compilers abbreviate, and what the demanglers say of things that have no name
_SAID: Final = """
std string basic_string allocator char_traits istream ostream iostream basic_istream
basic_ostream basic_iostream abi operator new delete co_await auto void bool char wchar_t char8_t
char16_t char32_t short int long signed unsigned __int128 half float double __float128 _Float16
_Float32 _Float64 _Float128 _Float32x _Float64x bfloat16_t decimal32 decimal64 decimal128 _BitInt
_Complex _Imaginary complex imaginary __vector
const volatile restrict __restrict decltype typeof nullptr nullptr_t noexcept throw sizeof alignof
typeid this true false static_cast dynamic_cast const_cast reinterpret_cast anonymous namespace
lambda unnamed type block literal parm default arg vtable VTT construction for in typeinfo name
fn function guard variable reference temporary virtual thunk non to covariant return override
transaction clone static hidden alias safe dynamic TLS init initializer wrapper template
parameter object typename requires concept module java Class method resource rethrow gs cp
enable_if tuple tag u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f16 f32 f64 f128 str
impl as dyn mut extern unsafe fn closure shim where instantiating drop_in_place
"""
_SAID_OTHERWISE: Final = frozenset(_SAID.split())
_GUESSED: Final = re.compile(
    r"\w*\[[^\]]*\]?\w*|\w*[*?][\w*?]*"
)  #: parts of a glob that stand for many
_WORD: Final = re.compile(r"(?<!\w)[A-Za-z_]\w*")


def literal_words(text: str) -> list[str]:
    """Return the identifiers of a written name that stand in the mangled name, too.

    To look for these in mangled names is much quicker than to demangle them.

    Args:
        text: a name as people write it, or a glob of such names.
    """
    words = _WORD.findall(_GUESSED.sub(" ", text))
    return [word for word in words if word.isascii() and word not in _SAID_OTHERWISE]


def is_mangled(name: str) -> bool:
    """Return True where a name begins as mangled C++ and Rust names do."""
    return name.startswith(("_Z", "_R", "__Z"))


def plain(name: str) -> str:
    """Return a demangled name without its parameters: `Table::insert`.

    A name that has none is returned as it is, and so is one with something else behind them than
    const, volatile and references, such as that of a copy of a function (`[clone`).
    """
    end = name.rfind(")") + 1
    if not end or name[end:] not in _BEHIND:
        return name
    depth = 0
    for found in reversed([*_PARENTHESES.finditer(name, 0, end)]):
        depth += 1 if found[0] == ")" else -1
        if depth == 0:
            return name[: found.start()]
    return name


def spellings(name: str) -> tuple[str, ...]:
    """Return the ways in which people write a mangled C++ or Rust name; () of other names.

    They are: with its parameters and without, and of both without the type of the result, which
    templates have in front. What marks a copy of a function (`[clone`) is left out, and marks
    of the C++ library's versions (`[abi:cxx11]`) may be.
    """
    if not is_mangled(name):
        return ()
    return _spellings(re.sub(r" \[clone [^\]]*\]", "", demangle(name)))


def _spellings(shown: str) -> tuple[str, ...]:
    """Return the ways in which people write a demangled name.

    They are: with its parameters and without; both also without the type of the result, which
    templates have in front; and, where it has marks such as `[abi:cxx11]`, all of these without the
    marks, too.
    """
    bare = plain(shown)
    if _SPECIAL.match(shown):
        return shown, bare
    without = bare[_behind_type(bare) :]
    ways = shown, bare, without, without + shown[len(bare) :]
    if "[abi:" not in shown:
        return ways
    return (*ways, *(_TAG.sub("", way) for way in ways))


def means(name: str, shown: str) -> bool:
    """Return True where a name that people write means the function of a demangled name.

    Args:
        name: one of its spellings(); of a template's function perhaps without the last arguments,
            `geo::scaled` for `int geo::scaled<int, 3>(int)`, or without any.
        shown: the demangled name. A copy of a function (`[clone`) is meant by all of it only.
    """
    if name == shown or "[clone" in shown:
        return name == shown
    ways = _spellings(shown)
    if name in ways:
        return True
    own = ways[-2]
    if not re.search(r"\boperator\b", own) and name == _without_arguments(own):
        return True
    if not own.startswith(f"{name}<") or not own.endswith(">"):
        return False
    depth = 0
    for found in reversed([*re.finditer("[<>]", own)]):
        depth += 1 if found[0] == ">" else -1
        if depth == 0:
            return found.start() == len(name)
    return False


def _without_arguments(name: str) -> str:
    """Return a name without the arguments of templates: `w::Wrap::get` for `w::Wrap<int>::get`.

    Args:
        name: a demangled name without its parameters.
    """
    depth = 0
    kept = []
    for char in name:
        depth += char == "<"
        if not depth:
            kept.append(char)
        depth -= char == ">"
    return "".join(kept)


def _behind_type(name: str) -> int:
    """Return the index in a name at which the function's own name begins, behind the result's type.

    Args:
        name: a demangled name without its parameters. 0 is returned where it has no such type.
    """
    depth = 0
    begin = 0
    for found in _BRACKETS.finditer(name):
        char = found[0]
        if char == " ":
            begin = begin if depth else found.end()
        else:
            depth += 1 if char in "<(" else -1
    return begin


def name_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a symbol's name matches a glob: (name) -> bool.

    Args:
        pattern: a shell glob. With `::` in it, mangled C++ and Rust names are demangled for it,
            too.
    """
    match = re.compile(fnmatch.translate(pattern)).match
    words = literal_words(pattern)

    def matches(name: str) -> bool:
        if match(name):
            return True
        if "::" not in pattern or not is_mangled(name):
            return False
        return all(word in name for word in words) and any(map(match, spellings(name)))

    return matches
