"""Case files: instructions of an architecture, and what the library is to make of them.

One case a line: `hex bytes as in memory | assembly | step, simulate or reject | row name`; `#` starts a comment. Lines that
start with `%` tell the harness about the machine:

    %flags nzcv f0000000     these bits of this register are condition flags: tests vary them
    %keep fpcr fpsr          registers that tests leave as they are
    %slot 24020001           an instruction for delay slots (each such line adds one)
    %mode 1                  mode bits of the cases that follow
    %mapped-targets          never let the guest fetch unmapped memory: this engine does not survive it
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

OUTCOMES = ("step", "simulate", "reject")


@frozen(kw_only=True)
class Case:
    """One instruction. code: as in memory. outcome: "step", "simulate" or "reject". row: decode row's name. line: in the file."""

    code: bytes
    asm: str
    outcome: str
    row: str
    mode: int = 0
    line: int = 0

    def __str__(self) -> str:
        return f"{self.code.hex()} {self.asm}"


@define
class CaseFile:
    """The cases of one architecture, and how its machine may be treated."""

    cases: list[Case] = field(factory=list)
    flags: dict[str, int] = field(factory=dict)  #: register -> mask of its condition flags
    keep: set[str] = field(factory=set)  #: registers that keep their value
    slots: list[bytes] = field(factory=list)  #: delay-slot instructions
    mapped_targets: bool = False


def read_cases(path: Path | str) -> CaseFile:
    """Read a case file. ValueError, naming the line, where it is malformed."""
    file = CaseFile()
    mode = 0
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        text = line.strip()
        try:
            if text.startswith("%"):
                mode = _directive(file, text, mode)
            elif text and not text.startswith("#"):
                file.cases.append(_case(text, mode, number))
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}:{number}: {error}: {text!r}") from None
    return file


def _case(text: str, mode: int, line: int) -> Case:
    code, asm, outcome, row = (column.strip() for column in text.split("|"))
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}")
    return Case(code=bytes.fromhex(code), asm=asm, outcome=outcome, row=row, mode=mode, line=line)


def _directive(file: CaseFile, text: str, mode: int) -> int:
    """Obey one; the mode from here on."""
    word, *rest = text[1:].split("#")[0].split()
    if word == "flags":
        file.flags[rest[0]] = int(rest[1], 16)
    elif word == "keep":
        file.keep.update(rest)
    elif word == "slot":
        file.slots.append(bytes.fromhex("".join(rest)))
    elif word == "mapped-targets":
        file.mapped_targets = True
    elif word == "mode":
        return int(rest[0], 0)
    else:
        raise ValueError(f"no directive %{word}")
    return mode
