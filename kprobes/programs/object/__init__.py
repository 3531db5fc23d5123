"""Objects of BPF compilers, each room importing only those before it:

elf      sections, symbols, relocations
btf      types; source lines
values   keys, values and variables, shown by their types
loader   from an object to programs
clang    from C to an object
"""
