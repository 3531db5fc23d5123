"""The states of the lock by which threads of a process take turns at probes, and how they change.

`ThreadLock` (threadlock.py) is the lock.

| state | what holds | where the guest stands |
|---|---|---|
| ALONE | one thread, which stops at the stub's breakpoints; no lock | anywhere |
| CLONING | that thread is about to make the second | before a system call |
| UNLOCKED | threads take turns, and none has the lock | it runs |
| HELD | the current thread has stopped with the lock; going on, it gives it back | at a stop |
| IN_SLOT | that thread is in a slot, at whose end it stops again, and keeps the lock | it runs |
| LENT | no thread is in a hit; the library has the lock, so that none stops | at rest |

| event | method | asked by |
|---|---|---|
| CALL, OTHER_CALL | stopped() | `RunControl`, at every stop |
| SECOND | begin(), second() | `RunControl`: at pthread_create, or before the system call |
| ARRIVE | stopped(), serve(), again(), second() | `RunControl`, `RemoteInterrupts`, at a stop |
| REST | stand() | `RunControl`, at the end of a run |
| GO_ON, GO_ON_IN_SLOT | go_on() | `RunControl`, before the guest is resumed |

An illegal (state, event) pair raises and changes nothing.
"""

from __future__ import annotations

import enum

from ...statetable import after


class LockState(enum.Enum):
    """State of the lock of one process."""

    ALONE = "the process has one thread, and no lock"
    CLONING = "that thread stands before the call that makes the second"
    UNLOCKED = "no thread has the lock"
    HELD = "the current thread has stopped with the lock"
    IN_SLOT = "a thread keeps the lock in a slot"
    LENT = "the library has the lock, so that no thread stops"


class LockEvent(enum.Enum):
    """Events that change the state of the lock."""

    CALL = "the thread stops before a system call that makes another"
    OTHER_CALL = "the thread stops before another system call"
    SECOND = "the second thread is there, or about to be: threads take turns from now on"
    ARRIVE = "a thread stops with the lock"
    REST = "a run is over, and no thread stands in a hit"
    GO_ON = "the guest is about to run; a thread that has the lock gives it back"
    GO_ON_IN_SLOT = "the guest is about to run; the thread that has the lock keeps it"


_T, _S = LockState, LockEvent

TABLE: dict[tuple[LockState, LockEvent], LockState] = {
    (_T.ALONE, _S.CALL): _T.CLONING,
    (_T.ALONE, _S.OTHER_CALL): _T.ALONE,
    (_T.ALONE, _S.SECOND): _T.UNLOCKED,
    (_T.CLONING, _S.CALL): _T.CLONING,
    (_T.CLONING, _S.OTHER_CALL): _T.ALONE,
    (_T.CLONING, _S.SECOND): _T.UNLOCKED,
    (_T.UNLOCKED, _S.ARRIVE): _T.HELD,
    # also where the second thread has just been made, and the first stands behind that call
    (_T.UNLOCKED, _S.REST): _T.LENT,
    (_T.UNLOCKED, _S.GO_ON): _T.UNLOCKED,
    (_T.HELD, _S.ARRIVE): _T.HELD,
    (_T.HELD, _S.GO_ON): _T.UNLOCKED,
    (_T.HELD, _S.GO_ON_IN_SLOT): _T.IN_SLOT,
    (_T.IN_SLOT, _S.ARRIVE): _T.HELD,
    (_T.IN_SLOT, _S.REST): _T.LENT,  # only where it has given the lock back meanwhile
    (_T.IN_SLOT, _S.GO_ON_IN_SLOT): _T.IN_SLOT,
    (_T.LENT, _S.REST): _T.LENT,
    (_T.LENT, _S.GO_ON): _T.UNLOCKED,
    # a signal's stop was answered, and the thread it is of had the lock
    (_T.LENT, _S.ARRIVE): _T.HELD,
}


class LockStatus:
    """The state of the lock of one process.

    Attributes:
        state: the state, as TABLE has it.
        watches: the making of the second thread is noticed before.
    """

    def __init__(self) -> None:
        """Begin with one thread, whose making of another is not noticed."""
        self.state = LockState.ALONE
        self.watches = False

    @property
    def several(self) -> bool:
        """Whether the process has several threads, which take turns at probes."""
        return self.state not in (LockState.ALONE, LockState.CLONING)

    @property
    def due(self) -> bool:
        """Whether the current thread is about to make the second one, by a system call."""
        return self.state is LockState.CLONING

    @property
    def held(self) -> bool:
        """Whether the current thread has stopped with the lock."""
        return self.state is LockState.HELD

    def is_watched(self) -> bool:
        """Return True while there is one thread, and the making of a second one is noticed
        before.
        """
        return self.watches and not self.several

    def change(self, event: LockEvent) -> None:
        """Change `state`, as TABLE says.

        Raises:
            ValueError: the table has no such event in this state.
        """
        self.state = after(TABLE, self.state, event)
