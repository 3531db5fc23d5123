"""Objects: sections, maps, variables, relocations, source lines, types; and what is wrong with damaged ones."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from elftools.elf.elffile import ELFFile

from kprobes import ProgramError
from kprobes import btf as b
from kprobes.programs import isa
from kprobes.programs.disassembly import disassemble
from kprobes.programs.header import REGISTERS_H, bpf_header, registers
from kprobes.programs.maps import MapType
from kprobes.programs.object import clang, values
from kprobes.programs.program import Program

pytest.importorskip("ziglang")
pytestmark = pytest.mark.quick

SOURCE = r"""
#include <kprobes/bpf.h>
struct ev { u32 a; s16 b; char name[6]; u64 v[2]; u32 x:3, y:5; s32 z:4; union { u8 one; u32 four; }; };
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 100); __type(key, u32); __type(value, struct ev); } events SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 5000); } rb SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 2); __uint(key_size, 4); __uint(value_size, 8); } per SEC(".maps");
const volatile u32 limit = 3;
u64 total;
int data = 7;
static int hidden = -4;
static __noinline u64 triple(u64 x) { return x * 3 + total; }
__noinline u64 twice(u64 x) { return triple(x) * 2; }
SEC("kprobe/crc32+4") int on_crc(struct pt_regs *ctx)
{
    u32 k = PT_REGS_PARM3(ctx);
    struct ev e = {.a = k, .b = -2, .name = "abc", .v = {1, 2}, .x = 5, .y = 9, .z = -3, .four = 0x01020304};
    if (k < limit) return 0;
    bpf_map_update_elem(&events, &k, &e, BPF_ANY);
    bpf_ringbuf_output(&rb, &e, 12, 0);
    total += data;
    return twice(k) + hidden++;
}
SEC("kretprobe/crc32") int BPF_KRETPROBE(on_ret, int rc) { total += rc; return rc; }
SEC("kprobe/f") int BPF_KPROBE(on_f, int a, char *b) { return a + (u64)b + KPROBES_REG(ctx, x86_64_rdi); }
char LICENSE[] SEC("license") = "Dual MIT/GPL";
"""


def words(**values):
    """A context with some of its words set: r0 .. r103, or names of struct pt_regs."""
    names = {"pc": 104, "sp": 105, "rc": 106, "ret": 107, **{f"parm{n}": 111 + n for n in range(1, 17)}}
    out = [0] * 128
    for name, value in values.items():
        out[names[name] if name in names else int(name[1:])] = value
    return b"".join(v.to_bytes(8, "little") for v in out)


@pytest.fixture
def prog():
    return Program.from_c(SOURCE)


def test_programs_sections_and_functions(prog):
    assert {name: code.section for name, code in prog.codes.items()} == {
        "on_crc": "kprobe/crc32+4", "on_ret": "kretprobe/crc32", "on_f": "kprobe/f"}
    code = prog["on_crc"].code
    assert sorted(code.functions.values()) == ["on_crc", "triple", "twice"]
    assert code.license == "Dual MIT/GPL"
    assert all(i.src in (isa.VALUE64, isa.MAP, isa.MAP_VALUE) for _, i in isa.steps(code.instructions) if i.wide)
    assert [p.name for p in prog] == ["on_crc", "on_ret", "on_f"]
    with pytest.raises(ProgramError, match=r"several programs.*take one of them: .'on_crc'"):
        prog.run()
    with pytest.raises(ProgramError, match="there is no program 'on_cr'; there is on_crc"):
        prog["on_cr"]


def test_maps_and_their_types(prog):
    events, rb, per = (prog.maps[n] for n in ("events", "rb", "per"))
    assert (events.type, events.key_size, events.value_size, events.max_entries) == (MapType.HASH, 4, 40, 100)
    assert rb.size == 8192  # rounded up to a power of two
    assert (per.type, per.value_size, per[0]) == (MapType.PERCPU_ARRAY, 8, [0])
    assert prog.maps[".rodata"].readonly and not prog.maps[".bss"].readonly


def test_a_run_and_what_it_leaves(prog):
    run = prog["on_crc"].run
    assert run(words(parm3=2)) == 0
    assert run(words(parm3=10)) == (10 * 3 + 7) * 2 - 4
    assert run(words(parm3=10)) == (10 * 3 + 14) * 2 - 3
    assert prog.variables["total"] == 14
    (key, value), = prog.maps["events"].items()
    assert key == 10
    assert (value.a, value.b, value.name, list(value.v), value.x, value.y,
            value.z) == (10, -2, b"abc", [1, 2], 5, 9, -3)
    assert (value.one, value.four) == (4, 0x01020304)
    assert repr(value).startswith("ev(a=10, b=-2, name=b'abc', v=[1, 2], x=5, y=9, z=-3")
    assert list(prog.maps["rb"]) == [bytes(value)[:12]] * 2
    assert list(prog.maps["rb"]) == []
    prog["on_ret"].run(words(rc=100))
    assert prog.variables["total"] == 114
    assert prog["on_f"].run(words(parm1=1, parm2=20, r5=300)) == 321  # rdi is x86_64's sixth


def test_map_entries_are_written_by_members(prog):
    events = prog.maps["events"]
    events[3] = {"a": 5, "name": b"xyz"}
    assert (events[3].a, events[3].name, events[3]) == (5, b"xyz", events[3])
    events[4] = events[3]
    assert events[4] == events[3] and hash(events[4]) == hash(events[3])
    with pytest.raises(ValueError, match="3 bytes where 40"):
        events[3] = b"abc"
    with pytest.raises(AttributeError, match="no member nonsense"):
        _ = events[3].nonsense


def test_variables(prog):
    assert (prog.variables["limit"], prog.variables["data"], prog.variables["hidden"]) == (3, 7, -4)
    prog.variables["limit"] = 11
    prog.variables["data"] = -1
    assert prog["on_crc"].run(words(parm3=10)) == 0
    with pytest.raises(ProgramError, match="limit is constant"):
        prog.variables["limit"] = 3
    prog.variables["data"] = 3
    assert prog.variables["data"] == 3
    with pytest.raises(KeyError, match="did you mean limit"):
        prog.variables["limt"]


def test_source_lines(prog):
    code = prog["on_crc"].code
    at = next(pc for pc, i in isa.steps(code.instructions) if i.is_helper_call and i.imm == 130)
    error = code.error("is wrong", at, "mend it")
    assert error.section == "kprobe/crc32+4" and error.instruction == at and error.text == "call 130"
    assert str(error).splitlines() == [
        f"on_crc: is wrong (section kprobe/crc32+4, instruction {at} (call 130)); mend it",
        "  program.c:19: bpf_ringbuf_output(&rb, &e, 12, 0);"]


def test_strings_in_printk():
    prog = Program.from_c('#include <kprobes/bpf.h>\nSEC("kprobe/f") int p(struct pt_regs *ctx) { return '
                          'bpf_printk("%d %s %llx|", -5, "own", 255); }')
    assert prog.run() == len("-5 own ff|")
    assert prog.printed == ["-5 own ff|"]


def test_an_object_made_elsewhere_and_its_path(tmp_path, prog):
    path = tmp_path / "x.o"
    path.write_bytes(clang.compiled(SOURCE, "program.c"))
    again = Program.from_elf(path)
    assert list(again.codes) == list(prog.codes)
    assert again["on_crc"].code.instructions == prog["on_crc"].code.instructions
    with pytest.raises(ProgramError, match="No such file"):
        Program.from_elf(tmp_path / "no.o")
    with pytest.raises(ProgramError, match="Is a directory"):
        Program.from_elf(tmp_path)


def test_a_big_endian_object_runs_in_its_own_byte_order(tmp_path):
    (tmp_path / "x.c").write_text(SOURCE)
    subprocess.run([sys.executable, "-m", "ziglang", "clang", "-target", "bpfeb", "-O2", "-g", "-c", "x.c", "-o",
                    "x.o", "-I", str(clang.INCLUDE)],
                   cwd=tmp_path, check=True)
    prog = Program.from_elf(tmp_path / "x.o")
    code = prog["on_crc"].code
    assert code.order == "big"
    ctx = b"".join(v.to_bytes(8, "big") for v in [0] * 114 + [10] + [0] * 13)
    assert prog["on_crc"].run(ctx) == (10 * 3 + 7) * 2 - 4
    assert prog.variables["total"] == 7
    value = prog.maps["events"][10]
    assert (value.a, value.b, list(value.v), value.x, value.y, value.z) == (10, -2, [1, 2], 5, 9, -3)


BAD = [
    ("int f(void) { return 0; }", "no program"),
    ('#include <kprobes/bpf.h>\nSEC("kprobe/f") static int p(void *c) { return 0; }', "program p is static"),
    ('#include <kprobes/bpf.h>\nextern int x;\nSEC("kprobe/f") int p(void *c) { return x; }', "x is not defined"),
    ('#include <kprobes/bpf.h>\nint g(int);\nSEC("kprobe/f") int p(void *c) { return g(1); }',
     "calls g, which is not defined"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 15); __uint(max_entries, 1); __type(key, u32); __type(value, '
     'u32); } m SEC(".maps");'
     'SEC("kprobe/f") int p(void *c) { return 0; }', "map m: there are no maps of type 15 here.*use one of ARRAY"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 33); __uint(map_flags, 1 << 10); __uint(max_entries, 100); '
     'enum { far = 0x1ull << 44 } map_extra; } arena SEC(".maps"); SEC("kprobe/f") int p(void *c) { return 0; }',
     "map arena: arenas are not supported: .*number its entries"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 2); __uint(max_entries, 1 << 30); __type(key, u32); '
     '__type(value, u64); } m SEC(".maps");'
     'SEC("kprobe/f") int p(void *c) { return 0; }',
     "map m: takes .* of memory.*section .maps.*make max_entries smaller"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 2); __uint(max_entries, 1); __type(key, u64); __type(value, '
     'u64); } m SEC(".maps");'
     'SEC("kprobe/f") int p(void *c) { return 0; }', "array has 4-byte keys"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 2); __uint(colour, 1); } m SEC(".maps"); SEC("kprobe/f") int '
     'p(void *c) { return 0; }',
     "map m: colour is not known"),
    ('#include <kprobes/bpf.h>\nstruct { __uint(type, 2); __uint(max_entries, 1); __uint(key_size, 8); __type(key, '
     'u32); } m SEC(".maps");'
     'SEC("kprobe/f") int p(void *c) { return 0; }', "key_size is 8 and 4"),
    ("#include <kprobes/bpf.h>\nint x = ;", "does not compile:\n.*program.c:2:9: error"),
]


@pytest.mark.parametrize("text, reason", BAD, ids=[b[1][:24] for b in BAD])
def test_what_is_refused(text, reason):
    with pytest.raises(ProgramError, match=f"(?s){reason}"):
        Program.from_c(text)


def test_legacy_map_definitions():
    prog = Program.from_c('#include <kprobes/bpf.h>\nstruct d { u32 type, key_size, value_size, max_entries, flags; '
                          '};\n'
                          'struct d m SEC("maps") = {2, 4, 8, 3, 0};\n'
                          'SEC("kprobe/f") int p(void *c) { u32 k = 1; u64 *v = bpf_map_lookup_elem(&m, &k); return v '
                          '? ++*v : 0; }')
    assert (prog.run(), prog.run(), prog.maps["m"][1]) == (1, 2, 2)


def without_types(raw: bytes) -> bytes:
    """An object as clang before version 11 wrote it: global symbols have neither types nor sizes."""
    elf = ELFFile(io.BytesIO(raw))
    table = elf.get_section_by_name(".symtab")
    out = bytearray(raw)
    for number, symbol in enumerate(table.iter_symbols()):
        if symbol["st_info"]["bind"] == "STB_GLOBAL":
            at = table["sh_offset"] + number * table["sh_entsize"]
            out[at + 4] &= 0xF0  # st_info: STT_NOTYPE
            out[at + 16:at + 24] = bytes(8)  # st_size
    return bytes(out)


def test_objects_of_old_compilers():
    """Where symbols have no types, sections tell what they name, and where the next one begins."""
    raw = clang.compiled('#include <kprobes/bpf.h>\nstruct d { u32 type, key_size, value_size, max_entries, flags; '
                         'u32 more, than, five; };\n'
                         'struct d first SEC("maps") = {2, 4, 8, 3, 0}, second SEC("maps") = {2, 4, 8, 5, 0};\n'
                         'SEC("kprobe/f") int p(void *c) { u32 k = 1; u64 *v = bpf_map_lookup_elem(&second, &k); '
                         'return v ? ++*v : 0; }\n'
                         'SEC("kprobe/g") int q(void *c) { u32 k = 1; u64 *v = bpf_map_lookup_elem(&first, &k); '
                         'return v ? *v + 7 : 0; }\n'
                         'SEC("kprobe/g") int r(void *c) { return 9; }\n', "old.c")
    new, old = Program.from_elf(raw), Program.from_elf(without_types(raw))
    assert {name: code.instructions for name, code in old.codes.items()} == {n: c.instructions for n, c in new.codes.items()}
    assert [old[name].run() for name in "pqrp"] == [1, 7, 9, 2]
    assert (old.maps["first"].max_entries, old.maps["second"].max_entries) == (3, 5)


def test_rings_whose_maps_name_the_type_of_a_record():
    """bpf2go's users keep the type of a record in BTF in this way; the ring itself has no values."""
    prog = Program.from_c('#include <kprobes/bpf.h>\nstruct record { u64 a, b, c; };\n'
                          'struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); '
                          '__type(value, struct record); } ring SEC(".maps");\n'
                          'struct { __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); __type(value, struct record); '
                          '} perf SEC(".maps");\n'
                          'SEC("kprobe/f") int p(void *c) { struct record r = {1, 2, 3}; '
                          'bpf_perf_event_output(c, &perf, BPF_F_CURRENT_CPU, &r, sizeof r); '
                          'return bpf_ringbuf_output(&ring, &r, sizeof r, 0); }')
    assert prog.run() == 0
    record = struct.pack("=3Q", 1, 2, 3)
    assert [bytes(each) for each in prog.maps["ring"]] == [record]
    assert [bytes(each) for each in prog.maps["perf"]] == [record]


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(clang, "find_spec", lambda name: None)
    with pytest.raises(ProgramError, match=r"ziglang is not installed; pip install 'kprobes\[jit\]'"):
        Program.from_c("int nothing;")


def test_not_an_object():
    for raw, reason in ((b"", "no ELF"), (b"hello", "no ELF"), (Path("/proc/self/exe").read_bytes(), "no BPF object")):
        with pytest.raises(ProgramError, match=reason):
            Program.from_elf(raw)


def test_damaged_objects_are_program_errors():
    whole = clang.compiled(SOURCE, "program.c")
    for cut in range(0, len(whole), 97):
        with pytest.raises(ProgramError):
            Program.from_elf(whole[:cut])


@pytest.mark.parametrize("seed", range(5))
def test_objects_with_other_bytes_are_program_errors_or_good(seed: int) -> None:
    whole = clang.compiled(SOURCE, "program.c")
    rng = random.Random(seed)
    for _ in range(30):
        raw = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        try:
            prog = Program.from_elf(bytes(raw))
            for part in prog:
                for _, i in isa.steps(part.code.instructions):
                    disassemble(i)
            repr((prog.maps, prog.variables))
            for name in prog.types:
                assert prog.types[name]
        except ProgramError as error:
            assert str(error)


def test_the_header_is_whole_and_up_to_date():
    assert REGISTERS_H.read_text() == registers()
    text = bpf_header()
    assert "#include" not in text.replace("#include <kprobes/bpf.h>", "")
    assert "KPROBES_REG_s390x_r15 = 15" in text
    Program.from_c(text + 'SEC("kprobe/f") int p(struct pt_regs *ctx) { return PT_REGS_RC(ctx); }')


def test_a_structure_whose_description_is_damaged():
    whole = bytearray(clang.compiled(SOURCE, "program.c"))
    prog = Program.from_elf(bytes(whole))
    assert {"ev", "pt_regs"} <= set(prog.types)
    with pytest.raises(KeyError, match="nonsense"):
        prog.types["nonsense"]
    # where a member of pt_regs is, in bits
    at = whole.index(struct.pack("<II", 104 * 64, 0)[:4], whole.index(b"\x9f\xeb\x01"))
    whole[at:at + 4] = b"\xff\xff\xff\0"
    with pytest.raises(ProgramError, match="does not fit"):
        Program.from_elf(bytes(whole)).types["pt_regs"]


@pytest.mark.parametrize("order", ["little", "big"])
def test_bit_fields_of_unions(order, monkeypatch):
    """They count from the end that the byte order has first; on a big-endian computer, too."""
    mark = "<" if order == "little" else ">"
    monkeypatch.setattr(values, "sys", SimpleNamespace(byteorder=order))
    texts = b"\0u\0low\0all\0unsigned\0"
    types = struct.pack(f"{mark}4I", texts.index(b"unsigned"), b.INT << 24, 4, 32)
    types += struct.pack(f"{mark}3I", 1, 1 << 31 | b.UNION << 24 | 2, 4)
    types += struct.pack(f"{mark}6I", texts.index(b"low"), 1, 4 << 24, texts.index(b"all"), 1, 0)
    header = struct.pack(f"{mark}HBB5I", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(texts))
    made = values.Values(b.Btf(header + types + texts, order)).structure("u")
    assert made.from_buffer_copy(bytes.fromhex("51000002")).low == (1 if order == "little" else 5)
