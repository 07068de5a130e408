from __future__ import annotations

import io
import json
import math
from dataclasses import fields
from pathlib import Path

import jsonschema_rs
import pytest
from reporting_samples import ERROR, FAILED, HOSTILE, PASSED, OnePass, make_run, report, score, small_run, trial

import proctor
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.reporting import json_report
from proctor.results.score import Score
from proctor.results.trial import Trial
from proctor.results.verdict import verdict

SCHEMA = json.loads((Path(proctor.__file__).parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)


def document(run: object) -> dict:
    return json.loads(report(json_report, run))


@pytest.mark.parametrize(
    "run",
    [
        small_run(),
        make_run([]),
        make_run([trial("a")], hedging_note="hedged 1 of 40 trials: 1 answered sooner; 1 more request"),
        make_run([trial("a")], interrupted=True, finished_at=None, store=None, options={"repeat": 3}),
    ],
)
def test_the_document_is_what_the_shipped_schema_says(run: object) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(document(run))] == []


def test_the_schema_refuses_what_the_report_never_says() -> None:
    broken = document(small_run())
    broken["trials"][0]["outcome"] = "maybe"

    assert not VALIDATOR.is_valid(broken)


def test_every_field_of_a_trial_is_in_the_report() -> None:
    entry = document(small_run())["trials"][1]
    kept = {field.name for field in fields(Reply)} - {
        "raw",
        "thoughts",
        "returned_none",
        "from_cache",
        "hidden_calls",
        "reports_calls",
    }  # the last ones, and handoff below, only if there are any

    # A trace can be a thousand times as long as the rest; `proctor trace export` has it.
    assert {field.name for field in fields(Trial)} - {
        "spans",
        "original",
        "ended_early",
        "arm",
        "end_reason",
        "files_read",  # only if there are any
        "captured",  # only if something was printed
        "masked",  # only if there is any
        "masked_case",
    } <= entry.keys()
    assert {field.name for field in fields(Score)} <= entry["scores"][0].keys()
    assert kept <= entry["replies"][0].keys()
    assert {field.name for field in fields(ToolCall)} - {"handoff"} <= entry["replies"][0]["tool_calls"][0].keys()
    assert {field.name for field in fields(Usage)} <= entry["replies"][0]["usage"].keys()


def test_the_trials_keep_their_values() -> None:
    entry = document(small_run())["trials"][1]

    assert entry["case"]["id"] == "refund-policy"
    assert entry["replies"][0]["tool_calls"][1]["raw_arguments"] == "{not json"
    assert entry["scores"][2]["value"] == 0.25
    tokens = {"input_tokens": 812, "output_tokens": 64, "model_calls": 2, "model": None}
    assert entry["usage"] == {**tokens, "cost_usd": 0.0031, "estimated": False}


def test_the_verdict_is_the_one_that_was_given() -> None:
    run = small_run()
    data = document(run)

    assert data["verdict"]["exit_code"] == verdict(run).exit_code
    assert data["suites"][1]["verdict"]["reason"] == "1 of 2 cases passed"


def test_lone_surrogates_survive_as_ascii() -> None:
    text = report(json_report, make_run([trial("evil", FAILED, HOSTILE)]))

    assert text.isascii()
    assert json.loads(text)["trials"][0]["replies"][0]["text"] == HOSTILE


def test_numbers_that_json_cannot_say_become_null() -> None:
    odd = trial(
        "odd",
        ERROR,
        None,
        score(ERROR, math.nan, threshold=math.inf),
        replies=(Reply("x", (ToolCall("t", {"n": math.nan}),), Usage(cost_usd=math.inf), structured={1: {2, 3}}),),
    )
    data = document(make_run([odd]))

    assert data["trials"][0]["scores"][0]["value"] is None
    assert data["trials"][0]["replies"][0]["tool_calls"][0]["arguments"] == {"n": "nan"}
    assert VALIDATOR.is_valid(data)


def test_five_thousand_trials_are_written_one_at_a_time() -> None:
    class Longest(io.StringIO):
        longest = 0

        def write(self, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return super().write(text)

    trials = [trial(f"case-{n}", PASSED, "x" * 50) for n in range(5_000)]
    stream = OnePass(5_000, trials.__getitem__)
    run = make_run(trials, stream=stream)
    out = Longest()
    json_report.write(run, verdict(run), out)

    assert stream.made == 5_000
    assert len(json.loads(out.getvalue())["trials"]) == 5_000
    assert len(out.getvalue()) > 2_000_000
    assert max(len(line) for line in out.getvalue().splitlines()) < 2_000
