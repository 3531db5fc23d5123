"""Text that goes away: probes are [GONE], and what may be done with them. docs/linux.md B5."""

from __future__ import annotations

import errno
import functools
import pathlib
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from scenes import hook, paper, unicorn_machine

from kprobes import Gone, Jprobe, Kprobe, Kprobes, Kretprobe, NotText, UnicornMachine, UnknownSymbol
from kprobes.machine.paper import PaperMachine
from kprobes.testing import Recorder

DATA = pathlib.Path(__file__).parents[1] / "data" / "images.tar.xz"
ELF = {"x86_64": "x86_64", "arm64": "aarch64"}


@functools.cache
def image(name: str) -> bytes:
    with tarfile.open(DATA) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


class Guest:
    """A machine whose module `mod` has functions f and g (g is f's neighbour) that return their argument plus one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.r = Recorder()
        self.m: Any = (PaperMachine(paper("add r0 1; ret"), symbols={"inc": (0x1000, 4)}) if name == "paper"
                       else unicorn_machine(name))
        self.load()
        self.k = Kprobes(self.m)

    def load(self, code: str = "add r0 1; ret; add r0 1; ret") -> None:
        if self.name == "paper":
            self.m._map(0x2000, executable=True)
            self.m.write(0x2000, paper(code))
            self.m.symbols.add("f", 0x2000, 4, module="mod")
            self.m.symbols.add("g", 0x2004, 4, module="mod")
        else:
            assert self.m.load_module(image(f"{ELF[self.name]}/b.so"), name="mod", base=0x100000) == "mod"
            for name, real in (("f", "ext"), ("g", "there")):
                self.m.symbols.add(name, self.m.symbols[real].address, self.m.symbols[real].size, module="mod")

    def unload(self) -> None:
        if self.name == "paper":
            self.m.unload(0x2000)
            self.m.symbols.remove_module("mod")
        else:
            self.m.unload_module("mod")

    @property
    def result(self) -> int:
        """Of f(4)."""
        return 5 if self.name == "paper" else 9

    def flags(self) -> list[tuple[str, ...]]:
        return [record.flags for record in self.k.list()]


@pytest.fixture(params=["paper", "x86_64", "arm64"])
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    guest = Guest(request.param)
    yield guest
    guest.k.close()
    assert guest.m.sink is None


def test_a_module_is_probed_like_anything_else(guest: Guest) -> None:
    p = guest.r.both("f", symbol_name="mod:f")
    guest.k.register_kprobe(p)
    assert guest.m.call("f", 4) == guest.result
    assert guest.r.take() == ["pre f", "post f"]
    assert guest.k.list()[0].module == "mod"
    assert f"+0x0  mod {'[OPTIMIZED]' if p.optimized else ''}\n" in guest.k.format_list()


def test_unloading_turns_probes_gone(guest: Guest) -> None:
    """Every kind, enabled or not; they stay listed until they are unregistered."""
    k, r = guest.k, guest.r
    probes: list[Any] = [Kprobe(symbol_name="f"), Kprobe(symbol_name="f", disabled=True), Kretprobe(symbol_name="f"),
                         Jprobe(symbol_name="g", entry=lambda a: None),
                         Kprobe(symbol_name="inc", pre_handler=r.pre("inc"))]
    for p in probes:
        k.register(p)
    addresses = [p.address for p in probes]
    guest.unload()
    assert [p.gone for p in probes] == [True, True, True, True, False]
    assert [p.enabled for p in probes] == [False, False, False, False, True]
    assert all(p.registered for p in probes)
    assert [p.address for p in probes] == addresses
    lines = k.format_list().splitlines()
    assert sum(line.endswith(" [GONE]") for line in lines) == 4
    assert guest.m.call("inc", 4) == 5
    assert r.take() == ["pre inc"]
    for p in probes:
        k.unregister(p)
        assert not p.gone
    assert k.format_list() == ""


def test_what_may_be_done_with_a_gone_probe(guest: Guest) -> None:
    """docs/linux.md B2: disabling it is 0 and no change, enabling it is -EINVAL."""
    p = Kprobe(symbol_name="f")
    guest.k.register_kprobe(p)
    guest.unload()
    guest.k.disable_kprobe(p)
    assert guest.flags() == [("GONE",)]
    with pytest.raises(Gone) as raised:
        guest.k.enable_kprobe(p)
    assert (raised.value.errno, raised.value.symbol, raised.value.address) == (errno.EINVAL, "f", p.address)
    assert guest.flags() == [("GONE",)]
    guest.k.enabled = False
    guest.k.enabled = True
    guest.k.optimization = False
    guest.k.optimization = True
    guest.k.flush_optimizer()
    assert guest.flags() == [("GONE",)]
    guest.k.unregister_kprobe(p)
    with pytest.raises(UnknownSymbol):
        guest.k.register_kprobe(p)


def test_registering_while_it_is_unloaded(guest: Guest) -> None:
    address = guest.m.symbols["f"].address
    guest.unload()
    with pytest.raises(NotText):
        guest.k.register_kprobe(Kprobe(addr=address))


def test_registering_at_the_same_address_afterwards(guest: Guest) -> None:
    """The probepoint works again, for the new probe; the old one stays gone."""
    k, r = guest.k, guest.r
    old = Kprobe(symbol_name="f", pre_handler=r.pre("old"))
    k.register_kprobe(old)
    guest.m.call("f", 4)
    guest.unload()
    guest.load()
    assert guest.m.call("f", 4) == guest.result, "loaded text has no breakpoint of the old probe"
    assert r.take() == ["pre old"]
    new = r.both("new", symbol_name="f")
    k.register_kprobe(new)
    assert guest.m.call("f", 4) == guest.result
    assert r.take() == ["pre new", "post new"]
    assert (old.gone, new.gone, old.address == new.address) == (True, False, True)
    assert guest.flags() == [(), ("GONE",)]
    with pytest.raises(Gone):
        k.enable_kprobe(old)
    k.unregister_kprobe(old)
    assert guest.m.call("f", 4) == guest.result
    assert r.take() == ["pre new", "post new"]
    k.register_kprobe(old)
    guest.m.call("f", 4)
    assert r.take() == ["pre old", "pre new", "post new"]


def test_gone_twice(guest: Guest) -> None:
    k = guest.k
    probes = []
    for _ in range(3):
        p = Kprobe(symbol_name="f")
        k.register_kprobe(p)
        probes.append(p)
        assert guest.m.call("f", 4) == guest.result
        guest.unload()
        guest.load()
    assert guest.flags() == [("GONE",)] * 3
    k.unregister_kprobes(probes)
    p = Kprobe(symbol_name="f")
    k.register_kprobe(p)
    assert guest.m.call("f", 4) == guest.result
    assert p.nhit == 1


def test_other_code_at_the_same_address() -> None:
    """What is decoded, listed and executed is what is there now."""
    guest = Guest("paper")
    m, k = guest.m, guest.k
    old = Kprobe(symbol_name="f")
    k.register_kprobe(old)
    guest.unload()
    m._map(0x2000, executable=True)
    m.write(0x2000, paper("jmp +3; nop; add r0 2; ret"))
    m.symbols.add("h", 0x2000, 7, module="other")
    new = Kprobe(symbol_name="h", pre_handler=guest.r.pre("h"), post_handler=guest.r.post("h"))
    k.register_kprobe(new)
    assert m.call("h", 4) == 6
    assert guest.r.take() == ["pre h", "post h"]
    assert new.opcode == paper("jmp +3")
    assert new.symbol == "h+0x0"
    assert "0000000000002000  k  h+0x0  other \n" in k.format_list()
    m.write(0x2003, paper("add r0 3"))
    assert m.call("h", 4) == 7
    k.close()


def test_its_own_module_unloaded_from_a_handler(guest: Guest) -> None:
    """The guest is in that text: the displaced instruction is executed, then nothing is there any more."""
    from kprobes import GuestFault

    p = Kprobe(symbol_name="f", pre_handler=hook("unload", guest.r.lines, lambda p, regs: guest.unload()),
               optimize=False)
    guest.k.register_kprobe(p)
    with pytest.raises(GuestFault) as raised:
        guest.m.call("f", 4)
    assert raised.value.access == "fetch"
    assert guest.r.take() == ["unload"]
    assert p.gone
    assert guest.m.call("inc", 4) == 5
    assert guest.k.idle


def test_another_module_unloaded_from_a_handler(guest: Guest) -> None:
    p = Kprobe(symbol_name="f")
    guest.k.register_kprobe(p)
    guest.k.register_kprobe(Kprobe(symbol_name="inc",
                                   pre_handler=hook("unload", guest.r.lines, lambda p, regs: guest.unload())))
    assert guest.m.call("inc", 4) == 5
    assert p.gone


def test_unloading_what_is_being_followed(guest: Guest) -> None:
    """inc's return probe is pending while the module goes; its own return is not disturbed."""
    k, r = guest.k, guest.r
    k.register_kretprobe(Kretprobe(symbol_name="inc", handler=r.returns("inc"),
                                   entry_handler=hook("unload", r.lines, lambda ri, regs: guest.unload())))
    gone = Kretprobe(symbol_name="f", handler=r.returns("f"))
    k.register_kretprobe(gone)
    assert guest.m.call("inc", 4) == 5
    assert r.take() == ["unload", "return inc"]
    assert gone.gone


def test_a_blacklist_entry_survives_by_address(guest: Guest) -> None:
    """The user's entries are the user's: they are addresses, and stay until they are removed."""
    address = guest.m.symbols["f"].address
    guest.k.blacklist.add("f")
    guest.unload()
    assert address in guest.k.blacklist


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_modules_by_name(name: str) -> None:
    from kprobes import AlreadyRegistered, Unsupported

    m = unicorn_machine(name)
    assert m.load_module(image(f"{ELF[name]}/b.so"), name="b") == "b"
    with pytest.raises(AlreadyRegistered):
        m.load_module(image(f"{ELF[name]}/b.so"), name="b")
    assert m.call("b:ext", 4) == 9
    m.unload_module("b")
    assert "ext" not in m.symbols
    with pytest.raises(Unsupported, match="b"):
        m.unload_module("b")


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_imports_between_modules_and_probes_on_them(name: str) -> None:
    """a imports from b: calls that go through it are hit at b's own entry."""
    m = UnicornMachine.load(image(f"{ELF[name]}/b.so"))
    m.load_module(image(f"{ELF[name]}/a.so"), name="a")
    with Kprobes(m) as k:
        hits: list[int] = []
        k.register_kprobe(Kprobe(symbol_name="ext", pre_handler=lambda p, regs: hits.append(regs.arg(0) & 0xFFFFFFFF)))
        assert m.call("tail", 4) == 11
        assert hits == [5]
