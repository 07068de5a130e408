"""`proctor test`: run suites and report whether the agent passed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from proctor.agents.resolve import check_agent
from proctor.base.errors import UsageError
from proctor.base.masking import mask
from proctor.cases.formats import default_folder, format_named
from proctor.cases.formats.folders import SkippedFile
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, EvaluatorSpec, Settings, Suite, Turn, with_complete_evaluators
from proctor.cli import suggestions
from proctor.cli.help_pages import (
    AGENT_AND_JUDGE,
    EXECUTION,
    OUTPUT,
    REGRESSION_GATE,
    STORED_RUNS,
    DocumentedCommand,
    option,
)
from proctor.cli.options import (
    Chance,
    ClusterArguments,
    PerSecond,
    Seconds,
    budget_option,
    cluster_options,
    command_configuration,
    fast_option,
    judge_option,
    parse_agents,
    parse_arms,
    parse_evaluators,
    report_options,
    verbosity_options,
)
from proctor.cli.output import reserve_stdout, run_and_report, say
from proctor.cli.selection import CaseSelection, case_selection, paths_argument
from proctor.cli.suites import reasons_by_file, say_skipped
from proctor.config import Configuration
from proctor.gate.settings import GateSettings
from proctor.plugins import load as load_target
from proctor.plugins import shipped_plugins
from proctor.reporting.reporters import refuse_overwriting
from proctor.reporting.terminal.progress import print_loading
from proctor.reporting.terminal.screen import is_terminal
from proctor.results.store.run_names import validate_run_name
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import ClusterOptions, RunOptions

T = TypeVar("T", Suite, Case, Turn)


COMMAND_LINE = "proctor.command_line"
"""Under this key the context of click has the command line of the run."""


class TestCommand(DocumentedCommand):
    """The `test` command. It accepts options of another tool's command, and points to ours for its subcommands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[COMMAND_LINE] = shlex.join(["proctor", "test", *args])
        tools = [(plugin.name, plugin.test_options) for plugin in shipped_plugins() if plugin.test_options is not None]
        for tool, options in tools:
            if args and args[0] in options.commands and not Path(args[0]).exists():
                raise click.UsageError(f"`{args[0]}` is a command of {tool} test; {options.commands[args[0]]}", ctx)
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            for _, options in tools:
                if error.option_name in options.names:
                    rewrite: Callable[[list[str]], tuple[list[str], list[str]]] = load_target(options.rewrite)
                    rewritten, notes = rewrite(args)
                    for note in notes:
                        say(f"note: {note}", err=True)
                    return super().parse_args(ctx, rewritten)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOptions:
    """The options of the command, by name."""

    paths: tuple[str, ...]
    selection: CaseSelection
    agents: tuple[str, ...]
    arms: tuple[str, ...]
    arm_venv: bool
    initial_session: Path | None
    evaluators: tuple[str, ...]
    config: str | None
    judge: str | None
    fast: bool
    budget: float | None
    repeat: int | None
    parallel: int | None
    timeout: float | None
    evaluator_timeout: float | None
    retries: int | None
    retry_for: float | None
    maxfail: int | None
    rate: float | None
    hedge: bool
    isolate: bool
    no_capture: bool
    workers: int | None
    cluster: ClusterArguments
    gate: bool
    baseline: str | None
    gate_alpha: float | None
    gate_trials: int | None
    against: str | None
    strict_world: bool
    plan: bool
    detect: float | None
    see: float | None
    name: str | None
    resume: bool
    reuse: bool
    store: str | None
    quiet: bool
    verbose: bool
    reports: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        """The settings that override those of suites and cases."""
        return Settings(
            repeat=1 if self.gate else self.repeat,
            parallel=self.parallel,
            timeout=self.timeout,
            evaluator_timeout=self.evaluator_timeout,
            retries=self.retries,
            retry_seconds=self.retry_for,
        )

    def run_options(self, configuration: Configuration) -> RunOptions:
        """The options of the run."""
        return configuration.run_options(
            self.settings,
            judge=self.judge,
            budget=self.budget,
            fast=self.fast,
            maxfail=self.maxfail,
            isolate=self.isolate,
            arm_venv=self.arm_venv,
            live_output=self.no_capture,
            rate=self.rate,
            hedge=self.hedge,
            cluster=self._cluster(configuration),
        )

    def _cluster(self, configuration: Configuration) -> ClusterOptions | None:
        settings = self.cluster.settings(configuration, self.workers or 0)
        if settings is not None and self.isolate:
            raise UsageError(
                "--isolate runs each trial in a local process and cannot be combined with --workers or --cluster"
            )
        return settings

    def gate_request(self, configuration: Configuration) -> GateSettings | None:
        """The settings of the gate, or None for a run without it; raises `UsageError` for conflicting options."""
        if not self.gate:
            for name in ("gate_alpha", "gate_trials", "baseline", "plan", "against", "strict_world"):
                if getattr(self, name) not in (None, False):
                    raise UsageError(f"--{name.replace('_', '-')} needs --gate")
            return None
        for name in ("repeat", "reuse"):
            if getattr(self, name):
                raise UsageError(f"--gate and --{name} cannot be combined: the gate chooses the trials itself")
        default = GateSettings()
        return GateSettings(
            default.alpha if self.gate_alpha is None else self.gate_alpha,
            default.max_trials if self.gate_trials is None else self.gate_trials,
            self.baseline or configuration.values.get("baseline"),
            against=self.against,
            strict_world=self.strict_world,
        )

    def resume_key(self, places: tuple[str, ...]) -> str:
        """A key of what must be the same to resume a run. It is stored with runs, so its format must not change."""
        chosen = self.selection
        key = f"{chosen.words}|{sorted(chosen.tags)}|{chosen.last_failed}|{self.repeat}|{self.fast}"
        return key + ("|gate" if self.gate else "") + "".join(f"|{name}" for name in sorted((*chosen.ids, *places)))


@click.command(
    "test",
    cls=TestCommand,
    examples=(
        "proctor test suite.yaml",
        "proctor test suite.yaml::refund --agent app.py:agent",
        'proctor test -k "refund and not slow" --repeat 5',
        "proctor test --arms old=main,new=.",
        "proctor test --gate --against main",
        "proctor test --gate --junit junit.xml --html report.html",
    ),
)
@paths_argument()
@case_selection(last_failed=True, limit=True, verb="Run")
@option(
    "--agent",
    "agents",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="[NAME=]REF",
    help="Test this agent instead of the one the suite names: file.py:name, a URL, cmd:COMMAND, or serve:COMMAND for a "
    "program that starts an HTTP service.",
)
@option(
    "--arms",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="NAME=REF,...",
    help="Run every case on several versions of the agent and compare them: old=main,new=. for a git reference and the "
    "working folder, or agents as in --agent. The last one decides the verdict.",
)
@option(
    "--arm-venv",
    group=AGENT_AND_JUDGE,
    is_flag=True,
    help="Install what each git reference of --arms requires into its own virtual environment.",
)
@option(
    "--initial-session",
    group=AGENT_AND_JUDGE,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="JSON file with the state in which every conversation starts, for suites in ADK's legacy format.",
)
@option(
    "-e",
    "--evaluator",
    "evaluators",
    group=AGENT_AND_JUDGE,
    multiple=True,
    metavar="NAME[={json}]",
    shell_complete=suggestions.evaluators,
    help="Add an evaluator: ExactMatch, checks.py:fn, or 'MaxCost={\"usd\": 0.01}'. Repeatable.",
)
@option(
    "--config",
    group=AGENT_AND_JUDGE,
    metavar="FILE",
    help="Config file with the evaluators of suites, such as a test_config.json (default: the one next to each suite).",
)
@judge_option
@fast_option
@budget_option
@option(
    "--repeat",
    group=EXECUTION,
    type=click.IntRange(min=1),
    metavar="N",
    help="Run each case N times (default: 1).",
)
@option(
    "-j",
    "--parallel",
    group=EXECUTION,
    type=click.IntRange(min=1),
    metavar="N",
    help="Run at most N trials in parallel (default: 64). It starts with 20 and follows what the endpoint takes.",
)
@option(
    "--timeout", group=EXECUTION, type=Seconds(), metavar="SECONDS", help="Time limit for one trial (default: 300)."
)
@option(
    "--evaluator-timeout",
    group=EXECUTION,
    type=Seconds(),
    metavar="SECONDS",
    help="Time limit for one evaluator (default: 60; 300 with a judge).",
)
@option(
    "--retries",
    group=EXECUTION,
    type=click.IntRange(min=0),
    metavar="N",
    help="Retry transient errors such as a 500 up to N times (default: 2).",
)
@option(
    "--retry-for",
    group=EXECUTION,
    type=Seconds(),
    metavar="SECONDS",
    help="How long a turn waits in all to be sent again, for a rate limit or in an outage (default: 300).",
)
@option(
    "--maxfail",
    group=EXECUTION,
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after N trials that did not pass (default: run all).",
)
@option(
    "--rate",
    group=EXECUTION,
    type=PerSecond(),
    metavar="N",
    help="Send at most N turns per second to each endpoint (default: no limit).",
)
@option(
    "--hedge",
    group=EXECUTION,
    is_flag=True,
    help="Ask again if an answer takes much longer than others, for at most 5 % of the trials, and take the first "
    "answer. For agents without side effects (settings: {side_effects: false}).",
)
@option(
    "--isolate",
    group=EXECUTION,
    is_flag=True,
    help="Run each trial in its own process, for agents that block, crash or fork.",
)
@option(
    "-s",
    "--no-capture",
    group=EXECUTION,
    is_flag=True,
    help="Show what the agent prints while it runs, and let it use the keyboard (default: shown for failures).",
)
@option(
    "--workers",
    group=EXECUTION,
    type=click.IntRange(min=1),
    metavar="N",
    help="Run the agent in N worker processes with -j trials each (default: in this process).",
)
@cluster_options("Run the agent on the workers of this Dask scheduler.")
@option(
    "--gate",
    group=REGRESSION_GATE,
    is_flag=True,
    help="Fail only on regressions: compare each case with its baseline, and re-run the cases that look worse.",
)
@option(
    "--against",
    group=REGRESSION_GATE,
    metavar="REF",
    help="Also run this version of the agent, in the same minutes, on the cases that look worse: a git reference such "
    "as main, or another agent. It needs no baseline, and a bad day of the provider is not taken for a regression.",
)
@option(
    "--strict-world",
    group=REGRESSION_GATE,
    is_flag=True,
    help="With --against: exit with 3 if both versions now fail where the baseline did not (default: 0).",
)
@option(
    "--baseline",
    group=REGRESSION_GATE,
    metavar="FILE|RUN",
    help="Baseline file or stored run to compare with (default: the *.baseline.jsonl file next to each suite).",
)
@option(
    "--gate-alpha",
    group=REGRESSION_GATE,
    type=Chance(),
    metavar="P",
    help="Highest probability of a red build without a regression (default: 0.05).",
)
@option(
    "--gate-trials",
    group=REGRESSION_GATE,
    type=click.IntRange(min=1),
    metavar="N",
    help="Re-run a case at most N times (default: 10; with --against, 14 times on each version).",
)
@option(
    "--plan",
    group=REGRESSION_GATE,
    is_flag=True,
    help="Run nothing; estimate the cost of the gated run and the smallest drop it can detect.",
)
@option(
    "--detect",
    group=REGRESSION_GATE,
    type=Chance(),
    metavar="P",
    help="With --plan: smallest drop in pass rate to detect (default: 0.05).",
)
@option("--see", group=REGRESSION_GATE, type=Chance(), metavar="P", hidden=True, help="The old name of --detect.")
@option(
    "--name",
    group=STORED_RUNS,
    metavar="NAME",
    help="Name of the run, for other commands: nightly, before-refactor.",
)
@option(
    "--resume",
    group=STORED_RUNS,
    is_flag=True,
    help="Continue the latest run of the same command: run only what is missing or ended in an error.",
)
@option(
    "--reuse",
    group=STORED_RUNS,
    is_flag=True,
    help="Reuse stored answers if the agent and the input are unchanged.",
)
@option("--store", group=STORED_RUNS, metavar="DIR", help="Store results in DIR (default: .proctor).")
@verbosity_options("Print only the verdict.", "Print every score, reason and tool call.")
@report_options
@option("--score-on-workers", group=EXECUTION, is_flag=True, hidden=True, help="Has no effect.")
@option("--no-open", group=OUTPUT, is_flag=True, hidden=True, help="Has no effect; accepted for users of pixie.")
def command(score_on_workers: bool, no_open: bool, **values: Any) -> int:
    """Run suites against an agent and report whether it passed.

    PATHS are suite files or folders in any supported format, a single case (suite.yaml::case-id), or a list in Python
    (tests/cases.py:TEST_CASES). Without PATHS, it runs the suites in the current folder.
    """
    if score_on_workers:
        say("warning: --score-on-workers has no effect and will be removed; evaluators run in this process", err=True)
    options = TestOptions(**values)
    configuration = command_configuration()
    files, selection = options.selection.with_paths(options.paths)
    with reserve_stdout("-" in options.reports.values()) as stream:
        is_watched = not options.quiet and is_terminal(stream)
        if is_watched:
            print_loading(stream, options.paths)
        skipped: list[SkippedFile] = []
        suites = _suites(files, options, skipped)
        if not options.agents:
            suites = _with_project_agent(configuration, suites)
        if is_watched:
            print_loading(stream, _agents(options, suites))
    refuse_overwriting(options.reports, _files_read(options, configuration, suites))
    quiet, verbose = _verbosity(options, suites)
    request = replace(_request(options, configuration, suites, selection), skipped_files=reasons_by_file(skipped))
    if not quiet:
        say_skipped(request.skipped_files, verbose=verbose, has_verbose=True)
    if options.plan:
        return _plan(options, request)
    return run_and_report(
        lambda terminal: run_suites(request, terminal),
        options.reports,
        quiet=quiet,
        verbose=verbose,
        plain=options.no_capture,
    )


def _agents(options: TestOptions, suites: Iterable[Suite]) -> list[Any]:
    """The agents under test: those on the command line, or those of the suites."""
    if options.agents:
        return list(options.agents)
    named = [
        agent for suite in suites for agent in ((*suite.arms.values(), suite.agent) if suite.arms else (suite.agent,))
    ]
    return [agent.get("python") if isinstance(agent, Mapping) else agent for agent in named]


def _files_read(options: TestOptions, configuration: Configuration, suites: Iterable[Suite]) -> Iterable[Path | None]:
    """The files that a run reads; a report must not overwrite any of them."""
    for suite in suites:
        yield suite.path
        folder = suite.base or Path()
        turns = (turn for case in suite.cases for turn in case.turns)
        yield from (folder / item.path for turn in turns for item in turn.files if item.path)
        agents = (agent for agent in _agents(options, (suite,)) if isinstance(agent, str))
        yield from (folder / agent.rpartition(":")[0].rpartition("=")[2] for agent in agents)
    baseline = options.baseline or configuration.values.get("baseline")
    yield None if baseline is None else Path(baseline)
    yield None if options.config is None else Path(options.config)
    yield from (Path(origin) for origin in configuration.origins.values())


def _verbosity(options: TestOptions, suites: list[Suite]) -> tuple[bool, bool]:
    """Whether to be quiet and verbose: from the command line, or from the suites if all of them set it."""
    levels = [suite.verbosity for suite in suites]
    if options.quiet or options.verbose or not levels or None in levels:
        return options.quiet, options.verbose
    quiet = all(level == "quiet" for level in levels)
    return quiet, not quiet and "verbose" in levels


def _request(
    options: TestOptions, configuration: Configuration, suites: list[Suite], selection: CaseSelection
) -> RunRequest:
    folder = configuration.store(options.store)
    agent, agents = parse_agents(options.agents)
    arms = parse_arms(options.arms)
    if agents and arms:
        raise UsageError("--arms and several --agent cannot be combined; write --arms a=app.py:one,b=app.py:two")
    if len(agents) > 1:
        listed = ",".join(f"{name}={reference}" for name, reference in agents.items())
        say(f"note: several --agent are now --arms {mask(listed)}; with --arms, only the last one must pass", err=True)
        suites = [replace(suite, criteria=replace(suite.criteria, arms="all")) for suite in suites]
    return RunRequest(
        suites=suites,
        options=options.run_options(configuration),
        agent=agent,
        arms=agents or arms,
        select=selection.case_filter(suites, folder),
        store=folder,
        resume=options.resume,
        reuse=options.reuse,
        name="" if options.name is None else validate_run_name(options.name),
        key=options.resume_key(selection.places),
        command=click.get_current_context().meta.get(COMMAND_LINE, ""),
        gate=options.gate_request(configuration),
    )


def _plan(options: TestOptions, request: RunRequest) -> int:
    """Print the estimate of the gated run, or write it with `--json`, instead of running it."""
    if other := [f"--{name}" for name in options.reports if name != "json"]:
        raise UsageError(f"--plan can be combined with --json only, not with {' and '.join(other)}")
    if request.arms:
        raise UsageError("--plan estimates the run of one agent; use --agent once, without --arms")
    # Imported here, because the statistics of the gate take a tenth of the time of a short run to import.
    from proctor.cli.plan import PlanRequest, drop_to_detect, plan_gated_run

    plan = PlanRequest(request, drop_to_detect(options.detect, options.see))
    plan_gated_run(plan, options.reports.get("json"))
    return 0


def _suites(files: list[str], options: TestOptions, skipped: list[SkippedFile]) -> list[Suite]:
    config = None if options.config is None else Path(options.config)
    suites = load(files or [default_folder()], config, skipped=skipped)
    if options.initial_session is not None:
        suites = with_initial_session(suites, options.initial_session)
    for suite in suites:
        for warning in suite.warnings:
            say(f"warning: {warning}", err=True)
    if not options.evaluators:
        return suites
    extra = parse_evaluators(options.evaluators)
    return [_with_evaluators(suite, extra) for suite in suites]


def _with_project_agent(configuration: Configuration, suites: list[Suite]) -> list[Suite]:
    """The suites, with the agent of the project file where they name none; raises `UsageError` if it is not one."""
    complete = configuration.with_agent(suites)
    if complete != suites:
        try:
            check_agent(configuration.agent)
        except UsageError as error:
            raise UsageError(f"{configuration.origins['agent']}: agent: {error}") from None
    return complete


def with_initial_session(suites: list[Suite], path: Path) -> list[Suite]:
    """The suites with the session in a file; raises `UsageError` for a format whose cases have their own."""
    changed = []
    for suite in suites:
        format_ = format_named(suite.format)
        if format_ is None or format_.with_session is None:
            raise UsageError(f"{suite.path} cannot be combined with --initial-session; write `state` into its cases")
        changed.append(load_target(format_.with_session)(suite, path))
    return changed


def _with_evaluators(suite: Suite, extra: tuple[EvaluatorSpec, ...]) -> Suite:
    """The suite with the `extra` evaluators, added wherever it lists evaluators."""

    def extended(thing: T) -> T:
        own = thing.evaluators
        return thing if own is None else replace(thing, evaluators=own + tuple(s for s in extra if s not in own))

    def with_turns(case: Case) -> Case:
        return extended(replace(case, turns=tuple(extended(turn) for turn in case.turns)))

    return extended(with_complete_evaluators(suite).map_cases(with_turns))
