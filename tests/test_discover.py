"""Functions of stripped code: found, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from arches import ARCHES, RUNNABLE, programs_of
from arches import PROGRAMS as PROGRAMS_DIR

from kprobes import Kprobe, Kprobes, UnicornMachine, UnknownSymbol
from kprobes.arch import get
from kprobes.discover import Found
from kprobes.discover._frames import frame_ranges, index_starts
from kprobes.discover._search import _Search
from kprobes.discover._sweep import Sweep, Sweeper
from kprobes.image import EXPORTS, CodeLayout, read_elf
from kprobes.symbols import Symbols

PROGRAMS = [pytest.param(p, id=p.stem) for name in RUNNABLE for p in programs_of(name)]


def stripped(file: bytes) -> bytes:
    """An ELF file without its symbol table."""
    wide, order = file[4] == 2, "big" if file[5] == 2 else "little"

    def number(at: int, size: int) -> int:
        return int.from_bytes(file[at : at + size], order)  # type: ignore[arg-type]

    first = number(40, 8) if wide else number(32, 4)
    size, count = (number(58, 2), number(60, 2)) if wide else (number(46, 2), number(48, 2))
    changed = bytearray(file)
    for at in range(first, first + size * count, size):
        if number(at + 4, 4) == 2:  # SHT_SYMTAB
            changed[at + 4 : at + 8] = bytes(4)
    assert changed != file
    return bytes(changed)


def truth_of(machine: UnicornMachine) -> dict[int, int]:
    """Functions that symbols name: address -> bytes."""
    functions = [s for s in machine.symbols if s.kind == "func" and s.size]
    read, where = machine.read, machine.arch.pointers.code_address
    return {where(s.address | s.mode, read).addr: s.size for s in functions}


@pytest.mark.parametrize("program", PROGRAMS)
def test_stripped_programs(program: Path) -> None:
    """What calls lead to is found; what has no caller but a table, maybe."""
    with UnicornMachine.load(program) as named:
        truth = truth_of(named)
    with UnicornMachine.load(stripped(program.read_bytes())) as m:
        found = {f.address: f for f in m.discover()}
        right = found.keys() & truth.keys()
        print(program.stem, len(truth), len(found), len(right))
        assert len(right) > (0 if m.arch.name.startswith("riscv") else 0.55) * len(truth)
        assert len(right) > 0.85 * len(found)


@pytest.mark.parametrize(("name", "least"), [("cortexm-O2", 90), ("mipsel-O2", 75), ("ppc-O2", 100)])
def test_raw_images(name: str, least: int) -> None:
    program = PROGRAMS_DIR / "bin" / f"{name}.elf"
    image = read_elf(program)
    base = image.segments[0].addr
    memory = bytearray(image.segments[-1].addr + image.segments[-1].memsz - base)
    for segment in image.segments:
        memory[segment.addr - base : segment.addr - base + len(segment.data)] = segment.data
    with UnicornMachine.load(program) as named:
        truth, arch, entry = truth_of(named), named.arch.name, named.regs.pc | min(named.arch.traps.end)
    with UnicornMachine.load_raw(bytes(memory), arch=arch, base=base, entry=entry) as m:
        found = {f.address for f in m.discover()}
        assert len(found & truth.keys()) >= least and len(found & truth.keys()) > 0.85 * len(found)


def test_functions_of_mips_with_nops_in_delay_slots() -> None:
    """Zeros are a nop there; and a jump over a called function leads to another one."""
    code = "".join(["0bf00008 00000000",  # j start; its slot
                    "90830000 14600002 00000000 24840001 03e00008 00000000",  # lbu; bnez; nop; addiu; jr ra; nop
                    "0ff00002 00000000 1000fffd 00000000"])  # start: jal; nop; b; nop
    words = bytes.fromhex(code)
    with UnicornMachine.load_raw(words, arch="mips", base=0xBFC00000) as m:
        assert [(f.address, f.why) for f in m.discover()] == [
            (0xBFC00000, "header"), (0xBFC00008, "call"), (0xBFC00020, "jump")]


def test_a_function_ends_behind_its_last_instruction() -> None:
    """In a raw image, where strings follow; a computed jump may lead to more code."""
    code = ["0bf00008 00000000",  # j start; its slot
            "00801025 03e00008 24420001",  # move v0, a0; jr ra; addiu v0, v0, 1
            "00000000 00000000 00000000"]
    start = "0ff00002 00000000 {} 00000000"  # jal; nop; a jump; nop
    text = b"hello, world, this is text\0\0"
    for jump, more in (("03e00008", 0), ("03200008", len(text))):  # jr ra; jr t9
        words = bytes.fromhex("".join([*code, start.format(jump)])) + text
        with UnicornMachine.load_raw(words, arch="mips", base=0xBFC00000) as m:
            assert [(f.address - 0xBFC00000, f.size) for f in m.discover()] == [(0, 8), (8, 12), (0x20, 16 + more)]


@pytest.mark.parametrize(("code", "starts"), [
    ("0028 08bf 7047 10b5 0446 10bd", {0}),  # cmp r0, #0; it eq; bxeq lr; push {r4, lr}; mov r4, r0; pop {r4, pc}
    ("0028 1cbf 0120 7047 30b5 0446 30bd", {0}),  # cmp; itt ne; movne r0, #1; bxne lr; push {r4, r5, lr}; mov; pop
    ("0028 08bf 0120 7047 10b5 0446 10bd", {0, 8}),  # cmp; it eq; moveq r0, #1; bx lr; and another function
])  # fmt: skip
def test_a_return_in_an_it_block_ends_no_function(code: str, starts: set[int]) -> None:
    """`if (!x) return;`, and a frame that is made behind it."""
    with UnicornMachine.load_raw(bytes.fromhex(code), arch="cortexm", base=0x10000, entry=0x10001) as m:
        assert {f.address - 0x10000 for f in m.discover()} == starts


@pytest.mark.parametrize("mask", range(16))
def test_an_it_covers_what_it_makes_conditional(mask: int) -> None:
    """`Walking.covers` counts the instructions that `Walking.conditioned` finds: it knows bytes, and is exact where all
    have four."""
    arm = get("arm")
    walking = arm.walking
    assert walking.covers is not None
    assert walking.conditioned is not None
    it, nop = bytes([mask, 0xBF]), bytes.fromhex("aff30080")
    covered = walking.covers(arm.decode(it + nop, 1))
    behind = [walking.conditioned(arm.decode(nop, 1), it + distance * nop) for distance in range(4)]
    assert behind == [distance < covered for distance in range(4)]


@pytest.mark.parametrize("arch", ["ppc64", "ppc64le"])
@pytest.mark.parametrize("stub", ["f8410018 e9829350 7d8903a6 4e800420", "f8410018 3d82fffe e98c9350 7d8903a6 4e800420",
                                  "f8410018 3d620001 e98b9350 7d8903a6 4e800420"])
def test_a_linkers_stub_is_no_function(arch: str, stub: str) -> None:
    """A call of another module goes through it; the call behind that one leads to a function."""
    size = 4 * len(stub.split())
    words = f"{0x48000001 + 8 + 4:08x} {0x48000001 + 4 + 4 + size - 4 + 4:08x} 4e800020 {stub} 38600001 4e800020"
    order = "big" if arch == "ppc64" else "little"
    code = b"".join(int(word, 16).to_bytes(4, order) for word in words.split())  # type: ignore[arg-type]
    with UnicornMachine.load_raw(code, arch=arch, base=0x10000, entry=0x10000) as m:
        assert [f.address - 0x10000 for f in m.discover()] == [0, 12 + size]


@pytest.mark.parametrize("ranges", [[(0, 12), (12, 36)], [(0, 48)]], ids=["two entries", "one entry"])
@pytest.mark.parametrize("called", [False, True])
def test_an_error_exit_in_front_of_a_function_is_none(ranges: list[tuple[int, int]], called: bool) -> None:
    """A system call of glibc on MIPS: unwind tables begin an entry with the exit that it branches back to."""
    base, table_at = 0x10000, 0x20000
    code = bytes.fromhex("8f9982b8 03200008 00000000"  # lw t9, ...(gp); jr t9
                         "3c1c001a 279cf714 0399e021"  # the function makes its gp
                         "24020fa5 0000000c 14e0fff7 00000000 03e00008 00000000"  # li v0; syscall; bnez a3, the exit; jr ra
                         + ("0411fff3 00000000 03e00008 00000000" if called else ""))  # bal the exit: a function after all
    table = bytes.fromhex("0000000c 00000000 01 00 01 04 1f 000000")
    for start, size in ranges:
        fields = 12, len(table) + 4, base + start, size
        table += b"".join(number.to_bytes(4, "big") for number in fields)
    with UnicornMachine.from_code(code, arch="mips", base=base) as m:
        m.map(table_at, 0x1000)
        m.write(table_at, table)
        layout = CodeLayout(text=((base, base + len(code)),), frames=(table_at, len(table)))
        starts = {f.address - base for f in _Search(m, layout).functions()} - {48}
    assert starts == ({start for start, _ in ranges} if called else {12})


def test_a_pool_that_only_later_code_reads_is_no_function() -> None:
    """Of a long function on 32-bit Arm: constants in its middle, behind a return, that decode as instructions."""
    words = ["e3500000 0a000003 e3a00001 e12fff1e",  # cmp r0, #0; beq behind the pool; mov r0, #1; bx lr
             "e0811002 e0822003",  # the pool
             "e51f1010 e51f2010 e0810002 e12fff1e"]  # ldr r1, its first word; ldr r2, its second; add; bx lr
    code = b"".join(int(word, 16).to_bytes(4, "little") for word in " ".join(words).split())
    with UnicornMachine.from_code(code, arch="arm", base=0x10000, symbols={"f": 0x10000}) as m:
        layout = CodeLayout(text=((0x10000, 0x10000 + len(code)),))
        assert [f.address for f in _Search(m, layout).functions()] == [0x10000]


def test_what_is_found_can_be_probed() -> None:
    program = next(p for p in programs_of("x86_64") if p.stem.endswith("O2"))
    with UnicornMachine.load(program) as named:
        address = named.symbols["test_atomics"].address
        result = named.call("test_atomics", 3)
    with UnicornMachine.load(stripped(program.read_bytes())) as m:
        before = len(m.symbols)
        found: dict[int, Found] = {f.address: f for f in m.discover()}
        assert len(m.symbols) > before and all(f.why for f in found.values())
        symbol = m.symbols.at(address)[0]
        with Kprobes(m) as k:
            hits = []
            k.register(Kprobe(symbol_name=symbol.name, pre_handler=lambda p, regs: hits.append(regs.pc)))
            assert m.call(symbol.name, 3) == result
            assert hits == [symbol.address] and symbol.address in found
        assert len(m.discover()) == len(found)


def test_tables_that_lie_end() -> None:
    """Whatever is in unwind tables, reading them ends and raises nothing."""
    rng = random.Random(7)
    sound = bytes.fromhex("1400000000000000017a5200017810011b0c070890010000" "100000001c000000000100001000000000000000")
    assert list(frame_ranges(sound, 0x1000, 64, "little")) == [(0x1120, 0x1130)]
    for n in range(500):
        table = bytearray(sound if n % 2 else rng.randbytes(200))
        for _ in range(3):
            table[rng.randrange(len(table))] = rng.randrange(256)
        for order in ("little", "big"):
            assert len(list(frame_ranges(bytes(table), 0x1000, 64, order))) < 50
            assert all(0 <= start < 1 << 32 for start in index_starts(bytes(table), 0x1000, order))


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_no_reason_to_fail(seed: int) -> None:
    noise = random.Random(seed).randbytes(0x3000)
    for arch in ("x86_64", "arm", "cortexm", "mips", "s390x"):
        with UnicornMachine.load_raw(noise, arch=arch, base=0x10000, entry=0x10000) as m:
            assert all(0x10000 <= f.address < 0x13000 for f in m.discover())


@pytest.mark.parametrize("format", EXPORTS)
def test_names_come_back(format: str, tmp_path: Path) -> None:
    with UnicornMachine.load("examples/demo.x86_64") as m:
        text, named = m.symbols.export(format), {(s.name, s.address) for s in m.symbols if s.kind != "import"}
    (tmp_path / "names").write_text(text)
    symbols = Symbols()
    symbols.load(tmp_path / "names")
    assert {(s.name, s.address) for s in symbols} == named
    kinds = {s.name: s.kind for s in symbols}
    assert kinds["fib"] == "func"


def test_addresses_are_taken_for_names() -> None:
    with UnicornMachine.load("examples/demo.x86_64") as m, Kprobes(m) as k:
        fib = m.symbols["fib"].address
        assert k.check(f"{fib:#x}").addr == fib
        with k.graph(f"{fib:#x}") as graph:
            m.call("fib", 2)
        assert "fib" in str(graph) and m.symbols.place(f"{fib:#x}").name == "fib"
        assert m.symbols.place("0x12").address == 0x12
        with pytest.raises(UnknownSymbol):
            m.symbols.place("0xtable")


class _Forgetful(Sweeper):
    """Decodes each instruction anew."""

    def kind(self, code: bytes, offset: int, mode: int) -> None:
        return None


@pytest.mark.parametrize("arch", ARCHES)
def test_instructions_that_begin_alike_tell_the_same(arch: str) -> None:
    """What is remembered of the first bytes of instructions changes nothing: on code, and on bytes of any kind, half of
    which are such as came before."""
    guest = get(arch)
    rng = random.Random(arch)
    seen = [rng.randbytes(4) for _ in range(40)]
    text = b"".join(rng.choice(seen)[: rng.choice((1, 2, 4))] + rng.randbytes(rng.choice((0, 0, 2, 4))) for _ in range(800))
    for mode in guest.traps.end:
        sweeps = []
        for kind in Sweeper, _Forgetful:
            sweeper = kind(guest, Sweep())
            sweeper.run(text, 0x10000, 0x10000 + len(text) - 64, {}, lambda address: 0, mode)
            sweeps.append(sweeper.sweep)
        assert sweeps[0] == sweeps[1] and sweeps[0].starts
