"""Look up what an agent's description names: models and their keys, instructions, tools, servers and schemas.

All problems are found before the agent runs. Each has its place in the description; the caller knows the file and line
(`Suite.located`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.documents import Document, did_you_mean
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.fingerprints import source_fingerprint
from proctor.base.installation import pip_command
from proctor.base.json_data import Json, fingerprint, to_json
from proctor.base.source import parse, read_text
from proctor.base.yaml_source import parse_yaml
from proctor.cases.validation import validate
from proctor.compat.holodeck.agent_spec import (
    AgentSpec,
    FunctionSpec,
    Problems,
    StoreSpec,
    VendorOptions,
    missing_key,
    missing_requirement,
    model_spec,
    tool_name,
)
from proctor.compat.holodeck.backend_choice import CLAUDE, PYDANTIC_AI, BackendChoice, choose_backend
from proctor.compat.holodeck.claude_code import ClaudeCodeSpec, claude_code_keys, claude_code_spec, own_tool
from proctor.compat.holodeck.enums import AuthProvider
from proctor.compat.holodeck.models import AgentDescription, ClaudeConfig, OpenAIConfig, VectorstoreTool, VendorConfig
from proctor.compat.holodeck.passages import searchable_files
from proctor.compat.holodeck.tool_reader import ToolReader, schema_problem
from proctor.judging.providers import ModelSpec

DEFAULT_MAX_TURNS = 20
"""HoloDeck's default of `max_turns`."""
CLAUDE_BLOCK_PROVIDERS = frozenset({"anthropic", "ollama", "bedrock"})
OPENAI_BLOCK_PROVIDERS = frozenset({"openai", "openai-chat", "openai-responses", "azure", "azure-responses"})
"""The providers whose models the blocks `claude` and `openai` configure."""


def read_agent(data: Json, base: Path | None = None, *, load: bool = True) -> tuple[AgentSpec, BackendChoice]:
    """The agent that `data` describes and the backend that runs it; raises `InvalidSuite` with all problems.

    Relative paths start from `base`. Without `load`, Python functions are located but not loaded.
    """
    document = Document(Path("agent.yaml"), "", data, lambda pointer: None)
    description = validate(AgentDescription, data, document)
    if description is None:
        raise InvalidSuite([replace(problem, path=None) for problem in document.problems])
    reader = _AgentReader(description, base or Path.cwd(), load)
    spec = reader.read(data)
    if reader.problems.items or spec is None:
        raise InvalidSuite(reader.problems.items)
    return spec, reader.backend


class _AgentReader:
    """Reads one description and collects its problems."""

    def __init__(self, agent: AgentDescription, base: Path, load: bool) -> None:
        self.agent = agent
        self.base = base
        self.load = load
        self.problems = Problems()
        self.backend = choose_backend(agent)

    def read(self, data: Json) -> AgentSpec | None:
        agent, problems = self.agent, self.problems
        if self.backend.problem:
            problems.add(("backend",), self.backend.problem)
        model = model_spec(agent.model, ("model",), problems, is_agent=True)
        if model is not None and (missing := self._missing(model)):
            problems.add(("model",), f"cannot be used: {missing}")
        embedder = None
        if agent.embedding_provider is not None:
            embedder = model_spec(agent.embedding_provider, ("embedding_provider",), problems, generates_text=False)
            if not any(isinstance(tool, VectorstoreTool) for tool in agent.tools or ()):
                message = "is not used: there is no tool of type vectorstore"
                problems.add(("embedding_provider",), message)
        instructions = self._instructions()
        tools = ToolReader(problems, self.base, model, embedder, self.load)
        for index, tool in enumerate(agent.tools or ()):
            tools.read(tool, ("tools", index))
        for index, server in enumerate(agent.mcp_servers):
            tools.read_server(server, ("mcp_servers", index), server.folder)
        schema = self._response_schema()
        claude_code = None
        if self.backend.name == CLAUDE:
            claude_code = claude_code_spec(agent, self.base, problems)
        for place in () if claude_code is not None else claude_code_keys(agent):
            problems.add(place, _needs_claude_code(agent))
        vendor_options = VendorOptions() if model is None else self._vendor_options(model, tool_names(tools))
        if model is None or instructions is None or problems.items:
            return None
        return AgentSpec(
            agent.name,
            model,
            instructions,
            tuple(tools.tools),
            tuple(tools.servers),
            schema,
            claude_code,
            vendor_options,
            _fingerprint(data, model, instructions, schema, tools, claude_code),
        )

    def _missing(self, model: ModelSpec) -> str | None:
        """What is missing to call the model; an SDK does not need our model library."""
        if self.agent.model.auth_provider not in (None, AuthProvider.api_key) and model.provider == "anthropic":
            return None
        return missing_requirement(model) if self.backend.name == PYDANTIC_AI else missing_key(model)

    def _instructions(self) -> str | None:
        instructions = self.agent.instructions
        if instructions.file is None:
            return instructions.inline
        try:
            text = Path(self.base, instructions.file).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            message = f"names {instructions.file}, which cannot be read: {error}"
            self.problems.add(("instructions", "file"), message)
            return None
        try:
            _, body = split_front_matter(self.base / instructions.file, text)
        except InvalidSuite as error:
            self.problems.items.extend(error.problems)
            return None
        if not body.strip():
            self.problems.add(("instructions", "file"), f"names {instructions.file}, which is empty")
        return body

    def _response_schema(self) -> Mapping[str, Json] | None:
        schema = self.agent.response_format
        if isinstance(schema, str):
            try:
                schema = parse(self.base / schema, read_text(self.base / schema))
            except InvalidSuite as error:
                self.problems.items.extend(error.problems)
                return None
        if schema is None:
            return None
        if not isinstance(schema, dict) or (schema and schema.get("type") != "object"):
            message = "must be the JSON Schema of an object, or a file with one"
            self.problems.add(("response_format",), message)
            return None
        reason = schema_problem(schema)
        if reason is not None:
            self.problems.add(("response_format",), f"is not a JSON Schema: {reason}")
            return None
        return schema or None

    def _vendor_options(self, model: ModelSpec, tools: Sequence[str]) -> VendorOptions:
        """The options in the block of the model's vendor; a block of another vendor is a problem."""
        block_name = "claude" if model.provider in CLAUDE_BLOCK_PROVIDERS else "openai"
        has_block = model.provider in CLAUDE_BLOCK_PROVIDERS | OPENAI_BLOCK_PROVIDERS
        options = VendorOptions(DEFAULT_MAX_TURNS, block_name) if has_block else VendorOptions()
        blocks = (
            ("claude", self.agent.claude, CLAUDE_BLOCK_PROVIDERS),
            ("openai", self.agent.openai, OPENAI_BLOCK_PROVIDERS),
        )
        for key, block, providers in blocks:
            if block is None:
                continue
            if model.provider not in providers:
                self.problems.add((key,), f"does not apply to models of {model.provider}")
                continue
            options = vendor_options(block, key)
            if not self.problems.items:
                self._check_permissions(key, options, tools)
        return options

    def _check_permissions(self, key: str, options: VendorOptions, tools: Sequence[str]) -> None:
        """Report allowed tools that do not exist, and disallowed ones that look like a typo."""
        for name in options.allowed_tools or ():
            if not _has_tool(name, tools) and not (key == "claude" and own_tool(name)):
                message = f"allows {name!r}, which the agent does not have{did_you_mean(name, tools)}"
                self.problems.add((key,), message)
        for name in options.disallowed_tools:
            suggestion = "" if _has_tool(name, tools) else did_you_mean(name, tools)
            if suggestion:
                self.problems.add((key,), f"disallows {name!r}, which the agent does not have{suggestion}")


def _needs_claude_code(agent: AgentDescription) -> str:
    """Why a key that needs Claude Code cannot be used."""
    if agent.backend is not None:
        return f"needs Claude Code, which {agent.backend} does not have; remove 'backend'"
    if agent.model.provider not in CLAUDE_BLOCK_PROVIDERS:
        return f"needs Claude Code, which does not run models of {agent.model.provider}"
    return f"needs Claude Code: {pip_command(CLAUDE)}"


def vendor_options(block: VendorConfig, name: str) -> VendorOptions:
    """The options of a vendor's block, as the builders need them."""
    allowed, denied, thinking = None, list(block.disallowed_tools or ()), None
    if isinstance(block, ClaudeConfig):
        allowed = _allowed_tools(block)
        if block.extended_thinking is not None and block.extended_thinking.enabled:
            thinking = block.extended_thinking.budget_tokens
    elif isinstance(block, OpenAIConfig) and block.permissions is not None:
        allowed = block.permissions.allowed_tools
        denied += block.permissions.disallowed_tools or ()
    return VendorOptions(
        max_turns=block.max_turns or DEFAULT_MAX_TURNS,
        block=name,
        effort=block.effort,
        thinking_tokens=thinking,
        fallback_model=block.fallback_model,
        allowed_tools=None if allowed is None else tuple(allowed),
        disallowed_tools=tuple(denied),
    )


def _allowed_tools(block: ClaudeConfig) -> list[str] | None:
    """The allowed tools of the file; a list with nothing but tools of Claude Code does not restrict them."""
    if not block.allowed_tools:
        return block.allowed_tools
    return [name for name in block.allowed_tools if not own_tool(name)] or None


def tool_names(tools: ToolReader) -> list[str]:
    """The names under which permissions may list tools: those in the file and those that the model sees."""
    names = [name for spec in tools.tools for name in (spec.name, tool_name(spec))]
    return [*names, *(name for server in tools.servers for name in (server.name, *server.prefixes))]


def _has_tool(name: str, tools: Sequence[str]) -> bool:
    """Whether the agent has a tool of this name; of a server's tools, only the prefix is known before it runs."""
    return name in tools or name.startswith(tuple(begin for begin in tools if begin.endswith("__")))


def _fingerprint(
    data: Json,
    model: ModelSpec,
    instructions: str,
    schema: Json,
    tools: ToolReader,
    claude_code: ClaudeCodeSpec | None,
) -> str:
    """Changes with everything that affects the agent's behavior; of keys, only their variable is included."""
    parts: list[Any] = [to_json(data), instructions, schema]
    if claude_code is not None and claude_code.agents:
        parts.append(to_json(claude_code.agents))  # their prompts may be in files
    parts.append([model.name, model.base_url, model.temperature, model.top_p, model.max_tokens])
    parts += [source_fingerprint(spec.function) for spec in tools.tools if isinstance(spec, FunctionSpec)]
    parts += [_files_digest(spec.source) for spec in tools.tools if isinstance(spec, StoreSpec)]
    parts += [[server.name, server.command, list(server.args), server.url] for server in tools.servers]
    return fingerprint(*parts)


def _files_digest(source: Path) -> str:
    content = hashlib.blake2b(digest_size=12)
    for path in searchable_files(source):
        content.update(path.name.encode("utf-8", "replace"))
        content.update(path.read_bytes())
    return content.hexdigest()


FRONT_MATTER_LINE = "---"


def split_front_matter(path: Path, text: str) -> tuple[Mapping[str, Json], str]:
    """Split a Markdown file into its front matter and the text.

    Raises `InvalidSuite` for invalid front matter, so that no text is lost.
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != FRONT_MATTER_LINE:
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == FRONT_MATTER_LINE), None)
    if end is None:
        raise InvalidSuite([Problem("starts with --- but has no closing ---; add one after the front matter", path, 1)])
    return _parse_front_matter(path, "".join(lines[1:end])), "".join(lines[end + 1 :]).lstrip("\n")


def _parse_front_matter(path: Path, text: str) -> Mapping[str, Json]:
    """The front matter as data."""
    try:
        data, _ = parse_yaml(path, text)
    except InvalidSuite as error:
        first = error.problems[0]
        line = None if first.line is None else first.line + 1
        raise InvalidSuite(
            [Problem(f"has front matter (between --- and ---) that {first.message}", path, line)]
        ) from None
    if data is not None and not isinstance(data, dict):
        raise InvalidSuite(
            [Problem("has text between --- and --- at the start, where only YAML keys are allowed", path, 1)]
        )
    return data or {}
