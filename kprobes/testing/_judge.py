"""Compares what two runs of an instruction leave behind, one of them with a probe.

A plain run has no probe. `where` names a run in the text of a difference, for people.
"""

from __future__ import annotations

from attrs import define, frozen

from ..arch._base import Arch, Insn
from ._cases import CaseFile
from ._difference import Difference, Ending, compare_bytes, compare_endings, compare_registers
from ._scenery import BASE, Scenery
from ._states import StartState
from ._watch import Watcher


@frozen
class Shot:
    """The state that a run left behind.

    Attributes:
        end: how it ended.
        registers: register name -> value.
        data: all bytes of the data that runs work on; None: they did not change.
        code: all bytes of the scenery, without the probe; None: they did not change.
    """

    end: Ending
    registers: dict[str, int]
    data: bytes | None
    code: bytes | None


@define
class Tally:
    """Counts of what was proved.

    Attributes:
        runs: pairs of runs compared.
        faults: pairs that ended in a fault of the instruction's own.
        moved: pairs that left for another place than the next instruction.
        posts: post-handlers seen.
        boosted: hits of a probe that took one trap.
        optimized: hits of a probe that took none.
        displaced: runs of displaced code, of itself.
    """

    runs: int = 0
    faults: int = 0
    moved: int = 0
    posts: int = 0
    boosted: int = 0
    optimized: int = 0
    displaced: int = 0


class Judge:
    """Compares what two runs left behind, and what handlers saw with what they should have seen.

    The instruction stands at the scenery's `insn_address`, among *landings*: traps at which the
    guest stops wherever the instruction sends it.
    """

    def __init__(
        self,
        scenery: Scenery,
        arch: Arch,
        file: CaseFile,
        tally: Tally,
        pad_fault: tuple[str, int, int | None],
        data: int,
        contents: bytes,
    ) -> None:
        """Note what runs work on.

        Args:
            scenery: the code around the instruction.
            arch: the architecture.
            file: says which flags are condition flags.
            tally: is counted up.
            pad_fault: how a landing shows: (access, pc relative to the trap, interrupt number).
            data: address of the memory that runs work on.
            contents: what they find there.
        """
        self._scenery = scenery
        self._arch = arch
        self._file = file
        self._tally = tally
        self._pad_fault = pad_fault
        self._data = data
        self._contents = contents

    def aliased(self, plain: Shot, probed: Shot) -> bool:
        """Whether two runs must not be compared, because the engine drops address bits.

        That is so where the probed run failed at a read or write as the plain one did not, and one
        of the top 12 bits of the address accessed is set: the engine finds memory where the CPU
        would find none.

        Args:
            plain: what the run without a probe left behind.
            probed: what the run with a probe left behind.
        """
        fault = probed.end.fault
        return (
            fault is not None
            and fault != plain.end.fault
            and fault[1] in ("read", "write")
            and (fault[3] or 0) >> 52 > 0
        )

    def compare(self, plain: Shot, probed: Shot, insn: Insn, where: str) -> list[Difference]:
        """List the differences between two runs in how they ended, in registers, in data and in
        code.

        The bytes of the instruction itself are left out.

        Args:
            plain: the run without a probe.
            probed: the run with a probe.
            insn: the instruction that was run.
            where: names the run, for people.
        """
        out = compare_endings(plain.end, probed.end, where)
        out += compare_registers(plain.registers, probed.registers, where)
        out += compare_bytes(
            self._data, plain.data or self._contents, probed.data or self._contents, where
        )
        code, after = (
            self._scenery.without_insn(shot.code or self._scenery.image, insn.size)
            for shot in (plain, probed)
        )
        out += compare_bytes(BASE, code, after, where)
        return out

    def handlers(
        self, seen: Watcher, state: StartState, plain: Shot, insn: Insn, post: bool, where: str
    ) -> list[Difference]:
        """List the differences between what the handlers saw and what they should have seen; add to
        the tally.

        Args:
            seen: the handlers of the probed run.
            state: the registers from which both runs began.
            plain: the run without a probe.
            insn: the instruction that was run.
            post: True where the probe had a post_handler.
            where: names the run, for people.
        """
        landed = self._landed(plain)
        at_home = landed is None
        self._tally.faults += at_home
        self._tally.moved += landed is not None and landed != insn.next
        self._tally.posts += len(seen.posts)
        out = []
        if seen.pres != [self._scenery.insn_address]:
            out.append(
                Difference(
                    "pre_handler",
                    f"should run once at {self._scenery.insn_address:#x}",
                    f"ran at {list(map(hex, seen.pres))}",
                    where,
                )
            )
        posts = [landed] if post and landed is not None else []
        if seen.posts != posts and not (post and self._noticed_late(plain)):
            out.append(
                Difference(
                    "post_handler",
                    f"should run at {list(map(hex, posts))}",
                    f"ran at {list(map(hex, seen.posts))}",
                    where,
                )
            )
        if seen.values is not None:
            expected = {**state.before, self._arch.regs.pc: self._scenery.insn_address}
            out += compare_registers(
                self._visible(expected), self._visible(seen.values), f"{where}, in pre_handler"
            )
        return out

    def _visible(self, values: dict[str, int]) -> dict[str, int]:
        """Return registers with only those bits of a flags register that are condition flags.

        The condition flags are those that a `%flags` line of the case file names; the other bits of
        such a register say in which mode the CPU runs, and hold their values only while it runs.

        Args:
            values: register name -> value, as a pre_handler read them.
        """
        return {name: value & self._file.flags.get(name, -1) for name, value in values.items()}

    def _noticed_late(self, plain: Shot) -> bool:
        """Whether the engine noticed a failed access some instructions later than it happened.

        The post_handler may have run by then. That is so where the plain run failed at a read or
        write with pc elsewhere than at `insn_address`.
        """
        fault = plain.end.fault
        return (
            fault is not None
            and fault[1] in ("read", "write")
            and fault[2] != self._scenery.insn_address
        )

    def _landed(self, shot: Shot) -> int | None:
        """Return the address to which the instruction went: where the guest came to a landing (a
        trap around the instruction) or to unmapped memory, or pc where the run ended without a
        fault or was stopped. None where the instruction itself failed.

        Args:
            shot: what a run left behind.
        """
        fault = shot.end.fault
        if fault is None or fault[0] == "GuestTimeout":
            return shot.registers[self._arch.regs.pc]
        _, access, pc, address, number = fault
        if access == "fetch":
            return int(pc) if address == pc else None  # EXECUTE fetches from elsewhere
        pad_access, pad_pc, pad_number = self._pad_fault
        if (access, number) == (
            pad_access,
            pad_number,
        ) and pc - pad_pc != self._scenery.insn_address:
            return int(pc - pad_pc)
        return None
