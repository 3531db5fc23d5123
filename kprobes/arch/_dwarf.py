"""Facts of an ABI that debug information needs: the row that `arch/<family>/dwarf.py` has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import field, frozen

from ._calls import Results

__all__ = ["AttributeTag", "DwarfFacts", "RealFlags", "ResultFlags"]


@frozen
class AttributeTag:
    """Names a number that a file's section of attributes (.gnu.attributes, say) may have.

    Attributes:
        tag: the number's tag.
        section: name of the section.
        vendor: name of the vendor whose tags are meant: a section may have several vendors'.
        low_texts: tags below 32 whose values are texts; None: the odd ones, as from 32 on.
    """

    tag: int
    section: str = ".gnu.attributes"
    vendor: bytes = b"gnu"
    low_texts: tuple[int, ...] | None = None


@frozen
class RealFlags:
    """Bits of an ELF file that say how its functions get floating-point numbers.

    They are in e_flags, in a tag of a section of attributes, or in a byte of another section.

    Attributes:
        mask: the bits.
        ways: value of these bits -> "counted" (numbers take the words of integers of their size),
            "halves" (16 registers of 4 bytes, two for a number of 8), "registers" (8 registers),
            "single registers" (8 registers, of numbers of 4 bytes only).
        attribute: which attribute has the bits; None: none has.
        section: name of the section that has the bits in one byte; "": `attribute` has them, or,
            where that is None, e_flags.
        at: offset of the byte in the section.
    """

    mask: int
    ways: Mapping[int, str]
    attribute: AttributeTag | None = None
    section: str = ""
    at: int = 0


@frozen
class ResultFlags:
    """An attribute that says where the file's functions return structures.

    Attributes:
        attribute: which attribute.
        ways: the attribute's value -> where functions return structures.
    """

    attribute: AttributeTag
    ways: Mapping[int, Results]


@frozen(kw_only=True)
class DwarfFacts:
    """The facts in which an ABI's debug information is not as most have it.

    Attributes:
        numbers: registers in the order of DWARF's numbers, None for those that have no name here;
            None: they are `Registers.names`, in that order.
        general: how many of `Registers.names` have numbers, where `numbers` is None.
        others: number of a register -> its name, besides these.
        call_frame: bytes from the stack pointer register at a call to the canonical frame address;
            None: `Registers.sp_bias`.
        pairs_reversed: True where LLVM writes the registers of a pair in the other order than the
            ABI has them.
        windows: True where DW_CFA_GNU_window_save says that a function has a register window of its
            own; elsewhere that number stands for something else.
        first_real: number of the first of the floating-point and vector registers, which are in
            `others`.
        reals: where a number shorter than such a register lies in it: "low" (its lowest bytes),
            "high", "double" (a number of 4 bytes is kept as one of 8), "word" (as "low", and one of
            8 bytes is in two registers); "": not known, or there are no such registers.
        x87: numbers of x87's registers, st0 first; they are in `others`.
        convention: how C functions are called, where debugging knows all of it: "sysv" (x86-64),
            "aapcs64", "aapcs32", "flattened" (RISC-V, LoongArch), "small values" (s390x), "slots"
            (MIPS), "doublewords" (64-bit PowerPC), "pairs and addresses" (32-bit PowerPC), "stack"
            (i386).
        real_flags: what of an architecture's files may say how functions get floating-point
            numbers, in the order in which it counts; (): nothing does, or there is one way.
        result_flags: how files say where functions return structures; None: it is as `Abi.results`
            has it.
        first_real_argument: number of the first floating-point register that has parameters.
        widest_real: bytes of the widest number that these registers pass, unless `real_flags` say
            it.
        boxed: True where all bits of a floating-point register above a shorter number are 1.
        sign_extended: True where a register has a 32-bit integer, also an unsigned one, with its
            bit 31 in all higher bits.
        variadic_reals: how floating-point numbers behind `...` are passed: "named" (as those before
            `...`), "word" (as integers of 64 bits), "" (not known).
        real_count: register that has the number of floating-point registers that a call passes
            arguments in; "": none has.
        long_double: bytes of a `long double` -> its format: "x87" or "quad".
    """

    MODULE: ClassVar[str] = "dwarf"

    numbers: tuple[str | None, ...] | None = None
    general: int = 32
    others: Mapping[int, str] = field(factory=dict)
    call_frame: int | None = None
    pairs_reversed: bool = False
    windows: bool = False
    first_real: int = 1 << 16
    reals: str = ""
    x87: range = range(0)
    convention: str = ""
    real_flags: tuple[RealFlags, ...] = ()
    result_flags: ResultFlags | None = None
    first_real_argument: int = 0
    widest_real: int = 0
    boxed: bool = False
    sign_extended: bool = False
    variadic_reals: str = ""
    real_count: str = ""
    long_double: Mapping[int, str] = field(factory=lambda: {16: "quad"})
