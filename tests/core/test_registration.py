"""Registration: every refusal, with its class, errno and facts; a refusal changes nothing. docs/linux.md B1-B4;
docs/errors.md."""

from __future__ import annotations

import copy
import errno
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from scenes import Scene, hook, paper_machine, unchanged, unicorn_machine

from kprobes import Jprobe, Kprobe, KprobeError, Kprobes, Kretprobe, UnicornMachine
from kprobes import errors as E
from kprobes.arch._base import OutOfLine
from kprobes.machine.paper import PaperMachine


def refused(scene: Scene, probe: Any, error: type[KprobeError], number: int,
            register: str = "register_kprobe") -> KprobeError:
    """Registering raises this error with this errno and a hint, and changes nothing, however often."""
    for _ in range(2):
        with unchanged(scene, probe), pytest.raises(error) as raised:
            getattr(scene.k, register)(probe)
        assert type(raised.value) is error
        assert raised.value.errno == number
        assert raised.value.reason
        assert ";" in str(raised.value), "the message ends with what to do"
        assert isinstance(raised.value, OSError)
    return raised.value


# --- where


def test_neither_symbol_nor_address(paper: Scene) -> None:
    refused(paper, Kprobe(), E.BadLocation, errno.EINVAL)


def test_both_symbol_and_address(scene: Scene) -> None:
    error = refused(scene, Kprobe(symbol_name="inc", addr=scene.at("inc")), E.BadLocation, errno.EINVAL)
    assert (error.symbol, error.address) == ("inc", scene.at("inc"))


@pytest.mark.parametrize("register", ["register_kprobe", "register_kretprobe", "register_jprobe"])
def test_unknown_symbol_suggests(scene: Scene, register: str) -> None:
    kind = {"register_kprobe": Kprobe, "register_kretprobe": Kretprobe, "register_jprobe": Jprobe}[register]
    fields = {"entry": lambda a: None} if kind is Jprobe else {}
    error = refused(scene, kind(symbol_name="twise", **fields), E.UnknownSymbol, errno.ENOENT, register)
    assert error.symbol == "twise"
    assert "twice" in str(error)


def test_ambiguous_symbol_lists_the_addresses(paper: Scene) -> None:
    paper.m.symbols.add("same", paper.at("inc"), 4)
    paper.m.symbols.add("same", paper.at("twice"), 4)
    error = refused(paper, Kprobe(symbol_name="same"), E.AmbiguousSymbol, errno.EADDRNOTAVAIL)
    assert isinstance(error, E.AmbiguousSymbol)
    assert error.addresses == (paper.at("inc"), paper.at("twice"))
    assert all(f"{a:#x}" in str(error) for a in error.addresses)


def test_module_and_symbol(paper: Scene) -> None:
    """`module:symbol` picks one of several."""
    paper.m.symbols.add("same", paper.at("inc"), 4, module="one")
    paper.m.symbols.add("same", paper.at("twice"), 17, module="two")
    p = Kprobe(symbol_name="two:same")
    paper.k.register_kprobe(p)
    assert p.address == paper.at("twice")
    refused(paper, Kprobe(symbol_name="three:same"), E.UnknownSymbol, errno.ENOENT)


def test_offsets_add_up(scene: Scene) -> None:
    """`sym+off` and offset= both count from the symbol, or from addr."""
    size = scene.at("probed", 1) - scene.at("probed")
    second = scene.at("probed", 2)
    rest = second - scene.at("probed") - size
    for fields in ({"symbol_name": f"probed+{size:#x}", "offset": rest},
                   {"symbol_name": f"probed+{size}", "offset": rest},
                   {"symbol_name": "probed", "offset": size + rest},
                   {"addr": scene.at("probed"), "offset": size + rest}):
        p = Kprobe(**fields)
        scene.k.register_kprobe(p)
        assert p.address == second
        scene.k.unregister_kprobe(p)


def test_negative_offset(paper: Scene) -> None:
    refused(paper, Kprobe(symbol_name="twice", offset=-1), E.BadLocation, errno.EINVAL)


def test_unmapped_address(scene: Scene) -> None:
    error = refused(scene, Kprobe(addr=scene.unmapped), E.NotText, errno.EINVAL)
    assert error.address == scene.unmapped


def test_memory_that_is_not_executable(scene: Scene) -> None:
    addr = scene.word(0)
    assert refused(scene, Kprobe(addr=addr), E.NotText, errno.EINVAL).address == addr


def test_a_data_symbol_in_executable_memory(scene: Scene) -> None:
    scene.m.symbols.add("table", scene.at("fetch"), 4, kind="object")
    scene.m.symbols.add("numbers", scene.at("mirror") + 0x80, 16, kind="object")
    error = refused(scene, Kprobe(symbol_name="numbers"), E.NotText, errno.EINVAL)
    assert (error.symbol, error.address) == ("numbers", scene.at("mirror") + 0x80)


# --- what


@pytest.mark.parametrize("name", ["paper", "x86_64"])
def test_the_middle_of_an_instruction_names_the_instruction(name: str) -> None:
    scene = Scene(name)
    first = scene.at("probed")
    error = refused(scene, Kprobe(symbol_name="probed", offset=1), E.NotAnInstruction, errno.EILSEQ)
    assert error.address == first + 1
    assert f"{first:#x}" in str(error)
    assert scene.k._survey.decode(first).raw.hex(" ") in str(error)
    scene.close()


def test_an_unaligned_address_on_a_fixed_width_isa() -> None:
    scene = Scene("arm64")
    error = refused(scene, Kprobe(symbol_name="probed", offset=2), E.NotAnInstruction, errno.EILSEQ)
    assert error.address == scene.at("probed") + 2
    assert f"{scene.at('probed'):#x}" in str(error)
    scene.close()


def test_the_decoding_sees_through_breakpoints(scene: Scene) -> None:
    """The boundary check reads the original text, whatever is patched in."""
    scene.k.register_kprobes([Kprobe(addr=scene.at("probed", n)) for n in range(4)])
    assert [p.opcode for p in (scene.k.get_kprobe(scene.at("probed", n)).probes[0] for n in range(4))] == [
        scene.k._survey.decode(scene.at("probed", n)).raw for n in range(4)]
    size = scene.at("probed", 1) - scene.at("probed")
    assert scene.k.get_kprobe(scene.at("probed", 1)).insn.size == size


def test_an_instruction_that_the_architecture_refuses() -> None:
    m = paper_machine(f="add r0 1; sys; ret", g="trap; ret")
    with Kprobes(m) as k:
        for symbol, reason in (("f+3", "a system call"), ("g", "a breakpoint")):
            with pytest.raises(E.Unprobeable, match=reason) as raised:
                k.register_kprobe(Kprobe(symbol_name=symbol))
            assert raised.value.errno == errno.EINVAL


def test_a_delay_slot() -> None:
    m = paper_machine(f="djmp +6; add r0 1; ret")
    with Kprobes(m) as k:
        before = m.snapshot()
        with pytest.raises(E.Unprobeable, match="delay slot") as raised:
            k.register_kprobe(Kprobe(symbol_name="f+3"))
        assert raised.value.errno == errno.EINVAL
        assert "branch before" in str(raised.value)
        assert m.snapshot() == before
        k.register_kprobe(Kprobe(symbol_name="f"))
        assert m.call("f", 1) == 2


def test_an_exclusive_sequence() -> None:
    """Refused from the opening load to the closing store, both included; fine before and after."""
    m = paper_machine(f="nop; ll r1; add r1 1; nop; sc r1; nop; ret")
    with Kprobes(m) as k:
        for offset in (1, 3, 6, 7):
            with pytest.raises(E.Unprobeable, match="exclusive") as raised:
                k.register_kprobe(Kprobe(symbol_name="f", offset=offset))
            assert raised.value.errno == errno.EINVAL
        for offset in (0, 9, 10):
            k.register_kprobe(Kprobe(symbol_name="f", offset=offset))


def test_an_exclusive_sequence_on_arm64() -> None:
    m = unicorn_machine("arm64", f="add x1, x1, 1; l: ldxr w2, [x0]; add w2, w2, 1; stxr w3, w2, [x0]; cbnz w3, l; ret")
    with Kprobes(m) as k:
        for n, fine in enumerate((True, False, False, False, True, True)):
            assert k.check(m.symbols["f"].address + 4 * n).probeable is fine, n
            if not fine:
                with pytest.raises(E.Unprobeable, match="exclusive"):
                    k.register_kprobe(Kprobe(symbol_name="f", offset=4 * n))


def test_garbage_is_no_instruction() -> None:
    with Kprobes(PaperMachine(b"\x05\xff\x05", symbols={"f": 0x1000, "g": 0x1001})) as k, pytest.raises((E.Unprobeable,
        E.NotAnInstruction)):
        k.register_kprobe(Kprobe(symbol_name="g"))


def test_half_an_instruction_at_the_end_of_memory() -> None:
    m = PaperMachine(b"\x02" * 0xFFF + b"\x01", symbols={"f": 0x1000, "g": 0x1FFF})
    with Kprobes(m) as k, pytest.raises((E.Unprobeable, E.NotAnInstruction)):
        k.register_kprobe(Kprobe(symbol_name="g"))


def test_blacklisted(scene: Scene) -> None:
    scene.k.blacklist.add("twice")
    error = refused(scene, Kprobe(symbol_name="twice"), E.Blacklisted, errno.EINVAL)
    assert (error.symbol, error.address) == ("twice", scene.at("twice"))
    refused(scene, Kprobe(addr=scene.at("twice", 1)), E.Blacklisted, errno.EINVAL)
    scene.k.blacklist.remove("twice")
    scene.k.register_kprobe(Kprobe(symbol_name="twice"))


# --- who


def test_the_same_object_twice(scene: Scene) -> None:
    p = scene.probe("a")
    with unchanged(scene, p), pytest.raises(E.AlreadyRegistered) as raised:
        scene.k.register_kprobe(p)
    assert (raised.value.errno, raised.value.address, raised.value.symbol) == (errno.EINVAL, scene.at("inc"), "inc")
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


def test_a_probe_of_another_machine(paper: Scene) -> None:
    other = Kprobes(paper_machine())
    p = Kprobe(symbol_name="inc")
    other.register_kprobe(p)
    with pytest.raises(E.AlreadyRegistered):
        paper.k.register_kprobe(p)
    with pytest.raises(E.NotRegistered):
        paper.k.unregister_kprobe(p)
    assert p.registered
    other.close()


@pytest.mark.parametrize("call", ["unregister_kprobe", "enable_kprobe", "disable_kprobe"])
def test_a_probe_that_is_not_registered(scene: Scene, call: str) -> None:
    p = Kprobe(symbol_name="inc")
    with unchanged(scene, p), pytest.raises(E.NotRegistered) as raised:
        getattr(scene.k, call)(p)
    assert (raised.value.errno, raised.value.symbol) == (errno.EINVAL, "inc")


def test_unregister_by_the_probe_itself(scene: Scene) -> None:
    p = scene.probe("a")
    p.unregister()
    assert not p.registered
    with pytest.raises(E.NotRegistered):
        p.unregister()


def test_the_wrong_kind(paper: Scene) -> None:
    for register, probe in (("register_kprobe", Kretprobe(symbol_name="inc")),
                            ("register_kretprobe", Kprobe(symbol_name="inc")),
                            ("register_jprobe", Kprobe(symbol_name="inc"))):
        refused(paper, probe, E.BadLocation, errno.EINVAL, register)


def test_one_kprobes_per_machine(scene: Scene) -> None:
    with pytest.raises(E.AlreadyRegistered, match="close"):
        Kprobes(scene.m)
    scene.probe("a")
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


# --- return probes and jprobes


@pytest.mark.parametrize(("kind", "register"), [(Kretprobe, "register_kretprobe"), (Jprobe, "register_jprobe")])
def test_only_at_a_function_entry(scene: Scene, kind: Any, register: str) -> None:
    second = scene.at("probed", 1)
    fields = {"entry": lambda a: None} if kind is Jprobe else {}
    for place in ({"addr": second}, {"symbol_name": "probed", "offset": second - scene.at("probed")}):
        error = refused(scene, kind(**place, **fields), E.NotFunctionEntry, errno.EINVAL, register)
        assert error.address == second


@pytest.mark.parametrize("size", [4097, 1 << 20, -1])
def test_data_size_is_limited(scene: Scene, size: int) -> None:
    refused(scene, Kretprobe(symbol_name="inc", data_size=size), E.TooBig, errno.E2BIG, "register_kretprobe")
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", data_size=4096))


def test_a_second_jprobe(scene: Scene) -> None:
    first = Jprobe(symbol_name="inc", entry=lambda a: None)
    scene.k.register_jprobe(first)
    error = refused(scene, Jprobe(symbol_name="inc", entry=lambda a: None), E.JprobeExists, errno.EEXIST,
                    "register_jprobe")
    assert error.address == scene.at("inc")
    scene.k.unregister_jprobe(first)
    scene.k.register_jprobe(Jprobe(symbol_name="inc", entry=lambda a: None))


def test_a_jprobe_without_a_mirror(paper: Scene) -> None:
    refused(paper, Jprobe(symbol_name="inc"), E.BadLocation, errno.EINVAL, "register_jprobe")


NONSENSE = [
    (Kprobe, "addr", "f", E.BadLocation), (Kprobe, "addr", 4.0, E.BadLocation), (Kprobe, "offset", "1", E.BadLocation),
    (Kprobe, "offset", None, E.BadLocation), (Kprobe, "symbol_name", 0x1000, E.BadLocation),
    (Kprobe, "symbol_name", b"inc", E.BadLocation),
    (Kprobe, "disabled", "0", E.BadArgument), (Kprobe, "optimize", "no", E.BadArgument),
    (Kprobe, "optimize", 2, E.BadArgument),
    (Kprobe, "pre_handler", 5, E.BadArgument), (Kprobe, "post_handler", "f", E.BadArgument),
    (Kprobe, "fault_handler", [], E.BadArgument),
    (Kretprobe, "handler", 5, E.BadArgument), (Kretprobe, "entry_handler", "f", E.BadArgument),
    (Kretprobe, "maxactive", "5", E.BadArgument),
    (Kretprobe, "data_size", 1.5, E.BadArgument), (Jprobe, "entry", 3.5, E.BadLocation),
    (Jprobe, "entry", b"f", E.BadLocation),
]


@pytest.mark.parametrize(("kind", "name", "value", "error"), NONSENSE)
def test_a_setting_that_makes_no_sense_is_refused_where_it_is_made(kind: type[Any], name: str, value: Any,
                                                                   error: type[KprobeError]) -> None:
    place = {} if name in ("addr", "symbol_name") else {"symbol_name": "inc"}
    with pytest.raises(error, match=f"{name} is ") as raised:
        kind(**place, **{name: value})
    assert type(raised.value) is error and ";" in str(raised.value)
    made = kind(**place)
    before = getattr(made, name)
    with pytest.raises(error):
        setattr(made, name, value)
    assert getattr(made, name) == before


@pytest.mark.parametrize("what", [5, None, "inc", Kprobe, [Kprobe()]])
@pytest.mark.parametrize("way", ["register", "register_kprobe", "register_kretprobe", "register_jprobe", "unregister",
                                 "unregister_kprobe", "enable", "disable_kprobe", "register_kprobes",
                                 "unregister_kprobes"])
def test_what_is_no_probe_is_refused(paper: Scene, way: str, what: Any) -> None:
    with pytest.raises(KprobeError) as raised:
        getattr(paper.k, way)(what)
    assert ";" in str(raised.value)
    assert paper.k.list() == []


#: what a registered probe would ignore
SETTLED = [(Kprobe, "symbol_name", "twice"), (Kprobe, "addr", 1), (Kprobe, "offset", 1), (Kprobe, "disabled", True),
           (Kretprobe, "data_size", 8), (Kretprobe, "maxactive", 3), (Jprobe, "entry", "twice")]


@pytest.mark.parametrize(("kind", "name", "value"), SETTLED)
def test_a_registered_probe_refuses_what_it_would_ignore(scene: Scene, kind: type[Any], name: str, value: Any) -> None:
    probe = kind(symbol_name="inc", **({"entry": lambda x: None} if kind is Jprobe else {}))
    scene.k.register(probe)
    before = getattr(probe, name)
    with pytest.raises(E.AlreadyRegistered, match=f"{name} does not change while the probe is registered") as raised:
        setattr(probe, name, value)
    assert ";" in str(raised.value) and getattr(probe, name) == before
    setattr(probe, name, before)
    scene.k.unregister(probe)
    setattr(probe, name, value)
    assert getattr(probe, name) == value


def test_optimize_takes_effect_at_once(scene: Scene) -> None:
    p = scene.probe("p")
    p.post_handler = None
    scene.k.flush_optimizer()
    jumps = p.optimized
    p.optimize = False
    assert not p.optimized and not p.boosted and scene.play("inc", 1) == ["pre p", "= 2"]
    p.optimize = True
    scene.k.flush_optimizer()
    assert p.optimized == jumps and scene.play("inc", 1) == ["pre p", "= 2"]


@pytest.mark.parametrize("switch", ["enabled", "optimization"])
@pytest.mark.parametrize("value", ["0", None, 2, [], 0.0])
def test_a_switch_is_on_or_off(paper: Scene, switch: str, value: Any) -> None:
    with pytest.raises(E.BadArgument, match=f"{switch} is ") as raised:
        setattr(paper.k, switch, value)
    assert ";" in str(raised.value) and getattr(paper.k, switch) is True
    setattr(paper.k, switch, 0)
    assert getattr(paper.k, switch) is False


def _told(*args: Any) -> None:
    """A handler that pickle can name."""


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda probe: pickle.loads(pickle.dumps(probe))}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("made", [lambda: Kprobe(symbol_name="inc", pre_handler=_told, optimize=False),
                                  lambda: Kretprobe(symbol_name="inc", handler=_told, entry_handler=_told, maxactive=3,
                                                    data_size=8),
                                  lambda: Jprobe(symbol_name="inc", entry=_told, disabled=True)])
def test_a_copy_is_registered_nowhere(scene: Scene, way: str, made: Any) -> None:
    """It has the settings, and neither the counters nor a place in the table."""
    probe = made()
    scene.k.register(probe)
    scene.play("inc", 1)
    one = COPIES[way](probe)
    assert not one.registered and one.nhit == 0 and one.address is None and repr(one) == repr(made()) == repr(probe)
    with pytest.raises(E.NotRegistered):
        scene.k.unregister(one)
    listed = scene.k.list()
    if not isinstance(probe, Jprobe):  # there is one on a function
        scene.k.register(one)
        scene.k.unregister(one)
    assert scene.k.list() == listed and probe.registered
    scene.k.unregister(probe)
    scene.k.register(one)


@pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")
def test_instances_grow_on_demand(scene: Scene) -> None:
    """maxactive is a bound, not an amount of memory."""
    r = scene.k.kretprobe("down", handler=lambda ri, regs: None, maxactive=10**9)
    with r as probe:
        assert scene.play("down", 500) == ["= 500"]
        assert (probe.nhit, probe.nreturned, probe.nmissed) == (501, 501, 0)
        assert probe.maxactive == 10**9 and len(probe._pool) < 2000
    with scene.k.kretprobe("down", maxactive=200) as probe:
        assert scene.play("down", 500) == ["= 500"]
        assert (probe.nreturned, probe.nmissed) == (200, 301)


def test_a_jprobe_with_an_unknown_guest_mirror(scene: Scene) -> None:
    refused(scene, Jprobe(symbol_name="inc", entry="mirrror"), E.UnknownSymbol, errno.ENOENT, "register_jprobe")


def test_a_jprobe_with_a_guest_mirror_that_is_no_function(scene: Scene) -> None:
    """docs/linux.md B4: the entry must itself resolve to the start of a function."""
    refused(scene, Jprobe(symbol_name="inc", entry=scene.at("mirror", 1)), E.NotFunctionEntry, errno.EINVAL,
            "register_jprobe")
    refused(scene, Jprobe(symbol_name="inc", entry=scene.unmapped), E.NotText, errno.EINVAL, "register_jprobe")


@pytest.mark.parametrize("name", ["setjmp", "_setjmp", "vfork"])
def test_functions_that_return_twice_have_no_return_probes(name: str) -> None:
    with Kprobes(paper_machine(**{name: "nop; ret"})) as k:
        with pytest.raises(E.Blacklisted, match="twice") as raised:
            k.register_kretprobe(Kretprobe(symbol_name=name))
        assert (raised.value.errno, raised.value.symbol) == (errno.EINVAL, name)
        k.register_kprobe(Kprobe(symbol_name=name))


@pytest.mark.parametrize("has_size", [True, False], ids=["", "written by hand"])
@pytest.mark.parametrize("code, returns", [("31ed 4889e7 4883e4f0 e800000000 f4", False), ("31ed e800000000 ebfe", False),
                                           ("31c0 c3", True), ("e900001000", True)],
                         ids=["glibc's", "ends in a loop", "a function", "a tail call"])
def test_a_programs_entry_that_cannot_return_has_no_return_probes(code: str, returns: bool, has_size: bool) -> None:
    """Where x86 has a return address there is argc: a program lost its arguments."""
    raw = bytes.fromhex(code)
    symbols: dict[str, Any] = {"_start": (0x10000, len(raw)) if has_size else 0x10000}
    with UnicornMachine.from_code(raw, arch="x86_64", symbols=symbols) as m, Kprobes(m) as k:
        if returns:
            k.register_kretprobe(Kretprobe(symbol_name="_start"))
            return
        with pytest.raises(E.Blacklisted, match="has no caller") as raised:
            k.register_kretprobe(Kretprobe(symbol_name="_start"))
        assert (raised.value.errno, raised.value.symbol) == (errno.EINVAL, "_start")
        k.register_kprobe(Kprobe(symbol_name="_start"))


# --- powers that are absent


def test_no_linkage_no_return_probes() -> None:
    from attrs import evolve

    m = paper_machine()
    whole, m.arch = m.arch, evolve(m.arch, linkage=None)
    with Kprobes(m) as k:
        before = m.snapshot()
        with pytest.raises(E.Unsupported, match="paper has no linkage") as raised:
            k.register_kretprobe(Kretprobe(symbol_name="inc"))
        assert raised.value.errno == errno.EOPNOTSUPP
        assert m.snapshot() == before
        k.register_kprobe(p := Kprobe(symbol_name="inc"))
        m.arch = whole  # the toy engine's own calls need one
        assert m.call("inc", 1) == 2 and p.nhit == 1


def _unreachable(scene: Scene) -> None:
    """Nothing can be executed out of line any more."""
    from attrs import evolve

    def relocate(insn: object, to: int) -> bytes:
        raise E.OutOfReach("too far", address=to, hint="move")

    arch = evolve(scene.m.arch, out_of_line=OutOfLine(relocate=relocate))
    scene.m.arch = scene.k._rooms.arch = arch


@pytest.mark.parametrize("kind", [Kprobe, Kretprobe, Jprobe])
def test_out_of_reach_changes_nothing(kind: Any) -> None:
    scene = Scene("paper")
    _unreachable(scene)
    fields = {"entry": lambda a: None} if kind is Jprobe else {}
    regions = scene._regions()
    p = kind(symbol_name="inc", **fields)
    with unchanged(scene, p), pytest.raises(E.OutOfReach) as raised:
        scene.k.register(p)
    assert raised.value.errno == errno.ERANGE
    if kind is not Kretprobe:  # a return probe leaves the trampoline's page, for the next one
        assert scene._regions() == regions
    scene.close()


@pytest.mark.parametrize("kind", [Kprobe, Kretprobe])
def test_no_memory_changes_nothing(paper: Scene, kind: Any) -> None:
    taken = []
    with pytest.raises(E.NoMemory):
        while True:
            taken.append(paper.m.map_code())
    refused(paper, kind(symbol_name="inc"), E.NoMemory, errno.ENOMEM, f"register_{kind.__name__.lower()}")
    for page in taken:
        paper.m.unmap_code(page)
    p = kind(symbol_name="inc")
    paper.k.register(p)
    assert paper.m.call("inc", 4) == 5
    assert p.nhit == 1


def test_memory_that_cannot_be_patched(paper: Scene) -> None:
    """The last step of a registration fails: everything before it is undone."""
    first = paper.probe("first")
    usual = paper.m.patch

    def patch(addr: int, code: bytes) -> None:
        if addr == paper.at("twice"):
            raise E.GuestFault("no", address=addr)
        usual(addr, code)

    paper.m.patch = patch
    p = Kretprobe(symbol_name="twice", maxactive=3, handler=hook("return", paper.lines))
    with unchanged(paper, p, first), pytest.raises(E.GuestFault):
        paper.k.register_kretprobe(p)
    paper.m.patch = usual
    paper.k.register_kretprobe(p)
    assert paper.m.call("twice", 4) == 6
    assert (p.nreturned, paper.lines[-1]) == (1, "return")


# --- batches


def test_a_batch_is_all_or_nothing(scene: Scene) -> None:
    scene.probe("old")
    batch: list[Any] = [Kprobe(symbol_name="inc"), Kretprobe(symbol_name="twice", maxactive=0),
                        Kprobe(symbol_name="twice", disabled=True),
                        Kprobe(symbol_name="no such"), Kprobe(symbol_name="down")]
    with unchanged(scene, *batch), pytest.raises(E.UnknownSymbol):
        scene.k.register_kprobes(batch)
    assert scene.play("twice", 4) == ["pre old", "post old"] * 2 + ["= 6"]
    batch[3] = Kprobe(symbol_name="fetch")
    scene.k.register_kprobes(batch)
    assert all(p.registered for p in batch)
    scene.k.unregister_kprobes(batch)
    assert not any(p.registered for p in batch)


def test_a_batch_with_a_registered_probe_keeps_that_one(scene: Scene) -> None:
    old = scene.probe("old")
    new = Kprobe(symbol_name="twice")
    with unchanged(scene, old, new), pytest.raises(E.AlreadyRegistered):
        scene.k.register_kprobes([new, old])
    assert scene.play("inc", 4) == ["pre old", "post old", "= 5"]


def test_a_batch_with_the_same_probe_twice(scene: Scene) -> None:
    p = Kprobe(symbol_name="twice")
    with unchanged(scene, p), pytest.raises(E.AlreadyRegistered):
        scene.k.register_kprobes([p, p])


@pytest.mark.parametrize("call", ["register_kprobes", "register_kretprobes", "register_jprobes"])
def test_an_empty_batch(paper: Scene, call: str) -> None:
    """docs/linux.md B2: num <= 0 is -EINVAL."""
    with pytest.raises(E.BadLocation) as raised:
        getattr(paper.k, call)([])
    assert raised.value.errno == errno.EINVAL


def test_unregistering_finishes_the_batch(scene: Scene) -> None:
    a, b = scene.probe("a"), scene.probe("b", "twice")
    never = Kprobe(symbol_name="fetch")
    with pytest.raises(E.NotRegistered) as raised:
        scene.k.unregister_kprobes([a, never, a, b])
    assert raised.value.symbol == "fetch", "the first one"
    assert not (a.registered or b.registered)
    assert scene.text() == scene.original
    scene.k.unregister_kprobes([])


# --- again


@pytest.mark.parametrize("kind", [Kprobe, Kretprobe, Jprobe])
def test_registered_again_after_unregistering(scene: Scene, kind: Any) -> None:
    """Unlike in Linux nothing must be cleaned by hand: the object is as the user made it, a disabled one too."""
    fields = {"entry": lambda a: scene.lines.append("hit")} if kind is Jprobe else {"handler": hook("hit",
        scene.lines)} if kind is Kretprobe else {
        "pre_handler": hook("hit", scene.lines)}
    p = kind(symbol_name="inc", **fields)
    for _ in range(3):
        scene.k.register(p)
        assert scene.play("inc", 4) == ["hit", "= 5"]
        scene.k.disable_kprobe(p)
        scene.k.unregister(p)
        assert (p.symbol_name, p.addr, p.offset, p.disabled) == ("inc", None, 0, False)
        assert (p.address, p.symbol, p.opcode, p.registered, p.enabled, p.boosted,
                p.optimized) == (None, None, None, False, False, False, False)
        assert scene.play("inc", 4) == ["= 5"]


def test_registered_again_after_a_refusal(scene: Scene) -> None:
    p = Kprobe(symbol_name="later", pre_handler=hook("hit", scene.lines))
    refused(scene, p, E.UnknownSymbol, errno.ENOENT)
    scene.m.symbols.add("later", scene.at("inc"), 4)
    scene.k.register_kprobe(p)
    assert scene.play("inc", 4) == ["hit", "= 5"]


def test_maxactive_is_written_back_while_registered(scene: Scene) -> None:
    """<= 0: as many as are needed, up to Kprobes.instances; shown while registered, and as the user made it
    afterwards."""
    scene.k.instances = 500
    for asked, got in ((0, 500), (-5, 500), (3, 3), (2000, 2000)):
        r = Kretprobe(symbol_name="inc", maxactive=asked)
        scene.k.register_kretprobe(r)
        assert r.maxactive == got
        scene.k.unregister_kretprobe(r)
        assert r.maxactive == asked


@pytest.mark.parametrize("bad", [0, -1, "many", None])
def test_the_ceiling_of_instances_is_a_number(paper: Scene, bad: Any) -> None:
    with pytest.raises(E.BadArgument):
        paper.k.instances = bad
    assert paper.k.instances == 1 << 16


# --- other ways to write it


def test_decorators(scene: Scene) -> None:
    lines, k = scene.lines, scene.k

    @k.kprobe("inc", post_handler=hook("post", lines))
    def on_inc(p, regs):
        lines.append(f"pre {p.symbol}")

    @k.kretprobe("inc", maxactive=2)
    def on_return(ri, regs):
        lines.append(f"return {regs.return_value}")

    @k.jprobe("inc")
    def mirror(x):
        lines.append(f"mirror {x}")

    assert scene.play("inc", 4) == ["pre inc+0x0", "mirror 4", "post", "return 5", "= 5"]
    assert isinstance(on_inc.probe, Kprobe)
    assert on_return.probe.maxactive == 2
    for handler in (on_inc, on_return, mirror):
        handler.probe.unregister()
    assert scene.play("inc", 4) == ["= 5"]


def test_decorator_with_an_offset(scene: Scene) -> None:
    @scene.k.kprobe("probed", offset=scene.at("probed", 1) - scene.at("probed"))
    def second(p, regs):
        scene.lines.append(f"{regs.pc - scene.at('probed', 1)}")

    assert scene.play("probed", 4) == ["0", "= 7"]


def test_context_manager(scene: Scene) -> None:
    with scene.k.kprobe("inc", pre_handler=hook("pre", scene.lines)) as p:
        assert scene.play("inc", 4) == ["pre", "= 5"]
        assert p.registered
    assert not p.registered
    assert scene.text() == scene.original


def test_context_manager_unregisters_when_something_is_raised(scene: Scene) -> None:
    with pytest.raises(ZeroDivisionError), scene.k.kprobe("inc") as p:
        raise ZeroDivisionError
    assert not p.registered


def test_context_manager_whose_probe_was_unregistered_inside(scene: Scene) -> None:
    with scene.k.kprobe("inc") as p:
        p.unregister()
    assert not p.registered


def test_a_handler_given_twice(paper: Scene) -> None:
    with pytest.raises(E.BadLocation):
        paper.k.kprobe("inc", pre_handler=print)(print)


# --- looking


def test_get_kprobe(scene: Scene) -> None:
    addr = scene.at("inc")
    assert scene.k.get_kprobe(addr) is None
    p = scene.probe("a")
    point = scene.k.get_kprobe(addr)
    assert point is not None
    assert (point.address, point.probes, point.where) == (addr, (p,), "inc+0x0")
    assert (p.address, p.symbol, p.opcode) == (addr, "inc+0x0", scene.k._survey.decode(addr).raw)
    assert scene.k.get_kprobe(addr + 1) is None
    scene.k.unregister_kprobe(p)
    assert scene.k.get_kprobe(addr) is None


@pytest.mark.parametrize(("where", "how"), [("inc", "step"), ("hop", "simulate")])
def test_check_says_how(scene: Scene, where: str, how: str) -> None:
    with unchanged(scene):
        verdict = scene.k.check(where)
    assert (verdict.addr, verdict.probeable, verdict.reason, verdict.how) == (scene.at(where), True, "", how)
    assert verdict.raw == scene.m.read(verdict.addr, verdict.size)
    assert scene.k.check(verdict.addr) == verdict


def test_check_says_why_not(scene: Scene) -> None:
    with unchanged(scene):
        assert not (verdict := scene.k.check(scene.unmapped)).probeable
        assert verdict.reason
        scene.k.blacklist.add("inc")
        verdict = scene.k.check("inc")
    assert (verdict.probeable, verdict.how, verdict.boostable, verdict.optimizable) == (False, "refuse", False, False)
    assert "blacklisted" in verdict.reason


def test_check_agrees_with_registration(scene: Scene) -> None:
    """Every byte of the program: what check() calls probeable can be registered, and nothing else."""
    for addr in range(scene.at("inc"), scene.at("mirror") + 8):
        verdict = scene.k.check(addr)
        p = Kprobe(addr=addr)
        try:
            scene.k.register_kprobe(p)
        except KprobeError as error:
            assert not verdict.probeable, hex(addr)
            assert error.reason == verdict.reason
        else:
            assert verdict.probeable, hex(addr)
            scene.k.unregister_kprobe(p)
    assert scene.text() == scene.original


@pytest.mark.parametrize("make", [paper_machine, lambda: unicorn_machine("x86_64")])
def test_a_closed_kprobes_is_forgotten(make: Callable[[], Any]) -> None:
    """Nothing keeps it, nor its machine: a program that makes both for each input does not grow."""
    m = make()
    k = Kprobes(m)
    k.register_kprobe(Kprobe(addr=next(iter(m.symbols)).address, pre_handler=lambda p, regs: None))
    gone = weakref.ref(k), weakref.ref(m)
    k.close()
    del k, m
    gc.collect()
    assert [each() for each in gone] == [None, None]
