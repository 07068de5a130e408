"""How a run is to be made: what the caller said, what files say, and what holds when nobody says anything.

Who wants to know how a run goes: the terminal, a progress bar, a test.

What a run was made with; nothing that names a person, a machine or a secret.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Protocol

from proctor.base.errors import UsageError
from proctor.base.records import record
from proctor.cases.suite import Case, Settings, Suite
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.version import __version__

UNSAID = Settings()
DEFAULTS = Settings(repeat=1, parallel=8, timeout=300.0, evaluator_timeout=60.0, retries=2)
JUDGED_SECONDS = 300.0
"""What an evaluator may take that asks a judge, where nobody says how long: models think, and are asked again."""


@record
class RunOptions:
    """Everything about a run that is not in the suites."""

    given: Settings = UNSAID
    """Said on the command line or in the call; beats what suites say."""
    fallback: Settings = UNSAID
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
    keep_secrets: bool = False
    """Whether the store and reports keep secrets in answers, tool calls, prompts and errors as they are."""
    backoff: float = 0.5
    """Seconds before the first retry; doubled each time."""


@record
class Limits:
    """The settings in force for one suite or case."""

    repeat: int
    parallel: int
    timeout: float
    evaluator_timeout: float
    retries: int
    judged_timeout: float = JUDGED_SECONDS
    """The evaluator timeout of those that ask a judge; waiting for the judge to be free does not count."""


def limits_of(options: RunOptions, suite: Suite, case: Case | None = None) -> Limits:
    """The first who says something wins: caller, case, suite, configuration, default."""
    own = UNSAID if case is None else Settings(repeat=case.repeat, timeout=case.timeout)
    sources = (options.given, own, suite.settings, options.fallback, DEFAULTS)
    said = {f.name: next(v for s in sources if (v := getattr(s, f.name)) is not None) for f in fields(Settings)}
    for name, least in (("repeat", 1), ("parallel", 1), ("retries", 0)):
        if said[name] < least:
            raise UsageError(f"{name} must be at least {least}, not {said[name]}")
    for name in ("timeout", "evaluator_timeout"):
        if not said[name] > 0:
            raise UsageError(f"{name} must be more than 0 seconds, not {said[name]:g}")
    own_wish = any(source.evaluator_timeout is not None for source in sources[:-1])
    return Limits(**said, judged_timeout=said["evaluator_timeout"] if own_wish else JUDGED_SECONDS)


class Listener(Protocol):
    """Told of everything in order, always from one thread, and of a trial only once it is safely kept."""

    def started(self, run: Run, planned: int, kept: int) -> None:
        """`planned` trials are to be made, of which `kept` are there already."""
        ...

    def trial_done(self, trial: TrialResult) -> None: ...

    def finished(self, run: Run, verdict: RunVerdict) -> None: ...


def environment() -> Mapping[str, str]:
    return {
        "proctor_version": __version__,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "os": f"{os.uname().sysname} {os.uname().machine}" if hasattr(os, "uname") else sys.platform,
    }
