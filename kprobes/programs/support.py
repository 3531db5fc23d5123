"""The functions that the code of programs calls: those of kprobes/native/support.c, as LLVM IR.

The IR is checked in, a file for each kind of target; `python -m kprobes.native.build` makes it. A
program gets those functions that it calls, and LLVM compiles them with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from attrs import frozen

from ..native import support_path
from .writer import CodeTarget, IrModule, IrWriter

#: what programs themselves use beside what support.c uses
_SWAPS: Final = tuple(f"declare i{bits} @llvm.bswap.i{bits}(i{bits})" for bits in (16, 32, 64))


@frozen
class Library:
    """The functions of support.c for one kind of target.

    Attributes:
        head: types, and declarations of LLVM's own functions.
        functions: name -> IR. They call each other, and what `head` declares.
    """

    head: str
    functions: Mapping[str, str]


def library(target: CodeTarget) -> Library:
    """Return support.c's functions for a target; their file is read once.

    Args:
        target: the machine that the program is compiled for.
    """
    return _library(target.bits, target.alone, target.swapped)


@cache
def _library(bits: int, guest: bool, swapped: bool) -> Library:
    """Read the functions of support.c, as LLVM IR for one kind of target, from a file.

    Args:
        bits: width of a pointer in bits, 32 or 64.
        guest: True where the code runs in a guest, False where it runs in this process.
        swapped: True where the byte order of the BPF program is not that of the memory in which the
            program runs.
    """
    head, *functions = support_path(bits, guest, swapped).read_text().split("\n\n")
    lines = dict.fromkeys([*head.splitlines(), *_SWAPS])
    return Library("\n".join(lines), {_name(text): text.strip() for text in functions})


def _name(text: str) -> str:
    """Return the name of a function, which is taken out of its IR: what is between "@" and "(".

    Args:
        text: the function's IR.
    """
    return text[text.index("@") + 1 : text.index("(")]


def need(module: IrModule, name: str) -> None:
    """Add a function of support.c to a module, and those that it calls.

    Args:
        module: the program's IR.
        name: the function's name.
    """
    functions = library(module.target).functions
    module.need(name, functions[name])
    for other in functions:
        if other != name and f"@{other}(" in functions[name]:
            need(module, other)


def memory(w: IrWriter) -> str:
    """Emit IR that loads the last three arguments of @read and @read_string; return their text.

    They are the address of the table of guest memory, the engine, and the address of the function
    that reads what is not in that table; 0 for those that the target does not have. The text is to
    be put into the IR of the call: "i64 %v1, i64 %v2, i64 %v3".

    Args:
        w: writer of the IR of the current function.
    """
    blocks = w.word(("blocks", 0))
    target = w.module.target
    engine = "0" if target.alone else w.word(("uc", 0))
    reader = "0" if target.alone and not target.asks else w.word(("uc_mem_read", 0))
    return f"i64 {blocks}, i64 {engine}, i64 {reader}"
