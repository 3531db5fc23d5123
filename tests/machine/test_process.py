"""Processes: static programs of a C library from their first instruction to exit, and libraries' thread-local
storage."""

from __future__ import annotations

import struct
import tarfile
import time
from collections.abc import Iterator, Mapping
from itertools import count, takewhile
from pathlib import Path

import pytest
from arch_rows import THREADS
from arches import RUNNABLE
from attrs import evolve
from click.testing import CliRunner

from kprobes import BadArgument, GuestFault, Kprobes, UnicornMachine, Unsupported
from kprobes.campaign import Calls
from kprobes.cli import main
from kprobes.image import Image, Import, in_order, read_elf
from kprobes.regs import Regs

pytestmark = pytest.mark.quick


def files() -> dict[str, bytes]:
    """What tests/data/build_threads.py has made: architecture/file -> its bytes."""
    with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "threads.tar.xz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]


FILES = files()
STATIC = sorted(name.partition("/")[0] for name in FILES if name.endswith("/static"))
LIBRARIES = sorted(name for name in FILES if name.endswith(".so"))

# --- an operating system of seven calls

_COMMON = {93: "exit", 94: "exit", 64: "write", 222: "mmap", 96: "tid"}
_OLD = {1: "exit", 4: "write"}
#: architecture -> (number's register, arguments, result, names of the calls)
CALLS: Mapping[str, tuple[str, str, str, dict[int, str]]] = {
    "x86_64": ("rax", "rdi rsi rdx", "rax", {60: "exit", 231: "exit", 1: "write", 9: "mmap", 218: "tid",
                                             158: "arch_prctl"}),
    "i386": ("eax", "ebx ecx edx", "eax", {**_OLD, 252: "exit", 192: "mmap", 258: "tid", 243: "area"}),
    **dict.fromkeys(("arm", "armeb"), ("r7", "r0 r1 r2", "r0", {**_OLD, 248: "exit", 192: "mmap", 256: "tid",
                                                                0xF0005: "set_tls"})),
    **dict.fromkeys(("arm64", "arm64be"), ("x8", "x0 x1 x2", "x0", _COMMON)),
    **dict.fromkeys(("riscv32", "riscv64"), ("a7", "a0 a1 a2", "a0", _COMMON)),
    **dict.fromkeys(("mips", "mipsel"), ("v0", "a0 a1 a2", "v0", {4001: "exit", 4246: "exit", 4004: "write",
                                                                  4210: "mmap", 4252: "tid", 4283: "set_tls"})),
    **dict.fromkeys(("mips64", "mips64el"), ("v0", "a0 a1 a2", "v0", {5058: "exit", 5205: "exit", 5001: "write",
                                                                      5009: "mmap", 5212: "tid", 5242: "set_tls"})),
    "ppc": ("r0", "r3 r4 r5", "r3", {**_OLD, 234: "exit", 192: "mmap", 232: "tid"}),
    **dict.fromkeys(("ppc64", "ppc64le"), ("r0", "r3 r4 r5", "r3", {**_OLD, 234: "exit", 90: "mmap", 232: "tid"})),
    "s390x": ("r1", "r2 r3 r4", "r2", {**_OLD, 248: "exit", 90: "mmap", 252: "tid"}),
}
ENOSYS = 38


class System:
    """What a static program asks of Linux before it says hello."""

    def __init__(self, m: UnicornMachine) -> None:
        self.m, self.out, self.status = m, bytearray(), -1
        self.number, arguments, self.result, self.names = CALLS[m.arch.name]
        self.arguments = arguments.split()
        self.free = m.parts.memory.map_anywhere(1 << 20)
        m.interrupt_handler = self.serve

    def serve(self, regs: Regs, number: int) -> bool:
        a, b, c = (regs[name] for name in self.arguments)
        result = self.call(self.names.get(regs[self.number] & 0xFFFFFFFF, ""), a, b, c)
        regs[self.result] = result & self.m.arch.mask
        if self.m.arch.name.startswith("mips"):
            regs["a3"] = int(result < 0)
        if self.m.arch.name.startswith("ppc"):
            regs["cr"] = regs["cr"] & ~(1 << 28) | (result < 0) << 28
            regs[self.result] = abs(result) & self.m.arch.mask
        return True

    def call(self, name: str, a: int, b: int, c: int) -> int:
        if name == "write":
            self.out += self.m.read(b, c)
            return c
        if name == "exit":
            self.status = a
            self.m.stop()
        elif name == "mmap":
            if self.m.arch.name == "s390x":  # its arguments are in memory
                b = int.from_bytes(self.m.read(a + 8, 8), "big")
            self.free += -(-b // 4096) * 4096
            return self.free - -(-b // 4096) * 4096
        elif name == "tid":
            return 4711
        elif name in ("arch_prctl", "set_tls", "area"):
            self.m.set_thread_pointer(b if name == "arch_prctl" else a if name == "set_tls"
                                      else int.from_bytes(self.m.read(a + 4, 4), "little"))
            if name == "area":
                self.m.write(a, (6).to_bytes(4, "little"))
        else:
            return -ENOSYS
        return 0


#: What the engine does otherwise than QEMU, on which all of them say what they should.
WRONG_IN_THE_ENGINE = {"s390x": "Unicorn 2.1.4: RISBLG, which musl's strtol has, inserts into the other half"}


@pytest.fixture(params=[pytest.param(arch, marks=pytest.mark.xfail(strict=True, reason=WRONG_IN_THE_ENGINE[arch]))
                        if arch in WRONG_IN_THE_ENGINE
                        else arch for arch in STATIC])
def program(request: pytest.FixtureRequest) -> Iterator[UnicornMachine]:
    with UnicornMachine.load(FILES[f"{request.param}/static"]) as m:
        yield m


def test_a_static_program_runs_from_its_entry_to_its_exit(program: UnicornMachine) -> None:
    """argc, argv, the environment, malloc, strtol, errno, thread-local variables, floating point, and what main
    returns."""
    system = System(program)
    program.process(["prog", "0x28"], {"GREETING": "hi"})
    program.run(timeout=30)
    assert (bytes(system.out), system.status) == (b"2 prog 40 8 hi 1 10.00\n", 2)


def test_a_probed_static_program_does_the_same(program: UnicornMachine) -> None:
    system = System(program)
    program.process(["prog", "3"], {"GREETING": "again"})
    with Kprobes(program) as k, k.kprobe(addr=program.arch.pointers.same_mode(program.regs, program.regs.pc),
                                         pre_handler=lambda p, regs: None) as p:
        program.run(timeout=30)
        assert p.nhit == 1
    assert (bytes(system.out), system.status) == (b"2 prog 3 8 again 1 0.75\n", 2)


def test_no_function_is_left_to_be_called_at_the_exit() -> None:
    """s390x's start-up code registers what is in the link register with atexit(), unless it is 0."""
    with UnicornMachine.load(FILES["s390x/static"]) as m:
        m.process(["prog"])
        assert m.regs["r14"] == 0
        assert all(m.regs[f"r{n}"] == 0 for n in range(2, 15))


# --- libraries


@pytest.mark.parametrize("name", LIBRARIES)
def test_thread_local_variables_of_libraries(name: str) -> None:
    """One has an initial value, the other none; every model that compilers use."""
    with UnicornMachine.load(FILES[name]) as m:
        m.process()
        assert [m.call("bump", 1, timeout=5) for _ in range(3)] == [8, 10, 13]


@pytest.mark.parametrize("name", LIBRARIES)
def test_two_libraries_have_their_own(name: str) -> None:
    with UnicornMachine.load(FILES[name]) as m:
        m.load_module(FILES[name], name="second")
        m.process()
        m.load_module(FILES[name], name="third")  # one that comes later finds room, too
        for result in (8, 10):
            for module in (m.symbols.main, "second", "third"):
                symbol = m.symbols[f"{module}:bump"]
                assert m.call(symbol.address | symbol.mode, 1, timeout=5) == result


@pytest.mark.parametrize("name", LIBRARIES)
def test_without_a_process_the_fault_says_so(name: str) -> None:
    with UnicornMachine.load(FILES[name]) as m, pytest.raises(GuestFault, match=r"m\.process\(\)"):
        m.call("bump", 1, timeout=5)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_command_and_campaigns_make_a_process(name: str, tmp_path: Path) -> None:
    """Who calls a library's function from there cannot call m.process()."""
    file = tmp_path / "library.so"
    file.write_bytes(FILES[name])
    done = CliRunner().invoke(main, ["trace", str(file), "-e", "r bump $retval:s32", "--call", "bump(1)"])
    assert done.exit_code == 0 and "bump(1) = 0x8" in done.output
    assert Calls(str(file), "bump(len)")(b"x")["result"] == 8


@pytest.mark.parametrize(("arch", "code"), [
    ("arm64", "000040f9"), ("riscv64", "03350500"), ("mips", "8c840000")])  # a load of a word by the first argument
@pytest.mark.parametrize("address", [0, -8])
def test_a_null_pointer_is_no_thread_local_storage(arch: str, code: str, address: int) -> None:
    with UnicornMachine.from_code(bytes.fromhex(code), arch=arch, symbols={"f": 0x10000}) as m:
        with pytest.raises(GuestFault) as caught:
            m.call("f", address & m.arch.mask)
        assert "thread" not in str(caught.value) and "m.process" not in str(caught.value)


def test_a_library_without_such_variables_has_them_by_process() -> None:
    """A stack protector's canary, errno of a C library: code that was not loaded with any."""
    code = "mrs x1, tpidr_el0; ldr x0, [x1, #0x28]; ret"
    pytest.importorskip("keystone")
    with UnicornMachine.from_code(code, arch="arm64", symbols={"f": 0x10000}) as m:
        with pytest.raises(GuestFault, match="at 0x28"):
            m.call("f")
        m.process()
        assert m.call("f") == 0


# --- what is set up


@pytest.mark.parametrize("arch", sorted(THREADS))
def test_the_stack_and_the_thread_pointer(arch: str) -> None:
    with UnicornMachine.from_code(b"\0" * 4, arch=arch) as m:
        m.process(["a", b"\xff", "ccc"], {"X": "1"}, stdin=b"typed")
        regs, threads, word = m.regs, THREADS[arch], m.arch.bits // 8
        assert m.stdin.read() == b"typed"

        def at(n: int) -> int:
            return regs.word(regs.sp + (threads.frame + n) * word)

        assert at(0) == 3 and [m.read_cstr(at(n)) for n in (1, 2, 3)] == [b"a", b"\xff", b"ccc"] and at(4) == 0
        assert m.read_cstr(at(5)) == b"X=1" and at(6) == 0
        vector = {at(n): at(n + 1) for n in takewhile(at, count(7, 2))}
        assert (m.read_cstr(vector[31]) == b"a" and len(m.read(vector[25], 16)) == 16 and vector[6] == m.page_size
                and vector[23] == 0)
        assert regs.sp % 16 == 0
        if threads.register not in ("", "gs", "a0"):
            assert regs[threads.register] == m.parts.process.pointer
        assert m.read(m.parts.process.pointer - 0x8000, 0x10000).count(0) > 0xFFF0


@pytest.mark.parametrize(("arch", "code"), [("x86_64", "mov rax, fs:[0x10]; ret"), ("i386", "mov eax, gs:[8]; ret")])
def test_a_c_library_finds_its_descriptor_of_the_thread(arch: str, code: str) -> None:
    """glibc's and musl's third word: getrandom() of glibc writes through it."""
    with UnicornMachine.from_code(code, arch=arch, symbols={"self": 0x10000}, base=0x10000) as m:
        m.process()
        assert m.call("self") == m.parts.process.pointer


def test_a_c_library_of_i386_calls_the_kernel_through_its_thread() -> None:
    pytest.importorskip("system_calls")
    code = "mov eax, 20; call gs:[0x10]; ret"  # getpid
    with UnicornMachine.from_code(code, arch="i386", symbols={"getpid": 0x10000}, base=0x10000) as m:
        served = m.serve_system_calls()
        served["getpid"] = lambda regs, *words: 77
        m.process()
        assert m.call("getpid") == 77


@pytest.mark.parametrize(("arch", "code"), [
    ("ppc64le", "3c600002 6063000c 4e800020 7d836378 4e800020"),  # lis r3, 2; ori r3, r3, 12; blr; mr r3, r12; blr
    ("mips", "3c020002 03e00008 3442000c 03e00008 03201025"),  # lui v0, 2; jr ra; ori v0, v0, 12; jr ra; move v0, t9
])  # fmt: skip
def test_a_chosen_function_finds_its_data(arch: str, code: str) -> None:
    """An ifunc's is told its own address, not that of what was called."""
    base = 0x20000
    words = b"".join(int(word, 16).to_bytes(4, "little" if arch.endswith("le") else "big") for word in code.split())
    with UnicornMachine.from_code(words, arch=arch, base=base) as m:
        m.map(0x40000, m.page_size, "rx")
        m.write(0x40000, m.arch.end_bytes(0))
        m.parts.stubs.ifuncs[0x40000] = base
        assert m.call(0x40000) == base + 12


def test_libraries_come_behind_those_whose_variables_they_take() -> None:
    some = read_elf(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")

    def library(has: str, *takes: str, kind: str = "object") -> Image:
        return evolve(some, symbols=(evolve(some.symbols[0], name=has),),
                      imports={name: Import(name=name, weak=False, kind=kind, size=8) for name in takes})

    linker, c, mathematics = library("_rtld_global"), library("errno", "_rtld_global"), library("signgam", "errno")
    assert in_order([mathematics, c, linker]) == [2, 1, 0]
    assert in_order([linker, c, mathematics]) == [0, 1, 2]
    assert in_order([library("f", "g"), library("g", "f")]) == [0, 1]
    assert in_order([library("f", "g", kind="func"), library("g")]) == [0, 1]
    circle = [library("f", "g"), library("g", "f")]
    assert in_order([library("h", "f"), *circle]) == [1, 2, 0]
    assert in_order([library("h", "f"), circle[0], library("g", "f", "i"), library("i")]) == [3, 1, 2, 0]


def test_many_libraries_are_put_in_order_as_quickly_as_their_names_are_read() -> None:
    """A chain that is named backwards: each library waits for the next one."""
    some, many = read_elf(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64"), 2000
    chain = [evolve(some, symbols=(evolve(some.symbols[0], name=f"v{n}"),),
                    imports={f"v{n + 1}": Import(name=f"v{n + 1}", weak=False, kind="object", size=8)})
             for n in range(many)]
    start = time.process_time()
    assert in_order(chain) == [*reversed(range(many))]
    assert time.process_time() - start < 5  # 0.02 s alone; what looks at all that are left takes a minute


def test_where_there_is_no_such_process() -> None:
    assert set(RUNNABLE) - set(THREADS) == {"cortexm", "tricore"}
    for arch in ("cortexm", "tricore"):
        with UnicornMachine.from_code(b"\0" * 4, arch=arch) as m, pytest.raises(Unsupported, match="no process"):
            m.process()


def test_arguments_that_do_not_fit() -> None:
    with UnicornMachine.from_code(b"\0" * 4, arch="x86_64") as m, pytest.raises(BadArgument, match="too long"):
        m.process(["x" * (1 << 20)])


# --- ifuncs whose resolvers' addresses stand in place (REL)


def rel_program(machine: int, flags: int, order: str, kind: int, code: bytes, slot: int) -> bytes:
    """A static 32-bit program at 0x10000: `code`, and a relocation of its word at `slot`, an offset in the code."""
    end, names = "<" if order == "little" else ">", b"\0.rel.plt\0.shstrtab\0"
    relocation = struct.pack(end + "II", 0x10000 + 0x100 + slot, kind)
    body = code.ljust(0x100, b"\0") + relocation + names
    head = struct.pack(end + "16sHHIIIIIHHHHHH", b"\x7fELF\1" + bytes([1 + (order == "big")]) + b"\1", 2, machine, 1,
                       0x10100, 52, 0x100 + len(body), flags, 52, 32, 1, 40, 3, 2)
    load = struct.pack(end + "8I", 1, 0, 0x10000, 0x10000, 0x208, 0x208, 7, 0x1000)
    sections = [(0,) * 10, (1, 9, 2, 0x10200, 0x200, 8, 0, 0, 4, 8), (10, 3, 0, 0, 0x208, len(names), 0, 0, 1, 0)]
    return (head + load).ljust(0x100, b"\0") + body + b"".join(struct.pack(end + "10I", *s) for s in sections)


def starting(arch: str) -> tuple[bytes, int, int]:
    """A program, the address behind its start-up code, and that of its slot.

    It calls what its slot names, keeps what that answers in the slot, and calls that, which answers 42.
    """
    if arch == "i386":
        slot, resolver, impl = 0x10180, 0x10118, 0x1011E
        code = b"".join((b"\xa1", slot.to_bytes(4, "little"), b"\xff\xd0\xa3", slot.to_bytes(4, "little"), b"\xff\x15",
                         slot.to_bytes(4, "little"), b"\x90")).ljust(0x18, b"\x90")
        code += b"\xb8" + impl.to_bytes(4, "little") + b"\xc3" + bytes.fromhex("b82a000000c3")
        code = code.ljust(0x80, b"\0") + resolver.to_bytes(4, "little")
        return rel_program(3, 0, "little", 42, code, 0x80), 0x10112, slot
    order = "big" if arch == "armeb" else "little"
    slot, resolver, impl = 0x10180, 0x1011C, 0x10124
    words = (0xE59F4024, 0xE5940000, 0xE12FFF30, 0xE5840000, 0xE5941000, 0xE12FFF31, 0xE1A00000, 0xE59F000C, 0xE12FFF1E,
             0xE3A0002A, 0xE12FFF1E)
    code = b"".join(word.to_bytes(4, "little") for word in words) + slot.to_bytes(4, order) + impl.to_bytes(4, order)
    code = code.ljust(0x80, b"\0") + resolver.to_bytes(4, order)
    return rel_program(40, 0x05800000 if order == "big" else 0x05000000, order, 160, code, 0x80), 0x10118, slot


@pytest.mark.parametrize("probes", [False, True])
@pytest.mark.parametrize("arch", ["i386", "arm", "armeb"])
def test_start_up_code_finds_the_resolvers_of_its_ifuncs(arch: str, probes: bool) -> None:
    """As in glibc's static programs of i386 and armhf, which died before their first system call."""
    data, end, slot = starting(arch)
    with UnicornMachine.load(data) as m, Kprobes(m) as k:
        assert m.arch.name == arch
        placed = m.read(slot, 4)
        m.process()
        assert m.read(slot, 4) == placed, "functions are called through it"
        if probes:
            with k.kprobe(addr=0x10100, pre_handler=lambda p, regs: None):
                m.run(until=end)
        else:
            m.run(until=end)
        assert m.regs.return_value == 42


def test_a_jump_to_nowhere_is_not_taken_for_thread_local_storage() -> None:
    with UnicornMachine.from_code("mov x0, #0; br x0", arch="arm64", symbols={"f": 0x10000}) as m:
        with pytest.raises(GuestFault, match="fetch") as raised:
            m.call("f")
        assert "thread" not in str(raised.value)
