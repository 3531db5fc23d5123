"""The stack of a hit: by call frame information, else along the guest's frame pointers.

A return address that a return probe has replaced by the trampoline's is shown as it was. Where the
walk ends early, the calls that return probes follow (for a call graph: all) tell further callers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import cached_property
from typing import Protocol

from ...arch._base import Arch
from ...errors import GuestFault, KprobeError, Unsupported
from ...machine._base import Machine
from ...regs import Regs
from ...stacks import Stack, Step, addresses_of, is_incomplete
from .calls import CallsUnderWay, Followed


class CallFrames(Protocol):
    """The call frame information of the guest's files, by which stacks are walked."""

    def row(self, pc: int) -> object | None:
        """Return what the information says of the instruction at `pc`; None: nothing."""

    def step(self, pc: int) -> Step | None:
        """Return the way from the function at `pc` to its caller; None: it is not of the usual
        kind, or there is no information.
        """

    def begins_program(self, address: int) -> bool:
        """Return True if `address` is in the function in which a loaded file's program begins: it
        has no caller.
        """

    def walk(
        self,
        regs: Regs,
        seen: Callable[[int], int],
        found: list[int],
        limit: int,
        end: int = 0,
        entered_from: int | None = None,
    ) -> bool:
        """Append the return addresses of a stack to `found`, from the innermost caller outwards.

        Args:
            regs: registers of the CPU; regs.pc is in the innermost function.
            seen: (return address in the guest) -> the true one.
            found: receives the return addresses, without mode bits.
            limit: how many it may have in all.
            end: a return address at which the walk stops, once it is appended; 0: none.
            entered_from: the return address of a function of which pc is the entry: the walk begins
                at its caller. None: it begins at pc.

        Returns:
            True where the outermost caller was found.
        """


def stack_trace(
    calls: CallsUnderWay,
    frames: CallFrames,
    machine: Machine,
    regs: Regs,
    limit: int,
    at_entry: bool,
) -> Stack:
    """Return the stack of a hit: pc, then return addresses from the innermost frame outwards.

    Args:
        calls: the calls that return probes follow.
        frames: has the call frame information.
        machine: runs the guest.
        regs: the registers at the hit.
        limit: the most addresses, pc included.
        at_entry: True where pc is at the first instruction of a function.

    Raises:
        Unsupported: only pc is known: the code there has no call frame information, the
            architecture has no frame-pointer convention, pc is not at a function's entry, and no
            return probe follows the function.
    """
    return _StackWalk(calls, frames, machine, regs, limit).stack(at_entry)


class Stacks:
    """Gives the stacks of one Kprobes' hits, by the machine where it can walk them."""

    def __init__(
        self,
        calls: CallsUnderWay,
        read_frames: Callable[[], CallFrames],
        above: int,
        machine: Machine,
        points: Container[int],
        begins: Callable[[int], bool],
    ) -> None:
        """Prepare; where the machine can walk stacks, it makes its walk here.

        Args:
            calls: the calls that return probes follow.
            read_frames: called at the first stack; makes the object that has the call frame
                information.
            above: bytes from a canonical frame address to the caller's stack pointer register.
            machine: runs the guest.
            points: addresses that are probed.
            begins: (address of a probe) -> True where a function begins there.
        """
        self._points = points
        self._begins = begins
        self._calls = calls
        self._read_frames = read_frames
        self._machine = machine
        walking = machine.stack_walking if machine.cpus == 1 else None
        self._walk = (
            None
            if walking is None
            else walking.begin(calls, machine.symbols, self._look, above, points)
        )
        self._files: object = None
        self._changes = -1

    @cached_property
    def _frames(self) -> CallFrames:
        """The object that has the call frame information; made when it is first needed."""
        return self._read_frames()

    def of(self, regs: Regs, limit: int) -> Stack:
        """Return the stack of a hit: pc, then return addresses from the innermost frame outwards.

        The machine walks the stack where it can, else it is walked in Python.

        Args:
            regs: the registers at the hit.
            limit: the most addresses, pc included.

        Raises:
            Unsupported: only pc is known: no call frame information and no followed call leads on,
                and the architecture has no frame-pointer convention.
        """
        kept = None if self._walk is None else self._walk.walk(regs, limit)
        if kept is not None:
            return Stack(addresses_of(kept), is_incomplete(kept))
        at_entry = regs.pc in self._points and self._begins(regs.pc)
        at_entry = at_entry or self._is_stub(regs.pc)
        return stack_trace(self._calls, self._frames, self._machine, regs, limit, at_entry)

    def keeper(self, plain: Callable[[Regs], tuple[int, ...]]) -> Callable[[Regs], tuple[int, ...]]:
        """Return the quickest function that takes a stack in the form in which records keep it.

        Args:
            plain: (registers) -> the stack in that form (stacks.Stack.kept), worked out in Python;
                it is returned where the machine walks no stacks.

        Returns:
            (registers) -> pc and return addresses.
        """
        return plain if self._walk is None else self._walk.keeper(plain)

    def _look(self, pc: int) -> None:
        """Tell the machine's stack walk how to find the caller of the function at an address.

        Called by that walk where it comes to an address that it does not know. Where files were
        loaded or symbols have changed, the walk first forgets what it knows.

        The walk gets the step to the caller's frame, whether call frame information covers the
        address, whether the guest's program begins there, and whether a function does or a stub is
        there (None: not asked, since the address is covered or not probed).

        Args:
            pc: the address.
        """
        symbols = self._machine.symbols
        assert self._walk is not None
        if self._files is not symbols.files or self._changes != symbols.changes:
            self._files = symbols.files
            self._changes = symbols.changes
            self._walk.forget(self._files, self._changes)
        known = self._frames.row(pc) is not None
        begins = None
        if not known:
            if self._is_stub(pc):
                begins = True
            elif pc in self._points:
                begins = self._begins(pc)
        self._walk.put(
            pc,
            self._frames.step(pc),
            known,
            self._frames.begins_program(pc),
            begins,
        )

    def _is_stub(self, pc: int) -> bool:
        """Return True if `pc` is in a stub that leads to an import.

        A stub changes neither the stack nor the link register: as at a function's entry, the return
        address is where the call has left it. A call of an import that no file has stops there.
        """
        symbol = self._machine.symbols.covering(pc)
        return symbol is not None and symbol.name.endswith(("@plt", "@import"))


class _StackWalk:
    """A walk of a stack, from pc to the outermost caller. For one use: stack().

    `_found` has the addresses so far, pc first.
    """

    def __init__(
        self, calls: CallsUnderWay, frames: CallFrames, machine: Machine, regs: Regs, limit: int
    ) -> None:
        """Begin a walk at a hit; nothing is read yet.

        Args:
            calls: the calls that return probes follow.
            frames: has the call frame information.
            machine: runs the guest.
            regs: the registers at the hit.
            limit: the most addresses, pc included.
        """
        self._calls = calls
        self._frames = frames
        self._machine = machine
        self._arch: Arch = machine.arch
        self._regs = regs
        self._limit = limit
        self._found = [regs.pc]

    @cached_property
    def _followed(self) -> Iterator[Followed]:
        """The task's followed calls that the walk has not reached, the youngest first."""
        return self._calls.followed(self._regs)

    @cached_property
    def _next(self) -> Followed | None:
        """The youngest followed call that the walk has not reached; None: there is none."""
        return next(self._followed, None)

    def stack(self, at_entry: bool) -> Stack:
        """Walk the stack and return what was found.

        Where call frame information covers pc the walk goes by that, then by the followed calls.
        Else, at a function's entry, the return address comes first; where call frame information
        covers that, the walk goes on by it. Otherwise it goes by the followed calls, then by frame
        pointers. The result is cut to the limit, and marked as incomplete where callers are
        missing.

        Args:
            at_entry: True where pc is at the first instruction of a function: the return address is
                then where a call has just left it.

        Raises:
            Unsupported: only pc is known: no call frame information and no followed call leads on,
                and the architecture has no frame-pointer convention.
        """
        if self._is_exception_return(self._regs.pc):
            return self._cut(self._by_frame_information(self._regs.pc))
        if self._frames.row(self._regs.pc) is not None:
            ended = self._by_frame_information()
            if not ended:
                self._by_followed_calls()
        else:
            if at_entry and self._arch.linkage is not None:
                link = self._seen_through(self._arch.linkage.get(self._regs))
                link &= ~self._arch.pointers.mode_bits
                if self._is_exception_return(link):
                    return self._cut(self._by_frame_information(link))
                self._found.append(link)
                # an import's stub has no call frame information, its caller may
                if self._frames.row(link - 1) is not None:
                    return self._cut(self._by_frame_information(link))
            ended = self._by_pointers(self._by_followed_calls())
        return self._cut(ended)

    def _cut(self, ended: bool) -> Stack:
        """Return the addresses found so far as a Stack, cut to the limit.

        It is marked as incomplete where callers are missing.

        Args:
            ended: True where the walk has found the outermost caller.
        """
        found = self._found[: self._limit]
        whole = ended and len(found) == len(self._found)
        return Stack(found, not whole and not self._is_outermost(found))

    def _is_exception_return(self, address: int) -> bool:
        """Return True if an address is what an exception's handler returns to, which is no code.

        Args:
            address: a return address, or pc when the handler has returned.
        """
        returns = None if self._arch.linkage is None else self._arch.linkage.exceptions
        return returns is not None and returns.include(address)

    def _by_frame_information(self, entered_from: int | None = None) -> bool:
        """Append to `_found` the return addresses that call frame information gives.

        Args:
            entered_from: where the function at pc, which has just been entered, was called from;
                the walk begins there. None: it begins at pc. For an exception's handler: the walk
                begins at the code that the exception has interrupted, which is appended as well.

        Returns:
            True where the walk has reached the outermost caller.
        """
        # a guest function that Python has called returns there: it is the outermost one
        end = self._machine.exit_address & ~self._arch.pointers.mode_bits
        return self._frames.walk(
            self._regs, self._seen_through, self._found, self._limit, end, entered_from
        )

    def _by_followed_calls(self) -> Followed | None:
        """Append to `_found` the return addresses of followed calls, as long as each is the next
        caller.

        Returns:
            The last call whose return address was appended; None: there was none.
        """
        last = None
        while (
            self._next is not None and len(self._found) < self._limit and self._is_next(self._next)
        ):
            last = self._next
            self._found.append(last.link & ~self._arch.pointers.mode_bits)
            self._next = next(self._followed, None)
        return last

    def _is_next(self, call: Followed) -> bool:
        """Return True if a followed call is one of the function that the last address found lies
        in.
        """
        last = self._found[-1]
        function = self._machine.symbols.covering(last if len(self._found) == 1 else last - 1)
        return function is not None and any(
            entered is not None and entered.address == function.address
            for entered in map(self._machine.symbols.covering, call.entries)
        )

    def _by_pointers(self, above: Followed | None) -> bool:
        """Append to `_found` the return addresses that frame pointers lead to.

        Args:
            above: the outermost call whose return address was appended already: its frame and those
                below it are skipped. None: there is none.

        Returns:
            True where the walk has found a return address, and then a return address or frame
            pointer of 0: the outermost caller was found.

        Raises:
            Unsupported: only pc is known, the architecture has no frame-pointer convention, and the
                function at pc, which is in memory, is not known to be the outermost.
        """
        shape = self._arch.linkage.frame if self._arch.linkage is not None else None
        if shape is None:
            if not self._is_mapped(self._regs.pc):
                return False
            if len(self._found) == 1 and not self._is_outermost(self._found):
                raise Unsupported(
                    f"{self._arch.name} has no frame-pointer convention, and the code at pc no "
                    "call frame information",
                    address=self._regs.pc,
                    hint="build the guest with -fasynchronous-unwind-tables or -g",
                )
            return False
        regs = self._regs
        base = regs[shape.register]
        # code that keeps no frame pointers has anything in the register: data, or the frame of an
        # outer caller
        if (base - regs.sp) * self._arch.callers < 0:
            return False
        seen = False
        while base and len(self._found) < self._limit:
            try:
                next_base = regs.word(base + shape.next)
                if shape.above and not next_base:
                    return seen  # no frame has the return address
                # shape.above: a return address lies in the frame of the caller, not in the
                # function's own
                where = next_base if shape.above else base + shape.address
                address = regs.word(next_base + shape.address if shape.above else where)
            except GuestFault:
                return False
            if not address:
                return seen
            caller = self._seen_through(address) & ~self._arch.pointers.mode_bits
            if not self._is_mapped(caller):
                return False
            if above is None or (above.frame - where) * self._arch.callers < 0:
                self._found.append(caller)
            seen = True
            if next_base <= base:
                return not next_base
            base = next_base
        return seen and not base

    def _is_mapped(self, address: int) -> bool:
        """Return True if a return address leads to mapped memory.

        A machine behind a stub does not know code that was loaded later: it is asked for a byte.
        """
        try:
            return self._machine.executable(address) or bool(self._machine.read(address, 1))
        except KprobeError:
            return False

    def _seen_through(self, address: int) -> int:
        """Return the true return address for a word found in a frame.

        The trampoline's address stands in the frames of followed calls, in their order. So each one
        that is found stands for the next followed call. Call this once for each word: it goes on to
        the next followed call.

        Args:
            address: the word; any other than the trampoline's address is returned as it is, but
                for its signature.
        """
        address = self._arch.pointers.without_signature(address)
        if address != self._calls.trampoline or self._next is None:
            return address
        link, self._next = self._next.link, next(self._followed, None)
        return link

    def _is_outermost(self, found: list[int]) -> bool:
        """Return True if the function that a stack ends in has no caller in the guest.

        Args:
            found: the stack's addresses, pc first.
        """
        if not found:
            return False
        last, end = found[-1], self._machine.exit_address
        return (
            end != 0 and last == end & ~self._arch.pointers.mode_bits
        ) or self._frames.begins_program(last - (len(found) > 1))
