"""Failures in the shared contract are shown with their values, as those of a test file are."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("framework_contract")
