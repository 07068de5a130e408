"""`proctor test --gate --plan`: what a gated run takes and can detect, before anything is spent.

`proctor plan` is the old name of it, with the options that it had.
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


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The gated run to estimate."""

    run: RunRequest
    repeat: int = 1
    """Runs of each case."""
    smallest_drop: float = 0.05
    """The drop of all pass rates that is to be detected."""


def plan_gated_run(request: PlanRequest, json_to: str | None = None) -> None:
    """Print what the run takes and can detect, or write it as JSON to a file (`-` is standard output)."""
    run = request.run
    gate = run.gate
    assert gate is not None, "only a gated run can be planned"
    options = replace(run.options, overrides=Settings(repeat=1))
    plan = make_plan(run.suites, options, agent=run.agent, select=run.select)
    if not plan.trials:
        raise UsageError("no case is selected, so there is nothing to plan")
    store = Store(run.store, create=False) if run.store is not None and (run.store / DATABASE_FILE).is_file() else None
    baselines, source = baselines_for(plan, gate.baseline, store, fast=options.fast)
    found = estimate_power(baselines, gate, request.repeat, request.smallest_drop)
    parallel = max(item.limits.parallel for item in plan.suites)
    if json_to is not None:
        text = json_text("plan", {"baseline": source, "parallel": parallel, **to_json(found)})
        write_documents({"json": json_to}, {"json": lambda out: out.write(f"{text}\n")}, "the plan", "plan")
        return
    for line in _lines(found, plan, source, parallel):
        say(line)


@click.command("plan")
@paths_argument("SUITES")
@click.option("--agent", metavar="REF", help="Instead of the suites' own.")
@case_selection()
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="Runs of each case (1).")
@click.option("--see", "target", type=Chance(), default=0.05, metavar="P", help="The drop that is to be seen (0.05).")
@click.option(
    "--gate-alpha", type=Chance(), default=DEFAULTS.alpha, metavar="P", help="Chance of a false alarm (0.05)."
)
@click.option(
    "--gate-trials",
    type=click.IntRange(min=1),
    default=DEFAULTS.max_trials,
    metavar="N",
    help="Further trials a case (10).",
)
@click.option("--fast", is_flag=True, help="Leave out whatever needs a language model.")
@click.option("--baseline", metavar="FILE|RUN", help="What is usual (default: beside each suite).")
@json_option
@store_option
def command(paths: tuple[str, ...], selection: CaseSelection, **given: Any) -> int:
    """Estimate what a gated run of SUITES takes and can detect. Runs nothing."""
    configuration = read_configuration()
    files, selection = selection.with_paths(paths)
    suites = load(files or [Path()])
    run = RunRequest(
        suites=suites,
        options=RunOptions(Settings(repeat=1), configuration.settings, fast=given["fast"]),
        agent=given["agent"],
        select=selection.case_filter(suites),
        store=configuration.store(given["store"]),
        gate=GateSettings(
            given["gate_alpha"],
            given["gate_trials"],
            baseline=given["baseline"] or configuration.values.get("baseline"),
        ),
    )
    plan_gated_run(PlanRequest(run, given["repeat"], given["target"]), "-" if given["as_json"] else None)
    return 0


def _lines(found: PowerEstimate, plan: Plan, source: str, parallel: int) -> list[str]:
    lines = [f"{plural(found.cases, 'case')} of {', '.join(item.suite.name for item in plan.suites)}"]
    if found.known:
        lines.append(f"  past       {found.recorded:,} trials of {plural(found.known, 'case')} in {source}")
    if found.known < found.cases:
        without = plural(found.cases - found.known, "case")
        lines.append(
            f"  assumed    {without} without a past: each passes {ASSUMED_RATE:.0%} of the time, and "
            f"{ASSUMED_TRIALS} trials of it will have been recorded"
        )
    for repeats, drop in found.sees.items():
        asked = "each case once" if repeats == 1 else f"each case {repeats} times"
        seen = "sees no drop for sure" if drop is None else f"sees a drop of {drop:.0%} of all pass rates, 4 times of 5"
        lines.append(f"  {asked:<20} {seen}")
    lines.append(f"  to see {found.target:.0%}: {_enlarged(found)}")
    lines.append(f"  a gated run takes {_cost(found, parallel)}")
    return lines


def _enlarged(found: PowerEstimate) -> str:
    more = found.to_see_target
    ways = []
    if more.repeats is not None:
        ways.append(f"run each case {plural(more.repeats, 'time')}")
    if more.cases is not None:
        ways.append(f"add {plural(more.cases, 'case')} like these" if more.cases else "nothing has to be added")
    if "nothing has to be added" in ways:
        return "nothing has to be added"
    return ", or ".join(ways) or "record more trials first: the past leaves more doubt than that"


def _cost(found: PowerEstimate, parallel: int) -> str:
    parts = [f"about {found.trials:,.0f} trials if nothing changed (9 runs of 10: at most {found.trials_high:,})"]
    if found.tokens is not None:
        parts.append(f"{found.tokens:,.0f} tokens")
    parts.append("cost not recorded" if found.usd is None else money(found.usd))
    if found.seconds is not None:
        parts.append(f"{duration(found.seconds * 1000 / parallel)} with {parallel} at once")
    return ", ".join(parts)
