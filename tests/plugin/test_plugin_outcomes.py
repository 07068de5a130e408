"""What becomes of a trial in pytest: outcomes, failures, JUnit, the summary, selection, several processes."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest_plugins = "pytester"

PROJECT = '''
import asyncio, time
from pathlib import Path
import proctor


@proctor.tool
def look_up(word):
    """A tool."""
    return {"found": word}


def agent(question):
    with Path(__file__).with_name("asked.log").open("a") as log:
        log.write(question + "\\n")
    look_up(word=question)
    if question == "raise":
        raise KeyError("lost")
    if question == "hang":
        time.sleep(60)
    return question.upper()


def unsure(evaluable):
    raise proctor.EvaluationPending("a person looks at it")


def broken(evaluable):
    raise ZeroDivisionError("no luck")


def judged(evaluable):
    raise AssertionError


judged.needs_judge = True
'''
CASES = {
    "right": {"expected": "RIGHT"},
    "wrong": {"expected": "left", "tools": [{"name": "look_up", "args": {"word": "up"}}]},
    "raise": {"expected": "x"},
    "unmeasured": {"expected": "x", "evaluators": ["agent.py:broken"]},
    "open": {"evaluators": ["agent.py:unsure"]},
    "later": {"expected": "x", "skip": "not yet"},
}


def write_suite(folder: Path, *names: str, **rest: object) -> None:
    cases = []
    for name in names:
        said = dict(CASES.get(name, {"expected": name.upper()}))
        tools = said.pop("tools", None)
        expected = {"output": said.pop("expected", "x")} | ({"tools": tools} if tools else {})
        cases.append({"id": name, "input": name, "expected": expected} | said)
    document = {"name": "faq", "agent": "agent.py:agent", "cases": cases, **rest}
    (folder / "faq.proctor.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "agent.py").write_text(PROJECT)
    return pytester


def inputs_sent(project: pytest.Pytester) -> list[str]:
    log = project.path / "asked.log"
    return sorted(log.read_text().split()) if log.exists() else []


def stored_trials(project: pytest.Pytester) -> int:
    """How many trials are in the store."""
    database = project.path / ".proctor" / "results.db"
    if not database.exists():
        return 0
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(database)) as connection:
        return int(connection.execute("SELECT count(*) FROM trials").fetchone()[0])
    return 0


def test_each_outcome_has_its_pytest_outcome(project: pytest.Pytester) -> None:
    write_suite(project.path, *CASES)

    session = project.runpytest("-rs")

    assert session.parseoutcomes() == {"passed": 1, "failed": 2, "errors": 1, "skipped": 1, "pending": 1}
    session.stdout.fnmatch_lines(["PENDING faq.proctor.json::open - *", "*SKIPPED*not yet"])


LOCKED_OUT = """

def locked_out(question):
    import os

    agent(question)
    return os.environ["NO_SUCH_API_KEY"]
"""


def test_a_problem_that_all_trials_have_stops_the_suite(project: pytest.Pytester) -> None:
    (project.path / "agent.py").write_text(PROJECT + LOCKED_OUT)
    names = [f"q{number}" for number in range(12)]
    write_suite(project.path, *names, agent="agent.py:locked_out", settings={"parallel": 1})

    session = project.runpytest()

    session.assert_outcomes(errors=12)
    session.stdout.fnmatch_lines(["ERROR*NO_SUCH_API_KEY is not set; the other 9 trials would fail the same way*"])
    assert len(inputs_sent(project)) == stored_trials(project) == 3


@pytest.mark.parametrize("cases", [("open",), ("right", "open")])
def test_a_session_whose_verdict_is_inconclusive_is_not_green(project: pytest.Pytester, cases: tuple[str, ...]) -> None:
    write_suite(project.path, *cases)

    session = project.runpytest()

    assert session.ret == pytest.ExitCode.TESTS_FAILED
    session.stdout.fnmatch_lines(["PENDING *unsure needs a grade*", "INCONCLUSIVE  *"])


def test_a_failure_shows_input_answer_calls_and_reasons_without_s(project: pytest.Pytester) -> None:
    write_suite(project.path, "wrong")

    session = project.runpytest()

    session.stdout.fnmatch_lines(
        [
            "faq/wrong: failed",
            "input*wrong",
            "expected*left",
            "output*WRONG",
            "calls*expected*| actual",
            '*look_up(word="up")*| look_up(word="wrong") -> {"found": "wrong"}*',
            "*FAILED faq.proctor.json::wrong - *",
        ]
    )
    assert "Traceback" not in session.stdout.str()


def test_an_error_is_not_reported_as_a_failure_of_the_agent(project: pytest.Pytester) -> None:
    write_suite(project.path, "unmeasured")

    session = project.runpytest()

    session.stdout.fnmatch_lines(["*ERROR at setup of unmeasured*", "Infrastructure or evaluator error*", "*no luck*"])


def test_an_agent_that_raises_or_hangs_fails_and_other_cases_continue(project: pytest.Pytester) -> None:
    write_suite(project.path, "raise", "hang", "right", settings={"timeout": 0.5})

    session = project.runpytest()

    session.assert_outcomes(passed=1, failed=2)
    session.stdout.fnmatch_lines(["*the agent raised KeyError: 'lost'*", "*the agent gave no answer within 0.5 s*"])


@pytest.mark.process
def test_the_summary_and_the_store_agree_with_proctor_test(project: pytest.Pytester) -> None:
    write_suite(project.path, *CASES)
    with_pytest = project.runpytest("-q")
    of_pytest = junit_outcomes(project, "show", "last")
    of_proctor = junit_outcomes(project, "test", "faq.proctor.json")

    assert of_pytest == of_proctor
    with_pytest.stdout.fnmatch_lines(
        ["*- proctor -*", "faq: 1 passed, 2 failed, 1 error, 1 skipped, 1 pending; pass rate 33.3% ?*?*", "FAILED  *"]
    )


def junit_outcomes(project: pytest.Pytester, *command: str) -> dict[str, str]:
    report = project.path / "report.xml"
    subprocess.run(
        [sys.executable, "-m", "proctor", *command, "--junit", str(report)], capture_output=True, check=False
    )
    cases = ElementTree.parse(report).iter("testcase")
    return {case.attrib["name"]: next((child.tag for child in case), "passed") for case in cases}


def test_pytests_own_junit_report_agrees_and_has_scores_as_properties(project: pytest.Pytester) -> None:
    write_suite(project.path, *CASES)
    project.runpytest("--junitxml=own.xml")
    cases = {case.attrib["name"]: case for case in ElementTree.parse(project.path / "own.xml").iter("testcase")}

    tags = {name: [child.tag for child in case if child.tag != "properties"] for name, case in cases.items()}
    right = {item.attrib["name"]: item.attrib["value"] for item in cases["right"].iter("property")}

    assert tags["right"] == ["system-out"] or tags["right"] == []
    assert [tags[name][0] for name in ("wrong", "raise", "unmeasured", "open", "later")] == [
        "failure", "failure", "error", "failure", "skipped",
    ]  # fmt: skip
    assert right["proctor.outcome"] == "passed"
    assert any(name.startswith("proctor.score.") for name in right)


def test_x_stops_at_the_first_failure_and_runs_no_further_case(project: pytest.Pytester) -> None:
    write_suite(project.path, "right", "wrong", "never", "ever")

    session = project.runpytest("-x")

    session.assert_outcomes(passed=1, failed=1)
    assert inputs_sent(project) == ["right", "wrong"]


def test_every_session_runs_the_agent_again(project: pytest.Pytester) -> None:
    write_suite(project.path, "right")
    project.runpytest()

    project.runpytest().stdout.no_fnmatch_line("* reused from*")

    assert inputs_sent(project) == ["right", "right"]


def test_lf_runs_only_failed_cases_again(project: pytest.Pytester) -> None:
    write_suite(project.path, "right", "wrong")
    project.runpytest()

    project.runpytest("--lf").assert_outcomes(failed=1)

    assert inputs_sent(project) == ["right", "wrong", "wrong"]


def test_answers_of_earlier_sessions_are_reused_on_request(project: pytest.Pytester) -> None:
    write_suite(project.path, "right", "wrong")
    project.runpytest()

    again = project.runpytest("--proctor-reuse")

    again.assert_outcomes(passed=1, failed=1)
    again.stdout.fnmatch_lines(["*The answer is from an earlier session*", "2 answers reused*--proctor-reuse*"])
    assert inputs_sent(project) == ["right", "wrong"]
    (project.path / "agent.py").write_text(PROJECT + "\n# changed\n")
    project.runpytest("--proctor-reuse").stdout.no_fnmatch_line("* reused from*")
    assert len(inputs_sent(project)) == 4


def test_the_ini_file_can_request_reuse(project: pytest.Pytester) -> None:
    write_suite(project.path, "right")
    project.runpytest()
    project.runpytest("-o", "proctor_reuse=true").stdout.fnmatch_lines(["1 answer reused*"])

    assert inputs_sent(project) == ["right"]


FLAKY = """
from pathlib import Path

def agent(question):
    with Path("asked.txt").open("a") as file:
        file.write(question + "\\n")
    times = Path("asked.txt").read_text().split().count(question)
    return question.upper() if times > 1 else "not yet"
"""


@pytest.mark.process
@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_a_rerun_runs_the_agent_again_and_the_last_answer_counts(
    pytester: pytest.Pytester, processes: tuple[str, ...]
) -> None:
    pytest.importorskip("pytest_rerunfailures")
    (pytester.path / "agent.py").write_text(FLAKY)
    (pytester.path / "faq.proctor.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "A"}]}'
    )
    (pytester.path / "test_flaky.py").write_text(
        "def test_runner(agent_runner): assert agent_runner.run_test_case('b').actual_output == 'B'\n"
        "def test_suite(proctor_run): proctor_run('other.json').assert_passed()\n"
    )
    (pytester.path / "other.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "c", "input": "c", "expected": "C"}]}'
    )

    session = pytester.runpytest_subprocess("--reruns", "2", "--proctor-agent", "agent.py:agent", *processes)

    assert session.parseoutcomes() == {"passed": 3, "rerun": 3}
    session.stdout.fnmatch_lines(["faq.proctor: 1 passed*", "2 trials re-run by pytest; the last answer counts"])
    assert sorted((pytester.path / "asked.txt").read_text().split()) == list("aabbcc")


@pytest.mark.process
def test_several_processes_store_one_run(project: pytest.Pytester) -> None:
    names = [f"case-{number}" for number in range(8)]
    write_suite(project.path, *names, "wrong", "unmeasured")

    session = project.runpytest_subprocess("-n", "2")

    session.assert_outcomes(passed=8, failed=1, errors=1)
    session.stdout.fnmatch_lines(["faq: 8 passed, 1 failed, 1 error; pass rate *", "10 trials"])
    assert inputs_sent(project) == sorted([*names, "wrong", "unmeasured"])
    listed = subprocess.run([sys.executable, "-m", "proctor", "runs"], capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1
    assert not list((project.path / ".proctor").glob("*.locks"))


@pytest.mark.process
def test_ctrl_c_ends_pytest_and_saves_finished_trials(project: pytest.Pytester) -> None:
    write_suite(project.path, "right", "hang")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest"], cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while "hang" not in inputs_sent(project) or not stored_trials(project):
        assert process.poll() is None
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)

    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "Interrupted" in printed or "KeyboardInterrupt" in printed
    assert "1 passed" in printed
    listed = subprocess.run([sys.executable, "-m", "proctor", "runs"], capture_output=True, text=True, check=True)
    assert "1 of 2 trials" in listed.stdout


@pytest.mark.process
def test_a_terminal_with_only_ascii_works(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    write_suite(project.path, "right", "größe", "wrong")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    session = project.runpytest_subprocess("-s", "-v")

    session.assert_outcomes(passed=2, failed=1)
    session.stdout.fnmatch_lines(["*> Running test case: right", "[*] Tool: look_up"])
    assert "INTERNALERROR" not in session.stdout.str()


@pytest.mark.parametrize("options", [["--collect-only"], ["-k", "right wrong"], ["broken.proctor.json", "."]])
def test_collect_only_stores_no_run(project: pytest.Pytester, options: list[str]) -> None:
    write_suite(project.path, "right", "wrong")
    (project.path / "broken.proctor.json").write_text("{")

    session = project.runpytest(*options)

    assert "nothing was run" not in session.stdout.str()
    assert not (project.path / ".proctor").exists()


@pytest.mark.process
def test_names_that_a_terminal_cannot_print_are_escaped(project: pytest.Pytester) -> None:
    write_suite(project.path, "\ud800\n\x1b[31m", name="\ud801\n\x1b[32m")
    source = (project.path / "agent.py").read_text()
    (project.path / "agent.py").write_text(source.replace("question.upper()", "'no'"))

    for session in (project.runpytest(), project.runpytest_subprocess("-n", "1")):
        session.assert_outcomes(failed=1)
        assert r"\ud801\n\x1b[32m/\ud800\n\x1b[31m: failed" in session.outlines
        assert "\x1b[3" not in session.stdout.str()


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_setup_only_runs_no_agent(project: pytest.Pytester, option: str) -> None:
    write_suite(project.path, "right")

    project.runpytest(option)

    assert inputs_sent(project) == []
    assert not (project.path / ".proctor").exists()


def test_s_shows_each_case_as_it_runs(project: pytest.Pytester) -> None:
    write_suite(project.path, "right")

    project.runpytest("-s").stdout.fnmatch_lines(
        [
            "*Running test case: right",
            "*Tool: look_up",
            "   Arguments:",
            "     - word: right",
            '   Result: {"found": *}',
        ]
    )


def test_fast_skips_evaluators_that_need_a_model_and_says_so(project: pytest.Pytester) -> None:
    write_suite(project.path, "right", evaluators=["ExactMatch"])
    judged = {"agent": "agent.py:agent", "evaluators": ["agent.py:judged"], "cases": [{"id": "a", "input": "a"}]}
    (project.path / "judged.proctor.json").write_text(json.dumps(judged))
    project.makepyfile(
        """
        import pytest

        @pytest.mark.proctor_full
        def test_a(): raise AssertionError

        @pytest.mark.proctor(mode="full")
        def test_b(): raise AssertionError

        def test_c(): pass
        """
    )

    session = project.runpytest("--proctor-fast", "-rs", "--strict-markers")

    session.assert_outcomes(passed=2, skipped=3)
    session.stdout.fnmatch_lines(["*needs a language model (--proctor-fast)*"])


def test_a_mode_that_does_not_exist_is_refused(project: pytest.Pytester) -> None:
    project.makepyfile("import pytest\n@pytest.mark.proctor(mode='ful')\ndef test_a(): pass\n")

    session = project.runpytest("--proctor-fast")

    assert session.ret == pytest.ExitCode.USAGE_ERROR
    session.stderr.fnmatch_lines(["ERROR: *test_a: proctor(mode='ful'): mode is 'full' or 'quick'"])


def test_a_store_that_cannot_be_written_is_an_error_and_not_a_verdict(project: pytest.Pytester) -> None:
    write_suite(project.path, "right")
    (project.path / "taken").write_text("a file")

    session = project.runpytest("--proctor-store", "taken")

    session.assert_outcomes(errors=1)
    assert "INTERNALERROR" not in session.stdout.str()
    assert "Traceback" not in session.stdout.str()


def test_a_changed_environment_shows_in_the_next_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pytester.path / "agent.py").write_text(
        "import os\n\ndef agent(question):\n    with open('asked.txt', 'a') as file:\n        file.write('x')\n"
        "    return os.environ['ANSWER']\n"
    )
    said = [{"role": role, "parts": [{"text": text}]} for role, text in (("user", "Hi"), ("model", "Hello there"))]
    case = {"evalId": "one", "conversation": [{"userContent": said[0], "finalResponse": said[1]}]}
    (pytester.path / "talk.test.json").write_text(json.dumps({"evalSetId": "talk", "evalCases": [case]}))
    for answer, outcome in (("Hello there", "passed"), ("Go away", "failed")):
        monkeypatch.setenv("ANSWER", answer)
        session = pytester.runpytest("--proctor-agent", "agent.py:agent")
        assert session.parseoutcomes() == {outcome: 1}
    assert (pytester.path / "asked.txt").read_text() == "xx"


def test_a_failure_in_quarantine_is_an_expected_failure_until_its_date(project: pytest.Pytester) -> None:
    cases = [
        {"id": day, "input": "x", "expected": "never", "quarantine": {"reason": "later", "until": day}}
        for day in ("2000-01-01", "2099-01-01")
    ]
    document = {"agent": "agent.py:agent", "evaluators": ["ExactMatch"], "cases": cases}
    (project.path / "desk.proctor.json").write_text(json.dumps(document), encoding="utf-8")

    session = project.runpytest("-rxE")

    session.assert_outcomes(xfailed=1, errors=1)
    session.stdout.fnmatch_lines(["*in quarantine until 2099-01-01: later*", "*its quarantine has expired*"])


CHATTY = """
import logging, sys
import proctor

def agent(question):
    print(f"printed {question}\\n", end="")  # in one piece, as the other case prints at the same time
    print("to stderr", question, file=sys.stderr)
    logging.getLogger("chatty").warning("logged %s", question)
    return question

def test_run():
    run = proctor.run([{"id": "inner", "input": "inner", "expected": "x"}], agent)
    print("in the test")
    assert run

def test_ask():
    assert proctor.ask(agent, "asked").text == "x"
"""
CHATTY_SUITE = {
    "agent": "test_chatty.py:agent",
    "cases": [{"id": name, "input": name, "expected": expected} for name, expected in (("bad", "x"), ("good", "good"))],
}


@pytest.mark.process
def test_what_an_agent_prints_is_in_the_sections_of_its_own_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_chatty=CHATTY)
    pytester.path.joinpath("chatty.proctor.yaml").write_text(json.dumps(CHATTY_SUITE))

    shown = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").stdout.str()
    assert "Captured stdout call" in shown and "Captured stderr call" in shown and "Captured log call" in shown
    assert "printed bad" in shown and "to stderr bad" in shown and "logged bad" in shown
    assert "printed good" not in shown
    assert "printed inner" in shown and "in the test" in shown
    assert "printed asked" in shown

    live = pytester.runpytest_subprocess("-q", "-s", "-p", "no:cacheprovider", "chatty.proctor.yaml").stdout.str()
    assert "printed bad" in live and "printed good" in live
    assert "Captured stdout" not in live
