"""What CI systems show of a run: the comment of a pull request, and GitHub's page for a step.

Both stay below what GitHub and GitLab accept, whatever the run is like, and the words of agents notify no person, link
nowhere and act on nothing.
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
from proctor.reporting.markdown.report import case_title, write_gate
from proctor.reporting.wording import BADGES, counts_text, duration, money, pass_rate_text, plural
from proctor.results.comparison.comparison import CaseChange, Change, Comparison, p_text
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict

MAX_COMMENT = 60_000
"""GitHub takes 65,536 characters, GitLab a million."""
MAX_OPEN_LIST = 8_000
"""Characters of each list that is not folded."""
MAX_FOLDED_LIST = 3_500
"""Characters of each list inside the fold."""
MAX_NAME, MAX_REASON = 150, 300
MAX_COMMANDS = 10
"""Commands that run one case again."""

_ACTIVE = re.compile(r"([@#!%])(?=\w)|(:)(?=//)|\b(www)(?=\.)", re.IGNORECASE)
"""What would notify a person or a team, or lead to an issue, a merge request, a milestone or an address."""


@dataclass(frozen=True, slots=True)
class Comment:
    """What a comment is about."""

    run: Run
    verdict: RunVerdict
    comparison: Comparison | None = None
    """`None` where there is no earlier run."""
    report: str = ""
    """The address of the run's HTML report; cases link into it."""
    key: str = ""
    """Tells the comments of several jobs on one pull request apart."""


def marker(key: str = "") -> str:
    """The first line of a comment, by which the next run finds it and writes it anew."""
    return f"<!-- proctor:pull-request {key or 'default'} -->"


def write_comment(comment: Comment, out: TextIO) -> None:
    """Write the comment; lists are cut, and say so, long before the whole becomes too long."""
    out.write(_join_within_limit(list(_pieces(comment))))


def _join_within_limit(pieces: Sequence[str]) -> str:
    """All pieces; of a comment that would be too long after all, the first ones."""
    note = "\n*The comment would be too long; the reports have the rest.*\n"
    room = MAX_COMMENT - len(note)
    kept: list[str] = []
    for piece in pieces:
        if len(piece) > room:
            return "".join([*kept, note])
        room -= len(piece)
        kept.append(piece)
    return "".join(kept)


def _pieces(comment: Comment) -> Iterator[str]:
    yield f"{marker(comment.key)}\n## {_headline(comment)}\n\n"
    yield f"{_sentence(comment)}\n\n"
    if comment.comparison is None:
        yield "There is no earlier run to compare with.\n\n"
        yield from _failures(comment)
    else:
        groups = comment.comparison.groups
        for group in (Change.BROKEN, Change.FIXED, Change.FLAKY):
            yield from _case_list(group, groups[group], comment)
    yield f"{_cost_and_time(comment)}\n\n"
    # One piece: half of a fold would swallow what follows it.
    yield f"<details>\n<summary>Details</summary>\n\n{''.join(_details(comment))}</details>\n"


def _headline(comment: Comment) -> str:
    gate = comment.run.gate
    name = f" ({inert(comment.key, MAX_NAME)})" if comment.key else ""
    if gate is not None:
        return f"Proctor{name}: {BADGES[gate.outcome].split()[0]} {GATE_VERDICT_LABELS[gate.verdict].lower()}"
    return f"Proctor{name}: {BADGES[comment.verdict.outcome]}"


def _sentence(comment: Comment) -> str:
    told = [f"**{inert(comment.verdict.reason, 500).removesuffix('.')}.**"]
    if comment.comparison is not None:
        told.append(inert(comment.comparison.sentence, 1_000))
    if comment.report:
        told.append(f"[Open the report]({_address(comment.report)}).")
    return " ".join(told)


def _case_list(group: Change, cases: Sequence[CaseChange], comment: Comment) -> Iterator[str]:
    if cases:
        yield f"### {CHANGE_TITLES[group]} ({len(cases):,})\n\n"
        yield _rows((_case_line(case, comment) for case in cases), len(cases), MAX_OPEN_LIST)


def _case_line(case: CaseChange, comment: Comment) -> str:
    said = inert("; ".join(differences(case)), MAX_REASON)
    name = _case_link(case_name(case), case.suite, case.case_id, comment)
    return f"- **{name}** {change_text(case)}{': ' if said else ''}{said}\n"


def _failures(comment: Comment) -> Iterator[str]:
    """What went wrong, where there is nothing to compare it with."""
    wrong = [
        (suite.name, case)
        for suite in comment.verdict.suites
        for case in suite.cases
        if case.outcome in (Outcome.FAILED, Outcome.ERROR)
    ]
    if not wrong:
        return
    cases = failing_cases(comment.run, comment.verdict, limit=MAX_REASON)
    reasons = {(case.suite, case.case_id): case.headline for case in cases}
    lines = (
        f"- {BADGES[case.outcome]} **{_case_link(f'{suite}/{case.case_id}', suite, case.case_id, comment)}** "
        f"{case.passed}/{case.trials}: {inert(reasons.get((suite, case.case_id), ''), MAX_REASON)}\n"
        for suite, case in wrong
    )
    yield f"### What went wrong ({len(wrong):,})\n\n"
    yield _rows(lines, len(wrong), MAX_OPEN_LIST)


def _cost_and_time(comment: Comment) -> str:
    """Against before where that is known; else of the run alone."""
    if comment.comparison is not None:
        told = [item for item in comment.comparison.resources if item.resource in ("cost_usd", "duration_ms")]
        parts = []
        for item in told:
            before, after = (inline(amount_text(item.resource, value)) for value in (item.before, item.after))
            name = RESOURCE_NAMES[item.resource] + (" (estimate)" if item.estimated else "")
            parts.append(f"{name} of a trial {before} → {after} ({ratio_text(item).split()[0]} times)")
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
        if kept := len(comparison.groups[Change.STILL_PASSING]):
            yield f"- {plural(kept, 'case')} still {'passes' if kept == 1 else 'pass'}\n"
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
    """Commands that run what broke again, one case each."""
    paths = {info.name: info.path for info in comment.run.suites}
    comparison = comment.comparison
    if comparison is not None:
        broken = [(case.suite, case.case_id) for case in comparison.groups[Change.BROKEN]]
    else:
        suites = comment.verdict.suites
        broken = [(s.name, case.case_id) for s in suites for case in s.cases if case.outcome is Outcome.FAILED]
    known = [(path, case_id) for suite, case_id in broken if (path := paths.get(suite)) and len(case_id) <= MAX_NAME]
    if known:
        yield "Run one of these again:\n\n"
        for path, case_id in known[:MAX_COMMANDS]:
            place = shlex.quote(f"{path}::{case_id}")
            yield f"- {code(f'proctor test {place}')}\n"
        yield "\n"


def _rows(lines: Iterable[str], count: int, room: int) -> str:
    """As many lines as there is room for, and how many were left out."""
    kept: list[str] = []
    for line in lines:
        if len(line) > room:
            kept.append(f"\nAnd {plural(count - len(kept), 'more case')}; the reports have all of them.\n")
            break
        room -= len(line)
        kept.append(line)
    return "".join([*kept, "\n"])


def _case_link(name: str, suite: str, case_id: str, comment: Comment) -> str:
    """The name of a case, which leads to its first trial that did not pass."""
    words = inert(name, MAX_NAME)
    if not comment.report:
        return words
    own = [item for item in comment.run.summaries if (item.suite, item.case_id) == (suite, case_id)]
    wrong = [item for item in own if item.outcome in (Outcome.FAILED, Outcome.ERROR)]
    if not own:
        return words
    return f"[{words}]({_address(comment.report)}#{anchor((wrong or own)[0].position)})"


def inert(text: str, limit: int) -> str:
    """Text from outside as Markdown on one line, that notifies no person and links nowhere."""
    return _ACTIVE.sub(lambda found: f"{found.group()}\u200b", inline(text, limit))


def _address(text: str) -> str:
    """An address inside a link, where white space and brackets would end it."""
    return re.sub(r"[\s<>()\[\]\"'`\\]", lambda found: f"%{ord(found.group()):02X}", text)


MAX_CASES_WITH_REASONS = 50
MAX_REASONS = 3
MAX_SUITES = 200
MAX_TEXT = 300
MAX_SHORT_NAME = 120
MAX_NAMES_BYTES = 200_000
"""With these, the page stays far below the 1 MiB that GitHub accepts."""


def write_step_summary(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the page; only as many trials are read as it takes to find the reasons shown."""
    out.write(f"## Proctor: {BADGES[verdict.outcome]}\n\n{inline(verdict.reason, MAX_TEXT)}\n\n")
    out.write(f"{_totals(run, verdict)}\n\n")
    _write_suites(verdict, out)
    write_gate(run, verdict, out)
    _write_failures(run, verdict, out)


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
        rate = "not measured" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)
        means = [f"{item.evaluator} {item.scores.mean:.2f}" for item in suite.evaluators if item.scores is not None]
        cells = (inline(suite.name, MAX_TEXT), BADGES[suite.outcome], counts_text(suite.counts), rate)
        out.write(row(*cells, inline(", ".join(means), MAX_TEXT)))
    out.write("\n")
    if len(verdict.suites) > MAX_SUITES:
        out.write(f"{len(verdict.suites) - MAX_SUITES:,} more suites are not shown.\n\n")


def _write_failures(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Every case that went wrong, with its reasons while there is room for them, else by its name alone."""
    cases = failing_cases(run, verdict, most_reasons=MAX_CASES_WITH_REASONS, limit=MAX_TEXT)
    if not cases:
        return
    out.write("### What went wrong\n\n")
    for case in cases[:MAX_CASES_WITH_REASONS]:
        _write_case(case, out)
    out.write("\n")
    _write_names(cases[MAX_CASES_WITH_REASONS:], out)


def _write_case(case: FailingCase, out: TextIO) -> None:
    out.write(f"- {case_title(case, MAX_TEXT)}")
    shown = case.reasons[:MAX_REASONS]
    if len(shown) == 1 and shown[0].text:
        out.write(f": {inline(shown[0].text)}")
    out.write("\n")
    for reason in shown if len(shown) > 1 else ():
        out.write(f"  - {plural(reason.trials, 'time')}: {inline(reason.text)}\n")
    if more := len(case.reasons) - len(shown):
        out.write(f"  - and {plural(more, 'more reason')}\n")


def _write_names(cases: Sequence[FailingCase], out: TextIO) -> None:
    """The other cases; what no longer fits on the page is counted."""
    if not cases:
        return
    out.write(f"Also, without their reasons ({len(cases):,}):\n\n")
    room = MAX_NAMES_BYTES
    for number, case in enumerate(cases):
        line = f"- {case_title(case, MAX_SHORT_NAME)}\n"
        room -= len(line.encode("utf-8", "backslashreplace"))
        if room < 0:
            out.write(f"- and {len(cases) - number:,} more\n")
            break
        out.write(line)
    out.write("\n")
