"""A heap check: memory errors of a guest's C and C++ programs, found while it runs.

`k.heap()` makes one. It stands in for the guest's allocator: `functions` says which functions that
is, `memory` hands out blocks with red zones around them and keeps freed ones back, `finding` has
what is reported. Begin with `check`.
"""

from .check import HeapCheck
from .finding import HeapFinding
from .memory import FreedBlock, HeapBlock

__all__ = ["FreedBlock", "HeapBlock", "HeapCheck", "HeapFinding"]
