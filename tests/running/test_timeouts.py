from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from engine_helpers import case, cases, finish, only, outcomes, run, spawn, suite, trials_of

from proctor.results.score import Outcome

SCRIPT = """
import json, sys
import engine_helpers as under_test
from proctor.cases.suite import Settings

found = [under_test.case(name) for name in ("bad-1", "good-1", "good-2", "bad-2", "good-3")]
limits = {"timeout": float(sys.argv[2]), "parallel": int(sys.argv[3])}
run, verdict = under_test.run(under_test.suite(found, **limits), agent=getattr(under_test, sys.argv[1]))
print(json.dumps([[t.case.id, t.outcome, t.reason, t.attempts] for t in run.trials]))
sys.exit(verdict.exit_code)
"""


@pytest.mark.process
@pytest.mark.parametrize("parallel", [1, 5])
@pytest.mark.parametrize(
    "agent",
    ["awaits_forever", "blocks_its_thread", "blocks_a_thread_of_its_own", "blocks_the_loop", "refuses_to_be_cancelled"],
)
def test_an_agent_that_never_answers_fails_alone_and_the_process_ends(
    agent: str, parallel: int, tmp_path: Path
) -> None:
    code, out, err = finish(spawn(SCRIPT, agent, "0.5", str(parallel), cwd=tmp_path), seconds=40)

    assert code == 1, err
    assert err == ""
    late = "the agent gave no answer within 0.5 s"
    assert json.loads(out) == [
        ["bad-1", "failed", late, 1],
        ["good-1", "passed", "", 1],
        ["good-2", "passed", "", 1],
        ["bad-2", "failed", late, 1],
        ["good-3", "passed", "", 1],
    ]


def test_a_case_may_have_its_own_timeout() -> None:
    async def agent(question: str) -> str:
        await asyncio.sleep(0.3 if question == "patient" else 3600)
        return question

    found = run(suite([case("patient"), case("hasty", timeout=0.05)], timeout=30), agent=agent)

    assert outcomes(found) == {"patient": Outcome.PASSED, "hasty": Outcome.FAILED}
    assert trials_of(found)[1].reason == "the agent gave no answer within 0.05 s"


def test_what_was_answered_before_time_was_up_is_kept() -> None:
    from proctor.cases.suite import Case, Expected, Turn

    async def agent(question: str) -> str:
        if question == "two":
            await asyncio.Event().wait()
        return question

    talk = Case(id="c", turns=tuple(Turn(text, Expected(output=text)) for text in ("one", "two")))
    trial = only(run(suite([talk], timeout=0.5), agent=agent))

    assert trial.outcome is Outcome.FAILED
    assert [reply.text for reply in trial.replies if reply.error is None] == ["one"]
    assert trial.scores == ()


def test_a_cancelled_agent_may_clean_up() -> None:
    cleaned = []

    async def agent(question: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(question)
        return question

    run(suite([case("c")], timeout=0.05), agent=agent)

    assert cleaned == ["c"]


@pytest.mark.process
def test_an_agent_that_breaks_down_long_after_its_time_says_nothing_on_the_terminal(tmp_path: Path) -> None:
    script = """
import asyncio
import engine_helpers as under_test

released = []

async def agent(question):
    if question == "other":
        for _ in range(100):
            await asyncio.sleep(0.02)
            if released:
                break
        return question
    while True:
        try:
            await asyncio.sleep(1.3)
            released.append(True)
            raise RuntimeError("much too late")
        except asyncio.CancelledError:
            continue

under_test.run(under_test.suite([under_test.case("late", timeout=0.1), under_test.case("other")]), agent=agent)
assert released
"""
    code, _, err = finish(spawn(script, cwd=tmp_path))

    assert (code, err) == (0, "")


def test_an_agent_that_raises_its_own_timeout_did_not_run_out_of_our_time() -> None:
    def agent(question: str) -> str:
        raise TimeoutError("the weather service is slow")

    trial = only(run(suite([case("c")], retries=0), agent=agent))

    assert trial.outcome is Outcome.ERROR
    assert trial.reason.startswith("the agent raised TimeoutError: the weather service is slow (test_timeouts.py:")


def test_an_agent_that_cancels_itself_has_failed() -> None:
    async def agent(question: str) -> str:
        raise asyncio.CancelledError

    trial = only(run(suite([case("c")]), agent=agent))

    assert trial.outcome is Outcome.FAILED
    assert "cancelled its own task" in trial.reason


def test_sync_agents_that_hang_do_not_use_up_the_threads_of_others() -> None:
    def agent(question: str) -> str:
        if int(question.removeprefix("case-")) < 20:
            threading.Event().wait()
        return question

    found = run(suite(cases(40), timeout=0.5, parallel=20), agent=agent)

    assert list(outcomes(found).values()) == [Outcome.FAILED] * 20 + [Outcome.PASSED] * 20


def test_an_agent_that_cannot_start_leaves_only_its_own_suite_unmeasured() -> None:
    class Broken:
        name = "broken"

        async def start(self) -> None:
            raise RuntimeError("no licence")

        def session(self, of: object) -> object:
            raise AssertionError("is never asked")

    from dataclasses import replace

    first = replace(suite(cases(2), name="first"), agent=Broken())
    second = replace(suite(cases(2, start=2), name="second"), agent=lambda question: question)
    found = run(first, second)

    assert list(outcomes(found).values()) == [Outcome.ERROR] * 2 + [Outcome.PASSED] * 2
    assert "could not start: RuntimeError: no licence" in trials_of(found)[0].reason


def test_an_agent_that_never_starts_is_stopped_after_its_timeout() -> None:
    class Sleepy:
        name = "sleepy"

        async def start(self) -> None:
            await asyncio.Event().wait()

        def session(self, of: object) -> object:
            raise AssertionError("is never asked")

    assert only(run(suite([case("c")], timeout=0.1), agent=Sleepy())).outcome is Outcome.ERROR


def test_an_agent_of_several_suites_starts_and_stops_once() -> None:
    class Counted:
        name = "counted"
        calls: tuple[str, ...] = ()

        async def start(self) -> None:
            self.calls += ("start",)

        async def stop(self) -> None:
            self.calls += ("stop",)

        def session(self, of: object) -> object:
            raise RuntimeError("gone")

    agent = Counted()
    run(suite(cases(2), name="first"), suite(cases(2), name="second"), agent=agent)

    assert agent.calls == ("start", "stop")


def test_a_run_that_is_cancelled_while_an_agent_starts_is_cancelled() -> None:
    import proctor

    entered = asyncio.Event()
    stopped = []

    class Sleepy:
        name = "sleepy"

        async def start(self) -> None:
            entered.set()
            await asyncio.Event().wait()

        async def stop(self) -> None:
            stopped.append(True)

        def session(self, of: object) -> object:
            raise AssertionError("is never asked")

    async def main() -> None:
        task = asyncio.create_task(proctor.run_async(suite([case("c")]), Sleepy()))
        await entered.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def test_a_run_that_is_cancelled_stops_its_agent() -> None:
    import proctor

    calls = []
    asked = asyncio.Event()

    class Session:
        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            calls.append("left")

        async def send(self, turn: object) -> object:
            asked.set()
            return await asyncio.Event().wait()

    class Slow:
        name = "slow"

        async def stop(self) -> None:
            calls.append("stopped")

        def session(self, of: object) -> Session:
            return Session()

    async def main() -> None:
        task = asyncio.create_task(proctor.run_async(suite([case("c")]), Slow()))
        await asked.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert calls == ["left", "stopped"]


def test_an_agent_that_blocks_the_loop_again_and_again_is_not_given_more_time_for_it() -> None:
    import time

    async def agent(question: str) -> str:
        while question == "bad":
            time.sleep(0.12)
            await asyncio.sleep(0)
        return question

    found = run(suite([case("bad"), case("good")], timeout=0.5), agent=agent)

    assert outcomes(found) == {"bad": Outcome.FAILED, "good": Outcome.PASSED}


def test_blocking_agents_also_end_where_there_are_no_signals() -> None:
    import time

    async def agent(question: str) -> str:
        while question == "bad":
            time.sleep(0.1)
            await asyncio.sleep(0)
        return question

    found: list[dict[str, Outcome]] = []
    thread = threading.Thread(
        target=lambda: found.append(outcomes(run(suite([case("bad"), case("good")], timeout=0.5), agent=agent)))
    )
    thread.start()
    thread.join(30)

    assert found == [{"bad": Outcome.FAILED, "good": Outcome.PASSED}]
