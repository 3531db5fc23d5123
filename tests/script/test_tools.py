"""The tools in examples/scripts, at what they are for: bash, and OpenSSL's libssl in a process under QEMU."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from arch_rows import QEMU_NAMES

from kprobes import Kprobes, QemuMachine, Unsupported
from kprobes.machine.remote.launch import OLDEST, find_qemu

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "examples" / "scripts"
_HOSTS = {"aarch64": "arm64"}


def tool(name: str) -> str:
    """Path of a program of this computer's; skips where there is none, or no QEMU for it."""
    arch = _HOSTS.get(platform.machine(), platform.machine())
    try:
        find_qemu(f"qemu-{QEMU_NAMES.get(arch, arch)}", OLDEST)
    except Unsupported as error:
        pytest.skip(str(error))
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return os.path.realpath(path)


def test_bashreadline() -> None:
    """The guest reads the command's standard input."""
    words = [tool("bash"), TOOLS / "bashreadline.bt", "-q", "--qemu", "--arg=--norc", "--arg=-i"]
    done = subprocess.run([sys.executable, "-m", "kprobes", "script", *words], input=b"echo one\necho $((6 * 7))\n",
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    lines = [re.sub(r"^\d\d:\d\d:\d\d  ", "typed ", line) for line in done.stdout.decode().splitlines() if line]
    # each line is shown before the guest goes on
    assert lines == ["TIME      LINE", "typed echo one", "one", "typed echo $((6 * 7))", "42"]


def test_exit_ends_a_process_at_once() -> None:
    words = [tool("bash"), "-q", "-e", "uretprobe:*:readline { print(str(retval)); exit(3); }", "--qemu",
             "--arg=--norc", "--arg=-i"]
    done = subprocess.run([sys.executable, "-m", "kprobes", "script", *words], input=b"echo one\necho two\n",
                          capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split()) == (3, [b"echo", b"one"]), done.stderr


@pytest.fixture
def backwards(tmp_path: Path) -> Iterator[int]:
    """Port of a server that speaks TLS, sends each line back in reverse, and hangs up at `CLOSE`."""
    openssl = tool("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-subj", "/CN=demo", "-days", "1"], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"openssl makes no certificate here: {made.stderr.decode()}")
    server = subprocess.Popen([openssl, "s_server", "-rev", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith(b"ACCEPT"):
                yield int(line.rpartition(b":")[2])
                return
        pytest.skip("openssl's server does not listen here")
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def test_sslsnoop(backwards: int) -> None:
    """What goes over the wire is encrypted; the script shows what went in and what came out."""
    argv = [tool("openssl"), "s_client", "-quiet", "-connect", f"127.0.0.1:{backwards}"]
    with QemuMachine.user(argv, stdin=b"hello over TLS\nCLOSE\n", stdout=subprocess.DEVNULL) as m, Kprobes(m) as k:
        if not any(str(symbol.module).startswith("libssl.so") for symbol in m.symbols):
            pytest.skip("openssl is linked without a libssl.so here")
        with k.script((TOOLS / "sslsnoop.bt").read_text()) as s:
            m.run(timeout=60)
    lines = [re.sub(r" +", " ", line) for line in s.output.splitlines() if line]
    assert lines[0] == "FUNCTION BYTES US DATA"
    assert re.fullmatch(r"SSL_write 21 \d+ hello over TLS\\x0aCLOSE\\x0a", lines[1]), lines
    assert re.fullmatch(r"SSL_read 15 \d+ SLT revo olleh\\x0a", lines[2]), lines
    assert len(lines) == 3, lines
