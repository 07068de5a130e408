"""What CI systems show of a run: the comment on a pull request, and GitHub's summary of a step.

Both stay below the size that GitHub and GitLab accept, however large the run is. Text of agents is made inert:
it mentions nobody, links nowhere and closes no issue.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from proctor.reporting.build_findings import GATE_VERDICT_LABELS, gate_lines
from proctor.reporting.comparison_report import (
    CHANGE_TITLES,
    RESOURCE_NAMES,
    amount_text,
    case_name,
    change_text,
    difference_text,
    differences,
    ratio_text,
    run_description,
)
from proctor.reporting.failing_cases import FailingCase, failing_cases
from proctor.reporting.html.trial_view import anchor
from proctor.reporting.markdown.escaping import code, inline, row, table_head
from proctor.reporting.markdown.report import case_title, write_gate, write_pending
from proctor.reporting.wording import BADGES, counts_text, duration, money, pass_rate_text, plural
from proctor.results.comparison.comparison import CaseChange, Change, Comparison, p_text
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict

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
    yield f"{marker(comment.key)}\n## {_headline(comment)}\n\n"
    yield f"{_sentence(comment)}\n\n"
    if comment.comparison is None:
        yield "No earlier run to compare with.\n\n"
        yield from _failures(comment)
    else:
        groups = comment.comparison.groups
        for group in (Change.BROKEN, Change.FIXED, Change.FLAKY):
            yield from _case_list(group, groups[group], comment)
    yield f"{_cost_and_time(comment)}\n\n"
    # One piece: a fold that is cut would hide everything after it.
    yield f"<details>\n<summary>Details</summary>\n\n{''.join(_details(comment))}</details>\n"


def _headline(comment: Comment) -> str:
    gate = comment.run.gate
    name = f" ({inert(comment.key, MAX_NAME)})" if comment.key else ""
    if gate is not None:
        return f"Proctor{name}: {BADGES[gate.outcome].split()[0]} {GATE_VERDICT_LABELS[gate.verdict].lower()}"
    return f"Proctor{name}: {BADGES[comment.verdict.outcome]}"


def _sentence(comment: Comment) -> str:
    sentences = [f"**{inert(comment.verdict.reason, 500).removesuffix('.')}.**"]
    if comment.comparison is not None:
        sentences.append(inert(comment.comparison.sentence, 1_000))
    if comment.report:
        sentences.append(f"[Open the report]({_address(comment.report)}).")
    return " ".join(sentences)


def _case_list(group: Change, cases: Sequence[CaseChange], comment: Comment) -> Iterator[str]:
    if cases:
        yield f"### {CHANGE_TITLES[group]} ({len(cases):,})\n\n"
        yield _rows((_case_line(case, comment) for case in cases), len(cases), MAX_OPEN_LIST)


def _case_line(case: CaseChange, comment: Comment) -> str:
    details = inert("; ".join(differences(case)), MAX_REASON)
    name = _case_link(case_name(case), case.suite, case.case_id, comment)
    return f"- **{name}** {change_text(case)}{': ' if details else ''}{details}\n"


def _failures(comment: Comment) -> Iterator[str]:
    """The cases that did not pass, if there is no run to compare with."""
    failing = [
        (suite.name, case)
        for suite in comment.verdict.suites
        for case in suite.cases
        if case.outcome in (Outcome.FAILED, Outcome.ERROR)
    ]
    if not failing:
        return
    cases = failing_cases(comment.run, comment.verdict, limit=MAX_REASON)
    reasons = {(case.suite, case.case_id): case.headline for case in cases}
    lines = (
        f"- {BADGES[case.outcome]} **{_case_link(f'{suite}/{case.case_id}', suite, case.case_id, comment)}** "
        f"{case.passed}/{case.trials}: {inert(reasons.get((suite, case.case_id), ''), MAX_REASON)}\n"
        for suite, case in failing
    )
    yield f"### Failures ({len(failing):,})\n\n"
    yield _rows(lines, len(failing), MAX_OPEN_LIST)


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
    if comparison is not None:
        for group in (Change.STILL_FAILING, Change.NOT_COMPARABLE, Change.NEW, Change.GONE):
            if cases := comparison.groups[group]:
                yield f"#### {CHANGE_TITLES[group]} ({len(cases):,})\n\n"
                yield _rows((_case_line(case, comment) for case in cases), len(cases), MAX_FOLDED_LIST)
        yield from _scores(comparison)
        for name, side in (("Before", comparison.before), ("After", comparison.after)):
            yield f"- **{name}:** {inert(run_description(side), MAX_REASON)}\n"
        if count := len(comparison.groups[Change.STILL_PASSING]):
            yield f"- {plural(count, 'case')} still {'passes' if count == 1 else 'pass'}\n"
        yield "\n"
    yield from _rerun_commands(comment)


def _scores(comparison: Comparison) -> Iterator[str]:
    if comparison.evaluators:
        head = table_head("Evaluator", "Before", "After", "Difference (95 %)", "p (Holm)")
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


def _rerun_commands(comment: Comment) -> Iterator[str]:
    """Commands that re-run the broken cases, one each."""
    paths = {info.name: info.path for info in comment.run.suites}
    comparison = comment.comparison
    if comparison is not None:
        broken = [(case.suite, case.case_id) for case in comparison.groups[Change.BROKEN]]
    else:
        suites = comment.verdict.suites
        broken = [(s.name, case.case_id) for s in suites for case in s.cases if case.outcome is Outcome.FAILED]
    cases = [(path, case_id) for suite, case_id in broken if (path := paths.get(suite)) and len(case_id) <= MAX_NAME]
    if cases:
        yield "Re-run a case:\n\n"
        for path, case_id in cases[:MAX_COMMANDS]:
            argument = shlex.quote(f"{path}::{case_id}")
            yield f"- {code(f'proctor test {argument}')}\n"
        yield "\n"


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
    """The name of a case as a link to its first trial that did not pass, if there is a report to link to."""
    text = inert(name, MAX_NAME)
    if not comment.report:
        return text
    trials = [item for item in comment.run.summaries if (item.suite, item.case_id) == (suite, case_id)]
    failing = [item for item in trials if item.outcome in (Outcome.FAILED, Outcome.ERROR)]
    if not trials:
        return text
    return f"[{text}]({_address(comment.report)}#{anchor((failing or trials)[0].position)})"


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
    out.write(f"## Proctor: {BADGES[verdict.outcome]}\n\n{inline(verdict.reason, MAX_TEXT)}\n\n")
    out.write(f"{_totals(run, verdict)}\n\n")
    _write_suites(verdict, out)
    write_gate(run, verdict, out)
    _write_failures(run, verdict, out)
    write_pending(run, verdict, out)


def _totals(run: Run, verdict: RunVerdict) -> str:
    parts = [f"{plural(len(run.summaries), 'trial')}: {counts_text(verdict.counts)}"]
    if run.finished_at is not None:
        parts.append(duration(max(0.0, run.finished_at - run.started_at) * 1000))
    if verdict.tokens is not None:
        parts.append(plural(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(inline(money(verdict.cost_usd, estimated=verdict.estimated)))
    return " · ".join(parts)


def _write_suites(verdict: RunVerdict, out: TextIO) -> None:
    if not verdict.suites:
        return
    out.write(table_head("Suite", "Verdict", "Cases", "Pass rate [95 %]", "Mean scores"))
    for suite in verdict.suites[:MAX_SUITES]:
        rate = "–" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)
        means = [f"{item.evaluator} {item.scores.mean:.2f}" for item in suite.evaluators if item.scores is not None]
        cells = (inline(suite.name, MAX_TEXT), BADGES[suite.outcome], counts_text(suite.counts), rate)
        out.write(row(*cells, inline(", ".join(means), MAX_TEXT)))
    out.write("\n")
    if len(verdict.suites) > MAX_SUITES:
        out.write(f"{len(verdict.suites) - MAX_SUITES:,} more suites are not shown.\n\n")


def _write_failures(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write every case that did not pass: the first ones with their reasons, the others by name."""
    cases = failing_cases(run, verdict, max_with_reasons=MAX_CASES_WITH_REASONS, limit=MAX_TEXT)
    if not cases:
        return
    out.write("### Failures\n\n")
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
