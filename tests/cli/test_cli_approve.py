"""`proctor approve`: what an agent did, looked at and accepted, becomes what is expected of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND
from pseudo_terminal import run_in_terminal
from tool_marks import needing

from proctor.base.json_data import UNSET
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case

DESK = """
import proctor

RATE = 5


@proctor.tool
def look_up_rate(kind: str, note: dict) -> int:
    return RATE


def agent(question):
    if "weather" in question:
        return "I only know rates."
    if "crash" in question:
        raise ValueError("no idea")
    return f"The rate is {look_up_rate('fixed', {'$regex': 'literal'})}%."


def worse(question):
    return "The rate is 6%."
"""
SUITE = """
name: rates
agent: desk.py:agent
evaluators: [Contains]
cases:
  - id: rate
    input: What is the rate?
    expected: {contains: {any: [rate]}}
  - id: weather
    input: How is the weather?
  - id: follow-up
    turns: [{input: What is the rate?}, {input: And the weather?}]
"""


@pytest.fixture
def rates(project: Path) -> Path:
    (project / "desk.py").write_text(DESK)
    (project / "rates.yaml").write_text(SUITE)
    return project


def cases(path: Path) -> dict[str, Case]:
    [suite] = load([str(path)])
    return {case.id: case for case in suite.cases}


def test_what_the_agent_did_is_shown_and_nothing_is_written_where_nobody_can_be_asked(
    rates: Path, proctor: Callable[..., Any]
) -> None:
    ended = proctor("approve", "rates.yaml")
    assert ended.code == 0
    for part in ('look_up_rate(kind="fixed"', "The rate is 5%.", "expected now", "calls", "nothing was written"):
        assert part in ended.out
    assert (rates / "rates.yaml").read_text() == SUITE


def test_what_is_accepted_is_expected_with_its_origin(rates: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("approve", "rates.yaml", "--accept-all", "--by", "ann")
    assert ended.code == 0
    assert "WARNING: 3 cases approved without review" in ended.err
    found = cases(rates / "rates.yaml")
    [turn] = found["rate"].turns
    assert turn.expected.output == "The rate is 5%."
    assert turn.expected.contains is not None
    [call] = turn.expected.tools or ()
    assert call.name == "look_up_rate"
    assert {name: matcher.to_json() for name, matcher in (call.args or {}).items()} == {
        "kind": "fixed",
        "note": {"$equals": {"$regex": "literal"}},
    }
    assert found["weather"].turns[0].expected.tools == ()
    assert [turn.expected.output for turn in found["follow-up"].turns] == ["The rate is 5%.", "I only know rates."]
    origin = found["rate"].metadata["recorded"]
    assert origin["accepted_by"] == "ann (--accept-all)"
    assert origin["agent"] == "desk.py:agent"
    assert origin["agent_fingerprint"]
    assert origin["run"] in proctor("runs").out


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_a_recorded_suite_passes_the_agent_it_came_from_and_fails_another(
    rates: Path, proctor: Callable[..., Any]
) -> None:
    proctor("approve", "rates.yaml", "--accept-all")
    assert proctor("test", "rates.yaml").code == 0
    ended = proctor("test", "rates.yaml", "--agent", "desk.py:worse")
    assert ended.code == 1
    assert "ExpectedTools" in ended.out


@pytest.mark.parametrize(("part", "output", "tools"), [("answer", "The rate is 5%.", None), ("tools", UNSET, 1)])
def test_only_the_answer_or_only_the_tools_may_be_expected(
    rates: Path, proctor: Callable[..., Any], part: str, output: Any, tools: int | None
) -> None:
    proctor("approve", "rates.yaml", "-k", "rates/rate", "--accept-all", "--expect", part)
    found = cases(rates / "rates.yaml")["rate"].turns[0].expected
    assert found.output == output
    assert (None if found.tools is None else len(found.tools)) == tools


def test_the_rows_of_json_say_in_a_file_what_is_accepted(rates: Path, proctor: Callable[..., Any]) -> None:
    rows = json.loads(proctor("approve", "rates.yaml", "--json").out)
    assert rows[0]["answer"] == ["The rate is 5%."]
    assert rows[0]["tools"][0][0][0] == "look_up_rate"
    rows[0] |= {"accept": True, "by": "bob"}
    rows[1]["accept"] = False
    (rates / "accepted.json").write_text(json.dumps(rows))
    ended = proctor("approve", "rates.yaml", "--run", "last", "--from", "accepted.json", "--output", "new/out.json")
    assert ended.code == 0
    assert "1 case approved, 2 cases unchanged" in ended.out
    found = cases(rates / "new" / "out.json")
    assert found["rate"].metadata["recorded"]["accepted_by"] == "bob"
    assert not found["weather"].metadata
    assert load([str(rates / "new" / "out.json")])[0].agent == "../desk.py:agent"


WRONG_ROWS = {
    "no object": ("[3]", "must be an object"),
    "an unknown case": ('[{"case": "nope", "accept": true}]', "no case 'nope'"),
    "an unknown key": ('[{"case": "rate", "acept": true}]', "unknown key 'acept'"),
    "neither yes nor no": ('[{"case": "rate", "accept": "yes"}]', "true, false or null"),
    "no JSON": ("nope", "is not valid JSON"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_rows_that_cannot_be_taken_are_told(rates: Path, proctor: Callable[..., Any], name: str) -> None:
    text, said = WRONG_ROWS[name]
    (rates / "rows.json").write_text(text)
    ended = proctor("approve", "rates.yaml", "--from", "rows.json")
    assert ended.code == 2
    assert said in ended.err
    assert (rates / "rates.yaml").read_text() == SUITE


def test_a_kept_run_is_recorded_without_asking_anybody(rates: Path, proctor: Callable[..., Any]) -> None:
    proctor("test", "rates.yaml")
    (rates / "desk.py").write_text("def agent(question):\n    raise SystemExit(9)\n")
    ended = proctor("approve", "rates.yaml", "--run", "last", "--accept-all")
    assert ended.code == 0
    assert cases(rates / "rates.yaml")["rate"].turns[0].expected.output == "The rate is 5%."


def test_an_answer_with_masked_secrets_is_not_expected(rates: Path, proctor: Callable[..., Any]) -> None:
    token = "ghp" + "_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    (rates / "desk.py").write_text(f"def agent(question):\n    return 'sun' if 'weather' in question else {token!r}\n")
    (rates / "rates.yaml").write_text(SUITE.replace("How is the weather?", f"How is the weather? {token}"))
    ended = proctor("approve", "rates.yaml", "--accept-all")
    assert "secrets in what the agent did are masked" in ended.out
    assert "1 case approved" in ended.out
    assert "[secret:" not in (rates / "rates.yaml").read_text()


def test_an_answer_counts_only_for_the_question_it_was_given_to(rates: Path, proctor: Callable[..., Any]) -> None:
    proctor("test", "rates.yaml")
    (rates / "rates.yaml").write_text(SUITE.replace("How is the weather?", "How was the weather?"))
    ended = proctor("approve", "rates.yaml", "--run", "last", "--accept-all")
    assert "input has changed" in ended.out
    assert "2 cases approved, 1 case unchanged" in ended.out


def test_a_case_without_an_answer_is_left_as_it_is(rates: Path, proctor: Callable[..., Any]) -> None:
    crash = "\n  - id: crash\n    input: crash\n  - id: later\n    input: x\n    skip: not yet\n"
    (rates / "rates.yaml").write_text(SUITE.rstrip() + crash)
    ended = proctor("approve", "rates.yaml", "--accept-all")
    assert ended.code == 0
    assert "no idea" in ended.out
    assert re.search(r"crash\n +input +crash\n +not possible", ended.out)
    assert "it is skipped: not yet" in ended.out
    assert not cases(rates / "rates.yaml")["crash"].turns[0].expected


def test_cases_of_which_nothing_is_expected_yet_can_be_recorded(project: Path, proctor: Callable[..., Any]) -> None:
    (project / "bare.yaml").write_text("agent: agents.py:echo\ncases: [{id: one, input: hello}]\n")
    assert proctor("test", "bare.yaml").code == 2
    assert proctor("approve", "bare.yaml", "--accept-all").code == 0
    assert proctor("test", "bare.yaml").code == 0


def test_a_recorded_answer_is_compared_where_only_keywords_were_expected_before(
    project: Path, proctor: Callable[..., Any]
) -> None:
    case = "{id: one, input: hello, expected: {contains: [h]}}"
    (project / "some.yaml").write_text(f"agent: agents.py:echo\ncases: [{case}]\n")
    (project / "chosen.yaml").write_text(f"agent: agents.py:echo\nevaluators: [Contains]\ncases: [{case}]\n")
    for name, evaluators in (
        ("some", ["ExactMatch", "Contains", "ExpectedTools"]),
        ("chosen", ["Contains", "ExpectedTools"]),
    ):
        proctor("approve", f"{name}.yaml", "--accept-all")
        [suite] = load([str(project / f"{name}.yaml")])
        assert [spec.name for spec in suite.evaluators_of(suite.cases[0])] == evaluators


def test_a_file_that_is_wrong_otherwise_is_refused(project: Path, proctor: Callable[..., Any]) -> None:
    (project / "bad.yaml").write_text("agent: agents.py:echo\ncases: [{id: one, input: hello, typo: 1}]\n")
    ended = proctor("approve", "bad.yaml", "--accept-all")
    assert ended.code == 2
    assert "typo" in ended.err


def test_an_agent_that_answers_nothing_at_all_is_an_error(rates: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("approve", "rates.yaml", "--agent", "agents.py:raises", "--accept-all")
    assert ended.code == 4
    assert "no case has an answer" in ended.err


def test_other_formats_are_written_as_far_as_they_go(rates: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("approve", "rates.yaml", "--accept-all", "--output", "rates.csv")
    assert ended.code == 0
    assert load(["rates.csv"])[0].format == "csv"


WRONG_USE = {
    "two ways to accept": (("--accept-all", "--json"), "cannot be combined"),
    "a run and an agent": (("--run", "last", "--agent", "a.py:b"), "use one of them"),
    "no such run": (("--run", "nope"), "nope"),
    "a file of another tool": (("--output", "out.test.json"), "adk files, which Proctor only reads"),
    "a file of no format": (("--output", "out.txt"), "cannot tell the format"),
    "no case selected": (("-k", "nothing"), "no case"),
    "no such file of rows": (("--from", "none.json"), "cannot read none.json"),
}


OF_ADK = "a file of another tool"


@pytest.mark.parametrize("name", [needing("adk", name) if name == OF_ADK else name for name in WRONG_USE])
def test_what_cannot_be_done_is_told(rates: Path, proctor: Callable[..., Any], name: str) -> None:
    proctor("test", "rates.yaml")
    arguments, said = WRONG_USE[name]
    ended = proctor("approve", "rates.yaml", *arguments)
    assert ended.code in (2, 4)
    assert said in ended.err


def test_a_file_is_not_overwritten_unless_that_is_said(rates: Path, proctor: Callable[..., Any]) -> None:
    (rates / "other.yaml").write_text("mine")
    assert "exists; add --force" in proctor("approve", "rates.yaml", "--accept-all", "--output", "other.yaml").err
    assert (rates / "other.yaml").read_text() == "mine"
    assert proctor("approve", "rates.yaml", "--accept-all", "--output", "other.yaml", "--force").code == 0
    assert (rates / "rates.yaml").read_text() == SUITE


COMMENTED = """\
# Rates that customers ask for.
name: rates
agent: desk.py:agent

evaluators: [Contains]   # ours

cases:
  # asked every day
  - id: rate
    input: "What is the rate?"   # in quotes
    expected: {contains: {any: [rate]}}

  - id: weather      # not ours
    tags: [ 'a',  "b" ]
    input: How is the weather?
    expected: {contains: rates}
"""


def test_only_the_accepted_case_is_edited_and_every_other_line_stays(rates: Path, proctor: Callable[..., Any]) -> None:
    for before in (COMMENTED.encode(), b"\xef\xbb\xbf" + COMMENTED.replace("\n", "\r\n").encode()):
        (rates / "rates.yaml").write_bytes(before)
        (rates / "rows.json").write_text('[{"case": "weather", "accept": true, "by": "ann"}]')
        ended = proctor("approve", "rates.yaml", "--from", "rows.json")
        assert "wrote rates.yaml (1 case approved, 1 case unchanged)" in ended.out
        after = (rates / "rates.yaml").read_bytes()
        head = before[: before.index(b"    expected: {contains: rates}")]
        assert after.startswith(head)
        assert len(after.splitlines()) < len(before.splitlines()) + 12
        assert b"\r\n" in before or b"\r" not in after
        assert cases(rates / "rates.yaml")["weather"].turns[0].expected.output == "I only know rates."
        assert not list(rates.glob(".*.tmp"))


def test_a_file_that_was_changed_in_the_meantime_is_not_overwritten(rates: Path, proctor: Callable[..., Any]) -> None:
    edits = "with open('rates.yaml', 'a') as file: file.write('# mine')"
    (rates / "desk.py").write_text(f"def agent(question):\n    {edits}\n    return question\n")
    ended = proctor("approve", "rates.yaml", "--accept-all")
    assert ended.code == 2
    assert "changed in the meantime" in ended.err
    assert (rates / "rates.yaml").read_text().startswith(SUITE + "# mine")
    assert "recorded" not in (rates / "rates.yaml").read_text()


def test_a_case_that_cannot_be_edited_is_told_and_can_go_to_another_file(
    rates: Path, proctor: Callable[..., Any]
) -> None:
    text = "agent: desk.py:agent\nx-a: &a {id: a, input: hello, expected: y}\ncases: [*a]\n"
    (rates / "rates.yaml").write_text(text)
    ended = proctor("approve", "rates.yaml", "--accept-all")
    assert ended.code == 2
    assert "rates.yaml cannot be edited: cases[0] is an alias" in ended.err
    assert (rates / "rates.yaml").read_text() == text
    assert proctor("approve", "rates.yaml", "--accept-all", "--output", "new.json").code == 0


def test_a_suite_of_another_format_is_recorded_beside_it(rates: Path, proctor: Callable[..., Any]) -> None:
    (rates / "rates.csv").write_text("id,input,expected\none,How is the weather?,x\n")
    ended = proctor("approve", "rates.csv", "--agent", "desk.py:agent", "--accept-all")
    assert "wrote rates.recorded.yaml (1 case approved)" in ended.out
    assert cases(rates / "rates.recorded.yaml")["one"].turns[0].expected.output == "I only know rates."


def test_it_is_said_which_of_several_trials_is_shown(rates: Path, proctor: Callable[..., Any]) -> None:
    counting = (
        "N = [0]\n\n\ndef agent(question):\n    N[0] += 1\n    return ['no', 'no', 'yes', 'yes!', 'yes'][N[0] - 1]\n"
    )
    (rates / "desk.py").write_text(counting)
    case = "{id: one, input: hi, expected: {contains: [yes]}}"
    (rates / "rates.yaml").write_text(f"name: rates\nagent: desk.py:agent\ncases: [{case}]\n")
    proctor("test", "rates.yaml", "--repeat", "5", "--parallel", "1")
    ended = proctor("approve", "rates.yaml", "--run", "last")
    assert re.search(r"shown +trial 3 of 5, the first of 3 that passed; 2 of 5 did the same\n", ended.out)
    assert re.search(r"answer +yes\n", ended.out)
    [row] = json.loads(proctor("approve", "rates.yaml", "--run", "last", "--json").out)
    assert row["trial"].startswith("trial 3 of 5")


def at_a_terminal(folder: Path, typed: str) -> str:
    code, output = run_in_terminal([*COMMAND, "approve", "rates.yaml", "--by", "ann"], folder, typed=typed)
    assert code == 0
    return output


@pytest.mark.process
def test_on_a_terminal_each_case_is_asked_about(rates: Path) -> None:
    said = at_a_terminal(rates, "what\ny\nn\ny\n")
    assert "y, n or q" in said
    assert "2 cases approved, 1 case unchanged" in said
    found = cases(rates / "rates.yaml")
    assert [case.id for case in found.values() if case.metadata] == ["rate", "follow-up"]
    assert found["rate"].metadata["recorded"]["accepted_by"] == "ann"


@pytest.mark.process
def test_on_a_terminal_q_keeps_what_was_accepted_before(rates: Path) -> None:
    said = at_a_terminal(rates, "y\nq\n")
    assert "1 case approved" in said


@pytest.mark.process
def test_on_a_terminal_nothing_accepted_is_nothing_written(rates: Path) -> None:
    assert "nothing was approved" in at_a_terminal(rates, "\n\nn\n")
    assert (rates / "rates.yaml").read_text() == SUITE
