"""Choose the backend that runs a described agent, by `model.provider`, as HoloDeck does.

The Claude Agent SDK runs Anthropic's models and the OpenAI Agents SDK those of OpenAI and Azure. Pydantic AI runs all
others. It also runs a model whose SDK is not installed, or whose SDK lacks something that the file uses. An SDK is
looked up by distribution, not by module, because a project may have its own package called `agents`. The key `backend`
in the file pins the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

from proctor.base.installation import pip_command
from proctor.compat.holodeck.claude_code import claude_code_keys
from proctor.compat.holodeck.models import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    AgentDescription,
    Backend,
    OpenAIConfig,
)

CLAUDE: Backend = "claude-agent-sdk"
OPENAI: Backend = "openai-agents"
PYDANTIC_AI: Backend = "pydantic-ai"

CLAUDE_PROVIDERS = frozenset({"anthropic"})
OPENAI_PROVIDERS = frozenset({"openai", "openai-chat", "openai-responses", "azure", "azure_openai", "azure-responses"})


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend, and why it was chosen."""

    name: Backend
    reason: str
    problem: str = ""
    """Why the backend that the file pins cannot run the agent."""


def choose_backend(agent: AgentDescription) -> BackendChoice:
    """The backend that runs the agent."""
    if agent.backend is not None:
        return BackendChoice(agent.backend, "backend", _pinned_problem(agent, agent.backend))
    provider = agent.model.provider
    needs_claude_code = any(claude_code_keys(agent))
    preferred = CLAUDE if provider in CLAUDE_PROVIDERS else OPENAI if provider in OPENAI_PROVIDERS else PYDANTIC_AI
    if needs_claude_code and provider in CLAUDE_PROVIDERS | {"ollama"} and is_installed(CLAUDE):
        keys = ", ".join(".".join(map(str, key)) for key in claude_code_keys(agent))
        return BackendChoice(CLAUDE, f"model.provider, and {keys}")
    if preferred == PYDANTIC_AI:
        return BackendChoice(preferred, "model.provider")
    if not is_installed(preferred):
        return BackendChoice(PYDANTIC_AI, f"model.provider; {preferred} is not installed")
    if unsupported := unsupported_keys(agent, preferred):
        return BackendChoice(PYDANTIC_AI, f"model.provider; {preferred} does not support {', '.join(unsupported)}")
    return BackendChoice(preferred, "model.provider, and the SDK is installed")


def _pinned_problem(agent: AgentDescription, backend: Backend) -> str:
    """Why a pinned backend cannot run the agent, or an empty string."""
    providers = {CLAUDE: CLAUDE_PROVIDERS | {"ollama"}, OPENAI: OPENAI_PROVIDERS}.get(backend)
    if providers is not None and agent.model.provider not in providers:
        return f"is {backend}, which does not run models of {agent.model.provider}"
    if backend != PYDANTIC_AI and not is_installed(backend):
        return f"is {backend}, which is not installed: {pip_command(backend)}"
    unsupported = unsupported_keys(agent, backend)
    return f"is {backend}, which does not support {', '.join(unsupported)}" if unsupported else ""


def is_installed(distribution: str) -> bool:
    """Whether a distribution is installed, whatever modules of that name the project has."""
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def unsupported_keys(agent: AgentDescription, backend: Backend) -> list[str]:
    """The keys that the file uses and the backend does not support."""
    if backend == PYDANTIC_AI:
        return []
    tools = [*(agent.tools or ()), *agent.mcp_servers]
    requested = {"defer_loading": any(tool.defer_loading for tool in tools)}
    if backend == CLAUDE:
        model = agent.model
        requested["model.temperature"] = model.temperature not in (None, DEFAULT_TEMPERATURE)
        requested["model.top_p"] = model.top_p is not None
        requested["model.max_tokens"] = model.max_tokens not in (None, DEFAULT_MAX_TOKENS)
    else:
        vendor = agent.openai or OpenAIConfig()
        requested["openai.fallback_model"] = vendor.fallback_model is not None
    return [name for name, is_requested in requested.items() if is_requested]
