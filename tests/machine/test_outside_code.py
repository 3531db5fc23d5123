"""The host code between the engine and who stops it from another thread, of every host: run as a guest's."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from unicorn import UC_HOOK_CODE

from kprobes import GuestTimeout, UnicornMachine
from kprobes.machine.unicorn.host.outside import ABOUT, FREE, NUMBERS, ROW
from kprobes.machine.unicorn.host.ready import READY

pytestmark = pytest.mark.quick
ENTRY, CODE, LOOK, THEIRS, EXIT, STOP, BACK = (0x10000 + 0x800 * n for n in range(7))
BLOCK = 0x20000 + 0x400  #: translated code, as the engine makes it
HANDLE, CPU, OTHER = 0x40000, 0x50000, 0x51000
SIZE, ROWS = 8 * len(ROW), 3


class Host:
    """A host's function, behind the code that leads to it, and what is around."""

    def __init__(self, host: str, function: str, row: int) -> None:
        """row: of the engine, of two pieces with three each; -1: it has none."""
        self.arm = host == "aarch64"
        m = self.m = UnicornMachine.from_code(bytes(0x4000), arch="arm64" if self.arm else "x86_64")
        m.map(0x20000, 0x1000)
        m.map(HANDLE, 0x1000)
        words, self.pieces = m.alloc(8 * len(ABOUT)), [m.alloc(SIZE * ROWS + 16) for _ in range(2)]
        m.write(words, struct.pack("<5Q", THEIRS, LOOK, self.pieces[0], EXIT, STOP))
        for piece, behind in zip(self.pieces, (self.pieces[1], 0), strict=True):
            m.write(piece, struct.pack("<4Q", FREE, 0, 1, 0) * ROWS + struct.pack("<QQ", 0, behind))
        self.row = self.pieces[row // ROWS] + row % ROWS * SIZE if row >= 0 else m.alloc(SIZE)
        m.write(self.row, struct.pack("<4Q", HANDLE, CPU, 0, 0))
        m.write(ENTRY, bytes.fromhex(READY[host]["with-words"]) + struct.pack("<QQ", words, CODE))
        m.write(CODE, bytes.fromhex(READY[host][function]))
        self.called: list[tuple[int, int, int]] = []

    def looks(self, places: list[int], far: bool, other: bool) -> int:
        """Calls of looks in a block, with this engine as their argument; the first's is another one. Where the last
        returns to."""
        at = 0
        self.m.write(BLOCK - 0xC0 + 0x20, struct.pack("<Q", BLOCK))
        for n, place in enumerate(places):
            engine = HANDLE + (other and not n)
            if self.arm:
                code = struct.pack("<6I", 0x52800000 | (engine & 0xFFFF) << 5, 0x72A00000 | engine >> 16 << 5, 0x52800001,
                                   0x9000001E if place < 0x60 else 0xB000001E, 0x91001FDE, 0xD63F03C0)
            else:
                code = b"\x48\xbf" + struct.pack("<Q", engine) + b"\x33\xf6" + (b"\xff\x15" if far else b"\xe8")
                code += struct.pack("<i", 0x1234 - place)
            at = BLOCK + (place & -4 if self.arm else place)
            self.m.write(at, code)
        return at + len(code)

    def put(self, word: str, value: int) -> None:
        self.m.write(self.row + ROW[word], struct.pack("<Q", value))

    def word(self, word: str) -> int:
        return int(struct.unpack("<Q", self.m.read(self.row + ROW[word], 8))[0])

    def end_at(self, *places: int) -> None:
        """A jump to itself."""
        for place in places:
            self.m.write(place, bytes.fromhex("00000014" if self.arm else "ebfe"))

    def returns(self, *places: int) -> None:
        """A function that changes what it may, and is noted with its arguments."""
        for place in places:
            self.m.write(place, bytes.fromhex("c0035fd6" if self.arm else "c3"))
            self.m.uc.hook_add(UC_HOOK_CODE, self._note, begin=place, end=place)

    def _note(self, uc: object, address: int, *_: object) -> None:
        regs = self.m.regs
        self.called.append((address, regs.arg(0), regs.arg(1)))
        assert self.arm or regs.sp % 16 == 8, "the ABI wants an aligned stack"
        for name in [f"x{n}" for n in range(1, 18)] if self.arm else ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]:
            regs[name] = 0xBAD
        regs["x0" if self.arm else "rax"] = address

    def run(self, first: int, second: int) -> None:
        """Until it has come to an end."""
        names = ("x0", "x1") if self.arm else ("rdi", "rsi")
        self.m.regs[names[0]], self.m.regs[names[1]] = first, second
        self.m.regs.pc = ENTRY
        with suppress(GuestTimeout):
            self.m.run(max_insns=6000)


@pytest.mark.parametrize("host", READY)
@pytest.mark.parametrize(("change", "returns"), {
    "within a block": ({}, True), "in the second piece": ({"row": 5}, True), "no row": ({"row": -1}, False),
    "nobody asks": ({"asked": 0}, False), "deaf": ({"deaf": 1}, True), "an access failed": ({"failed": 7}, False),
    "a hook has stopped it": ({"stopped": 1}, False), "no look": ({"caller": LOOK + NUMBERS["LOOK"]}, False),
    "another frame": ({"frame": 0x20480}, False), "another CPU": ({"cpu": OTHER}, False),
    "where it begins": ({"looks": [0]}, False), "far from the function": ({"looks": [0], "far": True}, False),
    "behind a block's hook": ({"looks": [0x26]}, False), "the third": ({"looks": [0, 0x60, 0xC8]}, True),
    "where lines begin": ({"looks": [0, 0x40]}, True), "far within": ({"looks": [0, 0x60], "far": True}, True),

    "nothing known": ({"looks": [0, 0x60], "known": False}, False),
}.values(), ids=lambda value: "" if isinstance(value, bool) else "-".join(map(str, value.items())) or "plain")
def test_look(host: str, change: dict[str, object], returns: bool) -> None:
    """Who leaves a block goes on in it, or to the library's function with everything as it was."""
    h = Host(host, "look", int(str(change.get("row", 1))))
    back = h.looks([*change.get("looks", [0, 0x60])], bool(change.get("far")), bool(change.get("other")))  # type: ignore
    if not change.get("known", True):
        h.m.write(back - 20, bytes(20))
    h.end_at(THEIRS, back)
    for word in ("asked", "deaf", "cpu"):
        h.put(word, int(str(change.get(word, {"asked": 1, "deaf": 0, "cpu": CPU}[word]))))
    h.m.write(HANDLE + NUMBERS["FAILED"], struct.pack("<I", int(str(change.get("failed", 0)))))
    h.m.write(HANDLE + NUMBERS["STOPPED"], bytes([int(str(change.get("stopped", 0)))]))
    sp, caller, frame = h.m.alloc(0x100) + 0x80, change.get("caller", LOOK + 0x74), change.get("frame", back)
    if h.arm:
        h.m.write(sp, struct.pack("<4Q", 0x29, int(str(frame)), 0x19, 0x20))
        h.m.regs["lr"] = int(str(caller))
    else:
        h.m.write(sp, struct.pack("<5Q", int(str(caller)), 0, 0, 0, int(str(frame))))
    h.m.regs["sp" if h.arm else "rsp"] = sp
    h.run(CPU, back)
    if not returns:
        assert (h.m.regs.pc, h.m.regs.sp, h.m.regs.arg(0), h.m.regs.arg(1)) == (THEIRS, sp, CPU, back)
        return
    assert (h.m.regs.pc, h.m.regs.sp) == (back, sp + (0x20 if h.arm else 0x28))
    if h.arm:
        assert [h.m.regs[name] for name in ("x29", "x30", "x19", "x20")] == [0x29, back, 0x19, 0x20]


@pytest.mark.parametrize("host", READY)
@pytest.mark.parametrize("row", [0, 5, -1])
@pytest.mark.parametrize("deaf", [0, 1])
@pytest.mark.parametrize("asked", ["", "before", "meanwhile"])
def test_execute(host: str, row: int, deaf: int, asked: str) -> None:
    """Who asked before has the first block look; and whoever asked, the run is stopped by who executes it."""
    h = Host(host, "execute", row)
    h.put("cpu", OTHER)
    h.put("deaf", deaf)
    h.put("asked", int(asked == "before"))
    h.returns(THEIRS, EXIT, STOP)
    if asked == "meanwhile":
        h.m.uc.hook_add(UC_HOOK_CODE, lambda *_: h.put("asked", 1), begin=THEIRS, end=THEIRS)
    h.end_at(BACK)
    sp = h.m.alloc(0x100) + (0x80 if h.arm else 0x88)
    kept = ["x19", "x20", "x29"] if h.arm else ["rbx", "r12", "rbp"]
    for n, name in enumerate(kept):
        h.m.regs[name] = 0x1234 + n
    if h.arm:
        h.m.regs["lr"] = BACK
    else:
        h.m.write(sp, struct.pack("<Q", BACK))
    h.m.regs["sp" if h.arm else "rsp"] = sp
    h.run(HANDLE, CPU)
    known, heard = row >= 0, row >= 0 and not deaf
    assert [call[:2] for call in h.called] == [
        *[(EXIT, CPU)] * (heard and asked == "before"), (THEIRS, HANDLE), *[(STOP, HANDLE)] * (heard and bool(asked))]
    assert (THEIRS, HANDLE, CPU) in h.called
    assert (h.m.regs.pc, h.m.regs.sp) == (BACK, sp + (0 if h.arm else 8))
    assert [h.m.regs[name] for name in kept] == [0x1234 + n for n in range(3)]
    assert h.m.regs["x0" if h.arm else "rax"] == THEIRS
    assert h.word("cpu") == (CPU if known else OTHER)
    assert h.word("asked") == (bool(asked) and not heard)


@pytest.mark.parametrize("host", READY)
@pytest.mark.parametrize("cpu", [0, CPU])
def test_stop_soon(host: str, cpu: int) -> None:
    h = Host(host, "stop-soon", 0)
    h.m.write(ENTRY, bytes.fromhex(READY[host]["stop-soon"]))
    h.put("cpu", cpu)
    h.returns(EXIT)
    h.m.call(ENTRY, h.row, EXIT)
    assert h.word("asked") == 1 and [call[:2] for call in h.called] == [(EXIT, CPU)] * bool(cpu)
