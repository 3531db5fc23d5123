"""Finds the code of an image, and what tells of its functions besides symbols."""

from __future__ import annotations

from attrs import evolve, frozen

from ._elf import Elf, Relocation

_EXECUTABLE, _ALLOC = 4, 2  # section flags
# sections whose names begin so: code that calls go through
_STUBS = (".plt", ".iplt", ".MIPS.stubs", ".glink")


@frozen
class CodeLayout:
    """The places of an image's code. Addresses are link addresses, but in what moved() returns.

    Attributes:
        text: (start, end) of each stretch of code, without stubs.
        frames: (address, bytes) of `.eh_frame`; (0, 0) where there is none.
        index: (address, bytes) of `.ARM.exidx`; (0, 0) where there is none.
        words: addresses of words that may point to code: the image's relocations put addresses
            there.
        starts: addresses of functions that the headers name, mode bits included: entry,
            initialisation.
        module: of the symbols.
        raw: the image is a plain piece of memory, with data anywhere in `text`.
    """

    text: tuple[tuple[int, int], ...]
    frames: tuple[int, int] = (0, 0)
    index: tuple[int, int] = (0, 0)
    words: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    module: str = ""
    raw: bool = False

    def moved(self, bias: int, module: str) -> CodeLayout:
        """Return the layout at the addresses that an image gets in guest memory.

        Args:
            bias: bytes that are added to every address.
            module: name of the image, "" for the main one.
        """

        def there(place: tuple[int, int]) -> tuple[int, int]:
            return (place[0] + bias, place[1]) if place[1] else place

        return evolve(
            self,
            text=tuple((start + bias, end + bias) for start, end in self.text),
            frames=there(self.frames),
            index=there(self.index),
            words=tuple(word + bias for word in self.words),
            starts=tuple(start + bias for start in self.starts),
            module=module,
        )


def code_layout(elf: Elf, relocations: tuple[Relocation, ...]) -> CodeLayout:
    """Return the layout of an executable or a shared object; without sections of code its text is
    that of executable segments.

    Args:
        elf: the file.
        relocations: of the file: those without a symbol put addresses of its own into words.
    """
    sections = [s for s in elf.sections if s["sh_flags"] & _ALLOC and s["sh_type"] != "SHT_NOBITS"]
    text = [
        (s["sh_addr"], s["sh_addr"] + s["sh_size"])
        for s in sections
        if s["sh_flags"] & _EXECUTABLE and not s.name.startswith(_STUBS)
    ]
    if not text:
        text = [
            (load.vaddr, load.vaddr + len(load.data)) for load in elf.loads if "x" in load.perms
        ]
    frames = next(((s["sh_addr"], s["sh_size"]) for s in sections if s.name == ".eh_frame"), (0, 0))
    index = next(
        ((h["p_vaddr"], h["p_memsz"]) for h in elf.headers if h["p_type"] == "PT_ARM_EXIDX"), (0, 0)
    )
    starts = [elf.entry, *(elf.tags[tag] for tag in ("DT_INIT", "DT_FINI") if elf.tags.get(tag))]
    return CodeLayout(
        tuple(sorted((start, end) for start, end in text if start < end)),
        frames,
        index,
        tuple(r.offset for r in relocations if not r.symbol),
        tuple(filter(None, starts)),
    )
