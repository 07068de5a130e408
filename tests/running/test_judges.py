"""Judges in a run: asked once, found again, never in anybody's way."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_server import judge_server, says
from judged_projects import judge_at, marks, write_project

from proctor.base.errors import InvalidSuite
from proctor.cases.formats.loading import load
from proctor.cases.suite import EvaluatorSpec, Settings, Suite
from proctor.gate.baseline import update_baseline
from proctor.gate.settings import GateSettings
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.verdict import RunVerdict
from proctor.running.rescore import rescore
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions


class Scripted:
    """A judge that answers at once, or when it is let, and counts."""

    def __init__(self, mark: float = 1.0, name: str = "scripted") -> None:
        self.name = name
        self.mark = mark
        self.asked: list[int] = []

    async def ask(self, question: Any, *, sample: int = 0) -> Any:
        self.asked.append(sample)
        return question.reply(mark=self.mark, reason="seen")


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_JUDGE", raising=False)


def _run(suite: Path | Suite, **options: Any) -> tuple[Run, RunVerdict]:
    store, resume = options.pop("store", None), options.pop("resume", False)
    suites = [suite] if isinstance(suite, Suite) else load([suite])
    return run_suites(RunRequest(suites, RunOptions(**options), store=store, resume=resume))


def test_an_unchanged_run_asks_the_judge_nothing_again(tmp_path: Path) -> None:
    with judge_server(marks) as server:
        suite = write_project(tmp_path, judge_at(server))
        first, _ = _run(suite, store=tmp_path / "s")
        assert len(server.requests) == 3
        second, verdict = _run(suite, store=tmp_path / "s")
        assert len(server.requests) == 3
    assert verdict.outcome is Outcome.PASSED
    assert [(j.model, j.calls, j.cached) for j in first.judges] == [("openai:scripted", 3, 0)]
    assert [(j.model, j.calls, j.cached) for j in second.judges] == [("openai:scripted", 0, 3)]


def test_rescoring_asks_the_judge_nothing_it_was_asked_before(tmp_path: Path) -> None:
    with judge_server(marks) as server:
        suite = write_project(tmp_path, judge_at(server))
        _run(suite, store=tmp_path / "s")
        again, verdict = rescore(tmp_path / "s", "last", options=RunOptions())
        assert len(server.requests) == 3
        assert (verdict.outcome, again.judges[0].cached) == (Outcome.PASSED, 3)


def test_equal_answers_of_many_cases_at_once_cost_one_call(tmp_path: Path) -> None:
    with judge_server({"mark": 1.0}) as server:
        suite = write_project(tmp_path, judge_at(server), cases=50)
        (tmp_path / "app" / "desk.py").write_text("def agent(question): return 'always the same'\n", encoding="utf-8")
        run, verdict = _run(suite, store=tmp_path / "s", overrides=Settings(parallel=50))
        assert len(server.requests) == 1
    assert verdict.outcome is Outcome.PASSED
    assert (run.judges[0].calls, run.judges[0].cached, run.judges[0].shared) == (1, 0, 49)


def test_another_judge_is_another_cell_and_is_asked(tmp_path: Path) -> None:
    suite = load([write_project(tmp_path)])[0]
    strict, kind = Scripted(0.1, "strict"), Scripted(1.0, "kind")
    one, _ = _run(suite, judge=strict)
    two, _ = _run(suite, judge=kind)
    marks_ = [{(s.fingerprint, s.value) for t in run.trials for s in t.scores} for run in (one, two)]
    assert len(marks_[0]) == len(marks_[1]) == 1
    assert {f for f, _ in marks_[0]}.isdisjoint({f for f, _ in marks_[1]})


def test_an_evaluators_own_model_beats_the_suites_judge_and_the_caller_beats_both(tmp_path: Path) -> None:
    own, other, given = Scripted(name="own"), Scripted(name="other"), Scripted(name="given")
    suite = load([write_project(tmp_path)])[0]
    suite = replace(suite, evaluators=(EvaluatorSpec("checks/marks.py:Marked", {"model": own}),), judge=other)
    run, verdict = _run(suite, default_judge=other)
    assert (verdict.outcome, run.judges[0].model, other.asked) == (Outcome.PASSED, "own", [])
    run, _ = _run(suite, judge=given)
    assert (run.judges[0].model, len(own.asked)) == ("given", 3)


def test_options_without_a_name_apply_to_every_judge(tmp_path: Path) -> None:
    judge = Scripted()
    suite = load([write_project(tmp_path, cases=1)])[0]
    suite = replace(suite, evaluators=(EvaluatorSpec("checks/marks.py:Marked", {"model": {"samples": 3}}),))
    _run(suite, judge=judge)
    assert sorted(judge.asked) == [0, 1]


def test_the_caller_beats_the_suite_which_beats_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = load([write_project(tmp_path)])[0]
    judges = {name: Scripted(name=name) for name in ("caller", "suite", "usual")}
    named = replace(suite, judge=judges["suite"])
    assert _run(named, judge=judges["caller"], default_judge=judges["usual"])[0].judges[0].model == "caller"
    assert _run(named, default_judge=judges["usual"])[0].judges[0].model == "suite"
    assert _run(suite, default_judge=judges["usual"])[0].judges[0].model == "usual"
    monkeypatch.setenv("PROCTOR_JUDGE", "nobody:at-all")
    with pytest.raises(InvalidSuite, match="nobody"):
        _run(suite)
    assert _run(named)[0].judges[0].model == "suite"


def test_a_wrong_judge_is_reported_with_all_other_problems_before_anything_runs(tmp_path: Path) -> None:
    own = {"checks/marks.py:Marked": {"model": "nobody:x", "name": "own"}}
    evaluators = ["checks/marks.py:Marked", "NoSuchEvaluator", own]
    suite = write_project(tmp_path, "openia:gpt-5-mini", evaluators=evaluators)
    with pytest.raises(InvalidSuite) as caught:
        _run(suite)
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    assert "desk.json:4: judge:" in text
    assert "evaluator 'own': model:" in text
    assert "NoSuchEvaluator" in text


def test_fast_needs_no_judge_that_is_a_model(tmp_path: Path) -> None:
    suite = write_project(tmp_path, "nobody:x", evaluators=["checks/marks.py:Marked", "checks/marks.py:good"])
    run, verdict = _run(suite, fast=True)
    assert verdict.outcome is Outcome.PASSED
    assert {score.evaluator for trial in run.trials for score in trial.scores} == {"good"}


def test_fast_leaves_out_what_the_rule_based_judge_has_no_rule_for(tmp_path: Path) -> None:
    suite = write_project(tmp_path, "rules", evaluators=["checks/marks.py:Marked", "checks/marks.py:good"])
    run, _ = _run(suite, fast=True)
    assert {score.evaluator for trial in run.trials for score in trial.scores} == {"good"}


def test_evaluators_without_a_judge_are_not_delayed_by_those_with_one(tmp_path: Path) -> None:
    let_go = threading.Event()

    class Slow(Scripted):
        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            await asyncio.get_running_loop().run_in_executor(None, let_go.wait)
            return await super().ask(question, sample=sample)

    def release(evaluable: Any) -> float:
        released.append(1)
        if len(released) == 3:
            let_go.set()
        return 1.0

    released: list[int] = []
    suite = load([write_project(tmp_path)])[0]
    module = sys.modules[__name__]
    module.release = release  # type: ignore[attr-defined]
    specs = (EvaluatorSpec("checks/marks.py:Marked"), EvaluatorSpec(f"{__name__}:release"))
    _, verdict = _run(replace(suite, evaluators=specs, judge=Slow()), overrides=Settings(parallel=3))
    assert verdict.outcome is Outcome.PASSED


def test_a_run_that_is_resumed_with_another_judge_is_scored_again_and_calls_no_agent_again(tmp_path: Path) -> None:
    suite = write_project(tmp_path, cases=3)
    (tmp_path / "app" / "desk.py").write_text(
        "from pathlib import Path\ndef agent(question):\n"
        "    with (Path(__file__).parents[1] / 'asked').open('a') as log: log.write('.')\n    return question\n",
        encoding="utf-8",
    )
    strict, kind = Scripted(0.0, "strict"), Scripted(1.0, "kind")
    store, one_at_a_time = tmp_path / "s", Settings(parallel=1)
    _, verdict = _run(suite, judge=strict, store=store, maxfail=2, overrides=one_at_a_time)
    assert verdict.outcome is Outcome.FAILED
    run, verdict = _run(suite, judge=kind, store=store, resume=True, overrides=one_at_a_time)
    assert (verdict.outcome, [judge.model for judge in run.judges]) == (Outcome.PASSED, ["kind"])
    assert (tmp_path / "asked").read_text(encoding="utf-8") == "..."


def test_waiting_for_others_is_not_counted_against_an_evaluator() -> None:
    from proctor.running.timeouts import TimedOut, Watchdog, run_with_timeout

    async def late(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    async def main() -> None:
        with Watchdog() as watchdog:
            assert await run_with_timeout(late(0.05), 0.01, watchdog, lambda: 3600.0) == "done"
            with pytest.raises(TimedOut):
                await run_with_timeout(late(3600), 0.01, watchdog, lambda: 0.0)

    asyncio.run(main())


def test_waiting_for_the_judge_to_be_free_is_not_a_timeout(tmp_path: Path) -> None:
    with judge_server(marks) as server:
        suite = write_project(tmp_path, judge_at(server, concurrency=1, requests_per_minute=600), cases=6)
        _, verdict = _run(suite, overrides=Settings(parallel=6, evaluator_timeout=30))
    assert verdict.outcome is Outcome.PASSED


def test_a_judge_that_never_answers_is_an_error_of_the_evaluator(tmp_path: Path) -> None:
    class Silent(Scripted):
        async def ask(self, question: Any, *, sample: int = 0) -> Any:
            await asyncio.get_running_loop().create_future()

    suite = replace(load([write_project(tmp_path, cases=1)])[0], judge=Silent())
    run, verdict = _run(suite, overrides=Settings(evaluator_timeout=0.05))
    (trial,) = run.trials
    assert verdict.outcome is Outcome.ERROR
    assert trial.scores[0].reasoning == "gave no score within 0.05 s"


def test_verdicts_that_were_paid_for_survive_the_end_of_the_run(tmp_path: Path) -> None:
    class Interrupted(Exception):
        pass

    class Terminal:
        def started(self, run: Run, planned: int, kept: int) -> None: ...

        def trial_done(self, trial: Any) -> None:
            raise Interrupted

        def finished(self, run: Run, verdict: RunVerdict) -> None: ...

    with judge_server(marks) as server:
        suite = write_project(tmp_path, judge_at(server), cases=3)
        request = RunRequest(load([suite]), RunOptions(overrides=Settings(parallel=1)), store=tmp_path / "s")
        with pytest.raises(Interrupted):
            run_suites(request, Terminal())
        paid = len(server.requests)
        assert paid < 3
        run, verdict = run_suites(replace(request, resume=True))
        assert len(server.requests) == 3
    assert verdict.outcome is Outcome.PASSED
    assert (run.judges[0].scores, run.judges[0].calls + run.judges[0].cached) == (3, 3)


def test_when_the_budget_is_spent_no_further_trial_starts_and_resume_continues(tmp_path: Path) -> None:
    suite = write_project(tmp_path, cases=5)
    (tmp_path / "app" / "desk.py").write_text(
        "from proctor import Reply, Usage\ndef agent(question): return Reply(question, usage=Usage(10, 10, 0.4))\n",
        encoding="utf-8",
    )
    options = {"judge": Scripted(), "overrides": Settings(parallel=1), "store": tmp_path / "s", "budget_usd": 1.0}
    run, verdict = _run(suite, **options)
    assert verdict.reason == (
        "stopped: the budget of $1.00 is spent ($1.20); 2 of 5 trials did not run; continue with --resume"
    )
    assert (verdict.exit_code, len(run.summaries)) == (4, 3)
    run, verdict = _run(suite, **options, resume=True)
    assert (verdict.outcome, len(run.summaries)) == (Outcome.PASSED, 5)


def test_trials_under_way_finish_when_the_budget_is_spent(tmp_path: Path) -> None:
    with judge_server(marks) as server:
        suite = write_project(tmp_path, judge_at(server), cases=4)
        (tmp_path / "app" / "desk.py").write_text(
            "from proctor import Reply, Usage\ndef agent(question): return Reply(question, usage=Usage(10, 10, 5.0))\n",
            encoding="utf-8",
        )
        run, verdict = _run(suite, overrides=Settings(parallel=2), budget_usd=1.0)
    assert {summary.outcome for summary in run.summaries} == {Outcome.PASSED}
    assert "of 4 trials did not run" in verdict.reason


def test_a_cost_that_is_unknown_is_reported(tmp_path: Path) -> None:
    run, _ = _run(write_project(tmp_path, cases=2), judge=Scripted(), budget_usd=1.0)
    assert run.unpriced_note == "the cost of 2 answers is unknown and not counted"


def test_a_stored_run_still_says_who_judged(tmp_path: Path) -> None:
    with judge_server(lambda asked: says('{"mark": 1.0}', usage=(100, 20))) as server:
        run, _ = _run(write_project(tmp_path, judge_at(server)), store=tmp_path / "s")
    kept = Store(tmp_path / "s").find_run("last")
    assert list(kept.judges) == list(run.judges)
    assert (kept.judges[0].input_tokens, kept.judges[0].output_tokens) == (300, 60)


CLIENT = """
from types import SimpleNamespace
from pathlib import Path
from proctor import Factuality

LOG = Path(__file__).parent / "asked"

class Client:
    def __init__(self):
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    def create(self, *, model, messages):
        with LOG.open("a") as log:
            log.write(model + "\\n")
        message = SimpleNamespace(content='{"choice": "C", "reason": "the same"}')
        return SimpleNamespace(choices=[SimpleNamespace(message=message)], usage=None)

by_client = Factuality(client=Client(), model="mine")
by_nobody = Factuality(client=object())
"""


def _client_project(folder: Path, *evaluators: str) -> Path:
    (folder / "checks.py").write_text(CLIENT, encoding="utf-8")
    (folder / "app.py").write_text("def agent(question): return 'Paris'\n", encoding="utf-8")
    document = {
        "agent": "app.py:agent",
        "evaluators": list(evaluators),
        "cases": [{"id": "capital", "input": "Which city?", "expected": "Paris"}],
    }
    path = folder / "desk.json"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def _asked(folder: Path) -> list[str]:
    log = folder / "asked"
    return log.read_text(encoding="utf-8").split() if log.exists() else []


def test_a_judge_behind_a_client_is_asked_once_like_any_other(tmp_path: Path) -> None:
    suite = _client_project(tmp_path, "checks.py:by_client")
    for _ in range(3):
        run, verdict = _run(suite, store=tmp_path / "s")
        assert verdict.outcome is Outcome.PASSED
    assert _asked(tmp_path) == ["mine"]
    assert [(judge.model, judge.calls, judge.cached) for judge in run.judges] == [("openai:mine", 0, 1)]
    rescore(tmp_path / "s", "last", options=RunOptions())
    assert _asked(tmp_path) == ["mine"]


def test_a_judge_behind_a_client_is_paid_from_the_budget(tmp_path: Path) -> None:
    run, _ = _run(_client_project(tmp_path, "checks.py:by_client"), budget_usd=1.0)
    assert "unknown and not counted" in run.unpriced_note


def test_the_judge_of_the_caller_replaces_a_client(tmp_path: Path) -> None:
    run, _ = _run(_client_project(tmp_path, "checks.py:by_client"), judge="rules")
    assert [judge.model for judge in run.judges] == ["rules"]
    assert _asked(tmp_path) == []


def test_fast_leaves_a_client_out(tmp_path: Path) -> None:
    _run(_client_project(tmp_path, "checks.py:by_client", "ExactMatch"), fast=True)
    assert _asked(tmp_path) == []


def test_a_client_that_cannot_be_asked_is_a_problem_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite) as caught:
        _run(_client_project(tmp_path, "checks.py:by_nobody", "NoSuchEvaluator"))
    assert len(caught.value.problems) == 2
    assert "evaluator 'by_nobody': client must be an openai.OpenAI" in str(caught.value)


@pytest.mark.parametrize("samples", [0, "many"])
def test_samples_that_are_no_count_are_a_problem_before_the_run(tmp_path: Path, samples: Any) -> None:
    evaluators = [{"Faithfulness": {"samples": samples}}, "NoSuchEvaluator"]
    with pytest.raises(InvalidSuite) as caught:
        _run(write_project(tmp_path, evaluators=evaluators))
    assert len(caught.value.problems) == 2
    assert f"evaluator 'Faithfulness': samples must be a whole number of at least 1, not {samples!r}" in str(
        caught.value
    )


def test_every_trial_of_a_gated_run_is_judged_afresh_and_of_a_baseline_counts_each_verdict_once(tmp_path: Path) -> None:
    """The agent gives the same answers every time, and the judge rejects every third answer it sees."""
    with judge_server(lambda asked: marks(asked, default=float(len(server.requests) % 3 != 0))) as server:
        suite, store = write_project(tmp_path, judge_at(server), cases=6), tmp_path / "store"
        repeated, _ = _run(suite, store=store, overrides=Settings(repeat=4))
        assert len(server.requests) == 6, "repeats of one answer share a verdict"
        [update] = update_baseline(repeated)
        assert (update.cases, update.trials) == (6, 6), "and each verdict counts once"

        gate = run_suites(RunRequest(load([suite]), RunOptions(), store=store, gate=GateSettings()))[0]
        assert len(server.requests) == 6 + len(gate.summaries), "each trial has its own verdict"

        rescore(store, gate.id, options=RunOptions())
        assert len(server.requests) <= 12 + len(gate.summaries)
