"""Runs bpftrace's own runtime tests through `kprobes script`.

    PYTHONPATH=tests python -m script.bpftrace_suite CHECKOUT [--only REGEX] [--write FILE.json]

`CHECKOUT` is the folder of a checkout of bpftrace. Each test runs in a process forked from this
one, so that hundreds start quickly and none can disturb another. Test programs are compiled by
the host's C compiler and run as guests under QEMU's user mode.
"""

import argparse
import contextlib
import io
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import attrs
from script.bpftrace_classes import ALONE, GUEST, Rule, rule_for
from script.bpftrace_tests import Expectation, RuntimeTest, read_tests

from kprobes import Kprobes, UnicornMachine
from kprobes.cli import main
from kprobes.script.script import Script

#: Imported before processes are forked, so that each starts at once.
_IMPORTED = (Kprobes, Script, UnicornMachine)
#: Options of bpftrace's that take a value, in both spellings.
_VALUED = frozenset(("-e", "-f", "-o", "-c", "-p", "-I", "-B", "-d")) | {
    "--cmd",
    "--debuginfo",
    "--include",
    "--mode",
    "--output",
    "--pid",
    "--probe-filter",
    "--traceable-functions",
}
_SHELL = re.compile(r"[|;<>&`]|\$\(")
_SIGNALS = {
    "pkill -SIGINT bpftrace": signal.SIGINT,
    "kill -s USR1 $(pidof bpftrace)": signal.SIGUSR1,
}
_CFLAGS = ("-g", "-O0", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-w")
#: Test program -> flags that it is compiled with instead.
_OTHER_CFLAGS = {
    "uprobe_nofp": ("-g", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-w")
}


@attrs.frozen
class Outcome:
    """What a run printed.

    Attributes:
        output: standard output, with standard error in it unless all of the output is compared.
        error: standard error, where it is kept apart.
        status: the exit status; None where the run was ended because its time was over.
        seconds: how long it took.
    """

    output: str
    error: str
    status: int | None
    seconds: float


@attrs.frozen
class Result:
    """Whether a test passed.

    Attributes:
        test: which.
        rule: why it ran or did not.
        passed: None if it did not run.
        why: what was wrong, or "".
        outcome: what it printed; None if it did not run.
    """

    test: RuntimeTest
    rule: Rule
    passed: bool | None
    why: str = ""
    outcome: Outcome | None = None


def arguments(words: Sequence[str], guest: Sequence[str]) -> list[str]:
    """Return bpftrace's arguments as those of `kprobes script`.

    Args:
        words: behind `bpftrace`.
        guest: arguments that choose the guest, if one does; they come first.
    """
    options: list[str] = []
    parameters: list[str] = []
    script: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            parameters += rest
            break
        if word in _VALUED and rest:
            options += [word, rest.pop(0)]
        elif word.startswith("-") and word != "-":
            options.append(word)
        elif not script and not {"-e", "-l", "-lv"} & set(options):
            script.append(word)
        else:
            listing = {"-l", "-lv"} & set(options) and not script and "-e" not in options
            (script if listing else parameters).append(word)
    return [*guest, *script, *options, *(["--", *parameters] if parameters else [])]


def guest_of(test: RuntimeTest) -> list[str]:
    """Return the arguments for the guest that a test means; none where its `-c` says it."""
    if re.search(r" (-c|--cmd) ", test.run):
        return ["--qemu"]
    commands = [test.after, *test.befores]
    for command in commands:
        words = [word for word in shlex.split(command) if not word.endswith("disable_aslr")]
        if words and "/" in words[0]:
            given = [f"--arg={word.rstrip(';')}" for word in words[1:]]
            return [words[0].rstrip(";"), "--qemu", *given]
    named = re.search(r"\.?/?test(progs|libs)/[\w.-]+\*?|/bin/bash", test.text)
    if not named or named[0].endswith("*"):
        return []
    return [named[0]] if " -l" in test.run else [named[0], "--qemu"]


def _words(test: RuntimeTest) -> list[str] | None:
    """Return the words behind `bpftrace`; None where a shell has to run the test."""
    if test.program:
        quiet = ["-q", "-f", "json"] if test.expects and test.expects[0].mode == "json" else []
        return [*quiet, "-e", test.program]
    unquoted = re.sub(r"'[^']*'|\"[^\"$`]*\"", "", test.run)
    if _SHELL.search(unquoted) or not test.run.startswith("{{BPFTRACE}}"):
        return None
    return shlex.split(test.run)[1:]


def _child(argv: Sequence[str], folder: Path, environment: dict[str, str]) -> int:
    """Be `kprobes script`: called in a forked process. Returns the exit status."""
    os.chdir(folder)
    os.environ.update(environment)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), errors="surrogateescape")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), errors="surrogateescape")
    try:
        status = main(["script", *argv])
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        return 99
    sys.stdout.flush()
    sys.stderr.flush()
    if status is None:
        return 0
    return status if isinstance(status, int) else 1


def _fork(
    argv: Sequence[str], folder: Path, environment: dict[str, str], out: int, err: int
) -> int:
    """Start `kprobes script` in a process of its own. Returns its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        status = _child(argv, folder, environment)
    finally:
        os._exit(status)


@contextlib.contextmanager
def _pipes(apart: bool) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Yield (where output goes, where errors go, reader -> 0 for output and 1 for errors)."""
    pairs = [os.pipe(), os.pipe()] if apart else [os.pipe()]
    try:
        yield pairs[0][1], pairs[-1][1], {pair[0]: index for index, pair in enumerate(pairs)}
    finally:
        for reader, writer in pairs:
            os.close(reader)
            with contextlib.suppress(OSError):
                os.close(writer)


def run_forked(
    argv: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    timeout: float,
    apart: bool = False,
    sent: int | None = None,
) -> Outcome:
    """Run `kprobes script` with `argv` and return what it printed.

    Args:
        argv: behind `kprobes script`.
        folder: where it runs.
        environment: variables that are set.
        timeout: seconds until it is told to end, by SIGTERM.
        apart: True keeps standard error out of the output.
        sent: a signal that it gets once its probes are attached.
    """
    begun = time.monotonic()
    chunks: list[list[bytes]] = [[], []]
    status: int | None = None
    overdue = False
    with _pipes(apart) as (out, err, readers), selectors.DefaultSelector() as selector:
        child = _fork(argv, folder, environment, out, err)
        for descriptor in {out, err}:
            os.close(descriptor)
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ)
        limit = begun + timeout
        while selector.get_map():
            for key, _ in selector.select(max(0.0, min(0.2, limit - time.monotonic()))):
                data = os.read(key.fd, 65536)
                if not data:
                    selector.unregister(key.fd)
                chunks[readers[key.fd]].append(data)
            if sent is not None and b"Attached" in b"".join(chunks[0]):
                time.sleep(0.5)  # as long as bpftrace's runner takes to start what sends it
                os.kill(child, sent)
                sent = None
            if time.monotonic() >= limit:
                (os.killpg if overdue else os.kill)(child, signal.SIGKILL if overdue else signal.SIGTERM)
                if overdue:
                    break
                overdue = True
                limit = time.monotonic() + 3
        _, code = os.waitpid(child, 0)
    if not overdue:
        status = os.waitstatus_to_exitcode(code)
    output, error = (b"".join(part).decode("utf-8", "backslashreplace") for part in chunks)
    return Outcome(output, error, status, time.monotonic() - begun)


def _run_in_shell(
    command: str, folder: Path, environment: dict[str, str], timeout: float
) -> Outcome:
    begun = time.monotonic()
    with subprocess.Popen(
        command,
        shell=True,
        executable="/bin/bash",
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=timeout)[0]
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0]
            status = None
    text = output.decode("utf-8", "backslashreplace")
    return Outcome(text, "", status, time.monotonic() - begun)


def _fits(expect: Expectation, outcome: Outcome, folder: Path, localized: str | None) -> bool:
    """Whether an expectation holds."""
    output = outcome.output
    line = rf"^\s*{re.escape(expect.text)}\s*$"
    if expect.mode == "text":
        return bool(re.search(line, output, re.MULTILINE))
    if expect.mode == "text_none":
        return not re.search(line, output, re.MULTILINE)
    if expect.mode == "regex":
        return bool(re.search(expect.text, output, re.MULTILINE))
    if expect.mode == "regex_none":
        return not re.search(expect.text, output, re.MULTILINE)
    wanted = (folder / expect.text).read_text().strip()
    if expect.mode == "file":
        if localized is not None:
            wanted = time.strftime(wanted, time.localtime(int(localized)))
        return bool(output.strip() == wanted)
    lines = output.strip().splitlines()
    if not expect.text.endswith(".ndjson"):
        return len(lines) == 1 and json.loads(lines[0]) == json.loads(wanted)
    return [json.loads(text) for text in lines] == [
        json.loads(text) for text in wanted.splitlines()
    ]


def judge(test: RuntimeTest, outcome: Outcome, folder: Path) -> str:
    """Return what is wrong with an outcome, or ""."""
    if outcome.status == 99 and "Traceback" in outcome.output + outcome.error:
        return "a traceback"
    for expect in test.expects:
        try:
            good = _fits(expect, outcome, folder, test.fields.get("LOCALIZE_TIMESTAMPS"))
        except ValueError as error:
            return f"{expect.mode}: {error}"
        if not good:
            return f"{expect.mode}: {expect.text}"
    if outcome.status is None:
        return ""
    if "WILL_FAIL" in test.fields:
        return "" if outcome.status else "exit status 0, expected another"
    wanted = int(test.fields.get("RETURN_CODE", "0"))
    return "" if outcome.status == wanted else f"exit status {outcome.status}, expected {wanted}"


class Bench:
    """A folder in which tests run: bpftrace's files, and its test programs compiled.

    Args:
        checkout: the folder of a checkout of bpftrace.
        folder: an empty folder.
    """

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._sources = checkout / "tests"
        self.folder = folder
        for name in ("runtime", "self"):
            (folder / name).symlink_to(self._sources / name)
        (folder / "testprogs").mkdir()
        (folder / "testlibs").mkdir()
        wrapper = folder / "bpftrace"
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kprobes script $KPROBES_GUEST "$@"\n')
        wrapper.chmod(0o755)
        self._missing: set[str] = set()

    def _compile(self, sources: Sequence[Path], target: Path, flags: Sequence[str]) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None or not all(source.exists() for source in sources):
            return
        include = f"-I{self._sources / 'include'}"
        command = [compiler, *flags, include, *map(str, sources), "-o", str(target)]
        subprocess.run(command, check=False, capture_output=True)

    def _library(self, name: str) -> None:
        target = self.folder / "testlibs" / name
        source = self._sources / "testlibs" / (name[len("lib") : -len(".so")] + ".c")
        if not target.exists():
            self._compile([source], target, ("-g", "-O0", "-shared", "-fPIC", "-w"))

    def _programs(self, text: str) -> list[str]:
        """Return the names of the test programs that a test names, by globs as well."""
        found = list[str]()
        for name, many in re.findall(r"testprogs/([\w-]+)(\*?)", text):
            matching = sorted(path.stem for path in (self._sources / "testprogs").glob(f"{name}*.c"))
            found += matching if many else [name]
        return found

    def prepare(self, test: RuntimeTest) -> None:
        """Compile the programs and libraries that a test names."""
        text = "\n".join([test.text, test.after, *test.befores])
        script = re.search(r"runtime/scripts/\S+\.bt", text)
        if script:
            text += (self.folder / script[0]).read_text()
        for name in re.findall(r"testlibs/(lib\w+\.so)", text):
            self._library(name)
        for name in self._programs(text):
            target = self.folder / "testprogs" / name
            if target.exists() or name in self._missing:
                continue
            plain = name.removesuffix("-pie")
            pie = ("-fpie", "-pie") if name.endswith("-pie") else ("-no-pie",)
            flags = [*_OTHER_CFLAGS.get(plain, _CFLAGS), *pie]
            source = self._sources / "testprogs" / f"{plain}.c"
            if plain == "usdt_lib":
                self._library("libusdt_tp.so")
                flags += ["-L", str(self.folder / "testlibs"), "-lusdt_tp"]
            self._compile([source], target, flags)
            if not target.exists():
                self._missing.add(name)

    def run(self, test: RuntimeTest, rule: Rule) -> Outcome:
        """Run a test.

        Args:
            test: one that applies here.
            rule: why it does.
        """
        guest: list[str] = []
        if rule.kind == GUEST:
            self.prepare(test)
            guest = guest_of(test)
        environment = {"TERM": "dumb", **test.environment}
        words = _words(test)
        if words is None:
            command = test.run.replace("{{BPFTRACE}}", str(self.folder / "bpftrace"))
            environment["KPROBES_GUEST"] = "" if re.search(r" (-c|-l|-lv)\b", command) else " ".join(guest)
            environment["__BPFTRACE_NOTIFY_PROBES_ATTACHED"] = "1"  # some commands cut it off
            return _run_in_shell(command, self.folder, environment, test.timeout + 10)
        return run_forked(
            arguments(words, guest),
            self.folder,
            environment,
            test.timeout + (10 if guest else 1),
            apart=test.exact,
            sent=_SIGNALS.get(test.after.strip()),
        )


def run_tests(
    checkout: Path,
    only: str = "",
    kinds: Sequence[str] = (ALONE, GUEST),
    passed: Container[str] = (),
) -> Iterator[Result]:
    """Yield the result of each test of a checkout.

    Args:
        checkout: the folder.
        only: a regular expression; tests whose name it is not found in are left out.
        kinds: which kinds run; the others are only classified.
        passed: names of tests that have passed already and do not run again.
    """
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(checkout.resolve(), Path(folder))
        for test in read_tests(checkout):
            rule = rule_for(test)
            if not re.search(only, test.id):
                continue
            if rule.kind not in kinds:
                yield Result(test, rule, None)
                continue
            if test.id in passed:
                yield Result(test, rule, True)
                continue
            outcome = bench.run(test, rule)
            why = judge(test, outcome, bench.folder)
            yield Result(test, rule, not why, why, outcome)


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def _passed(path: Path) -> set[str]:
    rows = json.loads(path.read_text())["tests"]
    return {name for name, _, _, result in rows if result == "passed"}


def write_results(results: Sequence[Result], commit: str, path: Path) -> None:
    """Write what ran as JSON, for docs/generate.py.

    Args:
        results: of all tests.
        commit: of bpftrace's checkout.
        path: the file.
    """
    outcomes = {None: "", True: "passed", False: "failed"}
    rows = [
        [result.test.id, result.rule.kind, result.rule.reason, outcomes[result.passed]]
        for result in results
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f'{{"commit": {json.dumps(commit)}, "tests": [\n{lines}\n]}}\n')


def _show(result: Result, verbose: bool) -> None:
    assert result.outcome is not None
    print(f"FAILED {result.test.id} ({result.outcome.seconds:.1f} s): {result.why}")
    if verbose:
        print(f"    {result.test.text}")
        for line in (result.outcome.output + result.outcome.error).splitlines()[:20]:
            print(f"    | {line}")


def command_line() -> int:
    """Run the suite as a command. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", action="append", choices=("alone", "guest"))
    parser.add_argument("--write", type=Path)
    parser.add_argument(
        "--again", type=Path, help="what --write wrote: only run what has not passed"
    )
    parser.add_argument("-v", "--verbose", action="store_true")
    chosen = parser.parse_args()
    kinds = [{"alone": ALONE, "guest": GUEST}[kind] for kind in chosen.kind or ("alone", "guest")]
    results = []
    passed = _passed(chosen.again) if chosen.again else set()
    for result in run_tests(chosen.checkout, chosen.only, kinds, passed):
        results.append(result)
        if result.passed is False:
            _show(result, chosen.verbose)
            sys.stdout.flush()
    ran = [result for result in results if result.passed is not None]
    print(f"{sum(bool(result.passed) for result in ran)} of {len(ran)} passed")
    if chosen.write:
        write_results(results, _commit(chosen.checkout), chosen.write)
    return 0 if all(result.passed for result in ran) else 1


if __name__ == "__main__":
    sys.exit(command_line())
