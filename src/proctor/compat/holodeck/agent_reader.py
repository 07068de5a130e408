"""Looks up what an agent's description names: its models and their keys, instructions, tools, servers and schemas.

Everything that is wrong is found before the agent is asked anything. Problems say where in the description they are;
the caller knows in which file that stands (`Suite.located`).
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
    missing_for,
    missing_key,
    model_spec,
    tool_name,
)
from proctor.compat.holodeck.backend_choice import PYDANTIC_AI, BackendChoice, choose_backend
from proctor.compat.holodeck.models import AgentDescription, ClaudeConfig, OpenAIConfig, VectorstoreTool, VendorConfig
from proctor.compat.holodeck.passages import files_of
from proctor.compat.holodeck.tool_reader import ToolReader, schema_problem
from proctor.judging.providers import ModelSpec

CLAUDE_BLOCK = frozenset({"anthropic", "ollama", "bedrock"})
OPENAI_BLOCK = frozenset({"openai", "openai-chat", "openai-responses", "azure", "azure-responses"})
"""The providers for whose models the blocks `claude` and `openai` have a meaning."""


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
    if reader.problems.found or spec is None:
        raise InvalidSuite(reader.problems.found)
    return spec, reader.backend


class _AgentReader:
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
        model = model_spec(agent.model, ("model",), problems)
        if model is not None and (missing := self._missing(model)):
            problems.add(("model",), f"cannot be asked: {missing}")
        embedder = None
        if agent.embedding_provider is not None:
            embedder = model_spec(agent.embedding_provider, ("embedding_provider",), problems, writes=False)
            if not any(isinstance(tool, VectorstoreTool) for tool in agent.tools or ()):
                wrong = "is of no use: no tool of type vectorstore searches anything"
                problems.add(("embedding_provider",), wrong)
        instructions = self._instructions()
        tools = ToolReader(problems, self.base, model, embedder, self.load)
        for index, tool in enumerate(agent.tools or ()):
            tools.read(tool, ("tools", index))
        for index, server in enumerate(agent.mcp_servers):
            tools.read_server(server, ("mcp_servers", index), server.folder)
        schema = self._response_schema()
        vendor_options = VendorOptions() if model is None else self._vendor_options(model, offered(tools))
        if model is None or instructions is None or problems.found:
            return None
        return AgentSpec(
            agent.name,
            model,
            instructions,
            tuple(tools.found),
            tuple(tools.servers),
            schema,
            vendor_options,
            _fingerprint(data, model, instructions, schema, tools),
        )

    def _missing(self, model: ModelSpec) -> str | None:
        """What has to be there before the model can be asked; an SDK asks without our model library."""
        return missing_for(model) if self.backend.name == PYDANTIC_AI else missing_key(model)

    def _instructions(self) -> str | None:
        given = self.agent.instructions
        if given.file is None:
            return given.inline
        try:
            text = Path(self.base, given.file).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            wrong = f"names {given.file}, which cannot be read: {error}"
            self.problems.add(("instructions", "file"), wrong)
            return None
        try:
            _, body = split_front_matter(self.base / given.file, text)
        except InvalidSuite as error:
            self.problems.found.extend(error.problems)
            return None
        if not body.strip():
            self.problems.add(("instructions", "file"), f"names {given.file}, which says nothing")
        return body

    def _response_schema(self) -> Mapping[str, Json] | None:
        given = self.agent.response_format
        if isinstance(given, str):
            try:
                given = parse(self.base / given, read_text(self.base / given))
            except InvalidSuite as error:
                self.problems.found.extend(error.problems)
                return None
        if given is None:
            return None
        if not isinstance(given, dict) or (given and given.get("type") != "object"):
            wrong = "must be the JSON Schema of an object, or a file with one"
            self.problems.add(("response_format",), wrong)
            return None
        reason = schema_problem(given)
        if reason is not None:
            self.problems.add(("response_format",), f"is not a JSON Schema: {reason}")
            return None
        return given or None

    def _vendor_options(self, model: ModelSpec, tools: Sequence[str]) -> VendorOptions:
        """What the block of the model's own vendor says; a block for another vendor is a mistake."""
        found = VendorOptions()
        blocks = (("claude", self.agent.claude, CLAUDE_BLOCK), ("openai", self.agent.openai, OPENAI_BLOCK))
        for key, block, providers in blocks:
            if block is None:
                continue
            if model.provider not in providers:
                self.problems.add((key,), f"has no meaning for a model of {model.provider}")
                continue
            for name, instead in UNUSED_KEYS.items():
                if getattr(block, name) is not None:
                    self.problems.add((key, name), f"is not used here; {instead}")
            found = vendor_options(block)
            if not self.problems.found:
                self._check_permissions(key, found, tools)
        return found

    def _check_permissions(self, key: str, options: VendorOptions, tools: Sequence[str]) -> None:
        """A tool that is not there cannot be allowed; forbidding one does no harm, unless another was meant."""
        for name in options.allowed_tools or ():
            if not _is_offered(name, tools):
                wrong = f"allows {name!r}, which the agent does not have{did_you_mean(name, tools)}"
                self.problems.add((key,), wrong)
        for name in options.disallowed_tools:
            meant = "" if _is_offered(name, tools) else did_you_mean(name, tools)
            if meant:
                self.problems.add((key,), f"disallows {name!r}, which the agent does not have{meant}")


UNUSED_KEYS = {
    "max_budget_usd": "limit what a whole run may cost with --budget instead",
    "permission_mode": "nobody is there to be asked in a test",
    "agents": "agents below this one are not built from a file; name one with 'agent' instead",
    "setting_sources": "settings of the person who runs the tests would change what is measured",
    "bash": "give the agent a tool of its own for that",
    "file_system": "give the agent a tool of its own for that",
    "web_search": "give the agent a tool of its own for that",
}
"""Keys of the blocks `claude` and `openai` that have no effect here, and what to do instead."""


def vendor_options(block: VendorConfig) -> VendorOptions:
    """What a vendor's block says, as the builders take it."""
    allowed, denied, thinking = None, list(block.disallowed_tools), None
    if isinstance(block, ClaudeConfig):
        allowed = block.allowed_tools
        if block.extended_thinking is not None and block.extended_thinking.enabled:
            thinking = block.extended_thinking.budget_tokens
    elif isinstance(block, OpenAIConfig) and block.permissions is not None:
        allowed = block.permissions.allowed_tools
        denied += block.permissions.disallowed_tools
    return VendorOptions(
        max_turns=block.max_turns,
        effort=block.effort,
        thinking_tokens=thinking,
        fallback_model=block.fallback_model,
        allowed_tools=None if allowed is None else tuple(allowed),
        disallowed_tools=tuple(denied),
    )


def offered(tools: ToolReader) -> list[str]:
    """The names under which permissions may speak of tools, as the file and as the model has them."""
    names = [name for spec in tools.found for name in (spec.name, tool_name(spec))]
    return [*names, *(name for server in tools.servers for name in (server.name, *server.prefixes))]


def _is_offered(name: str, tools: Sequence[str]) -> bool:
    """What a server offers is not known before it is asked, only how the names begin."""
    return name in tools or name.startswith(tuple(begin for begin in tools if begin.endswith("__")))


def _fingerprint(data: Json, model: ModelSpec, instructions: str, schema: Json, tools: ToolReader) -> str:
    """Changes with everything that makes the agent behave otherwise; keys are in it by their variable only."""
    parts: list[Any] = [to_json(data), instructions, schema]
    parts.append([model.name, model.base_url, model.temperature, model.top_p, model.max_tokens])
    parts += [source_fingerprint(spec.function) for spec in tools.found if isinstance(spec, FunctionSpec)]
    parts += [_digest(spec.source) for spec in tools.found if isinstance(spec, StoreSpec)]
    parts += [[server.name, server.command, list(server.args), server.url] for server in tools.servers]
    return fingerprint(*parts)


def _digest(source: Path) -> str:
    content = hashlib.blake2b(digest_size=12)
    for path in files_of(source):
        content.update(path.name.encode("utf-8", "replace"))
        content.update(path.read_bytes())
    return content.hexdigest()


DASHES = "---"


def split_front_matter(path: Path, text: str) -> tuple[Mapping[str, Json], str]:
    """The notes, and what the model is told; raises `InvalidSuite` for notes that are none, so that no text is lost."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != DASHES:
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == DASHES), None)
    if end is None:
        raise InvalidSuite([Problem("begins with --- and never ends its notes; close them with another ---", path, 1)])
    return _notes(path, "".join(lines[1:end])), "".join(lines[end + 1 :]).lstrip("\n")


def _notes(path: Path, notes: str) -> Mapping[str, Json]:
    try:
        found, _ = parse_yaml(path, notes)
    except InvalidSuite as error:
        first = error.problems[0]
        line = None if first.line is None else first.line + 1
        raise InvalidSuite(
            [Problem(f"has notes between --- and --- that {_as_notes(first.message)}", path, line)]
        ) from None
    if found is not None and not isinstance(found, dict):
        raise InvalidSuite([Problem("has text between --- and --- at its head, where only notes may stand", path, 1)])
    return found or {}


def _as_notes(message: str) -> str:
    return "are" + message.removeprefix("is") if message.startswith("is ") else message
