"""Host code of call sites where programs run, of every host, in an engine that plays the host."""

from __future__ import annotations

from typing import Any

import pytest
import test_hostcode as code
from unicorn import arm64_const, unicorn_const, x86_const

from kprobes.machine.unicorn.host.hostcode import CALLS, SITE, CallConvention

pytestmark = pytest.mark.quick
ENVIRONMENTS = code.WORDS + 0xE00
FOLLOW = code.PYTHON + 0x40


@pytest.fixture(params=code.HOSTS)
def host(request: pytest.FixtureRequest) -> Any:
    return request.param


class Running(code.Host):
    """A site with so many programs.

    Attributes:
        given: the environments that they got. ran: what the site's word said to who came afterwards.
    """

    def __init__(self, host: str, kind: str, programs: int) -> None:
        super().__init__(host, kind, CallConvention(64, "cell"))
        self.given: list[int] = []
        self.ran: list[int] = []
        for n in range(programs):
            self[environment(n)] = code.ENTERED
            self[environment(n) + 8] = environment(n + 1) if n + 1 < programs else 0
        self[code.SITE_AT + 8 * SITE["program"]] = self[code.SITE_AT + 8 * SITE["back"]] = environment(0)
        self.uc.mem_write(FOLLOW, bytes.fromhex("c0035fd6") if self.arm else b"\xc3")
        self.uc.hook_add(unicorn_const.UC_HOOK_CODE, self._follow, begin=FOLLOW, end=FOLLOW)

    def _callback(self, uc: Any, address: int, size: int, data: Any) -> None:
        self.given.append(uc.reg_read(arm64_const.UC_ARM64_REG_X0 if self.arm else x86_const.UC_X86_REG_RDI))
        super()._callback(uc, address, size, data)  # which spoils the registers that a function may

    def _follow(self, uc: Any, address: int, size: int, data: Any) -> None:
        self.called.append(address)
        self.ran.append(self[code.SITE_AT + 8 * SITE["ran"]])


def environment(n: int) -> int:
    return ENVIRONMENTS + 32 * n


@pytest.mark.parametrize("programs", [1, 2, 5])
def test_programs_run_in_turn_and_the_hit_is_counted(host: str, programs: int) -> None:
    h = Running(host, "program", programs)
    for n in range(1, 4):
        h.hook(code.AREA + code.PLACE)
        assert h.called == [code.ENTERED] * programs
        assert h.given == [environment(m) for m in range(programs)] * n
        assert (h[code.SITE_AT + 8 * SITE["hits"]], h[code.SITE_AT + 8 * SITE["ran"]],
                h[code.CALLS_AT + 8 * CALLS["inside"]]) == (n, 0, 0)


@pytest.mark.parametrize("reason", [0, 1, 2])
def test_python_is_asked_while_the_gate_is_closed(host: str, reason: int) -> None:
    h = Running(host, "program", 2)
    h.uc.mem_write(code.CALLS_AT + 8 * CALLS["gate"] + reason, b"\1")
    h.hook(code.AREA + code.PLACE)
    assert h.called == [code.PYTHON]
    assert h[code.SITE_AT + 8 * SITE["hits"]] == 0


def test_what_follows_the_call_comes_after_the_programs_and_counts_itself(host: str) -> None:
    h = Running(host, "program", 2)
    h[code.SITE_AT + 8 * SITE["after"]] = FOLLOW
    h.hook(code.AREA + code.PLACE)
    assert h.called == [code.ENTERED, code.ENTERED, FOLLOW]
    assert h.ran == [1], "who is asked now learns that the programs have run"
    assert (h[code.SITE_AT + 8 * SITE["hits"]], h[code.SITE_AT + 8 * SITE["ran"]]) == (0, 0)


@pytest.mark.parametrize("programs", [1, 3])
def test_programs_run_at_a_return(host: str, programs: int) -> None:
    """Called as `leave` does, with the words of the call's site."""
    h = Running(host, "back", programs)
    h[code.CALLS_AT + 8 * CALLS["inside"]] = 1
    for n in range(1, 3):
        h.called.clear()
        if h.arm:
            registers, constants = {"X0": code.SITE_AT, "X19": 0x5AFE, "X30": code.BACK,
                                    "SP": code.STACK + 0x800}, arm64_const
        else:
            registers, constants = {"RDI": code.SITE_AT, "RBX": 0x5AFE, "RSP": code.STACK + 0x7F8}, x86_const
            h[code.STACK + 0x7F8] = code.BACK
        names = {name: getattr(constants, f"UC_{'ARM64' if h.arm else 'X86'}_REG_{name}") for name in registers}
        for name, value in registers.items():
            h.uc.reg_write(names[name], value)
        h.uc.emu_start(h.function, code.BACK, count=200)
        assert h.called == [code.ENTERED] * programs
        assert h.given == [environment(m) for m in range(programs)] * n
        assert h[code.SITE_AT + 8 * SITE["returns"]] == n
        assert h.uc.reg_read(names["X19" if h.arm else "RBX"]) == 0x5AFE
        assert h.uc.reg_read(names["SP" if h.arm else "RSP"]) == code.STACK + 0x800
