"""A Debian kernel in QEMU, with probes in it, and its own kprobes to compare with.

    tests/fetch_kernel FOLDER && export KPROBES_QEMU_DIR=FOLDER/bin
    python examples/kernel.py FOLDER [arm64 | x86_64]

FOLDER has kernels, their modules and QEMU: about 100 MB from Debian. The kernel's first and only program is
kernel_init.c: it opens, reads, loads a module when it is told to.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
import time
from pathlib import Path

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, Program, QemuMachine, Regs
from kprobes.image import read_elf

HERE = Path(__file__).resolve().parent
READ, WRITE, WORK, INSERT, REMOVE, READS, BOTH = range(1, 8)  #: what kernel_init.c does
DEBIAN = {"arm64": "arm64", "x86_64": "amd64"}
BOARDS = {"arm64": ["-M", "virt", "-cpu", "max,pauth=off,sve=off,sme=off,lpa2=off"],
          "x86_64": ["-M", "pc", "-cpu", "max"]}
QUIET = ["-m", "512", "-nic", "none", "-display", "none", "-serial", "none", "-monitor", "none", "-no-reboot"]
GREETING = b"Hello from the first process of a real kernel.\n"
EVENTS = b"p:reads vfs_read\np:opens do_sys_openat2\nr:returns vfs_read\n"
PROGRAM = """
#include <kprobes/bpf.h>
u64 hits, asked;
SEC("kprobe/vfs_read") int on_read(struct pt_regs *ctx) { hits += 1; asked += PT_REGS_PARM3(ctx); return 0; }
"""
NO_EVENTS = b"-:reads\n-:opens\n-:returns\n"
STACKS = 14  #: kernel stacks have 16 KiB, aligned: which one tells the task


def archive(files: dict[str, bytes]) -> bytes:
    """An initramfs: a cpio archive ("newc") of executable files."""
    out = b""
    for name, data in {**files, "TRAILER!!!": b""}.items():
        numbers = (1, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name.encode() + b"\0"
        out += head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
    return out


class Kernel:
    """A kernel that stands, once wait() has returned, where its program asks what to do."""

    def __init__(self, folder: Path, arch: str, cpus: int = 1) -> None:
        self.init = HERE / f"kernel_init.{arch}"
        found = folder / DEBIAN[arch]
        module = next(found.glob("usr/lib/modules/*/kernel/drivers/net/dummy.ko.xz"))
        with tempfile.NamedTemporaryFile(suffix=".cpio") as initramfs:
            initramfs.write(archive({"init": self.init.read_bytes(), "greeting": GREETING,
                                     "dummy.ko": lzma.decompress(module.read_bytes())}))
            initramfs.flush()
            self.m = QemuMachine.system(
                [*BOARDS[arch], *QUIET, "-kernel", str(next(found.glob("boot/vmlinuz-*"))), "-initrd", initramfs.name,
                 "-smp", str(cpus), "-append", "nokaslr quiet panic=-1"], arch=arch)
        self.m.cpu_task = lambda regs: regs.sp >> STACKS
        symbols = {s.name: s.address for s in read_elf(self.init).symbols}
        self.ask, self.answer, self.box = symbols["ask"], symbols["answer"], symbols["box"]

    def wait(self) -> None:
        """Until the program asks what to do next."""
        self.m.run(until=self.ask, timeout=120)

    def tell(self, what: int, count: int = 0, name: str = "", text: bytes = b"") -> None:
        """What to do: it begins when the machine runs."""
        words = b"".join(word.to_bytes(8, "little") for word in (what, count, 0))
        self.m.write(self.box, words + name.encode().ljust(256, b"\0") + text.ljust(512, b"\0"))

    def answered(self) -> int:
        """Until it is done: what the program's last system call said."""
        self.m.run(until=self.answer, timeout=120)
        return int.from_bytes(self.m.read(self.box + 16, 8), "little", signed=True)

    def do(self, what: int, count: int = 0, name: str = "", text: bytes = b"") -> int:
        """All of that."""
        self.tell(what, count, name, text)
        result = self.answered()
        self.wait()
        if result < 0:
            raise OSError(-result, f"the guest's kernel refuses {name or what}")
        return result

    def file(self, name: str) -> bytes:
        """A file of the guest's."""
        return self.m.read(self.box + 3 * 8 + 256 + 512, self.do(READ, name=name))

    def load_symbols(self, only: str = "") -> None:
        """Its own list of symbols, or a module's."""
        lines = [line for line in self.file("/proc/kallsyms").splitlines() if only.encode() in line]
        with tempfile.NamedTemporaryFile(suffix=".kallsyms") as file:
            file.write(b"\n".join(lines))
            file.flush()
            self.m.symbols.load(file.name)


def file_name(regs: Regs) -> str:
    """do_sys_openat2's second argument: a string of a program's, which may not be in memory yet."""
    try:
        return regs.read_cstr(regs.arg(1)).decode()
    except GuestFault:
        return "?"


class Seen:
    """What probes have seen of some work: hits (of vfs_read, of do_sys_openat2, returns of vfs_read), names of files,
    sizes that were asked for and read, the stack of a read."""

    def __init__(self) -> None:
        self.hits: list[int] = []
        self.names: set[str] = set()
        self.asked: list[int] = []
        self.sizes: list[int] = []
        self.stack: list[str] = []


def count(kernel: Kernel, rounds: int, what: int = WORK) -> Seen:
    """Work with probes."""
    m, seen = kernel.m, Seen()
    kernel.tell(what, rounds)
    m.run(until="do_sys_openat2", timeout=60)  # in the kernel, in a system call: there it can be asked for memory
    with Kprobes(m) as k:

        def on_read(p: Kprobe, regs: Regs) -> None:
            seen.asked.append(regs.arg(2))
            seen.stack = seen.stack or [m.symbols.describe(address) for address in k.stack_trace(regs)]

        reads = Kprobe(symbol_name="vfs_read", pre_handler=on_read)
        opens = Kprobe(symbol_name="do_sys_openat2", pre_handler=lambda p, regs: seen.names.add(file_name(regs)))
        returns = Kretprobe(symbol_name="vfs_read", handler=lambda ri, regs: seen.sizes.append(regs.return_value))
        k.register_kprobes([reads, opens])
        k.register(returns)
        kernel.answered()
        kernel.wait()
        assert reads.nmissed == opens.nmissed == returns.nmissed == 0
        seen.hits = [reads.nhit, opens.nhit, returns.nreturned]
        return seen


def count_by_itself(kernel: Kernel, rounds: int, what: int = WORK) -> list[int]:
    """The same by the kernel's own kprobes."""
    kernel.do(WRITE, len(EVENTS), "/tracing/kprobe_events", EVENTS)
    kernel.do(WRITE, 1, "/tracing/events/kprobes/enable", b"1")
    kernel.do(what, rounds)
    kernel.do(WRITE, 1, "/tracing/events/kprobes/enable", b"0")
    profile = dict(line.split()[:2] for line in kernel.file("/tracing/kprobe_profile").decode().splitlines())
    kernel.do(WRITE, len(NO_EVENTS), "/tracing/kprobe_events", NO_EVENTS)
    # do_sys_openat2 is hit once more, by whoever opens the file that switches the events off
    return [int(profile["reads"]), int(profile["opens"]) - 1, int(profile["returns"])]


def without_probes(kernel: Kernel, rounds: int) -> float:
    """Seconds of the same reads without a probe."""
    kernel.tell(READS, rounds)
    kernel.m.run(until="do_sys_openat2", timeout=60)
    before = time.monotonic()
    kernel.answered()
    took = time.monotonic() - before
    kernel.wait()
    return took


def in_the_kernel(kernel: Kernel, rounds: int) -> tuple[int, int, float]:
    """A program counts reads in the guest, which never stops: (hits, bytes that were asked for, seconds)."""
    m, program = kernel.m, Program.from_c(PROGRAM)
    kernel.tell(READS, rounds)
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k, k.attach(program):
        before = time.monotonic()
        kernel.answered()
        took = time.monotonic() - before
        kernel.wait()
        return program.variables["hits"], program.variables["asked"], took


def module(kernel: Kernel) -> tuple[list[int], bool]:
    """A network driver comes, is probed, and goes: how often its statistics were asked for, and its end; whether its
    probes are gone."""
    m, asked = kernel.m, list[int]()
    kernel.do(INSERT, name="/dummy.ko")
    kernel.load_symbols("[dummy]")
    kernel.tell(READ, name="/proc/net/dev")
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="dummy_get_stats64", pre_handler=lambda p, regs: asked.append(regs.arg(0)))
        leaving = Kprobe(symbol_name="dummy_cleanup_module")
        k.register_kprobes([probe, leaving])
        kernel.answered()
        kernel.wait()
        kernel.do(REMOVE, name="dummy")
        m.unload_module("dummy")
        return [len(asked), leaving.nhit], probe.gone and leaving.gone


def main(folder: str, arch: str = "arm64", rounds: str = "200") -> None:
    """Boot, work, compare."""
    start = time.monotonic()
    kernel = Kernel(Path(folder), arch)
    with kernel.m as m:
        kernel.wait()
        print(f"{arch}: the first process runs after {time.monotonic() - start:.1f} s")
        kernel.load_symbols()
        print(f"{len(m.symbols)} symbols of its own list after {time.monotonic() - start:.1f} s")
        before = time.monotonic()
        seen = count(kernel, int(rounds))
        took = time.monotonic() - before
        print(f"files opened: {', '.join(sorted(seen.names))}; {sum(seen.sizes)} of {sum(seen.asked)} bytes read")
        print("a read:", " < ".join(seen.stack))
        print(f"hits of vfs_read, do_sys_openat2, returns: {seen.hits}; {sum(seen.hits) / took:.0f} a second")
        print(f"by the kernel's own kprobes: {count_by_itself(kernel, int(rounds))}")
        plain = without_probes(kernel, 500 * int(rounds))
        found, asked, took = in_the_kernel(kernel, 500 * int(rounds))
        print(f"counted by a program in the kernel: {found} hits, {asked} bytes; {found / took:.0f} a second, "
              f"{found / plain:.0f} without it")
        hits, gone = module(kernel)
        print(f"the module's functions: {hits} hits; {'gone' if gone else 'still there'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
