"""Scores stored answers in which secrets are masked.

A masked text scores differently: a leaked key is gone from the answer, and an expected one is missing. So no evaluator
sees a masked text. Reading a masked field of a `MaskedEvaluable` raises `MaskedText`. Whatever the evaluator makes of
that, its score is then the stored one, which is from the run that saw the text, if the evaluator, the case and the
answer are the same; otherwise it is an error. Evaluators that read only other fields give their own score.

The obvious version, comparing what an evaluator declares with what is masked, does not work for functions of users:
they declare nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from proctor.agents.reply import Reply
from proctor.base.errors import ProctorError
from proctor.base.json_data import Json
from proctor.base.masking import is_masked, texts_in
from proctor.cases.identity import content_key
from proctor.cases.suite import Case
from proctor.cases.threshold import passes
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.registry import ResolvedEvaluator
from proctor.results.masking import case_check, case_parts, mask_case, masked_parts, parts_of
from proctor.results.score import JUDGE_DETAIL, MASKED_TEXT, MEAN_OVER_TURNS, Outcome, Score
from proctor.results.trial import Trial
from proctor.running.evaluables import masked_fields

STORED_SCORE = "score of the run that saw the text before secrets in it were masked"
"""Added to the reason of a stored score, and its detail `MASKED_TEXT`."""
NO_SCORE = "not scored"
"""The detail `MASKED_TEXT` of an error."""

FIELD_NAMES: Mapping[str, str] = {
    "eval_output": "the answer",
    "tool_calls": "the tool calls",
    "retrieval_context": "the passages",
    "state": "the state",
    "eval_input": "the input",
    "turns": "the conversation",
    "trace": "the trace",
}
"""Fields of an `Evaluable` in the words of reports; all others are expectations."""


class MaskedText(ProctorError):
    """An evaluator read a text in which secrets are masked."""


@dataclass(frozen=True, slots=True)
class MaskedEvaluable(Evaluable):
    """An evaluable that lets nobody read its masked fields, and remembers which ones somebody tried to read."""

    masked: frozenset[str] = frozenset()
    """The names of the masked fields."""
    reads: set[str] = field(default_factory=set)
    """The masked fields that were read, of this object and of its copies."""

    def __post_init__(self) -> None:
        return  # the fields come from an evaluable, so they have their form already

    def __getattribute__(self, name: str) -> Any:
        if name in object.__getattribute__(self, "masked"):
            reads: set[str] = object.__getattribute__(self, "reads")
            reads.add(name)
            raise MaskedText(f"secrets in {FIELD_NAMES.get(name, 'the expectations')} are masked")
        return object.__getattribute__(self, name)

    @classmethod
    def of(cls, evaluable: Evaluable, masked: frozenset[str]) -> MaskedEvaluable:
        return cls(**{item.name: getattr(evaluable, item.name) for item in fields(Evaluable)}, masked=masked)


@dataclass(frozen=True, slots=True)
class MaskedAnswer:
    """A stored answer with masked parts that is scored again."""

    stored: Trial
    parts: frozenset[str]
    """The masked parts of the case and the replies that are scored."""
    is_unchanged: bool
    """Whether the case and the replies are those that the stored scores are about."""

    def hide(self, evaluable: Evaluable, turn: int | None) -> Evaluable:
        """What evaluators get instead of the evaluable of a turn, or of the whole conversation."""
        names = masked_fields(self.parts, turn, len(self.stored.replies))
        return MaskedEvaluable.of(evaluable, names) if names else evaluable

    def is_read_by(self, evaluator: ResolvedEvaluator, evaluable: Evaluable) -> bool:
        """Whether an evaluator that has scored an evaluable tried to read masked text, or its arguments have some."""
        if isinstance(evaluable, MaskedEvaluable) and evaluable.reads:
            return True
        return self._has_masked_arguments(evaluator)

    def stored_score(self, evaluator: ResolvedEvaluator, turn: int | None) -> Score | None:
        """The score of the same evaluator in the run that saw the text; `None` if there is none."""
        is_older = self.stored.masked is None and self.stored.reused  # may have been scored on masked text itself
        if is_older or not self.is_unchanged:
            return None
        # An evaluator with masked arguments comes from the store, like the score: its title identifies it.
        is_same_code = self._has_masked_arguments(evaluator)
        scores = [
            score
            for score in self.stored.scores
            if score.turn == turn
            and score.outcome is not Outcome.ERROR
            and (score.evaluator == evaluator.title if is_same_code else score.fingerprint == evaluator.fingerprint)
        ]
        named = [score for score in scores if score.evaluator == evaluator.title]
        return _carried_over((named or scores)[0], evaluator) if scores else None

    def reason(self, evaluable: Evaluable) -> str:
        """Why an evaluator that read the evaluable has no score."""
        reads = sorted(evaluable.reads) if isinstance(evaluable, MaskedEvaluable) else []
        places = list(dict.fromkeys(FIELD_NAMES.get(name, "the expectations") for name in reads))
        place = " and ".join(places) or "its arguments"
        return (
            f"secrets in {place} are masked in the store, and the run that saw them has no score of this evaluator for "
            "the case as it is now; run the case again"
        )

    def _has_masked_arguments(self, evaluator: ResolvedEvaluator) -> bool:
        if not any(part.endswith("evaluators") for part in self.parts):
            return False
        return any(map(is_masked, texts_in(evaluator.spec.arguments)))


def masked_answer(stored: Trial | None, planned: Case, held: Case, replies: Sequence[Reply]) -> MaskedAnswer | None:
    """What is masked in a stored answer that is scored for a case; `None` if nothing is, or the answer is new.

    `planned` is the case as the suite has it, `held` the same with the turns of a simulated user.
    """
    parts = frozenset() if stored is None else parts_in_force(stored, held, replies)
    if stored is None or not parts:
        return None
    return MaskedAnswer(stored, parts, tuple(replies) == stored.replies and _is_same_case(planned, stored))


def parts_in_force(stored: Trial, case: Case, replies: Sequence[Reply] | None = None) -> frozenset[str]:
    """The masked parts of a stored trial that are masked in a case and in replies too.

    A suite file has the case with its secrets, so usually only the replies are masked. Replies that were changed, as
    mutants are, count as masked if they still have a masked text.
    """
    masked = masked_parts(stored)
    if not masked:
        return masked
    before = parts_of(stored)
    now = before if replies is None else parts_of(replace(stored, replies=tuple(replies)))
    now = {**now, **dict.fromkeys(case_parts(stored.case)), **case_parts(case)}
    return frozenset(
        part
        for part in masked
        if part in now and (now[part] == before.get(part) or any(map(is_masked, texts_in(now[part]))))
    )


def _is_same_case(case: Case, stored: Trial) -> bool:
    """Whether a case has the input and the expectations that it had when a trial of it was stored, masked or not."""
    masked = mask_case(case)
    if (content_key(masked), masked.description) != (content_key(stored.case), stored.case.description):
        return False
    # Two cases that differ in a secret have the same masked form.
    return masked is case or stored.masked_case == case_check(case)


def _carried_over(score: Score, evaluator: ResolvedEvaluator) -> Score:
    """A stored score under the current threshold, without the cost of its judge, which was paid then."""
    details: dict[str, Json] = {name: value for name, value in score.details.items() if name != MEAN_OVER_TURNS}
    if isinstance(judge := details.get(JUDGE_DETAIL), Mapping):
        details[JUDGE_DETAIL] = {name: value for name, value in judge.items() if name not in ("calls", "usage")}
    reasoning = score.reasoning
    if MASKED_TEXT not in details:
        reasoning = f"{reasoning} ({STORED_SCORE})" if reasoning else STORED_SCORE
    return replace(
        score,
        evaluator=evaluator.title,
        outcome=_outcome(score, evaluator.threshold),
        threshold=evaluator.threshold,
        reasoning=reasoning,
        report_only=evaluator.spec.report_only,
        details={**details, MASKED_TEXT: STORED_SCORE},
        fingerprint=evaluator.fingerprint,
    )


def _outcome(score: Score, threshold: float) -> Outcome:
    """The outcome under a threshold. One that the evaluator decided against its own threshold stays."""
    if score.value is None or score.threshold is None or score.outcome not in (Outcome.PASSED, Outcome.FAILED):
        return score.outcome
    is_decided_by_threshold = passes(score.value, score.threshold) == (score.outcome is Outcome.PASSED)
    if not is_decided_by_threshold and MEAN_OVER_TURNS not in score.details:
        return score.outcome
    return Outcome.PASSED if passes(score.value, threshold) else Outcome.FAILED


def masked_scores_note(scores: Iterable[Score]) -> str:
    """A note on how many of these scores depend on masked text; empty if none does."""
    kinds = [score.details[MASKED_TEXT] for score in scores if MASKED_TEXT in score.details]
    stored = sum(kind == STORED_SCORE for kind in kinds)
    parts = [f"{stored:,} {'is' if stored == 1 else 'are'} from the run that saw the original"] if stored else []
    if errors := len(kinds) - stored:
        parts.append(f"{errors:,} {'is an error' if errors == 1 else 'are errors'}, because no run scored the original")
    count = f"{len(kinds):,} {'score depends' if len(kinds) == 1 else 'scores depend'}"
    return f"{count} on text in which secrets are masked: {'; '.join(parts)}" if kinds else ""
