"""Fixtures that several tests of agents share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from refusing_provider import RefusingProvider, refusing_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[RefusingProvider]:
    """A loopback server that refuses every request as a model provider does."""
    with refusing_provider() as server:
        yield server
