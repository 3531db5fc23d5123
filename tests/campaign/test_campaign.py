"""Campaigns: every item has its outcome, whatever becomes of the others."""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, nullcontext, suppress
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import Any

import campaign_jobs as jobs
import pytest
from click.testing import CliRunner, Result

from kprobes import BadArgument, GuestFault, KprobeError, Kprobes, UnicornMachine, UnknownSymbol
from kprobes.campaign import Calls, Journal, Outcome, local, merged, run
from kprobes.campaign._dask import DaskStates
from kprobes.campaign._journal import JournalError
from kprobes.campaign._run import WINDOW, Fates, Work, _Run, attempt
from kprobes.cli import main
from kprobes.errors import AmbiguousSymbol, EventError, GuestTimeout, ProgramError
from kprobes.inventory import instructions


def test_every_item_has_an_outcome() -> None:
    outcomes = {o.item: o for o in run(jobs.square, range(2000), jobs=2)}
    assert {n: o.result for n, o in outcomes.items()} == {n: n * n for n in range(2000)}
    assert all(o.ok and o.seconds >= 0 for o in outcomes.values())


def test_what_crashes_and_hangs_costs_itself_only() -> None:
    start = time.monotonic()
    outcomes = {o.item: o for o in run(jobs.mixed, range(500), timeout=2, jobs=2)}
    assert time.monotonic() - start < 50
    assert sorted(outcomes) == [*range(500)]
    failed = {n: str(o.error) for n, o in outcomes.items() if not o.ok}
    assert failed.keys() == {3, 7, 11, 13, 17, 19}
    assert isinstance(outcomes[3].error, ValueError)
    assert isinstance(outcomes[11].error, TimeoutError)
    assert "SIGSEGV" in failed[7]
    assert "2 seconds" in failed[11]
    assert "status 5" in failed[13]
    assert failed[17] == "Picky: picky"
    assert "SIGKILL" in failed[19]
    assert all(o.result == -n for n, o in outcomes.items() if o.ok)


def test_items_are_taken_as_workers_become_free() -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        for n in count():
            taken += 1
            yield n

    with ThreadPoolExecutor(2) as pool:
        found = run(jobs.slow, endless(), pool, jobs=2)  # type: ignore[arg-type]
        assert {o.result for o in islice(found, 2)} <= {0, 1, 2, 3}
    assert taken <= 64 * 2 * WINDOW


def test_other_executors() -> None:
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        for pool in (threads, processes):
            assert sum(o.result or 0 for o in run(jobs.square, range(100), pool)) == sum(n * n for n in range(100))


def test_another_executors_item_is_given_up_in_time() -> None:
    with ThreadPoolExecutor(2) as pool:
        outcomes = {o.item: o for o in run(jobs.slow, range(6), pool, timeout=1.5)}
    assert isinstance(outcomes[2].error, TimeoutError)
    assert [n for n, o in outcomes.items() if o.ok and o.result != n] == []
    assert sum(not o.ok for o in outcomes.values()) == 1


@contextmanager
def cluster(processes: bool) -> Iterator[Any]:
    """Two workers; of this process, or processes. A port of its own: another cluster may run."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=processes,
                                  dashboard_address="127.0.0.1:0") as two, distributed.Client(two) as client:
        yield client


def test_dask_gives_the_same() -> None:
    with cluster(processes=False) as client:
        there = {o.item: o.result for o in run(jobs.square, range(300), client.get_executor())}
    assert there == {o.item: o.result for o in run(jobs.square, range(300), jobs=1)}


def test_dask_does_each_even_where_two_are_equal(tmp_path: Path) -> None:
    """dask takes equal calls for one, and gives the result of the first."""
    with cluster(processes=False) as client:
        for _ in range(2):
            assert [o.ok for o in run(jobs.noting, [str(tmp_path / "noted")] * 20, client.get_executor())] == [True] * 20
    assert (tmp_path / "noted").read_bytes() == b"." * 40


@pytest.mark.quick
@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("items", [0, 1, 5, 100, 20_000])
def test_where_the_number_of_items_is_known_all_workers_end_together(workers: int, items: int) -> None:
    """The largest batch is large enough for a cluster, the last ones are small, and none is too small."""
    loop = _Run(jobs.square, iter(range(items)), ThreadPoolExecutor(1), None, workers, items)
    batches = []
    while batch := loop._next():
        batches.append(len(batch.items))
        [*loop._finished(_done(Fates([(None, None, 1e-4)] * len(batch.items))), batch)]
    assert sum(batches) == items
    if items > 10_000:
        assert max(batches) > 1000
        assert max(batches[-workers:]) <= loop.short + 1 <= 501  # a time divided by itself: one item is rounding
        assert len(batches) < 20 + 20 * workers


@pytest.mark.long
def test_a_worker_of_dask_that_dies_costs_one_item() -> None:
    """With the settings that the page shows. A busy machine takes its time to start another worker."""
    pytest.importorskip("distributed")  # first: config.set() would take away again what its import sets within
    config = pytest.importorskip("dask.config")
    settings = pytest.importorskip("yaml").safe_load((Path(DEMO).parent / "dask.yaml").read_text())
    failures = settings["distributed"]["scheduler"]["allowed-failures"]
    with config.set({"distributed.deploy.lost-worker-timeout": "10 minutes",
                     "distributed.scheduler.allowed-failures": failures}), cluster(processes=True) as client:
        outcomes = {o.item: o for o in run(jobs.killing, range(60), client.get_executor(), jobs=2)}
    assert {n: str(o.error) for n, o in outcomes.items() if not o.ok} == {37: "its worker died"}
    assert {n: o.result for n, o in outcomes.items() if o.ok} == {n: -n for n in range(60) if n != 37}


def test_an_item_that_hangs_is_given_up_in_its_own_time() -> None:
    """Not in that of the batch in which it travels: a hundred quick ones are before it."""
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        loop = run(jobs.napping, range(200), pool, timeout=0.5, jobs=2)
        outcomes = {o.item: o for o in loop}
        assert time.monotonic() - start < 20
    assert [n for n, o in outcomes.items() if not o.ok] == [150]
    assert str(outcomes[150].error) == "no result within 0.5 seconds"


@pytest.mark.long
def test_an_item_that_hangs_on_dask_is_given_up_in_its_own_time() -> None:
    with cluster(processes=True) as client:
        start = time.monotonic()
        outcomes = {o.item: o for o in run(jobs.hanging, range(200), client.get_executor(), timeout=1.5, jobs=2)}
        assert time.monotonic() - start < 50
    assert [n for n, o in outcomes.items() if not o.ok] == [150]
    assert len(outcomes) == 200


class _Task:
    """A task of dask's: states that it has one after the other, and what result() does in the last."""

    def __init__(self, *states: str, result: Callable[[], Any] = lambda: None) -> None:
        self._states, self._result, self.cancelled = list(states), result, False

    @property
    def status(self) -> str:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    def result(self, timeout: float) -> Any:
        return self._result()

    def cancel(self) -> None:
        self.cancelled = True


def test_dask_s_tasks_are_asked_for_their_states() -> None:
    """A result whose worker dies on the way is asked for again; what has failed or was cancelled ends."""
    calls = iter([TimeoutError("on the way"), CancelledError("gone"), 5])

    def result() -> Any:
        found = next(calls)
        if isinstance(found, BaseException):
            raise found
        return found

    tasks = iter([_Task("pending", "lost", "pending", "finished", result=lambda: 4), _Task("finished", result=result),
                  _Task("error", result=lambda: 1 // 0), _Task("pending")])

    class Client:
        def submit(self, fn: object, *args: object, **kwargs: object) -> _Task:
            assert kwargs == {"pure": False}
            return next(tasks)

    states = DaskStates(Client(), {"pure": False})
    futures = [states.submit(len, "") for _ in range(4)]
    assert all(future.running() for future in futures)
    states.poll()
    assert [future.done() for future in futures] == [False, False, True, False]
    for _ in range(3):
        states.poll()
    assert futures[0].result() == 4
    assert isinstance(futures[1].exception(), CancelledError)
    assert isinstance(futures[2].exception(), ZeroDivisionError)
    states.give_up(futures[3], 1)
    states.poll()
    assert not futures[3].done()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limits there")
@pytest.mark.parametrize("pool", [None, ProcessPoolExecutor], ids=["here", "another executor"])
def test_memory_that_an_item_may_take(pool: Any) -> None:
    """The item that takes more fails, and its neighbours do not."""
    with pool(1) if pool else nullcontext() as executor:
        outcomes = {o.item: o for o in run(jobs.greedy, range(12), executor, jobs=1, memory=200 << 20)}
    assert [n for n, o in outcomes.items() if not o.ok] == [5]
    assert isinstance(outcomes[5].error, MemoryError)
    assert outcomes[6].result == 50 << 20


def test_what_dies_beside_another_is_tried_alone() -> None:
    """Of a cluster: what waits for a worker dies with it. Nothing but the item that ends a worker fails."""
    with _Cluster(deadly={11, 40}) as executor:
        outcomes = {o.item: o for o in run(jobs.square, range(60), executor, jobs=2)}
    assert {n for n, o in outcomes.items() if not o.ok} == {11, 40}
    assert len(outcomes) == 60


def test_what_waits_for_a_worker_is_not_late() -> None:
    """dask's futures say that they run from the first moment on."""
    with _Cluster() as executor:
        assert all(o.ok for o in run(jobs.half, range(8), executor, timeout=1.4, jobs=2))


class _Cluster(Executor):
    """As dask does: all futures run, and a worker's end is the end of all that were given out."""

    def __init__(self, deadly: set[int] | None = None) -> None:
        self._pool, self._deadly = ThreadPoolExecutor(2), deadly or set()
        self._given: list[Future[Any]] = []
        self._dying = Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._given.append(future)
        self._pool.submit(self._do, future, fn, args[0])
        return future

    def _do(self, future: Future[Any], fn: Callable[..., Any], work: Work) -> None:
        if self._deadly & {*work.items}:
            time.sleep(0.05)
            with self._dying:
                if future.done():  # it has died already, with another one
                    return
                for given in [given for given in self._given if not given.done()]:
                    with suppress(InvalidStateError):
                        given.set_exception(ChildProcessError("a worker died"))
        else:
            result = fn(work)
            with suppress(InvalidStateError):
                future.set_result(result)


def _done(result: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(result)
    return future


def test_results_that_do_not_travel() -> None:
    outcomes = [*run(jobs.unpicklable, range(5), jobs=1)]
    assert len(outcomes) == 5
    assert [o.item for o in outcomes if not o.ok] == [4]


@pytest.mark.quick
def test_wrong_arguments() -> None:
    for bad in ({"timeout": 0}, {"timeout": -1}, {"jobs": 0}):
        with pytest.raises(BadArgument):
            run(jobs.square, [1], **bad)  # type: ignore[arg-type]


@pytest.mark.quick
def test_without_pebble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pebble", None)
    with pytest.raises(KprobeError, match=r"kprobes\[campaign\]"):
        local()


@pytest.mark.quick
@pytest.mark.parametrize("error", [
    GuestFault("reads nothing", address=4, pc=8, access="read", symbol="f+0x4", number=3),
    UnknownSymbol("no such", symbol="f", hint="look"),
    AmbiguousSymbol("f", (1, 2)), EventError("BAD", "wrong", "p f", 2), GuestTimeout("up", pc=5),
    ProgramError("bad", section="kprobe/f", line="a.c:1")])
def test_errors_travel(error: KprobeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.args, again.errno, vars(again)) == (str(error), error.args, error.errno, vars(error))


@pytest.mark.quick
def test_a_job_that_raises() -> None:
    assert ([(r, type(e)) for r, e, _ in attempt(Work(jobs.mixed, [1, 3, 17])).of]
            == [(-1, type(None)), (None, ValueError), (None, RuntimeError)])


# --- the journal


@pytest.mark.quick
def test_a_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, "squares") as journal:
        assert [*journal.left([1, 2, 3])] == [1, 2, 3]
        journal.note(Outcome(1, {"n": 1}, None, 0.5))
        journal.note(Outcome(2, None, ValueError("no"), 0.5))
    whole = path.read_bytes()
    for cut in range(len(whole)):  # a kill may come anywhere
        path.write_bytes(whole[:cut])
        with Journal(path, "squares") as journal:
            assert len(journal.entries) == max(0, whole[:cut].count(b"\n") - 1)
            for item in journal.left([1, 2, 3]):
                journal.note(Outcome(item, {"n": item}, None, 0))
        with Journal(path, "squares") as journal:
            assert ({item: entry.result or entry.error for item, entry in journal.entries.items()}.keys()
                    == {"1", "2", "3"})
    path.write_bytes(whole)
    with Journal(path, "squares") as journal:
        assert journal.entries["2"].error == "ValueError: no"
    with pytest.raises(JournalError, match="another campaign: it has 'squares', this has 'cubes'"):
        Journal(path, "cubes")


@pytest.mark.quick
@pytest.mark.parametrize(("then", "now", "said"), [
    (f"Job(image='{'i' * 500}', seconds=5, board='{'b' * 500}')", f"Job(image='{'i' * 500}', seconds=3, board='{'b' * 500}')",
     f"""it has "...seconds=5, board='{'b' * 42}...", this has "...seconds=3, board='{'b' * 42}..."; give"""),
    ("a" * 500, "a" * 499 + "b", f"it has '...{'a' * 31}', this has '...{'a' * 30}b'"),
    ("squares of", "squares", "it has 'squares of', this has 'squares'"),
])
def test_another_campaign_is_said_by_its_first_difference(tmp_path: Path, then: str, now: str, said: str) -> None:
    path = tmp_path / "journal"
    with Journal(path, then):
        pass
    with pytest.raises(JournalError) as raised:
        Journal(path, now)
    assert said in str(raised.value)


@pytest.mark.quick
@pytest.mark.parametrize("content", [b"\x7fELF\n", b"[]\n", b"{}\n", b'{"campaign": "c"}\n5\n',
                                     b'{"campaign": "c"}\n{"item": 1}\n', b"\xff\n", b"x"])
def test_what_is_no_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="no journal"):
        Journal(path, "c")
    assert path.read_bytes() == content


@pytest.mark.quick
def test_results_merge() -> None:
    assert merged([]) is None
    assert merged([{"a": 1, "s": {1}}, None, {"a": 2, "b": 0.5, "s": {2}}]) == {"a": 3, "b": 0.5, "s": {1, 2}}
    assert merged([[1], [2, 3]]) == [1, 2, 3]
    assert merged([Counter("ab"), Counter("b")]) == {"a": 1, "b": 2}
    with pytest.raises(TypeError):
        merged([{1}, 2])
    assert json.dumps(merged([{"a": {"x": 1}}, {"a": {"x": 2}}])) == '{"a": {"x": 3}}'


# --- calls and checks, and the command

DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")


def test_calls_start_from_the_same_state() -> None:
    """Whatever came before, in whatever process: a fresh machine gives the same."""
    job = Calls(DEMO, "parse_settings(@input)", ("p table_insert",), ("table_init()",))
    inputs = [b"width=640, height=480", b"=?", b"a=1, b=2, c=3", b"", b"x" * 40] * 20
    together = [job(item) for item in inputs]
    from kprobes.campaign import _jobs

    for item, result in [*zip(inputs, together, strict=True)][:5]:
        _jobs._bench.cache_clear()
        assert job(item) == result
    spread: dict[bytes, set[str]] = {}
    for outcome in run(job, inputs, jobs=2, timeout=60):
        spread.setdefault(outcome.item, set()).add(json.dumps(outcome.result))
    assert all(len(found) == 1 for found in spread.values())


def test_a_call_that_faults_is_that_items_error(tmp_path: Path) -> None:
    job = Calls(DEMO, "string_length(@input)", max_insns=200)
    outcomes = {o.item: o for o in run(job, [b"ok", b"x" * 500], jobs=1)}
    assert outcomes[b"ok"].result["result"] == 2
    assert isinstance(outcomes[b"x" * 500].error, GuestTimeout)


def cli(*words: str) -> Result:
    return CliRunner().invoke(main, ["campaign", *words], prog_name="kprobes")


def test_the_command_goes_on_after_a_kill(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for n in range(30):
        (corpus / f"{n:02}").write_text(f"a={n}, b={n}" if n != 4 else "x" * 9000)
    words = (DEMO, "--call", "string_length(@input)", "--inputs", str(corpus), "--max-insns", "20000", "-e",
             "p string_length", "--jobs", "2", "-o", str(tmp_path / "journal"), "--json")
    first = cli(*words)
    assert first.exit_code == 1
    said = json.loads(first.stdout)
    assert (said["items"], [*said["failed"]], said["hits"]) == (30, [str(corpus / "04")], {"p_string_length_0": 29})
    assert "GuestTimeout" in said["failed"][str(corpus / "04")]
    journal = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(journal[: len(journal) // 2])
    assert json.loads(cli(*words).stdout) == said
    assert (tmp_path / "journal").read_bytes().count(b"\n") == 31


@pytest.mark.parametrize(("words", "says"), [
    ((DEMO,), "--inputs"), ((DEMO, "--call", "f(@input)"), "--inputs"),
    ((DEMO, "--call", "f(@in", "--inputs", DEMO), "no argument here"),
    (("check", "--files", "/nowhere/*.so"), "no file matches"), (("chekc", "--files", DEMO), "`check`"),
    *(((DEMO, "--call", "f(@input)", "--inputs", DEMO, "--dask", address), address)
      for address in ("nowhere:1", "127.0.0.1:1", "bad://here", "tls://here:1", "here:port"))])
def test_wrong_command_lines(words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kprobes.cli._campaign.CONNECT", 0.5)
    result = cli(*words)
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_what_dask_trips_over_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it does, now and then, at an address that is none."""
    def fails(*args: Any, **named: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("distributed.Client", fails)
    result = cli(DEMO, "--call", "f(@input)", "--inputs", DEMO, "--dask", "here:1")
    assert result.exit_code == 2 and "--dask here:1: AssertionError; give a scheduler's" in result.stderr


class _Clock:
    """time.monotonic() that goes on by 4 seconds each time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 4
        return self.now


def test_how_far_it_is_in_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal: a line every ten seconds, none behind the last item."""
    from kprobes.cli import _campaign

    monkeypatch.setattr(_campaign, "time", _Clock())
    found = [Outcome(n, n, ValueError() if n == 1 else None, 0.0) for n in range(8)]
    lines: list[str] = []
    monkeypatch.setattr(_campaign.click, "echo", lambda text, err: lines.append(text))
    assert [*_campaign._with_lines(found, 8, str)] == found
    assert lines == ["3 of 8 items, 1 failed, about 20 s left", "6 of 8 items, 1 failed, about 8 s left"]


def test_ctrl_c_tells_what_is_done_and_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same command goes on, where there is a journal."""
    for n in range(6):
        (tmp_path / f"input{n}").write_bytes(b"width=1")
    real = run

    def interrupted(*args: Any, **more: Any) -> Iterator[Any]:
        yield from islice(real(*args, **more), 2)
        raise KeyboardInterrupt

    words = (DEMO, "--call", "parse_settings(@input)", "--before", "table_init()", "--inputs", str(tmp_path), "-j", "1")
    journal = tmp_path.parent / f"{tmp_path.name}.journal"
    monkeypatch.setattr("kprobes.campaign.run", interrupted)
    result = cli(*words)
    assert result.exit_code == 130
    assert "2 items, 0 failed" in result.stderr
    assert "stopped: 2 of 6 items were done; with -o FILE" in result.stderr
    result = cli(*words, "-o", str(journal))
    assert result.exit_code == 130
    assert f"2 of 6 items were done, 4 are left; {journal} has what was done" in result.stderr
    monkeypatch.setattr("kprobes.campaign.run", real)
    result = cli(*words, "-o", str(journal))
    assert result.exit_code == 0
    assert "6 items, 0 failed" in result.stderr


def test_blocks_are_counted_once_whichever_process_saw_them(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / str(n)).write_text("a=1, b=-2" if n % 2 else "")
    words = (DEMO, "--call", "parse_settings(@input)", "--before", "table_init()", "--inputs", str(tmp_path),
             "--coverage", "--json")
    blocks = {json.loads(cli(*words, "--jobs", jobs).stdout)["blocks"] for jobs in "12"}
    assert len(blocks) == 1
    assert blocks.pop() > 20


def test_failures_are_listed_with_how_to_repeat_them() -> None:
    result = cli(DEMO, "--call", "no_such_function(@input)", "--inputs", DEMO, "--jobs", "1")
    assert result.exit_code == 1
    assert f"kprobes campaign {DEMO} --call 'no_such_function(@input)' --inputs {DEMO}" in result.stderr


def test_files_are_checked() -> None:
    result = cli("check", "--files", f"{Path(DEMO).parent}/demo.*64", "--json")
    counted = json.loads(result.stdout)
    assert counted["files"] == counted["items"] == 2
    assert counted["instructions"] == sum(counted[how] for how in ("step", "simulate", "step+simulate",
                                                                   "refuse")) > 1000


def test_a_function_without_a_size_ends_where_memory_does() -> None:
    """Old libraries have such a _fini: the next symbol is megabytes away, and nothing between."""
    m = UnicornMachine.from_code(bytes.fromhex("90c3"), arch="x86_64",
                                 symbols={"last": (0x10000, 0), "far": (0x900000, 8)})
    with m, Kprobes(m) as k:
        page = list(islice(instructions(m, k, m.symbols["last"]), 1 << 16))
        assert page[:2] == [0x10000, 0x10001] and page[-1] < 0x12000
