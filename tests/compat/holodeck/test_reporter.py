"""HoloDeck's report of a stored run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import yaml

from proctor.cases.formats.loading import load
from proctor.compat.holodeck import TestReport
from proctor.compat.holodeck.plugin import PLUGIN
from proctor.plugins import load as load_target
from proctor.results.verdict import verdict
from proctor.running.run import RunRequest, run_suites

FILE = {
    "name": "desk",
    "agent": "app.py:answer",
    "evaluations": {
        "metrics": [{"type": "standard", "metric": "equality"}, {"type": "code", "grader": "app.py:polite"}]
    },
    "test_cases": [
        {"name": "one", "input": "yes", "ground_truth": "yes", "expected_tools": ["look"]},
        {"name": "talk", "turns": [{"input": "yes", "ground_truth": "yes"}, {"input": "no", "ground_truth": "nay"}]},
    ],
}  # fmt: skip


APP = """
def answer(question):
    return question


def polite(context):
    return 0.8
"""


def test_the_report_of_a_stored_run_is_a_test_report(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(FILE))
    run, _ = run_suites(RunRequest(load([tmp_path / "agent.yaml"]), store=tmp_path / "store"))
    out = io.StringIO()
    reporter, _ = PLUGIN.reporters
    load_target(reporter.write)(run, verdict(run), out)
    report = TestReport.model_validate(json.loads(out.getvalue()))
    one, talk = report.results
    assert (report.agent_name, report.outcome, report.summary.total_tests) == ("desk", "failed", 2)
    assert (one.tools_matched, one.passed, one.turns) == (False, False, None)
    assert [(metric.metric_name, metric.kind) for metric in one.metric_results] == [
        ("equality", "standard"),
        ("polite", "code"),
    ]
    assert talk.turns is not None
    assert [turn.passed for turn in talk.turns] == [True, False]
    assert report.environment["run"] == run.id
