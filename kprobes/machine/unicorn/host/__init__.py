"""Machine code for the machine that runs Python: what serves a call site without asking Python."""
