"""Detours that run programs in the guest: no stop, nothing of the host's. How each architecture
saves registers.
"""
