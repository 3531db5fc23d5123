"""Registers where the engine keeps them: words in its CPU structure, found by trial and checked.

Begin with `cells`, the words that hooks read and write, then `view`, the registers of handlers.
"""
