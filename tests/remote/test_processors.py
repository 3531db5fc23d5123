"""Whole machines with two processors: real kernels, where KPROBES_KERNEL_DIR has them, and firmware."""

from __future__ import annotations

import time
from contextlib import suppress
from types import ModuleType

import pytest
from test_qemu_system import BOARDS, FIRMWARE, needs

from kprobes import GuestTimeout, Kprobe, KprobeError, Kprobes, Kretprobe, Program, QemuMachine

ROUNDS = 20
MANY = 20000
PROGRAM = """
#include <kprobes/bpf.h>
u64 hits;
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16); __type(key, u64); __type(value, u64); } sizes SEC(".maps");
SEC("kprobe/vfs_read") int on_read(struct pt_regs *ctx)
{
    u64 size = PT_REGS_PARM3(ctx), one = 1, *found = bpf_map_lookup_elem(&sizes, &size);
    hits += 1;
    if (found) *found += 1; else bpf_map_update_elem(&sizes, &size, &one, BPF_ANY);
    return 0;
}
"""


@pytest.fixture(scope="module")
def kernel_cpus() -> int:
    return 2


def test_as_many_hits_as_its_own_kprobes_count(kernel: object, example: ModuleType) -> None:
    """Of two processes that work at once, each on a processor; twice, as tasks move between them."""
    assert kernel.m.cpus == 2  # type: ignore[attr-defined]
    for _ in range(2):
        seen = example.count(kernel, ROUNDS, example.BOTH)
        assert seen.hits == [4 * ROUNDS, 2 * ROUNDS + 1, 4 * ROUNDS]
        assert sorted(seen.asked) == [37] * 2 * ROUNDS + [1000] * 2 * ROUNDS
        assert sum(seen.sizes) == 2 * ROUNDS * len(example.GREETING)
    assert example.count_by_itself(kernel, ROUNDS, example.BOTH) == seen.hits


def test_both_processors_come_to_a_probe(kernel: object, example: ModuleType) -> None:
    m = kernel.m  # type: ignore[attr-defined]
    kernel.tell(example.BOTH, ROUNDS)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k:
        cpus: list[int] = []
        stepped = Kprobe(symbol_name="vfs_read", pre_handler=lambda p, regs: cpus.append(regs.cpu),
                         post_handler=lambda p, regs, flags: None)
        k.register(stepped)
        kernel.answered()  # type: ignore[attr-defined]
        kernel.wait()  # type: ignore[attr-defined]
        assert stepped.nhit == len(cpus) == 4 * ROUNDS and stepped.nmissed == 0
        assert min(cpus.count(0), cpus.count(1)) >= ROUNDS


def test_a_hit_gets_no_memory(kernel: object, example: ModuleType) -> None:
    """Its task might be on another processor afterwards."""
    m = kernel.m  # type: ignore[attr-defined]
    kernel.tell(example.WORK, 1)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    said: list[str] = []

    def ask(p: Kprobe, regs: object) -> None:
        with suppress(KprobeError):
            m.alloc(1 << 16)
            return
        said.append("refused")

    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="ksys_read", pre_handler=ask))
        kernel.answered()  # type: ignore[attr-defined]
        kernel.wait()  # type: ignore[attr-defined]
    assert said == ["refused"] * 2


def test_programs_lose_nothing(kernel: object, example: ModuleType) -> None:
    """They run one at a time."""
    m, program = kernel.m, Program.from_c(PROGRAM)  # type: ignore[attr-defined]
    kernel.tell(example.BOTH, MANY)  # type: ignore[attr-defined]
    m.run(until="do_sys_openat2", timeout=60)
    with Kprobes(m) as k, k.attach(program) as attached:
        assert set(attached.why_python.values()) == {""}
        for _ in range(20):  # stops anywhere: in programs, and where one waits for another
            with suppress(GuestTimeout):
                m.run(until=kernel.answer, timeout=0.02)  # type: ignore[attr-defined]
                break
        else:
            kernel.answered()  # type: ignore[attr-defined]
        kernel.wait()  # type: ignore[attr-defined]
        assert program.variables["hits"] == 4 * MANY
        sizes = program.maps["sizes"]
        assert {key: sizes[key] for key in sizes} == {37: 2 * MANY, 1000: 2 * MANY}


@pytest.mark.parametrize("name", ["riscv32", "riscv64"])
def test_firmware_on_two_harts(name: str) -> None:
    """Each with a stack of its own."""
    needs(name)
    start, arguments = BOARDS[name]
    image = FIRMWARE / f"{name}.elf"
    with QemuMachine.system(["-M", "virt", "-smp", "2", "-m", "32", "-nic", "none", "-display", "none",
                             "-serial", "none", "-monitor", "none", *arguments, "-kernel", str(image)], arch=name,
                            symbols=image, scratch=(start + 0xA0000, 0x10000)) as m, Kprobes(m) as k:
        hits: list[tuple[int, int]] = []
        results: list[tuple[int, int]] = []
        leaf = Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: hits.append((regs.cpu, regs.arg(0))),
                      post_handler=lambda p, regs, flags: None)
        work = Kretprobe(symbol_name="work", handler=lambda ri, regs: results.append((regs.cpu, regs.return_value)))
        k.register(leaf)
        k.register(work)
        assert m.arch.jump is not None
        m.write(start, m.arch.jump.encode(start, m.symbols["_start"].address))  # where QEMU's own start leads
        deadline = time.monotonic() + 30
        while len(results) < 2 and time.monotonic() < deadline:
            with pytest.raises(GuestTimeout):
                m.run(timeout=0.5)
        assert sorted(hits) == [(cpu, n) for cpu in (0, 1) for n in range(10)] and leaf.nmissed == 0
        assert sorted(results) == [(0, 100), (1, 100)]
        assert m.call("work", 5, timeout=100) == 25 and leaf.nhit == 25
