"""A store that fails ends the run there, also where the engine executes what comes behind it: with a probe and without,
bounded and not, and if a breakpoint is behind it. Loads and stores, alone, in IT blocks of every length, DC ZVA, and STMW."""

from __future__ import annotations

from typing import Any

import pytest
import unicorn

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine

BASE, NOWHERE = 0x10000, 0x900000
#: movs r4, 5; movs r5, 6
BEHIND = "05240625"
#: what comes before the access, the access, how it fails; in each r6 is NOWHERE
THUMB = [
    ("", "3060", "write"), ("", "3068", "read"), ("18bf", "3060", "write"), ("18bf", "3068", "read"),
    ("1cbf0127", "3060", "write"), ("1ebf01270127", "3060", "write"), ("1fbf012701270127", "3060", "write"),
    ("18bf", "86e80300", "write"), ("18bf", "c6e90001", "write"), ("18bf", "7060", "write"), ("1cbf", "3060", "write"),
]
CASES = [(arch, *case, BEHIND) for arch in ("arm", "armeb", "cortexm") for case in THUMB] + [
    (arch, "", "26740bd5", "write", "a40080d2c50080d2") for arch in ("arm64", "arm64be")]  # dc zva, x6; mov x4, 5; mov x5, 6
CASES += [(arch, "", "bf860000", "write", "3880000538a00006") for arch in ("ppc", "ppc64")]  # stmw r28, 0(r6); li r4, 5; li r5, 6


def end(m: UnicornMachine, mode: int, names: tuple[str, ...], **bounds: Any) -> tuple[Any, ...]:
    """How a run ends, and the registers then."""
    for name in names:
        m.regs[name] = NOWHERE if name.endswith("6") else 0
    if mode:
        m.regs["xpsr" if m.arch.name == "cortexm" else "cpsr"] = 1 << 24 if m.arch.name == "cortexm" else 0x30
    with pytest.raises(GuestFault) as failed:
        m.run(BASE | mode, **bounds)
    return failed.value.access, failed.value.pc, failed.value.address, m.regs.pc, *(m.regs[name] for name in names)


@pytest.mark.parametrize(("arch", "before", "access", "kind", "behind"), CASES)
def test_it_ends_there(arch: str, before: str, access: str, kind: str, behind: str) -> None:
    code = bytes.fromhex(before + access + behind)
    mode, letter = int(arch in ("arm", "armeb", "cortexm")), "x" if arch.startswith("arm64") else "r"
    names = tuple(f"{letter}{n}" for n in (4, 5, 6, 7))
    with UnicornMachine.from_code(code + bytes(64), arch=arch, base=BASE, symbols={"f": (BASE | mode, len(code))}) as m:
        at = BASE + len(before) // 2
        plain = end(m, mode, names)
        assert plain[:6] == (kind, at, NOWHERE + (4 if access == "7060" else 0), at, 0, 0), plain
        assert end(m, mode, names, max_insns=50) == plain
        with Kprobes(m) as k:
            for place in (at, at + len(access) // 2, BASE):
                probe = Kprobe(addr=place | mode, pre_handler=lambda p, regs: None)
                k.register(probe)
                assert end(m, mode, names) == plain, hex(place)
                assert end(m, mode, names, max_insns=50) == plain, hex(place)
                assert place != at + len(access) // 2 or not probe.nhit, "behind the end"
                k.unregister(probe)


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(("arch", "before", "access", "kind", "behind"), [case for case in CASES if not case[1]])
def test_no_post_handler_runs(arch: str, before: str, access: str, kind: str, behind: str, optimize: bool) -> None:
    """Also where host code has served hits before, of stores that did not fail."""
    code = bytes.fromhex(access + behind)
    mode, letter = int(arch in ("arm", "armeb", "cortexm")), "x" if arch.startswith("arm64") else "r"
    names = tuple(f"{letter}{n}" for n in (4, 5, 6, 7))
    with UnicornMachine.from_code(code + bytes(64), arch=arch, base=BASE, symbols={"f": (BASE | mode, len(code))}) as m:
        plain = end(m, mode, names)
        post, data = [], m.alloc(64)
        with Kprobes(m) as k:
            probe = Kprobe(addr=BASE | mode, pre_handler=lambda p, regs: None, optimize=optimize)
            k.register(probe)
            k.flush_optimizer()
            for turn in range(3):
                probe.post_handler = (lambda p, regs, flags: post.append(regs.pc)) if turn == 1 else None
                for _ in range(3):
                    m.regs[names[2]] = data
                    m.run(BASE | mode, until=BASE + len(access) // 2 | mode)
                assert len(post) == (3 if turn else 0)
                for _ in range(3):
                    assert end(m, mode, names) == plain
            assert probe.nhit == 18 and len(post) == 3


@pytest.mark.parametrize("arch", ["arm", "cortexm"])
def test_a_system_call_behind_it(arch: str) -> None:
    """svc 0; udf 0: the engine forgets the store there."""
    for behind in ("00df", "00de"):
        with UnicornMachine.from_code(bytes.fromhex("18bf3060" + behind + "00bf"), arch=arch, base=BASE) as m:
            assert end(m, 1, ("r4", "r5", "r6"))[:3] == ("write", BASE + 2, NOWHERE)


@pytest.mark.parametrize("protected", [False, True])
def test_a_handler_that_maps_memory(protected: bool) -> None:
    """The store is done once more, and what is behind it for the first time."""
    with UnicornMachine.from_code(bytes.fromhex("18bf3060" + "0134" * 2 + "00bf"), arch="cortexm", base=BASE) as m:
        m.regs["xpsr"] = 1 << 24
        m.regs["r6"] = NOWHERE
        m.regs["r0"] = 77
        m.regs["r4"] = 0
        if protected:
            m.map(NOWHERE, 0x1000, "r")

        def serve(uc: Any, kind: int, address: int, *_: Any) -> bool:
            if protected:
                uc.mem_protect(NOWHERE, 0x1000, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
            else:
                uc.mem_map(NOWHERE, 0x1000)
            return True
        m.uc.hook_add(unicorn.UC_HOOK_MEM_INVALID, serve)
        m.run(BASE | 1, until=BASE + 8)
        assert m.regs["r4"] == 2 and int.from_bytes(m.read(NOWHERE, 4), "little") == 77
