"""What is in force for each agent.yaml: every setting of its model and its execution, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.cases.formats.environment import conceal
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.formats.holodeck_config import ConfigFile, config_files
from proctor.cases.formats.holodeck_execution import DEFAULT, DEFAULTS, execution_of
from proctor.cases.model import Suite
from proctor.cli.configuration import Configuration
from proctor.errors import InvalidSuite
from proctor.plain import Json, plain

MODEL_KEYS = ("provider", "name", "endpoint", "api_key", "api_version", "temperature", "top_p", "max_tokens")
_OWN_NAMES = {"llm_timeout": "timeout"}
"""Settings that Proctor's own configuration can say too, where HoloDeck's does not."""


def describe_agents(suites: list[Suite], configuration: Configuration) -> dict[str, dict[str, dict[str, Json]]]:
    """By suite: each key with its value, secrets as the variables that hold them, and its origin."""
    return {suite.name: _backend(suite) | _model(suite) | _execution(suite, configuration) for suite in suites}


def _backend(suite: Suite) -> dict[str, dict[str, Json]]:
    """Who would run the agent; an agent that is code or elsewhere has no backend, nor has one that cannot be read."""
    from proctor.declarative.choosing import backend_for
    from proctor.declarative.reading import describes_agent

    if suite.agent is not None or not describes_agent(suite):
        return {}
    try:
        _, backend = backend_for(suite)
    except InvalidSuite:
        return {}
    return {"backend": {"value": backend.name, "origin": "model.provider, and what is installed"}}


def _model(suite: Suite) -> dict[str, dict[str, Json]]:
    from proctor.declarative.reading_model import MAX_TOKENS, TEMPERATURE

    kept: Any = suite.extra.get(EXTENSION) or {}
    block = kept.get("model")
    if not isinstance(block, Mapping):
        return {}
    usual = {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS}
    files = config_files(suite.base)[0] if suite.base is not None else []
    layers: list[tuple[str, Mapping[str, Json]]] = [(str(suite.path), block)]
    layers += [(str(file.path), _provider_block(file, block.get("provider"))) for file in files]
    layers.append((DEFAULT, usual))
    found: dict[str, dict[str, Json]] = {}
    for key in MODEL_KEYS:
        layer = next((layer for layer in layers if key in layer[1]), None)
        if layer is not None:
            found[f"model.{key}"] = {"value": conceal(key, plain(layer[1][key])), "origin": layer[0]}
    return found


def _provider_block(file: ConfigFile, provider: Json) -> Mapping[str, Json]:
    from proctor.cases.formats.holodeck_config import provider_defaults

    return provider_defaults([file])({"provider": provider})


def _execution(suite: Suite, configuration: Configuration) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    settings = execution_of(suite)
    for key in DEFAULTS:
        setting = settings[key]
        value, origin = setting.value, setting.origin
        ours = _OWN_NAMES.get(key, "")
        if origin == DEFAULT and ours in configuration.values:
            value, origin = configuration.values[ours], configuration.origins[ours]
        found[f"execution.{key}"] = {"value": value, "origin": origin}
    return found
