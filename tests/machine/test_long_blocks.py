"""Long straight lines of code, of every kind of instruction, on every guest: nothing that is loaded kills the
interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from arches import HERE, RUNNABLE, cases_of, programs_of

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes import arch as architectures
from kprobes.machine.unicorn import memory
from kprobes.machine.unicorn.host.translator import bounded

MIPS = [arch for arch in RUNNABLE if arch.startswith("mips")]
LENGTHS = (341, 378, 400, 5000)
#: Without host code the engine's translator runs out of temporaries (docs/engine.md): longer lines of x87 instructions,
#: of some of SSE's, of m68k's NOT and of what touches its CCR still kill the process.
LIMITS = {} if bounded() else {"i386": (100, 231), "x86_64": (100, 231), "m68k": (341, 400, 473)}
#: What takes most of a translator's temporaries.
WORST = {"i386": ["d8c0", "660f70c000", "d50a"], "x86_64": ["d8c0", "660f70c000"], "m68k": ["4680", "44c0"],
         **{arch: ["46000000" if not arch.endswith("el") else "00000046"] for arch in MIPS if "64" in arch}}

#: Runs lines of code, each in a machine of its own, in a process of its own: [arch, mode, hows, lengths, codes ...].
CHILD = """
import sys
import unicorn
from kprobes import KprobeError, UnicornMachine
from kprobes.machine.unicorn.engine import Engine
from kprobes.machine.unicorn.guests.rows import GUESTS
arch, mode, hows, lengths, *codes = sys.argv[1:]
mode = int(mode)
for how in hows.split(','):
    for code in map(bytes.fromhex, codes):
        for length in map(int, lengths.split(",")):
            text = code * length
            size = -(-len(text) // 0x4000) * 0x4000
            if how in ("attached", "another"):
                guest = GUESTS[arch]
                uc = unicorn.Uc(guest.cpu.arch, guest.cpu.mode, guest.cpu.model)
                m = UnicornMachine.attach(uc if how == "attached" else unicorn.Uc(guest.cpu.arch, guest.cpu.mode, guest.cpu.model), arch=arch)
                if guest.cpu.setup is not None:
                    guest.cpu.setup(Engine(uc))
                uc.mem_map(0x10000, size)
                uc.mem_write(0x10000, text)
                try:
                    uc.emu_start(0x10000 | mode, 0x10000 + len(text), timeout=1_000_000)
                except unicorn.UcError:
                    pass
                continue
            if how == "from_code":
                m = UnicornMachine.from_code(text, arch=arch, base=0x10000)
            else:
                m = UnicornMachine.from_code(b"", arch=arch, base=0x8000000)
                if how == "r-x":
                    m.map(0x10000, size, "rx")
                    m.write(0x10000, text)
                elif how == "protect":
                    m.map(0x10000, size, "rw")
                    m.write(0x10000, text)
                    m.protect(0x10000, size, "rx")
                elif how == "guest":  # as if the guest had written it
                    m.map(0x10000, size, "rwx")
                    m.parts.memory.engine.write(0x10000, text)
            for name in m.arch.abi.args or m.arch.regs.names[:4]:
                m.regs[name] = m.regs.sp
            try:
                m.run(0x10000 | mode, until=0x10000 + len(text), timeout=20)
            except KprobeError:
                pass
        print(f"{how}:{code.hex()}", flush=True)
"""


def run(arch: str, mode: int, hows: str, codes: list[str], lengths: tuple[int, ...] = LENGTHS,
        host_code: bool = True) -> None:
    arguments = [arch, str(mode), hows, ",".join(map(str, lengths)), *codes]
    environment = {**os.environ, **({} if host_code else {"KPROBES_HOST_CODE": "0"})}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, *arguments], capture_output=True, text=True,
                          timeout=600, check=False, env=environment)
    last = done.stdout.split()[-1:]
    assert done.returncode == 0, f"exit status {done.returncode}: it died of what comes after {last}: {done.stderr[-500:]}"


def lines_of(arch: str, most: int) -> dict[int, list[str]]:
    """mode -> instructions of that many kinds that go on to the next one."""
    seen: dict[tuple[int, str], str] = {}
    for case in cases_of(arch).cases:
        insn = architectures.get(arch).decode(case.code + bytes(16), 0x10000 | case.mode)
        if case.outcome == "step" and not insn.delay_slot and not insn.reject:
            seen.setdefault((case.mode, insn.name), insn.raw.hex())
    modes = {mode for mode, _ in seen}
    return {mode: [code for (of, _), code in seen.items() if of == mode][:: max(len(seen) // most, 1)]
            for mode in modes}


@pytest.mark.parametrize("arch", RUNNABLE)
def test_lines_of_every_kind(arch: str) -> None:
    for mode, codes in lines_of(arch, 24).items():
        run(arch, mode, "from_code", codes, LIMITS.get(arch, LENGTHS))


@pytest.mark.parametrize("arch", MIPS)
def test_lines_however_they_came_without_host_code(arch: str) -> None:
    addiu, nop = ("01004224" if arch.endswith("el") else "24420001"), "00000000"
    run(arch, 0, "r-x,protect,guest", [addiu, nop], host_code=False)


@pytest.mark.skipif(not bounded(), reason="blocks are bounded by host code")
@pytest.mark.parametrize("arch", RUNNABLE)
def test_lines_however_they_came(arch: str) -> None:
    """guest: as if the guest had made the code. attached: the owner runs his engine. another: no machine of ours is on
    that one."""
    for mode, codes in lines_of(arch, 2).items():
        run(arch, mode, "r-x,protect,guest,attached,another", codes if mode else [*codes, *WORST.get(arch, [])], (400,))


#: Runs programs in blocks of so many instructions at most, and compares: [tests' folder, most, names ...].
CUT = """
import sys
sys.path.insert(0, sys.argv[1])
from kprobes.machine.unicorn.host import translator
assert translator.bounded(int(sys.argv[2]))
from arches import PROGRAMS, UnicornMachine, expected, integer, results
for name in sys.argv[3:]:
    m = UnicornMachine.load(PROGRAMS / "bin" / name)
    for function, values in results(name.removesuffix(".elf"), m).items():
        if function != "run_all":
            for seed, value in list(zip(expected()["seeds"], values))[:2]:
                assert m.call(function, integer(m.arch, seed)) & 0xFFFFFFFF == value, (name, function)
"""


@pytest.mark.skipif(not bounded(), reason="blocks are bounded by host code")
@pytest.mark.parametrize("most", [1, 2, 3])
def test_wherever_blocks_are_cut(most: int) -> None:
    """Between a branch and its delay slot, behind IT, in front of what a prefix belongs to: programs run as ever."""
    names = [path.name for arch in RUNNABLE for path in programs_of(arch)]
    subprocess.run([sys.executable, "-c", CUT, str(HERE), str(most), *names], check=True, timeout=600)


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where blocks cannot be bounded."""
    monkeypatch.setattr(memory, "bounded", lambda: False)


@pytest.mark.parametrize("arch", MIPS)
def test_a_line_that_grows_together(arch: str, hooks: None) -> None:
    """Probes in it, writes around them, branches that go: what is left is one line again."""
    little = arch.endswith("el")
    addiu, branch = (bytes.fromhex(code)[:: -1 if little else 1] for code in ("24420001", "10000001"))
    m = UnicornMachine.from_code(addiu * 1000, arch=arch, base=0x10000)
    start, end = 0x10000, 0x10000 + 4000

    def result() -> int:
        m.regs["v0"] = 0
        m.run(start, until=end)
        return m.regs["v0"]

    assert result() == 1000
    with Kprobes(m) as k:
        k.register_kprobes([Kprobe(addr=start + at) for at in range(400, 4000, 400)])
        k.flush_optimizer()
        assert result() == 1000
        m.write(start + 40, addiu * 8)
    assert result() == 1000
    for at in range(800, 4000, 800):  # to the next but one, and what is between is in the delay slot
        m.write(start + at, branch)
    assert result() == 1000 - 4
    assert all(low <= start or high <= end for low, high in m.parts.memory.long_blocks._hooks)  # type: ignore[union-attr]
    for at in range(800, 4000, 800):
        m.write(start + at, addiu)
    assert result() == 1000


@pytest.mark.parametrize("arch", MIPS)
def test_ordinary_code_has_no_hooks(arch: str, hooks: None) -> None:
    """A branch every two hundred instructions is enough."""
    nop, jr = bytes(4), bytes.fromhex("03e00008")[:: -1 if arch.endswith("el") else 1]
    m = UnicornMachine.from_code((nop * 200 + jr + nop) * 20, arch=arch, base=0x10000)
    assert m.parts.memory.long_blocks is not None
    assert [place for place in m.parts.memory.long_blocks._hooks if place[0] < 0x10000 + 20 * 808
            and place[1] > 0x10000] == []
