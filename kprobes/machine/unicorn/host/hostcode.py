"""The words that Python shares with the host's library at call sites, and the names of its
functions there.

A hook is called as hook(uc, address, size, data) by the C ABI. `serve` is the hook of a whole area;
it finds the call site's words by the address and calls the function there: a Python callback, or
one of the library's. kprobes/native has their source: sites.c, and words.h for what each word is.
"""

from __future__ import annotations

from attrs import field, frozen

from ....native import SWITCH, SlowHost, address, available

__all__ = [
    "CALL",
    "CALLS",
    "DISTURBED",
    "HIT",
    "NESTED",
    "RESTING",
    "SITE",
    "SWITCH",
    "TASKS",
    "WHERE",
    "CallConvention",
    "SlowHost",
    "address",
    "available",
]

#: Word of a call site, and of the calls being followed -> its place. The order is that of words.h;
#: a test compares.
SITE = {
    name: n
    for n, name in enumerate(
        (
            "function",
            "hits",
            "python",
            "spare",
            "calls",
            "entered",
            "returned",
            "program",
            "after",
            "ran",
            "back",
            "returns",
            "usual",
            "at_return",
            "quick",
        )
    )
}
CALLS = {
    name: n
    for n, name in enumerate(
        (
            "gate",
            "top",
            "base",
            "limit",
            "sp",
            "link",
            "trampoline",
            "pushed",
            "stack",
            "room",
            "host",
            "frame",
            "target",
            "inside",
            "bias",
            "sp_at",
            "sp_bias",
            "link_at",
            "way",
        )
    )
}
#: Bytes of the gate, each a reason why Python is to be asked: a displaced instruction runs; the run
#: was stopped, or another one was nested in it; this one is nested; what is executed is finished,
#: or tried again, and no hit; there are guest tasks, which only matters where calls are followed.
HIT, DISTURBED, NESTED, RESTING, TASKS = 0, 1, 2, 3, 4
CALL = 24  # bytes of a followed call: frame, return address, call site
#: Where a return address is: in a register's cell, in a register of a window, on the stack, and
#: there in the other byte order than the host's.
WHERE = ("cell", "window", "stack", "swapped")


@frozen
class CallConvention:
    """How a guest's calls leave the return address.

    Attributes:
        bits: of a word, 32 or 64.
        where: one of WHERE.
        reloaded: returns put the register back to what it was before the call.
        words: values of CALLS: `bias`, to be added to the return address; `sp_at` and
            `link_at`, bytes from what the window's pointer points at to the stack pointer
            and the return address, and `sp_bias`, to be added to the stack pointer there.
    """

    bits: int
    where: str
    reloaded: bool = False
    words: dict[str, int] = field(factory=dict)

    def function(self, kind: str) -> str:
        """Return the name of the library's function of a kind, for guests with this convention.

        Args:
            kind: "enter", "ask", "leave" or "way".
        """
        return f"{kind}{'_reloaded' * (self.reloaded and kind == 'leave')}_{self.where}_{self.bits}"
