"""Scripts in a process under QEMU: their programs are the guest's own code, which stops only where a script speaks."""

from __future__ import annotations

import re
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
