"""Guests behind a stub of the GDB remote protocol: QEMU's, gdbserver's, OpenOCD's.

Begin with `machine`, which makes the parts and hands each what it needs, and with the table of
states in `runstate`. From the socket upwards:

| modules | what they are for |
|---|---|
| `packets` `polling` | packets over a socket; waiting for an answer |
| `target` `stopreplies` | a stub: what it can do, what it says at a stop |
| `breakpoints` `flash` | the stub's breakpoints; memory where only hardware ones work |
| `registers` `layouts` `threads` | register files; how stubs number registers; threads as CPUs |
| `runstate` | the state of runs (with a table of phases) |
| `runcontrol` `calls` | runs: stops become reports; guest calls |
| `interrupts` | stopping a running guest |
| `accesses` `pendingbranches` | faults; branches that wait for their delay slot |
| `trapsintext` | traps of the core's own in a process under QEMU |
| `lockstate` `threadlock` | the lock by which threads take turns at probes; its table of states |
| `secondthread` | how taking turns begins |
| `trampolines` `deferred` | code that takes that lock; changes of text while threads run |
| `memory` `scratch` `files` | memory as the core sees it; executable pages; what is loaded |
| `injected` `linux` | code that a guest executes for the library; system calls |
| `sites` `hostreads` | programs in the guest; their reads of memory that the host makes |
| `children` `detaching` `returnaddresses` | processes that run on without the library |
| `launch` | QEMU, started by the library |
"""

from .launch import QemuMachine
from .machine import RemoteMachine

__all__ = ["QemuMachine", "RemoteMachine"]
