"""The host code between the engine and who stops it from another thread, of every host: run as a guest's."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from native_library import HOSTS, library
from unicorn import UC_HOOK_CODE

from kprobes import GuestTimeout, UnicornMachine
from kprobes.machine.unicorn.host.known import LOOK as LOOK_SIZE
from kprobes.machine.unicorn.host.outside import FREE, ROW

pytestmark = pytest.mark.quick
LIBRARY = 0x200000
STOPPED, FAILED, TRANSLATORS = 0x56D, 0x590, 0x300  #: bytes from the handle, as engine.c has them
ENTRY, CODE, LOOK, THEIRS, EXIT, STOP, BACK, FIND = (0x10000 + 0x800 * n for n in range(8))
BLOCK = 0x20000 + 0xF90  #: translated code, as the engine makes it; a page ends in it
TRANSLATION, WORDS, TRANSLATOR = 0x20100, 0x21400, 0x44440
HOOK = LOOK + 0x2000  #: what a block calls in front of its first look
HANDLE, CPU, OTHER = 0x40000, 0x50000, 0x51000
SIZE, ROWS = 8 * len(ROW), 3


class Host:
    """A host's function, behind the code that leads to it, and what is around."""

    def __init__(self, host: str, function: str, row: int) -> None:
        """row: of the engine, of two pieces with three each; -1: it has none."""
        self.arm = host == "aarch64"
        m = self.m = UnicornMachine.from_code(bytes(0x4000), arch="arm64" if self.arm else "x86_64")
        m.map(0x20000, 0x2000)
        m.map(HANDLE, 0x1000)
        code, found = library(host, LIBRARY)
        m.map(LIBRARY, len(code), "rwx")
        m.write(LIBRARY, code)
        self.pieces = [m.alloc(SIZE * ROWS + 16) for _ in range(2)]
        about = struct.pack("<7Q", THEIRS, LOOK, self.pieces[0], EXIT, STOP, FIND, 24)
        guest = 7  # of the sixteen
        for words in (m.regs.word(found["leaving"]), found["executing"]):
            m.write(words + guest * len(about), about)
        table = found.get(function)
        self.entry = found["stop_soon"] if table is None else m.regs.word(table + 8 * guest)
        for piece, behind in zip(self.pieces, (self.pieces[1], 0), strict=True):
            m.write(piece, struct.pack("<4Q", FREE, 0, 1, 0) * ROWS + struct.pack("<QQ", 0, behind))
        self.row = self.pieces[row // ROWS] + row % ROWS * SIZE if row >= 0 else m.alloc(SIZE)
        m.write(self.row, struct.pack("<4Q", HANDLE, CPU, 0, 0))
        self.called: list[tuple[int, int, int]] = []
        self.results: dict[int, int] = {}

    def calls(self, places: list[int], how: str, hooked: bool) -> int:
        """Calls of looks in a block, the first one's of something else if it is hooked: near ones, by pages on AArch64
        (near on x86-64), or through words. Where the last returns to."""
        end = 0
        self.m.write(TRANSLATION + 24, struct.pack("<Q", BLOCK))
        self.m.write(WORDS, struct.pack("<QQ", LOOK, HOOK))
        for n, place in enumerate(places):
            at, other = BLOCK + (place & -4 if self.arm else place), hooked and not n
            code = (self._aarch64 if self.arm else self._x86_64)(at, how, HOOK if other else LOOK, WORDS + 8 * other)
            self.m.write(at, code)
            end = at + len(code)
        return end

    @staticmethod
    def _x86_64(at: int, how: str, function: int, word: int) -> bytes:
        code, to = (b"\xff\x15", word) if how == "words" else (b"\xe8", function)
        return code + struct.pack("<i", to - at - len(code) - 4)

    @staticmethod
    def _aarch64(at: int, how: str, function: int, word: int) -> bytes:
        if how == "near":
            return struct.pack("<I", 0x94000000 | (function - at >> 2 & 0x3FFFFFF))
        if how == "words":
            return struct.pack("<II", 0x5800001E | word - at >> 2 << 5, 0xD63F03C0)
        pages = (function >> 12) - (at >> 12)
        return struct.pack("<3I", 0x9000001E | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5,
                           0x910003DE | (function & 0xFFF) << 10, 0xD63F03C0)

    def put(self, word: str, value: int) -> None:
        self.m.write(self.row + 8 * ROW.index(word), struct.pack("<Q", value))

    def word(self, word: str) -> int:
        return int(struct.unpack("<Q", self.m.read(self.row + 8 * ROW.index(word), 8))[0])

    def end_at(self, *places: int) -> None:
        """A jump to itself."""
        for place in places:
            self.m.write(place, bytes.fromhex("00000014" if self.arm else "ebfe"))

    def returns(self, *places: int, what: int | None = None) -> None:
        """A function that changes what it may, and is noted with its arguments. It returns its address, or this."""
        for place in places:
            self.results[place] = place if what is None else what
            self.m.write(place, bytes.fromhex("c0035fd6" if self.arm else "c3"))
            self.m.uc.hook_add(UC_HOOK_CODE, self._note, begin=place, end=place)

    def _note(self, uc: object, address: int, *_: object) -> None:
        regs = self.m.regs
        self.called.append((address, regs.arg(0), regs.arg(1)))
        assert self.arm or regs.sp % 16 == 8, "the ABI wants an aligned stack"
        for name in [f"x{n}" for n in range(1, 18)] if self.arm else ["rdi", "rsi", "rdx", "rcx", "r8", "r9"]:
            regs[name] = 0xBAD
        regs["x0" if self.arm else "rax"] = self.results[address]

    def run(self, first: int, second: int) -> None:
        """Until it has come to an end."""
        names = ("x0", "x1") if self.arm else ("rdi", "rsi")
        self.m.regs[names[0]], self.m.regs[names[1]] = first, second
        self.m.regs.pc = self.entry
        with suppress(GuestTimeout):
            self.m.run(max_insns=6000)


HOW = ("near", "pages", "words")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("change", "returns"), {
    "within a block": ({}, True), "in the second piece": ({"row": 5}, True), "no row": ({"row": -1}, False),
    "nobody asks": ({"asked": 0}, False), "deaf": ({"deaf": 1}, True), "an access failed": ({"failed": 7}, False),
    "a hook has stopped it": ({"stopped": 1}, False), "no look": ({"caller": LOOK + LOOK_SIZE}, False),
    "another frame": ({"frame": 0x20480}, False), "another CPU": ({"cpu": OTHER}, False),
    "no translation": ({"found": 0}, True), "the third": ({"looks": [0, 0x60, 0xC8]}, True),
    **{f"within, {how}": ({"how": how}, True) for how in HOW},
    **{f"where it begins, {how}": ({"looks": [0], "how": how}, False) for how in HOW},
    **{f"behind a block's hook, {how}": ({"looks": [0, 0x26], "how": how, "hooked": True}, False) for how in HOW},
}.values(), ids=lambda value: "" if isinstance(value, bool) else "-".join(map(str, value.items())) or "plain")
def test_look(host: str, change: dict[str, object], returns: bool) -> None:
    """Who leaves a block goes on in it, or to the library's function with everything as it was."""
    h = Host(host, "leave_block", int(str(change.get("row", 1))))
    back = h.calls([*change.get("looks", [0, 0x66])], str(change.get("how", "pages")), "hooked" in change)  # type: ignore
    h.end_at(THEIRS, back)
    h.returns(FIND, what=int(str(change.get("found", TRANSLATION))))
    h.returns(EXIT)
    h.m.write(HANDLE + TRANSLATORS, struct.pack("<Q", TRANSLATOR))
    for word in ("asked", "deaf", "cpu"):
        h.put(word, int(str(change.get(word, {"asked": 1, "deaf": 0, "cpu": CPU}[word]))))
    h.m.write(HANDLE + FAILED, struct.pack("<I", int(str(change.get("failed", 0)))))
    h.m.write(HANDLE + STOPPED, bytes([int(str(change.get("stopped", 0)))]))
    sp, caller, frame = h.m.alloc(0x100) + (0x80 if h.arm else 0x88), change.get("caller", LOOK + 0x74), change.get("frame", back)
    if h.arm:
        h.m.write(sp, struct.pack("<4Q", 0x29, int(str(frame)), 0x19, 0x20))
        h.m.regs["lr"] = int(str(caller))
    else:
        h.m.write(sp, struct.pack("<5Q", int(str(caller)), 0, 0, 0, int(str(frame))))
    h.m.regs["sp" if h.arm else "rsp"] = sp
    h.run(CPU, back)
    begins = not {"looks", "how"}.isdisjoint(change) and not returns
    called = [call if call[0] == FIND else call[:2] for call in h.called]
    assert called == [(FIND, TRANSLATOR, back)] * (returns or begins) + [(EXIT, CPU)] * (h.arm and begins)
    if not returns:
        assert (h.m.regs.pc, h.m.regs.sp, h.m.regs.arg(0), h.m.regs.arg(1)) == (THEIRS, sp, CPU, back)
        return
    assert (h.m.regs.pc, h.m.regs.sp) == (back, sp + (0x20 if h.arm else 0x28))
    if h.arm:
        assert [h.m.regs[name] for name in ("x29", "x30", "x19", "x20")] == [0x29, back, 0x19, 0x20]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("row", [0, 5, -1])
@pytest.mark.parametrize("deaf", [0, 1])
@pytest.mark.parametrize("asked", ["", "before", "meanwhile"])
def test_execute(host: str, row: int, deaf: int, asked: str) -> None:
    """Who asked before has the first block look; and whoever asked, the run is stopped by who executes it."""
    h = Host(host, "execute_blocks", row)
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


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("cpu", [0, CPU])
def test_stop_soon(host: str, cpu: int) -> None:
    h = Host(host, "", 0)
    h.put("cpu", cpu)
    h.returns(EXIT)
    h.m.call(h.entry, h.row, EXIT)
    assert h.word("asked") == 1 and [call[:2] for call in h.called] == [(EXIT, CPU)] * bool(cpu)
