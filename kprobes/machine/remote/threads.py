"""Threads of a remote guest, each of which is a CPU to the core (kprobes/core, which serves
probes): it has registers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...arch._base import Arch
from ...arch._stub import StubRegister
from ...errors import MachineBusy, RemoteError
from ...regs import Regs, RegsMachine
from .layouts import facts_of, parts_of
from .registers import StubRegisterFile, accessors, places
from .target import RemoteTarget
from .threadnames import pid_of, tid_of

#: registers by which a kernel knows the processor, not the task
OF_PROCESSORS = ("gs_base",)
#: registers by which Linux knows that a thread was interrupted in a system call, and its result so
#: far, from -516 to -512: it puts pc back to begin it again, even if that was moved (signal(7))
CALLING = (("orig_rax", "rax", 64), ("orig_eax", "eax", 32))


class RemoteThreads:
    """The guest's threads as the core's CPUs. A thread is a CPU from its first stop until it has
    ended; there is one more for stops of threads beyond these.

    A thread for which no CPU is left may stop for a signal or a system call. Its registers are then
    those of `regs[cpus]`, which the core does not know.

    Attributes:
        cpus: number of the CPUs that the core knows.
        regs: registers of each CPU, and of the one more.
        current: index of the CPU whose thread stopped last.
        apart: True where the other threads run while one is looked at.
        slots: name -> register of the stub's.
        nullifies: True where instructions may nullify the next one (PA-RISC).
    """

    def __init__(
        self,
        target: RemoteTarget,
        machine: RegsMachine,
        arch: Arch,
        slots: Mapping[str, StubRegister],
        most: int,
        system: bool,
    ) -> None:
        """Make the CPUs.

        Args:
            target: the stub.
            machine: the guest's.
            arch: its architecture.
            slots: name -> register, as the stub has them.
            most: number of living threads that may come to probes.
            system: the guest is a whole machine, whose processors are there from the start.
        """
        names = target.threads() if system else []
        where = places(slots, len(target.all_registers()))
        self._target = target
        self._arch = arch
        self.slots = slots
        self.cpus = len(names) or most
        self._files = [StubRegisterFile(target, arch, slots, where) for _ in range(self.cpus + 1)]
        for file, name in zip(self._files, names, strict=False):
            file.thread = name
        self.regs = [
            Regs(machine, *accessors(file, slots, arch), cpu)
            for cpu, file in enumerate(self._files)
        ]
        self._used = self._files[: len(names)]  # those that belong to a thread
        self.current = 0
        self.apart = False
        parts = parts_of(arch, slots)
        kept = (
            {parts[name].name if name in parts else name for name in arch.regs.names} | {"npc"}
        ) & set(slots)
        self._kept = sorted(kept, key=lambda name: slots[name].number)
        self._nullified = facts_of(arch).nullified
        self.nullifies = self._nullified is not None
        self._calling = next((row for row in CALLING if row[0] in slots), None)
        self._privilege = (1 << parts[arch.regs.pc].low) - 1 if arch.regs.pc in parts else 0
        self._pc = parts[arch.regs.pc].name if arch.regs.pc in parts else arch.regs.pc

    @property
    def name(self) -> str:
        """The current thread, as the stub names it."""
        return self._files[self.current].thread or ""

    @property
    def process(self) -> int:
        """Number of the current thread's process; 0: the stub does not number processes."""
        return pid_of(self.name)

    def tid(self, cpu: int) -> int:
        """Return the number of the thread that is a CPU; of the current one where that has none.

        Args:
            cpu: index of the CPU.
        """
        return tid_of(self._files[cpu].thread or self.name)

    @property
    def known(self) -> list[Regs]:
        """Registers of the CPUs that have a thread: of threads that have stopped."""
        return [
            regs
            for regs, file in zip(self.regs, self._files, strict=True)
            if file.thread is not None
        ]

    def turn_to(self, inside: Callable[[int], bool], every: bool) -> bool:
        """Make a thread the current one whose pc is at a certain place.

        Repeated calls choose one after the other, as one may wait for another.

        Args:
            inside: (pc) -> True at that place.
            every: True: look at all CPUs; False: only at the current one.

        Returns:
            False where no thread is there.
        """
        cpus = [self.current]
        if every:
            cpus = [(self.current + 1 + n) % self.cpus for n in range(self.cpus)]
        found = next((cpu for cpu in cpus if inside(self.regs[cpu].pc)), None)
        if found is not None:
            self.current = found
        return found is not None

    def stopped(self, thread: str) -> Regs:
        """Note that a thread has stopped: forget all register values, make its CPU the current one,
        and return its registers.

        A thread that has no CPU yet gets a free one, or that of a thread that has ended; where
        there is neither, the one that the core does not know (`regs[cpus]`).

        Args:
            thread: as the stub names it.
        """
        for file in self._used:
            file.forget()
            file.away = self.apart and file.thread != thread
        if self._files[self.current].thread == thread and self.current < self.cpus:
            return self.regs[self.current]
        cpus = self._files[: self.cpus]
        known = next((cpu for cpu, file in enumerate(cpus) if file.thread == thread), None)
        if known is None:
            known = next((cpu for cpu, file in enumerate(cpus) if file.thread is None), None)
        if known is None:
            known = self._reclaim()
        if self._files[known].thread != thread:
            self._files[known].thread = thread
            self._files[known].away = False  # it may have been another thread's, which is away
            self._used = [file for file in self._files if file.thread is not None]
        self.current = known
        return self.regs[known]

    def send(self, ours: Callable[[int], bool]) -> None:
        """Move each CPU whose `regs.pc` was set to another address since its stop. Called before
        the guest runs. A system call in which such a CPU was interrupted does not begin again.

        Args:
            ours: (pc) -> True in code of the library's, where a CPU stands while it is in a hit.

        Raises:
            MachineBusy: a CPU that is to be moved is in a hit, and is not the current one. It stays
                where it is.
            RemoteError: no thread is that CPU.
        """
        for cpu, regs in enumerate(self.regs):
            if (target := regs.target) is not None:
                regs.at(None)
                self._files[cpu].check()
                if cpu != self.current and ours(regs.live_pc()):
                    raise MachineBusy(
                        f"CPU {cpu} is in a hit: its pc cannot be set",
                        address=regs.live_pc(),
                        hint="set it when its hit is over, or in its own handler",
                    )
                self._leave_call(self._files[cpu])
                self.move(target, cpu)

    def move(self, target: int, cpu: int | None = None) -> None:
        """Set the pc of a CPU, and npc where there is one; the stub gets them by flush().

        Args:
            target: address; its mode bits go where the CPU keeps them.
            cpu: index; None: the current one.
        """
        file = self._files[self.current if cpu is None else cpu]
        bits = self._arch.pointers.mode_bits
        if bits and "cpsr" in self.slots:  # Arm: T is bit 5
            file.write("cpsr", file.read("cpsr") & ~0x20 | (target & 1) << 5)
        target = target & ~bits | (file.read(self._pc) & self._privilege if self._privilege else 0)
        file.write(self._pc, target)
        if "npc" in self.slots:
            file.write("npc", target + 4)

    def start(self, target: int) -> None:
        """Set the current CPU's pc to code that has nothing to do with what the CPU was doing.

        A pending nullification and an interrupted system call are cleared, as they must not affect
        that code.

        Args:
            target: address of the code, mode bits included.
        """
        self._nullifies_next()
        self._leave_call(self._files[self.current])
        self.move(target)

    def _called(self, file: StubRegisterFile) -> str:
        """Return the name of the register by which Linux knows that a thread was interrupted in a
        system call; "": the thread is in none that would begin again.

        Args:
            file: registers of the thread.
        """
        if self._calling is None:
            return ""
        name, result, bits = self._calling
        return name if -516 <= file.read(result) - (1 << bits) <= -512 else ""

    def _leave_call(self, file: StubRegisterFile) -> None:
        """Keep a system call that was interrupted from beginning again.

        Args:
            file: registers of the thread.
        """
        if name := self._called(file):
            file.write(name, -1)

    def pass_over(self) -> bool:
        """Move the current thread behind its instruction if that is nullified, and return True
        then; else return False.
        """
        if not self._nullifies_next():
            return False
        file = self._files[self.current]
        following = file.read("npc")
        file.write(self._pc, following)
        file.write("npc", following + 4)
        return True

    def _nullifies_next(self) -> bool:
        """Return True where the current thread's next instruction is nullified, and clear that in
        its registers.
        """
        if self._nullified is None:
            return False
        (name, bits), file = self._nullified, self._files[self.current]
        word = file.read(name)
        if word & bits:
            file.write(name, word & ~bits)
        return bool(word & bits)

    def flush(self, going_on: bool = False) -> int | None:
        """Write the registers that were set to the stub, and forget all values: the guest is about
        to run.

        Args:
            going_on: True: the guest is resumed by a packet that can say where the current thread
                goes on.

        Returns:
            Address where the current thread goes on, for RemoteTarget.resume(); None: at its pc.
        """
        at = self._files[self.current].onward(self._pc) if going_on else None
        for file in self._used:
            file.flush()
        return at

    def save(self) -> dict[str, int]:
        """Return the current thread's registers, for restore(): the stub's name -> value, of those
        that the architecture's registers are made of, and of the one that says that a system call
        was interrupted.
        """
        file = self._files[self.current]
        called = self._called(file)
        return file.read_all([*self._kept, called] if called else self._kept)

    def restore(self, saved: dict[str, int], moved: bool = False) -> None:
        """Set the current thread's registers to saved values. Only those that differ are set; the
        stub gets them by flush().

        Args:
            saved: what save() has returned.
            moved: a kernel has moved the task to another processor meanwhile: registers that are
                the processor's stay.
        """
        file = self._files[self.current]
        stay = OF_PROCESSORS if moved else ()
        for name, value in file.read_all(saved).items():
            if value != saved[name] and name not in stay:
                file.write(name, saved[name])

    def forget_values(self) -> None:
        """Forget all register values, those too that were set and not written."""
        for file in self._used:
            file.forget()

    def forget(self) -> None:
        """Forget all threads and their registers: the guest is gone."""
        for file in self._used:
            file.forget()
            file.thread = None
        self._used = []

    @property
    def is_cpu(self) -> bool:
        """Whether the core knows the current thread as a CPU."""
        return self.current < self.cpus

    def check_cpu(self) -> None:
        """Check that the core knows the current thread as a CPU.

        Raises:
            RemoteError: more living threads have come to probes than there are CPUs.
        """
        if not self.is_cpu:
            raise RemoteError(
                f"threads= is {self.cpus}, and one more living thread has come to a probe",
                hint="start again, and pass a larger threads=; or unregister the probe and go on: "
                "no hit is lost, this one comes again",
            )

    def _reclaim(self) -> int:
        """Return the index of a CPU whose thread has ended, as the stub says; where all live, that
        of the CPU behind the last.
        """
        for cpu, file in enumerate(self._files[: self.cpus]):
            if self._target.link.ask(b"T%s" % (file.thread or "").encode()) != b"OK":
                return cpu
        return self.cpus
