"""Case files: instructions of an architecture, and what the library is to make of them.

One case a line: `hex bytes as in memory | assembly | step, simulate or reject | row name`; `#` starts a comment. Lines that
start with `%` tell the harness about the machine:

    %flags nzcv f0000000     these bits of this register are condition flags: tests vary them
    %keep fpcr fpsr          registers that tests leave as they are
    %slot 24020001           an instruction for delay slots (each such line adds one)
    %mode 1                  mode bits of the cases that follow
    %mapped-targets          never let the guest fetch unmapped memory: this engine does not survive it
    %skip 20740bd5 e0ffffff why    do not run instructions whose bytes under this mask are these: the engine is wrong about them
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


@frozen
class Skip:
    """Instructions that the engine executes wrongly, so that there is nothing to compare with."""

    value: bytes
    mask: bytes
    reason: str

    def matches(self, code: bytes) -> bool:
        """True for an instruction of these bytes."""
        return len(code) >= len(self.mask) and all(c & m == v for c, m, v in zip(code, self.mask, self.value, strict=False))


@define
class CaseFile:
    """The cases of one architecture, and how its machine may be treated."""

    cases: list[Case] = field(factory=list)
    flags: dict[str, int] = field(factory=dict)  #: register -> mask of its condition flags
    keep: set[str] = field(factory=set)  #: registers that keep their value
    slots: list[bytes] = field(factory=list)  #: delay-slot instructions
    mapped_targets: bool = False
    skips: list[Skip] = field(factory=list)

    def skip(self, code: bytes) -> str:
        """Why an instruction cannot be compared on this engine; "" where it can."""
        return next((s.reason for s in self.skips if s.matches(code)), "")


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
    elif word == "skip":
        value, mask, reason = bytes.fromhex(rest[0]), bytes.fromhex(rest[1]), " ".join(rest[2:])
        if len(value) != len(mask) or not reason:
            raise ValueError("%skip takes bytes, a mask of the same length, and the reason")
        file.skips.append(Skip(value, mask, reason))
    elif word == "mapped-targets":
        file.mapped_targets = True
    elif word == "mode":
        return int(rest[0], 0)
    else:
        raise ValueError(f"no directive %{word}")
    return mode
