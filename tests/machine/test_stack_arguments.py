"""Arguments on the stack are found wherever the stack is, and not where it was."""

from __future__ import annotations

import ctypes
from array import array

import pytest

from kprobes import BadArgument, GuestFault, UnicornMachine

pytestmark = pytest.mark.quick
CODE, STACK, OTHER = 0x10000, 0x100000, 0x300000


@pytest.fixture(params=["i386", "m68k", "arm", "mips", "x86_64"])
def m(request: pytest.FixtureRequest) -> UnicornMachine:
    """A machine with two stacks, of which neither is a power of two."""
    machine = UnicornMachine.from_code(bytes(16), arch=request.param, base=CODE)
    machine.map(STACK, 0x7000, "rw")
    machine.map(OTHER, 0x3000, "rw")
    return machine


def put(m: UnicornMachine, sp: int) -> list[int]:
    """Twelve arguments on a stack at sp."""
    abi, width = m.arch.abi, m.arch.bits // 8
    assert abi is not None
    m.regs.sp = sp
    for n, name in enumerate(abi.args):
        m.regs[name] = sp + n
    on_stack = [sp * 0x101 + n for n in range(12 - len(abi.args))]
    for n, value in enumerate(on_stack):
        m.write(sp + abi.stack_args + n * width, value.to_bytes(width, m.arch.order.value))
    return [sp + n for n in range(len(abi.args))] + on_stack


@pytest.mark.parametrize("sp", [STACK, STACK + 0x100, STACK + 0x3FE0, STACK + 0x3FF8, STACK + 0x6F00, STACK + 0x3002,
                                STACK + 0x6001, OTHER + 0x2F00])
def test_arguments_are_there(m: UnicornMachine, sp: int) -> None:
    """From the start of a mapping to its end, aligned or not, after reads elsewhere."""
    readers = [m.regs.argument(n) for n in range(12)]
    for place in (STACK + 0x2000, sp, OTHER + 0x1000, sp, sp):
        expected = put(m, place)
        for _ in range(2):
            assert [m.regs.arg(n) for n in range(12)] == [read() for read in readers] == expected


def test_a_value_that_changes_is_seen(m: UnicornMachine) -> None:
    """Words are read, not remembered."""
    put(m, STACK + 0x100)
    before = m.regs.arg(9)
    m.regs.set_arg(9, before + 1)
    assert m.regs.arg(9) == before + 1


def test_a_stack_that_is_gone_is_not_read(m: UnicornMachine) -> None:
    """Neither after it is unmapped, nor from where it was when something else is mapped there."""
    put(m, STACK + 0x100)
    read = m.regs.argument(9)
    assert m.regs.arg(9) == m.regs.arg(9) == read() != 0
    m.unmap(STACK, 0x7000)
    for again in (lambda: m.regs.arg(9), read):
        with pytest.raises(GuestFault):
            again()
    m.map(STACK, 0x1000, "rw")
    assert m.regs.arg(9) == 0
    assert put(m, STACK + 0x200)[9] == m.regs.arg(9)


def test_arguments_are_counted_from_0(m: UnicornMachine) -> None:
    """There is none before the first."""
    put(m, STACK + 0x100)
    assert m.regs.arg(0) == m.regs.arg(0)
    with pytest.raises(ValueError, match=r"counted from 0|pass 0 to"):
        m.regs.arg(-1)
    for act in (lambda: m.arch.abi.argument(m.regs, -1), lambda: m.arch.abi.set_argument(m.regs, -1, 0)):
        with pytest.raises(ValueError, match="counted from 0"):
            act()


def test_a_stack_pointer_outside_of_memory_faults(m: UnicornMachine) -> None:
    """At the end of a mapping, and nowhere near one."""
    put(m, STACK + 0x6F00)
    for sp in (STACK + 0x7000, STACK - 0x1000, m.arch.mask & -16):
        m.regs.sp = sp
        with pytest.raises(GuestFault):
            m.regs.arg(11)


#: a function that only returns
RETURNS = {"i386": "c3", "m68k": "4e75", "arm": "1eff2fe1", "mips": "03e0000800000000", "x86_64": "c3"}


def test_calls_return_wherever_the_stack_is(m: UnicornMachine) -> None:
    """In each block, also beside code; after the block was unmapped, and when there is another one in its place."""
    m.write(CODE, bytes.fromhex(RETURNS[m.arch.name]))

    def call(sp: int) -> None:
        m.regs.sp = sp
        before = {name: m.regs[name] for name in m.regs.names}
        m.call(CODE, *range(5, 5 + len(m.arch.abi.args)))  # type: ignore[union-attr]
        assert {name: m.regs[name] for name in m.regs.names} == before

    for _ in range(2):
        for sp in (STACK + 0x6F00, OTHER + 0x2F00, OTHER + 0x2F02, CODE + 0xF00, STACK + 0x6F00):
            call(sp)
        m.unmap(STACK, 0x7000)
        m.regs.sp = STACK + 0x6F00
        if m.arch.linkage.pushed:  # type: ignore[union-attr]
            with pytest.raises(GuestFault):
                m.call(CODE)
        m.map(STACK, 0x7000, "rw")
        call(STACK + 0x6F00)


def test_objects_with_buffers_are_passed_as_bytes_are() -> None:
    """What can be written is copied back. Numbers of ctypes and text that is no buffer are refused."""
    code = bytes.fromhex("8a07 80f001 8807 0fb6c0 c3")  # mov al, [rdi]; xor al, 1; mov [rdi], al; movzx eax, al; ret
    with UnicornMachine.from_code(code, arch="x86_64", symbols={"f": 0x10000}) as m:
        words, numbers = array("H", [0x0102, 3]), (ctypes.c_uint8 * 2)(4, 5)
        view = memoryview(bytearray(b"xyz"))[1:]
        assert [m.call("f", one) for one in (words, numbers, view, memoryview(b"8"))] == [3, 5, ord("x"), ord("9")]
        assert (list(words), list(numbers), bytes(view)) == ([0x0103, 3], [5, 5], b"xz")
        for wrong, said in ((ctypes.c_int(4), "a c_int"), (2.0, "a float"), ({}, "a dict"), (iter(()), "a tuple_iter")):
            with pytest.raises(BadArgument, match=f"argument 1 is {said}"):
                m.call("f", wrong)  # type: ignore[arg-type]
        number = pytest.importorskip("numpy").float64(1.5)  # it has a buffer, too
        with pytest.raises(BadArgument, match="argument 1 is a float64"):
            m.call("f", number)
        with pytest.raises(BadArgument, match="cannot write an int at 65536"):
            m.write(0x10000, 5)  # type: ignore[arg-type]
