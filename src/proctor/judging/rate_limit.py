"""Retries of requests to models, within the rate limit of their endpoint (`proctor.base.rate_limit`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from proctor.base.rate_limit import NO_LIMITS, EndpointDown, RateLimiter
from proctor.judging.call_log import SentRequest, format_requests, log_request, waiting
from proctor.judging.judge import EndpointFailed

T = TypeVar("T")

TIMEOUT = 120.0
RETRIES = 3
MAX_REFUSALS = 10
"""How often a request may be refused because of the rate limit; these refusals do not count as retries."""
MAX_BACKOFF = 20.0


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """How often a request is retried, and its timeout."""

    retries: int = RETRIES
    timeout: float = TIMEOUT
    """Seconds for one request."""
    backoff: float = 0.5
    """Average seconds before the first retry; doubled before each further one."""


async def send_with_retries(
    send: Callable[[], Awaitable[T]], limiter: RateLimiter, retry: RetryOptions, tokens: int = 0
) -> T:
    """Call `send` and return its result; retry while it raises a transient `EndpointFailed`.

    `tokens` is an estimate of the tokens that one request uses.
    """
    faults = refusals = 0
    sent: list[SentRequest] = []
    while True:
        try:
            return await _send_once(send, limiter, tokens, retry.timeout, sent)
        except EndpointFailed as failure:
            # What is lost while the endpoint is down uses up no retries: the next request waits until it is back.
            faults += not failure.limited and not limiter.is_down
            refusals += failure.limited
            is_last = faults > retry.retries or refusals > MAX_REFUSALS
            if not failure.transient or is_last or _must_wait_too_long(failure):
                raise _final_failure(failure, len(sent), sent) from None
            with waiting():
                await asyncio.sleep(backoff(retry.backoff, max(1, faults + refusals), failure.retry_after))


async def _send_once(
    send: Callable[[], Awaitable[T]], limiter: RateLimiter, tokens: int, timeout: float, sent: list[SentRequest]
) -> T:
    try:
        slot = await limiter.acquire(tokens, waiting(), first=bool(sent))
    except EndpointDown as error:
        raise EndpointFailed(f"was not asked: {error}") from None
    with slot:
        request = SentRequest(lambda: slot.in_flight)
        sent.append(request)
        log_request(request)
        try:
            answer = await send()
            slot.answered(timeout)
            return answer
        except EndpointFailed as error:
            failure = error
        finally:
            request.end()
        if failure.limited:
            slot.limited(failure.retry_after)
        elif failure.timed_out:
            slot.timed_out()
        elif failure.transient:
            slot.failed()
    raise failure


def backoff(first: float, fault: int, retry_after: float | None = None) -> float:
    """Seconds before the next try: longer each time, and random, so that callers do not retry at the same moment."""
    wait = min(first * 2.0 ** (fault - 1), MAX_BACKOFF) * random.uniform(0.5, 1.5)  # noqa: S311
    return max(wait, min(retry_after or 0.0, NO_LIMITS.max_pause))


def _must_wait_too_long(failure: EndpointFailed) -> bool:
    return failure.retry_after is not None and failure.retry_after > NO_LIMITS.max_pause


def _final_failure(failure: EndpointFailed, attempts: int, sent: Sequence[SentRequest]) -> EndpointFailed:
    """The failure with a message that says how often and how long it was tried."""
    message = str(failure)
    if _must_wait_too_long(failure):
        message += f" (retry after {failure.retry_after:.0f} seconds, which is too long to wait)"
    elif attempts > 1:
        message += f" (tried {attempts} times{f': {format_requests(sent)}' if failure.timed_out else ''})"
    elif failure.timed_out:
        message += f" ({format_requests(sent)})"
    return failure.with_message(message)
