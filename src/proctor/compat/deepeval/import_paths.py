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
    "errors",
    "tracing",
)
