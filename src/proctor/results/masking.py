"""Masks secrets in trials and cases before they are stored or reported, and says which parts of a trial are masked.

A trial records what was masked in it: `replies[0].text`, `case.turns[0].expected`, `spans`. A text that looks like a
mask proves nothing, because an agent may print one. Code that scores a stored answer asks `masked_parts`, since a
masked text scores differently: a leaked key is gone, and an expected one is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from proctor.base.json_data import fingerprint
from proctor.base.masking import IdMasker, Masker, is_masked, secret_values_in, texts_in
from proctor.base.secret_names import is_mixed
from proctor.cases.identity import content_key
from proctor.cases.suite import Case
from proctor.results.trial import Trial

CHECK_LENGTH = 3


class TrialMasker:
    """Masks the trials of one run. Trials of one case come one after another, so its case is masked once."""

    def __init__(self) -> None:
        self._case: tuple[Case, Case] | None = None
        self._ids = IdMasker()

    def trial(self, trial: Trial) -> Trial:
        """The trial without secrets; the same object if it has none.

        What is a secret in one text is one in all of them. Reasons of scores also quote pieces of texts.
        """
        general = Masker()
        words = [(score.reasoning, score.details) for score in trial.scores]  # the rest of a score is ours
        spans = trial.spans if isinstance(trial.spans, (list, tuple)) else ()  # stored ones are masked already
        if not general.might_mask(
            (trial.case, trial.end_reason, trial.replies, words, trial.warnings, trial.captured, spans)
        ):
            return trial
        named = set(secret_values_in((trial.replies, trial.case)))
        masker = Masker(named)
        content = (trial.end_reason, trial.replies, trial.scores, trial.warnings, trial.captured, spans)
        case = self.case(trial.case, general)
        if masker.data(content) is content and case is trial.case:
            return trial
        texts = (trial.replies, trial.case, spans, trial.captured, trial.end_reason, trial.warnings)
        secrets = named | masker.secrets_in(texts)
        masker = Masker(named | set(filter(is_mixed, secrets)))
        replies, captured, masked_spans = masker.data((trial.replies, trial.captured, spans))
        quoting = Masker(named, quoted=secrets)
        reason, scores, warnings = quoting.data((trial.end_reason, trial.scores, trial.warnings))
        result = replace(
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
        return replace(
            result,
            masked=None
            if trial.masked is None
            else tuple(dict.fromkeys((*trial.masked, *_differences(trial, result)))),
            masked_case=trial.masked_case if case is trial.case else case_check(trial.case),
        )

    def case(self, case: Case, masker: Masker) -> Case:
        """The case without secrets. Ids of different cases stay different, because cases are found by them."""
        if self._case is None or self._case[0] is not case:
            masked, case_id = masker.data(case), self._ids.mask(case.id)
            self._case = case, masked if masked.id == case_id else replace(masked, id=case_id)
        return self._case[1]


def _differences(trial: Trial, masked: Trial) -> Iterator[str]:
    """The parts that masking has changed; it leaves everything else as the same object."""
    before, after = parts_of(replace(trial, spans=())), parts_of(replace(masked, spans=()))
    yield from (part for part, value in before.items() if after[part] is not value)
    if masked.spans is not trial.spans:
        yield "spans"


def mask_trial(trial: Trial) -> Trial:
    """The trial without secrets; the same object if it has none."""
    return TrialMasker().trial(trial)


def mask_case(case: Case) -> Case:
    """The case without secrets, as the store has it. Two cases are the same if their masked forms are."""
    return TrialMasker().case(case, Masker())


def masked_parts(trial: Trial) -> frozenset[str]:
    """The parts of a trial that are not as the agent and the evaluators saw them, such as `replies[0].text`.

    Earlier versions did not record them. In their trials, every part with a text that looks like a mask counts.
    """
    if trial.masked is not None:
        return frozenset(trial.masked)
    return frozenset(part for part, value in parts_of(trial).items() if any(map(is_masked, texts_in(value))))


def parts_of(trial: Trial) -> dict[str, Any]:
    """The parts of a trial that evaluators can see, by name."""
    parts = {f"replies[{at}].{name}": value for at, reply in enumerate(trial.replies) for name, value in _fields(reply)}
    return parts | case_parts(trial.case) | {"spans": tuple(trial.spans)}


def case_parts(case: Case) -> dict[str, Any]:
    """The parts of a case that evaluators can see, by name."""
    parts = {f"case.{name}": value for name, value in _fields(case) if name != "turns"}
    return parts | {
        f"case.turns[{at}].{name}": value for at, turn in enumerate(case.turns) for name, value in _fields(turn)
    }


def case_check(case: Case) -> str:
    """A few digits of the key of a case, by which a changed secret in it is noticed: its masked form stays the same.

    They are too few to find out a secret by trying: one in 4,096 values has the same.
    """
    return fingerprint(content_key(case), case.description)[:CHECK_LENGTH]


def has_other_secret(case: Case, check: str) -> bool:
    """Whether a secret in a case is not the one of a stored trial, whose `masked_case` is `check`.

    Only for a case that is otherwise the same. An empty check, as in a store with secrets, says nothing.
    """
    return bool(check) and mask_case(case) is not case and case_check(case) != check


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields that count when two objects are compared, which are those that are stored, without a reply's `raw`."""
    return ((item.name, getattr(value, item.name)) for item in fields(value) if item.compare and item.name != "raw")
