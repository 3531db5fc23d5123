"""Loops with callbacks, iterators, tail calls, and the maps that hold maps, programs, prefixes and sets."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import BadArgument, Program, ProgramError

pytest.importorskip("ziglang")
C = "#include <kprobes/bpf.h>\n"
ENGINES = ["interpreter", None]


def ran(source: str, name: str = "p", engine: str | None = None, **given: Any) -> Program:
    """The programs, after a test run of one of them."""
    program = Program.from_c(C + source)
    for variable, value in given.items():
        program.variables[variable] = value
    program[name].run(engine=engine)
    return program


LOOP = """
u32 rounds = 17;
struct c { u64 sum; u32 n; u32 table[8]; };
static int add(u32 index, struct c *c)
{
    c->sum += index;
    c->n++;
    if (index < 8) c->table[index] = index * 2;
    return c->n == 50;
}
u64 made, sum, third, flagged;
SEC("kprobe") int p(void *ctx)
{
    struct c c = {};
    made = bpf_loop(rounds, add, &c, 0);
    sum = c.sum;
    third = c.table[3];
    flagged = bpf_loop(rounds, add, &c, 1);
    return 0;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("rounds", "made"), [(0, 0), (17, 17), (1000, 50), (1 << 24, -7 % (1 << 64))])
def test_loops(engine: str | None, rounds: int, made: int) -> None:
    """As many rounds as are asked for, up to where the callback returns 1; Linux's errors of too many, and of flags."""
    p = ran(LOOP, engine=engine, rounds=rounds)
    done = made if made < 1 << 63 else 0
    assert dict(p.variables) == {"rounds": rounds, "made": made, "sum": done * (done - 1) // 2,
                                 "third": 6 if done > 3 else 0, "flagged": -22 % (1 << 64)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["HASH", "LRU_HASH", "PERCPU_HASH", "ARRAY", "PERCPU_ARRAY"])
def test_entries_of_maps(engine: str | None, kind: str) -> None:
    p = ran("""
        struct { __uint(type, BPF_MAP_TYPE_KIND); __uint(max_entries, 10); __type(key, u32); __type(value, u64); }
            m SEC(".maps");
        struct c { u64 sum, most; };
        static int each(void *map, u32 *key, u64 *value, struct c *c)
        {
            c->sum += *key * *value;
            *value += 1;
            return c->most && c->sum >= c->most;
        }
        u64 visited, sum, again, stopped;
        SEC("kprobe") int p(void *ctx)
        {
            struct c c = {};
            for (u32 i = 0; i < 5; i++) {
                u64 v = i * 10;
                bpf_map_update_elem(&m, &i, &v, BPF_ANY);
            }
            visited = bpf_for_each_map_elem(&m, each, &c, 0);
            sum = c.sum;
            c.sum = 0;
            bpf_for_each_map_elem(&m, each, &c, 0);
            again = c.sum;
            c.sum = 1000, c.most = 1;
            stopped = bpf_for_each_map_elem(&m, each, &c, 0);
            return 0;
        }
    """.replace("KIND", kind), engine=engine)
    entries = 10 if "ARRAY" in kind else 5
    more = sum(range(entries))  # each value is one more the second time
    assert dict(p.variables) == {"visited": entries, "sum": 300, "again": 300 + more, "stopped": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_iterators(engine: str | None) -> None:
    """bpf_for and bpf_repeat, nested, left by break, and empty."""
    p = ran("""
        u64 sum, pairs, repeated; int last = 40;
        SEC("kprobe") int p(void *ctx)
        {
            int i, j;
            bpf_for(i, 3, last) { if (i == 30) break; sum += i; }
            bpf_for(i, 0, 4) bpf_for(j, i, 4) pairs++;
            bpf_for(i, 5, 2) sum = 0;
            bpf_repeat(7) repeated++;
            return 0;
        }
    """, engine=engine)
    assert (p.variables["sum"], p.variables["pairs"], p.variables["repeated"]) == (sum(range(3, 30)), 10, 7)


def test_callbacks_that_are_not_known() -> None:
    with pytest.raises(ProgramError, match=r"which function bpf_loop\(\) calls is not known"):
        ran("""
            static int one(u32 i, void *c) { return 0; }
            static int other(u32 i, void *c) { return 1; }
            SEC("kprobe") int p(void *ctx)
            { return bpf_loop(3, bpf_get_prandom_u32() & 1 ? one : other, 0, 0); }
        """)


def test_a_callback_s_mistakes_are_found() -> None:
    """What the verifier refuses in a callback it names there."""
    with pytest.raises(ProgramError, match="writes 8 bytes of stack"):
        ran("""
            static int each(u32 i, u64 *c) { c[i] = i; return 0; }
            SEC("kprobe") int p(void *ctx) { u64 c[4] = {}; return bpf_loop(9, each, c, 0) + c[1]; }
        """, engine="host")


def test_tail_calls() -> None:
    """A program goes on with another, which finds the context; where there is none it goes on itself."""
    p = ran("""
        struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 4); __uint(key_size, 4);
                 __array(values, int(void *)); } jumps SEC(".maps") = { .values = { [2] = (void *)&second, } };
        u64 came, stayed, turns;
        SEC("kprobe") int second(u64 *ctx) { came = ctx[0] + 1; bpf_tail_call(ctx, &jumps, 3); return 7; }
        SEC("kprobe") int forever(void *ctx) { turns++; bpf_tail_call(ctx, &jumps, 3); return 9; }
        SEC("kprobe") int p(void *ctx)
        {
            bpf_tail_call(ctx, &jumps, 0);
            bpf_tail_call(ctx, &jumps, 99);
            stayed = 1;
            bpf_tail_call(ctx, &jumps, 2);
            return 5;
        }
    """.replace("SEC(\"kprobe\") int second(u64 *ctx) {", "SEC(\"kprobe\") int second(u64 *ctx)\n{").replace(
        "struct {", "int second(u64 *ctx);\nstruct {", 1))
    assert p["p"].run((41).to_bytes(8, "little")) == 7
    assert (p.variables["came"], p.variables["stayed"]) == (42, 1)
    p.maps["jumps"][3] = p["forever"]
    assert p["p"].run() == 9
    assert p.variables["turns"] == 32, "33 times in all, one of them to get there"
    assert "tail call" in p["p"].why_interpreter


def test_maps_of_maps() -> None:
    for engine in ENGINES:
        p = Program.from_c(C + """
            struct inner { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 5); __type(key, u32); __type(value, u64); }
                a SEC(".maps"), b SEC(".maps");
            struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 3); __type(key, u32);
                     __array(values, struct inner); } outer SEC(".maps") = { .values = { &a, 0, &b } };
            u64 found, missing;
            SEC("kprobe") int p(void *ctx)
            {
                for (u32 i = 0; i < 3; i++) {
                    u64 value = 100 + i;
                    void *m = bpf_map_lookup_elem(&outer, &i);
                    if (!m) { missing++; continue; }
                    bpf_map_update_elem(m, &i, &value, BPF_ANY);
                    u64 *v = bpf_map_lookup_elem(m, &i);
                    if (v) { *v += 1; found += *v; }
                }
                return 0;
            }
        """)
        p.run(engine=engine)
        assert (dict(p.maps["a"]), dict(p.maps["b"])) == ({0: 101}, {2: 103}), engine
        assert (p.variables["found"], p.variables["missing"]) == (204, 1)
        assert p.maps["outer"][2] is p.maps["b"]
        p.maps["outer"][(1).to_bytes(4, "little")] = p.maps["a"]
        assert p.maps["outer"][1] is p.maps["a"]
        with pytest.raises(BadArgument, match="index 3"):
            p.maps["outer"][(3).to_bytes(4, "little")] = p.maps["a"]


def test_a_map_that_may_be_missing_is_checked() -> None:
    with pytest.raises(ProgramError, match="may be NULL"):
        ran("""
            struct inner { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 5); __type(key, u32); __type(value, u64); };
            struct { __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS); __uint(max_entries, 3); __type(key, u32);
                     __array(values, struct inner); } outer SEC(".maps");
            SEC("kprobe") int p(void *ctx)
            { u32 i = 0; return bpf_map_lookup_elem(bpf_map_lookup_elem(&outer, &i), &i) != 0; }
        """, engine="host")


@pytest.mark.parametrize("engine", ENGINES)
def test_longest_prefixes(engine: str | None) -> None:
    p = Program.from_c(C + """
        struct key { u32 bits; u8 data[4]; };
        struct { __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 3); __uint(map_flags, BPF_F_NO_PREALLOC);
                 __type(key, struct key); __type(value, u64); } routes SEC(".maps");
        u64 near, far, none; s64 full, gone;
        SEC("kprobe") int p(void *ctx)
        {
            struct key ten = {8, {10}}, near_ = {32, {10, 1, 2, 3}}, far_ = {32, {10, 9}}, none_ = {32, {11}};
            struct key more = {16, {11}}, last = {1, {128}};
            u64 v = 5, *found;
            bpf_map_update_elem(&routes, &ten, &v, BPF_ANY);
            if ((found = bpf_map_lookup_elem(&routes, &near_))) near = *found;
            if ((found = bpf_map_lookup_elem(&routes, &far_))) far = *found;
            if ((found = bpf_map_lookup_elem(&routes, &none_))) none = *found;
            bpf_map_update_elem(&routes, &more, &v, BPF_ANY);
            full = bpf_map_update_elem(&routes, &last, &v, BPF_ANY);
            gone = bpf_map_delete_elem(&routes, &ten) * 100 + bpf_map_delete_elem(&routes, &ten);
            return 0;
        }
    """)
    key = p.types["key"]
    p.maps["routes"][key(16, (10, 1, 0, 0))] = 7
    p.run(engine=engine)
    assert dict(p.variables) == {"near": 7, "far": 5, "none": 0, "full": -28, "gone": -2}
    assert p.maps["routes"].longest(key(32, (10, 1, 9, 9))) == 7


@pytest.mark.parametrize("engine", ENGINES)
def test_sets_task_storage_and_numbers_in_texts(engine: str | None) -> None:
    p = ran("""
        struct { __uint(type, BPF_MAP_TYPE_BLOOM_FILTER); __uint(max_entries, 2); __type(value, u32); } set SEC(".maps");
        struct { __uint(type, BPF_MAP_TYPE_TASK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int);
                 __type(value, u64); } mine SEC(".maps");
        s64 in, out, full, number, length, wrong; u64 stored;
        SEC("kprobe") int p(void *ctx)
        {
            u32 one = 1, two = 2, three = 3;
            bpf_map_push_elem(&set, &one, BPF_ANY);
            bpf_map_push_elem(&set, &two, BPF_ANY);
            full = bpf_map_push_elem(&set, &three, BPF_ANY);
            in = bpf_map_peek_elem(&set, &two);
            out = bpf_map_peek_elem(&set, &three);
            for (int i = 0; i < 3; i++) {
                u64 *v = bpf_task_storage_get(&mine, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
                if (v) stored = ++*v;
            }
            char text[8] = "-0x1fz";
            long n = 0;
            length = bpf_strtol(text, sizeof(text), 0, &n);
            number = n;
            unsigned long u = 0;
            wrong = bpf_strtoul(text, sizeof(text), 0, &u);
            return 0;
        }
    """, engine=engine)
    assert {name: p.variables[name] for name in p.variables} == {
        "in": 0, "out": -2, "full": -7, "number": -31, "length": 5, "wrong": -22, "stored": 3}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_kernels_know_more_of(engine: str | None) -> None:
    """Users are nobody, tasks are numbers, clocks are one clock."""
    p = ran("""
        struct { __uint(type, BPF_MAP_TYPE_TASK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC); __type(key, int);
                 __type(value, u64); } mine SEC(".maps");
        u64 user, task, ticks, coarse, tai; s64 none, copied;
        SEC("kprobe") int p(void *ctx)
        {
            u64 here = 0;
            user = bpf_get_current_uid_gid();
            task = bpf_get_current_task();
            ticks = bpf_jiffies64();
            coarse = bpf_ktime_get_coarse_ns();
            tai = bpf_ktime_get_tai_ns();
            none = bpf_task_storage_delete(&mine, bpf_get_current_task_btf());
            copied = bpf_copy_from_user(&here, sizeof(here), (void *)0x1000);
            return 0;
        }
    """, engine=engine)
    v = p.variables
    assert (v["user"], v["task"], v["none"], v["copied"]) == (0, 0, -2, -14)
    assert 0 < v["coarse"] <= v["tai"] and abs(v["ticks"] - v["coarse"] // 4_000_000) <= 250
