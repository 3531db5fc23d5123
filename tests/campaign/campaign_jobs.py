"""Jobs for the tests: their processes import them from here."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import time

from kprobes.campaign import Calls


class Picky(Exception):
    """Cannot be pickled as it is."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("picky")
        self.lock = open(os.devnull)  # noqa: SIM115


def crash() -> None:
    """End this process by SIGSEGV, without pages of tracebacks among a test run's dots."""
    faulthandler.disable()
    ctypes.string_at(0)


def square(n: int) -> int:
    return n * n


def mixed(n: int) -> int:
    """Most items return; some raise, crash, hang or leave."""
    if n == 3:
        raise ValueError("three")
    if n == 7:
        crash()
    if n == 11:
        while True:
            time.sleep(1)
    if n == 13:
        os._exit(5)
    if n == 17:
        raise Picky(1, 2)
    if n == 19:
        os.kill(os.getpid(), signal.SIGKILL)
    return -n


def killing(n: int) -> int:
    """One item ends its process."""
    if n == 37:
        os._exit(5)
    return -n


def half(n: int) -> int:
    time.sleep(0.5)
    return n


def slow(n: int) -> int:
    time.sleep(3 if n == 2 else 0.01)
    return n


def noting(path: str) -> None:
    """Leaves a trace of each call."""
    with open(path, "ab") as file:
        file.write(b".")


def unpicklable(n: int) -> object:
    return (lambda: n) if n == 4 else n


class Treacherous:
    """A job with records, whose process dies or hangs at some inputs, as guests have done to engines."""

    def __init__(self, job: Calls) -> None:
        self.job, self.flush = job, job.flush

    def __call__(self, item: bytes) -> object:
        if item == b"crash=1":
            self.job(item)
            crash()
        while item == b"hang=1":
            self.job(item)
            time.sleep(1)
        return self.job(item)


def greedy(n: int) -> int:
    """One item takes 300 MiB, one 50."""
    return len(bytearray((300 if n == 5 else 50 if n == 6 else 0) << 20))


def hanging(n: int) -> int:
    """One item hangs, far behind quick ones."""
    time.sleep(60 if n == 150 else 0)
    return n


def napping(n: int) -> int:
    """As hanging, for so long as a test may wait."""
    time.sleep(3 if n == 150 else 0)
    return n
