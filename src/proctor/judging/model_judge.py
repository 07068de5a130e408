"""Asks a model until it has answered: remembers, takes its turn, tries again, and once tells it what was wrong.

Puts what was measured of a verdict into the reply, where evaluators find it instead of all or nothing.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import Usage
from proctor.base.errors import JudgeFailed
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.records import record
from proctor.judging.context import log_call, waiting
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
from proctor.judging.judge_cache import Entry, JudgeCache
from proctor.judging.judge_replies import read_reply, sendable
from proctor.judging.limits import NO_LIMITS, Budget, RateLimiter
from proctor.judging.logprobs import Path, pointer
from proctor.judging.prompts import prompt_of, schema_of

if TYPE_CHECKING:
    from proctor.judging.questions import Graded


def with_partial_credit(reply: ReplyT, probabilities: Any) -> ReplyT:
    """`reply` with partial credit where probabilities are known; a number that the model wrote itself is dropped."""
    _grade(reply, probabilities if isinstance(probabilities, Mapping) else {}, ())
    return reply


def _grade(value: Any, probabilities: Mapping[str, Any], path: Path) -> None:
    from pydantic import BaseModel

    from proctor.judging.questions import Graded

    if isinstance(value, list):
        for number, item in enumerate(value):
            _grade(item, probabilities, (*path, number))
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            _grade(getattr(value, name), probabilities, (*path, name))
        if isinstance(value, Graded):
            value.partial_credit = _partial_credit(value, probabilities, path)


def _partial_credit(item: Graded, probabilities: Mapping[str, Any], path: Path) -> float | None:
    """The expected score of the verdict, which is the last choice in the item, since reasons come before it."""
    scores = item.choice_scores
    known = [chances for name in type(item).model_fields if (chances := probabilities.get(pointer((*path, name))))]
    if not known or not scores:
        return None
    expected = math.fsum(chance * scores.get(choice, 0.0) for choice, chance in known[-1].items())
    return min(1.0, max(0.0, expected))


Wording = Callable[[Question[Any]], Prompt]
Shape = Callable[[Question[Any]], Mapping[str, Json]]
"""How a question is put."""

TIMEOUT = 120.0
RETRIES = 3
REFUSALS = 10
"""How often an endpoint may ask to be asked less often; waiting for it is no fault of its own."""
LONGEST_BACKOFF = 20.0
GRACE = 5.0
"""Seconds more than an endpoint was given, after which it is not waited for."""
SHOWN = 4_000
"""How much of a reply that did not fit the model is shown again."""


@record
class RetryOptions:
    """How patient a judge is."""

    retries: int = RETRIES
    timeout: float = TIMEOUT
    """Seconds for one request."""
    backoff: float = 0.5
    """Seconds before the first retry, on average doubled before each further one."""


class _Cost:
    """What getting one answer has cost so far, whatever becomes of it."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.repaired = False
        self.began = time.perf_counter()

    @property
    def duration_ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000


class ModelJudge:
    """A judge that is a model behind an endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        varied: Endpoint | None = None,
        wording: Wording = prompt_of,
        shape: Shape = schema_of,
        cache: JudgeCache | None = None,
        rate_limiter: RateLimiter | None = None,
        budget: Budget | None = None,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
        backoff: float = 0.5,
    ) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._varied = varied or endpoint
        """The same model, free to answer differently: who is asked for samples after the first."""
        self._wording = wording
        self._shape = shape
        self._cache = cache or JudgeCache()
        self._rate_limiter = rate_limiter or RateLimiter()
        self._budget = budget or Budget()
        self._retry = RetryOptions(retries, timeout, backoff)

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        endpoint = self._varied if sample else self._endpoint
        prompt, schema = _sendable(self._wording(question)), self._shape(question)
        key = _key(endpoint, question, prompt, schema, sample)
        cost = _Cost()

        async def produce() -> Entry:
            return await self._entry(endpoint, question, prompt, schema, cost)

        cached = False
        try:
            entry, cached = await self._cache.get_or_ask(key, produce)
            reply = _reply_in(entry, question)
            if reply is None:
                # It was kept when something else counted as an answer. The key is all that it can be told by.
                key = fingerprint(key, "renewed")
                entry, cached = await self._cache.get_or_ask(key, produce)
                reply = read_reply(str(entry.get("reply")), question)
            return with_partial_credit(reply, entry.get("odds"))
        finally:
            self._note(question, key, cached, cost, sample)

    def _note(self, question: Question[Any], key: str, cached: bool, cost: _Cost, sample: int) -> None:
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
            )
        )

    async def _entry(
        self, endpoint: Endpoint, question: Question[Any], prompt: Prompt, schema: Mapping[str, Json], cost: _Cost
    ) -> Entry:
        """What is kept of an answer; one that does not fit is sent back once, with what is wrong with it."""
        first = await self._completion(endpoint, prompt, schema, cost)
        unfit: list[Json] = []
        completion = first
        try:
            _read(first, question)
        except InvalidReply as complaint:
            cost.repaired = True
            unfit.append({"reply": first.text, "complaint": str(complaint)})
            corrected = replace(prompt, corrections=((_quoted(first.text), _complaint(complaint, first)),))
            completion = await self._completion(endpoint, corrected, schema, cost)
            self._insist(completion, question)
        return _kept(self.name, question, prompt, completion, cost, unfit)

    def _insist(self, completion: Completion, question: Question[Any]) -> None:
        try:
            _read(completion, question)
        except InvalidReply as failure:
            said = f"; it wrote {show(failure.reply, 300)!r}" if failure.reply else ""
            message = f"{self.name} gave no usable reply, asked twice: {failure}{said}"
            raise InvalidReply(message, failure.reply) from None

    async def _completion(
        self, endpoint: Endpoint, prompt: Prompt, schema: Mapping[str, Json], cost: _Cost
    ) -> Completion:
        """A completion, however often it takes; what it cost is counted."""
        faults = refusals = 0
        while True:
            try:
                completion = await self._request(endpoint, prompt, schema)
            except EndpointFailed as failure:
                faults, refusals = faults + (not failure.limited), refusals + failure.limited
                if not failure.transient or faults > self._retry.retries or refusals > REFUSALS:
                    raise _final(failure, faults + refusals) from None
                if _asks_too_much(failure):
                    raise _final(failure, faults + refusals) from None
                if not failure.limited:
                    with waiting():
                        await asyncio.sleep(backoff(self._retry.backoff, faults, failure.retry_after))
                continue
            cost.usage = cost.usage + completion.usage
            self._budget.spend(completion.usage)
            if completion.finish_reason == "content_filter":
                raise JudgeFailed(_withheld(self.name, completion.text))
            return completion

    async def _request(self, endpoint: Endpoint, prompt: Prompt, schema: Mapping[str, Json]) -> Completion:
        """One request, when it is its turn."""
        failure: EndpointFailed | None = None
        async with self._rate_limiter.slot(_tokens(prompt)) as slot:
            if self._budget.exhausted:
                limit = self._budget.limit_usd
                raise JudgeFailed(f"the budget of ${limit:g} is spent; {self.name} was not asked")
            try:
                async with asyncio.timeout(self._retry.timeout + GRACE):
                    return await endpoint.complete(prompt, schema, timeout=self._retry.timeout)
            except TimeoutError:
                failure = EndpointFailed(f"{self.name} did not answer in time", transient=True)
            except EndpointFailed as error:
                failure = error
            if failure.limited:
                slot.limited(failure.retry_after)
            elif failure.transient:
                slot.failed()
        raise failure


def backoff(first: float, fault: int, retry_after: float | None = None) -> float:
    """Seconds to wait before the next try: longer each time, never the same for two who failed together."""
    wait = min(first * 2.0 ** (fault - 1), LONGEST_BACKOFF) * random.uniform(0.5, 1.5)  # noqa: S311
    return max(wait, min(retry_after or 0.0, NO_LIMITS.longest_pause))


def _asks_too_much(failure: EndpointFailed) -> bool:
    return failure.retry_after is not None and failure.retry_after > NO_LIMITS.longest_pause


def _final(failure: EndpointFailed, attempts: int) -> EndpointFailed:
    words = str(failure)
    if _asks_too_much(failure):
        words += f" (and not for {failure.retry_after:.0f} seconds, which is too long to wait)"
    elif attempts > 1:
        words += f" (tried {attempts} times)"
    return EndpointFailed(words, transient=failure.transient, limited=failure.limited, retry_after=failure.retry_after)


def _sendable(prompt: Prompt) -> Prompt:
    return Prompt(sendable(prompt.system), sendable(prompt.user))


def _key(endpoint: Endpoint, question: Question[Any], prompt: Prompt, schema: Mapping[str, Json], sample: int) -> str:
    """The same for the same words to the same model under the same conditions.

    A model that is known by what it is keeps its answers when it goes by another name.
    """
    parameters = endpoint.parameters
    return fingerprint(
        "judge",
        "local" if "model" in parameters else endpoint.name,
        plain(parameters),
        prompt.system,
        prompt.user,
        plain(schema),
        question.kind,
        question.version,
        sample,
    )


def _kept(
    name: str, question: Question[Any], prompt: Prompt, completion: Completion, cost: _Cost, unfit: list[Json]
) -> Entry:
    entry: dict[str, Json] = {
        "judge": name,
        "model": completion.model,
        "kind": question.kind,
        "version": question.version,
        "system": prompt.system,
        "user": prompt.user,
        "reply": sendable(completion.text),
        "usage": {key: value for key, value in plain(cost.usage).items() if value is not None},
        "duration_ms": round(cost.duration_ms, 3),
    }
    if completion.probability is not None:
        entry["probability"] = completion.probability
    if completion.choice_probabilities:
        entry["odds"] = plain(completion.choice_probabilities)
    return entry | ({"unfit": plain(unfit)} if unfit else {})


def _reply_in(entry: Entry, question: Question[ReplyT]) -> ReplyT | None:
    """The reply in a kept entry, unless it is none any more."""
    text = entry.get("reply")
    try:
        return read_reply(text, question) if isinstance(text, str) else None
    except InvalidReply:
        return None


def _read(completion: Completion, question: Question[Any]) -> None:
    read_reply(completion.text, question)


def _quoted(text: str) -> str:
    return show(sendable(text), SHOWN) if text.strip() else "(nothing)"


def _complaint(complaint: InvalidReply, completion: Completion) -> str:
    cut = " It was cut off at the greatest length allowed: be brief." if completion.finish_reason == "length" else ""
    return (
        f"That reply cannot be used: {sendable(str(complaint))}.{cut} The instructions have not changed. Reply again "
        "with one JSON object of the schema above and nothing else."
    )


def _withheld(name: str, said: str) -> str:
    words = f": {show(said, 300)}" if said.strip() else ""
    return f"{name} refused to judge this, or its provider's filter withheld the reply{words}"


def _tokens(prompt: Prompt) -> int:
    """About how many a request will use, for endpoints that limit them."""
    return (len(prompt.system) + len(prompt.user)) // 4 + sum(len(reply) // 4 for reply, _ in prompt.corrections)
