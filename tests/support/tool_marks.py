"""Parameters of tests that use one of the tools in `proctor.plugins.SHIPPED`; see `support_plugin.py`."""

from __future__ import annotations

from typing import Any

import pytest


def needing(tool: str, *values: Any) -> Any:
    """The values of a parameter, with which the test runs only if the tool is shipped."""
    return pytest.param(*values, marks=pytest.mark.needs(tool))
