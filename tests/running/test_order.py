from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, cases, echo, echo_async, outcomes, run, suite, trials_of

import proctor
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.suite import Case, Criteria, Settings, Suite
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict


class Heard:
    """A listener that writes down what it hears."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def started(self, of: Run, planned: int, kept: int) -> None:
        self.events.append(f"started {planned} {kept}")

    def trial_done(self, trial: Trial) -> None:
        self.events.append(f"{trial.case.id} {trial.number}")

    def finished(self, of: Run, verdict: RunVerdict) -> None:
        self.events.append(f"finished {verdict.outcome}")


def backwards(count: int) -> Any:
    """An agent of which the last one asked answers first."""
    turns = [asyncio.Event() for _ in range(count + 1)]
    turns[count].set()

    async def agent(question: str) -> str:
        number = int(question.removeprefix("case-"))
        await turns[number + 1].wait()
        turns[number].set()
        return question

    return agent


@pytest.mark.parametrize("stored", [True, False])
def test_results_stand_in_the_order_of_the_plan_whatever_finishes_first(stored: bool, tmp_path: Path) -> None:
    heard = Heard()
    found = run(
        suite(cases(20), parallel=20),
        agent=backwards(20),
        listener=heard,
        store=tmp_path if stored else None,
    )

    ids = [f"case-{number}" for number in range(20)]
    assert heard.events[1:-1] == [f"{name} 1" for name in reversed(ids)]
    assert [trial.case.id for trial in found[0].trials] == ids
    assert [trial.case.id for trial in found[0].trials] == ids, "trials can be read twice"
    assert [summary.case_id for summary in found[0].summaries] == ids
    assert [verdict.case_id for verdict in found[1].suites[0].cases] == ids


def test_a_listener_hears_of_the_beginning_every_trial_and_the_end() -> None:
    heard = Heard()
    run(suite(cases(2), parallel=1), agent=echo, listener=heard)

    assert heard.events == ["started 2 0", "case-0 1", "case-1 1", "finished passed"]


def test_repeats_are_trials_of_their_own() -> None:
    asked: list[str] = []

    async def agent(question: str) -> str:
        asked.append(question)
        return question if len(asked) != 2 else "something else"

    found = run(suite(cases(2), repeat=3, parallel=1), agent=agent)

    assert [(trial.case.id, trial.number) for trial in trials_of(found)] == [
        (f"case-{number}", repetition) for number in (0, 1) for repetition in (1, 2, 3)
    ]
    assert [trial.outcome for trial in trials_of(found)].index(Outcome.FAILED) == 1
    verdict = found[1].suites[0]
    assert [(item.trials, item.passed, item.outcome) for item in verdict.cases] == [
        (3, 2, Outcome.FAILED),
        (3, 3, Outcome.PASSED),
    ]


def test_a_case_may_ask_for_more_repeats_and_the_command_has_the_last_word() -> None:
    found = [case("a", repeat=3), case("b")]

    assert len(trials_of(run(suite(found, repeat=2), agent=echo))) == 5
    assert len(trials_of(run(suite(found), agent=echo, overrides=Settings(repeat=1)))) == 2


class Gauge:
    """How many of each suite are being asked at once."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def __call__(self, question: str) -> str:
        name = question.partition("-")[0]
        self.now[name] = self.now.get(name, 0) + 1
        self.most[name] = max(self.most.get(name, 0), self.now[name])
        for _ in range(5):
            await asyncio.sleep(0)
        self.now[name] -= 1
        return question


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_no_more_trials_run_at_once_than_the_suite_allows(limit: int) -> None:
    gauge = Gauge()
    run(suite(cases(40), parallel=limit), agent=gauge)

    assert gauge.most == {"case": limit}


def named(prefix: str, count: int, **settings: Any) -> Suite:
    return suite([case(f"{prefix}-{number}") for number in range(count)], name=prefix, **settings)


def test_each_suite_keeps_to_its_own_limit() -> None:
    gauge = Gauge()
    run(named("narrow", 10, parallel=1), named("wide", 30, parallel=6), agent=gauge)

    assert gauge.most["narrow"] == 1
    assert 1 < gauge.most["wide"] <= 6


def test_a_suite_at_its_limit_does_not_hold_up_the_next() -> None:
    wide_is_done = asyncio.Event()
    left = {"wide": 10}

    async def agent(question: str) -> str:
        if question.startswith("narrow"):
            await wide_is_done.wait()
            return question
        left["wide"] -= 1
        if left["wide"] == 0:
            wide_is_done.set()
        return question

    found = run(named("narrow", 3, parallel=1), named("wide", 10, parallel=2), agent=agent)

    assert found[1].exit_code == 0


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR])
def test_maxfail_stops_the_run_and_says_so(outcome: Outcome, tmp_path: Path) -> None:
    asked: list[str] = []

    async def agent(question: str) -> Any:
        asked.append(question)
        if question in ("case-2", "case-4"):
            return "wrong" if outcome is Outcome.FAILED else object()
        return question

    found = run(suite(cases(50), parallel=1), agent=agent, maxfail=2, store=tmp_path)

    assert asked == [f"case-{number}" for number in range(5)]
    assert list(outcomes(found)) == asked
    assert found[0].note == "stopped after 2 trials that did not pass (--maxfail)"
    assert found[1].exit_code == (1 if outcome is Outcome.FAILED else 4)


def test_maxfail_drops_what_is_under_way() -> None:
    async def agent(question: str) -> str:
        if question == "case-0":
            return "wrong"
        await asyncio.Event().wait()
        return question

    found = run(suite(cases(8), parallel=8), agent=agent, maxfail=1)

    assert list(outcomes(found)) == ["case-0"]


def test_a_run_that_maxfail_stopped_has_not_failed_if_the_rest_could_still_have_made_it() -> None:
    async def agent(question: str) -> str:
        return "wrong" if question == "case-0" else question

    found = run(suite(cases(10), parallel=1, criteria=Criteria(pct=0.5)), agent=agent, maxfail=1)

    assert found[1].outcome is Outcome.ERROR
    assert found[1].exit_code == 4


class BreaksDown(Heard):
    def trial_done(self, trial: Trial) -> None:
        super().trial_done(trial)
        raise BrokenPipeError("nobody reads this")


def test_a_listener_that_breaks_ends_the_run_and_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    from proctor.results.store.store import Store

    heard = BreaksDown()
    with pytest.raises(BrokenPipeError):
        run(suite(cases(10), parallel=10), agent=echo_async, listener=heard, store=tmp_path)

    store = Store(tmp_path)
    (row,) = store.runs()
    assert len(heard.events) == 2, "it is told no more after it broke"
    assert len(store.summaries(row.no)) >= 1
    assert row.status != "finished"
    store.close()

    resumed = run(suite(cases(10), parallel=10), agent=echo_async, store=tmp_path, resume=True)
    assert resumed[0].id == row.id
    assert list(outcomes(resumed)) == [f"case-{number}" for number in range(10)]


def test_signal_handlers_of_the_application_stay_as_they_are() -> None:
    def own(*_: Any) -> None:
        raise AssertionError("is never called")

    def looks(question: str) -> str:
        return question if signal.getsignal(signal.SIGTERM) is own else "taken over"

    before = signal.signal(signal.SIGTERM, own)
    interrupt, alarm = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    try:
        assert run(suite(cases(2)), agent=looks)[1].exit_code == 0
        assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGINT) is interrupt
        assert signal.getsignal(signal.SIGALRM) is alarm
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_alarm_signal_of_an_application_is_left_alone() -> None:
    def own(*_: Any) -> None:
        raise AssertionError("is never called")

    before = signal.signal(signal.SIGALRM, own)
    try:
        assert run(suite(cases(2)), agent=echo)[1].exit_code == 0
        assert signal.getsignal(signal.SIGALRM) is own
    finally:
        signal.signal(signal.SIGALRM, before)


def test_two_cases_of_one_id_or_two_suites_of_one_name_are_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidSuite, match="have the same id 'case-0'"):
        run(suite([*cases(2), case("case-0")]), agent=echo)
    with pytest.raises(InvalidSuite, match="more than one suite is called 'suite'"):
        run(suite(cases(1)), suite(cases(1, start=1)), agent=echo)


def test_a_suite_without_cases_is_refused_and_not_passed_over() -> None:
    with pytest.raises(InvalidSuite, match="'empty' has no cases"):
        run(suite(cases(1)), suite([], name="empty"), agent=echo)


def test_a_run_of_nothing_is_a_mistake_and_not_a_pass() -> None:
    from proctor.running.run import RunRequest, run_suites

    with pytest.raises(UsageError, match="no suite"):
        run(agent=echo)
    with pytest.raises(UsageError, match="no case matches"):
        run_suites(RunRequest([suite(cases(1))], agent=echo, select=lambda *_: False))


@pytest.mark.parametrize(
    "settings",
    [
        {"parallel": 0},
        {"parallel": -1},
        {"repeat": 0},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"evaluator_timeout": 0},
        {"retries": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused_and_do_not_hang(settings: dict[str, Any]) -> None:
    name = next(iter(settings))
    with pytest.raises(UsageError, match=name):
        run(suite(cases(1)), named("other", 1, **settings), agent=echo)
    with pytest.raises(UsageError, match=name):
        run(suite(cases(1)), agent=echo, overrides=Settings(**settings))


def test_a_case_that_nothing_scores_is_an_error_and_can_be_read_again(tmp_path: Path) -> None:
    unscored = suite([replace(case("c"), evaluators=(), implied=False)], evaluators=())
    found = run(unscored, agent=echo, store=tmp_path)

    assert [trial.reason for trial in found[0].trials] == ["nothing scores this case"]
    assert found[1].exit_code == 4


@pytest.mark.parametrize("odd", [Case(id="mute", turns=()), replace(case("c"), id=" ")])
def test_a_case_without_turns_or_without_an_id_is_refused(odd: Case) -> None:
    with pytest.raises(InvalidSuite, match=r"without turns|blank"):
        run(suite([odd]), agent=echo)


def test_a_skipped_case_is_not_run_and_a_suite_of_skipped_cases_does_not_pass() -> None:
    asked: list[str] = []

    def agent(question: str) -> str:
        asked.append(question)
        return question

    left_out = replace(case("out"), skip="until June")
    found = run(suite([left_out]), agent=agent)

    assert asked == []
    assert trials_of(found)[0].reason == "until June"
    assert found[1].exit_code == 4
    assert run(suite([left_out, case("in")]), agent=agent)[1].exit_code == 0


def test_fast_skips_evaluators_that_need_a_model_and_says_so() -> None:
    from proctor.cases.suite import EvaluatorSpec

    judged = case("judged", evaluators=(EvaluatorSpec("Factuality"),))
    both = case("both", evaluators=(EvaluatorSpec("Factuality"), EvaluatorSpec("ExactMatch")))
    by_a_model = replace(suite([judged, both]), judge="openai:gpt-5-mini")
    fast = run(by_a_model, agent=echo, fast=True)

    assert outcomes(fast) == {"judged": Outcome.SKIPPED, "both": Outcome.PASSED}
    assert trials_of(fast)[0].reason == "all of its evaluators need a language model (--fast)"
    assert [score.evaluator for score in trials_of(fast)[1].scores] == ["ExactMatch"]
    assert fast[1].exit_code == 0

    by_rules = replace(by_a_model, judge="rules")
    kept = run(by_rules, agent=echo, fast=True)
    assert [score.evaluator for score in trials_of(kept)[1].scores] == ["Factuality", "ExactMatch"]


@pytest.mark.process
def test_a_tick_that_is_still_on_its_way_when_the_run_ends_does_not_end_the_process() -> None:
    script = """
import asyncio, os, signal
from proctor.running.timeouts import Watchdog

async def run():
    with Watchdog():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        os.kill(os.getpid(), signal.SIGALRM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

asyncio.run(run())
print("alive")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "alive\n")


def test_several_agents_take_turns() -> None:
    order: list[str] = []
    arms = {name: lambda question, name=name: order.append(name) or question for name in ("old", "new")}
    proctor.run(suite(cases(4)), arms=arms, parallel=1)
    assert order[:4].count("old") == 2
