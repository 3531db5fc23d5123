"""What the guest's files say of its source: frames of functions, types, variables, lines (DWARF 2 to 5)."""
