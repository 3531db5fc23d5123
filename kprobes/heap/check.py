"""HeapCheck: stands in for the guest's allocator, and says what the guest does wrong with it."""

from __future__ import annotations

import json
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from ..arguments import checked
from ..core.probe import DIVERTED, Kprobe, Probe
from ..core.register.alone import alone
from ..debug.info import DebugInfo
from ..errors import (
    BadArgument,
    GuestFault,
    HeapError,
    KprobeError,
    NotRegistered,
    UnknownSymbol,
    Unsupported,
)
from ..machine._base import UNWRITTEN, Machine, MarkedMemory
from ..regs import Regs, override_function_with_return
from ..stacks import Stack, addresses_of
from .finding import HeapFinding
from .functions import IMPORTS, Allocator, known, named, shown
from .memory import FREED, FRESH, HeapBlock, HeapLimits, HeapMemory, HeapState
from .memory import Stack as Kept

#: Functions that may read further than to the end of a block, as they read whole words or lines of
#: a cache of which some bytes are the block's: of C libraries, by module and by name.
READS_LINES: Final = (
    "libc.so*",
    "libc-*.so*",
    "ld-musl-*",
    "ld-linux*",
    "ld.so*",
    "ld64.so*",
    "*:*strlen*",
    "*:*strnlen*",
    "*:*strchr*",
    "*:*strrchr*",
    "*:*memchr*",
    "*:*memrchr*",
    "*:*strcmp*",
    "*:*strncmp*",
    "*:*strcasecmp*",
    "*:*strcpy*",
    "*:*strncpy*",
    "*:*stpcpy*",
    "*:*stpncpy*",
    "*:*strlcpy*",
    "*:*strcat*",
    "*:*strspn*",
    "*:*strcspn*",
)
LINE: Final = 64  #: bytes of a cache's line, and of the widest vector
SMALLEST_PAGE: Final = 4096  #: bytes of the smallest page that Linux has on any machine
SHORTEST: Final = 4  #: bytes of a word
TOLD: Final = (
    64  #: accesses by one instruction of which the stack is looked at; others are only counted
)
ENOMEM, EINVAL = 12, 22
MOST_KEPT: Final = 64  #: addresses of a stack that records keep


class Probing(Protocol):
    """The part of a Kprobes that a heap check needs."""

    machine: Machine

    def register_all(self, probes: Sequence[Probe]) -> None: ...
    def unregister_all(self, probes: Sequence[Probe]) -> None: ...

    #: gives a hit's stack as records keep it: of MOST_KEPT addresses at most
    kept_stack: Callable[[Regs], tuple[int, ...]]

    def stack_trace(self, regs: Regs, limit: int = 64) -> Stack: ...


@define(eq=False, kw_only=True, repr=False)
class AllocatorProbe(Kprobe):
    """A probe at the entry of an allocator function, whose handler does the function's work.

    The handler returns from the function, which is not executed: so it runs after the handlers of
    all other probes at that address.
    """

    _late: int = field(default=2, init=False)
    _optimize: bool = field(default=False, init=False)  # no jump can be left for another place


@checked("__init__")
class HeapCheck:
    """Finds memory errors until close(). A context manager; `k.heap()` makes one.

    The guest's allocator functions are not executed: blocks come from memory of the check's own,
    with red zones around them. Pointers that the guest had before the check began go on to belong
    to its own allocator.

    Attributes:
        findings: what was found, in that order; the same mistake at the same place is one.
        functions: the guest's functions that the check replaces: symbol or address -> name of the
            C function that each is like.
        watching: whether accesses are seen as they happen. Where they are not (`why_not_watching`),
            writes are noticed when a block is freed, by check(), and at the end.
        why_not_watching: why accesses are not seen, as one clause; "": they are.
        busy: the machine's lock.
    """

    def __init__(
        self,
        k: Probing,
        functions: Mapping[str | int, str] | None = None,
        *,
        defaults: bool = True,
        zone: int = 32,
        quarantine: int = 1 << 20,
        limit: int = 1 << 28,
        uninitialized: bool = False,
        leaks: bool = True,
        accesses: bool | None = None,
        raising: bool = False,
        depth: int = 8,
        reads_lines: Sequence[str] = READS_LINES,
    ) -> None:
        """Begin the check: replace the guest's allocator functions from now on.

        Args:
            k: the Kprobes of the guest's machine.
            functions: allocator functions besides those that have their usual names: a symbol or an
                address -> the C function that it is like ("malloc", "calloc", "realloc", "free",
                ...); None: none.
            defaults: True to replace functions that have their usual names, too; False: only
                `functions`.
            zone: bytes of the red zone in front of a block and behind it, at least.
            quarantine: bytes of freed blocks that are kept back before they are used again.
            limit: bytes that the guest may have allocated at a time; more are refused, as by an
                allocator that has no more memory.
            uninitialized: True to report reads of bytes that were never written. Copying is
                reading.
            leaks: True to have close() look for leaks; it does not where an error has ended the
                body of the check's `with`.
            accesses: True to watch accesses to memory, False not to; None: where the engine can.
            raising: True to raise a finding as HeapError, out of the guest's run.
            depth: how many return addresses are kept with each block.
            reads_lines: globs of modules, and of "module:function", that may read words and vectors
                of which some bytes are a block's, or lie within 64 bytes behind it.

        Raises:
            Unsupported: the machine has no memory with marks, or cannot report accesses.
            UnknownSymbol, BadLocation, Unprobeable and others: see Kprobes.register().
            BadArgument: no function is known, or an argument makes no sense.
            MachineBusy: another thread runs the machine.
        """
        memory = k.machine.marked_memory
        if memory is None:
            raise Unsupported(
                "this machine's memory cannot be checked", hint="use a UnicornMachine"
            )
        for name, value, least in (
            ("zone", zone, 1),
            ("quarantine", quarantine, 0),
            ("limit", limit, 0),
            ("depth", depth, 1),
        ):
            if value < least:
                raise BadArgument(f"{name} is {value}", hint=f"pass {least} or more")
        self._k = k
        self._machine = machine = k.machine
        self.busy = machine.busy
        self._depth = depth
        self._raising = raising
        self._leaks = leaks
        self._reads_lines = tuple(reads_lines)
        self._line_readers: dict[int, bool] = {}  # address of code -> whether it may read lines
        self._files = machine.symbols.files  # of the time when that was found out
        self.findings: list[HeapFinding] = []
        self._by_place: dict[tuple[Any, ...], HeapFinding] = {}
        self._seen: dict[tuple[int, int, str], int] = {}  # accesses, by pc, mark and kind
        self._told = 0
        self._does = {
            "allocate": self._allocate,
            "resize": self._resize,
            "free": self._free,
            "size": self._give_size,
        }
        # numbers of blocks that were reported as damaged: as that happened, or noticed afterwards
        self._seen_damage: set[int] = set()
        self._noticed_damage: set[int] = set()
        self._leaked: set[int] = set()  # numbers of blocks that were reported as leaks
        self.why_not_watching = self._why_not(memory, accesses)
        self.watching = not self.why_not_watching
        self._probes = self._made(functions or {}, defaults)
        self.functions = {
            str(probe.symbol_name or hex(probe.addr or 0)): name for probe, name in self._probes
        }
        self._closed = False
        limits = HeapLimits(
            zone=zone, quarantine=quarantine, limit=limit, uninitialized=uninitialized
        )
        self._begin(memory, limits)

    @alone
    def _begin(self, memory: MarkedMemory, limits: HeapLimits) -> None:
        """Make the memory that blocks come from, and register the probes. From then on the
        machine's snapshots have the heap's state, too.

        Where a probe cannot be registered, its error is raised, and accesses are not watched any
        more.

        Args:
            memory: the machine's memory with marks: it reports accesses to marked bytes.
            limits: how much room blocks get, and how new ones are marked.
        """
        machine = self._machine
        self._memory = HeapMemory(
            memory,
            machine.read,
            machine.write,
            self._accessed if self.watching else None,
            limits,
        )
        try:
            self._k.register_all([probe for probe, _ in self._probes])
        except BaseException:
            self._memory.close()
            raise
        reported = self._seen_damage, self._noticed_damage, self._leaked
        self._forget = memory.keep_snapshot_state(_CheckBooks(self._memory, reported))

    @staticmethod
    def _why_not(memory: MarkedMemory, accesses: bool | None) -> str:
        """Return why accesses to memory are not to be watched, as one clause; "": they are.

        Args:
            memory: the machine's memory with marks.
            accesses: True: they have to be watched; False: they are not; None: where possible.

        Raises:
            Unsupported: `accesses` is True, and the engine cannot report them.
        """
        if accesses is None:
            return memory.unwatchable
        if accesses and memory.unwatchable:
            raise Unsupported(
                memory.unwatchable,
                hint="leave `accesses` out: writes are then noticed when a block is freed",
            )
        return "" if accesses else "accesses=False"

    # --- functions

    def _made(self, functions: Mapping[str | int, str], defaults: bool) -> list[tuple[Probe, str]]:
        """Make a probe for each allocator function; none is registered yet.

        Args:
            functions: symbol or address -> name of the C function.
            defaults: True: add the functions that are known by their names, unless `functions` has
                their addresses.

        Returns:
            (probe, name of the C function that the function is like) of each.

        Raises:
            UnknownSymbol, AmbiguousSymbol: a symbol does not name one function of the guest.
            BadArgument: there is no function at all, or no such C function.
        """
        made: list[tuple[Probe, str]] = []
        symbols = self._machine.symbols
        places = dict[int, None]()
        for where, role in functions.items():
            allocator = named(role)
            name = where if isinstance(where, str) else hex(where)
            handler = partial(self._hit, allocator, name)
            if isinstance(where, str):
                if where not in symbols:
                    raise UnknownSymbol(where, hint="give a function of the guest's")
                places[symbols[where].address] = None
                made.append((AllocatorProbe(symbol_name=where, pre_handler=handler), role))
            else:
                places[where] = None
                made.append((AllocatorProbe(addr=where, pre_handler=handler), role))
        for symbol, name, allocator in known(symbols) if defaults else ():
            if symbol.address not in places:
                module = symbol.module or symbols.main
                place = f"{module}:{symbol.name}" if module else symbol.name
                handler = partial(self._hit, allocator, name)
                made.append((AllocatorProbe(symbol_name=place, pre_handler=handler), name))
        if not made:
            raise BadArgument(
                "the guest has no allocator functions that are known by their names",
                hint="say what they are like: my_alloc is a malloc, my_free a free",
                python="functions={'my_alloc': 'malloc', 'my_free': 'free'}",
            )
        return made

    def _hit(self, allocator: Allocator, function: str, probe: Any, regs: Regs) -> int | None:
        """Do the work of an allocator function at its entry, and return from it.

        The pre_handler of its probe, with the first two arguments bound.

        Args:
            allocator: what the function does, and where its arguments are.
            function: the function's name in the guest.
            probe: the probe; not used.
            regs: registers at the function's entry.

        Returns:
            DIVERTED where the function is not executed; None where the guest's own function runs:
            the check is closed, or the block belongs to the guest's own allocator.
        """
        if self._closed:
            return None
        if not self._does[allocator.does](allocator, function, regs):
            return None
        override_function_with_return(regs)
        return DIVERTED

    def _allocate(self, allocator: Allocator, function: str, regs: Regs) -> bool:
        """Do the work of malloc(), calloc(), memalign() and the like: allocate a block and set the
        result. The result is the block's address, or 0 where there is none; of posix_memalign() 0
        or an error number, and the address goes to guest memory, where an argument says.

        An alignment that is no power of two gives no block.

        Args:
            allocator: what the function does, and where its arguments are.
            function: the function's name in the guest.
            regs: registers at the function's entry; the result is put there.

        Returns:
            True, always: the guest's function is not to be executed.

        Raises:
            GuestFault: the block's address cannot be written where an argument says; no block is
                allocated.
        """
        assert allocator.size is not None
        size = self._size(allocator, regs)
        page = self._machine.page_size
        alignment = regs.arg(allocator.alignment) if allocator.alignment is not None else 1
        if allocator.page:
            alignment = page
        sound = alignment > 0 and alignment & (alignment - 1) == 0
        error = 0 if sound else EINVAL
        address = 0
        if sound and size is not None:
            address = self._new(size, alignment, allocator, function, regs)
        if not address and not error:
            error = ENOMEM
        if allocator.result is None:
            regs.return_value = address
            return True
        if address:
            try:
                regs.set_word(regs.arg(allocator.result), address)
            except BaseException:
                self._memory.take_back(self._memory.alive[address])
                raise
        regs.return_value = error
        return True

    def _size(self, allocator: Allocator, regs: Regs) -> int | None:
        """Return how many bytes an allocating function is asked for.

        Args:
            allocator: which arguments have the size and the count.
            regs: registers at the function's entry.

        Returns:
            None: more than half the address space.
        """
        assert allocator.size is not None
        size = regs.arg(allocator.size)
        if allocator.count is not None:
            size *= regs.arg(allocator.count)
        return size if size <= self._machine.arch.mask >> 1 else None

    def _new(
        self, size: int, alignment: int, allocator: Allocator, function: str, regs: Regs
    ) -> int:
        """Allocate a block for an allocator function, zeroed if the function does so.

        Args:
            size: bytes of the block.
            alignment: alignment of the block in bytes, a power of two.
            allocator: what the function does.
            function: the function's name in the guest.
            regs: registers at the function's entry, of which the block's stack is made.

        Returns:
            The block's address; 0: there is no room, or the limit is reached.
        """
        block = self._memory.allocate(
            size, alignment, function, allocator.family, self._callers(regs)
        )
        if block is None:
            return 0
        if allocator.zeroed:
            self._machine.write(block.address, bytes(size))
            self._memory.written(block.address, size)
        return block.address

    def _resize(self, allocator: Allocator, function: str, regs: Regs) -> bool:
        """Do the work of realloc(): copy the block to a new one, free the old one, set the result.

        A size of 0 frees the block, as glibc does; a null pointer allocates. A wrong pointer is a
        finding, and the result is 0. Where there is no room for the new block, or its size is more
        than half the address space, the result is 0, and the old block stays. Where a finding is
        raised, no block is allocated, and the old one stays.

        Args:
            allocator: what the function does, and where its arguments are.
            function: the function's name in the guest.
            regs: registers at the function's entry; the result is put there.

        Returns:
            True: the guest's function is not to be executed. False: it is, as the block is from the
            guest's own allocator.

        Raises:
            HeapError: the check was made with `raising`, and there is a finding.
        """
        assert allocator.block is not None
        address = regs.arg(allocator.block)
        size = self._size(allocator, regs)
        if address and address not in self._memory.alive and self._is_foreign(address):
            return False
        if size is None:
            regs.return_value = 0
            return True
        if address and not size:  # as glibc does
            self._release(address, allocator, function, regs)
            regs.return_value = 0
            return True
        if not address:
            regs.return_value = self._new(size, 1, allocator, function, regs)
            return True
        stack = self._callers(regs)
        old = self._look_before_free(address, allocator, function, stack)
        if old is None:
            regs.return_value = 0
            return True
        contents = self._machine.read(address, min(size, old.size))
        new = self._new(size, 1, allocator, function, regs)
        if new:
            self._machine.write(new, contents)
            self._memory.written(new, len(contents))
            self._memory.free(old, function, stack)
        regs.return_value = new
        return True

    def _free(self, allocator: Allocator, function: str, regs: Regs) -> bool:
        """Do the work of free() and delete: free the block, or report why it cannot be freed.

        A null pointer is ignored.

        Args:
            allocator: what the function does, and where its arguments are.
            function: the function's name in the guest.
            regs: registers at the function's entry.

        Returns:
            True: the guest's function is not to be executed. False: it is, as the block is from the
            guest's own allocator.

        Raises:
            HeapError: the check was made with `raising`, and there is a finding.
        """
        assert allocator.block is not None
        address = regs.arg(allocator.block)
        if address and address not in self._memory.alive and self._is_foreign(address):
            return False
        if address:
            sized = regs.arg(allocator.size) if allocator.size is not None else None
            self._release(address, allocator, function, regs, sized)
        return True

    def _give_size(self, allocator: Allocator, function: str, regs: Regs) -> bool:
        """Do the work of malloc_usable_size(): the result is the block's size; 0 for NULL.

        Args:
            allocator: where the argument is.
            function: the function's name in the guest; not used.
            regs: registers at the function's entry; the result is put there.

        Returns:
            True: the guest's function is not to be executed. False: it is, as the check has no
            such block.
        """
        assert allocator.block is not None
        address = regs.arg(allocator.block)
        block = self._memory.alive.get(address)
        if block is None and address:
            return False
        regs.return_value = block.size if block is not None else 0
        return True

    def _is_foreign(self, address: int) -> bool:
        """Return True where a pointer may be one that the guest's own allocator gave out before.

        False for addresses of the check's own blocks, of the stack, of images and of no mapped
        memory, and wherever the guest has no allocator of its own.
        """
        machine, regs = self._machine, self._machine.regs
        if self._memory.has(address) or not self._has_own:
            return False
        if any(start <= address < end for start, end in machine.modules.values()):
            return False
        region = next(
            ((start, end) for start, end in machine.regions() if start <= address < end), None
        )
        return region is not None and not region[0] <= regs.sp < region[1]

    @cached_property
    def _has_own(self) -> bool:
        """True where the guest has allocator functions of its own, not only imports of them."""
        return any(not str(probe.symbol_name).endswith(IMPORTS) for probe, _ in self._probes)

    # --- freeing

    def _release(
        self,
        address: int,
        allocator: Allocator,
        function: str,
        regs: Regs,
        sized: int | None = None,
    ) -> None:
        """Free a block, or report why it cannot be freed.

        Args:
            address: the pointer that the guest frees; not 0.
            allocator: what the freeing function does; its family must be the block's.
            function: the function's name in the guest.
            regs: registers at the function's entry, of which the stack is made.
            sized: bytes that the guest says the block has; None: it does not say.

        Raises:
            HeapError: the check was made with `raising`, and there is a finding; the block is not
                freed.
        """
        stack = self._callers(regs)
        block = self._look_before_free(address, allocator, function, stack, sized)
        if block is not None:
            self._memory.free(block, function, stack)

    def _look_before_free(
        self,
        address: int,
        allocator: Allocator,
        function: str,
        stack: Kept,
        sized: int | None = None,
    ) -> HeapBlock | None:
        """Report what is wrong with freeing a block. Nothing is freed yet.

        A block of another family than the function frees, or of another size than the guest says,
        is reported, and is to be freed all the same. The block's red zones, and freed blocks that
        are kept back no longer then, are checked for writes; what these show is reported, too.

        Args:
            address: the pointer that the guest frees; not 0.
            allocator: what the freeing function does; its family must be the block's.
            function: the function's name in the guest.
            stack: return addresses of the call, innermost first.
            sized: bytes that the guest says the block has; None: it does not say.

        Returns:
            The block; None: there is none that can be freed, which is reported.

        Raises:
            HeapError: the check was made with `raising`, and there is a finding.
        """
        memory = self._memory
        block = memory.alive.get(address)
        if block is None:
            freed = memory.freed.get(address)
            if freed is not None:
                self._report(
                    HeapFinding(
                        kind="double-free",
                        address=address,
                        stack=stack,
                        block=freed.block,
                        note=f"by {shown(function)}",
                    )
                )
            else:
                inside = memory.containing(address)
                self._report(
                    HeapFinding(
                        kind="invalid-free",
                        address=address,
                        stack=stack,
                        block=inside,
                        note=f"by {shown(function)}",
                    )
                )
            return None
        self._compare(block, stack, again=self._raising)
        if block.family != allocator.family:
            self._report(
                HeapFinding(
                    kind="mismatched-free",
                    address=address,
                    stack=stack,
                    block=block,
                    note=f"{shown(block.function)}, then {shown(function)}",
                )
            )
        elif sized is not None and sized != block.size:
            self._report(
                HeapFinding(
                    kind="mismatched-free",
                    address=address,
                    stack=stack,
                    block=block,
                    note=f"{shown(function)} says {sized} bytes",
                )
            )
        for leaving in memory.leaving(block):
            self._compare_freed(leaving.block, stack, again=self._raising)
        return block

    def _compare(self, block: HeapBlock, stack: Kept, again: bool = False) -> None:
        """Check a block's red zones, and report a write there that was not seen as it happened.

        Args:
            block: the block, not freed.
            stack: return addresses of the call at which this is noticed; () in check().
            again: True: such writes are reported each time; False: once for each block.

        Raises:
            HeapError: the check was made with `raising`, and there was such a write.
        """
        if self._is_reported(block, again):
            return
        damage = self._memory.damage(block)
        if damage is not None:
            address, behind = damage
            self._report_noticed("overflow" if behind else "underflow", block, address, stack)

    def _compare_freed(self, block: HeapBlock, stack: Kept, again: bool = False) -> None:
        """Check a freed block, and report a write to it that was not seen as it happened.

        Args:
            block: the freed block, which is kept back.
            stack: return addresses of the call at which this is noticed; () in check().
            again: True: such writes are reported each time; False: once for each block.

        Raises:
            HeapError: the check was made with `raising`, and there was such a write.
        """
        if self._is_reported(block, again):
            return
        address = self._memory.changed(block)
        if address is not None:
            self._report_noticed("use-after-free", block, address, stack)

    def _report_noticed(self, kind: str, block: HeapBlock, address: int, stack: Kept) -> None:
        """Report a write outside of a block that was not seen as it happened, and remember that
        the block has been reported.

        Args:
            kind: of the finding (HeapFinding.kind).
            block: the block.
            address: of the first byte that differs.
            stack: return addresses of the call at which this is noticed.

        Raises:
            HeapError: the check was made with `raising`.
        """
        self._noticed_damage.add(block.number)
        self._report(
            HeapFinding(
                kind=kind,
                address=address,
                stack=stack,
                size=1,
                access="w",
                block=block,
                noticed=True,
            )
        )

    def _is_reported(self, block: HeapBlock, again: bool) -> bool:
        """Return True where writes outside of a block are not to be reported any more.

        Args:
            block: the block.
            again: True: only those that were reported as they happened are not.
        """
        number = block.number
        return number in self._seen_damage or (not again and number in self._noticed_damage)

    def check(self) -> list[HeapFinding]:
        """Check the red zones of all blocks, and all freed blocks that are kept back, for writes,
        and report each damaged block once.

        Returns:
            The findings that are new.

        Raises:
            HeapError: the check was made with `raising`, and there is a new finding.
        """
        before = len(self.findings)
        for block in list(self._memory.alive.values()):
            self._compare(block, ())
        for freed in list(self._memory.freed.values()):
            self._compare_freed(freed.block, ())
        return self.findings[before:]

    # --- for Python functions that stand for the guest's

    @property
    def blocks(self) -> list[HeapBlock]:
        """The blocks that are allocated, the oldest first."""
        return sorted(self._memory.alive.values(), key=lambda block: block.number)

    def allocate(self, size: int, function: str = "malloc") -> int:
        """Allocate a block, as malloc() does, for a Python function that the guest calls (bind()).

        Args:
            size: bytes of the block.
            function: name of the function that findings show as having allocated it.

        Returns:
            The block's address; 0: there is no room, or the limit is reached.
        """
        block = self._memory.allocate(size, 1, function, "malloc", ())
        return block.address if block is not None else 0

    # --- accesses

    def _accessed(self, regs: Regs, address: int, size: int, data: bytes | None) -> None:
        """Report an access to marked bytes, unless it is allowed.

        Called by the machine as the guest accesses them. Writing to bytes that were never written
        only takes that mark from them. A read of such bytes is reported, and takes the mark, too. A
        block that was written outside of its bytes is not reported again when it is freed. Of one
        instruction, after TOLD accesses to bytes with the same mark, the further ones are only
        counted, unless the check was made with `raising`.

        Args:
            regs: registers at the instruction.
            address: guest address of the first byte.
            size: bytes of the access; at least one of them is marked.
            data: the bytes to be written; None: it is a read.

        Raises:
            HeapError: the check was made with `raising`, and the access is a finding.
        """
        memory = self._memory
        marks = memory.marks(address, size)
        first = next(n for n, mark in enumerate(marks) if mark)
        bad = next((n for n, mark in enumerate(marks) if mark & ~UNWRITTEN), None)
        if bad is None and data is not None:
            memory.written(address, size)
            return
        access = "r" if data is None else "w"
        at = address + (first if bad is None else bad)
        mark = marks[first if bad is None else bad]
        if data is None and bad is not None and self._may_read_lines(regs, address, size):
            return
        key = (regs.pc, mark, access)
        seen = self._seen[key] = self._seen.get(key, 0) + 1
        if seen > TOLD and not self._raising and key in self._by_place:
            self._by_place[key].count += 1
            return
        kind, block = self._kind(mark, at)
        if block is not None and data is not None:
            self._seen_damage.add(block.number)
        finding = self._report(
            HeapFinding(
                kind=kind,
                address=at,
                stack=self._stack(regs)[: self._depth],
                size=size,
                access=access,
                block=block,
            )
        )
        self._by_place.setdefault(key, finding)
        if bad is None:  # one report for each byte
            memory.written(address, size)

    def _kind(self, mark: int, address: int) -> tuple[str, HeapBlock | None]:
        """Tell what kind of finding an access to a marked byte is.

        Args:
            mark: the byte's mark: RED, FREED, FRESH, UNWRITTEN, or several.
            address: guest address of the byte.

        Returns:
            (kind, as HeapFinding.kind; the block that the byte is in or closest to). The block is
            None where there is none, or where the freed one is kept back no more.
        """
        block = self._memory.nearest(address)
        if mark & FREED:
            if block is not None and not block.address <= address < block.end:
                block = None  # it has been used again since, or is kept back no more
            return "use-after-free", block
        if mark & FRESH or block is None:
            return "wild-access", block
        if mark & UNWRITTEN and block.address <= address < block.end:
            return "uninitialized-read", block
        return "overflow" if address >= block.end else "underflow", block

    def _may_read_lines(self, regs: Regs, address: int, size: int) -> bool:
        """Return True where a read of bytes behind a block is allowed, as its function is one of
        `reads_lines`.

        Such functions, as strlen(), read whole words and vectors, within the page and within
        64 bytes of the block. What was freed they may not read. A read of less than 4 bytes is not
        allowed.

        Args:
            regs: registers at the instruction; pc tells the function.
            address: guest address of the first byte.
            size: bytes of the read.
        """
        if size < SHORTEST:
            return False
        first = max(address + size - LINE, address & -SMALLEST_PAGE)
        marks = self._memory.marks(first, address + size - first)
        if any(mark & FREED for mark in marks[-size:]) or all(mark & ~UNWRITTEN for mark in marks):
            return False
        symbols = self._machine.symbols
        if self._files is not symbols.files:  # modules came or went
            self._files = symbols.files
            self._line_readers.clear()
        may = self._line_readers.get(regs.pc)
        if may is None:
            may = self._line_readers[regs.pc] = self._is_line_reader(regs.pc)
        return may

    def _is_line_reader(self, pc: int) -> bool:
        """Return True where the function, or module, at a code address is one of `reads_lines`."""
        symbols = self._machine.symbols
        symbol = symbols.covering(pc)
        name = symbol.name if symbol is not None else ""
        module = next(
            (name for name, (start, end) in self._machine.modules.items() if start <= pc < end),
            symbols.main,
        )
        return any(
            fnmatchcase(f"{module}:{name}" if ":" in glob else module, glob)
            for glob in self._reads_lines
        )

    # --- stacks

    def _callers(self, regs: Regs) -> Kept:
        """Return the return addresses at a function's entry, innermost first, at most `depth`.

        () where the stack cannot be read.
        """
        return self._stack(regs)[1:]

    def _stack(self, regs: Regs) -> Kept:
        """Return the pc and up to `depth` return addresses, innermost first; not that of the call
        from Python.

        The pc alone where the stack cannot be read.
        """
        try:
            wanted = self._depth + 1
            if wanted <= MOST_KEPT:
                stack = addresses_of(self._k.kept_stack(regs))[:wanted]
            else:
                stack = addresses_of(self._k.stack_trace(regs, wanted).kept())
            outside = self._outside
            return stack[:-1] if outside and stack[-1] == outside else stack
        except (Unsupported, GuestFault):
            return (regs.pc,)

    @cached_property
    def _outside(self) -> int:
        """The address to which a call from Python returns, which is no caller in the guest."""
        return self._machine.exit_address & ~self._machine.arch.pointers.mode_bits

    @cached_property
    def _debug(self) -> DebugInfo:
        """The debug information of the machine's images."""
        return DebugInfo(self._machine)

    def _frames(self, stack: Kept, called: bool) -> list[str]:
        """Return a stack as text, a line for each address.

        Args:
            stack: code addresses, innermost first.
            called: True where the first address is a return address; the others always are.
        """
        return [self._frame(address, called or n > 0) for n, address in enumerate(stack)]

    def _frame(self, address: int, called: bool) -> str:
        """Return a code address as text: symbol, and source line where it is known.

        Args:
            address: the code address.
            called: True for a return address: the line is that of the call in front of it.
        """
        line = self._debug.line(address - 1 if called else address)
        where = self._machine.symbols.describe(address)
        return f"{where} ({line})" if line is not None else where

    # --- findings

    def _report(self, found: HeapFinding) -> HeapFinding:
        """Report a mistake: add it to `findings`, or count it where the same is there already.

        Args:
            found: what was found. What the check knows of its block and its addresses is set here.

        Returns:
            The finding, this one or the earlier one that was counted.

        Raises:
            HeapError: the check was made with `raising`, and the finding, new or counted, is no
                leak.
        """
        block = found.block
        stack = found.stack
        allocated = block.stack if block is not None else None
        number = 0  # findings of one place are one, unless nothing else tells them apart
        if block is not None and (found.kind == "leak" or (found.noticed and not stack)):
            number = block.number
        key = found.kind, found.access, stack, allocated, number
        known = self._by_place.get(key)
        if known is not None:
            known.count += 1
            if not self._raising:
                return known
        freed = self._memory.freed.get(block.address) if block is not None else None
        if freed is not None and freed.block is not block:
            freed = None
        called = not found.access or found.noticed
        found.pc = stack[0] if stack else 0
        found.freed = freed
        found.frames = self._frames(stack, called)
        found.allocated = self._frames(block.stack, True) if block is not None else []
        found.released = self._frames(freed.stack, True) if freed is not None else []
        if known is None:
            self._by_place[key] = found
            self.findings.append(found)
        if self._raising and found.kind != "leak":
            # of this run: blocks and addresses may be others than those of the first
            raise HeapError(found)
        return found

    def new(self) -> list[HeapFinding]:
        """Return the findings that were added since the last call of this method."""
        told, self._told = self._told, len(self.findings)
        return self.findings[told:]

    def report(self) -> str:
        """Return all findings as text, with their stacks."""
        if not self.findings:
            return "no findings"
        return "\n\n".join(map(str, self.findings))

    def json(self) -> str:
        """Return all findings as a JSON array, each an object with the attributes of
        HeapFinding.
        """
        return json.dumps([finding.as_dict() for finding in self.findings], indent=2)

    # --- leaks

    def leaks(self, reachable: bool = False) -> list[HeapFinding]:
        """Find blocks that the guest has lost, so that nothing can free them, and report them.

        A block is lost where no register, no word of memory outside of the heap, and no block that
        is not lost, has a pointer to it or into it. A block that only a lost block points to is not
        reported by itself. Each call that has allocated lost blocks is one finding; blocks that
        were reported are left out of later ones.

        Args:
            reachable: True: report all blocks that are allocated, lost or not.

        Returns:
            The findings that are new.
        """
        alive = self.blocks
        lost = alive if reachable else _lost(alive, self._words_to_scan)
        groups: dict[Kept, list[HeapBlock]] = {}
        for block in lost:
            groups.setdefault(block.stack, []).append(block)
        found = []
        for blocks in groups.values():
            new = [block for block in blocks if block.number not in self._leaked]
            if not new:
                continue
            self._leaked.update(block.number for block in new)
            size = sum(block.size for block in new)
            finding = self._report(
                HeapFinding(
                    kind="leak",
                    address=new[0].address,
                    stack=(),
                    size=size,
                    block=new[0],
                    note=f"{len(new)} blocks of one call, {size} bytes" if len(new) > 1 else "",
                )
            )
            found.append(finding)
        return found

    def _words_to_scan(self, block: HeapBlock | None) -> Iterator[int]:
        """Yield words of the guest that may be pointers to blocks, as unsigned numbers. What cannot
        be read is left out.

        Args:
            block: yield the words of this block; None: those of registers, and of all memory
                outside of the heap, of the stack only what is in use.
        """
        machine = self._machine
        if block is not None:
            yield from self._words_in(block.address, block.size)
            return
        regs = machine.regs
        for name in regs.names:
            with suppress(KprobeError):
                yield regs[name]
        heap = self._memory.ranges
        for start, end in machine.regions():
            if any(low <= start < high for low, high in heap):
                continue
            on_stack = start <= regs.sp < end and machine.arch.callers > 0
            first = (
                regs.sp if on_stack else start
            )  # below lies what is left of calls that have ended
            with suppress(KprobeError):
                yield from self._words_in(first, end - first)

    def _words_in(self, start: int, size: int) -> Iterator[int]:
        """Yield the aligned words in a range of guest memory, as unsigned numbers.

        Args:
            start: address of the first byte; a word that begins in front of it is left out.
            size: bytes of the range.

        Raises:
            GuestFault: the range cannot be read.
        """
        arch = self._machine.arch
        width = arch.bits // 8
        first = -(-start // width) * width
        count = (start + size - first) // width
        if count <= 0:
            return
        data = memoryview(self._machine.read(first, count * width))
        if arch.order.value == sys.byteorder:
            yield from data.cast("Q") if width == 8 else data.cast("I")
        else:
            mark, letter = "<" if arch.order.value == "little" else ">", "Q" if width == 8 else "I"
            yield from struct.unpack(f"{mark}{count}{letter}", data)

    # --- the end

    @alone
    def close(self) -> None:
        """End the check: check all blocks once more, look for leaks, unregister the probes.

        From then on the guest's own allocator functions run again.

        What is found goes to `findings`, also where the check was made with `raising`. Closing
        again does nothing. Blocks that the guest still has must not be freed afterwards: its own
        allocator does not know them.

        Raises:
            MachineBusy: another thread runs the machine; the check goes on.
        """
        if self._closed:
            return
        self._closed = True
        raising, self._raising = self._raising, False
        try:
            with suppress(KprobeError):
                self.check()
            if self._leaks:
                self.leaks()
        finally:
            self._raising = raising
            self._forget()
            with suppress(NotRegistered):
                self._k.unregister_all([probe for probe, _ in self._probes])
            self._memory.close()

    def __enter__(self) -> HeapCheck:
        return self

    def __exit__(self, *exc: object) -> None:
        self._leaks = (
            self._leaks and exc[0] is None
        )  # a guest that was stopped in its midst has freed nothing yet
        self.close()

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        return (
            f"<heap check: {len(self._memory.alive)} blocks, {self._memory.in_use:,} bytes, "
            f"{len(self.findings)} findings>"
        )


@frozen(eq=False)
class _CheckBooks:
    """The state of a heap check that goes back with snapshots of the guest: blocks and reports.

    Attributes:
        memory: has the blocks.
        reported: sets of blocks' numbers that were reported. Numbers come again after a snapshot.
    """

    memory: HeapMemory
    reported: tuple[set[int], ...]

    @property
    def snapshot_state(self) -> tuple[HeapState, tuple[frozenset[int], ...]]:
        """(The heap's state, as HeapMemory.snapshot_state; copies of the sets).

        Setting it brings both back; None: to a heap without blocks, and empty sets.
        """
        return self.memory.snapshot_state, tuple(frozenset(numbers) for numbers in self.reported)

    @snapshot_state.setter
    def snapshot_state(self, then: tuple[HeapState, tuple[frozenset[int], ...]] | None) -> None:
        nothing: frozenset[int] = frozenset()
        heap, reported = then or (None, (nothing,) * len(self.reported))
        self.memory.snapshot_state = heap
        for numbers, before in zip(self.reported, reported, strict=True):
            numbers.clear()
            numbers.update(before)


class _Pointers:
    """Finds which blocks words of the guest point to: into them, or just behind their last byte.

    Attributes:
        blocks: the allocated blocks, sorted by address; at least one.
    """

    def __init__(
        self, blocks: list[HeapBlock], words: Callable[[HeapBlock | None], Iterator[int]]
    ) -> None:
        """Prepare; no word is read yet.

        Args:
            blocks: the allocated blocks, at least one.
            words: (block) -> the words in it; (None) -> those of registers and of memory outside of
                the heap.
        """
        self.blocks = sorted(blocks, key=lambda block: block.address)
        self._starts = [block.address for block in self.blocks]
        self._words = words

    def targets(self, block: HeapBlock | None) -> set[int]:
        """Return which blocks the words of a block point to, perhaps itself: indices in `blocks`.

        Args:
            block: the block; None: the words of registers and of memory outside of the heap.
        """
        found = set[int]()
        low, high = self._starts[0], self.blocks[-1].end
        for word in self._words(block):
            if low <= word <= high:
                n = bisect_right(self._starts, word) - 1
                if word <= self.blocks[n].end:
                    found.add(n)
        return found

    def follow(self, first: set[int], reached: set[int]) -> None:
        """Add blocks, and all blocks that they point to directly or through others, to `reached`.

        Args:
            first: indices in `blocks` of the blocks to begin with. Those that are in `reached`
                already are not followed again.
            reached: indices in `blocks` of the blocks reached so far; filled.
        """
        todo = list(first - reached)
        reached |= first
        while todo:
            for n in self.targets(self.blocks[todo.pop()]) - reached:
                reached.add(n)
                todo.append(n)


def _lost(
    blocks: list[HeapBlock], words: Callable[[HeapBlock | None], Iterator[int]]
) -> list[HeapBlock]:
    """Return the lost blocks that no other lost block points to; of a lost circle, one block; []
    where none is lost.

    Args:
        blocks: the allocated blocks.
        words: (block) -> the words in it; (None) -> those of registers and of memory outside of the
            heap.
    """
    if not blocks:
        return []
    pointers = _Pointers(blocks, words)
    reached = set[int]()
    pointers.follow(pointers.targets(None), reached)
    lost = [n for n in range(len(blocks)) if n not in reached]
    led_to = {target for n in lost for target in pointers.targets(pointers.blocks[n]) - {n}}
    found = [n for n in lost if n not in led_to]
    pointers.follow(set(found), reached)
    for n in lost:
        if n not in reached:
            found.append(n)
            pointers.follow({n}, reached)
    return [pointers.blocks[n] for n in found]
