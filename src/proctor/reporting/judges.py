"""Says who judged, on how many calls and at what cost, alike in every report."""

from __future__ import annotations

from proctor.reporting.wording import counted, money
from proctor.results.judgements import JudgeSummary
from proctor.results.model import Run


def judge_lines(run: Run) -> list[tuple[str, str]]:
    """Each judge of a run with what it did; and what a budget did not cover."""
    lines = [(judge.model, judge_text(judge)) for judge in run.judges]
    return [*lines, ("not counted", run.uncounted)] if run.uncounted else lines


def judge_text(judge: JudgeSummary) -> str:
    """`12 calls (30 from cache), 15,210 tokens, $0.0040`; a judge that calls nobody has only given scores."""
    if not judge.calls and not judge.cached:
        return f"{counted(judge.scores, 'score')}, no model"
    parts = [counted(judge.calls, "call") + (f" ({judge.cached:,} from cache)" if judge.cached else "")]
    if judge.tokens:
        parts.append(counted(judge.tokens, "token"))
    if judge.cost_usd is not None:
        parts.append(money(judge.cost_usd))
    elif judge.calls:
        parts.append("cost not known")
    return ", ".join(parts)
