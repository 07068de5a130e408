"""Which cases run, against whom, and scored by what, as said on the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND

Command = Callable[..., Any]

SUITE = """
name: shop
agent: agents.py:echo
cases:
  - {id: refund-fast, input: a, expected: a, tags: [money, quick]}
  - {id: refund-slow, input: b, expected: other, tags: [money], description: takes ages}
  - {id: greeting, input: c, expected: c}
"""


def _ran(ended: Any) -> list[str]:
    return [trial["case"]["id"] for trial in json.loads(ended.out)["trials"]]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (("-k", "refund"), ["refund-fast", "refund-slow"]),
        (("-k", "refund and not slow"), ["refund-fast"]),
        (("-k", "not (refund or ages)"), ["greeting"]),
        (("-k", "AGES"), ["refund-slow"]),
        (("-k", '"takes ages"'), ["refund-slow"]),
        (("-k", "shop/greeting"), ["greeting"]),
        (("--tag", "quick"), ["refund-fast"]),
        (("--tag", "quick", "--tag", "money"), ["refund-fast", "refund-slow"]),
        (("--tag", "money", "-k", "slow"), ["refund-slow"]),
    ],
)
def test_cases_are_chosen_by_words_and_tags(
    proctor: Command, suite: Command, options: tuple[str, ...], chosen: list[str]
) -> None:
    suite("shop.yaml", text=SUITE)
    assert _ran(proctor("test", "--json", "-", *options)) == chosen


@pytest.mark.parametrize("expression", ["", "  ", "(", ")", "a and", "or a", "not", "a or", "(a", "a)", "and"])
def test_an_expression_that_says_nothing_is_a_mistake(proctor: Command, suite: Command, expression: str) -> None:
    suite("shop.yaml", text=SUITE)
    ended = proctor("test", "-k", expression)
    assert ended.code == 2
    assert ended.err.startswith("error: -k")


def test_choosing_nothing_is_a_mistake_and_no_green_run(proctor: Command, suite: Command) -> None:
    suite("shop.yaml", text=SUITE)
    for options in (("-k", "nowhere"), ("--tag", "nowhere")):
        ended = proctor("test", *options)
        assert ended.code == 2
        assert "no case matches" in ended.err


def test_last_failed_runs_what_did_not_pass_and_everything_once_all_passed(proctor: Command, suite: Command) -> None:
    suite("shop.yaml", text=SUITE)
    assert proctor("test", "--last-failed").code == 2
    assert proctor("test").code == 1
    assert _ran(proctor("test", "--last-failed", "--json", "-")) == ["refund-slow"]
    suite("shop.yaml", text=SUITE.replace("expected: other", "expected: b"))
    assert proctor("test", "--lf").code == 0
    everything = proctor("test", "--lf", "--json", "-")
    assert len(_ran(everything)) == 3
    assert "no case failed" in everything.err


def test_maxfail_stops_early_and_is_no_pass(proctor: Command, suite: Command) -> None:
    cases = "".join(f"  - {{id: c{n}, input: a, expected: b}}\n" for n in range(30))
    suite(text="agent: agents.py:echo\nsettings: {parallel: 1}\ncases:\n" + cases)
    ended = proctor("test", "--maxfail", "2", "--json", "-")
    assert ended.code == 1
    assert 2 <= len(_ran(ended)) < 30


def test_the_oracle_passes_and_the_agent_that_does_nothing_fails(proctor: Command, suite: Command) -> None:
    suite("shop.yaml", text=SUITE)
    assert proctor("test", "--agent", "oracle").code == 0
    assert proctor("test", "--agent", "nop").code == 1


def test_evaluators_of_the_command_line_come_on_top_wherever_evaluators_are_named(
    proctor: Command, suite: Command
) -> None:
    suite(
        text="agent: agents.py:echo\nevaluators: [checks.py:good]\ncases:\n"
        "  - {id: inherits, input: a}\n"
        "  - {id: own, input: a, evaluators: [ExactMatch], expected: a}\n"
        "  - {id: turns, turns: [{input: a, evaluators: [checks.py:good]}, {input: b}]}\n"
    )
    ended = proctor(
        "test", "--json", "-", "-e", 'ROUGE={"variant": "rouge1", "report_only": true}', "-e", "checks.py:good"
    )
    scores = {
        trial["case"]["id"]: [score["evaluator"] for score in trial["scores"]]
        for trial in json.loads(ended.out)["trials"]
    }
    assert scores["inherits"] == ["good", "ROUGE"]
    assert scores["own"] == ["ExactMatch", "ROUGE", "good"]
    assert scores["turns"] == ["good", "ROUGE", "good", "ROUGE"]


def test_an_evaluator_of_the_command_line_can_fail_the_run(proctor: Command, suite: Command) -> None:
    suite()
    assert proctor("test").code == 0
    assert proctor("test", "-e", "checks.py:bad").code == 1
    assert proctor("test", "-e", 'checks.py:bad={"report_only": true}').code == 0
    assert proctor("test", "-e", "Nowhere").code == 2


def test_the_same_file_twice_is_a_mistake_and_equal_names_are_told_apart(
    proctor: Command, suite: Command, project: Path
) -> None:
    suite("a.yaml", text="name: same\n" + SUITE.replace("name: shop\n", ""))
    suite("b.yaml", text="name: same\n" + SUITE.replace("name: shop\n", ""))
    assert "a.yaml: is passed more than once" in proctor("test", "a.yaml", project / "a.yaml").err
    report = json.loads(proctor("test", "--json", "-", "-k", "greeting").out)
    assert [suite["name"] for suite in report["suites"]] == ["same (a.yaml)", "same (b.yaml)"]


TAGGED = "name: desk\nagent: agents.py:echo\ncases:\n" + "".join(
    f"  - {{id: {name}, input: a, expected: {expected}, tags: [{tag}]}}\n"
    for name, expected, tag in (("refund", "a", "money"), ("greeting", "b", "quick"), ("fee", "b", "money"))
)


def test_every_command_selects_the_same_cases_by_the_same_options(proctor: Command, suite: Command) -> None:
    suite("desk.yaml", text=TAGGED)
    assert proctor("test").code == 1
    options = ("--tag", "money", "-k", "not fee")
    for words in (("test",), ("show", "last"), ("rescore", "last")):
        document = json.loads(proctor(*words, *options, "--json", "-").out)
        assert [trial["case"]["id"] for trial in document["trials"]] == ["refund"], words
    assert json.loads(proctor("compare", "last", "last", *options, "--json", "-").out)["compared"] == 1
    assert [row["case"] for row in json.loads(proctor("approve", "desk.yaml", *options, "--json").out)] == ["refund"]
    assert "greeting" not in proctor("test", "--gate", "--plan", *options).out


def test_a_selection_that_fits_nothing_in_a_run_is_said_as_it_was_typed(proctor: Command, suite: Command) -> None:
    suite("desk.yaml", text=TAGGED)
    proctor("test")
    ended = proctor("show", "last", "--tag", "nowhere")
    assert ended.code == 2
    assert "has no case for --tag nowhere" in ended.err


@pytest.mark.process
def test_last_failed_after_a_kill_includes_what_never_ran(proctor: Command, suite: Command, project: Path) -> None:
    """One case failed, then the process was killed: the others have not passed."""
    (project / "kills.py").write_text(
        "import os, signal\n\n\ndef agent(message):\n"
        "    if message == 'kill' and not os.path.exists('killed'):\n"
        "        open('killed', 'w').close()\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return 'yes'\n"
    )
    cases = "".join(
        f"  - {{id: {name}, input: {text}, expected: {expected}}}\n"
        for name, text, expected in [
            ("passes", "hi", "'yes'"),
            ("fails", "hi", "'no'"),
            ("kills", "kill", "'yes'"),
            ("never", "hi", "'yes'"),
        ]
    )
    suite(text=f"agent: kills.py:agent\nsettings: {{parallel: 1}}\ncases:\n{cases}")
    subprocess.run([*COMMAND, "test"], cwd=project, capture_output=True, timeout=60, check=False)
    assert _ran(proctor("test", "--lf", "--json", "-")) == ["fails", "kills", "never"]


def test_last_failed_after_maxfail_includes_what_never_ran(proctor: Command, suite: Command) -> None:
    cases = "".join(f"  - {{id: c{n}, input: a, expected: {'b' if n == 0 else 'a'}}}\n" for n in range(30))
    suite(text="agent: agents.py:echo\nsettings: {parallel: 1}\ncases:\n" + cases)
    first = _ran(proctor("test", "--maxfail", "1", "--json", "-"))
    assert len(first) < 30
    again = _ran(proctor("test", "--lf", "--json", "-"))
    assert again == ["c0", *(f"c{n}" for n in range(30) if f"c{n}" not in first)]
