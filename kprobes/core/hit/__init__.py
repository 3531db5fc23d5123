"""Serves hits: traps, call sites, returns, faults; the control block."""
