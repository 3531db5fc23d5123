"""The assembler of events' programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ..arch._base import Arch, Order
from ..errors import ProgramError
from ..programs import isa
from ..programs.context import ARGUMENT, PC, RESULT, SP, UNIFORM, WORDS
from ..programs.isa import Instruction, lddw
from ..programs.meanings import CALL_SLOT
from ._event import Argument, Event
from ._filter import Filter, Node, Not, Test
from ._layout import ON, SEQ, STATE, STRING, RecordLayout, elements, width
from ._plans import Word
from ._styles import Type

_LOOKUP: Final = 1
_READ = 113
_READ_STRING = 115
_RESERVE = 131
_SUBMIT = 132
_COOKIE = 174
_TIME = 5
#: arguments of a return event that are kept from the entry on, at most: they are on the program's
#: stack
KEPT: Final = 32
#: on the stack: the key of what is kept; its fault bits, in front of which are the arguments
_KEY, _FAULTS = -16, -24
_UNSIGNED: Final = {
    "==": isa.JEQ,
    "!=": isa.JNE,
    "<": isa.JLT,
    "<=": isa.JLE,
    ">": isa.JGT,
    ">=": isa.JGE,
    "&": isa.JSET,
}
_SIGNED: Final = _UNSIGNED | {"<": isa.JSLT, "<=": isa.JSLE, ">": isa.JSGT, ">=": isa.JSGE}
_SIZES: Final = {1: isa.B, 2: isa.H, 4: isa.W, 8: isa.DW}


Part = Callable[["Writer"], None]


class Writer:
    """Writes one program. Each method appends the instructions that do what its first line says.

    In the program r6 is the context, r7 the record, r8 the buffer's state, r9 the address of an
    argument in guest memory. "Fetch" loads a word into r3. Parameters called `failed` are labels:
    the program goes there where guest memory cannot be read.

    Attributes:
        code: the instructions so far.
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
        self._saves: tuple[object, ...] = ()
        self.code: list[Instruction] = []
        self._jumps: list[tuple[int, str]] = []
        self._labels: dict[str, int] = {}
        self._tests = 0

    @property
    def _layout(self) -> RecordLayout:
        """The layout of records."""
        assert self._records is not None
        return self._records

    def keep(self, numbers: Sequence[int]) -> list[Instruction]:
        """Write the program for the entry of a return event's function, which keeps arguments;
        return its instructions, linked.

        Args:
            numbers: arguments to keep, from 0. The program's only map has a value of fault bits and
                arguments for each call that may be followed.
        """
        op = self.op
        op(isa.MOV | isa.X | isa.ALU64, 6, 1)
        self._find_kept(0, "end")
        op(isa.MOV | isa.X | isa.ALU64, 7, 0)
        op(isa.MOV | isa.ALU64, 8)
        for place, number in enumerate(numbers):
            failed = f"argument {place}"
            self._call_argument(number, failed)
            op(isa.MEM | isa.DW | isa.STX, 7, 3, 8 * (1 + place))
            if self.jumps_to(failed):
                self.jump(isa.JA | isa.JMP, f"{failed} done")
                self.label(failed)
                op(isa.MEM | isa.DW | isa.ST, 7, 0, 8 * (1 + place))
                self.code += lddw(1, 1 << place)
                op(isa.OR | isa.X | isa.ALU64, 8, 1)
                self.label(f"{failed} done")
        op(isa.MEM | isa.DW | isa.STX, 7, 8)
        self.label("end")
        op(isa.MOV | isa.ALU64, 0)
        op(isa.EXIT | isa.JMP)
        return self._linked()

    def _find_kept(self, number: int, missing: str) -> None:
        """Load into r0 the address of what is kept of the call that begins here, or has returned.

        Args:
            number: of the map among the program's.
            missing: label for a call of which nothing is kept.
        """
        op = self.op
        op(isa.CALL | isa.JMP, imm=CALL_SLOT)
        op(isa.MEM | isa.W | isa.STX, 10, 0, _KEY)
        self.code += lddw(1, number, isa.MAP, 0)
        op(isa.MOV | isa.X | isa.ALU64, 2, 10)
        op(isa.ADD | isa.ALU64, 2, imm=_KEY)
        op(isa.CALL | isa.JMP, imm=_LOOKUP)
        self.jump(isa.JEQ | isa.JMP, missing, 0)

    def _take_kept(self, event: Event, number: int) -> None:
        """Copy to the stack what was kept at the entry: fault bits, and the arguments; for a call
        of which nothing is kept all fault bits are set.

        Args:
            event: whose arguments are kept.
            number: of the map among the program's.
        """
        op = self.op
        self._saves = event.saves
        self._find_kept(number, "nothing kept")
        for place in range(1 + len(event.saves)):
            op(isa.MEM | isa.DW | isa.LDX, 1, 0, 8 * place)
            op(isa.MEM | isa.DW | isa.STX, 10, 1, _FAULTS - 8 * place)
        self.jump(isa.JA | isa.JMP, "kept")
        self.label("nothing kept")
        op(isa.MEM | isa.DW | isa.ST, 10, 0, _FAULTS, -1)
        for place in range(len(event.saves)):
            op(isa.MEM | isa.DW | isa.ST, 10, 0, _FAULTS - 8 * (1 + place))
        self.label("kept")

    def _saved(self, number: int, failed: str) -> None:
        """Fetch an argument that was kept.

        Args:
            number: the argument's, from 0.
            failed: label for one that could not be had at the entry.
        """
        place = self._saves.index(number)
        self.op(isa.MEM | isa.DW | isa.LDX, 1, 10, _FAULTS)
        self.code += lddw(2, 1 << place)
        self.jump(isa.JSET | isa.X | isa.JMP, failed, 1, 2)
        self.op(isa.MEM | isa.DW | isa.LDX, 3, 10, _FAULTS - 8 * (1 + place))

    def write(
        self,
        event: Event,
        filter: Filter | None,
        first: Sequence[Part] = (),
        switch: int = 0,
        kept: int = 0,
    ) -> list[Instruction]:
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
            The instructions, linked.

        Raises:
            ProgramError: an argument is in a register that programs do not see.
        """
        op = self.op
        op(isa.MOV | isa.X | isa.ALU64, 6, 1)
        if kept:
            self._take_kept(event, kept)
        for part in first:
            part(self)
        if switch:
            self.code += lddw(1, switch, isa.MAP_VALUE, 0)
            op(isa.MEM | isa.DW | isa.LDX, 1, 1, 0)
            self.jump(isa.JEQ | isa.JMP, "end", 1)
        self.code += lddw(8, STATE, isa.MAP_VALUE, 0)
        op(isa.MEM | isa.DW | isa.LDX, 1, 8, 8 * ON)
        self.jump(isa.JEQ | isa.JMP, "end", 1)
        self.passes(event, filter, "end")
        self._reserve()
        for number, (arg, (bit, at)) in enumerate(
            zip(event.args, self._layout.places, strict=True)
        ):
            if arg.source.literal is None:
                self._argument(arg, number, bit, at)
        op(isa.MOV | isa.X | isa.ALU64, 1, 7)
        op(isa.MOV | isa.ALU64, 2)
        op(isa.CALL | isa.JMP, imm=_SUBMIT)
        self.label("end")
        op(isa.MOV | isa.ALU64, 0)
        op(isa.EXIT | isa.JMP)
        return self._linked()

    def _linked(self) -> list[Instruction]:
        """Fill in the distances to labels in all jumps; return the program's instructions."""
        for pc, label in self._jumps:
            i = self.code[pc]
            self.code[pc] = Instruction(i.opcode, i.dst, i.src, self._labels[label] - pc - 1, i.imm)
        return self.code

    def _reserve(self) -> None:
        """Count the hit up among the buffer's records, reserve a record, and write its head; go to
        "end" where there is no room for one.
        """
        op, layout = self.op, self._layout
        # nobody else counts meanwhile: the guest's thread is ours
        op(isa.MEM | isa.DW | isa.LDX, 9, 8, 8 * SEQ)
        op(isa.ADD | isa.ALU64, 9, imm=1)
        op(isa.MEM | isa.DW | isa.STX, 8, 9, 8 * SEQ)
        self.code += lddw(1, 0, isa.MAP, 0)
        op(isa.MOV | isa.ALU64, 2, imm=layout.size)
        op(isa.MOV | isa.ALU64, 3)
        op(isa.CALL | isa.JMP, imm=_RESERVE)
        self.jump(isa.JEQ | isa.JMP, "end", 0)
        op(isa.MOV | isa.X | isa.ALU64, 7, 0)
        op(isa.MEM | isa.DW | isa.STX, 7, 9, 0)
        op(isa.MOV | isa.X | isa.ALU64, 1, 6)
        op(isa.CALL | isa.JMP, imm=_COOKIE)
        op(isa.MEM | isa.DW | isa.STX, 7, 0, 8)
        if layout.caller_offset:
            self.context(3, PC)
            op(isa.MEM | isa.DW | isa.STX, 7, 3, layout.caller_offset)
        if layout.time:
            op(isa.CALL | isa.JMP, imm=_TIME)
            op(isa.MEM | isa.DW | isa.STX, 7, 0, layout.time)
        for word in range(layout.words):
            op(isa.MEM | isa.DW | isa.ST, 7, 0, layout.faults + 8 * word)

    def label(self, name: str) -> None:
        """Have jumps to `name` lead to the next instruction."""
        self._labels[name] = len(self.code)

    def jumps_to(self, name: str) -> bool:
        """Return True where a jump that was appended so far leads to the label `name`."""
        return any(label == name for _, label in self._jumps)

    def passes(self, event: Event, filter: Filter | None, no: str) -> None:
        """Go to a label where the filter keeps a hit out, else go on.

        Args:
            event: the event whose arguments the filter tests.
            filter: the filter; None: every hit passes, and no instruction is written.
            no: the label.
        """
        if filter is not None:
            self._tests += 1
            yes = f"passed {self._tests}"
            self._filter(event, filter.tree, yes, no)
            self.label(yes)

    def _filter(self, event: Event, node: Node, yes: str, no: str) -> None:
        """Evaluate a part of a filter, then go to one of two labels.

        Args:
            event: the event whose arguments are tested.
            node: the part: a test, a negation, or several parts joined by `&&` or `||`.
            yes: label for true.
            no: label for false.
        """
        if isinstance(node, Test):
            self._tested(event.args[node.field.number], node, yes, no)
        elif isinstance(node, Not):
            self._filter(event, node.of, no, yes)
        else:
            for part in node.parts[:-1]:
                self._tests += 1
                after = f"after {self._tests}"
                self._filter(event, part, *((yes, after) if node.either else (after, no)))
                self.label(after)
            self._filter(event, node.parts[-1], yes, no)

    def _tested(self, arg: Argument, test: Test, yes: str, no: str) -> None:
        """Compare an argument with a constant, then go to one of two labels.

        Args:
            arg: the argument.
            test: the comparison; with `ends`, whether the argument lies in a range of addresses.
            yes: label for true.
            no: label for false, and for an argument that cannot be read.
        """
        self.number(arg, no)
        jumps = _SIGNED if test.field.signed else _UNSIGNED
        if test.ends:  # `.function`: any address of it
            inside, outside = (yes, no) if test.op == "==" else (no, yes)
            self._jump_if(jumps["<"], int(test.value), outside)
            self._jump_if(jumps["<"], test.ends, inside)
            self.jump(isa.JA | isa.JMP, outside)
        else:
            self._jump_if(jumps[test.op], int(test.value), yes)
            self.jump(isa.JA | isa.JMP, no)

    def _jump_if(self, comparison: int, constant: int, label: str) -> None:
        """Go to a label if a comparison of r3 with a constant is true. r4 is overwritten.

        Args:
            comparison: operation of a conditional jump, such as isa.JEQ, isa.JGT or isa.JSLT: it
                says what is compared, and whether r3 and the constant are signed.
            constant: the number that r3 is compared with; its lower 64 bits count.
            label: where to go.
        """
        self.code += lddw(4, constant & isa.U64)
        self.jump(comparison | isa.X | isa.JMP, label, 3, 4)

    def number(self, arg: Argument, failed: str) -> None:
        """Fetch an argument that is one number, extended to 64 bits as its type says.

        Args:
            arg: the argument.
            failed: label for memory that cannot be read.
        """
        if arg.source.where is None:
            self._fetch(arg.source.tree, failed)
        else:
            self._address(arg.source.tree, failed)
            self._load(arg.type.size, failed)
        self._extend(arg.type)

    def _extend(self, kind: Type) -> None:
        """Cut r3 to the bits of a type, and extend it by its sign or by zeros."""
        if kind.bits == 64:
            return
        self.op(isa.LSH | isa.ALU64, 3, imm=64 - kind.shift - kind.bits)
        self.op((isa.ARSH if kind.is_signed else isa.RSH) | isa.ALU64, 3, imm=64 - kind.bits)

    def op(self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> None:
        """Append an instruction; the parameters are its fields.

        Args:
            opcode: class, operation and mode, of `programs.isa`.
            dst: number of the destination register.
            src: number of the source register.
            offset: 16 bits: bytes from the address in a register, or slots to jump over.
            imm: 32 bits: a constant, or the number of a helper that is called.
        """
        self.code.append(Instruction(opcode, dst, src, offset, imm))

    def jump(self, opcode: int, label: str, dst: int = 0, src: int = 0) -> None:
        """Append a jump to a label, which may be placed later.

        Args:
            opcode: the jump, of `programs.isa`; a conditional one compares `dst`.
            label: the label's name.
            dst: number of the register that is compared.
            src: number of the register that it is compared with, where the opcode has isa.X; a jump
                without it compares with 0.
        """
        self._jumps.append((len(self.code), label))
        self.op(opcode, dst, src)

    def _argument(self, arg: Argument, number: int, bit: int, at: int) -> None:
        """Write one argument into the record. Where it, or an element of it, cannot be read, set
        that fault bit instead.

        Args:
            arg: the argument.
            number: of the argument, which makes its labels unique.
            bit: number of its first fault bit: its own; those of an array's elements follow.
            at: offset of its first byte in the record.

        Raises:
            ProgramError: it is in a register that programs do not see.
        """
        failed = f"argument {number}"
        if arg.source.where is None:
            self._fetch(arg.source.tree, failed)
            self._extend(arg.type)
            self.op(isa.MEM | isa.DW | isa.STX, 7, 3, at)
        else:
            self._address(arg.source.tree, failed)
            self.op(isa.MOV | isa.X | isa.ALU64, 9, 3)
            for n in range(elements(arg)):
                self._element(
                    arg,
                    f"{number} {n}",
                    n,
                    bit + (1 + n) * bool(arg.type.count),
                    at + n * width(arg),
                )
        self._failing(failed, bit)

    def _element(self, arg: Argument, name: str, n: int, bit: int, at: int) -> None:
        """Write one element of the argument at r9 into the record, or set its fault bit.

        A number is cut and extended to 64 bits as its type says, and takes 8 bytes. Of a string the
        text is copied, with a NUL; in an array of strings the element is a pointer to it.

        Args:
            arg: the argument.
            name: makes its labels unique.
            n: the element's number, from 0.
            bit: number of its fault bit.
            at: offset of its first byte in the record.
        """
        failed, kind = f"element {name}", arg.type
        self.op(isa.MOV | isa.X | isa.ALU64, 3, 9)
        self._add(n * arg.type.size)
        if arg.type.is_string:
            if arg.type.count:  # an array of strings is an array of pointers
                self._load(self._word, failed)
            # the helper ends a text that it cuts by a NUL of its own
            self._into_record(
                at, min(STRING, kind.limit + 1) if kind.limit else STRING, _READ_STRING
            )
            self.jump(isa.JSLT | isa.JMP, failed, 0)
        else:
            self._load(arg.type.size, failed)
            self._extend(arg.type)
            self.op(isa.MEM | isa.DW | isa.STX, 7, 3, at)
        self._failing(failed, bit)

    def _failing(self, failed: str, bit: int) -> None:
        """Set a fault bit where the program has gone to the label `failed`; place that label.

        Nothing is written where no jump leads to the label.

        Args:
            failed: the label.
            bit: number of the fault bit in the record, from 0.
        """
        if self.jumps_to(failed):
            self.jump(isa.JA | isa.JMP, f"{failed} done")
            self.label(failed)
            self._fault(bit)
            self.label(f"{failed} done")

    def _fault(self, bit: int) -> None:
        """Set a fault bit of the record.

        Args:
            bit: its number, from 0.
        """
        where = self._layout.faults + bit // 64 * 8
        self.op(isa.MEM | isa.DW | isa.LDX, 1, 7, where)
        self.code += lddw(2, 1 << (bit % 64))
        self.op(isa.OR | isa.X | isa.ALU64, 1, 2)
        self.op(isa.MEM | isa.DW | isa.STX, 7, 1, where)

    # --- words: all into r3

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
            self.code += lddw(3, tree.number)
        elif tree.kind == "register":
            number = names.index(aliases.get(tree.name, tree.name))
            if number >= UNIFORM:
                raise ProgramError(
                    f"%{tree.name} is behind the {UNIFORM} registers that programs see",
                    hint="its hits are fetched by Event.fetch()",
                )
            self.context(3, number)
        elif tree.kind == "argument":
            self._call_argument(tree.number, failed)
        elif tree.kind == "saved":
            self._saved(tree.number, failed)
        elif tree.kind == "stack":
            self._on_stack(tree.number * self._word, failed)
        else:
            self.context(3, {"result": RESULT, "sp": SP}[tree.kind])

    def _call_argument(self, n: int, failed: str) -> None:
        """Fetch an argument of the call at a function's entry, from its register or the stack.

        Args:
            n: the argument's number, from 0.
            failed: label for a stack that cannot be read.
        """
        abi = self._arch.abi
        assert abi is not None
        if n < len(abi.args):
            self.context(3, ARGUMENT + n)
        else:
            self._on_stack(abi.stack_args + (n - len(abi.args)) * self._word, failed)

    def _on_stack(self, offset: int, failed: str) -> None:
        """Fetch a word of the guest's stack.

        Args:
            offset: bytes from the stack pointer to the word.
            failed: label for a stack that cannot be read.
        """
        self.context(3, SP)
        self._add(offset)
        self._load(self._word, failed)

    def context(self, register: int, word: int) -> None:
        """Load a word of the probe's context, such as a register of the guest, into a register.

        Args:
            register: number of the program's register.
            word: index of the word in the context (programs/context.py).
        """
        assert word < WORDS
        self.op(isa.MEM | isa.DW | isa.LDX, register, 6, 8 * word)

    def _address(self, tree: Word, failed: str) -> None:
        """Load into r3 the address of a word in guest memory.

        Args:
            tree: the word's source, of kind "memory".
            failed: label to go to where the words that the address is made of cannot be read.
        """
        assert tree.base is not None
        self._fetch(tree.base, failed)
        self._add(tree.number)

    def _add(self, offset: int) -> None:
        """Add a number of bytes to r3, an address, which wraps where the guest's addresses do."""
        if -(1 << 31) <= offset < 1 << 31:
            self.op(isa.ADD | isa.ALU64, 3, imm=offset)
        else:
            self.code += lddw(2, offset & isa.U64)
            self.op(isa.ADD | isa.X | isa.ALU64, 3, 2)
        if self._arch.bits == 32:
            self.op(isa.MOV | isa.X | isa.ALU, 3, 3)
        elif self._arch.bits == 16:
            self.op(isa.AND | isa.ALU64, 3, imm=self._arch.mask)

    def _load(self, size: int, failed: str) -> None:
        """Fetch the number at the guest address in r3, as an unsigned one.

        Args:
            size: its bytes: 1, 2, 4 or 8.
            failed: label for memory that cannot be read.
        """
        self.op(isa.MOV | isa.X | isa.ALU64, 1, 10)
        self.op(isa.ADD | isa.ALU64, 1, imm=-8)
        self.op(isa.MOV | isa.ALU64, 2, imm=size)
        self.op(isa.CALL | isa.JMP, imm=_READ)
        self.jump(isa.JNE | isa.JMP, failed, 0)
        self.op(isa.MEM | _SIZES[size] | isa.LDX, 3, 10, -8)
        if size > 1:
            self.op(
                isa.END | (isa.X if self._arch.order is Order.BIG else isa.K) | isa.ALU,
                3,
                imm=8 * size,
            )

    def _into_record(self, at: int, size: int, helper: int) -> None:
        """Call a helper that copies bytes from the guest address in r3 into the record.

        Args:
            at: offset of the first byte in the record.
            size: bytes that are copied, at most.
            helper: number of the helper; r0 is its result.
        """
        self.op(isa.MOV | isa.X | isa.ALU64, 1, 7)
        self.op(isa.ADD | isa.ALU64, 1, imm=at)
        self.op(isa.MOV | isa.ALU64, 2, imm=size)
        self.op(isa.CALL | isa.JMP, imm=helper)
