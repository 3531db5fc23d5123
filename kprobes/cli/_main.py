"""The command group: what every command shares, and how failures become messages and exit
statuses.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import click

from .. import __version__
from ..controls import CONTROLS
from ..errors import GuestFault, GuestTimeout, KprobeError, ReentryError

_LINES = {
    code: text for code, text in CONTROLS.items() if code != ord("\n")
}  # messages may have several
DEFECT = "a defect of kprobes itself"
#: signals that ask a command to end; Windows has no SIGHUP
_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
GUEST_FAILED, WRONG, INTERRUPTED, UNREAD = 1, 2, 130, 141


class Terminated(KeyboardInterrupt):
    """A signal has asked the command to end, as Ctrl-C does.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise Terminated in the body, as Ctrl-C raises KeyboardInterrupt.

    So `timeout`, CI and a terminal that goes end a command after it has written what it has
    recorded. Signals that are ignored (`nohup`), or have another handler, keep that; so do all in
    another thread than the main one.
    """
    mine = os.getpid()

    def end(number: int, frame: object) -> None:
        """Raise Terminated; in a process that was forked meanwhile, die of the signal."""
        if os.getpid() == mine:
            raise Terminated(number)
        # a process that was forked meanwhile, a campaign's
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [number for number in _ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def open_closed_streams() -> None:
    """Open the null device for standard streams that are closed (`kprobes ... >&-`).

    Else the next file that is opened takes a closed one's number, and gets what a guest's library
    prints.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        stream = open(os.devnull, mode)  # noqa: SIM115  (for as long as the process lives)
        try:
            os.fstat(number)
        except OSError:
            os.dup2(stream.fileno(), number)
        setattr(sys, name, stream)


class Commands(click.Group):
    """The group of all commands: turns failures into messages and exit statuses."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print a failure as one message, and exit with the failure's status.

        Statuses are in the package's docstring. click's own errors are left to click.
        """
        open_closed_streams()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(
                errors="backslashreplace"
            )  # guest text in a terminal that cannot show it
        try:
            with ended_by_signals():
                super().invoke(ctx)
                sys.stdout.flush()
        except (GuestFault, GuestTimeout, ReentryError) as error:
            _leave(ctx, error.plain, GUEST_FAILED)
        except Terminated as error:
            _leave(ctx, f"ended by {signal.Signals(error.number).name}", 128 + error.number)
        except KeyboardInterrupt:
            _leave(ctx, "interrupted", INTERRUPTED)
        except BrokenPipeError:
            with contextlib.suppress(
                OSError, ValueError
            ):  # or the interpreter's last flush complains
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(UNREAD)
        except KprobeError as error:
            _leave(ctx, error.plain, WRONG)
        except (OSError, MemoryError) as error:
            text = str(error) or "not enough memory"
            if isinstance(error, OSError) and error.filename and error.strerror:
                text = f"{error.filename}: {error.strerror}"  # not [Errno 2] ...
            _leave(ctx, text, WRONG)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # who types a command is not helped by a traceback
            _leave(
                ctx,
                f"{DEFECT}: {type(error).__name__}: {error}; please report it with the "
                "command and the file",
                WRONG,
            )


def _leave(ctx: click.Context, message: str, status: int) -> NoReturn:
    """Print a message to stderr, and exit.

    Args:
        ctx: click's context.
        message: the text.
        status: the exit status.
    """
    click.echo(f"kprobes: {message.translate(_LINES)}", err=True)
    ctx.exit(status)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the version and exit, if --version was given: the option's callback."""
    if wanted:
        click.echo(f"kprobes {__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Linux's kprobes for guest code: trace functions of a binary for any architecture, without
    running it natively.
    """


def command() -> None:
    """Run main(): the installed command `kprobes`, a process of its own.

    What a command imports are some 70,000 objects that stay. Python's cyclic collector would walk
    over them again and again, and twice more at the end, for a fifth of the time of a short
    command: it looks every 200,000 new objects, not every 700, and at the end not at all.
    """
    gc.set_threshold(200_000, *gc.get_threshold()[1:])
    try:
        main(prog_name="kprobes")
    finally:
        gc.freeze()
