"""One trial as a section of the Markdown report: short when it passed, whole when it did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from proctor.agents.model import Reply
from proctor.cases.model import Attachment, Case, Turn
from proctor.reporting.explain import answer, asked, call_text, expected_lines, missing_and_extra, shown
from proctor.reporting.markdown_text import MARKS, code, fence, inline, row, table_head
from proctor.reporting.wording import duration, told_apart, trial_name
from proctor.results.judgements import judge_name
from proctor.results.model import Outcome, Score, TrialResult

PASSING_TEXT = 500
FAILING_TEXT = 10_000
REASON_TEXT = 2_000


def write_trial(trial: TrialResult, out: TextIO) -> None:
    """The section of one trial."""
    full = trial.outcome in (Outcome.FAILED, Outcome.ERROR)
    limit = FAILING_TEXT if full else PASSING_TEXT
    out.write(f"#### {inline(trial_name(trial.case.id, trial.number))} {MARKS[trial.outcome]}\n\n")
    _write_facts(trial, out)
    if trial.reason:
        title = "Errors" if full else "Reason"
        out.write(f"**{title}:**\n\n{fence(trial.reason, limit)}\n")
    if trial.outcome is Outcome.SKIPPED and not trial.replies:
        return
    several = len(trial.case.turns) > 1
    for index, turn in enumerate(trial.case.turns):
        reply = trial.replies[index] if index < len(trial.replies) else None
        if several:
            out.write(f"##### Turn {index + 1}{'' if reply else ' (not reached)'}\n\n")
        _write_turn(trial.case, turn, reply, out, limit)
        if several:
            _write_scores([score for score in trial.scores if score.turn == index], out, full)
    _write_state(trial, out, limit)
    whole = [score for score in trial.scores if score.turn is None] if several else list(trial.scores)
    if several and whole:
        out.write("##### Whole conversation\n\n")
    _write_scores(whole, out, full)


def _write_facts(trial: TrialResult, out: TextIO) -> None:
    if trial.case.description:
        out.write(f"{inline(trial.case.description)}\n\n")
    facts = [f"{duration(trial.duration_ms)}"]
    if trial.attempts > 1:
        facts.append(f"{trial.attempts} attempts")
    if trial.reused:
        facts.append("taken from an earlier run")
    if (usage := trial.usage) is not None and usage.total_tokens is not None:
        facts.append(f"{usage.total_tokens:,} tokens")
    if trial.case.tags:
        facts.append(f"tags {inline(', '.join(trial.case.tags))}")
    out.write(f"**Time:** {', '.join(facts)}\n\n")
    for warning in trial.warnings:
        out.write(f"- **Warning:** {inline(warning)}\n")
    if trial.warnings:
        out.write("\n")


def _write_turn(case: Case, turn: Turn, reply: Reply | None, out: TextIO, limit: int) -> None:
    out.write(f"**Input:**\n\n{fence(asked(case, turn), limit)}\n")
    if turn.attachments:
        out.write(f"**Files:** {', '.join(_attachment(item) for item in turn.attachments)}\n\n")
    if expected := "\n".join(expected_lines(turn.expected, limit)):
        out.write(f"**Expected:**\n\n{fence(expected, limit)}\n")
    if reply is not None:
        said = answer(reply)
        out.write(f"**Answer:**\n\n{fence(said, limit)}\n" if said else "**Answer:** *(an empty answer)*\n\n")
        _write_tools(turn, reply, out, limit)


def _write_tools(turn: Turn, reply: Reply, out: TextIO, limit: int) -> None:
    expected = turn.expected.tool_calls
    if reply.tool_calls:
        lines = "\n".join(call_text(call, PASSING_TEXT) for call in reply.tool_calls)
        out.write(f"**Tools called:**\n\n{fence(lines, limit)}\n")
    elif expected is not None:
        out.write("**Tools called:** none\n\n")
    if expected is None:
        return
    missing, extra = missing_and_extra(expected, reply.tool_calls)
    out.write(f"- **Expected tools:** {', '.join(code(call.name) for call in expected) or 'none'}\n")
    if missing:
        out.write(f"- **Missing:** {', '.join(code(name) for name in missing)}\n")
    if extra:
        out.write(f"- **Extra:** {', '.join(code(name) for name in extra)}\n")
    out.write("\n")


def _write_state(trial: TrialResult, out: TextIO, limit: int) -> None:
    if trial.case.final_state is None or not trial.replies:
        return
    out.write(f"**Expected state:**\n\n{fence(shown(trial.case.final_state), limit)}\n")
    out.write(f"**State:**\n\n{fence(shown(trial.replies[-1].state), limit)}\n")


def _write_scores(scores: Sequence[Score], out: TextIO, full: bool) -> None:
    if not scores:
        return
    out.write(table_head("Evaluator", "Score", "Threshold", "Outcome", "Time"))
    for score in scores:
        name = inline(score.evaluator) + ("" if score.gates else " (informs)")
        out.write(row(name, *_numbers(score), MARKS[score.outcome], f"{score.duration_ms:.1f} ms"))
    out.write("\n")
    told = [score for score in scores if score.reasoning and (full or score.outcome is not Outcome.PASSED)]
    for score in told:
        judge = f" (judge {inline(name)})" if (name := judge_name(score)) else ""
        out.write(f"- **{inline(score.evaluator)}{judge}:** {inline(score.reasoning, REASON_TEXT)}\n")
    if told:
        out.write("\n")


def _numbers(score: Score) -> tuple[str, str]:
    if score.value is not None and score.threshold is not None:
        return told_apart(score.value, score.threshold, 3)
    value, threshold = ("" if number is None else f"{number:.3f}" for number in (score.value, score.threshold))
    return value, threshold


def _attachment(item: Attachment) -> str:
    kind = f" ({inline(item.kind)})" if item.kind else ""
    return f"{code(item.path or item.url or 'unnamed')}{kind}"
