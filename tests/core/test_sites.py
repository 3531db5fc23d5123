"""The site table, and the life of a probepoint in it: made with its first probe, dropped with its last."""

from __future__ import annotations

from scenes import Scene

from kprobes import Kprobe, Kretprobe
from kprobes.core.patch.arming import Arming
from kprobes.core.patch.sites import SiteKind


def kinds(scene: Scene) -> list[SiteKind]:
    return sorted((site.kind for site in scene.k._sites.values()), key=lambda kind: kind.value)


def test_a_probepoint_and_its_slot(scene: Scene) -> None:
    assert kinds(scene) == []
    p = scene.probe("a")
    point = scene.k.get_kprobe(scene.at("inc"))
    assert kinds(scene) == [SiteKind.PROBEPOINT, SiteKind.SLOT_END, SiteKind.SLOT]
    sites = scene.k._sites
    assert sites.probepoint(scene.at("inc")) is point
    assert sites.probepoint(point.slot) is None
    assert (sites[point.slot].owner, sites[point.slot_end].owner) == (point, point)
    scene.k.unregister_kprobe(p)
    assert kinds(scene) == []


def test_a_simulated_instruction_has_no_slot(scene: Scene) -> None:
    scene.probe("a", "hop")
    assert kinds(scene) == [SiteKind.PROBEPOINT]
    assert scene.k.get_kprobe(scene.at("hop")).slot is None


def test_one_probepoint_however_many_probes(scene: Scene) -> None:
    a, b = scene.probe("a"), scene.probe("b")
    r = Kretprobe(symbol_name="inc")
    scene.k.register_kretprobe(r)
    point = scene.k.get_kprobe(scene.at("inc"))
    assert point.probes == (r, b, a)
    assert len(scene.k._points) == 1
    for p in (b, r, a):
        assert scene.k.get_kprobe(scene.at("inc")) is point
        scene.k.unregister(p)
    assert scene.k.get_kprobe(scene.at("inc")) is None
    again = scene.probe("again")
    assert scene.k.get_kprobe(scene.at("inc")) is not point
    assert again.registered


def test_between(scene: Scene) -> None:
    addrs = [scene.at("probed", n) for n in range(3)]
    for n in (2, 0, 1):
        scene.probe(str(n), addrs[n])
    found = scene.k._sites.between(addrs[0], addrs[2])
    assert [p.address for p in found] == addrs[:2]
    assert scene.k._sites.between(addrs[0] + 1, addrs[1]) == []


def test_arming_follows_what_is_wanted(scene: Scene) -> None:
    """Armed where somebody enabled is there and the switch is on. docs/linux.md C3, D6."""
    k = scene.k
    k.optimization = False
    a = Kprobe(symbol_name="inc", disabled=True)
    k.register_kprobe(a)
    point = k.get_kprobe(scene.at("inc"))
    transcript = [point.state]

    def then(action: object) -> None:
        transcript.append(point.state)
        assert scene.text() == scene.patched()
        assert (scene.text() != scene.original) == (point.state is Arming.ARMED)

    then(k.enable_kprobe(a))
    then(setattr(k, "enabled", False))
    then(k.disable_kprobe(a))
    then(k.enable_kprobe(a))
    then(setattr(k, "enabled", True))
    then(k.disable_kprobe(a))
    then(k.unregister_kprobe(a))
    D, A = Arming.DISARMED, Arming.ARMED
    assert transcript == [D, A, D, D, D, A, D, D]


def test_enabling_while_globally_disarmed_is_not_lost(scene: Scene) -> None:
    """docs/linux.md Q1, fixed here: when the switch is turned on again the probe is hit."""
    a = scene.probe("a", disabled=True)
    scene.k.enabled = False
    scene.k.enable_kprobe(a)
    assert a.enabled
    assert scene.play("inc", 4) == ["= 5"]
    scene.k.enabled = True
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


def test_the_switch_keeps_each_probes_own_state(scene: Scene) -> None:
    on, off = scene.probe("on"), scene.probe("off", "twice", disabled=True)
    scene.k.enabled = False
    assert scene.text() == scene.original
    assert (on.enabled, off.enabled) == (True, False)
    assert scene.play("twice", 4) == ["= 6"]
    late = scene.probe("late", "twice")
    assert scene.text() == scene.original, "registered, not armed"
    scene.k.enabled = False
    scene.k.enabled = True
    scene.k.enabled = True
    assert scene.play("twice", 4) == ["pre late", "post late", *["pre on", "post on"] * 2, "= 6"]
    assert late.registered


def test_disabling_while_globally_disarmed_stays(scene: Scene) -> None:
    a = scene.probe("a")
    scene.k.enabled = False
    scene.k.disable_kprobe(a)
    scene.k.enabled = True
    assert scene.text() == scene.original
    assert scene.play("inc", 4) == ["= 5"]


def test_enable_and_disable_are_idempotent(scene: Scene) -> None:
    a = scene.probe("a")
    for _ in range(2):
        scene.k.disable_kprobe(a)
        assert not a.enabled
        assert scene.text() == scene.original
    for _ in range(2):
        scene.k.enable_kprobe(a)
        assert a.enabled
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


def test_unregistering_a_disabled_probe(scene: Scene) -> None:
    a, b = scene.probe("a"), scene.probe("b")
    scene.k.disable_kprobe(a)
    scene.k.unregister_kprobe(a)
    assert scene.play("inc", 4) == ["pre b", "post b", "= 5"]
    scene.k.disable_kprobe(b)
    scene.k.unregister_kprobe(b)
    assert scene.text() == scene.original
