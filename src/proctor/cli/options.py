"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import click

from proctor.base.documents import Document
from proctor.base.errors import UsageError
from proctor.base.masking import mask
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.suite import EvaluatorSpec
from proctor.cli.help_pages import AGENT_AND_JUDGE, EXECUTION, OUTPUT, STORED_RUNS, option
from proctor.cli.output import say
from proctor.config import Configuration, read_configuration
from proctor.reporting.reporters import OTHER_REPORTERS, REPORTERS, check_targets, parse_target
from proctor.running.cluster.options import check_cluster_options
from proctor.running.settings import ClusterOptions

F = TypeVar("F", bound=Callable[..., Any])


class _Amount(click.FloatRange):
    """A finite number above 0."""

    noun: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            amount = float(value)
        except ValueError:
            amount = math.nan
        if not 0 < amount < math.inf:
            self.fail(f"{value} is not {self.noun} above 0", param, ctx)
        return amount


class Seconds(_Amount):
    """A finite number of seconds above 0."""

    name = "seconds"
    noun = "a number of seconds"


class PerSecond(_Amount):
    """A finite rate above 0."""

    name = "per second"
    noun = "a number per second"


class Dollars(_Amount):
    """A finite amount of dollars above 0."""

    name = "dollars"
    noun = "an amount of dollars"


class Chance(click.FloatRange):
    """A probability above 0 and below 1."""

    name = "probability"

    def __init__(self) -> None:
        super().__init__(min=0, max=1, min_open=True, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        probability = super().convert(value, param, ctx)
        if math.isnan(probability):
            self.fail(f"{value} is not a probability between 0 and 1", param, ctx)
        return probability


def command_configuration() -> Configuration:
    """The configuration, with its environment variables set until the command ends."""
    configuration = read_configuration()
    click.get_current_context().with_resource(configuration.environment())
    return configuration


def store_option(command: F) -> F:
    """`--store`."""
    text = "Folder of the stored results (default: .proctor)."
    return option("--store", group=STORED_RUNS, metavar="DIR", help=text)(command)


def judge_option(command: F) -> F:
    """`--judge`."""
    text = "Model that judges answers, for example openai:gpt-5-mini (default: rules, which needs no model)."
    return option("--judge", group=AGENT_AND_JUDGE, metavar="MODEL", help=text)(command)


def budget_option(command: F) -> F:
    """`--budget`."""
    text = "Stop starting trials once the run has cost this many US dollars (default: no limit)."
    return option("--budget", group=AGENT_AND_JUDGE, type=Dollars(), metavar="USD", help=text)(command)


def fast_option(command: F) -> F:
    """`--fast`."""
    text = "Skip everything that needs a language model."
    return option("--fast", group=AGENT_AND_JUDGE, is_flag=True, help=text)(command)


def judge_budget_option(command: F) -> F:
    """`--budget` for commands that call a judge but no agent."""
    text = "Stop calling the judge once it has cost this many US dollars (default: no limit)."
    return option("--budget", group=AGENT_AND_JUDGE, type=Dollars(), metavar="USD", help=text)(command)


def judge_options(command: F) -> F:
    """`--judge` and `--budget` for commands that call a judge but no agent."""
    return judge_option(judge_budget_option(command))


def json_option(command: F) -> F:
    """`--json` as a flag, for commands that print a list."""
    return option("--json", "as_json", group=OUTPUT, is_flag=True, help="Print JSON instead of text.")(command)


def verbosity_options(quiet: str, verbose: str) -> Callable[[F], F]:
    """`--quiet` and `--verbose`, with their help texts."""

    def decorate(command: F) -> F:
        command = option("-v", "--verbose", group=OUTPUT, is_flag=True, help=verbose)(command)
        return option("-q", "--quiet", group=OUTPUT, is_flag=True, help=quiet)(command)

    return decorate


@dataclass(frozen=True, slots=True)
class ClusterArguments:
    """The options about a cluster."""

    address: str | None
    upload: bool
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None

    def settings(self, configuration: Configuration, workers: int = 0) -> ClusterOptions | None:
        """How to reach the cluster, or None for a run in this process; raises `UsageError`.

        Options that are not on the command line come from `[tool.proctor.cluster]` in the project file.
        """
        options = {
            name: value for name in ("upload", "tls_ca", "tls_cert", "tls_key") if (value := getattr(self, name))
        }
        if options:
            names = ", ".join(options)
            say(
                f"note: set {names} under [tool.proctor.cluster] in the project file; these options will be removed",
                err=True,
            )
        if self.address is None:
            if options and not workers:
                raise UsageError(f"--{next(iter(options)).replace('_', '-')} needs --cluster")
            return check_cluster_options(ClusterOptions(workers, **options)) if workers else None
        if workers:
            raise UsageError("--workers (local processes) and --cluster cannot be combined")
        return check_cluster_options(ClusterOptions(0, self.address, **{**configuration.cluster, **options}))


def cluster_options(text: str) -> Callable[[F], F]:
    """`--cluster` and its hidden companions; the command gets `cluster`, a `ClusterArguments`."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def collected(*args: Any, **params: Any) -> Any:
            names = ("cluster", "upload", "tls_ca", "tls_cert", "tls_key")
            return command(*args, cluster=ClusterArguments(*(params.pop(name) for name in names)), **params)

        decorated: Any = collected
        for name in ("--tls-key", "--tls-cert", "--tls-ca"):
            decorated = option(name, group=EXECUTION, hidden=True, metavar="FILE")(decorated)
        decorated = option("--upload", group=EXECUTION, hidden=True, is_flag=True)(decorated)
        return cast(F, option("--cluster", group=EXECUTION, metavar="ADDRESS", help=text)(decorated))

    return decorate


def report_options(command: F) -> F:
    """One option per report, and `--report`; the command gets `reports`, the file of each report by its name."""

    @functools.wraps(command)
    def collected(*args: Any, **params: Any) -> Any:
        own = [(item.name, params.pop(_parameter(item.name))) for item in (*REPORTERS, *OTHER_REPORTERS)]
        requested = [(name, path) for name, path in own if path is not None]
        requested += [parse_target(text) for text in params.pop("other_reports")]
        return command(*args, reports=_targets(requested), **params)

    decorated: Any = option(
        "--report",
        "other_reports",
        group=OUTPUT,
        multiple=True,
        metavar="[KIND=]FILE",
        help="Write another report, selected by KIND or by the ending of FILE: "
        f"{', '.join(r.name for r in OTHER_REPORTERS)}, or one from a plugin. Repeatable. - is standard output.",
    )(collected)
    for hidden, known in ((True, OTHER_REPORTERS), (False, REPORTERS)):
        for item in reversed(known):
            names = f"--{item.name}", _parameter(item.name)
            decorated = option(*names, group=OUTPUT, metavar="FILE", help=item.help, hidden=hidden)(decorated)
    return cast(F, decorated)


def document_options(command: F) -> F:
    """`--json`, `--md` and `--html` for a result that is not a run; the command gets `reports`, the files by kind."""
    kinds = [item for item in REPORTERS if item.name in ("json", "md", "html")]

    @functools.wraps(command)
    def collected(*args: Any, **params: Any) -> Any:
        own = [(item.name, params.pop(_parameter(item.name))) for item in kinds]
        return command(*args, reports=_targets([(name, path) for name, path in own if path is not None]), **params)

    decorated: Any = collected
    for item in reversed(kinds):
        names = f"--{item.name}", _parameter(item.name)
        decorated = option(*names, group=OUTPUT, metavar="FILE", help=item.help)(decorated)
    return cast(F, decorated)


def _parameter(report: str) -> str:
    return f"{report.replace('-', '_')}_to"


def _targets(requested: list[tuple[str, str]]) -> dict[str, str]:
    """The file of each report; raises `UsageError` before anything runs if a report could not be written."""
    targets: dict[str, str] = {}
    for name, path in requested:
        if name in targets:
            raise UsageError(f"the {name} report can be written to one file only, not to {targets[name]} and {path}")
        targets[name] = path
    check_targets(targets)
    return targets


def parse_arms(texts: tuple[str, ...]) -> dict[str, str]:
    """Arms by name, from `old=main,new=.`; a comma that no name follows belongs to the arm before it."""
    arms: dict[str, str] = {}
    for text in (part for whole in texts for part in re.split(r",(?=[A-Za-z0-9_][\w. -]*=(?!=))", whole)):
        match = re.fullmatch(r"([A-Za-z0-9_][\w. -]*)=(?!=)(.+)", text.strip(), re.DOTALL)
        if match is None:
            raise UsageError(f"--arms {text!r}: give each arm a name: --arms old=main,new=.")
        name, value = match[1].strip(), match[2].strip()
        if name in arms:
            raise UsageError(f"two arms are called {name!r}; give each its own name")
        arms[name] = value
    return arms


def parse_agents(texts: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """One agent, or several by name: `app.py:agent`, or `careful=app.py:agent` to give it a name."""
    agents: dict[str, str] = {}
    named = [re.match(r"([A-Za-z0-9_][\w. -]*)=(?!=)(.+)", text, re.DOTALL) for text in texts]
    if len(texts) == 1 and named[0] is None:
        return texts[0], {}
    for text, match in zip(texts, named, strict=True):
        name, reference = (match[1].strip(), match[2]) if match else (mask(text), text)
        if name in agents:
            raise UsageError(f"two agents are called {name!r}; give each its own name: --agent other={reference}")
        if name.lstrip().startswith("{"):
            raise UsageError("with several agents, give one that is described in JSON a name: --agent careful={...}")
        agents[name] = reference
    return None, agents


def parse_evaluators(texts: tuple[str, ...]) -> tuple[EvaluatorSpec, ...]:
    """Parse `ExactMatch`, `checks.py:fn` or `ROUGE={"variant": "rouge1", "threshold": 0.6}`."""
    entries: list[Any] = []
    for text in texts:
        name, sign, options = text.partition("=")
        try:
            entries.append({name.strip(): json.loads(options)} if sign else name.strip())
        except ValueError:
            raise UsageError(f"--evaluator {text!r}: the part after = must be a JSON object") from None
    document = Document(Path("--evaluator"), "", entries or [])
    specs = read_specs(document, entries, (), defaults=None)
    if document.problems:
        raise UsageError("; ".join(f"--evaluator {p.where} {p.message}" for p in document.problems))
    return specs
