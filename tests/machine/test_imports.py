"""Imports: `f@plt` on every architecture, probes there, and what is said of one that nobody has."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from kprobes import GuestFault, ImageError, Kprobe, Kprobes, Kretprobe, NoMemory, UnicornMachine
from kprobes.machine.unicorn import loader
from kprobes.machine.unicorn.stubs import OFTEN

pytestmark = pytest.mark.quick


def libraries(name: str) -> dict[str, bytes]:
    """Every file of a name of tests/data/build_images.py."""
    with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "images.tar.xz") as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.name.endswith(f"/{name}")}  # type: ignore[union-attr]
    return {name: data for name, data in found.items() if not name.startswith("armeb/")}  # BE32: no architecture runs it


LIBRARIES = libraries("a.so")  # tail(x) returns ext(x + 1), which b.so has
OTHERS = libraries("b.so")


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", LIBRARIES)
def test_stubs_have_names_and_can_be_probed(name: str, optimize: bool) -> None:
    """The caller's own stub, or where its ABI has none the place that stands for the function."""
    with UnicornMachine.load(LIBRARIES[name]) as m, Kprobes(m) as k:
        plain = [m.call("tail", n) for n in (1, 2)] if m.bind("ext", lambda regs: regs.arg(0) + 100) is None else []
        k.register(p := Kprobe(symbol_name="ext@plt", pre_handler=lambda p, regs: seen.append(regs.arg(0)),
                               optimize=optimize))
        seen: list[int] = []
        assert [m.call("tail", n) for n in (1, 2)] == plain == [102, 103]
        assert (p.nhit, seen) == (2, [2, 3])


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_place_of_an_import_can_be_probed(name: str) -> None:
    """Where the guest's own slot leads to, too; and calls are followed to their return."""
    with UnicornMachine.load(LIBRARIES[name]) as m, Kprobes(m) as k:
        m.bind("ext", lambda regs: regs.arg(0) + 100)
        r = Kretprobe(symbol_name="ext@import" if "ext@import" in m.symbols else "ext@plt",
                      handler=lambda ri, regs: results.append(regs.return_value))
        k.register(r)
        results: list[int] = []
        assert [m.call("tail", n) for n in (1, 2)] == results == [102, 103]
        assert (r.nhit, r.nreturned) == (2, 2)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_module_that_cannot_be_loaded_leaves_no_stubs(name: str) -> None:
    """Its imports were given stubs before its memory could not be mapped."""
    with UnicornMachine.load(LIBRARIES[name]) as m:
        stubs = m.parts.stubs
        before = dict(stubs.imports), dict(stubs.ifuncs)
        taken = m.symbols["tail"].address & -m.page_size
        with pytest.raises(NoMemory):
            m.load_module(LIBRARIES[name], name="again", base=taken)
        assert (stubs.imports, stubs.ifuncs) == before


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_import_that_nobody_has(name: str) -> None:
    with UnicornMachine.load(LIBRARIES[name]) as m, Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="ext@plt"))
        with pytest.raises(GuestFault,
                           match=r"unresolved import ext .*m\.bind\('ext', function\).*m\.load_module\(\)") as raised:
            m.call("tail", 1)
        assert raised.value.symbol == "ext" and p.nhit == 1
        caller = k.stack_trace(m.regs)[1]  # where tail() jumps there, this is where tail() returns to
        assert caller == m.exit_address & ~m.arch.pointers.mode_bits or m.symbols.covering(caller - 1).name in ("tail", ".tail")


@pytest.mark.parametrize(("arch", "second"), [("riscv64", "2e85 8280"), ("arm64", "e00301aa c0035fd6"), ("x86_64", "4889f0 c3"),
                                              ("arm", "0100a0e1 1eff2fe1"), ("ppc64le", "7823837c 2000804e")])
def test_a_resolver_is_told_of_no_capabilities(arch: str, second: str) -> None:
    """Not what the registers hold: RISC-V's second argument is a function that would be called. This one returns it."""
    with UnicornMachine.from_code(bytes.fromhex(second), arch=arch, symbols={"second": (0x10000, 8)}) as m:
        assert m.call("second", 1, 2) == 2
        m.regs.set_arg(1, 0x1234)
        assert m.parts.stubs.choose(m.symbols["second"].address) == 0


# Where the called function's ABI wants a register set, a call by the stub cannot be a jump.
JUMPS = [name for name in LIBRARIES if name.replace("a.so", "b.so") in OTHERS]


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("name", JUMPS)
def test_a_stub_that_is_called_often_jumps(name: str, probed: bool) -> None:
    """Results are the same; a function that is bound later is called; an unloaded module's is not."""
    with UnicornMachine.load(LIBRARIES[name]) as m, Kprobes(m) as k:
        stubs = m.parts.stubs
        module = m.load_module(OTHERS[name.replace("a.so", "b.so")], name="b.so")
        seen: list[int] = []
        if probed:
            k.register(Kprobe(symbol_name="ext@import" if "ext@import" in m.symbols else "ext@plt",
                              pre_handler=lambda p, regs: seen.append(regs.arg(0))))
        result = m.call("tail", 1)
        count = 3 * OFTEN
        assert {m.call("tail", 1) for _ in range(count)} == {result}
        assert len(seen) == (count + 1 if probed else 0)
        jumped = bool(stubs._jumps)
        assert jumped is (stubs._served == {} or set(stubs._served.values()) == {0})
        arch = m.arch
        assert jumped or (arch.abi is not None and arch.abi.enter is not None) or arch.pointers.code_address(
            m.symbols["ext"].address, m.read).addr != m.symbols["ext"].address
        m.bind("ext", lambda regs: regs.arg(0) + 1000)
        assert m.call("tail", 1) == 1002
        del stubs.bound["ext"]
        assert {m.call("tail", 1) for _ in range(count)} == {result}
        m.unload_module(module)
        with pytest.raises(GuestFault, match="unresolved import ext"):
            m.call("tail", 1)


@pytest.mark.parametrize("name", JUMPS)
def test_a_snapshot_has_the_jumps(name: str) -> None:
    """Runs from it do not come to Python for calls of imports."""
    with UnicornMachine.load(LIBRARIES[name]) as m:
        m.load_module(OTHERS[name.replace("a.so", "b.so")], name="b.so")
        before = m.call("tail", 1)
        start = m.snapshot()
        stubs = m.parts.stubs
        jumps = stubs._jumps.copy()
        for _ in range(2 * OFTEN if jumps else 1):
            m.restore(start)
            assert m.call("tail", 1) == before
        assert stubs._jumps == jumps
        if jumps:
            assert sum(stubs._served.values()) == 1  # the first call's


@pytest.mark.parametrize("name", JUMPS)
def test_what_is_bound_after_a_snapshot_stays_bound(name: str) -> None:
    with UnicornMachine.load(LIBRARIES[name]) as m:
        m.load_module(OTHERS[name.replace("a.so", "b.so")], name="b.so")
        m.call("tail", 1)
        start = m.snapshot()
        m.bind("ext", lambda regs: regs.arg(0) + 1000)
        for _ in range(2):
            m.restore(start)
            assert m.call("tail", 1) == 1002


def test_a_folder_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /lib/debug, which most systems have: the search goes on to the next place."""
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "lib-of-ours.so").mkdir(parents=True)
    second.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{first}:{second}")
    with pytest.raises(ImageError, match=r"^lib-of-ours\.so: No such file"):
        loader.read("lib-of-ours.so", None)
    (second / "lib-of-ours.so").write_bytes(LIBRARIES["x86_64/a.so"])
    assert loader.read("lib-of-ours.so", None).name == "lib-of-ours.so"
