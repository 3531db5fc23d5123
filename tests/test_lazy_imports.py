"""What a process loads, and when: names of the package, commands and architectures are imported when they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from arches import ARCHES, HERE
from attrs import evolve

import kprobes
from kprobes import arch as architectures
from kprobes.arch._assembly import AssemblyText
from kprobes.arch._compiling import Compiling
from kprobes.arch._detours import DetourCode
from kprobes.arch._dwarf import DwarfFacts
from kprobes.arch._linux import Linux
from kprobes.arch._rows import row
from kprobes.arch._stub import StubFacts

pytestmark = pytest.mark.quick
SOURCE = Path(kprobes.__file__)
FAMILIES = sorted(path.parent.name for path in (SOURCE.parent / "arch").glob("*/__init__.py"))
DEMO = str(HERE.parent / "examples" / "demo.x86_64")


def loaded_by(code: str) -> set[str]:
    """The modules of a new process that has run `code`."""
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True,
                          text=True, timeout=300, check=True)
    return {*done.stdout.splitlines()[-1].split()}


def ours(modules: set[str]) -> set[str]:
    """Of these modules the project's, without `kprobes.`."""
    return {name.removeprefix("kprobes.") for name in modules if name.startswith("kprobes.")}


def shown_to_type_checkers() -> dict[str, tuple[str, str]]:
    """Name -> (module, its name there), as the imports under TYPE_CHECKING say."""
    tree = ast.parse(SOURCE.read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {alias.asname or alias.name: (node.module or "", alias.name) for node in block.body
            if isinstance(node, ast.ImportFrom) for alias in node.names}


# --- the package


def test_type_checkers_see_what_there_is() -> None:
    """Each name is the object that type checkers take it for, and they see no other."""
    shown = shown_to_type_checkers()
    assert {*shown} == {*kprobes.__all__} == {*kprobes._HOMES}
    for name, (module, there) in shown.items():
        found = getattr(__import__(f"kprobes.{module}", fromlist=[there]), there)
        assert getattr(kprobes, name) is found, name
    tree = ast.parse(SOURCE.read_text())
    visible = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in visible, "type checkers would take every name for one of the package"


def test_names_of_the_package() -> None:
    star: dict[str, object] = {}
    exec("from kprobes import *", star)
    assert {*kprobes.__all__} <= {*star}
    assert {*kprobes.__all__, "__version__", "errors", "machine"} <= {*dir(kprobes)}
    with pytest.raises(AttributeError, match="module 'kprobes' has no attribute 'nothing'"):
        _ = kprobes.nothing  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from kprobes import nothing")


def test_the_version_is_the_installed_one() -> None:
    try:
        installed = distribution("kprobes")
    except PackageNotFoundError:
        pytest.skip("the package is not installed")
    # of a clone the metadata say what was there when it was installed
    if '"editable": true' not in (installed.read_text("direct_url.json") or ""):
        assert kprobes.__version__ == installed.version
    project = Path(__file__).parent.parent / "pyproject.toml"
    assert '[tool.hatch.version]\npath = "kprobes/__init__.py"' in project.read_text()


def test_importing_the_package_loads_nothing_else() -> None:
    assert ours(loaded_by("import kprobes")) == set()
    assert "errors" in ours(loaded_by("import kprobes; kprobes.errors.GuestFault"))


def test_a_machine_without_the_others() -> None:
    """Neither stubs of GDB's protocol, nor programs, nor commands are loaded for Unicorn."""
    loaded = loaded_by("from kprobes import Kprobe, Kprobes, UnicornMachine")
    # pyelftools imports pdb, which imports much of the library with Python 3.14
    ours_alone = loaded - loaded_by("import elftools.elf.elffile")
    assert not ours_alone & {"urllib.request", "ssl", "socket"}, "servers of debug information are asked by few"
    modules = ours(loaded)
    assert {"kprobes", "machine.unicorn.machine"} <= modules
    assert {name for name in modules if name.startswith(("machine.remote", "programs", "tracing", "cli", "testing"))
            } == set()


def test_commands_load_what_they_use() -> None:
    """The version and a misspelled command need no engine."""
    for words in (["--version"], ["trice"]):
        modules = loaded_by(f"from kprobes.cli import main\ntry:\n    main({words!r})\nexcept SystemExit:\n    pass")
        assert not modules & {"unicorn", "elftools", "attr", "importlib.metadata", "kprobes.machine"}, words
    run = ["trace", DEMO, "-e", "p crc32", "--call", 'crc32(0, "hello", 5)']
    modules = ours(loaded_by(f"from kprobes.cli import main\ntry:\n    main({run!r})\nexcept SystemExit:\n    pass"))
    assert "tracing.recorder" in modules
    assert {name for name in modules if name.startswith(("machine.remote", "campaign", "cli._campaign", "cli._count",
                                                         "programs", "discover"))} == set()


def test_a_script_without_a_guest() -> None:
    """Its start is a third shorter without debug information, the parser of ELF and a machine."""
    loaded = loaded_by("from kprobes.script.script import Script\n"
                       "with Script('begin { @a[1] = count(); printf(\"hi\"); }', environment={}) as s: pass\nassert 'hi' in s.output")
    assert not [name for name in ours(loaded) if name.startswith(("debug.", "image.", "machine.unicorn", "core."))]
    assert not [name for name in loaded if name.startswith(("elftools", "unicorn"))]


def test_the_collector_looks_at_old_objects_later() -> None:
    """What is made while it is paused is not walked over behind it; what somebody has frozen stays so."""
    code = """if 1:
        import gc
        from kprobes.collector import collector_paused
        looks = []
        gc.callbacks.append(lambda phase, told: looks.append(len(gc.get_objects(0))) if phase == "start" else None)
        made = []
        with collector_paused():
            made += [[] for _ in range(100_000)]
        more = [[] for _ in range(20_000)]  # a look comes every 700 or 2,000
        assert looks and max(looks) < 50_000, looks
        gc.collect()
        gc.get_freeze_count, ask = lambda: 1 / 0, gc.get_freeze_count  # it walks over all that are frozen
        for _ in range(3):
            with collector_paused():
                few = [[] for _ in range(100)]
        gc.get_freeze_count = ask
        gc.freeze()
        count = gc.get_freeze_count()
        with collector_paused():
            made += [[] for _ in range(100_000)]
        assert gc.get_freeze_count() >= count"""
    loaded_by(code)


def test_a_command_is_not_walked_over() -> None:
    """The collector finds nothing among what a command imports; it does not look, not even when the process ends."""
    code = f"""if 1:
        import gc, os, sys
        from kprobes.cli import command
        looks = [0]
        def look(phase, told):
            looks[0] += phase == "start" and len(gc.get_objects()) > 50_000
        gc.callbacks.append(look)
        sys.argv = ["kprobes", "trace", {DEMO!r}, "-e", "p crc32", "--call", 'crc32(0, "hello", 5)']
        try:
            command()
        finally:
            assert looks[0] == 0, looks
            gc.collect()
            assert gc.get_freeze_count() > 50_000"""
    loaded_by(code)


def test_what_a_command_compiles_and_loads() -> None:
    """The work of a short command, counted: modules, and classes that attrs makes; no debug information is read where
    none is asked for."""
    run = ["trace", DEMO, "-e", "p crc32", "--call", 'crc32(0, "hello", 5)']
    code = f"""
written = []
def hear(event, args):
    if event == "compile" and str(args[1]).startswith("<attrs generated") and " kprobes." in str(args[1]):
        written.append(args[0] if isinstance(args[0], str) else args[0].decode())
sys.addaudithook(hear)
from kprobes.cli import main
try:
    main({run!r})
except SystemExit:
    pass
print(sum("def __init__(" in text for text in written), *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, timeout=300,
                          check=True)
    classes, *loaded = done.stdout.splitlines()[-1].split()
    modules = ours({*loaded})
    assert {name for name in modules if name.startswith(("debug.", "pictures", "heap", "script", "image._relocatable",
                                                         "image._names", "arch._comparing", "tracing.html"))} \
        <= {"debug.described", "debug.registers"}
    assert "machine.unicorn.hostpages" not in modules, "no snapshot is taken"
    assert 60 < int(classes) < 180, "load less"
    assert len(modules) < 290


# --- architectures


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_says_what_it_has(family: str) -> None:
    """NAMES and MACHINES are read before the tables are built."""
    package = __import__(f"kprobes.arch.{family}", fromlist=["NAMES"])
    found = __import__(f"kprobes.arch.{family}.isa", fromlist=["ARCHES"]).ARCHES
    assert tuple(arch.name for arch in found) == package.NAMES
    assert {*package.MACHINES} == {machine for arch in found for machine, _, _ in arch.files.machines}


def test_architectures_are_loaded_by_family() -> None:
    """One process for all: who is asked for brings the family along and no other."""
    code = "from kprobes import arch\nlast = set()\n"
    for name in ARCHES:
        code += f"arch.get({name!r})\nnow = {{m for m in sys.modules if m.endswith('.isa') and '.arch.' in m}}\n"
        code += f"print({name!r}, *(now - last))\nlast = now\n"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, timeout=300,
                          check=True)
    seen: set[str] = set()
    for line in done.stdout.splitlines():
        name, *modules = line.split()
        family = architectures._family_of()[name]
        assert modules == ([] if family in seen else [f"kprobes.arch.{family}.isa"]), name
        seen.add(family)
    assert seen == {*FAMILIES}


def test_a_machine_loads_its_architecture_alone() -> None:
    modules = ours(loaded_by(f"from kprobes import UnicornMachine\nUnicornMachine.load({DEMO!r})"))
    assert {name for name in modules if name.startswith("arch.") and name.endswith(".isa")} == {"arch.x86.isa"}
    assert "importlib.metadata" not in modules, "whom other distributions bring is not asked"


KINDS = (AssemblyText, Compiling, DetourCode, DwarfFacts, Linux, StubFacts)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_of_their_family(family: str) -> None:
    """Each row is of the class that its module is for, and of an architecture of the family."""
    package = __import__(f"kprobes.arch.{family}", fromlist=["NAMES"])
    for kind in KINDS:
        path = Path(package.__file__).parent / f"{kind.MODULE}.py"
        if path.exists():
            rows = __import__(f"{package.__name__}.{kind.MODULE}", fromlist=["ROWS"]).ROWS
            assert {*rows} <= {*package.NAMES}
            assert all(row(architectures.get(name), kind) is found for name, found in rows.items())
    assert {*getattr(package, "DESCRIBED", {}).values()} <= {*package.NAMES}


def test_rows_are_loaded_when_they_are_asked_for() -> None:
    code = "from kprobes import arch\nfrom kprobes.arch._rows import row\nfrom kprobes.arch._linux import Linux\n"
    load = f"[arch.get(name) for name in {ARCHES!r}]\n"
    names = {f"arch.{family}.{kind.MODULE}" for family in FAMILIES for kind in KINDS}
    assert not ours(loaded_by(code + load)) & names
    assert ours(loaded_by(f"{code}row(arch.get('arm64'), Linux)")) & names == {"arch.arm64.linux"}


def test_rows_of_other_distributions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is no part of this project has rows as well; one of another class is refused."""
    package = tmp_path / "vendor_isa"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "linux.py").write_text("from kprobes.arch._linux import Linux\n"
                                      "ROWS = {'vendor': Linux(exits=(1, 2)), 'broken': 3}\n")
    monkeypatch.syspath_prepend(tmp_path)
    known = evolve(architectures.get("riscv64"), name="vendor", package="vendor_isa")
    found = row(known, Linux)
    assert found is not None and found.exits == (1, 2)
    assert row(known, StubFacts) is None
    assert row(evolve(known, name="other"), Linux) is None
    assert row(evolve(known, package=""), Linux) is None
    with pytest.raises(kprobes.Unsupported, match=r"vendor_isa.linux has no Linux for broken"):
        row(evolve(known, name="broken"), Linux)


def test_names_are_complete() -> None:
    assert {*ARCHES} <= {*kprobes.arch_names()}
    with pytest.raises(kprobes.Unsupported, match=r"no architecture 'pdp11'; there are: .*arm64.*x86_64"):
        kprobes.get_arch("pdp11")
    with pytest.raises(kprobes.Unsupported, match="no architecture for ELF machine 1"):
        architectures.of_elf(1, 32, "little")
    with pytest.raises(kprobes.Unsupported, match=r"x86_64 does not run.*these do: arm cortexm"):
        architectures.of_elf(40, 32, "little", name="x86_64")
