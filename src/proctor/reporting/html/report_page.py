"""The whole run as one HTML file, written trial by trial. It loads nothing from elsewhere and works without scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from proctor.cases.identity import CaseAddress
from proctor.reporting.arms_report import arms_view
from proctor.reporting.html import environment
from proctor.reporting.html.run_view import (
    NamedValue,
    evaluator_views,
    failure_views,
    gate_view,
    grids,
    judge_facts,
    row_numbers,
    suite_cards,
)
from proctor.reporting.html.trial_view import TrialView, anchor, trial_view
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.plots import distribution_plots
from proctor.reporting.wording import (
    agent_names,
    duration,
    money,
    skipped_files_text,
    suites_with_trials,
    trial_counts_text,
    utc_time,
)
from proctor.results.comparison.arms import arm_tables
from proctor.results.run import Run
from proctor.results.trial import Trial, Trials
from proctor.results.verdict import RunVerdict, SuiteVerdict

MAX_FULL_TRIALS = 2_000
"""Maximum trials on a page, the worst first: each is about 1.5 KB, and a browser has to hold them all."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the page one trial at a time; a large run is cut to its worst trials."""
    positions = _positions_in_full(run)

    def link(position: int) -> str:
        return f"#{anchor(position)}" if positions is None or position in positions else ""

    numbers = row_numbers(run)
    environment.write(
        "reporting/templates/run.html",
        out,
        outcome=verdict.outcome,
        reason=verdict.reason,
        agents=", ".join(agent_names(run)) or "no agent",
        run=run,
        planned=sum(info.planned for info in run.suites),
        facts=_run_facts(run, verdict),
        gate=gate_view(run),
        suites=suite_cards(run, verdict),
        failures=failure_views(run, verdict, link),
        pending=pending_cases(run, verdict),
        compared_arms=arms_view(arm_tables(run) if run.compares_agents else ()),
        evaluators=evaluator_views(run, verdict),
        several_suites=len(verdict.suites) > 1,
        plots=distribution_plots(run.summaries),
        grids=grids(run, verdict, numbers, link),
        in_full=None if positions is None else MAX_FULL_TRIALS,
        counts=Counter(summary.outcome for summary in run.summaries),
        suites_with_trials=_trials(run, verdict, numbers, positions),
        environment=_environment_text(run),
    )


def _positions_in_full(run: Run) -> frozenset[int] | None:
    """The positions of the trials that the page shows, or `None` for all."""
    if len(run.summaries) <= MAX_FULL_TRIALS:
        return None
    worst = sorted(run.summaries, key=lambda summary: summary.outcome.rank)
    return frozenset(summary.position for summary in worst[:MAX_FULL_TRIALS])


def _run_facts(run: Run, verdict: RunVerdict) -> list[NamedValue]:
    facts = [NamedValue("Trials", f"{len(run.summaries):,}", f"({trial_counts_text(run, verdict)})")]
    if run.finished_at is not None:
        facts.append(NamedValue("Time", duration(max(0.0, run.finished_at - run.started_at) * 1000)))
    facts.append(NamedValue("Agent time", duration(sum(summary.duration_ms for summary in run.summaries))))
    if verdict.tokens is not None:
        facts.append(NamedValue("Tokens", f"{verdict.tokens:,}"))
    if verdict.cost_usd is not None:
        facts.append(NamedValue("Cost", money(verdict.cost_usd, estimated=verdict.estimated)))
    facts += judge_facts(run)
    if run.skipped_files:
        facts.append(NamedValue("Skipped", skipped_files_text(run.skipped_files), limit=1_000))
    facts.append(NamedValue("Started", utc_time(run.started_at)))
    facts.append(NamedValue("Run", run.id, is_code=True))
    return facts


def _trials(
    run: Run, verdict: RunVerdict, numbers: dict[CaseAddress, int], positions: frozenset[int] | None
) -> Iterator[tuple[SuiteVerdict, Iterator[TrialView]]]:
    """Each suite with the trials that the page shows; read the trials of a suite before the next suite."""
    if positions is not None:
        cases = {(item.suite, item.case_id) for item in run.summaries if item.position in positions}
        whole = run
        in_full = Trials(lambda _: (trial for trial in whole.trials_of(cases) if trial.position in positions))
        run = replace(run, trials=in_full)
    for _, suite_verdict, trials in suites_with_trials(run, verdict):
        yield suite_verdict, _views(trials, numbers)


def _views(trials: Iterable[Trial], numbers: dict[CaseAddress, int]) -> Iterator[TrialView]:
    for trial in trials:
        yield trial_view(trial, row=numbers.get((trial.suite, trial.case.id), -1))


def _environment_text(run: Run) -> str:
    versions = dict(run.environment)
    version = versions.pop("proctor_version", "")
    parts = [f"Proctor {version}".strip()]
    parts += [f"{name.removesuffix('_version')} {value}" for name, value in versions.items()]
    return " · ".join(parts)
