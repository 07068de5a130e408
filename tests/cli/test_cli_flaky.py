"""Flaky cases, quarantine and the plan of a gated run, as people meet them on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

AGENT = """
import threading
from pathlib import Path

COUNTING = threading.Lock()


def count():
    path = Path("count")
    with COUNTING:
        number = int(path.read_text()) + 1 if path.exists() else 0
        path.write_text(str(number))
    return number


def agent(question):
    return "no" if question == "flaky" and count() % 5 == 0 else question
"""

CHECKS = """
from agent import count


def moody(evaluable):
    return count() % 2
"""

SUITE = """
agent: agent.py:agent
cases:
  - {id: flaky, input: flaky, expected: flaky}
  - {id: steady, input: steady, expected: steady}
"""


@pytest.fixture
def project(project: Path) -> Path:
    (project / "agent.py").write_text(AGENT, encoding="utf-8")
    (project / "moods.py").write_text(CHECKS, encoding="utf-8")
    (project / "desk.yaml").write_text(SUITE, encoding="utf-8")
    return project


def tomorrow() -> str:
    return (date.today() + timedelta(days=1)).isoformat()


def yesterday() -> str:
    return (date.today() - timedelta(days=1)).isoformat()


def test_a_case_with_both_outcomes_is_called_flaky_in_every_report(
    project: Path, proctor_process: Command, tmp_path: Path
) -> None:
    targets = {
        "md": tmp_path / "r.md",
        "json": tmp_path / "r.json",
        "junit": tmp_path / "r.xml",
        "html": tmp_path / "r.html",
    }
    options = [word for kind, path in targets.items() for word in (f"--{kind}", path)]
    ended = proctor_process(
        "test", "desk.yaml", "--repeat", "5", "-j", "1", *options, GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md")
    )
    assert "FAIL  flaky  4/5" in ended.out
    for path in (targets["md"], targets["html"], targets["junit"], tmp_path / "summary.md"):
        assert "FLAKY 4/5" in path.read_text(encoding="utf-8"), path
    cases = json.loads(targets["json"].read_text(encoding="utf-8"))["suites"][0]["verdict"]["cases"]
    assert {case["id"]: case["flaky"] for case in cases} == {"flaky": True, "steady": False}


def test_flaky_cases_are_listed_from_the_baseline_and_from_kept_runs(project: Path, proctor: Command) -> None:
    proctor("test", "desk.yaml", "--repeat", "5", "-j", "1", "-q")
    listed = proctor("flaky").out
    assert "desk/flaky  FLAKY 4/5 [38%, 96%]" in listed
    assert "agent noise (no judge involved)" in listed
    assert "steady" not in listed
    proctor("baseline", "accept")
    assert "FLAKY 4/5" in proctor("flaky").out, "a run that was accepted is not counted twice"
    proctor("test", "desk.yaml", "--repeat", "5", "-j", "1", "-q")
    [row] = json.loads(proctor("flaky", "--json").out)
    assert (row["passes"], row["trials"], len(row["runs"])) == (8, 10, 2)


@pytest.mark.parametrize("with_baseline", [False, True])
def test_a_case_that_a_change_broke_is_not_flaky(
    project: Path, proctor: Command, proctor_process: Command, with_baseline: bool
) -> None:
    suite = "agent: agents.py:echo\ncases:\n  - {id: one, input: hi, expected: hi}\n"
    (project / "desk.yaml").write_text(suite, encoding="utf-8")
    proctor("test", "desk.yaml", "--repeat", "10", "-q")
    if with_baseline:
        assert proctor("baseline", "accept").code == 0
    (project / "agents.py").write_text("def echo(question):\n    return 'changed'\n", encoding="utf-8")
    # In this process the module of the agent is loaded already, as it was before the change.
    assert proctor_process("test", "desk.yaml", "--repeat", "3", "-q").code == 1
    assert "no case both passed and failed" in proctor("flaky").out


def test_a_case_that_fails_now_and_then_is_flaky_though_its_baseline_has_only_passes(
    project: Path, proctor: Command
) -> None:
    (project / "count").write_text("0", encoding="utf-8")
    proctor("test", "desk.yaml", "--repeat", "3", "-j", "1", "-q")
    proctor("baseline", "accept")
    assert "no case both passed and failed" in proctor("flaky").out
    proctor("test", "desk.yaml", "--repeat", "2", "-j", "1", "-q")
    assert "desk/flaky  FLAKY 4/5" in proctor("flaky").out


def test_judging_the_same_answers_again_tells_who_varies(project: Path, proctor: Command) -> None:
    (project / "desk.yaml").write_text(
        "agent: agents.py:echo\nsettings: {parallel: 1}\n"
        "cases:\n  - {id: moody, input: hi, evaluators: [moods.py:moody]}\n",
        encoding="utf-8",
    )
    proctor("test", "desk.yaml", "--repeat", "5", "-q")
    [row] = json.loads(proctor("flaky", "--rejudge", "5", "--json").out)
    assert row["variance"]["judge"] > 0.9
    assert row["variance"]["answers"] == 5
    (project / "count").unlink()
    (project / "desk.yaml").write_text(SUITE, encoding="utf-8")
    proctor("test", "desk.yaml", "--repeat", "5", "-j", "1", "-q")
    [row] = json.loads(proctor("flaky", "--rejudge", "3", "--json").out)
    assert (row["variance"]["agent"], row["variance"]["judge"]) == (1.0, 0.0)


def test_a_case_in_quarantine_runs_is_reported_and_decides_nothing(project: Path, proctor: Command) -> None:
    (project / "desk.yaml").write_text(SUITE.replace("expected: flaky", "expected: other"), encoding="utf-8")
    assert proctor("test", "desk.yaml", "-q").code == 1
    ended = proctor("quarantine", "flaky", "--reason", "the feed is down", "--until", tomorrow(), "--owner", "ops")
    assert ended.code == 0
    tested = proctor("test", "desk.yaml")
    assert tested.code == 0
    assert "1 of 1 cases passed; 1 quarantined" in tested.out
    assert "quarantined: flaky (failed)" in tested.out
    assert f"desk/flaky  until {tomorrow()}  owner ops  the feed is down" in proctor("quarantine").out
    proctor("baseline", "accept")
    assert proctor("test", "--gate", "-q").code == 0
    assert proctor("quarantine", "flaky", "--remove").code == 0
    assert not (project / "desk.quarantine.jsonl").exists()
    assert proctor("test", "desk.yaml", "-q").code == 1


@pytest.mark.parametrize("gate", [(), ("--gate",)])
def test_past_its_date_a_quarantine_fails_loudly(project: Path, proctor: Command, gate: tuple[str, ...]) -> None:
    proctor("test", "desk.yaml", "-q")
    proctor("baseline", "accept")
    added = f"input: steady, quarantine: {{reason: the feed is down, until: {yesterday()}, owner: ops}},"
    (project / "desk.yaml").write_text(SUITE.replace("input: steady,", added), encoding="utf-8")
    ended = proctor("test", "desk.yaml", *gate)
    assert ended.code == 1
    assert f"the quarantine of steady expired on {yesterday()} (owner: ops): the feed is down" in ended.out


def test_a_quarantine_does_not_take_the_past_of_a_case(project: Path, proctor: Command) -> None:
    proctor("test", "desk.yaml", "--repeat", "5", "-q")
    proctor("baseline", "accept")
    proctor("quarantine", "steady", "--reason", "for a while", "--until", tomorrow())
    proctor("test", "--gate", "--json", "gate.json", "-q")
    cases = json.loads((project / "gate.json").read_text(encoding="utf-8"))["gate"]["cases"]
    assert {case["case"]: case["past_trials"] for case in cases} == {"flaky": 5, "steady": 5}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"suite": "desk", "case": "gone", "reason": "x", "until": "2030-01-01"}', "'desk' has no such case"),
        ('{"suite": "desk", "case": "flaky", "reason": "x", "until": "soon"}', "until must be a date as YYYY-MM-DD"),
        ('{"suite": "desk", "case": "flaky", "until": "2030-01-01"}', "reason must be"),
        ('{"suite": "desk", "case": "flaky", "reason": "x"', "quarantine.jsonl:1:"),
    ],
)
def test_a_bad_file_of_quarantines_is_said_before_anything_runs(
    project: Path, proctor: Command, line: str, words: str
) -> None:
    (project / "desk.quarantine.jsonl").write_text(line + "\n", encoding="utf-8")
    ended = proctor("test", "desk.yaml")
    assert ended.code == 2
    assert words in ended.err


def test_a_plan_says_what_it_assumes_of_a_suite_without_a_past(project: Path, proctor: Command) -> None:
    planned = proctor("plan", "desk.yaml").out
    assert "assumed    2 cases without a baseline: pass rate 90%" in planned
    assert "cost not recorded" in planned
    assert not (project / "count").exists(), "nothing was run"


def test_a_plan_rests_on_what_was_recorded(project: Path, proctor: Command) -> None:
    proctor("test", "desk.yaml", "--repeat", "20", "-q")
    proctor("baseline", "accept")
    data = json.loads(proctor("plan", "desk.yaml", "--json").out)
    assert (data["cases"], data["known"], data["recorded"]) == (2, 2, 40)
    assert 2 <= data["trials"] <= 6
    assert data["seconds"] > 0
    drops = [drop for drop in data["sees"].values() if drop is not None]
    assert drops == sorted(drops, reverse=True), "more runs see smaller drops"
    assert "40 trials of 2 cases in desk.baseline.jsonl" in proctor("plan", "desk.yaml").out


def test_the_old_name_of_remove_still_lifts_a_quarantine_and_says_the_new_one(project: Path, proctor: Command) -> None:
    assert proctor("quarantine", "flaky", "--reason", "known", "--until", tomorrow()).code == 0
    ended = proctor("quarantine", "flaky", "--lift")
    assert ended.code == 0
    assert "`--lift` is now `--remove`" in ended.err


def test_suites_that_share_a_name_are_found_alone_and_together(project: Path, proctor: Command) -> None:
    for folder in ("first", "second"):
        (project / folder).mkdir()
        case = f"{{id: both, input: flaky, expected: {{contains: [{folder[0]}]}}}}"
        text = f"name: desk\nagent: ../agent.py:agent\ncases:\n  - {case}\n"
        (project / folder / "desk.yaml").write_text(text, encoding="utf-8")
    (project / "agent.py").write_text(AGENT.replace('return "no"', 'return "x"').replace("else question", 'else "f s"'))
    proctor("test", "first", "second", "--repeat", "5", "-j", "1")  # each gets another name in this run
    proctor("test", "first", "--repeat", "5", "-j", "1")  # and here it has its own

    def rows(*paths: str) -> dict[str, int]:
        listed = json.loads(proctor("flaky", *paths, "--json").out)
        return {row["suite"]: row["trials"] for row in listed}

    assert rows("first") == {"desk": 10}
    assert rows("second") == {"desk": 5}
    assert sorted(rows("first", "second").values()) == [5, 10]
    proctor("baseline", "accept")
    assert rows("first") == {"desk": 10}
    assert "no case has a baseline" not in proctor("test", "first", "--gate", "-j", "1").out


def test_a_change_of_the_environment_is_named_next_to_noise(
    project: Path, proctor: Command, proctor_process: Command
) -> None:
    agent = "import os\n\n\ndef agent(question):\n    return question if os.environ.get('MODE') == 'x' else 'no'\n"
    (project / "agent.py").write_text(agent, encoding="utf-8")
    for mode in ("x", "x", "y", "y"):
        proctor_process("test", "desk.yaml", MODE=mode)
    said = proctor("flaky", "desk.yaml").out
    [row, _] = json.loads(proctor("flaky", "desk.yaml", "--json").out)
    assert row["changed_with"] == row["runs"][2]
    assert f"or a change outside of the agent: it changed once, with run {row['runs'][2]}" in said
    proctor_process("test", "desk.yaml", MODE="x")
    assert json.loads(proctor("flaky", "desk.yaml", "--json").out)[0]["changed_with"] is None
