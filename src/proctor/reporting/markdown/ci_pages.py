"""What CI systems show of a run: the comment on a pull request, and GitHub's summary of a step.

Both stay below the size that GitHub and GitLab accept, however large the run is. Text of agents is made inert:
it mentions nobody, links nowhere and closes no issue.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO
from urllib.parse import urlsplit

from proctor.reporting.build_findings import GATE_VERDICT_LABELS, Finding, decisive_cases, findings, gate_lines
from proctor.reporting.comparison_report import (
    CHANGE_TITLES,
    RESOURCE_NAMES,
    SCORE_COLUMNS,
    amount_text,
    case_name,
    change_text,
    correction_note,
    difference_text,
    differences,
    listed_cases,
    ratio_text,
    run_description,
    run_label,
)
from proctor.reporting.failing_cases import FailingCase, failing_cases
from proctor.reporting.html.trial_view import anchor
from proctor.reporting.markdown.escaping import code, inline, row, table_head
from proctor.reporting.markdown.report import case_title, write_gate, write_pending, write_rerun
from proctor.reporting.wording import (
    VERDICT_BADGES,
    counts_text,
    duration,
    money,
    pass_rate_text,
    plural,
    skipped_files_text,
    trial_counts_text,
)
from proctor.results.comparison.comparison import CaseChange, Change, Comparison, p_text
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict, suites_of_old_version

MAX_COMMENT = 60_000
"""Characters of a comment; GitHub accepts 65,536, GitLab a million."""
MAX_OPEN_LIST = 8_000
"""Characters of each list outside the fold."""
MAX_FOLDED_LIST = 3_500
"""Characters of each list inside the fold."""
MAX_NAME, MAX_REASON = 150, 300
MAX_COMMANDS = 10
"""Commands that re-run one case each."""

_ACTIVE = re.compile(r"([@#!%])(?=\w)|(:)(?=//)|\b(www)(?=\.)", re.IGNORECASE)
"""What would mention a person or a team, or link to an issue, a merge request, a milestone or a page."""


@dataclass(frozen=True, slots=True)
class Comment:
    """The content of a comment on a pull request."""

    run: Run
    verdict: RunVerdict
    comparison: Comparison | None = None
    """`None` if there is no earlier run."""
    report: str = ""
    """The address of the run's HTML report; cases link into it."""
    key: str = ""
    """Identifies the comment if several jobs comment on one pull request."""


def marker(key: str = "") -> str:
    """The first line of a comment, by which the next run finds and replaces it."""
    return f"<!-- proctor:pull-request {key or 'default'} -->"


def write_comment(comment: Comment, out: TextIO) -> None:
    """Write the comment; long lists are cut and say so."""
    out.write(_join_within_limit(list(_pieces(comment))))


def _join_within_limit(pieces: Sequence[str]) -> str:
    """The pieces in one text; if that would be too long, the first ones and a note."""
    note = "\n*This comment is cut; the reports have the rest.*\n"
    room = MAX_COMMENT - len(note)
    fitting: list[str] = []
    for piece in pieces:
        if len(piece) > room:
            return "".join([*fitting, note])
        room -= len(piece)
        fitting.append(piece)
    return "".join(fitting)


def _pieces(comment: Comment) -> Iterator[str]:
    """One verdict, one sentence of cause, one table of cases, and the rest in a fold."""
    yield f"{marker(comment.key)}\n## {_headline(comment)}\n\n"
    yield f"{_sentence(comment)}\n\n"
    yield from _case_table(comment)
    yield f"{_cost_and_time(comment)}\n\n"
    # One piece: a fold that is cut would hide everything after it.
    yield f"<details>\n<summary>Details</summary>\n\n{''.join(_details(comment))}</details>\n"


def _headline(comment: Comment) -> str:
    gate = comment.run.gate
    name = f" ({inert(comment.key, MAX_NAME)})" if comment.key else ""
    if gate is not None:
        return f"Proctor{name}: {VERDICT_BADGES[gate.outcome].split()[0]} {GATE_VERDICT_LABELS[gate.verdict].lower()}"
    return f"Proctor{name}: {VERDICT_BADGES[comment.verdict.outcome]}"


def _sentence(comment: Comment) -> str:
    """Why the verdict is what it is; then, in numbers, what changed. The comparison adds no second verdict."""
    sentences = [f"**{inert(comment.verdict.reason, 500).removesuffix('.')}.**"]
    gate = comment.run.gate
    if comment.comparison is None and (gate is None or not gate.against):
        sentences.append("No earlier run to compare with.")
    elif comment.comparison is not None and gate is None:
        sentences.append(_change_counts(comment.comparison))
    if comment.report:
        title = "Open the report" if _is_page(comment.report) else "Download the reports"
        sentences.append(f"[{title}]({_address(comment.report)}).")
    return " ".join(sentences)


def _change_counts(comparison: Comparison) -> str:
    """`Compared with main: 2 broken, 1 fixed, 21 still passing.`"""
    counts = [f"{len(cases):,} {group.value}" for group, cases in comparison.groups.items() if cases]
    return f"Compared with {inert(run_label(comparison.before), MAX_NAME)}: {', '.join(counts)}."


@dataclass(frozen=True, slots=True)
class _CaseRow:
    """A case in the table of a comment."""

    suite: str
    case_id: str
    name: str
    result: str
    reason: str


def _case_table(comment: Comment) -> Iterator[str]:
    """The cases that matter for the verdict: what the gate found, what changed, or what did not pass."""
    rows = list(_case_rows(comment))
    if rows:
        lines = (
            row(_case_link(item.name, item.suite, item.case_id, comment), item.result, inert(item.reason, MAX_REASON))
            for item in rows
        )
        yield table_head("Case", "Result", "Why") + _rows(lines, len(rows), MAX_OPEN_LIST)


def _case_rows(comment: Comment) -> Iterator[_CaseRow]:
    comparison = comment.comparison
    if comment.run.gate is not None or comparison is None:
        changes = {} if comparison is None else {(case.suite, case.case_id): case for case in comparison.cases}
        for item in findings(comment.run, comment.verdict, {}):
            change = changes.get((item.suite, item.case_id))
            trials = "" if change is None else f" {change_text(change)}"
            yield _CaseRow(item.suite, item.case_id, item.name, f"{_result(item)}{trials}", item.reason)
        return
    for group in (Change.BROKEN, Change.FLAKY, Change.STILL_FAILING, Change.FIXED):
        for case in comparison.groups[group]:
            result = f"{_CHANGE_BADGES[group]} {change_text(case)}"
            yield _CaseRow(case.suite, case.case_id, case_name(case), result, "; ".join(differences(case)))


_CHANGE_BADGES = {
    Change.BROKEN: "❌ broken",
    Change.FLAKY: "⚠️ flaky",
    Change.STILL_FAILING: "❌ still failing",
    Change.FIXED: "✅ fixed",
}


def _result(item: Finding) -> str:
    """`❌ failed`, or what the gate says about the case."""
    if item.outcome is Outcome.ERROR:
        return "⚠️ error"
    if item.is_world_change:
        return "🌍 fails with both versions"
    if item.is_unclear:
        return "⏳ unclear"
    return "❌ regressed" if item.is_regression else "❌ failed"


def _cost_and_time(comment: Comment) -> str:
    """Cost and time per trial before and after, or of the run alone if there is nothing to compare with."""
    if comment.comparison is not None:
        resources = [item for item in comment.comparison.resources if item.resource in ("cost_usd", "duration_ms")]
        parts = []
        for item in resources:
            before, after = (inline(amount_text(item.resource, value)) for value in (item.before, item.after))
            name = RESOURCE_NAMES[item.resource] + (" (estimate)" if item.estimated else "")
            parts.append(f"{name} per trial {before} → {after} (×{ratio_text(item).split()[0]})")
        if parts:
            return " · ".join(parts)
    run, verdict = comment.run, comment.verdict
    parts = [plural(len(run.summaries), "trial")]
    if run.finished_at is not None:
        parts.append(duration(max(0.0, run.finished_at - run.started_at) * 1000))
    if verdict.cost_usd is not None:
        parts.append(inline(money(verdict.cost_usd, estimated=verdict.estimated)))
    return " · ".join(parts)


def _details(comment: Comment) -> Iterator[str]:
    comparison = comment.comparison
    if comment.run.gate is not None:
        lines = gate_lines(comment.run)
        yield f"#### Gate: {GATE_VERDICT_LABELS[comment.run.gate.verdict].lower()}\n\n"
        yield _rows(
            (f"- **{line.label}:** {inert(line.text, MAX_REASON)}\n" for line in lines), len(lines), MAX_FOLDED_LIST
        )
    yield from _pending(comment)
    if comparison is not None:
        decided = {Change.STILL_PASSING} if comment.run.gate is not None else {Change.STILL_PASSING, *_CHANGE_BADGES}
        for group, cases in comparison.groups.items():
            if cases and group not in decided:
                yield from _case_list(group, cases, comment)
        yield from _scores(comparison)
        if comparison.test is not None:
            yield f"- **Pass rates:** {inert(comparison.rates_text, MAX_REASON)}\n"
        for name, side in (("Before", comparison.before), ("After", comparison.after)):
            yield f"- **{name}:** {inert(run_description(side), MAX_REASON)}\n"
        if count := len(comparison.groups[Change.STILL_PASSING]):
            yield f"- {plural(count, 'case')} still {'passes' if count == 1 else 'pass'}\n"
        yield "\n"
    yield from _rerun_commands(comment)


def _pending(comment: Comment) -> Iterator[str]:
    out = io.StringIO()
    write_pending(comment.run, comment.verdict, out)
    yield out.getvalue().replace("### ", "#### ", 1)


def _case_list(group: Change, cases: Sequence[CaseChange], comment: Comment) -> Iterator[str]:
    listed = listed_cases(cases)
    yield f"#### {CHANGE_TITLES[group]} ({len(cases):,})\n\n"
    yield "".join(f"{inert(note, MAX_REASON)}\n\n" for note in listed.notes)
    yield _rows((_case_line(case, lines, comment) for case, lines in listed.rows), len(cases), MAX_FOLDED_LIST)


def _case_line(case: CaseChange, lines: Sequence[str], comment: Comment) -> str:
    details = inert("; ".join(lines), MAX_REASON)
    name = _case_link(case_name(case), case.suite, case.case_id, comment)
    return f"- **{name}** {change_text(case)}{': ' if details else ''}{details}\n"


def _scores(comparison: Comparison) -> Iterator[str]:
    if comparison.evaluators:
        head = table_head(*SCORE_COLUMNS)
        lines = (
            row(
                inert(item.evaluator, MAX_NAME),
                f"{item.before:.3f}",
                f"{item.after:.3f}",
                difference_text(item),
                inline(p_text(item.p_value)),
            )
            for item in comparison.evaluators
        )
        yield head + _rows(lines, len(comparison.evaluators), MAX_FOLDED_LIST)
        if note := correction_note(comparison.evaluators):
            yield f"{note}\n\n"


def _rerun_commands(comment: Comment) -> Iterator[str]:
    """Commands that re-run the broken cases, one each."""
    paths = {info.name: info.path for info in comment.run.suites}
    comparison = comment.comparison
    if comparison is not None:
        broken = [(case.suite, case.case_id) for case in comparison.groups[Change.BROKEN]]
    else:
        suites = comment.verdict.suites
        broken = [(s.name, case.case_id) for s in suites for case in s.cases if case.outcome is Outcome.FAILED]
    if comment.run.gate is not None:
        broken = sorted(decisive_cases(comment.run, comment.verdict))
    cases = [(path, case_id) for suite, case_id in broken if (path := paths.get(suite)) and len(case_id) <= MAX_NAME]
    if cases:
        yield "Re-run a case:\n\n"
        for path, case_id in cases[:MAX_COMMANDS]:
            argument = shlex.quote(f"{path}::{case_id}")
            yield f"- {code(f'proctor test {argument}')}\n"
        yield "\n"
    out = io.StringIO()
    write_rerun(comment.run, comment.verdict, out)
    yield out.getvalue()


def _rows(lines: Iterable[str], count: int, room: int) -> str:
    """As many lines as fit into `room` characters, and how many of the `count` were left out."""
    fitting: list[str] = []
    for line in lines:
        if len(line) > room:
            fitting.append(f"\nAnd {plural(count - len(fitting), 'more case')}; the reports have all of them.\n")
            break
        room -= len(line)
        fitting.append(line)
    return "".join([*fitting, "\n"])


def _case_link(name: str, suite: str, case_id: str, comment: Comment) -> str:
    """The name of a case as a link to its first trial that did not pass, if the report is a page to link into."""
    text = inert(name, MAX_NAME)
    if not _is_page(comment.report):
        return text
    trials = [item for item in comment.run.summaries if (item.suite, item.case_id) == (suite, case_id)]
    failing = [item for item in trials if item.outcome in (Outcome.FAILED, Outcome.ERROR)]
    if not trials:
        return text
    return f"[{text}]({_address(comment.report)}#{anchor((failing or trials)[0].position)})"


def _is_page(address: str) -> bool:
    """Whether an address is that of an HTML page. An artifact of GitHub is an archive: no link leads into it."""
    return urlsplit(address).path.lower().endswith((".html", ".htm"))


def inert(text: str, limit: int) -> str:
    """Text from outside as one line of Markdown that mentions nobody and links nowhere."""
    return _ACTIVE.sub(lambda match: f"{match.group()}\u200b", inline(text, limit))


def _address(text: str) -> str:
    """An address for a Markdown link, with white space and brackets encoded."""
    return re.sub(r"[\s<>()\[\]\"'`\\]", lambda match: f"%{ord(match.group()):02X}", text)


MAX_CASES_WITH_REASONS = 50
MAX_REASONS = 3
MAX_SUITES = 200
MAX_TEXT = 300
MAX_SHORT_NAME = 120
MAX_NAMES_BYTES = 200_000
"""With these, the page stays far below the 1 MiB that GitHub accepts."""


def write_step_summary(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the summary that GitHub shows for a step; reads only the trials whose reasons are shown."""
    out.write(f"## Proctor: {VERDICT_BADGES[verdict.outcome]}\n\n{inline(verdict.reason, MAX_TEXT)}\n\n")
    out.write(f"{_totals(run, verdict)}\n\n")
    _write_suites(run, verdict, out)
    write_gate(run, verdict, out)
    _write_failures(run, verdict, out)
    write_pending(run, verdict, out)
    if run.skipped_files:
        out.write(f"Skipped {inline(skipped_files_text(run.skipped_files), MAX_TEXT)}\n\n")


def _totals(run: Run, verdict: RunVerdict) -> str:
    parts = [f"{plural(len(run.summaries), 'trial')}: {trial_counts_text(run, verdict)}"]
    if run.finished_at is not None:
        parts.append(duration(max(0.0, run.finished_at - run.started_at) * 1000))
    if verdict.tokens is not None:
        parts.append(plural(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(inline(money(verdict.cost_usd, estimated=verdict.estimated)))
    return " · ".join(parts)


def _write_suites(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    old = suites_of_old_version(run)
    suites = [suite for suite in verdict.suites if suite.name not in old]
    if not suites:
        return
    out.write(table_head("Suite", "Verdict", "Cases", "Pass rate [95 %]", "Mean scores"))
    for suite in suites[:MAX_SUITES]:
        rate = "–" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)
        means = [f"{item.evaluator} {item.scores.mean:.2f}" for item in suite.evaluators if item.scores is not None]
        cells = (inline(suite.name, MAX_TEXT), VERDICT_BADGES[suite.outcome], counts_text(suite.counts), rate)
        out.write(row(*cells, inline(", ".join(means), MAX_TEXT)))
    out.write("\n")
    if len(suites) > MAX_SUITES:
        out.write(f"{len(suites) - MAX_SUITES:,} more suites are not shown.\n\n")


def _write_failures(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write every case that did not pass: the first ones with their reasons, the others by name."""
    cases = failing_cases(run, verdict, max_with_reasons=MAX_CASES_WITH_REASONS, limit=MAX_TEXT)
    write_rerun(run, verdict, out)
    if run.gate is None:
        _write_failing_cases("Failures", cases, out)
        return
    decisive = decisive_cases(run, verdict)
    _write_failing_cases("Failures", [case for case in cases if (case.suite, case.case_id) in decisive], out)
    others = [case for case in cases if (case.suite, case.case_id) not in decisive]
    _write_failing_cases("Not counted by the gate", others, out)


def _write_failing_cases(title: str, cases: Sequence[FailingCase], out: TextIO) -> None:
    if not cases:
        return
    out.write(f"### {title}\n\n")
    for case in cases[:MAX_CASES_WITH_REASONS]:
        _write_case(case, out)
    out.write("\n")
    _write_names(cases[MAX_CASES_WITH_REASONS:], out)


def _write_case(case: FailingCase, out: TextIO) -> None:
    out.write(f"- {case_title(case, MAX_TEXT)}")
    reasons = case.reasons[:MAX_REASONS]
    if len(reasons) == 1 and reasons[0].text:
        out.write(f": {inline(reasons[0].text)}")
    out.write("\n")
    for reason in reasons if len(reasons) > 1 else ():
        out.write(f"  - {plural(reason.trials, 'time')}: {inline(reason.text)}\n")
    if more := len(case.reasons) - len(reasons):
        out.write(f"  - and {plural(more, 'more reason')}\n")


def _write_names(cases: Sequence[FailingCase], out: TextIO) -> None:
    """Write the names of the other cases, as many as fit."""
    if not cases:
        return
    out.write(f"{plural(len(cases), 'more case')}:\n\n")
    room = MAX_NAMES_BYTES
    for number, case in enumerate(cases):
        line = f"- {case_title(case, MAX_SHORT_NAME)}\n"
        room -= len(line.encode("utf-8", "backslashreplace"))
        if room < 0:
            out.write(f"- and {len(cases) - number:,} more\n")
            break
        out.write(line)
    out.write("\n")
