"""What a real kernel prints of kprobe events, and what we print of the same ones in the same kernel: byte for byte."""

from __future__ import annotations

import io
import re
from types import ModuleType
from typing import Any

import pytest

from kprobes import EventError, Kprobes

ROUNDS = 3
EVENTS = (r"p:reads vfs_read file=$arg1:x64 count=$arg3:u64 neg=\-5:s32 c=\65:char banner=@linux_banner:x8[4] "
          r"bits=$arg3:b4@2/32 two=\-2:s16 here=\{here}:x64",
          "p:opens do_sys_openat2 name=+0($arg2):ustring dfd=$arg1:s32 comm=$comm",
          "r:returns vfs_read ret=$retval:s64", "p:plain ksys_read")
READS = [f"hist:{text} if count < 2000" for text in (
    "keys=count:sort=count", "keys=count.hex:vals=neg:sort=count.descending",
    "keys=count.log2:vals=count,neg:sort=count", "keys=count.buckets=100:vals=count.hex:sort=count:size=200",
    "keys=neg,c:sort=neg", "keys=neg:nohitcount:vals=count", "keys=here.sym", "keys=here.sym-offset:vals=neg",
    "keys=bits,two:vals=two:sort=bits.descending,two")]
OPENS = [f'hist:{text} if name == "/greeting"' for text in ("keys=name", "keys=dfd:vals=dfd")]
HISTS = {"reads": READS, "opens": OPENS,
         "returns": ["hist:keys=ret:sort=ret if ret == 37 || ret == 10", "hist:name=of:keys=ret.hex:pause"]}

WRONG = (r"a=+0(+8):u32", "$arg0", "a=$stack9999", "a=%nope", "a=$arg1:u12", "a=$arg1:u8[0]", "a=$arg1:u8[65]",
         "a=$arg1:string", "a=+0($arg1", "a=$retval", "a=", "=5", "a=$arg1 a=$arg2", "1a=$arg1", r"a=\zz", r'a=\"abc',
         "a=$arg1:b9@0/8", "a=+x($arg1)", "a=$nope", "a=@0xzz", "a=$comm:u8", "a=+0($comm)", "a=$arg1:u8[2",
         "a=$arg1:u8[2]x", "a=@+0x10", f"{'a' * 40}=$arg1", f"a={'+0(' * 21}$arg1{')' * 21}")
WRONG_EVENTS = [f"p:x vfs_read {text}" for text in WRONG] + [
    "p:1x vfs_read", "r:x vfs_read+8 $retval", "p:x nosuchfunction", "r99999:x vfs_read", "p5:x vfs_read",
    f"p:{'x' * 70} vfs_read", f"p:{'g' * 70}/x vfs_read", "p:x vfs_read+1 $arg1", "p:x vfs_read+0xzz", "p:/x vfs_read",
    "p:g.x/y vfs_read"]
WRONG_HISTS = [f"hist:keys={text}" for text in (
    "nope", "count:vals=nope", "count:sort=nope", "count.zzz", "count.execname", "count:vals=c.log2",
    "count:sort=count.sideways", "count:sort=count,c,neg")]
Texts = dict[str, str]


def events_of(kernel: Any) -> list[str]:
    """here: an address in the middle of a function."""
    here = kernel.m.symbols["vfs_read"].address + 5
    return [event.replace("{here}", f"{here:#x}") for event in EVENTS]


class Files:
    """The kernel's own tracefs."""

    def __init__(self, kernel: Any, example: ModuleType) -> None:
        self.kernel, self.example = kernel, example

    def read(self, name: str) -> str:
        return str(self.kernel.file(f"/tracing/{name}").decode())

    def write(self, name: str, text: str) -> int:
        """0, or the errno with which the kernel refuses it."""
        try:
            self.kernel.do(self.example.WRITE, len(text), f"/tracing/{name}", text.encode())
        except OSError as error:
            return error.errno or -1
        return 0

    def refused(self, name: str, text: str) -> tuple[int, int]:
        """With which errno, and where the caret stands."""
        self.write("error_log", "\n")
        errno = self.write(name, text)
        return errno, self.read("error_log").splitlines()[-1].index("^") - len("  Command: ") if errno else -1


def by_itself(kernel: Any, example: ModuleType) -> tuple[Texts, list[tuple[int, int]]]:
    """What the kernel's files have after some work, and how it refuses what is wrong."""
    files = Files(kernel, example)
    assert not [event for event in events_of(kernel) if files.write("kprobe_events", event + "\n")]
    texts = {"kprobe_events": files.read("kprobe_events")}
    files.write("trace_clock", "counter")
    assert not [text for name in HISTS for text in HISTS[name] if files.write(f"events/kprobes/{name}/trigger", text)]
    files.write("events/kprobes/enable", "1")
    kernel.do(example.WORK, ROUNDS)
    files.write("events/kprobes/enable", "0")
    texts |= {name: files.read(name) for name in ("trace", "kprobe_profile")}
    for name in HISTS:
        texts |= {f"{name} {what}": files.read(f"events/kprobes/{name}/{what}") for what in ("hist", "trigger")}
    errors = [files.refused("kprobe_events", text + "\n") for text in WRONG_EVENTS]
    errors += [files.refused("events/kprobes/reads/trigger", text) for text in WRONG_HISTS]
    for name, triggers in HISTS.items():
        for text in triggers:
            files.write(f"events/kprobes/{name}/trigger", f"!{text}")
    files.write("kprobe_events", "".join(f"-:{event.split()[0][2:]}\n" for event in EVENTS))
    assert not files.read("kprobe_events")
    return texts, errors


def where(act: Any, text: str) -> tuple[int, int]:
    with pytest.raises(EventError) as caught:
        act(text)
    return caught.value.errno, caught.value.position


def by_us(kernel: Any, example: ModuleType) -> tuple[Texts, list[tuple[int, int]]]:
    """The same of ours."""
    m = kernel.m
    kernel.tell(example.WORK, ROUNDS)
    m.run(until="do_sys_openat2", timeout=60)
    task, m.cpu_task = m.cpu_task, lambda regs: "init"
    with Kprobes(m) as k:
        events = {event.name: event for event in map(k.event, events_of(kernel))}
        texts = {"kprobe_events": k.events.text()}
        for name, triggers in HISTS.items():
            for trigger in triggers:
                events[name].trigger(trigger)
        with k.trace(*events_of(kernel)) as t:
            kernel.answered()
            kernel.wait()
        t.export(file := io.StringIO(), "ftrace")
        texts |= {"trace": file.getvalue(), "kprobe_profile": k.events.profile()}
        for name in HISTS:
            texts[f"{name} hist"] = "\n\n".join(map(str, events[name].hists))
            texts[f"{name} trigger"] = "".join(f"{text}\n" for text in events[name].triggers)
        errors = [where(k.event, text) for text in WRONG_EVENTS]
        errors += [where(events["reads"].trigger, text) for text in WRONG_HISTS]
    m.cpu_task = task
    return texts, errors


def lines(text: str, count: int) -> list[str]:
    """A trace's, without what differs by its nature: how many there are in all, the flags and the task's number, where
    it stands in the counter, and that the kernel's probe of an entry stands behind its call of ftrace."""
    head, rows = text.splitlines()[:12], text.splitlines()[12:12 + count]
    out, first = [re.sub(r"\d+/\d+", "N/N", line) for line in head], None
    for row in rows:
        task, flags, number, rest = re.fullmatch(r"( {12}init-[01] {6} \[000\]) (.{5}) ([ \d]{12}): (.*)", row).groups()
        first = int(number) if first is None else first
        place = re.sub(r"^(\w+: \(\w+)\+0x[0-9a-f](?=/0x[0-9a-f]+\))", r"\1+0x0", rest)
        out.append(f"{task.replace('-1', '-0')} {re.sub('[a-zA-Z]', '.', flags)} {int(number) - first:12}: {place}")
    return out


def test_they_print_the_same(kernel: object, example: ModuleType) -> None:
    """The trace with its head and columns, definitions, triggers, histograms, profile; carets and errno of errors."""
    (theirs, refused), (ours, errors) = by_itself(kernel, example), by_us(kernel, example)
    count = 7 * ROUNDS
    assert lines(ours["trace"], count) == lines(theirs["trace"], count)
    assert len(ours["trace"].splitlines()) == 12 + count
    assert ours["kprobe_events"] == re.sub(r"(?m)^r\d+:", "r:", theirs["kprobe_events"])  # it says its maxactive
    forms = [[(line.index(line.split()[0]), len(line)) for line in texts["kprobe_profile"].splitlines()]
             for texts in (ours, theirs)]
    assert forms[0] == forms[1] and len(forms[0]) == len(EVENTS)
    for name in HISTS:
        assert ours[f"{name} trigger"] == theirs[f"{name} trigger"]
        assert ours[f"{name} hist"] == theirs[f"{name} hist"]
    for text, *both in zip([*WRONG_EVENTS, *WRONG_HISTS], errors, refused, strict=True):
        assert both[0] == both[1], text
