"""From what the user wrote to an address."""

from __future__ import annotations

import pytest
from scenes import Scene, paper_machine, unicorn_machine

from kprobes import Kprobes, Kretprobe
from kprobes.core.patch.text import Text
from kprobes.core.register.locate import locate, split_offset
from kprobes.errors import AmbiguousSymbol, BadLocation, NotFunctionEntry, UnknownSymbol
from kprobes.machine.paper import PaperMachine


def test_a_symbol(scene: Scene) -> None:
    place = locate(scene.m, scene.k._text, "twice", None, 0)
    assert ((place.address, place.symbol, place.offset, place.entry)
            == (scene.at("twice"), scene.m.symbols["twice"], 0, True))


def test_an_address_finds_its_symbol(scene: Scene) -> None:
    for n in range(3):
        place = locate(scene.m, scene.k._text, None, scene.at("twice", n), 0)
        assert place.symbol == scene.m.symbols["twice"]
        assert (place.offset, place.entry) == (scene.at("twice", n) - scene.at("twice"), n == 0)


@pytest.mark.parametrize(("written", "offset"), [("twice+3", 3), ("twice+0x3", 3), ("twice+0X3", 3), ("twice+16", 16),
                                                 ("twice+0", 0)])
def test_offsets_in_the_name(written: str, offset: int) -> None:
    assert split_offset(written, paper_machine()) == ("twice", offset)


@pytest.mark.parametrize("written", ["twice+", "twice+x", "twice+-3", "+3", "twice-3", "twice + 3"])
def test_what_is_no_offset_is_part_of_the_name(paper: Scene, written: str) -> None:
    with pytest.raises(UnknownSymbol):
        locate(paper.m, paper.k._text, written, None, 0)


def test_a_symbol_with_a_plus_in_its_name(paper: Scene) -> None:
    """C++ has operator+; a name that is in the table as it stands is never split."""
    paper.m.symbols.add("operator+3", paper.at("deep"), 15)
    assert locate(paper.m, paper.k._text, "operator+3", None, 0).address == paper.at("deep")
    assert locate(paper.m, paper.k._text, "operator+3+3", None, 0).address == paper.at("deep", 1)


def test_beyond_the_function(paper: Scene) -> None:
    size = paper.m.symbols["inc"].size
    with pytest.raises(BadLocation, match="beyond") as raised:
        locate(paper.m, paper.k._text, "inc", None, size)
    assert (raised.value.symbol, raised.value.address) == ("inc", paper.at("inc") + size)


def test_an_alias_of_a_shorter_size(paper: Scene) -> None:
    """Two names for one function: an offset is good if it is within either."""
    paper.m.symbols.add("_twice", paper.at("twice"), 0)
    assert locate(paper.m, paper.k._text, "_twice", None, 3).address == paper.at("twice", 1)


def test_no_symbols_at_all() -> None:
    m = PaperMachine(b"\x02\x05")
    place = locate(m, Text(m), None, 0x1001, 0)
    assert (place.address, place.symbol, place.entry) == (0x1001, None, True)


def test_neither_and_both(paper: Scene) -> None:
    for name, addr in ((None, None), ("inc", 0x1000)):
        with pytest.raises(BadLocation):
            locate(paper.m, paper.k._text, name, addr, 0)


def test_unmapped_addresses_are_located(scene: Scene) -> None:
    """It is not for locate() to say that nothing is there."""
    assert locate(scene.m, scene.k._text, None, scene.unmapped, 0).address == scene.unmapped


def test_the_main_images_own_module_name(paper: Scene) -> None:
    paper.m.symbols.main = "prog"
    assert locate(paper.m, paper.k._text, "prog:inc", None, 0).address == paper.at("inc")


def test_a_module_does_not_answer_for_another(paper: Scene) -> None:
    paper.m.symbols.add("inc", paper.at("twice"), 17, module="other")
    with pytest.raises(AmbiguousSymbol):
        locate(paper.m, paper.k._text, "inc", None, 0)
    assert locate(paper.m, paper.k._text, "other:inc+3", None, 0).address == paper.at("twice", 1)


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_behind_the_landing_pad_is_function_entry_too(arch: str) -> None:
    """ENDBR64 or BTI C, then an addition and the return."""
    code = {"x86_64": b"\xf3\x0f\x1e\xfa\x8d\x47\x01\xc3", "arm64": bytes.fromhex("5f2403d5 00040091 c0035fd6")}[arch]
    m = unicorn_machine(arch, f="nop; nop; nop; nop; nop; nop; nop; nop")
    m.write(0x10000, code)
    m.symbols.remove_module("")
    m.symbols.add("f", 0x10000, len(code))
    with Kprobes(m) as k:
        for offset in (0, 4):
            r = Kretprobe(symbol_name="f", offset=offset, handler=lambda ri, regs: None)
            k.register_kretprobe(r)
            assert m.call("f", 4) == 5
            assert r.nreturned == 1
            k.unregister_kretprobe(r)
        end = 0x10007 if arch == "x86_64" else 0x10008
        with pytest.raises(NotFunctionEntry):
            k.register_kretprobe(Kretprobe(addr=end))
