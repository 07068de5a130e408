"""Which reason is shown first: one rule for the terminal, HTML, Markdown, CI pages and comparisons.

A trial that did not pass has its own reason (the agent raised, timed out), or one of its scores has it. A score
that counts comes before one that is report only, a failure before an error, an error before a pending or skipped
score. Among the trials of a case, the worst outcome comes first, then the reason that most trials have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from proctor.cases.threshold import passes
from proctor.results.score import MEAN_OVER_TURNS, Outcome, Score

if TYPE_CHECKING:
    from proctor.results.trial import Trial


def headline_reason(trial: Trial, limit: int = 200) -> str:
    """Why the trial did not pass, in one line; empty for one that passed."""
    if trial.outcome is Outcome.PASSED:
        return ""
    score = deciding_score(trial.scores)
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
    """The reason to show for a case, chosen from how often each outcome and reason occurred; "" if there is none."""
    counts = [item for item in reasons.items() if item[0][1]]
    return min(counts, key=lambda item: reason_order(item[0][0], item[1]))[0][1] if counts else ""


def deciding_score(scores: Iterable[Score]) -> Score | None:
    """The score that says most about why a trial did not pass."""
    known = list(scores)
    for report_only in (False, True):
        for outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.SKIPPED):
            for score in known:
                if score.outcome is outcome and score.report_only is report_only and is_cause(score):
                    return score
    return None


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
