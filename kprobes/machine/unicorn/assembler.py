"""Assembly text, where Keystone is installed and knows the ISA. For examples and tests; nothing the library emits goes
through it."""

from __future__ import annotations

from typing import Any

from ...errors import ImageError, Unsupported

#: architecture -> Keystone's names of its architecture and mode
_MODES = {
    "x86_64": ("X86", "64"),
    "i386": ("X86", "32"),
    "arm": ("ARM", "ARM"),
    "arm64": ("ARM64", "LITTLE_ENDIAN"),
    "arm64be": ("ARM64", "LITTLE_ENDIAN"),
    "mips": ("MIPS", "MIPS32", "BIG_ENDIAN"),
    "mipsel": ("MIPS", "MIPS32"),
    "mips64": ("MIPS", "MIPS64", "BIG_ENDIAN"),
    "mips64el": ("MIPS", "MIPS64"),
    "ppc": ("PPC", "PPC32", "BIG_ENDIAN"),
    "ppc64": ("PPC", "PPC64", "BIG_ENDIAN"),
    "ppc64le": ("PPC", "PPC64"),
    "s390x": ("SYSTEMZ", "BIG_ENDIAN"),
    "sparc": ("SPARC", "SPARC32", "BIG_ENDIAN"),
    "sparc64": ("SPARC", "SPARC64", "BIG_ENDIAN"),
}


def assemble(text: str, arch: str, base: int) -> bytes:
    """Machine code for `text` at address `base`. Unsupported where there is no assembler for the ISA, ImageError for
    bad text."""
    if arch not in _MODES:
        raise Unsupported(f"no assembler for {arch}", hint="pass code as bytes")
    if not text.isascii():
        raise ImageError("assembly does not parse: it is not ASCII",
                         hint="pass code as bytes, or text of an assembler's")
    ks = _keystone()
    kind, *modes = _MODES[arch]
    try:
        assembler = ks.Ks(getattr(ks, f"KS_ARCH_{kind}"), sum(getattr(ks, f"KS_MODE_{mode}") for mode in modes))
        code, _ = assembler.asm(text, base, as_bytes=True)
    except ks.KsError as error:
        raise ImageError(f"assembly does not parse: {error}", hint=f"write it as Keystone reads {arch}") from None
    if not code:
        raise ImageError("assembly gives no code", hint=f"write it as Keystone reads {arch}")
    return bytes(code)


def _keystone() -> Any:
    """The assembler, which not every host has."""
    try:
        import keystone
    except ImportError as error:
        raise Unsupported(f"assembly text takes Keystone, which cannot be imported ({error})",
                          hint="pip install 'kprobes[asm]', or pass code as bytes") from None
    return keystone
