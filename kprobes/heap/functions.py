"""The functions of a guest that allocate and free memory, and what their arguments are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ..errors import BadArgument
from ..symbols import Symbol, Symbols


@frozen
class Allocator:
    """A function of the guest's that allocates or frees.

    Attributes:
        does: "allocate", "resize", "free" or "size".
        family: blocks of one family are freed by functions of the same: "malloc", "new" or "new[]".
        size: number (from 0) of the argument that is the size in bytes; None: it has none.
        count: number of the argument that the size is multiplied by; None: it has none.
        alignment: number of the argument that is the alignment; None: it has none.
        block: number of the argument that is the block's address; None: it has none.
        result: number of the argument that says where the address goes, the result being 0 or an
            error number; None: the address is the result.
        zeroed: True where the new block is full of zeros.
        page: True where the new block is aligned to a page.
    """

    does: str
    family: str = "malloc"
    size: int | None = None
    count: int | None = None
    alignment: int | None = None
    block: int | None = None
    result: int | None = None
    zeroed: bool = False
    page: bool = False


MALLOC: Final = Allocator("allocate", size=0)
CALLOC: Final = Allocator("allocate", size=1, count=0, zeroed=True)
REALLOC: Final = Allocator("resize", block=0, size=1)
REALLOCARRAY: Final = Allocator("resize", block=0, size=2, count=1)
MEMALIGN: Final = Allocator("allocate", alignment=0, size=1)
POSIX_MEMALIGN: Final = Allocator("allocate", result=0, alignment=1, size=2)
VALLOC: Final = Allocator("allocate", size=0, page=True)
FREE: Final = Allocator("free", block=0)
USABLE_SIZE: Final = Allocator("size", block=0)

C_FUNCTIONS: Final = {
    "malloc": MALLOC,
    "calloc": CALLOC,
    "realloc": REALLOC,
    "reallocarray": REALLOCARRAY,
    "free": FREE,
    "cfree": FREE,
    "memalign": MEMALIGN,
    "aligned_alloc": MEMALIGN,
    "posix_memalign": POSIX_MEMALIGN,
    "valloc": VALLOC,
    "pvalloc": VALLOC,
    "malloc_usable_size": USABLE_SIZE,
    # what C libraries call them among themselves
    "__libc_malloc": MALLOC,
    "__libc_calloc": CALLOC,
    "__libc_realloc": REALLOC,
    "__libc_free": FREE,
    "__libc_memalign": MEMALIGN,
}


def _operators() -> Iterator[tuple[str, Allocator]]:
    """Yield (symbol, what it does) of C++'s operators new and delete.

    Symbols are those of the Itanium ABI, where size_t is m, j or y.
    """
    quiet, aligned = "RKSt9nothrow_t", "St11align_val_t"
    for letters, family in (("nw", "new"), ("na", "new[]")):
        for size in "mjy":
            for more in ("", quiet):
                yield f"_Z{letters}{size}{more}", Allocator("allocate", family, size=0)
                yield (
                    f"_Z{letters}{size}{aligned}{more}",
                    Allocator("allocate", family, size=0, alignment=1),
                )
    for letters, family in (("dl", "new"), ("da", "new[]")):
        for more in ("", quiet, aligned, f"{aligned}{quiet}"):
            yield f"_Z{letters}Pv{more}", Allocator("free", family, block=0)
        for size in "mjy":
            for more in ("", aligned):
                yield f"_Z{letters}Pv{size}{more}", Allocator("free", family, block=0, size=1)


FUNCTIONS: Final = {**C_FUNCTIONS, **dict(_operators())}
#: What operators are called in texts.
SHOWN: Final = {
    "_Znw": "operator new",
    "_Zna": "operator new[]",
    "_Zdl": "operator delete",
    "_Zda": "operator delete[]",
}
#: How an import is called that no module serves; the second, where nothing of the file's own leads
#: to it.
IMPORTS: Final = ("@import", "@plt")


def shown(name: str) -> str:
    """Return a function's name as people write it: that of a C++ operator instead of its symbol."""
    return SHOWN.get(name[:4], name) if name in FUNCTIONS else name


def named(role: str | Allocator) -> Allocator:
    """Return what an allocator function does, given by the name of a C function that does the same.

    Args:
        role: a key of FUNCTIONS, such as "malloc"; an Allocator is returned as it is.

    Raises:
        BadArgument: `role` is no key of FUNCTIONS.
    """
    if isinstance(role, Allocator):
        return role
    if role not in FUNCTIONS:
        raise BadArgument(
            f"{role!r} is no allocator function",
            hint="pass the name of the C function that it is like: malloc, calloc, "
            "realloc, free, memalign, posix_memalign",
        )
    return FUNCTIONS[role]


def known(symbols: Symbols) -> Iterator[tuple[Symbol, str, Allocator]]:
    """Find the guest's allocator functions that have their usual names.

    Imports (f@import, f@plt) that no module of the guest defines are found as well.

    Args:
        symbols: the guest's symbols.

    Yields:
        (symbol, the function's usual name, what it does), once for each address. The name is
        without "@import" and "@plt".
    """
    found = dict[int, tuple[Symbol, str, Allocator]]()
    defined = set[str]()
    for symbol in symbols:
        if symbol.name in FUNCTIONS and symbol.kind == "func":
            found.setdefault(symbol.address, (symbol, symbol.name, FUNCTIONS[symbol.name]))
            defined.add(symbol.name)
    imported = set[tuple[str, str]]()
    for suffix in IMPORTS:
        for symbol in symbols:
            name = symbol.name.removesuffix(suffix)
            place = symbol.module, name
            if (
                name == symbol.name
                or name not in FUNCTIONS
                or name in defined
                or (suffix == IMPORTS[-1] and place in imported)
            ):
                continue
            imported.add(place)
            found.setdefault(symbol.address, (symbol, name, FUNCTIONS[name]))
    yield from found.values()
