"""Assembly text, where Keystone knows the ISA. For examples and tests; nothing the library emits goes through it."""

from __future__ import annotations

import keystone as ks

from ...errors import ImageError, Unsupported

_MODES = {
    "x86_64": (ks.KS_ARCH_X86, ks.KS_MODE_64),
    "i386": (ks.KS_ARCH_X86, ks.KS_MODE_32),
    "arm": (ks.KS_ARCH_ARM, ks.KS_MODE_ARM),
    "arm64": (ks.KS_ARCH_ARM64, ks.KS_MODE_LITTLE_ENDIAN),
    "arm64be": (ks.KS_ARCH_ARM64, ks.KS_MODE_LITTLE_ENDIAN),
    "mips": (ks.KS_ARCH_MIPS, ks.KS_MODE_MIPS32 | ks.KS_MODE_BIG_ENDIAN),
    "mipsel": (ks.KS_ARCH_MIPS, ks.KS_MODE_MIPS32),
    "mips64": (ks.KS_ARCH_MIPS, ks.KS_MODE_MIPS64 | ks.KS_MODE_BIG_ENDIAN),
    "mips64el": (ks.KS_ARCH_MIPS, ks.KS_MODE_MIPS64),
    "ppc": (ks.KS_ARCH_PPC, ks.KS_MODE_PPC32 | ks.KS_MODE_BIG_ENDIAN),
    "ppc64": (ks.KS_ARCH_PPC, ks.KS_MODE_PPC64 | ks.KS_MODE_BIG_ENDIAN),
    "ppc64le": (ks.KS_ARCH_PPC, ks.KS_MODE_PPC64),
    "s390x": (ks.KS_ARCH_SYSTEMZ, ks.KS_MODE_BIG_ENDIAN),
    "sparc": (ks.KS_ARCH_SPARC, ks.KS_MODE_SPARC32 | ks.KS_MODE_BIG_ENDIAN),
    "sparc64": (ks.KS_ARCH_SPARC, ks.KS_MODE_SPARC64 | ks.KS_MODE_BIG_ENDIAN),
}


def assemble(text: str, arch: str, base: int) -> bytes:
    """Machine code for `text` at address `base`. Unsupported where no assembler knows the ISA, ImageError for bad text."""
    if arch not in _MODES:
        raise Unsupported(f"no assembler for {arch}", hint="pass code as bytes")
    try:
        code, _ = ks.Ks(*_MODES[arch]).asm(text, base, as_bytes=True)
    except ks.KsError as error:
        raise ImageError(f"assembly does not parse: {error}", hint=f"write it as Keystone reads {arch}") from None
    if not code:
        raise ImageError("assembly gives no code", hint=f"write it as Keystone reads {arch}")
    return bytes(code)
