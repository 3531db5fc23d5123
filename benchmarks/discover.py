"""How many functions of stripped Debian libraries discover() finds, and how many of those are some.

    python benchmarks/discover.py FOLDER LIBRARY ARCH ...

FOLDER/ARCH/libc6 and FOLDER/ARCH/libc6-dbg are the unpacked packages of Debian's glibc (`dpkg-deb -x`); the truth is
the symbol table of the latter. With --angr the same is asked of angr's CFGFast, which is to be installed elsewhere
(`pip install angr pyelftools`): then kprobes need not be.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

FUNCTIONS = "STT_FUNC", "STT_GNU_IFUNC", "STT_LOOS"
STUBS = (".plt", ".iplt", ".MIPS.stubs", ".glink")
EXECUTABLE = 4  # section flag
WITH_MODES = "EM_ARM", "EM_MIPS"


class Library:
    """A stripped library, and what its debug file says.

    Attributes:
        path: of the library.
        text: (start, end) of its sections with code.
        truth: addresses of its functions.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """folder: has libc6 and libc6-dbg. name: of the library."""
        self.path = next((folder / "libc6").rglob(name))
        with self.path.open("rb") as file:
            elf = ELFFile(file)
            notes = elf.get_section_by_name(".note.gnu.build-id").iter_notes()
            build = str(next(iter(notes))["n_desc"])
            self._modes = elf["e_machine"] in WITH_MODES
            self.text = [(s["sh_addr"], s["sh_addr"] + s["sh_size"]) for s in elf.iter_sections()
                         if s["sh_flags"] & EXECUTABLE and not s.name.startswith(STUBS)]
        debug = folder / "libc6-dbg/usr/lib/debug/.build-id" / build[:2] / f"{build[2:]}.debug"
        with debug.open("rb") as file:
            symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
            self.truth = set(self.inside(s["st_value"] for s in symbols
                                         if s["st_info"]["type"] in FUNCTIONS and s["st_shndx"] != "SHN_UNDEF"))

    def inside(self, addresses: Any) -> Iterator[int]:
        """Those of addresses that are in the text, without mode bits."""
        for address in addresses:
            plain = address & ~1 if self._modes else address
            if any(start <= plain < end for start, end in self.text):
                yield plain


def by_kprobes(library: Library) -> set[int]:
    """What discover() finds, by link address."""
    from kprobes import UnicornMachine

    with UnicornMachine.load(library.path) as machine:
        found = machine.discover()
        base = machine.symbols.layouts[0].text[0][0] - library.text[0][0]
        return set(library.inside(f.address - base for f in found))


def by_angr(library: Library) -> set[int]:
    """What CFGFast finds, by link address."""
    import angr

    logging.disable(logging.CRITICAL)
    project = angr.Project(str(library.path), auto_load_libs=False)
    project.analyses.CFGFast(normalize=True)
    image = project.loader.main_object
    return set(library.inside(f.addr - image.mapped_base + image.linked_base for f in project.kb.functions.values()
                              if not (f.is_plt or f.is_simprocedure or f.is_alignment)))


def main() -> None:
    """Print a row for each architecture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--angr", action="store_true", help="ask angr instead")
    parser.add_argument("folder", type=Path)
    parser.add_argument("library")
    parser.add_argument("arch", nargs="+")
    options = parser.parse_args()
    print("| library | functions | found | recall | precision | seconds |")
    print("|---|---|---|---|---|---|")
    for arch in options.arch:
        library = Library(options.folder / arch, options.library)
        begun = time.perf_counter()
        found = (by_angr if options.angr else by_kprobes)(library)
        seconds = time.perf_counter() - begun
        right = len(found & library.truth)
        print(f"| {options.library} {arch} | {len(library.truth)} | {len(found)} | {right / len(library.truth):.1%} | "
              f"{right / max(len(found), 1):.1%} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
