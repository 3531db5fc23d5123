"""The command: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from elftools.elf.elffile import ELFFile
from host import NO_HOST_CODE, host_code
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENT

from kprobes import GuestFault, UnicornMachine
from kprobes.calltext import parse_call
from kprobes.cli import main
from kprobes.cli._render import number
from kprobes.errors import EventError

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
X86, ARM = str(EXAMPLES / "demo.x86_64"), str(EXAMPLES / "demo.arm64")
CRC = ("--call", 'crc32(0, "hello", 5)')


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["archs", f"trace {X86} -e 'p crc32' --call 'crc32(0, \"hello\", 5)'",
                                   f"fuzz {X86} --call 'crc32(0, @@, @len)' {X86} --json"])
def test_closed_streams(words: str, closed: str) -> None:
    """They are as if they led nowhere."""
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m kprobes {words} {closed}"], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, "defect" in done.stderr) == (0, False), done.stderr


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def caret(text: str) -> tuple[str, int]:
    """The word a message's caret points at, and its column in the text above."""
    above, below = re.search(r"\n  (.*)\n  ( *)\^", text).groups()  # type: ignore[union-attr]
    return above[len(below) :].split(" ")[0], len(below)


# --- trace


@pytest.mark.parametrize(("file", "first"), [(X86, "%di"), (ARM, "%x0")])
def test_trace_prints_hits_answer_and_table(file: str, first: str) -> None:
    result = run("trace", file, "-e", f"p:crc crc32 crc={first} buf=+0($arg2):string len=$arg3:u32",
                 "-e", "r:ret crc32 $retval len=$arg3:u32", "-e", "p main", *CRC)
    assert result.exit_code == 0
    hit, back = result.stdout.splitlines()
    assert re.fullmatch(r'crc: \(crc32\+0x0/0x[0-9a-f]+\) crc=0x0 buf="hello" len=5', hit)
    assert re.fullmatch(r"ret: \(\S+ <- crc32\) arg1=0x3610a686 len=5", back)
    assert [line.split() for line in result.stderr.splitlines()] == [
        ["crc32(0,", '"hello",', "5)", "=", "0x3610a686", "(907060870)"],
        ["event", "hits", "missed"], ["crc", "1", "0"], ["ret", "1", "0"], ["p_main_0", "0", "0"]]


def test_trace_json_is_one_object_a_line() -> None:
    result = run("trace", X86, "-e", "r:fib fib n=$arg1:u32 $retval:u32", "--json", "--call", "fib(3)")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    fib = {0: 0, 1: 1, 2: 1, 3: 2}
    assert all(record["args"]["arg2"] == fib[record["args"]["n"]] for record in records)
    assert records[-1]["args"]["n"] == 3  # the outermost call returns last
    assert all(record["name"] == "fib" and record["kind"] == "r" for record in records)
    assert records[0]["caller"].startswith("fib+0x")


@pytest.mark.parametrize("file", [X86, ARM])
def test_trace_run_goes_from_the_entry_point(file: str) -> None:
    result = run("trace", file, "-e", "p:fib fib", "-e", "r main $retval", "--run")
    assert result.exit_code == 0
    assert "arg1=0x0" in result.stdout.splitlines()[-1]  # main returns 0 when all its checks pass
    assert result.stdout.count("fib: (fib+0x0/") > 50


def test_trace_output_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "hits"
    result = run("trace", X86, "-e", "p:crc crc32", "-o", str(target), *CRC)
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text().startswith("crc: (crc32+0x0/")


def test_trace_counts_what_a_small_pool_misses() -> None:
    every = run("trace", X86, "-e", "p:fib fib", "-e", "r1:ret fib", "--call", "fib(5)")
    *_, entered, returned, said = every.stderr.splitlines()
    (_, entries, _), (_, returns, missed) = entered.split(), returned.split()
    assert re.match(r"kprobes: fib: 1 call is followed at a time, .*raise maxactive \(in an event: r10:NAME\)",
                    said), "the option that mends it"
    assert int(returns) + int(missed) == int(entries) and int(missed) > 0
    assert every.stdout.count("ret: ") == int(returns)


@pytest.mark.parametrize(("event", "word", "column"), [
    ("p crc23", "crc23", 2), ("p:e crc32 %none", "%none", 10), ("r crc32+4", "crc32+4", 2),
    ("p crc32+1", "crc32+1", 2)])
def test_wrong_event_is_status_2_with_a_caret(event: str, word: str, column: int) -> None:
    result = run("trace", X86, "-e", "p main", "-e", event, *CRC)
    assert (result.exit_code, result.stdout) == (2, "")
    assert caret(result.stderr) == (word, column)


@pytest.mark.parametrize(("call", "word"), [("crc23(1)", "crc23(1)"),
                                            ("fib(99999999999999999999)", "99999999999999999999)")])
def test_call_that_the_machine_cannot_make_points_at_it(call: str, word: str) -> None:
    result = run("trace", X86, "-e", "p main", "--call", call)
    assert result.exit_code == 2 and caret(result.stderr)[0] == word


def test_call_of_an_address() -> None:
    address = run("symbols", X86, "fib").stdout.split()[4]
    assert run("trace", X86, "-e", "p main", "--call",
               f"{address}(10)").stderr.startswith(f"{address}(10) = 0x37 (55)\n")


def test_wrong_symbol_suggests_names() -> None:
    assert "did you mean crc32" in run("trace", X86, "-e", "p crc23", *CRC).stderr
    assert "did you mean crc32" in run("trace", X86, "-e", "p main", "--call", "crc23(1)").stderr


def test_output_file_is_left_alone_when_an_event_is_wrong(tmp_path: Path) -> None:
    target = tmp_path / "hits"
    target.write_text("old")
    assert run("trace", X86, "-e", "p crc23", "-o", str(target), *CRC).exit_code == 2
    assert target.read_text() == "old"


@pytest.mark.parametrize(("words", "reason"), [
    (("--call", "string_length(16)"), "0x10"),
    (("--call", "fib(30)", "--max-insns", "1000"), "raise the bound"),
    (("--call", "fib(40)", "--timeout", "0.05"), "raise the bound"),
])
def test_failing_guest_is_status_1_with_the_table(words: tuple[str, ...], reason: str) -> None:
    result = run("trace", X86, "-e", "p:len string_length", *words)
    assert result.exit_code == 1
    table, _, message = result.stderr.partition("kprobes: ")
    assert table.split()[:4] == ["event", "hits", "missed", "len"]
    assert message and "Traceback" not in result.output
    assert reason in message


@pytest.mark.parametrize(("value", "bits", "shown"), [
    (42, 64, "0x2a (42)"), (0, 32, "0x0 (0)"), (2**64 - 1, 64, "0xffffffffffffffff (-1)"),
    (2**32 - 1, 32, "0xffffffff (-1)"),
    (2**32 - 1, 64, "0xffffffff (4294967295 or -1)"), (2**31, 64, "0x80000000 (2147483648 or -2147483648)"),
    (2**33 - 1, 64, "0x1ffffffff (8589934591)")])
def test_a_result_is_shown_as_every_number_that_it_may_be(value: int, bits: int, shown: str) -> None:
    assert number(value, bits) == shown


def test_messages_are_for_somebody_who_types_commands(tmp_path: Path) -> None:
    """What only a Python program can do is left out; Python programs are still told."""
    raw = tmp_path / "raw"
    raw.write_bytes(b"not an ELF file")
    ends = [run("trace", X86, "-e", "p main", "--call", "string_length(16)"),
            run("trace", X86, "-e", "p main", "--call", "fib(9)", "--max-insns", "9"),
            run("check", str(raw)), run("trace", X86, "-e", "p 0x10", *CRC)]
    for result in ends:
        assert result.exit_code in (1, 2)
        assert not re.search(r"m\.\w|=\)|addr=|from_code|machine", result.stderr)
    with UnicornMachine.load(X86) as m, pytest.raises(GuestFault, match=r"m\.regs") as error:
        m.call("string_length", 16)
    assert "m.regs" not in error.value.plain


@pytest.mark.skipif(not Path("/bin/true").exists(), reason="no program of a host with a C library here")
def test_a_dynamically_linked_program_says_how_it_is_run() -> None:
    with UnicornMachine.load("/bin/true") as m:
        start = m.regs.pc
        if not any(symbol.name.startswith("__libc_start_main") for symbol in m.symbols):
            pytest.skip("/bin/true starts otherwise here")
        with pytest.raises(GuestFault, match=r"it starts a dynamically linked program: QemuMachine.user\(\) runs it"):
            m.run(max_insns=100_000)
    result = run("trace", "/bin/true", "-e", f"p {start:#x}", "--run")
    assert "__libc_start_main" in result.stderr and "--qemu runs it with its libraries, --call" in result.stderr


def test_messages_say_which_option_helps(tmp_path: Path) -> None:
    """What a newcomer's first commands ran into: each says what to type next."""
    raw, folder, library = tmp_path / "raw", tmp_path / "inputs", tmp_path / "liba.so"
    raw.write_bytes(b"not an ELF file")
    folder.mkdir()
    with tarfile.open(EXAMPLES.parent / "tests" / "data" / "images.tar.xz") as archive:
        library.write_bytes(archive.extractfile("aarch64/a.so").read())  # type: ignore[union-attr]
    image = (str(EXAMPLES / "firmware.bin"), "--arch", "cortexm", "--base", "0x08000000")
    for words, option in (
        (("symbols", str(raw)), "--arch NAME and --base ADDRESS, or --board FILE, load a raw image"),
        (("trace", str(library), "-e", "p tail", "--call", "tail(1)"), "--preload LIBRARY brings a library that has it"),
        (("trace", str(EXAMPLES / "licence.armhf"), "-e", "p 0x20294", "--run"), "--syscalls serves"),
        (("fuzz", X86, "--call", "crc32(0, @@, @len)", str(folder)), "--replay FOLDER runs all inputs of one"),
        (("graph", *image, "fn_1", "--run"), "--discover"),
        (("trace", *image, "-i", "fn_*", "--run"), "--discover"),
    ):
        result = run(*words)
        assert result.exit_code != 0
        assert option in result.stderr, result.stderr


def test_an_image_at_another_address_than_its_own_says_so() -> None:
    """Its vector table leads to where nothing is."""
    result = run("trace", str(EXAMPLES / "firmware.bin"), "--arch", "cortexm", "--base", "0x08010000", "-e", "p 0x08010100", "--run")
    assert result.exit_code == 2
    assert re.search(r"no code is at 0x80000\w\w, where \S+firmware.bin starts by its vector table; is --base", result.stderr)


def test_run_of_what_has_no_entry_says_so(tmp_path: Path) -> None:
    """A library's header gives address 0 as the entry."""
    library = bytearray(Path(X86).read_bytes())
    library[24:32] = bytes(8)
    file = tmp_path / "libdemo.so"
    file.write_bytes(library)
    result = run("trace", str(file), "-e", "p main", "--run")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no entry point; give --call" in result.stderr
    assert "--entry ADDRESS, on a Cortex-M --vectors" in result.stderr


@pytest.mark.parametrize("words", [
    ("trace", X86, *CRC),
    ("trace", X86, "-e", "p main"),
    ("trace", X86, "-e", "p main", "--run", *CRC),
    ("trace", X86, "-e", "p main", "--run", "--timeout", "0"),
    ("trace", X86, "-e", "p main", "--run", "--max-insns", "0"),
    ("trace", "/no/such/file", "-e", "p main", "--run"),
    ("trace", __file__, "-e", "p main", "--run"),
    ("trace", X86, "-e", "p main", "--run", "-o", "/no/such/directory/file"),
    ("symbols", X86, "no_such_*"), ("symbols", X86, "crc_table"), ("symbols", str(EXAMPLES)),
    ("check", X86, "no_such"), ("check", X86, "crc32+zz"),
    ("nonsense",), ("archs", "extra"), ("--nonsense",),
])
def test_wrong_command_line_is_status_2_and_a_message(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [("--help",), ("-h",),
                                   *((c, "--help") for c in ("trace", "check", "symbols", "archs"))])
def test_help(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 0 and result.stdout.startswith("Usage: kprobes")


def test_version() -> None:
    result = run("--version")
    assert result.exit_code in (0, 2)
    assert re.fullmatch(r"kprobes \d+\.\d+.*\n", result.stdout) or "not installed" in result.stderr


# --- check, symbols, archs


@pytest.mark.parametrize(("file", "word"), [(X86, "ret"), (ARM, "ret")])
def test_check_lists_every_instruction(file: str, word: str) -> None:
    result = run("check", file, "crc32")
    assert result.exit_code == 0
    head, *lines = result.stdout.splitlines()
    assert head == "crc32:" and re.match(r"  0x[0-9a-f]+ \+0x000  [0-9a-f ]+ ", lines[0])
    assert re.search(rf" {word} +simulated$", result.stdout, re.MULTILINE)
    assert re.search(r" (boosted|stepped)$", result.stdout, re.MULTILINE)


def test_check_one_instruction_and_all() -> None:
    assert len(run("check", X86, "crc32+0x3").stdout.splitlines()) == 2
    everything = run("check", X86).stdout
    assert everything.count(":\n") > 10 and "\ncrc32:\n" in everything
    assert "refused: falls into the" in run("check", X86, "crc32+1").stdout


def test_check_says_what_makes_records_of_events() -> None:
    result = run("check", ARM, "-e", "p:crc crc32 len=$arg3:u32 head=+0($arg2):string", "-e", "r:back crc32 $arg1 $comm",
                 "-e", "p crc32+4")
    assert result.exit_code == 0
    crc, back, inner = result.stdout.splitlines()
    served = "a program" if host_code() else f"Python: {NO_HOST_CODE}"
    assert crc == "p:kprobes/crc crc32 len=$arg3:u32 head=+0($arg2):string: " + served
    assert (back.startswith("r:kprobes/back crc32 ")
            and back.endswith(": Python: Python knows the task's name"))
    assert inner.startswith("p:kprobes/p_crc32_4 crc32+4: ")
    wrong = run("check", ARM, "-e", "p nowhere")
    assert wrong.exit_code == 2 and "nowhere" in wrong.stderr and not wrong.stdout
    assert "either SYMBOL or events" in run("check", ARM, "crc32", "-e", "p crc32").stderr


def test_check_says_that_a_symbol_is_an_ifunc(tmp_path: Path) -> None:
    """Its address is the resolver's, which a call does not reach. crc32 is made one: the type is in the low half of
    st_info."""
    with open(X86, "rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        index = next(n for n, symbol in enumerate(table.iter_symbols()) if symbol.name == "crc32")
        at = table["sh_offset"] + index * table["sh_entsize"] + 4
    image = bytearray(Path(X86).read_bytes())
    image[at] = image[at] & 0xF0 | 10
    file = tmp_path / "demo"
    file.write_bytes(image)
    assert run("check", str(file), "crc32").stdout.splitlines()[0].startswith("crc32: (IFUNC")
    assert run("check", X86, "crc32").stdout.startswith("crc32:\n")


def test_check_names_no_decode_table() -> None:
    """x86's rows of straight-line instructions are named after opcode maps."""
    assert not re.search("one-byte|0F38", run("check", X86, "crc32+1").stdout)


def test_symbols_by_pattern() -> None:
    lines = [line.split() for line in run("symbols", X86, "table_*").stdout.splitlines()]
    assert lines[0] == ["address", "size", "name", "module"]
    assert [line[2] for line in lines[1:]] == ["table_init", "table_insert", "table_lookup", "table_delete"]
    assert [line[0] for line in lines[1:]] == sorted(line[0] for line in lines[1:])
    assert "crc_table" not in run("symbols", X86).stdout  # data


PROGRAMS = EXAMPLES.parent / "tests" / "programs" / "bin"


@pytest.mark.parametrize(("name", "first"), [("cortexm", "push {"), ("armeb", "push {"),
                                             ("arm64be", "str x30, [sp, #"), ("mips64r6el", "daddiu $sp, $sp, -")])
def test_check_disassembles_code_of_its_own_byte_order_and_mode(name: str, first: str) -> None:
    assert first in run("check", str(PROGRAMS / f"{name}-O2.elf"), "fib").stdout.splitlines()[1]


def test_the_architecture_may_be_given() -> None:
    """The demonstration as if its header told nothing: the name is taken where it runs such files, and no other."""
    program = str(PROGRAMS / "cortexm-O2.elf")
    assert run("check", program, "fib").stdout == run("check", program, "fib", "--arch", "cortexm").stdout
    assert run("trace", "--arch", "arm", program, "-e", "p fib", "--call", "fib(5)").exit_code == 0
    wrong = run("symbols", "--arch", "x86_64", program)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "these do: arm cortexm" in wrong.stderr
    assert "no architecture 'arm46'" in run("check", "--arch", "arm46", program).stderr


@pytest.mark.parametrize("page", ["README.md", "docs/architectures.md"])
def test_pages_count_architectures_as_the_command_does(page: str) -> None:
    said = run("archs").stdout.splitlines()[-1]
    assert said.startswith("25 architectures run in Unicorn, ")
    assert said in " ".join((EXAMPLES.parent / page).read_text().split())


def test_archs() -> None:
    rows = {line.split()[0]: line.split() for line in run("archs").stdout.splitlines() if line}
    assert rows["x86_64"][1:] == ["64", "little", "Unicorn,", "QEMU", "yes", "yes", "yes"]
    assert rows["alpha"][3] == "QEMU" and rows["ia64"][3] == "model"
    machines = [json.loads(line)["runs_in"] for line in run("archs", "--json").stdout.splitlines()]
    assert (sum("Unicorn" in names for names in machines), len(machines)) == (25, 31)


# --- processes


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", "from kprobes.cli import main; main(prog_name='kprobes')", *words]


def test_nothing_slow_is_imported_at_first() -> None:
    code = "import sys, kprobes.cli; sys.exit('rich' in sys.modules or 'capstone' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES.parent, check=False).returncode == 0


def test_interrupt_is_status_130() -> None:
    words = command("trace", X86, "-e", "p:go fib", "--call", "fib(45)")
    with subprocess.Popen(words, cwd=EXAMPLES.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()  # the guest is running
        process.send_signal(signal.SIGINT)
        try:
            _, error = process.communicate(timeout=300)
        finally:
            process.kill()
        assert process.returncode == 130
    assert "kprobes: interrupted" in error and "Traceback" not in error


def test_closed_output_is_quiet() -> None:
    words = command("trace", X86, "-e", "p:go fib", "--call", "fib(18)")
    with subprocess.Popen(words, cwd=EXAMPLES.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(120) == 141
    assert error == ""


def test_table_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command("trace", X86, "-e", "p:x crc32", *CRC), cwd=EXAMPLES.parent,
                               stdout=subprocess.DEVNULL, stderr=theirs)
    assert process.wait(120) == 0
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert re.search(r"event.*hits.*missed", text) and re.search(r"x\s+1\s+0", text)


# --- the --call expression


@pytest.mark.parametrize(("text", "function", "args"), [
    ("f()", "f", ()),
    (" lib:f ( 1 ,-2,+3 ) ", "lib:f", (1, -2, 3)),
    ("f(0x1F, 0b101, 017, 0o17, 0, 00)", "f", (31, 5, 15, 15, 0, 0)),
    (r"f('a', '\n', '\'', '\\', '\0', '\x7f', ',')", "f", (97, 10, 39, 92, 0, 127, 44)),
    (r'f("", "a,b)", b"\x00\101\"\t", "é")', "f", (b"", b"a,b)", b'\0A"\t', "é".encode())),
])
def test_call_expression(text: str, function: str, args: tuple[Any, ...]) -> None:
    call = parse_call(text)
    assert (call.function, call.args) == (function, args)


def test_addresses_of_symbols_as_arguments() -> None:
    """&NAME is an address; a function's name and that of an array are, too; a variable's might be its value."""
    code = "mov rax, rdi; sub rax, rsi; ret; nop; ret"
    symbols = {"f": (0x10000, 7), "len": (0x10008, 1)}
    with UnicornMachine.from_code(code, arch="x86_64", symbols=symbols) as m:
        m.symbols.add("buffer", 0x5000, 64, kind="object")
        m.symbols.add("count", 0x6000, 4, kind="object")
        for text, result in {"f(&buffer, 0)": 0x5000, "f(&buffer + 0x10, 1)": 0x500F, "f(buffer,0)": 0x5000, "f(&count,0)": 0x6000,
                             "f(len, &f)": 8, "f(& f, f)": 0}.items():
            call = parse_call(text).resolved(m)
            assert m.call(call.function, *call.with_input()) == result, text
        for text, said in {"f(bufer)": "did you mean buffer", "f(1, &bufer)": "did you mean buffer", "f(count)": "write &count for its address"}.items():
            with pytest.raises(EventError, match=said) as caught:
                parse_call(text).resolved(m)
            assert caught.value.position == (5 if "1" in text else 2)
    done = CliRunner().invoke(main, ["trace", str(EXAMPLES / "demo.x86_64"), "-i", "fib", "--call", "crc32(0, &no_such, 3)"])
    assert done.exit_code == 2 and "no_such: no such symbol" in done.stderr


def test_a_number_with_a_point_is_no_integer() -> None:
    with pytest.raises(EventError, match=re.escape("'1.5' is no integer; write 5")):
        parse_call("crc32(1.5)")


@pytest.mark.parametrize(("text", "position"), [
    ("", 0), ("f", 0), ("f(", 2), ("f(1", 3), ("f(1,", 4), ("f(1,)", 4), ("f(,1)", 2), ("f(1 2)", 4), ("f(1))", 4),
    ("f() g()", 3), ('f("abc)', 2), (r'f("ab\q")', 5), ("f('ab')", 2), ("f('é')", 2), ("f('')", 2), ("f(09)", 2),
    ("f(1x)", 2),
    ("f(@input)", 2), ("f(&)", 2), ("f(&5)", 2), ("f(a-1)", 3), ("f(&a+z)", 5), ("f(1.5)", 2), ("f(.5)", 2), ("f(1e-5)", 2), ("f(\\)", 2), (f"f({'9' * 5000})", 2),
])
def test_wrong_call_expression_points_at_it(text: str, position: int) -> None:
    with pytest.raises(EventError) as caught:
        parse_call(text)
    assert (caught.value.kind, caught.value.position) == ("BAD_CALL", position)


@PATIENT
@given(st.text(alphabet="f(),'\"\\x01b -é", max_size=20))
def test_any_call_parses_or_is_an_error(text: str) -> None:
    for expression in (text, f"f({text})"):
        try:
            parse_call(expression)
        except EventError as error:
            assert 0 <= error.position <= len(expression)


@PATIENT
@given(st.lists(st.one_of(st.integers(-(2**63), 2**64), st.binary(max_size=8))))
def test_call_arguments_survive(args: list[int | bytes]) -> None:
    words = [str(a) if isinstance(a, int) else 'b"' + "".join(f"\\x{byte:02x}" for byte in a) + '"' for a in args]
    assert parse_call(f"f({', '.join(words)})").args == tuple(args)


def test_call_does_not_hang_on_long_input() -> None:
    start = time.process_time()
    with pytest.raises(EventError):
        parse_call("f('" + "\\a" * 20000)
    assert time.process_time() - start < 60  # what backtracks takes years


def test_symbols_of_a_stripped_file(tmp_path: Path) -> None:
    with tarfile.open(Path(__file__).with_name("data") / "threads.tar.xz") as archive:
        data = archive.extractfile("x86_64/static").read()  # type: ignore[union-attr]
    (file := tmp_path / "stripped").write_bytes(data)
    result = run("symbols", str(file))
    assert result.exit_code == 2
    assert re.search(r"no names of functions.*stripped \(its entry point is 0x[0-9a-f]+\).*probe addresses",
                     result.stderr)
    assert run("trace", str(file), "-e", f"p {re.search('0x[0-9a-f]+', result.stderr)[0]}", "--run", "--max-insns", "9").exit_code == 1  # type: ignore[index]


def test_a_sysroot_is_qemus() -> None:
    done = run("trace", X86, "-e", "p crc32", *CRC, "--sysroot", str(EXAMPLES))
    assert done.exit_code == 2 and "--qemu" in done.stderr


def test_a_crash_shows_registers_and_the_way_there(tmp_path: Path) -> None:
    """On stderr; where pc has left all code, the return address of the last call says how."""
    file = tmp_path / "code.bin"
    # mov r0, #7; bl 0x10010; nop; nop; mov r3, #0x41; mov pc, r3
    file.write_bytes(b"".join(word.to_bytes(4, "little") for word in (
        0xE3A00007, 0xEB000001, 0xE1A00000, 0xE1A00000, 0xE3A03041, 0xE1A0F003)))
    done = CliRunner().invoke(main, ["trace", str(file), "--arch", "arm", "--base", "0x10000", "--entry", "0x10000",
                                     "-e", "p 0x10000", "--run"])
    assert done.exit_code == 1 and "Invalid memory fetch" in done.stderr
    assert "r0 00000007" in done.stderr and " => 0x40\n => [incomplete]\n" in done.stderr
    assert "lr, where the last call returns to: 0x10008" in done.stderr
    # movs r3, #0x41; bl 0x10010; nops; bx r3: lr says that the caller is Thumb code, in its lowest bit
    file.write_bytes(bytes.fromhex("4123 00f005f8 c046 c046 c046 c046 1847"))
    done = CliRunner().invoke(main, ["trace", str(file), "--arch", "cortexm", "--base", "0x10000", "--entry", "0x10001",
                                     "-e", "p 0x10000", "--run"])
    assert "lr 00010007" in done.stderr and "lr, where the last call returns to: 0x10006\n" in done.stderr, done.stderr
