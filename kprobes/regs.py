"""Regs: the guest's registers and memory at a report.

A Regs is a live view, not a copy: every read asks the engine, every write reaches the guest. One
object serves a CPU for its whole life, so a handler must not keep it for later; keep the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import index
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, Protocol

from .arguments import blame, checked, count_or_index, look, look_at_width
from .errors import BadArgument, GuestFault, Unsupported

if TYPE_CHECKING:
    Reader = Callable[[], int]
    Writer = Callable[[int], None]


#: Of Regs, what handlers call on every hit: these see to what they are given themselves, once it
#: has failed.
HOT = (
    "__init__",
    "at",
    "go",
    "pc",
    "sp",
    "flags",
    "return_value",
    "arg",
    "set_arg",
    "stack",
    "word",
    "set_word",
    "read",
    "write",
    "on_copies",
)
#: Bytes of the caller's stack that are restored after a mirror has run, so that it may overwrite
#: its arguments there (Linux: 64).
STACK_COPY = 512


class Memory(Protocol):
    """The part of memory that Regs needs: read and write.

    Memory may also have store(addr, data), load_word(addr), store_word(addr, word) and
    swap_word(addr, word). Regs then uses these for single words and the stack.
    """

    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


class RegsMachine(Memory, Protocol):
    """The part of a machine that Regs needs."""

    arch: Any
    cpu_task: Callable[[Regs], Any] | None


def real_bits(value: float, size: int) -> int:
    """Return the bits of a floating-point number as an integer; one of 4 bytes is rounded, to
    infinity where it is too large.

    Args:
        value: the number.
        size: its bytes, 4 or 8.
    """
    if size == 8:
        return int.from_bytes(pack("<d", value), "little")
    try:
        return int.from_bytes(pack("<f", value), "little")
    except OverflowError:
        return 0x7F80_0000 | (value < 0) << 31


def real_of(bits: int, size: int) -> float:
    """Return the floating-point number that is in the lowest bits of an integer.

    Args:
        bits: the integer; bits above the number do not matter.
        size: the number's bytes, 4 or 8.
    """
    held = (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
    value: float = unpack("<d" if size == 8 else "<f", held)[0]
    return value


@checked(*HOT)
class Regs:
    """Registers of one CPU.

    `regs["rdi"]` takes the architecture's register names and the names that Linux's kprobe events
    use; an unknown name raises UnknownRegister, and so does one that this machine does not show.
    Values are unsigned integers of the register's width. `regs.pc` is the address of the
    instruction reported, without mode bits; writing it moves the guest there (on ARM an odd address
    selects Thumb, an even one keeps the current state).

    Attributes:
        machine: the machine.
        arch: its architecture.
        cpu: CPU index.
        names: registers that this machine shows, of arch.regs.names; a stub may hide some.
        fault: the guest fault a fault_handler is asked about, else None.
        exception: the exception a fault_handler is asked about, else None.
        reported, target: the hand-over of pc, for engines and the core; handlers use pc.
        reported: pc as it is shown while a report lasts, without mode bits (None: none lasts, the
            engine's own counts).
        target: where the guest was sent since at(), mode bits included (None: nowhere); who has
            reported sends it there, and calls at() again. The hot paths write both directly, as
            at() and go() do.
        live_pc: reads the engine's own.
        midway: for engines: an access is reported, in the middle of an instruction: no page may
            come or go.
        simulating: for engines: an instruction is simulated, whose accesses are the guest's own.
        callers_window: for who walks stacks: n, from 1 on -> l0 to l7 and i0 to i7 of the n-th
            register window above the present one, or None where the processor has it no more; None
            where the machine cannot look.
        system_register: for who walks stacks: name -> value of a system register, which programs do
            not use; None where the machine cannot read them.
    """

    __slots__ = (
        "_args",
        "_bias",
        "_cells",
        "_copies",
        "_load",
        "_load_word",
        "_mask",
        "_memory",
        "_order",
        "_read",
        "_read_sp",
        "_result",
        "_sp_name",
        "_step",
        "_store",
        "_store_word",
        "_strip",
        "_word",
        "_write",
        "arch",
        "callers_window",
        "cpu",
        "exception",
        "fault",
        "live_pc",
        "machine",
        "midway",
        "names",
        "reported",
        "simulating",
        "system_register",
        "target",
        "true_return",
    )

    def __init__(
        self,
        machine: RegsMachine,
        readers: Mapping[str, Reader],
        writers: Mapping[str, Writer],
        cpu: int = 0,
        memory: Memory | None = None,
        cells: Mapping[str, tuple[memoryview, int]] | None = None,
    ) -> None:
        """Make the registers of a CPU.

        Args:
            machine: the machine.
            readers: name -> () -> the register's value; pc is among them.
            writers: name -> (value): writes the register.
            cpu: the CPU's index.
            memory: the guest's memory, where it is a part of the machine; None: the machine itself.
            cells: name -> (words, index) of registers that are words of this process's memory, as
                cell() returns them.
        """
        self.machine = machine
        self._memory = memory = machine if memory is None else memory
        self.arch = arch = machine.arch
        self.cpu = cpu
        self.fault: Any = None
        self.exception: BaseException | None = None
        self.callers_window: Callable[[int], tuple[int, ...] | None] | None = None
        self.system_register: Callable[[str], int] | None = None
        #: (regs, address) -> the return address behind a trampoline; the return probes install
        #: theirs here.
        self.true_return: Callable[[Regs, int], int] | None = None
        self._load, self._mask = memory.read, arch.mask
        #: of words: what the guest could not write itself, a simulated instruction may not either
        self._store: Callable[[int, bytes], None] = getattr(memory, "store", memory.write)
        self._load_word: Callable[[int], int] | None = getattr(memory, "load_word", None)
        self._store_word: Callable[[int, int], None] | None = getattr(memory, "store_word", None)
        self._order, self._word = arch.order.value, arch.bits // 8
        self._step = self._word * arch.callers
        self.reported: int | None = None
        self.target: int | None = None
        self._strip = ~arch.pointers.mode_bits
        self._copies: _Copies | None = None
        self.live_pc = readers[arch.regs.pc]
        self.midway = False
        self.simulating = False
        self._sp_name = arch.regs.sp
        self._read_sp = readers[arch.regs.sp]
        self._bias = arch.regs.sp_bias
        self.names: tuple[str, ...] = tuple(name for name in arch.regs.names if name in readers)
        self._read, self._write = dict(readers), dict(writers)
        self._cells = cells or {}
        self._read[arch.regs.pc] = self._get_pc
        self._write[arch.regs.pc] = self.go
        for alias, name in arch.regs.aliases.items():
            if name in self._read:
                self._read[alias] = self._read[name]
                self._write[alias] = self._write[name]
        self._args = dict(enumerate(self._read[name] for name in arch.abi.args)) if arch.abi else {}
        self._result: Callable[[], int] = self._read[arch.abi.returns[0]] if arch.abi else self._abi

    # --- single registers

    def __getitem__(self, name: str) -> int:
        try:
            read = self._read[name]
        except (KeyError, TypeError):
            read = self._lane(name)[0]
        return read()

    def __setitem__(self, name: str, value: float) -> None:
        try:
            write = self._write[name]
        except (KeyError, TypeError):
            write = self._lane(name)[1]
        try:
            write(value)  # type: ignore[arg-type]
        except TypeError as error:
            if isinstance(value, float) and (size := self._size_of_real(name)):
                write(real_bits(value, size))
            else:
                raise blame(error, **{name: value}) from None

    def __contains__(self, name: str) -> bool:
        if not isinstance(name, str):
            return False
        lane = self.arch.regs.lanes.get(name)
        return name in self._read or (lane is not None and lane.register in self._read)

    def _lane(self, name: str) -> tuple[Reader, Writer]:
        """Return what reads and writes a part of a register.

        HAZARD: it is made anew each time: on_copies() has writers of whole registers exchanged.

        Args:
            name: of the part.

        Raises:
            UnknownRegister: there is no such part, or the machine does not show its register.
        """
        if name not in self:
            raise self.arch.regs.unknown(name)
        lane = self.arch.regs.lanes[name]
        read_all, write_all = self._read[lane.register], self._write[lane.register]
        mask = (1 << lane.bits) - 1

        def read() -> int:
            """Return the part's bits."""
            return int(read_all() >> lane.low & mask)

        def write(value: int) -> None:
            """Set the part's bits; those of `value` above its width are dropped."""
            rest = read_all() & ~(mask << lane.low) if lane.keeps else 0
            write_all(rest | (value & mask) << lane.low)

        return read, write

    def _size_of_real(self, name: str) -> int:
        """Return the bytes of the floating-point number that a register is set to by a float: 4 for
        a part of 32 bits, else 8; 0: it is no such register.
        """
        registers = self.arch.regs
        if name in registers.lanes:
            return int(registers.lanes[name].bits) // 8
        return 8 if registers.aliases.get(name, name) in registers.reals else 0

    def real(self, name: str, size: int = 8) -> float:
        """Return the floating-point number in a register: `regs.real("xmm0")`.

        Args:
            name: of a floating-point register, or of a part, such as "s0" of AArch64.
            size: bytes of the number, 8 or 4, in the lowest bytes; of a part, the part's.

        Raises:
            UnknownRegister: there is no such register.
            BadArgument: it is no floating-point register, or `size` is neither.
        """
        bits = self[name]
        held = self._size_of_real(name)
        if not held or size not in (4, 8):
            raise BadArgument(
                f"{name} has no floating-point number of {size} bytes",
                hint="name a floating-point register, and 4 or 8 bytes",
            )
        return real_of(bits, min(held, size))

    def _get_pc(self) -> int:
        """Return the address of the instruction reported, or the engine's pc where none is."""
        pc = self.reported
        return self.live_pc() if pc is None else pc

    def go(self, target: int) -> None:
        """Send the guest to an address when this report is over. For simulation and the core.

        pc shows the address from now on.

        Args:
            target: the address, mode bits included (ARM: bit 0 selects Thumb).

        Raises:
            BadArgument: `target` is no integer.
        """
        try:
            self.reported = target & self._strip
        except TypeError as error:
            raise blame(error, target=target) from None
        self.target = target

    def at(self, pc: int | None) -> None:
        """Begin or end a report, in which pc is shown as another one than the engine's.

        Engines call this. An address that go() has set is forgotten.

        Args:
            pc: address that is shown, without mode bits; None: the report is over, the engine's pc
                counts.
        """
        self.reported = pc
        self.target = None

    @property
    def pc(self) -> int:
        """Address of the instruction reported; instruction_pointer(regs)."""
        pc = self.reported
        return self.live_pc() if pc is None else pc

    @pc.setter
    def pc(self, value: int) -> None:
        """Send the guest to an address when this report is over."""
        look("pc", value)
        self.go(self.arch.pointers.same_mode(self, value))

    @property
    def sp(self) -> int:
        """The stack pointer, bias removed where the ABI has one; kernel_stack_pointer(regs)."""
        return self._read_sp() + self._bias & self.arch.mask if self._bias else self._read_sp()

    @sp.setter
    def sp(self, value: int) -> None:
        try:
            self._write[self._sp_name](value - self._bias & self._mask)
        except TypeError as error:
            raise blame(error, sp=value) from None

    @property
    def flags(self) -> int:
        """The register of condition flags (rflags, nzcv, cpsr, cr ...).

        Raises Unsupported where the instruction set has none.
        """
        name = self.arch.regs.flags
        if name is None:
            raise Unsupported(
                f"{self.arch.name} has no flags register",
                hint="read the registers that hold conditions",
            )
        return self[name]

    @flags.setter
    def flags(self, value: int) -> None:
        name = self.arch.regs.flags
        if name is None:
            raise Unsupported(
                f"{self.arch.name} has no flags register",
                hint="write the registers that hold conditions",
            )
        self[name] = value

    # --- calling convention

    def arg(self, n: int) -> int:
        """Return the n-th integer argument (from 0), a register or a word of the stack.

        It is right at a function's entry. Linux: regs_get_kernel_argument().

        Raises:
            BadArgument: `n` is no integer, negative, or far too large.
            Unsupported: the architecture has no calling convention.
            GuestFault: the argument lies on the stack, and the memory is not mapped.
        """
        try:
            read = self._args[n]
        except (KeyError, TypeError):
            return int(self._abi().argument(self, count_or_index("n", n)))
        return read()

    def set_arg(self, n: int, value: int) -> None:
        """Replace the n-th integer argument (from 0), a register or a word of the stack, by
        `value`.

        It is right at a function's entry.

        Raises:
            BadArgument: the value is no integer, or fits no register; or `n` is no integer,
                negative, or far too large.
            Unsupported: the architecture has no calling convention.
            GuestFault: the argument lies on the stack, and the memory is not mapped.
        """
        look("value", value)
        look_at_width("value", index(value), self.arch.bits, "pass a wide one in two halves")
        self._abi().set_argument(self, count_or_index("n", n), value)

    @property
    def return_value(self) -> int:
        """The integer return value, valid when a function has returned; regs_return_value(regs)."""
        return self._result()

    @return_value.setter
    def return_value(self, value: int) -> None:
        self[self._abi().returns[0]] = value

    @property
    def return_address(self) -> int:
        """The address that the function just entered returns to; a return probe's trampoline is not
        shown.

        It is right at function entry.

        Raises:
            Unsupported: nothing is known of calls on this architecture.
            GuestFault: the address lies on the stack, and the memory is not mapped.
        """
        linkage = self.arch.linkage
        if linkage is None:
            raise Unsupported(
                f"{self.arch.name} has no linkage",
                hint="return addresses are unknown on this architecture",
            )
        address = int(linkage.get(self))
        return address if self.true_return is None else self.true_return(self, address)

    def _abi(self) -> Any:
        """Return the architecture's calling convention.

        Raises:
            Unsupported: it has none.
        """
        if self.arch.abi is None:
            raise Unsupported(
                f"{self.arch.name} has no calling convention", hint="read registers by name"
            )
        return self.arch.abi

    # --- source

    @property
    def debug(self) -> Any:
        """The debug information of the guest's files: machine.debug.

        Raises:
            Unsupported: this machine knows nothing of files.
        """
        found = getattr(self.machine, "debug", None)
        if found is None:
            raise Unsupported(
                "this machine has no debug information",
                hint="ask a kprobes.debug.info.DebugInfo of it",
            )
        return found

    def local(self, name: str) -> Any:
        """Return the value of a parameter or local variable at pc, as C sees it.

        Args:
            name: of the variable.

        Returns:
            A number, or a view of guest memory; None: the compiler has not kept the variable there.

        Raises:
            UnknownSymbol: there is none of this name, or the guest was built without -g.
            Unsupported: this machine knows nothing of files, or such a variable cannot be shown.
        """
        return self.debug.local(self, name)

    # --- memory

    def stack(self, n: int) -> int:
        """Return the n-th word (from 0) above the stack pointer.

        Where the stack grows upwards, the n-th word below it.

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: `n` is no integer.
        """
        try:
            return self.word(self.sp + n * self._step)
        except TypeError as error:
            raise blame(error, n=n) from None

    def word(self, addr: int, size: int = 0) -> int:
        """Return an unsigned integer of guest memory, in the guest's byte order.

        Args:
            addr: address of its first byte; it is cut to the architecture's width.
            size: bytes; 0: a word of the architecture.

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: `addr` or `size` is no integer.
        """
        try:
            if not size and self._load_word is not None:
                return self._load_word(addr & self._mask)
            return int.from_bytes(self._load(addr & self._mask, size or self._word), self._order)
        except TypeError as error:
            raise blame(error, addr=addr, size=size) from None

    def set_word(self, addr: int, value: int, size: int = 0) -> None:
        """Store an integer in guest memory, in the guest's byte order.

        Args:
            addr: address of its first byte; it is cut to the architecture's width.
            value: the integer, cut to `size` bytes.
            size: bytes; 0: a word of the architecture's.

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: an argument is no integer, or `size` is negative or far too large.
        """
        try:
            if not size and self._store_word is not None:
                self._store_word(addr & self._mask, value & self._mask)
                return
            size = count_or_index("size", size) or self._word
            self._store(
                addr & self._mask, (value & (1 << 8 * size) - 1).to_bytes(size, self._order)
            )
        except TypeError as error:
            raise blame(error, addr=addr, value=value) from None

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory, breakpoints included.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is not mapped.
        """
        return self._memory.read(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory.

        Args:
            addr: address of the first byte.
            data: what to write.

        Raises:
            GuestFault: it is not mapped.
        """
        self._memory.write(addr, data)

    def read_cstr(self, addr: int, limit: int = 4096) -> bytes:
        """Return the bytes of guest memory up to the first NUL, which is left out.

        Args:
            addr: address of the first byte.
            limit: the most bytes to return.

        Raises:
            GuestFault: memory ends before a NUL or the limit.
        """
        return read_cstr(self._memory, addr, limit)

    @property
    def task(self) -> Any:
        """Identity of the guest task that runs (machine.cpu_task); default: one per CPU."""
        chooser = self.machine.cpu_task
        return self.cpu if chooser is None else chooser(self)

    def accessors(self, name: str) -> tuple[Callable[[], int], Callable[[int], None]]:
        """Return functions that read and write one register, for code that does it on every hit.

        Args:
            name: of the register.

        Returns:
            (() -> its value, (value): sets it), which do the same as regs[name].

        Raises:
            UnknownRegister: the machine shows no such register.
        """
        try:
            return self._read[name], self._write[name]
        except KeyError:
            raise self.arch.regs.unknown(name) from None

    def cell(self, name: str) -> tuple[memoryview, int] | None:
        """Return where a register lies in this process's memory, for code that reads several at
        once.

        Args:
            name: of the register.

        Returns:
            (words, index): its value is words[index]. None: it lies in no such memory.
        """
        return self._cells.get(self.arch.regs.aliases.get(name, name))

    def words(
        self,
    ) -> tuple[Callable[[int], int], Callable[[int, int], None], Callable[[int, int], int]]:
        """Return functions that access one word of guest memory.

        Addresses and values must not be wider than a word.

        Returns:
            load(addr) -> word; store(addr, word); swap(addr, word) -> the word that was there
            before. The first two do what word() and set_word() do.
        """
        load, store = self._load_word or self.word, self._store_word or self.set_word

        def swap(addr: int, value: int) -> int:
            old = load(addr)
            store(addr, value)
            return old

        return load, store, getattr(self._memory, "swap_word", swap)

    def argument(self, n: int) -> Callable[[], int]:
        """Return a function that returns the n-th argument (from 0) as arg(n) does.

        For code that reads it on every hit.
        """
        return self._args.get(n) or partial(self.arg, n)

    def on_copies(self, function: Callable[..., Any], args: Iterable[Any]) -> None:
        """Call a function, then put back the registers that it has written and the top of the
        stack.

        Only registers written through this object are put back. This is how a jprobe runs a Python
        mirror.

        Args:
            function: is called once; its result is ignored, and what it raises is raised.
            args: its arguments.
        """
        read = self._load
        start, stack = top_of_stack(self, read)
        copies = self._copies
        if copies is None:
            copies = self._copies = _Copies(self._read, self._write)
        self._write = copies
        try:
            function(*args)
        finally:
            self._write = copies.write
            if copies.old:
                copies.put_back()
            if read(start, len(stack)) != stack:
                self._memory.write(start, stack)

    def __repr__(self) -> str:
        return f"<Regs {self.arch.name} cpu {self.cpu} pc={self.pc:#x}>"


class _Copies(dict[str, "Writer"]):
    """Writers of registers that remember what was in each register before the first write.

    Looking a writer up (`copies[name]`) notes the register's value.
    """

    def __init__(self, read: Mapping[str, Reader], write: dict[str, Writer]) -> None:
        self.read = read
        self.write = write
        self.old: dict[str, int] = {}

    def __getitem__(self, name: str) -> Writer:
        if name not in self.old:
            self.old[name] = self.read[name]()
        return self.write[name]

    def put_back(self) -> None:
        """Write the values that were noted back into their registers, and forget them."""
        for name, value in self.old.items():
            self.write[name](value)
        self.old.clear()


def top_of_stack(regs: Regs, read: Callable[[int, int], bytes]) -> tuple[int, bytes]:
    """Read the part of the caller's stack that a jprobe's mirror may overwrite.

    Args:
        regs: the registers at the probed function's entry.
        read: (address, size) -> bytes of guest memory. Raises GuestFault where it is not mapped.

    Returns:
        (address of the first byte, the bytes): STACK_COPY of them, or fewer where mapped memory
        ends.
    """
    sp = regs.sp
    size = STACK_COPY
    while size:
        start = sp if regs.arch.callers > 0 else sp - size
        try:
            return start, read(start, size)
        except GuestFault:
            size //= 2
    return sp, b""


def read_cstr(memory: Memory, addr: int, limit: int = 4096) -> bytes:
    """Return the bytes of guest memory up to the first NUL, which is left out.

    It reads pieces that never cross a 256-byte line, so a string may end where mapped memory ends.

    Args:
        memory: the guest's.
        addr: address of the first byte.
        limit: the most bytes to return.

    Raises:
        GuestFault: memory ends before a NUL or the limit.
    """
    out = bytearray()
    while len(out) < limit:
        piece = memory.read(addr + len(out), min(256 - (addr + len(out)) % 256, limit - len(out)))
        head, nul, _ = piece.partition(b"\0")
        out += head
        if nul:
            break
    return bytes(out)


def instruction_pointer(regs: Regs) -> int:
    """Return regs.pc; Linux's name for it."""
    return regs.pc


def kernel_stack_pointer(regs: Regs) -> int:
    """Return regs.sp; Linux's name for it."""
    return regs.sp


def regs_return_value(regs: Regs) -> int:
    """Return regs.return_value; Linux's name for it."""
    return regs.return_value


def override_function_with_return(regs: Regs) -> None:
    """Send the guest from a function's entry back to its caller; the function does not run.

    For a pre_handler, which also sets regs.return_value, as this does not, and then returns
    DIVERTED (Linux: error injection). Return probes of the function still see the return. Where
    calls push the return address, it is popped.

    Args:
        regs: the registers at the function's entry.

    Raises:
        Unsupported: nothing is known of calls on this architecture.
        GuestFault: the return address lies on the stack, and the memory is not mapped.
    """
    linkage = regs.arch.linkage
    if linkage is None:
        raise Unsupported(
            f"{regs.arch.name} has no linkage", hint="set regs.pc by the architecture's own rules"
        )
    target = linkage.get(regs)
    if linkage.pushed:
        regs.sp += linkage.pushed
    regs.go(target)


def regs_get_kernel_argument(regs: Regs, n: int) -> int:
    """Return regs.arg(n), the n-th integer argument (from 0); Linux's name for it."""
    return regs.arg(n)
