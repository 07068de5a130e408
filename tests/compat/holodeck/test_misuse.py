"""The test runner's interface in hands that do with it whatever can be done."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite, UsageError
from proctor.compat.holodeck import (
    ConfigLoader,
    EvalParam,
    ExecutionConfig,
    ExecutionResult,
    ParamSpec,
    ProgressIndicator,
    TestExecutor,
    TestReport,
    TestResult,
    generate_markdown_report,
)

ONE = [{"name": "one", "input": "x", "ground_truth": "x"}]
WITH_FILE = [{"input": "x", "ground_truth": "x", "files": [{"path": "f.txt", "type": "text"}]}]


class Echo:
    """A backend that repeats what it is told."""

    def __init__(self, result: Callable[[str], Any] = ExecutionResult) -> None:
        self.result = result
        self.torn_down = 0

    async def invoke_once(self, message: str, context: Any = None) -> Any:
        return self.result(message)

    async def teardown(self) -> None:
        self.torn_down += 1


def write(folder: Path, tests: Any = ONE, **more: Any) -> str:
    (folder / "f.txt").write_text("a file")
    metrics = {"metrics": [{"type": "standard", "metric": "equality"}]}
    text = json.dumps({"name": "a", "evaluations": metrics, "test_cases": tests, **more}, ensure_ascii=False)
    (folder / "agent.yaml").write_text(text, encoding="utf-8")
    return str(folder / "agent.yaml")


def run_tests(path: Any, **given: Any) -> TestReport:
    async def run() -> TestReport:
        executor = TestExecutor(path, **{"backend": Echo(), **given})
        try:
            return await executor.execute_tests()
        finally:
            await executor.shutdown()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"execution_config": {"llm_timeout": 5}}, "execution_config must be an ExecutionConfig"),
        ({"resolved_execution_config": 5}, "resolved_execution_config must be an ExecutionConfig"),
        ({"file_processor": object()}, r"file_processor must be an object with process_file\(\)"),
        ({"evaluators": ["equality"]}, "evaluators must be a dictionary"),
        ({"evaluators": {"equality": 3}}, "the evaluator of 'equality' must be a function"),
        ({"config_loader": object()}, r"config_loader must be an object with load_agent_yaml\(\)"),
        ({"progress_callback": 3}, "progress_callback must be a function"),
        ({"on_test_start": "print"}, "on_test_start must be a function"),
        ({"backend": object()}, r"backend must be an object with invoke_once\(\)"),
    ],
)
def test_what_cannot_do_its_work_is_refused_at_once(tmp_path: Path, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        TestExecutor(write(tmp_path), **given)


@pytest.mark.parametrize(
    "given",
    [
        {"llm_timeout": "5"},
        {"llm_timeout": 0},
        {"llm_timeout": float("inf")},
        {"file_timeout": float("nan")},
        {"download_timeout": True},
        {"parallel_test_cases": 1.5},
        {"parallel_test_cases": 0},
        {"parallel_test_cases": True},
        {"cache_dir": 3},
        {"verbose": "yes"},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        ExecutionConfig(**given)


def test_a_path_may_be_a_path_and_parallel_tests_more_than_there_are(tmp_path: Path) -> None:
    config = ExecutionConfig(parallel_test_cases=10**9)
    assert run_tests(Path(write(tmp_path)), execution_config=config).summary.passed == 1


@pytest.mark.parametrize("path", ["gone.yaml", None, 3])
def test_a_file_that_is_not_there_is_said_when_it_is_asked_for(tmp_path: Path, path: Any) -> None:
    with pytest.raises(InvalidSuite):
        TestExecutor(path)


@pytest.mark.parametrize("left", [[], None])
def test_no_tests_are_no_success(tmp_path: Path, left: Any) -> None:
    agent = ConfigLoader().load_agent_yaml(write(tmp_path))
    agent.test_cases = left
    with pytest.raises(InvalidSuite, match="has no cases"):
        run_tests("agent.yaml", agent_config=agent)


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (lambda message: None, "the backend returned NoneType"),
        (lambda message: "x", "the backend returned str"),
        (lambda message: ExecutionResult(3), "the response of the backend must be a string, not int"),  # type: ignore[arg-type]
        (lambda message: ExecutionResult("x", tool_calls=["a"]), "tool_calls of the backend"),  # type: ignore[list-item]
        (lambda message: ExecutionResult("x", tool_results=7), "tool_results of the backend"),  # type: ignore[arg-type]
    ],
)
def test_a_backend_that_talks_nonsense_is_an_error_and_no_failed_answer(
    tmp_path: Path, result: Callable[[str], Any], complaint: str
) -> None:
    [found] = run_tests(write(tmp_path), backend=Echo(result)).results
    assert (found.outcome, found.passed) == ("error", False)
    assert complaint in found.errors[0]


def test_a_backend_may_leave_out_what_it_has_nothing_for(tmp_path: Path) -> None:
    class Least:
        def invoke_once(self, message: str, context: Any = None) -> Any:
            return type("Result", (), {"response": message, "tool_calls": None, "token_usage": None})

    [found] = run_tests(write(tmp_path), backend=Least()).results
    assert (found.passed, found.token_usage) == (True, None)


def test_a_backend_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    class Broken(Echo):
        async def initialize(self) -> None:
            raise RuntimeError("no licence")

    [found] = run_tests(write(tmp_path), backend=Broken()).results
    assert (found.outcome, "no licence" in found.errors[0]) == ("error", True)


def test_an_async_callback_is_reported_instead_of_being_lost(tmp_path: Path) -> None:
    async def later(result: Any) -> None: ...

    report = run_tests(write(tmp_path), progress_callback=later, on_test_start=later)
    assert report.summary.passed == 1
    assert sorted(report.warnings) == [
        f"{name} is async and was not awaited; use a plain function" for name in ("on_test_start", "progress_callback")
    ]


def test_callbacks_hear_of_every_test_once_and_never_at_the_same_time(tmp_path: Path) -> None:
    heard: list[str] = []
    inside = threading.Lock()

    def hear(result: Any) -> None:
        assert inside.acquire(blocking=False)
        heard.append(result.test_name if isinstance(result, TestResult) else f"start {result.name}")
        inside.release()

    tests = [{"name": f"t{n}", "input": "x", "ground_truth": "x"} for n in range(30)]
    config = ExecutionConfig(parallel_test_cases=10)
    report = run_tests(write(tmp_path, tests), execution_config=config, progress_callback=hear, on_test_start=hear)
    assert report.warnings == []
    assert sorted(heard) == sorted([f"t{n}" for n in range(30)] + [f"start t{n}" for n in range(30)])


def test_synchronous_evaluators_of_ones_own_do_not_wait_for_each_other(tmp_path: Path) -> None:
    met = threading.Barrier(3)

    class Meets:
        def get_param_spec(self) -> ParamSpec:
            return ParamSpec(frozenset({EvalParam.RESPONSE}))

        def evaluate(self, response: str) -> dict[str, Any]:
            met.wait(30)
            return {"score": 1.0}

    tests = [{"input": "x", "ground_truth": "x"}] * 3
    config = ExecutionConfig(parallel_test_cases=3)
    report = run_tests(write(tmp_path, tests), execution_config=config, evaluators={"equality": Meets()})
    assert report.summary.passed == 3


@pytest.mark.parametrize("bad", [float("nan"), 7, "good", None])
def test_an_evaluator_of_ones_own_that_gives_no_score_is_an_error(tmp_path: Path, bad: Any) -> None:
    class Bad:
        def get_param_spec(self) -> ParamSpec:
            return ParamSpec(frozenset({EvalParam.RESPONSE}))

        async def evaluate(self, response: str) -> Any:
            return {"score": bad}

    [found] = run_tests(write(tmp_path), evaluators={"equality": Bad()}).results
    assert (found.outcome, found.metric_results[0].score) == ("error", None)


def processor(came: Any) -> Any:
    class Processor:
        def process_file(self, file: Any) -> Any:
            if isinstance(came, Exception):
                raise came
            return came

    return Processor()


@pytest.mark.parametrize(
    ("came", "complaint"),
    [
        (ValueError("torn"), "File processing error: torn"),
        (None, "returned NoneType, which has no text"),
        (type("P", (), {"error": "locked", "markdown_content": ""}), "locked"),
    ],
)
def test_a_file_that_nobody_can_read_is_not_counted_against_the_agent(
    tmp_path: Path, came: Any, complaint: str
) -> None:
    [found] = run_tests(write(tmp_path, WITH_FILE), file_processor=processor(came)).results
    assert found.outcome == "error"
    assert complaint in found.errors[0]


def test_what_a_file_processor_says_is_what_is_reported_and_what_answers_rest_on(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(evaluable: Any) -> bool:
        seen.append(evaluable.retrieval_context)
        return True

    known = {"markdown_content": "# read", "error": None, "metadata": {"pages": 2}, "cached_path": "c/1.json"}
    made = processor(type("Processed", (), {**known, "processing_time_ms": 12}))
    report = run_tests(write(tmp_path, WITH_FILE), file_processor=made, evaluators={"equality": look})
    [file] = report.results[0].processed_files
    assert (file.markdown_content, file.metadata, file.cached_path, file.processing_time_ms) == (
        "# read",
        {"pages": 2},
        "c/1.json",
        12,
    )
    assert seen == [("# read",)]
    assert "| f.txt | text | text | 12ms | ✅ |" in generate_markdown_report(report)


def test_names_may_be_of_any_script_and_any_length(tmp_path: Path) -> None:
    names = ["naïve — 東京 😀", "a/b\\c", "| `x` | <b>", "x" * 3000]
    report = run_tests(write(tmp_path, [{"name": name, "input": "é", "ground_truth": "é"} for name in names]))
    assert [result.test_name for result in report.results] == names
    assert report.summary.passed == 4
    assert generate_markdown_report(report).count("### Test: ") == 4
    assert json.loads(report.model_dump_json())["results"][0]["test_name"] == names[0]


def test_half_a_character_in_an_answer_breaks_no_report(tmp_path: Path) -> None:
    report = run_tests(write(tmp_path), backend=Echo(lambda message: ExecutionResult("half \ud800")))
    assert report.results[0].agent_response == "half \ud800"
    assert json.loads(report.model_dump_json())["results"][0]["agent_response"] == "half \ud800"
    generate_markdown_report(report).encode("utf-8")


def test_an_executor_runs_again_after_it_was_shut_down_and_shutting_down_twice_is_harmless(tmp_path: Path) -> None:
    backend = Echo()

    async def run() -> list[int]:
        executor = TestExecutor(write(tmp_path), backend=backend)
        first = await executor.execute_tests()
        await executor.shutdown()
        await executor.shutdown()
        second = await executor.execute_tests()
        await executor.shutdown()
        return [first.summary.passed, second.summary.passed]

    assert asyncio.run(run()) == [1, 1]
    assert backend.torn_down >= 2


def test_executors_at_once_keep_their_results_apart(tmp_path: Path) -> None:
    async def run() -> list[TestReport]:
        executors = []
        for number in range(4):
            folder = tmp_path / str(number)
            folder.mkdir()
            tests = [{"name": f"{number}-{n}", "input": f"{number}-{n}", "ground_truth": "x"} for n in range(5)]
            executors.append(TestExecutor(write(folder, tests), backend=Echo()))
        return await asyncio.gather(*(executor.execute_tests() for executor in executors))

    for number, report in enumerate(asyncio.run(run())):
        assert [result.agent_response for result in report.results] == [f"{number}-{n}" for n in range(5)]


def test_one_executor_that_is_asked_twice_at_once_does_one_thing_after_the_other(tmp_path: Path) -> None:
    def failing(result: Any) -> None:
        raise ValueError("each time")

    async def run() -> list[TestReport]:
        executor = TestExecutor(write(tmp_path, WITH_FILE), backend=Echo(), progress_callback=failing)
        return await asyncio.gather(executor.execute_tests(), executor.execute_tests())

    for report in asyncio.run(run()):
        assert report.results[0].processed_files[0].markdown_content == "a file"
        assert report.warnings == ["progress_callback raised ValueError: each time"]


@pytest.mark.parametrize("total", [-1, 2.5, "3", None])
def test_progress_counts_tests(total: Any) -> None:
    with pytest.raises(UsageError, match="total_tests must be a whole number"):
        ProgressIndicator(total)


@pytest.mark.parametrize("total", [0, 1, 2])
def test_more_results_than_were_announced_make_no_more_than_all(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    progress = ProgressIndicator(total)
    for name in ("a", "b", "c"):
        progress.update(TestResult(test_name=name, test_input="q", passed=True))
    assert progress.get_progress_line() == "[Test 3/3] PASS c"
    assert "Test Results: 3/3 passed (100.0%)\n  Duration" in progress.get_summary()


def test_progress_is_sayable_where_the_terminal_knows_only_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow(io.StringIO):
        encoding = "ascii"  # type: ignore[assignment]

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Narrow())
    monkeypatch.setenv("TERM", "xterm")
    progress = ProgressIndicator(1, verbose=True)
    progress.update(TestResult(test_name="東京\x1b[2J", test_input="q", passed=False))
    for text in (progress.get_spinner_line(), progress.get_progress_line(), progress.get_summary()):
        assert text.isascii()
        assert "\x1b[2J" not in text
