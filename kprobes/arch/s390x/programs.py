"""Programs compiled for z/Architecture."""

from __future__ import annotations

from .._compiling import Compiling, Triple

ROWS = {"s390x": Compiling(triple=Triple("s390x-unknown-linux"))}
