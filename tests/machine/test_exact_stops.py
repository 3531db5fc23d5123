"""A stop by another thread finds no instruction half done in a run that counts instructions: what goes on afterwards
ends as what was never stopped. In other runs the engine may leave one so, see docs/engine.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arches import RUNNABLE, integer, limits, programs_of

from kprobes import GuestStopped, UnicornMachine

#: loops of an instruction that is wrong if it is executed twice
LOOPS = {
    "x86_64": "31c0 57 ffc0 48ff0c24 75f8 5f c3",  # inc eax; dec qword [rsp]; jne
    "i386": "31c0 ff742404 40 ff0c24 75fa 5a c3",
    "arm64": "e80301aa 000040f9 080500f1 c1ffff54 c0035fd6",  # ldr x0, [x0]; subs x8, x8, #1; b.ne
}
TIMES, BOUND, WORD = 2000, 10**9, (1 << 32) - 1


@contextmanager
def stopped(m: UnicornMachine) -> Iterator[Callable[[], int]]:
    """Another thread stops the machine all the time; how often it has."""
    over, count = threading.Event(), 0

    def stop() -> None:
        nonlocal count
        while not over.wait(3e-4):
            m.stop()
            count += 1

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield lambda: count
    finally:
        over.set()
        thread.join()


def finished(m: UnicornMachine, function: str | int, *args: int) -> int:
    """A bounded call that goes on however often it is stopped."""
    try:
        return m.call(function, *args, max_insns=BOUND)
    except GuestStopped:
        while m.regs.pc != m.parts.state.exit:
            m.run(max_insns=BOUND)
        return m.regs.return_value


@pytest.mark.parametrize("arch", LOOPS)
def test_an_instruction_is_executed_once(arch: str) -> None:
    with UnicornMachine.from_code(bytes.fromhex(LOOPS[arch]), arch=arch) as m:
        ring = m.alloc(24)
        m.write(ring, b"".join(at.to_bytes(8, "little") for at in (ring + 8, ring + 16, ring)))
        args = (ring, TIMES) if arch == "arm64" else (TIMES,)
        right = ring + 8 * (TIMES % 3) if arch == "arm64" else TIMES
        with stopped(m) as stops:
            while stops() < 100:
                assert finished(m, 0x10000, *args) == right


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for arch in RUNNABLE for path in programs_of(arch)
                                  if path.stem.endswith("-O0") and not arch.startswith("sparc")])
def test_programs_end_as_without_stops(path: Path) -> None:
    """But on SPARC, whose engine cannot count."""
    test = next(name for name in ("test_quicksort", "test_mutual") if name not in limits(path.stem))
    with UnicornMachine.load(path) as m:
        argument = integer(m.arch, 1000)
        right = m.call(test, argument) & WORD
        with stopped(m) as stops:
            while stops() < 10:
                assert finished(m, test, argument) & WORD == right
