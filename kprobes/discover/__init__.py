"""Functions of code that has no symbols: `discover(machine)` finds where they begin.

- `_frames`: unwind tables, which stay in stripped files: `.eh_frame`, `.ARM.exidx`.
- `_sweep`: stretches of code, decoded from one end to the other: calls, jumps, and where nothing
  falls through.
- `_search`: from these to functions. Begin there.
"""

from __future__ import annotations

from ._search import Found, discover

__all__ = ["Found", "discover"]
