"""A judge that is a model: asked, remembered, tried again, corrected once, and accounted for in every case."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from judge_server import (
    JudgeServer,
    Script,
    Scripted,
    cut,
    filtered,
    garbles,
    half_json,
    hangs,
    judge_server,
    limited,
    no_choices,
    refuses,
    says,
    status,
    unauthorized,
    web_page,
)
from pydantic import BaseModel
from virtual_time import run_virtually

from proctor.base.errors import JudgeFailed
from proctor.base.json_data import Json
from proctor.base.rate_limit import RateLimiter, RateLimits
from proctor.judging.budget import Budget
from proctor.judging.cache import JudgeCache, MemoryCallStore
from proctor.judging.call_log import call_log
from proctor.judging.judge import Completion, EndpointFailed, InvalidReply, JudgeCall, Prompt, Question
from proctor.judging.model_judge import ModelJudge
from proctor.judging.providers import ModelSpec, ProviderEndpoint
from proctor.judging.rate_limit import MAX_REFUSALS, backoff


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]


YES: dict[str, Json] = {"verdict": "yes"}
NO: dict[str, Json] = {"verdict": "no"}


def question(answer: str = "Paris.", check: Any = None, version: int = 1) -> Question[Verdict]:
    return Question("test", version, "Is it true?", {"answer": answer}, Verdict, check)


def judge(server: JudgeServer, **options: Any) -> ModelJudge:
    spec = ModelSpec("openai", "gpt-4o", base_url=server.url)
    given: dict[str, Any] = {
        "sampling_endpoint": ProviderEndpoint(spec, for_sampling=True),
        "rate_limiter": RateLimiter(RateLimits(refusal_pause=0)),
        "backoff": 0.0,
    }
    return ModelJudge(ProviderEndpoint(spec), **(given | options))


def ask(asked: ModelJudge, put: Question[Verdict] | None = None, sample: int = 0) -> tuple[str, list[JudgeCall]]:
    async def once() -> tuple[str, list[JudgeCall]]:
        with call_log() as calls:
            return (await asked.ask(put or question(), sample=sample)).verdict, calls

    return asyncio.run(once())


def fails(script: Script, **options: Any) -> tuple[JudgeFailed, list[JudgeCall], JudgeServer]:
    async def once() -> tuple[JudgeFailed, list[JudgeCall]]:
        with call_log() as calls, pytest.raises(JudgeFailed) as caught:
            await judge(server, **options).ask(question())
        return caught.value, calls

    with judge_server(script) as server:
        failure, calls = asyncio.run(once())
    return failure, calls, server


def test_a_reply_is_validated_and_the_call_accounted_for() -> None:
    with judge_server(YES) as server:
        verdict, (call,) = ask(judge(server))
    assert verdict == "yes"
    assert (call.kind, call.version, call.model, call.sample) == ("test", 1, "openai:gpt-4o", 0)
    assert not call.cached
    assert not call.repaired
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.model_calls) == (100, 20, 1)


@pytest.mark.parametrize(
    "fault",
    [status(500), status(503), cut(), garbles(), half_json(), no_choices(), limited("0"), limited()],
    ids=["500", "503", "cut", "garbled", "half", "no choices", "limited", "limited without a word"],
)
def test_a_passing_fault_is_gone_after_another_try(fault: Scripted) -> None:
    with judge_server([fault, fault, YES]) as server:
        verdict, calls = ask(judge(server))
    assert verdict == "yes"
    assert len(server.requests) == 3
    assert len(calls) == 1


def test_a_server_that_hangs_once_is_asked_again() -> None:
    with judge_server([hangs(), YES]) as server:
        assert ask(judge(server, timeout=0.5))[0] == "yes"


def test_a_lasting_fault_ends_in_a_failure_that_says_how_often_it_was_tried() -> None:
    failure, calls, server = fails(status(500, "out of order"), retries=2)
    assert len(server.requests) == 3
    assert "out of order" in str(failure)
    assert "tried 3 times" in str(failure)
    assert len(calls) == 1


def test_being_asked_to_wait_does_not_use_up_the_retries() -> None:
    with judge_server([*[limited("0")] * 5, status(500), *[limited("0")] * 4, YES]) as server:
        assert ask(judge(server, retries=1))[0] == "yes"


def test_a_limit_that_never_ends_is_given_up() -> None:
    failure, _, server = fails(limited("0"))
    assert isinstance(failure, EndpointFailed)
    assert failure.limited
    assert len(server.requests) == MAX_REFUSALS + 1


def test_a_wait_of_an_hour_is_not_waited_for() -> None:
    failure, _, server = fails(limited("3600"))
    assert "3600 seconds" in str(failure)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "mistake", [unauthorized(), status(404, "no such model"), web_page()], ids=["401", "404", "page"]
)
def test_what_cannot_get_better_is_not_tried_again(mistake: Scripted) -> None:
    _, calls, server = fails(mistake)
    assert len(server.requests) == 1
    assert len(calls) == 1


UNFIT: list[Scripted] = [
    "",
    says(None),
    "I'm sorry, but I can't help with that.",
    '{"verdict": "yes"',
    says('{"verdict": "y', finish_reason="length"),
    {"verdict": True},
    {"verdict": "perhaps"},
    '{"verdict": "yes"}\n{"verdict": "no"}',
    'The answer says {"verdict": "yes"} so I follow it.',
]


@pytest.mark.parametrize("unfit", UNFIT, ids=str)
def test_a_reply_that_does_not_fit_is_sent_back_once_with_what_is_wrong(unfit: Scripted) -> None:
    with judge_server([unfit, NO]) as server:
        verdict, (call,) = ask(judge(server))
    assert verdict == "no"
    assert call.repaired
    assert (call.usage.input_tokens, call.usage.model_calls) == (200, 2)
    assert "cannot be used" in server.requests[1].last
    assert server.requests[1].messages[:2] == server.requests[0].messages


@pytest.mark.parametrize("unfit", UNFIT, ids=str)
def test_a_second_reply_that_does_not_fit_is_a_failure_with_the_reply_kept(unfit: Scripted) -> None:
    failure, (call,), server = fails([unfit, "no verdict " + "x" * 5000])
    assert isinstance(failure, InvalidReply)
    assert len(server.requests) == 2
    assert failure.reply == "no verdict " + "x" * 5000
    assert len(str(failure)) < 1000
    assert call.repaired
    assert call.usage.model_calls == 2


@pytest.mark.parametrize("withheld", [refuses("I will not judge."), filtered()], ids=["refusal", "filter"])
def test_a_refusal_is_a_failure_at_once(withheld: Scripted) -> None:
    failure, (call,), server = fails(withheld)
    assert "refused to judge" in str(failure)
    assert len(server.requests) == 1
    assert call.usage.model_calls == 1


def test_what_a_question_checks_is_told_to_the_model() -> None:
    put = question(check=lambda reply: None if reply.verdict == "no" else "the verdict must be no")
    with judge_server([YES, NO]) as server:
        assert ask(judge(server), put)[0] == "no"
    assert "the verdict must be no" in server.requests[1].last


def test_the_same_question_is_asked_once_and_cached_calls_cost_nothing() -> None:
    with judge_server(YES) as server:
        asked = judge(server)
        ask(asked)
        verdict, (call,) = ask(asked)
        assert len(server.requests) == 1
        ask(asked, question("Rome."))
        ask(asked, question(version=2))
        ask(asked, sample=1)
        assert len(server.requests) == 4
    assert verdict == "yes"
    assert call.cached
    assert call.usage.model_calls is None


def test_many_who_ask_the_same_at_once_share_one_call() -> None:
    async def together() -> list[JudgeCall]:
        with call_log() as calls:
            await asyncio.gather(*(asked.ask(question()) for _ in range(50)))
        return calls

    with judge_server(YES) as server:
        asked = judge(server)
        calls = asyncio.run(together())
    assert len(server.requests) == 1
    assert [call.cached for call in calls].count(False) == 1
    assert len({call.key for call in calls}) == 1


def test_failures_are_not_remembered() -> None:
    with judge_server([unauthorized(), YES]) as server:
        asked = judge(server)
        with pytest.raises(JudgeFailed):
            ask(asked)
        assert ask(asked)[0] == "yes"


def test_what_is_kept_tells_the_prompt_and_every_reply() -> None:
    call_store = MemoryCallStore()
    with judge_server(["nonsense", NO]) as server:
        _, (call,) = ask(judge(server, cache=JudgeCache(call_store)))
    entry = call_store.get(call.key)
    assert entry is not None
    assert entry["reply"] == json.dumps(NO)
    assert entry["unfit"][0]["reply"] == "nonsense"
    assert "Paris." in entry["user"]
    assert "Is it true?" in entry["system"]
    assert entry["usage"]["input_tokens"] == 200
    assert json.loads(json.dumps(entry)) == entry


@pytest.mark.parametrize("stale", ['{"verdict": "old"}', "nonsense", 7, None])
def test_a_kept_answer_that_no_longer_fits_is_asked_for_again(stale: Json) -> None:
    class Tampered(MemoryCallStore):
        def get(self, key: str) -> Mapping[str, Json] | None:
            found = super().get(key)
            return found and ({**found, "reply": stale} if key == first.key else found)

    call_store = Tampered()
    with judge_server(YES) as server:
        asked = judge(server, cache=JudgeCache(MemoryCallStore()))
        _, (first,) = ask(asked)
        renewing = judge(server, cache=JudgeCache(call_store))
        call_store.put(first.key, {"reply": stale})
        verdict, (second,) = ask(renewing)
        assert verdict == "yes"
        assert not second.cached
        assert len(server.requests) == 2
        _, (third,) = ask(renewing)
    assert third.cached
    assert len(server.requests) == 2


def test_samples_after_the_first_may_differ() -> None:
    with judge_server(YES) as server:
        asked = judge(server)
        for sample in range(3):
            ask(asked, sample=sample)
    assert [each.body.get("temperature") for each in server.requests] == [0, None, None]


def test_a_spent_budget_makes_no_request_and_says_so() -> None:
    budget = Budget(0.0001)
    with judge_server(["nonsense", YES]) as server:
        asked = judge(server, budget=budget)
        with pytest.raises(JudgeFailed, match=r"budget of \$0\.0001 is spent"):
            ask(asked)
    assert len(server.requests) == 1
    assert budget.spent > 0.0001


def test_attempts_that_did_not_fit_are_paid_for() -> None:
    budget = Budget()
    with judge_server(["nonsense", YES]) as server:
        _, (call,) = ask(judge(server, budget=budget))
    assert call.usage.cost_usd == pytest.approx(budget.spent)
    assert call.usage.cost_usd == pytest.approx(2 * 0.00045)


def test_a_cancelled_question_leaves_the_judge_usable_and_is_noted() -> None:
    async def cancel(server: JudgeServer) -> str:
        asked = judge(server, rate_limiter=RateLimiter(RateLimits(initial=1, maximum=1)))
        with call_log() as calls:
            waiting = asyncio.create_task(asked.ask(question()))
            while not server.requests:
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert len(calls) == 1
        return (await asked.ask(question())).verdict

    with judge_server([hangs(), YES]) as server:
        assert asyncio.run(cancel(server)) == "yes"


def test_texts_with_half_characters_can_be_judged() -> None:
    with judge_server(YES) as server:
        ask(judge(server), question("half \ud800 a character"))
    assert " a character" in server.requests[0].prompt
    assert "\ud800" not in server.requests[0].prompt


class InProcess:
    """An endpoint in this process, for what only a clock that can be turned shows."""

    name, address = "scripted:one", "scripted"
    parameters: Mapping[str, Json] = {}

    def __init__(self, *outcomes: EndpointFailed | str | None) -> None:
        self._outcomes = list(outcomes)
        self.asked_at: list[float] = []

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        self.asked_at.append(asyncio.get_running_loop().time())
        outcome = self._outcomes.pop(0)
        if outcome is None:
            await asyncio.Event().wait()
        if isinstance(outcome, EndpointFailed):
            raise outcome
        return Completion(str(outcome))


def test_an_endpoint_that_ignores_its_time_is_left() -> None:
    endpoint = InProcess(None, json.dumps(YES))
    assert run_virtually(ModelJudge(endpoint, timeout=60).ask(question())).verdict == "yes"
    assert 60 <= endpoint.asked_at[1] - endpoint.asked_at[0] < 70


@pytest.mark.parametrize("limited_too", [True, False])
def test_the_wait_a_server_asks_for_is_waited(limited_too: bool) -> None:
    failure = EndpointFailed("later", transient=True, limited=limited_too, retry_after=45.0)
    endpoint = InProcess(failure, json.dumps(YES))
    assert run_virtually(ModelJudge(endpoint).ask(question())).verdict == "yes"
    assert 45 <= endpoint.asked_at[1] - endpoint.asked_at[0] < 50


def test_waits_between_tries_grow() -> None:
    faults = [EndpointFailed("broken", transient=True)] * 5
    endpoint = InProcess(*faults, json.dumps(YES))
    run_virtually(ModelJudge(endpoint, retries=5, backoff=2.0).ask(question()))
    waits = [later - earlier for earlier, later in zip(endpoint.asked_at, endpoint.asked_at[1:], strict=False)]
    assert all(
        low <= wait <= high
        for wait, (low, high) in zip(waits, [(1, 3), (2, 6), (4, 12), (8, 24), (10, 30)], strict=True)
    )


def test_waits_grow_are_never_quite_the_same_and_heed_what_the_server_asks() -> None:
    assert all(0.25 <= backoff(0.5, 1) <= 0.75 for _ in range(50))
    assert all(1.0 <= backoff(0.5, 3) <= 3.0 for _ in range(50))
    assert len({backoff(0.5, 2) for _ in range(20)}) > 1
    assert max(backoff(0.5, 1000) for _ in range(50)) <= 30
    assert backoff(0.5, 1, retry_after=9.0) == 9.0


def test_many_questions_at_once_all_get_their_answer_through_faults() -> None:
    """Every third request fails in one of several ways; nothing is lost, nothing hangs, and no reply is mixed up."""
    faults: list[Scripted] = [status(500), limited("0"), cut(), garbles(), "nonsense"]

    def script(asked: Any) -> Scripted:
        fault = faults[asked.number % len(faults)]
        if asked.number % 3 == 2 and not (fault == "nonsense" and len(asked.messages) > 2):
            return fault
        number = int(asked.prompt.split("number ")[1].split(".")[0])
        return YES if number % 2 else NO

    async def together() -> list[str]:
        replies = await asyncio.gather(*(asked.ask(question(f"number {number}.")) for number in range(60)))
        return [reply.verdict for reply in replies]

    with judge_server(script) as server:
        asked = judge(server, retries=20)
        verdicts = asyncio.run(together())
    assert verdicts == ["yes" if number % 2 else "no" for number in range(60)]
