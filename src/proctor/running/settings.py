"""Settings of a run: what the caller, the suites and the project's configuration say, and who wins.

`limits_for` is the function that knows the order of precedence. A plan calls it once for each suite and case; everyone
else reads the `Limits` that the plan holds. Who judges is decided in `judging.choosing`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

from proctor.agents.trial_context import DEFAULT_SETTINGS, MAX_REPLY_BYTES, AgentSettings
from proctor.base.errors import UsageError
from proctor.cases.files.file_text import FileText
from proctor.cases.suite import AttachedFile, Case, Settings, Suite
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict

NO_SETTINGS = Settings()
DEFAULTS = Settings(
    repeat=1, parallel=8, timeout=300.0, evaluator_timeout=60.0, retries=2, max_reply_bytes=MAX_REPLY_BYTES
)
DEFAULT_JUDGED_TIMEOUT = 300.0
"""Default timeout of evaluators that ask a judge: a model takes its time, and may be asked more than once."""
BACKOFF_SECONDS = 0.5
"""Seconds before the first retry; doubled each time."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where the agents of a run are asked, if not in its own process."""

    workers: int = 0
    """Processes to start on this machine."""
    address: str = ""
    """A scheduler that is there already, instead."""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    upload: bool = False
    """Whether the files of the working folder are sent to the workers."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything about a run that is not in the suites."""

    overrides: Settings = NO_SETTINGS
    """From the command line or the call; beats what suites say."""
    defaults: Settings = NO_SETTINGS
    """From the project's configuration or the environment; holds where suites say nothing."""
    agent: AgentSettings = DEFAULT_SETTINGS
    """What code inside a trial may read; `max_reply_bytes` is set by `limits_for`."""
    fast: bool = False
    """Leave out whatever needs a language model."""
    judge: Any = None
    """Who judges, whatever suites and their evaluators say."""
    default_judge: Any = None
    """Who judges if neither the caller nor a suite names a judge."""
    budget_usd: float | None = None
    """What agents and judges may cost before no further trial is begun."""
    maxfail: int | None = None
    isolate: bool = False
    """Whether every trial has a process of its own."""
    keep_secrets: bool = False
    """Whether the store and reports keep secrets in answers, tool calls, prompts and errors as they are."""
    backoff: float = BACKOFF_SECONDS
    """Seconds before the first retry; doubled each time."""
    rate: float | None = None
    """Turns a second that each endpoint is sent at most."""
    cluster: ClusterOptions | None = None
    """Ask the agents on workers, which the run starts or finds."""
    read_file: Callable[[AttachedFile], FileText | Awaitable[FileText]] | None = None
    """Reads the files of turns, for every agent, in place of Proctor's own reader; raises `UnreadableFile`."""
    evaluators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Evaluators by title, each called in place of the one that suites name under this title; they always count."""


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """The settings in force for one suite or case."""

    repeat: int
    parallel: int
    timeout: float
    evaluator_timeout: float
    retries: int
    agent: AgentSettings = DEFAULT_SETTINGS
    """What code inside a trial may read."""
    judged_timeout: float = DEFAULT_JUDGED_TIMEOUT
    """The evaluator timeout of those that ask a judge; waiting for the judge to be free does not count."""


def limits_for(options: RunOptions, suite: Suite, case: Case | None = None) -> TrialLimits:
    """The limits in force for a suite, or for one of its cases.

    The first that sets a limit wins: the caller, the case, the suite, the configuration, the default.
    """
    own = NO_SETTINGS if case is None else Settings(repeat=case.repeat, timeout=case.timeout)
    sources = (options.overrides, own, suite.settings, options.defaults, DEFAULTS)
    values = {f.name: next(v for s in sources if (v := getattr(s, f.name)) is not None) for f in fields(Settings)}
    for name, least in (("repeat", 1), ("parallel", 1), ("retries", 0), ("max_reply_bytes", 1)):
        if values[name] < least:
            raise UsageError(f"{name} must be at least {least}, not {values[name]}")
    for name in ("timeout", "evaluator_timeout"):
        if not values[name] > 0:
            raise UsageError(f"{name} must be more than 0 seconds, not {values[name]:g}")
    is_set = any(source.evaluator_timeout is not None for source in sources[:-1])
    agent = replace(options.agent, max_reply_bytes=values.pop("max_reply_bytes"))
    judged_timeout = values["evaluator_timeout"] if is_set else DEFAULT_JUDGED_TIMEOUT
    return TrialLimits(**values, agent=agent, judged_timeout=judged_timeout)


class Listener(Protocol):
    """Follows a run: called in order, always from one thread, and with a trial only once it is safely stored."""

    def started(self, run: Run, planned: int, kept: int) -> None:
        """`planned` trials belong to the run, of which `kept` are stored already."""
        ...

    def trial_done(self, trial: TrialResult) -> None: ...

    def finished(self, run: Run, verdict: RunVerdict) -> None: ...


@runtime_checkable
class TrialListener(Protocol):
    """A listener that also hears of each trial when it begins."""

    def trial_started(self, case: Case, number: int) -> None:
        """`number` counts the trials of a case from 1."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker as a display shows it."""

    name: str
    under_way: int = 0
    done: int = 0
    failed: int = 0
    """Trials in which the agent gave no answer."""
    lost: int = 0
    """How often its process ended."""
    status: str = "ready"
    """`ready`, `lost`, or why it is refused."""


@runtime_checkable
class WorkerListener(Protocol):
    """A listener that follows workers too."""

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """There are workers; `states` says at any time how they are."""
        ...

    def notice(self, text: str) -> None:
        """Something happened that shows in no trial: a worker was lost or refused."""
        ...
