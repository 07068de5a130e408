"""What was seen inside an application is kept with its trial, and is there again when the trial is scored anew."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, cases, echo, only, outcomes, run, suite, trials_of

import proctor
from proctor.cases.suite import Criteria, EvaluatorSpec
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.running.rescore import rescore
from proctor.running.settings import RunOptions
from proctor.tracing.spans import ObserveSpan

TRACED = (EvaluatorSpec(f"{__file__}:sees_its_own_trace"),)


@proctor.tool
def look_up(key: str) -> str:
    return key.upper()


@proctor.observe("think")
async def think(question: str) -> str:
    await asyncio.sleep(0)
    return look_up(question)


async def thinker(question: str) -> str:
    await think(question)
    return question


def sees_its_own_trace(evaluable: proctor.Evaluable, *, trace: Any = None) -> bool:
    [root] = trace
    [call] = root.children
    return root.span.input == {"question": evaluable.input} and call.span.output == evaluable.input.upper()


def test_a_rescored_trial_is_scored_on_the_trace_it_left(tmp_path: Path) -> None:
    run(suite(cases(3), evaluators=TRACED), agent=thinker, store=tmp_path)
    found = rescore(tmp_path, "last", options=RunOptions())
    assert set(outcomes(found).values()) == {Outcome.PASSED}, [trial.scores for trial in trials_of(found)]
    assert [[node.name for node in trial.trace] for trial in trials_of(found)] == [["think"]] * 3


def test_a_rescored_run_shares_the_traces_of_the_run_it_was_made_from(tmp_path: Path) -> None:
    run(suite(cases(3), evaluators=TRACED), agent=thinker, store=tmp_path)
    rescore(tmp_path, "last", options=RunOptions())
    assert len(Store(tmp_path).traces.rows()) == 3


def test_a_reused_trial_is_scored_on_the_trace_it_left(tmp_path: Path) -> None:
    run(suite(cases(2), evaluators=TRACED), agent=thinker, store=tmp_path)
    found = run(suite(cases(2), evaluators=TRACED), agent=thinker, store=tmp_path, reuse=True)
    assert [(trial.reused, trial.outcome) for trial in trials_of(found)] == [(True, Outcome.PASSED)] * 2


def test_a_resumed_run_that_scores_again_has_the_traces_of_its_answers(tmp_path: Path) -> None:
    class Once:
        """Counts on the class: what an agent itself holds is part of it, and a changed one is asked again."""

        heard = 0

        async def __call__(self, question: str) -> str:
            Once.heard += 1
            return await thinker(question)

    agent = Once()
    strict = suite(cases(4), evaluators=TRACED, parallel=1, criteria=Criteria(threshold=1.5))
    run(strict, agent=agent, store=tmp_path, maxfail=2)
    found = run(suite(cases(4), evaluators=TRACED, parallel=1), agent=agent, store=tmp_path, resume=True)
    assert set(outcomes(found).values()) == {Outcome.PASSED}, [trial.scores for trial in trials_of(found)]
    assert (agent.heard, [trial.reused for trial in trials_of(found)]) == (4, [True, True, False, False])


def test_a_stored_run_brings_each_trial_back_with_its_own_trace(tmp_path: Path) -> None:
    first, _ = run(suite(cases(64), parallel=64), agent=thinker, store=tmp_path)
    store = Store(tmp_path, create=False)
    kept = list(store.find_run(first.id).trials)
    assert len(kept) == 64
    for trial in kept:
        [root] = trial.trace
        assert root.span.input == {"question": trial.case.id}
        assert [child.span.kind for child in root.children if isinstance(child.span, ObserveSpan)] == ["tool"]


def test_a_trial_without_spans_has_no_trace_and_leaves_none(tmp_path: Path) -> None:
    found = run(suite(cases(2)), agent=echo, store=tmp_path)
    assert [(trial.trace, list(trial.spans)) for trial in trials_of(found)] == [([], []), ([], [])]
    assert Store(tmp_path).traces.rows() == []


def test_an_application_that_raises_or_never_answers_leaves_its_trace(tmp_path: Path) -> None:
    async def agent(question: str) -> str:
        await think(question)
        if question == "raises":
            raise ValueError("no")
        await asyncio.sleep(3600)
        return ""

    found = run(suite([case("raises"), case("hangs")], timeout=0.2), agent=agent, store=tmp_path)
    assert [[node.name for node in trial.trace] for trial in trials_of(found)] == [["think"], ["think"]]


def test_without_a_store_a_trial_has_its_trace_all_the_same() -> None:
    trial = only(run(suite(cases(1)), agent=thinker))
    assert [node.name for node in trial.trace] == ["think"]


def test_a_tool_that_is_a_span_as_well_is_counted_once(tmp_path: Path) -> None:
    trial = only(run(suite(cases(1)), agent=thinker, store=tmp_path))
    assert [call.name for call in trial.replies[0].tool_calls] == ["look_up"]


def test_a_trace_of_five_megabytes_is_cut_and_the_run_continues(tmp_path: Path) -> None:
    def agent(question: str) -> str:
        with proctor.start_observation(input="x" * 5_000_000, name="huge") as step:
            step.set_output({"short": "kept", "rows": list(range(50_000))})
        return question

    [trial] = trials_of(run(suite(cases(1)), agent=agent, store=tmp_path))
    assert trial.outcome is Outcome.PASSED
    [span] = trial.spans
    assert isinstance(span, ObserveSpan)
    assert len(span.input) < 1_000_000
    assert "5,000,000 characters" in span.input
    assert (tmp_path / "results.db").stat().st_size < 10_000_000


def test_a_trial_with_very_many_spans_keeps_the_first_of_them_and_says_so(tmp_path: Path) -> None:
    @proctor.observe("step")
    def step(number: int) -> str:
        return "y" * 200

    def agent(question: str) -> str:
        for number in range(8_000):
            step(number)
        return question

    [trial] = trials_of(run(suite(cases(1)), agent=agent, store=tmp_path))
    assert 100 < len(trial.spans) < 8_000
    assert [span.input["number"] for span in list(trial.spans)[:3] if isinstance(span, ObserveSpan)] == [0, 1, 2]
    [row] = Store(tmp_path).traces.rows()
    assert "of 8,000 spans" in row.info["cut"]


def test_secrets_are_not_stored(tmp_path: Path) -> None:
    secrets = {
        "http.request.header.authorization": "Bearer abcdefghijklmnop",
        "headers": {"X-Api-Key": ["k1"], "Cookie": "session=1", "accept": "*/*"},
        "OPENAI_API_KEY": "sk-proj-aaaabbbbccccdddd1111",
        "note": "call it with Authorization: Bearer abc.def-ghijklmno, please",
        "apiKey": "k2",
        "user_password": "hunter2",
    }

    def agent(question: str) -> str:
        with proctor.start_observation(input=secrets, name="call") as step:
            step.set_metadata("client_secret", "k3")
            step.set_metadata("max_tokens", 5)
        return question

    [trial] = trials_of(run(suite(cases(1)), agent=agent, store=tmp_path))
    [span] = trial.spans
    assert isinstance(span, ObserveSpan)
    kept = json.dumps([span.input, dict(span.metadata)])
    for secret in ("abcdefghijklmnop", "k1", "session=1", "sk-proj", "abc.def", "k2", "hunter2", "k3"):
        assert secret not in kept
    assert span.input["headers"]["accept"] == "*/*"
    assert span.metadata["max_tokens"] == 5
    assert "please" in span.input["note"]


@pytest.mark.process
def test_traces_of_a_large_run_do_not_stay_in_memory(tmp_path: Path) -> None:
    """Measured in a process of its own: threads that other tests left behind would be counted too."""
    code = """
import gc, sys, tracemalloc
import proctor

async def talkative(question):
    with proctor.start_observation(input="x" * 20_000, name="step"):
        return question

def run(number):
    cases = [{"id": str(case), "input": str(case), "expected": str(case)} for case in range(number)]
    return proctor.run(cases, talkative, store=sys.argv[1])

run(10)
gc.collect()
tracemalloc.start()
result = run(200)
gc.collect()
memory, _ = tracemalloc.get_traced_memory()
tracemalloc.stop()
print(memory // 200, sum(len(trial.spans) for trial in result.trials))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    memory_per_trial, spans = map(int, done.stdout.splitlines()[-1].split())
    assert memory_per_trial < 4096
    assert spans == 200


def test_a_trace_that_was_lost_from_the_store_is_missing(tmp_path: Path) -> None:
    import sqlite3

    found = run(suite(cases(1)), agent=thinker, store=tmp_path)
    with closing(sqlite3.connect(tmp_path / "results.db")) as database, database:
        database.execute("DELETE FROM traces")
    database.close()
    assert only(found).trace == []


@pytest.mark.parametrize("text", ["\ud800", "\x00", "é😀\u2028", ""])
def test_any_text_in_a_trace_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    def agent(question: str) -> str:
        with proctor.start_observation(input=text, name="step") as step:
            step.set_output({text: [text, 1.5, None, True]})
        return question

    [span] = only(run(suite(cases(1)), agent=agent, store=tmp_path)).spans
    assert isinstance(span, ObserveSpan)
    assert (span.input, span.output) == (text, {text: [text, 1.5, None, True]})
