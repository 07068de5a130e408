"""Decides whose failure an exception is, and whether to retry. Nothing else decides this.

An exception of the agent's own code is a failure of the agent. One that the network, a service, the case or Proctor
causes says nothing about the agent: the trial is an error. The decision depends on types and fields, never on the
wording of a message.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

from proctor.agents.trial_context import MockBypassed
from proctor.base.errors import AgentFailed, AgentRaised, UnreadableReply, one_line, user_location
from proctor.base.transient import is_transient, retry_after
from proctor.results.score import Outcome
from proctor.tracing.wrap import MissingInput


class ConversationInvalid(Exception):
    """The conversation could not continue for a reason that is not the agent's, so it says nothing about the agent."""


class SessionLost(AgentFailed):
    """The process of the session has ended: no turn can be sent to it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)


class FailureKind(Enum):
    """What caused a failure."""

    AGENT = "agent"
    INFRASTRUCTURE = "infrastructure"
    """Not the agent, and retrying would not help."""
    TRANSIENT = "transient"
    """Not the agent, and retrying may help."""

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAILED if self is FailureKind.AGENT else Outcome.ERROR


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a conversation or a turn failed."""

    kind: FailureKind
    reason: str
    retry_after: float = 0.0
    """Seconds that the service asked to wait; 0 if it did not ask."""
    breaks_session: bool = False
    """Whether the next turns of the session will probably fail too."""
    loses_session: bool = False
    """Whether the session has ended, so that no turn can be sent to it."""

    @property
    def outcome(self) -> Outcome:
        return self.kind.outcome

    @property
    def is_transient(self) -> bool:
        return self.kind is FailureKind.TRANSIENT


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception from an agent's session means."""
    if isinstance(error, UnreadableReply):
        return Failure(FailureKind.INFRASTRUCTURE, f"the agent's reply cannot be read: {error}")
    if isinstance(error, (ConversationInvalid, MissingInput, MockBypassed)):
        return Failure(FailureKind.INFRASTRUCTURE, str(error))
    kind = FailureKind.TRANSIENT if is_transient(error) else FailureKind.AGENT
    if kind is FailureKind.AGENT and isinstance(error, AgentFailed) and error.infrastructure:
        kind = FailureKind.INFRASTRUCTURE
    lost = isinstance(error, SessionLost)
    breaks = lost or bool(getattr(error, "breaks_session", False)) or isinstance(error, ConnectionError)
    return Failure(kind, failure_message(error), retry_after(error), breaks, lost)


def failure_message(error: BaseException) -> str:
    """The failure as a sentence about the agent."""
    if isinstance(error, AgentRaised):
        return f"the agent {error}"
    if isinstance(error, AgentFailed):
        return str(error)
    return f"the agent raised {one_line(error)}{user_location(error)}"


def backoff_seconds(first: float, attempt: int) -> float:
    """The pause after an attempt: longer each time, and randomized so that trials do not retry all at once."""
    factor: float = 2.0 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
    return min(30.0, first * factor)
