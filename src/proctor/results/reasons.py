"""Which reason is shown first: one rule for every report, page, comment and notebook, pytest and comparisons.

A trial that did not pass has its own reason (the agent raised, timed out), or one of its scores has it. The obvious
rule, "the first score that failed", depends on the order of a list in a suite, and would headline a refund of 200
instead of 20 with a judge's remark about the wording of the answer. So the scores of a trial are ordered by how much
they say about what went wrong:

1. a score that counts before one that is report only;
2. a failure before an error, an error before a pending or a skipped score;
3. what is checked, by `Subject`: what the agent did (tool calls, arguments, state), what it answered, how similar the
   answer is to the expected one, its form, its limits, a person's grade, the opinion of a judge;
4. among judges, the ones that read the suite's own words before general ones, and what rules prove before what a model
   thinks;
5. a score with a reason before one without;
6. the order of the evaluators in the suite, turn by turn.

Among the trials of a case, the worst outcome comes first, then the reason that most trials have.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from proctor.cases.threshold import passes
from proctor.evaluators import family_of
from proctor.judging.judge import is_rule_based
from proctor.results.score import GRADED_BY, JUDGE_DETAIL, MEAN_OVER_TURNS, Outcome, Score

if TYPE_CHECKING:
    from proctor.results.trial import Trial

MAX_CAUSE = 160
MAX_REASON_READ = 2_000
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|(?<!\w)\'(?:[^\'\\]|\\.)*\'(?!\w)|`[^`]*`')
_IDENTIFIER = re.compile(r"\b(?=[0-9a-f-]*[0-9])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\b0x[0-9a-fA-F]+\b")
_NUMBER = re.compile(r"[$€£]?(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?(?!\w)")
_REPEATED_ELLIPSIS = re.compile(r"…(?:,? …)+")
_PRESERVED = re.compile(r"[\w./-]+\.py:\d+|[\"'][^\"']*[\"'] is a required property")
_OUTCOMES = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.SKIPPED)
NUMBERED_TITLE = re.compile(r" #\d+\Z")
"""The end of an evaluator's title if several in one list have the same: `Contains #2`."""


class Subject(enum.IntEnum):
    """What a score is about, what says most about a failure first."""

    ACTIONS = 0
    """Tool calls, their arguments, and the state they left."""
    ANSWER = 1
    """The content of the answer: words, numbers, data, and checks in the user's own code."""
    SIMILARITY = 2
    """How close the answer is to the expected one, as a number."""
    FORM = 3
    """Whether the answer is valid JSON."""
    LIMITS = 4
    """Time, tokens, money and the number of calls."""
    GRADE = 5
    """What a person says."""
    OPINION = 6
    """What a judge says."""


_SUBJECT_OF_NAME = {
    **dict.fromkeys(("BLEU", "ROUGE", "METEOR", "LevenshteinMatch", "RougeWithThoughts"), Subject.SIMILARITY),
    "ValidJSON": Subject.FORM,
    "ToolCount": Subject.LIMITS,
}
_SUBJECT_OF_FAMILY = {
    "tools": Subject.ACTIONS,
    "limits": Subject.LIMITS,
    **dict.fromkeys(("passages", "reference", "rubric", "agent", "safety"), Subject.OPINION),
}
_JUDGE_FAMILIES = ("safety", "rubric", "reference", "agent", "passages")
"""Families of judges: harm and the suite's own words first, general questions about passages last."""


def headline_reason(trial: Trial, limit: int = 200) -> str:
    """Why the trial did not pass, in one line; empty for one that passed."""
    if trial.outcome is Outcome.PASSED:
        return ""
    score = deciding_score(trial)
    if trial.end_reason or score is None:
        text = trial.end_reason
    elif trial.outcome in (Outcome.FAILED, Outcome.ERROR):
        turn = f" at turn {score.turn + 1}" if score.turn is not None and len(trial.case.turns) > 1 else ""
        text = f"{score.evaluator} {score_value(score)}{turn}"
        text += f": {score.reasoning}" if score.reasoning else ""
    else:
        text = score.reasoning
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else f"{line[:limit]}... ({len(line):,} characters in all)"


def reason_order(outcome: Outcome, trials: int) -> tuple[int, int]:
    """Sort key for the reasons of one case: the worst outcome first, then the reason of most trials."""
    return outcome.rank, -trials


def headline_of_case(reasons: Counter[tuple[Outcome, str]]) -> str:
    """The reason to show for a case, chosen from how often each outcome and reason occurred; "" if there is none.

    Reasons that differ only in numbers and quoted texts are one: agents word the same failure differently each time.
    """
    trials: Counter[tuple[Outcome, str]] = Counter()
    first: dict[tuple[Outcome, str], str] = {}
    for (outcome, reason), count in reasons.items():
        if reason:
            key = outcome, normalize_reason(reason)
            trials[key] += count
            first.setdefault(key, reason)
    worst = min(trials.items(), key=lambda item: reason_order(item[0][0], item[1]), default=None)
    return "" if worst is None else first[worst[0]]


def normalize_reason(reason: str) -> str:
    """A reason without what differs from case to case: quoted texts, numbers and ids.

    Lines of source and the names of missing properties stay, since they say what failed.
    """
    text = _without_whole_values(reason[:MAX_REASON_READ])
    preserved = _PRESERVED.findall(text)
    text = _NUMBER.sub("N", _IDENTIFIER.sub("ID", _QUOTED.sub("…", _PRESERVED.sub("\x00", text))))
    for part in preserved:
        text = text.replace("\x00", part, 1)
    text = " ".join(_REPEATED_ELLIPSIS.sub("…", text).split())
    return text if len(text) <= MAX_CAUSE else f"{text[: MAX_CAUSE - 1]}…"


def _without_whole_values(reason: str) -> str:
    """The end of `expected {...}, got {...}; a.b is 1 instead of 2`: the values before it differ in every case."""
    if not reason.startswith(("expected {", "expected [")):
        return reason
    at = reason.find(" instead of ")
    start = reason.rfind("; ", 0, at) if at > 0 else -1
    return reason[start + 2 :] if start > 0 else reason


def deciding_score(trial: Trial) -> Score | None:
    """The score that says most about why a trial did not pass; `None` if no score does."""
    return next((score for score in scores_by_importance(trial) if is_cause(score)), None)


def scores_by_importance(trial: Trial) -> list[Score]:
    """The scores of a trial, those that say most about why it did not pass first."""
    if sum(score.outcome is not Outcome.PASSED for score in trial.scores) < 2:
        return sorted(trial.scores, key=_severity)  # nothing to choose from, so nothing is looked up
    names = _evaluator_names(trial)
    return sorted(trial.scores, key=lambda score: (*_severity(score), *_importance(score, names)))


def worst_score(scores: Iterable[Score]) -> Score | None:
    """The worst score of one evaluator over several turns; `None` if all passed."""
    return min((score for score in scores if is_cause(score)), key=_severity, default=None)


def subject_of(score: Score, name: str) -> Subject:
    """What a score is about; `name` is the shipped name of its evaluator, or "" for the user's own code."""
    if GRADED_BY in score.details:
        return Subject.GRADE
    if JUDGE_DETAIL in score.details:
        return Subject.OPINION
    if name in _SUBJECT_OF_NAME:
        return _SUBJECT_OF_NAME[name]
    return _SUBJECT_OF_FAMILY.get(family_of(name), Subject.ANSWER)


def _severity(score: Score) -> tuple[bool, bool, int]:
    """Sort key: passes last, scores that count before those that are report only, failures before errors."""
    if not is_cause(score):
        return True, score.report_only, 0
    return False, score.report_only, _OUTCOMES.index(score.outcome)


def _importance(score: Score, names: Mapping[str, str]) -> tuple[Subject, int, bool, bool]:
    """Sort key among scores with the same outcome: `names` has the shipped name of each evaluator."""
    name = names.get(NUMBERED_TITLE.sub("", score.evaluator), "")
    subject = subject_of(score, name)
    family = family_of(name) if subject is Subject.OPINION else ""
    rank = _JUDGE_FAMILIES.index(family) if family in _JUDGE_FAMILIES else 0
    judge = score.details.get(JUDGE_DETAIL)
    is_model = isinstance(judge, Mapping) and not is_rule_based(judge.get("model"))
    return subject, rank, is_model, not score.reasoning.strip()


def _evaluator_names(trial: Trial) -> dict[str, str]:
    """The shipped name of each evaluator of a trial by its title, which a suite may choose; "" for own code."""
    lists = [trial.case.evaluators, *(turn.evaluators for turn in trial.case.turns)]
    names = {score.evaluator: score.evaluator for score in trial.scores}
    return names | {spec.title: spec.shipped_name for specs in lists for spec in specs or ()}


def is_cause(score: Score) -> bool:
    """Whether a score is a reason why its trial did not pass. If a mean decides, only turns below the threshold are."""
    if score.outcome is not Outcome.FAILED or MEAN_OVER_TURNS not in score.details:
        return score.outcome is not Outcome.PASSED
    return score.value is None or score.threshold is None or not passes(score.value, score.threshold)


def score_value(score: Score) -> str:
    """The number, with the threshold that it missed; the outcome if there is no number."""
    if score.value is None:
        return score.outcome.value
    if (mean := mean_text(score)) is not None:
        return f"{score.value:.2f}, {mean}"
    if score.outcome is not Outcome.FAILED or score.threshold is None:
        return f"{score.value:.2f}"
    if passes(score.value, score.threshold):
        return f"{score.value:.2f}, failed by the evaluator"  # the evaluator decided by itself, whatever the number
    return " < ".join(distinct_decimals(score.value, score.threshold, 2))


def mean_text(score: Score) -> str | None:
    """`mean 0.25 < 0.50` for a score that its evaluator's mean over turns decides; otherwise `None`."""
    mean = score.details.get(MEAN_OVER_TURNS)
    if not isinstance(mean, (int, float)):
        return None
    if score.outcome is not Outcome.FAILED or score.threshold is None:
        return f"mean {mean:.2f}"
    return f"mean {' < '.join(distinct_decimals(mean, score.threshold, 2))}"


def distinct_decimals(value: float, threshold: float, digits: int) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see which is greater."""
    while digits < 9:
        left, right = f"{value:.{digits}f}", f"{threshold:.{digits}f}"
        if left != right or value == threshold:
            return left, right
        digits += 1
    return repr(value), repr(threshold)
