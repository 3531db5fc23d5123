"""UnicornMachine.attach(uc): an engine that belongs to somebody else, who goes on calling uc.emu_start()."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import unicorn
from scenes import PROGRAMS, assembled, hook
from unicorn import arm64_const, mips_const, x86_const

from kprobes import GuestFault, Jprobe, Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.testing import Recorder

BASE, STACK, DATA, BACK = 0x10000, 0x200000, 0x300000, 0x400000
UNMAPPED = 0x500000


class Owner:
    """Somebody's engine: text, stack, data, a place to return to, and a call() of his own making."""

    def __init__(self, name: str, **more: str) -> None:
        self.name = name
        x86 = name == "x86_64"
        self.uc = (unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64) if x86
                   else unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM))
        self.pc, self.sp, self.argument, self.result = (
            (x86_const.UC_X86_REG_RIP, x86_const.UC_X86_REG_RSP, x86_const.UC_X86_REG_RDI, x86_const.UC_X86_REG_RAX)
            if x86 else
            (arm64_const.UC_ARM64_REG_PC, arm64_const.UC_ARM64_REG_SP, arm64_const.UC_ARM64_REG_X0,
             arm64_const.UC_ARM64_REG_X0))
        self.code, self.symbols = assembled(name, {**PROGRAMS[name], **more}, BASE)
        self.uc.mem_map(BASE, 0x2000)
        self.uc.mem_write(BASE, self.code)
        self.uc.mem_map(STACK, 0x10000, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        self.uc.mem_map(DATA, 0x1000, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        self.uc.mem_map(BACK, 0x1000)

    def at(self, function: str) -> int:
        return self.symbols[function][0]

    def call(self, function: str, argument: int = 0, **bounds: int) -> int:
        """As fuzzers do it: registers, stack, emu_start."""
        uc, sp = self.uc, STACK + 0x8000
        uc.reg_write(self.argument, argument)
        if self.name == "x86_64":
            sp -= 8
            uc.mem_write(sp, BACK.to_bytes(8, "little"))
        else:
            uc.reg_write(arm64_const.UC_ARM64_REG_X30, BACK)
        uc.reg_write(self.sp, sp)
        uc.emu_start(self.at(function), BACK, **bounds)
        return int(uc.reg_read(self.result))

    def text(self) -> bytes:
        return bytes(self.uc.mem_read(BASE, len(self.code)))

    def regions(self) -> list[tuple[int, int, int]]:
        return sorted(self.uc.mem_regions())


@pytest.fixture(params=["x86_64", "arm64"])
def owner(request: pytest.FixtureRequest) -> Owner:
    return Owner(request.param)


@pytest.fixture
def m(owner: Owner) -> UnicornMachine:
    return UnicornMachine.attach(owner.uc, symbols=owner.symbols)


@pytest.fixture
def k(m: UnicornMachine, owner: Owner) -> Iterator[Kprobes]:
    with Kprobes(m) as k:
        yield k
    assert owner.text() == owner.code


# --- hits


def test_the_architecture_is_recognized(m: UnicornMachine, owner: Owner) -> None:
    assert m.arch.name == owner.name
    assert m.symbols["twice"].address == owner.at("twice")


def test_probes_are_hit_in_the_owners_runs(owner: Owner, k: Kprobes) -> None:
    r = Recorder()
    k.register_kprobe(r.both("a", symbol_name="inc"))
    k.register_kretprobe(Kretprobe(symbol_name="twice", handler=r.returns("twice"), entry_handler=r.entry("twice")))
    k.register_jprobe(Jprobe(symbol_name="twice", entry=r.mirror("twice", 1)))
    for _ in range(2):
        assert owner.call("deep", 4) == 6
        assert r.take() == ["entry twice", "mirror twice 0x4", *["pre a", "post a"] * 2, "return twice"]
        assert owner.uc.reg_read(owner.pc) == BACK


@pytest.mark.parametrize("by", ["machine", "owner"])
def test_a_handler_survives_an_undefined_instruction_in_a_run_of_its_own(by: str) -> None:
    owner = Owner("x86_64", undefined="ud2; ret")
    m, failed = UnicornMachine.attach(owner.uc, symbols=owner.symbols), []

    def fail(p: Any, regs: Any) -> None:
        state = {name: regs[name] for name in ("rax", "rdi", "rsp")}
        with pytest.raises(GuestFault if by == "machine" else unicorn.UcError):
            m.call("undefined") if by == "machine" else owner.uc.emu_start(owner.at("undefined"), BACK)
        for name, value in state.items():
            regs[name] = value
        failed.append(True)

    with Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="inc", pre_handler=fail))
        for _ in range(4):
            assert owner.call("deep", 4) == 6
        assert probe.optimized
    assert len(failed) == 8
    with pytest.raises(unicorn.UcError):
        owner.call("undefined")


def test_without_probes_nothing_changes(owner: Owner, m: UnicornMachine) -> None:
    before = owner.regions()
    k = Kprobes(m)
    assert owner.call("deep", 4) == 6
    assert owner.text() == owner.code
    k.close()
    assert owner.regions() == before


def test_probes_added_between_runs(owner: Owner, k: Kprobes) -> None:
    assert owner.call("probed", 4) == 7
    p = Kprobe(symbol_name="probed")
    k.register_kprobe(p)
    assert owner.call("probed", 4) == 7
    k.unregister_kprobe(p)
    assert owner.call("probed", 4) == 7
    assert p.nhit == 1


def test_probes_added_during_a_run(owner: Owner, k: Kprobes) -> None:
    """From a handler, and from a hook of the owner's."""
    r = Recorder()
    todo = [lambda: k.register_kprobe(r.both("late", symbol_name="inc"))]
    k.register_kprobe(Kprobe(symbol_name="twice", pre_handler=lambda p, regs: todo.pop()() if todo else None))
    assert owner.call("deep", 4) == 6
    assert r.take() == ["pre late", "post late"] * 2

    def on_code(uc: unicorn.Uc, address: int, size: int, user: Any) -> None:
        if address == owner.at("deep") and todo:
            todo.pop()()

    todo.append(lambda: k.register_kprobe(r.both("later", symbol_name="inc")))
    owner.uc.hook_add(unicorn.UC_HOOK_CODE, on_code)
    assert owner.call("deep", 4) == 6
    assert r.take() == ["pre later", "pre late", "post later", "post late"] * 2


def test_the_machine_can_run_the_guest_too(owner: Owner, m: UnicornMachine, k: Kprobes) -> None:
    p = Kprobe(symbol_name="inc")
    k.register_kprobe(p)
    owner.uc.reg_write(owner.sp, STACK + 0x8000)
    assert m.call("twice", 4) == 6
    assert owner.call("twice", 4) == 6
    assert p.nhit == 4


def test_a_guest_call_from_a_handler(owner: Owner, m: UnicornMachine, k: Kprobes) -> None:
    results: list[int] = []
    k.register_kprobe(Kprobe(symbol_name="twice", pre_handler=lambda p, regs: results.append(m.call("probed", 1))))
    inner = Kprobe(symbol_name="probed")
    k.register_kprobe(inner)
    assert owner.call("deep", 4) == 6
    assert results == [4]
    assert (inner.nhit, inner.nmissed) == (0, 1)


def test_a_guest_mirror(owner: Owner, k: Kprobes) -> None:
    k.register_jprobe(Jprobe(symbol_name="inc", entry="mirror"))
    assert owner.call("twice", 4) == 6


# --- the owner's hooks


def test_the_owners_code_hook_sees_the_guest_go_on(owner: Owner, k: Kprobes) -> None:
    """His hooks are called as ever; out-of-line copies show as code elsewhere."""
    seen: list[int] = []
    owner.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, address, size, user: seen.append(address), begin=BASE,
                      end=BASE + 0x1FFF)
    owner.call("deep", 4)
    bare = list(seen)
    seen.clear()
    k.register_kprobe(Kprobe(symbol_name="twice", post_handler=lambda *_: None))
    assert owner.call("deep", 4) == 6
    assert seen == bare


def test_the_owners_memory_hook(owner: Owner, k: Kprobes) -> None:
    """A hook that maps memory on demand works for a displaced instruction as for any other."""
    mapped: list[int] = []

    def on_unmapped(uc: unicorn.Uc, access: int, address: int, size: int, value: int, user: Any) -> bool:
        mapped.append(address)
        uc.mem_map(address & -0x1000, 0x1000)
        uc.mem_write(address, (77).to_bytes(4, "little"))
        return True

    owner.uc.hook_add(unicorn.UC_HOOK_MEM_READ_UNMAPPED, on_unmapped)
    r = Recorder()
    k.register_kprobe(r.both("f", symbol_name="fetch"))
    assert owner.call("fetch", UNMAPPED) == 77
    assert mapped == [UNMAPPED]
    assert r.take() == ["pre f", "post f"]


def test_the_owner_stops_the_run_and_goes_on(owner: Owner, k: Kprobes) -> None:
    p = Kprobe(symbol_name="probed", pre_handler=lambda p, regs: owner.uc.emu_stop(), post_handler=lambda *_: None)
    k.register_kprobe(p)
    owner.call("probed", 4)
    for _ in range(5):
        if owner.uc.reg_read(owner.pc) == BACK:
            break
        assert 0 < owner.uc.reg_read(owner.pc) - BASE < len(owner.code)  # never in our pages
        owner.uc.emu_start(owner.uc.reg_read(owner.pc), BACK)
    assert owner.uc.reg_read(owner.pc) == BACK
    assert owner.uc.reg_read(owner.result) == 7
    assert p.nhit == 1


def test_the_owners_count_and_timeout(owner: Owner, k: Kprobes) -> None:
    """Whatever of his bounds ends a run, the guest can go on, and each probe is hit once per execution."""
    p = Kprobe(symbol_name="probed", post_handler=lambda *_: None)
    k.register_kprobe(p)
    owner.call("probed", 4, count=1)
    for _ in range(20):
        if owner.uc.reg_read(owner.pc) == BACK:
            break
        owner.uc.emu_start(owner.uc.reg_read(owner.pc), BACK, count=1)
    assert owner.uc.reg_read(owner.result) == 7
    assert p.nhit == 1
    assert owner.call("probed", 4, timeout=10_000_000) == 7
    assert p.nhit == 2


def test_an_owners_run_ends_under_a_jump() -> None:
    """Where a probe's jump would stand, that stands there before and afterwards."""
    owner = Owner("x86_64", straight="nop; nop; nop; nop; nop; nop; nop; ret")
    at = owner.at("straight")
    with Kprobes(UnicornMachine.attach(owner.uc, symbols=owner.symbols)) as k:
        k.register(probe := Kprobe(addr=at, pre_handler=lambda p, regs: None))
        for n in range(1, 6, 2):
            owner.uc.emu_start(at, at + 3)
            assert (owner.uc.reg_read(owner.pc), probe.nhit) == (at + 3, n)
            owner.call("straight")
            assert (probe.nhit, probe.optimized) == (n + 1, True)


def test_abandoned_in_a_slot(owner: Owner, k: Kprobes) -> None:
    """The owner stops while a displaced instruction is due, and starts something else: that hit never ends."""
    p = Kprobe(symbol_name="probed", pre_handler=lambda p, regs: owner.uc.emu_stop(), post_handler=lambda *_: None)
    other = Kprobe(symbol_name="inc")
    k.register_kprobes([p, other])
    owner.call("probed", 4)
    assert owner.call("twice", 4) == 6
    assert (other.nhit, other.nmissed) == (2, 0)


# --- exceptions and faults


class Oops(Exception):
    """Raised by handlers."""


@pytest.mark.parametrize("role", ["pre_handler", "post_handler"])
def test_handler_exceptions_come_out_of_emu_start(owner: Owner, k: Kprobes, role: str) -> None:
    def raising(*_: Any) -> None:
        raise Oops

    p = Kprobe(symbol_name="inc", **{role: raising})
    k.register_kprobe(p)
    with pytest.raises(Oops) as raised:
        owner.call("twice", 4)
    assert "raising" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    behind = owner.at("inc") + k.get_kprobe(owner.at("inc")).insn.size
    assert owner.uc.reg_read(owner.pc) == (owner.at("inc") if role == "pre_handler" else behind)
    assert k.idle
    k.unregister_kprobe(p)
    assert owner.call("twice", 4) == 6


def test_exceptions_of_return_handlers(owner: Owner, k: Kprobes) -> None:
    def raising(ri: Any, regs: Any) -> None:
        raise Oops

    r = Kretprobe(symbol_name="inc", handler=raising)
    k.register_kretprobe(r)
    with pytest.raises(Oops):
        owner.call("inc", 4)
    assert owner.uc.reg_read(owner.pc) == BACK
    r.handler = None
    assert owner.call("twice", 4) == 6


@pytest.mark.parametrize("post", [True, False])
def test_faults_are_at_home(owner: Owner, k: Kprobes, post: bool) -> None:
    """The engine's own error, as without us; its pc is the instruction's own address."""
    p = Kprobe(symbol_name="fetch", post_handler=(lambda *_: None) if post else None)
    k.register_kprobe(p)
    for _ in range(2):
        with pytest.raises(unicorn.UcError) as raised:
            owner.call("fetch", UNMAPPED)
        assert raised.value.errno == unicorn.UC_ERR_READ_UNMAPPED
        assert owner.uc.reg_read(owner.pc) == owner.at("fetch")
        assert k.idle
    owner.uc.mem_write(DATA, (5).to_bytes(4, "little"))
    assert owner.call("fetch", DATA) == 5
    assert p.nhit == 3


@pytest.mark.parametrize("post", [True, False])
def test_fault_handlers_are_asked(owner: Owner, k: Kprobes, post: bool) -> None:
    asked: list[Any] = []

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        asked.append((regs.pc, trapnr, regs.fault.access))
        regs.set_arg(0, DATA)
        return 1

    owner.uc.mem_write(DATA, (5).to_bytes(4, "little"))
    k.register_kprobe(Kprobe(symbol_name="fetch", fault_handler=fault,
                             post_handler=(lambda *_: None) if post else None))
    assert owner.call("fetch", UNMAPPED) == 5
    assert asked == [(owner.at("fetch"), 11, "read")]


def test_a_fault_where_there_is_no_probe(owner: Owner, k: Kprobes) -> None:
    k.register_kprobe(Kprobe(symbol_name="inc"))
    with pytest.raises(unicorn.UcError) as raised:
        owner.call("fetch", UNMAPPED)
    assert raised.value.errno == unicorn.UC_ERR_READ_UNMAPPED
    assert owner.uc.reg_read(owner.pc) == owner.at("fetch")


def test_faults_in_the_machines_own_runs_are_guest_faults(owner: Owner, m: UnicornMachine, k: Kprobes) -> None:
    owner.uc.reg_write(owner.sp, STACK + 0x8000)
    k.register_kprobe(Kprobe(symbol_name="fetch"))
    with pytest.raises(GuestFault) as raised:
        m.call("fetch", UNMAPPED)
    assert (raised.value.pc, raised.value.access) == (owner.at("fetch"), "read")


# --- the guest's own breakpoints

BREAK = {"x86_64": "int3; ret", "arm64": "brk #0; ret"}


def trap_owner(name: str) -> Owner:
    return Owner(name, own=BREAK[name])


#: a system call, and behind it an instruction that adds 1 to the argument register, and a nop: (engine, register, code,
#: its offset)
SYSTEM_CALLS = {
    "x86_64": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64, x86_const.UC_X86_REG_RDI, "cd80 48ffc7 90", 2),
    "arm64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, arm64_const.UC_ARM64_REG_X0, "010000d4 00040091 1f2003d5", 4),
    "mipsel": (unicorn.UC_ARCH_MIPS, unicorn.UC_MODE_MIPS32, mips_const.UC_MIPS_REG_A0,
               "0c000000 01008424 00000000 00000000", 4),
}


@pytest.mark.parametrize("name", SYSTEM_CALLS)
def test_the_owners_hook_is_told_whose_an_interrupt_is(name: str) -> None:
    """Some guests' breakpoints are interrupts of the same number, or at the same pc, as a system call before them."""
    kind, mode, register, text, offset = SYSTEM_CALLS[name]
    uc, code = unicorn.Uc(kind, mode), bytes.fromhex(text)
    uc.mem_map(BASE, 0x1000)
    uc.mem_write(BASE, code)
    m = UnicornMachine.attach(uc, arch=name)
    mine: list[bool] = []

    def on_interrupt(uc: unicorn.Uc, number: int, user: Any) -> None:
        mine.append(not m.is_breakpoint(number))
        if mine[-1]:
            uc.reg_write(register, 41)

    uc.hook_add(unicorn.UC_HOOK_INTR, on_interrupt)
    uc.emu_start(BASE, BASE + offset + 4 if name != "x86_64" else BASE + 5)
    assert (uc.reg_read(register), mine) == (42, [True])
    mine.clear()
    with Kprobes(m) as k:
        p = Kprobe(addr=BASE + offset, post_handler=lambda p, regs, flags: None)
        k.register_kprobe(p)
        uc.emu_start(BASE, BASE + offset + 4 if name != "x86_64" else BASE + 5)
        assert (uc.reg_read(register), mine, p.nhit) == (42, [True, False, False], 1)  # probepoint and slot end
    assert not m.is_breakpoint()


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_a_breakpoint_of_the_guests_own_reaches_the_owners_hook(name: str) -> None:
    """With and without probes he sees the same of it. The engine calls every hook: he is shown our breakpoints, too."""
    owner = trap_owner(name)
    seen: list[tuple[int, int]] = []

    def on_interrupt(uc: unicorn.Uc, number: int, user: Any) -> None:
        pc = uc.reg_read(owner.pc)
        if 0 <= pc - owner.at("own") <= 4:
            seen.append((number, pc))
            uc.reg_write(owner.pc, owner.at("own") + (1 if name == "x86_64" else 4))

    owner.uc.hook_add(unicorn.UC_HOOK_INTR, on_interrupt)
    owner.call("own")
    bare = list(seen)
    assert len(bare) == 1
    with Kprobes(UnicornMachine.attach(owner.uc, symbols=owner.symbols)) as k:
        p = Kprobe(symbol_name="inc", post_handler=lambda *_: None)
        k.register_kprobe(p)
        seen.clear()
        owner.call("own")
        assert seen == bare
        seen.clear()
        assert owner.call("twice", 4) == 6
        assert p.nhit == 2
        assert seen == []


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_a_breakpoint_of_the_guests_own_without_a_hook(name: str) -> None:
    """The engine's error, as without us."""
    owner = trap_owner(name)
    errors = []
    with pytest.raises(unicorn.UcError) as raised:
        owner.call("own")
    errors.append((raised.value.errno, owner.uc.reg_read(owner.pc)))
    with Kprobes(UnicornMachine.attach(owner.uc, symbols=owner.symbols)) as k:
        k.register_kprobe(Kprobe(symbol_name="inc"))
        with pytest.raises(unicorn.UcError) as raised:
            owner.call("own")
        errors.append((raised.value.errno, owner.uc.reg_read(owner.pc)))
        assert owner.call("twice", 4) == 6
    assert errors[0][0] == unicorn.UC_ERR_EXCEPTION
    assert errors[0] == errors[1]


# --- the end


def test_close_restores_everything(owner: Owner, m: UnicornMachine) -> None:
    regions, attributes = owner.regions(), dict(vars(owner.uc))
    r = Recorder()
    for _ in range(3):
        k = Kprobes(m)
        k.register_kprobe(r.both("a", symbol_name="inc"))
        k.register_kretprobe(Kretprobe(symbol_name="twice", handler=r.returns("r")))
        assert "emu_start" in vars(owner.uc)
        assert owner.call("twice", 4) == 6
        k.close()
        assert owner.text() == owner.code
        assert owner.regions() == regions
        assert "emu_start" not in vars(owner.uc)
        assert set(vars(owner.uc)) == set(attributes)
        assert r.take() == [*["pre a", "post a"] * 2, "return r"]
        assert owner.call("twice", 4) == 6
        assert r.take() == []


def test_close_in_a_handler(owner: Owner, m: UnicornMachine) -> None:
    """The engine is the owner's alone again when his run has ended."""
    regions, r = owner.regions(), Recorder()
    for _ in range(3):
        k = Kprobes(m)
        k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=lambda p, regs, k=k: k.close(),
                                 post_handler=r.post("post")))
        assert owner.call("twice", 4) == 6
        assert owner.text() == owner.code
        assert owner.regions() == regions
        assert "emu_start" not in vars(owner.uc)
    assert r.take() == []


def test_the_engine_may_be_closed_with_the_machine(owner: Owner) -> None:
    m = UnicornMachine.attach(owner.uc, symbols=owner.symbols)
    with m, Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="inc"))
        assert owner.call("inc", 4) == 5
    assert owner.call("inc", 4) == 5, "the owner's engine lives on"
    assert owner.text() == owner.code


def test_an_architecture_by_name() -> None:
    uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    assert UnicornMachine.attach(uc, arch="arm64").arch.name == "arm64"


def test_a_handler_hook_pair_of_both_worlds(owner: Owner, k: Kprobes) -> None:
    """The owner's hook on the very address of a probe: both are called, each once per execution."""
    lines: list[str] = []
    owner.uc.hook_add(unicorn.UC_HOOK_CODE, lambda *_: lines.append("owner"), begin=owner.at("inc"),
                      end=owner.at("inc"))
    k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=hook("pre", lines)))
    assert owner.call("twice", 4) == 6
    assert lines == ["owner", "pre"] * 2
