"""Probe programs: eBPF at probes of any guest.

A program is eBPF code (RFC 9669), made by a compiler or by hand, that runs at a probe instead of a Python handler.

Rooms, each importing only those before it:

    isa           instructions: decode, encode, what is legal
    disassembly   instructions as text
    maps          what programs and Python share, in host memory at addresses that do not move
    helpers       what programs may call, by Linux's numbers: kinds of arguments, and what they do
    code          a program ready to run: instructions, maps, source lines
"""
