"""What would reach a terminal as more than text."""

from __future__ import annotations

#: C0 and C1 controls and DEL -> their escapes; for str.translate()
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {9: "\\t", 10: "\\n", 13: "\\r"}
