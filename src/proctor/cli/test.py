"""`proctor test`: run suites and say whether the agent passed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from proctor.base.errors import UsageError
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, EvaluatorSpec, Settings, Suite, Turn
from proctor.cli.configuration import Configuration, command_configuration
from proctor.cli.options_and_output import (
    Chance,
    PerSecond,
    Seconds,
    carry_out,
    case_option,
    cluster_options,
    judge_options,
    parse_agents,
    parse_evaluators,
    read_cluster_options,
    report_options,
    report_targets,
    say,
    stdout_kept_clear,
    store_option,
)
from proctor.compat.pixie.datasets import usual_folder
from proctor.gate.decision import GateSettings
from proctor.reporting.terminal.progress import tell_loading
from proctor.reporting.terminal.screen import is_terminal
from proctor.results.store.run_names import validate_run_name
from proctor.results.store.store import Store
from proctor.running.run import Request, run_suites
from proctor.running.selection import CaseFilter, check_names, last_failed, parse_words, split_places, tag_set
from proctor.running.settings import ClusterOptions, RunOptions

T = TypeVar("T", Suite, Case, Turn)


HOLODECK_OPTIONS = {
    "--limit": "choose cases with -k WORDS or --tag T, or stop early with --maxfail N",
    "-n": "choose cases with -k WORDS or --tag T, or stop early with --maxfail N",
    "--force-ingest": "the source files of an agent are read anew in every run, so leave it out",
    "-f": "the source files of an agent are read anew in every run, so leave it out",
    "--output": "write reports with --json FILE, --md FILE, --html FILE or --junit FILE",
    "--format": "the kind of a report is its option: --json FILE, --md FILE, --html FILE or --junit FILE",
    "--parallel-test-cases": "say --parallel N, or -j N",
}
"""What `holodeck test` calls by these names, and what to say instead."""


class TestCommand(click.Command):
    """Answers those who come from HoloDeck's command line in its words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = HOLODECK_OPTIONS.get(error.option_name)
            if hint is None:
                raise
            raise click.UsageError(f"{error.option_name} is an option of holodeck test; {hint}", ctx) from None


@click.command("test", cls=TestCommand)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[NAME=]REF",
    help="Instead of the suites' own: file.py:name, a URL, cmd:..., oracle, nop; several are compared.",
)
@click.option(
    "-e",
    "--evaluator",
    "evaluators",
    multiple=True,
    metavar="NAME[={json}]",
    help="Score by this too: ExactMatch, checks.py:fn, 'MaxCost={\"usd\": 0.01}'; repeatable.",
)
@case_option
@click.option("-k", "words", metavar="EXPR", help="Only cases that fit: refund and not slow.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only cases with this tag; repeatable.")
@click.option("--last-failed", "--lf", "only_failed", is_flag=True, help="Only what did not pass in the latest run.")
@click.option("--repeat", type=click.IntRange(min=1), metavar="N", help="Trials of each case.")
@click.option("-j", "--parallel", type=click.IntRange(min=1), metavar="N", help="Trials at once.")
@click.option("--timeout", type=Seconds(), metavar="S", help="Seconds a trial may take.")
@click.option("--evaluator-timeout", type=Seconds(), metavar="S", help="And an evaluator.")
@click.option("--retries", type=click.IntRange(min=0), metavar="N", help="More tries after a transient failure.")
@click.option("--maxfail", type=click.IntRange(min=1), metavar="N", help="Stop after N trials that did not pass.")
@click.option("--isolate", is_flag=True, help="A process for every trial: for agents that block, crash or fork.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Ask the agent in N processes, -j trials in each."
)
@cluster_options
@click.option("--score-on-workers", is_flag=True, hidden=True, help="Has no effect; evaluators run in the run itself.")
@click.option("--rate", type=PerSecond(), metavar="N", help="Turns a second to each endpoint, for all together.")
@click.option("--fast", is_flag=True, help="Leave out whatever needs a language model.")
@judge_options
@click.option("--name", metavar="NAME", help="What to call this run in other commands: nightly, before-the-change.")
@click.option("--gate", is_flag=True, help="Hold each case against its past; ask again only what seems worse.")
@click.option("--gate-alpha", type=Chance(), metavar="P", help="Chance of a red build without a regression (0.05).")
@click.option("--gate-trials", type=click.IntRange(min=1), metavar="N", help="At most N further trials a case (10).")
@click.option("--baseline", metavar="FILE|RUN", help="What is usual (default: beside each suite, *.baseline.jsonl).")
@click.option("--resume", is_flag=True, help="Continue the interrupted run of the same command.")
@click.option("--reuse", is_flag=True, help="Take answers from earlier runs where agent and question are unchanged.")
@click.option("--no-open", is_flag=True, hidden=True, help="Nothing is opened in any case; pixie's users write it.")
@report_options
@store_option
def command(**given: Any) -> int:
    """Run suites of any known format: files, folders, file.py:TEST_CASES, suite.yaml::case-id. Default: this folder."""
    configuration = command_configuration()
    with stdout_kept_clear("-" in report_targets(given).values()) as stream:
        is_watched = not given["quiet"] and is_terminal(stream)
        if is_watched:
            tell_loading(stream, given["paths"])
        suites = _suites(given)
        if is_watched:
            tell_loading(stream, _agents(given, suites))
    told = given | _verbosity(given, suites)
    return carry_out(lambda terminal: run_suites(_request(given, configuration, suites), terminal), told)


def _agents(given: dict[str, Any], suites: Iterable[Suite]) -> list[Any]:
    """What says who is asked: the command line, else each suite."""
    if given["agents"]:
        return list(given["agents"])
    named = [agent for suite in suites for agent in (suite.agents.values() or (suite.agent,))]
    return [agent.get("python") if isinstance(agent, Mapping) else agent for agent in named]


def _verbosity(given: dict[str, Any], suites: list[Suite]) -> dict[str, bool]:
    """How much is told where the command line does not say: what the suites' own files say, if all of them can."""
    said = [suite.verbosity for suite in suites]
    if given["quiet"] or given["verbose"] or not said or None in said:
        return {}
    quiet = all(level == "quiet" for level in said)
    return {"quiet": quiet, "verbose": not quiet and "verbose" in said}


def _request(given: dict[str, Any], configuration: Configuration, suites: list[Suite]) -> Request:
    folder = configuration.store(given["store"])
    agent, agents = parse_agents(given["agents"])
    return Request(
        suites=suites,
        options=_options(given, configuration),
        agent=agent,
        agents=agents,
        select=_selection(given, folder, suites),
        store=folder,
        resume=given["resume"],
        reuse=given["reuse"],
        name=_run_name(given["name"]),
        key=f"{given['words']}|{sorted(given['tags'])}|{given['only_failed']}|{given['repeat']}|{given['fast']}"
        + ("|gate" if given["gate"] else "")
        + "".join(f"|{name}" for name in sorted((*given["case_ids"], *_files_and_places(given)[1]))),
        gate=_gate(given, configuration),
    )


def _gate(given: dict[str, Any], configuration: Configuration) -> GateSettings | None:
    if not given["gate"]:
        useless = [name for name in ("gate_alpha", "gate_trials", "baseline") if given[name] is not None]
        if useless:
            raise UsageError(f"--{useless[0].replace('_', '-')} is for --gate, which was not given")
        return None
    for name in ("repeat", "reuse"):
        if given[name]:
            raise UsageError(f"--gate decides itself how often a case is asked, so it does not go with --{name}")
    chosen = {"alpha": given["gate_alpha"], "max_trials": given["gate_trials"]}
    baseline = given["baseline"] or configuration.values.get("baseline")
    return GateSettings(baseline=baseline, **{name: value for name, value in chosen.items() if value is not None})


def _run_name(name: str | None) -> str:
    if name is None:
        return ""
    return validate_run_name(name)


def _suites(given: dict[str, Any]) -> list[Suite]:
    suites = load(_files_and_places(given)[0] or [_usual_place()])
    for suite in suites:
        for warning in suite.warnings:
            say(f"warning: {warning}", err=True)
    if not given["evaluators"]:
        return suites
    extra = parse_evaluators(given["evaluators"])
    return [_with_evaluators(suite, extra) for suite in suites]


def _files_and_places(given: dict[str, Any]) -> tuple[list[str], tuple[str, ...]]:
    """What is read, and those of the paths that name one case."""
    paths = given["paths"]
    return split_places(paths) if any("::" in path for path in paths) else (list(paths), ())


def _usual_place() -> Path:
    """The working folder, unless pixie's settings point to datasets elsewhere."""
    if not any(os.environ.get(name) for name in ("PIXIE_ROOT", "PIXIE_DATASET_DIR")):
        return Path()
    folder = usual_folder()
    return Path() if folder.resolve().is_relative_to(Path.cwd().resolve()) else folder


def _with_evaluators(suite: Suite, extra: tuple[EvaluatorSpec, ...]) -> Suite:
    """The suite scored by `extra` too, at every place that has evaluators of its own."""

    def extended(thing: T) -> T:
        own = thing.evaluators
        return thing if own is None else replace(thing, evaluators=own + tuple(s for s in extra if s not in own))

    def with_turns(case: Case) -> Case:
        return extended(replace(case, turns=tuple(extended(turn) for turn in case.turns)))

    return extended(suite.with_cases(with_turns))


def _options(given: dict[str, Any], configuration: Configuration) -> RunOptions:
    names = ("repeat", "parallel", "timeout", "evaluator_timeout", "retries")
    settings = Settings(**{name: given[name] for name in names})
    return configuration.run_options(
        replace(settings, repeat=1) if given["gate"] else settings,
        judge=given["judge"],
        budget=given["budget"],
        fast=given["fast"],
        maxfail=given["maxfail"],
        isolate=given["isolate"],
        rate=given["rate"],
        cluster=_cluster(given),
    )


def _cluster(given: dict[str, Any]) -> ClusterOptions | None:
    """Where the agents are asked; all that does not fit together is said before anything starts."""
    if given["score_on_workers"]:
        say("warning: --score-on-workers has no effect any more and will be removed; evaluators run here", err=True)
    options = read_cluster_options(given, given["workers"] or 0)
    if options is None:
        return None
    if given["isolate"]:
        raise UsageError("--isolate gives every trial a process here, so it does not go with workers")
    return options


def _selection(given: dict[str, Any], folder: Path, suites: list[Suite]) -> CaseFilter | None:
    ids, places = given["case_ids"], _files_and_places(given)[1]
    if given["words"] is None and not any((given["tags"], given["only_failed"], ids, places)):
        return None
    check_names((*ids, *places), ((suite.name, suite.path, case.id) for suite in suites for case in suite.cases))
    addresses = None
    if given["only_failed"]:
        store = Store(folder, create=False)
        addresses = last_failed(store) or None
        store.close()
        if addresses is None:
            say("note: nothing failed in the latest run; running everything", err=True)
    words = None if given["words"] is None else parse_words(given["words"])
    return CaseFilter(words, tag_set(given["tags"]), addresses, ids, places)
