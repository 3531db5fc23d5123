"""Tracing: records of events, and what is made of them."""

from ..events._record import Record

__all__ = ["Record"]
