"""How an architecture's processes live on Linux: the row that `arch/<family>/linux.py` has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from attrs import field, frozen

from ..regs import Regs

__all__ = [
    "CallRules",
    "KernelCode",
    "KernelRegisters",
    "Linux",
    "MemoryCalls",
    "ThreadStorage",
]


@frozen(kw_only=True)
class MemoryCalls:
    """How a process asks Linux for memory (syscall(2), "Architecture calling conventions").

    Attributes:
        code: the system call instruction, as its bytes lie in memory.
        number: register of the call's number; "" where `code` ends before a byte that holds it.
        args: registers of the arguments.
        result: register of the result.
        map: number of mmap() or mmap2().
        unmap: number of munmap().
        anonymous: value of MAP_ANONYMOUS.
        on_stack: byte offset of the fifth argument from the stack pointer; 0: `args` has all six.
        mapped_by_block: True where `map` takes the address of a block of its arguments.
        delay: bytes that must follow `code`: the instruction in its delay slot.
    """

    code: bytes
    number: str
    args: tuple[str, ...]
    result: str
    map: int
    unmap: int
    anonymous: int = 0x20
    on_stack: int = 0
    mapped_by_block: bool = False
    delay: bytes = b""


@frozen(kw_only=True)
class CallRules:
    """Facts by which a process's system calls are served, beside the registers of `MemoryCalls`
    (syscall(2), "Architecture calling conventions").

    Attributes:
        table: what the list of numbers (the package system_calls) calls the architecture.
        number: register of the call's number where the instruction does not hold it; "":
            `MemoryCalls.number`.
        failed: what tells of an error: "" (a negative result), "a3", "so" (of CR0), "carry".
        mmap_by_block: True where mmap() gets the address of a block of its arguments, and mmap2()
            does not.
        descriptor: True where set_thread_area() gets the address of a descriptor: its number, then
            the base.
        private: calls that are in no list: number -> name.
    """

    table: str
    number: str = ""
    failed: str = ""
    mmap_by_block: bool = False
    descriptor: bool = False
    private: Mapping[int, str] = field(factory=dict)


@frozen(kw_only=True)
class ThreadStorage:
    """How code finds thread-local storage: the ABI's supplement on it.

    Attributes:
        register: the thread pointer; "" where only the kernel has it.
        halves: registers of its upper and its lower 32 bits, where no single register holds it.
        below: True where blocks lie below the thread pointer.
        first: bytes from it to the first block.
        itself: True where the word that it points at is its own value.
        bias: what words that hold offsets in a block leave out.
        frame: words below argc that belong to the stack frame of the function called first.
        call: name of the function that programs call for a variable's address.
        read: name of the function that programs call for the thread pointer; "": none.
        pair: address of the two words (image's number, offset) that `call` was called with; None:
            its first argument.
        from_pointer: True where `call` returns the distance from the thread pointer.
        also: register that gets what `read` returns, besides the usual one; "": none.
        leaves_in_link: True where the link register at the entry holds a function that the program
            calls when it exits; 0: none.
        platform: AT_PLATFORM of the auxiliary vector.
        hwcap: AT_HWCAP of the auxiliary vector.
    """

    register: str
    halves: tuple[str, ...] = ()
    below: bool = False
    first: int = 0
    itself: bool = False
    bias: int = 0
    frame: int = 0
    call: str = "__tls_get_addr"
    read: str = ""
    pair: Callable[[Regs], int] | None = None
    from_pointer: bool = False
    also: str = ""
    leaves_in_link: bool = False
    platform: bytes = b""
    hwcap: int = 0


@frozen(kw_only=True)
class KernelCode:
    """Code that the kernel maps into every process at fixed addresses (Arm's user helpers).

    Attributes:
        page: address of the memory that has it.
        size: bytes of that memory.
        parts: address -> the bytes there.
    """

    page: int
    size: int
    parts: Mapping[int, bytes]


@frozen(kw_only=True)
class KernelRegisters:
    """The structure in which the kernel gives registers to programs: <asm/ptrace.h>.

    Attributes:
        marks: members of which no other architecture's structure has one.
        names: member -> register, where the register has another name than the member.
        array: member that is an array of registers; the register of element n is `prefix` and n.
        prefix: of the registers in `array`.
    """

    marks: tuple[str, ...]
    names: Mapping[str, str] = field(factory=dict)
    array: str = ""
    prefix: str = ""

    def register(self, member: str) -> str:
        """Return the name, or the alias, of the register that a member of the structure holds.

        The name is not checked: it may be none of the architecture's registers (a member such as
        orig_rax).

        Args:
            member: as C writes it: "ip", "regs[3]".
        """
        name, bracket, number = member.partition("[")
        if bracket and name == self.array:
            member = f"{self.prefix}{number.removesuffix(']')}"
        return self.names.get(member, member)


@frozen(kw_only=True)
class Linux:
    """The interface of Linux on an architecture.

    Attributes:
        memory: how a process asks for memory; None: not known.
        calls: how its other system calls are served; None: not known.
        exits: numbers of exit() and exit_group(); (): not known.
        clone: number of clone(); None: not known.
        clone_flags: which argument of clone() has its flags, from 0 on.
        trap: the signal that `Arch.traps` raises in a process, and bytes from the trap to the pc
            that it shows; None where a trap in text is no way to stop: with delay slots, and with
            conditions that skip it (Thumb's IT).
        storage: thread-local storage; None: no process can be made.
        kernel_code: what processes call in the kernel's own page; None: there is no such page.
        kernel_registers: how programs made for the kernel find registers; None: not known.
        wide_times: True where a 32-bit process's vDSO only has a clock_gettime() with a struct timespec
            of 64-bit numbers.
        event_names: registers in Linux's kprobe events, which `Registers` must know.
    """

    MODULE: ClassVar[str] = "linux"

    memory: MemoryCalls | None = None
    calls: CallRules | None = None
    exits: tuple[int, ...] = ()
    clone: int | None = None
    clone_flags: int = 0
    trap: tuple[int, int] | None = None
    storage: ThreadStorage | None = None
    kernel_code: KernelCode | None = None
    kernel_registers: KernelRegisters | None = None
    wide_times: bool = False
    event_names: tuple[str, ...] = ()
