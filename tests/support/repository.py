"""Where the repository is, for tests that look at its files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
