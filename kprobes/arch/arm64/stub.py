"""AArch64 as stubs of GDB's protocol show it."""

from __future__ import annotations

from attrs import evolve

from .._stub import RegisterPart, StubFacts


def _reversed(data: bytes) -> bytes:
    """Return the bytes in reverse order, as QEMU's stub takes them."""
    return data[::-1]


def _widened(data: bytes) -> bytes:
    """Return the eight bytes that QEMU's stub reads for a register of which it shows four."""
    return bytes(4) + data


ARM64 = StubFacts(
    # the vectors are z0 where the CPU has SVE, else v0
    parts={"nzcv": RegisterPart("cpsr", 28, 4, 28), "tpidr_el0": RegisterPart("TPIDR_EL0"),
           **{f"v{n}": RegisterPart(f"z{n}", 0, 128) for n in range(32)}},
    takes_pc=True, qemu="aarch64")
ROWS = {
    # Arm ARM, C5.2: PSTATE.M of EL1h, PAN
    "arm64": evolve(ARM64, kernel=("cpsr", 0xF, 0x5), program=("cpsr", 1 << 22, 0)),
    "arm64be": evolve(ARM64, taken={"cpsr": _widened, "fpcr": _reversed, "fpsr": _reversed},
                      qemu="aarch64_be"),
}
