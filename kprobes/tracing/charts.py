"""The data that scripts of pages draw, of stacks and of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..symbols import CONTROLS

Stacks = Mapping["tuple[str, ...]", int]  #: frames, outermost first -> weight

MOST_NODES = 80  #: functions of a call graph that people can read
_LINES = {code: text for code, text in CONTROLS.items() if code != ord("\n")}


class Names:
    """Gives each text a number, so that a page's data names a function by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    def number(self, text: str) -> int:
        """Return the number of a text, counted from 0; a new text takes the next one."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return number

    def text(self, number: int) -> str:
        """Return the text that a number stands for."""
        return self._texts[number]

    def texts(self) -> list[str]:
        """Return all texts in the order of their numbers, without characters that control a
        terminal.
        """
        return [text.translate(_LINES) for text in self._texts]


def flame_data(trees: Sequence[tuple[str, str, Stacks, Stacks | None]]) -> dict[str, Any]:
    """Return the data that scripts/flame.js draws flame graphs from.

    Args:
        trees: one for each graph: (label, unit of weights, stacks with their weights, the stacks of
            the trace to compare with or None).

    Returns:
        {"trees": a dictionary for each graph, as _tree() makes them}.
    """
    return {"trees": [_tree(*tree) for tree in trees]}


def _tree(label: str, unit: str, stacks: Stacks, before: Stacks | None) -> dict[str, Any]:
    """Return the data of one flame graph.

    A stack without frames is left out.

    Args:
        label: its title.
        unit: unit of the weights, such as "hits" or "ns".
        stacks: (frames, the outermost first) -> weight.
        before: the same of an earlier trace, from which the graph shows the difference; None: there
            is none.

    Returns:
        "label", "unit", "names" (texts by number), and columns with a value for each box of the
        graph, a box in front of those that it calls: "name" (the number of its name), "depth" (0:
        outermost) and "self" (the weight of stacks that end in it); with `before` also "before"
        (the same weight then).
    """
    names = Names()
    name = list[int]()
    depth = list[int]()
    weight = list[int]()
    was = list[int]()
    last: tuple[str, ...] = ()
    for frames in sorted({*stacks, *(before or ())}):
        same = next(
            (n for n, (a, b) in enumerate(zip(frames, last, strict=False)) if a != b),
            min(len(frames), len(last)),
        )
        for n in range(same, len(frames)):
            name.append(names.number(frames[n]))
            depth.append(n)
            weight.append(0)
            was.append(0)
        if name and frames:
            weight[-1] += stacks.get(frames, 0)
            was[-1] += (before or {}).get(frames, 0)
        last = frames
    found = {
        "label": label,
        "unit": unit,
        "names": names.texts(),
        "name": name,
        "depth": depth,
        "self": weight,
    }
    return found if before is None else found | {"before": was}


def graph_data(
    unit: str,
    own: Mapping[str, int],
    weight: Mapping[str, int],
    edges: Mapping[tuple[str, str], int],
) -> dict[str, Any]:
    """Return the data that scripts/callgraph.js draws: the functions that weigh most, and the calls
    between these.

    Args:
        unit: of weights.
        own: function -> its own weight.
        weight: function -> its weight with that of the functions it calls.
        edges: (caller, function) -> number of calls, or weight of the stacks with this call.

    Returns:
        "unit", "names" (at most MOST_NODES, the heaviest first), "own" and "weight" (a value for
        each name), "edges" (three numbers for each call: index of the caller in "names", index of
        the function, count) and "left_out" (how many functions are not in the graph).
    """
    kept = sorted({*weight, *own}, key=lambda name: (-weight.get(name, 0), -own.get(name, 0), name))
    numbers = {name: n for n, name in enumerate(kept[:MOST_NODES])}
    shown = [
        (numbers[a], numbers[b], count)
        for (a, b), count in edges.items()
        if a in numbers and b in numbers
    ]
    return {
        "unit": unit,
        "names": [name.translate(CONTROLS) for name in numbers],
        "own": [own.get(name, 0) for name in numbers],
        "weight": [weight.get(name, 0) for name in numbers],
        "edges": [number for edge in shown for number in edge],
        "left_out": len(kept) - len(numbers),
    }


def of_stacks(stacks: Stacks) -> tuple[Counter[str], Counter[str], Counter[tuple[str, str]]]:
    """Add up the weights of stacks, by function and by call.

    Args:
        stacks: names of functions, outermost first -> weight.

    Returns:
        Three counters: innermost function -> weight; function -> weight of all stacks that it is
        in; (caller, function) -> weight. Recursion counts once for a stack.
    """
    own = Counter[str]()
    weight = Counter[str]()
    edges = Counter[tuple[str, str]]()
    for frames, count in stacks.items():
        if not frames:
            continue
        own[frames[-1]] += count
        for name in {*frames}:
            weight[name] += count
        for edge in {*pairwise(frames)}:
            edges[edge] += count
    return own, weight, edges
