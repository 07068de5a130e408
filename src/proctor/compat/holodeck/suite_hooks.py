"""What an `agent.yaml` adds to the running of its suite: its agent, its settings, and a record of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from proctor.agents.agent import BaseAgent
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json, plain
from proctor.cases.files import FileSettings
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.formats.holodeck.configuration import (
    DEFAULT,
    DEFAULTS,
    agent_env_files,
    config_files,
    execution_of,
    provider_defaults,
    resolve_execution,
)
from proctor.cases.formats.holodeck.test_cases import is_conversation
from proctor.cases.formats.holodeck.variables import conceal
from proctor.cases.suite import Case, Suite
from proctor.compat.holodeck.run_record import keep_records, recorders
from proctor.declared.agent_reader import describes_agent
from proctor.declared.declared_agent import backend_for, declared_agent
from proctor.declared.description import MAX_TOKENS, TEMPERATURE
from proctor.results.run import Outcome, Run
from proctor.results.verdict import RunVerdict
from proctor.running.settings import RunOptions
from proctor.running.suite_hooks import KeepRecords, Kept, SuiteHooks

MODEL_KEYS = ("provider", "name", "endpoint", "api_key", "api_version", "temperature", "top_p", "max_tokens")
_OWN_NAMES = {"llm_timeout": "timeout"}
"""Settings that Proctor's own configuration can say too, where HoloDeck's does not."""

Shown = dict[str, dict[str, Json]]
"""By setting: its `value` and its `origin`."""


class HoloDeckHooks(SuiteHooks):
    """The hooks of the format `holodeck`. What builds agents and writes records is imported when it is needed."""

    def describes_agent(self, suite: Suite) -> bool:
        return describes_agent(suite)

    def described_agent(self, suite: Suite, *, load: bool = True) -> BaseAgent:
        with environment_from(self.env_files(suite)):
            return declared_agent(suite, load=load)

    def env_files(self, suite: Suite) -> list[Path]:
        """Beside the agent.yaml, then in the working folder."""
        return agent_env_files(suite.base)

    def goes_on_after_failed_turns(self, case: Case) -> bool:
        return is_conversation(case)

    def outcome_unscored(self) -> Outcome:
        """A test without metrics is run and told of, and leaves the verdict to those that have some."""
        return Outcome.SKIPPED

    def file_settings(self, suite: Suite) -> FileSettings:
        """What `execution` says of files, in the agent.yaml and in the configuration around it."""
        base = suite.base or Path.cwd()
        own = _described(suite).get("execution")
        found, _ = resolve_execution(own or {}, str(suite.path), config_files(base)[0])
        cache = base / str(found["cache_dir"].value) if found["cache_enabled"].value else None
        return FileSettings(found["file_timeout"].value, found["download_timeout"].value, cache)

    def verbosity(self, suite: Suite) -> Literal["quiet", "normal", "verbose"] | None:
        with environment_from(self.env_files(suite)):
            settings = execution_of(suite)
        if settings["quiet"].value:
            return "quiet"
        return "verbose" if settings["verbose"].value else "normal"

    def records(self, suites: Sequence[Suite], options: RunOptions) -> KeepRecords | None:
        prepared = recorders(suites, options)

        def keep(run: Run, verdict: RunVerdict, store: Path) -> Kept:
            written, failures = keep_records(prepared, run, verdict, store)
            return Kept(tuple(written), tuple(failures))

        return keep

    def settings_in_force(self, suite: Suite, values: Mapping[str, Any], origins: Mapping[str, str]) -> Shown | None:
        """Backend, model and execution; a secret is shown as the variable that holds it."""
        with environment_from(self.env_files(suite)):
            return _backend(suite) | _model(suite) | _execution(suite, values, origins)


def _described(suite: Suite) -> Mapping[str, Any]:
    kept = suite.extra.get(EXTENSION)
    return kept if isinstance(kept, Mapping) else {}


def _backend(suite: Suite) -> Shown:
    """What would run the agent; an agent that is code or elsewhere has no backend, nor has one that cannot be read."""
    if suite.agent is not None or not describes_agent(suite):
        return {}
    try:
        _, backend = backend_for(suite)
    except InvalidSuite:
        return {}
    return {"backend": {"value": backend.name, "origin": "model.provider, and what is installed"}}


def _model(suite: Suite) -> Shown:
    block = _described(suite).get("model")
    if not isinstance(block, Mapping):
        return {}
    files = config_files(suite.base)[0] if suite.base is not None else []
    named = {"provider": block.get("provider")}
    layers: list[tuple[str, Mapping[str, Json]]] = [(str(suite.path), block)]
    layers += [(str(file.path), provider_defaults([file])(named)) for file in files]
    layers.append((DEFAULT, {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}))
    found: Shown = {}
    for key in MODEL_KEYS:
        layer = next((layer for layer in layers if key in layer[1]), None)
        if layer is not None:
            found[f"model.{key}"] = {"value": conceal(key, plain(layer[1][key])), "origin": layer[0]}
    return found


def _execution(suite: Suite, values: Mapping[str, Any], origins: Mapping[str, str]) -> Shown:
    found: Shown = {}
    settings = execution_of(suite)
    for key in DEFAULTS:
        value, origin = settings[key].value, settings[key].origin
        ours = _OWN_NAMES.get(key, "")
        if origin == DEFAULT and ours in values:
            value, origin = values[ours], origins[ours]
        found[f"execution.{key}"] = {"value": value, "origin": origin}
    return found
