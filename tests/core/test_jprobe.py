"""Mirrored-argument probes. docs/linux.md A5, B4, C5; docs/jprobe.md."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from arches import RUNNABLE
from scenes import Scene, hook, subject_machine, unicorn_machine

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe, UnicornMachine, Unsupported

WIDTH = {"paper": 32, "x86_64": 64, "arm64": 64}


def mirrored(scene: Scene, mirror: Any, *args: int, where: str = "inc") -> Any:
    """Register a mirror, call the function, unregister; the probed function returns what it always does."""
    j = Jprobe(symbol_name=where, entry=mirror)
    scene.k.register_jprobe(j)
    scene.m.call(where, *args)
    assert j.nhit == 1
    scene.k.unregister_jprobe(j)


# --- Python mirrors


def test_a_python_mirror_gets_as_many_arguments_as_it_takes(scene: Scene) -> None:
    seen: list[Any] = []
    mirrored(scene, lambda: seen.append(()), 1, 2, 3)
    mirrored(scene, lambda a: seen.append((a,)), 1, 2, 3)
    mirrored(scene, lambda a, b: seen.append((a, b)), 1, 2, 3)
    mirrored(scene, lambda a, b, c, /: seen.append((a, b, c)), 1, 2, 3)
    assert seen == [(), (1,), (1, 2), (1, 2, 3)]


def test_only_positional_parameters_count(scene: Scene) -> None:
    seen: list[Any] = []

    def mirror(a, *rest, flag="default", **more):
        seen.append((a, rest, flag, more))

    mirrored(scene, mirror, 7, 8)
    assert seen == [(7, (), "default", {})]


@pytest.mark.parametrize("arch", ["x86_64", "m68k"])
def test_a_parameter_that_only_a_keyword_gives_is_refused(arch: str) -> None:
    """Arguments have places and no names: without a default the mirror could never be called."""
    def mirror(a, *, flag):
        raise AssertionError

    with UnicornMachine.from_code(bytes(64), arch=arch, symbols={"f": (0x10000, 64)}, base=0x10000) as m, Kprobes(m) as k:
        with pytest.raises(Unsupported, match="flag"):
            k.register_jprobe(Jprobe(symbol_name="f", entry=mirror))
        assert not k.list()


def test_a_method_and_a_callable_object(scene: Scene) -> None:
    seen: list[Any] = []

    class Mirror:
        def method(self, a):
            seen.append(("method", a))

        def __call__(self, a, b):
            seen.append(("call", a, b))

    mirrored(scene, Mirror().method, 1, 2)
    mirrored(scene, Mirror(), 1, 2)
    assert seen == [("method", 1), ("call", 1, 2)]


@pytest.mark.parametrize(("annotation", "word", "value"), [
    (None, -1, None),  # the whole word, unsigned
    (int, -1, None),
    (ctypes.c_int8, 0x1FF, -1), (ctypes.c_uint8, 0x1FF, 0xFF), (ctypes.c_int16, 0x18000, -0x8000),
    (ctypes.c_uint16, 0x18000, 0x8000),
    (ctypes.c_int32, 0xFFFFFFFF, -1), (ctypes.c_uint32, 0xFFFFFFFF, 0xFFFFFFFF),
    (ctypes.c_int, 0x80000000, -0x80000000),
    (ctypes.c_uint, 5, 5), (ctypes.c_short, 0xFFFF, -1), (ctypes.c_byte, 0x80, -128), (ctypes.c_ubyte, 0x180, 0x80),
    (bool, 0, False), (bool, 1, True), (ctypes.c_bool, 2, True), (ctypes.c_bool, 0x100, False),
    (ctypes.c_void_p, 0x1000, 0x1000), (ctypes.c_void_p, 0, 0),
])
def test_annotations_convert(scene: Scene, annotation: Any, word: int, value: Any) -> None:
    """C passes narrow integers in words whose upper bits mean nothing."""
    seen: list[Any] = []

    def mirror(a):
        seen.append(a)

    if annotation is not None:
        mirror.__annotations__["a"] = annotation
    mirrored(scene, mirror, word)
    assert seen == [(1 << WIDTH[scene.name]) - 1 if value is None else value]
    assert type(seen[0]) in (int, bool)


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_64_bit_annotations(name: str) -> None:
    scene = Scene(name)
    seen: list[Any] = []

    def mirror(a: ctypes.c_int64, b: ctypes.c_uint64, c: ctypes.c_long, d: ctypes.c_size_t, e: ctypes.c_ssize_t):
        seen.extend([a, b, c, d, e])

    mirrored(scene, mirror, -1, -1, -2, -2, -3)
    assert seen == [-1, (1 << 64) - 1, -2, (1 << 64) - 2, -3]
    scene.close()


@pytest.mark.parametrize(("annotation", "value"), [(ctypes.c_char_p, b"hello"), (bytes, b"hello"), (str, "hello")])
def test_strings_are_read_from_the_guest(scene: Scene, annotation: Any, value: Any) -> None:
    at = 0xC900 if scene.name == "paper" else scene.m.alloc(16)
    scene.m.write(at, b"hello\0world\0")
    seen: list[Any] = []

    def mirror(a, b):
        seen.extend([a, b])

    mirror.__annotations__.update(a=annotation, b=annotation)
    mirrored(scene, mirror, at, 0)
    assert seen == [value, None], "a null pointer is None"


def test_annotations_as_strings_and_unknown_ones(scene: Scene) -> None:
    """from __future__ import annotations makes strings of them; what cannot be evaluated is taken as a plain word."""
    seen: list[Any] = []

    def mirror(a: ctypes.c_int8, b: NoSuchType, c: list[int]):  # type: ignore[name-defined]  # noqa: F821
        seen.extend([a, b, c])

    assert isinstance(mirror.__annotations__["b"], str)
    mirrored(scene, mirror, 0x55, 2, 3)
    assert seen == [0x55, 2, 3]


def test_changing_arguments_does_not_reach_the_function(scene: Scene) -> None:
    """What the mirror gets are copies."""

    def mirror(a):
        a = 100  # noqa: F841

    j = Jprobe(symbol_name="inc", entry=mirror)
    scene.k.register_jprobe(j)
    assert scene.m.call("inc", 4) == 5


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_mirror_that_writes_registers_and_the_stack(arch: str) -> None:
    """They are copies, on every architecture: the function runs as without it."""
    with subject_machine(arch) as m:
        def spoil(a, b):
            seen.append((a, b))
            m.regs.set_arg(0, 77)
            m.regs.set_arg(1, 78)
            m.regs[m.arch.abi.returns[0]] = 79
            m.regs.sp += 64

        seen: list[tuple[int, int]] = []
        with Kprobes(m) as k, k.jprobe("tiny", entry=spoil):
            for _ in range(3):
                assert m.call("loop", 1, 5) == 6
                assert seen.pop() == (1, 5)


class _Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_int))


@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize("annotation", [ctypes.c_double, ctypes.c_float, ctypes.c_longdouble, float, ctypes.c_int64,
                                        ctypes.c_wchar_p, ctypes.py_object, ctypes.c_char, _Pair, ctypes.c_int * 2])
def test_what_is_not_one_integer_word_is_refused(arch: str, annotation: Any) -> None:
    """Or right: 64 bits where a word has as many."""
    with subject_machine(arch) as m:
        seen: list[Any] = []

        def mirror(a, b):
            seen.append((a, b))

        mirror.__annotations__["a"] = annotation
        with Kprobes(m) as k:
            j = Jprobe(symbol_name="tiny", entry=mirror)
            if annotation is ctypes.c_int64 and m.arch.bits == 64:
                k.register_jprobe(j)
                assert m.call("loop", 1, -5) == (1 - 5) & m.arch.mask and seen == [(1, -5 & m.arch.mask)]
                return
            with pytest.raises(Unsupported, match=annotation.__name__) as raised:
                k.register_jprobe(j)
            assert ";" in str(raised.value) and not j.registered


def test_pointers_that_are_counted_apart() -> None:
    """TriCore's are in address registers."""
    with UnicornMachine.from_code(bytes.fromhex("0090"), arch="tricore", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        text, seen = m.alloc(8), []
        m.write(text, b"hello\0")

        def mirror(a: int, s: str, b: int, p: ctypes.c_void_p):
            seen.append((a, s, b, p))

        m.regs["a4"], m.regs["a5"] = text, 0x1234
        with k.jprobe("f", entry=mirror):
            m.call("f", 1, 2)
        assert seen == [(1, "hello", 2, 0x1234)]


def test_the_result_of_the_mirror_is_ignored(scene: Scene) -> None:
    scene.k.register_jprobe(Jprobe(symbol_name="inc", entry=lambda a: 1))
    assert scene.m.call("inc", 4) == 5


@pytest.mark.parametrize(("name", "registers"), [("x86_64", 6), ("arm64", 8)])
def test_arguments_on_the_stack(name: str, registers: int) -> None:
    scene = Scene(name)
    seen: list[tuple[int, ...]] = []
    count = registers + 3
    mirror = eval(f"lambda {', '.join(f'a{n}' for n in range(count))}: "
                  f"seen.append(({', '.join(f'a{n}' for n in range(count))}))", {"seen": seen})
    mirrored(scene, mirror, *range(100, 100 + count))
    assert seen == [tuple(range(100, 100 + count))]
    scene.close()


def test_an_exception_in_a_mirror(scene: Scene) -> None:
    class Oops(Exception):
        pass

    def mirror(a):
        raise Oops

    j = Jprobe(symbol_name="inc", entry=mirror)
    scene.k.register_jprobe(j)
    with pytest.raises(Oops):
        scene.m.call("inc", 4)
    assert scene.m.regs.pc == scene.at("inc")
    scene.k.unregister_jprobe(j)
    assert scene.m.call("inc", 4) == 5


def test_a_mirror_that_reads_a_bad_string(scene: Scene) -> None:
    """It is the mirror's exception: the guest has done nothing wrong, and a fault_handler may handle it."""
    from kprobes import GuestFault

    def mirror(a: str):
        raise AssertionError("not called")

    j = Jprobe(symbol_name="inc", entry=mirror)
    scene.k.register_jprobe(j)
    with pytest.raises(GuestFault) as raised:
        scene.m.call("inc", scene.unmapped)
    assert raised.value.access == "read"
    j.fault_handler = lambda p, regs, trapnr: 1
    assert scene.m.call("inc", scene.unmapped) == scene.unmapped + 1


@pytest.mark.parametrize("arch", RUNNABLE)
def test_what_a_python_mirror_does_to_the_stack_is_undone_however_it_does_it(arch: str) -> None:
    """As in Linux, what it does elsewhere stays: by set_word(), with a size or without, and by write()."""
    m = subject_machine(arch)
    elsewhere = 0x5000000
    m.map(elsewhere, 0x1000, "rw")
    changes = (lambda to: m.regs.set_word(to, 0x41424344), lambda to: m.regs.set_word(to, 0x41, 1),
               lambda to: m.regs.write(to, b"changed"))
    was: list[tuple[int, bytes]] = []

    def changing(change: Any) -> Any:
        def mirror() -> None:
            place = m.regs.sp if m.arch.callers > 0 else m.regs.sp - 8
            was.append((place, m.read(place, 8)))
            change(place)
            assert m.read(place, 8) != was[-1][1]
            change(elsewhere)

        return mirror

    for change in changes:
        m.write(elsewhere, bytes(8))
        with Kprobes(m) as k, k.jprobe("tiny", entry=changing(change)):
            m.call("tiny", 1)
        place, before = was[-1]
        assert m.read(place, 8) == before
        assert any(m.read(elsewhere, 8))
    assert len(was) == len(changes)


# --- guest mirrors


@pytest.mark.parametrize("by", ["symbol", "address"])
def test_a_guest_mirror_runs_on_copies(scene: Scene, by: str) -> None:
    """mirror() spoils argument registers and the stack above it; the probed function sees nothing of that."""
    shown = scene.m.arch.regs.names[:20]
    before: dict[str, Any] = {}

    def remember(p: Kprobe, regs: Any) -> None:
        before.update({name: regs[name] for name in shown}, stack=regs.read(regs.sp, 64))

    def compare(p: Kprobe, regs: Any, flags: int) -> None:
        changed = {name for name in shown if before[name] != regs[name]}
        assert changed <= {scene.m.arch.regs.pc, scene.returns}
        assert regs.read(regs.sp, 64) == before["stack"]
        scene.lines.append("same")

    j = Jprobe(symbol_name="inc", entry="mirror" if by == "symbol" else scene.at("mirror"))
    scene.k.register_jprobe(j)
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=remember, post_handler=compare))
    assert scene.play("inc", 4) == ["same", "= 5"]
    assert (j.nhit, j.nmissed) == (1, 0)


def test_a_guest_mirror_really_runs(scene: Scene) -> None:
    """Hits inside the mirror are missed: they count."""
    inside = Kprobe(symbol_name="mirror", pre_handler=hook("never", scene.lines))
    scene.k.register_kprobe(inside)
    scene.k.register_jprobe(Jprobe(symbol_name="inc", entry="mirror"))
    assert scene.play("twice", 4) == ["= 6"]
    assert (inside.nhit, inside.nmissed) == (0, 2)


def test_a_guest_mirror_sees_the_functions_arguments() -> None:
    """It stores its first two arguments where the test can read them."""
    m = unicorn_machine("x86_64", f="lea rax, [rdi + rsi]; ret",
                        g="mov rax, 0x30000; mov [rax], rdi; mov [rax + 8], rsi; xor edi, edi; ret")
    m.map(0x30000, 0x1000, "rw")
    with Kprobes(m) as k:
        k.register_jprobe(Jprobe(symbol_name="f", entry="g"))
        assert m.call("f", 30, 12) == 42
        assert (m.read(0x30000, 16)) == (30).to_bytes(8, "little") + (12).to_bytes(8, "little")


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_a_guest_mirror_with_stack_arguments(name: str) -> None:
    """The stack arguments are private copies: the mirror overwrites one, the function adds the original."""
    code = {"x86_64": ("mov rax, [rsp + 8]; ret", "mov qword ptr [rsp + 8], 99; ret"),
            "arm64": ("ldr x0, [sp]; ret", "mov x1, 99; str x1, [sp]; ret")}[name]
    count = {"x86_64": 6, "arm64": 8}[name]
    m = unicorn_machine(name, f=code[0], g=code[1])
    with Kprobes(m) as k:
        k.register_jprobe(Jprobe(symbol_name="f", entry="g"))
        assert m.call("f", *[0] * count, 42) == 42


def test_a_guest_mirror_that_faults(scene: Scene) -> None:
    """The fault comes out, the stack is put back, and the next hit works."""
    from kprobes import GuestFault

    j = Jprobe(symbol_name="inc", entry="fetch")
    scene.k.register_jprobe(j)
    with pytest.raises(GuestFault):
        scene.m.call("inc", scene.unmapped)
    assert scene.k.idle
    good = scene.word(1)
    assert scene.m.call("inc", good) == good + 1


# --- with others


def test_colocated_in_the_documented_order(scene: Scene) -> None:
    """Kprobes and entries newest first, the jprobe last of all, though it was registered in between."""
    k, r = scene.k, scene.r
    scene.probe("old")
    k.register_jprobe(Jprobe(symbol_name="inc", entry=r.mirror("j", 2)))
    k.register_kretprobe(Kretprobe(symbol_name="inc", handler=r.returns("R"), entry_handler=r.entry("R")))
    scene.probe("new")
    assert scene.play("inc", 4, 2) == ["pre new", "entry R", "pre old", "mirror j 0x4 0x2", "post new", "post old",
                                       "return R", "= 5"]


def test_a_diverting_kprobe_hides_the_mirror(scene: Scene) -> None:
    away = scene.at("probed")

    def pre(p: Kprobe, regs: Any) -> int:
        regs.pc = away
        return 1

    scene.k.register_jprobe(Jprobe(symbol_name="inc", entry=scene.r.mirror("j", 1)))
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, optimize=False))
    assert scene.play("inc", 4) == ["= 7"]


def test_disabled_and_missed(scene: Scene) -> None:
    j = Jprobe(symbol_name="inc", entry=scene.r.mirror("j", 1))
    scene.k.register_jprobe(j)
    scene.k.disable_jprobe(j)
    assert scene.play("inc", 4) == ["= 5"]
    scene.k.enable_jprobe(j)
    scene.k.register_kprobe(Kprobe(symbol_name="probed", pre_handler=lambda p, regs: scene.m.call("inc", 1) and 0))
    assert scene.play("probed", 4) == ["= 7"]
    assert (j.nhit, j.nmissed) == (0, 1)
    assert scene.play("inc", 4) == ["mirror j 0x4", "= 5"]


def test_batches(scene: Scene) -> None:
    batch = [Jprobe(symbol_name=name, entry=scene.r.mirror(name, 1)) for name in ("inc", "twice")]
    scene.k.register_jprobes(batch)
    assert scene.play("twice", 4) == ["mirror twice 0x4", "mirror inc 0x4", "mirror inc 0x5", "= 6"]
    scene.k.unregister_jprobes(batch)
    assert scene.play("twice", 4) == ["= 6"]
