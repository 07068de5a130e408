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
from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.cli.options import Chance, json_option, store_option
from proctor.cli.output import json_text, say, write_documents
from proctor.cli.selection import CaseSelection, case_selection, paths_argument
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
EARLIER_KEYS = {"sees": "detectable_drops", "to_see_target": "to_detect_target"}
"""Keys of the JSON document that have a new name, which are written under both."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The gated run to estimate."""

    run: RunRequest
    repeat: int = 1
    """Trials per case."""
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
    estimate = estimate_power(baselines, gate, request.repeat, request.drop)
    parallel = max(item.limits.parallel for item in plan.suites)
    if json_to is not None:
        data = {"baseline": source, "parallel": parallel, **to_json(estimate)}
        data |= {old: data[new] for old, new in EARLIER_KEYS.items()}
        text = json_text("plan", data)
        write_documents({"json": json_to}, {"json": lambda out: out.write(f"{text}\n")}, "the plan", "plan")
        return
    for line in _lines(estimate, plan, source, parallel):
        say(line)


@click.command("plan")
@paths_argument("SUITES")
@click.option("--agent", metavar="REF", help="Plan for this agent instead of the one the suite names.")
@case_selection(verb="Plan")
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="Trials per case (default: 1).")
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
    suites = load(files or [Path()])
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
    plan_gated_run(PlanRequest(run, options["repeat"], drop), "-" if options["as_json"] else None)
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
    for repeats, drop in estimate.detectable_drops.items():
        trials = f"{plural(repeats, 'trial')} per case"
        detects = "no drop reliably" if drop is None else f"a {drop * 100:.0f}-point drop in pass rates (80% power)"
        lines.append(f"  {trials:<20} detects {detects}")
    lines.append(f"  to detect {estimate.target * 100:.0f} points: {_effort(estimate)}")
    lines.append(f"  a gated run takes {_cost(estimate, parallel)}")
    return lines


def _effort(estimate: PowerEstimate) -> str:
    effort = estimate.to_detect_target
    if effort.cases == 0:
        return "no change needed"
    ways = []
    if effort.repeats is not None:
        ways.append(f"run each case {plural(effort.repeats, 'time')}")
    if effort.cases is not None:
        ways.append(f"add {plural(effort.cases, 'case')} like these")
    return ", or ".join(ways) or "record more trials first: the baseline is too uncertain"


def _cost(estimate: PowerEstimate, parallel: int) -> str:
    parts = [f"about {estimate.trials:,.0f} trials if nothing changed (90th percentile: {estimate.trials_high:,})"]
    if estimate.tokens is not None:
        parts.append(f"{estimate.tokens:,.0f} tokens")
    parts.append("cost not recorded" if estimate.usd is None else money(estimate.usd))
    if estimate.seconds is not None:
        parts.append(f"{duration(estimate.seconds * 1000 / parallel)} with {parallel} in parallel")
    return ", ".join(parts)
