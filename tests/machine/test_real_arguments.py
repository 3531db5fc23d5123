"""Floating-point arguments and results of calls, and floats in registers."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib import util
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kprobes import BadArgument, Kprobes, UnicornMachine, UnknownRegister, Unsupported

pytestmark = pytest.mark.quick
HERE = Path(__file__).parent
TARGETS = {"x86_64": "x86_64-linux-musl", "arm64": "aarch64-linux-musl", "riscv64": "riscv64-linux-musl",
           "s390x": "s390x-linux-musl", "mips64": "mips64-linux-muslabi64",
           "arm": "arm-linux-musleabihf"}


def built(arch: str, folder: Path, *options: str) -> Path:
    """The functions of reals.c, in a shared object."""
    if util.find_spec("ziglang") is None:
        pytest.skip("needs ziglang's compiler")
    out = folder / f"{arch}.so"
    target = TARGETS[arch]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-O1", "-shared", "-nostdlib", "-fPIC",
                    "-fno-builtin", "-fno-sanitize=all", *options, "-o", str(out), str(HERE / "reals.c")],
                   check=True, capture_output=True)
    return out


@pytest.fixture(scope="module", params=TARGETS)
def m(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with UnicornMachine.load(built(request.param, tmp_path_factory.mktemp("reals"), "-g")) as machine:
        yield machine


@pytest.fixture(scope="module", params=TARGETS)
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with UnicornMachine.load(built(request.param, tmp_path_factory.mktemp("reals"), "-g0", "-Wl,--strip-debug")) as machine:
        yield machine


def test_types_come_from_debug_information(m: Any) -> None:
    assert m.call("add", 2.5, 0.25) == 2.75
    assert m.call("add", 2.5, 3) == 5.5
    assert m.call("add_singles", 2.5, 0.25) == 2.75
    assert m.call("mixed", -1, 2.5, 3, 4.0, "ab") == -1 + 25 + 300 + 4000 + ord("b")
    assert m.call("truncated", -7.9) == -7
    assert m.call("variable", 2, 0.5, 2.5) == 3.0  # debug information says that more may follow
    assert m.call("byte", 200.0) == 200
    assert m.call("many", *(float(n) for n in range(1, 12))) == sum(n * n for n in range(1, 12))
    assert m.call("crowded", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10.0, 11, 12.0) == sum(n * n for n in range(1, 13))


def test_types_come_from_a_prototype(bare: Any) -> None:
    m = bare
    assert m.call("add", 2.5, 0.25, prototype="double add(double a, double b);") == 2.75
    assert m.call("add", 1, 2, prototype="double(double, double)") == 3.0
    assert m.call("add_singles", 2.5, 0.25, prototype="float f(float, float)") == 2.75
    assert m.call("half", 5, prototype="double half(int)") == 2.5
    assert m.call("half", -5, prototype="double half(int)") == -2.5
    assert m.call("truncated", -7.9, prototype="int truncated(double)") == -7
    assert m.call("truncated", 7.9, prototype="unsigned truncated(double)") == 7
    room = bytearray(8)
    assert m.call("store", room, 1.5, prototype="void store(double *to, double value)") is None
    order = "little" if m.arch.order.value == "little" else "big"
    assert int.from_bytes(room, order) == 0x3FF8000000000000
    mixed = "double mixed(int a, double b, long c, float d, const char *e)"
    assert m.call("mixed", -1, 2.5, 3, 4.0, b"ab", prototype=mixed) == -1 + 25 + 300 + 4000 + ord("b")
    assert m.call("variable", 3, 1.5, 2.5, 3.0, prototype="double variable(int, ...)") == 7.0
    more = [float(n) for n in range(12)]
    assert m.call("variable", 12, *more, prototype="double variable(int, ...)") == 66.0


def test_registers_are_put_back(m: Any) -> None:
    names = [name for name in m.regs.names if name != m.arch.regs.pc]
    before = [m.regs[name] for name in names]
    assert m.call("crowded", *range(9), 1.5, 2, 2.5)
    assert [m.regs[name] for name in names] == before


def test_calls_in_handlers(m: Any) -> None:
    with Kprobes(m) as k:
        seen: list[Any] = []
        k.kprobe("add")(lambda p, regs: seen.append(m.call("half", 3, prototype="double half(int)")))
        assert m.call("add", 2.5, 0.25) == 2.75
        assert seen == [1.5]


def test_integers_are_as_ever(m: Any) -> None:
    """Without a float and without a prototype no type is looked up: the result is a register's."""
    result = m.call("half", 3)
    assert isinstance(result, int) and result == m.call("half", 3)
    assert m.call("half", 3, prototype="double half(int)") == 1.5


@pytest.mark.parametrize("args", [(2.5,), (2.5, 1, 3), (2.5, "a"), (2.5, None), (2.5, b"")])
def test_arguments_that_do_not_fit_the_types(m: Any, args: tuple[Any, ...]) -> None:
    with pytest.raises(BadArgument):
        m.call("add", *args)


def test_a_float_for_an_integer(m: Any) -> None:
    with pytest.raises(BadArgument, match="argument 1 is a float, and the parameter an integer"):
        m.call("mixed", 2.5, 2.5, 3, 4.0, "ab")
    assert m.call("wide", 2.5) == 2.5


def test_nothing_is_known_of_the_function(bare: Any) -> None:
    with pytest.raises(BadArgument, match=r"argument 2 is a float, and the function's types are not known.*prototype="):
        bare.call("add", 1, 2.5)


@pytest.mark.parametrize("text", ["", "add", "double add(double", "long double add(int)", "double add(struct x)",
                                  "double f(void, int)", "dbl f(int)", "int f(int (*)(int))", "float double f()",
                                  "double f(long double)", "double f(int complex)", "double f(char _Complex)",
                                  "int f(unsigned float)", "int f(float int)", "int f(long double x)"])
def test_prototypes_that_are_none(bare: Any, text: str) -> None:
    with pytest.raises(BadArgument, match=r"is no prototype|is not understood|of type void"):
        bare.call("add", prototype=text)


@pytest.mark.parametrize(("text", "value"), [
    ("int f(void)", -1), ("unsigned int f(void)", 0xFFFFFFFF), ("char f()", -1), ("unsigned char f()", 255),
    ("uint16_t f()", 0xFFFF), ("long f()", -1), ("unsigned long long f()", (1 << 64) - 1), ("void *f()", (1 << 64) - 1),
    ("const char *name(void)", (1 << 64) - 1), ("void f(void)", None), ("short int f()", -1), ("size_t f()", (1 << 64) - 1)])
def test_results_of_prototypes(text: str, value: Any) -> None:
    minus_one = bytes.fromhex("48c7c0ffffffffc3")  # mov rax, -1; ret
    with UnicornMachine.from_code(minus_one, arch="x86_64", symbols={"f": 0x10000}) as m:
        assert m.call("f", prototype=text) == value


@pytest.mark.parametrize(("arch", "back", "value"), [
    ("ppc", "4e800020", 0x1_00000002), ("armeb", "1eff2fe1", 0x1_00000002), ("arm", "1eff2fe1", 0x2_00000001)])
def test_results_of_two_registers(arch: str, back: str, value: int) -> None:
    """The first register has the high half where the guest is big-endian."""
    with UnicornMachine.from_code(bytes.fromhex(back), arch=arch, symbols={"f": 0x10000}) as m:
        assert m.call("f", 1, 2, prototype="long long f(int, int)") == value


@pytest.mark.parametrize(("arch", "back"), [("arm64", "c0035fd6"), ("arm", "1eff2fe1"), ("ppc", "4e800020"),
                                            ("riscv64", "67800000"), ("ppc64", "4e800020"), ("armeb", "1eff2fe1")])
def test_char_has_no_sign_there(arch: str, back: str) -> None:
    with UnicornMachine.from_code(bytes.fromhex(back), arch=arch, symbols={"f": 0x10000}) as m:
        assert m.call("f", 200, prototype="char f(int)") == 200
        assert m.call("f", 200, prototype="signed char f(int)") == -56
        assert m.call("f", 200, prototype="int8_t f(int)") == -56


def test_pointers_have_registers_of_their_own() -> None:
    """TriCore's convention: what is a pointer by its type goes to a4, with a prototype and without."""
    with UnicornMachine.from_code(bytes.fromhex("0090"), arch="tricore", symbols={"f": 0x10000}) as m, Kprobes(m) as k:
        seen: list[Any] = []
        k.kprobe("f")(lambda p, regs: seen.append((regs["a4"], regs["d4"], m.read(regs["a4"], 2))))
        m.call("f", b"ab", 5)
        m.call("f", b"ab", 5, prototype="void f(const char *, int)")
        m.call("f", 5, b"ab", prototype="void f(int, const char *)")
        m.call("f", 5, seen[0][0], prototype="void f(int, const char *)")
        assert [one[1:] for one in seen[:3]] == [(5, b"ab")] * 3
        assert seen[3][:2] == (seen[0][0], 5)
        with pytest.raises(Unsupported, match="pointer"):
            m.call("f", prototype="void *f(void)")


@pytest.mark.parametrize(("target", "cpu"), [("riscv64", "generic_rv64+m+a+c"), ("riscv32", "generic_rv32+m+a+f")])
def test_files_that_say_otherwise(target: str, cpu: str, tmp_path: Path) -> None:
    """Soft-float: the numbers are in registers for integers, which the file's flags say."""
    if util.find_spec("ziglang") is None:
        pytest.skip("needs ziglang's compiler")
    source, out = tmp_path / "soft.c", tmp_path / "soft"
    source.write_text("double second(double a, double b) { return b; } int same(int a) { return a; } void _start(void) {}")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-freestanding-none", f"-mcpu={cpu}", "-O1",
               "-nostdlib", "-static", "-g", "-fno-sanitize=all", str(source)]
    subprocess.run([*command, "-o", str(out)], check=True, capture_output=True)
    with UnicornMachine.load(out) as m:
        assert m.call("second", 1.5, 2.5) == 2.5
        assert m.call("second", 1.5, 2.5, prototype="double second(double, double)") == 2.5
        assert m.call("same", -3, prototype="int same(int)") == -3
    subprocess.run([*command, "-Wl,-s", "-o", str(tmp_path / "stripped")], check=True, capture_output=True)
    with UnicornMachine.load(out) as whole, UnicornMachine.load(tmp_path / "stripped") as m:
        second = whole.symbols["second"].address
        assert m.call(second, 1.5, 2.5, prototype="double second(double, double)") == 2.5


@pytest.mark.parametrize(("arch", "back"), [("riscv64", "67800000"), ("arm64", "c0035fd6")])
def test_signed_integers_have_their_sign(arch: str, back: str) -> None:
    with UnicornMachine.from_code(bytes.fromhex(back), arch=arch, symbols={"f": 0x10000}) as m:
        assert m.call("f", 0xFFFFFFFF, prototype="long f(int)") == -1
        # RISC-V's registers have unsigned numbers of 32 bits as signed ones of 64 (psABI, integer calling convention)
        assert m.call("f", 0xFFFFFFFF, prototype="long f(unsigned)") == (-1 if arch == "riscv64" else 0xFFFFFFFF)
        assert m.call("f", 0x80, prototype="long f(signed char)") == -128
        assert m.call("f", True, prototype="long f(bool)") == 1


def test_where_it_is_not_known() -> None:
    for arch in ("m68k", "sparc64"):
        unknown = f"cannot be called by its types: how {arch} passes other types than words is not known"
        with UnicornMachine.from_code(bytes(16), arch=arch, symbols={"f": 0x1000}) as m, pytest.raises(Unsupported, match=unknown):
            m.call("f", 2.5, 1.0, prototype="int f(double, double)")


# --- registers


REGISTERS = {"x86_64": ("xmm0", "xmm15"), "i386": ("xmm0",), "arm64": ("v0", "d1", "d31"), "arm": ("d0", "d15"),
             "riscv64": ("fa0", "ft3", "f10"), "riscv32": ("fa0",), "s390x": ("f0", "f15")}
SINGLES = {"arm64": ("s0", "s31"), "arm": ("s0", "s1", "s31")}


@pytest.mark.parametrize("arch", REGISTERS)
def test_floats_in_registers(arch: str) -> None:
    with UnicornMachine.from_code(bytes(16), arch=arch) as m:
        for name in REGISTERS[arch]:
            for value in (2.5, -0.0, math.inf, 1e-320, 0.1):
                m.regs[name] = value
                assert m.regs.real(name) == value
                assert m.regs[name] == int.from_bytes(pack(">d", value), "big")
        for name in SINGLES.get(arch, ()):
            m.regs[name] = 2.5
            assert (m.regs.real(name), m.regs[name]) == (2.5, 0x40200000)
            m.regs[name] = 1e300
            assert m.regs.real(name) == math.inf
        with pytest.raises(BadArgument):
            m.regs[m.arch.regs.sp] = 2.5
        with pytest.raises(BadArgument):
            m.regs.real(m.arch.regs.sp)
        with pytest.raises(BadArgument):
            m.regs.real(REGISTERS[arch][0], 3)


def test_parts_of_registers() -> None:
    with UnicornMachine.from_code(bytes(16), arch="arm64") as m:
        m.regs["v3"] = (1 << 128) - 1
        assert (m.regs["d3"], m.regs["s3"]) == ((1 << 64) - 1, (1 << 32) - 1)
        m.regs["s3"] = 5  # as FMOV S3 does
        assert m.regs["v3"] == 5
        assert "d31" in m.regs and "d32" not in m.regs
        with pytest.raises(UnknownRegister, match="d32"):
            m.regs["d32"]
    with UnicornMachine.from_code(bytes(16), arch="arm") as m:
        m.regs["d1"] = (1 << 64) - 1
        m.regs["s2"] = 1
        assert (m.regs["d1"], m.regs["s3"]) == (0xFFFFFFFF_00000001, 0xFFFFFFFF)
        m.regs["s3"] = 2
        assert m.regs["d1"] == 0x2_00000001


def test_parts_of_registers_are_put_back_after_a_mirror() -> None:
    with UnicornMachine.from_code(bytes(16), arch="arm64") as m:
        whole = 1 << 127 | 5
        m.regs["v3"] = whole
        m.regs["d4"] = 1

        def mirror() -> None:
            m.regs["d3"] = 1
            m.regs["d3"] = 2
            m.regs["s4"] = 7
            m.regs["d4"] = 8

        m.regs["v4"] = whole
        m.regs.on_copies(mirror, ())
        assert (m.regs["v3"], m.regs["v4"]) == (whole, whole)
