"""`proctor flaky`: the cases that both pass and fail."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.cases.identity import CaseAddress, own_name
from proctor.cli.help_pages import AGENT_AND_JUDGE, STORED_RUNS, DocumentedCommand, option
from proctor.cli.options import json_option, judge_options, store_option
from proctor.cli.output import say, say_json
from proctor.cli.selection import CaseSelection, case_selection, paths_argument
from proctor.cli.suites import load_suites
from proctor.config import Configuration, read_configuration
from proctor.gate.baseline import BaselineLine, CaseBaseline, baseline_path, lines_of_run, read_baseline
from proctor.gate.flakiness import VarianceSplit, changed_with, flaky_cases, split_variance
from proctor.reporting.wording import duration, money, plural
from proctor.results.judge_usage import judge_name
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.suite_info import SuiteInfo
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
    chosen = _choose(options.paths, options.selection, options.baseline or configuration.values.get("baseline"))
    lines = list(chosen.baseline_lines())
    current = [] if store is None else _lines_of_current_agents(store, lines, chosen)
    flaky = [item for item in flaky_cases(lines, current) if item.address in chosen.cases]
    splits = _splits(flaky, store, options, configuration, chosen) if options.rejudge else {}
    uses_judge = _judged_cases(flaky, store, chosen)
    if options.as_json:
        say_json("flaky-row", [_as_json(item, splits.get(item.address), uses_judge) for item in flaky])
        return 0
    if not flaky:
        say("no flaky cases: no case both passed and failed")
    for item in flaky:
        say(_line(item, splits.get(item.address), uses_judge))
    return 0


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The cases to list, by suite and id, and what their suites are called elsewhere.

    Suites of the same name get another one where they run together, so a suite in a run or in its own baseline file is
    recognized by its file.
    """

    cases: set[CaseAddress]
    names: Mapping[Path, str]
    """The name of each suite that is the only one in its file, by that file."""
    baselines: Mapping[Path, str]
    """The baseline files, each with the name of the suite whose own file it is; empty if several share it."""

    def baseline_lines(self) -> Iterator[BaselineLine]:
        for path, name in self.baselines.items():
            for line in read_baseline(path).lines:
                is_namesake = name and own_name(line.suite) == own_name(name)
                yield replace(line, suite=name) if is_namesake else line

    def name_of(self, info: SuiteInfo) -> str | None:
        """What the suite of a stored run is called here; None if it is another file's."""
        if info.path is None or info.source:  # `source`: it ran with several agents, under a name for each
            return info.name
        path = Path(info.path)
        name = self.names.get(path.resolve())
        return name if name is not None or (self.names and path.is_file()) else info.name

    def stored_names(self, row: Run) -> dict[str, str]:
        """By the name that a suite has here: its name in a run."""
        return {name: info.name for info in row.suites if (name := self.name_of(info)) is not None}


def _choose(paths: tuple[str, ...], selection: CaseSelection, shared: str | Path | None) -> _Chosen:
    suite_files, selection = selection.with_paths(paths)
    suites = load_suites(suite_files or [Path()])
    selects = selection.case_filter(suites)
    if shared and not Path(shared).is_file():
        raise UsageError(f"no baseline {shared}; create it with `proctor baseline accept`")
    cases = {
        (suite.name, case.id) for suite in suites for case in suite.cases if selects is None or selects(suite, case)
    }
    in_file = Counter(suite.path for suite in suites)
    names = {suite.path.resolve(): suite.name for suite in suites if suite.path and in_file[suite.path] == 1}
    baselines = (
        {Path(shared): ""}
        if shared
        else {baseline_path(suite.path): suite.name if in_file[suite.path] == 1 else "" for suite in suites}
    )
    return _Chosen(cases, names, {path: name for path, name in baselines.items() if path.is_file()})


def _lines_of_current_agents(store: Store, baseline: list[BaselineLine], chosen: _Chosen) -> list[BaselineLine]:
    """Lines of the latest stored runs whose agent is the same as in the latest run.

    A run that is in the baseline too has the lines that it has there. Rescored runs are left out: they have no new
    answers.
    """
    rows = [row for row in store.runs(RUNS_READ) if row.rescored is None]
    agents: dict[tuple[str, str], str] = {}
    for row in rows:
        for info in row.suites:
            if (name := chosen.name_of(info)) is not None:
                agents.setdefault((name, info.agent), info.agent_fingerprint)
    lines = []
    for row in rows:
        names = {info.name: name for info in row.suites if (name := chosen.name_of(info)) is not None}
        same = {
            names[i.name]
            for i in row.suites
            if i.name in names and agents[names[i.name], i.agent] == i.agent_fingerprint
        }
        recorded = [line for line in baseline if line.run == row.id]
        if recorded:
            lines += [line for line in recorded if line.suite in same]
        # A run without scoring keys does not record how it was scored, so it cannot be counted.
        elif same and row.scoring_keys:
            own = [replace(line, suite=names[line.suite]) for line in lines_of_run(row) if line.suite in names]
            lines += [line for line in own if line.suite in same]
    return lines


def _judged_cases(cases: list[CaseBaseline], store: Store | None, chosen: _Chosen) -> dict[CaseAddress, bool]:
    """By case: whether a judge decides its outcome; only cases with a stored passing trial are in it."""
    if store is None:
        return {}
    rows = store.runs(RUNS_READ)
    uses_judge = {}
    for item in cases:
        suite, case = item.address
        names = dict.fromkeys(chosen.stored_names(row).get(suite, suite) for row in rows)
        trials = next((found for name in names if (found := store.passing_trials(name, case, 1))), [])
        if trials:
            uses_judge[item.address] = any(not score.report_only and judge_name(score) for score in trials[0].scores)
    return uses_judge


def _splits(
    cases: list[CaseBaseline],
    store: Store | None,
    options: FlakyOptions,
    configuration: Configuration,
    chosen: _Chosen,
) -> dict[CaseAddress, VarianceSplit | None]:
    """By case: the variance split after judging the answers of its latest stored runs several times."""
    if store is None:
        raise UsageError("--rejudge needs stored answers, and there are no runs here; run `proctor test` first")
    scoring = configuration.run_options(judge=options.judge, budget=options.budget)
    names = {row.id: chosen.stored_names(row) for row in store.runs()}
    by_run: dict[str, dict[CaseAddress, CaseAddress]] = defaultdict(dict)
    for item in cases:
        suite, case = item.address
        for run in [run for run in item.runs if run in names][-RUNS_JUDGED:]:
            by_run[run][names[run].get(suite, suite), case] = item.address
    outcomes: dict[CaseAddress, dict[tuple[str, int], list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for run, addresses in by_run.items():
        for _ in range(options.rejudge or 0):
            for (suite, case, number), outcome in rejudge(store, run, set(addresses), scoring).items():
                outcomes[addresses[suite, case]][run, number].append(outcome)
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
    noise = _source_of_noise(split, uses_judge.get(item.address))
    if run := changed_with(item):
        noise += f"; or a change outside of the agent: it changed once, with run {run}"
    return f"{'/'.join(item.address)}  {rate}  {noise}{spent}"


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
        "changed_with": changed_with(item) or None,
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
