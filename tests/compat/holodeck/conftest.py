"""The `proctor` command with all that it prints as one text."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def commanded(proctor: Callable[..., object]) -> Callable[..., tuple[int, str]]:
    """Run `proctor` with arguments; returns the exit code and everything it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        done = proctor(*arguments)
        return done.code, done.out + done.err

    return run
