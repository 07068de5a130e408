"""A store with two runs, and the viewer that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from served_viewer import serve_viewer
from stored_runs import two_runs


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewer") / ".proctor"
    two_runs(folder)
    return folder


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[httpx2.Client]:
    with serve_viewer(store) as client:
        yield client
