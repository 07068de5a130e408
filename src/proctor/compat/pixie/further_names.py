"""Smaller names of pixie 0.4 and 0.6: its base class for handlers, switches without an effect here, and constants."""

from __future__ import annotations

import inspect
import typing
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, JsonValue

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Unset
from proctor.base.references import is_reference
from proctor.cases.formats.loading import load_file
from proctor.compat.pixie.datasets import file_stem
from proctor.compat.pixie.span_handlers import flush
from proctor.tracing.spans import Content, LLMSpan, ObserveSpan
from proctor.tracing.wrap import MissingInput

MessageContent = Content
Purpose = Literal["input", "output", "state"]
WrapRegistryMissError = MissingInput
_Unset = Unset
_slugify = file_stem
ENTRY_KWARGS_KEY = "app_input"
"""The name that pixie 0.6 reserves among the inputs of an entry."""
DEFAULT_ROOT = "pixie_qa"
DEFAULT_RUNNABLE_CONCURRENCY = 4
DEFAULT_RATE_LIMIT_RPS, DEFAULT_RATE_LIMIT_RPM = 4.0, 50.0
DEFAULT_RATE_LIMIT_TPS, DEFAULT_RATE_LIMIT_TPM = 10_000.0, 500_000.0
BUILTIN_EVALUATOR_NAMES = frozenset(
    """AnswerCorrectness AnswerRelevancy Battle ClosedQA ContextRelevancy EmbeddingSimilarity ExactMatch Factuality
    Faithfulness Humor JSONDiff LevenshteinMatch ListContains Moderation NumericDiff Possible Security Sql Summary
    Translation ValidJSON""".split()
)


class InstrumentationHandler:
    """The base of handlers for `add_handler`; a subclass overrides one method or both."""

    async def on_llm(self, span: LLMSpan) -> None:
        """Called with every model call that has ended."""

    async def on_observe(self, span: ObserveSpan) -> None:
        """Called with every observed step that has ended."""


class WrappedData(BaseModel):
    """A record of one call of `wrap()`, as in the files of `pixie trace`."""

    type: str = "wrap"
    name: str
    purpose: Purpose
    data: JsonValue
    description: str | None = None
    trace_id: str | None = None
    span_id: str | None = None


@dataclass(frozen=True)
class RateLimitConfig:
    """pixie's limits for evaluators, per second and per minute."""

    enabled: bool = False
    rps: float = DEFAULT_RATE_LIMIT_RPS
    rpm: float = DEFAULT_RATE_LIMIT_RPM
    tps: float = DEFAULT_RATE_LIMIT_TPS
    tpm: float = DEFAULT_RATE_LIMIT_TPM


def init(*, capture_content: bool = True, queue_size: int = 1000) -> None:
    """Nothing: Proctor records spans without it."""


def _reset_state() -> None:
    """Wait for handlers; there is no other state to reset."""
    flush()


def enable_storage() -> None:
    """Warn that it has no effect: Proctor stores the traces of test runs without it, and no others."""
    warnings.warn(
        "enable_storage() has no effect: the traces of test runs are stored without it, "
        "and `proctor trace --runnable` stores others",
        stacklevel=2,
    )


def configure_rate_limits(config: RateLimitConfig | None) -> None:
    """Warn that it has no effect: Proctor finds out what an endpoint accepts, and the project file can set limits."""
    if config is not None:
        warnings.warn(
            "configure_rate_limits() has no effect: judges are limited without it; "
            "known limits go into the judge's requests_per_minute and tokens_per_minute",
            stacklevel=2,
        )


def is_runnable_class(value: Any) -> bool:
    """Whether it is a class with `create` and `run`."""
    return isinstance(value, type) and all(callable(getattr(value, name, None)) for name in ("create", "run"))


def get_runnable_args_type(runnable: type[Any]) -> type[Any]:
    """The annotated type of the parameter `args` of `run`; raises `TypeError` if there is none."""
    hints = typing.get_type_hints(runnable.run)
    if "args" not in inspect.signature(runnable.run).parameters or "args" not in hints:
        raise TypeError(f"{runnable.__name__}.run() must have a parameter 'args' with a pydantic model as its type")
    kind: type[Any] = hints["args"]
    return kind


def resolve_evaluator_name(name: str) -> str:
    """The full name of an evaluator in a dataset; raises `ValueError` for one that is not built in."""
    name = name.strip()
    if is_reference(name):
        return name
    if name not in BUILTIN_EVALUATOR_NAMES:
        raise ValueError(f"Unknown evaluator {name!r}; write file.py:name for your own")
    return f"pixie.{name}"


def validate_dataset_file(path: str | Path) -> list[str]:
    """Everything that is wrong with a dataset file, or an empty list."""
    try:
        load_file(Path(path))
    except InvalidSuite as error:
        return [str(problem) for problem in error.problems]
    return []
