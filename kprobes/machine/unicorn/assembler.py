"""Assembly text, where Keystone is installed and knows the ISA. For examples and tests; nothing the
library emits goes through it.
"""

from __future__ import annotations

from typing import Any

from ...arch import get
from ...arch._assembly import AssemblyText
from ...arch._rows import row
from ...errors import ImageError, Unsupported


def assemble(text: str, arch: str, base: int) -> bytes:
    """Return machine code for assembly text.

    Args:
        text: instructions as Keystone reads them.
        arch: name of the architecture.
        base: address of the first byte.

    Raises:
        Unsupported: there is no assembler for the architecture, or Keystone is not installed.
        ImageError: the text does not parse, or gives no code.
    """
    known = row(get(arch), AssemblyText)
    if known is None or not known.keystone:
        raise Unsupported(f"no assembler for {arch}", hint="pass code as bytes")
    if not text.isascii():
        raise ImageError(
            "assembly does not parse: it is not ASCII",
            hint="pass code as bytes, or text of an assembler's",
        )
    ks = _keystone()
    kind, *modes = known.keystone
    try:
        assembler = ks.Ks(
            getattr(ks, f"KS_ARCH_{kind}"), sum(getattr(ks, f"KS_MODE_{mode}") for mode in modes)
        )
        code, _ = assembler.asm(text, base, as_bytes=True)
    except ks.KsError as error:
        raise ImageError(
            f"assembly does not parse: {error}", hint=f"write it as Keystone reads {arch}"
        ) from None
    if not code:
        raise ImageError("assembly gives no code", hint=f"write it as Keystone reads {arch}")
    return bytes(code)


def _keystone() -> Any:
    """Return the module `keystone`. Unsupported: it cannot be imported."""
    try:
        import keystone
    except ImportError as error:
        raise Unsupported(
            f"assembly text takes Keystone, which cannot be imported ({error})",
            hint="pip install 'kprobes[asm]', or pass code as bytes",
        ) from None
    return keystone
