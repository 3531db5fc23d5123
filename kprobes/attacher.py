"""The Kprobes, as whoever runs programs at probes needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .programs.attach import Attachment
    from .programs.program import Program


class Attacher(Protocol):
    """The part of a Kprobes that attaches programs."""

    def attach(
        self,
        program: Program,
        where: str | int | None = None,
        offset: int = 0,
        retprobe: bool = False,
        *,
        cookie: int = 0,
        clock: Callable[[], int] | str = "host",
        engine: str | None = None,
        maxactive: int = 0,
        printed: Callable[[str], None] | None = None,
    ) -> Attachment:
        """Run a program at a probe of its own, as Kprobes.attach() does, and return the attachment.

        Args:
            program: the program.
            where: a symbol's name or an address; None: as the program's section says.
            offset: bytes behind `where`.
            retprobe: True: the program runs when the function returns.
            cookie: number that the program gets from get_attach_cookie.
            clock: what ktime_get_ns goes by: "host", "instructions", or a function that returns ns.
            engine: "interpreter" or "host"; None: the best that can run the program.
            maxactive: of the return probe: calls that it follows at once; 0: Kprobes.instances.
            printed: is called with each line that the program prints; None: the attachment keeps
                the lines.
        """
