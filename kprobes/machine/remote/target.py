"""A stub: what it can do, its threads' registers, memory, breakpoints, and how it stops.

GDB's manual, appendix "Remote Protocol" ("Packets", "Stop Reply Packets", "General Query Packets")
and "Target Descriptions". What a stub says is checked before it is believed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from xml.etree import ElementTree

from ...arch._stub import StubRegister
from ...errors import GuestFault, RemoteError
from .breakpoints import StubBreakpoints
from .packets import FRAMING, TOGETHER, Connection, unescape
from .stopreplies import THREAD, StopReply, stop_of

FEATURES = b"qSupported:multiprocess+;swbreak+;hwbreak+;vContSupported+;xmlRegisters=i386"
LARGEST = 1 << 20  #: bytes of a target description, the auxiliary vector or a memory map
INCLUDES = 64
MOST_THREADS = 1 << 12
_REFUSED = re.compile(rb"E[0-9a-fA-F]{2}|E\..*", re.DOTALL)
CHUNK = 0x7F0  #: bytes of memory in one packet: QEMU's packets have 4 KiB
SMALLEST_PAGE = 1024  #: bytes: no CPU's page is smaller; they are Arm's
LINE = 256  #: bytes of code that are asked for at once, and kept while the guest stands


class EndlessObject(RemoteError):
    """A qXfer object of the stub's has LARGEST bytes and more. The connection can still be used."""


class RemoteTarget:
    """A stub, as its packets show it. Everything raises RemoteError when the stub is gone.

    Attributes:
        link: the connection.
        features: what it says that it can do: name -> "+", "-" or a value.
        stops: its breakpoints.
        traps: the signal of a trap instruction, and the bytes from there to pc; None: only the
            stub's breakpoints stop.
        resumes_threads: True where it can resume a thread alone (vCont).
    """

    def __init__(
        self,
        connection: Connection,
        takes_pc: bool = False,
        reads: int = 0,
        traps: tuple[int, int] | None = None,
    ) -> None:
        """Ask the stub what it can do.

        Args:
            connection: the connection to the stub.
            takes_pc: resume() may be told where the thread that stopped goes on. So it is under
                QEMU's user mode: it cannot hold the other threads, and a packet without a thread
                does what one with a thread does.
            reads: bytes that the stub reads at once (Connection.reads); 0: not known. Where it is
                known, the packet that resumes the guest is followed by one that asks for the
                registers at the next stop.
            traps: the signal of a trap instruction, and the bytes from there to pc; None: it does
                not stop the guest.
        """
        self.link = connection
        self._takes_pc = takes_pc
        connection.reads = reads
        self._lines: dict[int, bytes] = {}  # code of the process that is chosen, while it stands
        self._asked = False  # a g packet was sent with the resuming one: its answer will come
        self._file = b""  # that answer, after the stop
        self._unseen: StopReply | None = None  # a stop that wait() has received and not returned
        answer = connection.ask(FEATURES)
        self.features = dict(_feature(word) for word in answer.decode("latin1").split(";") if word)
        if (
            self.features.get("QStartNoAckMode") == "+"
            and connection.ask(b"QStartNoAckMode") == b"OK"
        ):
            connection.no_acknowledgements()
        # choose any thread: gdbserver has not chosen one yet
        connection.ask(b"Hgp0.0" if self.features.get("multiprocess") == "+" else b"Hg0")
        self.traps = traps if "qXfer:siginfo:read" in self.features else None
        self.stops = StubBreakpoints(connection, self.read, self.write)
        self._thread = ""  # the thread that packets for registers mean
        self._stopped_last = ""
        # the last stop's packet, and what it says: most stops are the same as the one before
        self._said: tuple[bytes, StopReply | None] = b"", None
        self._forked: Callable[[StopReply], None] | None = None  # lets a child go
        self._rejoined: Callable[[], None] | None = None  # a child has left its parent's memory
        # system calls to report, where the stub reports all; None: it reports those asked for
        self._among_all: frozenset[int] | None = None
        self._resumed: tuple[bool, str] = False, ""  # how the guest was resumed last: step, thread
        self.resumes_threads = b"c" in connection.ask(b"vCont?").split(b";")

    # --- what it is

    def transfer(self, kind: str, annex: str = "", chunk: int = CHUNK) -> bytes:
        """Return what a qXfer object holds; b"" where the stub has none. Where a later answer is no
        piece of it, the pieces before are returned.

        Args:
            kind: the object's name, as "features" or "auxv".
            annex: which one of that kind, as "target.xml".
            chunk: bytes that are asked for at a time.

        Raises:
            EndlessObject: it has 1 MiB and more.
            RemoteError: the connection is lost.
        """
        out = b""
        while len(out) < LARGEST:
            answer = self.link.ask(
                b"qXfer:%s:read:%s:%x,%x"
                % (kind.encode(), annex.encode("latin1", "replace"), len(out), chunk)
            )
            if answer[:1] not in (b"l", b"m"):
                return out
            piece = unescape(answer[1:])
            out += piece
            if answer[:1] == b"l" or not piece:
                return out
        raise EndlessObject(f"the stub's {kind} has no end", hint="use another stub")

    def described(self) -> tuple[str, tuple[StubRegister, ...]]:
        """Return what the stub's target description says.

        Returns:
            (GDB's name of the architecture, "" where it is not said; the registers in the order of
            the description: name, number and size in bytes of each, 0 where it is not said). ("",
            ()) where the stub has no description.

        Raises:
            RemoteError: the description is no XML, has entities, or includes too many files.
        """
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
                slots.append(
                    StubRegister(
                        element.get("name", ""), number, -(-_number(element, "bitsize", 0) // 8)
                    )
                )
                number += 1
        return name, tuple(slots)

    def _elements(self, text: bytes, budget: list[int]) -> Iterable[ElementTree.Element]:
        """Yield every element of a description, included files in their places.

        Args:
            text: of the XML file.
            budget: [how many files may still be read, this one included]; counted down here.

        Raises:
            RemoteError: it is no XML, has entities, or includes too many files.
        """
        budget[0] -= 1
        if budget[0] < 0 or b"<!ENTITY" in text:
            raise RemoteError(
                "the stub's target description is no such thing",
                hint="pass arch=, or use another stub",
            )
        try:
            # stubs declare no such prefix
            root = ElementTree.fromstring(text.replace(b"<xi:include", b"<include"))
        except ElementTree.ParseError as error:
            raise RemoteError(
                f"the stub's target description: {error}", hint="pass arch=, or use another stub"
            ) from None
        for element in root.iter():
            if element.tag.endswith("include"):
                yield from self._elements(
                    self.transfer("features", element.get("href", "")), budget
                )
            else:
                yield element

    # --- threads and registers

    def choose(self, thread: str) -> None:
        """Have packets for registers mean `thread` from now on; "": whichever the stub chooses.

        Code that was kept is forgotten where the thread is one of another process.

        Raises:
            RemoteError: the stub does not choose it, or is gone.
        """
        if thread != self._thread:
            self._accepted(b"Hg%s" % thread.encode(), "choose a thread")
            if thread.partition(".")[0] != self._thread.partition(".")[0]:
                self._lines.clear()  # another process has another memory
            self._thread = thread

    def threads(self) -> list[str]:
        """Ask for all threads, and return them as the stub names them; [] where it has no list.
        Names that are none of a thread are left out.
        """
        out: list[str] = []
        answer = self.link.ask(b"qfThreadInfo")
        while answer[:1] == b"m" and len(out) < MOST_THREADS:
            out += [
                name for name in answer[1:].decode("latin1").split(",") if THREAD.fullmatch(name)
            ]
            answer = self.link.ask(b"qsThreadInfo")
        return out

    def all_registers(self) -> bytes:
        """Return the register file of the chosen thread, in the layout of the stub's answer to `g`.
        Registers whose value the stub does not know are 0.

        The stub is asked, unless the file of the thread that stopped last has come with the stop;
        that is used once.
        """
        known = self._file if self._thread == self._stopped_last else b""
        self._file = b""
        answer = known or self.link.ask(b"g")
        return self._bytes(answer.replace(b"x", b"0"), "registers")

    def set_all_registers(self, data: bytes) -> None:
        """Write the register file of the chosen thread by a G packet.

        Args:
            data: the file, as all_registers() gives it.
        """
        self._file = b""
        self._accepted(b"G%s" % data.hex().encode(), "write registers")

    def register(self, number: int) -> bytes:
        """Return the bytes of one register of the chosen thread; b"" where the stub has none of
        this number.
        """
        return self.registers([number])[0]

    def registers(self, numbers: list[int]) -> list[bytes]:
        """Return the bytes of several registers of the chosen thread, asked for at once; b"" for
        each that the stub does not have. Digits that the stub does not know count as 0.

        Args:
            numbers: of the registers.
        """
        answers = self.link.ask_all([b"p%x" % number for number in numbers])
        return [
            b"" if _refused(answer) else self._bytes(answer.replace(b"x", b"0"), "a register")
            for answer in answers
        ]

    def set_registers(self, values: list[tuple[int, bytes]]) -> list[bool]:
        """Write registers of the chosen thread, all at once.

        Args:
            values: (number, bytes) of each.

        Returns:
            For each whether the stub has written it.
        """
        self._file = b""
        answers = self.link.ask_all(
            [b"P%x=%s" % (number, data.hex().encode()) for number, data in values]
        )
        return [answer == b"OK" for answer in answers]

    # --- memory

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory, with the guest's own bytes where the stub shows breakpoints.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is not mapped (access "read"); `address` is the first such byte.
        """
        out = bytearray()
        starts = range(addr, addr + size, CHUNK)
        for answer in self.link.ask_all(
            [b"m%x,%x" % (at, min(CHUNK, addr + size - at)) for at in starts]
        ):
            piece = b"" if _refused(answer) else self._bytes(answer, "memory")
            out += piece
            if len(piece) < CHUNK and len(out) < size:
                at = addr + len(out)
                raise GuestFault(
                    "memory is not mapped",
                    address=at if piece else self._first_unmapped(at, addr + size),
                    access="read",
                    by_python=True,
                )
        return self.stops.over(addr, bytes(out[:size]))

    def _first_unmapped(self, start: int, end: int) -> int:
        """Return the first address of a range that the stub cannot read, as far as it tells: where
        it reads a byte of every page, `start`.

        Args:
            start: address of the first byte, in the packet that was refused.
            end: address behind the last one.
        """
        end = min(end, start + CHUNK)
        places = [start, *range((start | SMALLEST_PAGE - 1) + 1, end, SMALLEST_PAGE)]
        if len(places) == 1:
            return start
        answers = self.link.ask_all([b"m%x,1" % at for at in places])
        return next(
            (at for at, answer in zip(places, answers, strict=True) if _refused(answer)), start
        )

    def code(self, addr: int, size: int) -> bytes:
        """Return guest code, without the stub's breakpoints, from lines of 256 bytes that are kept
        until the guest runs.

        Code is read instruction by instruction, and each packet costs a turn.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is not mapped (access "read").
        """
        first = addr & -LINE
        out = b""
        for start in range(first, addr + size, LINE):
            if start not in self._lines:
                try:
                    self._lines[start] = self.read(start, LINE)
                except GuestFault:
                    return self.read(addr, size)  # a part of the line may be mapped
            out += self._lines[start]
        return out[addr - first : addr - first + size]

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, read-only parts too. Breakpoints of the stub's in the range, where
        the stub shows them in memory, are taken out meanwhile, and inserted again.

        Args:
            addr: address of the first byte.
            data: what to write.

        Raises:
            GuestFault: it is not mapped, or the stub does not write there (access "write");
                nothing is written.
        """
        if self._lines:
            for start in range(addr & -LINE, addr + len(data), LINE):
                self._lines.pop(start, None)
        if self.stops.shown(addr, addr + len(data)):
            with self.stops.away(addr, addr + len(data)):
                self.write(addr, data)
            return
        end = addr + len(data)
        # Stubs write page by page, and stop at the first one that they cannot write. HAZARD: a read
        # may change a device; nothing is read where the write ends in its first page.
        before = b""
        if data and addr // SMALLEST_PAGE != (end - 1) // SMALLEST_PAGE:
            try:
                before = self.read(addr, len(data))
            except GuestFault as fault:
                raise _unwritable(fault.address or addr) from None
        for at in range(0, len(data), CHUNK // 2):
            piece = data[at : at + CHUNK // 2]
            if not self._written(addr + at, piece):
                self._put_back(addr, before)
                raise _unwritable(addr + at)

    def _written(self, addr: int, piece: bytes) -> bool:
        """Write guest memory by one packet; return True if the stub has done so.

        Args:
            addr: address of the first byte.
            piece: what to write, CHUNK // 2 bytes at most.
        """
        return self.link.ask(b"M%x,%x:%s" % (addr, len(piece), piece.hex().encode())) == b"OK"

    def _put_back(self, addr: int, before: bytes) -> None:
        """Write back, page by page, the bytes that a partly refused write has changed; end at the
        first page that the stub refuses.

        Args:
            addr: address of the first byte.
            before: the bytes that were there; b"": nothing was written.
        """
        at = addr
        end = addr + len(before)
        while at < end:
            stop = min(end, (at | SMALLEST_PAGE - 1) + 1)
            if not self._written(at, before[at - addr : stop - addr]):
                return
            at = stop

    @property
    def tells_calls(self) -> bool:
        """Whether the stub can stop the guest at system calls, so that report_calls() has an
        effect.
        """
        return self.features.get("QCatchSyscalls") == "+"

    def report_calls(self, numbers: Sequence[int], among_all: bool = False) -> None:
        """Have the stub stop the guest before these system calls, and no others; do nothing where
        the stub cannot.

        Args:
            numbers: of the calls.
            among_all: True: the stub tells of all calls or of none; wait() resumes the guest at
                once after the others.
        """
        wanted = frozenset(numbers) if among_all else None
        if not self.tells_calls or (among_all and wanted == self._among_all):
            return
        self._among_all = wanted
        which = b"" if among_all else b"".join(b";%x" % number for number in numbers)
        self.link.ask(b"QCatchSyscalls:1" + which if numbers else b"QCatchSyscalls:0")

    def _is_other_call(self, stop: StopReply) -> bool:
        """Return True for a stop at a system call that the stub tells of only because it tells of
        all.
        """
        if self._among_all is None:
            return False
        return stop.returned or (stop.call is not None and stop.call not in self._among_all)

    @property
    def children_have_breakpoints(self) -> bool:
        """Whether a forked child has the stub's breakpoints in its memory.

        QEMU's user mode removes them itself, and tells of no vfork(): there a child never has its
        parent's memory.
        """
        return self.features.get("vfork-events") == "+"

    def report_children(
        self, forked: Callable[[StopReply], None], rejoined: Callable[[], None]
    ) -> None:
        """Have the stub stop at every fork() and vfork() of the guest, where it can.

        wait() then calls these functions and resumes the guest by itself: it returns no such stop.

        Args:
            forked: (stop) is called for a new child, which has not executed anything yet; it has to
                let the child go.
            rejoined: () is called when a child of vfork() has left its parent's memory.
        """
        events = [
            name for name in ("fork-events", "vfork-events") if self.features.get(name) == "+"
        ]
        if events:
            self.link.ask(FEATURES + b"".join(b";%s+" % name.encode() for name in events))
            self._forked = forked
            self._rejoined = rejoined

    # --- running

    def goes_on(self, thread: str | None) -> bool:
        """Return True where resume() may be given the address at which this thread goes on: it has
        stopped last, and the stub allows it.
        """
        return self._takes_pc and thread == self._stopped_last

    def resume(
        self,
        *,
        signal: int = 0,
        step: bool = False,
        thread: str = "",
        at: int | None = None,
        writes: Sequence[tuple[int, bytes]] = (),
    ) -> None:
        """Let the guest run, and return at once: wait() receives its next stop.

        Code and registers that were kept are forgotten, and no thread is chosen for registers.

        Args:
            signal: number that is delivered to `thread` first; 0: none.
            step: one instruction.
            thread: runs alone, where the stub can do that; with a signal it gets that, and the
                others run as well.
            at: address where the thread that stopped goes on; only where goes_on() is True for that
                thread. None: at its pc.
            writes: (address, a few bytes) of memory that is written just before, the last ones
                together with the resuming packet, where it is known how much the stub reads.

        Raises:
            RemoteError: the stub does not write one of `writes` that is sent alone.
        """
        before = [b"M%x,%x:%s" % (to, len(data), data.hex().encode()) for to, data in writes]
        self._thread = ""  # the stub chooses anew
        self._file = b""
        self._resumed = step, thread
        if at is not None:
            self._go(b"c%x" % at, before)
            return
        action = b"s" if step else b"c"
        if signal:
            action = b"%b%02x" % (action.upper(), signal)
        if thread and self.resumes_threads:
            others = b";c" if signal and not step else b""
            self._go(b"vCont;%s:%s%s" % (action, thread.encode(), others), before)
        else:
            self._go(action, before)

    def _go(self, packet: bytes, before: Sequence[bytes] = ()) -> None:
        """Send a packet that lets the guest run, behind packets that write memory.

        Where it is known how much the stub reads at once, the registers at the next stop are asked
        for as well, and the last writes go out with `packet`: whether the stub has made these is
        not looked at.

        Args:
            packet: payload of the resuming packet.
            before: payloads of the packets that write memory.

        Raises:
            RemoteError: the stub refuses a write that is sent alone, or is gone.
        """
        self._lines.clear()
        self._asked = bool(self.link.reads)
        first = len(before)
        size = len(packet) + FRAMING
        while self._asked and first and size + len(before[first - 1]) + FRAMING <= TOGETHER:
            first -= 1
            size += len(before[first]) + FRAMING
        for early in before[:first]:
            self._accepted(early, "write memory")
        if not self._asked:
            self.link.send(packet)
            return
        self.link.send_apart(packet, b"g", before[first:])
        for _ in before[first:]:
            self.link.answer()

    def wait(self, patience: float | None, console: Callable[[bytes], None]) -> StopReply:
        """Wait for the next stop, and return it. Meanwhile children are let go, and the guest is
        resumed at system calls that were not asked for and at file I/O, which fails for it.

        Packets for registers mean the thread that has stopped from now on.

        Args:
            patience: seconds; None: no bound; less than 0: none at all.
            console: (bytes) gets what the guest prints.

        Raises:
            TimeoutError: the time is over. A stop that comes later is the next wait's.
            RemoteError: the answer is no stop reply, or the stub is gone.
        """
        deadline = None if patience is None else time.monotonic() + patience
        while self._unseen is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                raise TimeoutError
            answer = self.link.receive(left)
            if answer[:1] == b"O" and answer != b"OK":
                # OpenOCD: it is still there
                console(self._bytes(answer[1:], "output") if answer[1:] else b"")
            elif answer[:1] == b"F":
                if self._asked:
                    self.link.answer()  # the registers that were asked for
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
        stop = self._unseen
        self._unseen = None
        self._asked = False
        self._thread = self._stopped_last = stop.thread  # registers are now those of that thread
        return stop

    def _part(self, stop: StopReply, forked: Callable[[StopReply], None]) -> None:
        """Let a new child go, and resume its parent as the parent was resumed before.

        A child of vfork() runs in its parent's memory: then only the thread that called vfork() is
        resumed.

        Args:
            stop: the stop that reports the child.
            forked: called with `stop` before the parent is resumed; lets the child go.
        """
        step, thread = self._resumed
        self._look_anew()
        forked(stop)
        if stop.borrows:
            self.resume(thread=stop.thread)
            self._resumed = step, thread
        else:
            self.resume(step=step, thread=thread)

    def _go_on(self) -> None:
        """Resume the guest as the last time (the same thread; a step, or not), after a stop that
        wait() does not return. No signal is delivered.
        """
        step, thread = self._resumed
        self._look_anew()
        self.resume(step=step, thread=thread)

    def _rejoin(self, rejoined: Callable[[], None]) -> None:
        """Call `rejoined`, and resume the guest as it was resumed before a child of vfork() began,
        which has left its parent's memory.
        """
        step, thread = self._resumed
        self._look_anew()
        rejoined()
        self.resume(step=step, thread=thread)

    def _look_anew(self) -> None:
        """Receive and drop the registers that were asked for in advance, if they were, and forget
        which thread is chosen and which has stopped last. Called at a stop that wait() does not
        return. The guest is not resumed here.
        """
        if self._asked:
            self.link.answer()
        self._thread = self._stopped_last = ""
        self._asked = False

    def _stopped(self, answer: bytes) -> StopReply:
        """Parse a stop reply, and return it. Any other answer closes the connection, as answers no
        longer belong to what was asked, and raises RemoteError.

        Args:
            answer: the packet, without its frame.
        """
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

    def why(self) -> StopReply:
        """Ask the stub why the guest stands now, and return that as a stop."""
        self.link.send(b"?")
        return stop_of(self.link.receive())

    def end(self) -> StopReply | None:
        """Return the stop reply of the program's end, where the stub has sent it in place of an
        answer; None: it has not.
        """
        return stop_of(self.link.end) if self.link.end else None

    def detach(self, thread: str = "") -> None:
        """Let go of a process: it runs on, without the library and without the signal that it
        stopped with.

        Args:
            thread: one of its threads, as the stub names it.
        """
        # gdbserver 13 delivers the last one, even a SIGSTOP of ours
        if self.features.get("QProgramSignals") == "+":
            self.link.ask(b"QProgramSignals:")
        process = thread[1:].partition(".")[0] if thread.startswith("p") else ""
        self.link.ask(b"D;%s" % process.encode() if process else b"D")

    def kill(self) -> None:
        """Have the stub end the guest's process. No answer is waited for."""
        self.link.send(b"k")

    def _bytes(self, answer: bytes, what: str) -> bytes:
        """Return the bytes that an answer's hexadecimal digits stand for.

        Args:
            answer: the answer. If it is neither digits nor an error, the connection is closed.
            what: what was asked for, for the error.

        Raises:
            RemoteError: the answer is an error, or is not digits.
        """
        try:
            if not _refused(answer):
                return bytes.fromhex(answer.decode("ascii"))
        except ValueError:
            self.link.close()
        raise RemoteError(
            f"the stub's answer is no {what}: {answer[:40]!r}",
            hint="use another stub",
        )

    def _accepted(self, packet: bytes, what: str, addr: int | None = None) -> None:
        """Send a packet that must be answered by OK.

        Args:
            packet: its payload.
            what: what it asks for, for the error.
            addr: the address concerned, for the error; None: there is none.

        Raises:
            RemoteError: the answer is another one.
        """
        answer = self.link.ask(packet)
        if answer != b"OK":
            said = answer.decode("latin1")[:40] or "nothing: it does not know how"
            raise RemoteError(
                f"the stub does not {what}: it says {said!r}",
                address=addr,
                hint="use a stub that does",
            )


def _feature(word: str) -> tuple[str, str]:
    """Split a word of the stub's list of features: return (name, sign or value).

    Args:
        word: "name+", "name-", "name?" or "name=value".
    """
    name, equals, value = word.partition("=")
    return (name, value) if equals else (word[:-1], word[-1:])


def _number(element: ElementTree.Element, name: str, default: int) -> int:
    """Return the attribute `name` of an element as a number; 65,536 for a greater one; `default`
    where there is none, or it is no decimal number of up to seven digits.
    """
    text = element.get(name, "")
    if text.isascii() and text.isdecimal() and len(text) < 8:
        return min(int(text), 1 << 16)
    return default


def _unwritable(address: int) -> GuestFault:
    """Return the error for memory that cannot be written.

    Args:
        address: where the first byte is that cannot, as far as the stub tells.
    """
    return GuestFault(
        "memory is not mapped, or the stub may not write there", address=address, access="write"
    )


def _refused(answer: bytes) -> bool:
    """Return True if an answer says that the stub cannot do what was asked: it is empty, or an
    error.
    """
    return not answer or _REFUSED.fullmatch(answer) is not None
