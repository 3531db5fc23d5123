"""Probe programs: eBPF at probes of any guest.

A program is eBPF code (RFC 9669), made by a compiler or by hand, that runs at a probe instead of a
Python handler.

Rooms, each importing only those before it:

- `isa`: instructions: decode, encode, what is legal. `disassembly`: instructions as text.
- `maps`: what programs and Python share, in host memory at addresses that do not move.
- `call`: what a helper is, and what a run of a program gives to it. `printf`: formats. `meanings`:
  what each helper does. `helpers`: the table by Linux's numbers.
- `code`: a program ready to run: instructions, maps, source lines.
- `operations`, `memory`, `interpreter`: what programs mean.
- `places`: what registers point at. `writer`: how LLVM IR is written. `support`: functions of
  kprobes/native/support.c, which the code of programs calls.
- `emit`, `keyed`, `inline`, `llvm`: instructions, hash tables, helpers, whole programs to LLVM IR.
- `native`: LLVM IR to machine code. `host`: programs on this host. `hostclock`: its clock. `site`:
  programs at a machine's call sites. `guest`: programs in a guest.
- `engines`: what runs programs.
- `linker`: programs of bare instructions. `object`: of a compiler's objects, and of C.
- `context`: the words that a program finds at r1, on every architecture.
- `program`: Program. `header`: <kprobes/bpf.h>.
"""
