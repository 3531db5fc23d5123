"""Probe programs: eBPF at probes of any guest.

A program is eBPF code (RFC 9669), made by a compiler or by hand, that runs at a probe instead of a
Python handler.

Rooms, each importing only those before it:

    isa           instructions: decode, encode, what is legal
    disassembly   instructions as text
    maps          what programs and Python share, in host memory at addresses that do not move
    call          what a helper is, and what a run of a program gives to it
    printf, meanings, helpers       formats; what each helper does; the table by Linux's numbers
    code          a program ready to run: instructions, maps, source lines
    operations, memory, interpreter what programs mean
    places, writer      what registers point at; how LLVM IR is written
    support             functions of kprobes/native/support.c, which the code of programs calls
    emit, keyed, inline, llvm       instructions, hash tables, helpers, whole programs to LLVM IR
    native, host, hostclock, site, guest    LLVM IR to machine code; on this host; its clock; at a machine's call
                        sites; in a guest
    engines       what runs them
    linker        programs of bare instructions; object/: of a compiler's objects, and of C
    context       the words that a program finds at r1, on every architecture
    program       Program
    header        <kprobes/bpf.h>
"""
