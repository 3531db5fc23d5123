"""What a fuzzer leaves: a folder run again, crashes told apart, a minimal corpus, nothing lost."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from arches import RUNNABLE, programs_of
from attrs import evolve
from click.testing import CliRunner, Result

from kprobes import BadArgument
from kprobes.board import Board, Fitted, TaskPointer
from kprobes.cli import main
from kprobes.fuzz.bench import InputRunner
from kprobes.fuzz.crash import Finding, examine
from kprobes.fuzz.findings import Findings
from kprobes.fuzz.replay import edges_in, inputs_of, packed, smallest, unpacked
from kprobes.fuzz.reports import headline
from kprobes.fuzz.target import CallTarget, PythonTarget, call_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MACHINES = ("x86_64", "arm64", "arm", "mips")
CALL = ("--call", "parse(@@, @len)")
#: name -> input: three planted bugs, the third in two ways
CORPUS = {
    "fine": b"KPN\x05hello", "empty": b"", "short": b"K", "records": b"KPN\x01xT\x03\x00\x00\x01S\x01\x07",
    "larger": b"KPN\x05hello, but more of it", "name": b"KPN\xf0" + b"A" * 250, "number": b"KPT\x03\x80\x00\x00",
    "follow": b"KPR\x01\x02", "follow two": b"KPR\x01\x05R\x01\x02",
}  # fmt: skip
CRASHES = {"name", "number", "follow", "follow two"}


def packets(machine: str) -> str:
    return str(EXAMPLES / f"packets.{machine}")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    for name, data in CORPUS.items():
        (folder / name).write_bytes(data)
    return folder


def fuzz(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["fuzz", *map(str, words)])


@pytest.mark.parametrize("machine", MACHINES)
def test_the_planted_bugs(tmp_path: Path, corpus: Path, machine: str) -> None:
    """Each is one finding; what is kept repeats it."""
    out = tmp_path / "out"
    done = fuzz(packets(machine), *CALL, "--replay", corpus, "-o", out, "--jobs", "1", "--json")
    assert done.exit_code == 1, done.output
    said = json.loads(done.stdout)
    assert said["inputs"] == len(CORPUS) and said["failed"] == {} and said["edges"] > 20
    assert sorted(finding["count"] for finding in said["findings"]) == [1, 1, 2]
    functions = {finding["stack"][0]["name"].partition("+")[0] for finding in said["findings"]}
    assert {"take_number", "follow"} < functions
    for finding in said["findings"]:
        kept = out / "crashes" / finding["hash"]
        assert (kept / "input").read_bytes() == Path(finding["input"]).read_bytes()
        assert finding["stack"][0]["address"] in finding["registers"].values() and finding["path"]
        again = fuzz(*shlex.split(finding["again"])[2:], "--json")
        assert again.exit_code == 1, again.output
        repeated = json.loads(again.stdout)["findings"][0]
        assert {key: repeated[key] for key in ("hash", "registers", "stack", "path")} == {
            key: finding[key] for key in ("hash", "registers", "stack", "path")}
    # of two inputs for a finding the smaller one is kept, of two of the same coverage as well
    assert {Path(finding["input"]).name for finding in said["findings"]} == {"name", "number", "follow"}
    names = {Path(item).name for item in said["corpus"]}
    assert names == {path.name for path in (out / "corpus").iterdir()} and "short" not in names


def test_the_same_hash_on_every_machine(corpus: Path) -> None:
    """Where stacks can be walked alike a finding is the same on four instruction sets."""
    hashes = set()
    for machine in MACHINES:
        bench = InputRunner(CallTarget(packets(machine), "parse(@input, len)").load())
        _, finding = examine(bench, CORPUS["follow"])
        assert finding is not None
        hashes.add(finding.hash)
    assert len(hashes) == 1


@pytest.mark.parametrize("arch", [arch for arch in RUNNABLE if programs_of(arch)])
def test_every_architecture(arch: str) -> None:
    """Runs from the same state have the same map, other inputs another one; a fault is the same finding everywhere."""
    image = str(programs_of(arch)[-1])
    counters = (ctypes.c_uint8 * (1 << 14))()
    bench = InputRunner(CallTarget(image, 'memcmp(@input, "hello world", len)', arch=arch).load(), counters)
    maps = []
    for data in (b"hello", b"other", b"hello"):
        ctypes.memset(counters, 0, len(counters))
        assert bench.run(data).signal == 0
        maps.append(bytes(counters))
    assert any(maps[0]) and maps[0] == maps[2] != maps[1]
    fate, finding = examine(InputRunner(CallTarget(image, "memcmp(1, @input, 5)", arch=arch).load()), b"hello")
    assert fate.signal == signal.SIGSEGV and finding is not None and finding.path and finding.registers
    assert finding.hash == "c8972d1879a1" and finding.stack[0].name.partition("+")[0] in ("memcmp", ".memcmp")


def test_reports(tmp_path: Path, corpus: Path) -> None:
    out, sarif, lines = tmp_path / "out", tmp_path / "found.sarif", tmp_path / "covered.info"
    done = fuzz(packets("arm64"), *CALL, "--replay", corpus, "-o", out, "--jobs", "1", "--sarif", sarif, "--coverage",
                lines)
    assert done.exit_code == 1, done.output
    assert "9 inputs cover" in done.stderr and "3 crashes, 0 inputs hang or fail" in done.stderr
    log = json.loads(sarif.read_text())
    assert log["version"] == "2.1.0" and len(log["runs"][0]["results"]) == 3
    assert (out / "report.sarif").read_text() == sarif.read_text()
    rules = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert rules == {result["ruleId"] for result in log["runs"][0]["results"]} == {
        "GuestFault/read", "GuestFault/write", "GuestFault/fetch"}
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert any(place.get("artifactLocation", {}).get("uri") == "packets.c" and place["region"]["startLine"] > 0
               for place in places)
    text = (out / "report.txt").read_text()
    assert "SIGSEGV in take_number+" in text and "packets.c:" in text and "again: kprobes fuzz" in text
    assert json.loads((out / "report.json").read_text())["findings"][0]["registers"]["sp"]
    assert "DA:" in lines.read_text() and "packets.c" in lines.read_text()


def test_hangs_and_what_cannot_be_read(tmp_path: Path, corpus: Path) -> None:
    (corpus / "hang").write_bytes(b"KPS\x01\x00")
    (corpus / "gone").symlink_to(corpus / "nowhere")
    done = fuzz(packets("x86_64"), *CALL, "--replay", corpus, "--jobs", "1", "--timeout", "0.3", "--json")
    said = json.loads(done.stdout)
    assert said["failed"] == {str(corpus / "hang"): "OutOfTime: no end within 0.3 seconds"}
    assert len(said["findings"]) == 3


def test_too_much_memory(tmp_path: Path, corpus: Path) -> None:
    """A run that takes more than it may is a crash of its own kind; loading does not count."""
    path = target(tmp_path, f"""
from kprobes import UnicornMachine

machine = UnicornMachine.load({packets('arm64')!r})
large = bytearray(300 << 20)


def fuzz(data):
    if data == b"K":
        bytearray(200 << 20)
""")
    done = fuzz(path, "--replay", corpus, "--jobs", "1", "--memory", "100", "--json")
    said = json.loads(done.stdout)
    assert [(finding["kind"], Path(finding["input"]).name) for finding in said["findings"]] == [("MemoryError", "short")]
    assert said["failed"] == {}


def test_goes_on(tmp_path: Path, corpus: Path) -> None:
    """After a kill: what the journal has is not run again, and its findings are there."""
    out = tmp_path / "out"
    words = (packets("arm"), *CALL, "--replay", corpus, "-o", out, "--jobs", "1", "--json")
    whole = json.loads(fuzz(*words).stdout)
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:5]) + lines[5][:20])  # a kill has cut the sixth
    for path in (out / "crashes").rglob("*.txt"):
        path.unlink()
    again = fuzz(*words)
    assert json.loads(again.stdout) == whole
    assert len(journal.read_bytes().splitlines()) == len(lines)
    assert len([*(out / "crashes").rglob("report.txt")]) == 3
    other = fuzz(packets("arm"), *CALL, "--replay", corpus, "-o", out, "--jobs", "1", "--timeout", "3")
    assert other.exit_code == 2 and "the journal of another campaign" in other.stderr


@pytest.mark.parametrize("damage", [{"edges": "AAAA"}, {"edges": 5}, {"bytes": "many"}, {"finding": {"hash": 1}}, {"finding": 7}])
def test_a_damaged_journal(tmp_path: Path, corpus: Path, damage: dict[str, object]) -> None:
    """JSON that is another's, or was changed."""
    out = tmp_path / "out"
    words = (packets("arm"), *CALL, "--replay", corpus / "name", "-o", out, "--jobs", "1")
    assert fuzz(*words).exit_code == 1
    journal = out / "journal.jsonl"
    first, line = journal.read_text().splitlines()
    entry = json.loads(line)
    entry["result"].update(damage)
    journal.write_text(f"{first}\n{json.dumps(entry)}\n")
    done = fuzz(*words)
    assert done.exit_code == 2 and "is damaged" in done.stderr and len(done.stderr.splitlines()) == 1, done.output


@pytest.mark.long
def test_a_full_disk(tmp_path: Path, corpus: Path) -> None:
    """One sentence; with more room the same command goes on."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "kprobes", "fuzz", packets("arm64"), *CALL, "--replay", str(corpus), "-o", str(out),
               "--jobs", "1"]

    def small_files() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500))

    full = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files, check=False)
    assert full.returncode == 2 and "Traceback" not in full.stderr and "File too large" in full.stderr
    assert f"{out} cannot be written" in full.stderr and "type the same command" in full.stderr
    assert len(full.stderr.splitlines()) == 1
    more = subprocess.run(command, capture_output=True, text=True, check=False)
    assert more.returncode == 1 and "3 crashes" in more.stderr


@pytest.mark.long
def test_ctrl_c(tmp_path: Path, corpus: Path) -> None:
    """What was run is kept, and said; the same command goes on."""
    target = tmp_path / "target.py"
    target.write_text(f"""
import os, signal, time
from kprobes import UnicornMachine

machine = UnicornMachine.load({packets('arm64')!r})
FIRST = {str(tmp_path / 'first')!r}


def fuzz(data):
    if data == b"K" and not os.path.exists(FIRST):
        open(FIRST, "w").close()
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(30)
""")
    command = [sys.executable, "-m", "kprobes", "fuzz", str(target), "--replay", str(corpus), "-o", str(tmp_path / "out"),
               "--jobs", "1"]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert stopped.returncode == 130 and "type the same command to go on" in stopped.stderr, stopped.stderr
    more = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert more.returncode == 0 and "9 inputs" in more.stderr, more.stderr


def target(tmp_path: Path, text: str) -> str:
    path = tmp_path / "target.py"
    path.write_text(text)
    return str(path)


BROKEN = [
    ("machine = 1", "target.py defines no `machine`"),
    ("from kprobes import UnicornMachine\nmachine = UnicornMachine.from_code(b'\\xc3', arch='x86_64')", "no function `fuzz`"),
    ("x = 1\nraise RuntimeError('no')", "target.py:2: RuntimeError: no"),
    ("def fuzz(:\n", "target.py:1: SyntaxError"),
    ("import sys\nsys.exit(4)", "SystemExit: 4"),
    ("from kprobes import UnicornMachine\nUnicornMachine.load('/nowhere')", "target.py:2: /nowhere"),
    ("\0", "target.py"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN, ids=range(len(BROKEN)))
def test_broken_targets(tmp_path: Path, corpus: Path, text: str, said: str) -> None:
    path = target(tmp_path, text)
    for words in ((path, corpus / "fine"), (path, "--replay", corpus)):
        done = fuzz(*words)
        assert done.exit_code == 2 and said in done.stderr and "Traceback" not in done.output, done.output


def test_an_oracle(tmp_path: Path, corpus: Path) -> None:
    """What a handler raises is a crash of SIGABRT, found where the guest stood; so is a mistake of the target's own."""
    path = target(tmp_path, f"""
from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.fuzz import Crash

machine = UnicornMachine.load({packets('arm64')!r})
k = Kprobes(machine)
text = machine.alloc(64)


@k.kprobe("take_name")
def short(p, regs):
    if regs.arg(1) < 4:
        raise Crash("a short name")


def fuzz(data):
    machine.write(text, data)
    machine.call("parse", text, len(data))
""")
    done = fuzz(path, corpus / "records", "--json")
    finding = json.loads(done.stdout)["findings"][0]
    assert done.exit_code == 1
    assert (finding["signal"], finding["kind"], finding["reason"]) == ("SIGABRT", "Crash", "a short name")
    assert [place["name"].partition("+")[0] for place in finding["stack"]] == ["take_name", "parse"]
    mistaken = fuzz(path, corpus / "name", "--json")  # 252 bytes do not go into 64, but the heap has room
    assert mistaken.exit_code == 1
    assert fuzz(path, corpus / "fine").exit_code == 0


def test_an_oracle_with_more_to_say(tmp_path: Path, corpus: Path) -> None:
    """An error's `finding`: its kind tells crashes apart, its text is in the report."""
    path = target(tmp_path, f"""
from attrs import frozen
from kprobes import UnicornMachine
from kprobes.fuzz import Crash

machine = UnicornMachine.load({packets('arm')!r})


@frozen
class Found:
    kind: str

    def __str__(self):
        return "headline\\n  allocated at\\n    here"


def fuzz(data):
    error = Crash("headline")
    error.finding = Found("even" if len(data) % 2 == 0 else "odd")
    raise error
""")
    done = fuzz(path, "--replay", corpus, "--jobs", "1", "--json")
    found = json.loads(done.stdout)["findings"]
    assert {finding["kind"] for finding in found} == {"Crash/even", "Crash/odd"} and len({finding["hash"] for finding in found}) == 2
    assert found[0]["details"] == ["  allocated at", "    here"]
    assert "    allocated at\n      here\n" in fuzz(path, corpus / "fine").stdout


@pytest.mark.parametrize("size", [3 << 30, (1 << 20) + 1], ids=["3 GiB", "a byte more"])
def test_an_input_beyond_the_limit(tmp_path: Path, corpus: Path, size: int) -> None:
    """It is no crash: it is told of, with the limit, and not run; the others are."""
    large = corpus / "large"
    with open(large, "wb") as file:
        file.truncate(size)
    said = f"an input of {size:,} bytes is not run: at most 1,048,576 are"
    one = fuzz(packets("arm64"), *CALL, large)
    assert one.exit_code == 2 and said in one.stderr and "--max-input" in one.stderr, one.output
    out = tmp_path / "out"
    all_of_them = fuzz(packets("arm64"), *CALL, "--replay", corpus, "-o", out, "-j", "1", "--json")
    assert all_of_them.exit_code == 1, all_of_them.output
    found = json.loads(all_of_them.stdout)
    assert {Path(item).name for item in found["failed"]} == {"large"}
    assert said in found["failed"][str(large)] and len(found["findings"]) == 3


def test_an_input_within_the_limit_that_was_given(tmp_path: Path, corpus: Path) -> None:
    """Of a crash by it the command that repeats it has the limit, too; a pipe's bytes count as they come."""
    words = (packets("arm64"), *CALL, "--max-input", "4")
    assert fuzz(*words, corpus / "short").exit_code == 0
    refused = fuzz(*words, corpus / "number")
    assert refused.exit_code == 2 and "of 7 bytes is not run: at most 4 are" in refused.stderr
    crash = fuzz(packets("arm64"), *CALL, "--max-input", str(1 << 21), corpus / "number")
    assert crash.exit_code == 1 and "--max-input 2097152" in crash.stdout
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", str(corpus / "number"), str(pipe)]):
        piped = fuzz(*words, pipe)
    assert piped.exit_code == 2 and "of more than 4 bytes is not run" in piped.stderr


WRONG = [
    (("{0}",), "how is"), (("{0}", "--call", "parse("), "no argument here"), (("{0}", *CALL), "afl-fuzz has not started this"),
    (("{0}", *CALL, "@@"), "afl-fuzz has not started this"), (("{0}", *CALL, "{1}/nowhere"), "No such file"),
    (("{0}", *CALL, "{1}"), "--replay FOLDER"), (("{0}", *CALL, "--replay", "{1}/nowhere"), "No such file"),
    (("{0}", *CALL, "{1}/fine", "--replay", "{1}"), "leave INPUT out"), (("{0}", *CALL, "{1}/fine", "-o", "{1}"), "go with --replay"),
    (("{0}", *CALL, "--replay", "{1}", "-o", "{1}/out"), "whose files are the inputs"),
    (("{0}", *CALL, "--replay", "{1}", "--coverage", "x.what"), "no format"),
    (("{0}", *CALL, "--base", "0x1000", "{1}/fine"), "a raw image needs --arch"),
    (("{0}", *CALL, "--map-size", "1000", "{1}/fine"), "power of two"), (("x.py", "--before", "a()", "{1}/fine"), "go with --call"), (("x.py", "--heap", "{1}/fine"), "go with --call"),
    (("{0}", *CALL, "--replay", "{2}"), "has no inputs"), (("{0}", *CALL, "{1}/fine", "--timeout", "inf"), "give less than"),
    (("{0}", *CALL, "{1}/fine", "--timeout", "nan"), "timeout"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), WRONG, ids=range(len(WRONG)))
def test_wrong_words(tmp_path: Path, corpus: Path, words: tuple[str, ...], said: str) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    done = fuzz(*(word.format(packets("arm64"), corpus, empty) for word in words))
    assert done.exit_code == 2 and said in done.output and "Traceback" not in done.output, done.output


def test_a_corpus_of_somebody_else(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "out" / "corpus").mkdir(parents=True)
    done = fuzz(packets("arm64"), *CALL, "--replay", corpus, "-o", tmp_path / "out")
    assert done.exit_code == 2 and "no replay has made it" in done.stderr


@pytest.mark.quick
def test_inputs_of_a_fuzzer(tmp_path: Path) -> None:
    """AFL++'s own files are none; nor are hidden ones."""
    main_, other = tmp_path / "main", tmp_path / "other"
    for instance in (main_, other):
        for folder in ("queue/.state/deterministic_done", "crashes", "hangs"):
            (instance / folder).mkdir(parents=True)
        for name in ("fuzzer_stats", "cmdline", ".cur_input", "fuzz_bitmap", "plot_data", "crashes/README.txt",
                     "queue/.state/deterministic_done/id:0", "queue/id:0", "crashes/id:1", "anything_new"):
            (instance / name).write_bytes(b"x")
    assert [str(path.relative_to(tmp_path)) for path in inputs_of(tmp_path)] == [
        "main/crashes/id:1", "main/queue/id:0", "other/crashes/id:1", "other/queue/id:0"]
    assert inputs_of(main_ / "queue" / "id:0") == [main_ / "queue" / "id:0"]
    with pytest.raises(BadArgument, match="no inputs"):
        inputs_of(main_ / "hangs")


@pytest.mark.long
def test_a_corpus_with_anything_in_it(tmp_path: Path) -> None:
    """Links that lead nowhere or to each other, pipes and devices are no inputs; names need not be text."""
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    (corpus / "sub").mkdir(parents=True)
    (corpus / "loop").symlink_to("loop")
    (corpus / "nowhere").symlink_to("gone")
    (corpus / "sub" / "up").symlink_to("..")
    (corpus / "zero").symlink_to("/dev/zero")
    os.mkfifo(corpus / "pipe")
    (corpus / "empty").touch()
    name = os.fsdecode(b"b\xff\nd")
    (corpus / name).write_bytes(b"KPT\3\200\0\0")
    command = [sys.executable, "-m", "kprobes", "fuzz", packets("arm64"), *CALL, "--replay", str(corpus), "-o", str(out),
               "--jobs", "1", "--sarif", str(tmp_path / "found.sarif")]
    for more in ((), ("--json",)):  # the second time all comes of the journal
        ran = subprocess.run([*command, *more], capture_output=True, check=False)
        assert ran.returncode == 1 and b"defect" not in ran.stderr + ran.stdout, ran.stderr
    assert [one["input"] for one in json.loads(ran.stdout)["findings"]] == [str(corpus / name)]
    report = (out / "report.txt").read_bytes()
    assert b"take_number" in report and json.loads((out / "report.json").read_text())
    assert len(list((out / "crashes").iterdir())) == 1


@pytest.mark.long
def test_targets_that_print(tmp_path: Path, corpus: Path) -> None:
    """With --json stdout is one object, whatever a target prints, here or in its processes."""
    path = target(tmp_path, f"""
from kprobes import UnicornMachine
machine = UnicornMachine.load({packets('arm64')!r})
print("loaded")
def fuzz(data):
    print("running", flush=True)
""")
    for words in (["--replay", str(corpus), "-j", "1"], [str(next(corpus.glob("*")))]):
        ran = subprocess.run([sys.executable, "-m", "kprobes", "fuzz", path, *words, "--json"], capture_output=True,
                             text=True, check=True)
        assert json.loads(ran.stdout)["findings"] == [] and "loaded" in ran.stderr and "running" in ran.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", [b"plain", b"two words", b"b\xffd", b"two\nlines", b"it's \\ \xc3\xa4"])
def test_the_command_that_repeats_a_crash(tmp_path: Path, name: bytes) -> None:
    """A shell runs it as it is printed, whatever the input's name."""
    path = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(path)).write_bytes(b"KPT\3\200\0\0")
    first = subprocess.run([sys.executable, "-m", "kprobes", "fuzz", packets("arm64"), *CALL, path], capture_output=True,
                           check=False)
    again = next(line for line in first.stdout.splitlines() if line.startswith(b"  again: kprobes "))
    command = again.removeprefix(b"  again: kprobes ")
    typed = subprocess.run([b"bash", b"-c", os.fsencode(sys.executable) + b" -m kprobes " + command],
                           capture_output=True, check=False)
    assert typed.returncode == 1 and typed.stdout == first.stdout, typed.stderr


@pytest.mark.quick
def test_smallest() -> None:
    """All edges, by few and small inputs."""
    results = {name: {"bytes": size, "edges": packed(array("I", edges))} for name, size, edges in (
        ("all but one", 50, [1, 2, 3, 4]), ("small", 1, [1, 2]), ("smaller", 0, [1]), ("rare", 90, [9, 1]),
        ("rare, less", 80, [9]), ("nothing", 0, []))}
    assert smallest(results) == ["all but one", "rare, less"] and smallest({}) == []
    assert edges_in(results.values()) == 1  # edges are numbers times 16
    with pytest.raises(ValueError, match="decompress"):
        unpacked("AAAA")


@pytest.mark.quick
@pytest.mark.parametrize(("typed", "call", "path"), [
    ("parse(@@, @len)", "parse(@input, len)", None), ("parse(@input, len)", "parse(@input, len)", None),
    ("parse(/tmp/a b/out/.cur_input, @len)", "parse(@input, len)", "/tmp/a b/out/.cur_input"),
    ("parse(1, /o/.cur_input.png,@len)", "parse(1, @input,len)", "/o/.cur_input.png"),
    ('parse("@@ /x/.cur_input", @@)', 'parse("@@ /x/.cur_input", @input)', None), ("parse(/my/file)", "parse(@input)", "/my/file"),
])
def test_calls_as_afl_leaves_them(typed: str, call: str, path: str | None) -> None:
    assert call_of(typed) == (call, path)


@pytest.mark.quick
def test_findings(tmp_path: Path) -> None:
    """Of several inputs the smallest one is kept; text of a guest's reaches no terminal as it is."""
    made = Finding("abc", "SIGSEGV", "GuestFault", "bad \x1b[31m", "read", 1, {"pc": 1}, PLACES, False, PLACES, [])
    for name, size in (("large", 9), ("small", 2), ("middle", 5)):
        (tmp_path / name).write_bytes(bytes(size))
    found = Findings(["kprobes", "fuzz", "x.py"], tmp_path / "out")
    found.note("nothing", None)
    for name, size in (("large", 9), ("small", 2), ("middle", 5)):
        found.note(str(tmp_path / name), {"bytes": size, "finding": made.to_json()})
    found.report()
    assert len(found) == 1 and found.all[0].count == 3 and (tmp_path / "out/crashes/abc/input").read_bytes() == bytes(2)
    assert "\x1b" not in headline(made) and "\x1b" not in (tmp_path / "out/report.txt").read_text()
    assert Finding.from_json(json.loads(json.dumps(made.to_json()))) == made


PLACES = Finding.from_json({
    "hash": "", "signal": "", "kind": "", "reason": "", "access": "", "address": None, "registers": {}, "incomplete": False,
    "stack": [{"address": 4096, "name": "f\x1b+0x1", "line": "a.c:3"}], "path": [], "details": []}).stack


@pytest.mark.quick
def test_reading_beyond_an_input_is_a_fault(tmp_path: Path) -> None:
    """A call's input lies before unmapped memory, aligned as malloc()'s blocks are."""
    code = bytes.fromhex("488d0437 0fb640 40 c3".replace(" ", ""))  # lea rax, [rdi+rsi]; movzx eax, byte [rax+64]; ret
    image = tmp_path / "raw"
    image.write_bytes(code)
    (tmp_path / "names").write_text("10000 T beyond\n")
    bench = InputRunner(CallTarget(str(image), "beyond(@input, len)", arch="x86_64", base=0x10000,
                             symbols=str(tmp_path / "names")).load())
    fate = bench.run(b"x" * 100)
    assert fate.signal == signal.SIGSEGV and "read" in str(fate.error)


@pytest.mark.quick
def test_libraries_and_system_calls(tmp_path: Path) -> None:
    """A C library that is loaded behind, and what it asks of Linux."""
    (tmp_path / "raw").write_bytes(bytes.fromhex("b827000000 0f05 c3"))  # mov eax, 39; syscall; ret
    (tmp_path / "names").write_text("10000 T getpid\n")
    target = CallTarget(str(tmp_path / "raw"), "getpid(@input)", arch="x86_64", base=0x10000,
                        symbols=str(tmp_path / "names"), preload=(str(EXAMPLES / "tags.x86_64"),))
    loaded = target.load()
    assert "tags_read" in loaded.machine.symbols and InputRunner(loaded).run(b"").signal == signal.SIGSYS
    assert not InputRunner(evolve(target, syscalls=True).load()).run(b"").signal


RAW = ("--arch", "cortexm", "--base", "0x8000000", "--symbols", EXAMPLES / "firmware.symbols", "--ram", "0x20000000:0x1000",
       "--device", "simple-uart@0x40000000,name=UART", "--reg", "r4=0x5", "--entry", "0x8000001", "--mmio", "0x40001000:0x1000",
       "--rom", f"{EXAMPLES / 'firmware.bin'}@0x9000000")
BOARDS = {"file": ("--board", EXAMPLES / "firmware.toml"), "options": RAW}


@pytest.mark.quick
@pytest.mark.parametrize("board", BOARDS)
def test_firmware(tmp_path: Path, board: str) -> None:
    """A raw image with its memory and devices from the command line; what repeats a crash has all of it."""
    (tmp_path / "line").write_bytes(b"hello")
    (tmp_path / "port").write_bytes(b"A line\n\n")
    words = (EXAMPLES / "firmware.bin", *BOARDS[board])
    fine = fuzz(*words, "--call", "checksum(@@, @len)", tmp_path / "line", "--json")
    assert fine.exit_code == 0 and json.loads(fine.stdout)["findings"] == [], fine.output
    # the serial port receives the same in each run: it goes back, too
    answers = fuzz(*words, "--input", tmp_path / "port", "--before", "uart_receive()", "--call", "read_line(@@)", tmp_path / "line")
    assert answers.exit_code == 0, answers.output
    failed = fuzz(*words, "--call", "checksum(@@, 0x200000)", tmp_path / "line", "--json")
    assert failed.exit_code == 1, failed.output
    [finding] = json.loads(failed.stdout)["findings"]
    assert finding["stack"][0]["name"].startswith("checksum+")
    again = fuzz(*shlex.split(finding["again"])[2:], "--json")
    assert again.exit_code == 1, again.output
    assert json.loads(again.stdout)["findings"][0]["hash"] == finding["hash"]


def test_a_folder_of_inputs_is_replayed_on_a_board(tmp_path: Path) -> None:
    (inputs := tmp_path / "inputs").mkdir()
    for n in range(3):
        (inputs / str(n)).write_bytes(b"hello"[:n + 1])
    done = fuzz(EXAMPLES / "firmware.bin", "--board", EXAMPLES / "firmware.toml", "--call", "checksum(@@, @len)",
                "--replay", inputs, "--jobs", "1", "--json")
    assert done.exit_code == 0 and json.loads(done.stdout)["findings"] == [], done.output


def test_a_boards_task_pointer_may_be_one_of_the_names(tmp_path: Path) -> None:
    """Names are there before the board is fitted, as in the other commands."""
    (image := tmp_path / "f.bin").write_bytes(bytes.fromhex("1eff2fe1"))
    (names := tmp_path / "names").write_text("00000000 T f\n00001000 D current\n")
    board = Board(arch="arm", base=0, ram=((0x1000, 0x1000),), task=TaskPointer("current"))
    target = CallTarget(str(image), "f(@input)", board=board, symbols=str(names))
    with target.load().machine as m:
        assert m.cpu_task is not None


def test_devices_go_back_before_each_run(tmp_path: Path) -> None:
    board = Board.load(EXAMPLES / "firmware.toml")
    target = CallTarget(str(EXAMPLES / "firmware.bin"), "read_line(@input)", board=board, received=b"abc\n", max_insns=10_000)
    loaded = target.load()
    runner = InputRunner(loaded)
    assert isinstance(loaded.machine.board, Fitted)
    for _ in range(3):
        assert not runner.run(b"").signal
        assert not loaded.machine.board.uarts[0].received
    with pytest.raises(BadArgument, match="serial port"):
        CallTarget(packets("arm64"), "parse(@input, len)", received=b"abc").load()


@pytest.mark.parametrize(("text", "said"), [
    ('machine.call("prase", text, len(data))', ":4: prase: no such symbol; did you mean parse?"),
    ("machine.call(0x123, text, len(data))", "no code is at 0x123, which is called"),
    ('machine.call("parse", txt, len(data))', ":4: NameError: name 'txt' is not defined"),
    ("machine.regs.x99 = 1", ":4: "),
])  # fmt: skip
def test_a_mistake_in_a_target_is_no_crash(tmp_path: Path, corpus: Path, text: str, said: str) -> None:
    file = tmp_path / "target.py"
    file.write_text(f"from kprobes import UnicornMachine\nmachine = UnicornMachine.load({packets('arm64')!r}); text = machine.alloc(64)\n"
                    f"def fuzz(data):\n    {text}\n")
    for words in ((corpus / "fine",), ("--replay", corpus, "--jobs", "1")):
        done = fuzz(file, *words)
        assert done.exit_code == 2 and said in done.output and "SIG" not in done.output, done.output


def test_calls_of_no_code(corpus: Path) -> None:
    for call in ("0x123(@@)", "text_of_nothing(@@)"):
        done = fuzz(packets("arm64"), "--call", call, corpus / "fine")
        assert done.exit_code == 2 and ("no code is at 0x123" in done.output or "no such symbol" in done.output), done.output


def test_one_line_of_json(corpus: Path) -> None:
    for name in ("fine", "name"):
        done = fuzz(packets("arm64"), *CALL, corpus / name, "--json")
        assert done.stdout.count("\n") == 1


def test_words_of_targets() -> None:
    given = CallTarget("a b", "f(@input)", ("g()", "h(1)"), "arm64", 0x1000, "names", 5)
    assert shlex.join(given.words) == ("'a b' --call 'f(@input)' --before 'g()' --before 'h(1)' --arch arm64 --symbols names "
                                       "--base 0x1000 --max-insns 5")
    more = CallTarget("a", "f(@input)", preload=("b", "c"), syscalls=True, heap=True)
    assert shlex.join(more.words) == "a --call 'f(@input)' --preload b --preload c --syscalls --heap"
    assert PythonTarget("x.py").words == ["x.py"] and os.sep not in PythonTarget("x.py").path
