"""Limits on time, tokens, money and tool calls.

An unknown value is skipped, never taken as zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.observation import CallsNotObserved, settle


@evaluator(family="limits", threshold=1.0, scope="case", example={"seconds": 5, "usd": 0.01})
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(ScoreSettings):
    """The agent stayed within limits on time, tokens, cost and tool calls.

    1 if no limit is exceeded by all turns together. At least one limit is required. Skipped if a limited value is
    unknown, unless another limit is exceeded.
    """

    seconds: float | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None
    tool_calls: int | None = None

    def __post_init__(self) -> None:
        if not self._limits():
            raise ValueError("set at least one of seconds, tokens, input_tokens, output_tokens, usd, tool_calls")

    def _limits(self) -> list[MaxLatency | MaxTokens | MaxCost | MaxSteps]:
        limits: list[MaxLatency | MaxTokens | MaxCost | MaxSteps] = []
        if self.seconds is not None:
            limits.append(MaxLatency(self.seconds))
        tokens = (self.tokens, self.input_tokens, self.output_tokens)
        if any(limit is not None for limit in tokens):
            limits.append(MaxTokens(*tokens))
        if self.usd is not None:
            limits.append(MaxCost(self.usd))
        if self.tool_calls is not None:
            limits.append(MaxSteps(self.tool_calls))
        return limits

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        within: list[Evaluation] = []
        exceeded: list[Evaluation] = []
        unknown: list[str] = []
        hidden: CallsNotObserved | None = None
        for limit in self._limits():
            try:
                evaluation = limit(evaluable)
            except NothingToCompare as error:
                unknown.append(str(error))
            except CallsNotObserved as error:
                hidden = error
            else:
                (within if evaluation.score else exceeded).append(evaluation)
        if hidden is not None and not exceeded:
            raise hidden
        if unknown and not exceeded:
            raise NothingToCompare("; ".join(unknown))
        reason = "; ".join(item.reasoning for item in exceeded or within)
        return Evaluation(float(not exceeded), reason, {"limits": [item.details for item in (*exceeded, *within)]})


@evaluator(family="limits", variant_of="Limits", threshold=1.0, scope="case", example={"seconds": 5})
@dataclass(frozen=True, slots=True)
class MaxLatency(ScoreSettings):
    """The agent answered within a time limit.

    1 if all turns together took at most `seconds`. Skipped if the time is unknown.
    """

    seconds: float

    def __post_init__(self) -> None:
        _check("seconds", self.seconds)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        if evaluable.duration_ms is None:
            raise NothingToCompare("the duration of the answer is unknown")
        taken = evaluable.duration_ms / 1000
        details = {"seconds": taken, "most": self.seconds}
        return Evaluation(float(taken <= self.seconds), f"took {taken:g} s (limit {self.seconds:g} s)", details)


@evaluator(family="limits", variant_of="Limits", threshold=1.0, scope="case", example={"total": 2000})
@dataclass(frozen=True, slots=True)
class MaxTokens(ScoreSettings):
    """The agent stayed within a limit on tokens: total, input or output.

    1 if no limit is exceeded. At least one limit is required. Skipped if the agent does not report its tokens.
    """

    total: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        if not self._limits():
            raise ValueError("set at least one of total, input_tokens, output_tokens")
        for name, limit in self._limits().items():
            _check(name, limit, whole=True)

    def _limits(self) -> dict[str, int]:
        limits = {"total": self.total, "input": self.input_tokens, "output": self.output_tokens}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        usage = evaluable.usage
        if usage is None:
            raise NothingToCompare("the agent does not report its tokens")
        counts = {"total": usage.total_tokens, "input": usage.input_tokens, "output": usage.output_tokens}
        limits = self._limits()
        used = {name: count for name in limits if (count := counts[name]) is not None}
        known = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if "total" not in used and known > limits.get("total", known):
            used["total"] = known
        exceeded = [name for name, count in used.items() if count > limits[name]]
        unknown = [name for name in limits if name not in used]
        if unknown and not exceeded:
            raise NothingToCompare(f"the agent does not report its {' and '.join(unknown)} tokens")
        reason = ", ".join(f"{used[name]} {name} tokens (limit {limits[name]})" for name in exceeded or used)
        return Evaluation(float(not exceeded), reason, {"used": used, "most": limits})


@evaluator(family="limits", variant_of="Limits", threshold=1.0, scope="case", example={"usd": 0.01})
@dataclass(frozen=True, slots=True)
class MaxCost(ScoreSettings):
    """The answer stayed within a cost limit.

    1 if all turns together cost at most `usd`. Skipped if the cost is unknown.
    """

    usd: float

    def __post_init__(self) -> None:
        _check("usd", self.usd)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        cost = None if evaluable.usage is None else evaluable.usage.cost_usd
        if cost is None:
            raise NothingToCompare("the cost of the answer is unknown")
        return Evaluation(
            float(cost <= self.usd), f"cost ${cost:g} (limit ${self.usd:g})", {"usd": cost, "most": self.usd}
        )


@evaluator(family="limits", variant_of="Limits", threshold=1.0, scope="case", example={"steps": 4})
@dataclass(frozen=True, slots=True)
class MaxSteps(ScoreSettings):
    """The agent stayed within a limit on tool calls.

    1 if all turns together made at most `steps` tool calls.
    """

    steps: int

    def __post_init__(self) -> None:
        _check("steps", self.steps, whole=True)

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        count = len(evaluable.tool_calls)
        calls = "tool call" if count == 1 else "tool calls"
        evaluation = Evaluation(
            float(count <= self.steps), f"{count} {calls} (limit {self.steps})", {"steps": count, "most": self.steps}
        )
        return settle(evaluable, evaluation, is_certain=count > self.steps)


def _check(name: str, limit: float, *, whole: bool = False) -> None:
    kinds = int if whole else (int, float)
    if isinstance(limit, bool) or not isinstance(limit, kinds) or not math.isfinite(limit) or limit < 0:
        raise ValueError(f"{name} must be a {'whole' if whole else 'finite'} number of at least 0, not {limit!r}")
