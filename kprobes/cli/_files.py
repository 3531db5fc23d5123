"""The argument FILE of commands that look at a file, and how the file is loaded."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen
from click.shell_completion import CompletionItem

from ._board import BoardOptions, with_board

if TYPE_CHECKING:
    from ..machine.remote import QemuMachine

#: FILE, which shells complete
file_argument = click.argument(
    "file", shell_complete=lambda ctx, parameter, text: [CompletionItem(text, type="file")]
)


arch_option = click.option(
    "--arch",
    metavar="NAME",
    help="The architecture, where FILE's header does not tell (see `kprobes archs`).",
)
discover_option = click.option(
    "--discover", is_flag=True, help="Find functions that have no names, and call them fn_ADDRESS."
)
sysroot_option = click.option(
    "--sysroot",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="With --qemu: where the program's dynamic linker and libraries are.",
)


@frozen
class File:
    """A file to be looked at, as on_file() gives it.

    Attributes:
        name: path of the file.
        arch: the architecture's name; None: the file's header tells it.
        qemu: True: it is looked at as a Linux process under qemu-user.
        sysroot: folder with the process's linker and libraries; None: none was given.
        around: the board and the files with names.
        discover: True: functions without names are looked for, and named.
    """

    name: str
    arch: str | None
    qemu: bool
    sysroot: str | None
    around: BoardOptions
    discover: bool = False

    def loaded(self) -> Any:
        """Make a machine with the file.

        Under QEMU it is a process, of which nothing has run but the dynamic linker. Functions
        without names are found and named if `discover` is True.

        Raises:
            UsageError: options contradict each other.
            KprobeError: the file cannot be loaded.
        """
        if self.qemu:
            self.around.check_unused()
            machine: Any = process([self.name], self.arch, self.sysroot)
            self.around.name(machine)
        else:
            check_sysroot(self.sysroot)
            machine = self.around.load(self.name, self.arch)
        if self.discover:
            find_functions(machine, self.name)
        return machine


def on_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command the argument FILE and options that describe it: a decorator.

    The command is called with a File as its first argument, in the place of these options.

    Args:
        command: the function below the decorator.

    Returns:
        The function to be decorated further.
    """

    @functools.wraps(command)
    def wrapped(
        file: str,
        arch: str | None,
        qemu: bool,
        sysroot: str | None,
        discover: bool,
        around: BoardOptions,
        **options: Any,
    ) -> None:
        """Make the File of FILE and its options, and call the command."""
        command(File(file, arch, qemu, sysroot, around, discover), **options)

    under_qemu = click.option(
        "--qemu", is_flag=True, help="Load FILE as a Linux process under qemu-user."
    )
    return file_argument(
        arch_option(with_board(under_qemu(sysroot_option(discover_option(wrapped)))))
    )


def find_functions(machine: Any, file: str) -> None:
    """Find the functions of a machine that have no names; add symbols fn_ADDRESS for them.

    Args:
        machine: the guest.
        file: path of the image, for the text of the spinner.
    """
    from ._render import patience

    with patience(f"looking for the functions of {os.path.basename(file)}"):
        machine.discover()


def process(
    argv: Sequence[str], arch: str | None, sysroot: str | None, reads: bool = False
) -> QemuMachine:
    """Start a Linux process under QEMU, and run it to its own first instruction.

    Args:
        argv: path of the program, and its arguments.
        arch: the architecture's name; None: the program's header tells it.
        sysroot: folder with the dynamic linker and the libraries; None: none was given.
        reads: True: its standard input is the command's; False: it is empty.

    Raises:
        ImageError: the file is no program.
        Unsupported: there is no QEMU for it, or its architecture is not known.
        RemoteError: QEMU ends, or does not answer.
    """
    from ..machine.remote import QemuMachine

    return QemuMachine.user(
        argv, arch=arch, sysroot=sysroot, stdin=_standard_input() if reads else None
    )


def _standard_input() -> int | None:
    """Return the descriptor of the command's standard input; None where it is closed."""
    try:
        os.fstat(0)
    except OSError:
        return None
    return 0


def check_sysroot(sysroot: str | None) -> None:
    """Raise UsageError if --sysroot was given to a command that runs nothing under QEMU."""
    if sysroot is not None:
        raise click.UsageError("--sysroot is where QEMU finds libraries: give --qemu as well")
