"""`proctor test --gate --plan`: what a gated run costs and what it can detect, before anything is spent.

`proctor plan` is its old name, with the options it had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import to_json
from proctor.cases.suite import Settings
from proctor.cli.options import Chance, json_option, store_option
from proctor.cli.output import json_text, say, write_documents
from proctor.cli.selection import CaseSelection, case_selection, paths_argument
from proctor.cli.suites import load_suites
from proctor.config import read_configuration
from proctor.gate.power import ASSUMED_RATE, ASSUMED_TRIALS, PowerEstimate, estimate_power
from proctor.gate.settings import GateSettings
from proctor.reporting.wording import duration, money, plural
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.running.gate_trials import baselines_for
from proctor.running.plan import Plan, make_plan
from proctor.running.run import RunRequest
from proctor.running.settings import RunOptions

DEFAULTS = GateSettings()
DEFAULT_DROP = 0.05
"""The drop in pass rates to detect, by default."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The gated run to estimate."""

    run: RunRequest
    drop: float = DEFAULT_DROP
    """The drop in pass rates to detect."""


def plan_gated_run(request: PlanRequest, json_to: str | None = None) -> None:
    """Print the estimate, or write it as JSON to a file (`-` is standard output)."""
    run = request.run
    gate = run.gate
    assert gate is not None, "only a gated run can be planned"
    options = replace(run.options, overrides=Settings(repeat=1))
    plan = make_plan(run.suites, options, agent=run.agent, select=run.select)
    if not plan.trials:
        raise UsageError("no case is selected")
    store = Store(run.store, create=False) if run.store is not None and (run.store / DATABASE_FILE).is_file() else None
    baselines, source = baselines_for(plan, gate.baseline, store, fast=options.fast)
    estimate = estimate_power(baselines, gate, request.drop)
    parallel = max(item.limits.parallel for item in plan.suites)
    if json_to is not None:
        data = {"baseline": source, "parallel": parallel, **to_json(estimate)}
        # The keys of earlier versions, of which the first was by trials per case.
        data |= {"detectable_drops": {"1": estimate.detectable_drop}, "sees": {"1": estimate.detectable_drop}}
        data["to_detect_target"] = data["to_see_target"] = {"repeats": None, "cases": estimate.to_detect_target.cases}
        text = json_text("plan", data)
        write_documents({"json": json_to}, {"json": lambda out: out.write(f"{text}\n")}, "the plan", "plan")
        return
    for line in _lines(estimate, plan, source, parallel):
        say(line)


@click.command("plan")
@paths_argument("SUITES")
@click.option("--agent", metavar="REF", help="Plan for this agent instead of the one the suite names.")
@case_selection(verb="Plan")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", hidden=True, help="Has no effect any more.")
@click.option("--detect", type=Chance(), metavar="P", help="Smallest drop in pass rate to detect (default: 0.05).")
@click.option("--see", type=Chance(), metavar="P", hidden=True, help="The old name of --detect.")
@click.option(
    "--gate-alpha", type=Chance(), default=DEFAULTS.alpha, metavar="P", help="Chance of a false alarm (default: 0.05)."
)
@click.option(
    "--gate-trials",
    type=click.IntRange(min=1),
    default=DEFAULTS.max_trials,
    metavar="N",
    help="Re-runs per case, at most (default: 10).",
)
@click.option("--fast", is_flag=True, help="Skip everything that needs a language model.")
@click.option(
    "--baseline",
    metavar="FILE|RUN",
    help="Baseline file or stored run to compare with (default: the file next to each suite).",
)
@json_option
@store_option
def command(paths: tuple[str, ...], selection: CaseSelection, **options: Any) -> int:
    """Estimate what a gated run of SUITES costs and the smallest drop it can detect. Runs nothing."""
    configuration = read_configuration()
    files, selection = selection.with_paths(paths)
    suites = load_suites(files or [Path()])
    run = RunRequest(
        suites=suites,
        options=RunOptions(
            Settings(repeat=1), configuration.settings, fast=options["fast"], default_agent=configuration.agent
        ),
        agent=options["agent"],
        select=selection.case_filter(suites),
        store=configuration.store(options["store"]),
        gate=GateSettings(
            options["gate_alpha"],
            options["gate_trials"],
            baseline=options["baseline"] or configuration.values.get("baseline"),
        ),
    )
    drop = drop_to_detect(options["detect"], options["see"])
    if options["repeat"] is not None:
        say("note: --repeat has no effect: the gate chooses the number of trials", err=True)
    plan_gated_run(PlanRequest(run, drop), "-" if options["as_json"] else None)
    return 0


def drop_to_detect(detect: float | None, see: float | None) -> float:
    """The value of `--detect`, or of `--see`, its old name, with a notice."""
    if see is not None:
        say("note: `--see` is now `--detect`", err=True)
        if detect is not None:
            raise UsageError("--see is the old name of --detect; use only --detect")
    value = see if detect is None else detect
    return DEFAULT_DROP if value is None else value


def _lines(estimate: PowerEstimate, plan: Plan, source: str, parallel: int) -> list[str]:
    lines = [f"{plural(estimate.cases, 'case')} of {', '.join(item.suite.name for item in plan.suites)}"]
    if estimate.known:
        lines.append(f"  baseline   {estimate.recorded:,} trials of {plural(estimate.known, 'case')} in {source}")
    if estimate.known < estimate.cases:
        without = plural(estimate.cases - estimate.known, "case")
        lines.append(
            f"  assumed    {without} without a baseline: pass rate {ASSUMED_RATE:.0%}, {ASSUMED_TRIALS} recorded trials"
        )
    if estimate.against:
        lines.append(f"  against    {estimate.against}, side by side")
    lines.append(f"  one broken case            found in {estimate.one_broken:.0%} of builds")
    for drop, chance in estimate.chances.items():
        lines.append(f"  all rates {100 * drop:2.0f} points lower  found in {chance:.0%}")
    lines.append(f"  to find {estimate.target * 100:.0f} points in 80%: {_effort(estimate)}")
    lines.append(f"  a gated run takes {_cost(estimate, parallel)}")
    return lines


def _effort(estimate: PowerEstimate) -> str:
    cases = estimate.to_detect_target.cases
    if cases == 0:
        return "no change needed"
    if cases is not None:
        return f"add about {plural(cases, 'case')} like these"
    return "not even with 800 cases like these" + ("" if estimate.against else "; try --against, or record more trials")


def _cost(estimate: PowerEstimate, parallel: int) -> str:
    parts = [f"about {estimate.trials:,.0f} trials if nothing changed (90th percentile: {estimate.trials_high:,})"]
    if estimate.tokens is not None:
        parts.append(f"{estimate.tokens:,.0f} tokens")
    parts.append("cost not recorded" if estimate.usd is None else money(estimate.usd))
    if estimate.seconds is not None:
        parts.append(f"{duration(estimate.seconds * 1000 / parallel)} with {parallel} in parallel")
    return ", ".join(parts)
