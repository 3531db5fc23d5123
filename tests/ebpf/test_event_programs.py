"""Events as programs: their records say what Event.fetch() says, on every architecture."""

from __future__ import annotations

import re

import pytest
from arches import ARCHES, RUNNABLE
from guests import Guest

from kprobes import Kprobe, Kprobes, Kretprobe, ProgramError
from kprobes import arch as architectures
from kprobes.events import parse_event, program_of, why_python
from kprobes.events._layout import STRING
from kprobes.machine.paper import PaperMachine
from kprobes.programs.context import UNIFORM
from kprobes.programs.header import REGISTERS_H

#: arguments of events; {data} is the address of DATA, {pointers} of two pointers into it, {bad} is not mapped
ENTRY = [
    "$arg1", "$arg1:u8", "$arg1:s16", "$arg12:x32", "$stack", "$stack0:x8", "$stack3", "%{pc}", "%{sp}:u16", "\\-3",
    "\\-3:s8",
    '\\"literal"', "@{data}", "@{data}:s8", "@{data}+1:s16", "@{data}:x64", "@{data}:b3@4/32", "@{data}:u8[20]",
    "@{data}:s16[3]",
    "@{data}+8:string", "@{pointers}:string[2]", "+0(@{pointers}):x8[4]", "+4(\\{data}):u32", "-4(\\{data}):u32",
    "+8(+0(@{pointers})):x8",
    "@{bad}", "@{bad}:string", "@{bad}:u8[3]", "+0(+0(@{bad})):u8", "@{edge}:u8[8]", "@{edge}:string", "%{pc}:symbol",
    "@{data}:char", "@{data}+8:char[4]",
]
RETURN = ["$retval", "$retval:s8", "$stack1", "@{data}:u32", "%{pc}:symbol", "$arg1", "$arg12:x32", "$arg2:s16", "+0($arg1):u8",
          "+0($arg3):string"]
DATA = bytes.fromhex("89abcdef01234567") + b"some text\0 and more of it\0"


def furnished(g):
    """Addresses in guest memory that events look at."""
    m = g.machine
    order, word = m.arch.order.value, m.arch.bits // 8
    data = m.alloc(4096)
    m.write(data, DATA)
    pointers = data + 256
    m.write(pointers, b"".join(at.to_bytes(word, order) for at in (data + 8, 8)))
    edge = next(at for at in range(data, data + (1 << 28), 4096) if not mapped(m, at + 4096)) + 4096 - 4
    m.write(edge, b"\xff\xfe\xfd\xfc")
    return {"data": hex(data), "pointers": hex(pointers), "bad": "0x8", "edge": hex(edge), "pc": m.arch.regs.pc,
            "sp": m.arch.regs.sp}


def mapped(m, at):
    try:
        m.read(at, 1)
    except Exception:
        return False
    return True


def definition(kind, place, fetches, names):
    text = [f"a{n}={fetch.format(**names)}" for n, fetch in enumerate(fetches)]
    return f"{kind}:e {place} {' '.join(text)}"


@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize(("kind", "engine"), [("p", None), ("p", "interpreter"), ("r", None)])
def test_programs_fetch_what_handlers_fetch(arch, kind, engine):
    g = Guest(arch)
    m = g.machine
    with m, Kprobes(m) as k:
        event = parse_event(definition(kind, g.name, ENTRY if kind == "p" else RETURN, furnished(g)), m)
        made = program_of(event, m)
        wanted = []
        if kind == "p":
            k.register(Kprobe(addr=event.target, pre_handler=lambda p, regs: wanted.append((event.fetch(regs), 0))))
        else:
            def entered(ri, regs):
                ri.data["saved"] = event.enter(regs)

            def returned(ri, regs):
                wanted.append((event.fetch(regs, ri.data["saved"]), regs.pc))

            k.register(Kretprobe(symbol_name=g.name, handler=returned, entry_handler=entered))
        where = event.target if kind == "p" else g.name
        with k.attach(made.program, where, retprobe=kind == "r", engine=engine) as a:
            assert [g.call(), g.call()] == [g.want] * 2
            got = [made.decode(record) for record in made.ring]
        assert got == wanted and len(got) == a.runs == 2
        if kind == "p":
            names = [f"{arg.text}" for arg in event.args]
            shown = dict(zip(ENTRY, got[0][0], strict=True))
            assert shown["@{data}+8:string"] == "some text" and shown["@{bad}"] is None and shown["@{bad}:u8[3]"] == (None, None, None), names


@pytest.fixture
def guest():
    g = Guest("x86_64")
    with g.machine, Kprobes(g.machine) as k:
        yield g, k


def test_what_needs_python_says_why(guest):
    g, _ = guest
    m = g.machine
    assert why_python(parse_event(f"p {g.name} $arg1", m)) == ""
    assert why_python(parse_event(f"r {g.name} was=+0($arg1):u8", m)) == ""
    event = parse_event(f"r {g.name} was=+0($arg1):u8 who=$comm", m)
    assert why_python(event) == "Python knows the task's name"
    with pytest.raises(ProgramError, match="knows the task's name; its hits are fetched by Event"):
        program_of(event, m)
    many = " ".join(f"+0(@0x1000):string[{64}]" for _ in range(3))
    assert "more than 65536 bytes" in why_python(parse_event(f"p {g.name} {many}", m))


def test_long_strings_are_cut(guest):
    g, k = guest
    m = g.machine
    data = m.alloc(2048)
    m.write(data, b"x" * 2000 + b"\0")
    event = parse_event(f"p {g.name} s=@{data:#x}:string", m)
    made = program_of(event, m)
    with k.attach(made.program, event.target):
        g.call()
    assert [made.decode(r)[0] for r in made.ring] == [("x" * (STRING - 1),)]


def test_hits_without_room_are_counted(guest):
    g, k = guest
    event = parse_event(f"p {g.name} s=@0x10:string[64]", g.machine)
    made = program_of(event, g.machine)
    with k.attach(made.program, event.target) as a:
        for _ in range(40):
            assert g.call() == g.want
    kept = len(list(made.ring))
    assert kept + made.ring.lost == a.runs == 40 and made.ring.lost


@pytest.mark.quick
@pytest.mark.parametrize("arch", ARCHES)
def test_registers_behind_the_context_are_pythons(arch: str) -> None:
    """A program sees 104 registers; the others of PA-RISC and Itanium are no other words of its context."""
    value = architectures.get(arch)
    machine = PaperMachine(bytes(64), arch=value, execute=lambda regs, insn: None, symbols={"f": (0x1000, 64)})
    names = [name for name in value.regs.names if value.regs.widths.get(name, value.bits) <= 64]
    seen = [name for name in names if value.regs.names.index(name) < UNIFORM]
    program_of(parse_event(f"p:x f a=%{seen[-1]}", machine), machine)
    for name in sorted({*names} - {*seen}):
        with pytest.raises(ProgramError, match="behind the 104 registers"):
            program_of(parse_event(f"p:x f a=%{name}", machine), machine)


@pytest.mark.quick
def test_the_header_names_what_programs_see() -> None:
    numbers = re.findall(r"KPROBES_REG_\w+ = (\d+)", REGISTERS_H.read_text())
    assert max(map(int, numbers)) < UNIFORM
