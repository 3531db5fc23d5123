"""MIPS as stubs of GDB's protocol show it.

QEMU's stubs describe no registers, and have GDB's for this target.
"""

from __future__ import annotations

from .._stub import StubFacts, file_of, row_of


def _row(bits: int, qemu: str = "", cpu: str = "") -> StubFacts:
    """Make the row of one architecture.

    Args:
        bits: width of a register.
        qemu: QEMU's name of the architecture; "": the architecture's own.
        cpu: CPU model that QEMU needs; "": its default.
    """
    temporaries = (
        "a0 a1 a2 a3 t0 t1 t2 t3 t4 t5 t6 t7"
        if bits == 32
        else "a0 a1 a2 a3 a4 a5 a6 a7 t0 t1 t2 t3"
    )
    general = f"0 zero at v0 v1 {temporaries} {row_of('s', 0, 7)} t8 t9 k0 k1 gp sp fp ra"
    return StubFacts(
        file=file_of(
            bits // 8,
            general,
            "0 status lo hi badvaddr cause pc",
            f"0 {row_of('f', 0, 31)} fcsr fir",
        ),
        nop=bytes(4),
        qemu=qemu,
        qemu_cpu=cpu,
    )


ROWS = {
    **dict.fromkeys(("mips", "mipsel"), _row(32)),
    **dict.fromkeys(("mips64", "mips64el"), _row(64)),
    "mips32r6": _row(32, "mips", "mips32r6-generic"),
    "mips32r6el": _row(32, "mipsel", "mips32r6-generic"),
    "mips64r6": _row(64, "mips64", "I6400"), "mips64r6el": _row(64, "mips64el", "I6400"),
}
