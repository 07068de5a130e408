"""A session that examines no agent does not notice the plugin."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

pytest_plugins = "pytester"

LOADED = """
import sys

def test_it():
    assert not {"yaml", "pydantic", "httpx2"} & set(sys.modules)
"""


def test_no_heavy_package_is_loaded_and_nothing_is_printed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_plain=LOADED)

    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:anyio")

    result.assert_outcomes(passed=1)
    assert "proctor" not in result.stdout.str().partition("collected")[2]


def test_the_options_are_listed_together_in_the_help(pytester: pytest.Pytester) -> None:
    result = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)

    for option in (
        "--proctor-agent",
        "--proctor-judge",
        "--proctor-fast",
        "--proctor-reuse",
        "--proctor-store",
        "--proctor-pending",
    ):
        assert option in result.stdout
