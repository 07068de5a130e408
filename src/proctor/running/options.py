"""Settings of a run: what the caller gives, what suites and configuration say, and the defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from proctor.base.json_data import object_or_text
from proctor.base.records import record
from proctor.base.reply_size import DEFAULT_BYTES
from proctor.cases.suite import Settings
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict

EMBEDDED = "embedded"
VARIABLE = "PROCTOR_JUDGE"
GIVEN = "--judge"

NO_SETTINGS = Settings()
DEFAULTS = Settings(
    repeat=1, parallel=8, timeout=300.0, evaluator_timeout=60.0, retries=2, max_reply_bytes=DEFAULT_BYTES
)
JUDGED_SECONDS = 300.0
"""Default timeout of evaluators that ask a judge: models think, and are asked again."""


@record
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
    score: bool = False
    """Whether evaluators that ask no judge run on the workers."""


@record
class RunOptions:
    """Everything about a run that is not in the suites."""

    given: Settings = NO_SETTINGS
    """Said on the command line or in the call; beats what suites say."""
    fallback: Settings = NO_SETTINGS
    """Said in the project's configuration or the environment; holds where suites say nothing."""
    fast: bool = False
    """Leave out whatever needs a language model."""
    judge: Any = None
    """Who judges, whatever suites and their evaluators say."""
    usual_judge: Any = None
    """Who judges where neither the caller nor a suite says so."""
    budget_usd: float | None = None
    """What agents and judges may cost before no further trial is begun."""
    maxfail: int | None = None
    isolate: bool = False
    """Whether every trial has a process of its own."""
    keep_secrets: bool = False
    """Whether the store and reports keep secrets in answers, tool calls, prompts and errors as they are."""
    backoff: float = 0.5
    """Seconds before the first retry; doubled each time."""
    rate: float | None = None
    """Turns a second that each endpoint is sent at most."""
    cluster: ClusterOptions | None = None
    """Ask the agents on workers, which the run starts or finds."""


NO_OPTIONS = RunOptions()


@record
class Limits:
    """The settings in force for one suite or case."""

    repeat: int
    parallel: int
    timeout: float
    evaluator_timeout: float
    retries: int
    max_reply_bytes: int = DEFAULT_BYTES
    judged_timeout: float = JUDGED_SECONDS
    """The evaluator timeout of those that ask a judge; waiting for the judge to be free does not count."""


@record
class Choice:
    """Who judges, and who says so."""

    judge: Any
    origin: str
    path: Path | None = None
    """The suite's file, where that is what says so."""


def written_judge(judge: Any, origin: str) -> Any:
    """A judge as it is named where only text can be: a name, or an object in JSON."""
    return object_or_text(judge, f"{origin}: the judge")


class Listener(Protocol):
    """Told of everything in order, always from one thread, and of a trial only once it is safely kept."""

    def started(self, run: Run, planned: int, kept: int) -> None:
        """`planned` trials are to be made, of which `kept` are there already."""
        ...

    def trial_done(self, trial: TrialResult) -> None: ...

    def finished(self, run: Run, verdict: RunVerdict) -> None: ...


@record
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
    """A listener that is told of workers too."""

    def workers(self, states: Callable[[], Sequence[WorkerState]]) -> None:
        """There are workers; `states` says at any time how they are."""
        ...

    def notice(self, text: str) -> None:
        """Something happened that no trial tells of: a worker was lost or refused."""
        ...
