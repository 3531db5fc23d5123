"""`kprobes demo`: the guests that the tutorial and the README run, for those who have only installed the package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ..newfile import NewFile

#: where a wheel has them (see pyproject.toml), and where a clone does
_HOMES: Final = (
    Path(__file__).resolve().parent.parent / "demo",
    Path(__file__).resolve().parent.parent.parent / "examples",
)
#: what to type next, with one of the guests
NEXT: Final = """\
Try:
  kprobes symbols {guest}
  kprobes trace {guest} -e 'r crc32 len=$arg3 ret=$retval:x32' --call 'crc32(0, "hello", 5)'
  kprobes script {guest} -e 'kprobe:fib {{ @calls = count(); }}' --call 'fib(10)'"""


@click.command()
@click.argument("folder", default="examples", type=click.Path(file_okay=False, path_type=Path))
def demo(folder: Path) -> None:
    """Write the demo guests, and their C source, into FOLDER (examples), where the tutorial expects them.

    A file that is there and differs is an error, and then nothing is written.
    """
    files = next((found for home in _HOMES if (found := sorted(home.glob("demo.*")))), [])
    if not files:
        raise click.ClickException("this installation has no demo guests: they are in examples/ of the repository")
    contents = {folder / file.name: file.read_bytes() for file in files}
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise click.ClickException(f"{path} is there and is another file: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        with NewFile(path, binary=True) as new:
            new.file.write(content)
        click.echo(path)
    guests = [path for path in contents if path.suffix != ".c"]
    click.echo(NEXT.format(guest=guests[0]))
