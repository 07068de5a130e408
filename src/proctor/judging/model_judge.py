"""A judge that is a model: sends each question once, and an unusable reply back once.

A question goes through the cache, then through rate limit, retries and budget to the endpoint. A reply that cannot be
used is shown to the model with what is wrong with it; a second unusable reply is an error, never a score.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from proctor.agents.reply import Usage
from proctor.base.errors import BudgetSpent, JudgeFailed
from proctor.base.json_data import Json, fingerprint, to_json, to_text
from proctor.base.rate_limit import RateLimiter
from proctor.judging.budget import Budget
from proctor.judging.cache import Entry, JudgeCache, cache_key
from proctor.judging.call_log import log_call
from proctor.judging.judge import (
    Completion,
    Endpoint,
    EndpointFailed,
    InvalidReply,
    JudgeCall,
    Prompt,
    Question,
    ReplyT,
)
from proctor.judging.prompts import prompt_of, schema_of
from proctor.judging.rate_limit import RETRIES, TIMEOUT, RetryOptions, send_with_retries
from proctor.judging.replies import read_reply, without_lone_surrogates

SchemaBuilder = Callable[[Question[Any]], Mapping[str, Json]]

GRACE_SECONDS = 5.0
"""Seconds that an endpoint may take after its own timeout before the request is cancelled."""
MAX_REPLY_SHOWN = 4_000
"""The most characters of an unusable reply that are shown to the model again."""


class _CallCost:
    """The cost of one answer, whether or not there is a usable reply."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.repaired = False
        self.abandoned = self.abandoned_tokens = 0
        self.began = time.perf_counter()

    @property
    def duration_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000


class ModelJudge:
    """A judge that is a model behind an endpoint.

    `sampling_endpoint` is the same model at its default temperature, for the samples after the first. `schema_builder`
    makes the JSON Schema of a reply. Judges that share `rate_limiter` and `budget` share one limit.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        sampling_endpoint: Endpoint | None = None,
        schema_builder: SchemaBuilder = schema_of,
        cache: JudgeCache | None = None,
        rate_limiter: RateLimiter | None = None,
        budget: Budget | None = None,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
        backoff: float = 0.5,
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._sampling_endpoint = sampling_endpoint or endpoint
        self._schema_builder = schema_builder
        self._cache = cache or JudgeCache()
        self._rate_limiter = rate_limiter or RateLimiter()
        self._budget = budget or Budget()
        self._retry = RetryOptions(retries, timeout, backoff)

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        endpoint = self._sampling_endpoint if sample else self._endpoint
        prompt, schema = _sendable_prompt(prompt_of(question)), self._schema_builder(question)
        key = cache_key(_key(endpoint, question, prompt, schema, sample))
        cost = _CallCost()

        async def ask_model() -> Entry:
            return await self._entry(endpoint, question, prompt, schema, cost)

        cached = False
        entry: Entry = {}
        try:
            entry, cached = await self._cache.get_or_ask(key, ask_model)
            reply = _reply_in(entry, question)
            if reply is None:
                # The stored reply does not pass the checks of this version: ask again, under another key.
                key = fingerprint(key, "renewed")
                entry, cached = await self._cache.get_or_ask(key, ask_model)
                reply = read_reply(str(entry.get("reply")), question)
            return reply
        finally:
            self._log(question, key, cached, cost, sample, str(entry.get("model") or ""))

    def _log(self, question: Question[Any], key: str, cached: bool, cost: _CallCost, sample: int, served: str) -> None:
        log_call(
            JudgeCall(
                kind=question.kind,
                version=question.version,
                model=self.name,
                key=key,
                cached=cached,
                usage=cost.usage,
                duration_ms=0.0 if cached else cost.duration_ms,
                sample=sample,
                repaired=cost.repaired,
                abandoned=cost.abandoned,
                abandoned_tokens=cost.abandoned_tokens,
                served="" if self.name.endswith(served) else served,
            )
        )

    async def _entry(
        self, endpoint: Endpoint, question: Question[Any], prompt: Prompt, schema: Mapping[str, Json], cost: _CallCost
    ) -> Entry:
        """Ask the model and return the cache entry; an unusable reply is sent back once, with what is wrong with it."""
        first = await self._completion(endpoint, prompt, schema, cost)
        unusable: list[Json] = []
        completion = first
        try:
            read_reply(first.text, question)
        except InvalidReply as complaint:
            cost.repaired = True
            unusable.append({"reply": first.text, "complaint": str(complaint)})
            corrected = replace(prompt, corrections=((_quoted(first.text), _complaint(complaint, first)),))
            completion = await self._completion(endpoint, corrected, schema, cost)
            self._require_usable(completion, question)
        return _entry_of(self.name, question, prompt, completion, cost, unusable)

    def _require_usable(self, completion: Completion, question: Question[Any]) -> None:
        try:
            read_reply(completion.text, question)
        except InvalidReply as failure:
            quote = f"; it wrote {to_text(failure.reply, 300)!r}" if failure.reply else ""
            message = f"{self.name} gave no usable reply in two attempts: {failure}{quote}"
            raise InvalidReply(message, failure.reply) from None

    async def _completion(
        self, endpoint: Endpoint, prompt: Prompt, schema: Mapping[str, Json], cost: _CallCost
    ) -> Completion:
        """One completion, with retries; its cost is counted even if its text is unusable."""

        async def send() -> Completion:
            return await self._request(endpoint, prompt, schema, cost)

        completion = await send_with_retries(send, self._rate_limiter, self._retry, _estimated_tokens(prompt))
        cost.usage = cost.usage + completion.usage
        self._budget.spend(completion.usage)
        if completion.finish_reason == "content_filter":
            raise JudgeFailed(_refusal_message(self.name, completion.text))
        return completion

    async def _request(
        self, endpoint: Endpoint, prompt: Prompt, schema: Mapping[str, Json], cost: _CallCost
    ) -> Completion:
        if self._budget.is_exhausted:
            raise BudgetSpent(f"the budget of ${self._budget.limit_usd:g} is spent; {self.name} was not called")
        try:
            async with asyncio.timeout(self._retry.timeout + GRACE_SECONDS):
                return await endpoint.complete(prompt, schema, timeout=self._retry.timeout)
        except TimeoutError:
            self._count_abandoned(prompt, cost)
            raise EndpointFailed(f"{self.name} did not answer in time", transient=True, timed_out=True) from None
        except EndpointFailed as failure:
            if failure.timed_out:
                self._count_abandoned(prompt, cost)
            raise
        except asyncio.CancelledError:
            self._count_abandoned(prompt, cost)
            raise

    def _count_abandoned(self, prompt: Prompt, cost: _CallCost) -> None:
        """Count a request that was sent and then cancelled: it may cost money, but the amount is unknown."""
        cost.abandoned += 1
        cost.abandoned_tokens += _estimated_tokens(prompt)
        self._budget.spend(None)


def _sendable_prompt(prompt: Prompt) -> Prompt:
    return replace(prompt, system=without_lone_surrogates(prompt.system), user=without_lone_surrogates(prompt.user))


def _key(endpoint: Endpoint, question: Question[Any], prompt: Prompt, schema: Mapping[str, Json], sample: int) -> str:
    """The cache key: the same for the same prompt to the same model with the same parameters."""
    return fingerprint(
        "judge",
        endpoint.name,
        to_json(endpoint.parameters),
        prompt.system,
        prompt.user,
        to_json(schema),
        question.kind,
        question.version,
        sample,
    )


def _entry_of(
    name: str, question: Question[Any], prompt: Prompt, completion: Completion, cost: _CallCost, unusable: list[Json]
) -> Entry:
    entry: dict[str, Json] = {
        "judge": name,
        "model": completion.model,
        "kind": question.kind,
        "version": question.version,
        "system": prompt.system,
        "user": prompt.user,
        "reply": without_lone_surrogates(completion.text),
        "usage": cost.usage.to_json(),
        "duration_ms": round(cost.duration_ms, 3),
    }
    return entry | ({"unfit": to_json(unusable)} if unusable else {})


def _reply_in(entry: Entry, question: Question[ReplyT]) -> ReplyT | None:
    """The reply in a stored entry; `None` if it is no longer usable."""
    text = entry.get("reply")
    try:
        return read_reply(text, question) if isinstance(text, str) else None
    except InvalidReply:
        return None


def _quoted(text: str) -> str:
    return to_text(without_lone_surrogates(text), MAX_REPLY_SHOWN) if text.strip() else "(nothing)"


def _complaint(complaint: InvalidReply, completion: Completion) -> str:
    cut = " It was cut off at the maximum length: be brief." if completion.finish_reason == "length" else ""
    problem = without_lone_surrogates(str(complaint))
    return (
        f"That reply cannot be used: {problem}.{cut} The instructions have not changed. "
        "Reply again with one JSON object of the schema above and nothing else."
    )


def _refusal_message(name: str, text: str) -> str:
    quote = f": {to_text(text, 300)}" if text.strip() else ""
    return f"{name} refused to judge this, or the provider's content filter withheld the reply{quote}"


def _estimated_tokens(prompt: Prompt) -> int:
    """Roughly how many tokens a request will use, for endpoints that limit them."""
    return (len(prompt.system) + len(prompt.user)) // 4 + sum(len(reply) // 4 for reply, _ in prompt.corrections)
