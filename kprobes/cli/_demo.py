"""`kprobes demo`: the guests of the tutorial and the cookbook, for those who have only installed the package."""

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
#: the tutorial's and the README's
DEMO: Final = "demo.arm64", "demo.c", "demo.x86_64"
#: the cookbook's, of firmware and stripped code
COOKBOOK: Final = (
    "firmware-bare.toml",
    "firmware.bin",
    "firmware.c",
    "firmware.symbols",
    "firmware.toml",
    "freertos/FreeRTOS-LICENSE.md",
    "freertos/board.toml",
    "freertos/freertos.bin",
    "freertos/freertos.symbols",
    "freertos/main.c",
    "licence.armhf",
    "licence.c",
    "router.bin",
    "router.c",
    "router.toml",
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
    """Write the demo guests, their C source and their boards into FOLDER (examples), where the tutorial and the
    cookbook's pages of firmware and stripped code expect them.

    A file that is there and differs is an error, and then nothing is written.
    """
    home = next((home for home in _HOMES if (home / DEMO[0]).exists()), None)
    if home is None:
        raise click.ClickException("this installation has no demo guests: they are in examples/ of the repository")
    contents = {folder / name: (home / name).read_bytes() for name in DEMO + COOKBOOK}
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise click.ClickException(f"{path} is there and is another file: name another folder")
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with NewFile(path, binary=True) as new:
            new.file.write(content)
        click.echo(path)
    click.echo(NEXT.format(guest=folder / DEMO[0]))
