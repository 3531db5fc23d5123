"""Sets up a process as Linux does before its first instruction: the initial stack, and a thread
pointer with thread-local storage.

The stack is the System V ABIs': argc, argv, envp, the auxiliary vector, then what they point at.
Thread-local storage is laid out as the ABIs' supplements say: above the thread pointer or below it,
the block of the image loaded first next to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unicorn import x86_const

from ...arch._rows import row
from ...errors import BadArgument, GuestFault, Unsupported
from ...image import TLSDESC, Image, Placed, TlsBlock
from ...regs import Regs
from .cpu import UnicornCpu
from .functions import Functions
from .layout import PAGE
from .runstate import RunState
from .stackandexit import STACK_SIZE, StackAndExit
from .stubs import Stubs

if TYPE_CHECKING:
    from ...arch._linux import Linux, ThreadStorage

Text = str | bytes
# bytes on either side of the thread pointer at least: a C library's own data about the thread lie
# there, too
AROUND = 0x10000
RANDOM = bytes(range(0x5A, 0x6A))  # what AT_RANDOM points at: the same in every run
(
    _PHDR,
    _PHENT,
    _PHNUM,
    _PAGESZ,
    _BASE,
    _FLAGS,
    _ENTRY,
    _IDS,
    _PLATFORM,
    _HWCAP,
    _CLKTCK,
    _SECURE,
    _RANDOM,
    _EXECFN,
) = (3, 4, 5, 6, 7, 8, 9, (11, 12, 13, 14), 15, 16, 17, 23, 25, 31)
_TLS_SELECTOR = 0x33  # i386: the first of the three that Linux keeps for threads


class LinuxProcess:
    """The process that a machine's images are set up as: stack, auxiliary vector, thread pointer
    and thread-local storage.

    Attributes:
        pointer: the thread pointer; 0: nothing is set up.
        path: of the program, absolute, as the process knows it; b"": nothing is set up.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        functions: Functions,
        stubs: Stubs,
        stack_and_exit: StackAndExit,
    ) -> None:
        """Prepare; nothing is set up until start().

        Args:
            cpu: registers and memory.
            state: knows the page where runs end.
            functions: finds and enters functions.
            stubs: serve the imports that ask for thread-local storage.
            stack_and_exit: has the stack.
        """
        self._cpu = cpu
        self._state = state
        self._functions = functions
        self._stubs = stubs
        self._stack_and_exit = stack_and_exit
        self._main: tuple[Image, Placed] | None = None
        # (template, from the thread pointer, what its image was moved by)
        self._blocks: list[tuple[TlsBlock, int, int]] = []
        self._end = 0  # of the blocks, from the thread pointer, whichever way they grow
        self.pointer = self._room = 0
        self.path = b""

    @cached_property
    def _linux(self) -> Linux | None:
        """Facts about Linux's processes on this architecture; None: nothing."""
        from ...arch._linux import Linux

        return row(self._cpu.arch, Linux)

    @property
    def _threads(self) -> ThreadStorage | None:
        """The architecture's ABI for thread-local storage and the initial stack; None:
        nothing is known.
        """
        return self._linux.storage if self._linux is not None else None

    @property
    def snapshot_state(self) -> tuple[Any, ...]:
        """The state of the set-up, as a copy for a snapshot; setting it goes back to such a
        copy.
        """
        return (
            self._main,
            self._blocks.copy(),
            self._end,
            self.pointer,
            self._room,
            self.path,
        )

    @snapshot_state.setter
    def snapshot_state(self, then: tuple[Any, ...]) -> None:
        """Set the state of the set-up to what a snapshot has kept; guest memory is not touched."""
        self._main, blocks, self._end, self.pointer, self._room, self.path = then
        if self._blocks != blocks:
            self._blocks = blocks.copy()

    # --- images

    @property
    def reserved(self) -> tuple[list[Any], int]:
        """The blocks of thread-local storage that reserve() has laid out so far, and their end;
        setting it forgets later ones.
        """
        return [*self._blocks], self._end

    @reserved.setter
    def reserved(self, then: tuple[list[Any], int]) -> None:
        """Forget the blocks of thread-local storage that were laid out since `then`, which the
        property gave.
        """
        self._blocks, self._end = then

    def reserve(self, image: Image, bias: int) -> tuple[int, int, int]:
        """Reserve room for an image's thread-local storage, next to that of images before it.

        Args:
            image: the image.
            bias: bytes that its addresses in guest memory are above its own.

        Returns:
            (number of the image, from 1 on; offset of its block from the thread pointer; bytes
            that, by the ABI, are subtracted from every offset within a block). All are 0, and
            nothing is reserved, where it has no such storage, or the architecture's is not known.
        """
        block = image.tls_block
        threads = self._threads if block is not None else None
        if block is None or threads is None:
            return 0, 0, 0
        align = max(block.align, 1)
        if threads.below:
            at = -(-(block.memsz - self._end) // align) * -align
            self._end = at
        else:
            at = -(-(self._end if self._blocks else threads.first) // align) * align
            self._end = at + block.memsz
        self._blocks.append((block, at, bias))
        return len(self._blocks), at, threads.bias

    def loaded(self, image: Image, placed: Placed, main: bool) -> None:
        """Note that an image is in memory; where thread-local storage is set up already, fill the
        image's block.

        Called after reserve() for the same image.

        Args:
            image: the image.
            placed: where it is.
            main: True for the main image, the program.

        Raises:
            Unsupported: the storage that is set up has no room for the image's block.
        """
        if main:
            self._main = image, placed
        if self.pointer and image.tls_block is not None:
            self._fill(len(self._blocks) - 1)

    # --- starting

    def start(self, argv: Sequence[Text], env: Mapping[str, str], path: Text) -> None:
        """Set up the stack and the threads' storage; sp is then at the initial stack, and pc at the
        main image's entry, where it has one. `path` and `pointer` are set.

        Args:
            argv: arguments of the program.
            env: the environment: name -> value.
            path: of the program; of a relative one only the last part is used, behind "/".

        Raises:
            Unsupported: Linux has no processes on this architecture, or the storage that an earlier
                call has set up is too small for the images of now.
            BadArgument: a text cannot be an argument, or all are too long for the stack.
            NoMemory: there is no room for the storage.
        """
        if self._threads is None:
            raise Unsupported(
                f"no process can be made on {self._cpu.arch.name}",
                hint="call functions, or set registers and run()",
            )
        texts = (
            [*map(_encoded, argv)],
            [_encoded(f"{name}={value}") for name, value in env.items()],
            _encoded(path),
        )
        self._set_up_threads(self._threads)
        self.path = texts[2] if texts[2].startswith(b"/") else b"/" + os.path.basename(texts[2])
        self._cpu.regs.sp = self._write_stack(self._threads, *texts)
        if self._main is not None and self._main[1].entry is not None:
            self._enter(self._main[1].entry)

    def bring_kernel_code(self) -> None:
        """Map the page with code of the kernel's that processes call, on architectures that have
        one, unless something is mapped there.

        Raises:
            NoMemory: it cannot be mapped.
        """
        linux, memory = self._linux, self._cpu.memory
        code = linux.kernel_code if linux is not None else None
        if code is None:
            return
        end = code.page + code.size
        if any(start < end and code.page < stop for start, stop in memory.regions()):
            return
        memory.map(code.page, code.size, "rx")
        for address, data in code.parts.items():
            memory.write(address, data)

    def begin_run(self) -> None:
        """Put back what the program's file has in the words that the program relocates itself.

        Called before a run that begins where the guest stands. Nothing is done unless the program
        is a static one with such words and the guest stands at the program's entry: the start-up
        code comes next, and has to find what is in the file. Until then the words are relocated
        already, as the image was placed, so that functions can be called without a start.
        """
        if self._main is None:
            return
        image, placed = self._main
        if not image.own_words or placed.entry is None:
            return
        if (
            self._cpu.regs.pc
            != self._functions.target(placed.entry) & ~self._cpu.arch.pointers.mode_bits
        ):
            return
        arch = self._cpu.arch
        for address, value in image.own_words:
            self._cpu.memory.write(
                address + placed.base, value.to_bytes(arch.bits // 8, arch.order.value)
            )

    def _enter(self, entry: int) -> None:
        """Set pc to the program's entry, and the link register, if return addresses are there, to
        an address that ends the run.

        Where the program takes the link register for a function to call at its exit, it is set to
        0: there is none.

        Args:
            entry: address of the entry, as pointers have it.
        """
        m, state = self._cpu, self._state
        linkage, threads = m.arch.linkage, self._threads
        if threads is not None and threads.leaves_in_link and linkage is not None:
            linkage.set(m.regs, 0)  # no dynamic linker is there to be told of the exit
        elif linkage is not None and not linkage.pushed:
            # nobody returns from here, and who does all the same ends the run
            linkage.set(m.regs, state.exit | linkage.mode)
        self._functions.introduce(entry)
        m.regs.pc = self._functions.target(entry)

    # --- the stack

    def _write_stack(
        self, threads: ThreadStorage, argv: list[bytes], env: list[bytes], path: bytes
    ) -> int:
        """Write the initial stack, and return the stack pointer.

        Args:
            threads: what the architecture's ABI says of threads and the stack.
            argv: the program's arguments, its name first.
            env: "name=value" of the environment.
            path: the program's path.

        Raises:
            BadArgument: arguments and environment take more than a quarter of the stack.
        """
        m = self._cpu
        word, top = m.arch.bits // 8, self._stack_and_exit.stack_top
        if sum(map(len, argv)) + sum(map(len, env)) > STACK_SIZE // 4:
            raise BadArgument(
                "arguments and environment are too long for the stack",
                hint=f"{STACK_SIZE // 4:#x} bytes are a quarter of it",
            )

        def put(text: bytes) -> int:
            """Write bytes below what is on the stack, and return their address."""
            nonlocal top
            top -= len(text)
            m.memory.write(top, text)
            return top

        pointers = {
            name: put(text)
            for name, text in (
                (_EXECFN, path + b"\0"),
                (_PLATFORM, threads.platform + b"\0"),
                (_RANDOM, RANDOM),
            )
        }
        starts = [[put(text + b"\0") for text in texts] for texts in (argv, env)]
        words = [len(argv), *starts[0], 0, *starts[1], 0, *self._auxiliary(threads, pointers)]
        sp = (top - (len(words) + threads.frame) * word) // 16 * 16
        m.memory.write(
            sp,
            b"".join(
                (value & m.arch.mask).to_bytes(word, m.arch.order.value)
                for value in [0] * threads.frame + words
            ),
        )
        return sp

    def _auxiliary(self, threads: ThreadStorage, pointers: dict[int, int]) -> Iterable[int]:
        """Yield the words of the auxiliary vector: a type, then its value, at last 0 and 0.

        Args:
            threads: what the architecture's ABI says of threads.
            pointers: type -> address of what is on the stack.
        """
        vector = {
            _PAGESZ: self._cpu.memory.page_size,
            _BASE: 0,
            _FLAGS: 0,
            _CLKTCK: 100,
            _HWCAP: threads.hwcap,
            _SECURE: 0,
            **dict.fromkeys(_IDS, 0),
        }
        if self._main is not None:
            image, placed = self._main
            vector |= {_ENTRY: placed.entry or 0}
            if image.headers is not None:
                address, size, count = image.headers
                vector |= {_PHDR: address + placed.base, _PHENT: size, _PHNUM: count}
        for pair in (vector | pointers).items():
            yield from pair
        yield from (0, 0)

    # --- threads

    def _set_up_threads(self, threads: ThreadStorage) -> None:
        """Map thread-local storage, unless it is mapped already; fill it, and set the thread
        pointer to it.

        Calls of the imports that ask for the storage's address are answered here from then on,
        unless the user has bound these imports (Stubs.bound).

        Args:
            threads: what the architecture's ABI says of it.

        Raises:
            Unsupported: storage that was mapped before has no room for all images.
            NoMemory: there is no room for the storage.
        """
        m = self._cpu
        if not self.pointer:
            around = -(-(abs(self._end) + AROUND) // PAGE) * PAGE
            self.pointer = m.memory.map_anywhere(2 * around) + around
            self._room = around
        for number in range(len(self._blocks)):
            self._fill(number)
        if threads.itself:
            m.regs.set_word(self.pointer, self.pointer)
            # the thread's descriptor, which glibc takes it from, and musl's list of one thread
            m.regs.set_word(self.pointer + 2 * (m.arch.bits // 8), self.pointer)
        if threads.register == "gs":
            self._give_entry()
        self.set_pointer(self.pointer)
        for name, function in (
            (threads.call, self._address),
            (threads.read, self._read_pointer),
            (TLSDESC, self._described),
        ):
            self._stubs.bound.setdefault(name, function)

    def _give_entry(self) -> None:
        """Write the address of an entry for system calls to the fifth word behind the thread
        pointer, where glibc on i386 looks for it. Nothing is done where that word is not 0.

        The entry, INT 0x80, is written to a new page. glibc's dynamic linker would have it from the
        kernel.
        """
        m = self._cpu
        if not m.regs.word(self.pointer + 16):
            entry = m.memory.map_anywhere(PAGE)
            m.memory.write(entry, bytes.fromhex("cd80c3"))  # int 0x80; ret
            m.memory.protect(entry, PAGE, "rx")
            m.regs.set_word(self.pointer + 16, entry)

    def _fill(self, number: int) -> None:
        """Write the initial values of an image's thread-local variables to its block.

        Args:
            number: index of the block, in the order of reserve().

        Raises:
            Unsupported: there is no more room.
        """
        m = self._cpu
        block, at, bias = self._blocks[number]
        if not -self._room <= at <= self._room - block.memsz:
            raise Unsupported(
                "no room for the thread-local storage of one more image",
                hint="load it before process()",
            )
        m.memory.write(
            self.pointer + at,
            m.memory.read(block.addr + bias, block.filesz).ljust(block.memsz, b"\0"),
        )

    def set_pointer(self, value: int) -> None:
        """Set the thread pointer, wherever the architecture has it.

        On i386 that is the base of GS. Where the architecture has it in no register, nothing is
        done. The attribute `pointer` stays.

        Args:
            value: address.

        Raises:
            Unsupported: the architecture has none.
        """
        m, threads = self._cpu, self._threads
        if threads is None:
            raise Unsupported(f"{m.arch.name} has no thread pointer", hint="set registers")
        if threads.register == "gs":
            self._set_segment(value)
        elif threads.halves:
            upper, lower = threads.halves
            m.engine.uc.reg_write(m.register(upper), value >> 32)
            m.engine.uc.reg_write(m.register(lower), value & 0xFFFFFFFF)
        elif threads.register:
            m.regs[threads.register] = value

    def _set_segment(self, base: int) -> None:
        """Set GS of i386 to a descriptor of 4 GiB that begins at `base`, which is written to the
        guest's GDT.
        """
        m = self._cpu
        table = m.engine.uc.reg_read(x86_const.UC_X86_REG_GDTR)[1]
        low, high = base & 0xFFFFFF, base >> 24
        m.memory.write(
            table + (_TLS_SELECTOR & ~7),
            (0xCF_F3_000000_FFFF | low << 16 | high << 56).to_bytes(8, "little"),
        )
        m.engine.uc.reg_write(x86_const.UC_X86_REG_GS, 0)
        m.engine.uc.reg_write(x86_const.UC_X86_REG_GS, _TLS_SELECTOR)

    def missing(self, name: str) -> bool:
        """Return True for an import that start() would have served: it asks for thread-local
        storage, and start() was not called.

        Args:
            name: of the import.
        """
        threads = self._threads
        return (
            not self.pointer
            and threads is not None
            and name in (threads.call, threads.read, TLSDESC)
        )

    def _read_pointer(self, regs: Regs) -> int:
        """Serve the guest's call of the import that reads the thread pointer: return it, and set
        the register that also gets it, where the architecture has one.

        Args:
            regs: registers at the call.
        """
        if self._threads is not None and self._threads.also:
            regs[self._threads.also] = self.pointer
        return self.pointer

    @staticmethod
    def _described(regs: Regs) -> int:
        """Serve the guest's call of a TLS descriptor's function: return the offset from the thread
        pointer that is the descriptor's second word.

        Args:
            regs: registers at the call; the first argument is the descriptor's address.
        """
        word = regs.arch.bits // 8
        return int(regs.word(regs.arg(0) + word))

    def _address(self, regs: Regs) -> int:
        """Return what the guest's call of __tls_get_addr() or its like is to return: the address of
        a thread-local variable, or its offset from the thread pointer where the ABI's function
        returns that. A module's number and an offset say which variable.

        Args:
            regs: registers at the call; the first argument is the address of two words: an image's
                number, an offset in its block.

        Raises:
            GuestFault: there is no such image, or the two words cannot be read.
        """
        threads, word = self._threads, regs.arch.bits // 8
        assert threads is not None
        pair = threads.pair(regs) if threads.pair is not None else regs.arg(0)
        number, offset = regs.word(pair), regs.word(pair + word)
        if not 0 < number <= len(self._blocks):
            raise GuestFault(
                f"thread-local variable of image {number}, which there is not",
                address=pair,
                pc=regs.pc,
                access="read",
            )
        _, at, _ = self._blocks[number - 1]
        place = at + offset + threads.bias  # from the thread pointer
        return int(place if threads.from_pointer else self.pointer + place) & self._cpu.arch.mask


def _encoded(text: Text) -> bytes:
    """Return a text as the bytes that the stack has, without the NUL at its end: str in the
    encoding of file names, bytes as they are.

    Raises:
        BadArgument: it is no text, or has a zero byte.
    """
    try:
        data = os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        raise BadArgument(
            f"{text!r} is no argument of a program", hint="pass str or bytes"
        ) from None
    if b"\0" in data:
        raise BadArgument(f"{text!r} has a zero byte", hint="arguments end at one")
    return data
