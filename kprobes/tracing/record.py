"""Alias of the module of `Record`, which records of events have in common with traces."""

from ..events._record import Record, task_text

__all__ = ["Record", "task_text"]
