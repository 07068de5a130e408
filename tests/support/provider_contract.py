"""What a trial becomes when a model provider refuses its requests; every SDK is tested with it and with its own client.

    provider_errors(provider, OPENAI, lambda: client.chat.completions.create(...))

calls the client once for each refusal and compares what `diagnose` says about the exception that it raises.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Any

import engine_helpers
from refusing_provider import Refusal, RefusingProvider

from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.infrastructure import diagnose
from proctor.results.score import Outcome

AGENT, PERMANENT, TRANSIENT = FailureKind

KINDS = {
    "wrong key": PERMANENT,
    "no permission": PERMANENT,
    "no quota": PERMANENT,
    "payment": PERMANENT,
    "busy": TRANSIENT,
    "overloaded": TRANSIENT,
    "unknown model": AGENT,
    "bad request": AGENT,
}
"""Whose failure each refusal is."""


def raised_by(call: Callable[[], Any]) -> Diagnosis:
    """What is said about the exception of a call."""
    try:
        call()
    except Exception as error:
        return diagnose(error)
    raise AssertionError("the client raised nothing")


def check_provider_errors(provider: RefusingProvider, refusals: Mapping[str, Refusal], call: Callable[[], Any]) -> None:
    """Every refusal is told apart, and a rate limit says when to come back."""
    found = {}
    for name, refusal in refusals.items():
        provider.refusal = refusal
        found[name] = raised_by(call)
    assert {name: diagnosis.kind for name, diagnosis in found.items()} == {name: KINDS[name] for name in refusals}
    assert found["busy"].limited
    assert found["busy"].retry_after == 7
    assert all(diagnosis.lasting for diagnosis in found.values() if diagnosis.kind is PERMANENT)


def unused_url() -> str:
    """An address at which nothing listens."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def check_refused(call: Callable[[], Any]) -> None:
    """A connection that is refused is retried, and all trials have the same problem."""
    diagnosis = raised_by(call)
    assert (diagnosis.kind, diagnosis.lasting) == (TRANSIENT, True)


def check_trial(provider: RefusingProvider, refusals: Mapping[str, Refusal], agent: Any) -> None:
    """A trial of the agent whose key is wrong is an error, and the agent is not called again."""
    provider.refusal = refusals["wrong key"]
    before = provider.requests
    run, verdict = engine_helpers.run(engine_helpers.suite([engine_helpers.case("c")]), agent=agent)
    (trial,) = run.trials
    assert (trial.outcome, trial.attempts, verdict.exit_code) == (Outcome.ERROR, 1, 4), trial.reason
    assert provider.requests - before == 1


def check_missing_key(call: Callable[[], Any], cause: str) -> None:
    assert raised_by(call) == Diagnosis(PERMANENT, cause, lasting=True)
