"""Helpers that take memory, fed with memory of every kind: stack, map values, records, constants, the context.

A helper cannot tell where memory lies, so what it does must be the same for all kinds that are accepted, on every engine.
The programs are made from the table of helpers: one for each argument that is memory, and each kind of memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from verifier.asm import assemble

from kprobes import KprobeError, Kprobes, Program, ProgramError, UnicornMachine, Unsupported
from kprobes.programs.code import Code
from kprobes.programs.engines import named
from kprobes.programs.helpers import HELPERS, Arg, Helper, Ret
from kprobes.programs.maps import Map, MapType, Spec, create
from kprobes.programs.nowhere import Nowhere
from kprobes.programs.verifier import verify

SIZE = 48
#: what the memory holds: a format with two fields, and a text; as a key no index of an array
PATTERN = b"%s|%5d|\0" + b"A text of the program's own\0".ljust(SIZE - 8, b"\0")
TEXT = b"%s %x\0\0\0"  # the constant at the start of .rodata, PATTERN behind it
IN = (Arg.KEY, Arg.VALUE, Arg.MEM, Arg.ARGUMENTS)
OUT = (Arg.VALUE_OUT, Arg.NUMBER_OUT, Arg.MEM_OUT)
KINDS = ("stack", "caller's stack", "value", "hash value", "record", "constants", "context")
#: map number of maps() below, by type
FITTING = {MapType.HASH: 0, MapType.QUEUE: 1, MapType.RINGBUF: 2, MapType.PERF_EVENT_ARRAY: 6, MapType.STACK_TRACE: 7}
#: kinds that are refused, for arguments that are read and that are written, and why
REFUSED = {("context", True): "is the context", ("context", False): "is the context", ("constants", True): "read-only"}


def maps() -> tuple[Map, ...]:
    """0 hash, 1 queue, 2 ring buffer, 3 .bss, 4 .rodata, 5 results, 6 perf events, 7 stack traces."""
    made = tuple(create(Spec(**s)) for s in (
        {"type": MapType.HASH, "name": "hash", "key_size": 8, "value_size": SIZE, "max_entries": 16},
        {"type": MapType.QUEUE, "name": "queue", "value_size": SIZE, "max_entries": 16},
        {"type": MapType.RINGBUF, "name": "ring", "max_entries": 4096},
        {"type": MapType.ARRAY, "name": ".bss", "key_size": 4, "value_size": SIZE, "max_entries": 1},
        {"type": MapType.ARRAY, "name": ".rodata", "key_size": 4, "value_size": 8 + SIZE, "max_entries": 1,
         "readonly": True},
        {"type": MapType.ARRAY, "name": "out", "key_size": 4, "value_size": 8 + SIZE, "max_entries": 1},
        {"type": MapType.PERF_EVENT_ARRAY, "name": "perf", "key_size": 4, "value_size": 4, "max_entries": 1},
        {"type": MapType.STACK_TRACE, "name": "stacks", "key_size": 4, "value_size": 64, "max_entries": 16},
    ))
    made[4].block.view[:8 + SIZE] = TEXT + PATTERN
    made[0]._head[3] = 12345  # type: ignore[attr-defined]  # the seed
    return made


def arguments() -> Iterator[tuple[Helper, int]]:
    """Each helper with the number of each argument that may be memory of the program's."""
    for helper in HELPERS.values():
        for n, kind in enumerate(helper.args):
            if kind in IN or kind in OUT or kind is Arg.ANY:
                yield helper, n


def words(base: str, order: str, raw: bytes = PATTERN) -> str:
    """Statements that store bytes, a word at a time."""
    out = []
    for at in range(0, len(raw), 8):
        out.append(f"lddw r1, {int.from_bytes(raw[at:at + 8], order)}")  # type: ignore[arg-type]
        out.append(f"stxdw [{base}{at:+}], r1")
    return "; ".join(out)


def program(helper: Helper, tested: int, kind: str, order: str = "little") -> str:
    """A program that calls a helper with r7, memory of a kind, as one of its arguments."""
    home = {
        "stack": "mov64 r7, r10; add64 r7, -64", "caller's stack": "mov64 r7, r2",
        "value": "lddw r7, map[3].value+0", "constants": "lddw r7, map[4].value+8", "context": "mov64 r7, r6",
        "hash value": f"mov64 r7, r10; add64 r7, -64; {words('r7', order)}; stdw [r10-72], 7; mov64 r2, r10; "
                      "add64 r2, -72; mov64 r3, r7; mov64 r4, 0; lddw r1, map[0]; call 2; mov64 r2, r10; add64 r2, -72; "
                      "lddw r1, map[0]; call 1; jeq r0, 0, none; mov64 r7, r0",
        "record": f"lddw r1, map[2]; mov64 r2, {SIZE}; mov64 r3, 0; call 131; jeq r0, 0, none; mov64 r7, r0",
    }[kind]
    fill = "" if kind in ("constants", "context") else words("r7", order)
    begin, end = "mov64 r6, r1", "exit"
    if kind == "caller's stack":
        begin = f"mov64 r2, r10; add64 r2, -64; {words('r2', order).replace('r1', 'r3')}; call local on; exit; on: mov64 r6, r1"
    if kind == "record":
        end = "mov64 r1, r7; mov64 r2, 0; call 132; mov64 r0, 0; exit"
    setup = [_argument(helper, n, kind_of, n == tested) for n, kind_of in enumerate(helper.args)]
    if Arg.DYNPTR in helper.args:
        setup.insert(0, f"lddw r1, map[5].value+0; mov64 r2, {SIZE}; mov64 r3, 0; mov64 r4, r10; add64 r4, -152; call 197")
    result = "jeq r0, 0, keep; mov64 r0, 1" if helper.returns is Ret.MAP_VALUE_OR_NULL else ""
    copies = "; ".join(f"ldxdw r1, [r7+{at}]; stxdw [r8+{8 + at}], r1" for at in range(0, SIZE, 8))
    return (f"{begin}; {home}; {fill}; mov64 r9, r10; add64 r9, -136; {words('r9', order)}; {'; '.join(setup)}; "
            f"call {helper.number}; {result}; keep: lddw r8, map[5].value+0; stxdw [r8+0], r0; {copies}; "
            f"none: mov64 r0, 0; {end}" if kind != "record" else
            f"{begin}; {home}; {fill}; mov64 r9, r10; add64 r9, -136; {words('r9', order)}; {'; '.join(setup)}; "
            f"call {helper.number}; {result}; keep: lddw r8, map[5].value+0; stxdw [r8+0], r0; {copies}; "
            f"{end}; none: mov64 r0, 0; exit")


def _argument(helper: Helper, n: int, kind: Arg, tested: bool) -> str:
    register = f"r{n + 1}"
    if kind is Arg.MAP:
        fitting = next(m for of, m in FITTING.items() if helper.maps is None or of in helper.maps)
        return f"lddw {register}, map[{fitting}]"
    if tested:
        return f"mov64 {register}, r7"
    if kind in (Arg.SIZE, Arg.SIZE_OR_ZERO):
        return f"mov64 {register}, {SIZE}"
    if kind is Arg.DYNPTR:
        return f"mov64 {register}, r10; add64 {register}, -152"
    if kind is Arg.CTX:
        return f"mov64 {register}, r6"
    if kind is Arg.CONST_STR:
        return f"lddw {register}, map[4].value+0"
    if kind is Arg.CONST_SIZE:
        return f"mov64 {register}, 8"
    if kind in IN or kind in OUT:
        return f"mov64 {register}, r9"
    return f"mov64 {register}, {0x1000 if helper.name.startswith('probe_read') else 0}"


class Somewhere(Nowhere):
    """A guest with a text at 0x1000, and a task."""

    def read(self, addr: int, size: int) -> bytes:
        if not 0x1000 <= addr < 0x2000 - size:
            raise KprobeError("nothing there")
        return b"0123456789\0".ljust(0x1000, b"\0")[addr - 0x1000:addr - 0x1000 + size]

    def clock(self) -> int:
        return 1

    def comm(self) -> bytes:
        return b"guest"

    def stack(self, skip: int, depth: int) -> list[int]:
        return [0x10, 0x20, 0x30][skip:]


def code(helper: Helper, tested: int, kind: str, order: str = "little") -> Code:
    insns = assemble(program(helper, tested, kind, order))
    functions = {0: "p", **{pc + 1 + i.imm: "on" for pc, i in enumerate(insns) if i.is_local_call}}
    return Code("p", insns, maps(), functions=functions, order=order)  # type: ignore[arg-type]


def outcome(of: Code, engine: str | None) -> Any:
    """(result of the helper, what the memory held afterwards), lines, and records of both buffers."""
    facts, printed = verify(of), list[str]()
    made = named("interpreter", of, None) if engine is None else named(engine, of, facts)
    assert made.run(bytes(range(64)), Somewhere(), printed.append) == 0
    ring: Any = of.maps[2]
    perf: Any = of.maps[6]
    return bytes(of.maps[5].block.view[:8 + SIZE]), printed, [r for r in ring if r != PATTERN][:1], list(perf)


def host_code_runs() -> bool:
    try:
        named("host", Code("p", assemble("mov64 r0, 0; exit")), None)
    except Unsupported:
        return False
    return True


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize(("helper", "tested"), list(arguments()), ids=lambda v: v.name if isinstance(v, Helper) else str(v))
def test_memory_of_every_kind_is_the_same(helper: Helper, tested: int, order: str) -> None:
    """Or refused, with the reason."""
    engines = [None, "interpreter", *(["host"] if order == sys.byteorder and host_code_runs() else [])]
    wanted = None
    for kind in KINDS:
        why = REFUSED.get((kind, helper.args[tested] in OUT)) if helper.args[tested] is not Arg.ANY else None
        if why is not None:
            with pytest.raises(ProgramError, match=why):
                verify(code(helper, tested, kind, order))
            continue
        for engine in engines:
            result, *rest = outcome(code(helper, tested, kind, order), engine)
            if kind == "context":  # an argument of a format: what lies there is not shown
                assert b"program" not in "".join(rest[0]).encode()
                continue
            if kind == "record":
                rest[1] = []
            wanted = wanted or (result, *rest)
            assert (result, *rest) == wanted, (kind, engine)
    assert wanted is not None


# ---- formats

FORMATS = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } r SEC(".maps");
char global[8] = "global";
char out[64];
static __noinline int deeper(const char *text) { bpf_printk("%s %d", text, 2); return 0; }
SEC("kprobe/f") int p(struct pt_regs *ctx)
{
    char comm[16] = "", partly[16], bare[8];
    bpf_get_current_comm(comm, sizeof(comm));
    bpf_printk("1 %s", comm);
    deeper(comm);
    bpf_printk("3 %p %x %d %lld %u", comm, comm, comm, comm, comm);
    bpf_printk("4 %s %s %s %s %d", comm, global, PT_REGS_PARM1(ctx), comm + 2, 4);
    BPF_SNPRINTF(out, sizeof(out), "5 %s %s %d", comm, global, 5);
    bpf_printk("%s", out);
    bpf_probe_read_kernel_str(partly, sizeof(partly), (void *)PT_REGS_PARM1(ctx));
    bpf_printk("6 %s|%8s|%-8s|", partly, partly + 1, partly + 2);
    char *record = bpf_ringbuf_reserve(&r, 8, 0);
    if (record) {
        __builtin_memcpy(record, "record", 7);
        bpf_printk("7 %s %p", record, record);
        bpf_ringbuf_discard(record, 0);
    }
    bpf_printk("8 %s|%p|%p", ctx, ctx, &r);
    bpf_printk("9 %s|%p|%d", 0, 0, 0);
    return 0;
}
SEC("kprobe/g") int either(struct pt_regs *ctx)
{
    char mine[8] = "mine";
    const char *text = PT_REGS_PARM2(ctx) ? mine : (const char *)PT_REGS_PARM1(ctx);
    bpf_printk("%s", text);
    return 0;
}
"""
HIDDEN = "(____ptrval____)"
LINES = ["1 guest", "guest 2", f"3 {' '.join([HIDDEN] * 5)}", "4 guest global 0123 est 4", "5 guest global 5",
         "6 0123|     123|23      |", f"7 record {HIDDEN}", f"8 |{HIDDEN}|{HIDDEN}", f"9 |{0:#018x}|0"]


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
@pytest.mark.parametrize("engine", [None, "interpreter"])
def test_texts_of_the_program_s_own_are_shown_and_addresses_are_not(engine: str | None, arch: str) -> None:
    pytest.importorskip("ziglang")
    end = {"x86_64": "90909090c3", "arm64": "1f2003d5c0035fd6"}[arch]
    text = bytes.fromhex(end)
    symbols = {"f": 0x10000, "g": 0x10000 + len(text)}
    machine = UnicornMachine.from_code(text * 2, arch=arch, symbols=symbols)
    program = Program.from_c(FORMATS)
    with Kprobes(machine) as k, k.attach(program, engine=engine) as a:
        for _ in range(3):  # the first hits are traps, the last one is where the probe is optimized
            machine.call("f", b"0123")
            assert list(a.printed) == LINES
            a.printed.clear()
        machine.call("g", b"guest's", 0)
        machine.call("g", b"guest's", 1)
        assert list(a.printed) == ["guest's", "mine"]
        if engine is None and host_code_runs():
            assert not a.why_python["p"]
            assert "on one path, and a number on another" in a.why_python["either"]


def test_the_end_of_a_text_is_that_of_its_memory() -> None:
    """A text without a NUL: what is behind it belongs to others, pointers above all."""
    text = ("mov64 r6, r10; stxdw [r10-8], r6; lddw r1, 0x6161616161616161; stxdw [r10-16], r1; stdw [r10-24], 0x73255b; "
            "mov64 r1, r10; add64 r1, -24; mov64 r2, 8; mov64 r3, r10; add64 r3, -16; call 6; ldxdw r3, [r10-8]; "
            "stdw [r3-8], 0; mov64 r0, 0; exit")
    one = Code("p", assemble(text), maps())
    facts = verify(one)
    for engine in ("interpreter", *(["host"] if host_code_runs() else [])):
        printed: list[str] = []
        named(engine, one, facts).run(b"", Somewhere(), printed.append)
        assert printed == ["[aaaaaaaa"]
