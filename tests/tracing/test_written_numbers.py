"""Floating-point numbers as types of the guest have them: numpy, whose long double is the host's, is the judge."""

from __future__ import annotations

import math
import platform
import random
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from kprobes.arch import get
from kprobes.debug.numbers import number, real_number_bits

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.quick


def drawn(seed: int) -> list[float]:
    """Doubles of every exponent, many of them subnormal, and the special ones."""
    rng = random.Random(seed)
    bits = [rng.getrandbits(64) & ~(rng.choice((0, 0x7FF)) << 52) for _ in range(2000)]
    found = [struct.unpack("<d", each.to_bytes(8, "little"))[0] for each in bits]
    return [each for each in found if not math.isnan(each)] + [0.0, -0.0, math.inf, -math.inf, 5e-324, 1.0, 0.1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a long double of the host is x87's there")
def test_x87() -> None:
    type: Any = SimpleNamespace(kind="float", size=16, base_name="long double", name="long double")
    for value in drawn(1):
        assert real_number_bits(type, value, get("x86_64")) == int.from_bytes(numpy.longdouble(value).tobytes()[:10], "little")


@pytest.mark.parametrize(("arch", "size", "base"), [("arm64", 16, "long double"), ("x86_64", 16, "_Float128"), ("i386", 12, "long double")])
def test_what_is_written_is_read(arch: str, size: int, base: str) -> None:
    type: Any = SimpleNamespace(kind="float", size=size, base_name=base, name=base, signed=True, order="little", bits=8 * size)
    for value in drawn(2):
        found = number(type, real_number_bits(type, value, get(arch)), get(arch))
        assert isinstance(found, float)
        assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


def test_halves() -> None:
    type: Any = SimpleNamespace(kind="float", size=2, base_name="_Float16", name="_Float16")
    with numpy.errstate(over="ignore"):
        for value in drawn(3):
            assert real_number_bits(type, value, get("arm64")) == int.from_bytes(numpy.float16(value).tobytes(), "little")
