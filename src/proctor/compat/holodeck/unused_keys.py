"""The keys of an agent's description that are accepted and have no effect on its tests, and why."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.base.positions import Pointer
from proctor.compat.holodeck.backend_choice import CLAUDE, BackendChoice, unsupported_keys
from proctor.compat.holodeck.models import AgentDescription, ClaudeConfig, VendorConfig

SERVING_KEYS = ("max_concurrent_sessions", "session_memory_estimate_mib")
SHARED_SETTINGS = {"user", "local"}
"""The settings of Claude Code that are not part of the project."""


def unused_keys(agent: AgentDescription, backend: BackendChoice) -> Iterator[tuple[Pointer, str]]:
    """Each such key of the file with the reason."""
    model = agent.model
    if model.auth_provider is not None and model.provider != "anthropic":
        yield ("model", "auth_provider"), f"has no effect on models of {model.provider}"
    if backend.name == CLAUDE:
        for key in unsupported_keys(agent, CLAUDE):
            if key.startswith("model."):
                yield tuple(key.split(".")), f"has no effect: {CLAUDE} does not support it"
    if agent.claude is not None:
        yield from _unused("claude", agent.claude, backend)
        yield from _unused_by_claude(agent.claude, backend)
    if agent.openai is not None:
        yield from _unused("openai", agent.openai, backend)
        if agent.openai.disable_subprocess_env_scrub:
            reason = "a server that Proctor starts sees only PATH, HOME and the like"
            yield ("openai", "disable_subprocess_env_scrub"), f"has no effect: {reason}"


def _unused(block: str, config: VendorConfig, backend: BackendChoice) -> Iterator[tuple[Pointer, str]]:
    for key in SERVING_KEYS:
        if getattr(config, key) is not None:
            yield (block, key), "has no effect on tests, only on an agent that is served"
    if config.disable_default_hooks:
        yield (block, "disable_default_hooks"), "has no effect: Proctor adds no hooks"
    if config.max_budget_usd is not None and backend.name != CLAUDE:
        yield (block, "max_budget_usd"), "is not enforced; limit the cost of the run with --budget"


def _unused_by_claude(config: ClaudeConfig, backend: BackendChoice) -> Iterator[tuple[Pointer, str]]:
    if config.bash is not None and config.bash.allow_unsafe:
        yield ("claude", "bash", "allow_unsafe"), "has no effect; name what must not run in 'excluded_commands'"
    if not SHARED_SETTINGS.isdisjoint(config.setting_sources or ()):
        reason = "reads settings of the person who runs the tests, so results may differ on another machine"
        yield ("claude", "setting_sources"), reason
    if backend.name == CLAUDE:
        return
    for key in ("permission_mode", "working_directory", "disable_subprocess_env_scrub"):
        if key in config.model_fields_set:
            yield ("claude", key), f"has no effect with {backend.name}, only with Claude Code"
