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
from proctor.results.score import Outcome
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.running.rescore import rejudge

RUNS_READ = 50
"""How many of the latest stored runs are read, in addition to the baselines."""

RUNS_JUDGED = 5
"""The answers of this many latest runs of a case are judged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyOptions:
    """The options of the command, by name."""

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
    help="Judge the latest stored answers N times, to separate agent noise from judge noise.",
)
@judge_options
@option(
    "--baseline",
    group=STORED_RUNS,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Read this baseline file (default: the *.baseline.jsonl file next to each suite).",
)
@store_option
@json_option
def command(**values: Any) -> int:
    """List the cases of SUITES that both passed and failed, in their baselines and in stored runs.

    SUITES are files or folders (default: the current folder). Stored runs count only if their agent is the same as in
    the latest run. A case that a change broke is not flaky: it passes in the baseline, and fails in these runs.
    """
    options = FlakyOptions(**values)
    configuration = read_configuration()
    folder = configuration.store(options.store)
    store = Store(folder, create=False) if (folder / DATABASE_FILE).is_file() else None
    cases, files = _suites(options.paths, options.selection, options.baseline or configuration.values.get("baseline"))
    lines = [line for path in files for line in read_baseline(path).lines]
    current = [] if store is None else _lines_of_current_agents(store, lines)
    flaky = [item for item in flaky_cases(lines, current) if item.address in cases]
    splits = _splits(flaky, store, options, configuration) if options.rejudge else {}
    uses_judge = _judged_cases(flaky, store)
    if options.as_json:
        say_json("flaky-row", [_as_json(item, splits.get(item.address), uses_judge) for item in flaky])
        return 0
    if not flaky:
        say("no flaky cases: no case both passed and failed")
    for item in flaky:
        say(_line(item, splits.get(item.address), uses_judge))
    return 0


def _suites(
    paths: tuple[str, ...], selection: CaseSelection, shared: str | Path | None
) -> tuple[set[tuple[str, str]], list[Path]]:
    """The current cases, by suite and id, and their baseline files."""
    suite_files, selection = selection.with_paths(paths)
    suites = load(suite_files or [Path()])
    selects = selection.case_filter(suites)
    files = [Path(shared)] if shared else [baseline_path(suite.path) for suite in suites]
    if shared and not Path(shared).is_file():
        raise UsageError(f"no baseline {shared}; create it with `proctor baseline accept`")
    cases = {
        (suite.name, case.id) for suite in suites for case in suite.cases if selects is None or selects(suite, case)
    }
    return cases, [path for path in dict.fromkeys(files) if path.is_file()]


def _lines_of_current_agents(store: Store, baseline: list[BaselineLine]) -> list[BaselineLine]:
    """Lines of the latest stored runs whose agent is the same as in the latest run.

    A run that is in the baseline too has the lines that it has there. Rescored runs are left out: they have no new
    answers.
    """
    rows = [row for row in store.runs(RUNS_READ) if row.rescored is None]
    agents: dict[tuple[str, str], str] = {}
    for row in rows:
        for info in row.suites:
            agents.setdefault((info.name, info.agent), info.agent_fingerprint)
    lines = []
    for row in rows:
        same = {i.name for i in row.suites if agents[i.name, i.agent] == i.agent_fingerprint}
        recorded = [line for line in baseline if line.run == row.id]
        if recorded:
            lines += [line for line in recorded if line.suite in same]
        # A run without scoring keys does not record how it was scored, so it cannot be counted.
        elif same and row.scoring_keys:
            lines += [line for line in lines_of_run(row) if line.suite in same]
    return lines


def _judged_cases(cases: list[CaseBaseline], store: Store | None) -> dict[tuple[str, str], bool]:
    """By case: whether a judge decides its outcome; only cases with a stored passing trial are in it."""
    if store is None:
        return {}
    uses_judge = {}
    for item in cases:
        trials = store.passing_trials(*item.address, 1)
        if trials:
            uses_judge[item.address] = any(not score.report_only and judge_name(score) for score in trials[0].scores)
    return uses_judge


def _splits(
    cases: list[CaseBaseline], store: Store | None, options: FlakyOptions, configuration: Configuration
) -> dict[tuple[str, str], VarianceSplit | None]:
    """By case: the variance split after judging the answers of its latest stored runs several times."""
    if store is None:
        raise UsageError("--rejudge needs stored answers, and there are no runs here; run `proctor test` first")
    scoring = configuration.run_options(judge=options.judge, budget=options.budget)
    stored = {row.id for row in store.runs()}
    by_run: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in cases:
        for run in [run for run in item.runs if run in stored][-RUNS_JUDGED:]:
            by_run[run].add(item.address)
    outcomes: dict[tuple[str, str], dict[tuple[str, int], list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for run, addresses in by_run.items():
        for _ in range(options.rejudge or 0):
            for (suite, case, number), outcome in rejudge(store, run, addresses, scoring).items():
                outcomes[suite, case][run, number].append(outcome)
    return {address: split_variance(rows.values()) for address, rows in outcomes.items()}


def _source_of_noise(split: VarianceSplit | None, uses_judge: bool | None) -> str:
    if split is not None:
        if not split.agent and not split.judge:
            return f"{plural(split.answers, 'answer')} judged {split.judgements} times: nothing varied"
        return (
            f"{plural(split.answers, 'answer')} judged {split.judgements} times: "
            f"{split.agent:.0%} of the variation comes from the agent, {split.judge:.0%} from the judge"
        )
    if uses_judge is None:
        return "no stored trials"
    return "agent or judge noise (find out with --rejudge N)" if uses_judge else "agent noise (no judge involved)"


def _line(item: CaseBaseline, split: VarianceSplit | None, uses_judge: dict[tuple[str, str], bool]) -> str:
    assert item.record and item.pass_rate
    cost = [] if item.usd is None else [money(item.usd.total)]
    cost += [] if item.seconds is None else [duration(item.seconds.total * 1000)]
    interval = f"[{item.pass_rate.low:.0%}, {item.pass_rate.high:.0%}]"
    rate = f"FLAKY {item.record.passes}/{item.record.trials} {interval}"
    spent = f"  {' and '.join(cost)} spent" if cost else ""
    return f"{'/'.join(item.address)}  {rate}  {_source_of_noise(split, uses_judge.get(item.address))}{spent}"


def _as_json(
    item: CaseBaseline, split: VarianceSplit | None, uses_judge: dict[tuple[str, str], bool]
) -> dict[str, Any]:
    assert item.record and item.pass_rate
    return {
        "suite": item.identity.suite,
        "case": item.identity.case,
        "agent": item.identity.agent,
        "trials": item.record.trials,
        "passes": item.record.passes,
        "rate": {"low": item.pass_rate.low, "mean": item.pass_rate.mean, "high": item.pass_rate.high},
        "runs": list(item.runs),
        "judged": uses_judge.get(item.address),
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
