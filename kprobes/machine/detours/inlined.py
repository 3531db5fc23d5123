"""Programs that stand in their detour, without a call.

So there are no computed jumps to a program and back, at which an emulator leaves one piece of
translated code to look for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arch._base import Arch, Decoded, Insn
from ...arch._detours import Call

MOST = 512  #: bytes of a program; twice as many of a detour's


def bodies(arch: Arch, returns: bytes, calls: Sequence[Call]) -> list[Call]:
    """Return calls of programs with the code to inline in the place of each program's code.

    The code runs off its end where the program would return. It is b"" where the program must be
    called: it is longer than MOST bytes, those that are inlined would be longer than twice as many
    together, or its code may not be moved.

    Args:
        arch: the architecture.
        returns: the return instruction; b"": all are called.
        calls: (address of the environment, address of the entry, the program's code) of each.

    Returns:
        (environment, entry, code to inline) of each, in the same order.
    """
    out, left = list[Call](), 2 * MOST
    for environment, entry, text in calls:
        body = _body(arch, returns, text) if returns and len(text) <= min(MOST, left) else b""
        left -= len(body)
        out.append((environment, entry, body))
    return out


def _body(arch: Arch, returns: bytes, text: bytes) -> bytes:
    """Return a program's instructions without the return at the end, so that they run on behind it.

    Args:
        arch: the architecture of the code.
        returns: the bytes of its return instruction.
        text: the program's code. Other returns in it become jumps to its end, where these have the
            size of a return.

    Returns:
        The code; b"" where it does not end in a return, or an instruction must not be moved.
    """
    end = len(text) - len(returns)
    if text[end:] != returns:
        return b""
    at, body = 0, b""
    while at < end:
        insn = arch.decode(text[at : at + 2 * arch.max_insn].ljust(2 * arch.max_insn, b"\0"), at)
        code = insn.raw
        if code == returns and arch.jump is not None and arch.jump.size == len(code):
            code = arch.jump.encode(at, end)
        elif not _stays(insn, end):
            return b""
        body += code
        at += insn.size
    return body if at == end else b""


def _stays(insn: Insn, end: int) -> bool:
    """Return True if an instruction does the same at another address.

    A branch does where it stays within the program. A call never does, nor an instruction that goes
    on elsewhere than at its target or the next instruction, that has a pc-relative operand, or that
    is executed out of line in another form.

    Args:
        insn: the instruction, decoded as if the program stood at 0.
        end: offset of the program's last return.
    """
    if insn.decoded is not Decoded.WHOLE or insn.links:
        return False
    if insn.target is not None:
        return 0 <= insn.target <= end
    return insn.body == insn.raw and insn.falls_through and insn.operand is None
