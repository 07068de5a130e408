"""Decides whose failure an exception, an HTTP status or a message is: the infrastructure's, or the agent's own.

Infrastructure is everything between the agent and its answer that the agent's author does not write: keys and logins,
quotas, rate limits, outages, DNS, TLS, proxies, the limits of this machine, programs that are not installed. A failure
there says nothing about the agent. `diagnose` is the one place that decides it, for agents, judges, evaluators,
frameworks and commands.

Libraries that are not imported here are recognized by what their exceptions have in common: an HTTP status
(`status_code`, `status`, `code`, boto's `response`, gRPC's `code()`), the error codes in the body, the errno of the
operating system, the name of the class. Wording decides only where a library raises a plain exception: for a missing
key, for a login, and for programs, of which nothing but the output is known.

An exception may wrap the real one, so the chain is searched too. An explicit `raise … from error` and a group are
always followed. `__context__` needs care, since Python sets it on anything that is raised while another exception is
handled: also on the bug in a fallback that runs because of a 401. So it counts as the cause only

- if a library caught the inner exception: it translates it into its own, wherever it raises it; or
- if the agent's function that caught it raised the outer one itself (`except E: raise MyError(...)`), and not as the
  bug that a `KeyError` or `AttributeError` in a handler is. What a function called in the handler raises is the
  agent's own failure: it had the chance to answer without the service, and did not.
"""

from __future__ import annotations

import contextlib
import email.utils
import errno
import inspect
import json
import math
import os
import re
import socket
import sqlite3
import ssl
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from proctor.base.diagnosis import AGENT, Diagnosis, FailureKind
from proctor.base.errors import is_user_file, one_line

_RETRY_LATER_STATUSES = frozenset({408, 425, 429})
_PERMANENT_STATUSES = {
    401: "the API key or login is rejected (HTTP 401)",
    402: "no credit or quota is left (HTTP 402)",
    403: "access is denied (HTTP 403)",
    407: "the proxy requires a login (HTTP 407)",
}
_REJECTED_KEY = "the API key or login is rejected"
_NO_QUOTA = "no credit or quota is left"
_NO_KEY = "the API key or login is missing"
_NOT_LOGGED_IN = "not logged in"
_REFUSED = "the connection is refused"
_NO_HOST = "the host name cannot be resolved"
_TLS = "the TLS connection is not accepted"
_PROXY = "the proxy cannot be used"

_CODES = {
    **dict.fromkeys(
        """invalid_api_key api_key_invalid authentication_error unauthenticated authenticationfailed
        unrecognizedclientexception expiredtokenexception expiredtoken invalidsignatureexception
        invalidclienttokenid account_deactivated""".split(),
        _REJECTED_KEY,
    ),
    **dict.fromkeys("permission_error permission_denied accessdeniedexception".split(), "access is denied"),
    **dict.fromkeys(
        """insufficient_quota billing_error billing_not_active billing_hard_limit_reached insufficient_balance
        servicequotaexceededexception""".split(),
        _NO_QUOTA,
    ),
}
"""Error codes in the body of a response, in lower case, that need a person: no retry helps."""

_BUSY_CODES = frozenset("overloaded_error rate_limit_error rate_limit_exceeded server_error".split())
"""Error codes that a retry may clear."""

_PERMANENT_CLASSES = {
    **dict.fromkeys(
        """AuthenticationError PermissionDeniedError ModelAuthenticationError ClientAuthenticationError RefreshError
        UnauthorizedSSOTokenError""".split(),
        _REJECTED_KEY,
    ),
    **dict.fromkeys(
        """NoCredentialsError PartialCredentialsError CredentialRetrievalError TokenRetrievalError SSOTokenLoadError
        DefaultCredentialsError CredentialUnavailableError""".split(),
        _NO_KEY,
    ),
    **dict.fromkeys(["ModelQuotaExceededError", "PaymentRequiredError"], _NO_QUOTA),
    "OutOfMemoryError": "the device is out of memory",  # of a graphics card
    **dict.fromkeys(["ProxyError", "ClientProxyConnectionError"], _PROXY),
    **dict.fromkeys(["SSLCertVerificationError", "CertificateError", "ClientConnectorCertificateError"], _TLS),
    "LocalProtocolError": "the request cannot be sent",
    "CLINotFoundError": "the command-line program is not installed",
}
"""Classes of libraries; a class of the same name in the agent's own code means what its author wants it to mean."""

_TRANSIENT_CLASSES = frozenset(
    """ConnectionError APIConnectionError APITimeoutError NetworkError ConnectError ReadError WriteError
    RemoteProtocolError Timeout TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout
    ServerDisconnectedError ClientConnectionError ClientPayloadError ChunkedEncodingError NewConnectionError
    EndpointConnectionError ConnectionClosed ConnectionClosedError ConnectTimeoutError ReadTimeoutError
    ModelConnectionError ModelTimeoutError ServiceUnavailableError InternalServerError OverloadedError""".split()
)
_LIMITED_CLASSES = frozenset("RateLimitError ModelRateLimitError ThrottlingException".split())

_GRPC_CODES = {
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_RESOURCES = {
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on this machine",
    errno.ENOMEM: "this machine is out of memory",
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit of this machine for the size of a file is reached",
    errno.EAGAIN: "this machine has no more processes or threads",
}
_DATABASE_LIMITS = {
    sqlite3.SQLITE_FULL: _RESOURCES[errno.ENOSPC],
    sqlite3.SQLITE_NOMEM: _RESOURCES[errno.ENOMEM],
}
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})
_NO_THREAD = "can't start new thread"
"""The whole message of the `RuntimeError` that Python raises; it has no own class or number."""

_KEY_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|CREDENTIALS|PASSWORD)\b")
_MISSING = re.compile(r"\b(set|unset|missing|required|requires|needs?|no|not|provided?|environment|export)\b", re.I)
_LOGIN_TEXTS = (
    (re.compile(r"not logged in|please run /login|please log in|login required|log in first", re.I), _NOT_LOGGED_IN),
    (
        re.compile(r"could not resolve authentication|missing credentials|missing key inputs|no api[ _]key", re.I),
        _NO_KEY,
    ),
    (re.compile(r"unable to locate credentials|default credentials were not found", re.I), _NO_KEY),
)
_RESPONSE_TEXTS = (
    (re.compile(r"(invalid|incorrect) (x-)?api[- _]key|invalid_api_key|authentication_error", re.I), _REJECTED_KEY),
    (re.compile(r"api key (is )?(not valid|invalid|expired)", re.I), _REJECTED_KEY),
    (
        re.compile(r"credit balance is too low|insufficient[_ ](quota|funds|balance|credits?)|billing_error", re.I),
        _NO_QUOTA,
    ),
)
_CLAUDE_CODE = re.compile(r"please run /login", re.I)
"""What Claude Code answers if nobody is logged in."""
_SDK_ERROR = re.compile(r"\bError code: (\d{3}) - ")
"""How the clients of OpenAI and Anthropic begin a message; an agent may quote it after its handler has ended."""
_STATUS_IN_TEXT = re.compile(r"\b(?:error code|http(?:/[\d.]+)?|status(?: code)?|api error)[:= ]+(\d{3})\b", re.I)
_RAISED_IN_TEXT = re.compile(r"^(?:[\w.]+\.)?(\w+)(?:: (.*))?$", re.S)
_ERRNO_IN_TEXT = re.compile(r"\[Errno (\d+)\]")
_MAX_CHAIN = 100
"""How many exceptions of a chain are looked at; a chain may be as long as a program likes."""
_MAX_DEPTH = 12
"""How deep error codes are searched in a response."""
_BUGS = (AssertionError, AttributeError, LookupError, NameError, TypeError, ArithmeticError, SyntaxError)


def diagnose(error: BaseException) -> Diagnosis:
    """Whose failure an exception is; searches what it wraps, as the head of this module explains."""
    return _diagnose_chain(error, set())


def wrapped_cause(error: BaseException) -> str:
    """What kept the agent from answering, if only an exception that this one wraps says so; else empty."""
    diagnosis = diagnose(error)
    is_said = diagnosis.is_agent or diagnosis.cause in str(error) or not _diagnose_one(error).is_agent
    return "" if is_said else diagnosis.cause


def diagnose_status(status: int | None, body: Any = None, headers: Any = None) -> Diagnosis:
    """Whose failure the answer of a service with this HTTP status is; `body` is its JSON, or text."""
    if status is None or not 400 <= status < 600:
        return AGENT
    content = _json(body)
    if (cause := _cause_in_body(content)) and status < 500:
        return _permanent(f"{cause} (HTTP {status})")
    if status in _PERMANENT_STATUSES:
        return _permanent(_PERMANENT_STATUSES[status])
    if status in _RETRY_LATER_STATUSES or status >= 500:
        seconds = retry_after(headers) or _google_retry_delay(content)
        return Diagnosis(FailureKind.TRANSIENT, f"HTTP {status}", seconds, limited=status == 429)
    return AGENT


def diagnose_code(code: Any) -> Diagnosis:
    """Whose failure an error is that a service reports by its code, without an HTTP status, as inside a stream."""
    name = code.lower() if isinstance(code, str) else ""
    if name in _CODES:
        return _permanent(_CODES[name])
    if name in _BUSY_CODES:
        return Diagnosis(FailureKind.TRANSIENT, name, limited=name.startswith("rate_limit"))
    return AGENT


def diagnose_output(output: str, exit_code: int | None = None) -> Diagnosis:
    """Whose failure a program reports that ended with an error; `output` is the end of what it printed."""
    if exit_code == 127:
        return _permanent("a program is not installed (exit code 127)")
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    if not lines:
        return AGENT
    last = lines[-1]
    if (raised := _RAISED_IN_TEXT.match(last)) and not (diagnosis := _raised_elsewhere(*raised.groups())).is_agent:
        return diagnosis
    if status := _STATUS_IN_TEXT.search(last):
        return diagnose_status(int(status[1]), last)
    cause = _cause_in_text(last)
    return _permanent(cause) if cause else AGENT


def is_transient(error: BaseException) -> bool:
    """Whether an exception is the infrastructure's and a retry may help."""
    return diagnose(error).is_transient


def is_transient_status(status: int | None) -> bool:
    """Whether a request that got this HTTP status may succeed when it is sent again."""
    return diagnose_status(status).is_transient


def retry_after(headers: Any) -> float:
    """How many seconds a service asks to wait, by the headers of its response; 0 if it does not ask.

    `retry-after-ms` and `retry-after` (seconds or a date) come first. Dates are compared with the service's own `date`,
    if there is one: this system's clock may be wrong. The headers about rate limits say when a limit is reset, and
    count only for one that is used up. `retry-after` is in whole seconds, so a reset that it is rounded up from says
    the same more precisely.
    """
    try:
        values = {str(name).lower(): str(value) for name, value in headers.items()}
    except Exception:  # no headers, or something that only looks like them
        return 0.0
    if (milliseconds := _number(values.get("retry-after-ms"))) is not None:
        return max(0.0, milliseconds / 1000)
    now = _moment(values.get("date", ""))
    now = time.time() if now is None else now
    resets = [
        _seconds(values.get(name.replace("remaining", "reset", 1), "") or values.get(_reset_last(name), ""), now)
        for name, value in values.items()
        if "ratelimit" in name and "remaining" in name and _number(value) == 0
    ]
    reset = max(resets, default=0.0)
    if (text := values.get("retry-after")) is not None:
        seconds = _seconds(text, now)
        return reset if reset and math.ceil(reset) == seconds else seconds
    return reset


def _reset_last(name: str) -> str:
    """Anthropic's name: `anthropic-ratelimit-requests-remaining` has `anthropic-ratelimit-requests-reset`."""
    return name.removesuffix("remaining") + "reset"


def _seconds(text: str, now: float) -> float:
    """The seconds in a header: a number, a duration such as `6m0s`, or a date."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        moment = number > 1e9  # seconds since 1970
        return max(0.0, number - now if moment else number)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", text)
    if parts and "".join(map("".join, parts)) == text:
        return sum(float(value) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit] for value, unit in parts)
    date = _moment(text)
    return 0.0 if date is None else max(0.0, date - now)


def _moment(text: str) -> float | None:
    """The seconds since 1970 of a date in a header; `None` if it is not a date."""
    for parse in (email.utils.parsedate_to_datetime, datetime.fromisoformat):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return parse(text).timestamp()
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _permanent(cause: str) -> Diagnosis:
    return Diagnosis(FailureKind.INFRASTRUCTURE, cause, lasting=True)


def _diagnose_chain(error: BaseException, seen: set[int]) -> Diagnosis:
    """What the exception itself says, or what it wraps; of several, the one that no retry helps."""
    seen.add(id(error))
    if isinstance(error, BaseExceptionGroup):
        return _diagnose_group(error, seen) if len(seen) <= _MAX_CHAIN else AGENT
    own = _diagnose_one(error)
    if own.decided or len(seen) > _MAX_CHAIN:
        return own
    wrapped = [_diagnose_chain(inner, seen) for inner in _wrapped(error) if id(inner) not in seen]
    candidates = [item for item in (own, *wrapped) if not item.is_agent]
    if not candidates:
        return AGENT
    first = next((item for item in candidates if not item.is_transient), candidates[0])
    if not first.is_transient:
        return first
    lasting = next((item for item in candidates if item.lasting), first)
    return Diagnosis(
        FailureKind.TRANSIENT,
        lasting.cause,
        max(item.retry_after for item in candidates),
        limited=any(item.limited for item in candidates),
        lasting=lasting.lasting,
    )


def _diagnose_group(group: BaseExceptionGroup[BaseException], seen: set[int]) -> Diagnosis:
    """The infrastructure's if all of its exceptions are: one bug of the agent among them is enough for a failure."""
    members = [_diagnose_chain(inner, seen) for inner in group.exceptions]
    if any(item.kind is FailureKind.AGENT for item in members):
        return AGENT
    return next((item for item in members if item.is_transient), members[0])


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that may be the real reason of this one."""
    if error.__cause__ is not None:
        yield error.__cause__
    elif error.__context__ is not None and _is_translated(error, error.__context__):
        yield error.__context__
    for name in ("reason", "os_error"):  # urllib and urllib3, aiohttp
        if isinstance(inner := _attribute(error, name), BaseException):
            yield inner


def _is_translated(error: BaseException, context: BaseException) -> bool:
    """Whether an exception was raised to replace the one that was being handled, not by accident meanwhile."""
    if context.__traceback__ is None or isinstance(_attribute(error, "transient"), bool):
        return False  # Proctor's own exceptions name their cause with `from`
    catcher = context.__traceback__.tb_frame  # a traceback starts in the function that caught the exception
    if not is_user_file(catcher.f_code.co_filename):
        return True
    return _raising_frame(error) is catcher and not isinstance(error, _BUGS)


def _raising_frame(error: BaseException) -> FrameType | None:
    """The function call that raised an exception."""
    last = _last_traceback(error)
    return None if last is None else last.tb_frame


def _last_traceback(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _diagnose_one(error: BaseException) -> Diagnosis:
    """What one exception says, without those that it wraps."""
    diagnosis = _attribute(error, "diagnosis")
    if isinstance(diagnosis, Diagnosis):  # one of ours, or the agent's own word: see `AgentFailed`
        return replace(diagnosis, decided=True)
    own_word = _attribute(error, "transient")
    if isinstance(own_word, bool):
        seconds = _attribute(error, "retry_after")
        wait = float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else 0.0
        if not own_word and _attribute(error, "infrastructure") is True:
            return Diagnosis(FailureKind.INFRASTRUCTURE, decided=True)
        kind = FailureKind.TRANSIENT if own_word else FailureKind.AGENT
        return Diagnosis(kind, retry_after=wait, limited=bool(_attribute(error, "limited")), decided=own_word)
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return AGENT  # `SystemExit.code` is an exit code, not an HTTP status
    for look in (_of_machine, _of_status, _of_network, _of_class, _of_program, _of_key):
        if not (diagnosis := look(error)).is_agent:
            return diagnosis
    return AGENT


def _of_machine(error: BaseException) -> Diagnosis:
    """Limits of this machine: memory, files, threads, disk; and programs that are not installed."""
    if isinstance(error, MemoryError):
        return _permanent("this machine is out of memory")
    if isinstance(error, RuntimeError) and error.args == (_NO_THREAD,):
        return _permanent("this machine can start no more threads")
    if isinstance(error, FileNotFoundError) and (program := _missing_program(error)):
        return _permanent(f"the program {program} is not installed")
    if isinstance(error, OSError) and not isinstance(error, (BlockingIOError, socket.gaierror)):
        cause = _RESOURCES.get(error.errno or 0)
        return _permanent(cause) if cause else AGENT
    if isinstance(error, sqlite3.Error):
        cause = _DATABASE_LIMITS.get(_attribute(error, "sqlite_errorcode"))
        return _permanent(cause) if cause else AGENT
    if isinstance(error, BlockingIOError) and _is_spawn(error):
        return _permanent(_RESOURCES[errno.EAGAIN])
    return AGENT


def _missing_program(error: FileNotFoundError) -> str:
    """The program that could not be started. A file that the agent opened, or a missing folder, is none."""
    trace = _last_traceback(error)
    if trace is None or not _is_spawn(error) or error.filename is None:
        return ""
    folder = trace.tb_frame.f_locals.get("cwd")
    is_folder = folder is not None and str(error.filename) == os.fspath(folder)
    return "" if is_folder else Path(os.fsdecode(error.filename)).name


def _is_spawn(error: BaseException) -> bool:
    """Whether an exception was raised while Python started a process, which asyncio does with `subprocess` too."""
    frame = _raising_frame(error)
    if frame is None or frame.f_code.co_name not in ("_execute_child", "_fork_exec", "fork", "_launch"):
        return False
    return Path(frame.f_code.co_filename).is_relative_to(sysconfig.get_path("stdlib"))


def _of_status(error: BaseException) -> Diagnosis:
    """By the HTTP status of an exception, its error codes and the headers of its response."""
    status = _status(error)
    if status is None:
        return AGENT
    codes = {"code": _attribute(error, "code"), "type": _attribute(error, "type")}
    diagnosis = diagnose_status(status, [codes, _body(error)], _headers(error))
    seconds = _attribute(error, "retry_after")
    if diagnosis.is_transient and isinstance(seconds, (int, float)) and seconds > 0:
        return replace(diagnosis, retry_after=float(seconds))
    return diagnosis


def _status(error: BaseException) -> int | None:
    response = _attribute(error, "response")
    if isinstance(response, Mapping):  # boto
        metadata = response.get("ResponseMetadata")
        return _as_status(metadata.get("HTTPStatusCode")) if isinstance(metadata, Mapping) else None
    places = [(error, name) for name in ("status_code", "status", "code", "http_status", "api_error_status")]
    for owner, name in (*places, (response, "status_code"), (response, "status")):
        if (status := _as_status(_attribute(owner, name))) is not None:
            return status
    if any(str(kind.__module__).split(".")[0] == "grpc" for kind in type(error).__mro__):
        try:
            return _GRPC_CODES.get(error.code().name)  # type: ignore[attr-defined]
        except Exception:
            return None
    return None


def _as_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600 else None


def _headers(error: BaseException) -> Any:
    response = _attribute(error, "response")
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        return metadata.get("HTTPHeaders") if isinstance(metadata, Mapping) else None
    headers = _attribute(response, "headers")
    return _attribute(error, "headers") if headers is None else headers


def _body(error: BaseException) -> Any:
    """The body of the response, as far as an exception has it already: reading it here could block."""
    response = _attribute(error, "response")
    if isinstance(response, Mapping):
        return response.get("Error")
    body = _attribute(error, "body")
    details = _attribute(error, "details") if body is None else None
    return details if isinstance(details, (Mapping, list)) else body or str(_attribute(error, "message") or "")


def _of_network(error: BaseException) -> Diagnosis:
    """By exceptions of the standard library: names, TLS, connections."""
    if isinstance(error, socket.gaierror):
        is_temporary = error.errno == socket.EAI_AGAIN
        return Diagnosis(FailureKind.TRANSIENT, _NO_HOST, lasting=True) if is_temporary else _permanent(_NO_HOST)
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):  # the other side closed the connection
        return Diagnosis(FailureKind.TRANSIENT, "the connection is closed")
    if isinstance(error, ssl.SSLError):
        return _permanent(_TLS)
    # A server that restarts refuses connections for a moment, so this is retried; but if it is not there at all, every
    # trial has the same problem.
    if isinstance(error, ConnectionRefusedError):
        return Diagnosis(FailureKind.TRANSIENT, _REFUSED, lasting=True)
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return Diagnosis(FailureKind.TRANSIENT, "the network cannot be reached", lasting=True)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return Diagnosis(FailureKind.TRANSIENT, "the connection is broken")
    return AGENT


def _of_class(error: BaseException) -> Diagnosis:
    """By the names of its classes, for exceptions of libraries that have nothing else."""
    for kind in type(error).__mro__:
        if kind.__name__ in _PERMANENT_CLASSES and not _is_users_class(kind):
            return _permanent(_PERMANENT_CLASSES[kind.__name__])
        if kind.__name__ in _LIMITED_CLASSES and not _is_users_class(kind):
            return Diagnosis(FailureKind.TRANSIENT, "rate limit", retry_after(_headers(error)), limited=True)
        if kind.__name__ in _TRANSIENT_CLASSES:
            return Diagnosis(FailureKind.TRANSIENT, "the connection is broken")
    return AGENT


def _is_users_class(kind: type[Any]) -> bool:
    """Whether a class is defined in the agent's own files."""
    try:
        return is_user_file(inspect.getfile(kind))
    except (TypeError, OSError):  # built into Python, or written in a notebook
        return str(kind.__module__) == "__main__"


def _of_program(error: BaseException) -> Diagnosis:
    """By the output of a program that an exception reports, such as `subprocess.CalledProcessError`."""
    code = _attribute(error, "returncode")
    code = _attribute(error, "exit_code") if code is None else code
    if not isinstance(code, int) or isinstance(code, bool):
        return AGENT
    output = [_attribute(error, name) for name in ("stdout", "output", "result", "stderr")]
    texts = [os.fsdecode(part) if isinstance(part, bytes) else part for part in output]
    for text in (part for part in texts if isinstance(part, str) and part.strip()):
        if not (diagnosis := diagnose_output(text, code)).is_agent:
            return diagnosis
    return diagnose_output("", code)


def _of_key(error: BaseException) -> Diagnosis:
    """A missing key or login, for which libraries raise plain exceptions such as `ValueError`."""
    text = " ".join(part for part in error.args if isinstance(part, str)) or one_line(error)
    text = text[:2000]
    frame = _raising_frame(error)
    is_users = frame is None or is_user_file(frame.f_code.co_filename)
    if isinstance(error, KeyError):  # `os.environ["OPENAI_API_KEY"]`, not a key of the agent's own data
        is_variable = not is_users and _KEY_VARIABLE.fullmatch(text) and not os.environ.get(text)
        return _permanent(f"{text} is not set") if is_variable else AGENT
    if not is_users:
        cause = _cause_in_text(text)
    elif quote := _SDK_ERROR.search(text):
        return diagnose_status(int(quote[1]), text)
    else:  # the agent's own words are about its own work, but for those that it can only repeat
        cause = _NOT_LOGGED_IN if _CLAUDE_CODE.search(text) else _missing_variable(text)
    return _permanent(cause) if cause else AGENT


def _missing_variable(text: str) -> str:
    """That an environment variable is not set, if a text says so about one for a key and it is true."""
    names = missing_keys(text) if _MISSING.search(text) else []
    return f"{names[0]} is not set" if names else ""


def missing_keys(text: str) -> list[str]:
    """The environment variables for keys that a text names and that are not set."""
    return [name for name in dict.fromkeys(_KEY_VARIABLE.findall(text)) if not os.environ.get(name)]


def _raised_elsewhere(name: str, message: str | None) -> Diagnosis:
    """What the last line of another program's traceback says, such as `openai.AuthenticationError: …`."""
    if name in _PERMANENT_CLASSES:
        return _permanent(_PERMANENT_CLASSES[name])
    if name in _LIMITED_CLASSES:
        return Diagnosis(FailureKind.TRANSIENT, "rate limit", limited=True)
    if name == "MemoryError" or (name == "RuntimeError" and message == _NO_THREAD):
        return _permanent("this machine is out of memory" if name == "MemoryError" else _NO_THREAD)
    if name == "gaierror":
        return _permanent(_NO_HOST)
    if name == "ConnectionRefusedError":
        return Diagnosis(FailureKind.TRANSIENT, _REFUSED, lasting=True)
    if name in _TRANSIENT_CLASSES or name in ("ConnectionResetError", "TimeoutError"):
        return Diagnosis(FailureKind.TRANSIENT, "the connection is broken")
    if name == "OSError" and (number := _ERRNO_IN_TEXT.search(message or "")) and int(number[1]) in _RESOURCES:
        return _permanent(_RESOURCES[int(number[1])])
    return AGENT


def _cause_in_text(text: str) -> str:
    """What a text says about keys, logins and quotas; empty if nothing."""
    if cause := _missing_variable(text):
        return cause
    return next((cause for pattern, cause in (*_LOGIN_TEXTS, *_RESPONSE_TEXTS) if pattern.search(text)), "")


def _cause_in_body(content: Any) -> str:
    """What the error codes and the message in a response say about keys and quotas."""
    for key, value in _entries(content, 0):
        if key in ("code", "type", "status", "reason", "Code") and (cause := _CODES.get(value.lower())):
            return cause
        if key == "quotaId" and "perday" in value.lower():
            return _NO_QUOTA
    texts = [value for key, value in _entries(content, 0) if key in ("message", "")]
    return next((cause for text in texts for pattern, cause in _RESPONSE_TEXTS if pattern.search(text)), "")


def _entries(content: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Every string in a response with its key; a response that is text has the key ""."""
    if isinstance(content, str):
        yield "", content[:2000]
    elif depth < _MAX_DEPTH and isinstance(content, Mapping):
        for key, value in list(content.items())[:100]:
            if isinstance(value, str):
                yield str(key), value[:2000]
            else:
                yield from _entries(value, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(content, (list, tuple)):
        for item in content[:100]:
            yield from _entries(item, depth + 1)


def _google_retry_delay(content: Any) -> float:
    delays = [_seconds(value, time.time()) for key, value in _entries(content, 0) if key == "retryDelay"]
    return max(delays, default=0.0)


def _json(body: Any) -> Any:
    if not isinstance(body, str):
        return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


def _attribute(owner: Any, name: str) -> Any:
    """An attribute of an exception, or `None`; its properties are code of others and may raise."""
    try:
        return getattr(owner, name, None)
    except Exception:
        return None
