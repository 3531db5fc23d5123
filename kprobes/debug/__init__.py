"""Debug information of the guest's files: frames of functions, types, variables, lines (DWARF 2 to
5).
"""
