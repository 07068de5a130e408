"""Decides which failures are transient: caused by the network or an overloaded service, so that a retry may help.

Exceptions of libraries that are not imported here are recognized by their class name and their status code.
"""

from __future__ import annotations

_RETRY_LATER_STATUSES = frozenset({408, 425, 429})
_SERVER_ERROR_STATUSES = frozenset({500, 502, 503, 504, 529})

_EXCEPTION_NAMES = frozenset(
    """ConnectionError APIConnectionError APITimeoutError NetworkError ConnectError ReadError WriteError
    RemoteProtocolError Timeout TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout""".split()
)

MAX_PAUSE_SECONDS = 120.0
"""The longest wait before a retry, even if the service asks for more."""


def is_transient_status(status: int | None) -> bool:
    """Whether a request that got this HTTP status may succeed when it is sent again."""
    return status is not None and (status in _RETRY_LATER_STATUSES or status >= 500)


def is_transient(error: BaseException) -> bool:
    """Whether an exception is transient; its own attribute `transient` decides if it has one."""
    attribute = getattr(error, "transient", None)
    if isinstance(attribute, bool):
        return attribute
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(inner) for inner in error.exceptions)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    for owner, name in ((error, "status_code"), (error, "code"), (getattr(error, "response", None), "status_code")):
        status = getattr(owner, name, None)
        if isinstance(status, int) and status in _RETRY_LATER_STATUSES | _SERVER_ERROR_STATUSES:
            return True
    return any(kind.__name__ in _EXCEPTION_NAMES for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float:
    """How many seconds to wait as the service asked, at most `MAX_PAUSE_SECONDS`; 0 if it did not ask."""
    seconds = getattr(error, "retry_after", None)
    return min(float(seconds), MAX_PAUSE_SECONDS) if isinstance(seconds, (int, float)) and seconds > 0 else 0.0
