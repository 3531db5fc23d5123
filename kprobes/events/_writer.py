"""Events as eBPF: what a program does at a hit, written with the assembler of programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from ..arch._base import Arch
from ..errors import ProgramError
from ..programs.assembler import Assembler
from ..programs.context import ARGUMENT, PC, RESULT, SP, UNIFORM, WORDS
from ..programs.isa import Instruction
from ._event import Argument, Event
from ._filter import Filter, Test, steps
from ._layout import ON, SEQ, STATE, STRING, RecordLayout, elements, width
from ._plans import Word
from ._styles import Type

#: arguments of a return event that are kept from the entry on, at most: they are on the program's
#: stack
KEPT: Final = 32
#: on the stack: a number of the guest's memory; the key of what is kept; its fault bits, in front
#: of which are the arguments
_READ, _KEY, _FAULTS = -8, -16, -24
#: registers of the program: the word that is fetched; what lives as long as the program
FETCHED, CONTEXT, RECORD, BUFFER, ADDRESS, STACK = 3, 6, 7, 8, 9, 10


Part = Callable[["Writer"], None]


class Writer:
    """Writes one program. Each method appends the instructions that do what its first line says.

    Registers of the program have names: CONTEXT is the probe's context, RECORD the record, BUFFER
    the buffer's state, ADDRESS the address of an argument in guest memory, STACK the program's
    stack. "Fetch" loads a number into FETCHED. Parameters called `failed` are labels: the program
    goes there where guest memory cannot be read.

    Attributes:
        asm: takes the instructions.
    """

    def __init__(self, arch: Arch, layout: RecordLayout | None) -> None:
        """Begin a program.

        Args:
            arch: the guest's.
            layout: of records; None: the program makes none.
        """
        self._arch = arch
        self._word = arch.bits // 8
        self._records = layout
        self.asm = Assembler()

    @property
    def _layout(self) -> RecordLayout:
        """The layout of records."""
        assert self._records is not None
        return self._records

    def keep(self, numbers: Sequence[int]) -> Sequence[Instruction]:
        """Write the program for the entry of a return event's function, which keeps arguments;
        return its instructions.

        Args:
            numbers: arguments to keep, from 0. The program's only map has a value of fault bits and
                arguments for each call that may be followed.
        """
        kept = 7
        faults = 8
        asm = self.asm
        end = asm.label()
        asm.move(CONTEXT, 1)
        self._find_kept(0, end)
        asm.move(kept, 0)
        asm.set(faults, 0)
        for place, number in enumerate(numbers):
            failed = asm.label()
            self._call_argument(number, failed)
            asm.store(kept, 8 * (1 + place), FETCHED, 8)
            if asm.is_target(failed):
                done = asm.label()
                asm.jump(done)
                asm.place(failed)
                asm.store_number(kept, 8 * (1 + place), 0, 8)
                asm.set(1, 1 << place)
                asm.compute("|", faults, 1)
                asm.place(done)
        asm.store(kept, 0, faults, 8)
        asm.place(end)
        asm.set(0, 0)
        asm.exit()
        return asm.finish()[0]

    def _find_kept(self, number: int, missing: str) -> None:
        """Load into r0 the address of what is kept of the call that begins here, or has returned.

        Args:
            number: of the map among the program's.
            missing: label for a call of which nothing is kept.
        """
        asm = self.asm
        asm.call("call_slot")
        asm.store(STACK, _KEY, 0, 4)
        asm.map(1, number)
        asm.move(2, STACK)
        asm.compute_with("+", 2, _KEY)
        asm.call("map_lookup_elem")
        asm.jump_if_number("==", 0, 0, missing)

    def _take_kept(self, event: Event, number: int) -> None:
        """Copy to the stack what was kept at the entry: fault bits, and the arguments; for a call
        of which nothing is kept all fault bits are set.

        Args:
            event: whose arguments are kept.
            number: of the map among the program's.
        """
        asm = self.asm
        nothing = asm.label()
        done = asm.label()
        self._find_kept(number, nothing)
        for place in range(1 + len(event.saves)):
            asm.load(1, 0, 8 * place, 8)
            asm.store(STACK, _FAULTS - 8 * place, 1, 8)
        asm.jump(done)
        asm.place(nothing)
        asm.store_number(STACK, _FAULTS, -1, 8)
        for place in range(len(event.saves)):
            asm.store_number(STACK, _FAULTS - 8 * (1 + place), 0, 8)
        asm.place(done)

    def _saved(self, place: int, failed: str) -> None:
        """Fetch an argument that was kept.

        Args:
            place: index of the argument among those that are kept.
            failed: label for one that could not be had at the entry.
        """
        asm = self.asm
        asm.load(1, STACK, _FAULTS, 8)
        asm.set(2, 1 << place)
        asm.jump_if("&", 1, 2, failed)
        asm.load(FETCHED, STACK, _FAULTS - 8 * (1 + place), 8)

    def write(
        self,
        event: Event,
        filter: Filter | None,
        first: Sequence[Part] = (),
        switch: int = 0,
        kept: int = 0,
    ) -> Sequence[Instruction]:
        """Write the program that records hits.

        Args:
            event: the event, whose arguments a record has.
            filter: which hits are recorded; None: all.
            first: functions that, called with this Writer, append what the program does before it
                makes a record; each may end by jumps to labels of its own.
            switch: number of a map whose first word is 0 where no records are made; 0: there is no
                such map.
            kept: number of the map with what the program at the function's entry has kept; 0: there
                is none.

        Returns:
            The instructions.

        Raises:
            ProgramError: an argument is in a register that programs do not see.
        """
        asm = self.asm
        end = asm.label()
        asm.move(CONTEXT, 1)
        if kept:
            self._take_kept(event, kept)
        for part in first:
            part(self)
        if switch:
            asm.value(1, switch, 0)
            asm.load(1, 1, 0, 8)
            asm.jump_if_number("==", 1, 0, end)
        asm.value(BUFFER, STATE, 0)
        asm.load(1, BUFFER, 8 * ON, 8)
        asm.jump_if_number("==", 1, 0, end)
        self.passes(event, filter, end)
        self._reserve(end)
        for arg, (bit, at) in zip(event.args, self._layout.places, strict=True):
            if arg.source.literal is None:
                self._argument(arg, bit, at)
        asm.move(1, RECORD)
        asm.set(2, 0)
        asm.call("ringbuf_submit")
        asm.place(end)
        asm.set(0, 0)
        asm.exit()
        return asm.finish()[0]

    def _reserve(self, full: str) -> None:
        """Count the hit up among the buffer's records, reserve a record, and write its head.

        Args:
            full: label to go to where there is no room for a record.
        """
        seq = 9
        asm = self.asm
        layout = self._layout
        # nobody else counts meanwhile: the guest's thread is ours
        asm.load(seq, BUFFER, 8 * SEQ, 8)
        asm.compute_with("+", seq, 1)
        asm.store(BUFFER, 8 * SEQ, seq, 8)
        asm.map(1, 0)
        asm.set(2, layout.size)
        asm.set(3, 0)
        asm.call("ringbuf_reserve")
        asm.jump_if_number("==", 0, 0, full)
        asm.move(RECORD, 0)
        asm.store(RECORD, 0, seq, 8)
        asm.move(1, CONTEXT)
        asm.call("get_attach_cookie")
        asm.store(RECORD, 8, 0, 8)
        head = layout.head
        if head.caller:
            self.context(FETCHED, PC)
            asm.store(RECORD, head.caller, FETCHED, 8)
        if head.time:
            asm.call("ktime_get_ns")
            asm.store(RECORD, head.time, 0, 8)
        for word in range(head.words):
            asm.store_number(RECORD, head.faults + 8 * word, 0, 8)

    def passes(self, event: Event, filter: Filter | None, no: str) -> None:
        """Go to a label where the filter keeps a hit out, else go on.

        Args:
            event: the event whose arguments the filter tests.
            filter: the filter; None: every hit passes, and no instruction is written.
            no: the label.
        """
        if filter is None:
            return
        yes = self.asm.label()
        found = steps(filter.tree)
        labels = [self.asm.label() for _ in found]

        def label(after: int | bool) -> str:
            """Return the label of what comes after a test: FilterStep.yes or FilterStep.no."""
            if isinstance(after, bool):
                return yes if after else no
            return labels[after]

        for own, step in zip(labels, found, strict=True):
            self.asm.place(own)
            self._test(
                event.args[step.test.field.number], step.test, label(step.yes), label(step.no)
            )
        self.asm.place(yes)

    def _test(self, arg: Argument, test: Test, yes: str, no: str) -> None:
        """Compare an argument with a constant, then go to one of two labels.

        Args:
            arg: the argument.
            test: the comparison.
            yes: label for true.
            no: label for false, and for an argument that cannot be read.
        """
        asm = self.asm
        assert isinstance(test.constant, int)
        self.number(arg, no)
        if arg.type.is_signed and not test.signed:
            asm.extend(FETCHED, arg.type.bits, False)
        constant = test.constant
        if test.end:  # from the constant up to the end, by one comparison
            asm.set(4, constant)
            asm.compute("-", FETCHED, 4)
            constant = test.end - constant
        asm.set(4, constant)
        sign = "s" if test.signed and test.comparison.by_sign else ""
        asm.jump_if(sign + test.comparison.jump, FETCHED, 4, yes if test.holds else no)
        asm.jump(no if test.holds else yes)

    def number(self, arg: Argument, failed: str) -> None:
        """Fetch an argument that is one number, extended to 64 bits as its type says.

        Args:
            arg: the argument.
            failed: label for memory that cannot be read.
        """
        if not arg.source.in_memory:
            self._fetch(arg.source.tree, failed)
        else:
            self._address(arg.source.tree, failed)
            self._load(arg.type.size, failed)
        self._extend(arg.type)

    def _extend(self, kind: Type) -> None:
        """Cut FETCHED to the bits of a type, and extend it by its sign or by zeros."""
        if kind.bits == 64:
            return
        self.asm.compute_with("<<", FETCHED, 64 - kind.shift - kind.bits)
        self.asm.compute_with("s>>" if kind.is_signed else ">>", FETCHED, 64 - kind.bits)

    def _argument(self, arg: Argument, bit: int, at: int) -> None:
        """Write one argument into the record. Where it, or an element of it, cannot be read, set
        that fault bit instead.

        Args:
            arg: the argument.
            bit: number of its first fault bit: its own; those of an array's elements follow.
            at: offset of its first byte in the record.

        Raises:
            ProgramError: it is in a register that programs do not see.
        """
        failed = self.asm.label()
        if not arg.source.in_memory:
            self._fetch(arg.source.tree, failed)
            self._extend(arg.type)
            self.asm.store(RECORD, at, FETCHED, 8)
        else:
            self._address(arg.source.tree, failed)
            self.asm.move(ADDRESS, FETCHED)
            for n in range(elements(arg)):
                own_bit = bit + 1 + n if arg.type.count else bit
                self._element(arg, n, own_bit, at + n * width(arg))
        self._failing(failed, bit)

    def _element(self, arg: Argument, n: int, bit: int, at: int) -> None:
        """Write one element of the argument at ADDRESS into the record, or set its fault bit.

        A number is cut and extended to 64 bits as its type says, and takes 8 bytes. Of a string the
        text is copied, with a NUL; in an array of strings the element is a pointer to it.

        Args:
            arg: the argument.
            n: the element's number, from 0.
            bit: number of its fault bit.
            at: offset of its first byte in the record.
        """
        asm = self.asm
        kind = arg.type
        failed = asm.label()
        asm.move(FETCHED, ADDRESS)
        self._add(n * kind.size)
        if kind.is_string:
            if kind.count:  # an array of strings is an array of pointers
                self._load(self._word, failed)
            # the helper ends a text that it cuts by a NUL of its own
            asm.move(1, RECORD)
            asm.compute_with("+", 1, at)
            asm.set(2, min(STRING, kind.limit + 1) if kind.limit else STRING)
            asm.call("probe_read_kernel_str")
            asm.jump_if_number("s<", 0, 0, failed)
        else:
            self._load(kind.size, failed)
            self._extend(kind)
            asm.store(RECORD, at, FETCHED, 8)
        self._failing(failed, bit)

    def _failing(self, failed: str, bit: int) -> None:
        """Set a fault bit where the program has gone to the label `failed`; place that label.

        Nothing is written where no jump leads to the label.

        Args:
            failed: the label.
            bit: number of the fault bit in the record, from 0.
        """
        asm = self.asm
        if asm.is_target(failed):
            done = asm.label()
            asm.jump(done)
            asm.place(failed)
            self._fault(bit)
            asm.place(done)

    def _fault(self, bit: int) -> None:
        """Set a fault bit of the record.

        Args:
            bit: its number, from 0.
        """
        where = self._layout.head.faults + bit // 64 * 8
        asm = self.asm
        asm.load(1, RECORD, where, 8)
        asm.set(2, 1 << (bit % 64))
        asm.compute("|", 1, 2)
        asm.store(RECORD, where, 1, 8)

    # --- words: all into FETCHED

    def _fetch(self, tree: Word, failed: str) -> None:
        """Fetch a word of the guest: from memory, a register, the stack, an argument, the result,
        what was kept at the function's entry, or a constant.

        Args:
            tree: the word's source.
            failed: label for memory that cannot be read.

        Raises:
            ProgramError: the word is in a register that programs do not see.
        """
        names, aliases = self._arch.regs.names, self._arch.regs.aliases
        if tree.kind == "memory":
            self._address(tree, failed)
            self._load(self._word, failed)
        elif tree.kind == "value":
            self.asm.set(FETCHED, tree.number)
        elif tree.kind == "register":
            number = names.index(aliases.get(tree.name, tree.name))
            if number >= UNIFORM:
                raise ProgramError(
                    f"%{tree.name} is behind the {UNIFORM} registers that programs see",
                    hint="its hits are fetched by Event.fetch()",
                )
            self.context(FETCHED, number)
        elif tree.kind == "argument":
            self._call_argument(tree.number, failed)
        elif tree.kind == "saved":
            self._saved(tree.place, failed)
        elif tree.kind == "stack":
            self._on_stack(tree.number * self._word, failed)
        else:
            self.context(FETCHED, {"result": RESULT, "sp": SP}[tree.kind])

    def _call_argument(self, n: int, failed: str) -> None:
        """Fetch an argument of the call at a function's entry, from its register or the stack.

        Args:
            n: the argument's number, from 0.
            failed: label for a stack that cannot be read.
        """
        abi = self._arch.abi
        assert abi is not None
        if n < len(abi.args):
            self.context(FETCHED, ARGUMENT + n)
        else:
            self._on_stack(abi.stack_args + (n - len(abi.args)) * self._word, failed)

    def _on_stack(self, offset: int, failed: str) -> None:
        """Fetch a word of the guest's stack.

        Args:
            offset: bytes from the stack pointer to the word, in the direction of older frames.
            failed: label for a stack that cannot be read.
        """
        self.context(FETCHED, SP)
        self._add(offset * self._arch.callers)
        self._load(self._word, failed)

    def context(self, register: int, word: int) -> None:
        """Load a word of the probe's context, such as a register of the guest, into a register.

        Args:
            register: number of the program's register.
            word: index of the word in the context (programs/context.py).
        """
        assert word < WORDS
        self.asm.load(register, CONTEXT, 8 * word, 8)

    def _address(self, tree: Word, failed: str) -> None:
        """Load into FETCHED the address of a word in guest memory.

        Args:
            tree: the word's source, of kind "memory".
            failed: label to go to where the words that the address is made of cannot be read.
        """
        assert tree.base is not None
        self._fetch(tree.base, failed)
        self._add(tree.number)

    def _add(self, offset: int) -> None:
        """Add a number of bytes to FETCHED, an address, which wraps where the guest's addresses
        do.
        """
        self.asm.set(2, offset)
        self.asm.compute("+", FETCHED, 2)
        self.asm.extend(FETCHED, self._arch.bits, False)

    def _load(self, size: int, failed: str) -> None:
        """Fetch the number at the guest address in FETCHED, as an unsigned one.

        Args:
            size: its bytes: 1, 2, 4 or 8.
            failed: label for memory that cannot be read.
        """
        asm = self.asm
        asm.move(1, STACK)
        asm.compute_with("+", 1, _READ)
        asm.set(2, size)
        asm.call("probe_read_kernel")
        asm.jump_if_number("!=", 0, 0, failed)
        asm.load(FETCHED, STACK, _READ, size)
        if size > 1 and self._arch.order.value != sys.byteorder:
            asm.swap(FETCHED, 8 * size)
