"""`proctor plan SUITE`: what a gated run will take and can see, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import plain
from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.cli.configuration import Configuration, read_configuration
from proctor.cli.options_and_output import Chance, case_option, json_option, say, say_json, store_option
from proctor.gate.decision import GateSettings
from proctor.gate.power import ASSUMED_RATE, ASSUMED_TRIALS, PowerEstimate, estimate_power
from proctor.reporting.wording import counted, duration, money
from proctor.results.store.store import FILE, Store
from proctor.running.gate_trials import baselines_for
from proctor.running.plan import Plan, make_plan
from proctor.running.selection import CaseFilter, check_names, parse_words, split_places, tag_set
from proctor.running.settings import RunOptions

DEFAULTS = GateSettings()


@click.command("plan")
@click.argument("paths", nargs=-1, metavar="[SUITES]...")
@click.option("--agent", metavar="REF", help="Instead of the suites' own.")
@case_option
@click.option("-k", "words", metavar="EXPR", help="Only cases that fit.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only cases with this tag; repeatable.")
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
def command(paths: tuple[str, ...], **given: Any) -> int:
    """Say what a gated run of SUITES takes and can see, from what was recorded of them. Runs nothing."""
    configuration = read_configuration()
    settings = Settings(repeat=1)
    words = None if given["words"] is None else parse_words(given["words"])
    files, places = split_places(paths)
    suites = load(files or [Path()])
    check_names((*given["case_ids"], *places), ((s.name, s.path, case.id) for s in suites for case in s.cases))
    select = CaseFilter(words, tag_set(given["tags"]), ids=given["case_ids"], places=places)
    options = RunOptions(settings, configuration.settings, fast=given["fast"])
    plan = make_plan(suites, options, agent=given["agent"], select=select)
    if not plan.trials:
        raise UsageError("no case is selected, so there is nothing to plan")
    wanted = given["baseline"] or configuration.values.get("baseline")
    baselines, source = baselines_for(plan, wanted, _store(configuration, given["store"]), fast=given["fast"])
    gate = GateSettings(given["gate_alpha"], given["gate_trials"])
    found = estimate_power(baselines, gate, given["repeat"], given["target"])
    parallel = max(item.limits.parallel for item in plan.suites)
    if given["as_json"]:
        say_json("plan", {"baseline": source, "parallel": parallel, **plain(found)})
        return 0
    for line in _lines(found, plan, source, parallel):
        say(line)
    return 0


def _store(configuration: Configuration, given: str | None) -> Store | None:
    folder = configuration.store(given)
    return Store(folder, create=False) if (folder / FILE).is_file() else None


def _lines(found: PowerEstimate, plan: Plan, source: str, parallel: int) -> list[str]:
    lines = [f"{counted(found.cases, 'case')} of {', '.join(item.suite.name for item in plan.suites)}"]
    if found.known:
        lines.append(f"  past       {found.recorded:,} trials of {counted(found.known, 'case')} in {source}")
    if found.known < found.cases:
        without = counted(found.cases - found.known, "case")
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
        ways.append(f"run each case {counted(more.repeats, 'time')}")
    if more.cases is not None:
        ways.append(f"add {counted(more.cases, 'case')} like these" if more.cases else "nothing has to be added")
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
