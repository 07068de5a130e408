from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import EXACT, case, cases, echo, only, outcomes, run, suite, trials_of

from proctor.base.errors import InvalidSuite, StoreError
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, Settings, Turn
from proctor.results.run import Run, StoredVerdict
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.verdict import RunVerdict
from proctor.running.rescore import rescore
from proctor.running.settings import RunOptions

Found = tuple[Run, RunVerdict]


def again(folder: Path, run_id: str = "last", **options: Any) -> Found:
    return rescore(folder, run_id, options=RunOptions(backoff=0.0), **options)


ASKED: dict[int, list[str]] = {}


class Counted:
    """An agent that is asked nothing twice in vain; the log is no part of it, since what it holds makes it another."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        ASKED[id(self)] = []

    @property
    def asked(self) -> list[str]:
        return ASKED[id(self)]

    def __call__(self, question: str) -> Any:
        self.asked.append(question)
        answer = self.answers.get(question, question)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_rescoring_gives_the_same_result_and_calls_no_agent(tmp_path: Path) -> None:
    agent = Counted(b="wrong")
    first = run(suite([case("a"), case("b")]), agent=agent, store=tmp_path)
    second = again(tmp_path)

    assert sorted(agent.asked) == ["a", "b"]
    assert first[0].id != second[0].id
    assert outcomes(second) == outcomes(first) == {"a": Outcome.PASSED, "b": Outcome.FAILED}
    assert second[1].exit_code == 1
    assert [trial.replies for trial in second[0].trials] == [trial.replies for trial in first[0].trials]
    assert all(trial.reused for trial in second[0].trials)
    assert [item.agent for item in second[0].suites] == [item.agent for item in first[0].suites]


def test_new_evaluators_score_old_answers(tmp_path: Path) -> None:
    agent = Counted(b="wrong")
    run(suite([case("a"), case("b")], evaluators=()), agent=agent, store=tmp_path)
    found = again(tmp_path, evaluators=EXACT)

    assert outcomes(found) == {"a": Outcome.PASSED, "b": Outcome.FAILED}
    assert sorted(agent.asked) == ["a", "b"]


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_answers_that_nothing_could_be_compared_with_can_be_scored_later(tmp_path: Path) -> None:
    silent = (EvaluatorSpec("Contains"),)
    first = run(suite([case("a")], evaluators=silent), agent=echo, store=tmp_path)
    assert only(first).outcome is Outcome.ERROR

    assert only(again(tmp_path, evaluators=EXACT)).outcome is Outcome.PASSED


def test_agents_that_failed_have_still_failed(tmp_path: Path) -> None:
    agent = Counted(a=ValueError("no"), b=ConnectionError("reset"), c=object())
    first = run(suite([case("a"), case("b"), case("c")], retries=0), agent=agent, store=tmp_path)
    second = again(tmp_path, evaluators=(EvaluatorSpec("MaxSteps", {"steps": 9}),))

    assert [(t.outcome, t.reason) for t in trials_of(second)] == [(t.outcome, t.reason) for t in trials_of(first)]
    assert outcomes(second) == {"a": Outcome.FAILED, "b": Outcome.ERROR, "c": Outcome.ERROR}


def test_repeats_are_scored_each(tmp_path: Path) -> None:
    run(suite(cases(2), repeat=3), agent=echo, store=tmp_path)
    found = again(tmp_path)

    assert [(t.case.id, t.number) for t in trials_of(found)] == [(f"case-{c}", n) for c in (0, 1) for n in (1, 2, 3)]
    assert found[1].suites[0].repeats == 3
    assert found[1].exit_code == 0


def written(folder: Path, name: str = "suite.json", **cases_: str) -> Path:
    """A suite file whose cases expect what is given."""
    data = {
        "name": "faq",
        "evaluators": ["ExactMatch"],
        "cases": [{"id": key, "input": key, "expected": value} for key, value in cases_.items()],
    }
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def test_expectations_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    path = written(tmp_path, a="a", b="something else")
    first = run(*load([path]), agent=echo, store=tmp_path / "store")
    assert outcomes(first) == {"a": Outcome.PASSED, "b": Outcome.FAILED}
    written(tmp_path, a="something else", b="b")

    assert outcomes(again(tmp_path / "store")) == {"a": Outcome.FAILED, "b": Outcome.PASSED}


def test_an_answer_is_not_scored_for_a_question_it_was_not_given_to(tmp_path: Path) -> None:
    path = written(tmp_path, a="a", b="b")
    run(*load([path]), agent=echo, store=tmp_path / "store")
    data = json.loads(path.read_text())
    data["cases"][0]["input"] = "something else"
    path.write_text(json.dumps(data))
    found = again(tmp_path / "store")

    assert outcomes(found) == {"a": Outcome.ERROR, "b": Outcome.PASSED}
    assert "has changed" in trials_of(found)[0].reason


@pytest.mark.parametrize("content", [None, "{", '{"cases": []}'])
def test_a_suite_whose_file_is_missing_or_broken_is_scored_as_it_was_stored(
    content: str | None, tmp_path: Path
) -> None:
    path = written(tmp_path, a="a", b="something else")
    run(*load([path]), agent=echo, store=tmp_path / "store")
    path.unlink()
    if content is not None:
        path.write_text(content)

    assert outcomes(again(tmp_path / "store")) == {"a": Outcome.PASSED, "b": Outcome.FAILED}


def test_a_file_that_was_named_and_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    run(suite(cases(1)), agent=echo, store=tmp_path / "store")

    with pytest.raises(InvalidSuite):
        again(tmp_path / "store", suites=[str(tmp_path / "missing.json")])


def test_another_file_may_be_named(tmp_path: Path) -> None:
    run(*load([written(tmp_path, a="a")]), agent=echo, store=tmp_path / "store")
    other = written(tmp_path, "other.json", a="something else")

    assert outcomes(again(tmp_path / "store", suites=[str(other)])) == {"a": Outcome.FAILED}


def test_suites_of_one_name_in_two_files_are_found_again(tmp_path: Path) -> None:
    paths = [written(tmp_path, "one.json", a="a"), written(tmp_path, "two.json", b="b")]
    run(*load(paths), agent=echo, store=tmp_path / "store")
    for path, name in zip(paths, ("a", "b"), strict=True):
        written(tmp_path, path.name, **{name: "something else"})

    assert outcomes(again(tmp_path / "store")) == {"a": Outcome.FAILED, "b": Outcome.FAILED}


def test_criteria_of_a_suite_without_a_file_are_remembered(tmp_path: Path) -> None:
    half = suite([case("a"), case("b", "no")], criteria=Criteria(pct=0.5))
    run(half, agent=echo, store=tmp_path)

    assert again(tmp_path)[1].exit_code == 0


def test_a_case_that_was_removed_is_skipped_and_one_that_is_new_has_no_answer(tmp_path: Path) -> None:
    run(*load([written(tmp_path, a="a", b="b")]), agent=echo, store=tmp_path / "store")
    written(tmp_path, b="b", c="c")

    assert outcomes(again(tmp_path / "store")) == {"b": Outcome.PASSED}


def test_an_interrupted_run_can_be_scored_as_far_as_it_went(tmp_path: Path) -> None:
    run(suite([case("a", "no"), *cases(5)], parallel=1), agent=echo, store=tmp_path, maxfail=1)

    assert outcomes(again(tmp_path)) == {"a": Outcome.FAILED}


def test_a_rescored_run_can_be_read_and_rescored_again(tmp_path: Path) -> None:
    run(suite(cases(3)), agent=echo, store=tmp_path)
    again(tmp_path)
    found = again(tmp_path)
    store = Store(tmp_path)

    assert [trial.outcome for trial in store.find_run(found[0].id).trials] == [Outcome.PASSED] * 3
    assert store.find_run("last").rescored != found[0].id
    store.close()


def test_there_must_be_something_to_score(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results"):
        again(tmp_path / "nothing")
    store = Store(tmp_path)
    store.add_run(Run("empty", 0.0))
    store.close()
    with pytest.raises(StoreError, match="no trials"):
        again(tmp_path)
    with pytest.raises(StoreError, match="no run"):
        again(tmp_path, "2020")


def test_many_trials_are_not_compared_with_each_other(tmp_path: Path) -> None:
    """Twice the cases take about twice the steps."""
    import sys

    def steps(count: int) -> int:
        run(suite(cases(count)), agent=echo, store=tmp_path / str(count))
        taken = 0

        def step(*_: Any) -> None:
            nonlocal taken
            taken += 1

        sys.setprofile(step)
        try:
            again(tmp_path / str(count))
        finally:
            sys.setprofile(None)
        return taken

    assert steps(400) < 3 * steps(200)


def test_reuse_takes_unchanged_answers_and_says_which(tmp_path: Path) -> None:
    agent = Counted(b="wrong")
    two = suite([case("a"), case("b")])
    run(two, agent=agent, store=tmp_path)
    agent.asked.clear()
    changed = suite([case("a"), case("b"), case("c")])
    found = run(changed, agent=agent, store=tmp_path, reuse=True)

    assert agent.asked == ["c"]
    assert [(trial.case.id, trial.reused) for trial in found[0].trials] == [("a", True), ("b", True), ("c", False)]
    assert outcomes(found) == {"a": Outcome.PASSED, "b": Outcome.FAILED, "c": Outcome.PASSED}


def test_reuse_scores_by_what_is_expected_now(tmp_path: Path) -> None:
    agent = Counted()
    run(suite([case("a")]), agent=agent, store=tmp_path)
    found = run(suite([case("a", "something else")]), agent=agent, store=tmp_path, reuse=True)

    assert agent.asked == ["a"]
    assert only(found).outcome is Outcome.FAILED


@pytest.mark.parametrize("evaluators", [(), (EvaluatorSpec("Contains"),)])
def test_reuse_scores_answers_that_could_not_be_scored_before(
    evaluators: tuple[EvaluatorSpec, ...], tmp_path: Path
) -> None:
    agent = Counted()
    unscored = suite([replace(case("a"), evaluators=evaluators, implied=False)])
    assert only(run(unscored, agent=agent, store=tmp_path)).outcome is Outcome.ERROR
    found = run(suite([case("a")]), agent=agent, store=tmp_path, reuse=True)

    assert agent.asked == ["a"]
    assert only(found).outcome is Outcome.PASSED


def test_reuse_calls_the_agent_again_where_the_agent_failed(tmp_path: Path) -> None:
    talk = Case(id="c", turns=tuple(Turn(text, Expected(output=text)) for text in ("one", "two")), evaluators=EXACT)
    agent = Counted(two=ConnectionError("reset"))
    assert only(run(suite([talk], retries=0), agent=agent, store=tmp_path)).outcome is Outcome.ERROR
    agent.answers.clear()
    found = run(suite([talk]), agent=agent, store=tmp_path, reuse=True)

    assert only(found).outcome is Outcome.PASSED
    assert not only(found).reused


def test_reuse_calls_the_agent_again_if_the_question_or_the_agent_changed(tmp_path: Path) -> None:
    agent = Counted()
    run(suite([case("a")]), agent=agent, store=tmp_path)
    other = Case(id="a", turns=(Turn("another question", Expected(output="another question")),))
    run(suite([other]), agent=agent, store=tmp_path, reuse=True)
    assert agent.asked == ["a", "another question"]

    class Renamed(Counted):
        fingerprint = "2"

    changed = Renamed()
    run(suite([case("a")]), agent=lambda question: changed(question), store=tmp_path, reuse=True)
    assert changed.asked == ["a"]


def test_reuse_has_an_answer_for_each_repeat_or_asks(tmp_path: Path) -> None:
    agent = Counted()
    run(suite([case("a")], repeat=2), agent=agent, store=tmp_path)
    found = run(suite([case("a")]), agent=agent, store=tmp_path, reuse=True, overrides=Settings(repeat=3))

    assert len(agent.asked) == 3
    assert [trial.reused for trial in found[0].trials] == [True, True, False]


def test_without_reuse_the_agent_is_called_again(tmp_path: Path) -> None:
    agent = Counted()
    for _ in range(2):
        run(suite([case("a")]), agent=agent, store=tmp_path)

    assert agent.asked == ["a", "a"]


def test_what_a_run_was_made_of_can_be_read_from_the_store(tmp_path: Path) -> None:
    made = replace(suite(cases(3)), criteria=Criteria("majority", pct=0.7))
    first, verdict = run(made, agent=echo, store=tmp_path)
    store = Store(tmp_path)
    found = store.find_run(first.id)

    assert list(found.trials) == list(first.trials)
    assert list(found.summaries) == list(first.summaries)
    assert found.suites == first.suites
    assert found.stored_verdict == StoredVerdict(verdict.outcome, verdict.reason, verdict.exit_code)
    assert found.counts == {outcome.value: count for outcome, count in verdict.counts.items()}
    assert verdict.exit_code == 0
    store.close()
