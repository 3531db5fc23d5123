#!/usr/bin/env python3
"""Transparency trials: random guest code with and without probes, on every architecture that Unicorn runs.

    nice -n 19 tools/trials.py /work/trials/journal.jsonl --count 10000000

One command, which goes on where it was killed: the journal has an item a line. Each item is an architecture, a kind
of trial and a seed, and gives the same trials in every process.

Kinds:
    instruction: one instruction, random or of the case files with bits flipped, in random register states; a
        kprobe on it, with and without a post-handler, boosted or displaced where it can be.
    sequence: two to ten instructions in a row, from random registers, with kprobes on some of them, with and without
        handlers, stepped, boosted or optimized.
    function: a function of the compiled test programs with a random argument; kprobes of all sorts on random
        instructions of the program, return probes on random functions.

Compared are registers, flags, memory, results and faults.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import unicorn
from unicorn import arm_const

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from arches import NO_PROGRAMS, RUNNABLE, cases_of, integer, programs_of, results  # noqa: E402

from kprobes import GuestFault, GuestTimeout, Kprobe, KprobeError, Kretprobe, OutOfReach, UnicornMachine  # noqa: E402
from kprobes.campaign import Journal, run  # noqa: E402
from kprobes.core.probe import Probe  # noqa: E402
from kprobes.testing import Bench, Comparison, encodings, functions, instructions  # noqa: E402
from kprobes.testing._states import States  # noqa: E402

CAMPAIGN = "transparency trials 5"  #: a journal is of one generator
KINDS = ("instruction", "sequence", "function")
INSTRUCTIONS = 120  #: instructions of an item; each makes several trials
SEQUENCES = 24  #: programs of an item
CALLS = 6  #: calls of an item
STATES = 3  #: register states of an instruction
BASE, SIZE, DATA = 0x40000, 0x1000, 0x4000
NEAR = 1 << 25  #: bytes from the text, within which the library maps pages of its own
SECONDS = 2.0  #: that one may take where instructions cannot be counted
MOST = 400  #: instructions that a sequence may execute
PATIENCE = 300.0  #: seconds that an item may take


class EngineDefect(NamedTuple):
    """Instructions with which the engine is wrong without a probe, and right with one, or by chance.

    Attributes:
        value: the bytes in which all of them are alike.
        mask: which bits these are.
        alone: False: only amid a block of others.
    """

    value: bytes
    mask: bytes
    alone: bool

    def has(self, raw: bytes) -> bool:
        """Tell whether an instruction is one of them."""
        return bytes(a & b for a, b in zip(raw, self.mask, strict=False)) == self.value


#: ADDXcc and SUBXcc behind an instruction that makes the carry 0, in the same block: theirs is 0, too
LOST_CARRY = EngineDefect(bytes.fromhex("80c00000"), bytes.fromhex("c1d80000"), alone=False)
#: architecture -> the defects that its trials leave out
DEFECTS = {
    # flags behind CAS2 are not those of CAS2; nor are those of ADDX and its like behind MOVE from SR and from CCR
    "m68k": [EngineDefect(bytes.fromhex("0cfc"), bytes.fromhex("fdff"), alone=False),
             EngineDefect(bytes.fromhex("40c0"), bytes.fromhex("fdc0"), alone=False)],
    "sparc": [LOST_CARRY],
    # STDF at an address that is no multiple of 8 writes a part of the number before it faults, or does not fault
    "sparc64": [LOST_CARRY, EngineDefect(bytes.fromhex("c1380000"), bytes.fromhex("c1f80000"), alone=True)],
}
#: never return, or not where they were called; or keep their own return address (tests/differential/test_programs.py)
NOT_FOLLOWED = {"_start", "my_longjmp", "longjmp", "attempt"}


class Trials:
    """What an item gives, as JSON: numbers, and a sentence for each finding."""

    def __init__(self) -> None:
        self.trials = 0
        self.refused = 0
        self.seen = 0
        self.findings: list[str] = []

    def note(self, where: str, differences: Sequence[object]) -> None:
        """Count a trial, and what differs in it."""
        self.trials += 1
        if differences:
            self.findings.append(f"{where}: {'; '.join(map(str, differences[:4]))}")


class Job:
    """Does an item, in a worker."""

    def __call__(self, item: str) -> dict[str, Any]:
        kind, arch, seed = item.split(":")
        trials = Trials()
        rng = random.Random(f"{CAMPAIGN} {item}")
        {"instruction": _instructions, "sequence": _sequences, "function": _calls}[kind](arch, rng, trials, int(seed))
        return vars(trials)


# --- one instruction


@cache
def _bench(arch: str) -> list[Bench]:
    return []


def _instructions(arch: str, rng: random.Random, trials: Trials, seed: int) -> None:
    kept = _bench(arch)
    if kept and not kept[0].usable:
        kept.pop().close()
    if not kept:
        kept.append(Bench(arch, cases_of(arch)))
    bench = kept[0]
    random_code = encodings(rng, bench.machine.arch, bench.file)
    for _ in range(INSTRUCTIONS):
        code, mode = next(random_code)
        insn = bench.decode(code, mode)
        if bench.file.skip(insn.raw) or _is_left_out(arch, insn.raw, alone=True):
            continue
        code = insn.raw + (rng.choice(bench.file.slots) if insn.delay_slot else b"")
        before = bench.tally.runs
        try:
            found = bench.check(code, mode, STATES, all_flags=False)
        except KprobeError:
            trials.refused += 1
            continue
        trials.trials += bench.tally.runs - before
        trials.findings += [f"{arch} {code.hex()} mode {mode} ({insn.name}): {one}" for one in found[:3]]


# --- several in a row


def program(arch: str, rng: random.Random, decode: Any) -> tuple[bytes, int]:
    """Random code of an architecture, and its mode bits. decode: (code, mode) -> the instruction."""
    file = cases_of_once(arch)
    mode = rng.choice([case.mode for case in file.cases])
    cases = [case for case in file.cases if case.mode == mode and case.outcome != "reject"]
    code = b""
    for _ in range(rng.randrange(2, 11)):
        raw = rng.choice(cases).code
        if rng.random() < 0.3:
            changed = bytearray(raw)
            bit = rng.randrange(8 * len(changed))
            changed[bit // 8] ^= 1 << bit % 8
            raw = bytes(changed)
        insn = decode(raw, mode)
        if insn.reject or file.skip(insn.raw) or _is_left_out(arch, insn.raw, alone=False):
            continue
        code += insn.raw + (rng.choice(file.slots) if insn.delay_slot else b"")
    return code, mode


def _is_left_out(arch: str, raw: bytes, *, alone: bool) -> bool:
    """Tell whether trials leave an instruction out: alone, or amid others."""
    return any((defect.alone or not alone) and defect.has(raw) for defect in DEFECTS.get(arch, []))


@cache
def cases_of_once(arch: str) -> Any:
    """The case file of an architecture."""
    return cases_of(arch)


class _Watched:
    """Notes what of its own text the guest reads, writes and executes.

    Attributes:
        seen: it reads or writes text: it would see the probes.
        executed: (address, Thumb's bit) of the instructions that it executes there.
    """

    def __init__(self, machine: UnicornMachine) -> None:
        self.seen = False
        self.executed = set[tuple[int, int]]()
        self._states = machine.arch.name in ("arm", "armeb")
        machine.uc.hook_add(unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, self._access, None,
                            BASE - 64, BASE + SIZE)
        machine.uc.hook_add(unicorn.UC_HOOK_CODE, self._execute, None, BASE, BASE + SIZE)

    def _access(self, uc: Any, access: int, address: int, size: int, value: int, data: Any) -> None:
        self.seen = True

    def _execute(self, uc: Any, address: int, size: int, data: Any) -> None:
        self.executed.add((address, uc.reg_read(arm_const.UC_ARM_REG_CPSR) >> 5 & 1 if self._states else 0))

    def leaves(self, instructions: Set[int], end: int, mode: int) -> bool:
        """Tell whether the guest executes something else than a program's instructions: their middle, what other
        instructions read as data, or Arm's in the state of Thumb.

        A breakpoint changes the bytes of one instruction, so that other instructions that share them are others.

        Args:
            instructions: addresses of the program's instructions as the library reads them.
            end: address behind the program.
            mode: mode bits of the program.
        """
        return any(address < end and (address not in instructions or (self._states and thumb != mode))
                   for address, thumb in self.executed)


def _machine(arch: str, code: bytes, mode: int, rng: random.Random) -> tuple[UnicornMachine, int]:
    """A machine with the code as function f in a page of traps, and the address of random data."""
    m = UnicornMachine.from_code(bytes(SIZE), arch=arch, base=BASE, symbols={"f": (BASE | mode, len(code))})
    trap = m.arch.end_bytes(mode)
    m.write(BASE, (code + trap * (SIZE // len(trap)))[:SIZE])
    data = m.alloc(DATA)
    m.write(data, rng.randbytes(DATA))
    return m, data


def _start(m: UnicornMachine, data: int, arch: str, rng: random.Random) -> None:
    """Random registers."""
    file = cases_of_once(arch)
    States(m.regs, (data, data + DATA), (BASE, BASE + SIZE), file.flags, file.keep).randomize(rng, landing=False)


def _is_near(address: int) -> bool:
    """Tell whether the library's own pages may come to lie there: they are near the text."""
    return abs(address - BASE) < NEAR and not BASE <= address < BASE + SIZE


def _run(m: UnicornMachine, mode: int) -> Any:
    """Run the code to its end, a trap or another fault, or the bound.

    Where the engine cannot count instructions, on SPARC, the bound is one of time, which no two runs reach alike.
    """
    try:
        if m.guest.blocks.hooked_delay_slots:
            m.run(BASE | mode, max_insns=MOST)
        else:
            m.run(BASE | mode, timeout=SECONDS)
    except GuestTimeout:
        return "bounded"
    return "ended"


def _sequences(arch: str, rng: random.Random, trials: Trials, seed: int) -> None:
    first = UnicornMachine.from_code(bytes(SIZE), arch=arch, base=BASE)
    decode = first.arch.decode
    programs = [(program(arch, rng, lambda raw, mode: decode(raw + bytes(16), BASE | mode)), rng.random())
                for _ in range(SEQUENCES)]
    first.close()
    for (code, mode), inner in programs:
        if code:
            sequence(arch, code, mode, str(inner), trials)


def sequence(arch: str, code: bytes, mode: int, inner: str, trials: Trials) -> None:
    """Compare one program.

    Args:
        arch: the architecture's name.
        code: the program.
        mode: its mode bits.
        inner: seed of registers, memory and probes.
        trials: where to count it.
    """
    rng = random.Random(inner)
    m, data = _machine(arch, code, mode, rng)
    try:
        _start(m, data, arch, random.Random(inner))
        watched = _Watched(m)
        try:
            astray = _run(m, mode) == "bounded" and not m.guest.blocks.hooked_delay_slots
        except GuestFault as fault:
            watched.executed.add((fault.pc or 0, mode))  # the engine calls no hook of an undefined instruction
            astray = _is_near(fault.pc or 0) or (
                fault.access in ("fetch", "read", "write") and _is_near(fault.address or 0))
    finally:
        m.close()
    if watched.seen or astray:
        trials.seen += 1
        return
    m, data = _machine(arch, code, mode, random.Random(inner))
    try:
        _start(m, data, arch, random.Random(inner))
        comparison = Comparison(m, lambda machine: _run(machine, mode))
        try:
            where = f"{arch} {code.hex()} mode {mode} inner {inner}"
            places = instructions(comparison.kprobes, m.symbols["f"])
            known = {insn.addr for insn in comparison.kprobes._survey.instructions(m.symbols["f"])}
            if watched.leaves(known, BASE + len(code), mode):
                trials.seen += 1
                return
            if not places:
                trials.refused += 1
                return
            for turn in range(3):
                chosen = places if turn == 0 else rng.sample(places, rng.randrange(1, len(places) + 1))
                probes = [_kprobe(place, rng) for place in chosen]
                try:
                    with comparison.probed(probes):
                        if turn == 0:
                            comparison.kprobes.flush_optimizer()
                        found = comparison.again()
                except OutOfReach:  # of data beside code that only a displacement reaches
                    trials.refused += 1
                    continue
                except KprobeError as error:
                    trials.note(where, [f"registering: {error}"])
                    continue
                sorts = " ".join(f"+{place - BASE:#x}{_sort(p)}" for place, p in zip(chosen, probes, strict=True))
                found += comparison.again("probes removed")  # which also ends a hit that a fault has left under way
                trials.note(f"{where} probes {sorts}", [*found, *comparison.text_changed()])
        finally:
            comparison.close()
    finally:
        m.close()


def _sort(p: Kprobe) -> str:
    return f"{'h' if p.pre_handler else ''}{'p' if p.post_handler else ''}{'o' if p.optimize else ''}"


def _pre(p: Any, regs: Any) -> None:
    """A handler that does nothing."""


def _post(p: Any, regs: Any, flags: int) -> None:
    """A handler that does nothing."""


def _kprobe(place: int, rng: random.Random) -> Kprobe:
    """A kprobe of a random sort."""
    return Kprobe(addr=place, pre_handler=rng.choice((_pre, None)), post_handler=_post if rng.random() < 0.3 else None,
                  optimize=rng.random() < 0.7)


# --- compiled functions


@cache
def _program(path: Path) -> tuple[UnicornMachine, list[str]]:
    m = UnicornMachine.load(path)
    return m, sorted(name for name in results(path.stem, m) if name != "run_all")


def _calls(arch: str, rng: random.Random, trials: Trials, seed: int) -> None:
    path = rng.choice(programs_of(arch))
    m, names = _program(path)
    name, value = rng.choice(names), integer(m.arch, rng.getrandbits(32))
    comparison = Comparison(m, lambda machine: machine.call(name, value))
    try:
        symbols = functions(m)
        for _ in range(CALLS):
            near = [m.symbols[name], *rng.sample(symbols, min(4, len(symbols)))]
            places = sorted({place for symbol in near for place in instructions(comparison.kprobes, symbol)})
            chosen = rng.sample(places, rng.randrange(1, len(places) + 1))
            probes: list[Probe] = [_kprobe(place, rng) for place in chosen]
            if m.arch.linkage is not None:
                followed = [s for s in near if s.name not in NOT_FOLLOWED and rng.random() < 0.5]
                probes += [Kretprobe(addr=s.address | s.mode, handler=lambda ri, regs: None, maxactive=4000)
                           for s in {s.address: s for s in followed}.values()]
            where = f"{path.name} {name}({value:#x}) seed {seed}"
            try:
                found = comparison.with_probes(probes)
            except KprobeError:
                trials.refused += 1
                continue
            trials.note(where, found)
    finally:
        comparison.close()


# --- the command


def items(kinds: Sequence[str], arches: Sequence[str]) -> Iterator[str]:
    """Items without end, all kinds and architectures in turn."""
    for seed in count(1):
        for kind in kinds:
            for arch in arches:
                if kind != "function" or arch not in NO_PROGRAMS:
                    yield f"{kind}:{arch}:{seed}"


def table(journal: Journal) -> str:
    """The results so far, as a table of Markdown; findings below it."""
    totals: dict[str, Counter[str]] = {}
    findings: dict[str, str] = {}
    seconds = 0.0
    for entry in journal.entries.values():
        kind, arch, _ = entry.item.split(":")
        row = totals.setdefault(arch, Counter())
        seconds += entry.seconds
        if entry.error.startswith(LATE):
            row["late"] += 1
            continue
        if entry.error:
            findings[f"{entry.item}: {entry.error}"] = arch
            row["findings"] += 1
            continue
        row[kind] += entry.result["trials"]
        row["refused"] += entry.result["refused"]
        row["findings"] += len(entry.result["findings"])
        findings.update((f"{entry.item}: {text}", arch) for text in entry.result["findings"])
    heads = (*KINDS, "refused", "late", "findings")
    lines = [f"| architecture | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for arch, row in sorted(totals.items()):
        lines.append(f"| {arch} | {' | '.join(f'{row[head]:,}' for head in heads)} |")
    whole = Counter[str]()
    for row in totals.values():
        whole.update(row)
    lines.append(f"| all | {' | '.join(f'{whole[head]:,}' for head in heads)} |")
    done = sum(whole[kind] for kind in KINDS)
    lines += ["", f"{done:,} trials in {len(journal.entries):,} items, {seconds:,.0f} seconds of workers"
              f" ({done / max(seconds, 1e-9):,.0f} a second each).", "", *sorted(findings)[:200]]
    return "\n".join(lines)


LATE = "TimeoutError"  #: of items that hang, or whose process was held up: they are done again at the next start


def left(journal: Journal, wanted: Iterator[str]) -> Iterator[str]:
    """Yield the items that the journal has no result of."""
    return (item for item in wanted
            if (entry := journal.entries.get(item)) is None or entry.error.startswith(LATE))


def with_findings(journal: Journal) -> list[str]:
    """The items that have found something, or failed."""
    return [item for item, entry in journal.entries.items()
            if (entry.error and not entry.error.startswith(LATE)) or (entry.result and entry.result["findings"])]


def trials_of(journal: Journal) -> int:
    """How many trials a journal has."""
    return sum(entry.result["trials"] for entry in journal.entries.values() if entry.result)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; 0: no findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journal", type=Path, help="file of the results; made where it is not there")
    parser.add_argument("--count", type=int, default=10_000_000, help="trials in all, those in the journal among them")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--arch", nargs="+", choices=RUNNABLE, default=RUNNABLE, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=None, help="processes; default: one for each processor")
    parser.add_argument("--item", help="do this item alone, here, and print what it finds")
    parser.add_argument("--again", action="store_true",
                        help="do the items with findings again, and no others: what they found is mended")
    parser.add_argument("--table", action="store_true", help="print what the journal has, and do nothing")
    args = parser.parse_args(words)
    if args.item:
        result = Job()(args.item)
        print(*result["findings"], f"{result['trials']} trials", sep="\n")
        return int(bool(result["findings"]))
    with Journal(args.journal, CAMPAIGN) as journal:
        done = trials_of(journal)
        wanted = with_findings(journal) if args.again else left(journal, items(args.kinds, args.arch))
        if not args.table and (args.again or done < args.count):
            for outcome in run(Job(), wanted, timeout=PATIENCE, jobs=args.jobs):
                entry = journal.note(outcome)
                done += entry.result["trials"] if entry.result else 0
                for text in entry.result["findings"] if entry.result else [entry.error]:
                    print(f"{entry.item}: {text}", file=sys.stderr, flush=True)
                if done >= args.count and not args.again:
                    break
        print(table(journal))
        return int(bool(with_findings(journal)))


if __name__ == "__main__":
    sys.exit(main())
