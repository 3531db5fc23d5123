"""Machine code for the machine that runs Python: what serves a call site without asking Python.

Begin with `hostcode`, which loads what `kprobes/native` has compiled, then `callsites`.
"""
