"""What Linux's own tests of kprobe events find out, asked of guests of eight architectures."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest
from arches import programs_of
from ebpf.guests import Guest

from kprobes import EventBusy, EventError, Kprobes, NotRegistered

ARCHES = ["x86_64", "i386", "arm", "arm64", "mips", "ppc64", "riscv64", "s390x"]


class World:
    """A guest, its Kprobes, and memory to look at."""

    def __init__(self, arch: str) -> None:
        self.g = Guest(arch)
        self.m = self.g.machine
        self.k = Kprobes(self.m)
        self.name, self.data = self.g.name, self.m.alloc(256)

    def put(self, raw: bytes) -> None:
        self.m.write(self.data, raw)

    def hit(self, times: int = 1) -> None:
        for _ in range(times):
            assert self.g.call() == self.g.want

    def one(self, text: str) -> Any:
        """The arguments of the record of one hit."""
        with self.k.event(text) as e:
            self.hit()
            (record,) = e
            self.k.events.buffer.clear()
            return tuple(record.args.values()), e.definition.format(tuple(record.args.values()),
                                                                    record.caller).split(") ", 1)[-1]


@pytest.fixture(params=ARCHES)
def w(request: Any) -> Iterator[World]:
    world = World(request.param)
    with world.m, world.k:
        yield world


def test_words_of_the_stack_have_any_width(w: World) -> None:
    """As kprobe_args_type.tc writes them, on 32 bits, too: a wide number is the word."""
    for width in (64, 32, 16, 8):
        (s, u, x, field), _ = w.one(f"p:t {w.name} $stack0:s{width} $stack0:u{width} $stack0:x{width} $stack0:b4@4/{width}")
        assert s % (1 << width) == u == x and field == x >> 4 & 15
        assert x < 1 << min(width, w.m.arch.bits)


def test_types(w: World) -> None:
    """Each type and size, with the sign and the base that it is shown in."""
    order = w.m.arch.order.value
    for bits in (8, 16, 32, 64):
        w.put(((1 << bits) - 2).to_bytes(bits // 8, order))
        values, shown = w.one(f"p:t {w.name} u=@{w.data:#x}:u{bits} s=@{w.data:#x}:s{bits} x=@{w.data:#x}:x{bits}")
        assert values == ((1 << bits) - 2, -2, (1 << bits) - 2)
        assert shown == f"u={(1 << bits) - 2} s=-2 x={(1 << bits) - 2:#x}"
    w.put(b"wxyz")
    assert w.one(f"p:t {w.name} c=@{w.data:#x}:char a=@{w.data:#x}:u8[4] d=@{w.data:#x}:char[2]") == (
        ("w", (119, 120, 121, 122), ("w", "x")), "c='w' a={119,120,121,122} d={'w','x'}")
    w.put((0b1011_0100).to_bytes(4, order))
    assert w.one(f"p:t {w.name} b=@{w.data:#x}:b4@4/32")[0] == (0b1011,)


def test_strings_and_symbols(w: World) -> None:
    word = w.m.arch.bits // 8
    w.put(b"hello \xff there\0")
    w.m.write(w.data + 128, b"".join(at.to_bytes(word, w.m.arch.order.value) for at in (w.data, 8)))
    (text, user, many, bad, fixed), shown = w.one(
        f'p:s {w.name} a=@{w.data:#x}:string b=+u0(+0(@{w.data + 128:#x})):ustring c=@{w.data + 128:#x}:string[2] '
        'd=@8:string e=\\"fixed"')
    assert (text == many[0] == "hello \\xff there" and many[1] is None and bad is None and fixed == "fixed"
            and user is None)
    assert shown.endswith('d=(fault) e="fixed"')
    address = w.m.symbols[w.name].address
    assert (w.one(f"p:s {w.name} a=\\{address:#x}:symbol b=\\{address + 1:#x}:symstr")[0]
            == (f"{w.name}+0x0", f"{w.name}+0x1"))
    assert w.one(f"p:s {w.name} c=$comm")[0] == ("guest",)


def test_arguments_and_return_values(w: World) -> None:
    mask = (1 << w.m.arch.bits) - 1
    assert w.one(f"p:a {w.name} $arg1:u32 $stack")[0][0] == w.g.value & 0xFFFF_FFFF
    (value, first), shown = w.one(f"r:b {w.name} $retval was=$arg1:u32")
    assert value & mask == w.g.want & mask and first == w.g.value & 0xFFFF_FFFF and shown.startswith("arg1=0x")
    assert w.one(f"p:c {w.name}%return $retval:s32")[0] == ((w.g.want & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31),)


def test_add_enable_disable_remove(w: World) -> None:
    k = w.k
    k.events.write(f"p:testprobe {w.name}\nr:g/testback {w.name} $retval")
    w.hit()
    assert len(k.events) == 2 and not list(k.events.buffer)
    k.events["testprobe"].enabled = k.events["g/testback"].enabled = True
    w.hit(2)
    assert [r.event for r in k.events.buffer] == ["testprobe", "testback"] * 2
    k.events["testprobe"].enabled = False
    w.hit()
    assert [k.events["testprobe"].hits, k.events["g/testback"].hits] == [2, 3]
    assert k.events.profile().split() == ["testprobe", "2", "0", "testback", "3", "0"]
    k.events["g/testback"].enabled = False
    k.events.write("-:testprobe\n-:g/testback")
    with pytest.raises(NotRegistered):
        k.events.write("-:testprobe")
    assert k.events.text() == "" and k.list() == []


def test_names_and_probes_of_one_name(w: World) -> None:
    k = w.k
    k.events.write(f"p {w.name}\nr {w.name}\np:grp/ {w.name}\np:multi {w.name} a=\\1\np:multi {w.name} a=\\2")
    assert list(k.events) == [f"p_{w.name}_0", f"r_{w.name}_0", f"grp/p_{w.name}_0", "multi"]
    k.events["multi"].enabled = True
    w.hit()
    assert sorted(r.args["a"] for r in k.events["multi"]) == [1, 2]
    k.events.write(f"-:multi {w.name} a=\\1")
    assert [str(place.definition) for place in k.events["multi"].places] == [f"p:kprobes/multi {w.name} a=\\2"]
    for text in (f"r:multi {w.name} a=\\1", f"p:multi {w.name} b=\\1", f"p:multi {w.name} a=\\2"):
        with pytest.raises(EventError):
            k.events.write(text)


def test_busy_events(w: World) -> None:
    """Neither deleted nor cleared, alone or among others; one of several places may go."""
    k = w.k
    k.events.write(f"p:idle {w.name}\np:g/busy {w.name} a=\\1\np:g/busy {w.name} a=\\2\np:h/busy {w.name}")
    k.events["g/busy"].enabled = True
    for text in ("-:g/busy", "-:g/", "-:busy", "", "\n", f"-:g/busy {w.name}"):
        with pytest.raises(EventBusy, match=r"g/busy is enabled; disable it first") as caught:
            k.events.write(text)
        assert caught.value.errno == errno.EBUSY and [*k.events] == ["idle", "g/busy", "h/busy"], text
    w.hit()
    assert k.events["g/busy"].hits == 2
    k.events.write(f"-:g/busy {w.name} a=\\1")
    w.hit()
    assert [r.args["a"] for r in k.events["g/busy"]][-1] == 2 and len(k.events["g/busy"].places) == 1
    k.events["g/busy"].enabled = False
    k.events["idle"].trigger("hist:keys=common_pid")
    for text in ("-:idle", ""):
        with pytest.raises(EventBusy, match="idle has triggers"):
            k.events.write(text)
    k.events.write("-:busy")
    assert [*k.events] == ["idle"]
    k.events["idle"].trigger("!hist:keys=common_pid")
    k.events.write(f"p:g/target {w.name} a=\\1")
    k.events["idle"].trigger("enable_event:g:target")
    with pytest.raises(EventBusy, match="target is switched by triggers"):
        k.events.write("-:g/target")
    k.events["idle"].trigger("!enable_event:g:target")
    k.events.write("\n")
    assert not k.events and k.list() == []


def test_nothing_is_no_name(w: World) -> None:
    w.k.events.write(f"p:e {w.name}\n# a comment\n\n")
    with pytest.raises(EventError) as caught:
        w.k.events.write("-:")
    assert (caught.value.kind, caught.value.position) == ("NO_EVENT_NAME", 2) and [*w.k.events] == ["e"]
    w.k.events.write("# a comment")
    assert [*w.k.events] == ["e"]
    w.k.events.write("")
    assert not w.k.events


def test_filters_and_histograms(w: World) -> None:
    e = w.k.event(f"p:f {w.name} n=$arg1:u32", filter=f"n == {w.g.value}").trigger("hist:keys=n")
    w.hit(3)
    e.filter = f"n != {w.g.value}"
    w.hit(2)
    assert (len(list(e)) == 3 and e.hits == 5 and [(row["n"], row.hitcount) for row in e.hist]
            == [(w.g.value & 0xFFFF_FFFF, 5)])
    assert f"{{ n: {w.g.value & 0xFFFF_FFFF:10} }} hitcount:          5\n" in str(e.hist)


@pytest.mark.parametrize("most", [0, 1])
def test_instances(w: World, most: int) -> None:
    """r1 follows one call at a time: all of them, where none is inside another."""
    e = w.k.event(f"r{most or ''}:m {w.name}")
    w.hit(5)
    assert (e.hits, e.missed, len(list(e))) == (5, 0, 5)


@pytest.mark.parametrize(("tail", "kind"), [
    (" $retval", "RETVAL_ON_PROBE"), (" %none_reg", "BAD_REG_NAME"), (" $stack10000", "BAD_STACK_NUM"),
    (" +0(@0", "DEREF_OPEN_BRACE"), (" @11:unknown_type", "BAD_TYPE"), (" $stack0:string", "BAD_STRING"),
    (" a=@1 a=@2", "USED_ARG_NAME"), ("%hoge", "BAD_ADDR_SUFFIX"), (" =@11", "NO_ARG_NAME")])
def test_errors(w: World, tail: str, kind: str) -> None:
    with pytest.raises(EventError) as caught:
        w.k.event(f"p {w.name}{tail}")
    assert caught.value.kind == kind and w.k.list() == [] and not w.k.events


def test_places_in_files(w: World) -> None:
    """FILE:OFFSET, as Linux's user probes have it: the offset of a function's code in the file that it was loaded
    from."""
    symbol = w.m.symbols[w.name]
    code, data = w.m.read(symbol.address, symbol.size), programs_of(w.g.arch)[0].read_bytes()
    offset = data.index(code)
    for name in (w.m.symbols.main, f"/some/where/{w.m.symbols.main}"):
        e = w.k.event(f"p:u {name}:{offset:#x} n=$arg1:u32")
        assert e.definition.address == symbol.address
        w.hit()
        assert [r.args["n"] for r in e] == [w.g.value & 0xFFFF_FFFF]
        w.k.events.buffer.clear()
        e.remove()
    for text in (f"p {w.m.symbols.main}:{len(data) + 4096:#x}", f"p nofile:{offset}"):
        with pytest.raises(EventError) as caught:
            w.k.event(text)
        assert (caught.value.kind, caught.value.position) == ("BAD_PROBE_ADDR", 2)
