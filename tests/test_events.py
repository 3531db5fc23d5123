"""The kprobe-event language: errors with Linux's names and columns, fetch plans, formats, round trips."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENT

from kprobes.arch._base import Abi, Arch, Entry, Insn, Order, Pointers, Registers, Traps
from kprobes.errors import EventError, GuestFault, NotAnInstruction, NotFunctionEntry, Unprobeable
from kprobes.events import Event, parse_event, parse_events
from kprobes.regs import Regs
from kprobes.symbols import Symbols

STACK, TEXT, HEAP = 0x7000, 0x1000, 0x5000
NAMES = ("ax", "di", "si", "dx", "sp", "ip")


def toy_arch(bits: int = 64, order: Order = Order.LITTLE) -> Arch:
    """An architecture with six registers, two argument registers and a landing pad of 4 bytes at function entries."""
    return Arch(
        name="toy", bits=bits, order=order, insn_align=1, max_insn=4,
        regs=Registers(names=NAMES, pc="ip", sp="sp", aliases={"rdi": "di"}),
        traps=Traps(probe={1: b"\xcc"}, end={0: b"\xcc"}),
        decode=lambda code, addr: Insn(addr=addr, raw=code[:1], name="nop"),
        abi=Abi(args=("di", "si"), returns=("ax",), stack_args=bits // 8),
        pointers=Pointers(code_address=lambda addr, read: Entry(addr=addr, entries=(0, 4))))


class ToyMachine:
    """Three pages of memory, and registers in a dict."""

    def __init__(self, arch: Arch | None = None) -> None:
        self.arch = arch or toy_arch()
        self.symbols = Symbols()
        self.symbols.add("vfs_read", TEXT, 0x80)
        self.symbols.add("main", TEXT + 0x100, 0x40)
        self.symbols.add("counter", HEAP + 0x10, 8, kind="object")
        self.symbols.add("twice", TEXT + 0x200, 8)
        self.symbols.add("twice", TEXT + 0x210, 8, module="libtoy")
        self.symbols.add("only.isra.0", TEXT + 0x300, 8, module="libtoy")
        self.pages = {base: bytearray(0x1000) for base in (TEXT, HEAP, STACK)}
        self.registers = dict.fromkeys(NAMES, 0) | {"sp": STACK + 0x100, "ip": TEXT}
        readers = {name: (lambda name=name: self.registers[name]) for name in NAMES}
        writers = {name: (lambda value, name=name: self.registers.__setitem__(name, value)) for name in NAMES}
        self.regs = Regs(self, readers, writers)

    def read(self, addr: int, size: int) -> bytes:
        page = self.pages.get(addr & ~0xFFF)
        if page is None or (addr & 0xFFF) + size > 0x1000:
            raise GuestFault("unmapped", address=addr, access="read")
        return bytes(page[addr & 0xFFF : (addr & 0xFFF) + size])

    def write(self, addr: int, data: bytes) -> None:
        self.pages[addr & ~0xFFF][addr & 0xFFF : (addr & 0xFFF) + len(data)] = data

    def word(self, addr: int, value: int) -> None:
        self.regs.set_word(addr, value)


@pytest.fixture
def machine() -> Any:
    return ToyMachine()


# --- errors

NEST = "+0(" * 14 + "@0" + ")" * 14
LONG_EXPRESSION = "+0(" * 6 + "@" + "1" * 40 + ")" * 6  # 65 characters
SYNTAX_ERRORS = [
    ("p100 vfs_read", "BAD_MAXACT_TYPE", 1),
    ("r1a111 vfs_read", "BAD_MAXACT", 1),
    ("r0 vfs_read", "BAD_MAXACT", 1),
    ("r100000 vfs_read", "MAXACT_TOO_BIG", 1),
    ("p non_exist_func", "BAD_PROBE_ADDR", 2),
    ("p hoge-fuga", "BAD_PROBE_ADDR", 2),
    ("p hoge+1000-1000", "BAD_PROBE_ADDR", 2),
    ("r vfs_read+10", "BAD_RETPROBE", 2),
    ("p:/bar vfs_read", "NO_GROUP_NAME", 2),
    (f"p:{'1' * 65}/bar vfs_read", "GROUP_TOO_LONG", 2),
    ("p:foo.1/bar vfs_read", "BAD_GROUP_NAME", 2),
    ("p: vfs_read", "NO_EVENT_NAME", 2),
    (f"p:foo/{'1' * 65} vfs_read", "EVENT_TOO_LONG", 6),
    ("p:foo/bar.1 vfs_read", "BAD_EVENT_NAME", 6),
    ("p vfs_read $retval", "RETVAL_ON_PROBE", 11),
    ("p vfs_read $stack10000", "BAD_STACK_NUM", 11),
    ("p vfs_read $arg10000", "BAD_ARG_NUM", 11),
    ("p vfs_read $arg0", "BAD_ARG_NUM", 11),
    ("p vfs_read $none_var", "BAD_VAR", 11),
    ("p vfs_read $comms", "BAD_VAR", 11),
    ("p vfs_read $comm:u8", "NEED_STRING_TYPE", 17),
    ("p vfs_read $value", "BAD_VAR", 11),
    ("w counter", "BAD_ACCESS_FMT", 2),
    ("w x@counter", "BAD_ACCESS_TYPE", 2),
    ("w rw@", "BAD_ACCESS_FMT", 5),
    ("w w@counter:0", "BAD_ACCESS_LEN", 12),
    ("w w@counter:65537", "BAD_ACCESS_LEN", 12),
    ("w w@no_such", "BAD_MEM_ADDR", 4),
    ("w w@counter $arg1", "NOFENTRY_ARGS", 12),
    ("w w@counter $retval", "RETVAL_ON_PROBE", 12),
    ("p vfs_read %none_reg", "BAD_REG_NAME", 11),
    ("p vfs_read @12345678abcde", "BAD_MEM_ADDR", 11),
    ("p vfs_read @no_such_symbol", "BAD_MEM_ADDR", 11),
    ("p vfs_read @+10", "FILE_ON_KPROBE", 11),
    ("p vfs_read arg1=\\x", "BAD_IMM", 17),
    ('p vfs_read arg1=\\"abcd', "IMMSTR_NO_CLOSE", 22),
    ("p vfs_read +0@0)", "DEREF_NEED_BRACE", 11),
    ("p vfs_read +0ab1(@0)", "BAD_DEREF_OFFS", 11),
    ("p vfs_read +0(+0(@0)", "DEREF_OPEN_BRACE", 19),
    ("p vfs_read +0(+0(@0", "DEREF_OPEN_BRACE", 19),
    ("p vfs_read +0(@0)x", "BAD_FETCH_ARG", 17),
    ("p vfs_read +0($comm)", "COMM_CANT_DEREF", 14),
    ("p vfs_read &1", "BAD_FETCH_ARG", 11),
    (f"p vfs_read {NEST}", "TOO_MANY_OPS", 14),
    ("p vfs_read +0(@11):u8[10", "ARRAY_NO_CLOSE", 24),
    ("p vfs_read +0(@11):u8[10]a", "BAD_ARRAY_SUFFIX", 25),
    ("p vfs_read +0(@11):u8[10a]", "BAD_ARRAY_NUM", 22),
    ("p vfs_read +0(@11):u8[0]", "BAD_ARRAY_NUM", 22),
    ("p vfs_read +0(@11):u8[256]", "ARRAY_TOO_BIG", 22),
    ("p vfs_read @11:unknown_type", "BAD_TYPE", 15),
    ("p vfs_read %di:%pd", "BAD_TYPE", 15),
    ("p vfs_read $stack0:string", "BAD_STRING", 19),
    ("p vfs_read %di:u8[4]", "BAD_STRING", 15),
    ('p vfs_read \\"abc":u8', "NEED_STRING_TYPE", 18),
    ("p vfs_read @11:b10@a/16", "BAD_BITFIELD", 15),
    ("p vfs_read @11:b10@8/16", "BAD_BITFIELD", 15),
    (f"p vfs_read arg{'1' * 33}=@11", "ARG_NAME_TOO_LONG", 11),
    ("p vfs_read =@11", "NO_ARG_NAME", 11),
    ("p vfs_read var.1=@11", "BAD_ARG_NAME", 11),
    ("p vfs_read var1=@11 var1=@12", "USED_ARG_NAME", 20),
    ("p vfs_read arg2=@11 @12", "USED_ARG_NAME", 20),
    ("p vfs_read __probe_ip=@11", "USED_ARG_NAME", 11),
    (f"p vfs_read {LONG_EXPRESSION}", "ARG_TOO_LONG", 11),
    ("p vfs_read arg1=", "NO_ARG_BODY", 16),
    ("p vfs_read%hoge", "BAD_ADDR_SUFFIX", 10),
    ("p vfs_read+10%return", "BAD_RETPROBE", 2),
    ("p vfs_read args=$arg*", "BAD_VAR", 16),
    ("p vfs_read +0($arg*)", "BAD_VAR_ARGS", 14),
    ("p vfs_read $arg* $arg*", "DOUBLE_ARGS", 17),
    ("r vfs_read $arg*", "NOFENTRY_ARGS", 11),
    ("p vfs_read+20 $arg*", "NOFENTRY_ARGS", 14),
    ("p vfs_read+20 $arg1", "NOFENTRY_ARGS", 14),
    ("p vfs_read hoge", "NOSUP_BTFARG", 11),
    ("p vfs_read $arg*", "NOSUP_BTFARG", 11),
    ("r vfs_read $retval->f", "NOSUP_BTFARG", 11),
    ("p twice", "NON_UNIQ_SYMBOL", 2),
    (f"p vfs_read {'@1 ' * 128}@2", "TOO_MANY_ARGS", 11 + 128 * 3),
    ("p vfs_read " + " ".join(["@1:u64[64]"] * 6), "EVENT_TOO_BIG", 0),
    ("x vfs_read", "BAD_PROBE_TYPE", 0),
    ("", "BAD_PROBE_TYPE", 0),
    ("p", "BAD_PROBE_ADDR", 1),
    ("p vfs_read+" + "9" * 5000, "BAD_PROBE_ADDR", 2),
    ("p 0x10000000000000000", "BAD_PROBE_ADDR", 2),
    ("p vfs_read+", "BAD_PROBE_ADDR", 2),
    ("p ++16", "BAD_PROBE_ADDR", 2),
    ("  p   vfs_read \t &1 ", "BAD_FETCH_ARG", 11),  # columns count in the words joined by single blanks
]


@pytest.mark.parametrize(("text", "kind", "position"), SYNTAX_ERRORS)
def test_error_names_its_kind_and_column(machine: Any, text: str, kind: str, position: int) -> None:
    with pytest.raises(EventError) as caught:
        parse_event(text, machine)
    error = caught.value
    assert (error.kind, error.position) == (kind, position)
    assert error.event == " ".join(text.split())
    message, event, caret = str(error).split("\n")
    assert caret == " " * (position + 2) + "^" and event == "  " + error.event
    assert ";" in message or ":" in message  # what is wrong, then what to do


@pytest.mark.parametrize(("text", "number"), [
    (f"p vfs_read {LONG_EXPRESSION}", errno.E2BIG), ("p vfs_read hoge", errno.EOPNOTSUPP),
    ("p twice", errno.EADDRNOTAVAIL), ("p nowhere", errno.EINVAL)])
def test_errno_is_linuxs(machine: Any, text: str, number: int) -> None:
    with pytest.raises(EventError) as caught:
        parse_event(text, machine)
    assert caught.value.errno == number


@pytest.mark.parametrize(("text", "hint"), [
    ("p vfs_raed", "vfs_read"), ("p vfs_read %dy", "di"), ("p vfs_read @countre", "counter"),
    ("p twice", "module:symbol")])
def test_error_suggests_what_is_near(machine: Any, text: str, hint: str) -> None:
    with pytest.raises(EventError, match=hint):
        parse_event(text, machine)


@pytest.mark.parametrize(("first", "second", "kind", "position"), [
    ("p:g/e vfs_read", "r:g/e main", "DIFF_PROBE_TYPE", 0),
    ("p:g/e vfs_read abcd=\\1", "p:g/e main bcd=\\1", "DIFF_ARG_TYPE", 11),
    ("p:g/e vfs_read abcd=\\1", "p:g/e main abcd=\\1:u8", "DIFF_ARG_TYPE", 11),
    ("p:g/e vfs_read abcd=\\1", 'p:g/e main abcd=\\"foo"', "DIFF_ARG_TYPE", 11),
    ("p:g/e vfs_read a=\\1 b=\\2", "p:g/e main a=\\1", "DIFF_ARG_TYPE", 15),
    ("p:g/e vfs_read a=\\1", "p:g/e main a=\\1 b=\\2", "DIFF_ARG_TYPE", 16),
    ("p:g/e vfs_read a=\\1", "p:g/e vfs_read a=\\1", "SAME_PROBE", 0),
])
def test_events_of_one_name_must_agree(machine: Any, first: str, second: str, kind: str, position: int) -> None:
    with pytest.raises(EventError) as caught:
        parse_events([first, second], machine)
    assert (caught.value.kind, caught.value.position) == (kind, position)


def test_events_of_one_name_may_sit_in_several_places(machine: Any) -> None:
    events = parse_events(["p:e vfs_read a=\\1", "p:e main a=\\1", "p:e vfs_read a=\\2", "p:g/e main"], machine)
    assert [event.address for event in events] == [TEXT, TEXT + 0x100, TEXT, TEXT + 0x100]


@pytest.mark.parametrize(("error", "kind"), [
    (NotAnInstruction, "BAD_INSN_BNDRY"), (NotFunctionEntry, "BAD_RETPROBE"), (Unprobeable, "FAIL_REG_PROBE")])
def test_refused_registration_points_at_the_place(machine: Any, error: Any, kind: str) -> None:
    refused = parse_event("p:abc vfs_read+3", machine).refused(error("no"))
    assert (refused.kind, refused.position) == (kind, 6)


def test_no_calling_convention_no_arguments() -> None:
    machine: Any = ToyMachine(evolve(toy_arch(), abi=None))
    for text in ("p vfs_read $arg1", "r vfs_read $retval"):
        with pytest.raises(EventError, match="calling convention") as caught:
            parse_event(text, machine)
        assert caught.value.kind == "BAD_VAR"


@PATIENT
@given(st.text(alphabet="pr:/+-@%$()[]\\\"=ux8 019avfs_read*.", max_size=40))
def test_any_text_parses_or_is_an_event_error(text: str) -> None:
    machine: Any = ToyMachine()
    for event in (text, f"p vfs_read {text}", f"r vfs_read a={text}"):
        try:
            parsed = parse_event(event, machine)
        except EventError as error:
            assert 0 <= error.position <= len(error.event)
        else:
            parsed.format(parsed.fetch(machine.regs, parsed.enter(machine.regs)))
            assert str(parse_event(str(parsed), machine)) == str(parsed)


# --- definitions


@pytest.mark.parametrize(("text", "normalized"), [
    ("p vfs_read", "p:kprobes/p_vfs_read_0 vfs_read"),
    ("p vfs_read+0x10", "p:kprobes/p_vfs_read_16 vfs_read+16"),
    ("p vfs_read+010", "p:kprobes/p_vfs_read_8 vfs_read+8"),
    ("p 0x1010", "p:kprobes/p_0x1010 0x1010"),
    ("p 4112", "p:kprobes/p_0x1010 0x1010"),
    ("r vfs_read", "r:kprobes/r_vfs_read_0 vfs_read"),
    ("r vfs_read+4", "r:kprobes/r_vfs_read_4 vfs_read+4"),  # behind the landing pad: still the entry
    ("r20:ret vfs_read $retval", "r20:kprobes/ret vfs_read arg1=$retval"),
    ("p vfs_read%return", "r:kprobes/r_vfs_read_0 vfs_read"),
    ("p:grp/ vfs_read", "p:grp/p_vfs_read_0 vfs_read"),
    ("p:grp.ev vfs_read", "p:grp/ev vfs_read"),
    ("p:grp/ev libtoy:only.isra.0", "p:grp/ev libtoy:only.isra.0"),
    ("p libtoy:only.isra.0", "p:kprobes/p_libtoy_only_isra_0_0 libtoy:only.isra.0"),
    ("p:e libtoy:twice", "p:kprobes/e libtoy:twice"),
    ("p:e vfs_read %di b=+u8(%rdi):string @counter+4:u8",
     "p:kprobes/e vfs_read arg1=%di b=+u8(%rdi):string arg3=@counter+4:u8"),
])
def test_normalized_definition(machine: Any, text: str, normalized: str) -> None:
    event = parse_event(text, machine)
    assert str(event) == normalized
    assert str(parse_event(normalized, machine)) == normalized


def test_event_says_where(machine: Any) -> None:
    event = parse_event("p:g/e vfs_read+0x10 a=%di", machine)
    assert (event.kind, event.group, event.name) == ("p", "g", "e")
    assert (event.symbol, event.offset, event.address, event.maxactive) == ("vfs_read", 16, TEXT + 16, 0)
    assert [(arg.name, arg.type.name) for arg in event.args] == [("a", "x64")]


def test_mode_bits_of_an_address_are_kept() -> None:
    arch = evolve(toy_arch(32), pointers=Pointers(mode_bits=1,
                                                  code_address=lambda addr, read: Entry(addr=addr & ~1, mode=addr & 1)))
    machine: Any = ToyMachine(arch)
    machine.symbols.add("thumb", TEXT + 0x400, 16, mode=1)
    event = parse_event("r 0x5801", machine)
    assert (event.address, event.target, str(event)) == (0x5800, 0x5801, "r:kprobes/r_0x5801 0x5801")
    event = parse_event("p:e thumb+2", machine)
    assert (event.address, event.target, str(event)) == (TEXT + 0x402, TEXT + 0x403, "p:kprobes/e thumb+2")


def test_symbol_with_a_plus_in_its_name(machine: Any) -> None:
    machine.symbols.add("operator+", TEXT + 0x400, 16)
    machine.symbols.add("a+1", TEXT + 0x410, 16)
    assert parse_event("p a+1", machine).address == TEXT + 0x410
    assert parse_event("p operator+", machine).offset == 0


def test_long_default_name_is_cut(machine: Any) -> None:
    machine.symbols.add("f" * 80, TEXT + 0x400, 4)
    assert len(parse_event(f"p {'f' * 80}", machine).name) == 63


# --- fetching and showing


def shown(machine: Any, fetch: str, kind: str = "p") -> str:
    event = parse_event(f"{kind}:e vfs_read v={fetch}", machine)
    line = event.format(event.fetch(machine.regs, event.enter(machine.regs)))
    return line.partition(" v=")[2]


def test_registers_stack_and_arguments(machine: Any) -> None:
    machine.registers |= {"di": 0x11, "si": 2**64 - 2, "ax": 7}
    machine.word(STACK + 0x100, 0xAAAA)
    machine.word(STACK + 0x108, 0xBBBB)
    assert shown(machine, "%di") == "0x11"
    assert shown(machine, "%rdi") == "0x11"
    assert shown(machine, "$arg1:u32") == "17"
    assert shown(machine, "$arg2:s64") == "-2"
    assert shown(machine, "$arg2:s8") == "-2"
    assert shown(machine, "$arg2:u16") == "65534"
    assert shown(machine, "$arg3") == "0xbbbb"  # the first on the stack
    assert shown(machine, "$stack") == hex(STACK + 0x100)
    assert shown(machine, "$stack1") == "0xbbbb"
    assert shown(machine, "$retval:u8", "r") == "7"
    assert shown(machine, "\\-1:s32") == "-1"
    assert shown(machine, "\\0x10") == "0x10"
    assert shown(machine, '\\"a=b:c"') == '"a=b:c"'


def test_memory(machine: Any) -> None:
    machine.write(HEAP, b"hello\0")
    machine.word(HEAP + 0x10, HEAP)
    machine.word(HEAP + 0x20, HEAP + 0x10)
    machine.registers["di"] = HEAP
    assert shown(machine, "+0(%di):string") == '"hello"'
    assert shown(machine, "+1(%di):ustring") == '"ello"'
    assert shown(machine, "+0(%di):char") == "'h'"
    assert shown(machine, "+0(%di):char[3]") == "{'h','e','l'}"
    assert shown(machine, "+0(%di):x8[2]") == "{0x68,0x65}"
    assert shown(machine, "@counter") == hex(HEAP)
    assert shown(machine, "@counter-8:u8") == "0"
    assert shown(machine, f"@{HEAP}:u16") == str(0x6568)
    assert shown(machine, "+0(@counter):string") == '"hello"'
    assert shown(machine, "+0(+0(+0x20(%di))):string") == '"hello"'
    assert shown(machine, "-0x10(@counter):x32") == "(fault)"
    assert shown(machine, "+16(%di):string[2]") == '{"hello",(fault)}'  # an array of pointers
    assert shown(machine, "+0(%di):b4@4/8") == "6"
    assert shown(machine, "+0(%di):b3@6/16") == str(0x6568 >> 6 & 7)


def test_addresses_wrap_at_the_word(machine: Any) -> None:
    machine.write(HEAP, b"\x2a")
    machine.registers["di"] = 2**64 - 0x10
    assert shown(machine, f"+{HEAP + 0x10}(%di):u8") == "42"


def test_signs_and_zeros_as_in_linux(machine: Any) -> None:
    machine.write(HEAP, bytes(range(32)))
    machine.registers["di"] = HEAP + 16
    zeros = "0" * 30
    for text, value in (("+-10(%di):u8", 6), ("++10(%di):u8", 26), ("+u-0xa(%di):u8", 6), ("+u+2(%di):u8", 18),
                        ("-010(%di):u8", 8), (f"+{zeros}3(%di):u8", 19), ("\\+-5:s64", -5),
                        ("\\++5:s64", 5), (f"\\{zeros}:u8", 0), (f"\\0x{zeros}1f:u8", 31), (f"\\-{zeros}7:s8", -7),
                        ("+0(%di):b4@0/+8", 0), ("+0(%di):b4@4/0x8", 1)):
        assert shown(machine, text) == str(value), text
    assert shown(machine, "+0(%di):u8[+2]") == "{16,17}"
    for place in (f"+{TEXT:#x}", f"0x{zeros}{TEXT:x}", "vfs_read-0", f"vfs_read+{zeros}"):
        assert parse_event(f"p {place}", machine).address == TEXT, place


def test_symbol_types(machine: Any) -> None:
    machine.registers["di"] = TEXT + 0x108
    assert shown(machine, "%di:symbol") == "main+0x8"
    assert shown(machine, "%di:symstr") == '"main+0x8"'
    assert shown(machine, "\\0:symbol") == "0x0"


def test_control_characters_do_not_break_the_line(machine: Any) -> None:
    machine.write(HEAP, b"a\n\x1b\xff\tb\0")  # what is no UTF-8 is four characters of the value
    assert shown(machine, f"+0(\\{HEAP}):string") == '"a\\n\\x1b\\\\xff\\tb"'
    assert shown(machine, f"@{HEAP}:char[3]") == "{'a','\\n','\\x1b'}"


def test_quotes_do_not_end_the_text(machine: Any) -> None:
    machine.write(HEAP, b"""a" n="\\x'\0""")
    assert shown(machine, f"+0(\\{HEAP}):string") == '"a\\" n=\\"\\\\x\'"'
    machine.write(HEAP, b"""'"\\""")
    assert shown(machine, f"@{HEAP}:char[3]") == "{'\\'','\"','\\\\'}"


@pytest.mark.parametrize("fetch", ["@0x9000", "@0x9000:string", "+0(+0(\\0x9000)):s8", "@0x9000:u8[4]"])
def test_unreadable_memory_is_a_fault_and_none(machine: Any, fetch: str) -> None:
    event = parse_event(f"p:e vfs_read v={fetch} w=%di", machine)
    values = event.fetch(machine.regs)
    assert values[1] == 0
    if not fetch.endswith("]"):
        assert values[0] is None and event.format(values).endswith("v=(fault) w=0x0")
    else:
        assert values[0] == (None,) * 4 and event.format(values).endswith("v={(fault),(fault),(fault),(fault)} w=0x0")


def test_deep_nesting_up_to_the_limit(machine: Any) -> None:
    machine.word(HEAP, HEAP)
    assert shown(machine, "+0(" * 13 + f"@{HEAP}" + ")" * 13) == hex(HEAP)


def test_32_bit_big_endian() -> None:
    machine: Any = ToyMachine(toy_arch(32, Order.BIG))
    machine.write(HEAP, b"\x12\x34\x56\x78\x9a\xbc\xde\xf0")
    assert shown(machine, f"@{HEAP}") == "0x12345678"
    assert shown(machine, f"@{HEAP}:x16") == "0x1234"
    assert shown(machine, f"@{HEAP}:x64") == "0x123456789abcdef0"
    assert shown(machine, f"@{HEAP}:b4@0/16") == "4"
    assert shown(machine, f"@{HEAP + 4}:s32") == str(0x9ABCDEF0 - 2**32)
    assert parse_event("p vfs_read %di", machine).args[0].type.name == "x32"


@PATIENT
@given(st.integers(0, 2**64 - 1), st.sampled_from([8, 16, 32, 64]), st.sampled_from("usx"))
def test_integers_are_cut_to_their_type(word: int, bits: int, style: str) -> None:
    machine: Any = ToyMachine()
    machine.registers["di"] = word
    machine.word(HEAP, word)
    expected = int.from_bytes(word.to_bytes(8, "little")[: bits // 8], "little", signed=style == "s")
    event = parse_event(f"p vfs_read %di:{style}{bits} @{HEAP}:{style}{bits}", machine)
    assert event.fetch(machine.regs) == (expected, expected)


# --- lines and records


@pytest.mark.parametrize(("text", "line"), [
    ("p:e vfs_read+0x10", "e: (vfs_read+0x10/0x80)"),
    ("p:e 0x1010 a=\\1 b=\\2:u8", "e: (vfs_read+0x10/0x80) a=0x1 b=2"),
    ("p:e 0x5800", "e: (0x5800)"),
    ("p:e libtoy:twice", "e: (twice+0x0/0x8)"),
    ("r:e vfs_read a=\\1", "e: (main+0x8/0x40 <- vfs_read) a=0x1"),
    ("r:e 0x1000", "e: (main+0x8/0x40 <- vfs_read)"),
])
def test_line(machine: Any, text: str, line: str) -> None:
    event = parse_event(text, machine)
    assert event.format(event.fetch(machine.regs), TEXT + 0x108) == line


def test_record_of_a_return_event(machine: Any) -> None:
    machine.registers["ax"] = 5
    event = parse_event("r:g/e vfs_read ret=$retval:s32 who=%di:symbol bad=@0x9000 pair=@0x5000:u8[2]", machine)
    record = json.loads(json.dumps(event.as_dict(event.fetch(machine.regs), TEXT + 0x108)))
    assert record == {
        "group": "g", "name": "e", "kind": "r", "symbol": "vfs_read", "offset": 0, "address": TEXT,
        "return_address": TEXT + 0x108, "caller": "main+0x8/0x40",
        "args": {"ret": 5, "who": "0x0", "bad": None, "pair": [0, 0]}}


def test_record_of_a_probe_event_has_no_caller(machine: Any) -> None:
    event = parse_event("p vfs_read", machine)
    assert "caller" not in event.as_dict(event.fetch(machine.regs))


def test_return_event_sees_the_arguments_of_its_entry(machine: Any) -> None:
    event: Event = parse_event("r:e vfs_read $arg2 again=$arg2:u8 s=+0($arg1):string six=$arg6", machine)
    machine.write(HEAP, b"hello\0")
    machine.registers |= {"di": HEAP, "si": 0x1FF, "sp": STACK + 0xFE0}
    saved = event.enter(machine.regs)
    machine.registers |= {"di": 0, "si": 0}
    assert event.saves == (1, 0, 5)
    assert event.fetch(machine.regs, saved) == (0x1FF, 0xFF, "hello", None)  # the sixth lay beyond the stack
