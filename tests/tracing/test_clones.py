"""Copies that compilers make of functions: `.constprop` and `.isra` of gcc's, Rust's generics. Their parameters are no longer
where the calling convention passes them; what is shown is what the program means, or nothing is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kprobes.cli import main

C = """
volatile int sink;
struct pair { long a, b; };
struct big { long v[6]; };
#define COPIED __attribute__((noinline)) static
COPIED int work(int x, int konst, int y) { sink = x; return x * konst + y + sink; }
COPIED long second(struct pair *p, int scale) { sink = scale; return p->b * scale; }
COPIED int gone(int unused, int kept) { sink = kept; return kept + 1; }
__attribute__((noinline)) struct big make(long seed, long step)
{ struct big r; for (int i = 0; i < 6; i++) r.v[i] = seed + i * step; return r; }
int run(int x, int y)
{
    int r = work(x, 7, y) + work(y, 7, x);
    struct pair p = {x, y};
    r += second(&p, x);
    r += gone(x, y) + gone(3, x);
    return r + make(x, y).v[3];
}
"""
RUST = """
#![crate_type = "cdylib"]
use std::hint::black_box;
#[inline(never)]
fn largest<T: PartialOrd + Copy>(unused: u8, first: T, second: T) -> T {
    black_box(unused); if first > second { first } else { second }
}
#[inline(never)]
fn scaled(items: &[u32], scale: u32) -> u64 { items.iter().map(|x| (*x as u64) * scale as u64).sum() }
pub struct Big { pub v: [u64; 5] }
#[inline(never)]
pub fn made(seed: u64, step: u64) -> Big {
    let mut v = [0; 5]; for i in 0..5 { v[i] = black_box(seed + step * i as u64); } Big { v }
}
#[no_mangle]
pub extern "C" fn run(a: u32, b: u32) -> u64 {
    let x = largest(1, a, b) as u64 + largest(2, a as u64, b as u64) as u64;
    x + scaled(&[a, b, 3], 10) + made(a as u64, b as u64).v[2]
}
"""


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    folder = tmp_path_factory.mktemp("clones")
    (folder / "clones.c").write_text(C)
    subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", "-nostdlib", "-o", "clones.so", "clones.c"], cwd=folder, check=True,
                   capture_output=True)
    names = (folder / "clones.so").read_bytes()
    if b"work.constprop" not in names or b"second.isra" not in names:
        pytest.skip("this compiler makes no such copies")
    return folder / "clones.so"


@pytest.fixture(scope="module")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("rustc") is None:
        pytest.skip("there is no rustc")
    folder = tmp_path_factory.mktemp("generics")
    (folder / "lib.rs").write_text(RUST)
    done = subprocess.run(["rustc", "-O", "-g", "-C", "panic=abort", "-o", "lib.so", "lib.rs"], cwd=folder, check=False,
                          capture_output=True)
    if done.returncode:
        pytest.skip("rustc makes no library here")
    return folder / "lib.so"


def shown(path: Path, event: str) -> list[dict[str, Any]]:
    """The records of one event over run(4, 9), without what all records have."""
    words = ["trace", str(path), "-e", event, "--call", "run(4, 9)", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return [json.loads(line)["args"] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("event, values", [
    ("p work* x konst y", [{"x": 4, "konst": 7, "y": 9}, {"x": 9, "konst": 7, "y": 4}]),
    ("p gone* unused kept", [{"unused": 4, "kept": 9}, {"unused": 3, "kept": 4}]),
    ("p second* p scale", [{"p": None, "scale": 4}]),  # the pointer is gone: what is in its register is p->b
    ("p make seed step", [{"seed": 4, "step": 9}]),  # the first register is the result's address
    ("r make v=$retval", [{"v": {"v": [4, 13, 22, 31, 40, 49]}}]),
])  # fmt: skip
def test_copies_of_gcc(c: Path, event: str, values: list[dict[str, Any]]) -> None:
    """As gdb shows them: 7 was put into the function's own code, and `unused` is known by the callers alone."""
    assert shown(c, event) == values


@pytest.mark.parametrize("event, values", [
    ("p *largest* unused first second", [{"unused": 1, "first": 4, "second": 9}, {"unused": 2, "first": 4, "second": 9}]),
    ("p *scaled* items scale", [{"items": [4, 9, 3], "scale": 10}]),
    ("p *made* seed step", [{"seed": 4, "step": 9}]),
])  # fmt: skip
def test_generics_of_rust(rust: Path, event: str, values: list[dict[str, Any]]) -> None:
    """Two functions of one name, each with its types, and one whose result lies in memory."""
    assert shown(rust, event) == values


def test_what_optimized_rust_returns_in_memory_is_refused(rust: Path) -> None:
    done = CliRunner().invoke(main, ["trace", str(rust), "-e", "r *made* v=$retval", "--call", "run(4, 9)"])
    assert done.exit_code == 2 and "may have changed how this function is called" in done.output
