"""What earlier runs say: what is usual for a case, the history of one suite, and cases that both pass and fail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.errors import StoreError, UsageError
from proctor.cases.identity import content_key
from proctor.results.baseline import (
    Baseline,
    BaselineLine,
    CaseIdentity,
    Spread,
    baseline_path,
    counting,
    lines_of,
    read_baseline,
    write_baseline,
)
from proctor.results.gate import Standing
from proctor.results.run import Outcome, Run, RunStatus, SuiteInfo, TrialSummary
from proctor.results.statistics import wilson
from proctor.results.store.store import Store
from proctor.results.verdict import SuiteVerdict, verdict


def trials_by_identity(run: Run) -> dict[CaseIdentity, list[TrialSummary]]:
    """The trials of a run that is kept; answers that it took from earlier runs say nothing new and are left out."""
    agents = {info.name: info.agent for info in run.suites}
    known: dict[tuple[str, str], CaseIdentity] = {}
    found: dict[CaseIdentity, list[TrialSummary]] = {}
    for trial in run.trials:
        if trial.reused:
            continue
        address = (trial.suite, trial.case.id)
        if address not in known:
            keys = run.evaluator_keys.get(trial.suite)
            if keys is None:
                raise UsageError(
                    f"run {run.id} does not say what its scores rest on, since an older Proctor or pytest made it; "
                    "make another with `proctor test`"
                )
            evaluators = keys.get(trial.case.id, keys[""])
            known[address] = CaseIdentity(*address, agents[trial.suite], content_key(trial.case), evaluators)
        found.setdefault(known[address], []).append(TrialSummary.of(trial))
    return found


def baseline_of_run(run: Run) -> Baseline:
    """One run alone as what is usual."""
    return Baseline(_lines(run))


def _lines(run: Run) -> list[BaselineLine]:
    lines = lines_of(trials_by_identity(run), run.id)
    if not lines:
        raise StoreError(
            f"run {run.id} has no trial of its own that passed or failed, so that nothing can be learned from it"
        )
    return lines


@dataclass(frozen=True, slots=True)
class Accepted:
    """What accepting a run did to one file."""

    path: Path
    cases: int
    trials: int
    restarted: int
    """Cases whose past begins anew with this run."""
    created: bool
    changed: bool


def accept(run: Run, target: Path | None = None, *, restart: bool = False) -> list[Accepted]:
    """Add a run to the baselines of its suites, or to `target`; nothing is written unless all of it can be.

    Cases that the gate found to be worse or better begin anew: what they did before does not count any more. With
    `restart`, all cases of the run do.
    """
    if run.status is not RunStatus.FINISHED:
        planned = sum(info.planned for info in run.suites)
        raise UsageError(
            f"run {run.id} was interrupted after {len(run.summaries):,} of {planned:,} trials; continue it with "
            "`proctor test --resume`, then accept it"
        )
    files = {info.name: target or baseline_path(info.path) for info in run.suites}
    by_file: dict[Path, list[BaselineLine]] = {}
    for line in _lines(run):
        by_file.setdefault(files[line.suite], []).append(line)
    anew = _changed_cases(run)
    plans = []
    for path, lines in by_file.items():
        known = read_baseline(path) if path.exists() else Baseline()
        marked = [_marked(line, known, restart or anew.get((line.suite, line.case), False)) for line in lines]
        plans.append((path, marked, known))
    return [_write(path, lines, known, run.id) for path, lines, known in plans]


def _changed_cases(run: Run) -> Mapping[tuple[str, str], bool]:
    if run.gate is None:
        return {}
    drift = run.gate.drift.proven
    changed = (Standing.PROVEN, Standing.IMPROVED)
    return {case.address: drift or case.standing in changed for case in run.gate.cases}


def _marked(line: BaselineLine, known: Baseline, anew: bool) -> BaselineLine:
    return replace(line, since=line.run if anew else known.since(line.identity))


def _write(path: Path, lines: list[BaselineLine], known: Baseline, run: str) -> Accepted:
    created = not path.exists()
    own = {line.key for line in lines}
    kept = [line for line in known.lines if line.key not in own]
    changed = write_baseline(path, Baseline([*kept, *lines]))
    restarted = sum(line.since == run and known.usual(line.identity).past is not None for line in lines)
    return Accepted(path, len(lines), sum(line.trials for line in lines), restarted, created, changed)


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of one suite."""

    row: Run
    agent: str
    agent_fingerprint: str
    outcome: Outcome
    trials: int
    planned: int
    """How many trials it was to have."""
    passed: int
    """Cases."""
    cases: int
    """Cases that have a verdict."""
    scores: dict[str, float]
    """The mean of each evaluator that gave any."""

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.cases if self.cases else None


def runs_of(store: Store, suite: str) -> Iterator[SuiteRun]:
    """Every run in which the suite took part, the latest first."""
    for run in store.runs():
        if any(suite in (info.name, info.source) for info in run.suites):
            for info, found in zip(run.suites, verdict(run).suites, strict=True):
                if suite in (info.name, info.source):  # once for each agent, where there were several
                    yield _suite_run(run, info, found)


def suites_in(store: Store) -> list[str]:
    """Every suite that any run knows, by name."""
    return sorted({name for row in store.runs() for info in row.suites for name in (info.name, info.source) if name})


def _suite_run(run: Run, info: SuiteInfo, found: SuiteVerdict) -> SuiteRun:
    return SuiteRun(
        row=run,
        agent=info.agent,
        agent_fingerprint=info.agent_fingerprint,
        outcome=found.outcome,
        trials=sum(case.trials for case in found.cases),
        planned=info.planned,
        passed=found.counts[Outcome.PASSED],
        cases=found.counts[Outcome.PASSED] + found.counts[Outcome.FAILED],
        scores={item.evaluator: item.scores.mean for item in found.evaluators if item.scores is not None},
    )


@dataclass(frozen=True, slots=True)
class FlakyRecord:
    """One case with both outcomes, over everything that is known of it."""

    identity: CaseIdentity
    trials: int
    passes: int
    runs: tuple[str, ...]
    seconds: float | None
    usd: float | None
    """What its recorded trials took together."""

    @property
    def rate(self) -> tuple[float, float, float]:
        """The pass rate between the ends of its 95 % interval."""
        share = self.passes / self.trials
        low, high = wilson(share, self.trials)
        return low, share, high


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """How much of a case's variation comes from the agent, and how much from judging the same answer again."""

    answers: int
    judgements: int
    agent: float
    judge: float
    """Shares of the variance of passing; together 1, or both 0 where nothing varied."""


def lines_of_runs(runs: Iterable[Run]) -> list[BaselineLine]:
    """What kept runs say, as lines of a baseline; runs that do not say what their scores rest on are left out."""
    return [line for run in runs if run.evaluator_keys for line in lines_of(trials_by_identity(run), run.id)]


def flaky_cases(lines: Iterable[BaselineLine]) -> list[FlakyRecord]:
    """The cases with both outcomes, each as it was last, the most uncertain first."""
    latest: dict[tuple[str, str, str], list[BaselineLine]] = {}
    for line in sorted(Baseline(lines).lines, key=lambda line: line.run):
        latest.setdefault((line.suite, line.case, line.agent), []).append(line)
    found = []
    for recorded in latest.values():
        identity = recorded[-1].identity
        own = counting([line for line in recorded if line.identity == identity])
        trials, passes = sum(line.trials for line in own), sum(line.passes for line in own)
        if 0 < passes < trials:
            runs = tuple(line.run for line in own)
            seconds, usd = (_sum(getattr(line, name) for line in own) for name in ("seconds", "usd"))
            found.append(FlakyRecord(identity, trials, passes, runs, seconds, usd))
    return sorted(found, key=lambda item: (abs(item.passes / item.trials - 0.5), -item.trials))


def _sum(spreads: Iterable[Spread | None]) -> float | None:
    known = [spread.count * spread.mean for spread in spreads if spread is not None]
    return math.fsum(known) if known else None


def split_variance(judged: Iterable[Sequence[Outcome]]) -> VarianceSplit | None:
    """By answer, how it was judged each time (one-way analysis of variance).

    The variance within answers is the judge's; what their means vary beyond that is the agent's.
    """
    settled = [[float(o is Outcome.PASSED) for o in row if o in (Outcome.PASSED, Outcome.FAILED)] for row in judged]
    rows = [row for row in settled if len(row) > 1]
    if not rows:
        return None
    often = sum(map(len, rows)) / len(rows)
    within = math.fsum(_variance(row) for row in rows) / len(rows)
    means = [math.fsum(row) / len(row) for row in rows]
    between = max(0.0, _variance(means) - within / often) if len(means) > 1 else 0.0
    total = within + between
    judge = within / total if total > 0 else 0.0
    return VarianceSplit(len(rows), min(map(len, rows)), between / total if total > 0 else 0.0, judge)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
