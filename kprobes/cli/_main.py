"""The command group: what every command shares, and how failures leave."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click
from attrs import frozen
from click.shell_completion import CompletionItem

from ..errors import GuestFault, GuestTimeout, KprobeError, ReentryError
from ..symbols import CONTROLS

if TYPE_CHECKING:
    from ..machine.remote import QemuMachine
    from ..machine.unicorn.machine import UnicornMachine

_LINES = {code: text for code, text in CONTROLS.items() if code != ord("\n")}  # messages may have several
DEFECT = "a defect of kprobes itself"
GUEST_FAILED, WRONG, INTERRUPTED, UNREAD = 1, 2, 130, 141


class Commands(click.Group):
    """Turns every failure that is not click's own into a message and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # guest text in a terminal that cannot show it
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except (GuestFault, GuestTimeout, ReentryError) as error:
            _leave(ctx, error.plain, GUEST_FAILED)
        except KeyboardInterrupt:
            _leave(ctx, "interrupted", INTERRUPTED)
        except BrokenPipeError:
            with contextlib.suppress(OSError, ValueError):  # or the interpreter's last flush complains
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(UNREAD)
        except KprobeError as error:
            _leave(ctx, error.plain, WRONG)
        except (OSError, MemoryError) as error:
            _leave(ctx, str(error) or "not enough memory", WRONG)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # who types a command is not helped by a traceback
            _leave(ctx, f"{DEFECT}: {type(error).__name__}: {error}; please report it with the command and the file",
                   WRONG)


def _leave(ctx: click.Context, message: str, status: int) -> NoReturn:
    click.echo(f"kprobes: {message.translate(_LINES)}", err=True)
    ctx.exit(status)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        with contextlib.suppress(metadata.PackageNotFoundError):
            click.echo(f"kprobes {metadata.version('kprobes')}")
            ctx.exit()
        _leave(ctx, "no version: the package is not installed", WRONG)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit.")
def main() -> None:
    """Linux's kprobes for guest code: trace functions of a binary for any architecture, without running it natively."""


#: FILE, which shells complete
file_argument = click.argument("file", shell_complete=lambda ctx, parameter, text: [CompletionItem(text, type="file")])


arch_option = click.option("--arch", metavar="NAME",
                           help="The architecture, where FILE's header does not tell (see `kprobes archs`).")
sysroot_option = click.option("--sysroot", type=click.Path(exists=True, file_okay=False), metavar="FOLDER",
                              help="With --qemu: where the program's dynamic linker and libraries are.")


@frozen
class File:
    """What on_file() gives: a file, to be looked at."""

    name: str
    arch: str | None
    qemu: bool
    sysroot: str | None

    def loaded(self) -> Any:
        """A machine that has it; of a process under QEMU nothing runs but its dynamic linker."""
        if self.qemu:
            return process([self.name], self.arch, self.sysroot)
        check_sysroot(self.sysroot)
        return load(self.name, self.arch)


def on_file(command: Callable[..., None]) -> Callable[..., None]:
    """FILE and options that say what it is: a File, which the command gets first."""
    @functools.wraps(command)
    def wrapped(file: str, arch: str | None, qemu: bool, sysroot: str | None, **options: Any) -> None:
        command(File(file, arch, qemu, sysroot), **options)

    under_qemu = click.option("--qemu", is_flag=True, help="Look at it as a Linux process under qemu-user.")
    return file_argument(arch_option(under_qemu(sysroot_option(wrapped))))


def process(argv: Sequence[str], arch: str | None, sysroot: str | None) -> QemuMachine:
    """A Linux process under QEMU, at its first own instruction."""
    from ..machine.remote import QemuMachine

    return QemuMachine.user(argv, arch=arch, sysroot=sysroot)


def check_sysroot(sysroot: str | None) -> None:
    """There is none where nothing runs under QEMU."""
    if sysroot is not None:
        raise click.UsageError("--sysroot is where QEMU finds libraries: give --qemu as well")


def load(file: str, arch: str | None, base: int | None = None, symbols: str | None = None) -> UnicornMachine:
    """A machine with the command line's file in it: an ELF file, or where there is a base a raw image."""
    from ..machine.unicorn.machine import UnicornMachine

    if base is not None:
        if arch is None:
            raise click.UsageError("a raw image needs --arch NAME as well; `kprobes archs` lists them")
        return UnicornMachine.load_raw(file, arch=arch, base=base, symbols=symbols)
    return UnicornMachine.load(file, arch=arch)
