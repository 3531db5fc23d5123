#!/usr/bin/env python3
"""Real bpftrace in a real kernel and `kprobes script`, beside each other: the same scripts, the same program.

    tests/fetch_bpftrace FOLDER                            # Debian's bpftrace, kernel and QEMU: 130 MB
    tools/beside_bpftrace/beside.py --fetched FOLDER [--only REGEX] [--write docs/beside-bpftrace.json]

Debian's kernel boots in qemu-system-x86_64, without hardware's help, from an archive with bpftrace, its libraries,
busybox and `guest.c`, compiled by this computer's gcc. It runs each case of `cases.toml`, and tells standard output,
standard error and exit status over the serial line. Then `kprobes script` runs the same command on the same file,
under QEMU's user mode. What differs is shown, byte for byte. What bpftrace answered is kept in `answers.json`, so that
only commands that are not there boot a kernel; without FOLDER, none does.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ANSWERS = HERE / "answers.json"
MEMORY = "3072"  #: MiB; the archive's contents lie in memory
BOOT_SECONDS = 120
CASE_SECONDS = 90  #: at most, of one case
CFLAGS = ("-O1", "-g", "-static", "-no-pie", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
#: Folders that the archive must have.
FOLDERS = ("bin", "cases", "dev", "lib64", "proc", "sys", "tmp", "usr/bin", "usr/lib/x86_64-linux-gnu")
INIT = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
mount -t tracefs tracing /sys/kernel/tracing
mount -t debugfs debug /sys/kernel/debug
ip link set lo up
cd /cases
stty -onlcr
echo "@kernel $(uname -r) $(bpftrace --version)"
for case in *.sh; do
    timeout -s KILL {seconds} sh ./$case > /tmp/out 2> /tmp/err < /dev/null
    echo "@case $case $?"
    base64 /tmp/out
    echo "@errors"
    base64 /tmp/err
    echo "@end"
done
echo o > /proc/sysrq-trigger
sleep 60
"""


class Told:
    """What a command printed.

    Args:
        status: the exit status.
        output: standard output.
        error: standard error.
    """

    def __init__(self, status: int, output: bytes, error: bytes) -> None:
        self.status = status
        self.output = output
        self.error = error

    def parts(self, unordered: bool) -> tuple[int, object, object]:
        """Return what is compared; `unordered` sorts the lines of the output."""
        if unordered:
            return self.status, sorted(self.output.splitlines()), self.error
        return self.status, self.output, self.error


def words_of(case: dict[str, Any]) -> list[str]:
    """Return a case's arguments, those behind `bpftrace` and behind `kprobes script`."""
    words = [] if case.get("loud") else ["-q"]
    words += case.get("options", [])
    if "script" in case:
        words += ["-e", case["script"]]
    if "guest" in case:
        words += ["-c", f"./guest {case['guest']}".strip()]
    return words + (["--", *case["parameters"]] if "parameters" in case else [])


def command_of(case: dict[str, Any]) -> str:
    """Return a case's command of bpftrace, for a shell."""
    return shlex.join(["bpftrace", *words_of(case)])


def read_cases() -> list[dict[str, Any]]:
    """Return the cases of `cases.toml`."""
    cases: list[dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text())["case"]
    return cases


def compile_guest(folder: Path) -> None:
    """Compile `guest.c` into a folder."""
    subprocess.run(["gcc", *CFLAGS, HERE / "guest.c", "-o", folder / "guest"], check=True)


def loader_of(root: Path) -> list[str]:
    """Return the words before a program of another Debian release, unpacked in `root`."""
    libraries = sorted({str(path.parent) for path in (root / "usr/lib").rglob("*.so*")})
    return [str(root / "lib64/ld-linux-x86-64.so.2"), "--library-path", ":".join(libraries)]


def make_archive(root: Path, folder: Path, scripts: Sequence[str]) -> Path:
    """Write the archive that the kernel starts from. Returns its path.

    Args:
        root: Debian's packages, unpacked.
        folder: where to write.
        scripts: shell scripts, one a case.
    """
    tree = folder / "tree"
    for name in FOLDERS:
        (tree / name).mkdir(parents=True)
    bpftrace = root / "usr/bin/bpftrace"
    listed = subprocess.run(
        [*loader_of(root), "--list", bpftrace], check=True, capture_output=True, text=True
    )
    for library in set(re.findall(rf"{re.escape(str(root))}\S+", listed.stdout)):
        place = "lib64" if "ld-linux" in library else "usr/lib/x86_64-linux-gnu"
        shutil.copy(library, tree / place)
    shutil.copy(root / "lib64/ld-linux-x86-64.so.2", tree / "lib64")
    (tree / "lib").symlink_to("usr/lib")
    shutil.copy(bpftrace, tree / "usr/bin")
    busybox = shutil.copy(root / "usr/bin/busybox", tree / "bin")
    init = tree / "init"
    init.write_text(INIT.replace("{seconds}", str(CASE_SECONDS)))
    init.chmod(0o755)
    compile_guest(tree / "cases")
    for number, script in enumerate(scripts):
        (tree / "cases" / f"{number:03}.sh").write_text(script)
    archive = folder / "archive.cpio"
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with archive.open("wb") as file:
        command = [busybox, "cpio", "-o", "-H", "newc"]
        subprocess.run(command, cwd=tree, input=names.encode(), stdout=file, stderr=subprocess.DEVNULL, check=True)
    return archive


def boot(fetched: Path, archive: Path, serial: Path, seconds: float) -> None:
    """Boot Debian's kernel and let it run its archive's cases.

    Args:
        fetched: the folder that tests/fetch_bpftrace filled.
        archive: what it starts from.
        serial: file for what comes over the serial line.
        seconds: that it may take.
    """
    qemu = fetched / "qemu"
    command = [*loader_of(qemu), str(qemu / "usr/bin/qemu-system-x86_64"), "-accel", "tcg", "-cpu", "max", "-m", MEMORY]
    for folder in ("qemu", "seabios"):
        command += ["-L", str(qemu / "usr/share" / folder)]
    kernel = next((fetched / "kernel/boot").glob("vmlinuz-*"))
    command += ["-display", "none", "-no-reboot", "-nic", "none", "-serial", f"file:{serial}"]
    command += ["-kernel", str(kernel), "-initrd", str(archive), "-append", "console=ttyS0 quiet panic=-1 TZ=UTC"]
    subprocess.run(command, stdin=subprocess.DEVNULL, timeout=seconds, check=True)


def read_serial(text: str) -> Iterator[tuple[int, Told]]:
    """Yield (number of the case, what bpftrace printed) from the serial line's text."""
    pattern = r"@case (\d+)\.sh (\d+)\r?\n(.*?)@errors\r?\n(.*?)@end"
    for number, status, output, error in re.findall(pattern, text, re.DOTALL):
        yield int(number), Told(int(status), base64.b64decode(output), base64.b64decode(error))


def run_ours(words: Sequence[str], folder: Path) -> Told:
    """Run `kprobes script` in a folder, which has `guest`."""
    # bpftrace is told of the program by -c, this also that it is a process
    process = ["--qemu"] if "-c" in words else []
    command = [sys.executable, "-m", "kprobes", "script", *process, *words]
    environment = {**os.environ, "TERM": "dumb", "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300
    )
    return Told(done.returncode, done.stdout, done.stderr)


def show(name: str, real: Told, ours: Told) -> None:
    """Print what differs between the two."""
    print(f"== {name}: exit status {real.status} and {ours.status}")
    for stream in ("output", "error"):
        first, second = getattr(real, stream), getattr(ours, stream)
        if first != second:
            print(f"-- {stream} of bpftrace\n{first.decode(errors='replace')}")
            print(f"-- {stream} of kprobes script\n{second.decode(errors='replace')}")
    sys.stdout.flush()


def compare(case: dict[str, Any], real: Told, ours: Told) -> str:
    """Return "same", or which parts differ."""
    unordered = case.get("unordered", False)
    names = ("status", "output", "error")
    pairs = zip(names, real.parts(unordered), ours.parts(unordered), strict=True)
    return ", ".join(name for name, first, second in pairs if first != second) or "same"


def load_answers() -> dict[str, Told]:
    """Return what bpftrace has answered before: command -> what it printed."""
    if not ANSWERS.exists():
        return {}
    rows = json.loads(ANSWERS.read_text())["answers"]
    return {command: Told(status, output.encode("latin-1"), error.encode("latin-1"))
            for command, status, output, error in rows}


def save_answers(answers: dict[str, Told], kernel: str, bpftrace: str) -> None:
    """Write what bpftrace has answered.

    Args:
        answers: command -> what it printed.
        kernel: version of the kernel.
        bpftrace: its version.
    """
    rows = [[command, told.status, told.output.decode("latin-1"), told.error.decode("latin-1")]
            for command, told in sorted(answers.items())]
    lines = ",\n".join(json.dumps(row) for row in rows)
    versions = f'"bpftrace": {json.dumps(bpftrace)}, "kernel": {json.dumps(kernel)}'
    ANSWERS.write_text(f'{{{versions}, "answers": [\n{lines}\n]}}\n')


def ask_bpftrace(fetched: Path, commands: Sequence[str], folder: Path) -> dict[str, Told]:
    """Boot the kernel, run commands there, and keep the answers. Returns command -> what it printed.

    Args:
        fetched: the folder that tests/fetch_bpftrace filled.
        commands: shell commands.
        folder: for the archive.
    """
    serial = folder / "serial"
    archive = make_archive(fetched / "root", folder, [f"exec {command}\n" for command in commands])
    boot(fetched, archive, serial, BOOT_SECONDS + CASE_SECONDS * len(commands))
    text = serial.read_text("latin-1")
    found = re.search(r"@kernel (\S+) bpftrace v(\S+)", text)
    answers = load_answers()
    answers.update({commands[number]: told for number, told in read_serial(text)})
    save_answers(answers, *(found.groups() if found else ("unknown", "unknown")))
    return answers


def compare_all(
    cases: Sequence[dict[str, Any]], answers: dict[str, Told], folder: Path
) -> list[dict[str, str]]:
    """Run cases here, show what differs, and return a row for each.

    Args:
        cases: which.
        answers: command -> what bpftrace printed.
        folder: where `guest` is.
    """
    rows = []
    with ThreadPoolExecutor(2) as pool:
        ours = pool.map(lambda case: run_ours(words_of(case), folder), cases)
        for case, told in zip(cases, ours, strict=True):
            real = answers[command_of(case)]
            result = compare(case, real, told)
            rows.append({"name": case["name"], "command": command_of(case), "result": result,
                         "why": case.get("differs", "")})
            if result != "same":
                show(case["name"], real, told)
    return rows


def command_line() -> int:
    """Run as a command. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetched", type=Path, help="the folder that tests/fetch_bpftrace filled")
    parser.add_argument("--only", default="", help="cases whose name has this regular expression")
    parser.add_argument("--write", type=Path, help="what ran and what differed, as JSON")
    chosen = parser.parse_args()
    cases = [case for case in read_cases() if re.search(chosen.only, case["name"])]
    answers = load_answers()
    unknown = [command_of(case) for case in cases if command_of(case) not in answers]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if unknown and chosen.fetched is not None:
            answers = ask_bpftrace(chosen.fetched.resolve(), unknown, folder)
        cases = [case for case in cases if command_of(case) in answers]
        compile_guest(folder)
        rows = compare_all(cases, answers, folder)
    print(f"{sum(row['result'] == 'same' for row in rows)} of {len(rows)} the same")
    if chosen.write:
        lines = ",\n".join(json.dumps(row) for row in rows)
        known = json.loads(ANSWERS.read_text())
        versions = ", ".join(f'"{name}": {json.dumps(known[name])}' for name in ("bpftrace", "kernel"))
        chosen.write.write_text(f'{{{versions}, "cases": [\n{lines}\n]}}\n')
    return 0 if all((row["result"] == "same") == (not row["why"]) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(command_line())
