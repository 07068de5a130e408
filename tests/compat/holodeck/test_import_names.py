"""Programs import HoloDeck's names from HoloDeck's modules, in a process where `holodeck` is Proctor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.compat.holodeck.import_paths import IMPORT_PATHS

pytestmark = pytest.mark.process

DOCUMENTED = """
config.loader: ConfigLoader, load_agent_with_config
config.env_loader: get_env_var, load_env_file, substitute_env_vars
config.defaults: DEFAULT_EXECUTION_CONFIG
lib.backends.base: AgentBackend, AgentSession, BackendError, BackendInitError, BackendSessionError, BackendTimeoutError
lib.backends.base: BackendBudgetExceededError, ExecutionResult
lib.backends.selector: BackendSelector
lib.chat_history_utils: extract_tool_names
lib.errors: HoloDeckError, ConfigError, ValidationError, FileNotFoundError, ExecutionError, EvaluationError
lib.errors: AgentInitializationError
lib.evaluators.azure_ai: ModelConfig, GroundednessEvaluator, RelevanceEvaluator, CoherenceEvaluator, FluencyEvaluator
lib.evaluators.base: BaseEvaluator, RetryConfig, EvaluationError
lib.evaluators.deepeval: DeepEvalModelConfig, DEFAULT_MODEL_CONFIG, GEvalEvaluator, FaithfulnessEvaluator
lib.evaluators.deepeval: DeepEvalBaseEvaluator, DeepEvalError, ProviderNotSupportedError, AnswerRelevancyEvaluator
lib.evaluators.deepeval.config: DeepEvalModelConfig
lib.evaluators.deterministic: EqualityEvaluator, NumericEvaluator
lib.evaluators.nlp_metrics: BLEUEvaluator, ROUGEEvaluator, METEOREvaluator, NLPMetricsError
lib.evaluators.param_spec: EvalParam, ParamSpec
lib.file_processor: FileProcessor
lib.test_runner.code_grader: GraderContext, GraderResult, build_grader_context, invoke_grader
lib.test_runner.eval_kwargs_builder: EvalKwargsBuilder, build_retrieval_context_from_tools
lib.test_runner.executor: TestExecutor, validate_tool_calls, RAGEvaluatorConstructor, RAG_EVALUATOR_MAP, TestCaseFatal
lib.test_runner.progress: ProgressIndicator
lib.test_runner.reporter: generate_markdown_report
lib.test_runner.tool_arg_matcher: match_literal, match_fuzzy, match_regex, match_arg, find_matching_call
lib.test_runner.tool_arg_matcher: evaluate_expected_tools, tool_name_matches
lib.test_runner.tool_invocation_builder: pair_tool_calls
models.agent: Agent, Instructions
models.claude_config: ClaudeConfig, BashConfig, FileSystemConfig, SubagentSpec, PermissionMode, AuthProvider
models.claude_config: ExtendedThinkingConfig
models.config: ExecutionConfig, GlobalConfig, VectorstoreConfig
models.eval_run: EvalRun, EvalRunMetadata, PromptVersion
models.evaluation: EvaluationConfig, EvaluationMetric, GEvalMetric, RAGMetric, RAGMetricType, CodeMetric
models.llm: LLMProvider, ProviderEnum
models.openai_config: OpenAIConfig, OpenAIPermissionsConfig
models.test_case: TestCaseModel, TestCase, Turn, ExpectedTool, FileInput, LiteralMatcher, FuzzyMatcher, RegexMatcher
models.test_result: TestReport, TestResult, TurnResult, MetricResult, ReportSummary, ProcessedFileInput, ToolInvocation
models.token_usage: TokenUsage
models.tool: FunctionTool, MCPTool, PromptTool, VectorstoreTool, DatabaseConfig, KeywordIndexConfig, ToolUnion
models.tool: HierarchicalDocumentToolConfig, SearchMode, ChunkingStrategy, DocumentDomain, TransportType, CommandType
models.tool_event: ToolEvent, ToolEventType
models.tool_execution: ToolExecution, ToolStatus
"""

INSTALL = "from proctor.compat.aliases import install_aliases\ninstall_aliases(['holodeck!'])\n"


def python(folder: Path, code: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR"))}
    command = [sys.executable, "-c", INSTALL + code]
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_documented_name_can_be_imported(tmp_path: Path) -> None:
    lines = [line.partition(": ") for line in DOCUMENTED.strip().splitlines()]
    python(tmp_path, "\n".join(f"from holodeck.{path} import {names}" for path, _, names in lines))


def test_every_module_can_be_imported_with_a_star(tmp_path: Path) -> None:
    modules = ["holodeck", *(f"holodeck.{path}" for path in IMPORT_PATHS)]
    code = "\n".join(f"from {module} import *" for module in modules)
    check = "assert issubclass(FileNotFoundError, OSError)\nprint(TestExecutor.__name__, Agent.__name__, HoloDeckError)"
    assert python(tmp_path, f"{code}\n{check}").startswith("TestExecutor Agent")


def test_the_models_are_pydantic_models(tmp_path: Path) -> None:
    code = """
import pydantic
from holodeck.models.agent import Agent, Instructions
from holodeck.models.evaluation import EvaluationMetric
from holodeck.models.llm import LLMProvider, ProviderEnum
from holodeck.models.test_case import ExpectedTool, FuzzyMatcher, TestCaseModel, Turn

case = TestCaseModel(name="a", input="b", expected_tools=["x", ExpectedTool(name="y", args={"n": {"fuzzy": "1"}})])
assert issubclass(TestCaseModel, pydantic.BaseModel) and {"name", "input", "turns"} <= set(TestCaseModel.model_fields)
assert case.expected_tools[1].args["n"] == FuzzyMatcher("1")
assert case.model_dump()["expected_tools"] == ["x", {"name": "y", "args": {"n": {"fuzzy": "1"}}, "count": 1}]
assert TestCaseModel.model_validate(case.model_dump()) == case
assert TestCaseModel.model_validate_json(case.model_dump_json()) == case
model = LLMProvider(provider="openai", name="gpt", api_key="sk-secret")
assert model.provider is ProviderEnum.OPENAI and "sk-secret" not in repr(model)
agent = Agent(name="a", model=model, instructions=Instructions(inline="Hi"), test_cases=[case])
assert agent.model_copy(update={"name": "b"}).name == "b"
wrong = ((TestCaseModel, {"name": "a"}), (Turn, {}), (EvaluationMetric, {"metric": "x"}), (Agent, {"name": "a"}))
for kind, fields in wrong:
    try:
        kind(**fields)
    except pydantic.ValidationError:
        continue
    raise AssertionError(kind)
"""
    python(tmp_path, code)
