"""Packets of the GDB remote protocol over a socket: framing, acknowledgements, time limits.

The format is in GDB's manual, appendix "Remote Protocol", "Overview": `$payload#checksum`; `}`
escapes the next byte, `*` repeats the last one. The other end may lie, stall or send rubbish: every
question ends in an answer or a RemoteError within the time limit.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import NoReturn
from zlib import adler32

from ...errors import MachineBusy, RemoteError
from .polling import Polling
from .stopreplies import AT_ONCE, KEPT_APART

MOST = 1 << 16  # bytes that are taken at once
LONGEST = 1 << 22  # bytes of a packet, or of noise before one
RESENDS = 3
# bytes of packets sent at once: QEMU 10's user-mode stub reads 256, and answers some twice where
# there are more
TOGETHER = 240
FRAMING = 4  # bytes of a packet beside its payload
ESCAPED = frozenset(b"}#$*")
_REPEATS = re.compile(rb"(.)\*([\x20-\x7e])", re.DOTALL)
_STOPPED = re.compile(rb"[TSWX][0-9a-fA-F]{2}")
_ESCAPES = re.compile(rb"\}(.)", re.DOTALL)


def checksum(payload: bytes) -> bytes:
    """Return the checksum of a packet: the sum of its bytes modulo 256, in two hexadecimal digits.

    Adler-32's lower half is the sum of up to 256 bytes, in a quarter of sum()'s time.
    """
    total = 0
    for at in range(0, len(payload), 256):
        total += adler32(payload[at : at + 256], 0)
    return b"%02x" % (total & 0xFF)


def frame(payload: bytes) -> bytes:
    """Return a payload framed as a packet: `$payload#checksum`. Binary data in it must be escaped
    already.
    """
    return b"$%s#%s" % (payload, checksum(payload))


def escape(data: bytes) -> bytes:
    """Return binary data with the bytes escaped that may not stand in a payload."""
    return b"".join(b"}%c" % (byte ^ 0x20) if byte in ESCAPED else b"%c" % byte for byte in data)


def unescape(data: bytes) -> bytes:
    """Restore the bytes of binary data that escape() has replaced."""
    return _ESCAPES.sub(lambda found: bytes([found[1][0] ^ 0x20]), data)


def expand(payload: bytes) -> bytes:
    """Return a payload with its run lengths written out.

    In `0*C` the code of the character C, less 29, says how many more `0`s there are.
    """
    if b"*" not in payload:
        return payload
    return _REPEATS.sub(lambda found: found[1] * (found[2][0] - 28), payload)


class Connection:
    """A packet channel.

    Raises RemoteError when the other end is gone, stalls or does not speak the protocol; after that
    it is closed.

    Attributes:
        timeout: seconds that an answer may take. A stop reply of a running guest may take longer.
        busy: lock that a thread holds while it waits for answers.
        reads: bytes that the other end reads at a time, where that is known: it reads so many only
            when it is idle, and acknowledgements one by one at any time. 0: not known.
        left: the other end has closed the connection.
        end: the stop reply by which it has reported the program's end before; b"": it has not.
    """

    reads = 0

    def __init__(self, channel: socket.socket, timeout: float = 10.0) -> None:
        """Take over a socket that is connected to the stub.

        Args:
            channel: the socket.
            timeout: seconds that an answer may take.
        """
        self.timeout = timeout
        self.busy = RLock()
        self.left = False
        self.end = b""
        self._socket: socket.socket | None = channel
        self._buffer = bytearray()
        self._polling = Polling()
        self._acknowledges = True
        # acknowledgements to send: with the next packet, or before waiting for anything
        self._due = b""
        self._early = 0  # answers that were acknowledged before they have come
        self._sent = b""  # the last packets, to be sent again if the other end asks

    @classmethod
    def open(
        cls, address: str, timeout: float = 10.0, alive: Callable[[], bool] = lambda: True
    ) -> Connection:
        """Connect to a stub, trying again while none listens yet, and return the connection.

        Args:
            address: "host:port", or a Unix socket's path.
            timeout: seconds for connecting, and then for each answer.
            alive: () -> False where no stub will listen any more.

        Raises:
            RemoteError: none listens in time, none will (`alive`), or `address` is no address.
        """
        deadline = time.monotonic() + timeout
        while True:
            try:
                return cls(_connected(address, timeout), timeout)
            except (OSError, ValueError) as error:
                if isinstance(error, ValueError) or time.monotonic() > deadline or not alive():
                    raise RemoteError(
                        f"{address}: {error}",
                        hint="is a stub listening there? host:port, or a socket's path",
                    ) from None
                time.sleep(0.01)

    def no_acknowledgements(self) -> None:
        """Neither send nor expect acknowledgements from now on: QStartNoAckMode was accepted."""
        self._acknowledges = False

    def send(self, *payloads: bytes) -> None:
        """Send packets with these payloads, without waiting for an answer. They are kept, to be
        sent again if the stub asks for that.
        """
        self._sent = b"".join(map(frame, payloads))
        self._write(self._sent)

    def send_apart(self, first: bytes, then: bytes, before: Sequence[bytes] = ()) -> None:
        """Send two packets so that the other end reads the second after it has answered the first.

        Use it only where `reads` is known, and all answers to earlier packets have been read.

        Args:
            first: payload of the first packet.
            then: payload of the second one.
            before: payloads of packets that are read at once with `first`, and answered before it.
        """
        frames = b"".join(map(frame, (*before, first)))
        self._send_whole(frames, len(before) + 1, frame(then))

    def _send_whole(self, frames: bytes, answers: int, then: bytes = b"") -> None:
        """Send frames so that the stub reads all of them at once, and acknowledge their answers
        before they come.

        The frames are filled up with acknowledgements to the `reads` bytes of one of its reads.

        Args:
            frames: of packets; at most `reads` bytes.
            answers: number of answers to these.
            then: the frame of a request that the stub reads later, on its own, as when the guest
                has stopped again.
        """
        due = self._due
        self._due = b""
        self._sent = frames.rjust(self.reads, b"+")
        self._early = answers if self._acknowledges else 0
        self._write(due + self._sent + b"+" * self._early + then)

    def interrupt(self) -> None:
        """Ask a running guest to stop, out of band."""
        self._write(b"\x03")

    def ask(self, payload: bytes) -> bytes:
        """Send a packet, wait for its answer, and return the answer's payload.

        Args:
            payload: of the packet.

        Raises:
            MachineBusy: another thread waits for an answer.
            RemoteError: no answer comes in time, the program has ended, or the stub is gone.
        """
        self.take()
        try:
            self.send(payload)
            return self.answer()
        finally:
            self.busy.release()

    def ask_all(self, payloads: list[bytes]) -> list[bytes]:
        """Send packets, as many at once as is safe, and return the payloads of their answers in
        order.

        Args:
            payloads: of the packets.

        Raises:
            MachineBusy: another thread waits for an answer.
            RemoteError: an answer does not come in time, the program has ended, or the stub is
                gone.
        """
        self.take()
        try:
            return self._ask_all(payloads)
        finally:
            self.busy.release()

    def take(self) -> None:
        """Take the channel's lock `busy` for this thread; the caller calls busy.release(). It may
        be taken again within.

        Raises:
            MachineBusy: another thread has it.
        """
        if not self.busy.acquire(False):
            raise MachineBusy(
                "another thread runs this machine, or changes its probes",
                hint="wait until it has finished",
            )

    def _ask_all(self, payloads: list[bytes]) -> list[bytes]:
        """Send packets, and return the payloads of their answers in order. Several go out together,
        up to 240 bytes (TOGETHER). The calling thread holds `busy`.

        Args:
            payloads: of the packets.

        Raises:
            RemoteError: an answer does not come in time, the program has ended, or the stub is
                gone.
        """
        answers: list[bytes] = []
        while len(answers) < len(payloads):
            count, size = 0, 0
            for payload in payloads[len(answers) :]:
                size += len(payload) + FRAMING
                if count and size > TOGETHER:
                    break
                count += 1
            some = payloads[len(answers) : len(answers) + count]
            if count > 1 and self.reads >= TOGETHER:
                self._send_whole(b"".join(map(frame, some)), count)
            else:
                self.send(*some)
            answers += [self.answer() for _ in range(count)]
        return answers

    def answer(self) -> bytes:
        """Wait for the answer to a packet that was sent, and return its payload.

        Raises:
            RemoteError: a stop reply comes in its place, or nothing in time; the connection is then
                closed. A reply that tells of the program's end is kept in `end`, and `left` is
                True.
        """
        answer = self.receive()
        if answer[:1] in (b"W", b"X") and _STOPPED.match(answer):
            self.left = True
            self.end = answer
            self._fail("the program has ended")
        if _STOPPED.match(answer):  # that of another thread, unasked
            self._fail(AT_ONCE, KEPT_APART)
        return answer

    def receive(self, wait: float | None = -1.0) -> bytes:
        """Wait for the next packet, acknowledge it, and return its payload, with run lengths
        expanded. A damaged packet is asked for again, three times at most; not where packets are
        not acknowledged.

        Args:
            wait: seconds; None: no bound; less than 0: the connection's limit.

        Raises:
            TimeoutError: the caller's time is over. Nothing is lost.
            RemoteError: the connection's limit is over, the other end is gone, or it sends no sound
                packet. The connection is then closed.
        """
        patience = self.timeout if wait is not None and wait < 0 else wait
        deadline = None if patience is None else time.monotonic() + patience
        resends = RESENDS
        while True:
            packet = self._packet() if self._buffer else None
            if packet is None:
                if self._due:
                    self._write(b"")
                self._fill(deadline, own_limit=wait is not None and wait < 0)
                continue
            payload, sound = packet
            if sound:
                if self._early:
                    self._early -= 1
                elif self._acknowledges:
                    self._due += b"+"
                return expand(payload)
            if not self._acknowledges or not resends:
                self._fail("the stub sends damaged packets")
            resends -= 1
            self._write(b"-")

    def close(self) -> None:
        """Close the channel; do nothing where it is closed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def closed(self) -> bool:
        """Whether the channel is closed: nothing can be sent any more."""
        return self._socket is None

    def _packet(self) -> tuple[bytes, bool] | None:
        """Take the first whole packet out of the buffer of received bytes.

        If the stub asks for it (`-` in place of a packet), the last packets are sent again.

        Returns:
            (the packet's payload as it was sent, which expand() has yet to decode; True if its
            checksum is right); None while there is no whole packet.

        Raises:
            RemoteError: 4 MiB (LONGEST) and more have come without a whole packet; the connection
                is closed.
        """
        start = self._buffer.find(b"$")
        if start < 0:
            if b"-" in self._buffer and self._acknowledges:
                self._buffer.clear()
                self._write(self._sent)
            elif len(self._buffer) > LONGEST:
                self._fail("the stub sends noise")
            return None
        end = self._buffer.find(b"#", start)
        if end < 0 or len(self._buffer) < end + 3:
            if len(self._buffer) - start > LONGEST:
                self._fail("the stub sends a packet without end")
            return None
        payload, told = bytes(self._buffer[start + 1 : end]), bytes(self._buffer[end + 1 : end + 3])
        del self._buffer[: end + 3]
        return payload, told.lower() == checksum(payload)

    def _fill(self, deadline: float | None, own_limit: bool) -> None:
        """Wait for bytes from the stub, and append them to the buffer. `left` is set where the
        other end is gone.

        Args:
            deadline: time.monotonic() at which the waiting ends; None: no bound. The method may
                return before, with nothing read.
            own_limit: the deadline is the connection's, not the caller's.

        Raises:
            TimeoutError: the caller's deadline has come.
            RemoteError: the connection's deadline has come, or the other end is gone.
        """
        channel = self._open()
        try:
            left = self.timeout if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._limit_to(channel, left)
            data = self._polling.read(channel.fileno(), MOST, left)
            data = channel.recv(MOST) if data is None else data
        except TimeoutError:
            if deadline is None or time.monotonic() < deadline:
                return  # not over yet
            if own_limit:
                self._fail(f"the stub has not answered for {self.timeout:g} seconds")
            raise
        # closed by the other end, which has not read all that was sent
        except ConnectionResetError:
            data = b""
        except OSError as error:
            self.left = True
            self._fail(str(error))
        if not data:
            self.left = True
            self._fail("the stub has closed the connection")
        self._buffer += data

    def _write(self, data: bytes) -> None:
        """Send acknowledgements that are due, and then `data`.

        Raises:
            RemoteError: the other end is gone, or takes no data in time; the connection is then
                closed.
        """
        channel = self._open()
        try:
            self._limit_to(channel, self.timeout)
            due, self._due = self._due, b""
            channel.sendall(due + data)
        except OSError as error:
            self.left = not isinstance(error, TimeoutError)
            self._fail(str(error) or "the stub takes no data")

    def _limit_to(self, channel: socket.socket, seconds: float) -> None:
        """Set how long the channel waits, if that changes: it is a system call.

        Args:
            channel: the socket.
            seconds: how long. Where this is within a hundredth of the connection's limit, or beyond
                it, that limit is set: longer waits are several.
        """
        limit = self.timeout if seconds > 0.99 * self.timeout else seconds
        if channel.gettimeout() != limit:
            channel.settimeout(limit)

    def _open(self) -> socket.socket:
        """Return the socket. RemoteError: the connection is closed."""
        return self._fail("the connection is closed") if self._socket is None else self._socket

    def _fail(self, reason: str, hint: str = "the machine is gone: connect anew") -> NoReturn:
        """Close the connection, and raise RemoteError.

        Args:
            reason: the error's message.
            hint: what the user can do.
        """
        self.close()
        raise RemoteError(reason, hint=hint)


def _connected(address: str, timeout: float) -> socket.socket:
    """Return a socket that is connected to a stub.

    Args:
        address: "host:port", or the path of a socket, with a slash in it.
        timeout: seconds that connecting may take, and each wait afterwards.

    Raises:
        ValueError: the address is neither.
        OSError: nothing answers there.
    """
    if "/" in address:
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(timeout)
        try:
            channel.connect(address)
        except OSError:
            channel.close()
            raise
        return channel
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError("no address: host:port, or a socket's path with a slash")
    channel = socket.create_connection((host.strip("[]") or "localhost", int(port)), timeout)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return channel
