"""Serves hits: traps, call sites, returns, faults; the control block.

Begin with `trap`, which fixes the order of steps, then `handlers`; `entries` and `exits` serve hits
without a trap. `ctlblk` has the states of a hit.
"""
