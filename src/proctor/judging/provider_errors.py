"""Translates provider errors: which are transient, which are rate limits, and which the user has to correct.

A model that refuses a setting is asked again without it; `AcceptedSettings` has the remaining ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import to_text
from proctor.base.transient import is_transient_status
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

    if isinstance(error, known.ModelQuotaExceededError):
        return EndpointFailed(f"has no quota or credit left: {_provider_message(error)}")
    if isinstance(error, known.ModelRateLimitError):
        return EndpointFailed(
            f"is rate limited: {_provider_message(error)}",
            transient=True,
            limited=True,
            retry_after=error.retry_after,
        )
    if isinstance(error, (known.ModelRequestTimeout, known.ModelTimeoutError)):
        return EndpointFailed("did not answer in time", transient=True, timed_out=True)
    if isinstance(error, known.ModelConnectionError):
        return EndpointFailed(f"cannot be reached: {_root_cause(error)}", transient=True)
    if isinstance(error, known.ModelAuthenticationError):
        return EndpointFailed(
            f"rejects the API key: {_provider_message(error)}; check the key, and api_key_env if you set base_url"
        )
    if isinstance(error, known.ModelNotFoundError):
        return EndpointFailed(f"was not found: {_provider_message(error)}; check the model's name and the address")
    if isinstance(error, known.ModelContextWindowExceededError):
        return EndpointFailed(f"got more text than its context window holds: {_provider_message(error)}")
    if isinstance(error, known.ModelRequestRejectedError):
        return EndpointFailed(f"rejects the request: {_provider_message(error)}")
    if isinstance(error, (known.ModelUnavailableError, known.ModelServerError)):
        return EndpointFailed(
            f"failed with a server error: {_provider_message(error)}", transient=True, retry_after=error.retry_after
        )
    return _other_failure(error, known)


def _other_failure(error: Exception, known: Any) -> EndpointFailed:
    if isinstance(error, known.ModelHTTPError):
        return EndpointFailed(
            f"answered with {_provider_message(error)}", transient=is_transient_status(error.status_code)
        )
    if isinstance(error, known.ModelAPIError):  # a body that is not JSON: most likely cut off
        return EndpointFailed(f"sent an unreadable answer: {_provider_message(error)}", transient=True)
    if isinstance(error, IndexError):  # the library takes the first choice without a check
        return EndpointFailed("sent an answer without a completion", transient=True)
    if isinstance(error, (AttributeError, TypeError, KeyError)):  # nor does it check their shape
        return EndpointFailed(f"sent something that is not a completion; check the address ({_root_cause(error)})")
    if isinstance(error, known.UnexpectedModelBehavior):
        return EndpointFailed(f"sent something that is not a completion; check the address: {_provider_message(error)}")
    if isinstance(error, (UsageError, known.UserError)):
        return EndpointFailed(f"cannot be used: {_provider_message(error)}")
    return EndpointFailed(f"failed with {type(error).__name__}: {_provider_message(error)}")


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
