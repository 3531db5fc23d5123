"""`kprobes run`: programs at a guest's probes, what they print, their records, maps and variables."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kprobes.cli import main

pytest.importorskip("ziglang")
ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "examples" / "demo.arm64")
EXAMPLES = ROOT / "examples" / "programs"


def command(*words: str) -> Result:
    """A run of the command at the demo."""
    return CliRunner().invoke(main, ["run", DEMO, *words])


def test_maps_of_a_program() -> None:
    done = command(str(EXAMPLES / "count.bpf.c"), "--call", 'crc32(0, "hello", 5)', "-v")
    assert (done.exit_code, done.stdout) == (0, "counts[5]: 1\n")
    assert "on_crc: at crc32" in done.stderr and "crc32(0" in done.stderr


def test_histograms_stacks_and_records() -> None:
    done = command(str(EXAMPLES / "latency.bpf.c"), "--run", "--clock", "instructions")
    assert done.stdout.startswith("histogram:\n[") and "|@" in done.stdout and done.stdout.endswith("\n\n")
    done = command(str(EXAMPLES / "stacks.bpf.c"), "--call", "fib(3)", "--map", "stacks")
    assert "\n    fib+0x" in done.stdout and "counts" not in done.stdout
    done = command(str(EXAMPLES / "stream.bpf.c"), "--call", 'string_equal("left", "right")')
    assert done.stdout.startswith("events: { .left = ") and done.stdout.endswith(".text = left }\n")


def test_json(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = command(str(EXAMPLES / "stream.bpf.c"), "--call", 'string_equal("left", "right")', "--json", "-o", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    [record] = [json.loads(line) for line in out.read_text().splitlines()]
    assert (record["type"], record["map"], record["data"]["text"]) == ("record", "events", "left")


KEYS = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
typedef char name_t[8];
struct pair { u32 a; bool odd; };
#define TABLE(name, kind) struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 20); \\
    __type(key, kind); __type(value, u64); } name SEC(".maps")
TABLE(comms, char[16]); TABLE(names, name_t); TABLE(pairs, struct pair); TABLE(rows, u32[2]); TABLE(numbers, u32);
static const u64 one = 1;
SEC("kprobe/fib") int p(struct pt_regs *ctx)
{
    char comm[16] = {}, name[8] = "ab\\0cd";
    u32 n = PT_REGS_PARM1(ctx), row[2] = {7, n};
    struct pair pair = {};
    pair.a = n; pair.odd = n & 1;
    bpf_get_current_comm(comm, sizeof(comm));
    bpf_map_update_elem(&comms, comm, &one, 0); bpf_map_update_elem(&names, name, &one, 0);
    bpf_map_update_elem(&pairs, &pair, &one, 0); bpf_map_update_elem(&rows, row, &one, 0);
    bpf_map_update_elem(&numbers, &n, &one, 0);
    return 0;
}
"""


def test_keys_of_maps(tmp_path: Path) -> None:
    """Text, which has less bytes than its array; numbers, also in rows and structures, go by their size."""
    path = tmp_path / "keys.bpf.c"
    path.write_text(KEYS)
    done = command(str(path), "--call", "fib(10)")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["comms[guest]: 1", "names[61 62 00 63 64]: 1"]
    numbers = range(1, 11)
    assert lines[2:12] == [f"pairs[{{ .a = {n}, .odd = {'true' if n & 1 else 'false'} }}]: 1" for n in numbers]
    assert lines[12:] == [*(f"rows[[7, {n}]]: 1" for n in numbers), *(f"numbers[{n}]: 1" for n in numbers)]
    done = command(str(path), "--call", "fib(1)", "--json", "--map", "comms")
    assert json.loads(done.stdout) == {"type": "map", "name": "comms", "data": {"guest": 1}}


MORE = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
int second(struct pt_regs *ctx);
struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __uint(key_size, 4);
    __array(values, int (void *)); } jumps SEC(".maps") = { .values = { [1] = (void *)&second } };
struct counted { struct bpf_spin_lock lock; u32 n; struct bpf_timer timer; };
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, struct counted); }
    table SEC(".maps");
u64 continued, entries, returns;
SEC("kprobe") int second(struct pt_regs *ctx) { continued++; bpf_printk("%d", (int)PT_REGS_PARM1(ctx)); return 0; }
SEC("kprobe/fib") int first(struct pt_regs *ctx)
{
    u32 zero = 0;
    struct counted *it = bpf_map_lookup_elem(&table, &zero);
    if (it) { bpf_spin_lock(&it->lock); it->n++; bpf_spin_unlock(&it->lock); }
    bpf_tail_call(ctx, &jumps, 1);
    return 0;
}
SEC("kprobe.session/fib") int both(struct pt_regs *ctx)
{
    if (!bpf_session_is_return(ctx)) { *bpf_session_cookie(ctx) = 5; entries++; }
    else returns += *bpf_session_cookie();
    return 0;
}
static int later(void *map, int *key, struct counted *it) { it->n++; return 0; }
SEC("kprobe/fib") int timed(struct pt_regs *ctx)
{
    u32 zero = 0;
    struct counted *it = bpf_map_lookup_elem(&table, &zero);
    if (it) { bpf_timer_init(&it->timer, &table, 1); bpf_timer_set_callback(&it->timer, later); }
    return 0;
}
"""


def test_tail_calls_locks_sessions_and_timers(tmp_path: Path) -> None:
    """A program that others continue with is not announced as one that says no place; timers are refused."""
    path = tmp_path / "more.bpf.c"
    path.write_text(MORE)
    done = command(str(path), "--call", "fib(1)")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1" and ".n = 1," in done.stdout
    assert {"continued: 1", "entries: 1", "returns: 5"} <= set(done.stdout.splitlines())
    assert done.stderr.count("not attached") == 1
    assert "not attached: timed: calls bpf_timer_init(): nothing runs a program later here" in done.stderr
    done = command(str(path), "--call", "fib(1)", "--set", "wrong=1")
    assert "entries" in done.stderr and "____fmt" not in done.stderr


SOURCE = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "more.h"
const volatile int least = 0;
struct hist { __u32 slots[8]; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, u32); __type(value, struct hist); }
    hists SEC(".maps");
u64 calls; char name[8]; void *nothing;
SEC("uprobe") int BPF_UPROBE(by_hand, u32 seed, const char *text, u64 length)
{
    struct hist zero = {}, *h;
    u32 key = MORE;
    if (length < least) return 0;
    calls++;
    bpf_probe_read_user_str(name, sizeof(name), text);
    bpf_printk("%d bytes\\n", length);
    bpf_map_update_elem(&hists, &key, &zero, BPF_NOEXIST);
    if ((h = bpf_map_lookup_elem(&hists, &key))) h->slots[length & 7]++;
    return 0;
}
SEC("tracepoint/sched/sched_switch") int elsewhere(void *ctx) { return 0; }
char LICENSE[] SEC("license") = "GPL";
"""


def test_headers_constants_and_places(tmp_path: Path) -> None:
    """libbpf's headers, one beside the file; a program by hand; one that cannot be here is told."""
    path = tmp_path / "tool.bpf.c"
    path.write_text(SOURCE)
    (tmp_path / "more.h").write_text("#define MORE 3\n")
    done = command(str(path), "--attach", "by_hand=crc32", "--set", "least=4", "--call", 'crc32(0, "hello", 5)')
    lines = done.stdout.splitlines()
    assert done.exit_code == 0, done.stderr
    assert lines[0] == "5 bytes"
    assert lines[1:3] == ["hists[3]:", f"[32, 64)               1 |{'@' * 52}|"]
    assert lines[4:] == ["calls: 1", "name: hello"]
    assert "kprobes: not attached: elsewhere: " in done.stderr and "tracepoints are places" in done.stderr
    done = command(str(path), "--attach", "by_hand=crc32", "--set", "least=9", "--call", 'crc32(0, "hello", 5)')
    assert done.stdout == "calls: 0\nname: \n"


@pytest.mark.parametrize(("words", "status", "said"), [
    (("{count}", "--map", "nothing", "--call", "fib(1)"), 2, "no such map or variable; there is counts"),
    (("{count}", "--attach", "nothing=fib", "--call", "fib(1)"), 2, "no such program; there is on_crc"),
    (("{count}", "--attach", "on_crc", "--call", "fib(1)"), 2, "write NAME=FUNCTION"),
    (("{count}", "--attach", "on_crc=fib+010", "--call", "fib(1)"), 2, "write NAME=FUNCTION"),
    (("{inject}", "--call", "fib(1)"), 2, "--attach on_call=FUNCTION"),
    (("{inject}", "--set", "perod=1", "--attach", "on_call=fib", "--call", "fib(1)"), 2, "did you mean period"),
    (("{inject}", "--set", "period", "--attach", "on_call=fib", "--call", "fib(1)"), 2, "write NAME=NUMBER"),
    (("{count}",), 2, "--call"),
    (("/nowhere/tool.bpf.c", "--call", "fib(1)"), 2, "No such file"),
    (("/nowhere/tool.o", "--call", "fib(1)"), 2, "No such file"),
    ((DEMO, "--call", "fib(1)"), 2, "is no BPF object"),
])
def test_what_is_wrong(words: tuple[str, ...], status: int, said: str) -> None:
    names = {"count": EXAMPLES / "count.bpf.c", "inject": EXAMPLES / "inject.bpf.c"}
    done = command(*(word.format(**names) for word in words))
    assert done.exit_code == status
    assert said in done.stderr and "Traceback" not in done.stderr
    assert "fib(1) =" not in done.stderr  # nothing has run


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_maps_of_a_run_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM: what was gathered is printed."""
    path = tmp_path / "spin.bpf.c"
    path.write_text('#include <kprobes/bpf.h>\nu64 calls;\n'
                    'SEC("kprobe/fib") int p(void *c) { if (!calls++) bpf_printk("begun"); return 0; }\n')
    process = subprocess.Popen([sys.executable, "-m", "kprobes", "run", DEMO, str(path), "--call", "fib(60)"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
                               env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    rest, said = process.communicate(timeout=60)
    assert rest.startswith("calls: ") and int(rest.split()[1]) > 0
    assert process.returncode == (130 if number is signal.SIGINT else 143)
    assert "Traceback" not in said


def test_a_closed_pipe() -> None:
    script = f"{sys.executable} -m kprobes run {DEMO} {EXAMPLES / 'stream.bpf.c'} --run | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.stdout.startswith("events: {") and done.stderr == ""
