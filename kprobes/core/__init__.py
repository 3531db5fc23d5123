"""The architecture-agnostic core. It drives; an architecture only answers, a machine only reports.
"""
