"""Sessions inside a test's own process forget what they imported; what does not bear being imported twice is here."""

from __future__ import annotations

import pytest
import yaml  # noqa: F401  its compiled part keeps the classes of its first import
from command_line import NO_HYPOTHESIS

import proctor.plugin.fixtures
import proctor.plugin.session_report

# pytester forgets every module that a run inside this process imports; what others remember must not go stale.
for _name in proctor.__all__:
    getattr(proctor, _name)


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(NO_HYPOTHESIS))
    return pytester
