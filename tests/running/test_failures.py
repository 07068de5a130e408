"""Whose failure an exception is depends on its type and its fields, never on its wording."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.agents.trial_context import MockBypassed
from proctor.base.diagnosis import FailureKind
from proctor.base.errors import AgentFailed, AgentRaised, UnreadableReply
from proctor.results.score import Outcome
from proctor.running.failures import ConversationInvalid, SessionLost, backoff_seconds, failure_of
from proctor.tracing.wrap import MissingInput


class StatusError(Exception):
    def __init__(self, status_code: int, retry_after: Any = None) -> None:
        self.status_code = status_code
        self.retry_after = retry_after
        super().__init__("from a library that is not imported here")


class ReadTimeout(Exception):
    """Called as libraries call it."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("wrong"), FailureKind.AGENT),
        (AgentFailed("gave up"), FailureKind.AGENT),
        (SystemExit(3), FailureKind.AGENT),
        (StatusError(404), FailureKind.AGENT),
        (ExceptionGroup("both", [ConnectionError(), ValueError()]), FailureKind.AGENT),
        (AgentFailed("busy", transient=True), FailureKind.TRANSIENT),
        (AgentFailed("no quota left", infrastructure=True), FailureKind.INFRASTRUCTURE),
        (ConnectionResetError(), FailureKind.TRANSIENT),
        (TimeoutError(), FailureKind.TRANSIENT),
        (StatusError(429), FailureKind.TRANSIENT),
        (StatusError(503), FailureKind.TRANSIENT),
        (ReadTimeout(), FailureKind.TRANSIENT),
        (ExceptionGroup("both", [ConnectionError(), TimeoutError()]), FailureKind.TRANSIENT),
        (SessionLost("the worker is gone"), FailureKind.TRANSIENT),
        (UnreadableReply("not JSON"), FailureKind.INFRASTRUCTURE),
        (MissingInput("profile", []), FailureKind.INFRASTRUCTURE),
        (MockBypassed("send_mail"), FailureKind.INFRASTRUCTURE),
        (ConversationInvalid("the simulated user failed"), FailureKind.INFRASTRUCTURE),
    ],
    ids=lambda value: value.name if isinstance(value, FailureKind) else type(value).__name__,
)
def test_whose_failure_an_exception_is(error: BaseException, kind: FailureKind) -> None:
    failure = failure_of(error)
    assert failure.diagnosis.kind is kind
    assert failure.outcome is (Outcome.FAILED if kind is FailureKind.AGENT else Outcome.ERROR)


def test_wording_decides_nothing() -> None:
    assert failure_of(AgentFailed("raised the price")).reason == "raised the price"
    assert failure_of(AgentRaised("raised SystemExit: 3")).reason == "the agent raised SystemExit: 3"


def test_a_service_says_when_to_come_back() -> None:
    assert failure_of(StatusError(429, 7)).diagnosis.retry_after == 7
    assert failure_of(StatusError(429, "soon")).diagnosis.retry_after == 0


def test_a_lost_session_takes_no_further_turn() -> None:
    assert failure_of(SessionLost("gone")).loses_session
    assert not failure_of(ConnectionError()).loses_session


def test_pauses_grow_up_to_a_limit() -> None:
    assert backoff_seconds(1, 1) < backoff_seconds(1, 3)
    assert backoff_seconds(1, 50) == 30
