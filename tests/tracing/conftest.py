"""Fixtures of the command's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from terminals import Terminals


@pytest.fixture(scope="session")
def terminals() -> Iterator[Terminals]:
    """One process that runs commands, ready when it is first asked for."""
    made = Terminals()
    yield made
    made.close()
