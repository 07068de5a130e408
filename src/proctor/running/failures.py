"""What an exception from an agent's session means for its trial: the outcome, the reason, and whether to retry.

`proctor.base.infrastructure` decides whose failure the exceptions of agents and libraries are. This module adds those
of the engine, which say nothing about the agent either: the conversation could not be held as the case describes it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from proctor.agents.trial_context import MockBypassed
from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed, AgentRaised, UnreadableReply, one_line, user_location
from proctor.base.infrastructure import diagnose, wrapped_cause
from proctor.results.score import Outcome
from proctor.tracing.wrap import MissingInput

_INFRASTRUCTURE = Diagnosis(FailureKind.INFRASTRUCTURE)


class ConversationInvalid(Exception):
    """The conversation could not continue for a reason that is not the agent's, so it says nothing about the agent."""

    def __init__(self, message: str, diagnosis: Diagnosis = _INFRASTRUCTURE) -> None:
        self.diagnosis = diagnosis
        super().__init__(message)


def not_started(agent: str, problem: str) -> ConversationInvalid:
    """The exception for an agent that cannot start in the process of a trial; it could not in the next one either."""
    message = f"the agent {agent} could not start: {problem}"
    return ConversationInvalid(message, Diagnosis(FailureKind.INFRASTRUCTURE, message, lasting=True))


class SessionLost(AgentFailed):
    """The process of the session has ended: no turn can be sent to it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, transient=True)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a conversation or a turn failed."""

    diagnosis: Diagnosis
    reason: str
    breaks_session: bool = False
    """Whether the next turns of the session will probably fail too."""
    loses_session: bool = False
    """Whether the session has ended, so that no turn can be sent to it."""

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAILED if self.diagnosis.is_agent else Outcome.ERROR

    @property
    def is_transient(self) -> bool:
        return self.diagnosis.is_transient


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception from an agent's session means."""
    if isinstance(error, UnreadableReply):
        return Failure(_INFRASTRUCTURE, f"the agent's reply cannot be read: {error}")
    if isinstance(error, (ConversationInvalid, MissingInput, MockBypassed)):
        return Failure(error.diagnosis if isinstance(error, ConversationInvalid) else _INFRASTRUCTURE, str(error))
    lost = isinstance(error, SessionLost)
    breaks = lost or bool(getattr(error, "breaks_session", False)) or isinstance(error, ConnectionError)
    return Failure(diagnose(error), failure_message(error), breaks, lost)


def failure_message(error: BaseException) -> str:
    """The failure as a sentence about the agent."""
    if isinstance(error, AgentRaised):
        return f"the agent {error}"
    if isinstance(error, AgentFailed):
        return str(error)
    cause = wrapped_cause(error)
    return f"the agent raised {one_line(error)}{user_location(error)}" + (f"; cause: {cause}" if cause else "")


def backoff_seconds(first: float, attempt: int) -> float:
    """The pause after an attempt: longer each time, and randomized so that trials do not retry all at once."""
    factor: float = 2.0 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
    return min(30.0, first * factor)
