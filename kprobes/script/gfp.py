"""Names of the kernel's flags for allocating memory, which `printf("%gr")` shows.

Bits as in Linux's include/linux/gfp_types.h since 6.10; which combinations have a name, and
that larger ones come first, as its tracepoints print them.
"""

_BITS = {
    "__GFP_DMA": 0,
    "__GFP_HIGHMEM": 1,
    "__GFP_DMA32": 2,
    "__GFP_MOVABLE": 3,
    "__GFP_HIGH": 5,
    "__GFP_IO": 6,
    "__GFP_FS": 7,
    "__GFP_ZERO": 8,
    "__GFP_DIRECT_RECLAIM": 10,
    "__GFP_KSWAPD_RECLAIM": 11,
    "__GFP_WRITE": 12,
    "__GFP_NOWARN": 13,
    "__GFP_RETRY_MAYFAIL": 14,
    "__GFP_NOFAIL": 15,
    "__GFP_NORETRY": 16,
    "__GFP_MEMALLOC": 17,
    "__GFP_COMP": 18,
    "__GFP_NOMEMALLOC": 19,
    "__GFP_HARDWALL": 20,
    "__GFP_THISNODE": 21,
    "__GFP_ACCOUNT": 22,
    "__GFP_ZEROTAGS": 23,
    "__GFP_SKIP_ZERO": 24,
    "__GFP_SKIP_KASAN": 25,
    "__GFP_NO_OBJ_EXT": 26,
}


def _flags(*names: str) -> int:
    """Return the bits of flags, given by their names without `__GFP_`."""
    return sum(1 << _BITS[f"__GFP_{name}"] for name in names)


_NOIO = _flags("DIRECT_RECLAIM", "KSWAPD_RECLAIM")
_NOFS = _NOIO | _flags("IO")
_KERNEL = _NOFS | _flags("FS")
_USER = _KERNEL | _flags("HARDWALL")
_HIGHUSER = _USER | _flags("HIGHMEM")
_MOVABLE = _HIGHUSER | _flags("MOVABLE", "SKIP_KASAN")
_HUGE_LIGHT = (_MOVABLE | _flags("COMP", "NOMEMALLOC", "NOWARN")) & ~_NOIO
_LISTED_ELSEWHERE = ("__GFP_DMA", "__GFP_HIGHMEM", "__GFP_DMA32", "__GFP_MOVABLE")

#: name -> bits, in the order in which they are looked for.
_NAMES = {
    "GFP_TRANSHUGE": _HUGE_LIGHT | _flags("DIRECT_RECLAIM"),
    "GFP_TRANSHUGE_LIGHT": _HUGE_LIGHT,
    "GFP_HIGHUSER_MOVABLE": _MOVABLE,
    "GFP_HIGHUSER": _HIGHUSER,
    "GFP_USER": _USER,
    "GFP_KERNEL_ACCOUNT": _KERNEL | _flags("ACCOUNT"),
    "GFP_KERNEL": _KERNEL,
    "GFP_NOFS": _NOFS,
    "GFP_ATOMIC": _flags("HIGH", "KSWAPD_RECLAIM"),
    "GFP_NOIO": _NOIO,
    "GFP_NOWAIT": _flags("KSWAPD_RECLAIM", "NOWARN"),
    "GFP_DMA": _flags("DMA"),
    "__GFP_HIGHMEM": _flags("HIGHMEM"),
    "GFP_DMA32": _flags("DMA32"),
    **{name: 1 << bit for name, bit in _BITS.items() if name not in _LISTED_ELSEWHERE},
}


def gfp_text(flags: int) -> str:
    """Return the names of `flags` joined by `|`, the largest combinations first; bits without a
    name follow as a number. "0" for no flags.
    """
    found = []
    for name, bits in _NAMES.items():
        if flags and flags & bits == bits:
            found.append(name)
            flags &= ~bits
    if flags or not found:
        found.append(f"0x{flags:x}" if flags else "0")
    return "|".join(found)
