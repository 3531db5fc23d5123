"""Which probes a guest has: `-l` and `-lv`."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from ..errors import KprobeError
from .guest import GuestWorld
from .promotion import name_of

_ALWAYS = ("begin", "end", "self:signal:SIGUSR1", "interval:s:", "interval:ms:", "interval:us:", "interval:hz:",
           "profile:hz:", "profile:s:", "profile:ms:", "profile:us:")


def probes(world: GuestWorld | None, pattern: str, verbose: bool) -> Iterator[str]:
    """Lines of the probes that a pattern names.

    Args:
        world: the guest; None: there is none.
        pattern: as an attach point, with globs; "*" for everything.
        verbose: with the arguments of functions, a line each.
    """
    kind, _, rest = pattern.partition(":")
    kind = {"k": "kprobe", "u": "uprobe", "kr": "kretprobe", "ur": "uretprobe", "f": "fentry", "fr": "fexit"}.get(
        kind, kind)
    if not rest:
        yield from (line for line in _ALWAYS if fnmatch.fnmatchcase(line.partition(":")[0], kind))
    if world is None:
        return
    image, _, function = rest.rpartition(":")
    for one in ("kprobe", "kretprobe", "uprobe", "uretprobe", "fentry", "fexit"):
        if fnmatch.fnmatchcase(one, kind) and (kind == one or one in ("kprobe", "kretprobe", "uprobe", "uretprobe")):
            yield from _functions(world, one, image, function or "*", verbose)
    if fnmatch.fnmatchcase("usdt", kind):
        for marker in world.debug.markers():
            if fnmatch.fnmatchcase(marker.name, function or "*"):
                yield f"usdt:{image or '*'}:{marker.provider}:{marker.name}"


def _functions(world: GuestWorld, kind: str, image: str, pattern: str, verbose: bool) -> Iterator[str]:
    main = str(world.machine.symbols.main or "")
    found = sorted(world.functions(pattern, image), key=lambda symbol: symbol.name)
    for symbol in found:
        where = f"{symbol.module or main}:" if kind.startswith("u") else ""
        yield f"{kind}:{where}{symbol.name}"
        if verbose:
            yield from _arguments(world, symbol.address | symbol.mode, kind)


def _arguments(world: GuestWorld, address: int, kind: str) -> Iterator[str]:
    try:
        known = world.arguments(address)
        result = world.result(address)
    except KprobeError:
        return
    if known is not None and kind in ("kprobe", "uprobe", "fentry", "fexit"):
        yield from (f"    {name_of(field.type)} {field.name}" for field in known[0].fields)
    if result is not None and kind in ("fexit", "uretprobe", "kretprobe"):
        yield f"    {name_of(result)} retval"
