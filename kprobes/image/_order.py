"""The order in which libraries are loaded, where some take variables of others."""

from __future__ import annotations

from collections.abc import Sequence

from ._placing import Image


def in_order(images: Sequence[Image]) -> list[int]:
    """Return an order for loading libraries: each comes behind those whose variables it takes.

    Functions are found whenever they are called; a variable has to be there when it is bound.

    Args:
        images: the libraries, in the order in which they were named.

    Returns:
        Their indices in `images`; libraries keep the order in which they were named otherwise.
        Where each that is left takes variables of another that is left, the first of them that was
        named comes next.
    """
    has = [{symbol.name for symbol in image.symbols} for image in images]
    takes = [
        {name for name, wanted in image.imports.items() if wanted.kind == "object"}
        for image in images
    ]
    numbers = range(len(images))
    behind = [
        {other for other in numbers if other != n and (takes[n] - has[n]) & has[other]}
        for n in numbers
    ]
    out: list[int] = []
    left = [*numbers]
    while left:
        ready = [n for n in left if not behind[n] & {*left}]
        chosen = (ready or left)[0]
        out.append(chosen)
        left.remove(chosen)
    return out
