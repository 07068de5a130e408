"""What tokens cost where the agent does not say it: an estimate from a list that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.messages import to_usage
from proctor.agents.pricing import estimate_cost, has_price, model_name_of, unknown_cost_reason
from proctor.agents.reply import Reply, Usage, with_estimated_cost
from proctor.results.store.store import Store
from proctor.tracing.spans import LLMSpan, usage_of

MODEL = "gpt-4o-mini"
ONE = proctor.Suite("s", (proctor.Case(id="c", turns=(proctor.Turn("hi", proctor.Expected(output="hi")),)),))
TEN = proctor.Suite(
    "s", tuple(proctor.Case(id=f"c{n}", turns=(proctor.Turn("hi", proctor.Expected(output="hi")),)) for n in range(10))
)


def answering(usage: Any) -> Any:
    return lambda question: {"output": question, "usage": usage}


def cost_of(usage: Any, **options: Any) -> proctor.Run:
    return proctor.run(ONE, agent=answering(usage), **options)


@pytest.mark.parametrize("name", [MODEL, f"openai:{MODEL}", f"openai/{MODEL}", f"{MODEL}-2024-07-18"])
def test_a_known_model_has_a_price_under_each_of_its_names(name: str) -> None:
    assert estimate_cost(name, 1_000_000, 0) == pytest.approx(0.15)


@pytest.mark.parametrize("name", ["", "my-own-model", "openai:", "\x00", "x" * 10_000, "llama3/../gpt-9"])
def test_an_unknown_model_has_none(name: str) -> None:
    assert estimate_cost(name, 1, 1) is None
    assert not has_price(name)


def test_tokens_of_a_known_model_cost_something_and_are_marked_as_an_estimate() -> None:
    run = cost_of({"input_tokens": 1_000_000, "output_tokens": 0, "model": MODEL})
    [trial] = run.trials
    assert trial.usage == Usage(1_000_000, 0, 0.15, model=MODEL, estimated=True)
    verdict = proctor.verdict(run)
    assert (verdict.cost_usd, verdict.estimated) == (pytest.approx(0.15), True)


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 5, "output_tokens": 1},
        {"input_tokens": 5, "model": MODEL},
        {"input_tokens": 5, "output_tokens": 1, "model": "unheard-of"},
        {"input_tokens": 5, "output_tokens": 1, "model": 7},
    ],
)
def test_what_cannot_be_priced_stays_unknown(usage: dict[str, Any]) -> None:
    [trial] = cost_of(usage).trials
    assert trial.usage is not None
    assert (trial.usage.cost_usd, trial.usage.estimated) == (None, False)


def test_a_cost_that_the_agent_tells_is_no_estimate() -> None:
    [trial] = cost_of({"input_tokens": 5, "output_tokens": 1, "cost_usd": 3.0, "model": MODEL}).trials
    assert trial.usage is not None
    assert (trial.usage.cost_usd, trial.usage.estimated) == (3.0, False)


def test_the_estimate_is_kept_in_the_store(tmp_path: Path) -> None:
    cost_of({"input_tokens": 1_000_000, "output_tokens": 0, "model": MODEL}, store=tmp_path)
    run = Store(tmp_path).find_run("last")
    assert [(s.cost_usd, s.estimated) for s in run.summaries] == [(pytest.approx(0.15), True)]
    [trial] = run.trials
    assert trial.usage is not None
    assert trial.usage.estimated


def test_a_budget_bites_on_estimates() -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0, "model": MODEL}
    run = proctor.run(TEN, agent=answering(usage), budget=0.4, parallel=1)
    assert len(run.summaries) == 3
    assert "the budget of $0.40 is spent" in run.note


def test_two_models_are_priced_apart() -> None:
    both = Usage(1_000_000, 0, model=MODEL) + Usage(1_000_000, 0, model="gpt-4o")
    assert both.cost_usd == pytest.approx(0.15 + 2.5)
    assert (both.model, both.estimated) == (None, True)
    same = Usage() + Usage(1, 1, model=MODEL) + Usage(1, 1, model=MODEL)
    assert (same.model, same.cost_usd) == (MODEL, None)
    unclear = Usage(1, 1, model=MODEL) + Usage(1, 1)
    assert with_estimated_cost(unclear) == unclear


def test_model_calls_in_a_trace_are_priced_too() -> None:
    def call(model: str) -> LLMSpan:
        times = {"started_at": 1.0, "ended_at": 2.0}
        return LLMSpan(
            span_id=model, trace_id="t", request_model=model, input_tokens=1_000_000, output_tokens=0, **times
        )

    one = usage_of([call(MODEL)])
    assert one is not None
    assert with_estimated_cost(one).cost_usd == pytest.approx(0.15)
    two = usage_of([call(MODEL), call("gpt-4o")])
    assert two is not None
    assert (two.cost_usd, two.estimated) == (pytest.approx(2.65), True)
    open_ = usage_of([call(MODEL), call("unheard-of")])
    assert open_ is not None
    assert open_.cost_usd is None


class Named:
    """An agent of the user's own that says which model it asks."""

    name = "mine"

    def __init__(self, model: Any) -> None:
        self.model = model


def test_what_an_agent_says_of_its_model_is_known_before_it_answers() -> None:
    assert model_name_of(Named(MODEL)) == model_name_of(Named(Named(MODEL))) == MODEL
    assert unknown_cost_reason(Named(MODEL)) == ""
    assert unknown_cost_reason(Named("mine")) == "the price list does not have its model 'mine'"
    assert unknown_cost_reason(object()).startswith("it names no model")


def test_a_budget_says_before_it_starts_what_it_cannot_count() -> None:
    told: list[str] = []

    class Listener:
        def started(self, run: proctor.Run, planned: int, kept: int) -> None:
            told.append(run.unpriced_note)

        def trial_done(self, trial: Any) -> None: ...

        def finished(self, run: Any, verdict: Any) -> None: ...

    def quiet(question: str) -> str:
        return question

    proctor.run(ONE, agent=quiet, budget=1.0, listener=Listener())
    proctor.run(ONE, agent="oracle", budget=1.0, listener=Listener())
    proctor.run(ONE, agent=quiet, listener=Listener())
    assert "it names no model" in told[0]
    assert told[1:] == ["", ""]


def test_usage_under_common_names_keeps_the_model() -> None:
    assert to_usage({"prompt_tokens": 1, "completion_tokens": 2, "model": MODEL}) == Usage(1, 2, model=MODEL)
    assert to_usage({"model": MODEL}) is None
    assert Reply("x", usage=Usage(1, 2)).usage == Usage(1, 2, None, None, None, False)
