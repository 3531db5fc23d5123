"""Random programs in C, C++ and Rust with debug information, for comparing variables with gdb's. No library is linked.

Every program has a function `driver` that calls all others, and a `_start` that calls `driver` on a stack of its own, so
that a run has the same addresses natively and in an emulator, and leaves by a system call behind `finished`.
"""

from __future__ import annotations

import importlib.util
import random
import shutil
import subprocess
import sys
from pathlib import Path

from attrs import frozen

#: what a C or C++ program consists of besides its types and functions
C_FRAME = """
#define KEEP __attribute__((noinline))
volatile long sink; volatile int turns = 2; volatile unsigned char bytes[256];
%(extern)s {
__attribute__((used, optimize("no-tree-loop-distribute-patterns"))) void *memcpy(void *to, const void *from, __SIZE_TYPE__ n)
{ char *t = (char *)to; const char *f = (const char *)from; while (n--) *t++ = *f++; return to; }
__attribute__((used, optimize("no-tree-loop-distribute-patterns"))) void *memset(void *to, int c, __SIZE_TYPE__ n)
{ char *t = (char *)to; while (n--) *t++ = (char)c; return to; }
}
static inline void use(const volatile void *p) { __asm__ volatile ("" :: "r"(p) : "memory"); }
"""
C_END = """
%(extern)s {
__attribute__((used, noinline)) void driver(void) { %(calls)s }
__attribute__((used, aligned(16))) char room[65536];
__attribute__((naked, used)) void _start(void)
{ __asm__("xor %%ebp, %%ebp\\n lea room+65536(%%rip), %%rsp\\n call driver\\n.globl finished\\n.type finished, @function\\n"
  "finished: mov $60, %%eax\\n xor %%edi, %%edi\\n syscall"); }
}
"""
#: the end of a program that has no code for one architecture: a debugger's stacks end at main
C_END_ANYWHERE = """
%(extern)s {
__attribute__((used, noinline)) void driver(void) { %(calls)s }
int main(void) { driver(); sink++; return 0; }
}
"""
INTEGERS = ("signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long",
            "long long", "char")
WIDTH = {"signed char": 8, "unsigned char": 8, "char": 8, "short": 16, "unsigned short": 16, "int": 32, "unsigned": 32,
         "long": 64, "unsigned long": 64, "long long": 64}


class CProgram:
    """A random C or C++ program.

    Args:
        rng: draws everything.
        cpp: C++; else C.
        bits: of a `long`; 0: the program is one of x86-64 that runs by itself, others begin at `main`.
    """

    def __init__(self, rng: random.Random, cpp: bool, bits: int = 0) -> None:
        self.rng, self.cpp, self.bits = rng, cpp, bits
        self.width = WIDTH | ({"long": 32, "unsigned long": 32} if bits == 32 else {})
        self.parts: list[str] = []
        self.structs: list[tuple[str, list[tuple[str, str, int]]]] = []  # (name, [(member, type, bits)])
        self.calls: list[str] = []

    def number(self, type: str) -> str:
        """A constant of a type."""
        rng = self.rng
        if type in ("float", "double", "long double"):
            return f"{rng.randrange(-4000, 4000) / 16}{'f' if type == 'float' else ''}"
        if type == "__int128":
            return f"(((__int128){rng.randrange(1 << 62)} << 61) ^ {rng.randrange(1 << 60)})"
        if type in ("_Bool", "bool"):
            return str(rng.randrange(2))
        if type == "enum color":
            return rng.choice(["RED", "GREEN", "BLUE"])
        if type == "enum level":
            return rng.choice(["LOW", "MIDDLE", "HIGH"])
        bits = min(self.width.get(type, 32), 60)
        value = rng.choice([rng.randrange(1 << bits), rng.randrange(100), (1 << bits) - 1 - rng.randrange(9)])
        return f"({type}){value}{'LL' if bits > 31 else ''}"

    def scalar(self) -> str:
        """A type that is no structure."""
        rng = self.rng
        return rng.choice([rng.choice(INTEGERS), "int", "long", rng.choice(
            ["float", "double", "long double", "long long" if self.bits == 32 else "__int128", "bool" if self.cpp else "_Bool", "enum color", "enum level",
             "double", "float"])])

    def declare(self) -> None:
        rng = self.rng
        self.parts.append("enum color { RED, GREEN = 5, BLUE = 200 }; enum level { LOW = -3, MIDDLE, HIGH = 2 };")
        for n in range(rng.randrange(2, 5)):
            members: list[tuple[str, str, int]] = []
            lines = []
            for m in range(rng.choice([1, 2, 2, 3, 4, 6])):
                type, bits, array = self.scalar(), 0, 0
                if type in self.width and rng.random() < 0.4:
                    bits = rng.randrange(1, self.width[type] + 1)
                elif type in ("enum level", "enum color") and rng.random() < 0.3:
                    bits = 9
                elif rng.random() < 0.2:
                    array = rng.randrange(1, 4)
                elif self.structs and rng.random() < 0.3:
                    type = f"struct {rng.choice(self.structs)[0]}"
                members.append((f"m{m}", type, -array if array else bits))
                lines.append(f"{type} m{m}{f' : {bits}' if bits else ''}{f'[{array}]' if array else ''};")
            name = f"s{n}"
            packed = "__attribute__((packed)) " if rng.random() < 0.3 else ""
            self.parts.append(f"struct {packed}{name} {{ {' '.join(lines)} }};")
            self.structs.append((name, members))
            fill = "".join(self._fill(f"p->{member}", type, extra) for member, type, extra in members)
            self.parts.append(f"static void fill_{name}(struct {name} *p) {{ {fill} }}")

    def _fill(self, place: str, type: str, extra: int) -> str:
        if type.startswith("struct"):
            return f"fill_{type[7:]}(&{place}); " if extra == 0 else ""
        if extra < 0:
            return "".join(f"{place}[{i}] = {self.number(type)}; " for i in range(-extra))
        return f"{place} = {self.number(type)}; "

    def function(self, n: int) -> None:
        rng = self.rng
        types = []
        for _ in range(rng.choice([1, 2, 3, 3, 4, 6, 9])):
            types.append(self.scalar() if rng.random() < 0.75 else f"struct {rng.choice(self.structs)[0]}"
                         + (" *" if rng.random() < 0.5 else ""))
        if rng.random() < 0.4:  # only words
            types = [rng.choice(INTEGERS) for _ in types]
        result = rng.choice(["int", "long", self.scalar(), f"struct {rng.choice(self.structs)[0]}", "void"])
        names = [f"a{i}" for i in range(len(types))]
        body = []
        numbers = [name for name, type in zip(names, types, strict=True) if not type.startswith("struct")]
        for name in numbers:
            if rng.random() < 0.75:
                body.append(f"sink += (long){name};")
        for name, type in zip(names, types, strict=True):
            if type.startswith("struct"):
                member = rng.choice(dict(self.structs)[type.split()[1]])
                if not member[1].startswith("struct") and member[2] >= 0:
                    body.append(f"sink += (long){name}{'->' if '*' in type else '.'}{member[0]};")
        operand = rng.choice([f"(long){name}" for name in numbers] or ["sink"])
        body.append(f"int i; long total = {operand};")
        body.append(f"for (i = 0; i < turns; i++) {{ int step = i * 3 + (int){operand}; total += step; "
                    "sink = total; { long total = step * 2L; char i = (char)step; sink += total + i; use(&total); } }")
        if rng.random() < 0.5:
            struct = rng.choice(self.structs)[0]
            body.append(f"struct {struct} local; fill_{struct}(&local); use(&local); sink++;")
        if rng.random() < 0.4:
            body.append("unsigned short row[2][3] = {{1, 2, 3}, {4, 5, 6}}; use(row); sink++;")
        if not self.cpp and rng.random() < 0.3:
            body.append("int length = turns + 1; int vla[length]; for (i = 0; i < length; i++) vla[i] = i * 7; "
                        "use(vla); sink++;")
        if not self.cpp and rng.random() < 0.2:
            body.append("double _Complex z = 1.5 + 2.5i; use(&z); sink++;")
        body.append("double f = (double)total / 4; int neg = -(int)total; sink += (long)f + neg;")
        if result.startswith("struct"):
            body.append(f"struct {result[7:]} out; fill_{result[7:]}(&out); return out;")
        elif result != "void":
            body.append(f"return ({result})total;")
        linkage = rng.choice(["static ", "static ", ""])
        keep = rng.choice(["KEEP ", "KEEP ", "KEEP ", "static inline "]) if linkage else "KEEP "
        head = keep.replace("static inline", "inline")
        shown = ", ".join(f"{type} {name}" for type, name in zip(types, names, strict=True))
        self.parts.append(f"{linkage}{head}{result} f{n}({shown}) {{ {' '.join(body)} }}")
        constants = {i: self.number(type) for i, type in enumerate(types) if not type.startswith("struct")
                     and rng.random() < 0.4}
        for _ in range(2):
            given, before = [], ""
            for i, type in enumerate(types):
                if type.startswith("struct"):
                    struct = type.split()[1]
                    before += f"static struct {struct} v{i}; fill_{struct}(&v{i}); "
                    given.append(f"&v{i}" if "*" in type else f"v{i}")
                else:
                    given.append(constants.get(i) or f"({type})({self.number(type)} + ({type})(turns - 2))"
                                 if not type.startswith("enum") else self.number(type))
            self.calls.append(f"{{ {before}f{n}({', '.join(given)}); sink++; }}")

    def classes(self) -> None:
        """What only C++ has."""
        rng = self.rng
        a, b = rng.randrange(100), rng.randrange(100)
        self.parts.append(f"""
namespace geo {{ struct N {{ int x; long y; }}; struct Base {{ int base = {a}; virtual ~Base() {{}} virtual int area(int k) const
  {{ sink += k + base; return k; }} }};
struct Left : virtual Base {{ short left = {b}; static int counted; }}; struct Right : virtual Base {{ long right = 7; }};
int Left::counted = 3;
struct Both : Left, Right {{ double both = 2.5; KEEP int area(int k) const override {{ sink += left + both + k; return k * 2; }} }};
struct Text {{ char *at; unsigned long size; char room[16]; Text(const char *from) {{ at = room; size = 0;
  while ((room[size] = from[size])) size++; }} Text(const Text &o) {{ at = room; size = o.size; for (unsigned i = 0; i < 16; i++)
  room[i] = o.room[i]; }} ~Text() {{ sink++; }} }};
KEEP Text make(int number, const N &n, int &&last) {{ Text t("abc"); sink += number + n.x + last; use(&t); return t; }}
template <typename T, int K> KEEP T scaled(T value, N n) {{ T twice = value * K; sink += (long)twice + n.x; return twice; }} }}
struct N {{ char c; int d[2]; }};
void operator delete(void *, __SIZE_TYPE__) {{}} void operator delete(void *) {{}}
KEEP int by_value(geo::Text t, int k, N n) {{ sink += t.size + k + n.d[1]; use(&t); return k; }}
""")
        self.calls.append(f"""{{ geo::N n = {{{a}, {b}}}; geo::Both both; sink += both.area({a}); geo::make({b}, n, 9);
  geo::scaled<int, 3>({a} + turns, n); geo::scaled<double, 2>({b} + 0.5, n); N m = {{'x', {{1, 2}}}};
  by_value(geo::Text("value"), {b} + turns, m); auto f = [n, &m](int q) __attribute__((noinline)) {{ sink += n.x + q + m.d[0]; return q; }};
  f({a} + turns); sink++; }}""")

    def source(self) -> str:
        """The program's text."""
        around = {"extern": 'extern "C"' if self.cpp else ""}
        frame = C_FRAME % around
        if not self.cpp:
            frame = frame.replace(" {\n__attribute__((used, opt", "\n__attribute__((used, opt").replace("return to; }\n}\nstatic",
                                                                                                       "return to; }\nstatic")
        self.declare()
        for n in range(self.rng.randrange(3, 7)):
            self.function(n)
        if self.cpp:
            self.classes()
        end = (C_END_ANYWHERE if self.bits else C_END) % (around | {"calls": "\n".join(self.calls)})
        if self.bits and not self.cpp:
            end = end.replace(" {\n__att", "__att", 1).rstrip().removesuffix("}")
        elif not self.cpp:
            end = end.replace(" {\n__attribute__((used, noi", "\n__attribute__((used, noi").rstrip().removesuffix("}")
        return frame + "\n".join(self.parts) + end


RUST = """#![no_std]
#![no_main]
#![allow(dead_code, unused_variables, unused_assignments)]
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
static SINK: AtomicU64 = AtomicU64::new(2);
fn sink(n: u64) { SINK.fetch_add(n, Relaxed); }
#[derive(Clone, Copy)] pub struct Point { x: i32, y: i64, tag: u8 }
#[derive(Clone, Copy)] pub struct Pair(u16, i8);
pub struct Big { rows: [u32; 6], name: &'static str, pair: Pair }
#[derive(Clone, Copy)] #[repr(i8)] pub enum Kind { Low = -2, Mid = 1, High = 9 }
#[inline(never)] fn big(a: i32, b: u64, p: &Point) -> Big
{ let rows = [a as u32; 6]; let total = b + a as u64; sink(total); sink(p.x as u64);
  Big { rows, name: "a name", pair: Pair(total as u16, -3) } }
#[inline(never)] fn generic<T: Copy + Into<i64>>(first: T, second: &T, third: T) -> i64
{ let sum: i64 = first.into() + (*second).into() + third.into(); sink(sum as u64); sum }
#[inline(never)] fn text(t: &str, n: u32, b: &[u16]) -> usize
{ let mut found = 0usize; for (i, c) in t.bytes().enumerate() { if c == b'e' { found += i + n as usize; } } sink(found as u64 + b.len() as u64); found }
#[inline(never)] fn values(k: Kind, f: f64, w: u128, flag: bool, c: char, pair: Pair) -> u128
{ let v = w + k as u128 + (f as u128) + flag as u128 + c as u128; sink(v as u64 + pair.0 as u64); v }
#[inline(never)] fn words(a: u8, b: i16, c: u32, d: i64, e: usize, f: *const u8, g: i32, h: i8) -> i64
{ let s = a as i64 + b as i64 + c as i64 + d + e as i64 + g as i64 + h as i64; sink(s as u64 + f as u64); s }
#[inline(never)] fn moved(p: Point, b: Big) -> i32 { sink(p.y as u64 + b.rows[2] as u64); p.x }
#[no_mangle] pub extern "C" fn driver() { let t = SINK.load(Relaxed); let n = t as i32;
  for i in 0..2 { let p = Point { x: n + i, y: -%(a)d, tag: 7 }; let b = big(n + %(b)d, t + 5, &p);
    sink(generic(n, &(n + %(a)d), %(b)d) as u64); sink(generic(n as i16, &3i16, %(a)d) as u64);
    sink(text(b.name, n as u32 + %(b)d, &[1, 2, 3]) as u64);
    sink(values(black_box(Kind::Low), t as f64 + 0.25, (t as u128) << %(c)d, n > 1, 'x', b.pair) as u64);
    sink(words(t as u8, -%(a)d, t as u32, -7, t as usize, &SINK as *const _ as *const u8, -n, %(d)d) as u64);
    sink(moved(p, b) as u64); } }
core::arch::global_asm!(".globl _start", ".globl finished", ".type finished, @function", "_start:", "xor ebp, ebp", "lea rsp, [rip + room + 65536]", "call driver", "finished:", "mov eax, 60", "xor edi, edi", "syscall", ".comm room, 65536, 16");
#[no_mangle] pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8
{ let mut i = 0; while i < n { core::ptr::write_volatile(to.add(i), *from.add(i)); i += 1; } to }
#[no_mangle] pub unsafe extern "C" fn memset(to: *mut u8, c: i32, n: usize) -> *mut u8
{ let mut i = 0; while i < n { core::ptr::write_volatile(to.add(i), c as u8); i += 1; } to }
#[no_mangle] pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32
{ let mut i = 0; while i < n { let d = *a.add(i) as i32 - *b.add(i) as i32; if d != 0 { return d; } i += 1; } 0 }
#[no_mangle] pub extern "C" fn rust_eh_personality() {}
"""
#: functions whose parameters Rust passes in each way that it has: registers, pairs of them, memory, the stack
RUST_ENTRIES = RUST.partition("#[derive")[0] + """#[derive(Clone, Copy)] pub struct Pair(u16, i8);
#[derive(Clone, Copy)] pub struct One(f64);
#[derive(Clone, Copy)] pub struct Mix { a: f32, b: u64 }
#[derive(Clone, Copy)] pub struct Big { rows: [u32; 6], pair: Pair }
#[derive(Clone, Copy)] pub struct Three(u8, u16, u32);
#[derive(Clone, Copy)] #[repr(C)] pub struct Cpair { a: u8, b: u32 }
#[derive(Clone, Copy)] pub struct Nest { a: One, b: Pair1 }
#[derive(Clone, Copy)] pub struct Pair1 { x: i16 }
#[derive(Clone, Copy)] pub enum Many { A(Big), B(u64, [u8; 30]), C }
pub trait Shape { fn area(&self, k: i32) -> i32; }
impl Shape for Pair { fn area(&self, k: i32) -> i32 { sink(1); self.0 as i32 + k } }
#[inline(never)] fn closures(n: i32, m: u8) -> i32 { let f = move |q: i32, r: i64| -> i32 { black_box(q) + n + m as i32 + r as i32 };
   let g = |q: i32| black_box(q) + 1; black_box(f(5, 6)) + black_box(g(8)) }
#[inline(never)] fn texts(n: u32, s: Many, t: &str, v: Big, w: &[u8], x: Mix) -> Many { sink(n as u64 + t.len() as u64 + w.len() as u64); s }
#[inline(never)] fn floats(a: f32, n: i32, b: f64, o: One, k: bool, c: Cpair, d: Nest) -> f64 { black_box(a) as f64 + n as f64 + b + o.0 + k as i32 as f64 }
#[inline(never)] fn nine(a: f32, b: f64, c: f64, d: f32, e: f64, f: f32, g: f64, h: f64, i: f32, n: i32, j: f64) -> f32 { sink(n as u64); a + i }
#[inline(never)] fn pairs(p: Pair, m: Mix, z: (), n: i16, o: Option<u32>) -> (u64, u64) { black_box(p); (m.b + n as u64, o.unwrap_or(3) as u64) }
#[inline(never)] fn wide(a: u8, w: u128, b: i32, x: i128) -> u128 { black_box(a); w ^ x as u128 ^ b as u128 }
#[inline(never)] fn dynamic(a: i32, b: Big, c: &dyn Shape, f: i32, g: &Big, h: i8, i: u16, j: Big) -> Big { sink(c.area(f) as u64 + a as u64 + h as u64 + i as u64 + g.rows[0] as u64); b }
#[inline(never)] fn many(a: &str, b: &str, c: i32, d: &str, e: &str, f: i8) -> usize { a.len() + b.len() + c as usize + d.len() + e.len() + f as usize }
#[inline(never)] fn three(a: i32) -> [u64; 3] { sink(9); [a as u64; 3] }
#[inline(never)] fn res(a: i32, b: u8) -> Result<u32, [u8; 8]> { sink(8); if a > 9 { Err([b; 8]) } else { Ok(4) } }
#[inline(never)] fn apply<F: Fn(i32, i64, u8) -> i32>(f: F) -> i32 { f(1, 2, 3) }
#[inline(never)] fn once<F: FnOnce(i32, i64) -> i32>(f: F, g: fn(i32, u8, u16) -> i32) -> i32 { f(1, 2) + g(7, 8, 9) }
#[inline(never)] fn plain(a: i32, b: u8, c: u16) -> i32 { sink(c as u64); a + b as i32 }
#[no_mangle] pub extern "C" fn driver() { let n = SINK.load(Relaxed) as i32; let b = Big { rows: [8; 6], pair: Pair(1, 2) };
 sink(closures(n, 7) as u64); black_box(texts(9, Many::A(b), "text", b, &[4, 5], Mix { a: -0.5, b: 1 << 40 }));
 black_box(texts(9, Many::C, "te", b, &[4, 5], Mix { a: 0.5, b: 1 << 40 }));
 black_box(floats(1.5, n, 2.25, One(9.5), true, Cpair { a: 200, b: 3 << 20 }, Nest { a: One(0.125), b: Pair1 { x: -7 } })); black_box(pairs(Pair(7, -3), Mix { a: 0.5, b: 99 }, (), -2, Some(5)));
 black_box(nine(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, n, 10.0));
 black_box(wide(3, 1 << 100, -4, -7 << 70)); black_box(dynamic(n, b, &Pair(4, 5), 77, &b, -8, 65000, b));
 black_box(many("a", "bc", 5, "def", "ghij", -3)); black_box(three(n)); black_box(res(n, 5));
 let cap = n as i64; black_box(apply(|a, b, c| { sink(cap as u64); a + b as i32 + c as i32 })); black_box(apply(plain3)); black_box(once(move |a, b| { a + b as i32 + cap as i32 }, plain)); }
#[inline(never)] fn plain3(a: i32, b: i64, c: u8) -> i32 { sink(c as u64); a + b as i32 }
""" + "core::arch::global_asm!" + RUST.partition("core::arch::global_asm!")[2]
#: enumerations with payload, tuples and what a program may mark as C's, as parameters and results
RUST_AGGREGATES = RUST.partition("#[derive")[0] + """#[derive(Clone, Copy)] #[repr(C)] pub struct Marked(f64);
#[derive(Clone, Copy)] #[repr(C)] pub struct Number(u32);
#[derive(Clone, Copy)] pub struct Holder(Number, u32);
#[derive(Clone, Copy)] pub enum Sign { A(i32), B(u32) }
#[derive(Clone, Copy)] pub enum Mixed { A(u32), B(u8), C }
#[derive(Clone, Copy)] pub enum Same { A(u8), B(u8), C }
#[derive(Clone, Copy)] pub enum Real { A(f64), B(f64) }
#[no_mangle] #[inline(never)] fn marked(a: Marked, b: f64) -> Marked { sink(1); black_box(a) }
#[no_mangle] #[inline(never)] fn holder(a: Holder, b: u32) -> Holder { sink(2); black_box(a) }
#[no_mangle] #[inline(never)] fn sign(a: Sign, b: u32) -> Sign { sink(3); black_box(a) }
#[no_mangle] #[inline(never)] fn mixed(a: Mixed, b: u32) -> Mixed { sink(b as u64 + 4); black_box(a) }
#[no_mangle] #[inline(never)] fn same(a: Same, b: u32) -> Same { sink(b as u64 + 5); black_box(a) }
#[no_mangle] #[inline(never)] fn real(a: Real, b: u32) -> Real { sink(b as u64 + 6); black_box(a) }
#[no_mangle] #[inline(never)] fn bytes(a: [u8; 5], b: (u8, u16, u32), c: u32) -> [u8; 5] { sink(c as u64 + 7); black_box(b); black_box(a) }
#[no_mangle] #[inline(never)] fn floats(a: [f32; 2], b: u32) -> [f32; 2] { sink(8); black_box(a) }
#[derive(Clone, Copy)] pub struct Three(u32, u32, u32);
#[derive(Clone, Copy)] pub struct Reals(f32, u64, f32);
#[derive(Clone, Copy)] pub enum Uneven { A(u32, u32), B(u64), C }
#[no_mangle] #[inline(never)] fn three(a: Three, b: u32) -> Three { sink(b as u64 + 12); black_box(a) }
#[no_mangle] #[inline(never)] fn reals(a: Reals, b: f32) -> Reals { sink(13); black_box(b); black_box(a) }
#[no_mangle] #[inline(never)] fn uneven(a: Uneven, b: u32) -> Uneven { sink(b as u64 + 14); black_box(a) }
#[no_mangle] #[inline(never)] fn words(c: u32, a: [u64; 2], b: [u8; 9], d: u32) -> [u64; 2] { sink(d as u64 + c as u64); black_box(b); black_box(a) }
#[no_mangle] #[inline(never)] fn vector(a: core::arch::x86_64::__m128i, b: u32) -> core::arch::x86_64::__m128i { sink(b as u64 + 15); black_box(a) }
#[no_mangle] #[inline(never)] fn alone(a: [f32; 1], b: u32) -> [f32; 1] { sink(b as u64 + 16); black_box(a) }
#[no_mangle] #[inline(never)] fn options(a: Option<u32>, b: Option<&u32>, c: Option<bool>, d: Option<&str>, e: Option<f32>, f: Option<u64>) -> Option<u64>
{ sink(9); black_box(a); black_box(b); black_box(c); black_box(d); black_box(e); f }
#[no_mangle] #[inline(never)] fn results(a: Result<u32, u32>, b: Result<(), u8>, c: Result<u32, [u8; 3]>, d: (i32, u8)) -> Result<u32, u32>
{ sink(10); black_box(d); black_box(c); black_box(b); black_box(a) }
#[no_mangle] #[inline(never)] fn large(a: u32) -> Option<[u64; 4]> { sink(11); if a > 7 { None } else { Some([a as u64; 4]) } }
#[no_mangle] pub extern "C" fn driver() { let n = SINK.load(Relaxed) as u32; let v = 77u32;
 marked(Marked(1.5), 2.5); holder(Holder(Number(7), n), 5); sign(Sign::A(-5), n); sign(Sign::B(6), n);
 mixed(Mixed::A(9), n); mixed(Mixed::B(8), n); mixed(Mixed::C, n); same(Same::A(3), n); same(Same::C, n);
 real(Real::A(0.5), n); real(Real::B(1.5), n); bytes([1, 2, 3, 4, 5], (1, 2, 3), n); floats([1.5, 2.5], n);
 black_box(options(Some(5), Some(&v), Some(true), Some("text"), Some(1.5), Some(1 << 40)));
 black_box(options(None, None, None, None, None, None)); black_box(results(Ok(4), Err(6), Ok(7), (-1, 2)));
 black_box(results(Err(n), Ok(()), Err([1, 2, 3]), (3, 4))); black_box(large(7)); black_box(large(8));
 black_box(three(Three(n, 5, 6), n)); black_box(reals(Reals(1.5, 1 << 40, 2.5), 3.5)); black_box(uneven(Uneven::A(n, 8), n));
 black_box(uneven(Uneven::B(1 << 50), n)); black_box(uneven(Uneven::C, n)); black_box(words(n, [1 << 60, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9], n));
 black_box(vector(unsafe { core::arch::x86_64::_mm_set1_epi32(n as i32) }, n)); black_box(alone([1.5], n)); }
""" + "core::arch::global_asm!" + RUST.partition("core::arch::global_asm!")[2]


@frozen
class Target:
    """How programs of an architecture are compiled.

    Attributes:
        gcc: what GCC's cross compilers' names begin with; "": there are none.
        zig: the target of `zig cc`, which is clang.
        bits: of a `long`.
        flags: of GCC.
        zig_flags: of `zig cc`.
    """

    gcc: str
    zig: str
    bits: int
    flags: tuple[str, ...] = ()
    zig_flags: tuple[str, ...] = ()


#: what build_for() knows
TARGETS = {
    "x86_64": Target("x86_64-linux-gnu", "x86_64-linux-musl", 64),
    "i386": Target("i686-linux-gnu", "x86-linux-musl", 32),
    "arm64": Target("aarch64-linux-gnu", "aarch64-linux-musl", 64),
    "arm": Target("arm-linux-gnueabihf", "arm-linux-musleabihf", 32, ("-marm",)),
    "thumb": Target("arm-linux-gnueabihf", "thumb-linux-musleabihf", 32, ("-mthumb",)),
    "armsoft": Target("arm-linux-gnueabi", "", 32),
    "riscv64": Target("riscv64-linux-gnu", "riscv64-linux-musl", 64, ("-Wl,--no-relax",), ("-mno-relax",)),
    "mips": Target("mips-linux-gnu", "mips-linux-musleabihf", 32),
    "mipsel": Target("mipsel-linux-gnu", "mipsel-linux-musleabihf", 32),
    "mips64": Target("mips64-linux-gnuabi64", "mips64-linux-muslabi64", 64, ("-Wl,-Ttext-segment=0x10000000",),
                     ("-Wl,--image-base=0x10000000",)),
    "mips64el": Target("mips64el-linux-gnuabi64", "mips64el-linux-muslabi64", 64, ("-Wl,-Ttext-segment=0x10000000",),
                     ("-Wl,--image-base=0x10000000",)),
    "s390x": Target("s390x-linux-gnu", "s390x-linux-musl", 64),
    "ppc": Target("powerpc-linux-gnu", "powerpc-linux-musleabihf", 32),
    "ppc64": Target("powerpc64-linux-gnu", "powerpc64-linux-musl", 64),
    "ppc64le": Target("powerpc64le-linux-gnu", "powerpc64le-linux-musl", 64),
    "m68k": Target("m68k-linux-gnu", "", 32),
}


def cross_compiler(language: str, target: str) -> list[str] | None:
    """The command that compiles a language ("c", "c++", "clang", "clang++") for a target, or None."""
    known = TARGETS[target]
    word = {"c": "gcc", "c++": "g++", "clang": "cc", "clang++": "c++"}[language]
    if not language.startswith("clang"):
        found = known.gcc and (shutil.which(f"{known.gcc}-{word}") or shutil.which(f"{known.gcc}-{word}-12"))
        return [found] if found else None
    if importlib.util.find_spec("ziglang") is None or not known.zig:
        return None
    return [sys.executable, "-m", "ziglang", word, "-target", known.zig]


def build_for(target: str, language: str, seed: int, level: int, dwarf: int, folder: Path) -> Path:
    """A random program for a target, which begins at `main`.

    Args:
        target: of TARGETS.
        language: "c", "c++", "clang" or "clang++".
        seed: of its random parts.
        level: of optimization.
        dwarf: version of its debug information.
        folder: where its source and the program are written.

    Returns:
        The program's path.
    """
    command = cross_compiler(language, target)
    assert command is not None
    known = TARGETS[target]
    name = f"{target}-{language.replace('+', 'p')}{seed}"
    out = folder / f"{name}-O{level}-{dwarf}"
    cpp = language.endswith("++")
    source = folder / f"{name}.{'cc' if cpp else 'c'}"
    source.write_text(CProgram(random.Random(f"{language} {seed}"), cpp, known.bits).source())
    flags = ["-g", f"-gdwarf-{dwarf}", f"-O{level}", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-ffreestanding",
             "-fno-stack-protector", "-Wl,--build-id=none", "-Wl,-e,main", "-w"]
    flags += [*known.zig_flags, "-fno-sanitize=undefined"] if language.startswith("clang") else known.flags
    flags += ["-fno-exceptions", "-fno-rtti", "-std=c++17", "-fno-threadsafe-statics"] if cpp else ["-std=gnu11"]
    libraries = [] if language.startswith("clang") else ["-lgcc"]
    done = subprocess.run([*command, *flags, str(source), *libraries, "-o", str(out)], capture_output=True, text=True,
                          check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[:3000]}")
    return out


def compiler(language: str) -> str | None:
    """The compiler of a language, or None. "clang" and "clang++" are C and C++, as these compile them."""
    return shutil.which({"c": "gcc", "c++": "g++", "rust": "rustc"}.get(language, language))


def build(language: str, seed: int, level: int, dwarf: int, folder: Path, entries: str = "") -> Path:
    """A program of a language, compiled.

    Args:
        language: "c", "c++", "clang", "clang++" or "rust".
        seed: of its random parts.
        level: of optimization.
        dwarf: version of its debug information.
        folder: where its source and the program are written.
        entries: text of a program in Rust that is compiled instead; "": a random one.

    Returns:
        The program's path.
    """
    rng = random.Random(f"{language} {seed}")
    name = f"{language.replace('+', 'p')}{seed}"
    out = folder / f"{name}-O{level}-{dwarf}"
    flags = ["-g", f"-gdwarf-{dwarf}", f"-O{level}", "-static", "-nostdlib", "-no-pie", "-fno-pie", "-ffreestanding",
             "-fno-stack-protector", "-Wl,--build-id=none", "-w"]
    if language == "rust":
        source = folder / f"{name}.rs"
        source.write_text(entries or RUST % {"a": rng.randrange(1, 100), "b": rng.randrange(100), "c": rng.randrange(60),
                                  "d": rng.randrange(100)})
        command = [str(compiler("rust")), "--edition", "2021", "-g", "-C", f"opt-level={level}", "-C", "panic=abort", "-C", "overflow-checks=off",
                   "-C", "debug-assertions=off",
                   "-C", f"dwarf-version={dwarf}", "-C", "relocation-model=static", "-C", "linker=gcc", "-C", "link-args=-nostartfiles -nostdlib -static -no-pie",
                   "-C", "codegen-units=1", "-o", str(out), str(source)]
    else:
        cpp = language.endswith("++")
        source = folder / f"{name}.{'cc' if cpp else 'c'}"
        source.write_text(CProgram(rng, cpp).source())
        more = ["-fno-exceptions", "-fno-rtti", "-std=c++17", "-fno-threadsafe-statics"] if cpp else ["-std=gnu11"]
        command = [str(compiler(language)), *flags, *more, str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[:3000]}")
    return out
