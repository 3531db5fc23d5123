"""`python -m kprobes`: the command."""

from .cli import command

command()
