from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from engine_helpers import finish, spawn
from run_projects import AGENT, RUN, project, read_prompts, run_to_end, start_blocked_run, statuses, stored_cases

from proctor.running.resume import new_run_id

pytestmark = pytest.mark.process


def test_a_run_that_is_killed_is_continued_and_asks_nothing_twice_that_was_kept(tmp_path: Path) -> None:
    ids = project(tmp_path, 300)
    process = spawn(RUN, cwd=tmp_path, DIE_AT="150")
    code, _, _ = finish(process)
    assert code == -signal.SIGKILL
    first = read_prompts(tmp_path)
    ((run_id, kept),) = stored_cases(tmp_path).items()
    assert 50 < len(kept) < len(first)

    result = run_to_end(tmp_path, "resume")

    again = read_prompts(tmp_path)
    assert result["id"] == run_id
    assert result["exit"] == 0
    assert not set(again) & set(kept)
    assert Counter(kept + again) == Counter(ids)
    assert [name for name, *_ in result["trials"]] == ids
    assert stored_cases(tmp_path) == {run_id: ids}
    assert statuses(tmp_path) == ["finished"]


def test_a_run_that_is_killed_twice_is_continued_twice(tmp_path: Path) -> None:
    ids = project(tmp_path, 60)
    for _ in range(2):
        finish(spawn(RUN, "resume", cwd=tmp_path, DIE_AT="20"))
    read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()

    result = run_to_end(tmp_path, "resume")

    assert Counter(kept + read_prompts(tmp_path)) == Counter(ids)
    assert [name for name, *_ in result["trials"]] == ids


def test_what_changed_since_is_run_again_and_nothing_else(tmp_path: Path) -> None:
    ids = project(tmp_path, 40)
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="30"))
    read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()
    changed = kept[3:6]
    project(tmp_path, 40, **dict.fromkeys(changed, "now with a description"))

    result = run_to_end(tmp_path, "resume")

    assert Counter(read_prompts(tmp_path)) == Counter([name for name in ids if name not in kept] + changed)
    assert [name for name, *_ in result["trials"]] == ids


def test_a_changed_agent_runs_everything_again(tmp_path: Path) -> None:
    ids = project(tmp_path, 40)
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="30"))
    read_prompts(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT + "\n# better now\n")

    result = run_to_end(tmp_path, "resume")

    assert Counter(read_prompts(tmp_path)) == Counter(ids)
    assert [name for name, *_ in result["trials"]] == ids


def test_errors_are_run_again(tmp_path: Path) -> None:
    ids = project(tmp_path, 40)
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="30", OVERLOADED="case-1 case-2"))
    read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()
    assert {"case-1", "case-2"} <= set(kept)

    result = run_to_end(tmp_path, "resume")

    assert Counter(read_prompts(tmp_path)) == Counter([name for name in ids if name not in kept] + ["case-1", "case-2"])
    assert result["exit"] == 0


def test_cases_that_were_added_or_removed_since_are_taken_into_account(tmp_path: Path) -> None:
    project(tmp_path, 40)
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="30"))
    read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()
    fewer = project(tmp_path, 10)

    result = run_to_end(tmp_path, "resume")

    assert set(read_prompts(tmp_path)) == set(fewer) - set(kept)
    assert [name for name, *_ in result["trials"]] == fewer
    assert list(stored_cases(tmp_path).values()) == [fewer]


def test_a_finished_run_is_not_continued_but_started_again(tmp_path: Path) -> None:
    ids = project(tmp_path, 5)
    first = run_to_end(tmp_path, "resume")
    read_prompts(tmp_path)
    second = run_to_end(tmp_path, "resume")

    assert first["id"] != second["id"]
    assert Counter(read_prompts(tmp_path)) == Counter(ids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_run_cleanly_with_what_is_done(number: signal.Signals, tmp_path: Path) -> None:
    ids = project(tmp_path, 40)
    process = start_blocked_run(tmp_path, 20)
    process.send_signal(number)
    code, out, err = finish(process)
    assert (code, err) == (0, "")

    result = json.loads(out.splitlines()[-1])
    first = read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()
    assert result["exit"] == 130
    assert result["interrupted"]
    assert "--resume" in result["note"]
    assert [name for name, *_ in result["trials"]] == kept
    assert set(kept) < set(first), "what was under way is not recorded"
    assert statuses(tmp_path) == ["interrupted"]
    assert not list((tmp_path / "store").glob("*.running"))

    run_to_end(tmp_path, "resume")
    assert Counter(kept + read_prompts(tmp_path)) == Counter(ids)
    assert statuses(tmp_path) == ["finished"]


def test_ctrl_c_works_while_an_agent_starts(tmp_path: Path) -> None:
    script = """
import asyncio, sys
import engine_helpers as under_test

class Sleepy:
    name = "sleepy"

    async def start(self):
        print("blocked", flush=True)
        await asyncio.Event().wait()

    def session(self, of):
        raise AssertionError("is never asked")

found = under_test.run(under_test.suite(under_test.cases(3)), agent=Sleepy())
sys.exit(found[1].exit_code)
"""
    process = spawn(script, cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert finish(process, seconds=20)[::2] == (130, "")


def test_ctrl_c_in_an_event_loop_of_the_application_is_the_applications(tmp_path: Path) -> None:
    script = """
import asyncio, os
import engine_helpers as under_test
import proctor

async def agent(question):
    if question == "case-5":
        os.write(1, b"blocked\\n")
        await asyncio.Event().wait()
    return question

suite = under_test.suite(under_test.cases(10), parallel=1)
try:
    asyncio.run(proctor.run_async(suite, agent, store="store"))
except KeyboardInterrupt:
    print("interrupted")
"""
    process = spawn(script, cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert finish(process, seconds=20) == (0, "interrupted\n", "")
    assert list(stored_cases(tmp_path).values()) == [[f"case-{number}" for number in range(5)]]
    assert statuses(tmp_path) != ["finished"]


def test_a_second_ctrl_c_ends_the_process_at_once(tmp_path: Path) -> None:
    script = """
import asyncio, os
import engine_helpers as under_test

async def agent(question):
    os.write(1, b"blocked\\n")
    try:
        await asyncio.Event().wait()
    finally:
        os.write(1, b"stopping\\n")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

under_test.run(under_test.suite(under_test.cases(1)), agent=agent)
"""
    process = spawn(script, cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)

    assert finish(process, seconds=20)[0] == -signal.SIGINT


def test_two_runs_at_once_in_one_folder_both_come_to_their_end(tmp_path: Path) -> None:
    ids = project(tmp_path, 100)
    processes = [spawn(RUN, cwd=tmp_path) for _ in range(2)]
    results = [json.loads(finish(process)[1]) for process in processes]

    assert [result["exit"] for result in results] == [0, 0]
    assert results[0]["id"] != results[1]["id"]
    assert all([name for name, *_ in result["trials"]] == ids for result in results)
    assert list(stored_cases(tmp_path).values()) == [ids, ids]
    assert Counter(read_prompts(tmp_path)) == Counter(ids * 2)


def test_a_run_that_is_still_alive_is_not_taken_over(tmp_path: Path) -> None:
    project(tmp_path, 20)
    alive = start_blocked_run(tmp_path, 10)
    ((alive_id, _),) = stored_cases(tmp_path).items()

    other = run_to_end(tmp_path, "resume")

    assert other["id"] != alive_id
    assert other["exit"] == 0
    alive.send_signal(signal.SIGINT)
    finish(alive)
    assert sorted(statuses(tmp_path)) == ["finished", "interrupted"]


def test_a_run_is_continued_by_one_process_only(tmp_path: Path) -> None:
    ids = project(tmp_path, 60)
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="20", OVERLOADED=" ".join(ids)))
    first = start_blocked_run(tmp_path, 10, "resume")
    ((run_id, kept),) = stored_cases(tmp_path).items()

    second = run_to_end(tmp_path, "resume")

    assert second["id"] != run_id
    assert set(kept) <= set(stored_cases(tmp_path)[run_id]), "nothing of the other's run was thrown away"
    first.kill()
    finish(first)


def test_a_run_with_an_agent_that_is_an_object_can_be_continued_in_another_process(tmp_path: Path) -> None:
    script = """
import json, os, signal, sys
from pathlib import Path
import engine_helpers as under_test

count = 0

async def agent(question):
    global count
    count += 1
    if len(sys.argv) == 1 and count == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return question

found = under_test.run(
    under_test.suite(under_test.cases(20), parallel=1), agent=agent, store=Path("store"), resume=True
)
print(json.dumps([found[0].id, count]))
"""
    (tmp_path / "script.py").write_text(script)
    run_it = "import runpy; runpy.run_path('script.py', run_name='__main__')"
    finish(spawn(run_it, cwd=tmp_path))
    ((run_id, kept),) = stored_cases(tmp_path).items()
    code, out, err = finish(spawn(run_it, "again", cwd=tmp_path))

    assert code == 0, err
    assert json.loads(out) == [run_id, 20 - len(kept)]


def test_trials_of_a_continued_run_keep_their_repeats_apart(tmp_path: Path) -> None:
    ids = project(tmp_path, 5)
    data = json.loads((tmp_path / "suite.json").read_text())
    (tmp_path / "suite.json").write_text(json.dumps(data | {"settings": {"repeat": 4}}))
    finish(spawn(RUN, cwd=tmp_path, DIE_AT="12"))
    read_prompts(tmp_path)
    ((_, kept),) = stored_cases(tmp_path).items()

    result = run_to_end(tmp_path, "resume")

    assert [[name, number] for name, number, *_ in result["trials"]] == [[n, k] for n in ids for k in (1, 2, 3, 4)]
    assert len(read_prompts(tmp_path)) == 20 - len(kept)
    assert result["counts"]["passed"] == 20


def test_answers_are_scored_again_when_an_evaluator_changed_and_no_agent_is_called_again(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import pathlib\n"
        "LOG = pathlib.Path(__file__).with_name('calls.log')\n"
        "def agent(q):\n"
        "    with LOG.open('a') as log: log.write(q + '\\n')\n"
        "    if q == 'two': raise ValueError\n"
        "    return q\n"
    )
    cases = "[{id: a, input: one}, {id: b, input: two}, {id: c, input: three}]"
    (tmp_path / "suite.yaml").write_text(f"agent: agent.py:agent\nevaluators: ['checks.py:good']\ncases: {cases}\n")
    script = (
        "import sys; from pathlib import Path; from proctor.running.run import RunRequest, run_suites\n"
        "from proctor.running.settings import RunOptions; from proctor.cases.suite import Settings\n"
        "from proctor.cases.formats.loading import load\n"
        "options = RunOptions(Settings(parallel=1), maxfail=None if 'resume' in sys.argv else 1)\n"
        "request = RunRequest(load(['suite.yaml']), options, store=Path('.proctor'), resume='resume' in sys.argv)\n"
        "run, verdict = run_suites(request)\n"
        "print([(t.case.id, t.outcome.value, t.scores[0].value if t.scores else None) for t in run.trials])\n"
    )

    def run(score: float, *arguments: str) -> str:
        (tmp_path / "checks.py").write_text(f"def good(evaluable):\n    return {score}\n")
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert run(1.0) == "[('a', 'passed', 1.0), ('b', 'failed', None)]"
    assert run(0.75, "resume") == "[('a', 'passed', 0.75), ('b', 'failed', None), ('c', 'passed', 0.75)]"
    assert (tmp_path / "calls.log").read_text().split() == ["one", "two", "three"]


def test_the_ids_of_runs_that_start_in_one_second_sort_by_time() -> None:
    ids = []
    for _ in range(20):
        ids.append(new_run_id())
        time.sleep(0.001)  # longer than the finest step of an id
    assert ids == sorted(ids)
    assert len(set(ids)) == 20
