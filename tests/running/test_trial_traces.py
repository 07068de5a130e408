"""What happens inside an application reaches the evaluators of its own trial, and no other's."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import proctor
from proctor import Case, Evaluable, EvaluatorSpec, Expected, Suite, Turn


@proctor.observe(name="think")
async def think(question: str) -> str:
    await asyncio.sleep(0)
    return f"about {question}"


async def agent(question: str) -> str:
    await think(question)
    return question


def sees_its_own_trace(evaluable: Evaluable, *, trace: Any = None) -> bool:
    [root] = trace
    return root.name == "think" and root.span.output == f"about {evaluable.input}"


def suite(count: int, evaluator: str = "sees_its_own_trace") -> Suite:
    cases = tuple(Case(id=f"c{n}", turns=(Turn(f"q{n}", Expected(output=f"q{n}")),)) for n in range(count))
    return Suite("traces", cases, evaluators=(EvaluatorSpec(f"{__file__}:{evaluator}"),))


def test_sixty_four_trials_at_once_are_each_scored_on_their_own_trace() -> None:
    run = proctor.run(suite(64), agent, parallel=64)
    assert [trial.outcome for trial in run.trials] == ["passed"] * 64


def observed_by_evaluator(evaluable: Evaluable, *, trace: Any = None) -> bool:
    asyncio.run(think("the judge's own business"))
    return len(trace) == 1


def test_what_an_evaluator_does_itself_is_not_part_of_the_trace() -> None:
    [trial] = proctor.run(suite(1, "observed_by_evaluator"), agent).trials
    assert trial.outcome == "passed", trial.scores


@proctor.tool
def look_up(key: str) -> str:
    return key.upper()


def test_tools_called_in_thread_pools_of_the_application_are_recorded_in_its_trial() -> None:
    shared = ThreadPoolExecutor(4)

    def threaded(question: str) -> str:
        return str(shared.submit(look_up, question).result() and question)

    cases = tuple(Case(id=f"c{n}", turns=(Turn(f"q{n}", Expected(output=f"q{n}")),)) for n in range(16))
    run = proctor.run(Suite("threads", cases), threaded, parallel=16)
    for trial in run.trials:
        assert [call.arguments for call in trial.replies[0].tool_calls] == [{"key": trial.case.turns[0].input}]


def test_a_thread_that_outlives_its_trial_belongs_to_no_trial() -> None:
    go, heard = threading.Event(), []

    def linger() -> None:
        go.wait(10)
        heard.append(proctor.wrap("its own", purpose="input", name="profile"))

    threads: list[threading.Thread] = []

    def agent(question: str) -> str:
        threads.append(threading.Thread(target=linger))
        threads[-1].start()
        return question

    inputs = (proctor.NamedData("profile", "of the case"),)
    proctor.run(Suite("s", (Case(id="one", turns=(Turn("q", Expected(output="q")),), inputs=inputs),)), agent)
    go.set()
    threads[0].join(10)
    assert heard == ["its own"]
