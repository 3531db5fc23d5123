"""Programs as code of this process's own machine.

`compiled(code)` gives a `HostCode`, whose bytes are shared by all programs with the same content.
To run it needs an *environment* (see `llvm`), made by `Environment`: addresses of maps, and
callbacks for the helpers that it does not do by itself.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ..arch._compiling import Triple
from ..errors import Unsupported
from . import native
from .call import ProgramRun, RunPlace
from .code import CONTEXT_SIZE, Code
from .helpers import HELPERS
from .inline import Inlined
from .isa import U64
from .llvm import generate
from .maps import ByAddress, Map, PinnedMemory, Ring, UserRing
from .writer import FAILED, HEADER, CodeTarget, Slot

if TYPE_CHECKING:
    from .verifier import Facts, HelperCall

_HELPER = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 5)
_RUN = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
_HOSTS: Final = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
CODE: Final = 0  # the first word of an environment: address of the code
#: words of the environment that tell where a program runs
_PLACES: Final[Mapping[str, Callable[[RunPlace], int]]] = {
    "cpu": lambda place: place.cpu,
    "func_ip": lambda place: place.func_ip(),
    "cookie": lambda place: place.cookie(),
}
_SWITCH: Final = "KPROBES_HOST_CODE"  # see machine.unicorn.host.hostcode, whose switch it is
_pages: list[mmap.mmap] = []  # where the code is


@frozen
class HostCode:
    """A program's machine code in this process.

    Attributes:
        address: address of a function (environment, r1, r2) -> r0.
        slots: what each word of its environments is, behind the header.
        calls: slot of a helper's call -> what the verifier has found out about it.
        brief: it has few instructions, and executes none of them twice.
    """

    address: int
    slots: tuple[Slot, ...]
    calls: Mapping[int, HelperCall]
    brief: bool = False


def triple() -> Triple:
    """Return LLVM's target triple for this process's machine.

    Raises:
        Unsupported: there are no compiled programs for it, or KPROBES_HOST_CODE=0 forbids them.
    """
    if os.environ.get(_SWITCH) == "0":
        raise Unsupported(
            f"{_SWITCH}=0 switches machine code of this computer's off",
            hint="programs run in the interpreter",
        )
    if platform.system() != "Linux" or platform.machine() not in _HOSTS:
        raise Unsupported(
            f"there are no compiled programs on {platform.system()} {platform.machine()}",
            hint="they run in the interpreter",
        )
    return Triple(_HOSTS[platform.machine()], relocation="pic")


def compiled(code: Code, facts: Facts) -> HostCode:
    """Compile a program to machine code of this computer, which finds its context in memory at r1.

    Args:
        code: the program.
        facts: what the verifier has found out about it.

    Raises:
        Unsupported: the program is of the other byte order, LLVM is not installed, or compiled
            programs do not run on this computer.
    """
    # Python's side of a map, which this code shares, is in the host's
    if code.order != sys.byteorder:
        raise Unsupported(
            f"a {code.order}-endian program is not compiled on a {sys.byteorder}-endian host",
            hint="programs of the other byte order run in the interpreter",
        )
    target = CodeTarget(order=sys.byteorder, program_order=code.order)
    text, slots = generate(
        code.instructions, target, Inlined(code.maps, calls=facts.calls), cleared=facts.cleared
    )
    return HostCode(load(native.compiled(text, triple())), slots, facts.calls)


@cache
def load(code: bytes) -> int:
    """Make machine code executable in this process, and return its address.

    The same bytes are loaded only once.

    Args:
        code: the bytes.

    Raises:
        Unsupported: this process may not have executable memory of its own.
    """
    page = mmap.mmap(-1, -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE)
    page.write(code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    # Writable first, executable then: an ARM host's kernel makes the instruction cache coherent
    # when it maps a page so.
    if ctypes.CDLL(None).mprotect(
        ctypes.c_void_p(start), ctypes.c_size_t(len(page)), mmap.PROT_READ | mmap.PROT_EXEC
    ):
        raise Unsupported(
            "this process may not have executable memory of its own",
            hint="programs run in the interpreter",
        )
    _pages.append(page)
    return start


def address_of(function: Any) -> int:
    """Return the address of the machine code of a ctypes function, by which C calls it."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class HostCall:
    """A run of compiled code on this computer, as helpers see it (a call.ProgramRun).

    Nothing is checked: the verifier has checked all accesses of the program.
    """

    def __init__(self, code: Code, place: RunPlace, printed: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            code: the program.
            place: the guest, as helpers see it.
            printed: called with each line of trace_printk.
        """
        self.maps: Mapping[int, Map] = ByAddress(code.maps)
        self.order = code.order
        self.place = place
        self.printed = printed

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of this process's memory; `addr` is not checked."""
        return ctypes.string_at(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write bytes to this process's memory; `addr` is not checked."""
        ctypes.memmove(addr, data, len(data))

    def own(self, addr: int, size: int) -> None:
        """Return None, which says that an address is none of the program's.

        Helpers with a format get from the verifier which arguments are the program's addresses.
        """

    def check(self, addr: int, size: int) -> None:
        """Do nothing: the verifier has checked that the program may write there."""

    grant = check

    def revoke(self, addr: int) -> None:
        """Do nothing: the verifier has checked how records are used."""


class HostEngine:
    """Runs one program as machine code of this computer (an engines.ProgramEngine)."""

    def __init__(self, code: Code, facts: Facts | None = None, size: int = CONTEXT_SIZE) -> None:
        """Compile a program.

        Args:
            code: the program.
            facts: findings of the verifier; None: it is run now, as host code checks nothing.
            size: bytes of memory that there are at r1; no context is larger.

        Raises:
            ProgramError: the program is not safe.
            Unsupported: the program, or this computer, has no compiled programs.
        """
        if facts is None:
            from .verifier import verify

            facts = verify(code)
        self._size = size
        self._code = code
        self._host = compiled(code, facts)
        self._idle: list[tuple[Environment, PinnedMemory]] = []

    def run(
        self,
        context: bytes | bytearray,
        place: RunPlace,
        printed: Callable[[str], None] = lambda text: None,
    ) -> int:
        """Run the program once.

        Args:
            context: bytes at r1; a bytearray gets what the program has written.
            place: the guest, as helpers see it.
            printed: called with each line of trace_printk.

        Returns:
            r0 at the end, unsigned.

        Raises:
            BaseException: whatever a helper in Python has raised.
        """
        size = self._size
        assert len(context) <= size, "r2 would be more than the verifier has walked with"
        environment, block = (
            self._idle.pop()
            if self._idle
            else (Environment(self._code, self._host), PinnedMemory(size))
        )
        environment.call = HostCall(self._code, place, printed)
        for name, tell in _PLACES.items():
            environment.set((name, 0), tell(place))
        block.view[:size] = bytes(context).ljust(size, b"\0")
        try:
            return environment.run(block.address, len(context))
        finally:
            if isinstance(context, bytearray):
                context[:] = block.view[: len(context)]
            environment.call = None  # which knows the machine
            self._idle.append((environment, block))


class Environment:
    """The environment of one program: 64-bit words in memory by which its code finds the rest.

    `environment[slot]` gives the word that is `slot`, such as ("map", 0).

    Attributes:
        call: the run, as helpers see it; set before each run.
        error: what a helper has raised in run(); None: nothing.
        words: the words, header included.
        address: address of the first of them.
    """

    def __init__(
        self,
        code: Code,
        host: HostCode,
        words: Mapping[Slot, int] | None = None,
        call: ProgramRun | None = None,
        failed: Callable[[BaseException], None] | None = None,
        report: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        """Make the words.

        Args:
            code: the program.
            host: its compiled code.
            words: words whose values are known already; the others are made here.
            call: the run, as helpers see it; None: it is set later.
            failed: called with what a helper raises outside of run(); None: `error` has it.
            report: called with True just before each helper in Python runs, with False just after.
        """
        self.call: Any = call
        self.error: BaseException | None = None
        self._failed = failed
        self._report = report
        self._running = False
        self._slots = host.slots
        self._kept: list[Any] = [code]
        self._rings = [m for m in code.maps if isinstance(m, (Ring, UserRing))]
        given = words or {}
        values = [
            given[slot] if slot in given else self._value(code, host, slot) for slot in host.slots
        ]
        self.words = (ctypes.c_uint64 * (HEADER + len(values)))(host.address, 0, *values)
        self.address = ctypes.addressof(self.words)

    def _value(self, code: Code, host: HostCode, slot: Slot) -> int:
        """Return the value of a word of the environment.

        Args:
            code: the program.
            host: the program's host code; `host.calls` has the formats of calls of helpers.
            slot: (kind, number) of the word.

        Returns:
            For "map" and "value" the address of the map with that number. For "call" (number of a
            helper) and "format" (slot of a helper's call) the address of a new callback, by which
            the program's machine code calls the helper in Python. For any other kind 0: set() gives
            the word its value.
        """
        kind, number = slot
        if kind in ("map", "value"):
            return code.maps[number].address
        run: Callable[..., int] | None = None
        if kind == "call":
            run = HELPERS[number].run
        elif kind == "format":
            at = host.calls[number]
            run = partial(at.helper.run, texts=at.texts)
        if run is not None:
            callback = _HELPER(self._helper(run))
            self._kept.append(callback)
            return address_of(callback)
        return 0

    def _helper(self, run: Callable[..., int]) -> Callable[..., int]:
        """Return a function that C calls for a helper.

        It raises nothing, as ctypes would drop the error: what the helper raises goes to fail().

        Args:
            run: the helper: (run of the program, r1 .. r5) -> r0.
        """

        def helper(*arguments: int) -> int:
            """Run the helper with this run's `call`, and return its result, unsigned. Where it
            raises, keep the error, set FAILED, and return 0; after that no helper of the run does
            anything.
            """
            if self.error is not None:
                return 0  # the run has failed: nothing more is done
            self.set(FAILED, 0)
            try:
                with ExitStack() as stack:
                    for ring in self._rings:
                        stack.enter_context(ring.fenced())
                    self._report(True)
                    return run(self.call, *arguments) & U64
            except BaseException as error:
                self.fail(error)
                return 0
            finally:
                self._report(False)

        return helper

    def __getitem__(self, slot: Slot) -> int:
        return int(self.words[HEADER + self._slots.index(slot)])

    def set(self, slot: Slot, value: int) -> None:
        """Set a word of the environment; nothing happens where the code uses no such word.

        Args:
            slot: what the word is, such as ("cpu", 0).
            value: its value.
        """
        if slot in self._slots:
            self.words[HEADER + self._slots.index(slot)] = value

    def fail(self, error: BaseException) -> None:
        """Make the present run fail: its code ends as soon as it goes on.

        Called where a helper in Python has raised something. Records that the run has reserved are
        discarded.

        Args:
            error: what was raised; run() raises it, and outside of run() `failed` is called with
                it.
        """
        self.set(FAILED, 1)
        for ring in self._rings:
            ring.abandon()
        if self._failed is not None and not self._running:
            self._failed(error)
        elif self.error is None:
            self.error = error

    def run(self, context: int, size: int) -> int:
        """Run the program on the memory at an address.

        Args:
            context: address of the context.
            size: bytes of it.

        Returns:
            r0 at the end, unsigned.

        Raises:
            BaseException: whatever a helper in Python has raised.
        """
        outer = self._running
        self._running = True
        try:
            result = int(_RUN(self.words[CODE])(self.address, context, size))
        finally:
            self._running = outer
        error = self.error
        self.error = None
        if error is not None:
            raise error
        return result
