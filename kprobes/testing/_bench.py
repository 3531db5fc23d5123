"""Bench: runs single instructions with and without a probe, and compares what they leave behind.

One machine is used thousands of times.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..arch._base import Annul, Arch, Insn
from ..core.patch.probepoint import Probepoint
from ..core.probe import Kprobe, point_of
from ..errors import BadArgument, GuestFault, GuestTimeout, KprobeError
from ..kprobes import Kprobes
from ..machine.unicorn.machine import UnicornMachine
from ._cases import CaseFile
from ._difference import Difference, Ending, ending, registers
from ._displaced import displaced
from ._judge import Judge, Shot, Tally
from ._scenery import BASE, SCENE, Scenery
from ._states import Freezer, Spy, StartState, States
from ._watch import Watchdog, Watcher

DATA = 0x10000
CONTEXTS = 0x400  # of it, bytes for saved contexts


class Bench:
    """Compares one instruction's run with and without a probe.

    Compared are registers, memory, where it went, how it failed. The instruction stands at `home`,
    among *landings*: traps, at which the guest stops wherever the instruction sends it. What is
    around it is the scenery (_scenery.py).

    Attributes:
        machine: where it runs.
        file: how it may be treated.
        tally: what was compared so far.
    """

    def __init__(
        self, machine: UnicornMachine | str, file: CaseFile | None = None, *, seed: int = 0
    ) -> None:
        """Prepare the machine: its memory, and the code around the instruction.

        All memory that the bench does not need is unmapped. A Kprobes is made on the machine, and a
        thread that stops runs without end.

        Args:
            machine: an architecture's name, or what make_machine() has returned; close() closes it.
            file: the architecture's condition flags, registers to leave alone, and instructions for
                delay slots; None: nothing is known of them.
            seed: of everything random.

        Raises:
            BadArgument: an Arch was passed.
        """
        if isinstance(machine, Arch):
            raise BadArgument(
                f"a bench runs code: pass a machine or a name, not the Arch of {machine.name}",
                hint="where no engine runs it, check_arch() and PaperMachine need none",
            )
        self.machine = self.make_machine(machine) if isinstance(machine, str) else machine
        self.file = file or CaseFile()
        self._mapped_targets = (
            self.file.mapped_targets or self.machine.guest.blocks.fetch_fault_kills
        )
        self.tally = Tally()
        self._seed = seed
        self._arch = self.machine.arch
        self.data = self.machine.parts.memory.map_anywhere(DATA, self.machine.guest.contexts.near)
        self.machine.write(self.data, random.Random(seed + 1).randbytes(DATA))
        self._furnish()
        self._contents = self.machine.read(self.data, DATA)
        self._freezer = Freezer(self.machine)
        self._usual = Freezer(self.machine).freeze()
        landing = BASE, BASE + SCENE // 4
        self._states = States(
            self.machine.regs,
            (self.data, self.data + DATA),
            landing,
            self.file.flags,
            self.file.keep,
        )
        self._unmap_rest()
        self._watch = Watchdog(self.machine)
        self._kprobes = Kprobes(self.machine)
        self._scenery = Scenery(self.machine, self._kprobes, seed)
        self._judge = Judge(
            self._scenery,
            self._arch,
            self.file,
            self.tally,
            self._measure_pad(min(self._arch.traps.end)),
            self.data,
            self._contents,
        )
        self._map_own_pages()

    @staticmethod
    def make_machine(arch: str) -> UnicornMachine:
        """Make a machine as a bench needs it: zeros at BASE, for code and its surroundings.

        Args:
            arch: an architecture's name.
        """
        return UnicornMachine.from_code(bytes(2 * SCENE), arch=arch, base=BASE)

    def close(self) -> None:
        """Close the Kprobes and the machine, even one that was given to the bench."""
        self._watch.close()
        self._kprobes.close()
        self.machine.close()

    @property
    def home(self) -> int:
        """Address of the instruction under test."""
        return self._scenery.insn_address

    @property
    def usable(self) -> bool:
        """Whether the engine is alive; False once a failed instruction fetch has killed it.

        Make another bench then.
        """
        return not self.machine.parts.starts.dead

    # --- one instruction

    def decode(self, code: bytes, mode: int = 0) -> Insn:
        """Decode an instruction as if it stood at `home`.

        Args:
            code: its bytes; what follows there is a landing.
            mode: mode bits of the code.
        """
        return self._arch.decode(code + self._scenery.pads(mode, 32), self.home | mode)

    def check(
        self,
        code: bytes,
        mode: int = 0,
        states: int = 4,
        where: str = "",
        *,
        all_flags: bool = True,
    ) -> list[Difference]:
        """Run an instruction in random states without a probe and with one, and list the
        differences.

        Each state is run without a probe, with a probe (boosted where it can be), with one that has
        a post_handler, and by the instruction's displaced code where it has any. An instruction
        that reads its own bytes would see the breakpoint; it is not run. `tally` is counted up;
        memory is put back, and the probe unregistered.

        Args:
            code: the instruction and, where it has one, its delay slot; what follows is cut off.
            mode: mode bits of the code.
            states: how many random states.
            where: names the run in differences, for people; "": the code in hexadecimal.
            all_flags: True: take every combination of the condition flags where the simulation
                reads them.

        Returns:
            [] where the probe makes no difference.

        Raises:
            KprobeError: the instruction may not be probed; as register_kprobe() raises it.
        """
        rng = random.Random(f"{self._seed} {code.hex()} {mode}")
        insn = self.decode(code, mode)
        code = code if insn.delay_slot else insn.raw
        where = where or code.hex()
        self._scenery.place(code, mode, noise=False)
        insn = self.decode(code, mode)
        if (
            insn.data
            and insn.operand is not None
            and insn.operand < insn.addr + insn.size
            and insn.addr < insn.operand + insn.data
        ):
            return []  # registering a probe there is refused
        states_ = [] if insn.reject else self._make_states(insn, rng, states, all_flags)
        if insn.simulate is None or all(s.target in (None, insn.next | insn.mode) for s in states_):
            self._scenery.place(code, mode, noise=True)
            insn = self.decode(code, mode)
            states_ = [] if self._reads_itself(insn, Spy(self.machine.regs)) else states_
        if self._arch.pointers.mode_bits:
            self._scenery.turn_landings(states_)
        mapped = self._scenery.map_targets(states_) if self._mapped_targets else []
        try:
            plain = []
            for number, state in enumerate(states_):
                shot = self._shoot(state, insn, number, probed=False)
                if self._scenery.is_whole(shot.code, insn.size):
                    plain.append((number, state, shot))
            return self._with_probe(plain, insn, where)
        finally:
            self._freezer.forget()
            for page in mapped:
                self.machine.unmap_code(page)
            # or what comes next would be part of an IT block
            if mode and self.machine.guest.pc.written_again:
                self._usual()
                self._measure_pad(mode)

    def _with_probe(
        self, plain: list[tuple[int, StartState, Shot]], insn: Insn, where: str
    ) -> list[Difference]:
        """Run each state with a probe, and list the differences to the runs without; add to the
        tally.

        Each is run twice by breakpoint or jump, without and with a post_handler, then as displaced
        code at two alignments.

        Args:
            plain: (number of the state, the state, how the run without a probe ended) of each
                state.
            insn: the instruction, which stands at `home`.
            where: names the run in differences, for people.
        """
        out: list[Difference] = []
        watcher = Watcher()
        probe = Kprobe(addr=self.home | self._scenery.mode, pre_handler=watcher.pre)
        self._kprobes.register_kprobe(probe)
        if any(self._is_loop(state) for _, state, _ in plain):
            # so that a bounded run meets the probepoint in its last form
            self._kprobes.flush_optimizer()
        try:
            for post in (False, True):
                probe.post_handler = watcher.post if post else None
                for number, state, before in plain:
                    watcher.clear(values=number == 0)
                    self.tally.optimized += probe.optimized
                    self.tally.boosted += probe.boosted and not probe.optimized
                    after = self._shoot(state, insn, number, probed=True)
                    here = f"{where}, state {number}{', post_handler' if post else ''}"
                    if self._judge.aliased(before, after):
                        continue
                    found = self._judge.compare(before, after, insn, here)
                    if (
                        found
                        and insn.simulate is None
                        and self._reads_breakpoint(probe, state, before, insn)
                    ):
                        continue
                    out += found + self._judge.handlers(watcher, state, before, insn, post, here)
                    self.tally.runs += 1
            if insn.displace is not None and not insn.together and probe.registered:
                for shift in (0, self._arch.insn_align):
                    out += self._elsewhere(
                        point_of(probe), shift, plain, f"{where}, displaced by {shift}"
                    )
        finally:
            self._kprobes.unregister_kprobe(probe)
        return out

    def _elsewhere(
        self, point: Probepoint, shift: int, plain: list[tuple[int, StartState, Shot]], where: str
    ) -> list[Difference]:
        """Run each state from the displaced code (the instruction's copy in a buffer), with no hit,
        and list the differences to the runs without a probe; count them in the tally.

        States in which the instruction branches to itself are left out: such a branch goes back to
        the original instruction.

        Args:
            point: the probepoint whose instruction is displaced.
            shift: bytes in front of the displaced code in its buffer.
            plain: (number of the state, the state, how the run without a probe ended) of each
                state.
            where: names the run in differences, for people.

        Returns:
            [] also where displaced code does not reach what it needs.
        """
        out: list[Difference] = []
        with displaced(point, self._kprobes.optimizer, shift) as place:
            for number, state, before in plain:
                if place is None or self._is_loop(state):
                    continue
                self._scenery.vary(number)
                after = self._run(state, place | point.insn.mode, None)
                if not self._judge.aliased(before, after):
                    out += self._judge.compare(
                        before, after, point.insn, f"{where}, state {number}"
                    )
                    self.tally.displaced += 1
        return out

    # --- placing it

    def _furnish(self) -> None:
        """Set up what the CPU needs in memory, in `data`: tables, or areas for contexts that it
        saves.

        One context is saved, so that the instruction can return to it. Nothing is done for a CPU
        that needs nothing there.
        """
        regs, guest, abi = self.machine.regs, self.machine.guest, self._arch.abi
        if guest.contexts.furnish is not None:
            guest.contexts.furnish(self.machine.parts.memory.engine, regs, self.data, CONTEXTS)
            if abi is not None and abi.enter is not None:
                abi.enter(regs, self.machine.parts.state.exit)

    def _unmap_rest(self) -> None:
        """Unmap all memory but what the bench needs, so that a run can change nothing else.

        Three regions stay: the code around the instruction under test, `data` (the stack is in it),
        and the page at which runs end.
        """
        for start, end, _ in list(self.machine.parts.memory.engine.regions()):
            if not any(start <= a <= end for a in (BASE, self.data, self.machine.parts.state.exit)):
                self.machine.parts.memory.unmap_pages(start, end + 1 - start)

    def _map_own_pages(self) -> None:
        """Register a probe and remove it, so that the library maps its pages now and not in
        a run. Nothing happens where no case of the lowest mode has the outcome `step`, or the probe
        is refused.
        """
        mode = min(self._arch.traps.end)
        case = next((c for c in self.file.cases if c.outcome == "step" and c.mode == mode), None)
        if case is not None:
            self._scenery.place(case.code, mode, noise=False)
            with suppress(KprobeError), self._kprobes.kprobe(addr=self.home | mode):
                self._kprobes.flush_optimizer()

    # --- states

    def _make_states(
        self, insn: Insn, rng: random.Random, count: int, all_flags: bool
    ) -> list[StartState]:
        """Return start states for an instruction that stands in the scenery. The present registers
        are lost.

        States in which it reads its own bytes or the library's pages, or branches into its own
        bytes, are left out.

        Args:
            insn: the instruction.
            rng: source of the random values.
            count: random states to try; where the instruction is simulated, twice as many, and one
                for each special value of each register that it reads.
            all_flags: add combinations of the condition flags where the instruction reads them.
        """
        self._usual()
        self._states.randomize(rng)
        _, spy = self._rehearse(insn)
        special = self._states.special(spy.read_names)
        choice: list[dict[str, int]] = (
            [{}] * count if insn.simulate is None else [*special, *[{}] * (2 * count)]
        )
        if all_flags and self.file.flags.keys() & spy.read_names:
            choice += self._states.flag_states(rng)
        out = []
        for values in choice:
            self._usual()
            self._states.randomize(rng, values, landing=insn.simulate is not None)
            if self._arch.pointers.mode_bits:
                # the flags show the mode as well
                self.machine.parts.cpu.write_pc(self.home | self._scenery.mode)
            before = registers(self.machine.regs)
            thaw = self._freezer.freeze()
            target, spy = self._rehearse(insn)
            thaw()
            if not self._reads_itself(insn, spy) and not self._scenery.unclear(
                insn.addr, insn.next, target
            ):
                out.append(StartState(thaw, before, target))
        self._repair()
        return out

    def _rehearse(self, insn: Insn) -> tuple[int | None, Spy]:
        """Simulate the instruction from the present registers, to see what it would do.

        Used only to choose start states; the simulation may change registers and memory, which are
        not put back here.

        Returns:
            (target, None where it is not simulated or fails; a Spy with the registers and memory
            that it has read).
        """
        spy = Spy(self.machine.regs)
        if insn.simulate is None:
            return None, spy
        try:
            return int(insn.simulate(spy)), spy  # type: ignore[arg-type]
        except GuestFault:
            return None, spy

    def _reads_itself(self, insn: Insn, spy: Spy) -> bool:
        """Whether the instruction reads its own bytes or the pages of the library.

        Args:
            insn: the instruction; 64 bytes at its pc-relative operand count as read.
            spy: has the memory that its simulation read.
        """
        ranges = [
            *spy.read_memory,
            *([(insn.operand, insn.operand + 64)] if insn.operand is not None else []),
        ]
        return any(
            (a < insn.addr + insn.size and b > insn.addr) or self._scenery.is_own(a, b)
            for a, b in ranges
        )

    # --- running it

    def _shoot(self, state: StartState, insn: Insn, number: int, probed: bool) -> Shot:
        """Run the instruction at `home` once, from one state; return what the run leaves behind.

        The instruction, and its probe if there is one, are in memory already. The run ends where
        the guest comes to a landing (a trap: all around `home` there are landings), fails, or is
        back at `home`. Memory is written back as it was afterwards.

        Args:
            state: has the registers at the start of the run. (Memory is the same for all states.)
            insn: the instruction at `home`.
            number: the state's number. Where the number is odd, the random bytes around the
                instruction are inverted.
            probed: True where a probe is registered at `home`.

        Returns:
            How the run has ended, with the registers, and the memory where it was changed.
        """
        self._scenery.vary(number)
        bound = None
        if self._is_loop(state):
            # Only an engine hook ends a branch to itself; natively that hook sees the delay slot as
            # well.
            # the engine's hook takes a branch and its delay slot for one
            pairs = bool(self.machine.guest.runs.settle)
            bound = (
                2
                if insn.delay_slot
                and not pairs
                and not probed
                and not isinstance(state.target, Annul)
                else 1
            )
        return self._run(state, self.home | self._scenery.mode, bound)

    def _run(self, state: StartState, target: int, bound: int | None) -> Shot:
        """Run the guest once; return the state that it leaves behind, and put its memory back.

        Args:
            state: the registers to begin with.
            target: address to begin at, with mode bits.
            bound: instructions after which the run ends; None: no bound.
        """
        machine = self.machine
        state.thaw()
        machine.regs.go(target)
        with self._watch:
            end = _ending(lambda: machine.run(max_insns=bound))
        after = registers(machine.regs)
        data, code = machine.read(self.data, DATA), self._scenery.code()
        shot = Shot(
            end,
            after,
            data if data != self._contents else None,
            code if code != self._scenery.image else None,
        )
        if shot.data is not None or shot.code is not None:
            self._repair()
        return shot

    def _reads_breakpoint(self, probe: Kprobe, state: StartState, plain: Shot, insn: Insn) -> bool:
        """Whether a difference comes only from the breakpoint in memory, which the instruction
        reads.

        The instruction is run twice in its slot, with no hit: with the breakpoint in memory and
        without. True where these two differ and the second leaves what the run without a probe
        left.

        Args:
            probe: the probe at the instruction.
            state: the registers to begin with.
            plain: how the run without a probe ended.
            insn: the instruction.
        """
        slot = point_of(probe).slot_target
        seeing = self._run(state, slot, None)
        with self._kprobes._text.bare():
            unseeing = self._run(state, slot, None)
        return bool(self._judge.compare(seeing, unseeing, insn, "")) and not self._judge.compare(
            plain, unseeing, insn, ""
        )

    def _is_loop(self, state: StartState) -> bool:
        """Whether the instruction branches to itself from a state, as its simulation has computed
        (StartState.target); False where it is not simulated. Nothing is executed.
        """
        return (
            state.target is not None and state.target & ~self._arch.pointers.mode_bits == self.home
        )

    def _repair(self) -> None:
        """Write memory back as it was; what the probe has put over the code stays."""
        if self.machine.read(self.data, DATA) != self._contents:
            self.machine.write(self.data, self._contents)
        self._scenery.repair()

    def _measure_pad(self, mode: int) -> tuple[str, int, int | None]:
        """Run onto a landing, and return how its fault shows: (access, pc minus trap, interrupt
        number; None: it has none).

        Landings are written over the scenery; the registers are put back.

        Args:
            mode: mode bits of the landing.

        Raises:
            AssertionError: the run raises no GuestFault.
        """
        self._scenery.place(b"", mode, noise=False)
        self.machine.regs.go(self.home | mode)
        try:
            self.machine.run()
        except GuestFault as error:
            self._usual()
            return error.access, (error.pc or 0) - self.home, error.number
        raise AssertionError(
            f"{self._arch.name}: a trap that is nobody's is not reported as a GuestFault"
        )


def _ending(run: Callable[[], Any]) -> Ending:
    """Call `run`; return its result, or the facts of a GuestFault or GuestTimeout that it raises.

    Of a GuestTimeout only class and pc are kept. Other exceptions are passed on.
    """
    try:
        return ending(run)
    except GuestTimeout as error:
        return Ending(None, ("GuestTimeout", "", error.pc, None, None))
