"""What only Claude Code can do for an agent: its own tools, permissions, subagents, settings and ways to log in.

An `agent.yaml` turns these on in the block `claude` and with `model.auth_provider`. The Claude Agent SDK gets them as
they are. No other backend has them, so an agent that uses one of them needs the SDK (`claude_code_keys`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.base.positions import Pointer
from proctor.compat.holodeck.agent_spec import Problems
from proctor.compat.holodeck.enums import AuthProvider, PermissionMode
from proctor.compat.holodeck.models import AgentDescription, ClaudeConfig, LLMProvider, SubagentSpec

_OWN_TOOL = re.compile(r"(?P<name>[A-Z][A-Za-z]+)(\(.*\))?", re.DOTALL)
"""A tool of Claude Code, with or without a rule: `Read`, `Bash(git log:*)`."""
SUBAGENT_TOOLS = ("Agent", "Task")
"""The tool that starts a subagent: its name, and the one of older versions."""
PERMISSION_MODES = {
    PermissionMode.manual: "default",
    PermissionMode.acceptEdits: "acceptEdits",
    PermissionMode.acceptAll: "bypassPermissions",
}
"""The SDK's word for each mode."""


@dataclass(frozen=True, slots=True)
class ClaudeCodeSpec:
    """What Claude Code is started with."""

    folder: Path
    """Where it runs."""
    tools: tuple[str, ...] = ()
    """Its own tools that the agent has; all others are turned off."""
    rules: tuple[str, ...] = ()
    """Its own tools that the agent may use without asking, such as `Bash(git log:*)`."""
    denied: tuple[str, ...] = ()
    """Rules for what it must not do, such as `Bash(rm -rf:*)`."""
    permission_mode: str | None = None
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    setting_sources: tuple[str, ...] = ()
    max_budget_usd: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def own_tool(name: str) -> str | None:
    """The tool of Claude Code that a name or rule is about; None if it is not one."""
    match = _OWN_TOOL.fullmatch(name)
    return None if match is None else match["name"]


def claude_code_keys(agent: AgentDescription) -> Iterator[Pointer]:
    """The keys that need Claude Code, as far as the file turns them on."""
    auth = agent.model.auth_provider
    if auth not in (None, AuthProvider.api_key) and agent.model.provider == "anthropic":
        yield "model", "auth_provider"
    block = agent.claude
    if block is None:
        return
    requested = {
        "bash": block.bash is not None and block.bash.enabled,
        "file_system": block.file_system is not None and any(block.file_system.model_dump().values()),
        "web_search": block.web_search,
        "agents": bool(block.agents),
        "setting_sources": bool(block.setting_sources),
        "allowed_tools": any(own_tool(name) for name in block.allowed_tools or ()),
    }
    yield from (("claude", name) for name, is_requested in requested.items() if is_requested)


def claude_code_spec(agent: AgentDescription, base: Path, problems: Problems) -> ClaudeCodeSpec:
    """What the agent needs of Claude Code; `base` is the folder of its file."""
    block = agent.claude or ClaudeConfig()
    rules = _rules(block)
    excluded = block.bash.excluded_commands if block.bash is not None else ()
    agents = {name: _subagent(spec, ("claude", "agents", name), base, problems) for name, spec in _agents(block)}
    tools = [own_tool(rule) or rule for rule in rules] + ([*SUBAGENT_TOOLS] if agents else [])
    tools += [own for spec in agents.values() for tool in spec["tools"] or () if (own := own_tool(tool))]
    scrub = {} if block.disable_subprocess_env_scrub else {"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1"}
    return ClaudeCodeSpec(
        folder=_folder(block, base, problems),
        tools=tuple(dict.fromkeys(tools)),
        rules=tuple(rules),
        denied=tuple(f"Bash({command}:*)" for command in excluded),
        permission_mode=None if agent.claude is None else PERMISSION_MODES[block.permission_mode],
        agents=agents,
        setting_sources=tuple(block.setting_sources or ()),
        max_budget_usd=block.max_budget_usd,
        environment={**scrub, **_login(agent.model, problems)},
    )


def _rules(block: ClaudeConfig) -> list[str]:
    """The tools of Claude Code that the file turns on."""
    files = block.file_system
    by_key = {
        ("Bash",): block.bash is not None and block.bash.enabled,
        ("Read", "Glob", "Grep"): files is not None and files.read,
        ("Write",): files is not None and files.write,
        ("Edit",): files is not None and files.edit,
        ("WebSearch",): block.web_search,
    }
    rules = [tool for tools, is_on in by_key.items() if is_on for tool in tools]
    return [*rules, *(name for name in block.allowed_tools or () if own_tool(name) and name not in rules)]


def _agents(block: ClaudeConfig) -> Iterator[tuple[str, SubagentSpec]]:
    yield from (block.agents or {}).items()


def _subagent(spec: SubagentSpec, place: Pointer, base: Path, problems: Problems) -> dict[str, Any]:
    prompt = spec.prompt
    if spec.prompt_file is not None:
        try:
            prompt = (base / spec.prompt_file).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            problems.add((*place, "prompt_file"), f"names {spec.prompt_file}, which cannot be read: {error}")
    return {"description": spec.description, "prompt": prompt or "", "tools": spec.tools, "model": spec.model}


def _folder(block: ClaudeConfig, base: Path, problems: Problems) -> Path:
    folder = base / (block.working_directory or "")
    if not folder.is_dir():
        problems.add(("claude", "working_directory"), f"names {block.working_directory}, which is not a folder")
    return folder


@dataclass(frozen=True, slots=True)
class _Login:
    """The variables of a way to log in: those to set, and of each group one that must be set already."""

    constants: Mapping[str, str]
    groups: tuple[tuple[str, ...], ...]
    hint: str = ""


_LOGINS = {
    AuthProvider.oauth_token: _Login({}, (("CLAUDE_CODE_OAUTH_TOKEN",),), "; `claude setup-token` makes one"),
    AuthProvider.custom: _Login({}, (("ANTHROPIC_AUTH_TOKEN",),)),
    AuthProvider.bedrock: _Login({"CLAUDE_CODE_USE_BEDROCK": "1"}, (("AWS_REGION", "AWS_DEFAULT_REGION"),)),
    AuthProvider.vertex: _Login(
        {"CLAUDE_CODE_USE_VERTEX": "1"},
        (
            ("CLOUD_ML_REGION",),
            (
                "ANTHROPIC_VERTEX_PROJECT_ID",
                "GCLOUD_PROJECT",
                "GOOGLE_CLOUD_PROJECT",
                "GOOGLE_APPLICATION_CREDENTIALS",
            ),
        ),
    ),
    AuthProvider.foundry: _Login(
        {"CLAUDE_CODE_USE_FOUNDRY": "1"}, (("ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"),)
    ),
}


def _login(model: LLMProvider, problems: Problems) -> dict[str, str]:
    """The variables with which Claude Code logs in; an API key must not take precedence over them."""
    login = None if model.auth_provider is None else _LOGINS.get(model.auth_provider)
    if login is None:
        return {}
    environment = {"ANTHROPIC_API_KEY": "", **login.constants}
    for group in login.groups:
        name = next((name for name in group if os.environ.get(name)), None)
        if name is None:
            message = f"is {model.auth_provider}, which needs a variable: set {' or '.join(group)}{login.hint}"
            problems.add(("model", "auth_provider"), message)
        else:
            environment[name] = os.environ[name]
    return environment
