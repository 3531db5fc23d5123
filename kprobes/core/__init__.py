"""Probes: placed in guest text (patch), served when they are hit (hit), registered (register).

Nothing here is specific to an architecture or an engine. An architecture (arch) answers questions
about instructions; a machine (machine) runs the guest and reports traps and faults; the core
decides what happens. Begin with probe.py, what a user hands in; then hit/trap.py, what a hit does.
"""
