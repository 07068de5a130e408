"""Whose failure an exception is: infrastructure says nothing about the agent, the agent's own code does."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import errno
import json
import os
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusing_provider import OPENAI, refusing_provider

from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed
from proctor.base.infrastructure import diagnose, diagnose_output, diagnose_status, retry_after

AGENT, PERMANENT, TRANSIENT = FailureKind


def diagnosis_of(call: Callable[[], Any]) -> Diagnosis:
    """What is said about the exception that a call raises, raised as agents raise it."""
    try:
        call()
    except BaseException as error:
        return diagnose(error)
    raise AssertionError("nothing was raised")


def kind_of(call: Callable[[], Any]) -> FailureKind:
    return diagnosis_of(call).kind


class StatusError(Exception):
    def __init__(self, status: int, attribute: str = "status_code") -> None:
        setattr(self, attribute, status)
        super().__init__(f"answered {status}")


def fail(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("attribute", ["status_code", "status", "code"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, AGENT) for status in (400, 404, 409, 422)),
        *((status, PERMANENT) for status in (401, 402, 403, 407)),
        *((status, TRANSIENT) for status in (408, 425, 429, 500, 503, 529)),
    ],
)
def test_a_status_decides_wherever_a_library_puts_it(attribute: str, status: int, kind: FailureKind) -> None:
    assert kind_of(lambda: fail(StatusError(status, attribute))) is kind


def test_an_exit_code_is_no_status() -> None:
    assert kind_of(lambda: sys.exit(429)) is AGENT
    assert kind_of(lambda: sys.exit(401)) is AGENT


def test_exceptions_of_the_agents_own_code_are_its_failures(tmp_path: Path) -> None:
    def lacks_a_key() -> None:
        try:
            {}["price"]
        except KeyError as error:
            raise ValueError("no price") from error

    ordinary: list[Callable[[], Any]] = [
        lambda: fail(ValueError("wrong")),
        lambda: (tmp_path / "missing.txt").read_text(),
        lambda: fail(PermissionError(errno.EACCES, "Permission denied")),
        lambda: subprocess.run(["ls"], cwd=tmp_path / "missing", check=False),
        lambda: fail(subprocess.CalledProcessError(3, ["make"], stderr="no rule to make target")),
        lambda: fail(RuntimeError("the customer is not logged in")),
        lambda: fail(KeyError("SESSION_TOKEN")),
        lambda: {}["SESSION_TOKEN"],
        lambda: fail(RecursionError()),
        lacks_a_key,
        lambda: fail(ExceptionGroup("both", [StatusError(401), ValueError()])),
    ]
    assert [kind_of(call) for call in ordinary] == [AGENT] * len(ordinary)


class AuthenticationError(Exception):
    """The agent's own: a customer gave a wrong PIN."""


def test_a_class_of_the_agents_own_means_what_its_author_wants() -> None:
    assert kind_of(lambda: fail(AuthenticationError("wrong PIN"))) is AGENT


def test_limits_of_this_machine_are_not_the_agents() -> None:
    class Unstartable(threading.Thread):
        """As Python fails if the limit of threads is reached."""

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    causes = {
        "this machine is out of memory": lambda: bytearray(1 << 62),
        "too many open files": lambda: fail(OSError(errno.EMFILE, os.strerror(errno.EMFILE))),
        "too many open files on this machine": lambda: fail(OSError(errno.ENFILE, os.strerror(errno.ENFILE))),
        "the limit of this machine for the size of a file is reached": lambda: fail(OSError(errno.EFBIG, "x")),
        "no space is left on the disk": lambda: fail(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))),
        "this machine can start no more threads": Unstartable().start,
        "the program no-such-program is not installed": lambda: subprocess.run(["no-such-program"], check=False),
    }
    found = {diagnosis_of(call).cause: diagnosis_of(call).kind for call in causes.values()}
    assert found == dict.fromkeys(causes, PERMANENT)


def test_a_full_disk_below_a_database_of_the_agent_is_not_its_failure() -> None:
    def fill() -> None:
        with contextlib.closing(sqlite3.connect(":memory:")) as database:
            database.execute("pragma max_page_count = 4")
            database.execute("create table row (content)")
            database.execute("insert into row values (zeroblob(1000000))")

    diagnosis = diagnosis_of(fill)
    assert (diagnosis.kind, diagnosis.cause) == (PERMANENT, "no space is left on the disk")
    assert kind_of(lambda: fail(sqlite3.OperationalError("no such table: orders"))) is AGENT


def test_a_program_that_asyncio_cannot_start_is_not_installed() -> None:
    async def start() -> None:
        await asyncio.create_subprocess_exec("no-such-program")

    assert diagnosis_of(lambda: asyncio.run(start())).cause == "the program no-such-program is not installed"


def test_the_network_is_not_the_agents() -> None:
    def connect() -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5)

    refused = diagnosis_of(connect)
    assert refused.kind is TRANSIENT  # a server that restarts comes back
    assert refused.lasting  # but if it does not, all trials have the same problem
    unknown = diagnosis_of(lambda: fail(socket.gaierror(socket.EAI_NONAME, "Name or service not known")))
    assert (unknown.kind, unknown.lasting) == (PERMANENT, True)
    assert kind_of(lambda: fail(socket.gaierror(socket.EAI_AGAIN, "Try again"))) is TRANSIENT
    assert kind_of(lambda: fail(ssl.SSLCertVerificationError("self-signed certificate"))) is PERMANENT
    assert kind_of(lambda: fail(ssl.SSLEOFError("EOF occurred"))) is TRANSIENT
    assert kind_of(lambda: fail(OSError(errno.ENETUNREACH, "Network is unreachable"))) is TRANSIENT
    assert kind_of(lambda: fail(ConnectionResetError())) is TRANSIENT


def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_API_KEY", raising=False)

    def checks() -> None:
        if not os.environ.get("SHOP_API_KEY"):
            raise RuntimeError("please set SHOP_API_KEY")

    for call in (lambda: os.environ["SHOP_API_KEY"], checks):
        assert diagnosis_of(call) == Diagnosis(PERMANENT, "SHOP_API_KEY is not set", lasting=True)
    monkeypatch.setenv("SHOP_API_KEY", "k")
    assert kind_of(lambda: fail(RuntimeError("please set SHOP_API_KEY"))) is AGENT


def explicit(error: Exception) -> None:
    try:
        raise error
    except Exception as inner:
        raise RuntimeError("the model call failed") from inner


def implicit(error: Exception) -> None:
    try:
        raise error
    except Exception:
        raise RuntimeError("the model call failed")  # noqa: B904


def hidden(error: Exception) -> None:
    try:
        raise error
    except Exception:
        raise RuntimeError("the model call failed") from None


def grouped(error: Exception) -> None:
    raise ExceptionGroup("tasks", [error])


@pytest.mark.parametrize("wrap", [explicit, implicit, hidden, grouped])
@pytest.mark.parametrize(("status", "kind"), [(401, PERMANENT), (429, TRANSIENT), (503, TRANSIENT), (404, AGENT)])
def test_the_cause_is_found_inside_the_exception_that_wraps_it(
    wrap: Callable[[Exception], None], status: int, kind: FailureKind
) -> None:
    assert kind_of(lambda: wrap(StatusError(status))) is kind


def test_a_wrapper_that_is_async_or_a_decorator_is_no_different() -> None:
    async def call() -> None:
        await asyncio.sleep(0)
        raise StatusError(401)

    async def wraps() -> None:
        try:
            await call()
        except StatusError:
            raise RuntimeError("the model call failed")  # noqa: B904

    def decorated(function: Callable[[], Any]) -> Callable[[], Any]:
        def inner() -> Any:
            try:
                return function()
            except Exception as error:
                raise LookupError("tool failed") from error

        return inner

    assert kind_of(lambda: asyncio.run(wraps())) is PERMANENT
    assert kind_of(decorated(lambda: fail(StatusError(403)))) is PERMANENT


def test_the_message_of_an_sdk_counts_where_it_is_quoted_after_the_handler() -> None:
    def gives_up() -> None:
        last = ""
        for _ in range(2):
            try:
                raise StatusError(429)
            except StatusError:
                last = "Error code: 429 - {'error': {'message': 'slow down'}}"
        raise RuntimeError(f"no answer after 2 attempts: {last}")

    assert diagnosis_of(gives_up).limited
    assert kind_of(lambda: fail(RuntimeError("Error code: 404 - no such order"))) is AGENT


def test_a_bug_in_a_fallback_is_the_agents_even_if_a_401_led_there() -> None:
    def fallback() -> str:
        return json.loads("no JSON")

    def answers() -> str:
        try:
            raise StatusError(401)
        except StatusError:
            return fallback()

    def handler_has_a_bug() -> None:
        try:
            raise StatusError(401)
        except StatusError as error:
            error.no_such_attribute  # noqa: B018

    def goes_on() -> None:
        try:
            raise StatusError(401)
        except StatusError:
            pass
        raise ValueError("an own check failed")

    assert [kind_of(call) for call in (answers, handler_has_a_bug, goes_on)] == [AGENT] * 3


def test_a_chain_that_ends_in_itself_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert diagnose(first).kind is AGENT


def test_a_chain_of_any_length_is_diagnosed() -> None:
    error: Exception = StatusError(401)
    for _ in range(50_000):
        outer = RuntimeError("again")
        outer.__cause__ = error
        error = outer
    assert diagnose(error).kind is AGENT
    group: Exception = ValueError("inner")
    for _ in range(5_000):
        group = ExceptionGroup("outer", [group])
    assert diagnose(group).kind is AGENT


def test_an_agents_own_word_wins() -> None:
    def says(**word: Any) -> FailureKind:
        try:
            raise StatusError(401)
        except StatusError as error:
            return diagnose_raised(AgentFailed("own word", **word), error)

    def diagnose_raised(error: Exception, cause: Exception) -> FailureKind:
        error.__cause__ = cause
        return diagnose(error).kind

    assert says(transient=True) is TRANSIENT
    assert says(infrastructure=True) is PERMANENT
    assert says() is PERMANENT
    assert diagnose(AgentFailed("gave up")).kind is AGENT


def test_how_long_to_wait_is_read_from_the_headers() -> None:
    date = email.utils.formatdate(time.time() + 90, usegmt=True)
    assert retry_after({"Retry-After": "7"}) == 7
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    exact = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "500ms"}
    assert retry_after({"retry-after": "1", **exact}) == 0.5
    assert retry_after({"retry-after": "7", **exact}) == 7
    assert 80 < retry_after({"retry-after": date}) <= 90
    assert retry_after({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}) == 90
    assert retry_after({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m30s"}) == 0
    reset = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    anthropic = {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": reset}
    assert 50 < retry_after(anthropic) <= 60
    for nonsense in ({"retry-after": "soon"}, {"retry-after": "-3"}, {"retry-after": "inf"}, None, {}):
        assert retry_after(nonsense) == 0


def test_a_quota_that_is_used_up_is_not_a_rate_limit() -> None:
    limited = diagnose_status(429, OPENAI["busy"].body, OPENAI["busy"].headers)
    assert (limited.kind, limited.limited, limited.retry_after) == (TRANSIENT, True, 7)
    assert diagnose_status(429, json.dumps(OPENAI["no quota"].body)).kind is PERMANENT
    assert diagnose_status(400, "Your credit balance is too low to access the API.").kind is PERMANENT
    assert diagnose_status(400, "you are not logged in to your bank").kind is AGENT
    assert diagnose_status(None).kind is AGENT


@pytest.mark.parametrize(
    ("output", "code", "kind"),
    [
        ("Not logged in · Please run /login", 1, PERMANENT),
        ("Invalid API key · Please run /login", 1, PERMANENT),
        ('API Error: 401 {"type":"error","error":{"type":"authentication_error"}}', 1, PERMANENT),
        ("API Error: 529 Overloaded", 1, TRANSIENT),
        ("Traceback (most recent call last):\nopenai.AuthenticationError: Error code: 401 - wrong key", 1, PERMANENT),
        ("openai.RateLimitError: Error code: 429 - slow down", 1, TRANSIENT),
        ("ConnectionRefusedError: [Errno 111] Connection refused", 1, TRANSIENT),
        ("OSError: [Errno 24] Too many open files", 1, PERMANENT),
        ("MemoryError", 1, PERMANENT),
        ("RuntimeError: can't start new thread", 1, PERMANENT),
        ("sh: 1: claude: not found", 127, PERMANENT),
        ("NO_SUCH_API_KEY is missing", 1, PERMANENT),
        ("ValueError: wrong", 1, AGENT),
        ("the customer's balance is 401", 1, AGENT),
        ("", 1, AGENT),
    ],
)
def test_a_program_reports_it_in_its_output(output: str, code: int, kind: FailureKind) -> None:
    assert diagnose_output(output, code).kind is kind
    error = subprocess.CalledProcessError(code, ["claude", "-p"], output=output)
    assert kind_of(lambda: fail(error)) is kind


def test_the_standard_librarys_client_is_understood() -> None:
    with refusing_provider() as provider:
        provider.refusal = OPENAI["busy"]
        busy = diagnosis_of(lambda: urllib.request.urlopen(provider.url, timeout=5))
        provider.refusal = OPENAI["wrong key"]
        rejected = diagnosis_of(lambda: urllib.request.urlopen(provider.url, timeout=5))
    assert (busy.kind, busy.retry_after) == (TRANSIENT, 7)
    assert rejected.kind is PERMANENT
