"""The debugfs files, byte for byte. docs/linux.md E and D6."""

from __future__ import annotations

import pytest
from scenes import Scene

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe
from kprobes.machine.paper import PaperMachine


def test_nothing(paper: Scene) -> None:
    assert paper.k.format_list() == ""
    assert paper.k.list() == []


def test_every_kind_and_flag(paper: Scene) -> None:
    """Address, two blanks, type, two blanks, symbol+offset, two blanks, module or one blank, a blank, flags."""
    k, at = paper.k, paper.at
    k.optimization = False
    k.register_kretprobe(Kretprobe(symbol_name="twice"))
    k.register_kprobe(Kprobe(symbol_name="inc"))
    k.register_kprobe(Kprobe(symbol_name="inc", disabled=True))
    k.register_jprobe(Jprobe(symbol_name="deep", entry=lambda a: None))
    k.register_kprobe(Kprobe(addr=at("twice", 2)))
    assert k.format_list() == (
        f"{at('inc'):016x}  k  inc+0x0    [DISABLED]\n"
        f"{at('inc'):016x}  k  inc+0x0    \n"
        f"{at('twice'):016x}  r  twice+0x0    \n"
        f"{at('twice', 2):016x}  k  twice+0x6    \n"
        f"{at('deep'):016x}  j  deep+0x0    \n")


def test_four_blanks_between_symbol_and_flag(scene: Scene) -> None:
    """A public suite greps `cpuinfo_open+0x0    [DISABLED]`."""
    scene.probe("a", disabled=True)
    assert "inc+0x0    [DISABLED]\n" in scene.k.format_list()


def test_the_module_column(paper: Scene) -> None:
    """`[%s] ` in Linux is for kallsyms; the list prints the module's bare name."""
    paper.m.symbols.add("ext4_read", 0x1100, 8, module="ext4")
    paper.m.write(0x1100, b"\x02\x02\x05")
    paper.original = paper.text()
    p = Kprobe(symbol_name="ext4:ext4_read", offset=1, disabled=True)
    paper.k.register_kprobe(p)
    assert paper.k.format_list() == "0000000000001101  k  ext4_read+0x1  ext4 [DISABLED]\n"
    paper.k.enable_kprobe(p)
    paper.k.optimization = False
    assert paper.k.format_list() == "0000000000001101  k  ext4_read+0x1  ext4 \n"


def test_an_address_without_symbol() -> None:
    with Kprobes(PaperMachine(b"\x02\x02\x05")) as k:
        p = Kprobe(addr=0x1001, disabled=True)
        k.register_kprobe(p)
        assert k.format_list() == "0000000000001001  k  0x1001 [DISABLED]\n"
        assert (p.symbol, p.address) == ("0x1001", 0x1001)


def test_wide_addresses_have_sixteen_digits(scene: Scene) -> None:
    scene.probe("a")
    line = scene.k.format_list()
    assert line.split("  ")[0] == f"{scene.at('inc'):016x}"


def test_gone_hides_disabled() -> None:
    m = PaperMachine(b"\x02\x05", symbols={"f": (0x1000, 2)})
    m._map(0x2000, executable=True)
    m.write(0x2000, b"\x02\x05")
    m.symbols.add("g", 0x2000, 2, module="mod")
    with Kprobes(m) as k:
        a, b = Kprobe(symbol_name="g"), Kprobe(symbol_name="g", disabled=True)
        k.register_kprobes([a, b])
        m.unload(0x2000)
        assert k.format_list() == "0000000000002000  k  g+0x0  mod [GONE]\n" * 2
        k.disable_kprobe(a)
        assert k.format_list() == "0000000000002000  k  g+0x0  mod [GONE]\n" * 2


def test_nothing_shows_the_global_switch(scene: Scene) -> None:
    """docs/linux.md D6: the list shows no marker for "globally disarmed"."""
    scene.k.optimization = False
    scene.probe("a")
    before = scene.k.format_list()
    scene.k.enabled = False
    assert scene.k.format_list() == before


def test_optimized(scene: Scene) -> None:
    """[OPTIMIZED] comes from the aggregate, so every probe there shows it; a post-handler takes it away."""
    k = scene.k
    k.register_kprobes([Kprobe(symbol_name="probed"), Kprobe(symbol_name="probed", disabled=True)])
    k.flush_optimizer()
    start = f"{scene.at('probed'):016x}  k  probed+0x0    "
    assert k.format_list() == f"{start}[DISABLED][OPTIMIZED]\n{start}[OPTIMIZED]\n"
    k.register_kprobe(Kprobe(symbol_name="probed", post_handler=lambda *_: None))
    assert k.format_list() == f"{start}\n{start}[DISABLED]\n{start}\n"


def test_records(scene: Scene) -> None:
    k = scene.k
    p = scene.probe("a")
    scene.m.call("twice", 1)
    k.register_kretprobe(Kretprobe(symbol_name="twice", disabled=True))
    first, second = k.list()
    assert (first.address, first.type, first.symbol, first.offset, first.module,
            first.flags) == (scene.at("inc"), "k", "inc", 0, "", ())
    assert (first.nhit, first.nmissed) == (2, 0) == (p.nhit, p.nmissed)
    assert (second.type, second.symbol, second.flags) == ("r", "twice", ("DISABLED",))


def test_records_show_missed_hits(scene: Scene) -> None:
    scene.probe("a")
    scene.k.register_kprobe(Kprobe(symbol_name="twice", pre_handler=lambda p, regs: scene.m.call("inc", 1) and 0))
    scene.m.call("twice", 1)
    by_symbol = {r.symbol: r for r in scene.k.list()}
    assert (by_symbol["inc"].nhit, by_symbol["inc"].nmissed) == (2, 1)


@pytest.mark.parametrize("on", [True, False, 1, 0])
def test_the_switch_reads_as_a_bool(scene: Scene, on: bool) -> None:
    assert scene.k.enabled is True
    scene.k.enabled = on
    assert scene.k.enabled is bool(on)
