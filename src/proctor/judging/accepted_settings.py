"""What a model accepts in a request, as far as is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AcceptedSettings:
    """The settings that the model accepts, as far as known."""

    reply: str = "schema"
    """How the shape of a reply is asked for: `schema`, `object` (some JSON object), or `text`."""
    temperature: bool = True
