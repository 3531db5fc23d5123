"""`kprobes script`: what it takes, prints and says."""

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kprobes.cli import main

DEMO = "examples/demo.arm64"


def command(*words: str, input: bytes | None = None) -> Result:
    """A run of the command."""
    return CliRunner().invoke(main, ["script", *words], input=input)


def test_a_line_at_a_guest() -> None:
    done = command(DEMO, "-e", 'kprobe:fib { @[arg0] = count(); }', "--call", "fib(3)")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert (lines[:2], sorted(lines[2:])) == (["", ""], ["@[1]: 1", "@[2]: 1", "@[3]: 1"])
    assert "Attached 1 probe\n" in done.stderr
    assert "fib(3) = 0x2 (2)" in done.stderr


def test_more_output_than_the_ring_has_room_for() -> None:
    done = command("-q", "-e", 'begin { for ($i : 0..20000) { printf("%d %d %d %d %d %d\\n", $i, 1, 2, 3, 4, 5); } }')
    assert [line.split()[0] for line in done.stdout.splitlines() if line] == [str(n) for n in range(20000)]


def test_without_a_guest_and_its_status() -> None:
    done = command("-q", "-e", 'begin { print(6 * 7); exit(3); }')
    assert (done.exit_code, done.stdout, done.stderr) == (3, "42\n\n\n", "")


def test_files_standard_input_and_parameters(tmp_path: Path) -> None:
    path = tmp_path / "tool.bt"
    path.write_text('begin { print(($1, str($2), getopt("n", 1))); }')
    assert command(str(path), "-q", "--", "5", "x", "--n=7").stdout.startswith("(5, x, 7)\n")
    assert command(DEMO, str(path), "-q", "--call", "fib(1)", "--", "5").stdout.startswith("(5, , 1)\n")
    assert command("-", "-q", input=b"begin { print(1); }").stdout.startswith("1\n")
    help_ = command(str(path), "--", "--help")
    assert (help_.exit_code, "HINT: expected program options:" in help_.stderr) == (1, True)


def test_parameters_that_the_script_does_not_use() -> None:
    """They may have been meant for the guest."""
    text = "begin { print($1); }"
    assert "WARNING" not in command("-q", "-e", text, "--", "5").stderr
    assert "WARNING" not in command("-q", "-e", "begin { print($#); }", "--", "5").stderr
    done = command("-q", "-e", text, "--", "5", "a b", "c")
    assert done.exit_code == 0 and done.stderr == "WARNING: the script does not use its parameters: 'a b' c\n"
    done = command(DEMO, "-q", "-e", text, "--call", "fib(1)", "--", "5", "6")
    assert "parameters: 6\nHINT: --arg WORD gives an argument to the guest" in done.stderr
    assert "WARNING" not in command("-q", "--no-warnings", "-e", text, "--", "5", "6").stderr
    help_ = " ".join(command("--help").stdout.split())
    assert "Words behind `--` are the script's parameters" in help_ and "given by --arg" in help_


def test_types_are_listed(tmp_path: Path) -> None:
    """As bpftrace's -lv has them."""
    with tarfile.open("tests/data/debug.tar.xz") as archive:
        member = next(member for member in archive.getmembers() if "mips" in member.name)
        (tmp_path / "guest").write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
    done = command(str(tmp_path / "guest"), "-lv", "struct table")
    assert done.stdout.startswith("struct table {") and "    unsigned int count;  // +0\n" in done.stdout
    assert command(str(tmp_path / "guest"), "-l", "struct  table").stdout == "struct table\n"
    assert "enum kind {" in command(str(tmp_path / "guest"), "-lv", "enum kind").stdout
    wrong = command(str(tmp_path / "guest"), "-lv", "struct tabel")
    assert wrong.exit_code == 2 and "did you mean struct table" in wrong.stderr


def test_json_and_a_file_for_the_output(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = command("-f", "json", "-o", str(path), "-e", 'begin { @a[1] = 2; printf("x\\n"); }')
    assert done.stdout == ""
    assert [json.loads(line)["type"] for line in path.read_text().splitlines()] == ["attached_probes", "printf", "map"]


def test_a_time_series_by_the_scripts_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As bpftrace's tests have it: intervals are counted from 1970 by the number in the map."""
    program = """begin { @t = (uint64)1000000000; $i = 0;
        while ($i < 4) { @s = tseries($i, 100ms, 10, "max"); @t += 50000000; $i++; } clear(@t); }"""
    monkeypatch.setenv("BPFTRACE_DUMMY_TS_MAP", "@t")
    lines = command("-q", "-f", "json", "-e", program).stdout.splitlines()
    (series,) = [found["data"]["@s"] for found in map(json.loads, lines) if found["type"] == "tseries"]
    assert [(point["interval_start"], point["value"]) for point in series] == [
        ("1970-01-01 00:00:01.000000000", 1), ("1970-01-01 00:00:01.100000000", 3)]


@pytest.mark.parametrize("text", ["010", "\u00b2", "1e3", "-1"])
def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Numbers are decimal; what is none is said."""
    monkeypatch.setenv("BPFTRACE_MAX_STRLEN", text)
    done = command("-e", "begin { print(1); }")
    assert done.exit_code == (0 if text == "010" else 1), done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize(("aggregation", "first"), [("", 0), (', "sum"', 5)])
def test_a_last_value_of_time_zero_is_none(monkeypatch: pytest.MonkeyPatch, aggregation: str, first: int) -> None:
    """As in bpftrace, where each processor has one and the latest is taken, later than 0."""
    program = f"""begin {{ @t = (uint64)0; @s = tseries(5, 100ms, 10{aggregation}); @t = 100ms;
        @s = tseries(6, 100ms, 10{aggregation}); clear(@t); }}"""
    monkeypatch.setenv("BPFTRACE_DUMMY_TS_MAP", "@t")
    lines = command("-q", "-f", "json", "-e", program).stdout.splitlines()
    (series,) = [found["data"]["@s"] for found in map(json.loads, lines) if found["type"] == "tseries"]
    assert [point["value"] for point in series] == [first, 6]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("-e", "begin { x }"), 1, "stdin:1:9-10: ERROR: Unknown identifier: 'x'\nbegin { x }\n        ~"),
        (("-f", "jsonx", "-e", "begin {}"), 1, "ERROR: Invalid output format \"jsonx\"\nValid formats: 'text', 'json'"),
        ((DEMO, "-e", "kprobe:fob { }", "--run"), 1, "HINT: did you mean fib?"),
        ((DEMO, "-e", "kprobe:fib { }"), 2, "--run"),
        ((DEMO, "-e", "kprobe:fib+2 { @ = 1; }", "--run"), 255,
         "kprobe:fib+2 { @ = 1; }\n~~~~~~~~~~~~"),
        ((DEMO, "-e", "watchpoint:0x3:4:w { @ = 1; }", "--run"), 255,
         "stdin:1:1-19: ERROR: memory is not mapped at 0x3, which is to be watched"),
        (("-e", "begin {}", "--run"), 2, "are for a guest"),
        ((DEMO, "-e", "uprobe:/bin/bash:readline { }", "--run"), 1,
         "HINT: the guest is demo.arm64; --preload FILE loads a library"),
        ((DEMO, "kprobe:fib { @ = 1; }", "--run"), 1, "HINT: -e gives the text of a script"),
        (("-e", "begin {}", "-o", "/nowhere/x"), 1,
         "ERROR: Failed to open output file: \"/nowhere/x\": No such file or directory"),
        ((DEMO, "-e", "begin {}", "-p", "12"), 2, "-p: the script's run starts its guest"),
        ((), 2, "give a script"),
        (("/nowhere/tool.bt",), 1, "No such file"),
    ],
)
def test_what_is_wrong(words: tuple[str, ...], status: int, said: str) -> None:
    done = command(*words)
    assert (done.exit_code, said in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout if status == 255 else "") == ""


def test_verbose_names_the_words_that_need_python() -> None:
    done = command(DEMO, "-q", "-v", "--unsafe", "--call", "fib(1)", "-e", "kprobe:fib { @ = 1; override(7); }")
    assert done.exit_code == 0
    assert ("is left to the core\nstdin:1:21-32\nkprobe:fib { @ = 1; override(7); }\n"
            "                    ~~~~~~~~~~~\n") in done.stderr


def test_lists_and_dumps() -> None:
    assert "kprobe:crc32\n" in command(DEMO, "-l", "kprobe:cr*").stdout
    assert "call" in command(DEMO, "-d", "-e", "kprobe:fib { @ = hist(nsecs); }").stdout
    dump = command("-d", "-e", "begin { @ = rand; }").stdout.splitlines()
    assert "; stdin:1:13-17: rand" in dump and any(line.endswith("call 7  ; bpf_get_prandom_u32") for line in dump)
    assert command(DEMO, "--dry-run", "-e", "kprobe:fib { @[arg0] = count(); }").exit_code == 0


def test_a_command_runs_its_guest() -> None:
    """-c says what runs: nothing else need say it, but --call may."""
    script = ("-q", "-e", "kprobe:fib { @ = count(); }")
    assert command("-c", DEMO, *script).stdout == command(DEMO, "--run", *script).stdout == "\n\n@: 89\n"
    assert command("-c", DEMO, "--call", "fib(3)", *script).stdout == "\n\n@: 3\n"


def test_what_is_missing_is_said() -> None:
    done = command("-l", "kprobe:fib")
    assert (done.exit_code, done.stdout) == (0, "") and "give a guest" in done.stderr
    done = command(DEMO, "-e", "kprobe:fib { }")
    assert done.exit_code == 2 and "--call 'NAME(ARG, ...)', --run and --qemu" in done.stderr


def test_a_guest_that_is_not_there_is_named() -> None:
    done = command("nowhere", "--run", "-e", "kprobe:fib { @ = count(); }")
    assert (done.exit_code, "nowhere: No such file or directory" in done.stderr) == (2, True)


def test_the_probes_of_a_script_are_listed() -> None:
    done = command(DEMO, "-l", "-e", "kprobe:fi? { @ = 1; } uprobe:*:crc32, begin { }")
    assert (done.exit_code, done.stdout.splitlines()) == (0, ["kprobe:fib", f"uprobe:{DEMO}:crc32"])
    done = command(DEMO, "-l", "-e", "kprobe:fib {")
    assert (done.exit_code, "expected '}'" in done.stderr) == (1, True)


def test_headers_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("struct a { char c[3]; };\n")
    (tmp_path / "b.h").write_text("#include <a.h>\nstruct b { struct a a[2]; };\n")
    text = "begin { print((sizeof(struct a), sizeof(struct b))); }"
    done = command("-q", "-I", str(tmp_path), "--include", str(tmp_path / "b.h"), "--include", "stdint.h", "-e", text)
    assert (done.exit_code, done.stdout.split("\n")[0]) == (0, "(3, 6)")
    done = command("-q", "--include", str(tmp_path / "c.h"), "-e", text)
    assert (done.exit_code, "c.h' file not found" in done.stderr) == (1, True)
