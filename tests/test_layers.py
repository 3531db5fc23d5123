"""The house rules that a machine can check: imports point down and in no circle, nobody knows what is not theirs to
know.

Imports under TYPE_CHECKING count: readers follow them, too.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from arches import ARCHES

import kprobes

pytestmark = pytest.mark.quick
ROOT = Path(kprobes.__file__).resolve().parent
DOCS = Path(__file__).resolve().parent.parent / "docs"
FAMILIES = sorted(p.name for p in (ROOT / "arch").iterdir() if (p / "__init__.py").exists())

#: module (prefix; the longest that fits counts) -> prefixes of our modules that it may import
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "errors": ("controls",),
    "arguments": ("errors",),
    "attacher": ("programs.attach", "programs.program"),
    "clocknames": (),
    "collector": (),
    "controls": (),
    "deprecation": (),
    "symbols": ("arguments", "controls", "errors", "image", "names"),
    "names": (),
    "notebook": ("controls",),
    "btf": (),
    "regs": ("arguments", "errors"),
    "hostmemory": (),
    "hostsystem": (),
    "stacks": (),
    "statetable": (),
    "newfile": (),
    "pictures": ("controls",),
    "native.": ("native",),
    "arch": ("errors", "arch._base"),  # the registry; it finds the architectures by name
    "arch.": ("errors", "regs", "arch._"),
    **{f"arch.{family}": ("errors", "regs", "arch._", f"arch.{family}") for family in FAMILIES},
    "image": ("btf", "collector", "errors", "image"),
    "machine": (),
    "machine._base": ("errors", "regs", "stacks", "symbols", "arch._base", "machine._blocks", "machine._views"),
    "machine._views": ("regs", "arch._base", "arch._detours"),
    "machine.": ("arguments", "statetable", "errors", "hostmemory", "hostsystem", "native", "regs", "stacks", "symbols", "image", "debug.described", "machine",
                 "arch", "arch._base", "arch._rows", "arch._linux", "arch._stub", "arch._detours", "arch._assembly",
                 "arch._comparing", "arch._interrupts"),
    "machine.ia64": ("errors", "regs", "arch", "arch._", "arch.ia64.", "machine.paper", "machine.ia64."),
    "core": (),
    "core.": ("deprecation", "native", "notebook", "statetable", "errors", "regs", "stacks", "symbols", "arch._base", "machine._base", "core."),
    "native": (),
    "discover.": ("arch._base", "errors", "image", "discover."),
    "discover": ("discover.",),
    "debug.described": ("arguments", "notebook", "errors", "debug.", "discover"),
    "debug.quick": ("native", "debug.scan", "debug.section"),
    "debug.": ("btf", "arguments", "errors", "hostsystem", "regs", "stacks", "symbols", "arch._base",
               "arch._rows", "arch._dwarf", "arch._assembly", "image", "debug."),
    "conformance": (),
    # the door: names of the package, imported when they are asked for
    "__init__": ("arch", "arch._base", "board", "core.", "deprecation", "debug.arguments", "debug.types", "debug.view",
                 "discover._search", "errors", "events._armed", "events._hist",
                 "events._files", "events._record", "events._table", "events._watchpoint", "heap.check", "heap.finding", "kprobes",
                 "machine", "native", "pictures.page", "programs", "regs", "script.script", "script.source", "stacks", "symbols",
                 "tracing"),
    "__main__": ("cli",),
    "calltext": ("errors", "machine.unicorn.machine"),
    "inventory": ("arch", "arch._base", "arch._rows", "arch._stub", "errors", "symbols", "kprobes", "core.register.locate",
                  "machine.unicorn.guests.rows", "machine.unicorn.machine"),
    "board": ("arch.arm.nvic", "board."),
    "board.": ("errors", "regs", "symbols", "arch.arm.nvic", "machine.unicorn.machine", "board."),
    "campaign": ("arguments", "calltext", "errors", "events", "inventory", "kprobes", "machine.unicorn.machine", "tracing",
                 "campaign"),
    "cli": ("__init__", "board", "calltext", "campaign", "clocknames", "controls", "core.", "deprecation", "errors", "events", "heap",
            "inventory",
            "kprobes", "machine.remote", "machine.unicorn.machine", "names", "newfile", "programs", "script", "stacks",
            "symbols", "tracing",
            "arch", "arch._base", "arch._rows", "arch._assembly", "fuzz", "cli"),
    "fuzz": ("__init__", "board", "calltext", "campaign", "controls", "deprecation", "errors", "kprobes", "machine.unicorn.edgemap",
             "machine.unicorn.machine", "newfile", "stacks", "symbols", "fuzz"),
    "events": ("arguments", "attacher", "clocknames", "core.probe", "core.register.alone", "debug.", "errors", "machine._base", "names", "notebook",
               "programs", "regs", "stacks", "symbols", "arch._base", "events"),
    "script": ("script.",),
    # the passes know the tree and not each other's guest: only what places probes and runs them does
    "script.": ("clocknames", "errors", "programs.", "script."),
    "script.listing": ("names", "script."),
    "script.guest": ("errors", "names", "arch._base", "debug.info", "debug.operands", "debug.passing", "debug.placing",
                     "debug.types", "image._symbol", "machine._base", "programs.context", "script.", "symbols"),
    "script.placing": ("attacher", "errors", "events._watchpoint", "image._symbol", "programs.", "script."),
    "script.script": ("clocknames", "errors", "events._watchpoint", "programs.", "script."),
    "tracing": ("arguments", "clocknames", "core.probe", "deprecation", "core.register.alone", "debug.", "errors", "events", "hostmemory", "names",
                "image", "machine._base", "machine._blocks", "newfile", "notebook", "pictures", "regs", "stacks", "symbols",
                "tracing"),
    "programs": (),
    "programs.": ("btf", "arguments", "clocknames", "errors", "hostmemory", "hostsystem", "regs", "arch._base", "arch._rows", "arch._linux",
                  "arch._compiling", "machine._views", "programs."),
    "programs.attach": ("clocknames", "errors", "native", "regs", "core.probe", "debug.info", "debug.operands", "machine._base", "machine._views", "programs."),
    "programs.listed": ("errors", "regs", "arch._base", "debug.info", "debug.passing", "debug.types", "programs."),
    "programs.support": ("native", "programs."),
    "kprobes": ("arguments", "notebook", "errors", "regs", "stacks", "machine._base", "core.",
                     "programs.attach", "programs.program", "debug.info", "debug.registers", "debug.unwind", "events._armed",
                     "events._table", "events._watchpoint", "heap.check", "script", "tracing.coverage", "tracing.graph",
                     "script.output", "tracing.recorder"),
    "programs.header": ("arch", "programs."),
    "heap": ("heap.",),
    "heap.": ("arguments", "errors", "hostmemory", "regs", "stacks", "symbols", "core.probe",
              "core.register.alone", "debug.info", "heap.",
              "machine._base"),
    "testing": ("arch", "arch._decode", "core.", "errors", "kprobes", "machine._base", "machine.paper", "machine.remote",
                "machine.unicorn", "regs", "symbols", "arch._base", "arch._rows", "arch._linux",
                "testing"),
}
#: foreign package -> prefixes of the only modules that may import it
KEEPERS = {
    "unicorn": ("machine.",), "keystone": ("machine.unicorn",), "capstone": ("cli", "machine.unicorn"),
    "elftools": ("debug.", "image", "programs.object.elf"),
    "pytest": ("conformance",), "llvmlite": ("programs.native",), "click": ("cli",),
    "pyarrow": ("campaign._dataset", "tracing.columns", "tracing.nested", "tracing.recorder", "tracing.trace"),
    "rich": ("cli",),
    "pebble": ("campaign",), "distributed": ("cli", "campaign._dask"),
    "itanium_demangler": ("names",), "rust_demangler": ("names",),
}
WINGS = ("settings", "probe", "patch", "hit", "register")


@cache
def sources() -> dict[str, ast.Module]:
    """Module name without `kprobes.` ("" prefix kept as __init__) -> its syntax tree."""
    gc.disable()  # it would walk over the million nodes again and again
    try:
        return {module_of(path): ast.parse(path.read_text(), str(path)) for path in sorted(ROOT.rglob("*.py"))}
    finally:
        gc.enable()


def module_of(path: Path) -> str:
    """The name of a source file's module, as sources() has it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def nodes(module: str) -> list[ast.AST]:
    """Every node of a module's syntax tree."""
    return list(ast.walk(sources()[module]))


@cache
def imports(module: str) -> list[tuple[str, int]]:
    """(what a module imports, line): ours without `kprobes.`, foreign ones with a leading `/`."""
    return list(imported(module, nodes(module)))


def imported(module: str, tree: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """The same, from the nodes of its syntax tree."""
    package = module.split(".") if _is_package(module) and module != "__init__" else module.split(".")[:-1]
    for node in tree:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _foreign(alias.name), node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            if base.startswith("/"):
                yield base, node.lineno
            else:
                for alias in node.names:
                    full = f"{base}.{alias.name}".strip(".")
                    yield (full if full in sources() else base or "__init__"), node.lineno


def _foreign(name: str) -> str:
    return name.partition(".")[2] or "__init__" if f"{name}.".startswith("kprobes.") else f"/{name}"


def _base(node: ast.ImportFrom, package: list[str]) -> str:
    """The module an ImportFrom names."""
    if node.level == 0:
        return _foreign(node.module or "").replace("__init__", "")
    up = package[: len(package) - node.level + 1]
    return ".".join([*up, *([node.module] if node.module else [])])


def _is_package(module: str) -> bool:
    return (ROOT / module.replace(".", "/")).is_dir() or module == "__init__"


def layer(module: str) -> str:
    """The entry of MAY_IMPORT that a module follows: the longest that fits its name."""
    fits = [prefix for prefix in MAY_IMPORT if module == prefix
            or module.startswith(prefix if prefix.endswith(".") else f"{prefix}.")]
    assert fits, f"{module} is in no layer: add it to MAY_IMPORT and to docs/design"
    return max(fits, key=len)


def rule(module: str) -> tuple[str, ...]:
    """What a module may import."""
    return MAY_IMPORT[layer(module)]


def allowed(target: str, prefixes: tuple[str, ...]) -> bool:
    """True where a prefix names the target, a package above it, or (ending in `.` or `_`) the start of its name."""
    return any(target == p or target.startswith(p if not p or p[-1] in "._" else f"{p}.") for p in prefixes
               if p != "arch" or target == "arch")


def test_imports_point_down() -> None:
    wrong = [f"{module}, line {line}: {target}" for module in sources() for target, line in imports(module)
             if not target.startswith("/") and not allowed(target, rule(module))]
    assert wrong == []


def test_foreign_packages_have_one_keeper() -> None:
    wrong = [f"{module}, line {line}: {target[1:]}" for module in sources() for target, line in imports(module)
             if (keepers := KEEPERS.get(target[1:].split(".")[0])) is not None and target.startswith("/")
             and not allowed(module, keepers)]
    assert wrong == []


def graph() -> dict[str, set[str]]:
    """File -> files of ours that it imports."""
    files = {m for m in sources() if not _is_package(m)}
    return {m: {t for t, _ in imports(m)} & files - {m} for m in files}


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Sets of files that lead back to themselves: those that can reach each other."""
    reach = {m: set(targets) for m, targets in edges.items()}
    for middle, beyond in reach.items():
        for targets in reach.values():
            targets.update(beyond if middle in targets else ())
    return [set(c) for c in {frozenset(o for o in reach if o in reach[m] and m in reach[o]) for m in reach
                             if m in reach[m]}]


def packages() -> dict[str, set[str]]:
    """Package, or module beside them -> those that its files import."""
    out: dict[str, set[str]] = {}
    for module in sources():
        own = module.split(".")[0]
        theirs = {target.split(".")[0] for target, _ in imports(module) if not target.startswith("/")}
        out.setdefault(own, set()).update(theirs - {own, "__init__"})
    return out


def test_no_circles() -> None:
    assert [sorted(c) for c in circles(graph())] == []


def test_no_circles_of_packages() -> None:
    """What a probe is lies below what comes out of it, and that below the doors: see docs/design.md."""
    assert [sorted(c) for c in circles(packages())] == []


def test_no_rule_says_everything() -> None:
    assert [module for module, prefixes in MAY_IMPORT.items() if "" in prefixes] == []


def test_no_rule_allows_what_is_not_done() -> None:
    """Each prefix of a rule is needed by a module that follows this rule. Families of architectures have one rule in
    common."""
    done = dict[str, set[str]]()
    for module in sources():
        if any(not target.startswith("/") for target, _ in imports(module)):
            done.setdefault(layer(module), set()).update(t for t, _ in imports(module) if not t.startswith("/"))
    families = {f"arch.{family}" for family in FAMILIES}
    by_any_family = {target for name in families for target in done[name]}
    unused = {name: [p for p in prefixes
                     if not any(allowed(t, (p,)) for t in (by_any_family if name in families else done.get(name, ())))]
              for name, prefixes in MAY_IMPORT.items()}
    assert {name: prefixes for name, prefixes in unused.items() if prefixes} == {}


def test_the_wings_of_the_core_point_down() -> None:
    """register -> hit -> patch -> probe -> settings."""
    wrong = [f"{m} imports {t}" for m, targets in graph().items() if m.startswith("core.") for t in targets
             if t.startswith("core.") and WINGS.index(t.split(".")[1]) > WINGS.index(m.split(".")[1])]
    assert wrong == []


def starting(*prefixes: str) -> list[str]:
    """Modules whose names start so."""
    return [module for module in sources() if module.startswith(prefixes)]


@cache
def declared(module: str) -> set[str]:
    """Fields that the classes of a module declare."""
    return {n.target.id for node in nodes(module) if isinstance(node, ast.ClassDef)
            for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def test_foreign_names_are_left_alone() -> None:
    """But the library's own fields of the user's probes: see Probe; and what the engine's binding has no public name
    for."""
    wrong = []
    for module in starting("core.", "machine."):
        known = declared("core.probe") | declared(module) | ({"_name", "_uch", "_callbacks"}
                                                             if module.startswith("machine.unicorn.") else set())
        wrong += [f"{module}, line {node.lineno}: {ast.unparse(node)}" for node in nodes(module)
                  if isinstance(node, ast.Attribute)
                  if node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in known
                  and not (isinstance(node.value, ast.Name)
                           and node.value.id in ("self", "cls", "before", "ctypes", "annotation", "sys"))]
    assert wrong == []


def test_core_binds_nothing_late() -> None:
    """No room has a lambda that another one replaces."""
    late = [f"{module}, line {node.lineno}" for module in starting("core.")
            for node in nodes(module) if isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Lambda)
            and any(isinstance(t, ast.Attribute) for t in (node.targets if isinstance(node, ast.Assign)
                                                           else [node.target]))]
    assert late == []


def test_what_is_cited_is_here() -> None:
    """Pages that sources and tests name are in the repository, and the labels of docs/linux.md are there."""
    wrong, labels = [], set(re.findall(r"^- \*\*([A-Z]\d+)", (DOCS / "linux.md").read_text(),
                                       re.MULTILINE)) | set("ABCDE")
    for path in [*ROOT.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]:
        text = path.read_text()
        for name in re.findall(r"(?<![\w/*.-])((?:docs/)?[\w/-]+\.md)\b", text):
            if name != "matrix.md" and not any((place / name).is_file() for place in (DOCS.parent, DOCS, path.parent)):
                wrong.append(f"{path}: {name}")
        for cited in re.findall(r"docs/linux\.md ([A-Z]\d*(?:(?:-|, | and )[A-Z]\d*)*)", text):
            wrong += [f"{path}: {label}" for label in re.findall(r"[A-Z]\d*", cited) if label not in labels]
    assert wrong == []


#: files that readers make, or that other projects have
ELSEWHERE = {"TARGET.py", "examples/x.py", "my_package/linux.py", "ImportSymbolsScript.py"}


def written(path: Path) -> str:
    """Return a page without its code, or a module's docstrings and comments."""
    text = path.read_text()
    if path.suffix == ".md":
        return re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    said = [ast.get_docstring(node) or "" for node in nodes(module_of(path))
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)]
    return "\n".join([*said, *re.findall(r"#:? .*", text)])


def test_modules_that_are_named_exist() -> None:
    """Files and private modules in pages, docstrings and comments."""
    top = DOCS.parent
    files = set[str]()  # each by every name that it may have: with some of its folders, or none
    for folder in ("kprobes", "tests", "docs", "benchmarks", "examples", "tools"):
        for path in (top / folder).rglob("*.py"):
            parts = path.relative_to(top).parts
            files.update("/".join(parts[n:]) for n in range(len(parts)))
    packages = "|".join(sorted({module.split(".")[0] for module in sources() if "." in module}))
    wrong = []
    for path in [*DOCS.rglob("*.md"), *top.glob("*.md"), *ROOT.rglob("*.py")]:
        text = written(path)
        for name in re.findall(r"(?<![\w/.$-])((?:[\w-]+/)*\w+\.py)\b", text):
            if name not in ELSEWHERE and name not in files:
                wrong.append(f"{path}: {name}")
        for name in re.findall(rf"(?<![\w./])((?:{packages})\._\w+)", text):
            if name not in sources():
                wrong.append(f"{path}: {name}")
    assert wrong == []


def test_core_knows_no_architecture_by_name() -> None:
    """Neither the name of an architecture, an engine or an instruction of one in a string or a variable, nor a
    comparison of arch.name with anything."""
    names = {*ARCHES, "unicorn", "x86", "thumb", "ppc", "sparc", "aarch64", "powerpc", "itanium", "superh", "bti",
             "blr"} - {"arm"}  # which is also what is done to a probe
    wrong = []
    for module in starting("core."):
        documents = {id(node.value) for node in nodes(module) if isinstance(node, ast.Expr)}
        for node in nodes(module):
            found: object = None
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                found = names & set(re.findall(r"\w+", node.value.lower()))
            elif isinstance(node, ast.Name | ast.Attribute):
                found = names & set((node.id if isinstance(node, ast.Name) else node.attr).lower().split("_"))
            elif isinstance(node, (ast.Compare, ast.Match)):
                subject = ast.unparse(node.left if isinstance(node, ast.Compare) else node.subject)
                found = "a branch on the architecture's name" if subject.endswith("arch.name") else None
            if found:
                wrong.append(f"{module}, line {node.lineno}: {found}")  # type: ignore[attr-defined]
    assert wrong == []


#: modules (prefixes) outside arch/ that name architectures, and what they number by them
NUMBERINGS = {
    "image.": "formats of files: what machine a header's number is, and its relocations",
    "machine.unicorn.guests": "Unicorn's rows", "machine.unicorn.registers": "where Unicorn keeps registers",
    "machine.unicorn.host": "names in Unicorn's library",
    "machine.unicorn.process": "Unicorn's numbers of segment registers",
    "machine.ia64": "the engine of this one architecture",
    "machine.remote.files": "names of ELF's tags", "debug.unwind_tables": "the name of a section",
    "native": "hosts", "programs.host": "hosts", "programs.hostclock": "hosts", "programs.native": "an option of LLVM's",
    "programs.object.registers": "whose structures foreign objects name, in a message",
}
FAMILY_NAMES = {*ARCHES, *FAMILIES, "thumb", "aarch64", "powerpc", "itanium", "superh", "hppa", "s390"} - {"sh"}


def test_nothing_outside_its_folder_names_an_architecture() -> None:
    """Nor branches on its name: a port touches one folder, and what engines and file formats number themselves."""
    wrong = []
    for module in sources():
        if not module.startswith("arch") and module not in ("events", "tracing"):
            wrong += [f"{module}, {found}" for found in branches_on_names(module)]
            if not any(module == prefix.rstrip(".") or module.startswith(f"{prefix.rstrip('.')}.")
                       for prefix in NUMBERINGS):
                wrong += [f"{module}, {found}" for found in named(module)]
    assert wrong == []


def named(module: str) -> list[str]:
    """Where a module names architectures in strings or variables."""
    found = []
    documents = {id(node.value) for node in nodes(module) if isinstance(node, ast.Expr)}
    for node in nodes(module):
        words: set[str] = set()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            words = {*re.findall(r"\w+", node.value.lower())}
        elif isinstance(node, ast.Name | ast.Attribute):
            words = {*(node.id if isinstance(node, ast.Name) else node.attr).lower().split("_")} - {"arm"}
        if words & FAMILY_NAMES:
            found.append(f"line {node.lineno}: {words & FAMILY_NAMES}")  # type: ignore[attr-defined]
    return found


def branches_on_names(module: str) -> list[str]:
    """Where a module asks how an architecture's name starts, or looks it up."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("startswith", "get"):
            asked = [node.func.value] if node.func.attr == "startswith" else node.args
            if any("arch.name" in ast.unparse(part) for part in asked):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def test_numberings_are_needed() -> None:
    for prefix in NUMBERINGS:
        found = [m for m in sources() if m == prefix.rstrip(".") or m.startswith(f"{prefix.rstrip('.')}.")]
        text = " ".join(ast.unparse(sources()[m]).lower() for m in found)
        assert {*re.findall(r"[a-z0-9]+", text)} & FAMILY_NAMES, prefix


def test_examples_of_hypothesis_have_no_deadline() -> None:
    """A busy machine fails no test (patience.py)."""
    rule, given = "@PATIENT\n@given(", "\n@given("
    texts = {path.name: path.read_text() for path in Path(__file__).parent.rglob("test_*.py")}
    assert sum(text.count(rule) for text in texts.values()) > 4
    assert [name for name, text in texts.items() if text.count(rule) != text.count(given)] == []


def test_the_rules_can_fail() -> None:
    """A forbidden import, a foreign package and a circle are seen."""
    assert not allowed("core.probe", MAY_IMPORT["arch."])
    assert not allowed("machine.unicorn", MAY_IMPORT["core."])
    assert not allowed("arch.arm64", MAY_IMPORT["core."])
    assert not allowed("arch.arm64", MAY_IMPORT["machine."])
    assert not allowed("image", MAY_IMPORT["core."])
    assert allowed("arch._base", MAY_IMPORT["core."])
    assert allowed("arch.x86.rows", MAY_IMPORT["arch.x86"])
    assert not allowed("arch.x86.rows", MAY_IMPORT["arch.arm"])
    assert "machine._base" in {target for target, _ in imports("core.hit.trap")}
    assert "/unicorn" in {target for target, _ in imports("machine.unicorn.machine")}
    assert "machine._base" in {target for target, _ in imports("core.probe")}, "that one is under TYPE_CHECKING"
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
