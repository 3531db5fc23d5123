"""System calls of library code that is called in the engine: memory, random bytes, time, output,
locks, and the end.

No operating system is here: a call that is none of these is a fault that names it. Nothing of the
host's is reached: output is kept, random bytes and time are made up, and are the same in every run.
What a guest may take is bounded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Final

from attrs import frozen

from ...arch._base import Arch
from ...arch._linux import CallRules, Linux, MemoryCalls
from ...arch._rows import row
from ...errors import BadArgument, GuestFault, KprobeError, Unsupported
from ...regs import Regs
from ...symbols import CONTROLS
from .cpu import UnicornCpu
from .guests.guest import Guest
from .process import LinuxProcess
from .runstate import RunState
from .stackandexit import STACK_SIZE

Handler = Callable[..., int]
#: bounds of what a guest takes: bytes of memory, of output, and of a call
MOST_MEMORY, MOST_OUTPUT, MOST_BYTES = 1 << 28, 1 << 24, 1 << 20
BREAK_ROOM = 1 << 24  #: bytes for brk(): C libraries go on with mmap()
MOST_PARTS = 1024  #: pieces of a writev()
EPOCH = 946_684_800  #: seconds: the guest's clock begins in 2000
TICK = 1_000_000  #: nanoseconds that each look at the clock takes
FIXED = 0x10  #: of mmap's flags, on every architecture
POLLIN, POLLOUT, POLLNVAL = 0x1, 0x4, 0x20  #: of poll(), on every architecture
ENOENT, EBADF, EAGAIN, ENOMEM, EFAULT, EINVAL, ENOTTY, ENOSYS = 2, 9, 11, 12, 14, 22, 25, 38
EPERM, ESRCH = 1, 3
MOST_NAME = 4096  #: bytes of a file's name, PATH_MAX
LIMITS = 16  #: kinds of limits, RLIM_NLIMITS
OWN_PROGRAM = b"/proc/self/exe"  #: the only symbolic link that there is
RLIMIT_STACK = 3  #: on every architecture
LAST_ERROR = 4095
SECOND = 1_000_000_000


_ZERO = (
    "madvise",
    "set_robust_list",
    "rt_sigaction",
    "rt_sigprocmask",
    "sigaltstack",
    "sched_yield",
    "rseq",
    "close",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getuid32",
    "geteuid32",
    "getgid32",
    "getegid32",
)


@frozen(kw_only=True)
class Convention:
    """How processes of a guest call Linux, and how the engine reports that.

    Attributes:
        interrupt: number of the engine's interrupt.
        registers: the calls' registers.
        rules: the rest of what serving them needs.
    """

    interrupt: int
    registers: MemoryCalls
    rules: CallRules

    @property
    def number(self) -> str:
        """Register of the call's number, where the instruction does not hold it."""
        return self.rules.number or self.registers.number

    @property
    def inline(self) -> bool:
        """True where the number may stand in the instruction's last byte."""
        return not self.registers.number


def convention_of(arch: Arch, guest: Guest) -> Convention | None:
    """Return how processes of a guest call Linux; None: it is not known, or there are none.

    Args:
        arch: the guest's architecture.
        guest: the engine's row of it.
    """
    linux = row(arch, Linux)
    if linux is None or linux.calls is None or linux.memory is None or guest.calls.linux is None:
        return None
    return Convention(interrupt=guest.calls.linux, registers=linux.memory, rules=linux.calls)


class ServedSystemCalls(MutableMapping[str, Handler]):
    """The system calls that are served: name -> function(regs, argument, ...). Others are a
    GuestFault.

    The function returns the result, or a negative error number; where it accesses guest memory that
    is not mapped, the guest gets EFAULT. The methods _do_NAME are those that are built in: their
    arguments are the call's own, and further ones are ignored.

    Attributes:
        output: what the guest has written, by file descriptor: 1 and 2.
        status: what it has given to exit(); None: it has not.
        now: nanoseconds of its clock; each look at it takes a millisecond.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, process: LinuxProcess) -> None:
        """Make the calls of a machine; serve() has them served.

        Args:
            cpu: whose calls they are.
            state: of its runs: exit() ends them.
            process: whose thread pointer calls set.
        """
        self._cpu = cpu
        self._state = state
        self._process = process
        self._convention: Convention | None = None
        self._names: Callable[[int], str] = str
        self._otherwise: Callable[[Regs, int], bool] | None = None
        self._stdin: Callable[[int], bytes] = lambda size: b""
        self._own: dict[str, Handler] = {}
        self._maps: dict[int, int] = {}  # start -> bytes, of mmap()
        self._break = self._lowest = 0
        self._seed = 0
        self._drawn = 0  # random numbers: how often bytes were asked for
        self.output = {1: bytearray(), 2: bytearray()}
        self.status: int | None = None
        self.now = EPOCH * SECOND

    # --- a mapping of names

    def __getitem__(self, name: str) -> Handler:
        """Return the function that serves the system call `name`: the user's own, else a built-in
        one. KeyError: it is not served.
        """
        found = self._own.get(name) or getattr(self, f"_do_{name}", None)
        if found is not None:
            return found
        if name in _ZERO:
            return self._nothing
        raise KeyError(name)

    def __setitem__(self, name: str, handler: Handler) -> None:
        """Serve a system call by a function of the user's from now on.

        Args:
            name: of the call.
            handler: (registers, argument, ...) -> the result, or a negative error number.

        Raises:
            BadArgument: `handler` is no function.
        """
        if not callable(handler):
            raise BadArgument(
                f"{handler!r} serves no system call",
                hint="give a function of the registers and arguments",
            )
        self._own[name] = handler

    def __delitem__(self, name: str) -> None:
        """Serve a system call as built in again, or not at all. KeyError: no function of the user's
        serves it.
        """
        del self._own[name]

    def __iter__(self) -> Any:
        """Iterate over the names of the system calls that are served, sorted."""
        built_in = [
            name.removeprefix("_do_") for name in dir(type(self)) if name.startswith("_do_")
        ]
        return iter(sorted({*self._own, *built_in, *_ZERO}))

    def __len__(self) -> int:
        """Return the number of system calls that are served."""
        return len(list(iter(self)))

    # --- serving

    def serve(
        self,
        seed: int,
        stdin: Callable[[int], bytes],
        otherwise: Callable[[Regs, int], bool] | None,
    ) -> Callable[[Regs, int], bool]:
        """Return a handler of interrupts that serves system calls; it may be set as
        m.interrupt_handler.

        The random numbers begin anew with the seed. The page with code of the kernel's that
        processes call is mapped, if the architecture has one.

        Args:
            seed: of the random bytes; the same seed gives the same bytes.
            stdin: (bytes wanted) -> what the guest reads, at most as much.
            otherwise: (regs, number) -> True if it served an interrupt that is no system call;
                None: such interrupts are not served.

        Returns:
            The handler: (regs, number of the interrupt) -> True if it was served. It raises
            GuestFault for a system call that is not served.

        Raises:
            Unsupported: Linux has no such processes, or there is no list of numbers.
        """
        convention = convention_of(self._cpu.arch, self._cpu.guest)
        if convention is None:
            raise Unsupported(
                f"Linux's system calls are not served on {self._cpu.arch.name}",
                hint="set m.interrupt_handler",
            )
        self._names = _names(convention.rules.table, convention.rules.private)
        self._process.bring_kernel_code()
        self._convention = convention
        self._stdin = stdin
        self._otherwise = otherwise
        self._seed = seed
        self._drawn = 0
        return self._interrupt

    def _interrupt(self, regs: Regs, number: int) -> bool:
        """Serve an interrupt if it is a system call: call its function and write the result to a
        register.

        An access of the function to guest memory that is not mapped gives the guest EFAULT.

        Args:
            regs: the registers at the interrupt.
            number: of the interrupt.

        Returns:
            True where it was served. Another interrupt than a system call's goes to `otherwise`,
            which was given to serve(): False where there is none, or it has not served it.

        Raises:
            GuestFault: the system call is not served, or its function has raised one that is not of
                an access to data.
            BaseException: whatever else the function has raised.
        """
        convention = self._convention
        assert convention is not None
        if number != convention.interrupt:
            return self._otherwise is not None and self._otherwise(regs, number)
        call = self._number(regs, convention)
        name = self._names(call)
        try:
            handler = self[name]
        except KeyError:
            raise self._unserved(regs) from None
        try:
            result = int(handler(regs, *self._arguments(regs, convention)))
        except GuestFault as fault:
            if fault.access not in ("read", "write", "protect"):
                raise
            result = -EFAULT
        self._return(regs, convention, result)
        return True

    def _unserved(self, regs: Regs) -> GuestFault:
        """Return the fault to raise for the system call that the guest makes now, which is not
        served.

        Args:
            regs: the registers at the call.
        """
        convention = self._convention
        assert convention is not None
        call = self._number(regs, convention)
        name = self._names(call)
        return GuestFault(
            f"system call {name} ({call}), which is not served",
            address=regs.pc,
            pc=regs.pc,
            access="interrupt",
            number=convention.interrupt,
            serve=f"m.system_calls[{name!r}] = function serves it; QEMU and Qiling serve all",
        )

    def _number(self, regs: Regs, convention: Convention) -> int:
        """Return the number of the system call that the guest makes.

        Args:
            regs: the registers at the call.
            convention: says which register holds the number. With `inline` the byte before pc, the
                last of the instruction, is the number, unless it is 0.
        """
        if convention.inline:
            at, sink = regs.pc - 2, self._state.sink
            code = self._cpu.engine.read(at, 2) or b"\0\0"
            code = code if sink is None else sink.without_patches(at, code)
            if code[1]:
                return code[1]
        return int(regs[convention.number]) & 0xFFFFFFFF

    def _arguments(self, regs: Regs, convention: Convention) -> list[int]:
        """Return the arguments of a system call, as many as the convention has registers for; where
        it has more on the stack, two of these, which are 0 where the stack cannot be read.

        Args:
            regs: the registers at the call.
            convention: says which registers hold them, and where on the stack the rest lies.
        """
        found = [int(regs[name]) for name in convention.registers.args]
        if convention.registers.on_stack:
            try:
                stack = regs.sp + convention.registers.on_stack
                found += [regs.word(stack + n * 4) for n in range(2)]
            except GuestFault:  # calls of four arguments may be made with any stack
                found += [0, 0]
        return found

    def _return(self, regs: Regs, convention: Convention, result: int) -> None:
        """Write the result of a system call to the guest's registers, as its convention tells
        errors.

        Where the convention has a flag for errors (register a3, bit 28 of cr, or the carry), it is
        set or cleared, and the result's register gets the positive error number. Else it gets the
        negative one.

        Args:
            regs: the registers to change.
            convention: says which register gets the result, and what tells of an error.
            result: 0 or more; a negative number from -1 to -4095 is an error.
        """
        mask = self._cpu.arch.mask
        failed = -LAST_ERROR <= result < 0
        flag = convention.rules.failed
        if flag == "a3":
            regs["a3"] = int(failed)
        elif flag == "so":
            regs["cr"] = regs["cr"] & ~(1 << 28) | failed << 28
        elif flag == "carry":
            flags = self._cpu.arch.regs.flags or ""
            carry = 0x11 if self._cpu.arch.bits == 64 else 1
            regs[flags] = regs[flags] & ~carry | carry * failed
        regs[convention.registers.result] = (-result if failed and flag else result) & mask

    # --- state

    @property
    def snapshot_state(self) -> tuple[Any, ...]:
        """The effects of calls so far, as a copy for a snapshot; setting it goes back to such a
        copy.
        """
        return (
            self._maps.copy(),
            self._break,
            self._lowest,
            self._seed,
            self._drawn,
            bytes(self.output[1]),
            bytes(self.output[2]),
            self.status,
            self.now,
        )

    @snapshot_state.setter
    def snapshot_state(self, then: tuple[Any, ...]) -> None:
        """Set the effects of calls to what a snapshot has kept: output, memory, random numbers,
        time and status.
        """
        (
            maps,
            self._break,
            self._lowest,
            self._seed,
            self._drawn,
            out,
            errors,
            self.status,
            self.now,
        ) = then
        if self._maps != maps:
            self._maps = maps.copy()
        stream = self.output[1]
        if (stream or out) and stream != out:
            stream[:] = out
        stream = self.output[2]
        if (stream or errors) and stream != errors:
            stream[:] = errors

    # --- calls

    def _nothing(self, regs: Regs, *args: int) -> int:
        """Serve a system call that has nothing to do here: return 0."""
        return 0

    def _write(self, descriptor: int, address: int, size: int) -> int:
        """Keep what the guest writes to a file descriptor, and return how many bytes were kept.

        It is fewer than asked for beyond 1 MiB a call and 16 MiB of output to each descriptor.

        Args:
            descriptor: 1 or 2; any other gives -EBADF.
            address: of the bytes.
            size: bytes to write.

        Raises:
            GuestFault: the bytes cannot be read; nothing is kept.
        """
        kept = self.output.get(_signed(descriptor))
        if kept is None:
            return -EBADF
        size = min(size, MOST_BYTES, MOST_OUTPUT - len(kept))
        kept += self._cpu.memory.read(address, size)
        return size

    def _do_write(self, regs: Regs, descriptor: int, address: int, size: int, *_: int) -> int:
        """Serve write(): keep the bytes in `output`; return their number, or -EBADF.

        Args:
            regs: the registers at the call.
            descriptor: 1 or 2; any other gives -EBADF.
            address: of the bytes.
            size: bytes to write; at most 1 MiB a call are kept, and 16 MiB of each descriptor.
        """
        return self._write(descriptor, address, size)

    def _do_writev(self, regs: Regs, descriptor: int, address: int, count: int, *_: int) -> int:
        """Serve writev(): keep the bytes of `count` pieces in `output`, and return their number.

        -EINVAL for more than 1,024 pieces, -EBADF for a descriptor that is not 1 or 2, if there is
        a piece. Of each piece at most 1 MiB is kept, and 16 MiB of output to each descriptor.
        Pieces before one that cannot be read stay in `output`.

        Args:
            regs: the registers at the call.
            descriptor: 1 or 2.
            address: of an array of (address, bytes), two words each.
            count: its length.

        Raises:
            GuestFault: the array or a piece cannot be read; the guest gets EFAULT then.
        """
        if count > MOST_PARTS:
            return -EINVAL
        word, done = self._cpu.arch.bits // 8, 0
        for n in range(count):
            at = address + 2 * n * word
            written = self._write(descriptor, regs.word(at), regs.word(at + word))
            if written < 0:
                return written
            done += written
        return done

    def _do_read(self, regs: Regs, descriptor: int, address: int, size: int, *_: int) -> int:
        """Serve read(): write bytes of stdin to guest memory, and return their number; 0 at its
        end.

        Args:
            regs: the registers at the call.
            descriptor: 0; any other gives -EBADF.
            address: where to write.
            size: the most bytes; at most 1 MiB are read at a time.
        """
        if _signed(descriptor):
            return -EBADF
        self._cpu.memory.read(address, min(size, 1))
        data = self._stdin(min(size, MOST_BYTES))
        self._cpu.memory.write(address, data)
        return len(data)

    def _do_poll(self, regs: Regs, address: int, count: int, timeout: int, *_: int) -> int:
        """Serve poll(): say what could be done with descriptors at once, and return how many have
        something to say.

        From 0 can be read, to 1 and 2 can be written, and all others are none (POLLNVAL).

        Args:
            regs: the registers at the call.
            address: of an array of (descriptor, events, answer): 32, 16 and 16 bits.
            count: its length; -EINVAL for more than 1,024.
            timeout: milliseconds to wait where there is nothing to say.

        Raises:
            GuestFault: the array is not mapped (the guest gets EFAULT), or the guest would wait for
                ever.
        """
        order: Final = self._cpu.arch.order.value
        if count > MOST_PARTS:
            return -EINVAL
        ready = 0
        for at in range(address, address + 8 * count, 8):
            entry = self._cpu.memory.read(at, 8)
            descriptor = int.from_bytes(entry[:4], order, signed=True)
            events = int.from_bytes(entry[4:6], order)
            possible = {0: POLLIN, 1: POLLOUT, 2: POLLOUT}
            answer = 0
            if descriptor >= 0:
                answer = events & possible[descriptor] if descriptor in possible else POLLNVAL
            self._cpu.memory.write(at + 6, answer.to_bytes(2, order))
            ready += answer != 0
        if not ready and _signed(timeout) < 0:
            raise GuestFault(
                "system call poll waits for ever: no descriptor will have something to say",
                address=address,
                pc=regs.pc,
                access="interrupt",
                serve="m.system_calls['poll'] = function serves it",
            )
        return ready

    def _do_ppoll(self, regs: Regs, address: int, count: int, timeout: int, *_: int) -> int:
        """Serve ppoll() as poll(): where `timeout` is the address of a time, the guest does not
        wait for ever. The mask of signals is ignored.
        """
        return self._do_poll(regs, address, count, 0 if timeout else -1)

    _do_ppoll_time64 = _do_ppoll

    def _do_openat(self, regs: Regs, folder: int, name: int, *_: int) -> int:
        """Serve openat() for files below /proc: return -ENOENT, as where that is not mounted. C
        libraries and Rust's look there for limits of the stack, and do without.

        Args:
            regs: the registers at the call.
            folder: ignored.
            name: address of the file's name.

        Raises:
            GuestFault: it is another file, and none is here; or the name cannot be read, and the
                guest gets EFAULT.
        """
        return self._open(regs, "openat", name)

    def _do_open(self, regs: Regs, name: int, *_: int) -> int:
        """Serve open() as openat()."""
        return self._open(regs, "open", name)

    def _open(self, regs: Regs, call: str, name: int) -> int:
        """Return -ENOENT for a file below /proc.

        Args:
            regs: the registers at the call.
            call: its name, for the message.
            name: address of the file's name.

        Raises:
            GuestFault: it is another file; or the name cannot be read.
        """
        path = bytearray()
        while (byte := self._cpu.memory.read(name + len(path), 1)) != b"\0":
            path += byte
            if len(path) >= MOST_NAME:
                return -ENOENT
        if path.startswith(b"/proc/"):
            return -ENOENT
        shown = path.decode("utf-8", "replace").translate(CONTROLS)
        raise GuestFault(
            f"system call {call} of {shown}, and there are no files",
            pc=regs.pc,
            access="interrupt",
            serve=f"m.system_calls[{call!r}] = function serves it",
        )

    def _do_ioctl(self, regs: Regs, *args: int) -> int:
        """Serve ioctl(): return -ENOTTY, as no descriptor is a terminal."""
        return -ENOTTY

    def _do_getrandom(self, regs: Regs, address: int, size: int, *_: int) -> int:
        """Serve getrandom(): write bytes, and return their number. The seed, and how often bytes
        were drawn since serve(), decide the bytes.

        The call's flags are ignored.

        Args:
            regs: the registers at the call.
            address: where to write.
            size: bytes; at most 1 MiB are written.
        """
        size = min(size, MOST_BYTES)
        self._cpu.memory.read(address, size)
        self._drawn += 1
        source = random.Random(f"{self._seed} {self._drawn}")
        self._cpu.memory.write(address, source.randbytes(size))
        return size

    def _do_getpid(self, regs: Regs, *_: int) -> int:
        """Serve getpid(), gettid() and set_tid_address(): return 1."""
        return 1

    _do_gettid = _do_set_tid_address = _do_getpid

    def _do_prctl(self, regs: Regs, *_: int) -> int:
        """Serve prctl(): return -EINVAL, as a kernel that does not know the operation."""
        return -EINVAL  # as a kernel that does not know the operation

    def _do_riscv_hwprobe(self, regs: Regs, *_: int) -> int:
        """Serve riscv_hwprobe(): return -ENOSYS, as kernels before 6.4."""
        return -ENOSYS  # as kernels before 6.4, which C libraries run on

    def _do_getrlimit(self, regs: Regs, resource: int, address: int, *_: int) -> int:
        """Serve getrlimit(): write the two numbers of limit `resource` to `address`, a word each,
        and return 0; -EINVAL where there is no such limit.

        The stack's are its size; all others infinity: in 32 bits the largest signed number, in 64
        bits the largest unsigned one.
        """
        # 32 bits: infinity is signed, in the older of two calls and where there is no other
        bits = self._cpu.arch.bits
        return self._limits(resource, address, bits // 8, (1 << bits - (bits == 32)) - 1)

    def _do_ugetrlimit(self, regs: Regs, resource: int, address: int, *_: int) -> int:
        """Serve ugetrlimit(): write the two numbers of limit `resource` to `address`, a word each,
        and return 0; -EINVAL where there is no such limit.

        The stack's are its size; all others the largest unsigned number, infinity.
        """
        return self._limits(resource, address, self._cpu.arch.bits // 8, self._cpu.arch.mask)

    def _do_prlimit64(
        self, regs: Regs, task: int, resource: int, new: int, address: int, *_: int
    ) -> int:
        """Serve prlimit64() for the guest itself: write a limit, of two 64-bit numbers, to
        `address`, and return 0.

        Limits cannot be set.

        Args:
            regs: the registers at the call.
            task: 0 or 1, the guest; any other gives -ESRCH.
            resource: number of the limit; -EINVAL where there is none, if it is to be written.
            new: address of a new limit; -EPERM unless it is 0.
            address: where to write; 0: nowhere, and 0 is returned whatever `resource` is.
        """
        if task not in (0, 1):
            return -ESRCH
        if new:
            return -EPERM
        return self._limits(resource, address, 8, (1 << 64) - 1) if address else 0

    def _limits(self, resource: int, address: int, size: int, infinity: int) -> int:
        """Write a limit, rlim_cur and rlim_max, to guest memory. The stack's is STACK_SIZE, every
        other one infinite.

        Args:
            resource: number of the limit.
            address: where to write.
            size: bytes of each of the two numbers.
            infinity: the number that stands for no limit.

        Returns:
            0; -EINVAL where there is no such limit.

        Raises:
            GuestFault: nothing is mapped at `address`.
        """
        if resource >= LIMITS:
            return -EINVAL
        self._cpu.memory.read(address, 1)  # EFAULT where nothing is, also at 0
        limit = STACK_SIZE if resource == RLIMIT_STACK else infinity
        return self._pair(address, limit, limit, size)

    def _do_readlink(self, regs: Regs, name: int, address: int, size: int, *_: int) -> int:
        """Serve readlink() of /proc/self/exe: write the program's path to `address`, and return its
        length.

        The path is cut to `size` bytes and has no NUL. -ENOENT for any other name, or where no path
        is known; -EINVAL where `size` is not above 0.

        Args:
            regs: the registers at the call.
            name: address of the link's name.
            address: where to write.
            size: the most bytes to write.
        """
        memory = self._cpu.memory
        if _signed(size) <= 0:
            return -EINVAL
        # byte by byte: another name may end where its page ends
        same = all(
            memory.read(name + n, 1) == bytes([byte]) for n, byte in enumerate(OWN_PROGRAM + b"\0")
        )
        if not same or not self._process.path:
            return -ENOENT
        target = self._process.path[: _signed(size)]
        memory.write(address, target)
        return len(target)

    def _do_readlinkat(
        self, regs: Regs, folder: int, name: int, address: int, size: int, *_: int
    ) -> int:
        """Serve readlinkat() as readlink(); the folder is ignored."""
        return self._do_readlink(regs, name, address, size)

    def _do_fstat(self, regs: Regs, *_: int) -> int:
        """Serve fstat() and fstat64(): return -EBADF, as no files are here."""
        return -EBADF  # stdio takes its usual buffer then, as for a file

    _do_fstat64 = _do_fstat

    def _do_newfstatat(self, regs: Regs, descriptor: int, name: int, *_: int) -> int:
        """Serve newfstatat(), fstatat64() and statx(): return -EBADF where the path is empty, which
        stands for the descriptor's own file.

        Args:
            regs: the registers at the call.
            descriptor: is ignored.
            name: address of the path.

        Raises:
            GuestFault: the path is not empty: the call is not served, as there are no files. Or it
                cannot be read; the guest gets EFAULT then.
        """
        if self._cpu.memory.read(name, 1) != b"\0":  # a path, and there are no files
            raise self._unserved(regs)
        return -EBADF

    _do_fstatat64 = _do_statx = _do_newfstatat

    def _do_sched_getaffinity(self, regs: Regs, task: int, size: int, address: int, *_: int) -> int:
        """Serve sched_getaffinity(): write a mask of one CPU, CPU 0, and return its size in bytes.

        Args:
            regs: the registers at the call.
            task: is ignored.
            size: bytes of room; -EINVAL where it is less than a word.
            address: where to write; a word is written.
        """
        word = self._cpu.arch.bits // 8
        if size < word:
            return -EINVAL
        regs.set_word(address, 1)
        return word

    # time

    def _tick(self) -> tuple[int, int]:
        """Let a millisecond pass, and return the time as (seconds, nanoseconds)."""
        self.now += TICK
        return divmod(self.now, SECOND)

    def _pair(self, address: int, first: int, second: int, size: int) -> int:
        """Write two numbers to guest memory, one behind the other; return 0.

        Args:
            address: where to write; 0: write nothing.
            first: the number at the address.
            second: the number behind it.
            size: bytes of each.
        """
        order: Any = self._cpu.arch.order.value
        if address:
            self._cpu.memory.read(address, 2 * size)  # a fault writes nothing
            self._cpu.memory.write(
                address, first.to_bytes(size, order) + second.to_bytes(size, order)
            )
        return 0

    def _do_clock_gettime(self, regs: Regs, clock: int, address: int, *_: int) -> int:
        """Serve clock_gettime(): let a millisecond pass, write the guest's time to `address` as two
        words, seconds and nanoseconds, and return 0. All clocks are the same.
        """
        return self._pair(address, *self._tick(), self._cpu.arch.bits // 8)

    def _do_clock_gettime64(self, regs: Regs, clock: int, address: int, *_: int) -> int:
        """Serve clock_gettime64(): let a millisecond pass, write the guest's time to `address` as
        two numbers of 64 bits, seconds and nanoseconds, and return 0. All clocks are the same.
        """
        return self._pair(address, *self._tick(), 8)

    def _do_gettimeofday(self, regs: Regs, address: int, *_: int) -> int:
        """Serve gettimeofday(): let a millisecond pass, write the guest's time to `address` as two
        words, seconds and microseconds, and return 0.
        """
        seconds, rest = self._tick()
        return self._pair(address, seconds, rest // 1000, self._cpu.arch.bits // 8)

    def _do_time(self, regs: Regs, address: int, *_: int) -> int:
        """Serve time(): return the guest's time in seconds, and write it to `address`, unless that
        is 0.

        Each look at the clock lets a millisecond pass.
        """
        seconds, _rest = self._tick()
        if address:
            regs.set_word(address, seconds)
        return seconds

    # the end, and locks

    def _do_exit(self, regs: Regs, status: int, *_: int) -> int:
        """Serve exit() and exit_group(): keep the low byte of `status`, stop the run, and
        return 0.
        """
        self.status = status & 0xFF
        self._state.stop_for("stop")
        return 0

    _do_exit_group = _do_exit

    def _do_futex(self, regs: Regs, address: int, operation: int, value: int, *_: int) -> int:
        """Serve futex() for a guest of one thread: wake nobody, or see that there is nothing to
        wait for.

        Timeouts, masks and the second address are ignored.

        Args:
            regs: the registers at the call.
            address: of the 32-bit word.
            operation: WAKE and WAKE_BITSET return 0, WAIT and WAIT_BITSET compare; others give
                -EINVAL.
            value: a wait gives -EAGAIN where the word holds another value.

        Raises:
            GuestFault: the word holds the value, so the guest would wait for ever.
        """
        kind = operation & 0x7F  # without PRIVATE and CLOCK_REALTIME
        if kind in (1, 10):  # WAKE, WAKE_BITSET: no other thread waits
            return 0
        if kind not in (0, 9):
            return -EINVAL
        now = int.from_bytes(self._cpu.memory.read(address, 4), self._cpu.arch.order.value)
        if now != value & 0xFFFFFFFF:
            return -EAGAIN
        raise GuestFault(
            "system call futex waits for another thread, and there is none",
            address=address,
            pc=regs.pc,
            access="interrupt",
            serve="m.system_calls['futex'] = function serves it",
        )

    _do_futex_time64 = _do_futex

    # memory

    @property
    def _taken(self) -> int:
        """Bytes of guest memory that mmap() has mapped and that are still mapped."""
        return sum(self._maps.values())

    def _do_brk(self, regs: Regs, wanted: int, *_: int) -> int:
        """Serve brk(): move the end of the heap, and return where it is then.

        The first call maps 16 MiB for it. Memory that a smaller heap gives up is zeroed.

        Args:
            regs: the registers at the call.
            wanted: address where the heap is to end; outside of the 16 MiB: it ends where it did.

        Raises:
            NoMemory: the first call finds no room.
        """
        memory = self._cpu.memory
        if not self._lowest:
            self._lowest = self._break = memory.map_anywhere(BREAK_ROOM)
        if not self._lowest <= wanted <= self._lowest + BREAK_ROOM:
            return self._break
        if wanted < self._break:
            memory.write(wanted, bytes(self._break - wanted))  # what comes back is zeroed
        self._break = wanted
        return wanted

    def _do_mmap(
        self,
        regs: Regs,
        address: int,
        size: int,
        protection: int,
        flags: int,
        descriptor: int,
        *rest: int,
    ) -> int:
        """Serve mmap(): map zeroed memory, and return its address or a negative error number, as
        mmap2() does.

        Args:
            regs: the registers at the call.
            address: with MAP_FIXED, where to map. Where the architecture's call takes one argument,
                it is the address of a block of all the arguments instead, a word each.
            size: bytes, rounded up to whole pages.
            protection: is ignored: the memory can be read and written, and not executed.
            flags: MAP_FIXED and MAP_ANONYMOUS are looked at.
            descriptor: not negative, of a file: gives -EBADF without MAP_ANONYMOUS.
            rest: is ignored.
        """
        if self._convention is not None and self._convention.rules.mmap_by_block:
            word = self._cpu.arch.bits // 8
            address, size, _, flags, descriptor = (regs.word(address + n * word) for n in range(5))
        return self._do_mmap2(regs, address, size, protection, flags, descriptor)

    def _do_mmap2(
        self,
        regs: Regs,
        address: int,
        size: int,
        protection: int,
        flags: int,
        descriptor: int,
        *_: int,
    ) -> int:
        """Serve mmap2(): map zeroed memory, and return its address or a negative error number:
        -EINVAL where `size` is 0, -ENOMEM beyond 256 MiB in all, or where nothing can be mapped.

        The offset in a file is ignored, as no files are mapped.

        Args:
            regs: the registers at the call.
            address: with MAP_FIXED, where to map. Within memory of an earlier call, that memory is
                zeroed instead. Without MAP_FIXED the address is ignored.
            size: bytes, rounded up to whole pages.
            protection: is ignored: the memory can be read and written, and not executed.
            flags: MAP_FIXED and MAP_ANONYMOUS are looked at.
            descriptor: not negative, of a file: gives -EBADF without MAP_ANONYMOUS.
        """
        memory = self._cpu.memory
        size = -(-size // memory.page_size) * memory.page_size
        # of a file; what is anonymous has a bit, 0x800 on MIPS
        if _signed(descriptor) >= 0 and not flags & 0x820:
            return -EBADF
        if not size > 0 or self._taken + size > MOST_MEMORY:
            return -ENOMEM if size else -EINVAL
        try:
            if not flags & FIXED:
                address = memory.map_anywhere(size)
            elif any(
                start <= address and address + size <= start + length
                for start, length in self._maps.items()
            ):
                memory.write(address, bytes(size))
                return address
            else:
                memory.map(address, size, "rw")
        except KprobeError:
            return -ENOMEM
        self._maps[address] = size
        return address

    def _do_munmap(self, regs: Regs, address: int, size: int, *_: int) -> int:
        """Serve munmap(): unmap memory that mmap() has mapped, or a part of it; return 0.

        -EINVAL, and nothing is unmapped, where the range is not wholly in memory of one call of
        mmap().

        Args:
            regs: the registers at the call.
            address: of the first page; -EINVAL where it is no page's.
            size: bytes, rounded up to whole pages; -EINVAL for 0.
        """
        memory = self._cpu.memory
        size = -(-size // memory.page_size) * memory.page_size
        whole = next(
            (
                (start, length)
                for start, length in self._maps.items()
                if start <= address and address + size <= start + length
            ),
            None,
        )
        if whole is None or not size or address % memory.page_size:
            return -EINVAL  # only what these calls have mapped
        start, length = whole
        memory.unmap(address, size)
        del self._maps[start]
        for at, rest in (
            (start, address - start),
            (address + size, start + length - address - size),
        ):
            if rest:
                self._maps[at] = rest
        return 0

    def _do_mprotect(self, regs: Regs, address: int, size: int, protection: int, *_: int) -> int:
        """Serve mprotect(): change what the guest may do in memory, and return 0.

        -ENOMEM where the memory is not mapped, is the library's or a device's, does not begin at a
        page, or is more than 256 MiB.

        Args:
            regs: the registers at the call.
            address: of the first page.
            size: bytes, rounded up to whole pages; for 0 nothing is changed.
            protection: PROT_READ, PROT_WRITE and PROT_EXEC; other bits are ignored.
        """
        perms = "".join(
            letter for bit, letter in ((1, "r"), (2, "w"), (4, "x")) if protection & bit
        )
        if size > MOST_MEMORY:
            return -ENOMEM
        try:
            if size:
                self._cpu.memory.protect(address, size, perms)
        except KprobeError:
            return -ENOMEM
        return 0

    # the thread pointer

    def _do_arch_prctl(self, regs: Regs, what: int, value: int, *_: int) -> int:
        """Serve arch_prctl(ARCH_SET_FS): set the thread pointer, and return 0.

        Args:
            regs: the registers at the call.
            what: ARCH_SET_FS; other operations give -EINVAL.
            value: the thread pointer.
        """
        if what != 0x1002:  # ARCH_SET_FS
            return -EINVAL
        self._process.set_pointer(value)
        return 0

    def _do_set_tls(self, regs: Regs, value: int, *_: int) -> int:
        """Serve Arm's set_tls(): set the thread pointer to `value`, and return 0."""
        self._process.set_pointer(value)
        return 0

    def _do_set_thread_area(self, regs: Regs, value: int, *_: int) -> int:
        """Serve set_thread_area(): set the thread pointer, and return 0.

        Where the architecture's call takes a descriptor (i386), `value` is its address: the thread
        pointer is the descriptor's base, and 6 is written as its number. Its limit and flags are
        ignored. Elsewhere `value` is the thread pointer.
        """
        if self._convention is not None and self._convention.rules.descriptor:
            self._process.set_pointer(int.from_bytes(self._cpu.memory.read(value + 4, 4), "little"))
            self._cpu.memory.write(value, (6).to_bytes(4, "little"))
        else:
            self._process.set_pointer(value)
        return 0


def _signed(descriptor: int) -> int:
    """Return the C int in the low 32 bits of a register's value."""
    value = descriptor & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _names(table: str, private: Mapping[int, str]) -> Callable[[int], str]:
    """Make a function that gives the name of a system call for its number.

    Args:
        table: the architecture, as the `system_calls` package names it.
        private: further calls: number -> name.

    Returns:
        (number) -> name; "unknown" where there is no such call.

    Raises:
        Unsupported: the `system_calls` package cannot be imported.
    """
    # The package's own class asks for the name of this computer's system, which Windows lacks.
    try:
        tables = import_module(f"system_calls.tables.{table}")
        known: Mapping[str, int] = getattr(tables, f"syscalls_{table}")
    except (ImportError, AttributeError) as error:
        raise Unsupported(
            f"the list of Linux's system calls cannot be imported ({error})",
            hint="pip install 'kprobes[syscalls]'",
        ) from None
    numbers = {number: name for name, number in known.items()} | dict(private)
    return lambda number: numbers.get(number, "unknown")
