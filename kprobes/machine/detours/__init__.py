"""Detours that run programs in the guest: no stop, nothing of the host's.

`inlined` puts programs' code into a detour. How each architecture saves registers is in its
`arch/<family>/detours.py`.
"""
