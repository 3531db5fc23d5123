"""Fixtures of the core's tests: a scene on the toy engine, or the same one on every machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scenes import MACHINES, Scene


@pytest.fixture
def paper() -> Iterator[Scene]:
    """A scene on the toy engine; at the end the guest must be as it was."""
    scene = Scene("paper")
    yield scene
    scene.close()


@pytest.fixture(params=MACHINES)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """The same scene on every machine; at the end the guest must be as it was."""
    scene = Scene(request.param)
    yield scene
    scene.close()
