"""x86: how many bytes of data beside code an instruction uses."""

from __future__ import annotations

import pytest

from kprobes import UnicornMachine

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("code", "size"), [
    ("dd3510000000", 108),  # FNSAVE
    ("dd2510000000", 108),  # FRSTOR
    ("d93510000000", 28),  # FNSTENV
    ("d92510000000", 28),  # FLDENV
    ("db2d10000000", 10),  # FLD m80
    ("0fae0510000000", 512),  # FXSAVE
    ("488b0510000000", 8),  # MOV
])
def test_bytes_of_an_operand_relative_to_rip(code: str, size: int) -> None:
    with UnicornMachine.from_code(bytes(16), arch="x86_64", base=0x1000) as m:
        insn = m.arch.decode(bytes.fromhex(code) + bytes(16), 0x1000)
    assert (insn.operand, insn.data) == (insn.next + 0x10, size)
