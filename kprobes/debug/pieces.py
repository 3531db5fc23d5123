"""The addresses of an entry's code (a function's, block's or unit's): one range, or a list
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

#: DW_FORM of addresses, as pyelftools has them translated
ADDRESS_FORMS: Final = {
    "DW_FORM_addr",
    "DW_FORM_addrx",
    "DW_FORM_addrx1",
    "DW_FORM_addrx2",
    "DW_FORM_addrx3",
    "DW_FORM_addrx4",
}


def spans(die: Any, unit: Any) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each range of an entry's code, as link addresses; nothing for an entry
    without addresses.

    Args:
        die: the entry.
        unit: its compilation unit.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    low, high, ranges = (
        die.attributes.get(f"DW_AT_{name}") for name in ("low_pc", "high_pc", "ranges")
    )
    if ranges is None:
        if low is not None and high is not None:
            yield low.value, high.value if high.form in ADDRESS_FORMS else low.value + high.value
        return
    start = base_address(unit)
    for entry in unit.dwarfinfo.range_lists().get_range_list_at_offset(ranges.value, cu=unit):
        if type(entry).__name__ == "BaseAddressEntry":
            start = entry.base_address
        else:
            bias = 0 if entry.is_absolute else start
            yield bias + entry.begin_offset, bias + entry.end_offset


def base_address(unit: Any) -> int:
    """Return the address that is added to a unit's relative ranges: its DW_AT_low_pc, or 0."""
    base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    return base.value if base is not None else 0
