"""A stub of GDB's remote protocol that shows a machine, stopped at a hit, to gdb.

gdb then judges the same memory and registers that the library reads, also variables that are not
set yet, on every architecture in FEATURES.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from kprobes import KprobeError

HERE = Path(__file__).resolve().parent
PAGE = 4096
TYPES = {
    80: ' type="i387_ext"',
    128: ' type="uint128"',
}  #: bits of a register -> its type; others have a usual one
PATIENCE = 120  #: seconds in which gdb has to show a stop


@frozen
class Shown:
    """A register as gdb's manual names it ("Standard Target Features").

    Attributes:
        name: gdb's name.
        bits: its size.
        own: the library's name, or the names of its halves, the upper one first; "": the machine
            has none, and 0 is shown.
    """

    name: str
    bits: int
    own: str = ""


def _numbered(name: str, numbers: range, bits: int, own: str | None = None) -> list[Shown]:
    """Registers whose names are a word and a number.

    Args:
        name: gdb's word.
        numbers: of the registers.
        bits: size of each.
        own: the library's word; None: the same; "": the machine has no such registers.
    """
    own = name if own is None else own
    return [Shown(f"{name}{n}", bits, f"{own}{n}" if own else "") for n in numbers]


def _named(names: str, bits: int) -> list[Shown]:
    """Registers that gdb and the library call the same.

    Args:
        names: with spaces between them.
        bits: size of each.
    """
    return [Shown(name, bits, name) for name in names.split()]


def _absent(names: str, bits: int) -> list[Shown]:
    """Registers that gdb wants and the machine does not have.

    Args:
        names: with spaces between them.
        bits: size of each.
    """
    return [Shown(name, bits) for name in names.split()]


def _x86(general: str, pc: str, bits: int, vectors: int) -> dict[str, list[Shown]]:
    """Return {feature: registers} of x86.

    Args:
        general: names of the general registers, with spaces between them, in gdb's order.
        pc: name of the instruction pointer.
        bits: size of these.
        vectors: how many registers of SSE there are.
    """
    core = [
        *_named(general, bits),
        Shown(pc, bits, pc),
        Shown("eflags", 32, "rflags" if bits == 64 else "eflags"),
    ]
    core += _named("cs ss ds es fs gs", 32) + _numbered("st", range(8), 80)
    core += _absent("fctrl fstat ftag fiseg fioff foseg fooff fop", 32)
    found = {
        "i386.core": core,
        "i386.sse": [*_numbered("xmm", range(vectors), 128), Shown("mxcsr", 32, "mxcsr")],
    }
    if bits == 64:
        found["i386.segments"] = _named("fs_base gs_base", 64)
    return found


def _mips(bits: int) -> dict[str, list[Shown]]:
    """Return {feature: registers} of MIPS with general registers of some bits."""
    return {
        "mips.cpu": [*_numbered("r", range(32), bits), *_named("lo hi pc", bits)],
        "mips.cp0": _absent("status badvaddr cause", bits),
        "mips.fpu": [*_numbered("f", range(32), bits), Shown("fcsr", 32, "fcsr"), Shown("fir", 32)],
    }


def _powerpc(bits: int) -> dict[str, list[Shown]]:
    """Return {feature: registers} of PowerPC with general registers of some bits."""
    return {
        "power.core": [
            *_numbered("r", range(32), bits),
            *_named("pc msr", bits),
            Shown("cr", 32, "cr"),
            *_named("lr ctr", bits),
            Shown("xer", 32, "xer"),
        ],
        "power.fpu": [*_numbered("f", range(32), 64), Shown("fpscr", 64, "fpscr")],
    }


def _arm(doubles: int) -> dict[str, list[Shown]]:
    """Return {feature: registers} of 32-bit Arm with d0 and so on, `doubles` of them."""
    return {
        "arm.core": [*_numbered("r", range(13), 32), *_named("sp lr pc cpsr", 32)],
        "arm.vfp": [*_numbered("d", range(doubles), 64), Shown("fpscr", 32, "fpscr")],
    }


def _riscv(bits: int) -> dict[str, list[Shown]]:
    """Return {feature: registers} of RISC-V with general registers of some bits."""
    return {
        "riscv.cpu": [*_numbered("x", range(32), bits), Shown("pc", bits, "pc")],
        "riscv.fpu": [*_numbered("f", range(32), 64), *_named("fflags frm fcsr", 32)],
    }


ARM64 = {
    "aarch64.core": [
        *_numbered("x", range(31), 64),
        *_named("sp pc", 64),
        Shown("cpsr", 32, "nzcv"),
    ],
    "aarch64.fpu": [*_numbered("v", range(32), 128), *_named("fpsr fpcr", 32)],
}
S390X = {
    "s390.core": [
        Shown("pswm", 64, "pswm"),
        Shown("pswa", 64, "pc"),
        *_numbered("r", range(16), 64),
    ],
    "s390.acr": _numbered("acr", range(16), 32, "a"),
    "s390.fpr": [Shown("fpc", 32, "fpc"), *_numbered("f", range(16), 64)],
    "s390.vx": [
        *(Shown(f"v{n}l", 64, f"v{n}_low") for n in range(16)),
        *(Shown(f"v{n}", 128, f"f{n} v{n}_low") for n in range(16, 32)),
    ],
}
M68K = {
    "m68k.core": [
        *_numbered("d", range(8), 32),
        *_numbered("a", range(6), 32),
        Shown("fp", 32, "a6"),
        Shown("sp", 32, "a7"),
        Shown("ps", 32, "ccr"),
        Shown("pc", 32, "pc"),
    ]
}
AMD64 = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15"
#: architecture -> (gdb's name of it, feature without "org.gnu.gdb." -> registers)
FEATURES: dict[str, tuple[str, dict[str, list[Shown]]]] = {
    "x86_64": ("i386:x86-64", _x86(AMD64, "rip", 64, 16)),
    "i386": ("i386", _x86("eax ecx edx ebx esp ebp esi edi", "eip", 32, 8)),
    "arm64": ("aarch64", ARM64),
    "arm64be": ("aarch64", ARM64),
    "arm": ("arm", _arm(32)),
    "armeb": ("arm", _arm(32)),
    "riscv64": ("riscv:rv64", _riscv(64)),
    "riscv32": ("riscv:rv32", _riscv(32)),
    "mips": ("mips:isa32r2", _mips(32)),
    "mipsel": ("mips:isa32r2", _mips(32)),
    "mips64": ("mips:isa64r2", _mips(64)),
    "mips64el": ("mips:isa64r2", _mips(64)),
    "ppc": ("powerpc:common", _powerpc(32)),
    "ppc64": ("powerpc:common64", _powerpc(64)),
    "ppc64le": ("powerpc:common64", _powerpc(64)),
    "s390x": ("s390:64-bit", S390X),
    "m68k": ("m68k", M68K),
}


def debugger() -> str | None:
    """Return the path of a gdb for all architectures; None: none is installed."""
    return shutil.which("gdb-multiarch")


def start_gdb(task: Path, said: int | None = None) -> subprocess.Popen[bytes]:
    """Start gdb for a task of value_gdb.py.

    Args:
        task: the task's file.
        said: file descriptor to which gdb prints; None: what it prints is dropped.
    """
    gdb = debugger()
    assert gdb is not None
    into = subprocess.DEVNULL if said is None else said
    return subprocess.Popen(
        [gdb, "-nx", "-batch", "-x", str(HERE / "value_gdb.py")],
        stdout=into,
        stderr=into,
        env=os.environ | {"VALUES_TASK": str(task)},
        cwd=task.parent,
    )


def run_gdb(task: Path) -> None:
    """Run gdb for a task of value_gdb.py, and wait until it ends.

    Raises:
        subprocess.TimeoutExpired: gdb takes longer than PATIENCE.
    """
    start_gdb(task).wait(PATIENCE)


def description(arch: str) -> str:
    """Return gdb's target description of an architecture, in XML."""
    name, features = FEATURES[arch]
    parts = []
    for feature, registers in features.items():
        lines = "".join(
            f'<reg name="{each.name}" bitsize="{each.bits}"{TYPES.get(each.bits, "")}/>'
            for each in registers
        )
        parts.append(f'<feature name="org.gnu.gdb.{feature}">{lines}</feature>')
    head = '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">'
    start = f"<target><architecture>{name}</architecture><osabi>GNU/Linux</osabi>"
    return f"{head}{start}{''.join(parts)}</target>"


class GdbLeft(Exception):
    """Raised where gdb has closed its connection."""


@define
class _Session:
    """One gdb, from its start to its end.

    Attributes:
        process: gdb.
        link: the connection to gdb.
        out: file to which gdb writes a line of JSON for each stop.
        keys: names of the stops that gdb was shown, in order.
        waiting: True where gdb has continued, and waits for the next stop.
        input: bytes from gdb that are no whole packet yet.
    """

    process: subprocess.Popen[bytes]
    link: socket.socket
    out: Path
    keys: list[str] = field(factory=list)
    waiting: bool = False
    input: bytes = b""


class GdbStub:
    """gdb's view of a machine at its hits.

    A gdb that fails at a stop is replaced by another one at the next stop.
    """

    def __init__(self, machine: Any, program: Path, folder: Path) -> None:
        """Remember what gdb will be shown. It is started at the first stop.

        Args:
            machine: the machine.
            program: file of the program, which gdb reads.
            folder: for files that are shared with gdb.
        """
        self.machine = machine
        self.program = program
        self.folder = folder
        self.registers = [each for part in FEATURES[machine.arch.name][1].values() for each in part]
        self.description = description(machine.arch.name)
        self._sessions: list[_Session] = []
        self._open: _Session | None = None
        self._regs: Any = None

    def stop(self, key: str, regs: Any) -> None:
        """Show a hit to gdb, and wait until gdb has seen it.

        Args:
            key: the stop's name in answers().
            regs: the hit's registers.
        """
        self._regs = regs
        session = self._open or self._start()
        session.keys.append(key)
        try:
            if session.waiting:
                self._send(session, "T05thread:1;")
                session.waiting = False
            self._serve(session)
        except (GdbLeft, OSError):
            self._end(session)

    def answers(self) -> dict[str, Any]:
        """End gdb, and return what it has shown: a stop's key -> that of the stop.

        Stops at which gdb has failed are missing.

        Raises:
            RuntimeError: gdb has failed at every stop.
        """
        if self._open is not None:
            if self._open.waiting:
                self._send(self._open, "W00")
            self._end(self._open)
        found = {}
        for session in self._sessions:
            lines = session.out.read_text().splitlines() if session.out.exists() else []
            found.update(zip(session.keys, map(json.loads, lines), strict=False))
        if self._sessions and not found:
            raise RuntimeError(f"gdb shows nothing: {(self.folder / 'said0').read_text()[-2000:]}")
        return found

    def _start(self) -> _Session:
        """Start a gdb, and wait until it connects.

        Raises:
            OSError: it does not connect within PATIENCE.
        """
        number = len(self._sessions)
        path, task, out = (self.folder / f"{name}{number}" for name in ("link", "task", "out"))
        task.write_text(json.dumps({"file": str(self.program), "stub": str(path), "out": str(out)}))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            listener.settimeout(PATIENCE)
            with (self.folder / f"said{number}").open("wb") as said:
                process = start_gdb(task, said.fileno())
            link, _ = listener.accept()
        link.settimeout(PATIENCE)
        self._open = _Session(process, link, out)
        self._sessions.append(self._open)
        return self._open

    def _end(self, session: _Session) -> None:
        """Close the connection to a gdb, and wait until it ends, or end it."""
        self._open = None
        session.link.close()
        try:
            session.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            session.process.kill()
            session.process.wait()

    def _serve(self, session: _Session) -> None:
        """Answer packets until gdb continues.

        Raises:
            GdbLeft, OSError: gdb has closed the connection, or is silent for PATIENCE.
        """
        for packet in self._packets(session):
            if packet.startswith(("c", "vCont;c")):
                session.waiting = True
                return
            self._send(session, self._answer(packet))

    @staticmethod
    def _packets(session: _Session) -> Iterator[str]:
        """Yield the contents of packets as gdb sends them, and acknowledge each.

        Raises:
            GdbLeft, OSError: gdb has closed the connection, or is silent for PATIENCE.
        """
        while True:
            found = re.match(rb"[+-]*\$([^#]*)#..", session.input, re.DOTALL)
            if found is None:
                data = session.link.recv(65536)
                if not data:
                    raise GdbLeft
                session.input += data
                continue
            session.input = session.input[found.end() :]
            session.link.sendall(b"+")
            yield found[1].decode("latin-1")

    @staticmethod
    def _send(session: _Session, text: str) -> None:
        """Send a packet with its checksum."""
        data = text.encode("latin-1")
        session.link.sendall(b"$%s#%02x" % (data, sum(data) & 255))

    def _answer(self, packet: str) -> str:
        """Return the answer to a packet; "": the packet is not supported."""
        if packet.startswith("qSupported"):
            return "PacketSize=4000;qXfer:features:read+"
        if packet.startswith("qXfer:features:read:target.xml:"):
            start, size = (int(each, 16) for each in packet.rpartition(":")[2].split(","))
            part = self.description[start : start + size]
            return ("m" if start + size < len(self.description) else "l") + part
        if packet == "?":
            return "T05thread:1;"
        if packet == "g":
            return "".join(map(self._register, self.registers))
        if packet.startswith("p"):
            return self._register(self.registers[int(packet[1:], 16)])
        if packet.startswith("m"):
            address, size = (int(each, 16) for each in packet[1:].split(","))
            return self._memory(address, size).hex() or "E01"
        fixed = {
            "qfThreadInfo": "m1",
            "qsThreadInfo": "l",
            "qC": "QC1",
            "qAttached": "1",
            "D": "OK",
        }
        return fixed.get(packet, "OK" if packet.startswith(("H", "T")) else "")

    def _register(self, register: Shown) -> str:
        """Return a register's bytes in the guest's order, in hexadecimal."""
        value = 0
        for name in register.own.split():
            part = self._regs.pc if name == self.machine.arch.regs.pc else int(self._regs[name])
            value = value << 64 | part
        return (
            (value & (1 << register.bits) - 1)
            .to_bytes(register.bits // 8, self.machine.arch.order.value)
            .hex()
        )

    def _memory(self, address: int, size: int) -> bytes:
        """Return `size` bytes from an address on, or fewer where later ones are not mapped."""
        found = b""
        while len(found) < size:
            at = address + len(found)
            part = min(size - len(found), PAGE - at % PAGE)
            try:
                found += self.machine.read(at, part)
            except KprobeError:
                break
        return found
