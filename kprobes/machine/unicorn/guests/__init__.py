"""Rows of facts about Unicorn, one for each architecture.

Begin with `guest`, which explains what a row consists of; `rows` finds an architecture's.
"""
