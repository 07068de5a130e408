"""Runs as what is usual: the trials of a run by what identifies their case, and accepting a run into a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proctor.base.errors import StoreError, UsageError
from proctor.base.records import record
from proctor.results.baseline import (
    Baseline,
    BaselineLine,
    CaseIdentity,
    baseline_path,
    lines_of,
    read_baseline,
    write_baseline,
)
from proctor.results.case_encoding import content_key
from proctor.results.gate import Standing
from proctor.results.run import Run, TrialSummary


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


@record
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
    if run.interrupted or run.finished_at is None:
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
