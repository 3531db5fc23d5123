"""System calls of library code, served: what Linux would answer, and nothing of the host's."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from arches import RUNNABLE
from click.testing import CliRunner

from kprobes import BadArgument, GuestFault, Kprobes, UnicornMachine, Unsupported
from kprobes import arch as architectures
from kprobes.cli import main
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.machine.unicorn.stackandexit import STACK_SIZE
from kprobes.machine.unicorn.syscalls import MOST_MEMORY, MOST_OUTPUT, Convention, ServedSystemCalls, convention_of

pytest.importorskip("system_calls")
#: the instruction
CODES = {"x86_64": "0f05", "i386": "cd80", **dict.fromkeys(("arm", "armeb"), "000000ef"),
         **dict.fromkeys(("arm64", "arm64be"), "010000d4"),
         **{name: "0c000000" if name.endswith("el") else "0000000c" for name in RUNNABLE if name.startswith("mips")},
         "ppc": "44000002", "ppc64": "44000002", "ppc64le": "02000044", "riscv32": "73000000", "riscv64": "73000000",
         "s390x": "0a00", "sparc": "91d02010", "sparc64": "91d0206d", "m68k": "4e40"}
#: where the engine passes over a call in front of a run's end
NOPS = {**dict.fromkeys(("arm", "armeb"), "0000a0e1"), **dict.fromkeys(("arm64", "arm64be"), "1f2003d5")}
BASE = 0x10000


def static_programs() -> dict[str, bytes]:
    """Static programs of a C library, by architecture."""
    with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "threads.tar.xz") as archive:
        return {m.name.partition("/")[0]: archive.extractfile(m).read()  # type: ignore[union-attr]
                for m in archive.getmembers() if m.name.endswith("/static")}


STATIC = static_programs()


def convention(arch: str) -> Convention:
    found = convention_of(architectures.get(arch), GUESTS[arch])
    assert found is not None
    return found


class Caller:
    """Makes single system calls in a guest."""

    def __init__(self, arch: str) -> None:
        code = bytes.fromhex(CODES[arch] + NOPS.get(arch, ""))
        self.m = UnicornMachine.from_code(code + bytes(0x100), arch=arch, base=BASE)
        self.calls = self.m.serve_system_calls(seed=5)
        self.convention = convention(arch)
        self.end = BASE + len(code)
        self.numbers = {self.calls._names(n): n for n in (*range(500), *range(4000, 4500), *range(5000, 5500))}
        self.m.map(0x30000, 0x1000)
        self.m.regs.sp = 0x30800

    def __call__(self, name: str, *args: int) -> int:
        regs, convention = self.m.regs, self.convention
        regs[convention.number] = self.numbers[name]
        registers = convention.registers.args
        for register, value in zip(registers, args, strict=False):
            regs[register] = value & self.m.arch.mask
        for n, value in enumerate(args[len(registers):]):
            regs.set_word(regs.sp + convention.registers.on_stack + 4 * n, value & self.m.arch.mask)
        self.m.run(BASE, until=self.end)
        result = int(regs[convention.registers.result])
        bits = self.m.arch.bits
        result -= (result >> bits - 1) << bits
        failed = {"a3": lambda: regs["a3"], "so": lambda: regs["cr"] >> 28 & 1,
                  "carry": lambda: regs[self.m.arch.regs.flags] & 1}.get(convention.rules.failed, lambda: 0)()
        return -result if failed else result


@pytest.fixture(params=sorted(CODES))
def caller(request: pytest.FixtureRequest) -> Iterator[Caller]:
    made = Caller(request.param)
    with made.m:
        yield made


def test_every_linux_architecture_is_served() -> None:
    served = {name for name in RUNNABLE if convention_of(architectures.get(name), GUESTS[name]) is not None}
    assert set(CODES) == served == set(RUNNABLE) - {"cortexm", "tricore"}


def test_calls_do_what_they_are_for(caller: Caller) -> None:
    m = caller.m
    m.write(0x30000, b"hello")
    assert caller("write", 1, 0x30000, 5) == 5 and caller("write", 2, 0x30001, 3) == 3
    assert (bytes(caller.calls.output[1]), bytes(caller.calls.output[2])) == (b"hello", b"ell")
    assert caller("write", 7, 0x30000, 5) == -9 and caller("write", 1, 0x7F0000, 5) == -14
    assert caller("getpid") == 1
    assert caller("getrandom", 0x30100, 16, 0) == 16 and m.read(0x30100, 16) == random.Random("5 1").randbytes(16)
    first = caller("brk", 0)
    assert caller("brk", first + 0x3000) == first + 0x3000 and m.read(first + 0x2FFF, 1) == b"\0"
    m.write(first + 0x1000, b"kept")
    assert caller("brk", first + 0x5000) == first + 0x5000 and m.read(first + 0x1000, 4) == b"kept"
    assert caller("brk", first + MOST_MEMORY * 2) == first + 0x5000
    m.write(0x30200, (7).to_bytes(4, m.arch.order.value))
    futex = "futex" if "futex" in caller.numbers else "futex_time64"
    assert caller(futex, 0x30200, 0x81, 1) == 0 and caller(futex, 0x30200, 0x80, 8) == -11
    with pytest.raises(GuestFault, match="waits for another thread"):
        caller(futex, 0x30200, 0x80, 7)
    assert caller("read", 0, 0x30000, 5) == 0 and caller("read", 3, 0x30000, 5) == -9
    clock = "clock_gettime" if "clock_gettime" in caller.numbers else "clock_gettime64"
    assert caller(clock, 0, 0x30300) == 0
    seconds = m.regs.word(0x30300)
    assert seconds in (946684800, 0)  # 64 bits on riscv32


def test_memory_comes_and_goes(caller: Caller) -> None:
    m = caller.m
    name = "mmap2" if "mmap2" in caller.numbers and m.arch.bits == 32 else "mmap"
    anonymous = 0x802 if m.arch.name.startswith("mips") else 0x22
    page = m.page_size
    arguments = (0, 2 * page + 0x800, 3, anonymous, -1, 0)
    if m.arch.name == "s390x":
        for n, value in enumerate(arguments):
            m.regs.set_word(0x30400 + 8 * n, value & m.arch.mask)
        arguments = (0x30400,)
    address = caller(name, *arguments) & m.arch.mask
    assert m.read(address, 3 * page) == bytes(3 * page)
    m.write(address + page, b"x")
    assert caller("munmap", address + page, page) == 0
    with pytest.raises(GuestFault):
        m.read(address + page, 1)
    assert m.read(address, 1) == m.read(address + 2 * page, 1) == b"\0"
    assert caller("munmap", BASE, page) == -22 and m.read(BASE, 1)  # nothing but what was mapped so


def test_what_static_programs_ask_when_they_start(caller: Caller) -> None:
    """A C library's start-up code: limits, the program's own name, what stdout is."""
    m, word = caller.m, caller.m.arch.bits // 8
    order = m.arch.order.value
    for name, size in (("prlimit64", 8), ("getrlimit", word), ("ugetrlimit", word)):
        if name not in caller.numbers:
            continue
        infinity = (1 << 8 * size) - 1 if name != "getrlimit" or size == 8 else 0x7FFFFFFF
        for resource, limit in ((3, STACK_SIZE), (7, infinity)):
            arguments = (0, resource, 0, 0x30100) if name == "prlimit64" else (resource, 0x30100)
            assert caller(name, *arguments) == 0
            assert m.read(0x30100, 2 * size) == 2 * limit.to_bytes(size, order)
    if "prlimit64" in caller.numbers:
        assert caller("prlimit64", 0, 3, 0x30100, 0) == -1  # nothing is raised
        assert caller("prlimit64", 7, 3, 0, 0x30100) == -3  # there is no other process
        assert caller("prlimit64", 0, 16, 0, 0x30100) == -22
    at = {"readlinkat": (-100,), "readlink": ()}
    linked = next(name for name in at if name in caller.numbers)
    end = 0x31000
    m.write(end - 6, b"/proc\0")
    assert caller(linked, *at[linked], end - 6, 0x30100, 64) == -2
    m.write(0x30000, b"/proc/self/exe\0")
    assert caller(linked, *at[linked], 0x30000, 0x30100, 64) == -2  # no process() yet
    m.process(["./tool", "x"])
    m.regs.sp = 0x30800
    assert caller(linked, *at[linked], 0x30000, 0x30100, 64) == 5 and m.read(0x30100, 5) == b"/tool"
    assert caller(linked, *at[linked], 0x30000, 0x30100, 3) == 3
    assert caller(linked, *at[linked], 0x30000, 0x30100, 0) == -22
    stat = next(name for name in ("fstat", "fstat64", "statx") if name in caller.numbers)
    m.write(0x30000, b"\0")
    assert caller(stat, 1, 0x30000, 0x30100) == -9
    if stat == "statx":
        m.write(0x30000, b"/etc\0")
        with pytest.raises(GuestFault, match="statx"):
            caller(stat, -100, 0x30000, 0, 0, 0)


def test_what_descriptors_can_do(caller: Caller) -> None:
    """poll(), as Rust's programs ask it at their start; 0 can be read, 1 and 2 written, 7 is none."""
    m, order = caller.m, caller.m.arch.order.value

    def polled(*wanted: tuple[int, int], timeout: int = 0) -> tuple[int, list[int]]:
        m.write(0x30000, b"".join(fd.to_bytes(4, order, signed=True) + events.to_bytes(2, order) + b"\xff\xff" for fd, events in wanted))
        m.write(0x30100, bytes(16))
        if "poll" in caller.numbers:
            result = caller("poll", 0x30000, len(wanted), timeout)
        else:
            name = "ppoll" if "ppoll" in caller.numbers else "ppoll_time64"
            result = caller(name, 0x30000, len(wanted), 0 if timeout < 0 else 0x30100, 0, 0)
        return result, [int.from_bytes(m.read(0x30006 + 8 * n, 2), order) for n in range(len(wanted))]

    assert polled((0, 0), (1, 0), (2, 0)) == (0, [0, 0, 0])
    assert polled((0, 5), (1, 5), (2, 4), (7, 1), (-1, 5)) == (4, [1, 4, 4, 0x20, 0])
    with pytest.raises(GuestFault, match="waits for ever"):
        polled((0, 4), timeout=-1)


def test_files_are_none(caller: Caller) -> None:
    """Below /proc as where it is not mounted; any other is an error with its name."""
    def opened(name: bytes) -> int:
        caller.m.write(0x30000, name + b"\0")
        return caller("openat", -100 & caller.m.arch.mask, 0x30000, 0, 0)

    assert opened(b"/proc/self/maps") == -2
    with pytest.raises(GuestFault, match="openat of /etc/hosts, and there are no files"):
        opened(b"/etc/hosts")


def test_any_other_call_is_an_error_with_its_name(caller: Caller) -> None:
    with pytest.raises(GuestFault, match=r"system call socket \(\d+\), which is not served") as caught:
        caller("socket" if "socket" in caller.numbers else "socketcall", 1, 2, 3)
    assert caught.value.access == "interrupt"
    caller.calls["socket"] = lambda regs, *args: args[0] + 41
    assert caller("socket", 1) == 42
    with pytest.raises(BadArgument):
        caller.calls["socket"] = 3  # type: ignore[assignment]


@pytest.mark.parametrize("arch", [pytest.param(a, marks=pytest.mark.xfail(strict=True, reason="RISBLG in the engine"))
                                  if a == "s390x" else a for a in sorted(STATIC)])
def test_static_programs_run(arch: str) -> None:
    with UnicornMachine.load(STATIC[arch]) as m:
        calls = m.serve_system_calls()
        m.process(["prog", "0x28"], {"GREETING": "hi"})
        before = m.snapshot()
        for _ in range(2):
            m.run(timeout=30)
            assert (bytes(calls.output[1]), calls.status) == (b"2 prog 40 8 hi 1 10.00\n", 2)
            m.restore(before)
            assert (bytes(calls.output[1]), calls.status) == (b"", None)


#: calls a helper, its last argument: 1 where its result is 0 and carry set, 2 where neither is so
HELPED = (
    0xE92D4010,  # push {r4, lr}
    0xE12FFF33,  # blx r3
    0x23A01001,  # movcs r1, #1
    0x33A01000,  # movcc r1, #0
    0xE3500000,  # cmp r0, #0
    0x13A00002,  # movne r0, #2
    0xE1800001,  # orr r0, r0, r1
    0xE8BD8010,  # pop {r4, pc}
)


@pytest.mark.parametrize("arch", ["arm", "armeb"])
def test_arm_programs_find_the_kernel_s_helpers(arch: str) -> None:
    """The kernel's user helpers, as Documentation/arch/arm/kernel_user_helpers.rst has them."""
    code = b"".join(word.to_bytes(4, "little") for word in HELPED)
    with UnicornMachine.from_code(code, arch=arch, base=BASE) as m:
        m.map(0x30000, 0x1000)
        order = m.arch.order.value

        def exchanged(helper: int, *args: int) -> bool:
            """Call a helper. Return True where it says that it has exchanged a word."""
            kept = [f"r{n}" for n in range(4, 12)]
            for name in kept:
                m.regs[name] = BASE + int(name[1:])
            result = m.call(BASE, *args, helper)
            assert all(m.regs[name] == BASE + int(name[1:]) for name in kept)
            assert result in (1, 2)
            return result == 1

        with pytest.raises(GuestFault):
            m.call(0xFFFF0FE0)
        m.serve_system_calls()
        m.serve_system_calls()
        m.process()
        version = int.from_bytes(m.read(0xFFFF0FFC, 4), order)
        assert version >= 5  # the first that exchanges 64 bits
        m.set_thread_pointer(0x12345678)
        assert m.call(0xFFFF0FE0) == 0x12345678
        m.call(0xFFFF0FA0)
        for old, new in ((7, 8), (8, 0xFFFFFFFF), (0xFFFFFFFF, 1), (1, 0)):
            m.write(0x30000, old.to_bytes(4, order))
            for other in (old + 1, old - 1, old ^ 0x80000000):
                assert not exchanged(0xFFFF0FC0, other & 0xFFFFFFFF, new, 0x30000)
                assert m.read(0x30000, 4) == old.to_bytes(4, order)
            assert exchanged(0xFFFF0FC0, old, new, 0x30000)
            assert m.read(0x30000, 4) == new.to_bytes(4, order)
        value, wanted = 0x123456789ABCDEF0, 0x0FEDCBA987654321
        m.write(0x30008, value.to_bytes(8, order) + wanted.to_bytes(8, order))
        for other in (value ^ 1, value ^ 1 << 32, value ^ 1 << 63):
            m.write(0x30018, other.to_bytes(8, order))
            assert not exchanged(0xFFFF0F60, 0x30008, 0x30010, 0x30018)
            assert m.read(0x30018, 8) == other.to_bytes(8, order)
        m.write(0x30018, value.to_bytes(8, order))
        assert exchanged(0xFFFF0F60, 0x30008, 0x30010, 0x30018)
        assert m.read(0x30018, 8) == wanted.to_bytes(8, order)
        with Kprobes(m) as k, k.kprobe(addr=0xFFFF0FC0) as probe:
            m.call(0xFFFF0FC0, 1, 2, 0x30000)
            assert probe.nhit == 1


def test_what_is_mapped_there_stays() -> None:
    with UnicornMachine.from_code(bytes(0x100), arch="arm", base=BASE) as m:
        m.map(0xFFFF0000, 0x1000)
        m.write(0xFFFF0FE0, b"vectors")
        m.serve_system_calls()
        assert m.read(0xFFFF0FE0, 7) == b"vectors"


def test_other_interrupts_stay_what_they_were() -> None:
    with UnicornMachine.from_code("mov eax, edi; xor edx, edx; div esi; ret", arch="x86_64", base=BASE,
                                  symbols={"f": BASE}) as m:
        m.serve_system_calls()
        m.serve_system_calls()
        with pytest.raises(GuestFault, match="division"):
            m.call("f", 1, 0)
    with UnicornMachine.from_code(bytes(16), arch="cortexm", base=BASE) as m, pytest.raises(Unsupported):
        m.serve_system_calls()


def test_hostile_guests_take_no_more_than_they_may() -> None:
    caller = Caller("x86_64")
    with caller.m as m:
        m.map(0x100000, 0x200000)
        for _ in range(MOST_OUTPUT // 0x100000 + 8):
            caller("write", 1, 0x100000, 1 << 63)
        assert len(caller.calls.output[1]) == MOST_OUTPUT
        total = 0
        while (address := caller("mmap", 0, 1 << 26, 3, 0x22, -1, 0)) > 0:
            total += 1 << 26
        assert address == -12 and total <= MOST_MEMORY
        for n in range(2000):
            choose = random.Random(n)
            name = choose.choice(sorted(set(ServedSystemCalls.keys(caller.calls)) & caller.numbers.keys()))
            arguments = [choose.choice([0, 1, -1, 0x100000, 0x30000, 1 << 63, choose.getrandbits(64)]) for _ in range(6)]
            if name in ("mprotect", "arch_prctl", "exit", "exit_group"):
                continue
            try:
                assert -4096 < caller(name, *arguments) < 1 << 63
            except GuestFault as fault:
                said = {**dict.fromkeys(("newfstatat", "fstatat64", "statx"), "which is not served"),
                        **dict.fromkeys(("open", "openat"), "there are no files"),
                        **dict.fromkeys(("poll", "ppoll", "ppoll_time64"), "waits for ever")}
                assert said.get(name, "waits for another thread") in str(fault)


def test_a_guest_cannot_unmap_what_is_the_library_s(caller: Caller) -> None:
    for start, end in list(caller.m.regions()):
        assert caller("munmap", start, end - start) == -22
    assert caller("getpid") == 1


def test_the_command_serves_them(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(STATIC["riscv64"])
    with UnicornMachine.load(program) as m:
        entry = m.regs.pc
    words = ["trace", str(program), "-e", f"p {entry:#x}", "--syscalls", "--", "0x28"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert " 40 8 " in done.output and "guest: exit(2)" in done.output
    done = CliRunner().invoke(main, [*words[:-2], "--run"])  # it counts its arguments: argv[0] only
    assert "guest: exit(" in done.output, done.output
    words.remove("--syscalls")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and "interrupt" in done.output
