"""An architecture of somebody else's: a distribution with entry points, installed by pip, used by a process that knows
only its name."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

#: RISC-V under another name: what a distribution of its own would contain, apart from the rows.
PACKAGE = """
from attrs import evolve
from kprobes.arch._base import Files
from kprobes.arch.riscv.isa import ARCHES
from kprobes.machine.unicorn import GUESTS

riscv32 = next(arch for arch in ARCHES if arch.name == "riscv32")
other, broken, rowless = (evolve(riscv32, name=name, files=Files()) for name in ("other32", "broken32", "rowless32"))
guest = evolve(GUESTS["riscv32"])
not_a_guest = object()
"""
USE = """
import unicorn
import kprobes
from kprobes import Kprobes, UnicornMachine

# sum: li a1, 0; loop: add a1, a1, a0; addi a0, a0, -1; bnez a0, loop; mv a0, a1; ret
code = bytes.fromhex("93050000 b385a500 1305f5ff e31c05fe 13850500 67800000")
assert "other32" in kprobes.arch_names()
with UnicornMachine.from_code(code, arch="other32", base=0x10000, symbols={"sum": (0x10000, 24)}) as m, Kprobes(m) as k:
    seen = []
    with k.kprobe("sum", offset=12, pre_handler=lambda p, regs: seen.append(regs["a0"])), k.kretprobe("sum", handler=lambda ri, regs: seen.append("returns")):
        print(m.arch.name, m.call("sum", 3), seen)
uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
print(UnicornMachine.attach(uc, arch="other32").arch.name, UnicornMachine.attach(uc).arch.name)
for arch in ("broken32", "rowless32"):
    try:
        UnicornMachine.from_code(code, arch=arch)
    except kprobes.Unsupported as error:
        print(error)
"""
ENTRY_POINTS = """
[kprobes.arch]
other32 = other_arch:other
broken32 = other_arch:broken
rowless32 = other_arch:rowless
[kprobes.unicorn]
other32 = other_arch:guest
broken32 = other_arch:not_a_guest
"""


def wheel(folder: Path) -> Path:
    """A wheel of PACKAGE: a zip file with its metadata."""
    info = "other_arch-1.0.dist-info"
    files = {"other_arch.py": PACKAGE, f"{info}/METADATA": "Metadata-Version: 2.1\nName: other-arch\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             f"{info}/entry_points.txt": ENTRY_POINTS}
    lines = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}"
             for name, text in files.items()]
    path = folder / "other_arch-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": "\n".join([*lines, f"{info}/RECORD,,", ""])}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where pip has installed it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                           "--no-compile", "--disable-pip-version-check",
                           "--target", str(folder), str(wheel(tmp_path_factory.mktemp("wheel")))], capture_output=True,
                           text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_an_installed_architecture_runs_in_unicorn(site: Path) -> None:
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.append({str(site)!r})\n{USE}"],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    ran, attached, broken, rowless = done.stdout.splitlines()
    assert ran == "other32 6 [2, 1, 0, 'returns']"
    assert attached == "other32 riscv32"
    assert "'other_arch:not_a_guest' is no Guest" in broken
    assert rowless.startswith("no engine runs rowless32; its package has no entry point")
