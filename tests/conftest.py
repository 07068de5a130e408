"""What all tests share: how hard Hypothesis looks. `HYPOTHESIS_PROFILE=thorough` makes it look ten times as hard."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("usual"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
