"""Programs as code of the guest's own: compiled for its architecture, put into its memory with their maps, and run
there.

For guests that must not stop at every hit, such as remote ones. What lies in maps and in the context is the same bytes
as on the host, in the program's byte order; where the guest's is another its code swaps. Only the environment is in the
guest's. The program has its maps to itself: push() and pull() copy them. Helpers that are not machine code are the
host's, and programs with them are refused; guest memory is read where `readable` says that there is some, since a fault
there would be the guest's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ..arch._base import Arch
from ..errors import NoMemory, Unsupported
from . import native
from .code import CONTEXT_SIZE, Code
from .helpers import HELPERS
from .inline import Inlined
from .isa import Order
from .llvm import generate
from .native import Triple
from .writer import HEADER, Context, Slot, Target

if TYPE_CHECKING:
    from .verifier import Facts


def _mips(name: str, cpu: str) -> Triple:
    return Triple(f"{name}-unknown-elf", cpu, "", "pic")  # else jumps are to absolute addresses


#: SPARC code that keeps to its caller's window: LLVM makes such of functions that call nothing and use neither locals
#: nor outs; see _flat()
_FLAT: Final = ",".join(["+reserve-g5", *(f"+reserve-{name}{n}" for name, count in (("l", 8), ("o", 6))
                                          for n in range(count))])
#: architecture -> what LLVM compiles for
TRIPLES: Final[Mapping[str, Triple]] = {
    "x86_64": Triple("x86_64-unknown-none-elf"), "i386": Triple("i686-unknown-none-elf"),
    "arm": Triple("armv7-none-eabi"), "armeb": Triple("armebv7-none-eabi"), "cortexm": Triple("thumbv7m-none-eabi"),
    "arm64": Triple("aarch64-none-elf"), "arm64be": Triple("aarch64_be-none-elf"),
    "mips": _mips("mips", "mips32r2"), "mipsel": _mips("mipsel", "mips32r2"),
    "mips64": _mips("mips64", "mips64r2"), "mips64el": _mips("mips64el", "mips64r2"),
    "mips32r6": _mips("mipsisa32r6", "mips32r6"), "mips32r6el": _mips("mipsisa32r6el", "mips32r6"),
    "mips64r6": _mips("mipsisa64r6", "mips64r6"), "mips64r6el": _mips("mipsisa64r6el", "mips64r6"),
    "ppc": Triple("powerpc-unknown-elf"), "ppc64": Triple("powerpc64-unknown-elf"),
    "ppc64le": Triple("powerpc64le-unknown-elf", unused=frozenset({250, 252})),  # REL16_LO, _HA: a TOC pointer
    "riscv32": Triple("riscv32-unknown-elf", "", "+m,-relax"),
    "riscv64": Triple("riscv64-unknown-elf", "", "+m,-relax"),
    "loongarch64": Triple("loongarch64-unknown-elf", "", "-relax"),
    "s390x": Triple("s390x-unknown-linux"), "sparc": Triple("sparc-unknown-elf", "v8"),
    "sparc64": Triple("sparcv9-unknown-elf", "", _FLAT),
}
#: architecture -> bits of the widest numbers that its CPUs divide, where that is not a word
_DIVIDES: Final[Mapping[str, int]] = {"arm": 0, "armeb": 0}
#: the same of numbers that they shift
_SHIFTS: Final[Mapping[str, int]] = {"sparc": 32}
#: architectures whose functions LLVM calls by descriptors: address, TOC, environment (ELFv1)
DESCRIBED: Final = frozenset({"ppc64"})
#: architectures whose pages may be guarded: detours call programs by a register, so these begin with a landing pad
_GUARDED: Final = ("arm64", "arm64be")
_PADDED: Final = '"branch-target-enforcement"="true"'
_BASE, _PAGE = 1 << 28, 1 << 14  # where code goes, and its alignment: of the largest pages
_CONTEXT, _SIZE, _RESULT = ("context", 0), ("size", 0), ("result", 0)
_PARAMETERS: Final = (_CONTEXT, _SIZE, _RESULT)  # the first words of the environment


class Machine(Protocol):
    """What is needed of a guest's machine."""

    arch: Arch

    def alloc(self, size: int) -> int: ...
    def free(self, addr: int) -> None: ...
    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...
    def map(self, addr: int, size: int, perms: str = ...) -> None: ...
    def call(self, function: int, *args: int) -> int: ...


def compiled(code: Code, arch: Arch, facts: Facts | None = None) -> tuple[bytes, tuple[tuple[str, int], ...]]:
    """(machine code, words of the environment after the header) of a program for guests of an architecture.

    It is called with the address of the environment. facts: of the verifier, which is asked if they are not given.
    ProgramError: it is not safe. Unsupported: LLVM has no such target, or the program does what only the host can.
    """
    if facts is None:
        from .verifier import verify

        facts = verify(code)
    return _compiled(code, arch, facts.cleared, parameters=_PARAMETERS)


def _compiled(code: Code, arch: Arch, cleared: Mapping[int, int], context: Context | None = None,
              parameters: Sequence[Slot] = (), asks: bool = False) -> tuple[bytes, tuple[Slot, ...]]:
    known(arch)
    target = Target(bits=arch.bits, order=arch.order.value, program_order=code.order,
                    divides=_DIVIDES.get(arch.name, arch.bits),
                    shifts=_SHIFTS.get(arch.name, 64), atomic=False, alone=True, asks=asks)
    text, slots = generate(code.instructions, target, Inlined(code.maps, guest=True), context, cleared,
                           parameters, framed=context is not None)
    outside = [number for kind, number in slots if kind == "call"]
    if outside:
        raise Unsupported(f"bpf_{HELPERS[outside[0]].name} is not there in the guest (helper {outside[0]})",
                          hint="programs with it run on the host")
    return machine_code(text, arch), slots


def known(arch: Arch) -> native.Triple:
    """What LLVM compiles for. Unsupported where that is nothing."""
    triple = TRIPLES.get(arch.name)
    if triple is None:
        raise Unsupported(f"LLVM does not compile for {arch.name}", hint="programs run on the host there")
    return triple


def machine_code(text: str, arch: Arch) -> bytes:
    """The guest's code of IR. Unsupported: LLVM has no such target."""
    if arch.name in _GUARDED:
        text = text.replace("attributes #0 = {", f"attributes #0 = {{ {_PADDED}")
    return _AFTERWARDS.get(arch.name, bytes)(native.compiled(text, known(arch)))


def _reversed(code: bytes) -> bytes:
    """Objects for big-endian ARM have big-endian instructions, which linkers turn round: the CPU's are
    little-endian."""
    return b"".join(code[at : at + 4][::-1] for at in range(0, len(code), 4))


def _flat(code: bytes) -> bytes:
    """LLVM takes %o7 for a register like others in such functions: they return by %g5, which it leaves alone."""
    words = [code[at : at + 4] for at in range(0, len(code), 4)]
    return _MOV_O7_G5 + b"".join(_JMP_G5 if word == _RETL else word for word in words)


_MOV_O7_G5, _RETL, _JMP_G5 = (bytes.fromhex(word) for word in ("8a10000f", "81c3e008", "81c16008"))
_AFTERWARDS: Final[Mapping[str, Callable[[bytes], bytes]]] = {"armeb": _reversed, "sparc64": _flat}


class GuestProgram:
    """A program in a guest's memory.

    readable: (first address, bytes) of guest memory that the program may read by probe_read.
    """

    def __init__(self, code: Code, machine: Machine, facts: Facts | None = None,
                 readable: Sequence[tuple[int, int]] = ()) -> None:
        self._code, self._machine = code, machine
        text, self._slots = compiled(code, machine.arch, facts)
        self._order: Order = machine.arch.order.value
        self.entry = self._place(text)
        self.maps = [machine.alloc(m.block.size) for m in code.maps]
        self._table = machine.alloc(16 + 24 * len(readable))
        words = [len(readable), self._table + 16, *(word for start, size in readable for word in (start, size, start))]
        machine.write(self._table, self._words(words))
        self._context = machine.alloc(CONTEXT_SIZE)
        self.environment = machine.alloc(8 * (HEADER + len(self._slots)))
        machine.write(self.environment, self._words([self.entry, 0, *map(self._value, self._slots)]))
        self.push()

    def _place(self, text: bytes) -> int:
        """Put the code into memory of its own, at the first address of some that is free."""
        size = -(-len(text) // _PAGE) * _PAGE
        for base in range(_BASE, _BASE << 1, _BASE >> 8):
            try:
                self._machine.map(base, size, "rwx")
            except NoMemory:
                continue
            self._machine.write(base, text)
            return base
        raise NoMemory(f"no room for {len(text)} bytes of code", hint="unmap something")

    def _value(self, slot: tuple[str, int]) -> int:
        kind, number = slot
        known = {"context": self._context, "size": CONTEXT_SIZE, "blocks": self._table}
        return self.maps[number] if kind in ("map", "value") else known.get(kind, 0)

    def _words(self, values: Sequence[int]) -> bytes:
        return b"".join(value.to_bytes(8, self._order) for value in values)

    def push(self) -> None:
        """Copy the maps into the guest."""
        for address, m in zip(self.maps, self._code.maps, strict=True):
            self._machine.write(address, bytes(m.block.view))

    def pull(self) -> None:
        """Copy the maps out of the guest."""
        for address, m in zip(self.maps, self._code.maps, strict=True):
            m.block.view[:] = self._machine.read(address, m.block.size)

    def run(self, context: bytes | bytearray = b"") -> int:
        """Run it in the guest on this context; r0."""
        machine, words = self._machine, self.environment + 8 * HEADER
        machine.write(self._context, bytes(context).ljust(CONTEXT_SIZE, b"\0"))
        machine.write(words + 8 * self._slots.index(_SIZE), self._words([len(context)]))
        machine.call(self.entry | machine.arch.pointers.mode_bits * (machine.arch.name == "cortexm"), self.environment)
        if isinstance(context, bytearray):
            context[:] = machine.read(self._context, len(context))
        result = machine.read(words + 8 * self._slots.index(_RESULT), 8)
        return int.from_bytes(result, self._order)
