"""`proctor flaky`: the cases that both pass and fail."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.cli.help_pages import AGENT_AND_JUDGE, STORED_RUNS, DocumentedCommand, option
from proctor.cli.options import json_option, judge_options, store_option
from proctor.cli.output import say, say_json
from proctor.cli.selection import CaseSelection, case_selection, paths_argument
from proctor.config import Configuration, read_configuration
from proctor.gate.baseline import BaselineLine, CaseBaseline, baseline_path, lines_of_run, read_baseline
from proctor.gate.flakiness import VarianceSplit, flaky_cases, split_variance
from proctor.reporting.wording import duration, money, plural
from proctor.results.judge_usage import judge_name
from proctor.results.run import Outcome
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.running.rescore import rejudge

RUNS_READ = 50
"""So many of the latest runs in the store are looked at, besides what the baselines have."""

RUNS_JUDGED = 5
"""The answers of so many of its latest runs are judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyOptions:
    """What the command line says. Each field is the option, or the group of options, of its name."""

    paths: tuple[str, ...]
    selection: CaseSelection
    rejudge: int | None
    judge: str | None
    budget: float | None
    baseline: Path | None
    store: str | None
    as_json: bool


@click.command("flaky", cls=DocumentedCommand, examples=("proctor flaky", "proctor flaky suite.yaml --rejudge 5"))
@paths_argument("SUITES")
@case_selection(verb="List")
@option(
    "--rejudge",
    group=AGENT_AND_JUDGE,
    type=click.IntRange(min=2),
    metavar="N",
    help="Judge the latest answers N times, to see whether the agent or the judge varies.",
)
@judge_options
@option(
    "--baseline",
    group=STORED_RUNS,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this baseline instead of the files beside the suites.",
)
@store_option
@json_option
def command(**given: Any) -> int:
    """List the cases that both passed and failed, in the baselines of SUITES (by default of this folder) and kept runs.

    Of kept runs those count whose agent is what it was in the latest one: a case that a change broke is not flaky.
    """
    options = FlakyOptions(**given)
    configuration = read_configuration()
    folder = configuration.store(options.store)
    store = Store(folder, create=False) if (folder / DATABASE_FILE).is_file() else None
    cases, files = _suites(options.paths, options.selection, options.baseline or configuration.values.get("baseline"))
    lines = [line for path in files for line in read_baseline(path).lines]
    if store is not None:
        lines += _kept(store, {line.run for line in lines})
    found = [item for item in flaky_cases(lines) if item.address in cases]
    splits = _splits(found, store, options, configuration) if options.rejudge else {}
    judged = _judged(found, store)
    if options.as_json:
        say_json("flaky-row", [_as_json(item, splits.get(item.address), judged) for item in found])
        return 0
    if not found:
        say("no case is known to both pass and fail")
    for item in found:
        say(_line(item, splits.get(item.address), judged))
    return 0


def _suites(
    paths: tuple[str, ...], selection: CaseSelection, shared: str | Path | None
) -> tuple[set[tuple[str, str]], list[Path]]:
    """The cases there are now, by suite and id, and the baselines that know them."""
    named, selection = selection.with_paths(paths)
    suites = load(named or [Path()])
    chosen = selection.case_filter(suites)
    files = [Path(shared)] if shared else [baseline_path(suite.path) for suite in suites]
    if shared and not Path(shared).is_file():
        raise UsageError(f"there is no baseline {shared}")
    cases = {(suite.name, case.id) for suite in suites for case in suite.cases if chosen is None or chosen(suite, case)}
    return cases, [path for path in dict.fromkeys(files) if path.is_file()]


def _kept(store: Store, accepted: set[str]) -> list[BaselineLine]:
    """The latest runs that are in no baseline; rescored ones ask no agent, so that they say nothing new."""
    rows = [row for row in store.runs(RUNS_READ) if row.rescored is None]
    agents: dict[tuple[str, str], str] = {}
    for row in rows:
        for info in row.suites:
            agents.setdefault((info.name, info.agent), info.agent_fingerprint)
    lines = []
    for row in rows:
        same = {i.name for i in row.suites if agents[i.name, i.agent] == i.agent_fingerprint}
        # A run that does not say what its scores rest on cannot be counted.
        if same and row.id not in accepted and row.scoring_keys:
            lines += [line for line in lines_of_run(row) if line.suite in same]
    return lines


def _judged(found: list[CaseBaseline], store: Store | None) -> dict[tuple[str, str], bool]:
    """Whether a judge takes part in the outcome of each case, as far as kept trials tell."""
    if store is None:
        return {}
    told = {}
    for item in found:
        trials = store.passing_trials(*item.address, 1)
        if trials:
            told[item.address] = any(not score.report_only and judge_name(score) for score in trials[0].scores)
    return told


def _splits(
    found: list[CaseBaseline], store: Store | None, options: FlakyOptions, configuration: Configuration
) -> dict[tuple[str, str], VarianceSplit | None]:
    """The answers of the latest kept runs of each case, judged again and again."""
    if store is None:
        raise UsageError("--rejudge needs answers, and no run is kept here")
    scoring = configuration.run_options(judge=options.judge, budget=options.budget)
    kept = {row.id for row in store.runs()}
    by_run: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in found:
        for run in [run for run in item.runs if run in kept][-RUNS_JUDGED:]:
            by_run[run].add(item.address)
    outcomes: dict[tuple[str, str], dict[tuple[str, int], list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for run, wanted in by_run.items():
        for _ in range(options.rejudge or 0):
            for (suite, case, number), outcome in rejudge(store, run, wanted, scoring).items():
                outcomes[suite, case][run, number].append(outcome)
    return {address: split_variance(rows.values()) for address, rows in outcomes.items()}


def _who(split: VarianceSplit | None, judged: bool | None) -> str:
    if split is not None:
        if not split.agent and not split.judge:
            return f"{plural(split.answers, 'answer')} judged {split.judgements} times: nothing varied"
        return (
            f"{plural(split.answers, 'answer')} judged {split.judgements} times: "
            f"{split.agent:.0%} of the variation is the agent's, {split.judge:.0%} the judge's"
        )
    if judged is None:
        return "no trial of it is kept here"
    return "agent or judge (--rejudge N tells)" if judged else "the agent varies: no judge takes part"


def _line(item: CaseBaseline, split: VarianceSplit | None, judged: dict[tuple[str, str], bool]) -> str:
    assert item.record and item.pass_rate
    cost = [] if item.usd is None else [money(item.usd.total)]
    cost += [] if item.seconds is None else [duration(item.seconds.total * 1000)]
    interval = f"[{item.pass_rate.low:.0%}, {item.pass_rate.high:.0%}]"
    rate = f"FLAKY {item.record.passes}/{item.record.trials} {interval}"
    spent = f"  {' and '.join(cost)} spent on it" if cost else ""
    return f"{'/'.join(item.address)}  {rate}  {_who(split, judged.get(item.address))}{spent}"


def _as_json(item: CaseBaseline, split: VarianceSplit | None, judged: dict[tuple[str, str], bool]) -> dict[str, Any]:
    assert item.record and item.pass_rate
    return {
        "suite": item.identity.suite,
        "case": item.identity.case,
        "agent": item.identity.agent,
        "trials": item.record.trials,
        "passes": item.record.passes,
        "rate": {"low": item.pass_rate.low, "mean": item.pass_rate.mean, "high": item.pass_rate.high},
        "runs": list(item.runs),
        "judged": judged.get(item.address),
        "variance": None
        if split is None
        else {
            "agent": split.agent,
            "judge": split.judge,
            "answers": split.answers,
            "judgements": split.judgements,
        },
        "seconds": None if item.seconds is None else item.seconds.total,
        "usd": None if item.usd is None else item.usd.total,
    }
