"""What is measured: the same small guest program for every architecture, from subjects.txt.

    loop(n, k)     calls tiny(n, k), tiny(n - 1, k), ... tiny(1, k) and returns what the last one does: 1 + k
    tiny(n, k)     n + k: one instruction, or two where a jump would cover two, and `ret`, its return
    stores(n, p)   n times four stores of n to p; n goes down to 1
    filler         a straight-line instruction, to put other probes on
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import frozen

_SECTION = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)
APART = 256  # bytes from the start to `stores`: away from what is probed
_LINE = re.compile(r"(?:(?P<label>\w+):)?\s*(?P<code>[0-9a-f ]+?)\s*;.*")


@frozen
class Subject:
    """code: the program. at: label -> offset. filler: an instruction. mode: mode bits of the functions' addresses."""

    code: bytes
    at: dict[str, int]
    filler: bytes
    mode: int = 0

    @property
    def functions(self) -> dict[str, tuple[int, int]]:
        """Name -> offset, size."""
        bounds = {"loop": "tiny", "tiny": "end", "stores": "filler"}
        return {name: (self.at[name], self.at[after] - self.at[name]) for name, after in bounds.items()}


def subject(listing: str, *, little: bool = False, mode: int = 0) -> Subject:
    """A subject from its listing. little: the units are stored lowest byte first."""
    code, at = b"", {}
    for line in filter(None, map(str.strip, listing.splitlines())):
        found = _LINE.fullmatch(line)
        assert found is not None, line
        if found["label"] == "stores":
            at["end"], code = len(code), code.ljust(APART, b"\0")
        if found["label"]:
            at[found["label"]] = len(code)
        for unit in map(bytes.fromhex, found["code"].split()):
            code += unit[::-1] if little else unit
    return Subject(code[: at["filler"]], at, code[at["filler"] :], mode)


def _subjects() -> dict[str, Subject]:
    _, *sections = _SECTION.split(Path(__file__).with_name("subjects.txt").read_text())
    text = dict(zip(sections[::2], sections[1::2], strict=True))
    return {
        "x86_64": subject(text["x86_64"]),
        "i386": subject(text["i386"]),
        # instructions are little endian on both
        **dict.fromkeys(("arm64", "arm64be"), subject(text["arm64"], little=True)),
        **dict.fromkeys(("arm", "armeb"), subject(text["arm"], little=True)),
        "cortexm": subject(text["thumb"], little=True, mode=1),
        **dict.fromkeys(("riscv32", "riscv64"), subject(text["riscv"], little=True)),
        **dict.fromkeys(("mips", "mips64", "mips32r6", "mips64r6"), subject(text["mips"])),
        **dict.fromkeys(("mipsel", "mips64el", "mips32r6el", "mips64r6el"), subject(text["mips"], little=True)),
        **dict.fromkeys(("ppc", "ppc64"), subject(text["ppc"])),
        "ppc64le": subject(text["ppc"], little=True),
        "s390x": subject(text["s390x"]),
        **dict.fromkeys(("sparc", "sparc64"), subject(text["sparc"])),
        "m68k": subject(text["m68k"]),
        "tricore": subject(text["tricore"], little=True),
    }


#: architecture -> its subject
SUBJECTS = _subjects()
