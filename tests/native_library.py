"""The host's library (kprobes/native) as code of a guest: each host's functions run in an engine that plays the host."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

import kprobes.native

HOSTS = ("x86_64", "aarch64")
#: relocations that are a base and an addend, and those that are a symbol's address: x86-64's, then AArch64's
RELATIVE, SYMBOL = (8, 1027), (1, 6, 7, 257, 1025, 1026)


@cache
def library(host: str, base: int) -> tuple[bytes, dict[str, int]]:
    """The library of a host, loaded at an address.

    What it wants of Python is nowhere (0): functions that call Python are not to be run.

    Returns:
        Its bytes, and the addresses of what it exports.
    """
    with Path(kprobes.native.__file__).with_name(f"{host}.so").open("rb") as file:
        elf = ELFFile(file)
        segments = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        image = bytearray(max(s["p_vaddr"] + s["p_memsz"] for s in segments))
        for segment in segments:
            image[segment["p_vaddr"] : segment["p_vaddr"] + segment["p_filesz"]] = segment.data()
        dynamic = next(s for s in elf.iter_segments() if isinstance(s, DynamicSegment))
        symbols = list(dynamic.iter_symbols())
        for table in dynamic.get_relocation_tables().values():
            for relocation in table.iter_relocations():
                kind, symbol = relocation["r_info_type"], symbols[relocation["r_info_sym"]]
                if kind in RELATIVE:
                    value = base + relocation["r_addend"]
                else:
                    assert kind in SYMBOL, kind
                    value = base + symbol["st_value"] + relocation["r_addend"] if symbol["st_value"] else 0
                struct.pack_into("<Q", image, relocation["r_offset"], value)
        found = {s.name: base + s["st_value"] for s in symbols if s.name and s["st_value"]}
    return bytes(image).ljust(-(-len(image) // 0x1000) * 0x1000, b"\0"), found

