"""Results as text, Markdown and a picture. Knows nothing but what results.json holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Results = dict[str, Any]

#: kinds of probes in Linux's letters -> what a hit of theirs is here
KINDS = {"k": "kprobe: two traps", "b": "boosted: one trap", "o": "optimized: a jump",
         "c": "counted: optimized, no handler", "j": "jprobe",
         "r": "return probe, entry like k", "rb": "entry like b", "ro": "entry like o"}
#: Linux's documentation, Documentation/trace/kprobes.rst, "Probe Overhead": microseconds on an Intel Xeon E5410, 2.33
#: GHz
LINUX = {"i386": {"k": 0.80, "b": 0.33, "o": 0.05, "r": 1.10, "rb": 0.61, "ro": 0.33},
         "x86-64": {"k": 0.99, "b": 0.43, "o": 0.06, "r": 1.24, "rb": 0.68, "ro": 0.30}}


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table; every column but the first is numbers."""
    head = list(head)
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, rule, *lines])


def by_name(results: Results, arch: str) -> dict[str, Any]:
    """Row name -> row of an architecture."""
    return {row["name"]: row for row in results["architectures"][arch]["rows"]}


def misses(row: Any) -> bool:
    """True where a ratio is above what it is to stay below."""
    return "most" in row and "ratio" in row and round(row["ratio"], 2) > row["most"]


def ratio(row: Any) -> str:
    """A row's ratio; empty where it has none."""
    return f"{row['ratio']:.2f}" if "ratio" in row else ""


# --- one architecture


def text(results: Results, arch: str) -> str:
    """All rows for people; `>` marks those above what they are to stay below."""
    lines = [f"\n{arch:48} {'ns':>9} {'ratio':>7}"]
    for row in by_name(results, arch).values():
        if "absent" in row:
            lines.append(f"{row['name']:48} {'-':>9}          {row['absent']}")
            continue
        ratio = f"{row['ratio']:7.3f} to {row['to']}" if "to" in row else ""
        lines.append(f"{row['name']:48} {row['ns']:9.1f} {ratio}" + (f" > {row['most']}" if misses(row) else ""))
    return "\n".join([*lines, registering(results, arch)])


def rows(results: Results, arch: str) -> str:
    """All rows as a table."""
    def cells(row: Any) -> list[str]:
        if "absent" in row:
            return [row["name"], "", "", row["absent"]]
        return [row["name"], f"{row['ns']:,.0f}" if row["ns"] >= 100 else f"{row['ns']:.1f}", ratio(row),
                row.get("to", "")]

    return table(["row", "ns", "ratio", "to"], map(cells, by_name(results, arch).values()))


def registering(results: Results, arch: str) -> str:
    """What registering costs."""
    return "\n".join(f"{r['probes']:,} probes: registered in {r['register']:.2f} s, unregistered in "
                     f"{r['unregister']:.2f} s, "
                     f"{r['bytes']:,.0f} bytes each" for r in results["architectures"][arch]["registering"]
                     if r["probes"] > 1) + "\n"


# --- all architectures


def ratios(results: Results, suffix: str) -> str:
    """Architectures down, kinds of probes across: the ratio to a raw hook that does the same."""
    return _ratios(results, {kind: "c" if kind == "c" else f"{kind}, {suffix}" for kind in KINDS})


def returns(results: Results) -> str:
    """The same of return probes whose handler reads the return value, and of one with two empty handlers."""
    names = {kind: f"{kind}, return value" for kind in ("r", "rb", "ro")}
    return _ratios(results, {**names, "ro, two empty handlers": "ro, empty at entry and return"})


def _ratios(results: Results, names: dict[str, str]) -> str:
    lines = []
    for arch in results["architectures"]:
        found = by_name(results, arch)
        lines.append([f"`{arch}`", *(ratio(found[name]) for name in names.values())])
    return table(["", *names], lines)


def yardsticks(results: Results) -> str:
    """What a hit costs whoever goes around the engine's Python binding, beside ours."""
    names = {"the engine's hook, in Python": "raw hook", "by ctypes": "hook by ctypes",
             "through the C API": "hook through the C API", "in C, no Python": "hook in C", "a probe, optimized": "o"}
    lines = []
    for arch in ("x86_64", "arm64"):
        found = by_name(results, arch)
        for what, name in names.items():
            cells = [found.get(f"{name}, {does}", {}) for does in ("empty", "two arguments")]
            lines.append([f"`{arch}`", what, *(f"{row['ns']:,.0f}" if "ns" in row else row.get("absent", "not measured")
                                               for row in cells)])
    return table(["", "ns a hit", "empty", "two arguments"], lines)


def scale(results: Results) -> str:
    """What many probes cost: to hit, to have, to register."""
    count = max(results["settings"]["probes"])
    lines = []
    for arch, found in results["architectures"].items():
        named, cost = by_name(results, arch), next(r for r in found["registering"] if r["probes"] == count)
        names = ("stores, one probe elsewhere", f"unprobed, {count:,} probes elsewhere",
                 f"o, two arguments, {count:,} probes elsewhere")
        lines.append([f"`{arch}`", *(ratio(named[name]) for name in names),
                      f"{cost['register']:.1f} s", f"{cost['unregister']:.1f} s", f"{cost['bytes']:,.0f}"])
    return table(["", "stores", "unprobed", "hit one", "register", "unregister", "bytes each"], lines)


def linux(results: Results) -> str:
    """Linux's published microseconds beside ours."""
    kinds = list(LINUX["x86-64"])
    lines = [[f"Linux on {name}", *(f"{us:.2f}" for us in figures.values())] for name, figures in LINUX.items()]
    for arch, there in (("i386", "i386"), ("x86_64", "x86-64")):
        if arch in results["architectures"]:
            named = by_name(results, arch)
            us = [named[f"{kind}, empty"]["ns"] / 1000 for kind in kinds]
            lines.append([f"`{arch}` guest here", *(f"{value:.2f}" for value in us)])
            lines.append(["times as much", *(f"{value / LINUX[there][kind]:.1f}"
                                             for kind, value in zip(kinds, us, strict=True))])
    return table(["microseconds", *kinds], lines)


def host(results: Results) -> str:
    """What it was measured on."""
    h, s = results["host"], results["settings"]
    return (f"Measured on {h['date']}: {h['processor']}, {h['processors']} processors, {h['system']}, Python "
            f"{h['python']}, Unicorn {h['unicorn']}; "
            f"medians of {s['rounds']} rounds of {s['hits']:,} hits.\n")


def instructions(counts: dict[str, dict[str, float]]) -> str:
    """What benchmarks/instructions.py has counted: architectures down, kinds of probes across, handlers empty."""
    names = {kind: kind if kind == "c" else f"{kind}, empty" for kind in KINDS}
    return table(["", "raw hook", *names], ([f"`{arch}`", *(f"{found[name]:,.0f}" if name in found else ""
                                                            for name in ("raw hook, empty", *names.values()))]
                                            for arch, found in counts.items()))


def part(results: Results, what: str) -> str:
    """A generated part of docs/cost.md by its name: `ratios empty`, `rows arm64`, ..."""
    name, _, argument = what.partition(" ")
    return str({"ratios": ratios, "returns": returns, "rows": rows,
                "yardsticks": yardsticks, "registering": registering, "scale": scale,
                "linux": linux, "host": host}[name](
        results, *([argument] if argument else [])))
