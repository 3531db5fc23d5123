"""Variables of a program as the library and as gdb see them, at the same hits."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import capstone
from attrs import define, field
from elftools.elf.elffile import ELFFile

from kprobes import Kprobe, KprobeError, Kprobes, UnicornMachine
from kprobes.debug.view import View

STACKS = "(stack)"  #: among a hit's values, its stack
MOST = 3  #: hits of a place that are compared
STACK = 1 << 40  #: addresses from here on differ between two runs
HERE = Path(__file__).resolve().parent


@define
class Verdicts:
    """What comparing has found.

    Attributes:
        right: values that are as gdb's.
        refused: values that gdb has and the library does not show.
        stacks: hits whose stacks are compared.
        silent: hits at which gdb fails.
        ended: the error that the program's run ends by, or "".
        wrong: (place, variable, ours, gdb's) of the others.
    """

    right: int = 0
    refused: int = 0
    stacks: int = 0
    silent: int = 0
    ended: str = ""
    wrong: list[tuple[str, str, Any, Any]] = field(factory=list)

    def add(self, others: Verdicts) -> None:
        """Count what another comparison has found, too."""
        self.right += others.right
        self.refused += others.refused
        self.stacks += others.stacks
        self.silent += others.silent
        self.wrong += others.wrong


def ours(value: Any) -> Any:
    """A value of the library's as value_gdb.py shows it."""
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if not isinstance(value, View):
        return value
    kind = value._type.kind
    if kind == "pointer":
        return {"pointer": int(value)}
    if kind in ("struct", "union"):
        return {name: _item(value, name) for name in _names(value)}
    if kind == "array":
        return [_item(value, n) for n in range(min(len(value), 41))]
    return "other"


def _names(view: View) -> list[str]:
    try:
        return view.__dir__()
    except KprobeError:
        return [*view._type.members]


def _item(view: View, key: Any) -> Any:
    try:
        return ours(view[key])
    except KprobeError:
        return None


def known(theirs: Any) -> bool:
    """True where gdb shows a part of a value."""
    if isinstance(theirs, dict):
        return any(known(value) for value in theirs.values())
    if isinstance(theirs, list):
        return any(known(value) for value in theirs)
    return theirs is not None and not str(theirs).startswith("error")


def same(mine: Any, theirs: Any) -> bool:
    """True where two values are equal; addresses of the stack, and what gdb could not read, are not compared."""
    if isinstance(mine, bool):
        return mine is bool(theirs)
    if isinstance(theirs, str):
        return True
    if isinstance(theirs, dict) and isinstance(theirs.get("either"), list):
        return any(same(mine, each) for each in theirs["either"])
    if isinstance(theirs, dict) and isinstance(theirs.get("pointer"), int):
        if not isinstance(mine, dict) or "pointer" not in mine:
            return False
        return theirs["pointer"] >= STACK or mine["pointer"] == theirs["pointer"]
    if isinstance(theirs, dict) and isinstance(theirs.get("float"), str):
        return isinstance(mine, dict) and (mine.get("float") == theirs["float"] or theirs["float"] == "nan")
    if isinstance(theirs, dict) and isinstance(mine, dict):
        return all(name not in mine or mine[name] is None or same(mine[name], value) for name, value in theirs.items())
    if isinstance(theirs, list) and isinstance(mine, list):
        return len(mine) == len(theirs) and all(one is None or same(one, two)
                                                for one, two in zip(mine, theirs, strict=True))
    return bool(mine == theirs)


def places_of(program: Path, rng: random.Random, share: float) -> Iterator[tuple[int, str, bool]]:
    """(address, function, whether it is the function's entry) of instructions: all entries, and a share of the others."""
    with program.open("rb") as file:
        elf = ELFFile(file)
        text = elf.get_section_by_name(".text")
        code, base = text.data(), text["sh_addr"]
        symbols = [s for s in elf.get_section_by_name(".symtab").iter_symbols() if s["st_info"]["type"] == "STT_FUNC"
                   and s["st_size"] and s.name not in ("_start", "memcpy", "memset", "memcmp")]
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    for symbol in symbols:
        start = symbol["st_value"]
        body = code[start - base:start - base + symbol["st_size"]]
        for address, _, mnemonic, _ in decoder.disasm_lite(body, start):
            # at a return LLVM's frames are gone: what is there is the return address, and in its code our breakpoints
            if address == start or (rng.random() < share and mnemonic != "ret"):
                yield address, symbol.name, address == start


def asked_gdb(program: Path, places: list[int], functions: list[str], folder: Path) -> dict[str, Any]:
    """What gdb answers: see value_gdb.py."""
    task, out = folder / "task.json", folder / "answer.json"
    task.write_text(json.dumps({"file": str(program), "places": places, "functions": functions, "most": MOST,
                                "out": str(out)}))
    done = subprocess.run(["gdb", "-nx", "-batch", "-x", str(HERE / "value_gdb.py")], capture_output=True, text=True,
                          env=os.environ | {"VALUES_TASK": str(task)}, timeout=100, check=False)
    if not out.exists():
        raise RuntimeError(f"gdb: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(out.read_text())
    out.unlink()
    return answer


def compared(program: Path, seed: int, share: float, optimized: bool, folder: Path) -> Verdicts:
    """Compare all variables at instructions of a program.

    Args:
        program: of value_programs.
        seed: draws the instructions.
        share: of the instructions that are compared.
        optimized: False: gdb reads a function's parameters at its entry behind the prologue.
        folder: for files that are shared with gdb.
    """
    rng = random.Random(seed)
    chosen = [*{place[0]: place for place in places_of(program, rng, share)}.values()]
    names = sorted({name for _, name, entry in chosen if entry})
    answer = asked_gdb(program, [address for address, _, _ in chosen], [] if optimized else names, folder)
    seen: dict[int, list[dict[str, Any]]] = {address: [] for address, _, _ in chosen}
    with UnicornMachine.load(program) as m, Kprobes(m) as k:
        behind = {name: _behind_prologue(m, name) for name in names}

        def hit(p: Any, regs: Any) -> None:
            if len(seen[p.addr]) < MOST:
                values = {name: ours(value) for name, value in m.debug.locals(regs).items()}
                seen[p.addr].append({**values, STACKS: [*k.stack_trace(regs)]})
        for address, _, _ in chosen:
            try:
                k.register(Kprobe(addr=address, pre_handler=hit))
            except KprobeError:
                del seen[address]
        m.run(m.symbols["_start"].address, m.symbols["finished"].address)
        unwritten = {address: _unwritten(m, address) for address, _, entry in chosen if entry and optimized}
        start = range(m.symbols["_start"].address, m.symbols["finished"].address + 16)
    verdicts = Verdicts()
    for address, name, entry in chosen:
        theirs = answer["places"].get(str(address), [])
        if not entry and not optimized and address < behind.get(name, 0):
            continue  # its frame is not made yet, and what is there is nobody's variable
        if entry and not optimized:
            theirs = answer["prologues"].get(name, [])
        for n, (mine, gdbs) in enumerate(zip(seen.get(address, ()), theirs, strict=False)):
            verdicts.stacks += 1
            if not entry or optimized:  # elsewhere gdb has stopped behind the prologue
                mine_up, theirs_up = (_below(start, each.pop(STACKS)) for each in (mine, gdbs))
                if mine_up != theirs_up:
                    where = f"{program.name} {address:#x} {name} hit {n}"
                    verdicts.wrong.append((where, STACKS, mine_up, theirs_up))
            for variable, value in gdbs.items():
                if variable == STACKS or variable in unwritten.get(address, ()):
                    continue
                _judge(verdicts, f"{program.name} {address:#x} {name} hit {n}", variable, mine, value)
    return verdicts


def _unwritten(m: UnicornMachine, address: int) -> set[str]:
    """The parameters that optimized code stores in its frame behind its entry: gdb reads there before that."""
    return {variable.name for variable, arrival in m.debug.arrivals(address) if arrival.kind in ("argument", "parts")
            and "DW_AT_location" in variable.die.attributes
            and variable.die.attributes["DW_AT_location"].form == "DW_FORM_exprloc"}


def _below(start: range, stack: list[int]) -> list[int]:
    """A stack up to what called the program's driver: above it the two have other things."""
    return stack[:next((n + 1 for n, address in enumerate(stack) if address in start), len(stack))]


def _behind_prologue(m: UnicornMachine, name: str) -> int:
    """Where the second line of a function begins."""
    symbol = m.symbols[name]
    lines = m.debug.lines(symbol.address, symbol.address + symbol.size)
    return lines[1].address if len(lines) > 1 else 0


def _judge(verdicts: Verdicts, where: str, variable: str, mine: dict[str, Any], theirs: Any) -> None:
    value = mine.get(variable)
    if value is None:
        verdicts.refused += known(theirs)
        if known(theirs) and os.environ.get("VALUES_REFUSED"):
            print("refused", where, variable, str(theirs)[:80])
    elif same(value, theirs):
        verdicts.right += 1
    else:
        verdicts.wrong.append((where, variable, value, theirs))
