"""The small parts of kprobes.testing: Recorder, case files, random encodings."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe
from kprobes import arch as architectures
from kprobes.machine.paper import PaperMachine
from kprobes.machine.unicorn.machine import UnicornMachine
from kprobes.testing import Recorder, encodings, read_cases
from kprobes.testing._states import Freezer

pytestmark = pytest.mark.quick
#: f: add r0, 5; ret
CODE = bytes([1, 0, 5, 5])


def machine() -> PaperMachine:
    return PaperMachine(CODE, symbols={"f": (0x1000, 4)})


def test_recorder_writes_every_kind_down() -> None:
    m, log = machine(), Recorder("pc", "r0", "arg1", lambda regs: f"cpu={regs.cpu}")
    with Kprobes(m) as k:
        k.register_all([log.both("a", symbol_name="f"), Jprobe(symbol_name="f", entry=log.mirror("f", 2)),
                        Kretprobe(symbol_name="f", entry_handler=log.entry("r"), handler=log.returns("r"))])
        assert m.call("f", 2, 3) == 7
    assert log.take() == [
        "entry r pc=0x1000 r0=0x2 arg1=0x3 cpu=0", "pre a pc=0x1000 r0=0x2 arg1=0x3 cpu=0", "mirror f 0x2 0x3",
        "post a pc=0x1003 r0=0x7 arg1=0x3 cpu=0", "return r pc=0xe000 r0=0x7 arg1=0x3 cpu=0",
    ]
    assert log.lines == []


def test_recorder_shows_faults_and_results() -> None:
    m, log = machine(), Recorder()

    def fail(p: object, regs: object) -> None:
        raise LookupError

    with Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="f", pre_handler=fail, fault_handler=log.fault("f", 1)))
        k.register_kprobe(Kprobe(symbol_name="f", pre_handler=log.pre("g", 0)))
        assert m.call("f", 1) == 6
    assert log.lines == ["pre g", "fault f LookupError"]


def test_case_file(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("# comment\n%flags f 30\n%keep a b\n%slot 00000001\n%skip 12340000 ffff0000 "
                                       "wrong in the engine\n"
                                       "01020304 | add #1 | step | ADD\n%mode 1\n0506 | b . | simulate | B\n")
    with pytest.raises(ValueError, match=r"other.txt:2: .*base.txt:8: 2 bytes are no multiple of 4"):
        read_cases(_including(tmp_path, "swap 4"))
    file = read_cases(_including(tmp_path, "swap 2"))
    assert [(c.code.hex(), c.asm, c.outcome, c.row, c.mode) for c in file.cases] == [
        ("ff", "nop", "reject", "NOP", 0), ("02010403", "add #1", "step", "ADD", 0),
        ("0605", "b .", "simulate", "B", 1)]
    assert (file.flags, file.keep, file.slots) == ({"f": 0x30}, {"a", "b"}, [b"\0\0\1\0"])
    assert file.skip(bytes.fromhex("34125678")) == "wrong in the engine"
    assert not file.skip(bytes.fromhex("3412"))
    assert not file.skip(bytes.fromhex("0034125678"))


def _including(tmp_path: Path, how: str) -> Path:
    path = tmp_path / "other.txt"
    path.write_text(f"ff | nop | reject | NOP\n%include base.txt {how}\n")
    return path


def test_skip_inside(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("%skip-inside 0f31 ffff time\n")
    assert read_cases(path).skip(bytes.fromhex("660f31")) == "time"


@pytest.mark.parametrize(("line", "message"), [
    ("01 | x | maybe | X", "outcome 'maybe'"), ("01 | x | step", "not enough values"),
    ("0g | x | step | X", "non-hexadecimal"),
    ("%what", "no directive %what"), ("%flags f", "list index|tuple index"), ("%skip 00 ffff why", "same length"),
    ("%skip 00 ff", "the reason"),
])
def test_case_file_errors_name_the_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"\n{line}\n")
    with pytest.raises(ValueError, match=rf"bad\.txt:2: .*({message})"):
        read_cases(path)


def test_encodings_are_repeatable_and_various() -> None:
    arch = architectures.get("arm64")
    file = read_cases(Path(__file__).parent / "arch" / "cases" / "arm64.txt")

    def some(seed: int) -> list[bytes]:
        return [code for (code, _), _ in zip(encodings(random.Random(seed), arch, file), range(200), strict=False)]

    assert some(1) == some(1) != some(2)
    assert len(set(some(1))) > 180
    assert all(len(code) == 4 for code in some(1))


@pytest.mark.parametrize("works", [True, False], ids=["contexts", "one by one"])
def test_trying_contexts_leaves_the_registers_alone(monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    with UnicornMachine.from_code(bytes(64), arch="sparc64", base=0x10000) as m:
        if not works:  # an engine whose contexts hold nothing
            monkeypatch.setattr(m.parts.memory.engine, "restore", lambda context: None)
        m.regs["o0"], m.regs["o1"] = 0x1234, 5
        thaw = Freezer(m).freeze()
        assert m.regs["o0"] == 0x1234
        m.regs["o0"], m.regs["o1"] = 1, 2
        thaw()
        assert (m.regs["o0"], m.regs["o1"]) == (0x1234, 5)
