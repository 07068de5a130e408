"""Who judges: every place that may name a judge, every kind of evaluator, with and without `--fast`."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.base.positions import Position
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.judged_evaluator import JudgedEvaluator, SkippedByFast
from proctor.evaluators.registry import resolve_evaluator
from proctor.judging.choosing import (
    COMMAND_LINE,
    CONFIGURATION,
    DEFAULT,
    EVALUATOR,
    SUITE,
    VARIABLE,
    InvalidJudge,
    JudgeSources,
    WrittenJudge,
    choose_judge,
    environment_sources,
    own_judge,
)
from proctor.judging.judge import Judge
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession, judge_session

FILE = Position(Path("desk.yaml"), 3)
PLACES = (COMMAND_LINE, SUITE, CONFIGURATION, VARIABLE)
FIELDS = dict(zip(PLACES, ("command_line", "suite", "configuration", "environment"), strict=True))
CLIENT = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: None)))


def sources(*places: str, fast: bool = False, judge: Any = None) -> JudgeSources:
    """Each of `places` names a model that is called like the place, or `judge`."""
    written = {place: judge or f"ollama:{place.strip('-').lower()}" for place in places}
    named = {FIELDS[place]: WrittenJudge(name, place, FILE) for place, name in written.items()}
    return JudgeSources(**named, skip_models=fast)


EVALUATORS: dict[str, tuple[dict[str, Any], str | None, int]] = {
    # what the evaluator says, the judge that it names itself, how often that is asked
    "says nothing": ({}, None, 1),
    "names a model": ({"model": "ollama:own"}, "ollama:own", 1),
    "names a model with options": ({"model": {"model": "ollama:own", "samples": 3}}, "ollama:own", 3),
    "names the rules": ({"model": "rules"}, "rules", 1),
    "has a client": ({"client": CLIENT, "model": "own"}, "openai:own", 1),
    "has options alone": ({"model": {"samples": 3}}, None, 3),
    "has samples": ({"samples": 5}, None, 5),
    "names a model and samples": ({"model": "ollama:own", "samples": 5}, "ollama:own", 5),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("kind", EVALUATORS)
@pytest.mark.parametrize(
    "places", [chosen for count in range(5) for chosen in itertools.combinations(PLACES, count)], ids="+".join
)
def test_the_first_place_that_names_a_judge_wins(places: tuple[str, ...], kind: str, fast: bool) -> None:
    says, own, samples = EVALUATORS[kind]
    choice = choose_judge(sources(*places, fast=fast), own_judge(SimpleNamespace(**says)))
    order = [COMMAND_LINE, *([EVALUATOR] if own else []), SUITE, CONFIGURATION, VARIABLE]
    winner = next((place for place in order if place in (*places, EVALUATOR)), DEFAULT)
    name = {EVALUATOR: own, DEFAULT: "rules"}.get(winner, f"ollama:{winner.strip('-').lower()}")
    assert choice.origin == winner
    assert [member.name for member in choice.panel.members] == [name]
    assert choice.at == (FILE if winner in PLACES else None)
    assert choice.needs_model is (name != "rules")
    assert choice.is_skipped is (fast and name != "rules")
    # The samples of a judge that was overruled are its own; those of the evaluator are for whoever judges.
    overruled = kind == "names a model with options" and winner == COMMAND_LINE
    assert choice.panel.samples == (1 if overruled else samples)


@dataclass(frozen=True, kw_only=True)
class Polite(JudgedEvaluator):
    """Asks its judge for nothing, and says who it is."""

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        return Evaluation(1.0, judge.name)


class Named:
    """A judge made in Python."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        raise AssertionError("nothing is asked here")


def test_what_the_plan_chose_is_what_is_asked_and_the_command_line_replaces_a_client() -> None:
    """Defect: `--judge` was asked of the evaluator's own client, as the name of a model."""

    async def judge_of(evaluator: JudgedEvaluator, named: JudgeSources) -> str:
        choice = choose_judge(named, own_judge(evaluator))
        with judge_session(JudgeSession(Judges(), named, choice)):
            said = await evaluator(Evaluable())
        assert said is not None
        return said.reasoning

    own = Polite(client=CLIENT, model="own")
    assert asyncio.run(judge_of(own, sources(SUITE))) == "openai:own"
    assert asyncio.run(judge_of(own, sources(COMMAND_LINE, judge="rules"))) == "rules"
    assert asyncio.run(judge_of(Polite(model=Named("own")), sources(COMMAND_LINE, judge=Named("given")))) == "given"


def test_an_evaluator_that_another_one_calls_has_its_judge_unless_it_names_one() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Outer(JudgedEvaluator):
        inner: JudgedEvaluator

        async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
            said = await self.inner(evaluable)
            assert said is not None
            return Evaluation(1.0, f"{judge.name} calls {said.reasoning}")

    async def said(named: JudgeSources, inner: JudgedEvaluator) -> str:
        outer = Outer(inner=inner, model=Named("outer"))
        with judge_session(JudgeSession(Judges(), named, choose_judge(named, own_judge(outer)))):
            found = await outer(Evaluable())
        assert found is not None
        return found.reasoning

    suite = sources(SUITE, judge=Named("suite"))
    assert asyncio.run(said(suite, Polite())) == "outer calls outer"
    assert asyncio.run(said(suite, Polite(model=Named("inner")))) == "outer calls inner"
    given = sources(COMMAND_LINE, judge=Named("given"))
    assert asyncio.run(said(given, Polite(model=Named("inner")))) == "given calls given"


@pytest.mark.parametrize("variable", ["rules", '{"model": "rules", "samples": 3}'])
def test_an_evaluator_that_python_calls_asks_the_judge_of_the_environment(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_JUDGE", variable)
    choice = choose_judge(environment_sources())
    assert (choice.origin, choice.panel.members[0].name) == (VARIABLE, "rules")
    said = asyncio.run(Polite()(Evaluable()))
    assert said is not None
    assert said.reasoning == "rules"


def test_pytests_fast_option_leaves_models_out_and_asks_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_FAST", "1")
    assert asyncio.run(Polite()(Evaluable())) is not None
    with pytest.raises(SkippedByFast, match="needs ollama:own"):
        asyncio.run(Polite(model="ollama:own")(Evaluable()))


@pytest.mark.parametrize("samples", [0, -1, "many", 1.5, True])
def test_samples_that_are_no_count_are_refused_whoever_judges(samples: Any) -> None:
    own = own_judge(SimpleNamespace(samples=samples))
    for fast in (False, True):
        with pytest.raises(InvalidJudge, match="samples must be a whole number of at least 1") as caught:
            choose_judge(sources(SUITE, fast=fast), own)
        assert (caught.value.written, caught.value.key) == (own, "samples")


def test_a_judge_that_is_not_valid_is_a_problem_of_the_place_that_names_it() -> None:
    with pytest.raises(InvalidJudge, match="did you mean 'openai'") as caught:
        choose_judge(sources(SUITE, judge="openia:gpt-5"))
    assert (caught.value.written.origin, caught.value.written.at) == (SUITE, FILE)
    with pytest.raises(InvalidJudge, match="no judge"):
        choose_judge(sources(COMMAND_LINE, judge={"samples": 3}))
    with pytest.raises(UsageError, match="PROCTOR_JUDGE: the judge is not valid JSON"):
        choose_judge(sources(VARIABLE, judge='{"model": '))


def test_under_fast_a_model_that_cannot_be_read_is_left_out_and_no_problem() -> None:
    choice = choose_judge(sources(SUITE, judge="nobody:x", fast=True))
    assert (choice.is_skipped, choice.needs_model, choice.panel.members) == (True, True, ())


@pytest.mark.parametrize("client", [object(), SimpleNamespace(chat=None)])
def test_a_client_without_the_methods_is_refused(client: Any) -> None:
    with pytest.raises(InvalidJudge, match=r"client must be an openai\.OpenAI") as caught:
        choose_judge(JudgeSources(), own_judge(SimpleNamespace(client=client)))
    assert caught.value.key == "client"


def test_a_judge_is_recognised_by_what_may_change_its_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-secret")

    def identity(judge: Any, **says: Any) -> Any:
        return choose_judge(sources(SUITE, judge=judge), own_judge(SimpleNamespace(**says))).identity

    plain = identity("openai:m")
    assert plain == identity({"model": "openai:m", "timeout": 5, "concurrency": 2, "api_key_env": "A_KEY"})
    assert plain != identity({"model": "openai:m", "temperature": 1})
    assert plain != identity({"model": "openai:m", "base_url": "http://127.0.0.1:9/v1"})
    assert plain != identity("openai:m", samples=3)
    assert "secret" not in str(identity({"model": "openai:m", "api_key_env": "A_KEY"}))


def test_the_version_of_the_rules_and_of_the_questions_is_in_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint() -> str:
        return resolve_evaluator(EvaluatorSpec("Faithfulness")).fingerprint

    before = fingerprint()
    assert fingerprint() == before
    monkeypatch.setattr("proctor.judging.specs.RULES_VERSION", 99)
    with_other_rules = fingerprint()
    monkeypatch.setattr("proctor.evaluators.registry.QUESTIONS_VERSION", 99)
    assert len({before, with_other_rules, fingerprint()}) == 3
