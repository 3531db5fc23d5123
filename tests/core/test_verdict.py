"""What k.check() says of an instruction besides whether it may be probed."""

from __future__ import annotations

import pickle

import pytest
from arches import HERE

from kprobes import Kprobes, SourceLine, UnicornMachine

pytestmark = pytest.mark.quick


def test_line() -> None:
    """Looked up when it is read, kept by copies; None where no file tells."""
    with UnicornMachine.load(HERE.parent / "examples" / "packets.x86_64") as m, Kprobes(m) as k:
        found = k.check("memcpy")
        assert isinstance(found.line, SourceLine) and found.line.path.endswith("packets.c")
        assert pickle.loads(pickle.dumps(found)).line == found.line
    with UnicornMachine.from_code(bytes.fromhex("1eff2fe1"), arch="arm") as m, Kprobes(m) as k:
        assert k.check(0x10000).line is None
