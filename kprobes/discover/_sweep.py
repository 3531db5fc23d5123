"""Decodes code from end to end: which instructions call, jump, or let nothing fall through."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from ..arch._base import Arch, Decoded, Insn

NEAR = 1 << 16  #: bytes that a branch within a function goes forward, at most
_DECIDING = 8  # bytes at most by which instructions are remembered


@define
class Sweep:
    """Findings of a decoding sweep through code, by addresses.

    Attributes:
        calls: target -> how many direct calls lead there. Targets have their mode bits.
        jumps: (address, target) of unconditional direct jumps.
        branches: targets of conditional branches.
        backward: target of a conditional branch that leads back -> address of the last such branch.
        ends: addresses behind instructions that never fall through, and behind their delay slots.
        returns: addresses behind calls: where calls return to, unless they never do.
        computed: addresses of indirect jumps.
        starts: addresses of instructions.
        data: address of data amid code that an instruction reads -> where the data end.
        passed: the same, for data in front of the instruction: they were decoded by then.
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
    passed: dict[int, int] = field(factory=dict)


@frozen
class _Kind:
    """A kind of instructions, whose first bytes are the same and decide all that a sweep asks.

    Attributes:
        size: bytes of such an instruction.
        name: name of its row in the architecture's table.
        distance: offset in the instruction of the distance to its target, which counts from behind
            the instruction; 0: it has no target.
        links: True for calls.
        falls_through: True where they may go on to the next instruction.
    """

    size: int
    name: str
    distance: int = 0
    links: bool = False
    falls_through: bool = True


class Sweeper:
    """Decodes stretches of code of one architecture, and adds what they tell to `sweep`."""

    def __init__(self, arch: Arch, sweep: Sweep) -> None:
        """Prepare; nothing is decoded yet.

        Args:
            arch: the architecture.
            sweep: the findings, which are added to.
        """
        self._arch = arch
        self.sweep = sweep
        self._falls = True  # the last instruction goes on to the next one, as far as is known
        self._far = 0  # where the last instruction branches to
        self._covers = arch.walking.covers
        self._covered = (
            0  # instructions that follow, and are executed under a condition before them
        )
        self._decide = arch.walking.decide
        # mode -> the bytes that decide about an instruction -> its kind. None of these covers
        # others
        self._kinds: dict[int, dict[bytes, _Kind]] = {}
        self._lengths: list[int] = []  # how many bytes decide, of all of those

    def run(
        self,
        code: bytes,
        start: int,
        end: int,
        known: Mapping[int, int],
        data_end: Callable[[int], int],
        mode: int,
    ) -> None:
        """Decode a stretch of code, and add what it tells to the findings.

        Args:
            code: bytes of the stretch, and some behind it.
            start: address of the first byte.
            end: address behind the stretch's last byte.
            known: address in the stretch where an instruction is known to begin -> its mode bits;
                in order.
            data_end: (address) -> end of the data amid code that lie at that address; 0: there are
                none.
            mode: mode bits of the code at the stretch's start.
        """
        borders = [*known.items(), (end, mode)]
        at = start
        for border, its_mode in borders:
            while at < border:
                at = self._one(code, start, at, mode, data_end)
            at, mode = border, its_mode

    def function(
        self, code: bytes, start: int, end: int, mode: int, data_end: Callable[[int], int]
    ) -> int:
        """Decode a function up to its end, and add what it tells to the findings.

        A function ends behind an instruction that never falls through, if none of its own branches
        leads farther.

        Args:
            code: the bytes from its start on.
            start: address of its first instruction.
            end: address at which decoding stops at the latest.
            mode: mode bits of its code.
            data_end: (address) -> end of the data amid code that lie at that address; 0: there are
                none.

        Returns:
            The address behind the function; `end` where it does not end before. Where data or bytes
            that are no instruction were met before, their address.
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

    def _one(
        self, code: bytes, start: int, at: int, mode: int, data_end: Callable[[int], int]
    ) -> int:
        """Decode one instruction, or pass over data, and add what the instruction tells to the
        findings. `_far`, `_falls` and `_covered` are set for the next call.

        Args:
            code: bytes of the stretch, and some behind it.
            start: address of the first of them.
            at: address of the instruction.
            mode: mode bits of the code.
            data_end: (address) -> end of the data that lies there; 0 where there is none.

        Returns:
            The address where to go on: behind the instruction or the data; one step of alignment
            farther where the bytes are no instruction.
        """
        arch, sweep = self._arch, self.sweep
        self._far = 0
        # what is decoded in data by mistake seems to read anything: code that is fallen into is
        # code
        end = data_end(at) or (0 if self._falls else sweep.data.get(at, 0))
        if end > at:
            self._covered = 0
            return end
        falls, self._falls = self._falls, True
        offset = at - start
        kind = self.kind(code, offset, mode)
        if kind is not None:
            sweep.starts.add(at)
            behind = at + kind.size
            if kind.distance:
                distance = int.from_bytes(
                    code[offset + kind.distance : offset + kind.size], "little", signed=True
                )
                self._leads(
                    at, behind, behind + distance & arch.mask, mode, kind.links, kind.falls_through
                )
                falls_through = kind.falls_through or self._covered > 0
                self._falls = falls_through and not kind.links
                if kind.links:
                    sweep.returns.append(behind)
                if not falls_through:
                    sweep.ends.append(behind)
            else:
                self._falls = falls or not fills(code[offset : offset + kind.size], kind.name)
            self._covered -= self._covered > 0
            return behind
        insn = arch.decode(code[offset : offset + 2 * arch.max_insn], at | mode)
        if insn.decoded is not Decoded.WHOLE:
            self._covered = 0
            return at + max(arch.insn_align, 1)
        sweep.starts.add(at)
        if insn.operand is not None and insn.data:
            data = sweep.data if insn.operand > at else sweep.passed
            data[insn.operand] = max(data.get(insn.operand, 0), insn.operand + insn.data)
        if insn.target is not None:
            self._leads(
                at,
                insn.next,
                insn.target,
                arch.pointers.mode_bits - mode if insn.exchanges else mode,
                insn.links,
                insn.falls_through,
            )
        falls_through = insn.falls_through or self._covered > 0
        self._falls = falls_through and not insn.links and (falls or not fills(insn.raw, insn.name))
        if insn.links:
            sweep.returns.append(insn.next)
        if insn.indirect:
            sweep.computed.append(at)
        if not falls_through:
            sweep.ends.append(insn.next)
        covers = self._covers(insn) if self._covers is not None else 0
        if not covers and insn.operand is None and not insn.indirect:
            self._remember(insn, mode)
        self._covered = covers or max(self._covered - 1, 0)
        return at + insn.size

    def kind(self, code: bytes, offset: int, mode: int) -> _Kind | None:
        """Return the remembered kind of instructions that begin with the bytes of one in `code`.

        Args:
            code: bytes of a stretch.
            offset: where the instruction begins in them.
            mode: mode bits of the code.

        Returns:
            None: no instruction with these first bytes was decoded before, or it is cut off.
        """
        kinds = self._kinds.get(mode, {})
        for length in self._lengths:
            if (kind := kinds.get(code[offset : offset + length])) is not None:
                return kind if offset + kind.size <= len(code) else None
        return None

    def _remember(self, insn: Insn, mode: int) -> None:
        """Remember an instruction by its first bytes, for kind() of others that begin alike.

        Nothing is remembered where these bytes do not decide all that a sweep asks, as of calls and
        jumps through registers.

        Args:
            insn: the instruction.
            mode: mode bits of its code.
        """
        length = insn.size if self._decide is None else self._decide(insn)
        if length > _DECIDING or insn.span:  # what shares a bundle goes by its place in it
            return
        if insn.target is None:
            if insn.links or not insn.falls_through:
                return
            kind = _Kind(insn.size, insn.name)
        else:
            if self._decide is None or length == insn.size:
                return
            distance = int.from_bytes(insn.raw[length:], "little", signed=True)
            if insn.target != insn.next + distance & self._arch.mask:
                return
            kind = _Kind(insn.size, insn.name, length, insn.links, insn.falls_through)
        self._kinds.setdefault(mode, {})[insn.raw[:length]] = kind
        if length not in self._lengths:
            self._lengths = sorted([*self._lengths, length])

    def _leads(
        self, at: int, behind: int, target: int, mode: int, links: bool, falls_through: bool
    ) -> None:
        """Add the target of a direct call, branch or jump to `sweep`, and set `_far`.

        A call is counted in `sweep.calls`, unless it calls the next instruction: so code asks for
        its own address. A conditional branch is added to `sweep.branches`, and to `sweep.backward`
        if it leads back; an unconditional jump is added to `sweep.jumps`. `_far` becomes the target
        of a branch or jump, to which the function may reach; 0 for a call.

        Args:
            at: address of the instruction.
            behind: address of the next instruction.
            target: address that the instruction leads to.
            mode: mode bits of the code at the target.
            links: True for a call.
            falls_through: True for a conditional branch, False for an unconditional jump; it does
                not matter for a call.
        """
        sweep = self.sweep
        address = target & ~self._arch.pointers.mode_bits
        target = address | mode
        self._far = 0 if links else target
        if links:
            if address != behind:  # else it asks for its own address
                sweep.calls[target] = sweep.calls.get(target, 0) + 1
        elif falls_through:
            sweep.branches.add(address)
            if address < at:
                sweep.backward[address] = max(sweep.backward.get(address, 0), at)
        else:
            sweep.jumps.append((at, target))


def fills(raw: bytes, name: str) -> bool:
    """Return True for an instruction with which compilers pad code, such as a nop.

    Args:
        raw: the instruction's bytes.
        name: the instruction's name.
    """
    return (
        "nop" in name.lower()
        or raw in _FILL
        or raw[:2] in (b"\x66\x90", b"\x0f\x1f", b"\x66\x2e", b"\x66\x66")
    )


_FILL = {
    bytes.fromhex(code)
    for code in (
        "90",
        "1f2003d5",
        "00000000",
        "60000000",
        "00000060",
        "13000000",
        "0100",
        "00bf",
        "00f0a0e3",
        "0000a0e1",
        "c046",
        "aff30080",
        "0707",
        "0700",
        "8d7600",
        "8db600000000",
        "8d742600",
        "8db42600000000",
        "01000000",
        "4e71",
        "6690",
        "01000013",
    )
}
