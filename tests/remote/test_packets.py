"""Packets of the remote protocol, sound, damaged, cut, doubled and late."""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENT

from kprobes import KprobeError, Kprobes, Kretprobe, RemoteError, RemoteMachine
from kprobes.arch import get
from kprobes.machine.remote.breakpoints import kind_of
from kprobes.machine.remote.flash import unwritable
from kprobes.machine.remote.packets import Connection, escape, expand, frame, unescape
from kprobes.machine.remote.target import FEATURES, RemoteTarget
from kprobes.symbols import Symbols

pytestmark = pytest.mark.quick
Answer = Callable[[socket.socket, bytes], None]
Stub = Callable[[Answer], str]


@PATIENT
@given(st.binary(max_size=300))
def test_escapes_come_back(data: bytes) -> None:
    assert unescape(escape(data)) == data
    assert not set(escape(data)) & set(b"#$*")


@pytest.mark.parametrize(("packed", "plain"), [(b"0* ", b"0000"), (b"a0*\"00", b"a00000000"), (b"x*!y", b"xxxxxy"),
                                               (b"plain", b"plain")])
def test_run_lengths(packed: bytes, plain: bytes) -> None:
    """The manual's example: `0* ` is four zeros."""
    assert expand(packed) == plain


def test_frame() -> None:
    assert frame(b"g") == b"$g#67"


def test_a_damaged_answer_is_asked_for_again(stub: Stub) -> None:
    answers = iter([b"+$OK#00", b"$OK#9a"])
    link = Connection.open(stub(lambda channel, data: channel.sendall(next(answers)) if data != b"+" else None))
    assert link.ask(b"?") == b"OK"


def test_acknowledgements_go_with_the_next_packet(stub: Stub) -> None:
    """Half as many writes; but nobody waits for an answer while one is due: a stub may send no more before it."""
    came: list[bytes] = []

    def answer(channel: socket.socket, data: bytes) -> None:
        came.append(data)
        if data.endswith(frame(b"?")):
            channel.sendall(b"+" + frame(b"S05"))
        elif data == b"+":
            channel.sendall(frame(b"S06"))

    link = Connection.open(stub(answer), timeout=5)
    link.send(b"?")
    assert link.receive() == b"S05" and came == [frame(b"?")]
    link.send(b"?")
    assert link.receive() == b"S05" and came[1:] == [b"+" + frame(b"?")]
    assert link.receive() == b"S06" and came[2:] == [b"+"]


def test_without_acknowledgements_damage_ends_it(stub: Stub) -> None:
    link = Connection.open(stub(lambda channel, data: channel.sendall(b"$OK#00")))
    link.no_acknowledgements()
    with pytest.raises(RemoteError, match="damaged"):
        link.ask(b"?")
    assert link.closed


def test_silence_has_a_limit(stub: Stub) -> None:
    link = Connection.open(stub(lambda channel, data: None), timeout=0.2)
    with pytest.raises(RemoteError, match="not answered"):
        link.ask(b"?")
    with pytest.raises(RemoteError, match="closed"):
        link.ask(b"?")


@pytest.mark.parametrize("wait", [None, 60.0])
def test_a_guest_may_run_longer_than_an_answer_takes(stub: Stub, wait: float | None) -> None:
    rests = threading.Event()

    def answer(channel: socket.socket, data: bytes) -> None:
        if data.endswith(frame(b"c")):
            rests.wait(60)
            rests.clear()
            channel.sendall(b"+" + frame(b"S05"))

    link = Connection.open(stub(answer), timeout=0.1)
    for _ in range(2):
        threading.Timer(0.25, rests.set).start()
        link.send(b"c")
        assert link.receive(wait) == b"S05"
    link.send(b"c")
    with pytest.raises(TimeoutError):
        link.receive(0.15)
    rests.set()
    assert link.receive(wait) == b"S05"  # nothing is lost
    with pytest.raises(RemoteError, match=r"not answered for 0.1 seconds"):
        link.ask(b"c")
    rests.set()


def test_a_stub_that_dribbles_has_the_same_time(stub: Stub) -> None:
    """Bytes that come make the limit of an answer no longer."""
    def answer(channel: socket.socket, data: bytes) -> None:
        for _ in range(5000):
            channel.sendall(b"+")
            time.sleep(0.02)

    link = Connection.open(stub(answer), timeout=0.2)
    started = time.monotonic()
    with pytest.raises(RemoteError, match=r"not answered for 0.2 seconds"):
        link.ask(b"?")
    assert 0.19 < time.monotonic() - started < 30


def test_a_packet_without_end_has_a_limit(stub: Stub) -> None:
    link = Connection.open(stub(lambda channel, data: channel.sendall(b"$" + b"0" * (5 << 20))))
    with pytest.raises(RemoteError, match="without end"):
        link.ask(b"?")


@pytest.mark.parametrize("address", ["nowhere", "localhost:x", "localhost:99999", "/no/such/socket", "localhost:1", ""])
def test_addresses_where_nobody_is(address: str) -> None:
    with pytest.raises(RemoteError, match="stub"):
        RemoteMachine.connect(address, arch="arm", timeout=0.1)


def reading(size: int, answers: dict[bytes, list[bytes]]) -> Answer:
    """A stub as QEMU's of user mode is: it reads `size` bytes at once, serves what they hold, and waits for one byte
    after each answer. While the guest runs it reads nothing; when it goes on, what it has read is lost."""
    def serve(channel: socket.socket, data: bytes) -> None:
        unread, acknowledges = bytearray(data), True

        def take(many: int) -> bytes:
            if not unread:
                unread.extend(channel.recv(1 << 16))
            taken = bytes(unread[:many])
            del unread[:many]
            return taken

        while block := take(size):
            for packet in re.findall(rb"\$([^#]*)#..", block):
                channel.sendall(b"+" * acknowledges)
                for answer in answers[packet]:
                    channel.sendall(frame(answer))
                    assert not acknowledges or take(1) in (b"+", b"")
                acknowledges &= packet != b"QStartNoAckMode"
                if packet in (b"c", b"F-1,26"):
                    assert block.endswith(frame(packet)), "it reads on, and says nothing of its stop"
                    break

    return serve


STOPPED = b"T05thread:p1.1;"
SAID = {b"QStartNoAckMode": [b"OK"], b"Hgp0.0": [b"OK"], b"vCont?": [b""], b"c": [STOPPED], b"g": [b"07" * 8],
        b"F-1,26": [STOPPED], b"P0=05": [b"OK"], b"m10,2": [b"0102"], b"Hgp1.2": [b"OK"]}


def user_mode(stub: Stub, acknowledges: bool = True, **answers: list[bytes]) -> RemoteTarget:
    """A Target with such a stub."""
    features = [b"multiprocess+" + b";QStartNoAckMode+" * (not acknowledges)]
    said = SAID | {FEATURES: features} | {name.encode(): answer for name, answer in answers.items()}
    return RemoteTarget(Connection.open(stub(reading(256, said)), timeout=2), reads=256)


@pytest.mark.parametrize("acknowledges", [True, False])
def test_registers_come_with_the_stop(stub: Stub, acknowledges: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for before the guest runs on, in the stub's next read; once looked at, or once written, they are asked for
    anew. What is sent in between is read as ever."""
    target, asked = user_mode(stub, acknowledges), list[bytes]()
    send = Connection.send
    monkeypatch.setattr(Connection, "send", lambda link, *sent: (asked.extend(sent), send(link, *sent)))
    for _ in range(3):
        target.resume()
        assert target.wait(1, print).thread == "p1.1"
        assert target.all_registers() == b"\7" * 8 and not asked
        assert target.read(0x10, 2) == b"\1\2" and target.all_registers() == b"\7" * 8
        assert asked == [b"m10,2", b"g"]
        target.resume()
        target.wait(1, print)
        target.set_registers([(0, b"\5")])
        target.all_registers()
        assert asked[2:] == [b"P0=05", b"g"]
        target.resume()
        target.wait(1, print)
        target.choose("p1.2")
        target.all_registers()
        assert asked[4:] == [b"Hgp1.2", b"g"]
        asked.clear()


@pytest.mark.parametrize("acknowledges", [True, False])
@pytest.mark.parametrize("many", [1, 2, 24, 25, 100])
def test_answers_to_many_questions_are_acknowledged_before_they_come(
        stub: Stub, many: int, acknowledges: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write for as many as the stub reads at once; the stub waits for nobody between its answers."""
    writes, write = list[bytes](), Connection._write
    target = user_mode(stub, acknowledges, **{f"p{n:x}": [b"%02x" % n] for n in range(many)})
    monkeypatch.setattr(Connection, "_write", lambda link, data: (writes.append(data), write(link, data)))
    for _ in range(2):
        assert target.registers([*range(many)]) == [bytes([n]) for n in range(many)]
        assert len(writes) == 1 + (many > 34) + (many > 68)
        target.resume()
        assert target.wait(1, print).code == 5 and target.all_registers() == b"\7" * 8
        writes.clear()


def test_registers_of_a_system_call_of_the_host_are_not_those_of_the_stop(stub: Stub) -> None:
    """File I/O is asked of us while the guest waits in it."""
    target = user_mode(stub, c=[b"Fwrite,1,10,2"])
    for _ in range(3):
        target.resume()
        assert target.wait(1, print).code == 5 and target.all_registers() == b"\7" * 8


def test_a_wait_that_is_broken_off_loses_no_stop(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between a stop and its registers: who interrupts the guest then gets that stop."""
    target, answer = user_mode(stub), Connection.answer

    def interrupted(link: Connection) -> bytes:
        monkeypatch.setattr(Connection, "answer", answer)
        raise KeyboardInterrupt

    target.resume()
    monkeypatch.setattr(Connection, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        target.wait(1, print)
    assert target.wait(1, print).code == 5 and target.all_registers() == b"\7" * 8
    target.resume()
    assert target.wait(1, print).code == 5 and target.all_registers() == b"\7" * 8


@pytest.mark.parametrize("end", [b"W07", b"X0b"])
def test_the_end_has_no_registers(stub: Stub, end: bytes) -> None:
    target = user_mode(stub, c=[end])
    target.resume()
    assert target.wait(1, print).kind in ("exited", "killed")


def test_a_stop_of_another_thread_in_the_place_of_registers_is_the_end(stub: Stub) -> None:
    target = user_mode(stub, g=[STOPPED])
    target.resume()
    with pytest.raises(RemoteError, match="two threads"):
        target.wait(1, print)
    assert target.link.closed


GOOD = {b"qSupported": b"PacketSize=1000;qXfer:features:read+;qXfer:auxv:read+;QStartNoAckMode+",
        b"QStartNoAckMode": b"OK",
        b"vCont?": b"vCont;c;C;s;S", b"g": b"00" * 128, b"?": b"T05thread:p1.1;", b"Z0": b"OK", b"z0": b"OK",
        b"H": b"OK", b"P": b"OK",
        b"G": b"OK", b"M": b"OK", b"m": b"00000000", b"p": b"0000000000000000", b"c": b"T05thread:p1.1;",
        b"s": b"T05thread:p1.1;", b"vCont;": b"T05thread:p1.1;", b"qXfer": b"l"}
MEMORY = bytearray(1 << 21)  #: what stubs have from address 0 on


def remembered(packet: bytes) -> bytes | None:
    """The answer to who reads MEMORY, or writes it; None to others."""
    if (asked := re.fullmatch(rb"[mM](\w+),(\w+):?(\w*)", packet)) is None:
        return None
    start, size = int(asked[1], 16), int(asked[2], 16)
    if packet[:1] == b"m":
        return MEMORY[start:start + size].hex().encode()
    MEMORY[start:start + size] = bytes.fromhex(asked[3].decode())
    return b"OK"


def damaged(random_: random.Random, packet: bytes) -> bytes:
    """What a bad stub makes of an answer."""
    kind = random_.randrange(8)
    if kind == 0:
        return packet[:random_.randrange(len(packet) + 1)]
    if kind == 1:
        return packet * 2
    if kind == 2:
        at = random_.randrange(len(packet))
        return packet[:at] + random_.randbytes(1) + packet[at + 1:]
    if kind == 3:
        return frame(random_.randbytes(random_.randrange(40)).replace(b"#", b"").replace(b"$", b""))
    if kind == 4:
        return frame(random_.choice([b"", b"E01", b"OK", b"T05", b"W00", b"X0b", b"O41", b"F1",
                                     b"l" + random_.randbytes(5).replace(b"#", b"")]))
    return packet


@pytest.mark.parametrize("seed", range(40))
def test_a_stub_that_lies(stub: Stub, seed: int) -> None:
    """Every call ends, within bounded time, in a result or an error that says so."""
    random_ = random.Random(seed)

    def answer(channel: socket.socket, data: bytes) -> None:
        for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
            found = next((value for key, value in sorted(GOOD.items(), key=lambda item: -len(item[0]))
                          if packet.startswith(key)), b"")
            sound = b"+" + frame(found)
            channel.sendall(sound if random_.random() < 0.9 else damaged(random_, sound))

    before = time.monotonic()
    try:
        machine = RemoteMachine.connect(stub(answer), arch="mips", symbols={"f": (0x1000, 16)},
                                        scratch=(0x100000, 0x10000), timeout=0.15)
        for act in (lambda: machine.read(0x1000, 4), lambda: machine.regs.pc, lambda: machine.call("f", 1, timeout=0.2),
                    lambda: machine.run(timeout=0.2), machine.close):
            try:
                act()
            except KprobeError:
                pass
    except KprobeError:
        pass
    assert time.monotonic() - before < 30, "each wait has a limit of 0.2 seconds"


@pytest.mark.parametrize("rubbish, said", [(b"OK", "no reason to stop"), (b"\0b000000000000002c010", "no reason to stop"),
                                           (b"E01", "no reason to stop"), (b"ca000000" * 20, "two threads have stopped")])
def test_no_stop_where_one_is_due_is_the_end(stub: Stub, rubbish: bytes, said: str) -> None:
    """So it is where threads mix up a stub's answers. Probes go with the guest; closing them is no second error."""
    def answer(channel: socket.socket, data: bytes) -> None:
        for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
            found = next((value for key, value in sorted(GOOD.items(), key=lambda item: -len(item[0]))
                          if packet.startswith(key)), b"")
            found = remembered(packet) or found
            channel.sendall(b"+" + frame(rubbish if packet == b"c" else found))

    machine = RemoteMachine.connect(stub(answer), arch="mips", symbols={"f": (0x1000, 16)},
                                    scratch=(0x100000, 0x10000), timeout=1)
    with Kprobes(machine) as k:
        k.register_kretprobe(Kretprobe(symbol_name="f", handler=lambda ri, regs: None))
        with pytest.raises(RemoteError, match=said):
            machine.run(timeout=1)
        with pytest.raises(RemoteError, match="closed"):
            machine.run(timeout=1)


def test_a_description_with_entities_is_refused(stub: Stub) -> None:
    text = b'l<!DOCTYPE t [<!ENTITY a "b">]><target><architecture>&a;</architecture></target>'

    def answer(channel: socket.socket, data: bytes) -> None:
        if data != b"+":
            channel.sendall(b"+" + frame(text if b"qXfer" in data else b""))

    with pytest.raises(RemoteError, match="description"):
        RemoteTarget(Connection.open(stub(answer))).described()


def test_a_memory_map_without_end_is_none(stub: Stub) -> None:
    """Breakpoints are tried then, as where the stub has no map; a description without end makes the stub useless."""
    def answer(channel: socket.socket, data: bytes) -> None:
        for packet in re.findall(rb"\$([^#]*)#..", data, re.DOTALL):
            said = b"qXfer:memory-map:read+;qXfer:features:read+" if packet.startswith(b"qSupported") else b""
            channel.sendall(b"+" + frame(b"m" + b" " * 0x8000 if packet.startswith(b"qXfer") else said))

    target = RemoteTarget(Connection.open(stub(answer), timeout=5))
    assert unwritable(target) == ()
    with pytest.raises(RemoteError, match="no end"):
        target.described()
    target.link.close()
    with pytest.raises(RemoteError):
        unwritable(target)


def test_it_is_still_there(stub: Stub) -> None:
    """An O packet without text: OpenOCD says so while something takes long."""
    said: list[bytes] = []
    link = Connection.open(stub(lambda channel, data: channel.sendall(
        b"".join(map(frame, (b"O", b"O6869", b"O", b"T05"))) if data.endswith(frame(b"c")) else frame(b""))), timeout=5)
    target = RemoteTarget(link)
    target.resume()
    assert target.wait(5, said.append).code == 5 and b"".join(said) == b"hi"


@pytest.mark.parametrize(("arch", "code", "kind"), [
    ("riscv32", "0100", 2), ("riscv32", "13000000", 4), ("riscv64", "0100", 2), ("riscv64", "13000000", 4),
    ("arm", "0000a0e1", 4), ("armeb", "e1a00000", 4), ("cortexm", "00bf", 2), ("cortexm", "00f00000", 3),
    ("x86_64", "90", 1), ("arm64", "1f2003d5", 4), ("mips", "00000000", 4), ("s390x", "0707", 2), ("m68k", "4e71", 2),
    ("sh4", "0900", 2), ("ppc", "60000000", 4)])
def test_kinds_of_breakpoints(arch: str, code: str, kind: int) -> None:
    """As GDB's manual has them: a stub puts a trap there that is as long as what it replaces."""
    memory = bytes.fromhex(code).ljust(8, b"\0")
    assert kind_of(get(arch), Symbols(), lambda addr, size: memory[:size], 0x1000) == kind


def test_thumb_breakpoints_are_short() -> None:
    symbols = Symbols()
    symbols.mode_bits = 1
    symbols.add("thumb", 0x1000, 16, mode=1)
    arm = get("arm")
    assert [kind_of(arm, symbols, lambda addr, size: b"\0\0\xa0\xe1"[:size], at) for at in (0x1000, 0x1010)] == [2, 4]


def test_code_is_read_by_lines_that_are_kept_while_the_guest_stands(stub: Stub) -> None:
    """Until it is written, the guest runs, or another process is chosen; a hole is no reason to miss what is there."""
    asked = list[bytes]()

    def answer(channel: socket.socket, data: bytes) -> None:
        for packet in re.findall(rb"\$([^#]*)#..", data):
            said = b"OK" if packet[:1] in (b"M", b"H") else b""
            if packet[:1] == b"m":
                asked.append(packet)
                addr, size = (int(word, 16) for word in packet[1:].split(b","))
                said = bytes(at & 0xFF for at in range(addr, min(addr + size, 0x1180))).hex().encode()
            channel.sendall(b"+" + frame(said))

    target = RemoteTarget(Connection.open(stub(answer), timeout=2))
    asked.clear()
    assert [target.code(at, 4) for at in (0x1010, 0x10F0, 0x10FE)] == [bytes(range(0x10, 0x14)), bytes(range(0xF0, 0xF4)),
                                                                       b"\xfe\xff\x00\x01"]
    assert asked == [b"m1000,100", b"m1100,100", b"m10fe,4"]  # the second line ends in a hole
    asked.clear()
    target.code(0x1020, 4)
    assert asked == []
    target.write(0x1020, b"\x90")
    target.code(0x1040, 4)
    assert asked == [b"m1000,100"]
    target.choose("p2.1")
    target.code(0x1040, 4)
    assert asked == [b"m1000,100"] * 2
