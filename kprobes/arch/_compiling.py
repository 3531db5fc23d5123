"""How LLVM compiles programs for a guest: the row that `arch/<family>/programs.py` has."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

__all__ = ["Compiling", "Triple"]


@frozen
class Triple:
    """LLVM's description of a target.

    Attributes:
        text: as LLVM has it; see https://llvm.org/docs/LangRef.html#target-triple.
        cpu: LLVM's name of the CPU; "": its default.
        features: LLVM's features, as "+m,-relax".
        relocation: its model; code that refers to nothing is the same in all, but some targets have
            only one.
        unused: numbers of relocations (of 64-bit little-endian objects) of values that LLVM
            computes and does not use.
    """

    text: str
    cpu: str = ""
    features: str = ""
    relocation: str = "static"
    unused: frozenset[int] = frozenset()


@frozen(kw_only=True)
class Compiling:
    """How programs for an architecture are compiled, and called.

    Attributes:
        triple: what LLVM compiles for.
        divides: bits of the widest numbers that its CPUs divide; None: of a word.
        shifts: bits of the widest numbers that LLVM shifts without calling a function.
        described: True where functions are called by descriptors: address, TOC, environment
            (ELFv1).
        attributes: LLVM attributes of the program's function.
        mode: mode bits of the code.
        finish: turns code as LLVM's objects have it into code as the CPU executes it.
    """

    MODULE: ClassVar[str] = "programs"

    triple: Triple
    divides: int | None = None
    shifts: int = 64
    described: bool = False
    attributes: str = ""
    mode: int = 0
    finish: Callable[[bytes], bytes] = bytes
