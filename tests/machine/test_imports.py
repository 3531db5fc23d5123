"""Imports: `f@plt` on every architecture, probes there, and what is said of one that nobody has."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, UnicornMachine

pytestmark = pytest.mark.quick


def libraries() -> dict[str, bytes]:
    """Every a.so of tests/data/build_images.py: tail(x) returns ext(x + 1), which b.so has."""
    with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "images.tar.xz") as archive:
        found = {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.name.endswith("/a.so")}  # type: ignore[union-attr]
    return {name: data for name, data in found.items() if name != "armeb/a.so"}  # BE32: no architecture runs it


LIBRARIES = libraries()


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
def test_an_import_that_nobody_has(name: str) -> None:
    with UnicornMachine.load(LIBRARIES[name]) as m, Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="ext@plt"))
        with pytest.raises(GuestFault,
                           match=r"unresolved import ext .*m\.bind\('ext', function\).*m\.load_module\(\)") as raised:
            m.call("tail", 1)
        assert raised.value.symbol == "ext" and p.nhit == 1


@pytest.mark.parametrize(("arch", "second"), [("riscv64", "2e85 8280"), ("arm64", "e00301aa c0035fd6"), ("x86_64", "4889f0 c3"),
                                              ("arm", "0100a0e1 1eff2fe1"), ("ppc64le", "7823837c 2000804e")])
def test_a_resolver_is_told_of_no_capabilities(arch: str, second: str) -> None:
    """Not what the registers hold: RISC-V's second argument is a function that would be called. This one returns it."""
    with UnicornMachine.from_code(bytes.fromhex(second), arch=arch, symbols={"second": (0x10000, 8)}) as m:
        assert m.call("second", 1, 2) == 2
        m.regs.set_arg(1, 0x1234)
        assert m.parts.stubs.choose(m.symbols["second"].address) == 0
