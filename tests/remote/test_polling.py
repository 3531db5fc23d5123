"""Waits for answers that are about to come, awake or asleep: by a clock that goes on as the processor is lent."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from kprobes.machine.remote import polling
from kprobes.machine.remote.packets import Connection, frame
from kprobes.machine.remote.polling import LONGEST, OTHERS, REST, TRIALS, Polling

pytestmark = pytest.mark.quick
Pair = tuple[socket.socket, socket.socket]


class Lent:
    """Gives the processor away. takes: seconds each time. answer: after so many times there is one."""

    def __init__(self, channel: socket.socket, takes: float = OTHERS / 10, answer: int = 0) -> None:
        self._channel, self.takes, self.answer, self.times, self.now = channel, takes, answer, 0, 0.0

    def __call__(self) -> None:
        self.times += 1
        self.now += self.takes
        if self.times == self.answer:
            self._channel.sendall(b"here")

    def clock(self) -> float:
        return self.now


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        yield ours, theirs


def waiting(pair: Pair, monkeypatch: pytest.MonkeyPatch, takes: float = OTHERS / 10,
            answer: int = 0) -> tuple[Polling, Lent]:
    lent = Lent(pair[1], takes, answer)
    monkeypatch.setattr(polling, "time", SimpleNamespace(perf_counter=lent.clock))
    return Polling(lent), lent


def read(waits: Polling, pair: Pair, seconds: float = 5.0) -> bytes | None:
    return waits.read(pair[0].fileno(), 100, seconds)


def test_what_is_about_to_come_is_waited_for_awake(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, lent = waiting(pair, monkeypatch, answer=20)
    assert read(waits, pair) == b"here" and lent.times == 20
    pair[1].sendall(b"at once")
    assert read(waits, pair) == b"at once" and lent.times == 20


def test_the_end_and_errors_are_the_channels(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, _ = waiting(pair, monkeypatch)
    pair[0].sendall(b"unread")
    pair[1].close()
    with pytest.raises(ConnectionResetError):
        read(waits, pair)
    assert read(waits, pair) == b""


def test_who_lends_the_processor_to_others_sleeps(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that others want is lent a few times, and in some seconds again."""
    waits, lent = waiting(pair, monkeypatch, takes=2 * OTHERS)
    for round_ in range(1, 4):
        assert [read(waits, pair) for _ in range(20)] == [None] * 20
        assert lent.times == TRIALS * round_
        lent.now += REST + 1
    lent.takes, lent.answer = 0.0, lent.times + 3
    assert read(waits, pair) == b"here"


def test_a_silence_is_slept_through(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, lent = waiting(pair, monkeypatch)
    assert [read(waits, pair) for _ in range(20)] == [None] * 20
    assert lent.now == pytest.approx(TRIALS * LONGEST, abs=TRIALS * OTHERS)
    waits, lent = waiting(pair, monkeypatch)
    assert read(waits, pair, seconds=LONGEST / 2) is None
    assert lent.now == pytest.approx(LONGEST / 2, abs=OTHERS)


@pytest.mark.parametrize("before", [1, TRIALS - 1])
def test_an_answer_awake_begins_anew(pair: Pair, before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is there at once says nothing of who wants the processor."""
    waits, lent = waiting(pair, monkeypatch, takes=2 * OTHERS)
    for _ in range(before):
        assert read(waits, pair) is None
    pair[1].sendall(b"at once")
    assert read(waits, pair) == b"at once"
    lent.takes, lent.answer = 0.0, lent.times + 1
    assert read(waits, pair) == b"here"
    lent.takes, times = 2 * OTHERS, lent.times
    assert [read(waits, pair) for _ in range(20)] == [None] * 20 and lent.times == times + TRIALS


def test_failures_add_up_over_answers_that_were_there(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, lent = waiting(pair, monkeypatch, takes=2 * OTHERS)
    for _ in range(20):
        pair[1].sendall(b"at once")
        if (found := read(waits, pair)) is None:  # asleep
            found = pair[0].recv(100)
        assert found == b"at once" and read(waits, pair) is None
    assert lent.times == TRIALS


def test_where_nothing_can_be_lent_all_waits_are_asleep(pair: Pair) -> None:
    pair[1].sendall(b"here")
    assert read(Polling(None), pair) is None
    link = Connection(pair[0], timeout=1)
    link._polling = Polling(None)
    pair[1].sendall(frame(b"OK"))
    assert link.receive() == b"OK"


def test_a_connection_reads_by_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    link = Connection(pair[0], timeout=1)
    link.no_acknowledgements()
    times = []

    def answering() -> None:
        times.append(1)
        if len(times) == 3:
            pair[1].sendall(frame(b"OK"))

    monkeypatch.setattr(polling, "OTHERS", 5.0)
    monkeypatch.setattr(polling, "LONGEST", 5.0)
    link._polling = Polling(answering)
    assert link.receive() == b"OK" and len(times) == 3
    assert hasattr(os, "sched_yield") == (Polling()._lend is not None)
