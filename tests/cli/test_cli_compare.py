"""`proctor compare`, and the names by which every command finds runs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import proctor as package

Command = Callable[..., Any]

SUITE = """
name: desk
agent: app.py:agent
cases: [{CASES}]
"""
APP = """
from pathlib import Path


def agent(question):
    return Path("prefix.txt").read_text() + question
"""
WORDS = ("one", "two", "three", "four", "five", "six", "seven")


@pytest.fixture
def desk(project: Path) -> Callable[..., None]:
    """Writes a suite of seven cases and an agent that says `prefix` before it repeats what it was asked."""

    def write(prefix: str = "", *, tags: str = "", expected: str = "{word}") -> None:
        cases = ", ".join(
            f"{{id: {word}, input: {word}, expected: {expected.format(word=word)}{tags if at < 2 else ''}}}"
            for at, word in enumerate(WORDS)
        )
        (project / "suite.yaml").write_text(SUITE.replace("{CASES}", cases))
        (project / "prefix.txt").write_text(prefix)
        (project / "app.py").write_text(APP)

    return write


def two_runs(proctor: Command, desk: Command) -> None:
    desk()
    assert proctor("test", "--name", "base", "-q").code == 0
    desk("Well. ")
    assert proctor("test", "-q").code == 1


def test_a_worse_agent_is_called_worse_with_the_cases_that_broke(proctor: Command, desk: Command) -> None:
    two_runs(proctor, desk)
    done = proctor("compare")
    assert done.code == 0
    assert "broken: 7" in done.out
    assert "desk/one" in done.out
    assert "1/1 → 0/1" in done.out
    assert done.out.splitlines()[-1].startswith(
        "Worse: 7 of 7 cases broken, pass rate 100% → 0% (mid-p McNemar test, p ="
    )


def test_a_regression_fails_the_command_only_if_asked(proctor: Command, desk: Command) -> None:
    two_runs(proctor, desk)
    assert proctor("compare", "base", "last", "--fail-on", "regression").code == 1
    assert proctor("compare", "last", "base", "--fail-on", "regression").code == 0
    assert proctor("compare", "last", "last", "--fail-on", "regression", "-q").out.startswith("No change: all 7 cases")


def test_the_comparison_is_written_as_json_markdown_and_html(proctor: Command, desk: Command, project: Path) -> None:
    two_runs(proctor, desk)
    done = proctor("compare", "--json", "c.json", "--md", "c.md", "--html", "c.html")
    assert done.code == 0
    data = json.loads((project / "c.json").read_text())
    schema = Path(package.__file__).parent / "schemas" / "comparison.schema.json"
    jsonschema_rs.validator_for(json.loads(schema.read_text())).validate(data)
    assert (data["verdict"], data["counts"]["broken"]) == ("regression", 7)
    assert "### Broken (7)" in (project / "c.md").read_text()
    assert "Content-Security-Policy" in (project / "c.html").read_text()
    assert json.loads(proctor("compare", "base", "last", "--json", "-").out)["compared"] == 7


def test_only_chosen_cases_are_compared(proctor: Command, desk: Command) -> None:
    desk(tags=", tags: [fast]")
    proctor("test", "-q")
    proctor("test", "-q")
    assert "all 2 cases" in proctor("compare", "--tag", "fast").out
    assert "the one compared case" in proctor("compare", "-k", "seven").out
    assert "all 7 cases" in proctor("compare", "--suite", "desk").out
    refused = proctor("compare", "--suite", "dusk")
    assert (refused.code, "is selected" in refused.err) == (2, True)


def test_one_case_is_shown_step_by_step_with_the_place_where_it_parts(proctor: Command, desk: Command) -> None:
    two_runs(proctor, desk)
    done = proctor("compare", "--case", "two")
    assert '>>> first difference (sentence): "two" → "Well."' in done.out
    data = json.loads(proctor("compare", "--case", "two", "--json", "-").out)
    assert data["divergence"]["kind"] == "sentence"
    missing = proctor("compare", "--case", "tow")
    assert (missing.code, "did you mean 'two'" in missing.err) == (2, True)


def test_changed_evaluators_are_not_compared_until_both_runs_are_rescored(proctor: Command, desk: Command) -> None:
    desk()
    proctor("test", "-q")
    desk(expected="'{word}!'")
    proctor("test", "-q")
    done = proctor("compare", "--fail-on", "regression")
    assert done.code == 3
    assert "not comparable: 7" in done.out
    assert "the expectation of the case changed" in done.out
    again = proctor("compare", "--rescore", "--fail-on", "regression")
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("No change: all 7 cases ended as before, pass rate 0% → 0%")


def test_runs_without_a_case_in_common_end_in_one_sentence(proctor: Command, desk: Command, suite: Command) -> None:
    desk()
    proctor("test", "suite.yaml", "-q")
    suite("other.yaml")
    proctor("test", "other.yaml", "-q")
    done = proctor("compare", "--json", "c.json")
    assert (done.code, done.out) == (2, "")
    assert "have no case in common" in done.err
    assert not Path("c.json").exists()


def test_a_run_of_errors_alone_says_so_and_ends_with_4(proctor: Command, suite: Command, project: Path) -> None:
    suite()
    proctor("test", "-q")
    suite(check="raises")
    proctor("test", "-q")
    done = proctor("compare")
    assert done.code == 4
    assert done.out.splitlines()[-1].startswith(
        "Nothing can be compared: 1 case cannot be compared (no result in the second run (error"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["last~5"], 2, "no run 'last~5'"),
        (["gone.jsonl"], 2, "No such file"),
        (["-", "-"], 2, "only one of the two runs"),
        (["--json", "-", "--md", "-"], 2, "would both go to standard output"),
        (["last@nobody"], 2, "has no agent"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    proctor: Command, desk: Command, arguments: list[str], code: int, told: str
) -> None:
    desk()
    proctor("test", "-q")
    done = proctor("compare", *arguments, *(["last"] if len(arguments) == 1 else []))
    assert (done.code, len(done.err.splitlines())) == (code, 1)
    assert told in done.err


def test_one_run_alone_has_nothing_before_it(proctor: Command, desk: Command) -> None:
    desk()
    proctor("test", "-q")
    done = proctor("compare")
    assert (done.code, "there is only 1 run" in done.err) == (2, True)


def test_an_exported_run_is_named_wherever_a_run_can_be(proctor: Command, desk: Command, project: Path) -> None:
    two_runs(proctor, desk)
    assert proctor("export", "base", "-o", "base.jsonl").code == 0
    for command in (["compare", "base.jsonl", "last"], ["show", "base.jsonl"], ["analyze", "base.jsonl"]):
        assert proctor(*command).code == 0
    assert proctor("rescore", "base.jsonl", "-q").code == 0
    refused = proctor("grade", "base.jsonl")
    assert refused.code != 0
    assert proctor("import", "--store", "elsewhere", "base.jsonl").out.startswith("imported run ")
    assert proctor("show", "--store", "elsewhere", "base", "-q").code == 0


def test_a_run_comes_through_a_pipe(proctor: Command, desk: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(proctor, desk)
    text = proctor("export", "base").out
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert proctor("compare", "-", "last", "-q").out.startswith("Worse: 7 of 7 cases broken")
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert proctor("import", "-", "--store", "elsewhere").code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("no run at all"))
    assert proctor("show", "-").err == "error: standard input:1: not a file that `proctor runs export` wrote\n"


def test_a_bad_name_is_refused_before_anything_runs(proctor: Command, desk: Command) -> None:
    desk()
    done = proctor("test", "--name", "last")
    assert (done.code, "cannot be 'last'" in done.err) == (2, True)
    assert not Path(".proctor").exists()


def test_the_name_of_a_run_is_in_its_reports(proctor: Command, desk: Command) -> None:
    two_runs(proctor, desk)
    assert json.loads(proctor("show", "base", "--json", "-").out)["run"]["name"] == "base"
    assert "[base]" in proctor("runs").out


def test_python_compares_runs_too(proctor: Command, desk: Command, project: Path) -> None:
    two_runs(proctor, desk)
    found = package.compare("base", "last")
    assert (found.verdict, len(found.groups["broken"])) == ("regression", 7)
    suites = package.load("suite.yaml")
    before, after = (package.run(suites, agent=lambda text, say=say: say + text) for say in ("", "Hm. "))
    assert package.compare(before, after).verdict == "regression"


def test_a_comment_for_a_pull_request_is_markdown_with_a_marker(proctor: Command, desk: Command, project: Path) -> None:
    desk()
    proctor("test", "--name", "before")
    desk("wrong ")
    proctor("test")
    ended = proctor("compare", "before", "last", "--pr", "--report-url", "https://ci.example/r.html")
    assert ended.code == 0
    assert ended.out.startswith("<!-- proctor:pull-request default -->\n## Proctor: ")
    assert "Compared with before: 7 broken." in ended.out
    assert proctor("compare", "before", "last", "--pr", "--md", "c.md", "--fail-on", "regression").code == 1
    assert (project / "c.md").read_text(encoding="utf-8").startswith("<!-- proctor:pull-request default -->")
    alone = proctor("compare", "nothing", "last", "--pr")
    assert "No earlier run to compare with." in alone.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pr", "--json", "c.json"), "cannot be combined with --json"),
        (("--pr", "--case", "one"), "cannot be combined with --case"),
        (("--report-url", "https://x"), "--report-url needs --pr"),
        (("--pr", "--report-url", "javascript:alert(1)"), "--report-url must be a URL with http"),
        (("--pr", "--pr-key", "a-->b"), "--pr-key must be"),
    ],
)
def test_options_of_a_comment_that_make_no_sense_are_refused(
    proctor: Command, desk: Command, options: tuple[str, ...], told: str
) -> None:
    desk()
    ended = proctor("compare", "last", "last", *options)
    assert ended.code == 2
    assert told in ended.err


def test_a_case_to_compare_is_named_by_its_file_too(proctor: Command, desk: Command, project: Path) -> None:
    desk()
    proctor("test")
    proctor("test")
    [suite] = project.glob("*.yaml")
    by_file = proctor("compare", "--case", f"{suite.name}::one", "--json", "-")
    assert json.loads(by_file.out)["case"] == "one"
    assert proctor("compare", "--case", f"{suite.name}::gone").code == 2
