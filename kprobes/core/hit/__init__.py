"""What a hit does: traps, call sites, returns, faults; the control block."""
