"""Masks secrets in what is kept and shown of a trial; evaluators have seen the original by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from proctor.base.secrets import Masker, is_masked, texts_in, values_under_names
from proctor.cases.suite import Case
from proctor.results.run import Score, TrialResult

if TYPE_CHECKING:
    from proctor.agents.agent import Reply
    from proctor.tracing.spans import Span

MASKED_NOTE = "scored on an answer in which secrets are masked"
"""What a score says whose evaluator saw a masked answer: it may differ from that of the original."""


class TrialMasker:
    """Masks trials of one run; most cases come several times, and are looked at once."""

    def __init__(self) -> None:
        self._case: tuple[Case, Case] | None = None

    def trial(self, trial: TrialResult) -> TrialResult:
        """The same trial where it holds no secret."""
        masker = Masker()
        content = (trial.reason, trial.replies, trial.scores, trial.warnings)
        case, spans = self.case(trial.case, masker), _masked_spans(trial.spans, masker)
        if masker.may_be_in(texts_in(content)):
            masker = Masker(values_under_names((trial.replies, trial.case)))
            reason, replies, scores, warnings = masker.data(content)
            changed = any(new is not old for new, old in zip((reason, replies, scores, warnings), content, strict=True))
        else:
            changed = False
        if not changed and case is trial.case and spans is trial.spans:
            return trial
        if not changed:
            return replace(trial, case=case, spans=spans, unmasked=trial)
        return replace(
            trial,
            case=case,
            spans=spans,
            reason=reason,
            replies=tuple(replies),
            scores=tuple(scores),
            warnings=tuple(warnings),
            unmasked=trial,
        )

    def case(self, case: Case, masker: Masker) -> Case:
        """Its id stays, by which it is found again."""
        if self._case is None or self._case[0] is not case:
            masked = masker.record(case) if masker.may_be_in(texts_in(case)) else case
            self._case = case, masked if masked.id == case.id else replace(masked, id=case.id)
        return self._case[1]


def mask_trial(trial: TrialResult) -> TrialResult:
    return TrialMasker().trial(trial)


def mask_case(case: Case) -> Case:
    """The case as the store has it: two cases are the same if they are so masked."""
    return TrialMasker().case(case, Masker())


def with_masked_note(scores: tuple[Score, ...], replies: Sequence[Reply]) -> tuple[Score, ...]:
    """Scores that say so where the answer they are about had been masked before."""
    if not any(map(is_masked, texts_in(tuple(replies)))):
        return scores
    return tuple(
        replace(score, reasoning=f"{score.reasoning} ({MASKED_NOTE})" if score.reasoning else MASKED_NOTE)
        for score in scores
    )


def _masked_spans(spans: Sequence[Span], masker: Masker) -> Sequence[Span]:
    """Those that come from the store are masked there already."""
    if not spans or not isinstance(spans, (list, tuple)) or not masker.may_be_in(texts_in(spans)):
        return spans
    masked: Any = masker.data(spans)
    return spans if masked is spans else tuple(masked)
