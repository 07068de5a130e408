"""Settings of a run, and which of them wins: the caller's, the suites' or the project's configuration.

`limits_for` holds the order of precedence. A plan calls it once per suite and case; everything else reads the
`TrialLimits` in the plan. `judging.choosing` decides who judges.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

from proctor.agents.trial_context import DEFAULT_SETTINGS, MAX_REPLY_BYTES, AgentSettings
from proctor.base.errors import UsageError
from proctor.cases.files.file_text import FileText
from proctor.cases.suite import AttachedFile, Case, Settings, Suite
from proctor.results.run import Run
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict

NO_SETTINGS = Settings()
DEFAULTS = Settings(
    repeat=1,
    parallel=64,
    timeout=300.0,
    evaluator_timeout=60.0,
    retries=2,
    retry_seconds=300.0,
    max_reply_bytes=MAX_REPLY_BYTES,
    side_effects=True,
)
DEFAULT_FIXED_PARALLEL = 8
DEFAULT_JUDGED_TIMEOUT = 300.0
"""Default timeout of evaluators that use a judge: a model is slow, and may be called more than once."""
BACKOFF_SECONDS = 0.5
"""Seconds before the first retry; doubled each time."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where the agents of a run run, if not in its own process."""

    workers: int = 0
    """Processes to start on this machine."""
    address: str = ""
    """The address of a running scheduler to use instead of starting workers."""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    upload: bool = False
    """Whether to send the files of the working folder to the workers."""
    allow_plain_tcp: bool = False
    """Whether a scheduler at a public address may be used without TLS."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Everything about a run that is not in the suites."""

    overrides: Settings = NO_SETTINGS
    """From the command line or the call; wins over the suites' own settings."""
    defaults: Settings = NO_SETTINGS
    """From the project's configuration or the environment; used if a suite sets nothing."""
    agent: AgentSettings = DEFAULT_SETTINGS
    """What code inside a trial may read; `max_reply_bytes` is set by `limits_for`."""
    fast: bool = False
    """Skip evaluators and simulated users that need a language model."""
    judge: Any = None
    """The judge to use, whatever suites and their evaluators name."""
    default_agent: Any = None
    """The agent of suites that name none, found from any folder."""
    default_judge: Any = None
    """The judge to use if neither the caller nor a suite names one."""
    budget_usd: float | None = None
    """US dollars that agents and judges may cost; no trial starts once they are spent."""
    maxfail: int | None = None
    """How many trials may fail before the run stops."""
    isolate: bool = False
    """Run every trial in its own process."""
    arm_venv: bool = False
    """Give each arm from git its own virtual environment, built from what its version requires."""
    keep_secrets: bool = False
    """Do not mask secrets in stored and reported answers, tool calls, prompts and errors."""
    live_output: bool = False
    """Show what agents and evaluators print while they run, and let them read from the terminal."""
    backoff: float = BACKOFF_SECONDS
    """Seconds before the first retry; doubled each time."""
    rate: float | None = None
    """The most turns per second to send to each endpoint."""
    hedge: bool = False
    """Ask again if the answer to a case with one turn takes much longer than others, and take the first answer."""
    cluster: ClusterOptions | None = None
    """Run the agents on workers."""
    read_file: Callable[[AttachedFile], FileText | Awaitable[FileText]] | None = None
    """Reads the files of turns, for every agent, instead of Proctor's own reader; raises `UnreadableFile`."""
    evaluators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Evaluators by title, each called instead of the one that suites name by this title; their scores always count."""


NO_OPTIONS = RunOptions()


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """The settings in force for one suite or case."""

    repeat: int
    parallel: int
    timeout: float
    evaluator_timeout: float
    retries: int
    retry_seconds: float
    side_effects: bool
    agent: AgentSettings = DEFAULT_SETTINGS
    """What code inside a trial may read."""
    fixed_parallel: int = DEFAULT_FIXED_PARALLEL
    """How many run in parallel where nothing finds out how many are good, such as processes and custom evaluators:
    `parallel` if it is set, else fewer than its default."""
    judged_timeout: float = DEFAULT_JUDGED_TIMEOUT
    """The timeout of evaluators that use a judge; waiting for a free judge does not count."""


def limits_for(options: RunOptions, suite: Suite, case: Case | None = None) -> TrialLimits:
    """The limits in force for a suite, or for one of its cases.

    The first that sets a limit wins: the caller, the case, the suite, the configuration, the default.
    """
    own = NO_SETTINGS if case is None else Settings(repeat=case.repeat, timeout=case.timeout)
    sources = (options.overrides, own, suite.settings, options.defaults, DEFAULTS)
    values = {f.name: next(v for s in sources if (v := getattr(s, f.name)) is not None) for f in fields(Settings)}
    for name, least in (("repeat", 1), ("parallel", 1), ("retries", 0), ("max_reply_bytes", 1)):
        if not isinstance(values[name], int):
            raise UsageError(f"{name} must be a whole number, not {values[name]!r}")
        if values[name] < least:
            raise UsageError(f"{name} must be at least {least}, not {values[name]}")
    for name in ("timeout", "evaluator_timeout", "retry_seconds"):
        if not isinstance(values[name], (int, float)):
            raise UsageError(f"{name} must be a number of seconds, not {values[name]!r}")
        if not values[name] > 0:
            raise UsageError(f"{name} must be more than 0 seconds, not {values[name]:g}")
    if not isinstance(values["side_effects"], bool):
        raise UsageError(f"side_effects must be true or false, not {values['side_effects']!r}")
    is_set = any(source.evaluator_timeout is not None for source in sources[:-1])
    is_parallel_set = any(source.parallel is not None for source in sources[:-1])
    fixed_parallel = values["parallel"] if is_parallel_set else DEFAULT_FIXED_PARALLEL
    agent = replace(options.agent, max_reply_bytes=values.pop("max_reply_bytes"))
    judged_timeout = values["evaluator_timeout"] if is_set else DEFAULT_JUDGED_TIMEOUT
    return TrialLimits(**values, agent=agent, fixed_parallel=fixed_parallel, judged_timeout=judged_timeout)


class Listener(Protocol):
    """Follows a run. Called in order, from one thread, and with a trial only once it is stored."""

    def started(self, run: Run, planned: int, stored: int) -> None:
        """The run starts: it has `planned` trials, of which `stored` are finished and in the store."""
        ...

    def trial_done(self, trial: Trial) -> None: ...

    def finished(self, run: Run, verdict: RunVerdict) -> None: ...


@runtime_checkable
class TrialListener(Protocol):
    """A listener that is also called when a trial starts."""

    def trial_started(self, case: Case, number: int) -> None:
        """`number` counts the trials of a case from 1."""
        ...


@runtime_checkable
class OutageListener(Protocol):
    """A listener that is also called when a provider goes down or is back."""

    def outage(self, *, is_down: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker as the terminal shows it."""

    name: str
    under_way: int = 0
    done: int = 0
    failed: int = 0
    """Trials in which the agent gave no answer."""
    lost: int = 0
    """How often its process ended."""
    status: str = "ready"
    """`ready`, `lost`, or why it is not used."""


@runtime_checkable
class WorkerListener(Protocol):
    """A listener that also follows workers."""

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """The run uses workers; `states` returns their current states."""
        ...

    def notice(self, text: str) -> None:
        """Show an event that belongs to no trial: a worker was lost or refused."""
        ...
