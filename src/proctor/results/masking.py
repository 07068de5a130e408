"""Masks secrets in trials and cases before they are stored or reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.agents.reply import Reply
from proctor.base.masking import Masker, is_masked, secret_values_in, texts_in
from proctor.cases.suite import Case
from proctor.results.score import Score
from proctor.results.trial import Trial

MASKED_NOTE = "scored on an answer in which secrets are masked"
"""Added to the reason of a score whose evaluator saw a masked answer; the original might score differently."""


class TrialMasker:
    """Masks the trials of one run. Trials of one case come one after another, so its case is masked once."""

    def __init__(self) -> None:
        self._case: tuple[Case, Case] | None = None

    def trial(self, trial: Trial) -> Trial:
        """The trial without secrets; the same object if it has none."""
        general = Masker()
        words = [(score.reasoning, score.details) for score in trial.scores]  # the rest of a score is ours
        spans = trial.spans if isinstance(trial.spans, (list, tuple)) else ()  # stored ones are masked already
        if not general.might_mask(
            (trial.case, trial.end_reason, trial.replies, words, trial.warnings, trial.captured, spans)
        ):
            return trial
        masker = Masker(secret_values_in((trial.replies, trial.case)))
        content = (trial.end_reason, trial.replies, trial.scores, trial.warnings, trial.captured)
        reason, replies, scores, warnings, captured = masked = masker.data(content)
        case, masked_spans = self.case(trial.case, general), masker.data(spans)
        if masked is content and case is trial.case and masked_spans is spans:
            return trial
        return replace(
            trial,
            case=case,
            spans=trial.spans if masked_spans is spans else masked_spans,
            end_reason=reason,
            replies=replies,
            scores=scores,
            warnings=warnings,
            captured=captured,
            original=trial,
        )

    def case(self, case: Case, masker: Masker) -> Case:
        """The case without secrets; its id stays as it is, because cases are found by it."""
        if self._case is None or self._case[0] is not case:
            masked = masker.data(case)
            self._case = case, masked if masked.id == case.id else replace(masked, id=case.id)
        return self._case[1]


def mask_trial(trial: Trial) -> Trial:
    """The trial without secrets; the same object if it has none."""
    return TrialMasker().trial(trial)


def mask_case(case: Case) -> Case:
    """The case without secrets, as the store has it. Two cases are the same if their masked forms are."""
    return TrialMasker().case(case, Masker())


def with_masked_note(scores: tuple[Score, ...], replies: Sequence[Reply]) -> tuple[Score, ...]:
    """The scores, with `MASKED_NOTE` in their reasons if a reply had been masked before it was scored."""
    if not any(map(is_masked, texts_in(tuple(replies)))):
        return scores
    return tuple(
        replace(score, reasoning=f"{score.reasoning} ({MASKED_NOTE})" if score.reasoning else MASKED_NOTE)
        for score in scores
    )
