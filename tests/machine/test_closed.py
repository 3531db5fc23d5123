"""After m.close() every public member is an error that says so; nothing hangs, crashes or answers for a machine that is
gone."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import time
from typing import Any

import pytest
from scenes import PROGRAMS, Scene

from kprobes import (
    BadLocation,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    MachineBusy,
    MachineClosed,
    UnicornMachine,
    Unsupported,
)
from kprobes.machine.unicorn.machine import KNOWN

pytestmark = pytest.mark.quick

CODE = {"x86_64": bytes.fromhex("90c3")}


def machine() -> UnicornMachine:
    return UnicornMachine.from_code(CODE["x86_64"], arch="x86_64", symbols={"f": (0x10000, 2)})


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


MEMBERS = [name for name in public(machine()) if name not in KNOWN
           and not isinstance(inspect.getattr_static(UnicornMachine, name, None), classmethod)]


@pytest.mark.parametrize("name", MEMBERS)
def test_machines(name: str) -> None:
    m = machine()
    getattr(m, name, None)
    m.close()
    with pytest.raises(MachineClosed, match="closed"):
        getattr(m, name)
    with pytest.raises(MachineClosed):
        setattr(m, name, None)


def test_registers() -> None:
    m = machine()
    regs, names = m.regs, public(m.regs)
    m.close()
    for name in names:
        with pytest.raises(MachineClosed):
            getattr(regs, name)
    for use in (lambda: regs["rax"], lambda: regs.__setitem__("rax", 1), lambda: "rax" in regs):
        with pytest.raises(MachineClosed):
            use()  # type: ignore[no-untyped-call]


def test_what_is_known_stays_and_closing_again_is_nothing() -> None:
    m = machine()
    m.close()
    m.close()
    assert m.symbols["f"].address == 0x10000 and m.arch.name == "x86_64" and isinstance(m, UnicornMachine)
    with pytest.raises(MachineClosed), m:
        pass


@pytest.mark.parametrize("arch", [name for name in PROGRAMS if name != "paper"])
def test_probes_go_with_it(arch: str) -> None:
    scene = Scene(arch)
    m, k = scene.m, scene.k
    k.register(p := Kprobe(symbol_name="inc"))
    k.register(r := Kretprobe(symbol_name="twice", handler=lambda ri, regs: None))
    assert m.call("deep", 4) == 6
    m.close()
    assert not p.registered and not r.registered
    for use in (lambda: k.register(p), lambda: k.unregister(p), lambda: k.check("inc"), lambda: m.call("deep", 4),
                lambda: Kprobes(m), lambda: k.register_all([p]), lambda: k.enable(p), lambda: k.disable(p)):
        with pytest.raises(KprobeError, match=r"closed|not registered"):
            use()
    k.close()
    k.close()


def test_a_machine_in_a_run_is_not_closed() -> None:
    m = machine()
    with m, Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="f", pre_handler=lambda p, regs: m.close()))
        with pytest.raises(MachineBusy, match="in a run"):
            m.call("f")
        k.unregister(p)
        m.call("f")


# --- threads

CHANGES: dict[str, Any] = {
    "register": lambda k, p, q: k.register(q), "unregister": lambda k, p, q: k.unregister(p),
    "enable": lambda k, p, q: k.enable(p),
    "disable": lambda k, p, q: k.disable(p), "register_all": lambda k, p, q: k.register_all([q]),
    "close": lambda k, p, q: k.close(),
    "unregister_all": lambda k, p, q: k.unregister_all([p]), "flush": lambda k, p, q: k.flush_optimizer(),
    "enabled": lambda k, p, q: setattr(k, "enabled", False),
    "optimization": lambda k, p, q: setattr(k, "optimization", False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_probes_are_not_changed_while_another_thread_runs_the_machine(change: str) -> None:
    scene = Scene("x86_64")
    scene.k.register(p := Kprobe(symbol_name="inc"))
    said: list[BaseException] = []

    def look() -> None:
        while scene.m.parts.state.depth == 0:
            time.sleep(0.001)
        try:
            CHANGES[change](scene.k, p, Kprobe(symbol_name="twice"))
        except KprobeError as error:
            said.append(error)
        scene.m.stop()

    thread = threading.Thread(target=look)
    thread.start()
    scene.m.run("spin", timeout=60)
    thread.join()
    assert ([type(error) for error in said] == [MachineBusy] and p.registered and scene.k.enabled
            and scene.k.optimization)
    assert len(scene.k.list()) == 1 and scene.m.call("deep", 4) == 6
    scene.close()


def test_many_threads_register() -> None:
    """Each change is made whole, or refused and nothing is changed."""
    scene = Scene("arm64")
    wrong: list[BaseException] = []
    busy, over = [0], time.monotonic() + 0.4

    def work(name: str) -> None:
        while time.monotonic() < over:
            p = Kprobe(symbol_name=name, post_handler=lambda *_: None)
            for change in (lambda p=p: scene.k.register(p), lambda: scene.m.call("deep", 4),
                           lambda p=p: scene.k.unregister(p)):
                while True:
                    try:
                        change()
                        break
                    except MachineBusy:
                        busy[0] += 1
                    except BaseException as error:
                        wrong.append(error)
                        break

    threads = [threading.Thread(target=work, args=(name,)) for name in ("inc", "twice", "deep")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and scene.k.list() == []
    assert scene.m.call("deep", 4) == 6
    with pytest.raises(BadLocation):
        scene.k.register_all([])
    scene.close()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("what", ["machine", "kprobes", "in a list"])
def test_copies_are_refused_in_a_sentence(copied: Any, what: str) -> None:
    with UnicornMachine.from_code(b"\x90\xc3", arch="x86_64") as m, Kprobes(m) as k:
        value = {"machine": m, "kprobes": k, "in a list": [m]}[what]
        if what == "in a list" and copied is copy.copy:
            return
        with pytest.raises(Unsupported, match=r"cannot be copied or pickled; .*snapshot\(\)"):
            copied(value)
