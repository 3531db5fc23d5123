"""Case files: instructions of an architecture, and what the library is to make of them.

One case a line: `hex bytes as in memory | assembly | step, simulate or reject | row name`; `#`
starts a comment. Lines that start with `%` tell the harness about the machine:

    %flags nzcv f0000000     these bits of this register are condition flags: tests vary them
    %keep fpcr fpsr          registers that tests leave as they are
    %slot 24020001           an instruction for delay slots (each such line adds one)
    %mode 1                  mode bits of the cases that follow
    %mapped-targets          never let the guest fetch unmapped memory: this engine would die
    %include mips.txt swap 4 take every line of another file, the bytes of each 4-byte unit
                             reversed (or without `swap`: as they are)
    %skip 20740bd5 e0ffffff why
                             do not run instructions whose bytes under this mask are these: the
                             engine is wrong about them
    %skip-inside 0f31 ffff why
                             the same, with these bytes anywhere in the instruction (behind
                             prefixes)
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

OUTCOMES = ("step", "simulate", "reject")


@frozen(kw_only=True)
class Case:
    """An instruction of a case file.

    Attributes:
        code: as in memory.
        asm: its assembly.
        outcome: "step", "simulate" or "reject".
        row: decode row's name.
        mode: mode bits of the code.
        line: in the file.
    """

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
    """Instructions that the engine executes wrongly, so that there is nothing to compare with.

    Attributes:
        value: their bytes under the mask.
        mask: as long as `value`.
        reason: why they are left out.
        anywhere: True: the bytes may also stand inside an instruction, behind prefixes.
    """

    value: bytes
    mask: bytes
    reason: str
    anywhere: bool = False

    def matches(self, code: bytes) -> bool:
        """Whether this applies to an instruction: its bytes under the mask are `value`.

        They are looked for at its start, or, with `anywhere`, also inside of it. False where the
        instruction is shorter than the mask.
        """
        last = len(code) - len(self.mask)
        return any(
            all(c & m == v for c, m, v in zip(code[at:], self.mask, self.value, strict=False))
            for at in range(last + 1 if self.anywhere else min(last, 0) + 1)
        )


@define
class CaseFile:
    """The cases of one architecture, and how its machine may be treated.

    Attributes:
        cases: the instructions, in the order of the file.
        flags: register -> mask of its condition flags.
        keep: registers that tests leave as they are.
        slots: instructions for delay slots.
        mapped_targets: True: the guest must never fetch unmapped memory.
        skips: instructions that the engine executes wrongly.
    """

    cases: list[Case] = field(factory=list)
    flags: dict[str, int] = field(factory=dict)  #: register -> mask of its condition flags
    keep: set[str] = field(factory=set)  #: registers that keep their value
    slots: list[bytes] = field(factory=list)  #: delay-slot instructions
    mapped_targets: bool = False
    skips: list[Skip] = field(factory=list)

    def skip(self, code: bytes) -> str:
        """Return why an instruction cannot be compared on this engine; "" where it can."""
        return next((s.reason for s in self.skips if s.matches(code)), "")


def read_cases(path: Path | str) -> CaseFile:
    """Read a case file and the files that it includes.

    Raises:
        ValueError: it is malformed; the error names the line.
        OSError: it, or a file that it includes, cannot be read.
    """
    file = CaseFile()
    _CaseReader(file, Path(path), 1).read()
    return file


class _CaseReader:
    """Reads one case file into a CaseFile."""

    def __init__(self, file: CaseFile, path: Path, swap: int) -> None:
        """Note where the cases come from and go to.

        Args:
            file: gets the cases.
            path: of the file to read.
            swap: bytes of the units whose bytes are reversed; 1: none are.
        """
        self._file = file
        self._path = path
        self._swap = swap
        self._mode = 0

    def read(self) -> None:
        """Read the file line by line: store its cases and its directives (lines that start with
        `%`, see the module's docstring) in the CaseFile.

        Raises:
            ValueError: a line is malformed; the message has the file's path, the line's number and
                the line's text.
        """
        for number, line in enumerate(self._path.read_text().splitlines(), 1):
            text = line.strip()
            try:
                if text.startswith("%"):
                    self._directive(*text[1:].split())
                elif text and not text.startswith("#"):
                    self._file.cases.append(self._case(text, number))
            except (ValueError, IndexError) as error:
                raise ValueError(f"{self._path}:{number}: {error}: {text!r}") from None

    def _case(self, text: str, line: int) -> Case:
        """Parse a line that has a case.

        Args:
            text: the line, of four columns.
            line: its number.

        Raises:
            ValueError: it has not four columns, or one of them is wrong.
        """
        code, asm, outcome, row = (column.strip() for column in text.split("|"))
        if outcome not in OUTCOMES:
            raise ValueError(f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}")
        return Case(
            code=self._bytes(code), asm=asm, outcome=outcome, row=row, mode=self._mode, line=line
        )

    def _bytes(self, text: str) -> bytes:
        """Parse hexadecimal text; the bytes of each unit are reversed if the file is to be swapped.
        ValueError: it is no such text, or no whole number of units.
        """
        data = bytes.fromhex(text)
        if len(data) % self._swap:
            raise ValueError(f"{len(data)} bytes are no multiple of {self._swap}")
        return b"".join(data[n : n + self._swap][::-1] for n in range(0, len(data), self._swap))

    def _directive(self, word: str, *rest: str) -> None:
        """Parse a line that starts with `%`, and store what it says in the CaseFile.

        Args:
            word: the directive's name.
            rest: the other words of the line.

        Raises:
            ValueError, IndexError: there is no such directive, or words are missing or wrong.
        """
        file = self._file
        if word == "flags":
            file.flags[rest[0]] = int(rest[1], 16)
        elif word == "keep":
            file.keep.update(rest)
        elif word == "slot":
            file.slots.append(self._bytes(rest[0]))
        elif word in ("skip", "skip-inside"):
            value, mask, reason = self._bytes(rest[0]), self._bytes(rest[1]), " ".join(rest[2:])
            if len(value) != len(mask) or not reason:
                raise ValueError("%skip takes bytes, a mask of the same length, and the reason")
            file.skips.append(Skip(value, mask, reason, anywhere=word == "skip-inside"))
        elif word == "mapped-targets":
            file.mapped_targets = True
        elif word == "mode":
            self._mode = int(rest[0], 0)
        elif word == "include":
            swap = int(rest[2]) if rest[1:2] == ("swap",) else self._swap
            _CaseReader(file, self._path.parent / rest[0], swap).read()
        else:
            raise ValueError(f"no directive %{word}")
