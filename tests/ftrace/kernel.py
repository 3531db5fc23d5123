"""A guest that looks like a kernel to scripts that trace one: its functions' names, and calls of them.

What a process does (it forks, opens a file, makes a link) is a call of the guest's function for that.
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from kprobes import Kprobes, UnicornMachine

BASE, DATA = 0x100000, 0x400000
SIZE = 64  #: bytes of a function
#: functions that scripts name; two are called name_show, as functions of one name there are in a kernel
FUNCTIONS = ("kernel_clone", "do_exit", "vfs_read", "vfs_open", "vfs_symlink", "do_sys_open", "do_sys_openat2",
             "tracefs_create_dir", "inet_csk_accept", "name_show", "name_show", "trace_kernel.isra.0")
OTHERS = 300  #: more of them: a script wants 256 to probe


@frozen
class Processor:
    """One that the scripts know.

    Attributes:
        arch: its name here.
        nop, back: instructions of a function that returns at once.
    """

    arch: str
    nop: bytes
    back: bytes


def _processor(arch: str, nop: str, back: str) -> Processor:
    return Processor(arch, bytes.fromhex(nop), bytes.fromhex(back))


#: what `uname -m` says -> the processor
PROCESSORS = {
    "x86_64": _processor("x86_64", "90", "c3"),
    "i686": _processor("i386", "90", "c3"),
    "aarch64": _processor("arm64", "1f2003d5", "c0035fd6"),
    "armv7l": _processor("arm", "0000a0e1", "1eff2fe1"),
    "mips": _processor("mips", "00000000", "03e00008 00000000"),
    "mips64": _processor("mips64", "00000000", "03e00008 00000000"),
    "ppc": _processor("ppc", "60000000", "4e800020"),
    "ppc64": _processor("ppc64", "60000000", "4e800020"),
    "ppc64le": _processor("ppc64le", "00000060", "2000804e"),
    "s390x": _processor("s390x", "0707", "07fe"),
}


class Kernel:
    """The guest, its Kprobes, and their files.

    Attributes:
        names: of its functions, at BASE + SIZE * index.
        k: the Kprobes.
    """

    def __init__(self, uname: str) -> None:
        processor = PROCESSORS[uname]
        self.names = [*FUNCTIONS, *(f"function_{n}" for n in range(OTHERS))]
        before = SIZE - len(processor.back)
        code = processor.nop * (before // len(processor.nop)) + processor.back
        machine = UnicornMachine.from_code(code * len(self.names), arch=processor.arch, base=BASE)
        machine.map(DATA, 0x4000, "rw")
        for n, name in enumerate(self.names):
            machine.symbols.add(name, BASE + SIZE * n, SIZE)
        machine.symbols.add("_sdata", DATA, 0x1000, kind="object")
        machine.symbols.add("linux_proc_banner", DATA + 0x1000, 0x1000, kind="object")
        # without the line's end, which a record shows escaped: a guest's text cannot begin a line
        machine.write(DATA + 0x1000, Path("/proc/version").read_bytes().strip()[:0xFFF])
        self.machine, self.k = machine, Kprobes(machine)
        self.files = self.k.events.files

    def kallsyms(self) -> str:
        """The file of its symbols."""
        digits = self.machine.arch.bits // 4
        return "".join(f"{symbol.address:0{digits}x} {'t' if symbol.kind == 'func' else 'd'} {symbol.name}\n"
                       for symbol in sorted(self.machine.symbols, key=lambda symbol: symbol.address))

    def call(self, name: str, *args: int | bytes) -> None:
        """Call a function."""
        self.machine.call(BASE + SIZE * self.names.index(name), *args)

    def close(self) -> None:
        self.k.close()
        self.machine.close()
