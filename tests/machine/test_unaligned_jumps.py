"""Jumps to addresses where no instruction can be, and fetches that fail, on every guest: a fault with the address, and
the machine goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from arches import RUNNABLE

#: A jump to what a register holds: (register, code).
JUMPS = {
    "x86_64": ("rdi", "ffe7"), "i386": ("eax", "ffe0"), "arm64": ("x0", "00001fd6"), "arm64be": ("x0", "00001fd6"),
    "arm": ("r0", "10ff2fe1"),
    "armeb": ("r0", "e12fff10"), "cortexm": ("r0", "0047"), "ppc": ("r3", "7c6903a64e800420"),
    "ppc64": ("r3", "7c6903a64e800420"),
    "ppc64le": ("r3", "a603697c2004804e"), "riscv32": ("a0", "67000500"), "riscv64": ("a0", "67000500"),
    "s390x": ("r2", "07f2"),
    "sparc": ("o0", "81c2000001000000"), "sparc64": ("o0", "81c2000001000000"), "m68k": ("a0", "4ed0"),
    "tricore": ("a4", "dc04"),
    **{arch: ("a0", "0080000900000000" if "r6" in arch else "0080000800000000") for arch in RUNNABLE
       if arch.startswith("mips") and arch[-2:] != "el"},
    **{arch: ("a0", "0900800000000000" if "r6" in arch else "0800800000000000") for arch in RUNNABLE
       if arch.startswith("mips") and arch[-2:] == "el"},
}
#: Prints (kind, access, address, pc) of every fault: [arch, register, code].
CHILD = """
import sys
import unicorn
from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine
from kprobes.machine.unicorn.guests.rows import GUESTS
arch, register, code = sys.argv[1:]
code = bytes.fromhex(code)
mode = 1 if arch == "cortexm" else 0

def machine():
    m = UnicornMachine.from_code(code.ljust(0x1000, b"\\0"), arch=arch, base=0x10000)
    m.map(0x100000, 0x4000, "rw")
    return m

def goes(m):
    m.regs.sp = sp  # x86 has executed zeros, which add to what is executed next: that may have been any instruction
    m.regs[register] = 0x10200 | mode  # zeros, to where it stops
    m.run(0x10000 | mode, until=0x10200 | mode)
    assert m.regs.pc == 0x10200, hex(m.regs.pc)

m = machine()
sp = m.regs.sp
for target in (0x10801, 0x10802, 0x10803, 0x80001, 0x80002, 0x80004, 0x100002, 0x100004):
    for start in (0x10000 | mode, target):
        m.regs[register] = target
        try:
            m.run(start, timeout=0.3)
            print(hex(target), "ran")
        except (GuestFault, GuestTimeout) as error:
            print(hex(target), type(error).__name__, getattr(error, "access", None), hex(getattr(error, "address", 0) or 0), hex(error.pc or 0), flush=True)
        goes(m)
with Kprobes(m) as k:  # in a run within a run: the outer one goes on; and a fault handler sends the guest elsewhere
    nested = []
    def on_hit(p, regs):
        for target in (0x10802, 0x80002, 0x80004):
            try:
                m.call(target, timeout=0.3)
            except (GuestFault, GuestTimeout) as error:
                nested.append(error)
    k.register(p := Kprobe(addr=0x10000 | mode, pre_handler=on_hit))
    if m.arch.linkage is not None:
        goes(m)
        goes(m)
        assert p.nhit == 2 and len(nested) >= 4, nested
guest = GUESTS[arch].cpu
uc = guest.open()
m = UnicornMachine.attach(uc, arch=arch)
uc.mem_map(0x10000, 0x4000)
uc.mem_write(0x10000, code)
with Kprobes(m):
    for target in (0x10802, 0x80002, 0x80004):
        for _ in range(2):
            m.regs[register] = target
            try:
                uc.emu_start(0x10000 | mode, 0x10200, timeout=100_000)
            except unicorn.UcError as error:
                print("attached", hex(target), error.errno, flush=True)
print("end")
"""


@pytest.mark.parametrize("arch", RUNNABLE)
def test_jumps_to_where_nothing_can_be(arch: str) -> None:
    done = subprocess.run([sys.executable, "-c", CHILD, arch, *JUMPS[arch]], capture_output=True, text=True,
                          timeout=500, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1] == "end", f"exit status {done.returncode} after {lines[-3:]}: {done.stderr[-800:]}"
    assert not [line for line in lines if line.startswith(("0x80002", "0x80004")) and "Fault fetch" not in line
                and not arch.startswith("sparc")], lines
    if arch.startswith("mips"):
        assert lines.count("0x10802 GuestFault fetch 0x10802 0x10802") == 2, lines
        assert lines.count("0x80002 GuestFault fetch 0x80002 0x80002") == 2, lines


#: Prints what each odd jump ends in: without a probe, with one, and with one that may become a jump. [arch, code].
PROBED = """
import sys
from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine
arch, register, code = sys.argv[1:]
for target in (0x10801, 0x79458a97, 0x7fff0003):
    ends = []
    for probes in ((), (False,), (True,)):
        with UnicornMachine.from_code(bytes.fromhex(code).ljust(0x1000, b"\\0"), arch=arch, base=0x10000) as m, Kprobes(m) as k:
            for optimize in probes:
                k.register(Kprobe(addr=0x10000, optimize=optimize))
            k.flush_optimizer()
            m.regs[register] = target
            try:
                m.run(0x10000, max_insns=4)
                ends.append("ran")
            except GuestFault as fault:
                ends.append((fault.access, fault.address, fault.pc, fault.number))
            except GuestTimeout as bound:
                ends.append(bound.pc)
    assert ends[0] == ends[1] == ends[2], (hex(target), ends)
"""


@pytest.mark.parametrize("arch", ["mips", "mipsel", "mips64", "mips64el", "mips64r6"])
def test_a_probed_jump_to_an_odd_address(arch: str) -> None:
    """The last bit selects MIPS16 on 32-bit models; the others have none, and a fetch fails there."""
    done = subprocess.run([sys.executable, "-c", PROBED, arch, *JUMPS[arch]], capture_output=True, text=True,
                          timeout=120, check=False)
    assert not done.returncode, done.stderr
