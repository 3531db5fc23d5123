"""Stop replies: what a stub says when the guest stops. GDB's manual, "Stop Reply Packets"."""

from __future__ import annotations

import re

from attrs import frozen

from ...errors import RemoteError

THREAD = re.compile(r"p?-?[0-9a-fA-F]+(?:\.-?[0-9a-fA-F]+)?")
_OF_THREAD = re.compile(rb"thread:(%s);" % THREAD.pattern.encode())
_REGISTERS = re.compile(rb"(?:[0-9a-fx]{8}){8,}")
_BEFORE = re.compile(rb"syscall_entry:([0-9a-fA-F]{1,8});")
_CHILD = re.compile(rb"(v?)fork:(%s);" % THREAD.pattern.encode())
_ALONE = re.compile(rb"vforkdone:")

#: message and hint for answers of QEMU's user-mode stub that are mixed up
AT_ONCE = (
    "two threads have stopped at once: QEMU's user-mode stub lets the others run on while one is "
    "looked at"
)
KEPT_APART = (
    "the machine is gone; where threads take turns (docs/remote.md) only signals of the program "
    "are such stops: have none come. Elsewhere every thread at a probe is one: "
    "probe what a single thread executes, or a whole machine"
)


@frozen
class StopReply:
    """Why the guest stands: a signal (its number is the target system's), or the program's end.

    Attributes:
        kind: "signal", "exited" or "killed".
        code: number of the signal, or exit status.
        thread: as the stub names it; "" where it names none.
        call: number of the system call that the thread is about to enter, of those asked for; None:
            it enters none.
        child: a process that the thread has just forked; "": none.
        borrows: the child runs in its parent's memory, and its parent waits: vfork().
        returned: the thread has just made a system call: QEMU tells of that unasked.
        alone: a child of vfork() has left its parent's memory, by exec() or its end.
    """

    kind: str  #: "signal", "exited" or "killed"
    code: int  #: signal number, or exit status
    thread: str = ""  #: as Hg and vCont take it; "" where the stub names none
    #: number of the system call, of those asked for, that the thread is about to enter
    call: int | None = None
    child: str = ""  #: a process that the thread has just forked, as Hg takes it
    borrows: bool = False  #: the child runs in its parent's memory, and its parent waits: vfork()
    returned: bool = False  #: the thread has just made a system call: QEMU tells of that unasked
    alone: bool = False  #: a child of vfork() has left its parent's memory, by exec() or its end


def end_of(status: int) -> StopReply:
    """Return the stop reply of a program that has ended with `status`; less than 0: by the signal
    of that number.
    """
    return StopReply("killed", -status) if status < 0 else StopReply("exited", status)


def stop_of(answer: bytes) -> StopReply:
    """Parse a stop reply.

    Args:
        answer: the packet, without its frame.

    Returns:
        What the packet says. Behind a system call `code` is 0; a program's end has no `thread`.

    Raises:
        RemoteError: it is no stop reply.
    """
    # gdbserver: W7
    found = re.match(rb"([TS](?=[0-9a-fA-F]{2})|[WX])([0-9a-fA-F]{1,2})(.*)", answer, re.DOTALL)
    # asked for in time: a thread has stopped, and has not said so
    if found is None and _REGISTERS.fullmatch(answer):
        raise RemoteError(AT_ONCE, hint=KEPT_APART)
    if found is None:
        raise RemoteError(
            f"the stub's answer is no reason to stop: {answer[:40]!r}",
            hint="use another stub",
        )
    kind = {b"W": "exited", b"X": "killed"}.get(found[1], "signal")
    thread, child, call = (find.search(found[3]) for find in (_OF_THREAD, _CHILD, _BEFORE))
    returned = b"syscall_return:" in found[3]
    code = 0 if returned else int(found[2], 16)
    return StopReply(
        kind,
        code,
        thread[1].decode() if thread and kind == "signal" else "",
        call=None if call is None else int(call[1], 16),
        child=child[2].decode() if child else "",
        borrows=child is not None and child[1] == b"v",
        returned=returned,
        alone=_ALONE.search(found[3]) is not None,
    )
