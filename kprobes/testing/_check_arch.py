"""check_arch(): tests an architecture against its contract (kprobes/arch/_base.py).

Every check takes the architecture and a source of random numbers, and yields a sentence for each
breach.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ..arch import get
from ..arch._base import Arch, Decoded, Insn, Jump
from ..arch._linux import Linux
from ..arch._rows import row
from ..errors import KprobeError
from ._check_branches import check_falls_through, check_links
from ._check_decode import check_fuzz, check_tables, check_truncation, home
from ._paper import paper_regs


def check_arch(arch: Arch | str, *, seed: int = 0) -> list[str]:
    """Run all checks of an architecture, and list what is wrong with it.

    Args:
        arch: the architecture, or its name.
        seed: of the random code that is decoded.

    Returns:
        Sentences; [] where nothing was found.

    Raises:
        Unsupported: there is no architecture of this name.
    """
    if isinstance(arch, str):
        arch = get(arch)
    problems: list[str] = []
    for check in _CHECKS:
        part = check.__name__.removeprefix("check").removeprefix("_")
        try:
            problems += [f"{part}: {text}" for text in check(arch, random.Random(seed))]
        except Exception as error:
            problems.append(f"{part}: raises {type(error).__name__}: {error}")
    return problems


# --- registers


def _registers(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check the register table: names unique, roles and aliases that name registers, widths of 0 to
    512 bits.
    """
    table = arch.regs
    if len(set(table.names)) != len(table.names):
        yield f"names appear twice: {sorted(n for n in table.names if table.names.count(n) > 1)}"
    for role in ("pc", "sp", "flags"):
        name = getattr(table, role)
        if name is not None and name not in table.names:
            yield f"{role} {name!r} is not among the names"
    for alias, name in table.aliases.items():
        if name not in table.names:
            yield f"alias {alias!r} stands for {name!r}, which is no register"
        if alias in table.names:
            yield f"alias {alias!r} hides the register of that name"
    for name, width in table.widths.items():
        if name not in table.names:
            yield f"width of {name!r}, which is no register"
        if not 0 <= width <= 512:  # 0: a register that is always zero
            yield f"{name!r} has {width} bits"


def _linux_names(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that the register table knows every register that Linux's kprobe events name."""
    linux = row(arch, Linux) or Linux()
    known = {*arch.regs.names, *arch.regs.aliases}
    missing = [name for name in linux.event_names if name not in known]
    if missing:
        yield f"Linux's kprobe events say {' '.join(missing)}: add them to Registers.aliases"


# --- traps


def _traps(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that traps fit the instructions they replace, and that decode refuses them."""
    modes = tuple(arch.traps.end)
    if not modes or not arch.traps.probe:
        yield "a probe trap and an end trap are needed"
        return
    for length, code in [
        each for probe in (arch.traps.probe, *arch.traps.modes.values()) for each in probe.items()
    ]:
        if not 0 < len(code) <= length:
            yield f"probe trap {code.hex()} does not fit an instruction of {length} bytes"
        if not any(_decode(arch, code, mode).reject for mode in modes):
            yield (
                f"probe trap {code.hex()} is not refused by decode: a breakpoint may be put "
                "over a breakpoint"
            )
    shortest = min((*arch.traps.probe, *(n for each in arch.traps.modes.values() for n in each)))
    for _ in range(2000):
        insn = _decode(arch, rng.randbytes(arch.max_insn), rng.choice(modes))
        whole = insn.decoded is Decoded.WHOLE and not insn.reject and not insn.span
        if whole and insn.size < shortest:
            yield (
                f"no probe trap fits {insn.name} of {insn.size} bytes: the shortest is for "
                f"{shortest}"
            )
            break
    for mode, code in arch.traps.end.items():
        if mode & ~arch.pointers.mode_bits:
            yield f"end trap of mode {mode}, which is not in mode_bits"
        if not code or len(code) % arch.insn_align:
            yield f"end trap {code.hex()} is no multiple of {arch.insn_align} bytes"
        if not _decode(arch, code, mode).reject:
            yield f"end trap {code.hex()} is not refused by decode"
    if arch.linkage is not None and arch.linkage.mode not in modes:
        yield f"no end trap for the trampoline's mode {arch.linkage.mode}"


def _decode(arch: Arch, code: bytes, mode: int = 0) -> Insn:
    """Decode bytes followed by zeros at home(), in a mode."""
    return arch.decode(code + bytes(2 * arch.max_insn), home(arch) | mode)


# --- calling convention


def _abi(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check the calling convention's registers and stack, and that arguments that are set can be
    read.
    """
    abi = arch.abi
    if abi is None:
        return
    for name in (*abi.args, *abi.returns):
        if name not in arch.regs.names:
            yield f"{name!r} is no register"
    if len(set(abi.args)) != len(abi.args):
        yield "an argument register appears twice"
    if not abi.returns:
        yield "no return register"
    if abi.stack_align < 1 or abi.stack_align & abi.stack_align - 1:
        yield f"stack_align {abi.stack_align} is no power of two"
    if abi.stack_args < max(abi.reserve, arch.linkage.pushed if arch.linkage else 0):
        yield f"stack_args {abi.stack_args} lies within the reserve or the return address"
    regs = paper_regs(arch)
    for n in range(len(abi.args) + 4):
        abi.set_argument(regs, n, 0x41 + n)
    for n in range(len(abi.args) + 4):
        if regs.arg(n) != 0x41 + n:
            yield f"argument {n} reads {regs.arg(n):#x} after {0x41 + n:#x} was set"


def _linkage(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that a return address that is set can be read, and that `restore` keeps result and
    stack pointer.
    """
    linkage = arch.linkage
    if linkage is None:
        return
    regs = paper_regs(arch)
    step = max(arch.insn_align, 2)
    for target in (
        0x123450 & arch.mask | linkage.mode,
        0x200000 - 4 * step & arch.mask | linkage.mode,
    ):
        linkage.set(regs, target)
        if linkage.get(regs) != target:
            yield f"get gives {linkage.get(regs):#x} after set({target:#x})"
    if linkage.returning.restore is None:
        return
    before = {name: regs[name] for name in arch.regs.names}
    linkage.returning.restore(regs, regs.sp, 0x234560 & arch.mask)
    if any(
        regs[name] != before[name]
        for name in (*(arch.abi.returns if arch.abi else ()), arch.regs.sp)
    ):
        yield "restore changes the result or the stack pointer"


def _addresses(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check that function pointers are split into an address and mode bits."""
    entry = arch.pointers.code_address(home(arch), lambda addr, size: bytes(size))
    if entry.addr & arch.pointers.mode_bits or entry.mode & ~arch.pointers.mode_bits:
        yield "code_address leaves mode bits in the address, or the other way round"
    if 0 not in entry.entries:
        yield "a function's own address is not among its entries"
    for code in (bytes(16), rng.randbytes(16)) if arch.pointers.direct else ():
        entry = arch.pointers.code_address(home(arch), lambda addr, size, code=code: code[:size])  # type: ignore[misc]
        if entry.addr | entry.mode != home(arch):
            yield "code_address gives another address, though direct"
    if arch.pointers.same_mode(paper_regs(arch), home(arch)) & ~arch.pointers.mode_bits != home(
        arch
    ):
        yield "same_mode changes the address"


# --- the jump


def _jump(arch: Arch, rng: random.Random) -> Iterator[str]:
    """Check the jump of each mode: its reach, its size, and that decode finds its target."""
    if arch.jump is None:
        return
    for mode, trap in arch.traps.end.items():
        # modes differ in alignment, and in the size of a trap
        step = arch.insn_align if arch.bundles is None else arch.bundles.size
        if arch.jump.modes:
            step = len(trap)
        yield from _jump_in(arch, arch.jump.modes.get(mode, arch.jump), mode, step)


def _jump_in(arch: Arch, jump: Jump, mode: int, step: int) -> Iterator[str]:
    """Check one jump, forwards and backwards, at its shortest, middle and longest distance.

    Args:
        jump: how the jump is encoded.
        mode: mode bits of the code.
        step: bytes from one address that a jump may go to, to the next.
    """
    frm = 1 << min(arch.bits - 2, 40)
    for sign in (1, -1):
        reach = _reach(arch, jump, frm, sign * step)
        for steps in sorted({1 + (sign > 0), reach // 2 or 1, reach}):
            yield from _jump_goes(arch, jump, mode, frm, frm + sign * step * steps)
        if reach < _farthest(arch):
            yield from _refuses(jump, frm, frm + sign * step * (reach + 1))


def _reach(arch: Arch, jump: Jump, frm: int, step: int) -> int:
    """Return how many steps a jump from `frm` reaches at most; at least 1, which is not tried.

    Args:
        arch: the architecture; it says how far a search needs to go.
        jump: how the jump is encoded.
        frm: the jump's address.
        step: bytes of a step; negative: backwards.
    """
    low, high = 1, _farthest(arch)
    if _encodes(jump, frm, frm + step * high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _encodes(jump, frm, frm + step * middle) else (low, middle)
    return low


def _farthest(arch: Arch) -> int:
    """Return a number of steps that only a jump that reaches everywhere can make."""
    return 1 << min(arch.bits - 3, 38 if arch.bundles is None else 36)


def _encodes(jump: Jump, frm: int, to: int) -> bool:
    """Whether a jump from address `frm` to `to` can be encoded."""
    try:
        jump.encode(frm, to)
    except KprobeError:
        return False
    return True


def _refuses(jump: Jump, frm: int, to: int) -> Iterator[str]:
    """Check that a jump from `frm` to `to`, which is out of reach, raises OutOfReach."""
    from ..errors import OutOfReach

    try:
        jump.encode(frm, to)
        yield f"a jump from {frm:#x} to {to:#x} encodes, one step nearer did not"
    except OutOfReach:
        pass
    except Exception as error:
        yield f"a jump out of reach raises {type(error).__name__}, not OutOfReach"


def _jump_goes(arch: Arch, jump: Jump, mode: int, frm: int, to: int) -> Iterator[str]:
    """Check that an encoded jump has the size that `jump` says, and decodes as a jump to its
    target.

    Args:
        arch: the architecture.
        jump: how the jump is encoded.
        mode: mode bits of the code.
        frm: address of the jump.
        to: its target.
    """
    try:
        code = jump.encode(frm, to)
    except KprobeError as error:
        yield f"no jump from {frm:#x} to {to:#x}: {error}"
        return
    if len(code) != jump.size:
        yield f"a jump has {len(code)} bytes, not {jump.size}"
    insn = _that_jumps(arch, code + bytes(2 * arch.max_insn), frm, mode)
    if insn.target is not None and insn.target & ~arch.pointers.mode_bits != to:
        yield f"a jump from {frm:#x} to {to:#x} decodes as {insn.name} to {insn.target:#x}"
    if insn.reject or (insn.simulate is None and insn.target is None):
        yield (
            f"decode does not see that {code.hex()} is a jump ({insn.name}: "
            f"{insn.reject or 'straight line'})"
        )


def _that_jumps(arch: Arch, code: bytes, frm: int, mode: int) -> Insn:
    """Return the instruction of `code` that jumps: the first at `frm`, or the last of a bundle.

    Args:
        arch: the architecture.
        code: an encoded jump and what follows.
        frm: its address.
        mode: mode bits of the code.
    """
    insn = arch.decode(code, frm | mode)
    while arch.bundles is not None and insn.next < frm + arch.bundles.size:
        insn = arch.decode(code, insn.next | mode)
    return insn


_CHECKS = (
    _registers,
    _linux_names,
    _traps,
    _abi,
    _linkage,
    _addresses,
    _jump,
    check_links,
    check_falls_through,
    check_tables,
    check_truncation,
    check_fuzz,
)
