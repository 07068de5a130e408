"""The modules of DeepEval from which users import names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from proctor.compat.deepeval import metrics


def _metric_modules(classes: Iterable[str]) -> Iterator[str]:
    """Each metric's own package and module: `metrics.g_eval.g_eval` for `GEval`."""
    for name in classes:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
        folder = words.removesuffix("_Metric").removesuffix("Metric").lower()
        yield f"metrics.{folder}"
        yield f"metrics.{folder}.{folder}"


_MODEL_MODULES = """amazon_bedrock_model anthropic_model azure_model deepseek_model gemini_model grok_model kimi_model
    litellm_model local_model ollama_model openai_model openrouter_model portkey_model""".split()

_BENCHMARKS = """bbq big_bench_hard drop equity_med_qa hellaswag human_eval logi_qa math_qa mmlu squad
    truthful_qa""".split()
_FRAMEWORKS = """agentcore crewai google_adk hugging_face langchain llama_index openinference pydantic_ai
    strands""".split()

IMPORT_PATHS = (
    "metrics",
    "metrics.base_metric",
    "metrics.dag.dag",
    "metrics.dag.graph",
    "metrics.dag.nodes",
    "metrics.conversational_dag.nodes",
    "metrics.g_eval.utils",
    *_metric_modules(metrics.__all__),
    "test_case",
    "test_case.llm_test_case",
    "test_case.conversational_test_case",
    "dataset",
    "dataset.dataset",
    "dataset.golden",
    "models",
    "models.base_model",
    "evaluate",
    "evaluate.configs",
    "evaluate.evaluate",
    "evaluate.types",
    "evaluate.compare",
    "evaluate.utils",
    "errors",
    "tracing",
    "tracing.api",
    "tracing.context",
    "tracing.tracing",
    "tracing.types",
    "test_case.arena_test_case",
    "test_case.mcp",
    "test_case.mllm_test_case",
    "test_case.utils",
    "dataset.api",
    "dataset.types",
    "dataset.utils",
    "metrics.indicator",
    "metrics.mcp",
    "metrics.ragas",
    "metrics.utils",
    "metrics.multimodal_metrics",
    *(f"models.llms.{name}" for name in _MODEL_MODULES),
    "models.embedding_models",
    "annotation",
    "anthropic",
    "benchmarks.arc.mode",
    "benchmarks.base_benchmark",
    "benchmarks.modes",
    "benchmarks.tasks",
    "benchmarks.truthful_qa.mode",
    *(f"benchmarks.{name}.task" for name in _BENCHMARKS),
    "classifiers",
    "constants",
    "conversation_simulator",
    "guardrails",
    *(f"integrations.{name}" for name in _FRAMEWORKS),
    "monitor",
    "openai",
    "openai_agents",
    "optimizer.algorithms",
    "optimizer.configs",
    "prompt",
    "red_teaming",
    "scorer",
    "simulator",
    "simulator.conversation_simulator",
    "synthesizer",
    "synthesizer.config",
    "synthesizer.types",
    "templates",
    "test_run",
    "utils",
    "voice.connectors",
)
