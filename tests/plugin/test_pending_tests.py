"""A check that nobody could decide: the test goes on, a failure wins, otherwise the test is pending, never green."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

pytest_plugins = "pytester"
pytestmark = pytest.mark.needs("deepeval")

HEAD = """
import asyncio, threading, unittest
import pytest
from proctor.compat.deepeval import BaseMetric, FaithfulnessMetric, HallucinationMetric, LLMTestCase
from proctor.compat.deepeval import assert_test, evaluate

def case(answer):
    return LLMTestCase(
        input="How long do refunds take?", actual_output=answer,
        retrieval_context=["Refunds take 5 days."], context=["Refunds take 5 days."],
    )

GOOD, BAD = case("Refunds take 5 days."), case("Refunds take 15 days.")
OPEN = case("Somebody who paid gets everything back 5 days later.")
metric = FaithfulnessMetric(threshold=0.7)
hallucination = HallucinationMetric()
"""
FIX = "pending: Faithfulness needs a model; set --proctor-judge, or --proctor-pending=skip"


def run(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_it=HEAD + body)
    return pytester.runpytest(*options)


FALSE_GREEN = "def test_answers():\n    for c in (OPEN, BAD): assert_test(c, [metric])\n"


@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_a_pending_check_does_not_hide_a_failure_after_it(pytester: pytest.Pytester, mode: str) -> None:
    session = run(pytester, FALSE_GREEN, f"--proctor-pending={mode}")

    session.assert_outcomes(failed=1)
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    session.stdout.fnmatch_lines(["*it says “15 days” instead of “5 days”*", "*- pending -*", "pending: Faithfulness*"])


TWO_PENDING = """
def test_open():
    assert_test(OPEN, [metric])
    assert_test(GOOD, [metric])
def test_also_open(): assert_test(OPEN, [metric])
def test_good(): assert_test(GOOD, [metric])
"""


def test_a_pending_test_has_its_own_word_and_is_red(pytester: pytest.Pytester) -> None:
    session = run(pytester, TWO_PENDING, "-v", "--junitxml=own.xml")

    assert session.parseoutcomes() == {"passed": 1, "pending": 2}
    assert session.ret == pytest.ExitCode.TESTS_FAILED
    session.stdout.fnmatch_lines(
        ["test_it.py::test_open PENDING*", "test_it.py::test_good PASSED*", f"PENDING test_it.py::test_open - {FIX}"]
    )
    (suite,) = ElementTree.parse(pytester.path / "own.xml").iter("testsuite")
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("2", "0")
    messages = [failure.attrib["message"] for failure in suite.iter("failure")]
    assert messages == [FIX, FIX]


def test_the_letter_of_a_pending_test_is_p(pytester: pytest.Pytester) -> None:
    run(pytester, TWO_PENDING, "-q").stdout.fnmatch_lines(["PP.*"])


@pytest.mark.parametrize("by", ["option", "ini"])
def test_pending_tests_can_be_skips(pytester: pytest.Pytester, by: str) -> None:
    if by == "ini":
        pytester.makeini("[pytest]\nproctor_pending = skip\n")
    session = run(pytester, TWO_PENDING, "--junitxml=own.xml", *(["--proctor-pending=skip"] if by == "option" else []))

    assert session.parseoutcomes() == {"passed": 1, "pending": 2}
    assert session.ret == pytest.ExitCode.OK
    (suite,) = ElementTree.parse(pytester.path / "own.xml").iter("testsuite")
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "2")


def test_the_command_line_wins_over_the_ini_file_and_other_words_are_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nproctor_pending = skip\n")
    assert run(pytester, TWO_PENDING, "--proctor-pending=fail").ret == pytest.ExitCode.TESTS_FAILED
    pytester.makeini("[pytest]\nproctor_pending = ignore\n")
    session = pytester.runpytest()
    assert session.ret == pytest.ExitCode.USAGE_ERROR
    session.stderr.fnmatch_lines(["*proctor_pending must be fail or skip, not 'ignore'"])


WAYS = {
    "sync inside an async test": """
async def use():
    assert_test(OPEN, [metric])
    assert evaluate([GOOD], [metric]).test_results[0].success
def test_it(): asyncio.run(use())
""",
    "in a thread": """
def test_it():
    thread = threading.Thread(target=lambda: assert_test(OPEN, [metric]))
    thread.start()
    thread.join()
""",
    "unittest": """
class TestIt(unittest.TestCase):
    def test_it(self): assert_test(OPEN, [metric])
""",
    "a class": """
class TestIt:
    def test_it(self): assert_test(OPEN, [metric])
""",
    "a fixture before": """
@pytest.fixture
def checked(): assert_test(OPEN, [metric])
def test_it(checked): pass
""",
    "score >= 0.7": "def test_it(): assert metric.measure(OPEN) >= 0.7\n",
    "score < 0.3": "def test_it(): assert hallucination.measure(OPEN) < 0.3\n",
    "over several lines": "def test_it():\n    assert (\n        metric.measure(OPEN)\n        >= 0.7\n    ), 'low'\n",
    "no assertion of its own": """
def test_it():
    metric.measure(OPEN)
    if metric.score < 0.7: pytest.fail("too low")
""",
    "a negated comparison": "def test_it(): assert not hallucination.measure(OPEN) > 0.5\n",
    "a mean": "def test_it(): assert not sum([metric.measure(OPEN), 1.0]) / 2 < 0.7\n",
    "is_successful": "def test_it():\n    metric.measure(OPEN)\n    assert metric.is_successful()\n",
    "success": "def test_it():\n    metric.measure(OPEN)\n    assert metric.success, metric.reason\n",
    "only measured": "def test_it(): metric.measure(OPEN)\n",
    "score != 0": "def test_it(): assert metric.measure(OPEN) != 0\n",
    "score == 1.0": "def test_it(): assert metric.measure(OPEN) == pytest.approx(1.0)\n",
    "a score that is true": "def test_it(): assert metric.measure(OPEN)\n",
    "a plain number made of it": """
import math
def test_it():
    if math.fsum([metric.measure(OPEN), 1.0]) / 2 < 0.7: pytest.fail("too low")
""",
    "success is not False": """
def test_it():
    metric.measure(OPEN)
    assert metric.is_successful() is not False
""",
    "assertGreater": """
class TestIt(unittest.TestCase):
    def test_it(self): self.assertGreaterEqual(metric.measure(OPEN), 0.7)
""",
    "assertTrue": """
class TestIt(unittest.TestCase):
    def test_it(self):
        metric.measure(OPEN)
        self.assertTrue(metric.is_successful())
""",
    "evaluate": "def test_it(): evaluate([OPEN], [metric])\n",
    "evaluate, and nothing failed": """
def test_it():
    assert not [r for r in evaluate([GOOD, OPEN], [metric]).test_results if r.success is False]
""",
    "a score of evaluate": "def test_it():\n    [r] = evaluate([OPEN], [metric]).test_results\n"
    "    assert r.metrics_data[0].score >= 0.7\n",
    "a skip after it": "def test_it():\n    assert_test(OPEN, [metric])\n    pytest.skip('later')\n",
    "strict xfail": "@pytest.mark.xfail(strict=True)\ndef test_it(): assert_test(OPEN, [metric])\n",
    "a metric that uses another": """
class Both(BaseMetric):
    async def a_measure(self, c):
        self.score = await metric.a_measure(c)
        self.success = not self.score < 0.5
    def is_successful(self): return self.success
def test_it(): assert_test(OPEN, [Both()])
""",
    "an evaluator called directly": """
import proctor
def test_it():
    seen = proctor.Evaluable(eval_input=[proctor.NamedData("q", "How long?")],
        eval_output=[proctor.NamedData("a", OPEN.actual_output)], retrieval_context=("Refunds take 5 days.",))
    assert proctor.evaluate_sync(proctor.Faithfulness(), seen).score > 0.5
""",
    "assert_pass": """
import proctor
def test_it():
    seen = proctor.Evaluable(eval_input=[proctor.NamedData("q", "How long?")],
        eval_output=[proctor.NamedData("a", OPEN.actual_output)], retrieval_context=("Refunds take 5 days.",))
    proctor.assert_pass_sync(None, ["How long?"], [proctor.Faithfulness()], evaluables=[seen])
""",
    "expect": """
import proctor
def test_it(): proctor.expect("Sorry.", evaluators=[{"GEval": {"criteria": "polite"}}])
""",
    "assert_passed": """
import proctor
def test_it():
    case = proctor.Case("Hello", evaluators=[{"GEval": {"criteria": "polite"}}])
    proctor.run(proctor.Suite("s", [case]), agent=lambda question: "Hi").assert_passed()
""",
}


@pytest.mark.parametrize("body", WAYS.values(), ids=WAYS)
def test_every_way_to_leave_a_result_open_is_pending(pytester: pytest.Pytester, body: str) -> None:
    session = run(pytester, body)

    assert session.parseoutcomes() == {"pending": 1}
    assert session.ret == pytest.ExitCode.TESTS_FAILED


def test_assertions_after_a_pending_score_run_only_if_nothing_was_raised(pytester: pytest.Pytester) -> None:
    body = "def test_it():\n    for c in (OPEN, BAD): assert metric.measure(c) >= 0.7\n"

    run(pytester, body, "--proctor-pending=skip").assert_outcomes(failed=1)


def test_pytest_raises_does_not_take_a_pending_check_for_a_failure(pytester: pytest.Pytester) -> None:
    body = "def test_it():\n    with pytest.raises(AssertionError): assert_test(OPEN, [metric])\n"

    session = run(pytester, body)

    session.assert_outcomes(failed=1)
    session.stdout.fnmatch_lines(["*DID NOT RAISE*", "*- pending -*"])


def test_a_test_that_may_fail_or_pass_is_not_held_up(pytester: pytest.Pytester) -> None:
    session = run(pytester, "@pytest.mark.xfail\ndef test_it(): assert_test(OPEN, [metric])\n")

    session.assert_outcomes(xfailed=1)
    assert session.ret == pytest.ExitCode.OK


@pytest.mark.process
def test_a_pending_check_in_a_forked_process_is_not_lost(pytester: pytest.Pytester) -> None:
    body = """
import multiprocessing
def check(number): assert_test(OPEN, [metric])
def test_it():
    with multiprocessing.get_context("fork").Pool(1) as pool: pool.map(check, [1])
"""
    pytester.makepyfile(test_it=HEAD + body)

    pytester.runpytest_subprocess().assert_outcomes(failed=1)


SUBTESTS = """
def test_it(subtests):
    for c in (OPEN, GOOD):
        with subtests.test(): assert_test(c, [metric])
"""


def test_a_pending_check_of_a_subtest_is_one_of_its_test(pytester: pytest.Pytester) -> None:
    outcomes = run(pytester, SUBTESTS).parseoutcomes()
    assert (outcomes["pending"], outcomes.get("failed", 0)) == (1, 0)

    outcomes = run(pytester, SUBTESTS.replace("GOOD", "BAD")).parseoutcomes()
    assert outcomes["failed"] >= 1


def test_no_subtest_with_a_pending_check_is_called_passed(pytester: pytest.Pytester) -> None:
    body = """
def test_it(subtests):
    for c in (OPEN, OPEN, GOOD):
        with subtests.test(): assert_test(c, [metric])
    with subtests.test(): assert metric.measure(OPEN) >= 0.7
"""
    session = run(pytester, body, "-v", "--junitxml=own.xml")

    assert session.stdout.str().count("SUBPENDING") == 3
    session.stdout.fnmatch_lines(["*1 subtests passed, 3 subtests pending, 1 pending*"])
    (suite,) = ElementTree.parse(pytester.path / "own.xml").iter("testsuite")
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("1", "0")


SHARED = """
@pytest.fixture(scope="module")
def checked(): assert_test(OPEN, [metric])
def test_first(checked): pass
def test_second(checked): pass
def test_other(): pass
"""


@pytest.mark.parametrize("options", [(), ("--reruns", "1")])
def test_a_pending_check_of_a_shared_fixture_is_one_of_all_its_tests(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    outcomes = run(pytester, SHARED, *options).parseoutcomes()

    assert {name: outcomes[name] for name in ("passed", "pending")} == {"passed": 1, "pending": 2}


def test_a_pending_check_after_a_test_is_reported_for_it(pytester: pytest.Pytester) -> None:
    session = run(
        pytester, "@pytest.fixture\ndef late():\n    yield\n    assert_test(OPEN, [metric])\ndef test_it(late): pass\n"
    )

    assert session.parseoutcomes() == {"passed": 1, "pending": 1}
    assert session.ret == pytest.ExitCode.TESTS_FAILED


PARAMETRISED = """
@pytest.mark.parametrize("c", [OPEN, GOOD, BAD, OPEN], ids=["open", "good", "bad", "open again"])
def test_it(c): assert_test(c, [metric])
"""


def test_each_parameter_has_its_own_outcome(pytester: pytest.Pytester) -> None:
    assert run(pytester, PARAMETRISED).parseoutcomes() == {"passed": 1, "failed": 1, "pending": 2}


def test_x_stops_at_a_pending_test_and_lf_runs_it_again(pytester: pytest.Pytester) -> None:
    assert run(pytester, PARAMETRISED, "-x").parseoutcomes() == {"pending": 1}
    assert pytester.runpytest("--lf", "-k", "not bad").parseoutcomes()["pending"] == 1


@pytest.mark.process
@pytest.mark.parametrize("options", [("-n", "2"), ("--reruns", "1"), ("-n", "1", "--maxfail", "1")])
def test_other_plugins_count_a_pending_test_as_a_failure(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    pytester.makepyfile(test_it=HEAD + TWO_PENDING)

    session = pytester.runpytest_subprocess(*options)

    assert session.ret != 0
    outcomes = session.parseoutcomes()
    if "--maxfail" in options:
        assert "pending" in outcomes
    else:
        assert (outcomes["passed"], outcomes["pending"], outcomes.get("rerun", 0)) == (
            1,
            2,
            2 * ("--reruns" in options),
        )


@pytest.mark.process
def test_fast_skips_a_check_and_goes_on(pytester: pytest.Pytester) -> None:
    body = """
from proctor.compat.deepeval import GEval, LLMTestCaseParams
from proctor.compat.deepeval.metrics import KeywordsMetric
polite = GEval(name="Polite", criteria="polite", evaluation_params=[LLMTestCaseParams.ACTUAL_OUTPUT])
def test_good():
    assert_test(GOOD, [polite])
    assert_test(GOOD, [KeywordsMetric(any_of=["days"])])
def test_bad():
    assert_test(GOOD, [polite])
    assert_test(GOOD, [KeywordsMetric(any_of=["weeks"])])
"""
    pytester.makepyfile(test_it=HEAD + body)
    pytester.runpytest_subprocess("--proctor-fast").assert_outcomes(skipped=1, failed=1)


AGENT = """
import proctor

def agent(question): return question.upper()

def unsure(evaluable): raise proctor.EvaluationPending("a person looks at it")
"""
SKIPPED = {"id": "later", "input": "x", "expected": "X", "skip": "not yet"}
QUARANTINED = {"id": "known", "input": "x", "expected": "y", "quarantine": {"reason": "bug", "until": "2099-01-01"}}
OPEN = {"id": "open", "input": "x", "evaluators": ["agent.py:unsure"]}


@pytest.mark.parametrize("cases", [[SKIPPED], [QUARANTINED], [SKIPPED, QUARANTINED], [OPEN]], ids=lambda c: c[0]["id"])
@pytest.mark.parametrize(("options", "code"), [((), 1), (("--proctor-pending=skip",), 0)])
def test_a_suite_without_any_result_is_not_green_unless_that_was_chosen(
    pytester: pytest.Pytester, cases: list[object], options: tuple[str, ...], code: int
) -> None:
    pytester.makepyfile(agent=AGENT)
    suite = {"name": "faq", "agent": "agent.py:agent", "cases": cases}
    (pytester.path / "faq.proctor.json").write_text(json.dumps(suite))

    session = pytester.runpytest(*options)

    assert session.ret == code
    if not code:
        return
    session.stdout.fnmatch_lines(
        ["PENDING *::open - pending: unsure needs a grade; use `proctor grade`, or --proctor-pending=skip"]
        if cases == [OPEN]
        else ["pytest fails: nothing ran that could pass or fail*"]
    )


def test_a_pending_case_in_quarantine_is_an_expected_failure(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(agent=AGENT)
    cases = [OPEN | {"quarantine": QUARANTINED["quarantine"]}, {"id": "good", "input": "x", "expected": "X"}]
    (pytester.path / "faq.proctor.json").write_text(json.dumps({"agent": "agent.py:agent", "cases": cases}))

    session = pytester.runpytest()

    session.assert_outcomes(passed=1, xfailed=1)
    assert session.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("also_passes", [True, False])
def test_suites_without_an_agent_are_not_green_by_themselves(pytester: pytest.Pytester, also_passes: bool) -> None:
    (pytester.path / "faq.proctor.json").write_text(json.dumps({"cases": [{"id": "a", "input": "x", "expected": "X"}]}))
    if also_passes:
        pytester.makepyfile("def test_other(): pass\n")

    assert pytester.runpytest().ret == (0 if also_passes else 1)


@pytest.mark.process
def test_outside_of_pytest_a_pending_check_raises(pytester: pytest.Pytester) -> None:
    script = HEAD + "assert_test(OPEN, [metric])\n"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "AssertionError: pending: Faithfulness" in done.stderr
