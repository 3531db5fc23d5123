"""Where the subjects run: the engine as its users have it, a machine of ours, a machine with many probes elsewhere."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import unicorn
import yardsticks
from subjects import SUBJECTS

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.machine.unicorn.guests.rows import GUESTS

BASE, DATA, STACK, FARM = 0x10000, 0x20000, 0x40000, 0x100000
ROOM = 0x10000  # bytes of each of the first three
EXIT = BASE + ROOM // 2
K = 7  # the subject's second argument
WARM = 100  # iterations before the clock starts: translation, and the first hit, which makes the jump
FUNCTION = 1000  # instructions of a function with other probes

Run = Callable[[int], object]  #: iterations of the loop
RawHook = Callable[[unicorn.Uc, int, int, object], None]


class Absent(Exception):
    """This architecture has no such row; says why."""


def check(result: int) -> None:
    """The loop has run to its end, and nothing has disturbed it."""
    if result != 1 + K:
        raise RuntimeError(f"the guest returned {result}, not {1 + K}")


class BareEngine:
    """A unicorn.Uc with its own settings, memory and callbacks: the yardstick. A machine around it only names its
    registers."""

    def __init__(self, arch: str) -> None:
        guest, self.subject = GUESTS[arch], SUBJECTS[arch]
        self.uc = guest.cpu.fresh().uc
        self.uc.mem_map(BASE, ROOM)
        for addr in (DATA, STACK):
            self.uc.mem_map(addr, ROOM, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        self.names = UnicornMachine.attach(self.uc, arch=arch)
        self.uc.mem_write(BASE, self.subject.code)
        self.uc.mem_write(EXIT, self.names.arch.end_bytes(self.subject.mode))
        self._until = EXIT if guest.runs.until_stops else 0
        if guest.contexts.furnish is not None:
            guest.contexts.furnish(self.names.parts.memory.engine, self.names.regs, STACK, ROOM // 4)

    def call(self, function: str, *args: int) -> int:
        """Call a function by the calling convention."""
        regs, abi, linkage = self.names.regs, self.names.arch.abi, self.names.arch.linkage
        assert abi is not None and linkage is not None
        regs.sp = STACK + ROOM // 2 - linkage.pushed
        for n, value in enumerate(args):
            abi.set_argument(regs, n, value)
        linkage.set(regs, EXIT | self.subject.mode)
        entry = (BASE + self.subject.at[function]) | self.subject.mode
        if abi.enter is not None:
            abi.enter(regs, entry)
        try:
            self.uc.emu_start(entry, self._until)
        except unicorn.UcError as error:
            if self._until or error.errno != unicorn.UC_ERR_INSN_INVALID:
                raise
        return regs.return_value

    @contextmanager
    def loop(self, **hooks: RawHook) -> Iterator[Run]:
        """The loop, with raw hooks at labels of it."""
        self._forget()
        added = [self.uc.hook_add(unicorn.UC_HOOK_CODE, hook, begin=BASE + self.subject.at[label],
                                  end=BASE + self.subject.at[label])
                 for label, hook in hooks.items()]

        def run(count: int) -> None:
            check(self.call("loop", count, K))

        run(WARM)
        yield run
        for hook in added:
            self.uc.hook_del(hook)
        self._forget()

    @contextmanager
    def hooked(self, make: Callable[[], Any], count: bool = False) -> Iterator[Run]:
        """The loop with a hook of yardsticks.py's at `tiny`. make: gives it. count: yardsticks.hits() knows of it."""
        self._forget()
        try:
            hook = make()
        except yardsticks.NoCompiler as why:
            raise Absent(str(why)) from None
        delete = yardsticks.add(self.uc, hook, BASE + self.subject.at["tiny"])
        done = 0

        def run(iterations: int) -> None:
            nonlocal done
            check(self.call("loop", iterations, K))
            done += iterations

        run(WARM)
        yield run
        if count and yardsticks.hits() != done:
            raise RuntimeError(f"{yardsticks.hits()} hits, not {done}")
        delete()
        self._forget()

    def arguments(self) -> tuple[tuple[int, int], int, int]:
        """Where two arguments are, as yardsticks.in_c() has it."""
        arch, number = self.names.arch, self.names.parts.cpu.register
        assert arch.abi is not None
        if arch.abi.args:
            return (number(arch.abi.args[0]), number(arch.abi.args[1])), 0, 0
        return (number(arch.regs.sp), -1), arch.abi.stack_args, arch.bits // 8

    def _forget(self) -> None:
        """Hooks are translated into the code: translate anew."""
        self.uc.ctl_remove_cache(BASE, BASE + len(self.subject.code))

    @contextmanager
    def stores(self) -> Iterator[Run]:
        """The loop of stores."""
        self.call("stores", WARM, DATA)
        yield lambda count: self.call("stores", count, DATA)

    def register_reader(self, *names: str) -> Callable[[], None]:
        """Reads registers as a raw hook does."""
        uc, numbers = self.uc, [self.names.parts.cpu.register(name) for name in names]

        def read() -> None:
            for number in numbers:
                uc.reg_read(number)

        return read

    def argument_reader(self) -> Callable[[], None]:
        """Reads two arguments as a raw hook does: registers, or words of the stack."""
        uc, arch = self.uc, self.names.arch
        assert arch.abi is not None
        if arch.abi.args:
            return self.register_reader(*arch.abi.args[:2])
        sp, above = self.names.parts.cpu.register(arch.regs.sp), arch.abi.stack_args
        words = struct.Struct("<II" if arch.order.value == "little" else ">II")

        def read() -> None:
            words.unpack(uc.mem_read(uc.reg_read(sp) + above, words.size))

        return read


def make_machine(arch: str) -> UnicornMachine:
    """A machine with the subject, whose text is not the guest's to write, as compiled programs' text."""
    made = SUBJECTS[arch]
    machine = UnicornMachine.from_code(made.code, arch=arch, base=BASE,
                                       symbols={name: ((BASE + at) | made.mode, size)
                                                for name, (at, size) in made.functions.items()})
    machine.protect(BASE, machine.page_size, "rx")
    return machine


class Machine:
    """A machine with the subject, without a Kprobes of its own."""

    def __init__(self, arch: str) -> None:
        self.machine = make_machine(arch)

    @contextmanager
    def loop(self) -> Iterator[Run]:
        """The loop without probes."""
        self._run(WARM)
        yield self._run

    def _run(self, count: int) -> None:
        check(self.machine.call("loop", count, K))

    @contextmanager
    def probed(self, way: str, *probes: Kprobe | Kretprobe | Jprobe) -> Iterator[Run]:
        """The loop with these probes, in a Kprobes of their own. way: see hit()."""
        with Kprobes(self.machine) as k, self.hit(k, way, *probes) as run:
            yield run

    @contextmanager
    def with_tasks(self, *probes: Kretprobe) -> Iterator[Run]:
        """The loop with these probes, optimized, where the guest may switch its task at any call."""
        self.machine.cpu_task = lambda regs: 0
        try:
            with self.probed("o", *probes) as run:
                yield run
        finally:
            self.machine.cpu_task = None

    @contextmanager
    def hit(self, k: Kprobes, way: str, *probes: Kprobe | Kretprobe | Jprobe) -> Iterator[Run]:
        """The loop with these probes. way: how hits must come: "k" stepped, "b" boosted, "o" optimized, "c" counted by
        the host."""
        k.optimization = way in "oc"
        total = 0

        def run(count: int) -> None:
            nonlocal total
            total += count
            self._run(count)

        for probe in probes:
            k.register(probe)
        try:
            run(WARM)
            for probe in probes:
                found = "o" if probe.optimized else "b" if probe.boosted else "k"
                if found != way.replace("c", "o") or (way == "c" and not self.machine.can_run):
                    raise Absent(probe.why_not_optimized or "this host has no function that counts")
            yield run
            for probe in probes:
                if probe.nhit != total or getattr(probe, "nreturned", total) != total:
                    raise RuntimeError(f"{total} iterations, but {probe.nhit} hits")
        finally:
            for probe in probes:
                k.unregister(probe)

    @contextmanager
    def stores(self) -> Iterator[Run]:
        """The loop of stores, with a probe elsewhere."""
        data = self.machine.alloc(64)
        with Kprobes(self.machine) as k, k.kprobe("tiny", pre_handler=lambda p, regs: None):
            self.machine.call("stores", WARM, data)
            yield lambda count: self.machine.call("stores", count, data)
        self.machine.free(data)


class Crowd(Machine):
    """A machine with probes on code that never runs.

    Attributes:
        seconds, bytes: what registering took, of the processor's time, and of this process's memory per probe.
    """

    def __init__(self, arch: str, count: int) -> None:
        super().__init__(arch)
        made, self.count = SUBJECTS[arch], count
        step = len(made.filler)
        size = -(-count * step // ROOM) * ROOM
        self.machine.map(FARM, size)
        self.machine.write(FARM, made.filler * count)
        self.machine.protect(FARM, size, "rx")  # as make_machine() does
        for n in range(0, count, FUNCTION):
            self.machine.symbols.add(f"farm{n}", FARM + n * step, FUNCTION * step, mode=made.mode)
        before = resident()
        self.probes = [Kprobe(addr=FARM + n * step, pre_handler=lambda p, regs: None) for n in range(count)]
        self.kprobes = Kprobes(self.machine)
        start = time.thread_time()
        self.kprobes.register_kprobes(self.probes)
        self.seconds = time.thread_time() - start
        self.bytes = max(resident() - before, 0) / count

    @contextmanager
    def unhit(self) -> Iterator[Run]:
        """The loop, which hits none of them."""
        self._run(WARM)
        yield self._run

    def probed(self, way: str, *probes: Kprobe | Kretprobe | Jprobe) -> object:
        """The loop with these probes too."""
        return self.hit(self.kprobes, way, *probes)

    def close(self) -> float:
        """Unregister them all; the seconds it took."""
        start = time.thread_time()
        self.kprobes.unregister_kprobes(self.probes)
        return time.thread_time() - start


def resident() -> int:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
