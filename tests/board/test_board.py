"""Boards as values, in files, and from the command line; names of registers from SVD files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENT

from kprobes import BadArgument, ImageError, KprobeError, Kprobes, NoMemory, UnicornMachine, UnknownSymbol, Unsupported
from kprobes.board import Board, Part, TaskPointer
from kprobes.board.svd import _number, read_svd
from kprobes.cli import main

pytestmark = pytest.mark.quick
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FIRMWARE, NAMES = EXAMPLES / "firmware.bin", EXAMPLES / "firmware.symbols"
RAW = ["--arch", "cortexm", "--base", "0x08000000"]
DEVICES = ["--ram", "0x20000000:0x1000", "--device", "simple-uart@0x40000000,name=UART",
           "--device", "power@0x40001000,name=POWER"]
SVD = """<?xml version="1.0" encoding="utf-8"?>
<device><name>CHIP</name><peripherals>
<peripheral><name>UART</name><baseAddress>0x40000000</baseAddress>
 <addressBlock><offset>0</offset><size>0x100</size></addressBlock>
 <interrupt><name>UART</name><value>5</value></interrupt>
 <registers>
  <register><name>STATUS</name><addressOffset>0</addressOffset><size>32</size></register>
  <register><name>DATA</name><addressOffset>0x4</addressOffset><resetValue>0x1f</resetValue></register>
 </registers></peripheral>
<peripheral derivedFrom="UART"><name>UART2</name><baseAddress>0x40000100</baseAddress></peripheral>
<peripheral><name>POWER</name><baseAddress>0x40001000</baseAddress>
 <registers><cluster><name>BANK[%s]</name><addressOffset>0</addressOffset><dim>2</dim>
 <dimIncrement>0x10</dimIncrement>
  <register><name>CH%s</name><addressOffset>#100</addressOffset><dim>2</dim><dimIncrement>4</dimIncrement>
  <dimIndex>A,B</dimIndex><size>16</size></register></cluster></registers></peripheral>
</peripherals></device>
"""


def run(*words: str | Path, text: str = "") -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words], input=text, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


# --- values

def test_a_board_as_a_value() -> None:
    board = Board(arch="cortexm", base=0x08000000, ram=[(0x20000000, 0x1000)], symbols=NAMES,
                  devices=[Part("simple-uart", 0x40000000, {"name": "UART", "received": b"hi\n\n"}),
                           Part("power", 0x40001000)])
    with board.machine(FIRMWARE) as m, Kprobes(m) as k:
        with k.event("r checksum sum=$retval") as event:
            m.run(timeout=10)
        assert event.hits == 1
        assert m.board["UART"].sent.startswith(b"HI ")
        with pytest.raises(BadArgument, match="UART"):
            m.board["UARD"]
        assert m.modules["firmware.bin"][0] == 0x08000000
    with board.machine(FIRMWARE.read_bytes(), name="app") as m:  # devices are new ones
        m.run(timeout=10)
        assert [*m.modules] == ["app"]
        assert m.board["UART"].sent.startswith(b"HI ")


def test_memory_where_the_image_lies_already() -> None:
    with Board(arch="arm64", base=0x10800, ram=[(0x10000, 0x4000)]).machine(b"\x1f\x20\x03\xd5") as m:
        assert m.read(0x10800, 4) == b"\x1f\x20\x03\xd5"
        m.write(0x13FF8, bytes(8))
    with pytest.raises(NoMemory):
        Board(arch="arm64", base=0x10000, devices=[Part("unknown", 0x10000)]).machine(b"\x1f\x20\x03\xd5")


@pytest.mark.parametrize(("arch", "base", "ram"), [
    ("mips", 0xBFC00000, 0x80000000), ("mips", 0xBFC00000, 0), ("ppc", 0xFFF00000, 0), ("arm", 0x40000000, 0),
    ("riscv32", 0x40000000, 0), ("i386", 0xFFF00000, 0)])
def test_memory_where_the_library_would_have_its_own(arch: str, base: int, ram: int) -> None:
    """The stack and the page where runs end lie at addresses that many boards have memory at."""
    with Board(arch=arch, base=base, ram=[(ram, 0x18000000)]).machine(bytes(64)) as m, Kprobes(m):
        for at in range(ram, ram + 0x18000000, 0x400000):
            m.write(at, b"the board's")
        m.write(m.alloc(64), bytes(64))
        m.regs.set_word(m.regs.sp, 1)
        assert all(m.read(at, 11) == b"the board's" for at in range(ram, ram + 0x18000000, 0x400000))


def test_registers_as_a_loader_leaves_them(tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text("arch = 'riscv64'\nbase = 0x80000000\n[registers]\na1 = 0x82200000\nx10 = 1\n")
    with Board.load(tmp_path / "board.toml").machine(bytes(64)) as m:
        assert (m.regs["a0"], m.regs["a1"]) == (1, 0x82200000)
    with pytest.raises(BadArgument, match="riscv64 has no register 'eax'"):
        Board(arch="riscv64", base=0x80000000, registers=[("eax", 1)]).machine(bytes(64))


def test_an_elf_file_in_a_segment_of_mips() -> None:
    """Firmware is linked for KSEG0 and KSEG1, where MIPS starts."""
    file = bytearray((EXAMPLES / "packets.mips").read_bytes())
    entry = int.from_bytes(file[24:28], "big")
    headers, count = int.from_bytes(file[28:32], "big"), int.from_bytes(file[44:46], "big")
    for at in [24, *(headers + 32 * n + field for n in range(count) for field in (8, 12))]:
        value = int.from_bytes(file[at : at + 4], "big")
        file[at : at + 4] = (value + 0x9F000000 if value else 0).to_bytes(4, "big")
    with Board(ram=[(0x80000000, 0x10000)]).machine(bytes(file)) as m:
        assert m.regs.pc == entry + 0x9F000000
        with UnicornMachine.load(EXAMPLES / "packets.mips") as low:
            assert m.read(m.regs.pc, 64) == low.read(entry, 64)


def test_where_it_starts(tmp_path: Path) -> None:
    image = bytes(0x100) + (0x20000800).to_bytes(4, "little") + (0x10000 | 1).to_bytes(4, "little")
    with Board(arch="cortexm", base=0x10000, vectors=0x10100).machine(image) as m:
        assert (m.regs.sp, m.regs.pc, m.interrupts.vectors) == (0x20000800, 0x10000, 0x10100)
    with Board(arch="cortexm", base=0x10000, entry=0x10011).machine(image) as m:
        assert (m.regs.pc, m.interrupts.vectors) == (0x10010, 0x10000)
    with Board(arch="arm64", base=0x10000, entry=0x10010).machine(image) as m:
        assert m.regs.pc == 0x10010
    with pytest.raises(Unsupported, match="entry"):
        Board(arch="arm64", base=0x10000, vectors=0x10000).machine(image)
    with pytest.raises(BadArgument, match="vector table"):
        Board(arch="cortexm", base=0x10000, vectors=0x90000).machine(image)
    (tmp_path / "boot.bin").write_bytes(b"boot")
    with Board(arch="arm64", base=0x10000, rom=[(tmp_path / "boot.bin", 0x50010)]).machine(image) as m:
        assert m.read(0x50010, 4) == b"boot"
    for file in (tmp_path / "none", tmp_path):
        with pytest.raises(ImageError):
            Board(arch="arm64", base=0x10000, rom=[(file, 0x50000)]).machine(image)


def test_an_elf_file_on_a_board() -> None:
    with Board(ram=[(0x70000000, 0x1000)]).machine(EXAMPLES / "demo.arm64") as m:
        assert m.call("crc32", 0, b"hello", 5) == 0x3610A686
        assert m.read(0x70000000, 4) == bytes(4)
    with pytest.raises(BadArgument, match="arch"):
        Board(base=0).machine(b"1234")


# --- files

GOOD = """
arch = "cortexm"
base = 0x08000000
symbols = "names.txt"
svd = "chip.svd"
[[ram]]
start = 0x20000000
size = 0x1000
[[rom]]
file = "boot.bin"
start = 0x1000
[[device]]
kind = "simple-uart"
start = 0x40000000
interrupt = 5
name = "UART"
input = "lines.txt"
[[device]]
kind = "16550"
start = 0x50000000
stride = 4
[[device]]
kind = "power"
start = 0x40001000
name = "POWER"
"""


def test_a_board_file(tmp_path: Path) -> None:
    for name, data in (("board.toml", GOOD), ("names.txt", NAMES.read_text()), ("boot.bin", "boot"),
                       ("lines.txt", "x\n\n"), ("chip.svd", SVD)):
        (tmp_path / name).write_text(data)
    board = Board.load(tmp_path / "board.toml")
    with board.machine(FIRMWARE) as m:
        assert m.read(0x1000, 4) == b"boot"
        assert m.symbols["checksum"].address == 0x0800005C
        assert m.board["UART"].line == 5
        assert m.board.uarts[1].stride == 4
        m.run(timeout=10)
        assert m.board["UART"].sent.startswith(b"X ")
        rows = {name: (reads, writes) for name, reads, writes in m.board.accesses()}
        assert rows["UART.STATUS"][0] > 4 and rows["UART.DATA"] == (3, 5)
        assert rows["POWER"] == (0, 1) and "UART2" not in rows


@pytest.mark.parametrize("offset", ["0", "0x10"])
def test_devices_of_svd_files_that_nothing_accesses(tmp_path: Path, offset: str) -> None:
    """A device of an SVD file is not listed until it is accessed, wherever its first register is."""
    (tmp_path / "chip.svd").write_text(
        "<device><peripherals><peripheral><name>P</name><baseAddress>0x40000000</baseAddress><addressBlock><offset>0</offset>"
        f"<size>0x100</size></addressBlock><registers><register><name>R</name><addressOffset>{offset}</addressOffset>"
        "</register></registers></peripheral></peripherals></device>")
    (tmp_path / "board.toml").write_text("arch = 'arm64'\nsvd = 'chip.svd'\n")
    board = Board.load(tmp_path / "board.toml")
    with UnicornMachine.from_code("ldr w1, [x0]; ret", arch="arm64", symbols={"f": 0x10000}) as m:
        fitted = board.fit(m)
        assert fitted.accesses() == []
        m.call("f", 0x40000000 + int(offset, 0))
        assert fitted.accesses() == [("P", 1, 0), ("P.R", 1, 0)]


@pytest.mark.parametrize(("text", "said"), [
    ("arch = ", "no board file"), ("rem = 1", "did you mean 'rom'|did you mean 'ram'"), ("base = '1'", "base is '1'"),
    ("base = true", "base is True"), ("base = -1", "base is -1"), ("ram = 1", r"\[\[ram\]\]"),
    ("[[ram]]\nstart = 1", "size is None"), ("[[ram]]\nstart = 1\nend = 1", "no 'end'"), ("arch = 1", "arch is 1"),
    ("[[device]]\nkind = 'uart'", "start is None"), ("[[device]]\nstart = 1", "kind is None"),
    ("[[device]]\nkind = 'pl011'\nstart = 1\ninput = 'no-such-file'", "No such file"), ("task = ''", "task is ''"),
    ("task = ':'", "names no task"), ("registers = 1", "registers is no table"), ("[registers]\na0 = 'x'", "a0 is 'x'"),
    ("a = [" + "[" * 2000, "no board file"),
])
def test_board_files_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "board.toml").write_text(text)
    with pytest.raises(KprobeError, match=said) as caught:
        Board.load(tmp_path / "board.toml")
    assert isinstance(caught.value, BadArgument | ImageError)
    result = run("symbols", FIRMWARE, "--board", tmp_path / "board.toml")
    assert result.exit_code == 2 and "Traceback" not in result.output


def test_board_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    for name in ("none", "binary", "."):
        with pytest.raises(ImageError):
            Board.load(tmp_path / name)


# --- SVD

def test_registers_of_an_svd_file(tmp_path: Path) -> None:
    (tmp_path / "chip.svd").write_text(SVD)
    uart, second, power = read_svd(tmp_path / "chip.svd")
    assert [(r.name, r.offset, r.size) for r in uart.registers] == [("STATUS", 0, 4), ("DATA", 4, 4)]
    assert (second.start, second.size, second.registers) == (0x40000100, 0x100, uart.registers)
    assert uart.interrupts == {"UART": 5}
    assert [(r.name, r.offset, r.size) for r in power.registers] == [
        ("BANK0_CHA", 4, 2), ("BANK0_CHB", 8, 2), ("BANK1_CHA", 20, 2), ("BANK1_CHB", 24, 2)]


def test_what_svd_files_derive(tmp_path: Path) -> None:
    """Peripherals from derived ones, and registers from others of their level, also by a path."""
    register = "<register derivedFrom='UART.DATA'><name>MORE</name><addressOffset>8</addressOffset></register>"
    again = "<peripheral derivedFrom='UART2'><name>UART3</name><baseAddress>0x40000200</baseAddress></peripheral>"
    text = SVD.replace(" </registers></peripheral>", f"{register}</registers></peripheral>", 1).replace("</peripherals>", f"{again}</peripherals>")
    (tmp_path / "chip.svd").write_text(text)
    uart, second, _, third = read_svd(tmp_path / "chip.svd")
    assert uart.registers == second.registers == third.registers and third.size == 0x100
    assert [(r.name, r.offset, r.reset) for r in uart.registers] == [("STATUS", 0, 0), ("DATA", 4, 31), ("MORE", 8, 31)]


@pytest.mark.parametrize(("old", "new", "said"), [
    ('derivedFrom="UART"', 'derivedFrom="UARD"', "UART2 is derived from UARD, which is not in it"),
    ('derivedFrom="UART"', 'derivedFrom="UART2"', "UART2 is derived from itself"),
    ("<register><name>STATUS", "<register derivedFrom='NONE'><name>STATUS", "STATUS is derived from NONE"),
])
def test_what_svd_files_cannot_derive(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "chip.svd").write_text(SVD.replace(old, new))
    with pytest.raises(ImageError, match=said):
        read_svd(tmp_path / "chip.svd")


@pytest.mark.parametrize(("text", "number"), [
    ("16", 16), ("016", 16), ("+16", 16), ("0x10", 16), ("0X1f", 31), ("#10000", 16), ("#1xX", 4), ("4k", 4096), ("0x1M", 1 << 20),
    (" 2G ", 2 << 30), ("1t", 1 << 40), ("0b11", None), ("1_0", None), ("++5", None), ("-1", None), ("", None), ("k", None),
])
def test_numbers_of_svd_files(text: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(ValueError, match="is no number"):
            _number(text)
    else:
        assert _number(text) == number


BOMB = '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><device>&b;</device>'


@pytest.mark.parametrize("text", ["", "<device/>", "no xml", SVD.replace("utf-8", "utf-9"), "<device>" * 3000, BOMB, SVD.replace("0x40000000", "four"),
                                  SVD.replace("<dim>2</dim>", "<dim>99999999</dim>"),
                                  '<!DOCTYPE d SYSTEM "file:///etc/passwd"><device/>'])
def test_svd_files_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "chip.svd").write_text(text)
    with pytest.raises(ImageError, match=r"chip\.svd"):
        read_svd(tmp_path / "chip.svd")
    with pytest.raises(ImageError):
        read_svd(tmp_path / "none")


@PATIENT
@given(st.binary(max_size=40), st.integers(0, len(SVD)))
def test_damaged_svd_files(tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.svd"
    path.write_bytes(SVD.encode()[:at] + data + SVD.encode()[at + len(data):])
    try:
        read_svd(path)
    except ImageError:
        pass


def test_registers_read_as_after_a_reset(tmp_path: Path) -> None:
    (tmp_path / "chip.svd").write_text(SVD)
    assert [r.reset for p in read_svd(tmp_path / "chip.svd") for r in p.registers] == [0, 31, 0, 31, 0, 0, 0, 0]
    with UnicornMachine.from_code("ldr w0, [x0]; ret", arch="arm64", symbols={"f": 0x10000}) as m:
        Board(svd=tmp_path / "chip.svd").fit(m)
        assert [m.call("f", 0x40000000 + at) for at in (0, 4, 0x104, 0x1004)] == [0, 31, 31, 0]
    (tmp_path / "chip.svd").write_text(SVD.replace("<name>CHIP</name>", "<name>CHIP</name><resetValue>0x5</resetValue>"))
    assert [r.reset for r in read_svd(tmp_path / "chip.svd")[2].registers] == [5, 5, 5, 5]


@pytest.mark.parametrize(("name", "code", "parts"), [("arm64", "00004039 c0035fd6", (0x44, 0x33, 0x22, 0x11)),  # ldrb w0, [x0]
                                                     ("ppc", "88630000 4e800020", (0x11, 0x22, 0x33, 0x44))])  # lbz r3, 0(r3)
def test_parts_of_registers_read_as_after_a_reset(name: str, code: str, parts: tuple[int, ...]) -> None:
    with UnicornMachine.from_code(bytes.fromhex(code), arch=name, symbols={"f": 0x10000}) as m:
        reset = {0: (0x11223344, 4), 6: (0x55, 1)}
        Board(devices=(Part("unknown", 0x40000000, {"size": 0x1000, "reset": reset}),)).fit(m)
        assert tuple(m.call("f", 0x40000000 + at) for at in range(8)) == (*parts, 0, 0, 0x55, 0)


# --- the command line

def test_no_devices_are_listed_where_nothing_has_run() -> None:
    board = ["--board", EXAMPLES / "firmware-registers.toml"]
    result = run("script", FIRMWARE, *board, "-e", "kprobe:chcksum { }", "--run")
    assert result.exit_code == 1 and "did you mean checksum" in result.stderr and "POWER" not in result.stderr
    result = run("trace", FIRMWARE, *board, "-e", "p checksum", "--run", "--max-insns", "3000")
    assert "POWER" in result.stderr


def test_an_elf_file_that_is_taken_as_a_raw_image_is_said() -> None:
    said = "demo.x86_64 is an ELF file, taken as a raw image"
    base = ("--arch", "x86_64", "--base", "0x10000")
    for words in (("symbols", EXAMPLES / "demo.x86_64", *base),
                  ("fuzz", EXAMPLES / "demo.x86_64", *base, "--call", "0x10000(@input, len)", FIRMWARE)):
        assert said in run(*words).stderr
    assert "raw image" not in run("symbols", EXAMPLES / "demo.x86_64", "--ram", "0x10000000:0x1000").stderr
    assert "raw image" not in run("symbols", FIRMWARE, *RAW).stderr


@pytest.mark.parametrize(("first", "said"), [(0xD2A80000, True), (0xD2800100, False)])  # movz x0, #0x4000, lsl #16; mov x0, #8
def test_firmware_in_an_elf_file_hears_of_ram_without_a_board(tmp_path: Path, first: int, said: bool) -> None:
    """No option has said yet that there is a board; null pointers are no board's."""
    code = struct.pack("<3I", first, 0xB9400001, 0x14000000)  # ldr w1, [x0]; b .
    header = struct.pack("<16s2HI3QI6H", b"\x7fELF\2\1\1", 2, 183, 1, 0x10078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    load = struct.pack("<2I6Q", 1, 5, 0, 0x10000, 0x10000, 0x84, 0x84, 0x1000)
    path = tmp_path / "fw.elf"
    path.write_bytes(header + load + code)
    result = run("trace", path, "-e", "p 0x10078", "--run")
    assert result.exit_code == 1 and "Invalid memory read" in result.stderr
    assert ("--ram 0x40000000:0x1000 puts memory there" in result.stderr) == said and ("--ram" in result.stderr) == said


def test_a_poll_loop_ends_without_python() -> None:
    """The firmware waits for its status register, reads a line and an empty one, and switches the board off."""
    words = ["-e", "p checksum text=+0($arg1):string", "--run", "--max-insns", "30000"]
    options = [*RAW, "--symbols", NAMES, "--ram", "0x20000000:0x1000", "--device", "registers@0x40000000,name=UART,0x0=0/0/3,0x4=0x68/0x69/10",
               "--device", "power@0x40001000,name=POWER"]
    for board in (["--board", EXAMPLES / "firmware-registers.toml"], options):
        result = run("trace", FIRMWARE, *board, *words)
        assert result.exit_code == 0 and 'text="hi"' in result.stdout, result.output
        assert ["UART", "16", "6"] in [line.split() for line in result.stderr.splitlines()]


def test_firmware_from_the_command_line() -> None:
    result = run("trace", FIRMWARE, *RAW, *DEVICES, "--symbols", NAMES, "--run", "--input", "-",
                 "-e", "p checksum text=+0($arg1):string", "-e", "r checksum sum=$retval:x8", text="hello\na longer line\n\n")
    assert result.exit_code == 0, result.output
    assert [line.rpartition(") ")[2] for line in result.stdout.splitlines()] == [
        'text="hello"', "sum=0xd2", 'text="a longer line"', "sum=0x4c"]
    rows = [line.split() for line in result.stderr.splitlines()]
    assert ["HELLO", "d2"] in rows
    assert ["POWER", "0", "1"] in rows
    assert [row[0] for row in rows].count("UART") == 1


@pytest.mark.parametrize("command", [["trace", "-i", "checksum"], ["stat", "-i", "checksum"],
                                     ["graph", "-g", "answer"], ["cover"], ["hist", "-e", "p checksum len=$arg2"]])
def test_the_same_options_on_every_command_that_runs(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("abc\n\n")
    name, *words = command
    help_text = run(name, "--help").output
    for option in ("--ram", "--rom", "--mmio", "--device", "--base", "--entry", "--vectors", "--board", "--svd",
                   "--symbols", "--input", "--task"):
        assert option in help_text
    if name in ("graph", "hist"):
        return
    result = run(name, FIRMWARE, *RAW, *DEVICES, "--symbols", NAMES, "--run", "--input", tmp_path / "lines", *words)
    assert result.exit_code == 0, result.output
    assert "checksum" in result.output


@pytest.mark.parametrize("command", ["symbols", "list", "check"])
def test_the_same_options_on_commands_that_look(command: str) -> None:
    result = run(command, FIRMWARE, *RAW, *DEVICES, "--symbols", NAMES, "checksum")
    assert result.exit_code == 0, result.output
    assert "0x800005c" in result.output


def test_an_unknown_board_says_what_it_lacks() -> None:
    """One option after the other, as the errors say."""
    words: list[str] = []
    for needed in ("--ram 0x20000000:0x1000", "--mmio 0x40000000:0x1000"):
        result = run("trace", FIRMWARE, *RAW, *words, "--symbols", NAMES, "--run", "-i", "*", "--timeout", "1")
        assert result.exit_code == 1
        assert needed in result.stderr
        words += needed.split()
    result = run("trace", FIRMWARE, *RAW, *words, "--symbols", NAMES, "--run", "-i", "*", "--timeout", "1")
    assert "time is up" in result.stderr
    row = next(line.split() for line in result.stderr.splitlines() if line.startswith("0x40000000:0x1000"))
    assert int(row[1]) > 1000  # it waits for the status register


def test_names_of_registers(tmp_path: Path) -> None:
    (tmp_path / "chip.svd").write_text(SVD)
    result = run("trace", FIRMWARE, *RAW, "--ram", "0x20000000:0x1000", "--svd", tmp_path / "chip.svd",
                 "--symbols", NAMES, "--run", "-i", "reset", "--timeout", "1")
    rows = {line.split()[0]: line.split()[1:] for line in result.stderr.splitlines() if line.startswith("UART")}
    assert int(rows["UART.STATUS"][0]) == int(rows["UART"][0]) > 100
    assert "UART.DATA" not in rows
    with Board(arch="cortexm", base=0x08000000, svd=tmp_path / "chip.svd").machine(FIRMWARE) as m:
        assert m.symbols.describe(0x40000004) == "UART.DATA+0x0"


@pytest.mark.parametrize(("words", "said"), [
    (["--ram", "0x20000000"], "START:SIZE"), (["--rom", "x.bin"], "FILE@ADDRESS"), (["--device", "pl011"], "KIND@"),
    (["--device", "pl011@zero"], "no number"), (["--device", "pl011@0,line"], "KEY=VALUE"),
    (["--device", "pl012@0x40000000"], "pl011"), (["--input", "-"], "serial port"), (["--task", "no:no"], "no task"),
    (["--task", "nobody:4"], "nobody"), (["--rom", "none@0x100"], "No such file"),
    (["--device", "simple-uart@0x40000000", "--input", "/no/such"], "No such file"),
    (["--device", "clint@0x2000000"], "no interrupt"), (["--vectors", "0x10"], "vector table"),
    (["--ram", "0x20000000:0x1000", "--device", "power@0x20000000"], "cannot map"),
])
def test_options_that_say_nothing(words: list[str], said: str) -> None:
    result = run("symbols", FIRMWARE, *RAW, "--symbols", NAMES, *words)
    assert result.exit_code == 2, result.output
    assert said in result.output and "Traceback" not in result.output


def test_boards_are_not_qemus() -> None:
    result = run("symbols", EXAMPLES / "demo.x86_64", "--qemu", "--ram", "0:0x1000")
    assert result.exit_code == 2 and "--qemu" in result.output


# --- tasks

def test_tasks_by_a_pointer() -> None:
    with UnicornMachine.from_code(bytes(64), arch="arm", symbols={"f": 0x10000}) as m:
        m.symbols.add("current", 0x20000, 4, kind="object")
        m.map(0x20000, 0x1000)
        task = TaskPointer.parse("current:8").follow(m)
        assert task(m.regs) == "none"
        for block, name in ((0x20100, b"one"), (0x20200, b"two"), (0x20300, b"one"), (0x20400, b"")):
            m.write(block + 8, name + b"\0")
        seen: dict[int, Any] = {}
        for block in (0x20100, 0x20200, 0x20300, 0x20400, 0x90000000):
            m.write(0x20000, block.to_bytes(4, "little"))
            seen[block] = task(m.regs)
        assert [*seen.values()] == ["one", "two", "one@20300", "@20400", "@90000000"]
        assert TaskPointer.parse("0x20000").follow(m)(m.regs) == "@90000000"
        with pytest.raises(UnknownSymbol):
            TaskPointer("nothing").follow(m)
