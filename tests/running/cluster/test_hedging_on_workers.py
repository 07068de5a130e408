"""`--hedge` with agents on workers."""

from __future__ import annotations

from pathlib import Path

from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.results.score import Outcome
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import ClusterOptions, RunOptions

AGENT = """
import os
import time


def hangs_once(question):
    if question == "q0" and not os.path.exists("hanging.txt"):
        open("hanging.txt", "w").close()
        time.sleep(600)
    return question
"""


def test_a_request_that_hangs_on_a_worker_is_sent_again(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_text(AGENT.replace('"hanging.txt"', repr(str(tmp_path / "hanging.txt"))))
    cases = "".join(f"  - {{input: q{number}, expected: q{number}}}\n" for number in range(30))
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"agent: agents.py:hangs_once\nsettings: {{side_effects: false}}\ncases:\n{cases}")
    options = RunOptions(
        overrides=Settings(parallel=4, timeout=60.0), hedge=True, cluster=ClusterOptions(workers=1), backoff=0.0
    )
    run, _ = run_suites(RunRequest(load([suite]), options))
    assert {summary.outcome for summary in run.summaries} == {Outcome.PASSED}
    assert "asked again" in run.trials[0].warnings[0]
