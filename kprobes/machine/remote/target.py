"""A stub: what it can do, its threads' registers, memory, breakpoints, and how it stops.

GDB's manual, appendix "Remote Protocol" ("Packets", "Stop Reply Packets", "General Query Packets") and "Target
Descriptions". What a stub says is checked before it is believed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from xml.etree import ElementTree

from ...arch._stub import Slot
from ...errors import GuestFault, RemoteError
from .packets import Connection, unescape
from .reasons import THREAD, Stop, stop_of
from .stops import Stops

FEATURES = b"qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;xmlRegisters=i386"
LARGEST = 1 << 20  #: bytes of a target description or of the auxiliary vector
INCLUDES = 64
MOST_THREADS = 1 << 12
_REFUSED = re.compile(rb"E[0-9a-fA-F]{2}|E\..*", re.DOTALL)
CHUNK = 0x7F0  #: bytes of memory in one packet: QEMU's packets have 4 KiB


class Target:
    """What can be asked of a stub. Addresses and sizes are the guest's; everything raises RemoteError when the stub is
    gone."""

    def __init__(self, connection: Connection, takes_pc: bool = False, reads: int = 0,
                 traps: tuple[int, int] | None = None) -> None:
        """takes_pc: resume() may be told where the thread that stopped goes on. QEMU's user mode: it cannot hold the
        other threads, so that a packet without a thread does what one with a thread does. reads: of the
        connection; where it is known, registers are asked for before the guest runs. traps: trap instructions stop the
        guest: the signal, and bytes from them to pc; None: they do not, only breakpoints of the stub's."""
        self.link, self._takes_pc, connection.reads = connection, takes_pc, reads
        self._asked, self._file = False, b""  # for the registers of who stops next; they came with the last stop
        self._unseen: Stop | None = None  # of a wait that was broken off
        answer = connection.ask(FEATURES)
        self.features = dict(_feature(word) for word in answer.decode("latin1").split(";") if word)
        if self.features.get("QStartNoAckMode") == "+" and connection.ask(b"QStartNoAckMode") == b"OK":
            connection.no_acknowledgements()
        connection.ask(b"Hgp0.0" if self.features.get("multiprocess") == "+" else b"Hg0")  # any: gdbserver has none yet
        self.traps = traps if "qXfer:siginfo:read" in self.features else None
        self.stops = Stops(connection, self.read, self.write)
        self._thread = ""
        self._stopped_last = ""
        self._said: tuple[bytes, Stop | None] = b"", None  # the last stop, as it was said: most are said again
        self._forked: Callable[[Stop], None] | None = None  # lets a child go
        self._rejoined: Callable[[], None] | None = None  # a child has left its parent's memory
        self._among_all: frozenset[int] | None = None  # system calls that matter, where the stub tells of all
        self._resumed: tuple[bool, str] = False, ""  # how the guest was resumed last: step, thread
        self.resumes_threads = b"c" in connection.ask(b"vCont?").split(b";")

    # --- what it is

    def transfer(self, kind: str, annex: str = "", chunk: int = CHUNK) -> bytes:
        """What a qXfer object holds, asked for in pieces of `chunk` bytes; b"" where the stub has none."""
        out = b""
        while len(out) < LARGEST:
            answer = self.link.ask(b"qXfer:%s:read:%s:%x,%x" % (kind.encode(), annex.encode("latin1", "replace"),
                                                                len(out), chunk))
            if answer[:1] not in (b"l", b"m"):
                return out
            piece = unescape(answer[1:])
            out += piece
            if answer[:1] == b"l" or not piece:
                return out
        raise RemoteError(f"the stub's {kind} has no end", hint="this is no stub that can be used")

    def described(self) -> tuple[str, tuple[Slot, ...]]:
        """(GDB's name of the architecture or "", registers) by the stub's target description; () where it has none."""
        text = self.transfer("features", "target.xml")
        if not text:
            return "", ()
        name, slots, budget = "", [], [INCLUDES]
        number = 0
        for element in self._elements(text, budget):
            if element.tag == "architecture":
                name = (element.text or "").strip()
            elif element.tag == "reg":
                number = _number(element, "regnum", number)
                slots.append(Slot(element.get("name", ""), number, -(-_number(element, "bitsize", 0) // 8)))
                number += 1
        return name, tuple(slots)

    def _elements(self, text: bytes, budget: list[int]) -> Iterable[ElementTree.Element]:
        """Every element of a description, included files in their places."""
        budget[0] -= 1
        if budget[0] < 0 or b"<!ENTITY" in text:
            raise RemoteError("the stub's target description is no such thing", hint="pass arch=, or use another stub")
        try:
            root = ElementTree.fromstring(text.replace(b"<xi:include", b"<include"))  # stubs declare no such prefix
        except ElementTree.ParseError as error:
            raise RemoteError(f"the stub's target description: {error}",
                              hint="pass arch=, or use another stub") from None
        for element in root.iter():
            if element.tag.endswith("include"):
                yield from self._elements(self.transfer("features", element.get("href", "")), budget)
            else:
                yield element

    # --- threads and registers

    def choose(self, thread: str) -> None:
        """Registers are this thread's from now on ("": whichever the stub likes)."""
        if thread != self._thread:
            self._accepted(b"Hg%s" % thread.encode(), "choose a thread")
            self._thread = thread

    def threads(self) -> list[str]:
        """Those that there are, as the stub names them; [] where it has no list."""
        out: list[str] = []
        answer = self.link.ask(b"qfThreadInfo")
        while answer[:1] == b"m" and len(out) < MOST_THREADS:
            out += [name for name in answer[1:].decode("latin1").split(",") if THREAD.fullmatch(name)]
            answer = self.link.ask(b"qsThreadInfo")
        return out

    def all_registers(self) -> bytes:
        """The register file as g sends it; what is unknown reads as 0."""
        known, self._file = self._file if self._thread == self._stopped_last else b"", b""
        answer = known or self.link.ask(b"g")
        return self._bytes(answer.replace(b"x", b"0"), "registers")

    def set_all_registers(self, data: bytes) -> None:
        """Write the register file."""
        self._file = b""
        self._accepted(b"G%s" % data.hex().encode(), "write registers")

    def register(self, number: int) -> bytes:
        """One register; b"" where the stub has none of this number."""
        return self.registers([number])[0]

    def registers(self, numbers: list[int]) -> list[bytes]:
        """Several, asked for at once."""
        answers = self.link.ask_all([b"p%x" % number for number in numbers])
        return [b"" if _refused(answer) else self._bytes(answer.replace(b"x", b"0"), "a register")
                for answer in answers]

    def set_registers(self, values: list[tuple[int, bytes]]) -> list[bool]:
        """Write registers by their numbers, all at once; False for each that the stub does not write."""
        self._file = b""
        answers = self.link.ask_all([b"P%x=%s" % (number, data.hex().encode()) for number, data in values])
        return [answer == b"OK" for answer in answers]

    # --- memory

    def read(self, addr: int, size: int) -> bytes:
        """Guest memory; GuestFault (access "read") where there is none."""
        out = bytearray()
        starts = range(addr, addr + size, CHUNK)
        for answer in self.link.ask_all([b"m%x,%x" % (at, min(CHUNK, addr + size - at)) for at in starts]):
            piece = b"" if _refused(answer) else self._bytes(answer, "memory")
            out += piece
            if len(piece) < CHUNK and len(out) < size:
                raise GuestFault("memory is not mapped", address=addr + len(out), access="read")
        return self.stops.over(addr, bytes(out[:size]))

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, read-only parts too; GuestFault (access "write") where there is none."""
        if self.stops.shown(addr, addr + len(data)):
            with self.stops.away(addr, addr + len(data)):
                self.write(addr, data)
            return
        for at in range(0, len(data), CHUNK // 2):
            piece = data[at:at + CHUNK // 2]
            if self.link.ask(b"M%x,%x:%s" % (addr + at, len(piece), piece.hex().encode())) != b"OK":
                raise GuestFault("memory is not mapped, or the stub may not write there", address=addr + at,
                                 access="write")

    @property
    def tells_calls(self) -> bool:
        """Whether report_calls() does anything."""
        return self.features.get("QCatchSyscalls") == "+"

    def report_calls(self, numbers: Sequence[int], among_all: bool = False) -> None:
        """Stop before these system calls, and no others, where the stub can do that.

        Args:
            numbers: of the calls.
            among_all: the stub tells of all calls or of none; the guest goes on at once after the others.
        """
        wanted = frozenset(numbers) if among_all else None
        if not self.tells_calls or (among_all and wanted == self._among_all):
            return
        self._among_all = wanted
        which = b"" if among_all else b"".join(b";%x" % number for number in numbers)
        self.link.ask(b"QCatchSyscalls:1" + which if numbers else b"QCatchSyscalls:0")

    def _is_other_call(self, stop: Stop) -> bool:
        """True at a system call that the stub tells of only because it tells of all."""
        if self._among_all is None:
            return False
        return stop.returned or (stop.call is not None and stop.call not in self._among_all)

    @property
    def children_have_breakpoints(self) -> bool:
        """Whether a forked child has to be rid of the stub's breakpoints. QEMU's user mode does that itself, and tells
        of no vfork(): there a child never has its parent's memory."""
        return self.features.get("vfork-events") == "+"

    def report_children(self, forked: Callable[[Stop], None], rejoined: Callable[[], None]) -> None:
        """Serve every child that the guest forks, where the stub can tell of them. No stop is reported of that.

        Args:
            forked: lets a child go, which has not executed anything yet.
            rejoined: called when a child of vfork() has left its parent's memory.
        """
        events = [name for name in ("fork-events", "vfork-events") if self.features.get(name) == "+"]
        if events:
            self.link.ask(FEATURES + b"".join(b";%s+" % name.encode() for name in events))
            self._forked = forked
            self._rejoined = rejoined

    # --- running

    def goes_on(self, thread: str | None) -> bool:
        """True where resume() may be told where this thread goes on."""
        return self._takes_pc and thread == self._stopped_last

    def resume(self, *, signal: int = 0, step: bool = False, thread: str = "", at: int | None = None) -> None:
        """Let the guest run. signal: delivered to `thread` first. step: one instruction. thread: only this one, where
        the stub can do that (with a signal: this one gets it, and the others run as well). at: where, see goes_on()."""
        self._thread, self._file = "", b""  # the stub chooses anew
        self._resumed = step, thread
        if at is not None:
            self._go(b"c%x" % at)
            return
        action = b"%c%02x" % (b"SC"[not step], signal) if signal else b"s" if step else b"c"
        if thread and self.resumes_threads:
            others = b";c" if signal and not step else b""
            self._go(b"vCont;%s:%s%s" % (action, thread.encode(), others))
        else:
            self._go(action)

    def _go(self, packet: bytes) -> None:
        self._asked = bool(self.link.reads)
        if self._asked:
            self.link.send_apart(packet, b"g")
        else:
            self.link.send(packet)

    def wait(self, patience: float | None, console: Callable[[bytes], None]) -> Stop:
        """The next stop; TimeoutError after `patience` seconds (None: never; less than 0: now), whatever is said
        meanwhile. console: gets what the guest prints."""
        deadline = None if patience is None else time.monotonic() + patience
        while self._unseen is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                raise TimeoutError
            answer = self.link.receive(left)
            if answer[:1] == b"O" and answer != b"OK":
                console(self._bytes(answer[1:], "output") if answer[1:] else b"")  # OpenOCD: it is still there
            elif answer[:1] == b"F":
                if self._asked:
                    self.link.answer()  # to what was asked for who stops
                self._go(b"F-1,26")  # file I/O for the guest: ENOSYS, and it goes on
            elif (stop := self._stopped(answer)).child and self._forked is not None:
                self._part(stop, self._forked)
            elif self._is_other_call(stop):
                self._go_on()
            elif stop.alone and self._rejoined is not None:
                self._rejoin(self._rejoined)
            else:
                self._unseen = stop
        if self._asked and self._unseen.kind == "signal":
            self._file = self.link.answer()
        stop, self._unseen, self._asked = self._unseen, None, False
        self._thread = self._stopped_last = stop.thread  # registers are now those of who stopped
        return stop

    def _part(self, stop: Stop, forked: Callable[[Stop], None]) -> None:
        """Let a child go that has begun, and its parent go on: alone, while the child runs in its memory."""
        step, thread = self._resumed
        self._look_anew()
        forked(stop)
        if stop.borrows:
            self.resume(thread=stop.thread)
            self._resumed = step, thread
        else:
            self.resume(step=step, thread=thread)

    def _go_on(self) -> None:
        """Resume the guest as it was resumed last, after a stop that is not reported."""
        step, thread = self._resumed
        self._look_anew()
        self.resume(step=step, thread=thread)

    def _rejoin(self, rejoined: Callable[[], None]) -> None:
        """Go on as before a child of vfork() began: it has left its parent's memory."""
        step, thread = self._resumed
        self._look_anew()
        rejoined()
        self.resume(step=step, thread=thread)

    def _look_anew(self) -> None:
        """Forget what was asked for before the stop, of whoever stopped last."""
        if self._asked:
            self.link.answer()
        self._thread = self._stopped_last = ""
        self._asked = False

    def _stopped(self, answer: bytes) -> Stop:
        """What a stop says. What is none is the end: nobody knows then whose answers come, nor what runs."""
        said, stop = self._said
        if stop is not None and said == answer:
            return stop
        try:
            stop = stop_of(answer)
        except RemoteError:
            self.link.close()
            raise
        self._said = answer, stop
        return stop

    def why(self) -> Stop:
        """Why nothing runs now."""
        self.link.send(b"?")
        return stop_of(self.link.receive())

    def end(self) -> Stop | None:
        """The program's, where the stub has told of it while something else was asked for."""
        return stop_of(self.link.end) if self.link.end else None

    def detach(self, thread: str = "") -> None:
        """Let go of a process: it runs on, without us and without the signal that it stopped with.

        Args:
            thread: one of its threads, as the stub names it.
        """
        if self.features.get("QProgramSignals") == "+":  # gdbserver 13 delivers the last one, even a SIGSTOP of ours
            self.link.ask(b"QProgramSignals:")
        process = thread[1:].partition(".")[0] if thread.startswith("p") else ""
        self.link.ask(b"D;%s" % process.encode() if process else b"D")

    def kill(self) -> None:
        """End the guest."""
        self.link.send(b"k")

    def _bytes(self, answer: bytes, what: str) -> bytes:
        """Hexadecimal digits. What is neither those nor an error is the end, as in _stopped()."""
        try:
            if not _refused(answer):
                return bytes.fromhex(answer.decode("ascii"))
        except ValueError:
            self.link.close()
        raise RemoteError(f"the stub's answer is no {what}: {answer[:40]!r}", hint="this is no stub that can be used")

    def _accepted(self, packet: bytes, what: str, addr: int | None = None) -> None:
        answer = self.link.ask(packet)
        if answer != b"OK":
            said = answer.decode("latin1")[:40] or "nothing: it does not know how"
            raise RemoteError(f"the stub does not {what}: it says {said!r}", address=addr, hint="use a stub that does")


def _feature(word: str) -> tuple[str, str]:
    """"name+", "name-", "name?" or "name=value"."""
    name, equals, value = word.partition("=")
    return (name, value) if equals else (word[:-1], word[-1:])


def _number(element: ElementTree.Element, name: str, default: int) -> int:
    text = element.get(name, "")
    return min(int(text), 1 << 16) if text.isascii() and text.isdigit() and len(text) < 8 else default


def _refused(answer: bytes) -> bool:
    return not answer or _REFUSED.fullmatch(answer) is not None
