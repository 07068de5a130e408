"""Scores for spreadsheets, and what became of one suite over time."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from proctor.results.run import Run
from proctor.results.store.store import Store
from proctor.running.resume import exclusive_run

Command = Callable[..., Any]

TWO = """
name: desk
agent: agents.py:echo
cases: [{id: right, input: a, expected: a}, {id: wrong, input: b, expected: c}]
"""


def test_scores_are_written_as_csv_by_test_and_by_show(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    assert proctor("test", "--csv", "r.csv").code == 1
    rows = list(csv.DictReader((project / "r.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["case"], row["outcome"]) for row in rows] == [("right", "passed"), ("wrong", "failed")]
    shown = proctor("show", "last", "--csv", "-")
    assert shown.out == (project / "r.csv").read_text(encoding="utf-8")


def test_the_runs_of_one_suite_are_listed_with_pass_rate_scores_and_agent(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test")
    proctor("test", "--agent", "nop")
    listed = proctor("runs", "--suite", "desk")
    latest, first = listed.out.splitlines()
    assert "0 of 2 passed (0%)   ExactMatch 0.000  nop nop-1" in latest
    assert "1 of 2 passed (50%)  ExactMatch 0.500  agents.py:echo" in first
    newest, oldest = json.loads(proctor("runs", "--suite", "desk", "--json").out)
    assert (newest["pass_rate"], oldest["pass_rate"]) == (0.0, 0.5)
    assert oldest["scores"] == {"ExactMatch": 0.5}
    assert newest["agent_fingerprint"] != oldest["agent_fingerprint"]
    assert len(json.loads(proctor("runs", "--suite", "desk", "-n", "1", "--json").out)) == 1


def test_a_suite_nobody_ran_is_an_error_with_a_hint(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test")
    ended = proctor("runs", "--suite", "dsk")
    assert ended.code == 2
    assert "no run of a suite 'dsk'" in ended.err
    assert "did you mean 'desk'?" in ended.err


def test_a_suite_whose_run_was_cut_off_or_skipped_has_no_pass_rate(proctor: Command, suite: Command) -> None:
    suite(text="name: desk\nagent: agents.py:echo\ncases: [{id: a, input: a, expected: a, skip: later}]\n")
    proctor("test")
    assert "no result" in proctor("runs", "--suite", "desk").out


def test_listed_runs_stand_in_columns_and_say_each_thing_once(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    proctor("test")
    proctor("test", "--agent", "nop", "-k", "wrong")
    kill_a_run(project)
    killed, fewer, more = proctor("runs").out.splitlines()
    assert killed.count("died") == 1
    assert "1 of 1,234 trials" in killed
    assert fewer.endswith("1 failed            desk")
    assert more.endswith("1 passed, 1 failed  desk")
    assert killed.endswith("1 of 1,234 trials   desk")


def test_a_run_of_a_suite_that_was_not_finished_says_how_much_of_it_there_is(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite(text=TWO)
    proctor("test", "-k", "right")
    killed = kill_a_run(project)
    listed = proctor("runs", "--suite", "desk").out
    latest, first = listed.splitlines()
    assert "died" in latest and "1 of 1,234 trials, 1 of 1 passed; died" in latest
    assert "100%" not in latest and "1 of 1 passed (100%)" in first
    with exclusive_run(Store(project / ".proctor"), killed):
        assert "1 of 1 passed; running" in proctor("runs", "--suite", "desk").out
    rows = json.loads(proctor("runs", "--suite", "desk", "--json").out)
    assert [(row["status"], row["trials"], row["planned"]) for row in rows] == [("died", 1, 1234), ("finished", 1, 1)]


def test_a_killed_run_says_how_to_go_on(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    proctor("test")
    kill_a_run(project)
    assert "interrupted after 1 of 1,234 trials; continue with --resume" in proctor("show", "last").out


def test_a_run_that_still_goes_on_is_not_called_cut_off(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=TWO)
    proctor("test")
    killed = kill_a_run(project)
    with exclusive_run(Store(project / ".proctor"), killed):
        shown = proctor("show", "last").out
    assert "the run is still in progress" in shown
    assert "cut off" not in shown
    assert "--resume" not in shown


def test_showing_cases_that_nobody_has_is_a_mistake(proctor: Command, suite: Command) -> None:
    suite(text=TWO)
    proctor("test")
    ended = proctor("show", "last", "-k", "nowhere")
    assert ended.code == 2
    assert "no case" in ended.err
    assert ended.out == ""
    assert proctor("show", "last", "-k", "right", "--failed").code == 0


def kill_a_run(project: Path) -> str:
    """Leaves a run as a process leaves it that is killed after its first trial of 1,234."""
    kept = Store(project / ".proctor")
    run = kept.find_run("last")
    suites = tuple(dataclasses.replace(info, planned=1234) for info in run.suites)
    number = kept.add_run(Run("99990101-000000-dead", 0.0, suites, planned=1234))
    kept.add_trials(number, [next(iter(run.trials))])
    kept.close()
    return "99990101-000000-dead"


GATED = """
name: desk
agent: agents.py:echo
cases: [{id: right, input: a, expected: a}, {id: wrong, input: b, expected: c}]
"""


def test_the_list_of_runs_and_the_list_of_a_suite_agree_about_a_gated_run(
    proctor: Command, suite: Command, project: Path
) -> None:
    """A case that failed before and fails now is no regression, although the suite's own criteria are not met."""
    suite(text=GATED)
    proctor("test", "--repeat", "3")
    proctor("baseline", "accept", "last")
    assert proctor("test", "--gate", "-q").code == 0
    [latest, _] = json.loads(proctor("runs", "--json").out)
    [of_suite, _] = json.loads(proctor("runs", "--suite", "desk", "--json").out)
    assert (latest["verdict"]["outcome"], of_suite["outcome"]) == ("passed", "passed")
    assert "  passed  " in proctor("runs", "--suite", "desk").out.splitlines()[0]


GREEN = """
name: desk
agent: agents.py:echo
cases: [{id: first, input: a, expected: a}, {id: second, input: b, expected: b}]
"""


def test_a_report_of_some_cases_of_a_green_run_is_green(proctor: Command, suite: Command, project: Path) -> None:
    suite(text=GREEN)
    assert proctor("test", "-q").code == 0
    for chosen in (("--case", "first"), ("-k", "second"), ("--failed",)):
        assert proctor("show", "last", *chosen, "--json", "f.json", "--junit", "f.xml", "--html", "f.html").code == 0
        report = json.loads((project / "f.json").read_text(encoding="utf-8"))
        assert (report["verdict"]["outcome"], report["verdict"]["exit_code"]) == ("passed", 0), chosen
        assert {found["verdict"]["outcome"] for found in report["suites"]} == {"passed"}
        assert len(report["trials"]) == (chosen != ("--failed",))
        assert "not made" not in (project / "f.html").read_text(encoding="utf-8")
        junit = ElementTree.parse(project / "f.xml").getroot()
        assert not [element for element in junit.iter() if element.tag in ("failure", "error")]


def test_a_report_of_some_cases_says_what_the_whole_run_came_to(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite(text=TWO)
    assert proctor("test", "-q").code == 1
    proctor("show", "last", "--case", "right", "--json", "f.json")
    report = json.loads((project / "f.json").read_text(encoding="utf-8"))
    assert (report["verdict"]["outcome"], report["verdict"]["reason"]) == ("failed", "1 of 2 cases passed")
    assert [(trial["case"]["id"], trial["outcome"]) for trial in report["trials"]] == [("right", "passed")]


def test_a_run_that_stopped_by_itself_is_shown_with_the_verdict_it_ended_with(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite(text=TWO.replace("right, input: a, expected: a", "right, input: a, expected: z"))
    ended = proctor("test", "-j", "1", "--maxfail", "1", "--json", "test.json")
    proctor("show", "last", "--json", "show.json")
    made, shown = (json.loads((project / name).read_text(encoding="utf-8")) for name in ("test.json", "show.json"))
    assert made["verdict"] == shown["verdict"]
    assert shown["verdict"]["exit_code"] == ended.code == 1
    assert not shown["run"]["interrupted"]
