"""Patterns of the engine's functions of which two can have the library's in front (outside.py)."""

from __future__ import annotations

import ctypes
import platform
import re

from attrs import frozen

from .library import address

# bytes that a look is shorter than; as in kprobes/native/engine.c, with what else is known there
LOOK = 192
_MOST = 1200  # bytes that are looked at
_LOOK = "helper_check_exit_request_"
#: Functions of each guest's, whose names end in it, and of all. code32 and code64: where a
#: translation's code is.
_KNOWN = {
    "x86_64": {
        _LOOK: rb"\x4c\x8b\x87\xb8\x01\0\0\x41\x8b\x80....\x85\xc0\x79.\x85\xf6\x74.\xc3.{0,16}\x48\x83\xec\x18"
        rb"\x83\xbf.{4}\x01\x74.\x80\xbf.{4}\0\x41\xc7\x80.{4}\0\0\0\0\x74.\xc6\x87.{4}\0\x4c\x89\xc7\xe8.{4}"
        rb"\x48\x8b\x74\x24\x18\x4c\x89\xc7\xe8",
        "cpu_restore_state_": rb".{0,32}\x4c\x8b\xa8\0\x03\0\0",
        "tcg_tb_insert_": rb"\x48\x8b\xbf.{4}\x48\x89\xf2\x48\x8d\x76(?:(?P<code32>\x18)|(?P<code64>\x20))\xe9",
        "uc_emu_stop": rb".{0,64}\xc6[\x80-\x87]\x6d\x05\0\0\x01",
        "uc_emu_start": rb".{0,512}\xc7[\x80-\x87]\x90\x05\0\0\0\0\0\0",
    },
    "aarch64": {
        _LOOK: rb"\x02\xdc\x40\xf9.{24}\xc0\x03\x5f\xd6.{4}\xfd\x7b\xbe\xa9\xfd\x03\0\x91.{4}\xf3\x53\x01\xa9",
        "cpu_restore_state_": rb".{0,64}[\0-\x1f]\x80\x41\xf9",
        "tcg_tb_insert_": rb".{4}\xe2\x03\x01\xaa\x21(?:(?P<code32>\x60)|(?P<code64>\x80))\0\x91",
        "uc_emu_stop": rb".{0,64}[\x60-\x7f]\xb6\x15\x39",
        "uc_emu_start": rb".{0,1024}[\x1f\x3f\x5f\x7f\x9f\xbf\xdf\xff][\x90-\x93]\x05\xb9",
    },
}
_CODE = {"code32": 24, "code64": 32}


@frozen
class KnownFunctions:
    """Addresses in one guest's part of the engine's library.

    Attributes:
        look: address where its look for requests to exit begins.
        block: address of the function that finds the translation that a return address is in.
        code: bytes from such a translation to the address of its code.
    """

    look: int
    block: int
    code: int


def known(guest: str) -> KnownFunctions:
    """Find the functions of one guest in the engine's library, and check that they are the ones
    that are known.

    Args:
        guest: as the engine's functions name it: their names' suffix.

    Raises:
        AttributeError: there is no such function.
        ValueError: one is otherwise than those that are known.
    """
    found = {}
    for name, pattern in _KNOWN[platform.machine()].items():
        own = name.endswith("_")
        text = ctypes.string_at(address(name + guest if own else name), LOOK if own else _MOST)
        match = re.match(pattern, text, re.DOTALL)
        if match is None:
            raise ValueError(f"{name} is another one")
        found[name] = match.lastgroup
    return KnownFunctions(
        address(_LOOK + guest),
        address(f"tcg_tb_lookup_{guest}"),
        _CODE[found["tcg_tb_insert_"] or ""],
    )
