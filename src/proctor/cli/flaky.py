"""`proctor flaky`: the cases that both pass and fail; `proctor quarantine`: let one decide nothing until a day."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import click

from proctor.base.documents import nearest
from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.cases.quarantine_file import is_date, is_over, quarantine_path, read_quarantines, write_quarantines
from proctor.cases.suite import Case, Quarantine, Suite
from proctor.cli.configuration import Configuration, read_configuration
from proctor.cli.options_and_output import case_option, json_option, judge_options, say, say_json, store_option
from proctor.gate.baseline import BaselineLine, CaseBaseline, baseline_path, lines_of_run, read_baseline
from proctor.gate.flakiness import VarianceSplit, flaky_cases, split_variance
from proctor.reporting.wording import counted, duration, money
from proctor.results.judge_usage import judge_name
from proctor.results.run import Outcome
from proctor.results.store.store import FILE, Store
from proctor.running.rescore import rejudge
from proctor.running.selection import CaseFilter, check_names, names_case, split_places

RUNS_READ = 50
"""So many of the latest runs in the store are looked at, besides what the baselines have."""

RUNS_JUDGED = 5
"""The answers of so many of its latest runs are judged again."""


@click.command("flaky")
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option(
    "--rejudge", type=click.IntRange(min=2), metavar="N", help="Judge the latest answers N times: who varies?"
)
@click.option("--baseline", metavar="FILE", type=click.Path(path_type=Path), help="Instead of the files beside suites.")
@case_option
@judge_options
@json_option
@store_option
def command(paths: tuple[str, ...], **given: Any) -> int:
    """List the cases that both passed and failed, in the baselines of SUITES (by default of this folder) and kept runs.

    Of kept runs those count whose agent is what it was in the latest one: a case that a change broke is not flaky.
    """
    configuration = read_configuration()
    folder = configuration.store(given["store"])
    store = Store(folder, create=False) if (folder / FILE).is_file() else None
    cases, files = _suites(paths, given["case_ids"], given["baseline"] or configuration.values.get("baseline"))
    lines = [line for path in files for line in read_baseline(path).lines]
    if store is not None:
        lines += _kept(store, {line.run for line in lines})
    found = [item for item in flaky_cases(lines) if item.address in cases]
    splits = _splits(found, store, given, configuration) if given["rejudge"] else {}
    judged = _judged(found, store)
    if given["as_json"]:
        say_json("flaky-row", [_as_json(item, splits.get(item.address), judged) for item in found])
        return 0
    if not found:
        say("no case is known to both pass and fail")
    for item in found:
        say(_line(item, splits.get(item.address), judged))
    return 0


def _suites(
    paths: tuple[str, ...], ids: tuple[str, ...], shared: str | Path | None
) -> tuple[set[tuple[str, str]], list[Path]]:
    """The cases there are now, by suite and id, and the baselines that know them."""
    named, places = split_places(paths)
    suites = load(named or [Path()])
    check_names((*ids, *places), ((suite.name, suite.path, case.id) for suite in suites for case in suite.cases))
    chosen = CaseFilter(ids=ids, places=places)
    files = [Path(shared)] if shared else [baseline_path(suite.path) for suite in suites]
    if shared and not Path(shared).is_file():
        raise UsageError(f"there is no baseline {shared}")
    cases = {(suite.name, case.id) for suite in suites for case in suite.cases if chosen(suite, case)}
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
        if same and row.id not in accepted and row.evaluator_keys:
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
            told[item.address] = any(score.gates and judge_name(score) for score in trials[0].scores)
    return told


def _splits(
    found: list[CaseBaseline], store: Store | None, given: dict[str, Any], configuration: Configuration
) -> dict[tuple[str, str], VarianceSplit | None]:
    """The answers of the latest kept runs of each case, judged again and again."""
    if store is None:
        raise UsageError("--rejudge needs answers, and no run is kept here")
    options = configuration.run_options(judge=given["judge"], budget=given["budget"])
    kept = {row.id for row in store.runs()}
    by_run: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in found:
        for run in [run for run in item.runs if run in kept][-RUNS_JUDGED:]:
            by_run[run].add(item.address)
    outcomes: dict[tuple[str, str], dict[tuple[str, int], list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for run, wanted in by_run.items():
        for _ in range(given["rejudge"]):
            for (suite, case, number), outcome in rejudge(store, run, wanted, options).items():
                outcomes[suite, case][run, number].append(outcome)
    return {address: split_variance(rows.values()) for address, rows in outcomes.items()}


def _who(split: VarianceSplit | None, judged: bool | None) -> str:
    if split is not None:
        if not split.agent and not split.judge:
            return f"{counted(split.answers, 'answer')} judged {split.judgements} times: nothing varied"
        return (
            f"{counted(split.answers, 'answer')} judged {split.judgements} times: "
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


@click.command("quarantine")
@click.argument("case_id", metavar="[CASE]", required=False)
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option("--reason", metavar="TEXT", help="Why it decides nothing for now.")
@click.option("--until", metavar="DATE", help="The last day, as YYYY-MM-DD; after it the case fails.")
@click.option("--owner", metavar="NAME", help="Who is to mend it.")
@click.option("--lift", is_flag=True, help="End the quarantine of the case.")
@json_option
def quarantine_command(case_id: str | None, paths: tuple[str, ...], as_json: bool, **given: str | bool | None) -> int:
    """Quarantine a case of the suites in this folder, or of SUITES. Without CASE, list what is in quarantine.

    Kept in <suite>.quarantine.jsonl beside the suite. A case may also have a `quarantine` in its own file.
    """
    if case_id is None:
        return _list(load(paths or [Path()]), as_json)
    files, places = split_places([case_id])
    suite, case = _find(load(paths or (files if places else [Path()])), case_id)
    if suite.path is None:
        raise UsageError(f"the suite {suite.name!r} has no file beside which the quarantine could stand")
    path = quarantine_path(suite.path)
    known = read_quarantines(path) if path.is_file() else {}
    key = (suite.name.removesuffix(f" ({suite.path.name})"), case.id)
    if given["lift"]:
        if key not in known:
            where = f"in {suite.path} itself" if case.quarantine else "nowhere"
            raise UsageError(f"{case.id!r} is quarantined {where}, so that there is nothing to lift in {path}")
        del known[key]
        write_quarantines(path, known)
        say(f"{path}: {case.id} decides again")
        return 0
    known[key] = _quarantine(given["reason"], given["until"], given["owner"])
    write_quarantines(path, known)
    say(f"{path}: {case.id} runs and decides nothing until {known[key].until}")
    return 0


def _quarantine(reason: object, until: object, owner: object) -> Quarantine:
    if not isinstance(reason, str) or not reason.strip():
        raise UsageError("--reason must say why the case decides nothing for now")
    if not isinstance(until, str) or not is_date(until):
        raise UsageError(f"--until must be a day as YYYY-MM-DD, not {until!r}")
    made = Quarantine(reason, until, owner if isinstance(owner, str) and owner.strip() else None)
    if is_over(made):
        raise UsageError(f"--until {until} has passed already; today is {date.today().isoformat()}")
    return made


def _find(suites: list[Suite], wanted: str) -> tuple[Suite, Case]:
    """A case by its id, or by suite/id or file::id where several suites have one of that id."""
    found = [(s, case) for s in suites for case in s.cases if names_case(wanted, s.name, s.path, case.id)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(f"{suite.name}/{case.id}" for suite, case in found)
        raise UsageError(f"{wanted!r} could be any of {names}")
    known = [case.id for suite in suites for case in suite.cases]
    raise UsageError(f"there is no case {wanted!r}{nearest(wanted, known)}")


def _list(suites: list[Suite], as_json: bool) -> int:
    rows = [(suite.name, case.id, case.quarantine) for suite in suites for case in suite.cases if case.quarantine]
    if as_json:
        data = [
            {"suite": s, "case": c, "reason": q.reason, "until": q.until, "owner": q.owner, "over": is_over(q)}
            for s, c, q in rows
        ]
        say_json("quarantine-row", data)
        return 0
    if not rows:
        say("no case is in quarantine")
    for suite, case, item in rows:
        over = "  OVER: it fails now" if is_over(item) else ""
        owner = f"  owner {item.owner}" if item.owner else ""
        say(f"{suite}/{case}  until {item.until}{over}{owner}  {item.reason}")
    return 0
