"""Dynptrs, and ring buffers that Python fills for programs."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import BadArgument, Program, ProgramError

pytest.importorskip("ziglang")
C = """#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32); __type(value, u8[32]); } bytes
    SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_USER_RINGBUF); __uint(max_entries, 4096); } user SEC(".maps");
static __always_inline void *value(void) { u32 zero = 0; return bpf_map_lookup_elem(&bytes, &zero); }
"""
ENGINES = ["interpreter", None]


def made(body: str, before: str = "") -> Program:
    return Program.from_c(f"{C}{before}\nSEC(\"kprobe\") int p(void *ctx) {{ {body} }}")


def ran(body: str, before: str, engine: str | None, pushed: tuple[bytes, ...] = ()) -> Program:
    program = made(body, before)
    for sample in pushed:
        program.maps["user"].push(sample)
    program["p"].run(engine=engine)
    return program


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_maps_value(engine: str | None) -> None:
    """Reads, writes and slices within bounds work; Linux's errors of those beyond, of flags, and of a NULL dynptr."""
    p = ran("""
        u8 *v = value(); struct bpf_dynptr d, none; u32 in = 0x11223344, out = 7;
        if (!v) return 0;
        seen[0] = bpf_dynptr_from_mem(v, 32, 0, &d);
        seen[1] = bpf_dynptr_write(&d, 28, &in, 4, 0);
        seen[2] = bpf_dynptr_write(&d, 29, &in, 4, 0);
        seen[3] = bpf_dynptr_write(&d, 0, &in, 4, 1);
        seen[4] = bpf_dynptr_read(&out, 4, &d, 28, 0);
        seen[5] = out;
        seen[6] = bpf_dynptr_read(&out, 4, &d, 1ULL << 32, 0);
        u32 *slice = bpf_dynptr_data(&d, 28, 4);
        seen[7] = slice ? *slice : 1;
        if (slice) *slice += 1;
        seen[8] = bpf_dynptr_data(&d, 29, 4) == 0;
        seen[9] = bpf_dynptr_from_mem(v, 32, 1, &none);
        seen[10] = bpf_dynptr_read(&out, 4, &none, 0, 0);
        seen[11] = bpf_dynptr_data(&none, 0, 0) == 0;
        seen[12] = bpf_dynptr_size(&none);
        seen[13] = bpf_dynptr_is_null(&none) << 1 | bpf_dynptr_is_null(&d);
        seen[14] = bpf_dynptr_adjust(&d, 8, 31);
        seen[15] = bpf_dynptr_size(&d);
        seen[16] = bpf_dynptr_adjust(&d, 2, 24);
        seen[17] = bpf_dynptr_adjust(&d, 2, 1);
        seen[18] = bpf_dynptr_write(&d, 0, &in, 1, 0);
        seen[19] = bpf_dynptr_is_rdonly(&d);
        return 0;""", "s64 seen[20];", engine)
    assert list(p.variables["seen"]) == [
        0, 0, -7, -22, 0, 0x11223344, -7, 0x11223344, 1, -22, -22, 1, (1 << 32) - 22, 2, 0, 23, -34, -22, 0, 0]
    assert bytes(p.maps["bytes"][0]) == bytes(8) + b"\x44" + bytes(19) + bytes.fromhex("45332211")


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_record(engine: str | None) -> None:
    """A record's size may be known at run time only. One that does not fit is given back as any other."""
    p = ran("""
        struct bpf_dynptr d; u64 in = 0x0807060504030201;
        seen[0] = bpf_ringbuf_reserve_dynptr(&ring, size, 0, &d);
        seen[1] = bpf_dynptr_write(&d, 1, &in, 8, 0);
        u8 *first = bpf_dynptr_data(&d, 0, 1);
        if (first) *first = 9;
        bpf_ringbuf_submit_dynptr(&d, 0);
        seen[2] = bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d);
        bpf_ringbuf_discard_dynptr(&d, 0);
        seen[3] = bpf_ringbuf_reserve_dynptr(&ring, 5000, 0, &d);
        seen[4] = bpf_dynptr_write(&d, 0, &in, 8, 0);
        bpf_ringbuf_submit_dynptr(&d, 0);
        seen[5] = bpf_ringbuf_reserve_dynptr(&ring, 1 << 24, 0, &d);
        bpf_ringbuf_submit_dynptr(&d, 0);
        seen[6] = bpf_ringbuf_reserve_dynptr(&ring, 8, 1, &d);
        bpf_ringbuf_submit_dynptr(&d, 0);
        return 0;""", "s64 seen[7]; u32 size = 9;", engine)
    assert list(p.variables["seen"]) == [0, 0, 0, -22, -22, -7, -22]
    assert list(p.maps["ring"]) == [b"\x09\1\2\3\4\5\6\7\x08"]


@pytest.mark.parametrize("engine", ENGINES)
def test_clones_and_slices(engine: str | None) -> None:
    """A clone is adjusted for itself; a slice is the data, not a copy."""
    p = ran("""
        u8 *v = value(); struct bpf_dynptr d, part, none; u32 in = 0x11223344; u8 buffer[8];
        if (!v) return 0;
        bpf_dynptr_from_mem(v, 32, 0, &d);
        bpf_dynptr_write(&d, 8, &in, 4, 0);
        seen[0] = bpf_dynptr_clone(&d, &part);
        seen[1] = bpf_dynptr_adjust(&part, 8, 16);
        seen[2] = bpf_dynptr_size(&part) << 8 | bpf_dynptr_size(&d);
        const u32 *read = bpf_dynptr_slice(&part, 0, buffer, 4);
        seen[3] = read ? *read : 1;
        u32 *write = bpf_dynptr_slice_rdwr(&d, 12, 0, 4);
        if (write) *write = 0x55667788;
        bpf_dynptr_adjust(&d, 1, 32);  /* ends no slice of the clone */
        seen[4] = read ? *read : 1;
        u64 *both = bpf_dynptr_slice(&part, 0, buffer, 8);
        seen[5] = both ? *both : 1;
        seen[6] = bpf_dynptr_slice(&part, 1, buffer, 8) == 0;
        bpf_dynptr_from_mem(v, 32, 1, &none);
        seen[7] = bpf_dynptr_clone(&none, &d) << 8;
        seen[8] = bpf_dynptr_is_null(&d) << 4 | (bpf_dynptr_slice(&d, 0, buffer, 1) == 0);
        return 0;""", "s64 seen[9];", engine)
    assert list(p.variables["seen"]) == [
        0, 0, 8 << 8 | 32, 0x11223344, 0x11223344, 0x5566778811223344, 1, -22 << 8, 17]


@pytest.mark.parametrize(("body", "why"), [
    ("""bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_dynptr_clone(&d, &e); bpf_ringbuf_submit_dynptr(&d, 0);
        return bpf_dynptr_size(&e);""", "none was made"),
    ("""bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_dynptr_clone(&d, &e); u8 *s = bpf_dynptr_slice_rdwr(&e, 0, 0, 1);
        bpf_ringbuf_submit_dynptr(&d, 0); if (s) *s = 1; return 0;""", "nothing has been written to it"),
    ("""bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_dynptr_clone(&d, &e); return 0;""", "submit"),
    ("""bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_dynptr_clone(&d, &e); bpf_ringbuf_submit_dynptr(&e, 0);
        return 0;""", "another one is given"),
    ("""u8 *v = value(); if (!v) return 0; bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = (u8 *)bpf_dynptr_slice(&d, 0, 0, 1);
        if (s) *s = 1; return 0;""", "read-only"),
    ("""u8 *v = value(); if (!v) return 0; bpf_dynptr_from_mem(v, 32, 0, &d);
        return bpf_dynptr_slice(&d, 0, v + 30, 8) == 0;""", "writes 8 bytes at offset 30 of a map value"),
    ("bpf_dynptr_clone(&d, &e); return 0;", "none was made"),
])
def test_what_clones_and_slices_are_refused_for(body: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        made(f"struct bpf_dynptr d, e; {body}")["p"].verify()


DRAIN = """
u64 sum, calls; s64 drained, flagged, nested; u32 stop = 99;
static long again(struct bpf_dynptr *d, void *c) { return 0; }
static long each(struct bpf_dynptr *d, u64 *context)
{
    u32 number = 0;
    bpf_dynptr_read(&number, sizeof(number), d, 0, 0);
    u8 *last = bpf_dynptr_data(d, 4, 1);
    sum += number + (last ? *last : 0) + *context;
    nested = bpf_user_ringbuf_drain(&user, again, 0, 0);
    return ++calls == stop;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_user_rings(engine: str | None) -> None:
    """The callback gets each sample, until it returns 1; what it has not got stays for the next call."""
    body = """u64 context = 1000; flagged = bpf_user_ringbuf_drain(&user, each, &context, 4);
              drained = bpf_user_ringbuf_drain(&user, each, &context, BPF_RB_FORCE_WAKEUP); return 0;"""
    p = made(body, DRAIN)
    user = p.maps["user"]
    for sample in (b"\1\0\0\0", b"\2\0\0\0\5", b"\3"):
        user.push(sample)
    p.variables["stop"] = 2
    p["p"].run(engine=engine)
    assert list(user) == [b"\3"]
    assert {name: p.variables[name] for name in ("sum", "drained", "flagged", "nested")} == {
        "sum": 2008, "drained": 2, "flagged": -22, "nested": -16}
    p["p"].run(engine=engine)
    assert (p.variables["drained"], len(user), p.variables["sum"]) == (1, 0, 3008)
    p["p"].run(engine=engine)
    assert p.variables["drained"] == 0


def test_a_failed_run_gives_its_sample_back() -> None:
    """A program that no verifier has seen fails in its callback: the next run gets the next sample."""
    p = made("return bpf_user_ringbuf_drain(&user, fail, &kind, 0);", """u64 kind = 1;
        static long fail(struct bpf_dynptr *d, u64 *kind) { return *kind ? *(volatile u64 *)8 : 1; }""")
    user = p.maps["user"]
    user.push(b"one")
    user.push(b"two")
    with pytest.raises(ProgramError, match="none of its memory"):
        p["p"].run(engine="interpreter")
    p.variables["kind"] = 0
    assert (p["p"].run(engine="interpreter"), list(user)) == (1, [])


def test_a_user_ring_that_is_full() -> None:
    user = made("return bpf_user_ringbuf_drain(&user, again, 0, 0);", DRAIN).maps["user"]
    for _ in range(4):
        user.push(bytes(1016))
    with pytest.raises(BadArgument, match="no room for 0 bytes"):
        user.push(b"")


@pytest.mark.parametrize("body", [
    # a dynptr that is overwritten ends, and its slices with it
    "bpf_dynptr_from_mem(v, 32, 0, &d); bpf_dynptr_from_mem(v, 8, 0, &d); return bpf_dynptr_size(&d);",
    "bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = bpf_dynptr_data(&d, 0, 8); if (s) s[7] = 1; return 0;",
    # a size that is bounded
    "if (n > 32) n = 32; bpf_dynptr_from_mem(v, n, 0, &d); return 0;",
    # a function of its own takes one of its caller's
    "bpf_ringbuf_reserve_dynptr(&ring, n, 0, &d); use(&d); bpf_ringbuf_submit_dynptr(&d, 0); return 0;",
    "bpf_ringbuf_reserve_dynptr(&ring, n, 0, &d); give(&d); return 0;",
    "for (int i = 0; i < 3; i++) { bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_ringbuf_discard_dynptr(&d, 0); } "
    "return 0;",
])
def test_is_accepted(body: str) -> None:
    assert verified(body).verify()


def verified(body: str) -> Any:
    return made(f"u8 *v = value(); struct bpf_dynptr d; u64 n = size, x = 0; if (!v) return 0; {body}", """
        u64 size = 9;
        static __noinline int use(struct bpf_dynptr *d) { u64 x = 1; return bpf_dynptr_write(d, 0, &x, 8, 0); }
        static __noinline int give(struct bpf_dynptr *d) { bpf_ringbuf_discard_dynptr(d, 0); return 0; }
        static long write(struct bpf_dynptr *d, void *c) { *(u64 *)d = 0; return 0; }
        static long keep(struct bpf_dynptr *d, void *c) { bpf_ringbuf_submit_dynptr(d, 0); return 0; }
        static long move(struct bpf_dynptr *d, void *c) { return bpf_dynptr_size((void *)d + 8); }
        static long hand(struct bpf_dynptr *d, u8 **c) { *c = bpf_dynptr_data(d, 0, 1); return 0; }""")["p"]


@pytest.mark.parametrize(("body", "why"), [
    ("return bpf_dynptr_size(&d);", "is a dynptr, and none was made"),
    ("if (n) bpf_dynptr_from_mem(v, 32, 0, &d); return bpf_dynptr_size(&d);", "is a dynptr, and none was made"),
    ("return bpf_dynptr_read(&x, 8, (void *)v, 0, 0);", "is a dynptr, but a map value"),
    ("bpf_dynptr_from_mem(&x, 8, 0, &d); return 0;", "is memory of a map's value, but the stack"),
    ("bpf_dynptr_from_mem(v, 33, 0, &d); return 0;", "which has 32 bytes"),
    ("bpf_dynptr_from_mem(v, n, 0, &d); return 0;", "may be negative or huge"),
    ("bpf_dynptr_from_mem(v, 32, 0, (void *)v); return 0;", "is a dynptr, but a map value"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); return bpf_dynptr_size((void *)&d + 8);", "none was made|r10"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); return *(volatile u64 *)&d;", "reads a dynptr"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); return *((volatile u8 *)&d + 9);", "reads a dynptr"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); *(volatile u8 *)&d = 1; return bpf_dynptr_size(&d);", "none was made"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); bpf_probe_read(&d, 8, 0); return 0;", "may write over the dynptr"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); bpf_ringbuf_output(&ring, &d, 16, 0); return 0;", "holds a pointer"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); bpf_ringbuf_submit_dynptr(&d, 0); return 0;", "another one is given"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = bpf_dynptr_data(&d, 0, 8); return *s;", "may be NULL"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = bpf_dynptr_data(&d, 0, 8); return s ? s[8] : 0;", "which has 8 bytes"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = bpf_dynptr_data(&d, 0, n); return s ? s[0] : 0;", "is a constant size"),
    ("bpf_dynptr_from_mem(v, 32, 0, &d); u8 *s = bpf_dynptr_data(&d, 0, 8); bpf_dynptr_from_mem(v, 8, 0, &d); "
     "return s ? *s : 0;", "nothing has been written|is read|pointer"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); return 0;", "is still held at the end"),
    ("if (!bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d)) bpf_ringbuf_submit_dynptr(&d, 0); return 0;", "is still held"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_ringbuf_submit_dynptr(&d, 0); bpf_ringbuf_submit_dynptr(&d, 0); "
     "return 0;", "none was made"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_ringbuf_submit_dynptr(&d, 0); bpf_dynptr_write(&d, 0, &x, 8, 0); "
     "return 0;", "none was made"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); u64 *s = bpf_dynptr_data(&d, 0, 8); bpf_ringbuf_submit_dynptr(&d, 0); "
     "if (s) *s = 1; return 0;", "nothing has been written|is read|pointer"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); "
     "bpf_ringbuf_submit_dynptr(&d, 0); return 0;", "overwrites a dynptr whose record is held"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); *(volatile u8 *)&d = 1; return 0;", "overwrites a dynptr"),
    ("bpf_ringbuf_reserve_dynptr(&ring, 8, 0, &d); u64 *s = bpf_dynptr_data(&d, 0, 8); if (s) bpf_ringbuf_submit(s, 0); "
     "return 0;", "is a record of bpf_ringbuf_reserve"),
    ("return bpf_user_ringbuf_drain(&user, write, 0, 0);", "read-only"),
    ("return bpf_user_ringbuf_drain(&user, keep, 0, 0);", "another one is given"),
    ("return bpf_user_ringbuf_drain(&user, move, 0, 0);", "is the begin of a dynptr"),
    ("u8 *s = 0; bpf_user_ringbuf_drain(&user, hand, &s, 0); return s ? *s : 0;", "pointer|nothing has been written"),
    ("return bpf_user_ringbuf_drain(&ring, write, 0, 0);", "does not go through a ringbuf"),
])
def test_is_refused(body: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        verified(body).verify()
