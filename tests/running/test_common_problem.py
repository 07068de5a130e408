"""A problem that is not the agent's and that every trial hits: the suite stops after the first few, with an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from engine_helpers import case, cases, only, run, suite, trials_of

from proctor.cases.suite import EvaluatorSpec
from proctor.results.score import Outcome


class Rejected(Exception):
    status_code = 401


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


def asks_a_model(question: str) -> str:
    client = openai.OpenAI()
    return str(client.base_url)


def test_a_missing_key_stops_the_run_after_the_first_few_trials() -> None:
    run_, verdict = run(suite(cases(25), parallel=3), agent=asks_a_model)
    tried = len(run_.summaries)
    assert 3 <= tried <= 5  # the three that started together, and what started before the third ended
    assert {trial.outcome for trial in run_.summaries} == {Outcome.ERROR}
    others = f"the other {25 - tried} trials would fail the same way and were not run"
    assert run_.note == f"OPENAI_API_KEY is not set; {others}"
    assert (verdict.exit_code, verdict.outcome) == (4, Outcome.ERROR)
    assert verdict.suites[0].pass_rate is None


def test_a_missing_key_is_noticed_early_although_many_trials_may_run_in_parallel() -> None:
    async def agent(question: str) -> str:
        return asks_a_model(question)

    run_, _ = run(suite(cases(200)), agent=agent)
    assert len(run_.summaries) < 25
    assert run_.note.startswith("OPENAI_API_KEY is not set; the other")


def test_repeats_count_as_trials() -> None:
    run_, verdict = run(suite([case("c")], repeat=10, parallel=1), agent=asks_a_model)
    assert (len(run_.summaries), verdict.exit_code) == (3, 4)
    assert run_.note.startswith("OPENAI_API_KEY is not set; the other 7 trials")


def test_few_trials_are_all_run() -> None:
    run_, verdict = run(suite(cases(3)), agent=asks_a_model)
    assert (len(run_.summaries), run_.note, verdict.exit_code) == (3, "", 4)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_single_other_result_means_that_the_problem_is_not_common(parallel: int) -> None:
    def agent(question: str) -> str:
        if question == "case-2":
            return question
        raise Rejected

    run_, verdict = run(suite(cases(12), parallel=parallel), agent=agent)
    assert len(run_.summaries) == 12
    assert verdict.exit_code == 4


def test_the_agents_own_failures_do_not_stop_a_run() -> None:
    def agent(question: str) -> str:
        raise ValueError("a bug")

    run_, verdict = run(suite(cases(12), parallel=1), agent=agent)
    assert (len(run_.summaries), verdict.exit_code) == (12, 1)


def test_other_suites_go_on() -> None:
    def agent(question: str) -> str:
        if question.startswith("case"):
            raise Rejected
        return question

    works = suite([case(f"other-{number}") for number in range(6)], name="works", parallel=1)
    run_, verdict = run(suite(cases(9), name="locked out", parallel=1), works, agent=agent)
    assert [trial.outcome for trial in run_.summaries].count(Outcome.PASSED) == 6
    assert len(run_.summaries) == 9
    assert run_.note.startswith("the API key or login is rejected (HTTP 401); the other 6 trials")
    assert verdict.exit_code == 4


def test_the_rest_is_run_by_resume_once_the_problem_is_solved(tmp_path: Path) -> None:
    key: list[str] = []

    def agent(question: str) -> str:
        if not key:
            raise Rejected
        return question

    first, _ = run(suite(cases(9), parallel=1), agent=agent, store=tmp_path)
    key.append("k")
    second, verdict = run(suite(cases(9), parallel=1), agent=agent, store=tmp_path, resume=True)
    assert second.id == first.id
    assert (len(second.summaries), verdict.exit_code) == (9, 0)


def test_it_works_in_processes_of_their_own() -> None:
    run_, verdict = run(suite(cases(9), parallel=1), agent=asks_a_model, isolate=True)
    assert (len(run_.summaries), verdict.exit_code) == (3, 4)
    assert run_.note.startswith("OPENAI_API_KEY is not set; the other 6 trials")
    assert "Missing credentials" in trials_of((run_, verdict))[0].reason


def test_an_evaluator_without_a_key_stops_the_run_too() -> None:
    def asks_a_judge(evaluable: Any) -> float:
        raise Rejected("wrong key")

    run_, verdict = run(
        suite(cases(9), parallel=1, evaluators=(EvaluatorSpec("Judged"),)),
        agent=lambda question: question,
        evaluators={"Judged": asks_a_judge},
    )
    assert (len(run_.summaries), verdict.exit_code) == (3, 4)
    assert run_.note.startswith("Judged: the API key or login is rejected (HTTP 401); the other 6 trials")


@pytest.mark.parametrize(
    "error",
    [MemoryError(), OSError(24, "Too many open files"), RuntimeError("can't start new thread")],
    ids=lambda error: type(error).__name__,
)
def test_limits_of_this_machine_are_errors(error: Exception) -> None:
    def agent(question: str) -> str:
        raise error

    trial = only(run(suite([case("c")]), agent=agent))
    assert (trial.outcome, trial.attempts) == (Outcome.ERROR, 1)
