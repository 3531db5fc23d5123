"""Engines that run guests. An engine owns its quirks; none of them leaks upward.

Begin with `_base`, the contract between the core and an engine, then `paper`, the smallest engine.
"""
