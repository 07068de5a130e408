"""Files that import deepeval, pixie or holodeck run unchanged, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from command_line import PYTEST

pytestmark = [pytest.mark.process, pytest.mark.needs("deepeval", "pixie", "holodeck")]

PATHS = {
    "deepeval": """
        assert_test, evaluate
        metrics: AnswerRelevancyMetric, BaseMetric, GEval, FaithfulnessMetric
        metrics.g_eval: GEval, Rubric
        metrics.g_eval.g_eval: GEval
        metrics.dag: BinaryJudgementNode, DeepAcyclicGraph, TaskNode, VerdictNode
        metrics.faithfulness: FaithfulnessMetric
        metrics.answer_relevancy.answer_relevancy: AnswerRelevancyMetric
        metrics.pii_leakage: PIILeakageMetric
        metrics.base_metric: BaseMetric
        test_case: LLMTestCase, SingleTurnParams, ToolCall, Turn
        test_case.llm_test_case: LLMTestCase
        dataset: EvaluationDataset, Golden
        dataset.golden: Golden
        models: DeepEvalBaseLLM
        models.base_model: DeepEvalBaseLLM
        evaluate: AsyncConfig, DisplayConfig
        evaluate.configs: AsyncConfig
        errors: MissingTestCaseParamsError
        tracing: observe, update_current_span, update_current_trace
        models: GPTModel, OpenAIModel, DeepEvalBaseEmbeddingModel
        test_case: MLLMImage, ArenaTestCase, MCPServer
        test_case.mcp: MCPToolCall
        metrics: TextToImageMetric, ArenaGEval, PlanQualityMetric
        simulator: ConversationSimulator
        synthesizer: Synthesizer
        synthesizer.config: EvolutionConfig
        prompt: Prompt
        benchmarks: MMLU
        integrations.langchain: CallbackHandler
    """,
    "pixie": """
        Evaluation, Evaluable, evaluate, assert_pass, wrap, Runnable
        evals: ExactMatch, ScoreThreshold
        eval.evaluation: Evaluation
        dataset.store: DatasetStore
        instrumentation: observe, init, add_handler
        instrumentation.spans: AssistantMessage, UserMessage, TextContent, ToolCall, LLMSpan, ObserveSpan
        instrumentation.handler: InstrumentationHandler
        instrumentation.handlers: StorageHandler, enable_storage
        instrumentation.llm_tracing: enable_llm_tracing, InstrumentationHandler
        instrumentation.wrap: wrap, WrappedData
        evals.rate_limiter: configure_rate_limits
        evals.dataset_runner: BUILTIN_EVALUATOR_NAMES, validate_dataset_file
        evals.trace_capture: MemoryTraceHandler, capture_traces
        evals.trace_helpers: last_llm_call, root
        eval.evaluable: Evaluable, NamedData, TestCase, UNSET, collapse_named_data
        harness.runnable: Runnable, is_runnable_class, get_runnable_args_type
        harness.runner: load_dataset, run_dataset
        storage.evaluable: as_evaluable
        storage.store: ObservationStore
        storage.tree: ObservationNode, build_tree
        config: get_config
        web.app: create_app
        cli.main: main
    """,
    "holodeck": """
        config.loader: ConfigLoader
        lib.test_runner.executor: TestExecutor
        lib.test_runner.reporter: generate_markdown_report
        lib.test_runner.progress: ProgressIndicator
        lib.test_runner.eval_kwargs_builder: EvalKwargsBuilder
        models.test_result: TestReport, TestResult
        models.test_case: TestCaseModel
        lib.evaluators.base: BaseEvaluator
        lib.evaluators.nlp_metrics: BLEUEvaluator
        lib.evaluators.deepeval.faithfulness: FaithfulnessEvaluator
        lib.backends.base: ExecutionResult, AgentBackend
    """,
}


def python(folder: Path, code: str, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR"))}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120, env=kept | environment
    )
    return done.returncode, done.stdout + done.stderr


INSTALL = "from proctor.compat.aliases import install_aliases\nprint(*install_aliases([{}]))\n"


@pytest.mark.parametrize("package", PATHS)
def test_the_documented_paths_have_the_same_objects_as_the_compat_modules_also_with_a_star(
    package: str, tmp_path: Path
) -> None:
    lines = [f"import proctor.compat.{package} as ours, sys"]
    for line in filter(None, map(str.strip, PATHS[package].splitlines())):
        path, _, names = line.rpartition(":")
        lines.append(f"from {package}{'.' + path if path else ''} import {names}")
        lines += [f"assert {name.strip()} is ours.{name.strip()}" for name in names.split(",")]
        lines.append(f"from {package}{'.' + path if path else ''} import *")
    lines += [f"import {package}", f"from {package} import *", f"assert not set({package}.__all__) - set(globals())"]
    lines += [f"assert {package}.__version__"] if package != "holodeck" else []
    code, output = python(tmp_path, INSTALL.format(repr(package)) + "\n".join(lines))
    assert (code, output.strip()) == (0, "")


def test_a_name_that_is_not_available_says_what_to_use_when_it_is_used(tmp_path: Path) -> None:
    lines = """
        from pixie import ObservationStore, WrapNameCollisionError
        class Mine(ObservationStore): pass
        def function(store: ObservationStore) -> None: pass
        for use in (ObservationStore, Mine, lambda: ObservationStore.save):
            try:
                use()
            except Exception as error:
                print(type(error).__name__, "proctor trace list" in str(error))
        try:
            raise WrapNameCollisionError
        except WrapNameCollisionError:
            print("caught")

        # Fixtures of test modules use these private names.
        import pixie.instrumentation.observation as px
        from pixie import *
        from pixie.dataset.store import _slugify
        from pixie.storage.evaluable import UNSET, _Unset
        px._reset_state()
        assert (isinstance(UNSET, _Unset), _slugify("--My Set!")) == (True, "my-set")
        assert "_reset_state" not in globals()
        assert not hasattr(px, "_state")
    """
    code, output = python(tmp_path, INSTALL.format("'pixie'") + textwrap.dedent(lines))
    assert (code, output.split()) == (
        0,
        ["UsageError", "True", "UsageError", "True", "AttributeError", "True", "caught"],
    )


def test_the_function_evaluate_stays_a_function_next_to_the_module_of_its_name(tmp_path: Path) -> None:
    code = "import deepeval\nfrom deepeval.evaluate import AsyncConfig\nfrom deepeval import evaluate\n"
    assert python(tmp_path, INSTALL.format("'deepeval'") + code + "assert evaluate.__name__ == 'evaluate'")[0] == 0


MISSING = [
    (
        "import deepeval.metrics as m; m.FaithfulnesMetric",
        "did you mean 'FaithfulnessMetric'? (see docs/deepeval.md)",
    ),
    (
        "import deepeval; deepeval.telemetry",
        "module 'deepeval' has no attribute 'telemetry' (see docs/deepeval.md)",
    ),
    ("import deepeval.metric", "has no 'deepeval.metric'; did you mean 'deepeval.metrics'? (see docs/deepeval"),
    ("import holodeck.lib.test_runner.executor as m; m.TestExecuter", "did you mean 'TestExecutor'? (see docs/hol"),
    ("import pixie.evals as m; m.ExactMach", "did you mean 'ExactMatch'? (see docs/pixie.md)"),
    ("import proctor; proctor.Evaluble", "did you mean 'Evaluable'?"),
    ("from deepeval.metrics import FaithfulnesMetric", "did you mean 'deepeval.metrics.FaithfulnessMetric'? (see"),
    ("from deepeval import assert_tests", "did you mean 'deepeval.assert_test'? (see docs/deepeval.md)"),
    ("from deepeval.metrics import PaintingMetric", "has no 'deepeval.metrics.PaintingMetric' (see"),
    ("from deepeval import synthesise", "has no 'deepeval.synthesise'; did you mean 'deepeval.synthesizer'? (see"),
]


def test_what_is_not_there_says_so_and_names_the_nearest(tmp_path: Path) -> None:
    """All lines run in one process, since each imports the same modules."""
    lines = [line for line, _ in MISSING]
    code = "for line in {!r}:\n    try:\n        exec(line)\n    except Exception as error:\n        print(error)\n"
    exit_code, output = python(tmp_path, INSTALL.format("'deepeval', 'pixie', 'holodeck'") + code.format(lines))
    messages = output.strip().splitlines()
    assert (exit_code, len(messages)) == (0, len(MISSING)), output
    for (line, message), shown in zip(MISSING, messages, strict=True):
        assert message in shown, line


def test_asking_a_module_for_a_name_it_may_have_raises_nothing(tmp_path: Path) -> None:
    code = "import deepeval, proctor\nprint(hasattr(deepeval, 'tracing'), getattr(proctor, 'nothing', 1))"
    assert python(tmp_path, INSTALL.format("'deepeval'") + code) == (0, "\nFalse 1\n")


@pytest.fixture
def real(tmp_path: Path) -> Path:
    (tmp_path / "deepeval").mkdir()
    (tmp_path / "deepeval" / "__init__.py").write_text("WHO = 'the real one'\n", encoding="utf-8")
    (tmp_path / "deepeval" / "metrics.py").write_text("WHO = 'the real one'\n", encoding="utf-8")
    return tmp_path


def test_an_installed_package_wins_and_that_is_said(real: Path) -> None:
    code, output = python(real, INSTALL.format("'deepeval'") + "from deepeval.metrics import WHO\nprint(WHO)")
    assert code == 0, output
    assert "deepeval is installed and is used; write deepeval! to" in output
    assert "the real one" in output


def test_an_installed_package_gives_way_when_forced(real: Path) -> None:
    code, output = python(real, INSTALL.format("'deepeval!'") + "from deepeval.metrics import GEval\nprint(GEval)")
    assert code == 0, output
    assert "proctor.compat.deepeval" in output


def test_forcing_comes_too_late_for_a_package_that_is_in_use(real: Path) -> None:
    code, output = python(real, "import deepeval\n" + INSTALL.format("'deepeval!'"))
    assert code == 1
    assert "deepeval is already imported" in output


def test_a_package_that_becomes_importable_later_wins_as_well(real: Path) -> None:
    code = "import sys\nsys.path.remove('')\n" + INSTALL.format("'deepeval'") + "sys.path.append('.')\n"
    code, output = python(real, code + "from deepeval import metrics\nprint(metrics.WHO)")  # type: ignore[assignment]
    assert "the real one" in output


def test_a_folder_of_that_name_without_code_is_not_a_package(tmp_path: Path) -> None:
    (tmp_path / "deepeval").mkdir()
    assert python(tmp_path, INSTALL.format("'deepeval'") + "from deepeval.metrics import GEval")[0] == 0


def test_an_unknown_alias_is_refused(tmp_path: Path) -> None:
    code, output = python(tmp_path, INSTALL.format("'deepevil'"))
    assert code == 1
    assert "unknown package 'deepevil'; did you mean 'deepeval'?" in output


SCRIPT = """
import sys
from deepeval.test_case import LLMTestCase
import beside
print(LLMTestCase(input=sys.argv[1]).input, __name__, beside.HERE)
"""


def test_a_script_is_run_with_aliases(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "beside.py").write_text("HERE = True\n", encoding="utf-8")
    command = [sys.executable, "-m", "proctor.compat.aliases", "scripts/script.py", "hello"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=120)
    assert (done.returncode, done.stdout) == (0, "hello __main__ True\n"), done.stderr


@pytest.mark.parametrize("start", [".", "scripts"])
def test_a_script_follows_the_aliases_of_the_project(real: Path, start: str) -> None:
    (real / "scripts").mkdir()
    (real / "scripts" / "script.py").write_text("import deepeval\nprint(getattr(deepeval, 'WHO', 'Proctor'))\n")
    (real / "pyproject.toml").write_text('[tool.proctor]\naliases = ["deepeval!"]\n')
    command = [sys.executable, "-m", "proctor.compat.aliases", str(real / "scripts" / "script.py")]
    environment = {**os.environ, "PYTHONPATH": str(real)}
    done = subprocess.run(command, cwd=real / start, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout) == (0, "Proctor\n"), done.stderr
    (real / "pyproject.toml").write_text('[tool.proctor]\naliases = ["deepevil"]\n')
    done = subprocess.run(command, cwd=real / start, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, "Traceback" in done.stderr, "deepevil" in done.stderr) == (1, False, True)


TESTS = """
from deepeval import assert_test
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

def test_it():
    assert_test(LLMTestCase(input="a", actual_output="b", expected_output="b"), [ExactMatchMetric()])
"""


def pytest_in(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR"))}
    command = [*PYTEST, *options]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120, env=kept | environment
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", '[tool.proctor]\naliases = ["deepeval"]\n[tool.pytest.ini_options]\n'),
        ("proctor.toml", 'aliases = ["deepeval"]\n'),
        ("pytest.ini", "[pytest]\nproctor_aliases = deepeval pixie\n"),
        ("", ""),
    ],
)
def test_test_modules_and_conftests_run_unchanged_under_pytest(file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("import deepeval.metrics\n", encoding="utf-8")
    if file:
        (tmp_path / file).write_text(text, encoding="utf-8")
    code, output = pytest_in(tmp_path, **({} if file else {"PROCTOR_ALIASES": "deepeval,pixie"}))
    assert code == 0, output


@pytest.mark.parametrize(("expected", "exit_code"), [("b", 0), ("c", 1)])
def test_the_command_that_runs_a_test_file_for_deepeval(tmp_path: Path, expected: str, exit_code: int) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.replace('expected_output="b"', f'expected_output="{expected}"'))
    command = [sys.executable, "-m", "proctor", "deepeval", "test", "run", "test_it.py", "-c", "-x"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR"))}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=kept)
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert "--use-cache has no effect" in done.stderr


def test_without_aliases_nothing_is_stood_in_for(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    code, output = pytest_in(tmp_path)
    assert code == 2
    assert "No module named 'deepeval'" in output


def test_a_wrong_alias_is_one_message_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nproctor_aliases = deepevil\n", encoding="utf-8")
    code, output = pytest_in(tmp_path)
    assert code == 4
    assert "unknown package 'deepevil'; did you mean 'deepeval'?" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_pytest_says_that_the_installed_package_is_used(real: Path, options: tuple[str, ...]) -> None:
    (real / "test_it.py").write_text("import deepeval\ndef test_it(): assert deepeval.WHO\n", encoding="utf-8")
    code, output = pytest_in(real, *options, PROCTOR_ALIASES="deepeval")
    assert code == 0, output
    assert output.count("proctor: deepeval is installed and is used") == 1
