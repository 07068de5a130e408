"""Scores mutants with the engine's own scoring, and knows which changes an evaluator can see."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.agents.control_agents import OracleSession
from proctor.agents.reply import Reply
from proctor.base.errors import UnreadableReply
from proctor.cases.suite import Case
from proctor.evaluators.declaration import declaration_of
from proctor.evaluators.judged_evaluator import BUDGET_SPENT
from proctor.evaluators.registry import ResolvedEvaluator
from proctor.judging.budget import Budget
from proctor.judging.judges import Judges
from proctor.results.score import JUDGE_DETAIL as JUDGED
from proctor.results.score import Outcome, Score
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.running.conversation import ConversationResult
from proctor.running.plan import PlannedSuite, PlannedTrial
from proctor.running.scoring import ScoringContext, score, with_outcome
from proctor.running.timeouts import Watchdog
from proctor.running.tool_rerun import mocked_tools

ALL_PARTS = frozenset({"answer", "calls", "tokens", "time"})
_ANSWER_ONLY = frozenset({"answer"})
_FAMILY_PARTS: Mapping[str, frozenset[str]] = {
    "text": _ANSWER_ONLY,
    "data": _ANSWER_ONLY,
    "passages": _ANSWER_ONLY,
    "reference": _ANSWER_ONLY,
    "rubric": _ANSWER_ONLY,
    "safety": frozenset(),
    "tools": frozenset({"calls"}),
}
"""The parts that the evaluators of a family look at; other evaluators may look at everything. No mutant is harmful, so
an evaluator that looks for harm sees no change."""
_EVALUATOR_PARTS: Mapping[str, frozenset[str]] = {
    "MaxLatency": frozenset({"time"}),
    "MaxTokens": frozenset({"tokens"}),
    "MaxCost": frozenset({"tokens"}),
    "MaxSteps": frozenset({"calls"}),
    "Measured": frozenset(),
    "FinalState": frozenset(),
}


def observed_parts(bound: ResolvedEvaluator) -> frozenset[str]:
    """The parts of a reply that can change the score of an evaluator."""
    name = bound.spec.name
    if name in _EVALUATOR_PARTS:
        return _EVALUATOR_PARTS[name]
    return _FAMILY_PARTS.get(declaration_of(bound.call).family, ALL_PARTS)


@dataclass(frozen=True, slots=True)
class MutantScores:
    """The scores of one mutant."""

    outcome: Outcome
    scores: tuple[Score, ...]
    reason: str = ""

    @property
    def is_over_budget(self) -> bool:
        """Whether a judge was not called because the budget is spent."""
        return any(item.value is None and BUDGET_SPENT in item.details.get(JUDGED, {}) for item in self.scores)


class MutantScorer:
    """Scores conversations inside one event loop."""

    def __init__(self, watchdog: Watchdog, parallel: int, judges: Judges | None) -> None:
        slots = asyncio.Semaphore(parallel)
        self._without_models = ScoringContext(slots, watchdog, True, judges)
        self._with_models = ScoringContext(slots, watchdog, False, judges)

    async def score(
        self, planned: PlannedTrial, answer: ConversationResult, replies: tuple[Reply, ...], *, models: bool = False
    ) -> MutantScores:
        """Score these replies with the suite; without `models`, only with evaluators that need none."""
        changed = replace(answer, replies=replies)
        context = self._with_models if models else self._without_models
        case, suite = planned.case, planned.suite.suite
        with mocked_tools(case) if case.mocks else contextlib.nullcontext():
            scores, _ = await score(planned, changed, context)
        done = with_outcome(suite, changed, scores)
        return MutantScores(done.outcome or Outcome.ERROR, scores, done.reason or _undecided_reason(scores))


def _undecided_reason(scores: Sequence[Score]) -> str:
    """The reason of the first score that is an error or pending."""
    for outcome in (Outcome.ERROR, Outcome.PENDING):
        for item in scores:
            if not item.report_only and item.outcome is outcome:
                return f"{item.evaluator}: {item.reasoning}"
    return ""


async def oracle_replies(case: Case) -> tuple[Reply, ...] | None:
    """The expected answers of a case; `None` if it expects too little."""
    try:
        async with OracleSession(case) as session:
            return tuple([await session.send(turn) for turn in case.turns])
    except UnreadableReply:
        return None


def failing_evaluators(scores: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(item.evaluator for item in scores if item.outcome is Outcome.FAILED))


def detections(
    parts: frozenset[str], scores: Sequence[Score], observed: Mapping[str, frozenset[str]]
) -> dict[str, bool]:
    """For each evaluator that could see one of these parts and passed or failed the answer: whether it failed it."""
    detected: dict[str, bool] = {}
    for item in scores:
        failed = item.outcome is Outcome.FAILED
        is_observed = bool(parts & observed.get(item.evaluator, ALL_PARTS))
        if failed or (is_observed and item.outcome is Outcome.PASSED):
            detected[item.evaluator] = detected.get(item.evaluator, False) or failed
    return detected


def asks_models(planned: PlannedTrial) -> bool:
    """Whether an evaluator of the case needs a language model."""
    return any(bound.needs_model for bound in planned.evaluators)


@contextmanager
def judges_within_budget(
    budget_usd: float | None, store: Path | None, suites: Sequence[PlannedSuite]
) -> Iterator[Judges | None]:
    """Judges that use stored replies and new calls until the budget is spent; `None` if the suites need no model."""
    if not any(item.asks_models for item in suites):
        yield None
        return
    calls: Any = None if store is None else StoredJudgeCalls(store)
    try:
        yield Judges(calls, Budget(budget_usd or 0.0))
    finally:
        if calls is not None:
            calls.close()
