"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scenes import Scene


@pytest.fixture(params=["x86_64", "arm64"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """The scene on the engine; at the end the guest's text must be as it was."""
    scene = Scene(request.param)
    yield scene
    scene.close()
