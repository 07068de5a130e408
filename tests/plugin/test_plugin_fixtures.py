"""The fixtures, and the workflow of the loan advisor guide from TEST_CASES to its displays."""

from __future__ import annotations

import shutil
import sys

import pytest
from repository import ROOT

pytest_plugins = "pytester"

EXAMPLE = ROOT / "examples" / "loan_advisor"
GUIDE = """
import pytest
from proctor import AnswerRelevancy, Faithfulness, Hallucination, ScoreThreshold, assert_pass_sync
from proctor.running.assertions.agent_runner import AgentRunner

TEST_CASES = [
    {
        "id": "loan_calculation_basic",
        "input": "Calculate my monthly payment for a $50,000 loan at 5% interest over 36 months.",
        "expected_output_contains": ["1,498", "monthly payment"],
    },
    {
        "id": "eligibility_check",
        "input": "My credit score is 720 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": ["eligible"],
    },
]


@pytest.fixture(scope="session")
def reference_free_metrics():
    return [AnswerRelevancy(), Faithfulness(), Hallucination()]


@pytest.mark.proctor_full
def test_agent_with_reference_free_metrics(evaluation_dataset, reference_free_metrics):
    assert_pass_sync(
        None,
        [case.input for case in evaluation_dataset],
        reference_free_metrics,
        evaluables=[case.evaluable for case in evaluation_dataset],
        pass_criteria=ScoreThreshold(0.7),
    )


def test_tool_calls_info(evaluation_dataset, show_case):
    for case in evaluation_dataset:
        assert len(case.tools_called) == len(case.tool_calls_with_args)
        show_case(case)
    show_case.ok("Tool call information extracted successfully")


def test_expected_output_keywords(evaluation_dataset, show_case):
    for case in evaluation_dataset:
        assert any(word in case.actual_output for word in case.expected_output_contains)
    show_case.ok("All outputs contain expected keywords")


def test_individual_case_example(agent_runner):
    result = agent_runner.run_test_case(TEST_CASES[0]["input"])
    assert result["tools_called"] == ["calculate_loan_payment"]
    assert result.tool_calls_with_args == [
        {
            "name": "calculate_loan_payment",
            "arguments": {"loan_amount": 50000, "annual_interest_rate": 0.05, "loan_term_months": 36},
        }
    ]
    assert '"monthly_payment": 1498.54' in result["retrieval_context"][0]


if __name__ == "__main__":
    print(AgentRunner("agent.py:agent").run_test_case(TEST_CASES[0]["input"]).actual_output)
"""


@pytest.fixture
def loan(pytester: pytest.Pytester) -> pytest.Pytester:
    for path in EXAMPLE.glob("*.py"):
        shutil.copy(path, pytester.path)
    (pytester.path / "test_cases.py").unlink()
    (pytester.path / "test_loan_advisor_agent.py").write_text(GUIDE, encoding="utf-8")
    pytester.makeini("[pytest]\nproctor_agent = agent.py:agent\n")
    return pytester


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "agent.py").write_text(
        "from pathlib import Path\n"
        "def agent(question):\n"
        "    with Path(__file__).with_name('asked.log').open('a') as log: log.write(question + '\\n')\n"
        "    if question == 'raise': raise KeyError('lost')\n"
        "    return question.upper()\n"
    )
    pytester.makeini("[pytest]\nproctor_agent = agent.py:agent\n")
    return pytester


def inputs_sent(project: pytest.Pytester) -> list[str]:
    return sorted((project.path / "asked.log").read_text().split("\n")[:-1])


@pytest.mark.needs("deepeval")
def test_the_module_of_the_guide_runs_offline_with_the_output_of_the_guide(loan: pytest.Pytester) -> None:
    session = loan.runpytest("test_loan_advisor_agent.py", "-v", "-s")

    assert session.parseoutcomes() == {"passed": 3, "pending": 1}  # the rules leave the metrics of one answer open
    session.stdout.fnmatch_lines(
        [
            "*Running test case: loan_calculation_basic",
            "*Running test case: eligibility_check",
            "*Tool: calculate_loan_payment",
            "   Arguments:",
            "     - loan_amount: 50000",
            "     - annual_interest_rate: 0.05",
            "     - loan_term_months: 36",
            "*Tool call information extracted successfully",
            "*All outputs contain expected keywords",
        ]
    )


@pytest.mark.needs("deepeval")
def test_one_test_of_the_guide_runs_alone_and_can_reuse_answers_of_the_last_session(loan: pytest.Pytester) -> None:
    loan.runpytest("test_loan_advisor_agent.py")

    session = loan.runpytest("test_loan_advisor_agent.py::test_tool_calls_info", "-v", "-s", "--proctor-reuse")

    session.assert_outcomes(passed=1)
    session.stdout.fnmatch_lines(["2 answers reused from earlier sessions*"])


@pytest.mark.needs("deepeval")
def test_fast_mode_skips_metrics_that_may_need_a_model(loan: pytest.Pytester) -> None:
    loan.runpytest("test_loan_advisor_agent.py", "--proctor-fast").assert_outcomes(passed=3, skipped=1)


@pytest.mark.process
def test_the_module_of_the_guide_runs_as_a_script(loan: pytest.Pytester) -> None:
    session = loan.run(sys.executable, "test_loan_advisor_agent.py")

    session.stdout.fnmatch_lines(["*monthly payment of $1,498.54*"])


def test_every_case_runs_once_per_session_however_many_tests_use_it(project: pytest.Pytester) -> None:
    (project.path / "faq.proctor.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "A"}]}'
    )
    for name in ("first", "second"):
        (project.path / f"test_{name}.py").write_text(
            "TEST_CASES = [{'id': 'b', 'input': 'b', 'expected_output_contains': ['B']}]\n"
            "def test_dataset(evaluation_dataset): assert evaluation_dataset['b'].actual_output == 'B'\n"
            "def test_runner(agent_runner): assert agent_runner.run_test_case('b').actual_output == 'B'\n"
            "def test_suite(proctor_run): proctor_run('faq.proctor.json').assert_passed()\n"
            "def test_case(proctor_run): assert proctor_run('faq.proctor.json', case='a').passed\n"
        )

    session = project.runpytest()

    session.assert_outcomes(passed=9)
    assert inputs_sent(project) == ["a", "b"]


@pytest.mark.process
def test_processes_share_the_answers_of_a_session(project: pytest.Pytester) -> None:
    for number in range(6):
        (project.path / f"test_{number}.py").write_text(
            "TEST_CASES = [{'id': n, 'input': n, 'expected_output_contains': [n.upper()]} for n in 'abcdef']\n"
            "def test_dataset(evaluation_dataset): assert len(evaluation_dataset) == 6\n"
        )

    session = project.runpytest_subprocess("-n", "2")

    session.assert_outcomes(passed=6)
    assert inputs_sent(project) == list("abcdef")


def test_an_agent_that_imports_modules_while_it_runs_stays_the_same_agent_in_a_session(
    project: pytest.Pytester,
) -> None:
    source = (project.path / "agent.py").read_text()
    (project.path / "agent.py").write_text(source.replace("    return", "    import loaded_late\n    return"))
    (project.path / "loaded_late.py").write_text("")
    (project.path / "faq.proctor.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "A"}]}'
    )
    (project.path / "test_late.py").write_text(
        "import pytest\n"
        "pytestmark = pytest.mark.proctor(suites='faq.proctor.json')\n"
        "def test_dataset(evaluation_dataset): assert evaluation_dataset['a'].actual_output == 'A'\n"
    )
    project.syspathinsert()

    project.runpytest("faq.proctor.json", "test_late.py").assert_outcomes(passed=2)

    assert inputs_sent(project) == ["a"]


@pytest.mark.process
def test_suites_and_tests_in_several_processes_run_each_case_once(project: pytest.Pytester) -> None:
    cases = ", ".join(f'{{"id": "{name}", "input": "{name}", "expected": "{name.upper()}"}}' for name in "abcdef")
    (project.path / "faq.proctor.json").write_text(f'{{"agent": "agent.py:agent", "cases": [{cases}]}}')
    for number in range(3):
        (project.path / f"test_{number}.py").write_text(
            "TEST_CASES = [{'id': n, 'input': n, 'expected_output_contains': [n.upper()]} for n in 'abcdef']\n"
            "def test_dataset(evaluation_dataset): assert len(evaluation_dataset) == 6\n"
            "def test_suite(proctor_run): proctor_run('faq.proctor.json').assert_passed()\n"
        )

    session = project.runpytest_subprocess("-n", "2", "--proctor-agent", "agent.py:agent")

    session.assert_outcomes(passed=12)
    assert inputs_sent(project) == list("abcdef")
    session = project.runpytest_subprocess("-n", "2", "--proctor-reuse", "--proctor-agent", "agent.py:agent")
    session.stdout.fnmatch_lines(["6 answers reused from earlier sessions *"])


def test_a_failing_test_shows_its_run(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        TEST_CASES = [
            {"id": n, "input": n, "expected_output_contains": ["A"]} for n in ("a", "b", "c")
        ]

        def test_it(evaluation_dataset):
            for case in evaluation_dataset:
                assert case.actual_output == "A"
        """
    )

    project.runpytest().stdout.fnmatch_lines(["*- case b -*", "input*b", "*contains any of*", "output*B"])


@pytest.mark.needs("deepeval")
def test_a_failure_ends_in_the_users_own_line(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from proctor.compat.deepeval import ExactMatchMetric, LLMTestCase, assert_test

        TEST_CASES = [{"id": "lost", "input": "raise", "expected_output_contains": ["A"]}]

        def test_answer(evaluation_dataset): evaluation_dataset["lost"].actual_output
        def test_case(evaluation_dataset): evaluation_dataset["unknown"]
        def test_runner(agent_runner): agent_runner.run_test_case("raise")
        def test_suite(proctor_run): proctor_run(TEST_CASES).assert_passed()
        def test_metric():
            assert_test(LLMTestCase(input="a", actual_output="b", expected_output="c"), [ExactMatchMetric()])
        """
    )

    session = project.runpytest()

    session.assert_outcomes(failed=5)
    places = [line for line in session.outlines if line.endswith(("AgentFailed", "KeyError", "AssertionError"))]
    assert [place.partition(":")[0] for place in places] == ["test_a_failure_ends_in_the_users_own_line.py"] * 5
    session.stdout.fnmatch_lines(["E*failed: Exact Match*", "E*input*a", "E*output*b"])


def test_a_case_whose_agent_raises_fails_only_the_tests_that_use_it(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        TEST_CASES = [{"id": n, "input": n, "expected_output_contains": ["A"]} for n in ("a", "raise")]

        def test_good(evaluation_dataset): assert evaluation_dataset["a"].actual_output == "A"
        def test_bad(evaluation_dataset): assert evaluation_dataset["raise"].tools_called == []
        def test_error(evaluation_dataset): assert "KeyError" in evaluation_dataset["raise"].error
        def test_directly(agent_runner): agent_runner.run_test_case("raise")
        """
    )

    session = project.runpytest()

    session.assert_outcomes(passed=2, failed=2)
    session.stdout.fnmatch_lines(
        ["*AgentFailed: case 'raise' has no answer: the agent raised KeyError: 'lost' (agent.py:4)"]
    )
    assert inputs_sent(project) == ["a", "raise"]


@pytest.mark.parametrize(
    ("marks", "ini"),
    [
        ("import pytest\npytestmark = pytest.mark.proctor(suites='faq.json')", ""),
        ("", "proctor_dataset = faq.json"),
        ("import pytest\n@pytest.fixture(scope='module')\ndef evaluation_cases(): return 'faq.json'", ""),
    ],
)
def test_the_dataset_can_be_suites_of_a_marker_the_ini_file_or_a_fixture(
    project: pytest.Pytester, marks: str, ini: str
) -> None:
    (project.path / "faq.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "A"}]}'
    )
    project.makeini(f"[pytest]\n{ini}\n")
    project.makepyfile(f"{marks}\ndef test_it(evaluation_dataset): assert evaluation_dataset[0].actual_output == 'A'")

    project.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("def test_it(agent_runner): pass", "agent_runner needs an agent: set one with --proctor-agent*"),
        ("def test_it(evaluation_dataset): pass", "evaluation_dataset has no cases: define TEST_CASES*"),
        ("TEST_CASES = []\ndef test_it(evaluation_dataset): pass", "there are no cases: the list is empty"),
        ("TEST_CASES = [{'id': 'a'}]\ndef test_it(evaluation_dataset): pass", "*TEST_CASES?0? needs 'input'*"),
        ("def test_it(proctor_run): proctor_run('gone.json')", "*gone.json: does not exist*"),
        (
            "import pytest\n@pytest.mark.proctor(suites='a.json')\ndef test_it(evaluation_dataset): pass",
            "*::test_it has its own suites, * mark the whole module instead: pytestmark = *",
        ),
    ],
)
def test_a_fixture_without_its_settings_is_one_message(pytester: pytest.Pytester, body: str, complaint: str) -> None:
    pytester.makepyfile(body)

    session = pytester.runpytest()

    session.stdout.fnmatch_lines([complaint])
    assert "Traceback" not in session.stdout.str()
    assert "src/proctor" not in session.stdout.str()


def test_proctor_run_explains_what_did_not_pass(project: pytest.Pytester) -> None:
    (project.path / "faq.json").write_text(
        '{"agent": "agent.py:agent", "cases": [{"id": "a", "input": "a", "expected": "b"}]}'
    )
    project.makepyfile("def test_it(proctor_run): proctor_run('faq.json').assert_passed()")

    session = project.runpytest()

    session.stdout.fnmatch_lines(
        ["E*AssertionError: FAILED  0 of 1 cases passed", "E*faq/a: failed", "E*expected*b", "E*output*A"]
    )


def test_proctor_run_passes_by_the_criteria_of_the_suite(project: pytest.Pytester) -> None:
    cases = '[{"id": "a", "input": "a", "expected": "A"}, {"id": "b", "input": "b", "expected": "x"}]'
    for name, share in (("half", 0.5), ("most", 0.9)):
        text = f'{{"agent": "agent.py:agent", "criteria": {{"pct": {share}}}, "cases": {cases}}}'
        (project.path / f"{name}.json").write_text(text)
    project.makepyfile(
        """
        def test_half(proctor_run): proctor_run('half.json').assert_passed()
        def test_most(proctor_run): proctor_run('most.json').assert_passed()
        def test_one(proctor_run): assert not proctor_run('half.json', case='b').passed
        """
    )

    session = project.runpytest()

    session.assert_outcomes(passed=2, failed=1)
    session.stdout.fnmatch_lines(["E*AssertionError: FAILED  1 of 2 cases passed (90% required)"])


def test_the_dataset_runs_with_the_users_own_runner(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest
        from proctor.running.assertions.agent_runner import AgentRunner

        @pytest.fixture(scope="session")
        def agent_runner():
            return AgentRunner(lambda question: f"mine: {question}")
        """
    )
    project.makepyfile(
        """
        TEST_CASES = [{"id": "a", "input": "a", "expected_output_contains": ["A"]}]
        def test_it(evaluation_dataset): assert evaluation_dataset[0].actual_output == "mine: a"
        """
    )

    project.runpytest().assert_outcomes(passed=1)


def test_the_judge_of_the_command_line_judges_in_ordinary_tests_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import os\ndef test_it(): assert os.environ['PROCTOR_JUDGE'] == 'rules'")

    pytester.runpytest("--proctor-judge", "rules").assert_outcomes(passed=1)


@pytest.mark.process
@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_cases_that_no_test_asked_for_are_not_missing_in_the_summary(
    project: pytest.Pytester, options: tuple[str, ...]
) -> None:
    cases = ", ".join(f'{{"id": "{name}", "input": "{name}", "expected": "{name.upper()}"}}' for name in "abc")
    (project.path / "faq.json").write_text(f'{{"agent": "agent.py:agent", "cases": [{cases}]}}')
    for name in "ab":
        (project.path / f"test_{name}.py").write_text(
            f"def test_{name}(proctor_run): proctor_run('faq.json', case='{name}').assert_passed()\n"
        )

    done = project.runpytest_subprocess(*options)

    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*PASSED*2 of 2 cases passed*"])
    done.stdout.no_fnmatch_line("*not made*")
    done.stdout.no_fnmatch_line("*ERROR*")
