"""Which backend runs an agent that a file describes: chosen by `model.provider`, as HoloDeck does.

The Claude Agent SDK runs models of Anthropic, the OpenAI Agents SDK those of OpenAI and Azure, and Pydantic AI all
others, those whose SDK is not installed, and those of which the file asks something that the SDK has no way to do. An
SDK is looked up by its distribution and not by its module: a project may have a package called `agents` of its own. The
key `backend` of the file pins the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

from proctor.compat.holodeck.models import (
    MAX_TOKENS,
    TEMPERATURE,
    AgentDescription,
    Backend,
    ClaudeConfig,
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
        return BackendChoice(agent.backend, "backend", _problem_of_pinned(agent, agent.backend))
    provider = agent.model.provider
    wanted = CLAUDE if provider in CLAUDE_PROVIDERS else OPENAI if provider in OPENAI_PROVIDERS else PYDANTIC_AI
    if wanted == PYDANTIC_AI:
        return BackendChoice(wanted, "model.provider")
    if not is_installed(wanted):
        return BackendChoice(PYDANTIC_AI, f"model.provider; {wanted} is not installed")
    if unsupported := unsupported_keys(agent, wanted):
        return BackendChoice(PYDANTIC_AI, f"model.provider; {wanted} cannot do {', '.join(unsupported)}")
    return BackendChoice(wanted, "model.provider, and what is installed")


def _problem_of_pinned(agent: AgentDescription, backend: Backend) -> str:
    providers = {CLAUDE: CLAUDE_PROVIDERS | {"ollama"}, OPENAI: OPENAI_PROVIDERS}.get(backend)
    if providers is not None and agent.model.provider not in providers:
        return f"is {backend}, which does not run models of {agent.model.provider}"
    if backend != PYDANTIC_AI and not is_installed(backend):
        return f"is {backend}, which is not installed: pip install {backend}"
    unsupported = unsupported_keys(agent, backend)
    return f"is {backend}, which cannot do {', '.join(unsupported)}" if unsupported else ""


def is_installed(distribution: str) -> bool:
    """Whether a distribution is installed, whatever modules of that name the project has."""
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def unsupported_keys(agent: AgentDescription, backend: Backend) -> list[str]:
    """What the file asks for and the backend has no way to do."""
    if backend == PYDANTIC_AI:
        return []
    tools = [*(agent.tools or ()), *agent.mcp_servers]
    wishes = {"defer_loading": any(tool.defer_loading for tool in tools)}
    if backend == CLAUDE:
        model = agent.model
        wishes["model.temperature"] = model.temperature not in (None, TEMPERATURE)
        wishes["model.top_p"] = model.top_p is not None
        wishes["model.max_tokens"] = model.max_tokens not in (None, MAX_TOKENS)
    else:
        vendor = agent.openai or OpenAIConfig()
        wishes["openai.max_turns"] = vendor.max_turns is not None
        wishes["openai.fallback_model"] = vendor.fallback_model is not None
    return [name for name, wished in wishes.items() if wished]


def vendor_block(agent: AgentDescription) -> ClaudeConfig | OpenAIConfig | None:
    """The block that is about the model's vendor."""
    return agent.claude or agent.openai
