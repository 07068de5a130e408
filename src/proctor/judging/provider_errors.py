"""Translates provider errors into sentences for users; `proctor.base.infrastructure` decides which may be retried.

A model that refuses a setting is asked again without it; `AcceptedSettings` has the remaining ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import UsageError
from proctor.base.infrastructure import diagnose
from proctor.base.json_data import to_text
from proctor.judging.judge import EndpointFailed

MAX_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class AcceptedSettings:
    """The settings that the model accepts, as far as known."""

    reply: str = "schema"
    """How the shape of a reply is enforced: by its `schema`, as any JSON `object`, or not at all (`text`)."""
    temperature: bool = True


def endpoint_failure(error: Exception) -> EndpointFailed:
    """An error of the library or of a provider's SDK as `EndpointFailed`."""
    from pydantic_ai import exceptions as known

    timed_out = isinstance(error, (known.ModelRequestTimeout, known.ModelTimeoutError))
    cut_off = Diagnosis(FailureKind.TRANSIENT)
    is_incomplete = isinstance(error, IndexError) or type(error) is known.ModelAPIError
    return EndpointFailed(
        _failure_text(error, known),
        timed_out=timed_out,
        diagnosis=cut_off if timed_out or is_incomplete else diagnose(error),
    )


def _failure_text(error: Exception, known: Any) -> str:
    """What the model did, as the rest of a sentence that starts with its name."""
    if isinstance(error, known.ModelQuotaExceededError):
        return f"has no quota or credit left: {_provider_message(error)}"
    if isinstance(error, known.ModelRateLimitError):
        return f"is rate limited: {_provider_message(error)}"
    if isinstance(error, (known.ModelRequestTimeout, known.ModelTimeoutError)):
        return "did not answer in time"
    if isinstance(error, known.ModelConnectionError):
        return f"cannot be reached: {_root_cause(error)}"
    if isinstance(error, known.ModelAuthenticationError):
        return f"rejects the API key: {_provider_message(error)}; check the key, and api_key_env if you set base_url"
    if isinstance(error, known.ModelNotFoundError):
        return f"was not found: {_provider_message(error)}; check the model's name and the address"
    if isinstance(error, known.ModelContextWindowExceededError):
        return f"got more text than its context window holds: {_provider_message(error)}"
    if isinstance(error, known.ModelRequestRejectedError):
        return f"rejects the request: {_provider_message(error)}"
    if isinstance(error, (known.ModelUnavailableError, known.ModelServerError)):
        return f"failed with a server error: {_provider_message(error)}"
    return _other_failure_text(error, known)


def _other_failure_text(error: Exception, known: Any) -> str:
    if isinstance(error, known.ModelHTTPError):
        return f"answered with {_provider_message(error)}"
    if isinstance(error, known.ModelAPIError):  # a body that is not JSON: most likely cut off
        return f"sent an unreadable answer: {_provider_message(error)}"
    if isinstance(error, IndexError):  # the library takes the first choice without a check
        return "sent an answer without a completion"
    if isinstance(error, (AttributeError, TypeError, KeyError)):  # nor does it check their shape
        return f"sent something that is not a completion; check the address ({_root_cause(error)})"
    if isinstance(error, known.UnexpectedModelBehavior):
        return f"sent something that is not a completion; check the address: {_provider_message(error)}"
    if isinstance(error, (UsageError, known.UserError)):
        return f"cannot be used: {_provider_message(error)}"
    return f"failed with {type(error).__name__}: {_provider_message(error)}"


def fallback_settings(error: Exception, accepted: AcceptedSettings) -> AcceptedSettings | None:
    """The settings without the one that the model refuses; `None` if the error has another cause."""
    from pydantic_ai import exceptions as known

    special = (known.ModelAuthenticationError, known.ModelNotFoundError, known.ModelContextWindowExceededError)
    if not isinstance(error, known.ModelRequestRejectedError) or isinstance(error, special):
        return None
    words = f"{error} {error.body}".lower()
    if accepted.temperature and re.search(r"temperature|top_p|sampling", words):
        return replace(accepted, temperature=False)
    if accepted.reply != "text" and re.search(
        r"response.?format|json.?schema|json.?object|schema|output_config", words
    ):
        return replace(accepted, reply="object" if accepted.reply == "schema" else "text")
    return None


def _provider_message(error: Exception) -> str:
    """The provider's message without the wrapping of the library."""
    body = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    message = _message(body) or str(error)
    return to_text(" ".join(f"HTTP {status}, {message}".split() if status else message.split()), MAX_MESSAGE)


def _message(body: Any) -> str:
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return str(body)
    if not isinstance(body, Mapping):
        return ""
    inner = body.get("error", body)
    message = inner.get("message") if isinstance(inner, Mapping) else inner
    return message if isinstance(message, str) else ""


def _root_cause(error: BaseException) -> str:
    """The first cause: the library itself says only `Connection error.`"""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return to_text(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__, MAX_MESSAGE)
