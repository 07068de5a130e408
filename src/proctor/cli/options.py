"""Options that several commands share, and parsing what people type for them."""

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
    """More than nothing, and not infinite."""

    noun: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        amount = super().convert(value, param, ctx)
        if not math.isfinite(amount):
            self.fail(f"{value} is not {self.noun}", param, ctx)
        return amount


class Seconds(_Amount):
    """A time that has an end."""

    name = "seconds"
    noun = "a number of seconds"


class PerSecond(_Amount):
    """How often something may happen."""

    name = "per second"
    noun = "a number per second"


class Dollars(_Amount):
    """A sum that is not infinite."""

    name = "dollars"
    noun = "an amount of dollars"


class Chance(click.FloatRange):
    """More than 0 and less than 1."""

    name = "chance"

    def __init__(self) -> None:
        super().__init__(min=0, max=1, min_open=True, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        chance = super().convert(value, param, ctx)
        if math.isnan(chance):
            self.fail(f"{value} is not a chance", param, ctx)
        return chance


def command_configuration() -> Configuration:
    """The configuration of the command that is being run, with its variables until the command ends."""
    configuration = read_configuration()
    click.get_current_context().with_resource(configuration.environment())
    return configuration


def store_option(command: F) -> F:
    text = "Folder of the stored results (default: .proctor)."
    return option("--store", group=STORED_RUNS, metavar="DIR", help=text)(command)


def judge_option(command: F) -> F:
    text = 'Model that judges answers, for example openai:gpt-5-mini; "rules" needs no model.'
    return option("--judge", group=AGENT_AND_JUDGE, metavar="MODEL", help=text)(command)


def budget_option(command: F) -> F:
    text = "Start no further trials once the run has cost this much."
    return option("--budget", group=AGENT_AND_JUDGE, type=Dollars(), metavar="USD", help=text)(command)


def fast_option(command: F) -> F:
    text = "Skip everything that needs a language model."
    return option("--fast", group=AGENT_AND_JUDGE, is_flag=True, help=text)(command)


def judge_options(command: F) -> F:
    """Who judges, and what the run may cost."""
    return judge_option(budget_option(command))


def json_option(command: F) -> F:
    """`--json` of a command that prints a list: a flag."""
    return option("--json", "as_json", group=OUTPUT, is_flag=True, help="Print JSON.")(command)


def verbosity_options(quiet: str, verbose: str) -> Callable[[F], F]:
    """`--quiet` and `--verbose`, with what each prints."""

    def decorate(command: F) -> F:
        command = option("-v", "--verbose", group=OUTPUT, is_flag=True, help=verbose)(command)
        return option("-q", "--quiet", group=OUTPUT, is_flag=True, help=quiet)(command)

    return decorate


@dataclass(frozen=True, slots=True)
class ClusterArguments:
    """What the command line says about a cluster."""

    address: str | None
    upload: bool
    tls_ca: str | None
    tls_cert: str | None
    tls_key: str | None

    def settings(self, configuration: Configuration, workers: int = 0) -> ClusterOptions | None:
        """How the cluster is reached, or None for a run in this process; raises `UsageError`.

        What the command line leaves out is taken from `[tool.proctor.cluster]` of the project file.
        """
        given = {name: value for name in ("upload", "tls_ca", "tls_cert", "tls_key") if (value := getattr(self, name))}
        if given:
            names = ", ".join(given)
            say(f"note: set {names} under [tool.proctor.cluster] of the project file; the options will go", err=True)
        if self.address is None:
            if given and not workers:
                raise UsageError(f"--{next(iter(given)).replace('_', '-')} is for --cluster, which was not given")
            return check_cluster_options(ClusterOptions(workers, **given)) if workers else None
        if workers:
            raise UsageError("--workers starts processes here and --cluster finds them elsewhere; give one of the two")
        return check_cluster_options(ClusterOptions(0, self.address, **{**configuration.cluster, **given}))


def cluster_options(text: str) -> Callable[[F], F]:
    """`--cluster`, with its help; the command gets `cluster`, a `ClusterArguments`."""

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
    """An option for each report, and `--report`; the command gets `reports`, the file of each report by its name."""

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
        help=f"Write any other report; the ending or KIND selects it: {', '.join(r.name for r in OTHER_REPORTERS)}, or "
        "one from an installed package. Repeatable. A FILE of - is standard output.",
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
    """The file of each report; raises `UsageError` for what could not be written, before anything is run."""
    targets: dict[str, str] = {}
    for name, path in requested:
        if name in targets:
            raise UsageError(f"the {name} report can go to one file, not to {targets[name]} and {path}")
        targets[name] = path
    check_targets(targets)
    return targets


def parse_agents(texts: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """One agent alone, or several by name: `app.py:agent`, or `careful=app.py:agent` under a name of its own."""
    found: dict[str, str] = {}
    named = [re.match(r"([A-Za-z0-9_][\w. -]*)=(?!=)(.+)", text, re.DOTALL) for text in texts]
    if len(texts) == 1 and named[0] is None:
        return texts[0], {}
    for text, match in zip(texts, named, strict=True):
        name, reference = (match[1].strip(), match[2]) if match else (mask(text), text)
        if name in found:
            raise UsageError(f"two agents are called {name!r}; give each a name of its own: --agent other={reference}")
        if name.lstrip().startswith("{"):
            raise UsageError("give an agent that is described in JSON a name, beside others: --agent careful={...}")
        found[name] = reference
    return None, found


def parse_evaluators(texts: tuple[str, ...]) -> tuple[EvaluatorSpec, ...]:
    """`ExactMatch`, `checks.py:fn` or `ROUGE={"variant": "rouge1", "threshold": 0.6}`."""
    entries: list[Any] = []
    for text in texts:
        name, sign, options = text.partition("=")
        try:
            entries.append({name.strip(): json.loads(options)} if sign else name.strip())
        except ValueError:
            raise UsageError(f"--evaluator {text!r}: what follows = must be a JSON object") from None
    document = Document(Path("--evaluator"), "", entries or [])
    specs = read_specs(document, entries, (), defaults=None)
    if document.problems:
        raise UsageError("; ".join(f"--evaluator {p.where} {p.message}" for p in document.problems))
    return specs
