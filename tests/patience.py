"""What Hypothesis is to make of a busy machine: nothing. It would fail an example that took 0.2 seconds, and examples that
took a second to think of."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
