"""Conversations whose user is simulated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import InvalidSuite, JudgeFailed
from proctor.cases.formats.loading import load
from proctor.cases.scenario import Scenario
from proctor.cases.suite import Case, EvaluatorSpec, Settings, Suite, Turn
from proctor.judging.call_log import log_call
from proctor.judging.judge import JudgeCall
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.running.rescore import rescore
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

Player = Callable[[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_JUDGE", raising=False)


class Playing:
    """A model that plays the user: says one thing after another, checked as a real judge's replies are."""

    def __init__(self, *replies: Any, name: str = "player") -> None:
        self.name = name
        self.replies = list(replies)
        self.questions: list[Any] = []
        self.samples: list[int] = []

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        self.questions.append(question)
        self.samples.append(sample)
        reply = self.replies[(len(self.questions) - 1) % len(self.replies)]
        if isinstance(reply, Exception):
            raise reply
        given = {"reason": "next", "status": "says", "message": reply} if isinstance(reply, str) else reply
        answer = question.reply(**given)
        if complaint := question.check(answer):
            raise JudgeFailed(complaint)
        return answer


FINISHED = {"reason": "the plan is done", "status": "finished", "message": ""}


def echo(question: str, history: list[Any]) -> Reply:
    return Reply(f"{len(history) + 1}: {question}", (ToolCall("look_up", {"what": question}, "found"),))


def suite(scenario: Scenario | None = None, **more: Any) -> Suite:
    told = scenario or Scenario("I want a refund.", "Ask for a refund of order A-1. Accept any offer.")
    case = Case(id="refund", turns=(Turn(told.start),), scenario=told, **more)
    return Suite("desk", (case,), evaluators=(EvaluatorSpec("ToolCount", {"at_least": 1}),))


def held(player: Any, what: Suite | None = None, **options: Any) -> Trial:
    (trial,) = run(player, what, **options).trials
    return trial


def run(player: Any, what: Suite | None = None, store: Path | None = None, **options: Any) -> Run:
    agent = options.pop("agent", echo)
    request = RunRequest([what or suite()], RunOptions(judge=player, **options), agent=agent, store=store)
    return run_suites(request)[0]


def test_the_first_message_is_the_start_and_the_others_are_generated_until_the_user_is_finished() -> None:
    trial = held(Playing("Order A-1.", "Fine, thanks.", FINISHED))
    assert [turn.input for turn in trial.case.turns] == ["I want a refund.", "Order A-1.", "Fine, thanks."]
    assert [reply.text for reply in trial.replies] == ["1: I want a refund.", "2: Order A-1.", "3: Fine, thanks."]
    assert trial.outcome == "passed"
    assert len(trial.scores) == 3


def test_the_user_is_shown_plan_and_conversation_and_tools_only_if_asked_for() -> None:
    player = Playing("Order A-1.", FINISHED)
    held(player)
    material = player.questions[-1].material
    assert material["plan"].startswith("Ask for a refund")
    assert material["line"] == [
        "user: I want a refund.",
        "agent: 1: I want a refund.",
        "user: Order A-1.",
        "agent: 2: Order A-1.",
    ]
    seen = Playing(FINISHED)
    held(seen, suite(Scenario("Hi.", "Say hello.", persona="NOVICE", show_tools=True)))
    assert any("look_up" in line for line in seen.questions[0].material["line"])
    assert "everyday words" in seen.questions[0].material["persona"]


def test_the_stop_mark_in_a_message_ends_the_conversation_as_well() -> None:
    trial = held(Playing("Thanks. </finished>"))
    assert len(trial.case.turns) == 1
    assert trial.case.turns[0].extra["x-simulated"]["ended"] == "the user ended it"


def test_a_conversation_without_end_is_cut_at_the_limit_and_says_so() -> None:
    trial = held(Playing("More?"), suite(Scenario("Hi.", "Go on for ever.", max_turns=5)))
    assert len(trial.replies) == 5
    assert trial.case.turns[0].extra["x-simulated"]["ended"] == "the limit of 5 turns was reached"
    assert trial.outcome == "passed"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"reason": "", "status": "says", "message": "  "}, "message is empty"),
        ({"reason": "it is not safe", "status": "cannot", "message": ""}, "it is not safe"),
        ("As an AI language model, I have no orders.", "Stay in the user's role"),
        ("Agent: your refund is on its way.", "Stay in the user's role"),
        ("I'm sorry, but I can't help with that.", "Stay in the user's role"),
        (JudgeFailed("no answer within 120 s"), "no answer within 120 s"),
    ],
)
def test_a_conversation_that_the_user_spoils_is_an_error_and_no_failure_of_the_agent(reply: Any, why: str) -> None:
    trial = held(Playing("Order A-1.", reply))
    assert trial.outcome is Outcome.ERROR
    assert why in trial.reason
    assert trial.reason.startswith("the simulated user (player) failed")
    assert [turn.input for turn in trial.case.turns] == ["I want a refund.", "Order A-1."]
    assert trial.scores == ()


def test_a_user_who_says_what_the_agent_said_is_out_of_role() -> None:
    long = "Please tell me the number of your order and the day on which it arrived."
    trial = held(Playing("Hm.", f"2:  {long}"), agent=lambda question, history: f"{len(history) + 1}: {long}")
    assert trial.outcome is Outcome.ERROR
    assert "word for word" in trial.reason


def test_an_agent_that_breaks_down_in_a_simulated_conversation_has_failed() -> None:
    def agent(question: str) -> str:
        if "A-1" in question:
            raise ValueError("no such order")
        return "Which order?"

    trial = held(Playing("Order A-1.", FINISHED), agent=agent)
    assert trial.outcome is Outcome.FAILED
    assert len(trial.case.turns) == 2


@pytest.mark.parametrize("judge", [None, "rules", {"model": "rules"}])
def test_without_a_model_a_scenario_is_skipped_and_the_agent_is_not_called(judge: Any) -> None:
    asked: list[str] = []
    request = RunRequest([suite()], RunOptions(judge=judge), agent=lambda question: asked.append(question) or "yes")
    result, verdict = run_suites(request)
    (trial,) = result.trials
    assert trial.outcome is Outcome.SKIPPED
    assert "needs a model" in trial.reason
    assert asked == []
    assert verdict.exit_code == 4


def test_fast_leaves_scenarios_out() -> None:
    trial = held(Playing(FINISHED), fast=True)
    assert trial.outcome is Outcome.SKIPPED
    assert "--fast" in trial.reason


def test_a_model_that_cannot_be_had_is_found_before_anything_runs() -> None:
    told = Scenario("Hi.", "Say hello.", model="nobody:knows")
    with pytest.raises(InvalidSuite, match="scenario: model"):
        run_suites(RunRequest([suite(told)], RunOptions(), agent=echo))


def test_the_command_lines_model_plays_the_user_even_if_a_scenario_names_another() -> None:
    player = Playing(FINISHED)
    held(player, suite(Scenario("Hi.", "Say hello.", model="nobody:knows")))
    assert len(player.questions) == 1


def test_repetitions_are_distinguished() -> None:
    player = Playing(FINISHED)
    run(player, overrides=Settings(repeat=3, parallel=1))
    assert sorted(player.samples) == [0, 1, 2]


def test_the_time_of_the_user_is_not_the_agents() -> None:
    class Slow(Playing):
        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            for _ in range(40):
                await asyncio.sleep(0.01)
            return await super().ask(question, sample=sample)

    trial = held(Slow(FINISHED), overrides=Settings(timeout=0.2))
    assert trial.outcome == "passed", trial.reason


def test_the_conversation_comes_back_from_the_store_as_it_happened(tmp_path: Path) -> None:
    first = run(Playing("Order A-1.", FINISHED), store=tmp_path / "s")
    (before,), (after,) = first.trials, Store(tmp_path / "s").find_run("last").trials
    assert after.case == before.case
    assert [turn.input for turn in after.case.turns] == ["I want a refund.", "Order A-1."]
    (judge,) = first.judges
    assert (judge.model, judge.scores) == ("player", 0)


def test_rescoring_asks_neither_agent_nor_user_and_scores_the_stored_conversation(tmp_path: Path) -> None:
    run(Playing("Order A-1.", FINISHED), store=tmp_path / "s")
    again, verdict = rescore(
        tmp_path / "s",
        "last",
        options=RunOptions(),
        evaluators=(EvaluatorSpec("ToolCount", {"exactly": 2}, scope="case"),),
    )
    (trial,) = again.trials
    assert [turn.input for turn in trial.case.turns] == ["I want a refund.", "Order A-1."]
    assert verdict.outcome == "passed"


def test_the_user_is_not_asked_again_for_a_message_that_is_sent_again() -> None:
    class Charging(Playing):
        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            log_call(
                JudgeCall(question.kind, question.version, "player", f"key {len(self.questions)}", usage=Usage(10, 1))
            )
            return await super().ask(question, sample=sample)

    answers = iter([Reply("Which?"), ConnectionError("lost"), Reply("Done.")])

    def agent(question: str) -> Reply:
        said = next(answers)
        if isinstance(said, Exception):
            raise said
        return said

    result = run(Charging("Order A-1.", FINISHED), agent=agent, backoff=0.0)
    (trial,), (judge,) = result.trials, result.judges
    assert (trial.attempts, len(trial.replies)) == (2, 2)
    assert (judge.calls, judge.input_tokens) == (2, 20)


def test_a_finished_conversation_is_not_held_again_on_resume(tmp_path: Path) -> None:
    what = suite()
    run(Playing("Order A-1.", FINISHED), store=tmp_path / "s")
    store = Store(tmp_path / "s")
    (row,) = store.runs()
    row.status = RunStatus.INTERRUPTED
    store.finish_run(row)
    store.close()
    player = Playing(FINISHED)
    request = RunRequest([what], RunOptions(judge=player), agent=echo, store=tmp_path / "s", resume=True)
    result, _ = run_suites(request)
    assert player.questions == []
    assert [len(trial.case.turns) for trial in result.trials] == [2]


class Both(Playing):
    """Plays the user, and finds it in order afterwards."""

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        if question.kind == "next-user-message":
            return await super().ask(question, sample=sample)
        self.seen = question
        items = question.instructions.count("\n", question.instructions.rindex("\n\n") + 2) + 1
        verdicts = [{"number": n, "reason": "fits", "verdict": "yes"} for n in range(1, items + 1)]
        return question.reply.model_validate({"verdicts": verdicts})


def measured(player: Any, scenario: Scenario | None = None, **arguments: Any) -> tuple[Any, list[str]]:
    """The score of the user's quality, and the conversation as it was put to the judge."""
    evaluators = (EvaluatorSpec("UserSimulatorQuality", arguments),)
    (score,) = held(player, Suite("desk", suite(scenario).cases, evaluators=evaluators)).scores
    return score, player.seen.material["line"]


@pytest.mark.needs("adk")
def test_the_quality_of_the_simulated_user_can_be_measured() -> None:
    score, _ = measured(Both("Order A-1.", FINISHED))
    assert (score.outcome, score.value) == ("passed", 1.0), score


@pytest.mark.needs("adk")
def test_a_judge_of_the_user_sees_the_stop_mark_where_the_user_set_it() -> None:
    _, lines = measured(Both("Order A-1.", FINISHED))
    assert lines[-2:] == ["agent, turn 2: 2: Order A-1.", "user, after turn 2: </finished>"]
    _, lines = measured(Both("Order A-1.", "Thanks a lot. </finished>"))
    assert lines[-1] == "user, after turn 2: Thanks a lot. </finished>"
    _, lines = measured(Both("Bye. <bye>"), Scenario("Hi.", "Say hello.", stop="<bye>"), stop_signal="<end>")
    assert lines[-1] == "user, after turn 1: Bye. <end>"


@pytest.mark.needs("adk")
def test_a_conversation_that_was_cut_off_has_no_mark_and_says_why_it_ended() -> None:
    _, lines = measured(Both("More?"), Scenario("Hi.", "Go on for ever.", max_turns=2))
    assert lines[-1] == "(the conversation ended here: the limit of 2 turns was reached)"


@pytest.mark.needs("adk")
def test_the_mark_is_still_there_when_a_stored_conversation_is_scored_again(tmp_path: Path) -> None:
    run(Playing("Order A-1.", "Thanks. </finished>"), store=tmp_path / "s")
    judge = Both()
    evaluators = (EvaluatorSpec("UserSimulatorQuality"),)
    rescore(tmp_path / "s", "last", options=RunOptions(judge=judge), evaluators=evaluators)
    assert judge.seen.material["line"][-1] == "user, after turn 2: Thanks. </finished>"


def test_a_native_file_holds_a_scenario(tmp_path: Path) -> None:
    data = {
        "cases": [
            {
                "id": "refund",
                "scenario": {"start": "I want a refund.", "plan": "Ask for it.", "persona": "NOVICE", "max_turns": 3},
                "evaluators": [{"ToolCount": {"at_least": 1}}],
            }
        ]
    }
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(data))
    (read,) = load([path])
    (case,) = read.cases
    assert case.scenario == Scenario("I want a refund.", "Ask for it.", "NOVICE", 3)
    assert [turn.input for turn in case.turns] == ["I want a refund."]
    trial = held(Playing("More.", "More.", "More."), read)
    assert len(trial.replies) == 3
