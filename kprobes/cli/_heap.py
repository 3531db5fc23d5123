"""`kprobes heap`: runs a guest under a heap check."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING

import click

from ..errors import HeapError
from ..newfile import NewFile
from ._guest import GuestCommand, GuestOptions, on_guest

if TYPE_CHECKING:
    from ..heap.check import HeapCheck

FOUND = 1  #: exit status where something was found


def _place(text: str) -> str | int:
    """Return the place of a --function: an address where the text is a number, else a symbol's
    name.
    """
    with contextlib.suppress(ValueError):
        return int(text, 0)
    return text


@click.command(cls=GuestCommand)
@on_guest
@click.option(
    "-f",
    "--function",
    "functions",
    multiple=True,
    metavar="PLACE=LIKE",
    help="An allocator function of another name, and the C function that it is like: "
    "pool_get=malloc, "
    "0x1234=free; may be given again.",
)
@click.option(
    "--uninitialized", is_flag=True, help="Tell of reads of memory that was never written, too."
)
@click.option("--no-leaks", is_flag=True, help="Do not look for leaks at the end.")
@click.option("--first", is_flag=True, help="Stop at the first finding.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per finding.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the findings to FILE, as a JSON array.",
)
def heap(
    guest: GuestOptions,
    functions: tuple[str, ...],
    uninitialized: bool,
    no_leaks: bool,
    first: bool,
    as_json: bool,
    output: str | None,
) -> None:
    """Run FILE and find what it does wrong with heap memory: overflows, uses after free, double and
    invalid frees, leaks.

    The exit status is 1 where something was found.

    \b
    kprobes heap examples/notes.arm64 --call 'book_open()'
    """
    named: dict[str | int, str] = {}
    for text in functions:
        place, mark, like = text.rpartition("=")
        if not mark or not place or not like:
            raise click.UsageError(
                f"{text!r} is no function; write PLACE=LIKE, as in pool_get=malloc"
            )
        named[_place(place)] = like
    with guest.opened() as (machine, k):
        checking = k.heap(named, uninitialized=uninitialized, leaks=not no_leaks, raising=first)
        if not checking.watching:
            click.echo(
                f"kprobes: {checking.why_not_watching}; writes are noticed later, reads are not",
                err=True,
            )
        try:
            with contextlib.suppress(HeapError), checking:
                guest.start(machine)
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                _show(checking, output, as_json)
    if checking.findings:
        click.get_current_context().exit(FOUND)


def _show(checking: HeapCheck, output: str | None, as_json: bool) -> None:
    """Print what a heap check has found, and write it to a file if one was given.

    Args:
        checking: the heap check.
        output: file for the findings, as one JSON array; None: none.
        as_json: True: print one JSON object a line for each finding, instead of text.
    """
    if output is not None:
        with NewFile(output, binary=True) as new:
            new.file.write(checking.json().encode() + b"\n")
    if not as_json:
        click.echo(checking.report())
        return
    for finding in checking.findings:
        click.echo(json.dumps(finding.as_dict()))
