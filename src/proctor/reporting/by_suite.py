"""Walks the trials of a run suite by suite without ever holding them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from proctor.results.model import Outcome, Run, SuiteInfo, TrialResult, TrialSummary
from proctor.results.verdict import RunVerdict, SuiteVerdict


def suites_with_trials(
    run: Run, verdict: RunVerdict
) -> Iterator[tuple[SuiteInfo, SuiteVerdict, Iterable[TrialResult]]]:
    """Every suite, in order, with its verdict and the trials it made; take the trials before going on."""
    pairs = list(zip(run.suites, verdict.suites, strict=True))
    if not _in_suite_order(run):
        for info, judged in pairs:
            yield info, judged, (trial for trial in run.trials if trial.suite == info.name)
        return
    stream = groupby(run.trials, key=lambda trial: trial.suite)
    name, trials = next(stream, (None, iter(())))
    for info, judged in pairs:
        if info.name != name:
            yield info, judged, ()
            continue
        yield info, judged, trials
        name, trials = next(stream, (None, iter(())))


def suite_counts(run: Run, name: str) -> tuple[Counter[Outcome], float]:
    """A suite's trials by outcome, and the milliseconds they took together."""
    own: list[TrialSummary] = [summary for summary in run.summaries if summary.suite == name]
    return Counter(summary.outcome for summary in own), sum(summary.duration_ms for summary in own)


def informing(run: Run) -> set[tuple[str, str]]:
    """Evaluators that decide nothing in their suite, by the names of both."""
    met: set[tuple[str, str]] = set()
    deciding: set[tuple[str, str]] = set()
    for summary in run.summaries:
        for name, _, _, _, gates in summary.scores:
            (deciding if gates else met).add((summary.suite, name))
    return met - deciding


def _in_suite_order(run: Run) -> bool:
    """Whether one pass meets each suite once, in the order in which the run lists them."""
    planned = sorted(run.summaries, key=lambda summary: summary.position)
    met = [name for name, _ in groupby(summary.suite for summary in planned)]
    listed = [info.name for info in run.suites]
    return met == [name for name in listed if name in set(met)]
