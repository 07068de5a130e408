"""The whole run as one Markdown document: summary, mean scores, then every case; failing cases are shown in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TextIO

from proctor.agents.reply import Reply
from proctor.cases.suite import AttachedFile, Case, Turn
from proctor.reporting.arms_report import write_arms_markdown
from proctor.reporting.build_findings import GATE_VERDICT_LABELS, gate_lines
from proctor.reporting.explain import (
    answer_text,
    call_text,
    empty_answer_text,
    expected_lines,
    failure_locations,
    input_text,
    missing_and_extra_tools,
    value_text,
)
from proctor.reporting.failing_cases import (
    FAILED_OR_ERROR,
    FailingCase,
    ReasonCounter,
    trials_text,
)
from proctor.reporting.judge_report import judge_caveats, judge_lines
from proctor.reporting.markdown.escaping import code, fence, inline, row, table_head
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.rerun import rerun_errors_command
from proctor.reporting.wording import (
    BADGES,
    VERDICT_BADGES,
    agent_names,
    duration,
    flaky_text,
    judge_title,
    money,
    pass_rate_text,
    plural,
    reliability_text,
    report_only_evaluators,
    score_texts,
    shown_path,
    skipped_files_text,
    suites_with_trials,
    trial_counts_text,
    trial_name,
    utc_time,
)
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import distinct_decimals, mean_text
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.statistics import EvaluatorSummary
from proctor.results.trial import Trial
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict, suites_of_old_version

MAX_PASSING_TEXT = 500
MAX_FAILING_TEXT = 10_000
MAX_REASON = 2_000


def write_trial(trial: Trial, out: TextIO) -> None:
    """Write the section of a case that ran once."""
    out.write(f"#### {inline(trial_name(trial.case.id, trial.number))} {BADGES[trial.outcome]}\n\n")
    _write_content(trial, out)


def write_repeats(trials: Iterable[Trial], case: CaseVerdict, out: TextIO) -> None:
    """Write the section of a case that ran several times: its reasons, one line per trial, and one example in full."""
    reasons, examples = ReasonCounter(MAX_REASON), dict[int, Trial]()
    rows, warnings, counts = [], dict[str, None](), Counter[Outcome]()
    for trial in trials:
        counts[trial.outcome] += 1
        if (trial.outcome in FAILED_OR_ERROR and reasons.add(trial)) or not examples:
            examples[trial.number] = trial
        warnings |= dict.fromkeys(trial.warnings)
        scores = ", ".join(text for text, _ in score_texts(trial.scores))
        rows.append(row(f"{trial.number}", BADGES[trial.outcome], duration(trial.duration_ms), inline(scores)))
    distinct = reasons.reasons()
    example = examples[distinct[0].number] if distinct else next(iter(examples.values()))
    flaky = " (flaky)" if case.is_flaky else ""
    out.write(f"#### {inline(case.case_id)} {BADGES[case.outcome]} {trials_text(counts)}{flaky}\n\n")
    for reason in distinct:
        out.write(f"- **{plural(reason.trials, 'time')}:** {inline(reason.text)}\n")
    out.write("\n" if distinct else "")
    out.write(table_head("Trial", "Outcome", "Time", "Scores") + "".join(rows) + "\n")
    out.write(f"**Example:** trial {example.number} {BADGES[example.outcome]}\n\n")
    _write_content(replace(example, warnings=tuple(warnings)), out)


def _write_content(trial: Trial, out: TextIO) -> None:
    full = trial.outcome in FAILED_OR_ERROR
    limit = MAX_FAILING_TEXT if full else MAX_PASSING_TEXT
    _write_facts(trial, out)
    if trial.end_reason:
        title = "Error" if full else "Reason"
        out.write(f"**{title}:**\n\n{fence(trial.end_reason, limit)}\n")
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


def _write_facts(trial: Trial, out: TextIO) -> None:
    if trial.case.description:
        out.write(f"{inline(trial.case.description)}\n\n")
    facts = [f"{duration(trial.duration_ms)}"]
    if trial.attempts > 1:
        facts.append(f"{trial.attempts} attempts")
    if trial.reused:
        facts.append("from an earlier run")
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
    out.write(f"**Input:**\n\n{fence(input_text(case, turn), limit)}\n")
    if turn.files:
        out.write(f"**Files:** {', '.join(_attachment(item) for item in turn.files)}\n\n")
    if expected := "\n".join(expected_lines(turn.expected, limit)):
        out.write(f"**Expected:**\n\n{fence(expected, limit)}\n")
    if reply is not None:
        output = answer_text(reply)
        title = "Output" if reply.error is None else "Partial output"
        if output or reply.error is None:
            empty = f"**{title}:** *{empty_answer_text(reply)}*\n\n"
            out.write(f"**{title}:**\n\n{fence(output, limit)}\n" if output else empty)
        if locations := "\n".join(failure_locations(reply)):
            out.write(f"**Failed at:**\n\n{fence(locations, limit)}\n")
        _write_tools(turn, reply, out, limit)
        if turn.expected.state is not None:
            out.write(f"**State:**\n\n{fence(value_text(reply.state), limit)}\n")


def _write_tools(turn: Turn, reply: Reply, out: TextIO, limit: int) -> None:
    expected = turn.expected.tools
    if reply.tool_calls:
        lines = "\n".join(call_text(call, MAX_PASSING_TEXT) for call in reply.tool_calls)
        out.write(f"**Tools called:**\n\n{fence(lines, limit)}\n")
    elif expected is not None:
        out.write("**Tools called:** none\n\n")
    if expected is None:
        return
    missing, extra = missing_and_extra_tools(expected, reply.tool_calls)
    out.write(f"- **Expected tools:** {', '.join(code(call.name) for call in expected) or 'none'}\n")
    if missing:
        out.write(f"- **Missing:** {', '.join(code(name) for name in missing)}\n")
    if extra:
        out.write(f"- **Extra:** {', '.join(code(name) for name in extra)}\n")
    out.write("\n")


def _write_state(trial: Trial, out: TextIO, limit: int) -> None:
    if trial.case.final_state is None or not trial.replies:
        return
    out.write(f"**Expected state:**\n\n{fence(value_text(trial.case.final_state), limit)}\n")
    out.write(f"**State:**\n\n{fence(value_text(trial.replies[-1].state), limit)}\n")


def _write_scores(scores: Sequence[Score], out: TextIO, full: bool) -> None:
    if not scores:
        return
    out.write(table_head("Evaluator", "Score", "Threshold", "Outcome", "Time"))
    for score in scores:
        name = inline(score.evaluator) + (" (report only)" if score.report_only else "")
        out.write(row(name, *_numbers(score), _outcome(score), f"{score.duration_ms:.1f} ms"))
    out.write("\n")
    explained = [score for score in scores if score.reasoning and (full or score.outcome is not Outcome.PASSED)]
    for score in explained:
        judge = f" ({inline(judge_title(name))})" if (name := judge_name(score)) else ""
        out.write(f"- **{inline(score.evaluator)}{judge}:** {inline(score.reasoning, MAX_REASON)}\n")
    if explained:
        out.write("\n")


def _outcome(score: Score) -> str:
    mean = mean_text(score)
    return BADGES[score.outcome] if mean is None else f"{BADGES[score.outcome]} ({inline(mean)})"


def _numbers(score: Score) -> tuple[str, str]:
    if score.value is not None and score.threshold is not None:
        return distinct_decimals(score.value, score.threshold, 3)
    value, threshold = ("" if number is None else f"{number:.3f}" for number in (score.value, score.threshold))
    return value, threshold


def _attachment(item: AttachedFile) -> str:
    kind = f" ({inline(item.kind)})" if item.kind else ""
    return f"{code(item.path or item.url or 'unnamed')}{kind}"


OUTCOME_TITLES = {
    Outcome.PASSED: "Passed",
    Outcome.FAILED: "Failed",
    Outcome.ERROR: "Errors",
    Outcome.SKIPPED: "Skipped",
    Outcome.PENDING: "Pending",
}


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the report, one trial at a time."""
    _write_header(run, verdict, out)
    _write_summary(run, verdict, out)
    write_gate(run, verdict, out)
    write_pending(run, verdict, out)
    write_rerun(run, verdict, out)
    _write_means(run, verdict, out)
    if run.compares_agents:
        write_arms_markdown(run, out)
    out.write("---\n\n## Test results\n\n")
    for info, suite_verdict, trials in suites_with_trials(run, verdict):
        out.write(f"### Suite: {inline(suite_verdict.name)} {VERDICT_BADGES[suite_verdict.outcome]}\n\n")
        out.write(f"{inline(suite_verdict.reason)}{_reliability(suite_verdict)}\n\n")
        if info.path:
            out.write(f"File {code(shown_path(info.path))}, agent {code(info.agent)}\n\n")
        repeated = {case.case_id: case for case in suite_verdict.cases if case.trials > 1}
        for case_id, own in groupby(trials, key=lambda trial: trial.case.id):
            if case_id in repeated:
                write_repeats(own, repeated[case_id], out)
            else:
                write_trial(next(own), out)
    out.write("---\n\n## Report summary\n\n")
    out.write(f"**{VERDICT_BADGES[verdict.outcome]}**: {inline(verdict.reason)} ({trial_counts_text(run, verdict)})\n")


def _write_header(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    agents = agent_names(run)
    files = list(dict.fromkeys(shown_path(info.path) for info in run.suites if info.path))
    environment = dict(run.environment)
    version = environment.pop("proctor_version", "not recorded")
    out.write(f"# Test report: {inline(', '.join(agents) or 'no agent')}\n\n")
    out.write(f"**{VERDICT_BADGES[verdict.outcome]}**: {inline(verdict.reason)}\n\n")
    for title, values in (
        ("Configuration", [code(file) for file in files]),
        ("Generated", [utc_time(run.started_at if run.finished_at is None else run.finished_at)]),
        ("Run", [code(run.id)]),
        ("Proctor version", [inline(version)]),
        ("Environment", [inline(f"{name.removesuffix('_version')} {value}") for name, value in environment.items()]),
    ):
        if values:
            out.write(f"- **{title}:** {', '.join(values)}\n")
    if run.interrupted:
        out.write("- **Interrupted:** not all planned trials ran\n")
    if run.ended_because:
        out.write(f"- **Note:** {inline(run.ended_because)}\n")
    out.write("\n")


def _write_summary(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    out.write("## Summary\n\n")
    out.write(table_head("Measure", "Value"))
    out.write(row("Total trials", f"{len(run.summaries):,}"))
    if (more := len(run.summaries) - sum(verdict.counts.values())) and run.gate is not None:
        out.write(row(f"With {inline(run.gate.against)}", f"{more:,}"))
    for outcome, title in OUTCOME_TITLES.items():
        out.write(row(title, f"{verdict.counts.get(outcome, 0):,}"))
    for suite in verdict.suites:
        title = "Pass rate" if len(verdict.suites) == 1 else f"Pass rate of {inline(suite.name)}"
        out.write(row(title, "–" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)))
    if run.finished_at is not None:
        out.write(row("Duration", duration(max(0.0, run.finished_at - run.started_at) * 1000)))
    out.write(row("Agent time", duration(sum(summary.duration_ms for summary in run.summaries))))
    if verdict.tokens is not None:
        out.write(row("Tokens", f"{verdict.tokens:,}"))
    if verdict.cost_usd is not None:
        out.write(row("Cost", money(verdict.cost_usd, estimated=verdict.estimated).replace("<", "&lt;")))
    for model, text in judge_lines(run):
        title = judge_title(model)
        out.write(row(inline(title[:1].upper() + title[1:]), inline(text)))
    if run.unpriced_note:
        out.write(row("Cost not counted", inline(run.unpriced_note)))
    if run.hedging_note:
        out.write(row("Asked twice", inline(run.hedging_note)))
    if run.masked_note:
        out.write(row("Masked text", inline(run.masked_note)))
    for title, text in judge_caveats(run):
        out.write(row(title, inline(text)))
    if run.skipped_files:
        out.write(row("Skipped", inline(skipped_files_text(run.skipped_files))))
    out.write("\nNumbers in brackets are 95 % intervals. Pass rates count the cases that passed or failed.\n\n")


def case_title(case: FailingCase, limit: int) -> str:
    """`❌ FAILED **shop/refund** 0/5 passed`."""
    title = f"{BADGES[case.outcome]} **{inline(f'{case.suite}/{case.case_id}', limit)}**"
    count = f" {case.share}" if case.share else ""
    return f"{title}{count}{' (flaky)' if case.is_flaky else ''}{' (quarantined)' if case.quarantined else ''}"


def write_gate(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write what the gate found, and the cases that are flaky or in quarantine."""
    if run.gate is not None:
        out.write(f"### Gate: {GATE_VERDICT_LABELS[run.gate.verdict].lower()}\n\n{inline(run.gate.reason)}\n\n")
        for line in gate_lines(run):
            out.write(f"- **{inline(line.label)}:** {inline(line.text, MAX_REASON)}\n")
        out.write("\n")
    notes, old = [], suites_of_old_version(run)
    for suite in verdict.suites:
        if suite.name in old:
            continue
        prefix = f"{suite.name}/" if len(verdict.suites) > 1 else ""
        flaky = (case for case in suite.cases if case.is_flaky)
        notes += [f"- {inline(prefix + case.case_id)}: **{flaky_text(case)}**\n" for case in flaky]
    for info in run.suites:
        for item in () if info.name in old else info.quarantined:
            text = f"quarantined until {item.until}{f' (owner {item.owner})' if item.owner else ''}: {item.reason}"
            notes.append(f"- {inline(f'{info.name}/{item.case}')}: {inline(text)}\n")
    if notes:
        out.write("### Flaky cases and quarantine\n\n" + "".join(notes) + "\n")


MAX_PENDING_NAMES = 50


def write_pending(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the cases that wait for a person or a model, once why, and the commands that settle them."""
    if (pending := pending_cases(run, verdict)) is None:
        return
    out.write(f"### Pending ({len(pending.names):,})\n\n")
    out.writelines(f"- To {what}: {code(command)}\n" for what, command in pending.commands)
    out.writelines(f"- {inline(reason)}\n" for reason in pending.reasons)
    names = ", ".join(inline(name, 120) for name in pending.names[:MAX_PENDING_NAMES])
    more = len(pending.names) - MAX_PENDING_NAMES
    out.write(f"\n{names}{f' and {more:,} more' if more > 0 else ''}\n\n")


def write_rerun(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write how to run only the errors again, if there are any."""
    if command := rerun_errors_command(run, verdict):
        out.write(f"Run only the errors again: {code(command)}\n\n")


def _write_means(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    if not any(suite.evaluators for suite in verdict.suites):
        return
    report_only = report_only_evaluators(run)
    out.write("### Mean scores\n\n")
    out.write(table_head("Suite", "Evaluator", "Mean score", "Threshold", *OUTCOME_TITLES.values()))
    for suite in verdict.suites:
        for item in suite.evaluators:
            out.write(_mean_row(suite.name, item, (suite.name, item.evaluator) in report_only))
    out.write("\n")


def _mean_row(suite: str, item: EvaluatorSummary, is_report_only: bool) -> str:
    mean = "–" if item.scores is None else str(item.scores)
    threshold = "report only" if is_report_only else "" if item.threshold is None else f"{item.threshold:g}"
    counts = (item.passed, item.failed, item.errors, item.skipped, item.pending)
    return row(inline(suite), inline(item.evaluator), mean, threshold, *(f"{count:,}" for count in counts))


def _reliability(suite: SuiteVerdict) -> str:
    if suite.pass_hat_k is None or suite.pass_at_k is None:
        return ""
    k = suite.repeats
    each = reliability_text(suite.reliability)
    text = f". {k} trials per case: pass^{k} {suite.pass_hat_k:.2f} (all pass), pass@{k} {suite.pass_at_k:.2f}"
    text += " (at least one passes)"
    return f"{text}. {each}" if each else text
