"""Characters that would reach a terminal as more than text."""

from __future__ import annotations

#: Characters that end a line or paragraph, or change the direction in which others are shown
#: (Unicode's UAX #9): with these a text looks like another one.
_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
#: C0 and C1 controls, DEL and those above -> their escapes; for str.translate()
CONTROLS = (
    {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
    | {9: "\\t", 10: "\\n", 13: "\\r"}
    | {code: f"\\u{code:04x}" for code in _DIRECTIONS}
)
