"""Make the screenshots of this book: `python docs/screenshots.py [NAME...]`; without names all.

They show SQLite at work for screenshots/query.c, and the coverage of that program. Needed are
Debian's packages chromium, gcc and libsqlite3-dev (its static library has the names of all
functions). Times differ a little with every recording.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE / "screenshots"
WIDE = 1200  #: pixels
HIGH = 640
#: JavaScript: the picture that the page shows now
CHART = "document.querySelector('main > section:not([hidden]) .chart')"

sys.path.insert(0, str(HERE.parent / "tests"))
os.environ.setdefault("KPROBES_CHROMIUM", shutil.which("chromium") or "chromium")

from browser import Browser  # noqa: E402


def kprobes(folder: Path, *words: str, output: str = "") -> None:
    """Run the command `kprobes` in a folder.

    Args:
        folder: where the command runs.
        words: its arguments.
        output: name of the file in `folder` that gets what the command prints; "": none does.
    """
    with open(folder / output if output else os.devnull, "w") as file:
        subprocess.run(
            [sys.executable, "-m", "kprobes", *words], cwd=folder, stdout=file, check=True
        )


def record(folder: Path) -> None:
    """Compile screenshots/query.c, and make the pages of SHOTS in a folder."""
    shutil.copy(OUT / "query.c", folder)
    flags = ["-O1", "-g", "-static", "-w", f"-fdebug-prefix-map={folder}=."]
    command = ["gcc", *flags, "-o", "query", "query.c", "-lsqlite3", "-lm"]
    subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    run = ["query", "--syscalls", "--run"]
    kprobes(
        folder, "graph", *run, "query", "--instructions", "--format", "html", output="graph.html"
    )
    library = ["-e", "p sqlite3* ", "-e", "r sqlite3*"]
    program = ["-e", "p query $arg*", "-e", "r query $retval"]
    calls = [*library, *program, "--stack"]
    kprobes(folder, "record", *run, *calls, "-o", "sqlite.arrow")
    kprobes(folder, "convert", "sqlite.arrow", "sqlite.html")
    some = ["-e", "p sqlite3Btree*", "-e", "p sqlite3Vdbe*", "--stack"]
    kprobes(folder, "record", *run, *some, "-o", "before.arrow")
    kprobes(folder, "record", *run, *some, "-e", "p sqlite3Pager*", "-o", "sqlite-after.arrow")
    difference = ["--before", "before.arrow", "--picture", "flame"]
    kprobes(folder, "convert", "sqlite-after.arrow", "change.html", *difference)
    kprobes(
        folder, "cover", *run, "-i", "query", "-i", "main", "-i", "count_row", "-o", "coverage.html"
    )


def point_at(b: Browser, x: float, y: float) -> None:
    """Move the mouse to a place of the picture.

    Args:
        b: the browser.
        x: pixels from the picture's left edge.
        y: pixels from its upper edge.
    """
    left, upper = b.ask(
        f"(r => [r.x, r.y])({CHART}.querySelector('canvas[role]').getBoundingClientRect())"
    )
    b.mouse("mouseMoved", left + x, upper + y)


def point_at_call(b: Browser) -> None:
    """Show what the timeline says of a call in its third row."""
    b.press("Escape")
    point_at(b, 500, 26 + 22 + 2.5 * 18)


def choose_function(b: Browser) -> None:
    """Show the histogram of a function that is called often."""
    b.ask(
        "(s => { s.selectedIndex = [...s.options]"
        ".findIndex(o => o.text.startsWith('sqlite3BtreeInsert')); "
        f"s.dispatchEvent(new Event('change')) }})({CHART}.querySelector('select'))"
    )


#: name of a screenshot -> (page's name, picture in the page, width and height in pixels, True for
#: dark colours, what is done with the page before; None: nothing)
SHOTS: dict[str, tuple[str, str, int, int, bool, Callable[[Browser], None] | None]] = {
    "sqlite": ("graph", "flame", WIDE, 560, False, None),
    "flame": ("sqlite", "flame", WIDE, HIGH, False, None),
    "change": ("change", "flame", WIDE, HIGH, False, None),
    "timeline": ("sqlite", "timeline", WIDE, HIGH, True, point_at_call),
    "heat": ("sqlite", "heat", WIDE, HIGH, False, None),
    "histogram-narrow": ("sqlite", "histogram", 400, 800, True, choose_function),
    "callgraph": ("sqlite", "callgraph", WIDE, HIGH, False, None),
    "coverage": ("coverage", "coverage", WIDE, HIGH, True, None),
}


def main(names: list[str]) -> None:
    """Make the screenshots of some names in SHOTS; [] stands for all."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        record(folder)
        with Browser(folder / "browser") as b:
            for name in names or SHOTS:
                file, picture, width, height, dark, prepare = SHOTS[name]
                b.show(
                    f"{(folder / file).with_suffix('.html').as_uri()}#{picture}",
                    width,
                    height,
                    dark,
                )
                if prepare is not None:
                    prepare(b)
                b.ask("new Promise(done => setTimeout(done, 300))")  # until nothing moves any more
                b.picture(OUT / f"{name}.png")
                assert not b.errors, b.errors


if __name__ == "__main__":
    main(sys.argv[1:])
