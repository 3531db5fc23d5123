"""Functions, found from what tells of them.

What is sure comes first: symbols, unwind tables, what headers and vectors name. Then the code
between is decoded, and direct calls lead to functions. Then come jumps out of a function, and code
that nothing falls into or branches to. A raw image may have data anywhere: there only code that is
reached is decoded, and code that begins as the architecture's functions usually do.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import define, field, frozen

from ..arch._base import Arch, Decoded, plain_address
from ..errors import GuestFault
from ..image import CodeLayout, Symbol
from ._frames import frame_ranges, index_starts
from ._sweep import Sweep, Sweeper, fills

_LONGEST_EXIT = 64  #: bytes of an error exit in front of a function, at most
LONGEST = 1 << 18  #: bytes of a function of a raw image, at most
_TRIED = 8  # instructions that must make sense where a function is thought to begin
_AHEAD = 64  # bytes behind a stretch that an instruction in it may have
SYMBOL, UNWIND, SECTION, HEADER, POINTER, CALL, JUMP, GAP, OPENING = (
    "symbol",
    "unwind table",
    "section",
    "header",
    "pointer",
    "call",
    "jump",
    "gap",
    "opening",
)


@frozen(order=True)
class Found:
    """A function that was found.

    Attributes:
        address: address of its first instruction, without mode bits.
        size: bytes up to its end as far as is known, or to the next function.
        mode: mode bits of its code, such as Thumb's 1.
        why: what told of it: "symbol", "unwind table", "section" (it begins there), "header",
            "pointer", "call", "jump", "gap", "opening".
        name: its symbol's name; `fn_ADDRESS` where it had none.
    """

    address: int
    size: int
    mode: int
    why: str
    name: str


def discover(machine: Any) -> tuple[Found, ...]:
    """Find functions of a machine's images, and add a symbol for each without: `fn_08000123`.

    Args:
        machine: any machine that has symbols, and memory to read. The images that it has loaded are
            searched.

    Returns:
        All functions, those with symbols too, in order of their addresses.
    """
    found: list[Found] = []
    for layout in machine.symbols.layouts:
        found += _Search(machine, layout).functions()
    for f in found:
        if f.why != SYMBOL:
            machine.symbols.add(f.name, f.address, f.size, _module(machine, f.address), f.mode)
    return tuple(sorted(found))


def _module(machine: Any, address: int) -> str:
    """Return the name of the module whose text covers an address; "": none does."""
    layouts: tuple[CodeLayout, ...] = machine.symbols.layouts
    return next((x.module for x in layouts for start, end in x.text if start <= address < end), "")


@define
class _Stretch:
    """A section of text in guest memory.

    Attributes:
        start: address of the first byte.
        end: address behind the last byte.
        code: its bytes, and up to _AHEAD of those behind it.
    """

    start: int
    end: int
    code: bytes = field(repr=False)


class _Search:
    """The search through one image. Its steps add to `_known`, address -> (mode bits, why).

    Linkers' stubs (PLT) are added only where symbols, headers, unwind tables, or words of data name
    them.
    """

    def __init__(self, machine: Any, layout: CodeLayout) -> None:
        """Read the image's text from guest memory; nothing is searched yet.

        Args:
            machine: the guest's machine.
            layout: where the image has text, unwind tables and words of data.
        """
        self._machine = machine
        self._layout = layout
        self._arch: Arch = machine.arch
        self._order: str = self._arch.order.value
        self._text = [
            _Stretch(start, end, self._read(start, end - start + _AHEAD))
            for start, end in layout.text
        ]
        self._starts = [stretch.start for stretch in self._text]
        self._known: dict[int, tuple[int, str]] = {}  # address -> (mode, why)
        self._names: dict[int, Symbol] = {}
        self._frames: list[tuple[int, int]] = []  # sorted (start, end) of unwind tables
        self._sweeper = Sweeper(self._arch, Sweep())
        self._decoded: dict[int, int] = {}  # function -> where its last instruction ends
        self._complete = False  # the unwind tables tell of nearly all code
        self._sorted_ends: list[int] = []
        self._mode = 0  # of code that nothing tells the mode of

    def functions(self) -> Iterator[Found]:
        """Search the image, and return its functions in order of their addresses."""
        self._sure()
        if self._layout.raw:
            self._follow()
        else:
            self._sweep()
            self._error_exits()
            self._calls()
            self._pointers()
            self._jumps()
            self._gaps()
        return self._found()

    # --- what is sure

    def _sure(self) -> None:
        """Add the functions of symbols, headers, unwind tables and (of a raw image) vectors.

        Where unwind tables do not cover most of the text, the begin of each section is added, too.
        Sets `_names`, `_mode`, `_frames` and `_complete`, which later steps read.
        """
        for symbol in self._machine.symbols:
            if symbol.kind in ("func", "ifunc") and symbol.module == self._layout.module:
                entry = self._arch.pointers.code_address(
                    symbol.address | symbol.mode, self._machine.read
                )
                if self._stretch(entry.addr) is not None:
                    self._known[entry.addr] = entry.mode | symbol.mode, SYMBOL
                    self._names.setdefault(entry.addr, symbol)
        self._mode = self._usual_mode()
        for address in self._layout.starts:
            entry = self._arch.pointers.code_address(address, self._machine.read)
            self._add(entry.addr, entry.mode, HEADER)
        table = self._read(*self._layout.frames) if self._layout.frames[1] else b""
        self._frames = sorted(
            (start, end)
            for start, end in frame_ranges(
                table, self._layout.frames[0], self._arch.bits, self._order
            )
            if self._stretch(start) is not None
        )
        for start, _ in self._frames:
            self._add(start, self._mode_at(start), UNWIND)
        self._complete = 5 * sum(end - start for start, end in self._frames) > 4 * sum(
            stretch.end - stretch.start for stretch in self._text
        )
        if not self._complete and not self._layout.raw:
            for start in self._starts:
                self._add(start, self._mode_at(start), SECTION)
        index = self._read(*self._layout.index) if self._layout.index[1] else b""
        for start in index_starts(index, self._layout.index[0], self._order):
            self._add(start, self._mode_at(start), UNWIND)
        if self._layout.raw:
            self._vectors()

    def _vectors(self) -> None:
        """Add the functions at pc and in the vector table of a raw image.

        The table is at the image's start; its first word, the stack pointer, and words of 0 are
        passed over. It ends in front of the lowest of these functions,
        or at another word that is no address of code with mode bits.
        """
        arch, first = self._arch, self._text[0]
        pc = self._machine.regs.pc
        mode = self._mode_of_raw()
        self._add(pc, mode, HEADER)
        if arch.files.vectors is None:
            return
        word = arch.bits // 8
        lowest = pc
        for at in range(first.start + word, first.end - word, word):
            value = int.from_bytes(self._read(at, word), self._order)  # type: ignore[arg-type]
            address = value & ~arch.pointers.mode_bits
            if at >= lowest or (
                value and (self._stretch(address) is None or not value & arch.pointers.mode_bits)
            ):
                break
            if value:
                self._add(address, value & arch.pointers.mode_bits, HEADER)
                lowest = min(lowest, address)

    def _mode_of_raw(self) -> int:
        """Return the mode bits of a raw image's first code.

        The bits are those of its reset vector; without vectors, those of the code at pc.
        """
        vectors = self._arch.files.vectors
        if vectors is not None:
            return vectors(self._text[0].code)[1] & self._arch.pointers.mode_bits
        return self._mode_at(self._machine.regs.pc)

    def _usual_mode(self) -> int:
        """Return the mode bits that most known functions have.

        Where no function is known, those of the image's entry; without an entry, the architecture's
        lowest.
        """
        modes = [mode for mode, _ in self._known.values()]
        for address in self._layout.starts[: 0 if modes else 1]:
            entry = self._arch.pointers.code_address(address, self._machine.read)
            modes = [entry.mode]
        return max(set(modes), key=modes.count) if modes else min(self._arch.traps.end)

    def _mode_at(self, address: int) -> int:
        """Return the mode bits of code at an address.

        The bits are those of the function that is known there; else those in which more
        instructions make sense, the usual ones where it is a draw.
        """
        known = self._known.get(address)
        if known is not None:
            return known[0]
        modes = sorted(self._arch.traps.end, key=lambda mode: mode != self._mode)
        if len(modes) == 1:
            return self._mode
        return max(modes, key=lambda mode: self._sense(address, mode))

    def _sense(self, address: int, mode: int) -> int:
        """Return how many instructions from an address on make sense in a mode. Four bytes of zeros
        count as none, except in a delay slot.

        Args:
            address: address of the first instruction.
            mode: mode bits, such as Thumb's 1.

        Returns:
            0 to _TRIED, where counting stops. _TRIED as well where the code ends before in a jump
            or return. -1: the address is in no text, or not aligned as the mode needs.
        """
        stretch = self._stretch(address)
        if stretch is None or (address | mode) & mode != mode:
            return -1
        if not mode and address % 4 and self._arch.pointers.mode_bits:
            return -1
        at = address
        in_slot = False
        for n in range(_TRIED):
            code = stretch.code[at - stretch.start : at - stretch.start + 2 * self._arch.max_insn]
            if at >= stretch.end or not (
                in_slot or any(code[:4])
            ):  # a delay slot may well have a nop that is zeros
                return n
            insn = self._arch.decode(code, at | mode)
            if insn.decoded is not Decoded.WHOLE:
                return n
            if not insn.falls_through:
                return _TRIED
            at += insn.size
            in_slot = insn.delay_slot
        return _TRIED

    # --- whole text

    def _sweep(self) -> None:
        """Decode all text from end to end; calls, jumps and ends go into the sweeper's findings."""
        for stretch in self._text:
            inside = {
                address: mode
                for address, (mode, _) in sorted(self._known.items())
                if stretch.start <= address < stretch.end
            }
            self._sweeper.run(
                stretch.code,
                stretch.start,
                stretch.end,
                inside,
                self._machine.symbols.data_end,
                self._mode,
            )

    def _error_exits(self) -> None:
        """Move the start of functions behind the error exits of glibc's system calls on MIPS:
        `_known` loses the exit's address and gets the function's.

        Such an exit stands in front of a function, and goes by a computed jump to where errno is
        set. The function branches back to it where the system call has failed. An unwind table's
        entry begins with the exit: it has the exit alone, or the function as well.
        """
        sweep = self._sweeper.sweep
        called = {target & ~self._arch.pointers.mode_bits for target in sweep.calls}
        computed, known = sorted(sweep.computed), sorted(self._known)
        for start, _ in self._frames:
            branch = sweep.backward.get(start, 0)
            if not branch or start in called or self._known.get(start, (0, ""))[1] != UNWIND:
                continue
            first = bisect.bisect_right(self._ends, start)
            begin = self._ends[first] if first < len(self._ends) else branch
            jump = bisect.bisect_left(computed, start)
            behind = bisect.bisect_right(known, begin)
            if (
                begin < branch < (known[behind] if behind < len(known) else 1 << 64)
                and begin - start <= _LONGEST_EXIT
                and jump < len(computed)
                and computed[jump] < begin
                and (begin in self._known or self._opens(begin))
            ):
                mode, _ = self._known.pop(start)
                self._add(begin, mode, UNWIND)

    def _calls(self) -> None:
        """Add the functions that direct calls lead to.

        Calls into the middle of a function that has an unwind entry are passed over.

        Targets at which no instruction was decoded are decoded now; up to four rounds follow new
        calls.
        """
        sweep = self._sweeper.sweep
        for _ in range(4):
            new = [target for target in sweep.calls if self._may_be_called(target)]
            for target in new:
                start = self._before_local(target & ~self._arch.pointers.mode_bits)
                self._add(start, target & self._arch.pointers.mode_bits, CALL)
            again = [
                target
                for target in new
                if target & ~self._arch.pointers.mode_bits not in sweep.starts
            ]
            for target in again:
                self._decode_again(
                    target & ~self._arch.pointers.mode_bits, target & self._arch.pointers.mode_bits
                )
            if not again:
                return

    def _before_local(self, address: int) -> int:
        """Return the address where a function begins that is called at an address.

        On PowerPC64 a call may go to a function's local entry, 4 or 8 bytes behind the global one,
        which is returned. Other addresses are returned as they are.

        Args:
            address: the address that is called, without mode bits.
        """
        entry = self._arch.pointers.code_address
        for before in (8, 4):
            if entry is not plain_address and self._stretch(address - before) is not None:
                read = self._machine.read
                if entry(address - before, read).local == before:
                    return address - before
        return address

    def _may_be_called(self, target: int) -> bool:
        """Return True where the target of a call may be a function that is not known yet.

        That is code which makes sense, in text, and within no function that an unwind table tells
        of.

        Args:
            target: address with mode bits.
        """
        address = target & ~self._arch.pointers.mode_bits
        if address in self._known or self._stretch(address) is None or self._inside_frame(address):
            return False
        if self._before_local(address) in self._known:
            return False
        return self._sense(address, target & self._arch.pointers.mode_bits) == _TRIED

    def _decode_again(self, address: int, mode: int) -> None:
        """Decode from an address up to the next known function, and add that to the findings.

        Called for the target of a call at which the first sweep saw no instruction: it had decoded
        that code out of step, or in another mode. What it had found there stays.

        Args:
            address: where the code begins, without mode bits.
            mode: its mode bits.
        """
        stretch = self._stretch(address)
        assert stretch is not None
        known = sorted(self._known)
        n = bisect.bisect_right(known, address)
        end = min([stretch.end, *known[n : n + 1]])
        self._sweeper.run(
            stretch.code[address - stretch.start : end - stretch.start + _AHEAD],
            address,
            end,
            {},
            self._machine.symbols.data_end,
            mode,
        )

    def _pointers(self) -> None:
        """Add the functions whose addresses are in words of data: tables of functions, callbacks.

        Only the words that the layout names are read. A word's mode bits are the function's;
        without any, _mode_at() tells them. Passed over are addresses within a function, such as
        those in a jump table, addresses that code in front falls into or branches to, and those
        where no code makes sense.
        """
        word = self._arch.bits // 8
        branches = self._sweeper.sweep.branches
        for place in self._layout.words:
            value = int.from_bytes(self._read(place, word), self._order)  # type: ignore[arg-type]
            address = value & ~self._arch.pointers.mode_bits
            mode = value & self._arch.pointers.mode_bits
            if (
                self._stretch(address) is not None
                and address not in self._known
                and address % self._arch.insn_align == 0
                and not self._inside_frame(address)
                and address not in branches
                and self._behind_end(address)
                and self._sense(address, mode or self._mode_at(address)) == _TRIED
            ):
                self._add(address, mode or self._mode_at(address), POINTER)

    def _jumps(self) -> None:
        """Add the functions that unconditional jumps out of a function lead to (tail calls). Passed
        over are targets that lie within a function with an unwind entry, that code in front falls
        into or branches to, and where no code makes sense.
        """
        sweep, known = self._sweeper.sweep, sorted(self._known)
        new = []
        for at, target in sweep.jumps:
            address = target & ~self._arch.pointers.mode_bits
            n = bisect.bisect_right(known, at)
            first, behind = known[n - 1] if n else 0, known[n] if n < len(known) else 1 << 64
            if first <= address < behind or address in self._known or address in sweep.branches:
                continue
            if (
                self._stretch(address) is not None
                and not self._inside_frame(address)
                and self._behind_end(address)
                and self._sense(address, target & self._arch.pointers.mode_bits) == _TRIED
            ):
                new.append((self._before_local(address), target & self._arch.pointers.mode_bits))
        for address, mode in new:
            self._add(address, mode, JUMP)

    def _gaps(self) -> None:
        """Add functions at code behind an end or a call, and behind padding there, to which nothing
        branches or jumps and which lies in no function with an unwind entry.

        Where such code does not begin as a function usually does, it may be a case of a jump table.
        It is then added only if all of this holds: it is behind an end, without zeros between, at a
        multiple of a word; it makes sense; its mode bits are 0; no computed jump stands between the
        function in front and it; and unwind tables do not cover most of the text.
        """
        sweep = self._sweeper.sweep
        targets = sweep.branches | {
            target & ~self._arch.pointers.mode_bits for _, target in sweep.jumps
        }
        computed, known = sorted(sweep.computed), sorted(self._known)
        last = 0
        ends = set(sweep.ends)
        for end in sorted({*ends, *sweep.returns}):
            address, blank = self._padded(end)
            if (
                address is None
                or address in self._known
                or address in targets
                or self._inside_frame(address)
            ):
                continue
            n = bisect.bisect_right(known, address) - 1
            start = max(known[n] if n >= 0 else 0, last)
            opening = self._opens(address)
            if not opening:
                mode = self._mode_at(address)
                if blank or address % (self._arch.bits // 8):
                    continue
                if (
                    self._complete or end not in ends or mode
                ):  # Thumb code has halves of others behind its ends
                    continue
                c = bisect.bisect_left(computed, start)
                if c < len(computed) and computed[c] < address:
                    continue
                if self._sense(address, mode) < _TRIED:
                    continue
            if self._add(address, self._mode_at(address), OPENING if opening else GAP):
                last = address

    def _padded(self, end: int) -> tuple[int | None, bool]:
        """Pass over padding (nops, zeros, data) behind the end of code.

        Args:
            end: address behind an instruction that never falls through.

        Returns:
            (address of the first instruction behind the padding; True where there were zeros that
            are no instructions, as tables may begin with). The address is None where text ends, no
            instruction was decoded there by the sweep, or after 64 pieces of padding.
        """
        stretch, mode = self._stretch(end), self._mode
        if stretch is None:
            return None, False
        at, blank = end, False
        for _ in range(64):
            skipped = self._sweeper.sweep.data.get(at, 0) or self._machine.symbols.data_end(at)
            if skipped > at:
                at = skipped
                continue
            if at >= stretch.end:
                return None, blank
            # what is decoded in data by mistake seems to read anything: what opens as a function is
            # one
            passed = self._sweeper.sweep.passed.get(at, 0)
            if passed > at and not self._opens(at):
                at = passed
                continue
            offset = at - stretch.start
            step = max(self._arch.insn_align, 2)
            code = stretch.code[offset : offset + step]
            kind = self._sweeper.kind(stretch.code, offset, mode)
            if kind is None:
                insn = self._arch.decode(
                    stretch.code[offset : offset + 2 * self._arch.max_insn], at | mode
                )
                raw, name, whole = insn.raw, insn.name, insn.decoded is Decoded.WHOLE
            else:
                raw, name, whole = stretch.code[offset : offset + kind.size], kind.name, True
            if not any(code) or code[:1] == b"\xcc":
                blank = blank or not whole
                at += self._arch.insn_align
                continue
            if not fills(raw, name):
                return (at if at in self._sweeper.sweep.starts else None), blank
            at += len(raw)
        return None, blank

    def _behind_end(self, address: int) -> bool:
        """Return True where an address is the first behind an end of code and its padding.

        So the code in front of it never falls through to it.

        Args:
            address: where a function is thought to begin.
        """
        ends = self._ends
        n = bisect.bisect_right(ends, address) - 1
        return n >= 0 and self._padded(ends[n])[0] == address

    @property
    def _ends(self) -> list[int]:
        """The addresses behind instructions that never fall through, sorted."""
        if len(self._sorted_ends) != len(self._sweeper.sweep.ends):
            self._sorted_ends = sorted(self._sweeper.sweep.ends)
        return self._sorted_ends

    # --- raw images

    def _follow(self) -> None:
        """Decode a raw image's functions from those that are known; search the rest for openings.

        An opening is a pattern of bytes with which the architecture's functions usually begin.
        """
        covered: list[tuple[int, int]] = []
        queue = sorted(self._known)
        while queue:
            self._reach(queue, covered)
            before = set(self._known)
            self._jumps()  # over a function that is known by now
            queue = sorted(self._known.keys() - before)
        opens = self._arch.walking.opens.get(self._mode)
        if opens is None:
            return
        for stretch in self._text:
            for match in opens.finditer(stretch.code, 0, stretch.end - stretch.start):
                address = stretch.start + match.start()
                if (
                    address % self._arch.insn_align
                    or address in self._known
                    or _covers(covered, address)
                    or self._sense(address, self._mode) < _TRIED
                ):
                    continue
                if self._add(address, self._mode, OPENING):
                    self._reach([address], covered)

    def _reach(self, queue: list[int], covered: list[tuple[int, int]]) -> None:
        """Decode functions, and those that their calls and jumps lead to, until none is left.

        What calls and jumps lead to is added to `_known` where it is in text and makes sense; the
        target of a jump only if no function that was decoded covers it.

        Args:
            queue: addresses of known functions; emptied.
            covered: (start, end) of each function that was decoded, sorted; filled.
        """
        sweep = self._sweeper.sweep
        while queue:
            start = queue.pop()
            mode, _ = self._known[start]
            stretch = self._stretch(start)
            if stretch is None:
                continue
            calls, jumps = set(sweep.calls), len(sweep.jumps)
            ends, computed = len(sweep.ends), len(sweep.computed)
            end = self._sweeper.function(
                stretch.code[start - stretch.start : start - stretch.start + LONGEST],
                start,
                min(stretch.end, start + LONGEST),
                mode,
                self._machine.symbols.data_end,
            )
            bisect.insort(covered, (start, end))
            # a computed jump may lead to code that was not decoded
            if end in sweep.ends[ends:] and len(sweep.computed) == computed:
                self._decoded[start] = end
            leads = [(target, CALL) for target in sweep.calls.keys() - calls]
            leads += [
                (target, JUMP) for _, target in sweep.jumps[jumps:] if not start <= target < end
            ]
            for target, why in leads:
                address = target & ~self._arch.pointers.mode_bits
                at = target & self._arch.pointers.mode_bits
                if (
                    address not in self._known
                    and self._stretch(address) is not None
                    and not (why == JUMP and _covers(covered, address))
                    and self._sense(address, at) == _TRIED
                    and self._add(address, at, why)
                ):
                    queue.append(address)

    # --- helpers

    def _opens(self, address: int) -> bool:
        """Return True where code begins as functions of the architecture usually do.

        Args:
            address: an address in text.
        """
        stretch, opens = (
            self._stretch(address),
            self._arch.walking.opens.get(self._mode_at(address)),
        )
        assert stretch is not None
        return opens is not None and opens.match(stretch.code, address - stretch.start) is not None

    def _add(self, address: int, mode: int, why: str) -> bool:
        """Add a function to the known ones.

        Args:
            address: address of its first instruction, without mode bits.
            mode: its mode bits.
            why: what told of it, one of Found.why.

        Returns:
            True: it was added. False: it is known already, it is in no text, or it is a linker's
            stub and `why` is CALL, JUMP, GAP or OPENING.
        """
        if address in self._known or self._stretch(address) is None:
            return False
        if why in (CALL, JUMP, GAP, OPENING) and self._is_stub(address):
            return False
        self._known[address] = mode, why
        return True

    def _is_stub(self, address: int) -> bool:
        """Return True where the code at an address is a linker's stub (PLT), which calls another
        module.

        Args:
            address: an address in text.
        """
        stretch, stubs = self._stretch(address), self._arch.walking.stubs
        assert stretch is not None
        return stubs is not None and stubs.match(stretch.code, address - stretch.start) is not None

    def _stretch(self, address: int) -> _Stretch | None:
        """Return the section of text that an address lies in; None: it lies in none."""
        n = bisect.bisect_right(self._starts, address) - 1
        return self._text[n] if n >= 0 and address < self._text[n].end else None

    def _inside_frame(self, address: int) -> bool:
        """Return True where an address is in the midst of a function that has an unwind entry."""
        n = bisect.bisect_left(self._frames, (address, 0)) - 1
        return n >= 0 and self._frames[n][0] < address < self._frames[n][1]

    def _read(self, address: int, size: int) -> bytes:
        """Return bytes of guest memory: as many as are mapped from the address on, `size` at
        most.
        """
        try:
            return bytes(self._machine.read(address, size))
        except GuestFault as fault:
            mapped = (fault.address or address) - address
            return bytes(self._machine.read(address, mapped)) if 0 < mapped < size else b""

    def _found(self) -> Iterator[Found]:
        """Yield the known functions in order of address, each with its size and name.

        A function ends at the next one, at its unwind entry's end, behind its last instruction if
        it was decoded to its end, or with its section, whichever is first; one with a symbol that
        has a size keeps that size.
        """
        ends = dict(self._frames)
        starts = sorted(self._known)
        for address, behind in zip(starts, _behind(starts), strict=True):
            mode, why = self._known[address]
            stretch = self._stretch(address)
            assert stretch is not None
            end = min(
                behind,
                ends.get(address, stretch.end),
                self._decoded.get(address, stretch.end),
                stretch.end,
            )
            symbol = self._names.get(address)
            name = f"fn_{address:08x}" if symbol is None else symbol.name
            yield Found(
                address,
                symbol.size if symbol is not None and symbol.size else end - address,
                mode,
                why,
                name,
            )


def _behind(starts: list[int]) -> Iterable[int]:
    """Return for each of sorted addresses the next one in the list; for the last 1 << 64."""
    return [*starts[1:], 1 << 64] if starts else []


def _covers(ranges: list[tuple[int, int]], address: int) -> bool:
    """Return True where an address lies in one of the ranges of functions.

    Ranges may overlap: the nine that begin last at or before the address are looked at.

    Args:
        ranges: (start, end) of each, sorted.
        address: the address.
    """
    n = bisect.bisect_right(ranges, (address, 1 << 64)) - 1
    return any(start <= address < end for start, end in ranges[max(n - 8, 0) : n + 1])
