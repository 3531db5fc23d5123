"""Scripts in a process under QEMU: their programs are the guest's own code, which stops only where a script speaks."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from arch_rows import SAVINGS
from click.testing import CliRunner
from qemu import qemu_for, start
from script.test_language import Maker

from kprobes import GuestFault, Kprobes
from kprobes.cli import main

pytest.importorskip("llvmlite")
FUNCTION = "test_crc"
SEEDS = (0, 3, 5, 77, 3, 77)


def in_guest(m: Any) -> bool:
    """True where programs run in the guest at the probed function."""
    return m.arch.name in SAVINGS and not m.symbols[FUNCTION].mode


def ran(m: Any, k: Kprobes, text: str, engine: str | None) -> tuple[str, str]:
    """What a script prints about some calls; why its programs stop the guest, "" where they do not."""
    with k.script(text, engine=engine) as s:
        results = [m.call(FUNCTION, seed) for seed in SEEDS]
        probe, = (probe for one in s.attachments for probe in one)
        why, = s.attachments[0].why_python.values()
        assert bool(why) != probe.optimized, why
    return f"{results}\n{s.output}", why


def test_generated_scripts_agree_with_the_interpreter(m: Any) -> None:
    made = Maker(m.symbols[FUNCTION].address).script()
    text = re.sub(r"\$v0 = \S+;", "$v0 = (int64)(uint32)arg0;", made).replace("begin", f"kprobe:{FUNCTION}", 1)
    with Kprobes(m) as k:
        stops, _ = ran(m, k, text, "interpreter")
        assert "@r[" in stops
        inside, why = ran(m, k, text, None)
        assert inside == stops
        assert (not why) == in_guest(m), why


LARGE = f"""
    kprobe:{FUNCTION} {{
        @rows[(uint32)arg0 & 1] = hist((uint32)arg0); @lines[func, (uint32)arg0] = lhist((uint32)arg0, 0, 100, 5);
        @texts[str(kaddr("{FUNCTION}") + 64 + ((uint32)arg0 & 4))] = sum((uint32)arg0);
        @buffers[buf(kaddr("{FUNCTION}") + 64, 96), (uint32)arg0] = 1;
    }}"""


def test_keys_and_values_may_be_large(m: Any) -> None:
    with Kprobes(m) as k:
        stops, _ = ran(m, k, LARGE, "interpreter")
        inside, why = ran(m, k, LARGE, None)
        assert inside == stops
        assert ", 77]:" in stops and "@texts[" in stops
        assert (not why) == in_guest(m), why


SPEAKING = f"""
    kprobe:{FUNCTION} {{
        @calls[(uint32)arg0] = count(); @sums["all"] = sum((uint32)arg0);
        if ((uint32)arg0 == 5) {{ printf("%d: %d\\n", (uint32)arg0, @calls[3]); clear(@calls); }}
        @after[(uint32)arg0, func] = max((uint32)arg0 + 1);
    }}"""


def test_entries_whose_tables_a_return_reads_are_not_the_guests_code(m: Any) -> None:
    """A stop costs less than tables that are copied for each return; others stay the guest's code."""
    text = f"""kprobe:{FUNCTION} {{ @begun[tid] = (uint32)arg0 + 1; }}
               kretprobe:{FUNCTION} /@begun[tid]/ {{ @calls[@begun[tid]] = count(); delete(@begun, tid); }}
               kprobe:{FUNCTION}+0 {{ @other[(uint32)arg0] = count(); }}"""
    with Kprobes(m) as k, k.script(text) as s:
        for seed in SEEDS:
            m.call(FUNCTION, seed)
        counts = {seed + 1: SEEDS.count(seed) for seed in SEEDS}
        assert dict(s.maps["calls"]) == counts and not s.maps["begun"]
        assert {key + 1: value for key, value in s.maps["other"].items()} == counts
        why = [why for one in s.attachments for why in one.why_python.values()]
        if in_guest(m):
            assert sum("for what reads @begun" in each for each in why) == 1


def test_words_that_only_the_host_can_do(m: Any) -> None:
    text = f"kprobe:{FUNCTION} {{ @ = kstack(2); @n = nsecs; @s = ustack; }}"
    with Kprobes(m) as k, k.script(text) as s:
        name, = s.attachments[0].why_python
        if not in_guest(m):
            assert s.attachments[0].why_python[name]
            return
        assert s.attachments[0].why_python[name] == "only the host can do kstack(2), ustack"
        assert [line.word for line in s.attachments[0].why_lines[name]] == ["kstack(2)", "ustack"]


def test_a_script_stops_the_guest_only_where_it_speaks(m: Any) -> None:
    """What it has counted by then is there, and what Python has cleared is gone as the program goes on."""
    if m.guest_view is None:
        pytest.skip("Python reads what scripts say now and then, where programs are not the guest's code")
    with Kprobes(m) as k:
        stops, _ = ran(m, k, SPEAKING, "interpreter")
        assert "\n5: 1\n" in stops and "@calls[0]" not in stops and "@calls[77]: 2" in stops
        asked = []
        answer = m.guest_view._asking.call_python
        m.guest_view._asking.call_python = lambda: asked.append(answer())
        inside, why = ran(m, k, SPEAKING, None)
        assert inside == stops
        assert (not why) == in_guest(m), why
        assert len(asked) == (2 if in_guest(m) else 0)


def test_the_command_says_what_runs_a_block(programs: Any) -> None:
    qemu_for("x86_64-O2")
    done = CliRunner().invoke(main, [
        "script", str(programs("x86_64-O2")), "--qemu", "-q", "-v", "-e",
        f"kprobe:{FUNCTION} {{ @[arg0] = count(); }} kretprobe:{FUNCTION} {{ @r = retval; }}"])
    assert f"kprobe:{FUNCTION}: guest code\n" in done.stderr
    assert f"kretprobe:{FUNCTION}: a remote guest's calls are followed" in done.stderr


def test_exit_in_the_guest_ends_the_run(m: Any) -> None:
    """The thread has left the library's code then, and the call can be made again."""
    with Kprobes(m) as k:
        plain = m.call(FUNCTION, 3)
        with k.script(f"kprobe:{FUNCTION} {{ @n = count(); if ((uint32)arg0 == 5) {{ exit(4); }} @m = count(); }}") as s:
            assert m.call(FUNCTION, 3) == plain
            m.call(FUNCTION, 5)
            assert s.ended and s.status == 4
            assert not m._sites.inside(m.regs.pc)
            assert (s.maps["n"], s.maps["m"]) == (2, 1)
        assert m.call(FUNCTION, 3) == plain


@pytest.mark.parametrize("stem", ["x86_64-O2", "mips32-O2"])
def test_an_error_while_python_is_called_comes_out_of_the_run(stem: str, programs: Any) -> None:
    with start(stem, programs) as m, Kprobes(m) as k:
        with k.script(f"kprobe:{FUNCTION} {{ if (arg0 == 5) {{ print(arg0); }} @n = count(); }}") as s:
            m.call(FUNCTION, 3)
            s.poll = lambda: 1 // 0
            with pytest.raises(ZeroDivisionError):
                m.call(FUNCTION, 5)
            assert not m._sites.inside(m.regs.pc)
            del s.poll
        assert s.maps["n"] == 2


def test_tables_are_copied_when_python_looks_at_them(x86: Any) -> None:
    """A call copies none; what Python has changed is the guest's at the next call."""
    with Kprobes(x86) as k, k.script(f"kprobe:{FUNCTION} {{ @[(uint32)arg0] = count(); }}") as s:
        x86.call(FUNCTION, 1)
        read, sizes = x86.guest_view.read, []
        x86.guest_view.read = lambda at, size: sizes.append(size) or read(at, size)
        for seed in SEEDS:
            x86.call(FUNCTION, seed)
        assert sum(sizes) < 1000
        assert dict(s.maps[""]) == {0: 1, 1: 1, 3: 2, 5: 1, 77: 2}
        assert sum(sizes) > 10_000
        table, = (m for m in s._compiled.maps.values() if m.name and "state" not in m.name and len(m) == 5)
        table.clear()
        x86.call(FUNCTION, 9)
        assert dict(s.maps[""]) == {9: 1}
    assert "@[9]: 1" in s.output


def test_tables_outlive_the_machine(programs: Any) -> None:
    """What nobody has looked at is copied as the machine is closed, and before the process ends."""
    for ends in (False, True):
        with start("x86_64-O2", programs) as m:
            k = Kprobes(m)
            s = k.script(f"kprobe:{FUNCTION} {{ @[(uint32)arg0] = count(); }}")
            s.start()
            for seed in SEEDS:
                m.call(FUNCTION, seed)
            if ends:
                with pytest.raises(GuestFault):  # there is nothing behind its functions
                    m.run()
        s.finish()
        assert "@[77]: 2" in s.output


TOLD = f"""
    kprobe:{FUNCTION} {{
        @task[pid, tid, comm] = count(); @last = nsecs; @now = elapsed; @times[(uint32)arg0] = nsecs;
        @random[rand] = 1; @many = 0;
        for ($kv : @random) {{ @many += 1; }}
        @size = len(@times);
    }}"""


def test_time_task_and_random_numbers_are_the_guests_code(m: Any) -> None:
    """So are loops over maps. The clock is this computer's: the guest's own code reads it, or the host tells it."""
    with Kprobes(m) as k:
        for engine in ("interpreter", None):
            before = time.monotonic_ns()
            with k.script(TOLD, engine=engine) as s:
                began = time.monotonic_ns()
                for seed in range(4):
                    m.call(FUNCTION, seed)
                after = time.monotonic_ns()
                why, = s.attachments[0].why_python.values()
            child = m._child.process.pid
            assert dict(s.maps["task"]) == {(child, child, m.symbols.main[:15].encode()): 4}
            times = [s.maps["times"][n] for n in range(4)]
            assert began < times[0] < times[1] < times[2] < times[3] < after and s.maps["last"] <= times[3]
            assert times[3] - began < s.maps["now"] + (began - before) and s.maps["now"] < after - before
            drawn = list(s.maps["random"])
            assert len(drawn) == s.maps["many"] == s.maps["size"] == 4 and max(drawn) < 1 << 32
        assert (not why) == in_guest(m), why


def test_a_loop_sees_every_key_once(x86: Any) -> None:
    """After deletions, too; the guest's order is that of Python's."""
    text = f"""
        kprobe:{FUNCTION} {{
            @k[(uint32)arg0, "a key of more words"] = (uint32)arg0;
            if ((uint32)arg0 == 60) {{
                for ($kv : @k) {{ if ($kv.1 % 3 == 0) {{ delete(@k, $kv.0); }} }}
                @k[99, "b"] = 99;
                for ($kv : @k) {{ @sum += $kv.1; @n = count(); @first[$kv.0.0] = @order; @order++; }}
            }}
        }}"""
    seen = []
    with Kprobes(x86) as k:
        for engine in ("interpreter", None):
            with k.script(text, engine=engine) as s:
                for seed in range(61):
                    x86.call(FUNCTION, seed)
                assert engine or s.attachments[0].why_python == {f"kprobe:{FUNCTION}": ""}
            seen.append((s.maps["sum"], s.maps["n"], dict(s.maps["first"])))
    left = [n for n in range(61) if n % 3] + [99]
    assert seen[0] == seen[1] and seen[0][:2] == (sum(left), len(left)) and set(seen[0][2]) == set(left)


INTERVALS = f"kprobe:{FUNCTION} {{ @hits = count(); }} interval:ms:200 {{ @intervals = count(); }}"


def test_intervals_stop_the_guest_only_when_they_are_due(x86: Any) -> None:
    asked = []
    answer = x86.guest_view._asking.call_python
    x86.guest_view._asking.call_python = lambda: asked.append(answer())
    with Kprobes(x86) as k, k.script(INTERVALS) as s:
        assert s.attachments[0].why_python == {f"kprobe:{FUNCTION}": ""}
        began = time.monotonic()
        calls = 0
        while time.monotonic() - began < 1:
            x86.call(FUNCTION, 3)
            calls += 1
        passed = time.monotonic() - began
        assert s.maps["hits"] == calls
        assert 0 < len(asked) == s.maps["intervals"] <= passed / 0.2 < calls


def test_exit_of_an_interval_ends_the_run(m: Any) -> None:
    """The block that was hit does nothing more."""
    with Kprobes(m) as k:
        with k.script(f"kprobe:{FUNCTION} {{ @hits = count(); }} interval:ms:200 {{ exit(3); }}") as s:
            calls, late = 0, time.monotonic() + 10
            while not s.ended and time.monotonic() < late:
                m.call(FUNCTION, 1)
                calls += 1
            assert s.ended and s.status == 3
        assert (s.maps["hits"] or 0) == calls - 1
