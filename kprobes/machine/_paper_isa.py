"""PAPER, the instruction set of the toy engine: 1 to 3 bytes, a link register, one delayed branch,
an exclusive pair.

    01 d i  add d, i      02      nop           03 o    jmp o       04 o    call o     05   ret
    06 d a  load d, [a]   07 s a  store s, [a]  08 a o  brz a, o    09 o 00 djmp o
    0a d    ll d          0b d    sc d          0d d a  div d, a    0e a    jr a       0f   sys
    cc      trap

`i` is a signed byte, `o` one counted from the instruction's own address; `d`, `a`, `s` number
registers (sp is 8, lr is 9). The `add` behind a `djmp` is its delay slot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..arch._base import (
    Abi,
    Arch,
    Atomic,
    Insn,
    Jump,
    Linkage,
    Order,
    Registers,
    Returning,
    Traps,
    signed,
)
from ..errors import GuestFault, OutOfReach
from ..regs import Regs

NAMES = (*(f"r{n}" for n in range(8)), "sp", "lr", "pc", "flags")
TRAP = 0xCC
LENGTHS = {
    1: 3,
    2: 1,
    3: 2,
    4: 2,
    5: 1,
    6: 3,
    7: 3,
    8: 3,
    9: 3,
    10: 2,
    11: 2,
    13: 3,
    14: 2,
    15: 1,
    TRAP: 1,
    0x10: 3,
}


def _jump(regs: Regs, insn: Insn) -> int:
    """Simulate `jmp` or `djmp`: return the target."""
    return insn.addr + signed(insn.raw[1], 8)


def _call(regs: Regs, insn: Insn) -> int:
    """Simulate `call`: put the return address into lr, and return the target."""
    regs["lr"] = insn.next
    return insn.addr + signed(insn.raw[1], 8)


def _ret(regs: Regs, insn: Insn) -> int:
    """Simulate `ret`: return what lr holds."""
    return regs["lr"]


def _brz(regs: Regs, insn: Insn) -> int:
    """Simulate `brz`: return the target where the register is 0, else the next instruction's
    address.
    """
    return insn.next if regs[NAMES[insn.raw[1]]] else insn.addr + signed(insn.raw[2], 8)


def _jr(regs: Regs, insn: Insn) -> int:
    """Simulate `jr`: return the address in the register."""
    return regs[NAMES[insn.raw[1]]]


_SIMULATED = {3: _jump, 4: _call, 5: _ret, 8: _brz, 9: _jump, 14: _jr}
_DIRECT = {3, 4, 8, 9}
_REJECTED = {
    10: "part of an exclusive sequence",
    11: "part of an exclusive sequence",
    15: "a system call",
    TRAP: "a breakpoint",
    16: "a slot's jump",
}
_ATOMIC = {10: Atomic.OPENS, 11: Atomic.CLOSES}


def decode(code: bytes, addr: int) -> Insn:
    """Decode an instruction of PAPER.

    Args:
        code: bytes from `addr` on; more than the instruction's may be there. Those behind a `djmp`
            are its delay slot, and become the `body`.
        addr: address of the instruction.

    Returns:
        The instruction; one marked as truncated or undefined where the bytes are none. Where no
        probe may be at it, only `reject`, its name, bytes, `atomic` and `delay_slot` are set.
    """
    length = LENGTHS.get(code[0] if code else 0, 0)
    if not code or len(code) < length:
        return Insn.truncated(addr, code[:1])
    if not length:
        return Insn.undefined(addr, code[:1])
    op, raw = code[0], bytes(code[:length])
    insn = Insn(
        addr=addr,
        raw=raw,
        name=f"op{op:02x}",
        reject=_REJECTED.get(op, ""),
        atomic=_ATOMIC.get(op),
        delay_slot=op == 9,
    )
    if insn.reject:
        return insn
    simulate = _SIMULATED.get(op)
    body = b"" if simulate else raw
    if op == 9:
        body = bytes(code[3:6])
    target = addr + signed(raw[2 if op == 8 else 1], 8) if op in _DIRECT else None
    return Insn(
        addr=addr,
        raw=raw,
        name=insn.name,
        delay_slot=insn.delay_slot,
        body=body,
        target=target,
        indirect=op == 14,
        links=op == 4,
        falls_through=simulate is None or op in (4, 8),
        simulate=None if simulate is None else partial(_simulate, simulate, insn),
    )


def _simulate(simulate: Callable[[Regs, Insn], int], insn: Insn, regs: Regs) -> int:
    """Execute an instruction by its function: Insn.simulate is this with the first two filled in.

    Args:
        simulate: (registers, instruction) -> the next pc.
        insn: the instruction.
        regs: the CPU's registers.
    """
    return simulate(regs, insn)


def _back(frm: int, to: int) -> bytes:
    """Return PAPER's jump to an absolute address.

    Args:
        frm: address of the jump; not used.
        to: the address.

    Raises:
        OutOfReach: it is beyond 64 KiB.
    """
    if not 0 <= to < 1 << 16:
        raise OutOfReach("PAPER has 16-bit addresses", address=to, hint="stay below 64 KiB")
    return b"\x10" + to.to_bytes(2, "little")


def _set_lr(regs: Regs, target: int) -> None:
    """Put an address, to which the function returns, into the link register."""
    regs["lr"] = target


def _restore_lr(regs: Regs, sp: int, target: int) -> None:
    """Put a true return address into the link register; `sp` is not used."""
    regs["lr"] = target


PAPER = Arch(
    name="paper",
    bits=32,
    order=Order.LITTLE,
    insn_align=1,
    max_insn=3,
    regs=Registers(names=NAMES, pc="pc", sp="sp", flags="flags", aliases={"ip": "pc"}),
    traps=Traps(probe={1: bytes([TRAP])}, end={0: bytes([TRAP])}),
    decode=decode,
    abi=Abi(args=("r0", "r1", "r2", "r3"), returns=("r0",), stack_args=0, stack_align=8),
    linkage=Linkage(
        get=lambda regs: regs["lr"],
        set=_set_lr,
        back=b"\x05",
        returning=Returning(restore=_restore_lr),
    ),
    jump=Jump(size=3, encode=_back),
)


def execute(
    regs: Regs, values: dict[str, int], fetch: Callable[[int], bytes], pc: int, op: bytes
) -> int:
    """Execute one instruction of PAPER, and return the next pc.

    `pc` itself is not changed in `values`; the caller sets it. Of a `djmp` the delay slot is
    executed, too.

    Args:
        regs: the CPU's registers, for accesses to memory.
        values: the same registers, name -> value; they are changed.
        fetch: (address) -> bytes of the instruction there, for a delay slot.
        pc: address of the instruction.
        op: its bytes.

    Raises:
        GuestFault: it faults, or is a system call.
    """
    insn = decode(op + b"\x02\x02\x02", pc)
    kind, a = op[0], NAMES[op[1] % 12] if len(op) > 1 else ""
    if kind == 1:
        values[a] = values[a] + signed(op[2], 8) & PAPER.mask
    elif kind == 6:
        values[a] = int.from_bytes(regs.read(values[NAMES[op[2]]], 4), "little")
    elif kind == 7:
        regs.write(values[NAMES[op[2]]], values[a].to_bytes(4, "little"))
    elif kind == 13:
        if not values[NAMES[op[2]]]:
            raise GuestFault("division by zero", pc=pc, access="arithmetic")
        values[a] //= values[NAMES[op[2]]]
    elif kind == 16:
        return int.from_bytes(op[1:3], "little")
    elif kind == 15:
        raise GuestFault("system call", pc=pc, access="interrupt")
    elif kind == 9:
        execute(regs, values, fetch, pc + 3, fetch(pc + 3))
        return pc + signed(op[1], 8)
    elif insn.simulate is not None:
        return insn.simulate(regs)
    return pc + len(op)
