"""Signal handlers of Python's that come while a guest runs, at any moment: called where the run can raise, and
everything works afterwards."""

from __future__ import annotations

import _thread
import ctypes
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from scenes import Scene, unicorn_machine

from kprobes import GuestTimeout, Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.core.hit.ctlblk import HitState
from kprobes.machine.unicorn import signals
from kprobes.machine.unicorn.host import signaltable

NAMES = ("x86_64", "arm64", "x86_64 jumps", "arm64 jumps")


class Alarm(BaseException):
    """What pytest-timeout raises is no Exception either."""


class Oops(Exception):
    """Raised by signal handlers."""


def raising(number: int, frame: Any) -> None:
    raise Alarm


@contextmanager
def handling(handler: Callable[[int, Any], Any], number: int = signal.SIGALRM) -> Iterator[None]:
    old = signal.signal(number, handler)
    try:
        yield
    finally:
        if number == signal.SIGALRM:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(number, old)


@pytest.fixture(params=NAMES)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.param)
    yield scene
    scene.k.close()
    assert scene.text() == scene.original
    assert scene.m.call("deep", 4) == 6


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: Python loses what is raised in finalizers and in gc.callbacks, of which hypothesis
    has one."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def busy(scene: Scene) -> tuple[Kprobe, Kprobe, Kretprobe]:
    """Probes of all kinds, one with a guest call in its handler."""
    inner = Kprobe(symbol_name="probed", pre_handler=lambda p, regs: scene.m.call("fetch", scene.stack) and None,
                   post_handler=lambda *_: None)
    probes = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: None), inner, Kretprobe(symbol_name="twice",
        handler=lambda ri, regs: None)
    for probe in probes:
        scene.k.register(probe)
    return probes


def works(scene: Scene) -> None:
    """Every probe of busy() fires, nothing is left over."""
    assert all(block.state is HitState.IDLE for block in scene.k._driver.blocks)
    with hits_of(scene) as hits:
        assert scene.m.call("deep", 4) == 6
        assert scene.m.call("probed", 4) == 7
    assert hits == [2, 1]
    assert all(block.state is HitState.IDLE for block in scene.k._driver.blocks)


@contextmanager
def hits_of(scene: Scene) -> Iterator[list[int]]:
    """What the probes of busy() are hit, inside."""
    before = [p.nhit for p in scene.probes[:2]]
    hits: list[int] = []
    yield hits
    hits += [p.nhit - n for p, n in zip(scene.probes[:2], before, strict=True)]


def test_who_stops_while_a_handler_raises_ends_no_other_run(scene: Scene) -> None:
    def stop_and_raise(number: int, frame: Any) -> None:
        thread = threading.Thread(target=scene.m.stop)
        thread.start()
        thread.join()
        raise Alarm

    with handling(stop_and_raise):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(Alarm):
            scene.m.call("spin", timeout=60)
    assert scene.m.call("deep", 4) == 6


@pytest.mark.parametrize("every", [0.001, 0.0003])
def test_a_storm_of_alarms(scene: Scene, every: float) -> None:
    """A timer whose handler raises, as fast as it can: none is lost, none strikes inside the library, and results are
    right."""
    scene.stack = scene.word(3)
    scene.probes = busy(scene)
    raised = called = ended = 0

    def alarm(number: int, frame: Any) -> None:
        nonlocal raised
        raised += 1
        raise Alarm

    before = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    rng = random.Random(1)
    with handling(alarm), uncollected():
        for called in range(1, 501):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.random() * every + 1e-6)
                if called % 3 == 0:
                    scene.m.call("spin", timeout=60)
                    raise AssertionError
                assert scene.m.call("deep", 4) == 6
                assert scene.m.call("probed", 4) == 7
                while raised < called:  # it may be late
                    time.sleep(every)
                raise AssertionError
            except Alarm:
                ended += 1
            if called % 10 == 0:
                works(scene)
    assert raised == ended == called
    assert (signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)) == before
    works(scene)


def test_a_storm_that_raises_nothing(scene: Scene) -> None:
    """The run goes on each time, and bounds and stops are not lost on the way."""
    scene.stack = scene.word(3)
    scene.probes = busy(scene)
    came = 0

    def count(number: int, frame: Any) -> None:
        nonlocal came
        came += 1

    with handling(count):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        end = time.monotonic() + 0.7
        while (now := time.monotonic()) < end or (came <= 10 and now < end + 60):  # a busy machine's timer comes late
            works(scene)
            with pytest.raises(GuestTimeout):
                scene.m.call("spin", timeout=0.03)
    assert came > 10


@pytest.mark.parametrize("where", ["guest", "pre_handler", "post_handler", "nested", "return"])
def test_an_alarm_comes_out_of_the_call(scene: Scene, where: str) -> None:
    scene.stack = scene.word(3)
    scene.probes = busy(scene)
    done: list[str] = []

    def handler(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(0.01)
        done.append("whole")

    def nested(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        scene.m.call("spin")

    probe: Any = None
    if where == "return":
        probe = Kretprobe(symbol_name="down", handler=handler)
    elif where != "guest":
        probe = Kprobe(symbol_name="down", **{"post_handler" if where == "post_handler" else "pre_handler": nested
                                              if where == "nested" else handler})
    if probe is not None:
        scene.k.register(probe)
    for _ in range(3):
        with handling(raising), pytest.raises(Alarm):
            if where == "guest":
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                scene.m.call("spin")
            scene.m.call("down", 4)
        assert not scene.k._driver.ours(scene.m.regs.pc)
        works(scene)
    assert done == ["whole"] * (3 if where in ("pre_handler", "post_handler", "return") else 0)


@pytest.mark.parametrize("whose", ["ours", "owner's"])
@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_a_stop_that_the_engine_forgets_is_told_again(name: str, whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the signal comes when the engine has been called, and has not begun: it knows nothing of a stop then, and
    Python executes nothing more that would."""
    from test_attach import Owner

    owner = Owner(name)
    m = UnicornMachine.attach(owner.uc, symbols=owner.symbols) if whose == "owner's" else unicorn_machine(name)
    engine, told = m.parts.memory.engine, []
    stop = engine.stop
    monkeypatch.setattr(engine, "stop", lambda: told.append(True) if not told else stop())
    with Kprobes(m):
        for _ in range(2):
            told.clear()
            begun = time.monotonic()
            with handling(raising), pytest.raises(Alarm):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                if whose == "ours":
                    m.call("spin", timeout=20)
                else:
                    owner.call("spin", timeout=20_000_000)
            assert told and time.monotonic() - begun < 15


def test_a_handler_that_swallows_it_loses_nothing(scene: Scene) -> None:
    """What a signal handler raises in a run inside a run ends the outer one as well, whatever the probe's handler makes
    of it."""
    def nested(p: Kprobe, regs: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with suppress(Oops):
            scene.m.call("spin")

    def oops(number: int, frame: Any) -> None:
        raise Oops

    scene.k.register(p := Kprobe(symbol_name="inc", pre_handler=nested))
    with handling(oops), pytest.raises(Oops):
        scene.m.call("deep", 4)
    scene.k.unregister(p)
    assert scene.m.call("deep", 4) == 6


def test_again_in_a_handler_that_never_ends(scene: Scene) -> None:
    """The first one waits for the handler to end; the next is raised in it."""
    def endless(p: Kprobe, regs: Any) -> None:
        for timer in timers:
            timer.start()
        while True:
            time.sleep(0.001)

    scene.k.register(p := Kprobe(symbol_name="inc", pre_handler=endless))
    timers = [threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)) for delay in (0.05, 0.15)]
    with pytest.raises(KeyboardInterrupt):
        scene.m.call("inc", 4)
    for timer in timers:
        timer.join()
    scene.k.unregister(p)
    assert scene.m.call("deep", 4) == 6


def test_only_once_in_a_handler_that_never_ends(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made to come again."""
    monkeypatch.setattr(signals, "PATIENCE", 0.05)

    def endless(p: Kprobe, regs: Any) -> None:
        while True:
            time.sleep(0.001)

    scene.k.register(p := Kprobe(symbol_name="inc", pre_handler=endless))
    with handling(raising), pytest.raises(Alarm):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        scene.m.call("inc", 4)
    scene.k.unregister(p)
    assert scene.m.call("deep", 4) == 6


def test_a_stop_and_a_signal(scene: Scene) -> None:
    """A signal whose handler raises nothing does not make the run forget that it is to stop."""
    came: list[int] = []

    def stop(p: Kprobe, regs: Any) -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        scene.m.stop()
        os.kill(os.getpid(), signal.SIGALRM)

    scene.k.register(p := Kprobe(symbol_name="spin", pre_handler=stop))
    with handling(lambda number, frame: came.append(number)):
        scene.m.run("spin")
    assert came
    assert scene.m.regs.pc == scene.at("spin", 1)
    scene.k.unregister(p)


def test_a_signal_handler_moves_the_guest(scene: Scene) -> None:
    """It is called while the guest is at rest: it may read and write registers and memory, and call guest code."""
    results: list[int] = []

    def move(number: int, frame: Any) -> None:
        results.append(scene.m.call("deep", 4))
        if scene.m.regs.pc in spinning:
            scene.m.regs.pc = scene.at("probed")

    spinning = range(scene.at("spin"), scene.at("spin") + 16)
    with handling(move):  # again and again: on a busy machine the first may come before the guest runs
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        assert scene.m.call("spin", 4) in (7, 4 + 3)
    assert results and {*results} == {6}


def test_somebody_elses_wakeup_descriptor(scene: Scene) -> None:
    """An event loop's: it hears of the signals that come while a guest runs."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    old = signal.set_wakeup_fd(write)
    try:
        with handling(lambda *_: None):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(GuestTimeout):
                scene.m.call("spin", timeout=0.1)
            assert os.read(read, 10) == bytes([signal.SIGALRM])
        assert signal.set_wakeup_fd(write) == write
    finally:
        signal.set_wakeup_fd(old)
        os.close(read)
        os.close(write)


def test_a_handler_set_meanwhile_stays(scene: Scene) -> None:
    """By a probe's handler, and by a signal's."""
    def mine(number: int, frame: Any) -> None:
        pass

    def change(p: Kprobe, regs: Any) -> None:
        signal.signal(signal.SIGUSR1, mine)

    scene.k.register(p := Kprobe(symbol_name="inc", pre_handler=change))
    with handling(raising, signal.SIGUSR1):
        assert scene.m.call("inc", 4) == 5
        assert signal.getsignal(signal.SIGUSR1) is mine
    scene.k.unregister(p)


def test_two_machines(scene: Scene) -> None:
    """A run of another machine in a handler: it is interrupted, and so is the outer one."""
    other = Scene(scene.name)
    scene.k.register(p := Kprobe(symbol_name="inc", pre_handler=lambda p, regs: other.m.call("spin") and None))
    with handling(raising), pytest.raises(Alarm):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        scene.m.call("deep", 4)
    scene.k.unregister(p)
    assert scene.m.call("deep", 4) == other.m.call("deep", 4) == 6
    other.close()


def test_in_a_thread_and_in_a_child(scene: Scene) -> None:
    """Elsewhere than in the main thread no signal handler is called anyway; after a fork it is the child's."""
    results: list[int] = []
    thread = threading.Thread(target=lambda: results.append(scene.m.call("deep", 4)))
    thread.start()
    thread.join()
    assert results == [6]
    scene.m.call("deep", 4)
    pid = os.fork()
    if not pid:
        try:
            with handling(raising):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                scene.m.call("spin", timeout=60)
        except Alarm:
            os._exit(0)
        except BaseException:
            os._exit(1)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_an_owners_run(name: str) -> None:
    from test_attach import Owner

    owner = Owner(name)
    m = UnicornMachine.attach(owner.uc, symbols=owner.symbols)
    with Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="inc", pre_handler=lambda p, regs: os.kill(os.getpid(), signal.SIGALRM)))
        came: list[int] = []
        with handling(lambda number, frame: came.append(number)):
            assert owner.call("deep", 4) == 6
            assert p.nhit == 2
            assert len(came) in (1, 2)  # two that wait are one
            assert owner.call("deep", 4, count=100) == 6
            assert len(came) in (2, 3, 4)
        with handling(raising):
            for _ in range(3):
                with pytest.raises(Alarm):
                    owner.call("deep", 4)
            k.unregister(p)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Alarm):
                owner.call("spin", timeout=60_000_000)
        assert owner.call("deep", 4) == 6


@pytest.mark.parametrize("post", [False, True], ids=["boosted", "stepped"])
@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_an_owners_guest_rests_at_home(name: str, post: bool) -> None:
    """Where a signal's handler has raised: it has executed its instruction, and the owner goes on from there."""
    from test_attach import BACK, Owner

    owner = Owner(name)
    start = owner.at("inc")
    with Kprobes(UnicornMachine.attach(owner.uc, symbols=owner.symbols)) as k, handling(raising):
        k.register(p := Kprobe(addr=start, pre_handler=lambda p, regs: os.kill(os.getpid(), signal.SIGALRM),
                               post_handler=(lambda p, regs, flags: None) if post else None, optimize=False))
        with pytest.raises(Alarm):
            owner.call("inc", 4)
        pc = owner.uc.reg_read(owner.pc)
        assert pc == BACK or start < pc < start + 16  # it may come late
        owner.uc.emu_start(pc, BACK)
        assert (owner.uc.reg_read(owner.result), p.nhit, p.nmissed) == (5, 1, 0)


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_a_signal_handler_moves_an_owners_guest(name: str) -> None:
    from test_attach import Owner

    owner = Owner(name)
    m = UnicornMachine.attach(owner.uc, symbols=owner.symbols)

    def move(number: int, frame: Any) -> None:
        if owner.at("spin") <= m.regs.pc < owner.at("spin") + 16:
            m.regs.pc = owner.at("probed")

    with Kprobes(m) as k, handling(move):
        k.register(Kprobe(symbol_name="inc"))
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        assert owner.call("spin", 4, timeout=60_000_000) == 7


def test_simulated(scene: Scene) -> None:
    """_thread.interrupt_main() is a Ctrl-C as well."""
    def interrupt() -> None:
        while scene.m.parts.state.depth == 0:
            time.sleep(0.001)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        scene.m.call("spin", timeout=60)


def exchange(kind: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What holds signals, and lets them go: host code's, which knows the interpreter's variables or calls functions, or
    Python's."""
    if kind == "functions":
        monkeypatch.setattr(signals, "_signal_table", lambda: None)
    made = signals.PlainExchange() if kind == "plain" else signals.HostExchange()
    made.quicken()
    return made


def holds(one: Any, *numbers: int) -> bool:
    """Whether it holds the signals with these numbers, as nothing has changed."""
    found = one.hold(numbers, [], raising, -1)
    assert found in (None, -1)
    return found is not None


def there() -> tuple[Any, ...]:
    """The handlers of all signals."""
    return (*map(signals._getsignal, signals.NUMBERS),)


@pytest.mark.parametrize("at", ["forget", "note"])
def test_a_handler_that_raises_while_handlers_are_looked_at(scene: Scene, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Handlers were noted, but not which of them are held: the next run would hold none, and no signal ended it."""
    held = scene.m.parts.runner.signals  # type: ignore[attr-defined]
    plain = getattr(type(held._exchange), at)

    def raise_behind(self: Any, *handlers: Any) -> None:
        plain(self, *handlers)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGALRM)
    monkeypatch.setattr(type(held._exchange), at, raise_behind)
    with handling(raising, signal.SIGALRM):
        with pytest.raises(Alarm):
            scene.m.call("deep", 1)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(Alarm):
            scene.m.call("spin", timeout=20)


HOSTS = pytest.mark.parametrize("host", [*(pytest.param(kind, marks=pytest.mark.host_code)
                                           for kind in ("variables", "functions")), "plain"])


@HOSTS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM, signal.SIGRTMAX])
def test_each_change_of_handlers_is_noticed(number: int, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = exchange(host, monkeypatch)
    assert not holds(one), "before the first look nothing was seen"
    one.note(there())
    assert holds(one)
    one.forget()
    assert not holds(one)
    one.note(there())
    with handling(lambda number, frame: None, number):
        assert not holds(one, int(signal.SIGUSR1))
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        one.note(there())
        assert holds(one)
    assert not holds(one)


@HOSTS
def test_handlers_are_exchanged_and_put_back(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but one that the program has set meanwhile; and where a handler raises on the way, the rest are known."""
    one = exchange(host, monkeypatch)
    hold, let_go = one.hold, one.let_go
    calls: list[int] = []

    def handler(number: int, frame: Any) -> None:
        calls.append(number)

    def mine(number: int, frame: Any) -> None:
        raise Oops

    numbers = int(signal.SIGUSR1), int(signal.SIGUSR2), int(signal.SIGALRM)
    held: list[int] = []
    usual = dict.fromkeys(numbers, mine)
    with handling(mine, numbers[0]), handling(mine, numbers[1]), handling(mine, numbers[2]):
        one.note(there())
        assert hold(numbers, held, handler, -1) == -1 and held == [*numbers]
        assert [signal.getsignal(number) for number in numbers] == [handler] * 3
        signal.raise_signal(numbers[1])
        signal.signal(numbers[2], raising)
        assert let_go(held, handler, usual, None) is None and not held
        assert [signal.getsignal(number) for number in numbers] == [mine, mine, raising]
        signal.signal(numbers[2], mine)
        assert calls == [numbers[1]]
        one.note(there())
        assert hold(numbers, held, handler, -1) == -1
        del usual[numbers[1]]
        with pytest.raises(KeyError):
            let_go(held, handler, usual, None)
        assert held == [*numbers[:2]]
        usual[numbers[1]] = mine
        let_go(held, handler, usual, None)
        assert [signal.getsignal(number) for number in numbers] == [mine] * 3


@HOSTS
def test_the_wakeup_descriptor_is_set_with_the_handlers(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And only with some; the one of before is told."""
    one, held = exchange(host, monkeypatch), list[int]()
    number = int(signal.SIGUSR1)
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(-1)
    try:
        with handling(raising, number):
            one.note(there())
            assert one.hold((), held, raising, write) == -1
            assert one.hold((number,), held, raising, write) == -1
            assert one.hold((number,), held, raising, write) == write
            one.let_go(held, raising, {number: raising}, None)
            assert signal.set_wakeup_fd(write) == write
            one.let_go(held, raising, {}, -1)
            assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.set_wakeup_fd(before)
        os.close(read)
        os.close(write)


@pytest.mark.host_code
def test_host_code_is_told_what_it_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    one = exchange("variables", monkeypatch)
    before = there()
    one.note(before)
    for wrong in ((), ((), []), ([2], [], raising, -1), ((2,), (), raising, -1)):
        with pytest.raises((TypeError, SystemError)):
            one.hold(*wrong)
    for wrong in ((), ((), raising, {}), ((), raising, {}, None)):
        with pytest.raises((TypeError, SystemError)):
            one.let_go(*wrong)
    assert there() == before


@pytest.mark.host_code
def test_the_interpreters_variables_are_found() -> None:
    """On every CPython that host code is for."""
    table = signals._signal_table()
    assert table is not None
    number = int(signal.SIGUSR1)
    place = ctypes.c_void_p.from_address(table.handlers + number * signaltable.ROW)
    with handling(raising, number):
        assert place.value == id(raising)
    assert place.value == id(signals._getsignal(number))


class Elsewhere:
    """A module whose functions keep handlers or the descriptor where nobody finds them."""

    SIG_DFL = signal.SIG_DFL

    def __init__(self, what: str) -> None:
        self.kept: dict[int, Any] = {}
        for name in ("getsignal", "signal", "set_wakeup_fd"):
            setattr(self, name, getattr(self if name == what else signals._plain, f"_{name}" if name == what else name))

    def _getsignal(self, number: int) -> Any:
        return signal.SIG_DFL

    def _signal(self, number: int, handler: Any) -> Any:
        return signal.SIG_DFL

    def _set_wakeup_fd(self, fd: int, warn_on_full_buffer: bool = True) -> int:
        return -1


@pytest.mark.host_code
@pytest.mark.parametrize("what", ["getsignal", "signal", "set_wakeup_fd"])
def test_variables_that_functions_do_not_use_are_not_taken(what: str) -> None:
    before = there()
    watcher = signals._watcher or signals._watch()
    assert signaltable.find(Elsewhere(what), signals.NUMBERS, watcher.write) is None
    assert there() == before


@pytest.mark.host_code
def test_an_alarm_comes_where_the_variables_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "_signal_table", lambda: None)
    m = unicorn_machine("x86_64")
    with handling(raising):
        for _ in range(3):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(Alarm):
                m.call("spin", timeout=60)
    assert m.call("deep", 4) == 6
