"""The order in which libraries are loaded, where some take variables of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush

from ._placing import Image


def in_order(images: Sequence[Image]) -> list[int]:
    """Return an order for loading libraries: each comes behind those whose variables it takes.

    Functions are found whenever they are called; a variable has to be there when it is bound.

    Args:
        images: the libraries, in the order in which they were named.

    Returns:
        Their indices in `images`; libraries keep the order in which they were named otherwise.
        Of a circle, whose libraries take variables of each other, the first one that was named
        comes first, before what it takes.
    """
    needs = _needs(images)
    circles = {circle[0]: circle for circle in _circles(needs)}
    home = {n: first for first, circle in circles.items() for n in circle}
    between = {
        first: {home[other] for n in circle for other in needs[n]} - {first}
        for first, circle in circles.items()
    }
    out: list[int] = []
    for first in _behind_needs(between):
        circle = circles[first]
        out += _behind_needs({n: needs[n].intersection(circle) for n in circle})
    return out


def _needs(images: Sequence[Image]) -> list[set[int]]:
    """Return for each library the indices of those whose variables it takes.

    A variable that a library has itself it takes of none.

    Args:
        images: the libraries.
    """
    takes: list[set[str]] = []
    owners: dict[str, list[int]] = {}  # variable -> the libraries that have it
    for image in images:
        wanted = {name for name, one in image.imports.items() if one.kind == "object"}
        takes.append(wanted.difference(symbol.name for symbol in image.symbols))
    wanted_at_all = set[str]().union(*takes)
    for n, image in enumerate(images):
        for name in wanted_at_all.intersection(symbol.name for symbol in image.symbols):
            owners.setdefault(name, []).append(n)
    return [{owner for name in names for owner in owners.get(name, ())} for names in takes]


def _behind_needs(needs: Mapping[int, set[int]]) -> list[int]:
    """Return numbers in an order in which each comes behind those that it needs, and the smallest
    comes first otherwise.

    Args:
        needs: number -> those of the same numbers that have to come before it. Where each that is
            left needs another one that is left, the smallest comes next.
    """
    users: dict[int, list[int]] = {n: [] for n in needs}
    missing = {n: len(those) for n, those in needs.items()}
    for n, those in needs.items():
        for other in those:
            users[other].append(n)
    ready = sorted(n for n, count in missing.items() if not count)  # a heap, sorted as it is
    stuck = iter(sorted(needs))
    out: dict[int, None] = {}
    while len(out) < len(needs):
        chosen = heappop(ready) if ready else next(n for n in stuck if n not in out)
        if chosen in out:
            continue
        out[chosen] = None
        for user in users[chosen]:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, user)
    return [*out]


def _circles(needs: Sequence[set[int]]) -> Iterator[list[int]]:
    """Yield the circles of libraries that take variables of each other, directly or through others;
    a library that is in none is one by itself.

    Tarjan's algorithm for strongly connected components.

    Args:
        needs: for each library, the indices of those whose variables it takes.

    Yields:
        The indices of a circle, in ascending order. Each library is in one circle.
    """
    entered: dict[int, int] = {}  # library -> how many were entered before
    oldest: dict[int, int] = {}  # library -> the lowest of these numbers that it leads to
    done = set[int]()
    stack: list[int] = []  # entered, and their circles are not complete
    for start in range(len(needs)):
        path = [] if start in entered else [(start, iter(needs[start]))]
        while path:
            n, others = path[-1]
            if n not in entered:
                entered[n] = oldest[n] = len(entered)
                stack.append(n)
            other = next(others, None)
            if other is not None and other not in entered:
                path.append((other, iter(needs[other])))
            elif other is not None:
                if other not in done:
                    oldest[n] = min(oldest[n], entered[other])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    oldest[above] = min(oldest[above], oldest[n])
                if oldest[n] == entered[n]:
                    circle: list[int] = []
                    while n not in done:
                        circle.append(stack.pop())
                        done.add(circle[-1])
                    yield sorted(circle)
