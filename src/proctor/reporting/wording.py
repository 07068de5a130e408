"""How numbers, outcomes and scores are written in every report, and the trials of a run suite by suite.

Every report takes its words from here, so that `12 trials`, `FLAKY 4/5` or `$0.0031` look the same everywhere.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path, PurePath

from proctor.judging.judge import is_rule_based
from proctor.results.reasons import mean_text, score_value, worst_score
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.statistics import Estimate, Reliability
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict, suites_of_old_version

MAX_SKIPPED_FILES = 3
"""How many of the skipped files a report names."""


@dataclass(frozen=True, slots=True)
class OutcomeStyle:
    """How an outcome is shown. A symbol and a word go with every color, for readers who do not see the color."""

    symbol: str
    """In HTML."""
    label: str
    """In the first column of a terminal."""
    style: str
    """On a terminal."""
    color: str
    """Of the icon of a page. Style sheets have their own colors, by the name of the outcome."""
    badge: str
    """In Markdown."""


OUTCOME_STYLES = {
    Outcome.PASSED: OutcomeStyle("✓", "PASS", "green", "1a7f37", "✅ PASSED"),
    Outcome.FAILED: OutcomeStyle("✗", "FAIL", "bold red", "cf222e", "❌ FAILED"),
    Outcome.ERROR: OutcomeStyle("!", "ERROR", "bold yellow", "bf8700", "⚠️ ERROR"),
    Outcome.SKIPPED: OutcomeStyle("–", "SKIP", "cyan", "6e7781", "⏭️ SKIPPED"),
    Outcome.PENDING: OutcomeStyle("…", "PEND", "magenta", "8250df", "⏳ PENDING"),
}
"""The one table of symbols and colors. Anything else that is colored takes the color of an outcome."""
LABELS = {outcome: style.label for outcome, style in OUTCOME_STYLES.items()}
STYLES = {outcome: style.style for outcome, style in OUTCOME_STYLES.items()}
BADGES = {outcome: style.badge for outcome, style in OUTCOME_STYLES.items()}
VERDICT_BADGES = BADGES | {Outcome.PENDING: "⏳ INCONCLUSIVE"}
"""Of a suite or a run, in Markdown."""
NOUNS = {Outcome.ERROR: ("error", "errors")}


def trial_name(case_id: str, number: int) -> str:
    """`refund` for the first trial of a case, `refund #2` for the second."""
    return case_id if number == 1 else f"{case_id} #{number}"


def flaky_text(case: CaseVerdict) -> str:
    """`FLAKY 4/5`: how many of the trials that passed or failed passed."""
    return f"FLAKY {case.passed}/{case.passed + case.failed}"


def passed_text(passed: int, trials: int, errors: int = 0) -> str:
    """`3/5 passed, 1 error`; empty for a single trial, whose outcome says it all."""
    if trials <= 1:
        return ""
    return f"{passed:,}/{trials:,} passed" + (f", {plural(errors, 'error')}" if errors else "")


def judge_title(name: str) -> str:
    """`judge openai:gpt-5-mini`, or `rule-based judge`."""
    return "rule-based judge" if is_rule_based(name) else f"judge {name}"


def duration(milliseconds: float) -> str:
    if not math.isfinite(milliseconds):
        return "?"
    seconds = milliseconds / 1000
    if seconds < 59.995:
        return f"{seconds:.2f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02d}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"


def money(dollars: float, *, estimated: bool = False) -> str:
    """An amount in US dollars; `estimated` if it comes from a price list instead of the provider."""
    note = " (estimate)" if estimated else ""
    if 0 < dollars < 0.0001:
        return f"<$0.0001{note}"
    return (f"${dollars:,.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}") + note


def rate_text(rate: Estimate, noun: str = "case") -> str:
    """A share with what it is a share of: `87.5% of 48 cases`. Without that, it seems to contradict other counts."""
    return f"{rate.mean:.1%} of {plural(rate.count, noun)}"


def pass_rate_text(rate: Estimate) -> str:
    """A pass rate with its 95% interval: `66.7% of 3 cases [20.8%, 93.9%]`. Cases that neither passed nor failed do
    not count."""
    return f"{rate_text(rate)} {interval_text(rate)}"


def interval_text(rate: Estimate) -> str:
    """The 95% interval of a share: `[20.8%, 93.9%]`."""
    return f"[{rate.low:.1%}, {rate.high:.1%}]"


def reliability_text(items: Sequence[Reliability], limit: int = 10) -> str:
    """`pass^k 0.90 0.82 0.75, pass@k 0.90 0.97 1.00 (k = 1 to 3)`; empty for fewer than three trials per case."""
    if len(items) < 3:
        return ""
    items = items[:limit]
    hats, ats = (" ".join(f"{getattr(item, name):.2f}" for item in items) for name in ("pass_hat", "pass_at"))
    return f"pass^k {hats}, pass@k {ats} (k = 1 to {len(items)})"


def shown_path(path: str) -> str:
    """A file as reports show it: relative to the folder of the project, and only its name if it is elsewhere."""
    short = PurePath(without_machine_paths(path))
    return short.name if short.is_absolute() or short.parts[:1] == ("~",) else str(short)


def without_machine_paths(text: str) -> str:
    """The text with paths relative to the current folder, as `../` if they are above it, and the home folder as `~`.

    Reports are sent to others, attached to tickets and published by CI; where files are on one machine is nobody's
    business, and different on every machine.
    """
    if os.sep not in text:
        return text
    for folder, short in _machine_folders(os.getcwd(), os.path.expanduser("~")):  # noqa: PTH109, PTH111  called for every text
        if folder in text:
            text = text.replace(f"{folder}{os.sep}", "" if short == "." else f"{short}{os.sep}")
            text = re.sub(rf"{re.escape(folder)}(?![\w-]|\.\w)", short, text)
    return text


@functools.cache
def _machine_folders(current: str, home: str) -> list[tuple[str, str]]:
    """The current folder, the folders above it, and the home folder, each with what reports show instead.

    The first two levels, such as `/home` or `/tmp`, say nothing about the machine.
    """
    stop = {Path(home), *Path(home).parents}
    above = [folder for folder in Path(current).parents if len(folder.parts) > 2 and folder not in stop]
    folders = [(Path(current), "."), *((folder, "/".join([".."] * level)) for level, folder in enumerate(above, 1))]
    return [(str(folder), short) for folder, short in (*folders, (Path(home), "~")) if len(folder.parts) > 1]


def plural(number: int, singular: str, plural_form: str | None = None) -> str:
    """`1 trial`, `2,000 trials`."""
    return f"{number:,} {singular if number == 1 else plural_form or singular + 's'}"


def skipped_files_text(files: Mapping[str, str], limit: int = MAX_SKIPPED_FILES) -> str:
    """`2 files that are not suites: a.yaml (is empty), b.csv (…)`, with the first `limit` of them."""
    parts = [f"{path} ({reason})" for path, reason in list(files.items())[:limit]]
    more = f" and {len(files) - limit:,} more" if len(files) > limit else ""
    noun = "file that is not a suite" if len(files) == 1 else "files that are not suites"
    return f"{len(files):,} {noun}: {', '.join(parts)}{more}"


def counts_text(counts: Mapping[Outcome, int]) -> str:
    """`3 passed, 1 failed`: every outcome that occurred."""
    return ", ".join(text for text, _ in count_parts(counts)) or "nothing ran"


def trial_counts_text(run: Run, verdict: RunVerdict) -> str:
    """`3 passed, 1 failed`; of a gate with two versions, `3 passed, 1 failed; 4 more with main`."""
    old = suites_of_old_version(run)
    more = sum(summary.suite in old for summary in run.summaries)
    note = f"; {more:,} more with {run.gate.against}" if more and run.gate is not None else ""
    return f"{counts_text(verdict.counts)}{note}"


def agent_names(run: Run) -> list[str]:
    """The agents or arms of a run, each once; of a gate with two versions, the agent under test."""
    old = suites_of_old_version(run)
    infos = [info for info in run.suites if info.name not in old]
    names = [(info.reference if old else "") or info.agent for info in infos]
    return list(dict.fromkeys(name for name in names if name))


def count_parts(counts: Mapping[Outcome, int]) -> list[tuple[str, Outcome]]:
    parts = []
    for outcome in Outcome:
        if number := counts.get(outcome, 0):
            words = NOUNS.get(outcome, (outcome.value, outcome.value))
            parts.append((f"{number:,} {words[number != 1]}", outcome))
    return parts


def score_texts(scores: Sequence[Score]) -> list[tuple[str, Outcome]]:
    """One short text per evaluator. Over several turns: the score that decided the outcome, or the range of all."""
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(score.evaluator, []).append(score)
    return [_group_text(name, group) for name, group in groups.items()]


def _group_text(name: str, group: list[Score]) -> tuple[str, Outcome]:
    note = " (report only)" if group[0].report_only else ""
    worst = worst_score(group)
    if len(group) == 1:
        return f"{name} {score_value(group[0])}{note}", group[0].outcome
    means = [(mean, score.outcome) for score in group if (mean := mean_text(score)) is not None]
    if means:
        return f"{name} {means[0][0]} over {plural(len(means), 'turn')}{note}", means[0][1]
    if worst is not None and worst.outcome is not Outcome.SKIPPED:
        turn = "" if worst.turn is None else f" at turn {worst.turn + 1}"
        return f"{name} {score_value(worst)}{turn}{note}", worst.outcome
    values = [score.value for score in group if score.value is not None]
    if not values:
        return f"{name} {score_value(group[0])}{note}", group[0].outcome
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    span = low if low == high else f"{low}..{high}"
    return f"{name} {span} over {plural(len(values), 'turn')}{note}", Outcome.PASSED


def utc_time(moment: float) -> str:
    """A time in seconds since 1970 as `2026-11-18 07:00:00 UTC`."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return str(moment)


def suites_with_trials(run: Run, verdict: RunVerdict) -> Iterator[tuple[SuiteInfo, SuiteVerdict, Iterable[Trial]]]:
    """Every suite, in order, with its verdict and its trials; read the trials of a suite before the next suite.

    The trials of a large run are read from the store one at a time. One pass over them serves all suites if they are
    stored in suite order; otherwise there is one pass per suite.
    """
    pairs = list(zip(run.suites, verdict.suites, strict=True))
    if not _is_in_suite_order(run):
        for info, suite_verdict in pairs:
            yield info, suite_verdict, (trial for trial in run.trials if trial.suite == info.name)
        return
    stream = groupby(run.trials, key=lambda trial: trial.suite)
    name, trials = next(stream, (None, iter(())))
    for info, suite_verdict in pairs:
        if info.name != name:
            yield info, suite_verdict, ()
            continue
        yield info, suite_verdict, trials
        name, trials = next(stream, (None, iter(())))


def suite_counts(run: Run, name: str) -> tuple[Counter[Outcome], float]:
    """A suite's trials by outcome, and the milliseconds they took in total."""
    trials: list[TrialSummary] = [summary for summary in run.summaries if summary.suite == name]
    return Counter(summary.outcome for summary in trials), sum(summary.duration_ms for summary in trials)


def report_only_evaluators(run: Run) -> set[tuple[str, str]]:
    """Evaluators whose scores are only reported, as pairs of suite and evaluator."""
    report_only: set[tuple[str, str]] = set()
    deciding: set[tuple[str, str]] = set()
    for summary in run.summaries:
        for row in summary.scores:
            (report_only if row.report_only else deciding).add((summary.suite, row.evaluator))
    return report_only - deciding


def _is_in_suite_order(run: Run) -> bool:
    """Whether the trials are grouped by suite, in the order in which the run lists its suites."""
    trials = sorted(run.summaries, key=lambda summary: summary.position)
    stored = [name for name, _ in groupby(summary.suite for summary in trials)]
    listed = [info.name for info in run.suites]
    return stored == [name for name in listed if name in set(stored)]
