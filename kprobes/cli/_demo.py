"""`kprobes demo`: the guests of the tutorial and the cookbook, for those who have only installed
the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ..newfile import NewFile
from ._render import objects

#: where a wheel has them (see pyproject.toml), and where a clone does
_HOMES: Final = (
    Path(__file__).resolve().parent.parent / "demo",
    Path(__file__).resolve().parent.parent.parent / "examples",
)
#: the tutorial's and the README's, and the cookbook's of firmware and stripped code
FILES: Final = "demo.*", "firmware*.*", "freertos/*", "licence.*", "router.*"
#: what to type next, with one of the guests
NEXT: Final = """\
Try:
  kprobes symbols {guest}
  kprobes trace {guest} -e 'r crc32 len=$arg3 ret=$retval:x32' --call 'crc32(0, "hello", 5)'
  kprobes script {guest} -e 'kprobe:fib {{ @calls = count(); }}' --call 'fib(10)'"""


@click.command()
@click.argument("folder", default="examples", type=click.Path(file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object per file.")
def demo(folder: Path, as_json: bool) -> None:
    """Write the demo guests, their C source and their boards into FOLDER (examples), where the
    tutorial and the cookbook's pages of firmware and stripped code expect them.

    A file that is there and differs is an error, and then nothing is written.
    """
    home = next((home for home in _HOMES if [*home.glob(FILES[0])]), None)
    if home is None:
        raise click.ClickException(
            "this installation has no demo guests: they are in examples/ of the repository"
        )
    contents = {folder / name: (home / name).read_bytes() for name in names(home)}
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise click.ClickException(f"{path} is there and is another file: name another folder")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with NewFile(path, binary=True) as new:
            new.file.write(content)
        if not as_json:
            click.echo(path)
    if as_json:
        objects({"file": str(path), "size": len(content)} for path, content in contents.items())
    else:
        click.echo(NEXT.format(guest=next(iter(contents))))


def names(home: Path) -> list[str]:
    """Return the files of a folder that FILES matches, as paths from that folder.

    Args:
        home: the folder that has the demo guests: in the package where a wheel is installed, or
            `examples` of a clone.
    """
    found = [path for pattern in FILES for path in sorted(home.glob(pattern)) if path.is_file()]
    return [path.relative_to(home).as_posix() for path in found]
