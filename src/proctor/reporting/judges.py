"""Says who judged, on how many calls and at what cost, alike in every report."""

from __future__ import annotations

from proctor.reporting.wording import counted, money
from proctor.results.corrections import Correction, corrections
from proctor.results.judgements import JudgeSummary
from proctor.results.model import Run


def judge_lines(run: Run) -> list[tuple[str, str]]:
    """Each judge of a run with what it did; and what a budget did not cover."""
    lines = [(judge.model, judge_text(judge)) for judge in run.judges]
    return [*lines, ("not counted", run.uncounted)] if run.uncounted else lines


def correction_lines(run: Run) -> list[str]:
    """For each evaluator whose judge was compared with people: its pass rate, and what is left of it."""
    return [correction_text(item) for item in corrections(run)]


def correction_text(item: Correction) -> str:
    """A pass rate as it was seen, and as it would be without the judge's known mistakes."""
    seen = f"{item.evaluator} at {item.threshold:g} passed {item.observed.mean:.1%}"
    by = f"by {item.judge}'s agreement with people on {counted(item.rows, 'row')}"
    rate = item.corrected
    if rate.value is None:
        return f"{seen}; cannot be corrected {by}: {rate.reason}"
    return f"{seen}; corrected {by}: {rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]"


def judge_text(judge: JudgeSummary) -> str:
    """`12 calls (30 from cache), 15,210 tokens, $0.0040`; a judge that calls nobody has only given scores."""
    if not judge.calls and not judge.cached:
        return f"{counted(judge.scores, 'score')}, no model"
    parts = [counted(judge.calls, "call") + (f" ({judge.cached:,} from cache)" if judge.cached else "")]
    if judge.tokens:
        parts.append(counted(judge.tokens, "token"))
    if judge.cost_usd is not None and judge.unpriced:
        parts.append(f"{money(judge.cost_usd)} and {counted(judge.unpriced, 'call')} of unknown cost")
    elif judge.cost_usd is not None:
        parts.append(money(judge.cost_usd))
    elif judge.calls:
        parts.append("cost not known")
    return ", ".join(parts)
