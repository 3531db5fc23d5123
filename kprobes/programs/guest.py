"""Programs as code of the guest's own: compiled for its architecture, put into its memory with
their maps, and run there.

For guests that must not stop at every hit, such as remote ones. Maps and the context have the same
bytes as on the host, in the program's byte order; where the guest's is another its code swaps. Only
the environment is in the guest's byte order. The program has its maps to itself: push() and pull()
copy them. Programs are refused whose helpers are not machine code, as those are the host's. Guest
memory is read where `readable` says that there is some, since a fault there would be the guest's.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ..arch._base import Arch
from ..arch._compiling import Compiling
from ..arch._rows import row
from ..errors import NoMemory, Unsupported
from . import native
from .code import CONTEXT_SIZE, Code, NotCompiled
from .helpers import HELPERS
from .inline import Inlined
from .isa import Order, steps
from .llvm import generate
from .writer import HEADER, CodeTarget, ContextSource, Slot

if TYPE_CHECKING:
    from .verifier import Facts


# where code goes, and its alignment: of the largest pages
_BASE = 1 << 28
_PAGE = 1 << 14
_CONTEXT = ("context", 0)
_SIZE = ("size", 0)
_RESULT = ("result", 0)
_PARAMETERS: Final = (_CONTEXT, _SIZE, _RESULT)  # the first words of the environment


class ProgramMachine(Protocol):
    """The part of a guest's machine that is needed to run a program in it."""

    arch: Arch

    def alloc(self, size: int) -> int:
        """Return the address of `size` new bytes of guest memory."""

    def free(self, addr: int) -> None:
        """Free the memory at an address that alloc() has returned."""

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest memory."""

    def write(self, addr: int, data: bytes) -> None:
        """Write bytes to guest memory."""

    def map(self, addr: int, size: int, perms: str = ...) -> None:
        """Map `size` bytes of new guest memory at an address; `perms` is such as "rwx".

        Raises:
            NoMemory: something is mapped there.
        """

    def call(self, function: int, *args: int) -> int:
        """Run a guest function until it returns; return its result.

        Args:
            function: the function's address, with bits that select a mode.
            args: its integer arguments.
        """


def compiled(
    code: Code, arch: Arch, facts: Facts | None = None
) -> tuple[bytes, tuple[tuple[str, int], ...]]:
    """Compile a program to machine code that runs in guests of an architecture.

    Args:
        code: the program.
        arch: the architecture.
        facts: findings of the verifier; None: the program is verified here.

    Returns:
        (machine code, what each word of the environment behind the header is: (kind, number)). The
        code is a function whose only argument is the address of the environment.

    Raises:
        ProgramError: the program is not safe.
        Unsupported: LLVM has no such target, or only the host can do what the program does.
    """
    if facts is None:
        from .verifier import verify

        facts = verify(code)
    return _compiled(code, arch, facts.cleared, parameters=_PARAMETERS)


def _compiled(
    code: Code,
    arch: Arch,
    cleared: Mapping[int, int],
    context: ContextSource | None = None,
    parameters: Sequence[Slot] = (),
    asks: bool = False,
) -> tuple[bytes, tuple[Slot, ...]]:
    """Compile a verified program to machine code of a guest.

    Args:
        code: the program.
        arch: the guest's architecture.
        cleared: first slot of a function -> bytes of its stack that are zeroed as it begins.
        context: emits reads of the context's words; None: the context is in guest memory.
        parameters: the environment's words that hold the address of the context, its size, and
            afterwards the result; none for detours.
        asks: True where the code asks the host for guest memory that may not be mapped.

    Returns:
        (machine code, what each word of the environment behind the header is: (kind, number)).

    Raises:
        Unsupported: LLVM has no such target, or only the host can do what the program does.
    """
    llvm = known(arch)
    target = CodeTarget(
        bits=arch.bits,
        order=arch.order.value,
        program_order=code.order,
        divides=arch.bits if llvm.divides is None else llvm.divides,
        shifts=llvm.shifts,
        atomic=False,
        alone=True,
        asks=asks,
    )
    text, slots = generate(
        code.instructions,
        target,
        Inlined(code.maps, guest=True),
        context,
        cleared,
        parameters,
        framed=context is not None,
    )
    outside = {number for kind, number in slots if kind == "call"}
    if outside:
        raise _only_on_the_host(code, outside)
    return machine_code(text, arch), slots


def _only_on_the_host(code: Code, helpers: Collection[int]) -> NotCompiled:
    """Return the error about helpers that guest code does not have; scripts call them otherwise.

    Args:
        code: the program.
        helpers: numbers of the helpers, at least one.
    """
    slots = [pc for pc, i in steps(code.instructions) if i.is_helper_call and i.imm in helpers]
    words = [line.word for pc in slots if (line := code.line(pc)) is not None and line.word]
    names = words or [f"bpf_{HELPERS[number].name}() (helper {number})" for number in helpers]
    return code.not_compiled(
        f"only the host can do {', '.join(dict.fromkeys(names))}",
        slots,
        hint="programs with it run on the host",
    )


def known(arch: Arch) -> Compiling:
    """Return how programs for an architecture are compiled: LLVM's target, and what it can do.

    Args:
        arch: the guest's architecture.

    Raises:
        Unsupported: LLVM has no such target.
    """
    found = row(arch, Compiling)
    if found is None:
        raise Unsupported(
            f"LLVM does not compile for {arch.name}", hint="programs run on the host there"
        )
    return found


def machine_code(text: str, arch: Arch) -> bytes:
    """Compile LLVM IR to machine code of a guest's architecture.

    Args:
        text: the IR of a whole module, whose function is `@run`.
        arch: the guest's architecture.

    Raises:
        Unsupported: LLVM has no such target.
    """
    target = known(arch)
    if target.attributes:
        text = text.replace("attributes #0 = {", f"attributes #0 = {{ {target.attributes}")
    return target.finish(native.compiled(text, target.triple))


class PlacedProgram:
    """A program in a guest's memory, which run() calls there as a function.

    Attributes:
        entry: guest address of its code.
        maps: guest addresses of the copies of its maps, in the program's order.
        environment: guest address of its environment.
    """

    def __init__(
        self,
        code: Code,
        machine: ProgramMachine,
        facts: Facts | None = None,
        readable: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Compile a program, and write code, maps and environment into guest memory.

        Args:
            code: the program.
            machine: the guest's machine.
            facts: findings of the verifier; None: the program is verified here.
            readable: (first address, bytes) of guest memory that the program may read by
                probe_read.

        Raises:
            ProgramError: the program is not safe.
            Unsupported: it cannot run in the guest.
            NoMemory: there is no room in guest memory.
        """
        self._code = code
        self._machine = machine
        text, self._slots = compiled(code, machine.arch, facts)
        self._order: Order = machine.arch.order.value
        self.entry = self._place(text)
        self.maps = [machine.alloc(m.block.size) for m in code.maps]
        self._table = machine.alloc(16 + 24 * len(readable))
        words = [
            len(readable),
            self._table + 16,
            *(word for start, size in readable for word in (start, size, start)),
        ]
        machine.write(self._table, self._words(words))
        self._context = machine.alloc(CONTEXT_SIZE)
        self.environment = machine.alloc(8 * (HEADER + len(self._slots)))
        machine.write(
            self.environment, self._words([self.entry, 0, *map(self._value, self._slots)])
        )
        self.push()

    def _place(self, text: bytes) -> int:
        """Map executable guest memory from 1 << 28 on, write code there, and return its address.

        Raises:
            NoMemory: nothing is free there.
        """
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
        """Return the value that a word of the environment has at first.

        Args:
            slot: what the word is: (kind, number), such as ("map", 0).
        """
        kind, number = slot
        known = {
            "context": self._context,
            "size": CONTEXT_SIZE,
            "blocks": self._table,
            "random": random.getrandbits(64) | 1,
        }
        return self.maps[number] if kind in ("map", "value") else known.get(kind, 0)

    def _words(self, values: Sequence[int]) -> bytes:
        """Return numbers as bytes: 8 for each, in the guest's byte order."""
        return b"".join(value.to_bytes(8, self._order) for value in values)

    def push(self) -> None:
        """Copy the contents of Python's maps over the guest's copies of them."""
        for address, m in zip(self.maps, self._code.maps, strict=True):
            self._machine.write(address, bytes(m.block.view))

    def pull(self) -> None:
        """Copy the contents of the guest's copies over Python's maps."""
        for address, m in zip(self.maps, self._code.maps, strict=True):
            m.block.view[:] = self._machine.read(address, m.block.size)

    def run(self, context: bytes | bytearray = b"") -> int:
        """Run the program in the guest, on its copies of the maps; copies no maps: see push() and
        pull().

        Args:
            context: bytes at r1, zeros behind them; a bytearray gets what the program has written.

        Returns:
            r0 at the end, unsigned.
        """
        machine = self._machine
        words = self.environment + 8 * HEADER
        machine.write(self._context, bytes(context).ljust(CONTEXT_SIZE, b"\0"))
        machine.write(words + 8 * self._slots.index(_SIZE), self._words([len(context)]))
        machine.call(self.entry | known(machine.arch).mode, self.environment)
        if isinstance(context, bytearray):
            context[:] = machine.read(self._context, len(context))
        result = machine.read(words + 8 * self._slots.index(_RESULT), 8)
        return int.from_bytes(result, self._order)
