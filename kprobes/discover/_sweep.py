"""Code decoded from one end to the other: which of its instructions call, jump, or let nothing fall through."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field

from ..arch._base import Arch, Decoded, Insn

NEAR = 1 << 16  #: bytes that a branch within a function goes forward, at most
_PLAIN = 4  # bytes at most of instructions that are remembered


@define
class Sweep:
    """The findings of a sweep, by address.

    Attributes:
        calls: target -> how many direct calls lead there. Targets have their mode bits.
        jumps: (address, target) of unconditional direct jumps.
        branches: targets of conditional branches.
        backward: target of a conditional branch that leads back -> address of the last such branch.
        ends: where what follows an instruction begins that never falls through; its delay slot is passed.
        returns: addresses that calls return to, unless they never do.
        computed: addresses of computed jumps within functions.
        starts: addresses of instructions.
        data: address of data amid code that an instruction reads -> where it ends.
    """

    calls: dict[int, int] = field(factory=dict)
    jumps: list[tuple[int, int]] = field(factory=list)
    branches: set[int] = field(factory=set)
    backward: dict[int, int] = field(factory=dict)
    ends: list[int] = field(factory=list)
    returns: list[int] = field(factory=list)
    computed: list[int] = field(factory=list)
    starts: set[int] = field(factory=set)
    data: dict[int, int] = field(factory=dict)


class Sweeper:
    """Decodes stretches of code of one architecture."""

    def __init__(self, arch: Arch, sweep: Sweep) -> None:
        self._arch = arch
        self.sweep = sweep
        self._falls = True  # the last instruction goes on to the next one, as far as is known
        self._far = 0  # where the last instruction branches to
        self._covers = arch.walking.covers
        self._covered = 0  # instructions that follow, and are executed under a condition before them
        # (mode, bytes) -> size, of what leads nowhere and covers nothing
        self._plain: dict[tuple[int, bytes], int] = {}

    def run(self, code: bytes, start: int, end: int, known: Mapping[int, int], data_end: Callable[[int], int],
            mode: int) -> None:
        """Decode a stretch of code.

        Args:
            code: its bytes, and some behind it.
            start: its address.
            end: where it ends.
            known: where instructions are known to begin in it -> the mode bits there, in order.
            data_end: (address) -> where the data amid code ends that lies there; 0 where there is none.
            mode: bits of the code at the stretch's start.
        """
        borders = [*known.items(), (end, mode)]
        at = start
        for border, its_mode in borders:
            while at < border:
                at = self._one(code, start, at, mode, data_end)
            at, mode = border, its_mode

    def function(self, code: bytes, start: int, end: int, mode: int, data_end: Callable[[int], int]) -> int:
        """Decode a function: up to what nothing falls out of, with no branch of its own beyond it.

        Args:
            code: the bytes from its start on.
            start: its address.
            end: where it ends at the latest.
            mode: bits of its code.
            data_end: see run().

        Returns:
            Where it ends.
        """
        at, far = start, start
        while at < end:
            last = at
            ends = len(self.sweep.ends)
            at = self._one(code, start, at, mode, data_end)
            if last not in self.sweep.starts:
                return last
            far = max(far, self._far if start < self._far < end and self._far - last < NEAR else 0)
            if len(self.sweep.ends) > ends and self.sweep.ends[-1] > far:
                return self.sweep.ends[-1]
        return end

    def _one(self, code: bytes, start: int, at: int, mode: int, data_end: Callable[[int], int]) -> int:
        """Decode one instruction, or pass over data, and note what it tells.

        Args:
            code: bytes of the stretch, and some behind it.
            start: address of the first of them.
            at: address of the instruction.
            mode: mode bits of the code.
            data_end: (address) -> end of the data that lies there; 0 where there is none.

        Returns:
            The address where the next instruction begins.
        """
        arch, sweep = self._arch, self.sweep
        self._far = 0
        # what is decoded in data by mistake seems to read anything: code that is fallen into is code
        end = data_end(at) or (0 if self._falls else sweep.data.get(at, 0))
        if end > at:
            self._covered = 0
            return end
        falls, self._falls = self._falls, True
        offset = at - start
        key = mode, code[offset : offset + _PLAIN]
        if size := self._plain.get(key, 0):
            sweep.starts.add(at)
            self._falls = falls or not fills(key[1][:size], "")
            self._covered -= self._covered > 0
            return at + size
        insn = arch.decode(code[offset : offset + 2 * arch.max_insn], at | mode)
        if insn.decoded is not Decoded.WHOLE:
            self._covered = 0
            return at + max(arch.insn_align, 1)
        sweep.starts.add(at)
        if insn.operand is not None and insn.data and insn.operand > at:
            sweep.data[insn.operand] = max(sweep.data.get(insn.operand, 0), insn.operand + insn.data)
        if insn.target is not None:
            self._leads(insn, mode)
        falls_through = insn.falls_through or self._covered > 0
        self._falls = falls_through and not insn.links and (falls or not fills(insn.raw, insn.name))
        if insn.links:
            sweep.returns.append(insn.next)
        if insn.indirect:
            sweep.computed.append(at)
        if not falls_through:
            sweep.ends.append(insn.next)
        covers = self._covers(insn) if self._covers is not None else 0
        if falls_through and not covers and insn.falls_through and insn.size <= _PLAIN and self._leads_nowhere(insn):
            self._plain[key] = insn.size
        self._covered = covers or max(self._covered - 1, 0)
        return at + insn.size

    @staticmethod
    def _leads_nowhere(insn: Insn) -> bool:
        return insn.target is insn.operand is None and not (insn.links or insn.indirect)

    def _leads(self, insn: Insn, mode: int) -> None:
        sweep, target = self.sweep, insn.target
        assert target is not None
        its_mode = self._arch.pointers.mode_bits - mode if insn.exchanges else mode
        target = target & ~self._arch.pointers.mode_bits | its_mode
        self._far = 0 if insn.links else target
        if insn.links:
            if target & ~self._arch.pointers.mode_bits != insn.next:  # else it asks for its own address
                sweep.calls[target] = sweep.calls.get(target, 0) + 1
        elif insn.falls_through:
            address = target & ~self._arch.pointers.mode_bits
            sweep.branches.add(address)
            if address < insn.addr:
                sweep.backward[address] = max(sweep.backward.get(address, 0), insn.addr)
        else:
            sweep.jumps.append((insn.addr, target))


def fills(raw: bytes, name: str) -> bool:
    """True for instructions that compilers fill places with."""
    return "nop" in name.lower() or raw in _FILL or raw[:2] in (b"\x66\x90", b"\x0f\x1f", b"\x66\x2e", b"\x66\x66")


_FILL = {bytes.fromhex(code) for code in (
    "90", "1f2003d5", "00000000", "60000000", "00000060", "13000000", "0100", "00bf", "00f0a0e3", "0000a0e1", "c046",
    "aff30080", "0707", "0700", "8d7600", "8db600000000", "8d742600", "8db42600000000", "01000000", "4e71", "6690",
    "01000013")}
