"""Debian's u-boot-qemu, opensbi and seabios, which nobody wrote for tests: loaded, looked through, called, booted.

KPROBES_FIRMWARE_DIR is the `usr` of what tests/fetch_firmware has unpacked. Boots take the qemu-system of
tests/fetch_kernel as well.
"""

from __future__ import annotations

import array
import os
import subprocess
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import unicorn
from attrs import frozen
from unicorn import x86_const

from kprobes import (
    GuestFault,
    GuestTimeout,
    Kprobe,
    Kprobes,
    QemuMachine,
    TextOverwritten,
    UnicornMachine,
    Unsupported,
)
from kprobes.board import Board, Part
from kprobes.discover import Found
from kprobes.machine.remote.launch import find_qemu

FOLDER = os.environ.get("KPROBES_FIRMWARE_DIR")
HERE = Path(FOLDER or "/nowhere")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="KPROBES_FIRMWARE_DIR: see tests/fetch_firmware")

CHECK = b"123456789"  # the input that the check values of CRCs are for
CRC32 = 0xCBF43926
MEMORY = 0x8000000  # bytes of RAM


@frozen
class Image:
    """A file of Debian's.

    Attributes:
        path: in the folder.
        arch: its architecture.
        base: where it belongs.
        functions: that are found in it, at least.
        linked: the same as an ELF file, which has relocations; "": there is none.
        in_registers: registers of the first arguments, where they are not the ABI's.
    """

    path: str
    arch: str
    base: int
    functions: int
    linked: str = ""
    in_registers: Sequence[str] = ()


REGPARM = "eax", "edx", "ecx"  # gcc's -mregparm=3
UBOOTS = {
    "arm": Image("lib/u-boot/qemu_arm/u-boot.bin", "arm", 0, 3000),
    "arm64": Image("lib/u-boot/qemu_arm64/u-boot.bin", "arm64", 0, 2800),
    "riscv64": Image("lib/u-boot/qemu-riscv64/u-boot.bin", "riscv64", 0x80000000, 800,
                     "lib/u-boot/qemu-riscv64/uboot.elf"),
    "mipsel": Image("lib/u-boot/maltael/u-boot.bin", "mipsel", 0xBE000000, 700, "lib/u-boot/maltael/uboot.elf"),
    "i386": Image("lib/u-boot/qemu-x86/u-boot.bin", "i386", 0xFFF00000, 300, "lib/u-boot/qemu-x86/uboot.elf", REGPARM),
}
OPENSBI = Image("lib/riscv64-linux-gnu/opensbi/generic/fw_jump.bin", "riscv64", 0x80000000, 150,
                "lib/riscv64-linux-gnu/opensbi/generic/fw_jump.elf")
# where the firmware has switched to the mode of 32 bits
PROTECTED, UBOOT_X86 = 0xFD0BA, 0xFFF0001C
SEABIOS = Image("share/seabios/bios.bin", "i386", 0xE0000, 150, in_registers=REGPARM)
IMAGES = UBOOTS | {"opensbi": OPENSBI, "seabios": SEABIOS}


def raw(image: Image) -> UnicornMachine:
    return UnicornMachine.load_raw(HERE / image.path, arch=image.arch, base=image.base)


def whole(image: Image) -> UnicornMachine:
    """The ELF file, where there is one: it tells of more functions."""
    return UnicornMachine.load(HERE / image.linked) if image.linked else raw(image)


def call(m: UnicornMachine, image: Image, function: int, *arguments: int) -> int:
    """Call a function, by the convention that its image was compiled for."""
    if not image.in_registers:
        return m.call(function, *arguments, max_insns=20_000)
    for name, value in zip(image.in_registers, arguments, strict=False):
        m.regs[name] = value
    return m.call(function, max_insns=20_000)


def placed(m: UnicornMachine, arguments: Sequence[int | bytes]) -> list[int]:
    """The arguments of a call, those that are bytes put into memory."""
    out = []
    for argument in arguments:
        if isinstance(argument, bytes):
            out.append(m.alloc(len(argument) + 1))
            m.write(out[-1], argument + b"\0")
        else:
            out.append(argument)
    return out


def functions_that_return(image: Image, result: int, *arguments: int | bytes) -> list[Found]:
    """Call every function that is found, and put the machine back each time; the smallest first: others call it."""
    with whole(image) as m:
        candidates, words = m.discover(), placed(m, arguments)
        before, out = m.snapshot(), []
        for f in candidates:
            try:
                if call(m, image, f.address | f.mode, *words) & 0xFFFFFFFF == result:
                    out.append(f)
            except (GuestFault, GuestTimeout):
                pass
            m.restore(before)
        assert candidates and len(out) < len(candidates) / 4  # what tells anything is said by few
        return sorted(out, key=lambda f: f.size)


def probe_what_runs(image: Image, function: Found, result: int, *arguments: int | bytes) -> int:
    """Call a function unprobed, then with a probe on each instruction that was executed.

    Returns:
        How many there are.
    """
    ran: list[int] = []
    with whole(image) as m:
        words = placed(m, arguments)
        hook = m.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, address, size, user: ran.append(address))
        assert call(m, image, function.address | function.mode, *words) & 0xFFFFFFFF == result
        m.uc.hook_del(hook)
    hits = 0

    def count(_p: Kprobe, _regs: object) -> None:
        nonlocal hits
        hits += 1

    with whole(image) as m, Kprobes(m) as k:
        words = placed(m, arguments)
        text = [(start, end) for layout in m.symbols.layouts for start, end in layout.text]
        executed = [address for address in ran if any(start <= address < end for start, end in text)]
        probed = [address for address in sorted(set(executed)) if k.check(address | function.mode).probeable]
        for address in probed:
            k.register(Kprobe(addr=address | function.mode, pre_handler=count))
        assert call(m, image, function.address | function.mode, *words) & 0xFFFFFFFF == result
        assert hits == sum(address in probed for address in executed)
        assert len(probed) > 0.8 * len(set(executed))  # not in delay slots
    return len(probed)


@pytest.mark.parametrize("name", IMAGES)
def test_functions_are_found(name: str) -> None:
    image = IMAGES[name]
    with raw(image) as m:
        assert len(m.discover()) >= image.functions


@pytest.mark.parametrize("name", UBOOTS)
def test_crc32_is_found_and_each_of_its_instructions_probed(name: str) -> None:
    question = 0, CHECK, len(CHECK)
    found = functions_that_return(UBOOTS[name], CRC32, *question)
    print([f.name for f in found])
    assert len(found) == 2  # and one that calls it
    assert probe_what_runs(UBOOTS[name], found[0], CRC32, *question) > 15


@pytest.mark.parametrize("name", ["opensbi", "seabios"])
def test_strlen_is_found_and_each_of_its_instructions_probed(name: str) -> None:
    found = functions_that_return(IMAGES[name], len(CHECK), CHECK, 0)
    again = {f.address for f in functions_that_return(IMAGES[name], 5, b"12345", 0)}
    both = [f for f in found if f.address in again]
    print([f.name for f in both])
    assert both
    assert probe_what_runs(IMAGES[name], both[0], len(CHECK), CHECK, 0) > 3


def few_hits(k: Kprobes, functions: Iterable[Found], look: Callable[[], object] = lambda: None) -> list[Kprobe]:
    """Probe functions that calls lead to, each until it is hit for the fifth time. look: called at each hit."""
    def hit(p: Kprobe, _regs: object) -> None:
        look()
        if p.nhit >= 5:
            k.unregister(p)

    out = []
    for f in functions:
        if f.why == "call" and k.check(f.address | f.mode).probeable:
            out.append(Kprobe(addr=f.address | f.mode, pre_handler=hit))
            k.register(out[-1])
    return out


# --- boots in Unicorn

TREES = {"arm": ["arm", "-M", "virt"], "arm64": ["aarch64", "-M", "virt", "-cpu", "cortex-a53"],
         "riscv64": ["riscv64", "-M", "virt"]}


def qemu(name: str) -> str:
    """Path of a qemu-system; skips where there is none."""
    try:
        return find_qemu(f"qemu-system-{name}", 7)
    except Unsupported as error:
        pytest.skip(str(error))


def device_tree(arch: str, folder: Path) -> Path:
    """QEMU's description of its own board."""
    name, option, board, *more = TREES[arch]
    path = folder / f"{arch}.dtb"
    subprocess.run([qemu(name), option, f"{board},dumpdtb={path}", *more, "-m", str(MEMORY >> 20), "-nographic"],
                   check=True, capture_output=True, timeout=60)
    return path


def virt(arch: str, tree: Path) -> Board:
    """QEMU's board "virt", as far as firmware uses it before it looks for something to boot."""
    if arch == "riscv64":
        at = 0x87E00000
        return Board(arch=arch, base=0x80000000, ram=[(0x80000000, MEMORY)], rom=[(tree, at)], registers=[("a1", at)],
                     devices=[Part("16550", 0x10000000, {"name": "UART"}), Part("clint", 0x2000000)])
    unknown = {0x4000000: 0x4000000, 0x8000000: 0x20000, 0x9010000: 0x30000, 0xA000000: 0x4000, 0x3EFF0000: 0x10000}
    return Board(arch=arch, base=0, ram=[(0x40000000, MEMORY)], rom=[(tree, 0x40000000)],
                 devices=[Part("pl011", 0x9000000, {"name": "UART"}),
                          *(Part("unknown", start, {"size": size}) for start, size in unknown.items())])


@pytest.mark.parametrize(("arch", "comes"), [
    ("arm", "Loading Environment from Flash"),  # then it asks PCI, which is not there
    ("arm64", "DRAM:  128 MiB"),  # then it switches the MMU on, and the engine refuses to fetch the next instruction
    ("riscv64", "DRAM:  128 MiB"),  # then it fills memory for a long time
])
def test_u_boot_starts_in_unicorn(arch: str, comes: str, tmp_path: Path) -> None:
    """As far as the engine goes, with a probe on each function until U-Boot copies itself to the end of the memory."""
    board = virt(arch, device_tree(arch, tmp_path))
    with board.machine(HERE / UBOOTS[arch].path) as m, Kprobes(m) as k:
        uart = m.board["UART"]

        def look() -> None:
            if b"DRAM:" in uart.sent:
                m.stop()

        probes = few_hits(k, m.discover(), look)
        m.run(timeout=600)  # some 10 s of processor time
        for probe in probes:
            if probe.registered:
                k.unregister(probe)
        try:
            m.run(timeout=90 if arch == "arm" else 10)
        except (GuestFault, GuestTimeout) as error:
            print(error)
        said = uart.sent.decode()
        assert "U-Boot 20" in said
        assert comes in said
        assert sum(probe.nhit > 0 for probe in probes) > 20


#: PCI's configuration of an i440FX and a PIIX3, as QEMU's: device and function, word -> value
BRIDGES = {(0, 0): 0x12378086, (0, 8): 0x06000002, (0, 0x2C): 0x11001AF4,
           (8, 0): 0x70008086, (8, 8): 0x06010000, (8, 0xC): 0x00800000}
#: ports that do not read as if nothing was there: the serial port sends at once, the keyboard has nothing
READY = {0x3FD: 0x60, 0x64: 0, 0x608: 0}
EXTENDED = {0x34: 0, 0x35: MEMORY - (16 << 20) >> 24}  # the clock's memory: units of 64 KiB above 16 MiB


class Ports:
    """The ports of a PC, as far as firmware looks at them before it looks for something to boot: PCI with two bridges,
    the clock's memory, a serial port.

    Attributes:
        sent: what came over the serial port.
        selected: how often a word of PCI's configuration was chosen.
    """

    def __init__(self, m: UnicornMachine) -> None:
        self.sent = bytearray()
        self.selected = 0
        self._address = self._index = 0
        m.uc.hook_add(unicorn.UC_HOOK_INSN, self._read, None, 1, 0, x86_const.UC_X86_INS_IN)
        m.uc.hook_add(unicorn.UC_HOOK_INSN, self._write, None, 1, 0, x86_const.UC_X86_INS_OUT)

    def _read(self, _uc: unicorn.Uc, port: int, size: int, _user: object) -> int:
        nothing = (1 << 8 * size) - 1
        if port == 0x71:
            return EXTENDED.get(self._index & 0x7F, 0)
        if port == 0xCF8:
            return self._address
        if port & ~3 == 0xCFC:
            device = self._address >> 8 & 0xFFFF
            word = BRIDGES.get((device, self._address & 0xFC), 0 if device in (0, 8) else 0xFFFFFFFF)
            return word >> 8 * (port & 3) & nothing
        return READY.get(port, nothing)

    def _write(self, _uc: unicorn.Uc, port: int, _size: int, value: int, _user: object) -> None:
        if port == 0x3F8:
            self.sent.append(value & 0xFF)
        elif port == 0x70:
            self._index = value
        elif port == 0xCF8:
            self._address = value
            self.selected += 1


def flat(m: UnicornMachine, at: int) -> None:
    """Make a table of segments as the firmware's own beginning does, which runs in the mode of 16 bits."""
    code, data = 0x00CF9B000000FFFF, 0x00CF93000000FFFF
    m.write(at, b"".join(word.to_bytes(8, "little") for word in (0, code, code, data, data)))
    m.uc.reg_write(x86_const.UC_X86_REG_GDTR, (0, at, 5 * 8 - 1, 0))


def test_u_boot_for_x86_starts_in_unicorn() -> None:
    """Until it has copied itself to the end of the memory, with a probe on each function, and without from there on to
    where it waits for a keyboard."""
    image = UBOOTS["i386"]
    with UnicornMachine.load_raw(HERE / image.path.replace(".bin", ".rom"), arch="i386", base=image.base) as m:
        m.map(0, MEMORY)
        flat(m, 0x1000)
        ports = Ports(m)
        with Kprobes(m) as k:
            probes = few_hits(k, m.discover(), lambda: m.stop() if b"DRAM:" in ports.sent else None)
            m.run(UBOOT_X86, timeout=60)
            for probe in probes:
                if probe.registered:
                    k.unregister(probe)
            with pytest.raises(GuestTimeout):
                m.run(timeout=10)
        said = ports.sent.decode()
        print(said, ports.selected)
        assert "U-Boot 20" in said
        assert "DRAM:  128 MiB" in said
        assert "Loading Environment" in said
        assert sum(probe.nhit > 0 for probe in probes) > 20


def test_seabios_starts_in_unicorn() -> None:
    """It finds the chip set, writes its own text once more, over probes on each function that calls lead to, asks PCI for
    all devices, and divides by what a timer counts that is not there."""
    with raw(SEABIOS) as m:
        m.map(0, SEABIOS.base)
        m.map(1 << 20, MEMORY - (1 << 20))
        m.map(0xFFFE0000, 0x20000)  # the same once more, at the end of all addresses
        m.write(0xFFFE0000, (HERE / SEABIOS.path).read_bytes())
        for controller in 0xFEC00000, 0xFEE00000:
            m.mmio(controller, 0x1000)
        table = int.from_bytes(m.read(0xF76B6, 4), "little")
        m.uc.reg_write(x86_const.UC_X86_REG_GDTR, (0, table, 0x37, 0))
        ports = Ports(m)
        m.regs["edx"] = 0xF2A44  # what the beginning, in 16 bits, goes on with
        m.regs.sp = 0x7000
        with Kprobes(m) as k, warnings.catch_warnings():
            warnings.simplefilter("ignore", TextOverwritten)  # it writes over what it needs only once
            probes = few_hits(k, m.discover())
            with pytest.raises((GuestFault, GuestTimeout)) as caught:
                m.run(PROTECTED, timeout=30)
            print(caught.value, ports.selected)
            assert ports.selected > 100
            assert any(probe.nhit for probe in probes)


# --- boots under QEMU

def malta_flash(folder: Path) -> Path:
    """The flash memory of a little-endian Malta: 4 MiB, in words of the other order."""
    words = array.array("I", (HERE / UBOOTS["mipsel"].path).read_bytes().ljust(4 << 20, b"\xff"))
    words.byteswap()
    path = folder / "malta.flash"
    path.write_bytes(words.tobytes())
    return path


@frozen
class Boot:
    """A boot under QEMU.

    Attributes:
        options: of QEMU's; FLASH is malta_flash().
        start: where the first instructions of the firmware's own are in the mode of its architecture.
        scratch: memory that it does not use.
        image: what is probed.
        says: what comes over the serial port.
        kept: where the functions begin that nothing is written over.
    """

    options: list[str]
    start: int
    scratch: int
    image: Image
    says: list[str]
    kept: int = 0


BOOTS = {
    "arm": Boot(["-M", "virt", "-bios", UBOOTS["arm"].path], 0, 0x44000000, UBOOTS["arm"], ["U-Boot 20", "DRAM:"]),
    "arm64": Boot(["-M", "virt", "-cpu", "cortex-a53", "-bios", UBOOTS["arm64"].path], 0, 0x44000000, UBOOTS["arm64"],
                  ["U-Boot 20", "DRAM:"]),
    "riscv64": Boot(["-M", "virt", "-bios", OPENSBI.path.replace("jump", "dynamic"), "-kernel",
                     "lib/u-boot/qemu-riscv64_smode/u-boot.bin"], 0x80000000, 0x84000000,
                    Image(OPENSBI.path.replace("jump", "dynamic"), "riscv64", 0x80000000, 0),
                    ["OpenSBI v", "Boot HART", "U-Boot 20", "DRAM:"]),
    # a processor of 32 bits: the other one's stub shows registers of 64
    "i386": Boot(["-M", "pc", "-bios", UBOOTS["i386"].path.replace(".bin", ".rom")], UBOOT_X86, 0x4000000,
                 UBOOTS["i386"], ["U-Boot 20", "DRAM:", "Model: QEMU x86"]),
    # both begin in the mode of 16 bits, whose pc the stub shows without the segment's base
    "seabios": Boot(["-M", "pc,graphics=off", "-bios", SEABIOS.path], PROTECTED, 0x4000000, SEABIOS,
                    ["SeaBIOS (version", "Booting from"], kept=0xF0000),
    "mipsel": Boot(["-M", "malta", "-drive", "if=pflash,format=raw,file=FLASH"], 0xBFC00000, 0x84000000,
                   UBOOTS["mipsel"], ["U-Boot 20", "Malta", "DRAM:"]),
}


@pytest.mark.parametrize("name", BOOTS)
def test_it_boots_under_qemu_with_probes(name: str, tmp_path: Path) -> None:
    """With probes on the first functions that calls lead to it comes as far as without. Not on all: a breakpoint of
    QEMU's makes its page slow."""
    boot, serial = BOOTS[name], tmp_path / "serial"
    options = [str(HERE / word) if word.startswith(("lib/", "share/")) else word for word in boot.options]
    if "file=FLASH" in options[-1]:
        options[-1] = options[-1].replace("FLASH", str(malta_flash(tmp_path)))
    with raw(boot.image) as m:
        functions = [f for f in m.discover() if f.why == "call" and f.address >= boot.kept][:10]
    qemu({"arm64": "aarch64"}.get(boot.image.arch, boot.image.arch))
    with QemuMachine.system([*options, "-m", "128", "-display", "none", "-monitor", "none", "-serial",
                             f"file:{serial}"], arch=boot.image.arch, scratch=(boot.scratch, 0x10000)) as m:
        if m.regs.pc != boot.start:
            m.run(until=boot.start, timeout=30)
        with Kprobes(m) as k:
            probes = few_hits(k, functions)
            for _ in range(60):
                try:
                    m.run(timeout=1)
                except GuestTimeout:
                    pass
                said = serial.read_text(errors="replace") if serial.exists() else ""
                if all(word in said for word in boot.says):
                    break
            print(said[-500:])
            assert all(word in said for word in boot.says)
            assert sum(p.nhit for p in probes) > 0
