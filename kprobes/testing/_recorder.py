"""Recorder: makes handlers that write down, in order, what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.probe import FaultHandler, Kprobe, KretprobeInstance, Probe
from ..regs import Regs

Handler = Callable[[Any, Regs], int]


class Recorder:
    """Makes handlers for every kind of probe; each hit adds one line to `lines`.

    Lines are such as "pre a", "post a", "entry f", "return f".

    Args:
        values: what to append to a line, as ` name=0x1`: "pc", "arg0", "arg1", ...,
            "return_value", a register's name, or a function of regs.

    Attributes:
        lines: the transcript so far.
    """

    def __init__(self, *values: str | Callable[[Regs], Any]) -> None:
        self.lines: list[str] = []
        self._values = values

    def pre(self, name: str, result: int = 0) -> Handler:
        """Make a pre_handler, (probe, regs) -> int, that adds the line "pre NAME" and returns
        `result`.
        """
        return self._handler(f"pre {name}", result)

    def post(self, name: str) -> Callable[[Any, Regs, int], None]:
        """Make a post_handler, (probe, regs, flags) -> None, that adds the line "post NAME" to the
        transcript.
        """
        note = self._handler(f"post {name}", 0)

        def post_handler(p: Any, regs: Regs, flags: int) -> None:
            note(p, regs)

        return post_handler

    def fault(self, name: str, result: int = 0) -> Callable[[Any, Regs, int], int]:
        """Make a fault_handler, (probe, regs, trap number) -> int, that adds the line "fault NAME
        WHAT" and returns `result`.

        WHAT is the signal number, or the exception's class.
        """

        def fault_handler(p: Any, regs: Regs, trapnr: int) -> int:
            """Add a line with the fault, and return `result`."""
            what = trapnr if regs.exception is None else type(regs.exception).__name__
            self.note(f"fault {name} {what}", regs)
            return result

        return fault_handler

    def entry(self, name: str, result: int = 0) -> Callable[[KretprobeInstance, Regs], int]:
        """Make an entry_handler of a return probe, (instance, regs) -> int, that adds the line
        "entry NAME" and returns `result`.
        """
        return self._handler(f"entry {name}", result)

    def returns(self, name: str) -> Callable[[KretprobeInstance, Regs], int]:
        """Make the handler of a return probe, (instance, regs) -> 0, which adds the line "return
        NAME".
        """
        return self._handler(f"return {name}", 0)

    def mirror(self, name: str, count: int) -> Callable[..., None]:
        """Make the entry of a jprobe for a function of `count` arguments (at most 6).

        It adds the line "mirror NAME" and the arguments.
        """

        def mirror(*args: int) -> None:
            self.lines.append(" ".join([f"mirror {name}", *map(hex, args)]))

        arguments = ", ".join("abcdef"[:count])
        made: Callable[..., None] = eval(
            f"lambda {arguments}: mirror({arguments})", {"mirror": mirror}
        )
        return made

    def both(
        self,
        name: str,
        *,
        symbol_name: str | None = None,
        offset: int = 0,
        addr: int | None = None,
        fault_handler: FaultHandler | None = None,
        disabled: bool = False,
        optimize: bool = True,
    ) -> Kprobe:
        """Make a Kprobe with the handlers pre(name) and post(name).

        Args:
            name: for the lines.
            symbol_name, offset, addr, fault_handler, disabled, optimize: as of Kprobe.
        """
        return Kprobe(
            symbol_name=symbol_name,
            offset=offset,
            addr=addr,
            pre_handler=self.pre(name),
            post_handler=self.post(name),
            fault_handler=fault_handler,
            disabled=disabled,
            optimize=optimize,
        )

    def note(self, line: str, regs: Regs) -> None:
        """Add a line to the transcript, and the values behind it."""
        self.lines.append(" ".join([line, *(_show(value, regs) for value in self._values)]))

    def take(self) -> list[str]:
        """Return the lines so far; the transcript starts afresh."""
        lines, self.lines = self.lines, []
        return lines

    def _handler(self, line: str, result: int) -> Handler:
        """Make a handler that adds a line to the transcript and returns `result`."""

        def handler(owner: Probe | KretprobeInstance, regs: Regs) -> int:
            self.note(line, regs)
            return result

        return handler


def _show(value: str | Callable[[Regs], Any], regs: Regs) -> str:
    """Return a value of a hit as text, `name=0x1`; of a function its result's str().

    Args:
        value: "pc", "argN", "return_value", a register's name, or a function of regs.
        regs: the registers at the hit.
    """
    if not isinstance(value, str):
        return str(value(regs))
    if value.startswith("arg") and value[3:].isdecimal():
        return f"{value}={regs.arg(int(value[3:])):#x}"
    number = getattr(regs, value) if value in ("pc", "sp", "return_value") else regs[value]
    return f"{value}={number:#x}"
