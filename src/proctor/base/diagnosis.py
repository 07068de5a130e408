"""Whose failure something is, as data; `proctor.base.infrastructure` decides it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FailureKind(Enum):
    """What caused a failure."""

    AGENT = "agent"
    INFRASTRUCTURE = "infrastructure"
    """Not the agent, and retrying would not help."""
    TRANSIENT = "transient"
    """Not the agent, and retrying may help."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Whose failure an exception or a response is, and what to do about it."""

    kind: FailureKind
    cause: str = ""
    """What is wrong, in a few words that are the same for the same problem: `OPENAI_API_KEY is not set`."""
    retry_after: float = 0.0
    """Seconds that the service asks to wait; 0 if it does not ask."""
    limited: bool = False
    """Whether the service refused the request because of its rate limit."""
    lasting: bool = False
    """Whether the next trial would have the same problem."""
    decided: bool = False
    """Whether the code that raised the exception decided it, so that what it wraps does not matter."""

    @property
    def is_transient(self) -> bool:
        return self.kind is FailureKind.TRANSIENT

    @property
    def is_agent(self) -> bool:
        return self.kind is FailureKind.AGENT


AGENT = Diagnosis(FailureKind.AGENT)
"""The agent's own failure."""
