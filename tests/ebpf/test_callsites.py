"""Programs at call sites: who runs them when, what hostile guests and failing helpers do, engines that belong to
somebody else."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import unicorn

from kprobes import Kprobe, Kprobes, Program, UnicornMachine
from kprobes.programs import atprobe, native, site
from kprobes.programs.isa import (
    ADD,
    ALU64,
    ATOMIC,
    CALL,
    DW,
    EXIT,
    JEQ,
    JMP,
    LDX,
    MAP_VALUE,
    MEM,
    MOV,
    MUL,
    ST,
    STX,
    Instruction,
    K,
    X,
    lddw,
)
from kprobes.programs.maps import MapType, Spec, create

pytestmark = [pytest.mark.quick, pytest.mark.host_code, pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")]
pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import worlds  # noqa: E402

PARM1 = 8 * 112


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def i(opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> Instruction:
    return Instruction(opcode, dst, src, offset, imm)


def array(words: int = 8) -> Any:
    return create(Spec(type=MapType.ARRAY, name="out", key_size=4, value_size=8 * words, max_entries=1))


def word(m: Any, n: int = 0) -> int:
    return int.from_bytes(m.block.view[8 * n : 8 * n + 8], sys.byteorder)


def made(m: Any, *code: Any) -> Program:
    """A program whose r8 is the map's value and whose r6 is the context."""
    flat = [one for part in code for one in (part if isinstance(part, tuple) else (part,))]
    return Program.from_instructions([i(MOV | X | ALU64, 6, 1), *lddw(8, 0, MAP_VALUE, high=0), *flat,
                                      i(MOV | K | ALU64, 0), i(EXIT | JMP)], {"out": m})


def counts(m: Any, n: int = 0) -> Program:
    return made(m, i(MOV | K | ALU64, 1, imm=1), i(STX | ATOMIC | DW, 8, 1, 8 * n, ADD))


def logs(m: Any, n: int) -> Program:
    """Appends n to the number in the map's first word."""
    return made(m, i(LDX | MEM | DW, 1, 8, 0), i(MUL | K | ALU64, 1, imm=10), i(ADD | K | ALU64, 1, imm=n),
                i(STX | MEM | DW, 8, 1, 0))


@pytest.fixture
def scene() -> Any:
    with worlds.make_machine("x86_64") as m, Kprobes(m) as k:
        yield m, k


def test_several_programs_and_a_return_run_in_order_without_python(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    m, k = scene
    out = array()
    attached = [k.attach(logs(out, n), "tiny", retprobe=n == 3) for n in (1, 2, 3)]
    m.call("loop", 3, 7)  # the probepoint becomes a jump
    out[0] = bytes(64)
    monkeypatch.setattr(site.SiteProgram, "run", lambda *_: pytest.fail("a handler has run"))
    m.call("loop", 2, 7)
    assert word(out) == 213213
    assert [a.runs for a in attached] == [5, 5, 5]
    attached[0].detach()
    out[0] = bytes(64)
    m.call("loop", 1, 7)
    assert word(out) == 23
    assert [a.runs for a in attached] == [5, 6, 6]


def test_a_program_is_compiled_once(scene: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hits that a handler serves, the first one among them, run what call sites run."""
    m, k = scene
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    translated: list[str] = []
    monkeypatch.setattr(native, "translate", lambda ir, triple, translate=native.translate: (translated.append(ir),
        translate(ir, triple))[1])
    out = array()
    program = counts(out)
    with k.attach(program, "tiny") as a, k.attach(program, "loop"), k.attach(program, "tiny", retprobe=True):
        m.call("loop", 3, 7)
        m.cpu_task = lambda regs: 1
        m.call("loop", 3, 7)
        m.cpu_task = None
    assert len(translated) == 1
    assert a.runs == 6 and word(out) == 18


def test_what_a_helper_raises_in_a_handler_comes_out_of_the_run(scene: Any) -> None:
    m, k = scene
    out = array()
    program = made(out, i(MOV | X | ALU64, 1, 10), i(ADD | K | ALU64, 1, imm=-8), i(ST | MEM | DW, 10, 0, -8, 0),
                   i(MOV | K | ALU64, 2, imm=8),
                   i(CALL | JMP, imm=16))  # get_current_comm
    failed = RuntimeError("no task")
    with k.attach(program, "tiny") as a:
        a.probes["main"].optimize = False
        m.cpu_task = lambda regs: (_ for _ in ()).throw(failed)
        with pytest.raises(RuntimeError) as caught:
            m.call("loop", 3, 7)
        m.cpu_task = None
        assert caught.value is failed
        m.call("loop", 3, 7)


def test_a_handler_beside_programs_takes_its_turn(scene: Any) -> None:
    m, k = scene
    out = array()
    seen: list[int] = []
    first = k.attach(logs(out, 1), "tiny")
    with k.kprobe("tiny", pre_handler=lambda p, regs: seen.append(word(out))):
        second = k.attach(logs(out, 2), "tiny")
        m.call("loop", 2, 7)
    assert seen == [2, 212]
    m.call("loop", 1, 7)
    assert word(out) == 212121
    assert (first.runs, second.runs) == (3, 3)


def test_what_only_counts_beside_a_program_asks_nobody(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    m, k = scene
    out = array()
    a, plain = k.attach(counts(out), "tiny"), Kprobe(symbol_name="tiny")
    k.register_kprobe(plain)
    m.call("loop", 1, 7)
    monkeypatch.setattr(site.SiteProgram, "run", lambda *_: pytest.fail("a handler has run"))
    m.call("loop", 2, 7)
    assert (word(out), a.runs, plain.nhit) == (3, 3, 3)


def test_calls_beyond_maxactive_run_the_entry_once_and_are_missed() -> None:
    """A recursion deeper than there are instances: host code runs the entry, and Python sees only that it is not
    followed."""
    code = bytes.fromhex("31c0 4885ff 740d 55 48ffcf e8f0ffffff 48ffc0 5d c3 c3".replace(" ", ""))
    # down: xor eax, eax; test rdi, rdi; je end; push rbp; dec rdi; call down; inc rax; pop rbp; ret; end: ret
    with UnicornMachine.from_code(code, arch="x86_64", base=0x10000, symbols={"down": 0x10000}) as m, Kprobes(m) as k:
        out = array()
        entry = k.attach(counts(out), "down")
        back = k.attach(counts(out, 1), "down", retprobe=True)
        probe: Any = next(iter(back))
        k.unregister(probe)
        probe.maxactive = 3
        k.register(probe)
        assert m.call("down", 10) == 10
        assert m.call("down", 10) == 10
        assert word(out) == entry.runs == 22
        assert word(out, 1) == probe.nreturned == 6
        assert probe.nmissed == 16


def test_tasks_are_left_to_python_and_counted_once(scene: Any) -> None:
    m, k = scene
    out = array()
    entry, back = k.attach(counts(out), "tiny"), k.attach(counts(out, 1), "tiny", retprobe=True)
    m.call("loop", 5, 7)
    m.cpu_task = lambda regs: 1
    m.call("loop", 5, 7)
    m.cpu_task = None
    m.call("loop", 5, 7)
    assert (word(out), entry.runs, word(out, 1), back.runs) == (15, 15, 15, 15)


def test_hits_in_a_nested_run_are_missed(scene: Any) -> None:
    m, k = scene
    out = array()
    a = k.attach(counts(out), "tiny")
    with k.kprobe("loop", pre_handler=lambda p, regs: m.call("tiny", 1, 2) and None):
        m.call("loop", 4, 7)
    assert (word(out), a.runs, a.missed) == (4, 4, 4)  # `loop` is where it goes round


def test_guest_memory_is_read_within_bounds(scene: Any) -> None:
    """Whatever the guest passes: over the end of a block, beyond the address space, nowhere, memory that was there
    once."""
    m, k = scene
    out = array()
    read = made(out, i(LDX | MEM | DW, 3, 6, PARM1), i(ST | MEM | DW, 10, 0, -8, -1), i(MOV | X | ALU64, 1, 10),
                i(ADD | K | ALU64, 1, imm=-8),
                i(MOV | K | ALU64, 2, imm=8), i(CALL | JMP, imm=113), i(STX | MEM | DW, 8, 0, 0),
                i(LDX | MEM | DW, 1, 10, -8), i(STX | MEM | DW, 8, 1, 8))
    k.attach(read, "tiny")
    m.call("loop", 3, 7)
    m.map(0x700000, 0x1000, "rw")
    m.write(0x700FF8, b"abcdefgh")
    fault = -14 & 2**64 - 1

    def at(address: int) -> tuple[int, bytes]:
        m.call("tiny", address, 0)
        return word(out), bytes(out.block.view[8:16])

    assert at(0x700FF8) == (0, b"abcdefgh")
    for address in (0x700FF9, 0x701000, 2**64 - 4, 2**64 - 8, 0, 0x6FFFFF, 1 << 63):
        assert at(address) == (fault, bytes(8)), hex(address)
    m.map(0x701000, 0x1000, "rw")  # now it goes on in another block
    assert at(0x700FFC) == (0, b"efgh" + bytes(4))
    m.unmap(0x700000, 0x2000)
    assert at(0x700FF8) == (fault, bytes(8))


def test_strings_end_at_a_nul_at_the_size_or_nowhere(scene: Any) -> None:
    m, k = scene
    out = array()
    read = made(out, i(LDX | MEM | DW, 3, 6, PARM1), i(MOV | X | ALU64, 1, 8), i(ADD | K | ALU64, 1, imm=8),
                i(MOV | K | ALU64, 2, imm=16), i(CALL | JMP, imm=115), i(STX | MEM | DW, 8, 0, 0))
    k.attach(read, "tiny")
    m.call("loop", 3, 7)
    m.map(0x700000, 0x1000, "rw")

    def at(address: int, text: bytes) -> tuple[int, bytes]:
        m.write(address, text)
        out[0] = bytes(64)
        m.call("tiny", address, 0)
        length = word(out)
        return length, bytes(out.block.view[8:24])

    assert at(0x700000, b"short\0") == (6, b"short".ljust(16, b"\0"))
    assert at(0x700100, b"exactly sixteen!!\0") == (16, b"exactly sixteen\0")
    assert at(0x7000FA, b"crosses line\0") == (13, b"crosses line".ljust(16, b"\0"))
    assert at(0x700FFB, b"last\0") == (5, b"last".ljust(16, b"\0"))
    assert at(0x700FFB, b"gone!") == (-14 & 2**64 - 1, bytes(16))


def test_what_a_helper_raises_comes_out_of_the_run(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    m, k = scene
    out = array()
    a = k.attach(made(out, i(CALL | JMP, imm=14), i(STX | MEM | DW, 8, 0, 0)), "tiny")
    m.call("loop", 3, 7)

    def broken(self: Any) -> int:
        raise ZeroDivisionError("in a helper")

    with monkeypatch.context() as patch:
        patch.setattr(atprobe.AtProbe, "pid_tgid", broken)
        with pytest.raises(ZeroDivisionError, match="in a helper"):
            m.call("loop", 3, 7)
    assert m.call("loop", 3, 7) == 8
    assert a.runs == 7


def test_an_engine_of_somebody_else() -> None:
    """Its memory is not ours: host code asks the engine."""
    uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    uc.mem_map(0x10000, 0x10000)
    uc.mem_map(0x40000, 0x1000)
    uc.mem_write(0x10000, worlds.SUBJECTS["x86_64"].code)
    uc.mem_write(0x40FF8, b"theirs!\0")
    tiny = worlds.SUBJECTS["x86_64"].at["tiny"]
    m = UnicornMachine.attach(uc, symbols={"loop": 0x10000, "tiny": 0x10000 + tiny})
    out = array()
    read = made(out, i(LDX | MEM | DW, 3, 6, PARM1 + 8), i(MOV | X | ALU64, 1, 8), i(MOV | K | ALU64, 2, imm=8),
                i(CALL | JMP, imm=113), i(JEQ | K | JMP, 0, 0, 1), i(STX | MEM | DW, 8, 0, 8))
    with Kprobes(m) as k:
        a = k.attach(read, "tiny")
        for address, text, error in ((0x40FF8, b"theirs!\0", 0), (0x40FF9, bytes(8), -14 & 2**64 - 1)):
            out[0] = bytes(64)
            uc.reg_write(unicorn.x86_const.UC_X86_REG_RSP, 0x1F000)
            uc.mem_write(0x1F000, (0x18000).to_bytes(8, "little"))
            uc.reg_write(unicorn.x86_const.UC_X86_REG_RDI, 4)
            uc.reg_write(unicorn.x86_const.UC_X86_REG_RSI, address)
            uc.emu_start(0x10000, 0x18000)
            assert (bytes(out.block.view[:8]), word(out, 1)) == (text, error)
        assert a.runs == 8
    uc.emu_stop()


def test_ten_thousand_programs_are_one_piece_of_code(scene: Any) -> None:
    """Attached a thousand times here: the code is shared, each has an environment of its own."""
    m, k = scene
    m.map(0x800000, 0x10000, "rwx")
    m.write(0x800000, worlds.SUBJECTS["x86_64"].filler * 1000)
    m.symbols.add("farm", 0x800000, 5000)
    out = array()
    program = made(out, i(MOV | X | ALU64, 1, 6), i(CALL | JMP, imm=174), i(STX | ATOMIC | DW, 8, 0, 0, ADD))
    for n in range(1000):
        k.attach(program, 0x800000 + 5 * n, cookie=n)
    a = k.attach(program, "tiny", cookie=1 << 32)
    m.call("loop", 5, 7)
    assert (word(out), a.runs) == (5 << 32, 5)
    m.write(0x800000 + 5000, b"\xc3")
    m.call(0x800000)
    assert word(out) == (5 << 32) + sum(range(1000))


@pytest.mark.long
def test_a_helper_detaches_the_programs_that_run(scene: Any) -> None:
    """Again and again: the one that called it goes on in memory that is still there."""
    m, k = scene
    attached: list[Any] = []
    out = array()

    def clock() -> int:
        for a in attached:
            a.detach()
        attached.clear()
        gc.collect()
        return 5

    for _ in range(20):
        timed = made(out, i(CALL | JMP, imm=5), i(STX | ATOMIC | DW, 8, 0, 0, ADD))
        attached[:] = [k.attach(counts(out, 1), "tiny"), k.attach(timed, "tiny", clock=clock),
                       k.attach(counts(out, 1), "tiny")]
        del timed
        m.call("loop", 3, 7)
        assert not attached
    assert word(out) == 100


def test_a_helper_closes_everything() -> None:
    with worlds.make_machine("x86_64") as m:
        before = bytes(m.read(worlds.BASE, 64))
        k, out = Kprobes(m), array()

        def clock() -> int:
            k.close()
            return 5

        a = k.attach(made(out, i(CALL | JMP, imm=5), i(STX | ATOMIC | DW, 8, 0, 0, ADD)), "tiny", clock=clock)
        assert m.call("loop", 5, 7) == 8
        assert (word(out), a.runs) == (5, 1)
        assert bytes(m.read(worlds.BASE, 64)) == before
        with Kprobes(m) as again:
            b = again.attach(counts(out, 1), "tiny")
            m.call("loop", 5, 7)
            assert (word(out, 1), b.runs) == (5, 5)


def test_a_program_does_not_keep_machines() -> None:
    program = counts(array())

    def use() -> weakref.ref[Any]:
        m = worlds.make_machine("x86_64")
        with Kprobes(m) as k:
            k.attach(program, "tiny")
            m.call("loop", 3, 7)
        return weakref.ref(m)

    used = use()
    gc.collect()
    assert used() is None


def test_unregistering_from_a_handler_elsewhere_in_the_same_run(scene: Any) -> None:
    m, k = scene
    out = array()
    a = k.attach(counts(out), "tiny")

    def handler(p: Kprobe, regs: Any) -> None:
        a.detach()

    m.call("loop", 3, 7)
    with k.kprobe("loop", pre_handler=handler):
        assert m.call("loop", 3, 7) == 8
    assert (word(out), a.runs) == (3, 3)
