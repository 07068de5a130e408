"""The mutation report as JSON, Markdown and HTML, and the sentences that it shares with the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from proctor.base.json_data import Json, to_json
from proctor.base.masking import Masker, mask
from proctor.cases.formats.native.parts import MUTANT_KINDS
from proctor.mutation.findings import (
    KillRate,
    KindFinding,
    MutantResult,
    MutantStatus,
    MutationReport,
    Proposal,
    SuiteFindings,
)
from proctor.reporting.html import environment
from proctor.reporting.markdown.escaping import code, fence, inline, row, table_head
from proctor.reporting.wording import plural
from proctor.results.score import Outcome
from proctor.results.statistics import Estimate

SCHEMA = "proctor.mutation/1"
MUTANTS_FOLDER = "mutants"
"""The folder for mutants in the store."""
MAX_NAMED_CASES = 8
"""Maximum cases named in one sentence."""
MAX_LISTED = 100
"""Maximum mutants per list in the Markdown report."""


def mutation_json(report: MutationReport) -> dict[str, Json]:
    masker = Masker()
    return {
        "schema": SCHEMA,
        "run": report.run,
        "seed": report.seed,
        "mutants_per_trial": report.max_per_trial,
        "mutants_a_trial": report.max_per_trial,  # the name of earlier releases
        "rate": _rate(report.rate),
        "min_kill": report.min_kill,
        "exit_code": report.exit_code,
        "complete": report.is_complete,
        "verdict": verdict_text(report),
        "suites": [_suite(suite, masker) for suite in report.suites],
    }


def _suite(suite: SuiteFindings, masker: Masker) -> dict[str, Json]:
    return {
        "suite": suite.suite,
        "complete": suite.is_complete,
        "broken": suite.controls.broken,
        "oracle_fails": list(suite.controls.oracle_fails),
        "nop_passes": list(suite.controls.nop_passes),
        "rate": _rate(suite.rate),
        "cases": [{"case": name, **_rate(rate)} for name, rate in suite.cases],
        "kinds": [_kind(item, masker) for item in suite.kinds],
        "evaluators": [
            {
                "evaluator": item.evaluator,
                **_rate(item.rate),
                "alone": item.alone,
                "report_only": not item.gates,
                "ineffective": item.is_ineffective,
                # The names of earlier releases.
                "gates": item.gates,
                "vacuous": item.is_ineffective,
            }
            for item in suite.evaluators
        ],
        "unfailable_cases": list(suite.never_failing),
        "redundant": [{"evaluators": [first, second], "mutants": count} for first, second, count in suite.redundant],
        "counts": status_counts(suite),
        "waived": len(suite.with_status(MutantStatus.WAIVED)),
        "mutants_left_out": suite.left_out,
        "unmutated_cases": [{"case": case, "reason": reason} for case, reason in suite.unmutated_cases.items()],
        "unused_waivers": [to_json(waiver) for waiver in suite.unused_waivers],
        "allowed": dict(suite.allowed),
        "skipped_trials": dict(suite.skipped_trials),
        "left_out": dict(suite.skipped_trials),  # the name of earlier releases
        "notes": list(suite.notes),
        "proposals": [masker.data(to_json(proposal)) for proposal in suite.proposals],
        "mutants": [_mutant(item, masker) for item in suite.results],
    }


def _kind(item: KindFinding, masker: Masker) -> dict[str, Json]:
    return {
        "kind": item.kind,
        "what": MUTANT_KINDS[item.kind],
        **_rate(item.rate),
        "survived": len(item.survivors),
        "left_out": item.left_out,
        "proposal": None if item.proposal is None else masker.data(to_json(item.proposal)),
    }


def _mutant(item: MutantResult, masker: Masker) -> dict[str, Json]:
    mutant = item.mutant
    before, after, note = map(masker.text, (mutant.before, mutant.after, item.note))
    return {
        "name": mutant.name,
        "case": mutant.case,
        "trial": mutant.trial,
        "turn": mutant.turn + 1,
        "kind": mutant.kind,
        "what": MUTANT_KINDS[mutant.kind],
        "before": before,
        "after": after,
        "status": item.status.value,
        # The name and the word of earlier releases.
        "fate": "unsettled" if item.status is MutantStatus.UNDECIDED else item.status.value,
        "killed_by": [name for name, failed in item.detections.items() if failed],
        "seen_by": list(item.detections),
        "note": note,
    }


def _rate(rate: KillRate) -> dict[str, Json]:
    low, high = rate.interval
    return {"killed": rate.killed, "total": rate.total, "share": rate.share, "low": low, "high": high}


def write_json(report: MutationReport, out: TextIO) -> None:
    out.write(json.dumps(mutation_json(report), indent=2) + "\n")


def write_mutants(report: MutationReport, out: TextIO) -> None:
    """Write one line per mutant, after a line with the run and the seed."""
    out.write(
        json.dumps({"schema": SCHEMA, "run": report.run, "seed": report.seed, "most": report.max_per_trial}) + "\n"
    )
    masker = Masker()
    for suite in report.suites:
        for item in suite.results:
            out.write(json.dumps({"suite": suite.suite, **_mutant(item, masker)}) + "\n")


def kill_rate_text(rate: KillRate) -> str:
    """`92.3% [84.0%, 96.4%]`, or `none` if there are no mutants."""
    if not rate.total:
        return "none"
    low, high = rate.interval
    return f"{rate.share:.1%} [{low:.1%}, {high:.1%}]"


def status_counts(suite: SuiteFindings) -> dict[str, int]:
    """How many mutants were killed, survived, are undecided and are waived."""
    return {status.value: len(suite.with_status(status)) for status in MutantStatus}


def counts_text(suite: SuiteFindings) -> str:
    """`5 killed, 11 survived, 40 left out`, without what is 0."""
    counts = {**status_counts(suite), "left out": suite.left_out}
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)


def completeness_text(report: MutationReport) -> str:
    """Whether the suites are complete, or what is open."""
    if report.is_complete:
        kinds = {item.kind for suite in report.suites for item in suite.kinds}
        return f"complete: no mutant of {plural(len(kinds), 'kind')} survives"
    survived, undecided = (
        sum(len(suite.with_status(status)) for suite in report.suites)
        for status in (MutantStatus.SURVIVED, MutantStatus.UNDECIDED)
    )
    cases = sum(len(suite.unmutated_cases) for suite in report.suites)
    left_out = sum(suite.left_out for suite in report.suites)
    parts = [
        f"{survived:,} survived" if survived else "",
        f"{undecided:,} undecided" if undecided else "",
        f"{left_out:,} left out (--mutants)" if left_out else "",
        f"{plural(cases, 'case')} without mutants" if cases else "",
    ]
    return f"not complete: {', '.join(filter(None, parts))}"


def verdict_text(report: MutationReport) -> str:
    """The result in one sentence."""
    if report.broken:
        first = report.broken[0]
        return f"the suite {first.suite} is broken: {first.controls.broken}"
    if not report.rate.total:
        return f"nothing to mutate: run {report.run} has no passing trial that can be changed"
    killed = f"{report.rate.killed:,} of {plural(report.rate.total, 'mutant')} killed, {kill_rate_text(report.rate)}"
    killed = f"{killed}; {completeness_text(report)}"
    if report.min_kill is None:
        return killed
    if report.below:
        least = report.below[0]
        return f"{killed}; {least.suite} kills {least.rate.share:.1%}, {report.min_kill:.1%} required"
    return f"{killed}; {report.min_kill:.1%} required"


def remarks(suite: SuiteFindings) -> list[str]:
    """The weaknesses of evaluators, cases and waivers, one sentence each."""
    lines = []
    for item in suite.evaluators:
        if item.is_ineffective:
            mutants = plural(item.rate.total, "mutant")
            lines.append(f"ineffective: {item.evaluator} killed none of the {mutants} it could see")
    controls = suite.controls
    for ids, title in (
        (suite.never_failing, "cases that no mutant fails:"),
        (controls.nop_passes, "cases that an empty answer passes:"),
        (controls.oracle_fails, "cases that their own expected answer fails:"),
    ):
        lines += [f"{title} {_case_list(ids)}"] if ids else []
    lines += [
        f"redundant: {first} and {second} agree on all {count} mutants that both could see"
        for first, second, count in suite.redundant
    ]
    lines += [
        f"unused waiver: no {waiver.mutant} survives{f' in case {waiver.case}' if waiver.case else ''}"
        for waiver in suite.unused_waivers
    ]
    return lines + footnotes(suite)


def _case_list(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - MAX_NAMED_CASES:,} more" if len(ids) > MAX_NAMED_CASES else ""
    return f"{', '.join(ids[:MAX_NAMED_CASES])}{more}"


def footnotes(suite: SuiteFindings) -> list[str]:
    """Which trials and mutants were skipped, and what else to know about the figures."""
    lines = [f"{plural(count, 'trial')} skipped: {reason}" for reason, count in suite.skipped_trials.items()]
    reasons: dict[str, list[str]] = {}
    for case, reason in suite.unmutated_cases.items():
        reasons.setdefault(reason, []).append(case)
    lines += [f"not mutated ({reason}): {_case_list(cases)}" for reason, cases in reasons.items()]
    if suite.left_out:
        lines.append(
            f"{plural(suite.left_out, 'mutant')} left out, evenly over kinds and places; a higher --mutants tries them"
        )
    if suite.allowed:
        kinds = ", ".join(f"{kind} {count}" for kind, count in suite.allowed.items())
        lines.append(f"not mutated, because the expectations allow it: {kinds}")
    return [*lines, *suite.notes]


def explanation(item: MutantResult, suite: SuiteFindings) -> str:
    """Why a survivor may not be a weakness of the suite, or ""."""
    lenient = [e.evaluator for e in suite.evaluators if e.evaluator in ("ExpectedTools", "ToolCorrectness")]
    leniency = {"calls-reordered": "calls in any order", "call-added": "other calls", "call-repeated": "repeated calls"}
    if lenient and item.mutant.kind in leniency:
        return f"{lenient[0]} accepts {leniency[item.mutant.kind]}; if that is intended, add a waiver"
    return ""


def grouped_proposals(suite: SuiteFindings) -> list[tuple[str, str]]:
    """Suggested lines and the cases to add them to; equal lines once for all their cases."""
    groups: dict[str, list[Proposal]] = {}
    for proposal in suite.proposals:
        groups.setdefault(mask(proposal.lines), []).append(proposal)
    proposals = []
    for lines, group in groups.items():
        places = [item.case + ("" if item.turn is None else f" (turn {item.turn + 1})") for item in group]
        killed, survivors = sum(item.kills for item in group), sum(item.of for item in group)
        proposals.append((f"{_case_list(places)}: kills {killed} of {plural(survivors, 'survivor')}", lines))
    return proposals


def surviving_kinds(suite: SuiteFindings) -> list[KindFinding]:
    """The kinds with survivors, those with the most first."""
    return [item for item in suite.kinds if item.survivors]


def kind_title(item: KindFinding) -> str:
    return f"{item.kind}: {MUTANT_KINDS[item.kind]}; {len(item.survivors):,} of {item.rate.total:,} survived"


def kind_proposal_text(item: KindFinding) -> str:
    """Where the suggested lines belong and what they kill, or that there are none."""
    proposal = item.proposal
    if proposal is None:
        return "no keyword or comparison kills these and passes every good answer; let a judge score it"
    turn = "" if proposal.turn is None else f" (turn {proposal.turn + 1})"
    return f"shortest expectation, in case {proposal.case}{turn}: kills {proposal.kills} of {proposal.of}"


def mutant_title(item: MutantResult) -> str:
    mutant = item.mutant
    trial = f" #{mutant.trial}" if mutant.trial > 1 else ""
    turn = f", turn {mutant.turn + 1}" if len(mutant.replies) > 1 else ""
    return f"{mutant.case}{trial}{turn}  {mutant.kind}: {MUTANT_KINDS[mutant.kind]}"


def write_markdown(report: MutationReport, out: TextIO) -> None:
    """Write the result, then per suite: remarks, figures, survivors and suggestions."""
    out.write(f"## Mutants of run {inline(report.run)}\n\n**{inline(verdict_text(report))}**\n\n")
    out.write(f"Seed {report.seed}, at most {report.max_per_trial} mutants per trial. Intervals: Wilson, 95 %.\n\n")
    for suite in report.suites:
        _write_suite(suite, out)


def _write_suite(suite: SuiteFindings, out: TextIO) -> None:
    out.write(f"### {inline(suite.suite)}: {kill_rate_text(suite.rate)}\n\n")
    if suite.controls.broken:
        out.write(f"**The suite is broken:** {inline(suite.controls.broken)}\n\n")
    if suite.results:
        out.write(f"{counts_text(suite)}\n\n")
    _write_kinds(suite, out)
    for text in remarks(suite):
        out.write(f"- {inline(text)}\n")
    if suite.evaluators:
        out.write("\n" + table_head("Evaluator", "Killed", "Could see", "Share (95 %)", "Killed alone"))
        for item in suite.evaluators:
            name = inline(item.evaluator) + ("" if item.gates else " (report only)")
            figures = (f"{item.rate.killed:,}", f"{item.rate.total:,}", kill_rate_text(item.rate), f"{item.alone:,}")
            out.write(row(name, *figures))
    if suite.cases:
        out.write("\n" + table_head("Case", "Killed", "Mutants", "Share (95 %)"))
        for case, rate in suite.cases[:MAX_LISTED]:
            out.write(row(inline(case), f"{rate.killed:,}", f"{rate.total:,}", kill_rate_text(rate)))
        if len(suite.cases) > MAX_LISTED:
            out.write(f"\nAnd {plural(len(suite.cases) - MAX_LISTED, 'more case')}.\n")
    out.write("\n")
    for title, status in LISTED_STATUSES:
        _write_mutants(title, suite.with_status(status), suite, out)
    if suite.proposals:
        out.write("#### Suggested additions to the suite\n\n")
    for place, lines in grouped_proposals(suite):
        out.write(f"{inline(place)}\n\n{fence(lines.rstrip(), 4_000)}\n")


def _write_kinds(suite: SuiteFindings, out: TextIO) -> None:
    """Write the surviving kinds with their suggestions, then the figures of all kinds."""
    for item in surviving_kinds(suite):
        example = item.survivors[0].mutant
        out.write(f"#### {inline(kind_title(item))}\n\n")
        out.write(f"- before: {code(mask(example.before))}\n- after: {code(mask(example.after))}\n\n")
        out.write(f"{inline(kind_proposal_text(item))}\n\n")
        if item.proposal is not None:
            out.write(f"{fence(mask(item.proposal.lines).rstrip(), 4_000)}\n\n")
    if suite.kinds:
        out.write(table_head("Kind", "Killed", "Mutants", "Share (95 %)", "Left out"))
        for item in suite.kinds:
            figures = (f"{item.rate.killed:,}", f"{item.rate.total:,}", kill_rate_text(item.rate), f"{item.left_out:,}")
            out.write(row(inline(item.kind), *figures))
        out.write("\n")


def _write_mutants(title: str, items: Sequence[MutantResult], suite: SuiteFindings, out: TextIO) -> None:
    if not items:
        return
    out.write(f"#### {title} ({len(items):,})\n\n")
    for item in items[:MAX_LISTED]:
        note = mask(item.note) or explanation(item, suite)
        out.write(f"- {inline(mutant_title(item))}{f' ({inline(note, 300)})' if note else ''}\n")
        out.write(f"  - before: {code(mask(item.mutant.before))}\n  - after: {code(mask(item.mutant.after))}\n")
    if len(items) > MAX_LISTED:
        out.write(f"\nAnd {len(items) - MAX_LISTED:,} more.\n")
    out.write("\n")


MAX_ON_PAGE = 500
OUTCOMES = {0: Outcome.PASSED, 1: Outcome.FAILED}
"""The outcome whose color the page has, by exit code."""
LISTED_STATUSES = (
    ("Survivors", MutantStatus.SURVIVED),
    ("Undecided", MutantStatus.UNDECIDED),
    ("Waived", MutantStatus.WAIVED),
)


@dataclass(frozen=True, slots=True)
class RateRow:
    """How many mutants an evaluator killed, or were killed of a case."""

    name: str
    rate: KillRate
    interval: Estimate
    text: str
    other: str = ""
    """How many only this evaluator killed, or how many of this kind were left out."""


@dataclass(frozen=True, slots=True)
class MutantView:
    """A mutant that was not killed."""

    title: str
    note: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class KindView:
    """A kind of mutant with survivors, an example, and what would kill them."""

    title: str
    before: str
    after: str
    proposal: str
    lines: str


@dataclass(frozen=True, slots=True)
class SuiteMutationView:
    """One suite as the page shows it."""

    name: str
    rate: str
    counts: str
    """How many mutants were killed, survived and so on."""
    surviving_kinds: Sequence[KindView]
    kinds: Sequence[RateRow]
    broken: str
    remarks: Sequence[str]
    evaluators: Sequence[RateRow]
    cases: Sequence[RateRow]
    case_count: int
    """The number of cases; `cases` has the first of them."""
    statuses: Sequence[tuple[str, int, Sequence[MutantView]]]
    """Title, number and list of the mutants of each status."""
    proposals: Sequence[tuple[str, str]]


def write_html(report: MutationReport, out: TextIO) -> None:
    environment.write(
        "mutation/templates/report.html",
        out,
        title=f"Mutants of run {report.run}",
        outcome=OUTCOMES.get(report.exit_code, Outcome.PENDING),
        rate=kill_rate_text(report.rate),
        reason=verdict_text(report),
        run=report.run,
        seed=report.seed,
        suites=map(_suite_view, report.suites),
    )


WRITERS: Mapping[str, Callable[[MutationReport, TextIO], None]] = {
    "json": write_json,
    "md": write_markdown,
    "html": write_html,
}


def _suite_view(suite: SuiteFindings) -> SuiteMutationView:
    evaluators = [
        _rate_row(item.evaluator + ("" if item.gates else " (report only)"), item.rate, f"{item.alone:,}")
        for item in suite.evaluators
    ]
    statuses = []
    for title, status in LISTED_STATUSES:
        if items := suite.with_status(status):
            statuses.append((title, len(items), [_mutant_view(item, suite) for item in items[:MAX_ON_PAGE]]))
    return SuiteMutationView(
        suite.suite,
        kill_rate_text(suite.rate),
        counts_text(suite),
        [_kind_view(item) for item in surviving_kinds(suite)],
        [_rate_row(item.kind, item.rate, f"{item.left_out:,}") for item in suite.kinds],
        suite.controls.broken,
        remarks(suite),
        evaluators,
        [_rate_row(case, rate) for case, rate in suite.cases[:MAX_ON_PAGE]],
        len(suite.cases),
        statuses,
        grouped_proposals(suite),
    )


def _kind_view(item: KindFinding) -> KindView:
    example = item.survivors[0].mutant
    lines = "" if item.proposal is None else mask(item.proposal.lines)
    return KindView(kind_title(item), mask(example.before), mask(example.after), kind_proposal_text(item), lines)


def _rate_row(name: str, rate: KillRate, other: str = "") -> RateRow:
    low, high = rate.interval
    return RateRow(name, rate, Estimate(rate.share, low, high, rate.total), kill_rate_text(rate), other)


def _mutant_view(item: MutantResult, suite: SuiteFindings) -> MutantView:
    note = mask(item.note) or explanation(item, suite)
    return MutantView(mutant_title(item), note, mask(item.mutant.before), mask(item.mutant.after))
