"""Places an instruction under test among landings and random bytes in guest memory.

Around it stand traps of the machine's own kind, a *landing*: wherever the guest goes, it
stops there, with no hook in the engine that could hide a mistake. Instructions that always fall
through stand among random bytes instead, behind a single trap, so that a pc-relative operand read
from the wrong place makes a difference.
"""

from __future__ import annotations

import random

from ..errors import NoMemory
from ..kprobes import Kprobes
from ..machine.unicorn.machine import UnicornMachine
from ._states import StartState

BASE = 0x200000
# bytes of landing, then as many of landing or noise; the instruction is in the middle of either
SCENE = 0x4000
INVERSE = bytes(range(255, -1, -1))  # of each byte


class Scenery:
    """The code around an instruction under test, from BASE to BASE + 2 * SCENE.

    A landing is a trap at which a run ends; the scenery is full of them, or of random bytes.

    Attributes:
        insn_address: where the instruction under test stands.
        mode: mode bits there.
        image: all bytes of the code, without what probes have put over it.
    """

    def __init__(self, machine: UnicornMachine, kprobes: Kprobes, seed: int) -> None:
        """Prepare; place() writes the code.

        Args:
            machine: has the code.
            kprobes: registers the probe under test.
            seed: of the random bytes.
        """
        self._machine = machine
        self._kprobes = kprobes
        self._arch = machine.arch
        self._noise = random.Random(seed).randbytes(SCENE)
        self.insn_address = BASE + SCENE // 2
        self.mode = 0
        self.image = b""
        self._variants: list[bytes] = []
        self._name_places()

    def pads(self, mode: int, size: int) -> bytes:
        """Return `size` bytes of traps of a mode."""
        trap = self._arch.end_bytes(mode)
        return (trap * (size // len(trap) + 1))[:size]

    def place(self, code: bytes, mode: int, *, noise: bool) -> None:
        """Write the instruction into guest memory, with landings around it.

        `insn_address`, `mode` and `image` are set.

        Args:
            code: the instruction and its delay slot.
            mode: mode bits of the code.
            noise: True: take the second place, where random bytes stand around the instruction and
                a single landing behind it.
        """
        self._kprobes._text.renew()  # landings are breakpoints, too
        if mode != self.mode:
            self.mode = mode
            self._name_places()
        self.insn_address = BASE + SCENE // 2 + (SCENE if noise else 0)
        image = bytearray(
            self.pads(mode, SCENE) + (self._noise if noise else self.pads(mode, SCENE))
        )
        start = self.insn_address - BASE
        # no more than one: what follows is for pc-relative operands to miss
        landing = self._arch.end_bytes(mode)
        image[start : start + len(code) + len(landing)] = code + landing
        self.image = bytes(image)
        self._variants = (
            [self.image, self._inverted(start, len(code) + len(landing))] if noise else []
        )
        self._machine.patch(BASE, self.image)

    def _inverted(self, start: int, size: int) -> bytes:
        """Return the image with all bits of its random bytes inverted.

        Args:
            start: offset of the instruction, which stays.
            size: bytes of the instruction and its landing.
        """
        turned = self.image[:SCENE] + self.image[SCENE:].translate(INVERSE)
        return turned[:start] + self.image[start : start + size] + turned[start + size :]

    def vary(self, number: int) -> None:
        """Write the random bytes around the instruction, or their inverse where `number` is odd;
        `image` is set. Nothing is done where landings stand there instead.
        """
        if self._variants:
            self.image = self._variants[number % 2]
            self.repair()

    def _name_places(self) -> None:
        """Make symbols for both places where the instruction may stand (among landings, and among
        random bytes): functions, in the present mode. Earlier ones are removed.
        """
        self._machine.symbols.remove_module("bench")
        for scene in (BASE, BASE + SCENE):
            self._machine.symbols.add(
                f"scene_{scene:x}", scene + SCENE // 2, 64, "bench", self.mode
            )

    # --- where branches lead

    def map_targets(self, states: list[StartState]) -> list[int]:
        """Map pages of landings where branches go; return the addresses of those mapped now.

        Args:
            states: the states; those that lead where nothing can be mapped, or to an address that
                is not aligned, are removed from the list.
        """
        mapped, kept = [], []
        for state in states:
            target = None if state.target is None else state.target & ~self._arch.pointers.mode_bits
            if target is not None and target % self._arch.insn_align:
                continue
            if target is not None and not self._machine.executable(target):
                page = self._map_page(target)
                if page is None:
                    continue
                mapped.append(page)
            kept.append(state)
        states[:] = kept
        return mapped

    def _map_page(self, target: int) -> int | None:
        """Map the page of an address, full of landings.

        Args:
            target: the address, without mode bits.

        Returns:
            The page's address; None where there is no memory, or something is mapped there already.
        """
        wanted = target & -self._machine.page_size
        try:
            page = self._machine.map_code(wanted)
        except NoMemory:
            return None
        if page != wanted:
            self._machine.unmap_code(page)
            return None
        self._machine.patch(page, self.pads(self.mode, self._machine.page_size))
        return page

    def turn_landings(self, states: list[StartState]) -> None:
        """Write landings of another mode where branches lead that change the mode.

        Args:
            states: the states; those that lead where no landing can stand are removed from the
                list.
        """
        states[:] = [s for s in states if s.target is None or self._turn_landing(s.target)]
        self._machine.patch(BASE, self.image)

    def _turn_landing(self, target: int) -> bool:
        """Put a trap of the right mode into `image` where a branch changes the mode.

        Nothing is changed where the mode is the instruction's own, or the target is outside.

        Args:
            target: address that the branch leads to, mode bits included.

        Returns:
            True: the branch can be tested; False: no trap can stand there: the mode has none,
            it is not aligned, crosses the end, or is too near to the instruction.
        """
        mode = target & self._arch.pointers.mode_bits
        trap, at, home = (
            self._arch.traps.end.get(mode),
            target - mode - BASE,
            self.insn_address - BASE,
        )
        if trap is None or (target - mode) % len(trap):
            return False
        if mode == self.mode or not 0 <= at < 2 * SCENE:
            return True
        if at + len(trap) > 2 * SCENE or home - len(trap) < at < home + 64:
            return False
        self.image = self.image[:at] + trap + self.image[at + len(trap) :]
        return True

    # --- what a run leaves

    def code(self) -> bytes:
        """Read the code from guest memory, with the original bytes under the probe."""
        return self._kprobes._text.read(BASE, 2 * SCENE)

    def repair(self) -> None:
        """Write the code back as `image` has it; what the probe has put over it stays."""
        if self.code() == self.image:
            return
        start = BASE
        for patch in [*self._kprobes._text.patches, None]:
            end = BASE + 2 * SCENE if patch is None else patch.addr
            self._machine.patch(start, self.image[start - BASE : end - BASE])
            start = end if patch is None else patch.addr + len(patch.new)

    def without_insn(self, code: bytes, size: int) -> bytes:
        """Return code with zeros in the place of the instruction, where the breakpoint is.

        Args:
            code: all bytes from BASE on.
            size: bytes of the instruction.
        """
        at = self.insn_address - BASE
        return code[:at] + bytes(size) + code[at + size :]

    def is_whole(self, code: bytes | None, size: int) -> bool:
        """Whether a run has left the instruction and the 32 bytes behind it unchanged.

        If not, the next run would be another program.

        Args:
            code: all bytes from BASE on after the run; None: nothing changed.
            size: bytes of the instruction.
        """
        at = slice(self.insn_address - BASE, self.insn_address - BASE + size + 32)
        return code is None or code[at] == self.image[at]

    def unclear(self, addr: int, end: int, target: int | None) -> bool:
        """Whether a branch goes where it is not known how it ends, so that it is not tested.

        That is the instruction's own bytes or delay slot, or the library's pages.

        Args:
            addr: address of the instruction.
            end: address behind it and its delay slot.
            target: where the branch goes; None: not known.
        """
        return target is not None and (
            addr < target & ~self._arch.pointers.mode_bits < end or self.is_own(target, target + 1)
        )

    def is_own(self, start: int, end: int) -> bool:
        """Whether [start, end) has addresses in the library's pages."""
        return any(start < b and end > a for a, b, _ in self._kprobes.blacklist)
