"""HoloDeck's exceptions. `except HoloDeckError` catches everything that Proctor raises on purpose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proctor.base.errors import InvalidSuite, Problem, ProctorError

HoloDeckError = ProctorError


class ConfigError(InvalidSuite):
    """An agent.yaml or a setting that cannot be used: all problems, with `field` and `message` of the first.

    It is created with a field name and a message, as in HoloDeck, or with problems.
    """

    def __init__(self, field: str | Iterable[Problem] = "", message: str = "") -> None:
        problems = [Problem(message, where=field)] if isinstance(field, str) else list(field)
        super().__init__(problems)
        self.field = problems[0].where if problems else ""
        self.message = problems[0].message if problems else ""


class ValidationError(HoloDeckError):
    """A value that is not what it should be. Proctor itself raises pydantic's error of this name."""

    def __init__(self, field: str, message: str = "", expected: str = "", actual: str = "") -> None:
        self.field = field
        self.message = message or field
        self.expected = expected
        self.actual = actual
        details = f": expected {expected}, got {actual}" if expected or actual else ""
        super().__init__(f"{field}: {message}{details}" if message else field)


class FileNotFoundError(HoloDeckError):  # noqa: A001  HoloDeck's name
    """A configuration file that does not exist."""

    def __init__(self, path: str, message: str = "") -> None:
        self.path = path
        self.message = message
        super().__init__(f"File not found: {path}" + (f"\n{message}" if message else ""))


HoloDeckFileNotFoundError = FileNotFoundError


class ExecutionError(HoloDeckError):
    """Tests could not be run."""


class AgentInitializationError(HoloDeckError):
    """An agent could not be started."""

    def __init__(self, agent_name: str, message: str) -> None:
        self.agent_name = agent_name
        self.message = message
        super().__init__(f"{agent_name} could not be started: {message}")


class TestCaseFatal(HoloDeckError):
    """A grader with `fail_on_error` raised. Here, such a test is an error, and this is never raised."""

    __test__ = False


class EvaluationError(HoloDeckError):
    """An evaluator could not compute a score."""


class NLPMetricsError(EvaluationError):
    """A text metric could not be computed."""


class ProviderNotSupportedError(EvaluationError):
    """An evaluator that does not work with the provider of its judge."""

    def __init__(
        self,
        message: str,
        evaluator_type: str = "",
        configured_provider: str = "",
        supported_providers: Iterable[str] = (),
    ) -> None:
        self.evaluator_type = evaluator_type
        self.configured_provider = configured_provider
        self.supported_providers = list(supported_providers)
        super().__init__(message)


class DeepEvalError(EvaluationError):
    """A judged metric failed."""

    def __init__(
        self,
        message: str,
        metric_name: str = "",
        original_error: Exception | None = None,
        test_case_summary: dict[str, Any] | None = None,
    ) -> None:
        self.metric_name, self.original_error = metric_name, original_error
        self.test_case_summary = test_case_summary or {}
        super().__init__(message)


class BackendError(HoloDeckError):
    """The base of errors of backends."""


class BackendInitError(BackendError):
    """A backend could not be created: a package, a key or part of the agent's description is missing or wrong."""


class BackendSessionError(BackendError):
    """A conversation could not continue."""

    breaks_session = True
    """Two of these in a row end the conversation; after one, the next turn is still sent."""


class BackendTimeoutError(BackendError):
    """A backend took too long."""


class BackendBudgetExceededError(BackendError):
    """A backend stopped because the conversation cost more than allowed."""

    def __init__(
        self,
        message: str = "the budget is spent",
        *,
        partial_response: str = "",
        accumulated_cost_usd: float = 0.0,
        budget_usd: float = 0.0,
    ) -> None:
        self.partial_response, self.budget_usd = partial_response, budget_usd
        self.accumulated_cost_usd = accumulated_cost_usd
        super().__init__(message)
