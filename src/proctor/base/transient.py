"""Which failures are transient: the network or an overloaded service is at fault, and trying again may help.

Libraries that are not imported here are recognised by the names of their exceptions and by the status they carry.
"""

from __future__ import annotations

_REFUSED_FOR_NOW = frozenset({408, 425, 429})
_SERVER_BUSY = frozenset({500, 502, 503, 504, 529})

_EXCEPTION_NAMES = frozenset(
    """ConnectionError APIConnectionError APITimeoutError NetworkError ConnectError ReadError WriteError
    RemoteProtocolError Timeout TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout""".split()
)

MAX_PAUSE_SECONDS = 120.0
"""A service may ask to be left alone for this long; a run does not wait for longer."""


def is_transient_status(status: int | None) -> bool:
    """Whether a response with this HTTP status may be different when the request is sent again."""
    return status is not None and (status in _REFUSED_FOR_NOW or status >= 500)


def is_transient(error: BaseException) -> bool:
    """Whether an exception is transient; its own attribute `transient` decides if it has one."""
    marked = getattr(error, "transient", None)
    if isinstance(marked, bool):
        return marked
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(inner) for inner in error.exceptions)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    for owner, name in ((error, "status_code"), (error, "code"), (getattr(error, "response", None), "status_code")):
        status = getattr(owner, name, None)
        if isinstance(status, int) and status in _REFUSED_FOR_NOW | _SERVER_BUSY:
            return True
    return any(kind.__name__ in _EXCEPTION_NAMES for kind in type(error).__mro__)


def retry_after(error: BaseException) -> float:
    """For how many seconds the service asked to be left alone, as far as a run waits; 0 if it did not ask."""
    seconds = getattr(error, "retry_after", None)
    return min(float(seconds), MAX_PAUSE_SECONDS) if isinstance(seconds, (int, float)) and seconds > 0 else 0.0
