"""Fill in the generated parts of the documentation: `python docs/generate.py [--check]`.

docs/support.md shows docs/support.json, which `pytest -p kprobes.conformance --conformance=docs/support.json`
writes; --proved FILE, a newer one, must prove the same cells, but for what it had to skip. docs/cost.md and
docs/cost.svg show benchmarks/results.json, which benchmarks/hit_cost.py writes, and benchmarks/instructions.json, of
instructions.py.
docs/remote.md shows docs/remote.json: see tests/remote/test_stub_capabilities.py. docs/bpftrace-tests.md shows
docs/bpftrace-tests.json, which tests/script/bpftrace_suite.py writes, and docs/beside-bpftrace.json, which
tools/beside_bpftrace writes. docs/ftrace-tests.md shows
docs/ftrace-tests.json, which tests/ftrace/suite.py writes.

A page says where: everything between `<!-- generated: NAME ARGUMENT -->` and `<!-- end -->` is written by the function
of that name below, from the code. --check changes nothing and fails where a page is out of date.
"""

from __future__ import annotations

import argparse
import ast
import enum
import errno
import importlib
import inspect
import io
import json
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import kprobes
from kprobes import arch, conformance
from kprobes.core.hit import ctlblk
from kprobes.core.patch import arming
from kprobes.core.settings import Setting
from kprobes.events._messages import MESSAGES
from kprobes.inventory import engines
from kprobes.programs import header
from kprobes.programs.helpers import HELPERS
from kprobes.script import names

DOCS = Path(__file__).resolve().parent
SUPPORT = DOCS / "support.json"
STUBS = DOCS / "remote.json"
BPFTRACE = DOCS / "bpftrace-tests.json"
BESIDE = DOCS / "beside-bpftrace.json"
FTRACE = DOCS / "ftrace-tests.json"
BENCHMARKS = DOCS.parent / "benchmarks"
NOTEBOOK = DOCS.parent / "examples" / "notebook.ipynb"
PART = re.compile(r"(?<=<!-- generated: )(?P<what>[^>]*?)(?P<end> -->\n).*?(?=<!-- end -->)", re.DOTALL)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# --- state machines


def machine(transitions: Mapping[tuple[Any, Any], enum.Enum], states: type[enum.Enum],
            happenings: type[enum.Enum]) -> str:
    """A state machine: states down, events across; an empty cell is an error that changes nothing."""
    rows = [[f"**{state.name}**", *(transitions[state, event].name if (state, event) in transitions else ""
                                    for event in happenings)]
            for state in states]
    return table(["state \\ event", *(event.name for event in happenings)], rows)


def meanings(kind: type[enum.Enum]) -> str:
    """What the members of an enumeration mean."""
    return table([kind.__name__.lower(), "meaning"], ([f"`{member.name}`", str(member.value)] for member in kind))


def control_block(_: str) -> str:
    """The per-CPU state machine."""
    return machine(ctlblk.TABLE, ctlblk.HitState,
                   ctlblk.HitEvent) + "\n" + meanings(ctlblk.HitState) + "\n" + meanings(ctlblk.HitEvent)


def arming_states(_: str) -> str:
    """The state machine of a probepoint."""
    return machine(arming.TABLE, arming.Arming, arming.Change) + "\n" + meanings(arming.Change)


def patches(_: str) -> str:
    """What each arming state has in memory."""
    return table(["state", "in guest memory"], ([f"`{state.name}`", str(state.value)] for state in arming.Arming))


# --- errors


def errors(_: str) -> str:
    """Every exception of the public interface."""
    classes = [c for name in kprobes.__all__ if inspect.isclass(c := getattr(kprobes, name))
               and issubclass(c, kprobes.KprobeError)]
    return table(["exception", "errno", "raised when"],
                 ([f"`{c.__name__}`", errno.errorcode[c.code], paragraph(c)] for c in classes
                  if c is not kprobes.KprobeError))


def warning_classes(_: str) -> str:
    """Every warning of the public interface."""
    classes = [c for name in kprobes.__all__ if inspect.isclass(c := getattr(kprobes, name)) and issubclass(c, Warning)]
    return table(["warning", "when"], ([f"`{c.__name__}`", paragraph(c)] for c in classes))


def exception_names(_: str) -> str:
    """The names of all errors and warnings of the public interface."""
    classes = [c for name in kprobes.__all__ if inspect.isclass(c := getattr(kprobes, name))
               and issubclass(c, Exception)]
    errors, warnings = (", ".join(f"`{c.__name__}`" for c in classes if issubclass(c, Warning) == warns)
                        for warns in (False, True))
    return f"Errors: {errors}.\n\nWarnings: {warnings}.\n"


def event_errors(_: str) -> str:
    """Every way in which an event can be wrong."""
    return table(["kind", "message"], ([f"`{kind}`", escape(message)] for kind, message in MESSAGES.items()
                                       if message != "{}"))


def escape(text: str) -> str:
    """Text for a table's cell: no column ends in it, and nothing in it is taken for HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("{!r}", "…").replace("{}", "…")


# --- architectures


def architectures(_: str) -> str:
    """What each architecture can do, from its record."""
    return table(["name", "bits", "order", "runs in", "instructions", "calls and arguments", "return probes",
                  "boost and optimization"],
                 map(architecture, map(arch.get, arch.names())))


def architecture(a: arch.Arch) -> list[str]:
    """A row of that table; the name leads to the page whose title has it."""
    length = f"{a.insn_align} bytes" if a.insn_align == a.max_insn else f"{a.insn_align} to {a.max_insn} bytes"
    in_registers = f"{len(a.abi.args)} in registers" if a.abi and a.abi.args else "on the stack" if a.abi else "-"
    page = next((path for path in sorted((DOCS / "arch").glob("*.md"))
                 if f"`{a.name}`" in path.read_text().partition("\n")[0]), None)
    name = f"[`{a.name}`](arch/{page.name})" if page else f"`{a.name}`"
    return [name, str(a.bits), a.order.value, ", ".join(engines(a)) or "-", length, in_registers,
            "yes" if a.linkage else "-", f"{a.jump.size}-byte jump" if a.jump else "-"]


# --- reference


def reference(words: str) -> str:
    """Signature, docstring, methods and properties of a public class or function; `-name` leaves a member out."""
    name, *without = words.split()
    thing: Any = kprobes
    for part in name.split("."):
        thing = getattr(thing, part)
    head = "" if "-__init__" in without else f"```text\n{signature(name, thing)}\n```\n\n"
    shown = "".join(line for line in document(thing).splitlines(keepends=True)
                    if not any(line.startswith(f"- `{left.removeprefix('-')}`:") for left in without))
    out = [f"{head}{shown}\n"]
    if inspect.isclass(thing):
        kept = [attribute for attribute in members(thing) if f"-{attribute}" not in without]
        out += [member(thing, names) for names in alike(thing, kept)]
    return "\n".join(out)


def source(path: str) -> str:
    """A file of the repository, as a block. The page runs a script by a command, not by its block."""
    language, note = {".py": ("python", "<!-- no-test: a command below runs the file -->\n"),
                      ".yaml": ("yaml", "")}.get(Path(path).suffix, ("c", ""))
    return f"{note}```{language}\n{(DOCS.parent / path).read_text()}```\n"


def helpers(_: str) -> str:
    """What programs may call."""
    names = (f"`bpf_{helper.name}`" for helper in HELPERS.values()
             if helper.number < 1 << 16)
    return f"{', '.join(names)}.\n"


def alike(owner: type[Any], names: list[str]) -> list[list[str]]:
    """Names of the same function together."""
    groups: dict[int, list[str]] = {}
    for name in names:
        groups.setdefault(id(inspect.getattr_static(owner, name)), []).append(name)
    return list(groups.values())


def members(thing: type[Any]) -> list[str]:
    """Public methods and properties of a class and its bases of ours, in the order of the source."""
    found: dict[str, None] = {}
    for base in thing.__mro__:
        if base.__module__.startswith("kprobes"):
            found |= {a: None for a, value in vars(base).items() if not a.startswith("_") and documented(value)}
    return list(found)


def documented(value: Any) -> bool:
    """True for methods and properties with a docstring."""
    plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    return (inspect.isfunction(plain) or isinstance(plain, property | Setting)) and bool(plain.__doc__)


def member(owner: type[Any], names: list[str]) -> str:
    """A method or property, by all its names, as a list item."""
    thing = getattr(owner, names[0])
    calls = [f"`{name}`" if isinstance(thing, property | Setting) else f"`{signature(name, thing)}`" for name in names]
    return f"- {', '.join(calls)}  \n  {document(thing, 2)}"


def signature(name: str, thing: Any) -> str:
    """`name(parameters)`, without types: the docstring tells."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    bare = [p.replace(annotation=p.empty, default=... if " at 0x" in repr(p.default) else p.default)
            for p in found.parameters.values() if p.name not in ("self", "cls")]
    return f"{name}{found.replace(parameters=bare, return_annotation=found.empty)}"


#: a section of a docstring: its title, and lines that are indented
SECTION = re.compile(r"^(Attributes|Args|Raises|Returns):\n((?: {4}.*\n?)+)", re.MULTILINE)
TITLES = {"Args": "Parameters"}


def document(thing: Any, indent: int = 0) -> str:
    """A docstring as Markdown; its sections become lists.

    Args:
        thing: what is documented.
        indent: columns by which the text is indented, but for its first line.
    """
    text = SECTION.sub(section, f"{inspect.getdoc(thing) or ''}\n").rstrip("\n")
    return text.replace("\n", "\n" + " " * indent).replace(" " * indent + "\n", "\n") if indent else text


def section(found: re.Match[str]) -> str:
    """A section as a list: an item for each name; what has no name, as Returns, is a paragraph."""
    title = TITLES.get(found[1], found[1])
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?= {4}\S)", found[2].rstrip("\n"))]
    if found[1] == "Returns":
        return f"{title}: {' '.join(entries)}\n"
    named = (re.fullmatch(r"([\w.*, ]+): (.*)", entry) for entry in entries)
    items = [f"- `{name[1]}`: {name[2]}" if name else f"- {entry}"
             for name, entry in zip(named, entries, strict=True)]
    return f"{title}:\n\n" + "".join(f"{item}\n" for item in items)


def paragraph(thing: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return escape(" ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()))


# --- benchmarks


def measured() -> Any:
    """What the benchmark has found."""
    return json.loads((BENCHMARKS / "results.json").read_text())


def helper(folder: Path, name: str) -> Any:
    """A module beside the benchmarks or this one."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def cost(what: str) -> str:
    """A part of docs/cost.md."""
    report = helper(BENCHMARKS, "report")
    if what == "instructions":
        return str(report.instructions(json.loads((BENCHMARKS / "instructions.json").read_text())))
    return str(report.part(measured(), what))


def pictures() -> dict[Path, str]:
    """Path -> what is to be there."""
    drawn = {DOCS / "pictures" / name: text for name, text in helper(DOCS, "diagrams").pictures().items()}
    cost = str(helper(BENCHMARKS, "plot").svg(measured()))
    return {**drawn, DOCS / "cost.svg": cost, NOTEBOOK: notebook()}


def notebook() -> str:
    """The cookbook's notebook, with the outputs of a run."""
    return str(helper(DOCS, "cells").notebook(NOTEBOOK.with_suffix(".py"), DOCS.parent))


# --- the support matrix


def support(title: str) -> str:
    """What the last recorded test run has proved: one of its tables."""
    return conformance.table(json.loads(SUPPORT.read_text())[title])


def changed(now: conformance.Tables) -> list[str]:
    """Cells that a test run has proved and the page does not show, or the other way round; but for those whose tests
    were skipped, because what they need was not there."""
    then = json.loads(SUPPORT.read_text())
    return [f"docs/support.json: {title or 'architectures'}: {name}, {capability}: "
            f"{'proved now' if (name, capability) in proved else 'no longer proved'};"
            " write it anew by pytest -p kprobes.conformance --conformance=docs/support.json"
            for title in sorted({*then, *now})
            for proved in [proofs(now.get(title, {}))]
            for name, capability in sorted(proofs(then.get(title, {})) ^ proved)
            if not now.get(title, {}).get(name, {}).get(capability, {}).get("absent")]


def proofs(cells: conformance.Cells) -> set[tuple[str, str]]:
    """(architecture, capability) of what is proved."""
    return {(name, capability) for name, row in cells.items() for capability, facts in row.items()
            if facts.get("proved")}


# --- stubs


def capabilities(_: str) -> str:
    """What tests/remote/test_stub_capabilities.py has found: stubs that can do the same share a column."""
    columns: dict[tuple[str, str], list[str]] = {}
    for stub, rows in json.loads(STUBS.read_text()).items():
        for name, found in rows.items():
            columns.setdefault((stub, json.dumps(found)), []).append(name)
    tables = [json.loads(found) for _, found in columns]
    nowhere = [what for what in tables[0] if not any(table[what] for table in tables)]
    lines = ["| | " + " | ".join(f"{stub} ({n})" for n, (stub, _) in enumerate(columns, 1)) + " |",
             "|---|" + ":---:|" * len(columns)]
    words = {"True": "yes", "False": "-"}  # others are numbers
    lines += [f"| {what} | " + " | ".join(words.get(str(table[what]), str(table[what])) for table in tables) + " |"
              for what in tables[0] if what not in nowhere]
    lines += ["", f"On none of them: {', '.join(nowhere)}.", ""]
    lines += [f"{n}. {', '.join(names)}" for n, names in enumerate(columns.values(), 1)]
    return "\n".join(lines)


# --- bpftrace's tests


def bpftrace_counts(_: str) -> str:
    """How many of bpftrace's runtime tests there are of each kind, for which reason, and how many passed."""
    groups: dict[tuple[str, str], list[str]] = {}
    for _name, kind, reason, result in json.loads(BPFTRACE.read_text())["tests"]:
        groups.setdefault((kind, reason), []).append(result)
    kinds = list(dict.fromkeys(kind for kind, _ in groups))
    kinds.sort(key=lambda kind: -sum(len(found) for (group, _), found in groups.items() if group == kind))
    rows = []
    for kind in kinds:
        of_kind = [result for (group, _), found in groups.items() if group == kind for result in found]
        ran = [result for result in of_kind if result]
        rows.append([f"**{kind}**", "", str(len(of_kind)), str(ran.count("passed")) if ran else ""])
        rows += [["", reason, str(len(found)), str(found.count("passed")) if any(found) else ""]
                 for (group, reason), found in sorted(groups.items()) if group == kind and reason]
    return table(["kind", "reason", "tests", "passed"], rows)


def bpftrace_tests(_: str) -> str:
    """Every runtime test of bpftrace: whether it applies here, why, and what came of it."""
    rows = json.loads(BPFTRACE.read_text())["tests"]
    return table(["test", "kind", "reason", "result"],
                 ([name.replace("|", "\\|"), kind, reason, result] for name, kind, reason, result in rows))


def script_refused(_: str) -> str:
    """Builtins and functions of scripts that mean nothing in a guest or are not supported, with the reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in sorted((names.REFUSED | names.UNSUPPORTED).items()):
        reasons.setdefault(reason, []).append(f"`{name}`")
    return table(["word", "reason"], ([", ".join(words), reason] for reason, words in reasons.items()))


def bpftrace_commit(_: str) -> str:
    """Which commit of bpftrace the tests are of."""
    return f"Tests of bpftrace's commit {json.loads(BPFTRACE.read_text())['commit'][:12]}."


def beside_bpftrace(_: str) -> str:
    """Scripts that real bpftrace and `kprobes script` both ran: whether they printed the same."""
    found = json.loads(BESIDE.read_text())
    rows = found["cases"]
    same = sum(row["result"] == "same" for row in rows)
    said = (f"{same} of {len(rows)} are the same in standard output, standard error and exit status (bpftrace "
            f"{found['bpftrace']}, Linux {found['kernel']}).\n\n")
    names = {"status": "exit status", "output": "output", "error": "messages"}
    return said + table(["script", "differs in", "why"], (
        [row["name"], "" if row["result"] == "same" else ", ".join(names[part] for part in row["result"].split(", ")),
         row["why"] if row["result"] != "same" else ""] for row in rows))


def ftrace_tests(_: str) -> str:
    """Every script of the kernel's for kprobe events: whether it passes, or why it does not apply."""
    found = json.loads(FTRACE.read_text())
    machines, rows = ", ".join(f"`{name}`" for name in found["machines"]), found["scripts"]
    passed = sum(result == "passes" for _, result, _ in rows)
    return (f"{passed} of {len(rows)} pass on all of {machines}.\n\n"
            + table(["script", "result", "why not, or where not"], ([f"`{name}`", result or "does not apply", reason]
                                                           for name, result, reason in rows)))


# --- the core

CORE = DOCS.parent / "kprobes" / "core"
#: what for -> its rooms
ROOMS = {
    "the user's probes, settings that are checked, decorators and context managers":
        "probe settings shorthand",
    "who is registered: places, refusals, verdicts, one thread at a time, memory that goes and comes back":
        "registry admission alone locate verdict listener",
    "debugfs files; blacklist":
        "listing blacklist",
    "mirrors":
        "jprobe",
    "hits by trap: handlers, faults, re-entrance, displaced instructions, what is under way at a snapshot":
        "trap breakpoints handlers ctlblk displaced underway",
    "returns: instances, tasks, calls that the machine follows, unwound frames, stack walks":
        "returns calls link exits trace",
    "entries in place; who serves a call site":
        "entries serving",
    "patches: the state machine, slots, sites, text that the guest or somebody else writes":
        "probepoint arming rooms sites slots text bits writes copies",
    "jumps: when, over what, displaced regions; none, where programs run in place":
        "optimizer region detour inplace",
    "the neighbourhood: walks, boundaries, delay slots, data amid code, tables, exclusive sequences":
        "survey walk exclusive",
    "EXECUTE":
        "patch/executed hit/executed",
}


def core_size(_: str) -> str:
    """What the core consists of. Every room is in one row."""
    files = {path.relative_to(CORE).with_suffix("").as_posix(): path for path in sorted(CORE.rglob("*.py"))
             if path.stem != "__init__"}
    named = {room: [name for name in files if name == room or name.endswith(f"/{room}")] for rooms in ROOMS.values()
             for room in rooms.split()}
    assert sorted(name for names in named.values()
                  for name in names) == sorted(files), "each room of the core belongs in one row of ROOMS"
    sizes = {room: lengths(files[names[0]]) for room, names in named.items()}
    rows = [[what, " ".join(f"`{room}`" for room in rooms.split()),
             *map(sum, zip(*(sizes[room] for room in rooms.split()), strict=True))]
            for what, rooms in ROOMS.items()]
    rows.append(["all of it", "", sum(row[2] for row in rows), sum(row[3] for row in rows)])
    return table(["what", "rooms", "lines", "of code"], [map(str, row) for row in rows])


def lengths(path: Path) -> tuple[int, int]:
    """Lines of a file, and those of them that are neither blank, comment nor docstring."""
    text = path.read_text()
    code = {n for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in NO_CODE
            for n in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            code -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    return len(text.splitlines()), len(code)


NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


# --- filling in

PARTS: dict[str, Callable[[str], str]] = {
    "control-block": control_block, "arming": arming_states, "patches": patches, "errors": errors,
    "exception-names": exception_names,
    "warnings": warning_classes, "event-errors": event_errors,
    "architectures": architectures, "reference": reference, "source": source, "helpers": helpers, "cost": cost,
    "support": support, "capabilities": capabilities,
    "core-size": core_size,
    "bpftrace-counts": bpftrace_counts, "bpftrace-tests": bpftrace_tests, "bpftrace-commit": bpftrace_commit,
    "beside-bpftrace": beside_bpftrace,
    "ftrace-tests": ftrace_tests,
    "script-refused": script_refused,
}


def filled(page: str) -> str:
    """A page with its generated parts written anew."""
    def write(found: re.Match[str]) -> str:
        name, _, argument = found["what"].partition(" ")
        return f"{found['what']}{found['end']}\n{PARTS[name](argument).strip()}\n\n"

    return PART.sub(write, page)


def main() -> None:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a page is out of date")
    parser.add_argument("--proved", type=Path, metavar="FILE",
                        help="fail where a test run has proved other cells than docs/support.json says")
    options = parser.parse_args()
    wanted = {path: filled(path.read_text()) for path in sorted(DOCS.rglob("*.md"))} | pictures()
    wanted[header.REGISTERS_H] = header.registers()
    stale = {path: new for path, new in wanted.items() if not path.exists() or path.read_text() != new}
    for path, new in stale.items():
        print(f"{path.relative_to(DOCS.parent)}: "
              f"{'out of date; run python docs/generate.py' if options.check else 'written'}")
        if not options.check:
            path.write_text(new)
    differing = changed(json.loads(options.proved.read_text())) if options.proved else []
    for line in differing:
        print(line)
    if (options.check and stale) or differing:
        sys.exit(1)


if __name__ == "__main__":
    main()
