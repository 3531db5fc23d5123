"""Which of the kernel's own scripts for kprobe events apply to guests, and what comes of them.

    cd tests && python -m ftrace.suite FOLDER [--write ../docs/ftrace-tests.json]

FOLDER has ftracetest: tools/testing/selftests/ftrace of a kernel's sources.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from ftrace.kernel import PROCESSORS
from ftrace.tracefs import name_of, run_scripts

FOLDERS = ("kprobe", "dynevent")
_EVENTS = "events on a kernel's own events; refused by `e`"
_SYNTHETIC = "synthetic events; refused by `s`"
#: script -> why it does not apply, and what its own script says then
REASONS = {
    "dynevent/add_remove_eprobe": (_EVENTS, "UNSUPPORTED"),
    "dynevent/add_remove_synth": (_SYNTHETIC, "UNSUPPORTED"),
    "dynevent/clear_select_events": (_SYNTHETIC, "UNSUPPORTED"),
    "dynevent/eprobes_syntax_errors": (_EVENTS, "UNSUPPORTED"),
    "dynevent/generic_clear_event": (_SYNTHETIC, "UNSUPPORTED"),
    "dynevent/test_duplicates": (_EVENTS, "UNSUPPORTED"),
    "kprobe/kprobe_args_user": ("a guest has one address space: `ustring` and `+u` read what `string` and `+` read, and "
                                "the second half wants them to fail", "FAIL"),
    "kprobe/kprobe_ftrace": ("a kernel's tracer of functions", "UNSUPPORTED"),
    "kprobe/kprobe_module": ("wants modprobe, and an event on a module that is not loaded", "UNRESOLVED"),
    "kprobe/probepoint": ("an offset beyond its function is refused here: the symbol that covers the place is wanted",
                          "FAIL"),
    "kprobe/uprobe_syntax_errors": ("uprobe_events: a program's places are those of kprobe_events here", "UNSUPPORTED"),
}
#: (script, machine) -> why that machine alone differs
ALONE = {
    ("kprobe/kprobe_args_string", "i686"): ("a kernel for i386 passes arguments in registers, a program on the stack",
                                            "FAIL"),
}


def scripts_of(suite: Path) -> list[Path]:
    """The scripts of kprobe events."""
    return [script for folder in FOLDERS for script in sorted((suite / "test.d" / folder).glob("*.tc"))]


def expected(script: str, uname: str) -> str:
    """What ftracetest should say of a script on a machine."""
    return ALONE.get((script, uname), REASONS.get(script, ("", "PASS")))[1]


def rows(suite: Path, unames: list[str]) -> list[list[str]]:
    """For each script: its name, on which machines it passed, and why it does not apply elsewhere."""
    scripts = scripts_of(suite)
    passed: dict[str, list[str]] = {name_of(suite, script): [] for script in scripts}
    for uname in unames:
        with tempfile.TemporaryDirectory() as work:
            found, _ = run_scripts(suite, scripts, uname, Path(work))
        for name, result in found.items():
            if result == "PASS":
                passed[name].append(uname)
    table = []
    for name, machines in passed.items():
        reasons = [f"{uname}: {ALONE[name, uname][0]}" for uname in unames if (name, uname) in ALONE]
        reason = REASONS.get(name, ("; ".join(reasons), ""))[0]
        table.append([name, "passes" if machines == unames else ", ".join(machines), reason])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    unames = list(PROCESSORS)
    found = {"machines": unames, "scripts": rows(asked.folder.resolve(), unames)}
    text = json.dumps(found, indent=1) + "\n"
    if asked.write:
        asked.write.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
