"""Registers where the engine keeps them: words in its CPU structure, found by trial and checked."""
