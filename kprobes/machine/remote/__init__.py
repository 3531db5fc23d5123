"""Guests behind a stub of the GDB remote protocol: QEMU's, gdbserver's, OpenOCD's.

Begin with `machine`, which makes the parts and hands each what it needs, and with the table of
states in `runcontrol`. From the socket upwards:

| room | does |
|---|---|
| `packets` `polling` | packets over a socket; busy waiting for an answer |
| `target` `stopreplies` `breakpoints` `flash` | a stub: what it can do, what it says at a stop, its breakpoints |
| `registers` `layouts` `threads` | register files, how stubs number registers, threads as CPUs |
| `runcontrol` `interrupts` `calls` | stops become reports (states of a run); stopping a guest; runs and calls |
| `accesses` `pendingbranches` `trapsintext` | faults; branches that wait for a delay slot; traps under QEMU |
| `threadlock` | threads take turns (states of their lock) |
| `secondthread` `trampolines` `deferred` | how that begins, code that takes the lock, text that changes |
| `memory` `scratch` `files` | memory as the core sees it; executable pages; what is loaded |
| `injected` `linux` | code that a guest executes for the library; system calls |
| `sites` `hostreads` | programs in the guest, and their reads that the host makes |
| `children` `detaching` `returnaddresses` | processes that go on without the library |
| `launch` | QEMU, started by the library |
"""

from .launch import QemuMachine
from .machine import RemoteMachine

__all__ = ["QemuMachine", "RemoteMachine"]
