"""What a format may add to the running of its suites, so that the engine and the commands know no format by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from proctor.agents.agent import BaseAgent
from proctor.base.json_data import Json
from proctor.cases.files import FileSettings
from proctor.cases.formats import format_named
from proctor.cases.suite import Case, Suite
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict
from proctor.running.settings import RunOptions

DOWNLOADS = ".proctor/files"


@dataclass(frozen=True, slots=True)
class Kept:
    """What was written after a run, and why something was not."""

    files: tuple[Path, ...] = ()
    failures: tuple[str, ...] = ()


KeepRecords = Callable[[Run, RunVerdict, Path], Kept]
"""Writes what a format keeps of a finished run into the folder of the store."""


class SuiteHooks:
    """Does what is right for a suite whose format adds nothing; a format's own class overrides what it needs."""

    def describes_agent(self, suite: Suite) -> bool:
        """Whether the suite's own file says what its agent is made of."""
        return False

    def described_agent(self, suite: Suite, *, load: bool = True) -> BaseAgent:
        """The agent that the file describes; raises `InvalidSuite`. Without `load` it can only be checked, not run."""
        raise NotImplementedError(f"the format {suite.format!r} describes no agents")

    def env_files(self, suite: Suite) -> list[Path]:
        """Files of variables that hold while the suite is run, the more particular one first."""
        return []

    def goes_on_after_failed_turns(self, case: Case) -> bool:
        """Whether the turns after one that failed are still sent; if not, a failed turn ends its conversation."""
        return False

    def outcome_unscored(self) -> Outcome:
        """The outcome of a case that was answered and that nothing scores."""
        return Outcome.ERROR

    def file_settings(self, suite: Suite) -> FileSettings:
        """How files attached to turns are read and where downloads are kept."""
        return FileSettings(cache=(suite.base or Path.cwd()) / DOWNLOADS)

    def verbosity(self, suite: Suite) -> Literal["quiet", "normal", "verbose"] | None:
        """How much the suite's file wants told; `None` where it cannot say."""
        return None

    def records(self, suites: Sequence[Suite], options: RunOptions) -> KeepRecords | None:
        """Called before a run with the suites of this format, for what is to be written after it."""
        return None

    def settings_in_force(
        self, suite: Suite, values: Mapping[str, Any], origins: Mapping[str, str]
    ) -> dict[str, dict[str, Json]] | None:
        """For `proctor doctor`: each setting of the file with its `value` and `origin`; given is the project's own."""
        return None


def hooks_of(suite: Suite) -> SuiteHooks:
    """The hooks that the suite names, or those that add nothing."""
    return _hooks(suite.hooks)


def agent_hint(suite: Suite) -> str:
    """How to name an agent in a file of this format, as the middle of a sentence."""
    known = format_named(suite.format)
    return "" if known is None else known.agent_hint


@functools.cache
def _hooks(reference: str) -> SuiteHooks:
    if not reference:
        return SuiteHooks()
    module, _, name = reference.partition(":")
    made: SuiteHooks = getattr(importlib.import_module(module), name)()
    return made
