"""`python -m kprobes`: the command."""

from .cli import main

main(prog_name="kprobes")
