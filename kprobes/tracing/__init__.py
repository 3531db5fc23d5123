"""Tracing: records of events, and what is made of them."""

from .record import Record

__all__ = ["Record"]
