"""`from proctor import ...`: every public name can be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import proctor


def test_every_public_name_resolves() -> None:
    assert [name for name in proctor.__all__ if getattr(proctor, name, None) is None] == []
    assert set(proctor.__all__) <= set(dir(proctor))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'proctor' has no attribute 'nope'"):
        _ = proctor.nope  # type: ignore[attr-defined]


@pytest.mark.process
def test_a_star_import_gives_every_public_name() -> None:
    script = "from proctor import *; import proctor; assert all(name in globals() for name in proctor.__all__)"
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, timeout=60)
