"""One small guest program on three machines: the toy engine, x86_64 and arm64. The core's tests play on these.

    inc(x) = x + 1            a leaf of two instructions, the first straight-line
    twice(x) = x + 2          keeps a frame and calls inc twice
    deep(x) = x + 2           calls twice
    down(n) = n               calls itself n times
    hop(x) = x + 1            a tail call of inc
    guard(x) = x, middle, throw   guard calls middle calls throw, which leaves straight to the end of guard: a longjmp
    fetch(p)                  loads a word; its first instruction faults on a bad pointer
    divide(a, b)              its first division faults for b = 0 (not on arm64)
    spin()                    runs for ever
    probed(x) = x + 3         three additions in a row and a return, to change things in
    mirror(x)                 a guest mirror: spoils argument registers and the stack above it
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import unicorn

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.core.probe import Probe
from kprobes.machine.paper import PaperMachine
from kprobes.machine.unicorn.assembler import assemble
from kprobes.testing import Recorder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from subjects import SUBJECTS

MACHINES = ("paper", "x86_64", "arm64", "x86_64 jumps", "arm64 jumps")
CELL = 0x40
BASE = {"paper": 0x1000, "x86_64": 0x10000, "arm64": 0x10000}

PAPER = {
    "inc": "add r0 1; ret",
    "twice": "add sp -4; store lr sp; call inc; call inc; load lr sp; add sp 4; ret",
    "deep": "add sp -4; store lr sp; call twice; load lr sp; add sp 4; ret",
    "down": "brz r0 +23; add sp -4; store lr sp; add r0 -1; call down; add r0 1; load lr sp; add sp 4; ret",
    "hop": "jmp inc",
    "guard": "add sp -4; store lr sp; call middle; nop; load lr sp; add sp 4; ret",
    "middle": "add sp -4; store lr sp; call throw; load lr sp; add sp 4; ret",
    "throw": "add sp 4; jmp guard+9",
    "fetch": "load r0 r0; ret",
    "divide": "div r0 r1; ret",
    "spin": "nop; jmp spin",
    "probed": "add r0 1; add r0 1; add r0 1; ret",
    "mirror": "add r0 7; add r1 7; store r0 sp; ret",
}
X86_64 = {
    "inc": "lea rax, [rdi + 1]; ret",
    "twice": "push rbp; mov rbp, rsp; call {inc}; mov rdi, rax; call {inc}; pop rbp; ret",
    "deep": "push rbp; mov rbp, rsp; call {twice}; pop rbp; ret",
    "down": "xor eax, eax; test rdi, rdi; je l; push rbp; mov rbp, rsp; dec rdi; call {down}; inc rax; pop rbp; l: ret",
    "hop": "jmp {inc}",
    "guard": "push rbp; mov rbp, rsp; call {middle}; nop; pop rbp; ret",
    "middle": "push rbp; mov rbp, rsp; call {throw}; pop rbp; ret",
    "throw": "lea rsp, [rsp + 24]; mov rax, rdi; jmp {guard} + 9",
    "fetch": "mov eax, dword ptr [rdi]; ret",
    "divide": "mov rax, rdi; xor edx, edx; div rsi; ret",
    "spin": "nop; jmp {spin}",
    "probed": "lea rax, [rdi + 1]; add rax, 1; add rax, 1; ret",
    "mirror": "add rdi, 7; mov rsi, 7; mov qword ptr [rsp + 8], rdi; xor eax, eax; ret",
}
ARM64 = {
    "inc": "add x0, x0, #1; ret",
    "twice": "stp x29, x30, [sp, #-16]!; mov x29, sp; bl {inc}; bl {inc}; ldp x29, x30, [sp], #16; ret",
    "deep": "stp x29, x30, [sp, #-16]!; mov x29, sp; bl {twice}; ldp x29, x30, [sp], #16; ret",
    "down": "cbz x0, l; stp x29, x30, [sp, #-16]!; mov x29, sp; sub x0, x0, #1; bl {down}; add x0, x0, #1; ldp x29, "
            "x30, [sp], #16; l: ret",
    "hop": "b {inc}",
    "guard": "stp x29, x30, [sp, #-16]!; mov x29, sp; bl {middle}; nop; ldp x29, x30, [sp], #16; ret",
    "middle": "stp x29, x30, [sp, #-16]!; mov x29, sp; bl {throw}; ldp x29, x30, [sp], #16; ret",
    "throw": "ldp x29, x30, [sp], #16; b {guard} + 12",
    "fetch": "ldr w0, [x0]; ret",
    "spin": "nop; b {spin}",
    "probed": "add x0, x0, #1; add x0, x0, #1; add x0, x0, #1; ret",
    "mirror": "add x0, x0, #7; mov x1, #7; str x0, [sp]; ret",
}
PROGRAMS = {"paper": PAPER, "x86_64": X86_64, "arm64": ARM64}

_OPERATIONS = {"add": 1, "nop": 2, "jmp": 3, "call": 4, "ret": 5, "load": 6, "store": 7, "brz": 8, "djmp": 9, "ll": 10,
               "sc": 11, "div": 13, "jr": 14, "sys": 15, "trap": 0xCC}
_REGISTERS = {**{f"r{n}": n for n in range(8)}, "sp": 8, "lr": 9}


def paper(text: str, base: int = 0x1000, labels: dict[str, int] | None = None) -> bytes:
    """PAPER's assembler: `op operand ...; ...`. A branch goes to `+n`, `-n` (from itself), or a label, perhaps `+n`."""
    code = bytearray()
    for line in filter(None, (part.strip() for part in text.split(";"))):
        op, *operands = line.split()
        here = base + len(code)
        code += bytes([_OPERATIONS[op], *(_operand(word, here, labels or {},
                                                   branch=op in ("jmp", "call", "brz", "djmp")) for word in operands)])
        code += bytes(op == "djmp")
    return bytes(code)


def _operand(word: str, here: int, labels: dict[str, int], *, branch: bool) -> int:
    if word in _REGISTERS:
        return _REGISTERS[word]
    if word[0] in "+-0123456789":
        return int(word, 0) & 0xFF
    name, _, more = word.partition("+")
    assert branch
    offset = labels[name] + int(more or "0") - here
    assert -128 <= offset < 128, word
    return offset & 0xFF


def assembled(name: str, functions: dict[str, str], base: int) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """(code, symbols with sizes). Each function has a cell of its own; PAPER's branches are short, so there they are
    packed."""
    start = {function: base + CELL * n for n, function in enumerate(functions)}
    if name == "paper":
        sizes = [len(paper(text, base, dict.fromkeys(functions, base))) for text in functions.values()]
        start = {function: base + sum(sizes[:n]) for n, function in enumerate(functions)}
    code, symbols = b"", {}
    for function, text in functions.items():
        addr = start[function]
        body = (paper(text, addr, start) if name == "paper"
                else assemble(text.format(**{f: hex(a) for f, a in start.items()}), name, addr))
        assert name == "paper" or len(body) <= CELL, function
        symbols[function] = addr, len(body)
        code = code.ljust(addr - base, b"\0") + body
    return code, symbols


def paper_machine(cpus: int = 1, **functions: str) -> PaperMachine:
    """A PaperMachine with these functions: the standard ones if none are given."""
    code, symbols = assembled("paper", functions or PAPER, BASE["paper"])
    return PaperMachine(code, symbols=dict(symbols), cpus=cpus)


def unicorn_machine(name: str, **functions: str) -> UnicornMachine:
    """A UnicornMachine with these functions: the standard ones if none are given."""
    code, symbols = assembled(name, functions or PROGRAMS[name], BASE[name])
    return UnicornMachine.from_code(code, arch=name, base=BASE[name], symbols=symbols)


def subject_machine(arch: str) -> UnicornMachine:
    """The benchmarks' program on any architecture: loop(n, k) calls tiny n times, stores(n, p)."""
    subject = SUBJECTS[arch]
    symbols = {name: (0x10000 + at | subject.mode, size) for name, (at, size) in subject.functions.items()}
    return UnicornMachine.from_code(subject.code, arch=arch, symbols=symbols)


class Jumps(Kprobes):
    """Does not wait for a first hit: what can be a jump is one from the start."""

    def register(self, probe: Probe) -> None:
        super().register(probe)
        if self.idle and probe._point is not None:
            self._driver.optimize(probe._point)


class Scene:
    """A machine, its Kprobes and a transcript.

    Attributes:
        m: the machine. k: its Kprobes. r: a Recorder. lines: its transcript. name: of the architecture.
        unmapped: an address where no memory is.
    """

    unmapped = 0x3000  # no machine maps anything here of its own accord

    def __init__(self, name: str, **functions: str) -> None:
        self.name, _, jumps = name.partition(" ")
        name, self.kprobes = self.name, Jumps if jumps else Kprobes
        self.m: Any = paper_machine(**functions) if name == "paper" else unicorn_machine(name, **functions)
        self._begin()

    @classmethod
    def on(cls, other: Scene) -> Scene:
        """A new scene on the machine of one that is over."""
        scene = cls.__new__(cls)
        scene.name, scene.m, scene.kprobes = other.name, other.m, other.kprobes
        scene._begin()
        return scene

    def _begin(self) -> None:
        self.r = Recorder()
        self.original = self.text()
        self.code_regions = self._code_regions()
        self.k = self.kprobes(self.m)

    @property
    def lines(self) -> list[str]:
        return self.r.lines

    @property
    def returns(self) -> str:
        """Name of the return value's register, which on two machines is the first argument's too."""
        return str(self.m.arch.abi.returns[0])

    def text(self) -> bytes:
        """The program, as it is in memory."""
        return bytes(self.m.read(BASE[self.name], CELL * len(PROGRAMS[self.name])))

    def patched(self) -> bytes:
        """What the program should be in memory: the original text and the patches that the table lists."""
        out = bytearray(self.original)
        for patch in self.k._text.patches:
            at = patch.addr - BASE[self.name]
            out[at : at + len(patch.new)] = patch.new
        return bytes(out)

    def _regions(self) -> Any:
        if self.name == "paper":
            return sorted(self.m._pages)
        return sorted((start, end) for start, end, _ in self.m.uc.mem_regions())

    def _code_regions(self) -> Any:
        """Executable memory: the library's own must be gone in the end. Data is the test's own business."""
        if self.name == "paper":
            return sorted(self.m._code)
        return sorted((start, end) for start, end, perms in self.m.uc.mem_regions() if perms & unicorn.UC_PROT_EXEC)

    def at(self, function: str, n: int = 0) -> int:
        """Address of the n-th instruction of a function."""
        addr = int(self.m.symbols[function].address)
        for _ in range(n):
            addr += self.k._survey.decode(addr).size
        return addr

    def map(self, addr: int, word: int) -> None:
        """Map the page of `addr` and store a word there."""
        page = addr & -0x1000
        if self.name == "paper":
            self.m._map(page, executable=False)
        else:
            self.m.map(page, 0x1000, "rw")
        self.m.write(addr, word.to_bytes(4, "little"))

    def word(self, value: int) -> int:
        """Address of a guest word of this value."""
        addr = 0xC800 if self.name == "paper" else self.m.alloc(4)
        self.m.write(addr, value.to_bytes(4, "little"))
        return int(addr)

    def probe(self, name: str, where: str | int = "inc", **fields: Any) -> Kprobe:
        """A registered Kprobe whose handlers both write to the transcript."""
        place = {"symbol_name": where} if isinstance(where, str) else {"addr": where}
        p = self.r.both(name, **place, **fields)
        self.k.register_kprobe(p)
        return p

    def play(self, function: str, *args: int) -> list[str]:
        """Call a function and return what was written meanwhile, the last line its result."""
        before = len(self.lines)
        result = self.m.call(function, *args)
        return [*self.lines[before:], f"= {result}"]

    def close(self) -> None:
        """End the Kprobes: the text must be the original one, and no memory of the library's left."""
        assert self.text() == self.patched()
        self.k.close()
        assert self.text() == self.original
        assert self._code_regions() == self.code_regions
        assert self.m.sink is None


def hook(name: str, log: list[str], action: Callable[..., Any] | None = None, result: int = 0) -> Callable[..., int]:
    """A handler of any kind that writes its name, then does something."""

    def handler(*args: Any) -> int:
        log.append(name)
        if action is not None:
            action(*args)
        return result

    return handler


@contextmanager
def unchanged(scene: Scene, *probes: Any) -> Iterator[None]:
    """Inside, a registration is refused: guest memory, the list and the user's fields of the probes stay as they
    are."""
    memory, listed = scene.text(), scene.k.format_list()
    fields = [user_fields(p) for p in probes]
    points = dict(scene.k._points)
    yield
    assert scene.text() == memory
    assert scene.k.format_list() == listed
    assert [user_fields(p) for p in probes] == fields
    assert scene.k._points == points


def user_fields(probe: Any) -> dict[str, Any]:
    """What the user said when making the probe, and whether it is registered."""
    import attrs

    said = {a.name: getattr(probe, a.name) for a in attrs.fields(type(probe)) if a.init}
    return {**said, "registered": probe.registered, "address": probe.address}


def names(lines: Sequence[str], kind: str) -> list[str]:
    """The names in the lines of one kind ("pre", "post", ...), in order."""
    return [line.split()[1] for line in lines if line.split()[0] == kind]
