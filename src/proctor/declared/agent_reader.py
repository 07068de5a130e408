"""Reads the agent that an agent.yaml describes, with its `openai` and `claude` blocks and its instructions.

Everything that is wrong with it is found before the agent is asked anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.documents import Document, Fields, nearest
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.source import parse, read_text
from proctor.base.yaml_source import parse_yaml
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.formats.holodeck.configuration import ConfigFile, config_files, provider_block, provider_defaults
from proctor.cases.suite import Suite
from proctor.declared.description import (
    SAMPLED,
    AgentSpec,
    FunctionSpec,
    StoreSpec,
    VendorOptions,
    missing_for,
    missing_key,
    read_model,
    tool_name,
)
from proctor.declared.passage_search import files_of
from proctor.declared.tool_reader import ToolReader, read_inline_or_file, schema_problem
from proctor.judging.providers import ModelSpec

BEHAVIOUR_KEYS = ("model", "instructions", "tools", "response_format", "embedding_provider", "claude", "openai")
"""What makes two agents behave alike; keys stand in it by the name of their variable only."""


def describes_agent(suite: Suite) -> bool:
    """Whether the suite's file describes an agent that can be built."""
    kept = suite.extra.get(EXTENSION)
    return isinstance(kept, Mapping) and kept.get("model") is not None


def read_agent(suite: Suite, *, sdk: bool = False, load: bool = True) -> AgentSpec:
    """The agent that the suite's file describes; raises `InvalidSuite` with everything that is wrong with it.

    With `sdk`, a vendor's own SDK asks the model, so that our model library need not be there. Without `load`, Python
    functions are located but not loaded.
    """
    kept: Mapping[str, Json] = suite.extra.get(EXTENSION) or {}
    path = suite.path or Path("agent.yaml")
    text = read_text(path) if path.is_file() else ""
    document = Document(path, text, dict(kept), None if text else lambda pointer: None)
    reader = _AgentReader(document, suite.base or Path.cwd(), kept, sdk, load)
    spec = reader.read(suite.name)
    document.finish()
    assert spec is not None  # nothing is missing without a problem that says so
    return spec


class _AgentReader:
    def __init__(self, document: Document, base: Path, kept: Mapping[str, Json], sdk: bool, load: bool) -> None:
        self.document = document
        self.load = load
        self.base = base
        self.kept = kept
        self.sdk = sdk
        self.root = Fields(document, {key: kept[key] for key in BEHAVIOUR_KEYS if kept.get(key) is not None})
        self.configs, problems = config_files(base)
        document.problems.extend(problems)
        self.defaults = provider_defaults(self.configs)

    def read(self, name: str) -> AgentSpec | None:
        model = self._model("model")
        if not self.root.has("model"):
            self.document.problem((), "needs 'model' (which model answers)")
        embedder = self._model("embedding_provider", embeds=True)
        self._refuse_idle_embedder()
        instructions = self._instructions()
        tools = ToolReader(self.document, self.base, model, embedder, self.defaults, self.load)
        tools.read(self.root.items("tools") or [], self.root.at("tools"))
        self._shared_servers(tools)
        schema = self._response_schema()
        vendor_options = VendorOptions() if model is None else read_vendor_options(self.root, model, offered(tools))
        if model is None or instructions is None or self.document.problems:
            return None
        mark = self._fingerprint(name, model, instructions, schema, tools)
        return AgentSpec(
            name, model, instructions, tuple(tools.found), tuple(tools.servers), schema, vendor_options, mark
        )

    def _model(self, key: str, *, embeds: bool = False) -> ModelSpec | None:
        block = self.root.mapping(key)
        if block is None:
            return None
        for file in self.configs:
            self._unfilled(file, f"providers.{provider_block(file, block)[0]}.")
        usual = self.defaults(block)
        merged = {**{name: usual[name] for name in usual if not (embeds and name in SAMPLED)}, **block}
        model = read_model(Fields(self.document, merged, self.root.at(key)), sampled=not embeds)
        if model is None or embeds:
            return model
        missing = missing_key(model) if self.sdk else missing_for(model)
        if missing:
            self.root.problem(key, f"cannot be asked: {missing}")
        return model

    def _refuse_idle_embedder(self) -> None:
        tools = self.kept.get("tools")
        listed = tools if isinstance(tools, list) else []
        searches = any(isinstance(tool, dict) and tool.get("type") == "vectorstore" for tool in listed)
        if self.root.has("embedding_provider") and not searches:
            self.root.problem("embedding_provider", "is of no use: no tool of type vectorstore searches anything")

    def _unfilled(self, file: ConfigFile, place: str) -> None:
        """Variables that are not set matter where they are used, and nowhere else in a file for all agents."""
        self.document.problems.extend(p for p in file.document.problems if (p.where or "").startswith(place))

    def _instructions(self) -> str | None:
        inside = self.root.inside("instructions")
        if inside is None:
            self.document.problem((), "needs 'instructions' (with 'inline' or 'file')")
            return None
        text = read_inline_or_file(inside, "inline", self.base) if inside.valid else None
        inside.done()
        file = inside.take("file")
        if text is None or not isinstance(file, str):
            return text
        try:
            _, said = split_front_matter(self.base / file, text)
        except InvalidSuite as error:
            self.document.problems.extend(error.problems)
            return None
        if not said.strip():
            inside.problem("file", f"names {file}, which says nothing")
        return said

    def _response_schema(self) -> Mapping[str, Json] | None:
        given = self.root.take("response_format")
        if isinstance(given, str):
            try:
                given = parse(self.base / given, read_text(self.base / given))
            except InvalidSuite as error:
                self.document.problems.extend(error.problems)
                return None
        if given is None:
            return None
        if not isinstance(given, dict) or (given and given.get("type") != "object"):
            self.root.problem("response_format", "must be the JSON Schema of an object, or a file with one")
            return None
        reason = schema_problem(given)
        if reason is not None:
            self.root.problem("response_format", f"is not a JSON Schema: {reason}")
            return None
        return given or None

    def _shared_servers(self, tools: ToolReader) -> None:
        """Servers of tools that configuration files give to every agent."""
        known = {server.name for server in tools.servers} | {spec.name for spec in tools.found}
        for file in self.configs:
            servers = file.block("mcp_servers")
            self._unfilled(file, "mcp_servers")
            elsewhere = Document(file.path, file.document.text, {})
            apart = ToolReader(elsewhere, file.path.parent, tools.model, tools.embedder, self.defaults, self.load)
            for index, item in enumerate(servers if isinstance(servers, list) else []):
                if isinstance(item, dict) and item.get("name") not in known:
                    known.add(str(item.get("name")))
                    apart.read_one({"type": "mcp", **item}, ("mcp_servers", index))
            self.document.problems.extend(elsewhere.problems)
            tools.servers.extend(apart.servers)

    def _fingerprint(self, name: str, model: ModelSpec, instructions: str, schema: Json, tools: ToolReader) -> str:
        told: list[Any] = [name, {key: plain(self.kept.get(key)) for key in BEHAVIOUR_KEYS}, instructions, schema]
        told.append([model.name, model.base_url, model.temperature, model.top_p, model.max_tokens])
        told += [source_fingerprint(spec.function) for spec in tools.found if isinstance(spec, FunctionSpec)]
        told += [_digest(spec.source) for spec in tools.found if isinstance(spec, StoreSpec)]
        told += [[server.name, server.command, list(server.args), server.url] for server in tools.servers]
        return fingerprint(*told)


def offered(tools: ToolReader) -> list[str]:
    """The names under which permissions may speak of tools, as the file and as the model has them."""
    names = [name for spec in tools.found for name in (spec.name, tool_name(spec))]
    return [*names, *(name for server in tools.servers for name in (server.name, *server.prefixes))]


def _digest(source: Path) -> str:
    content = hashlib.blake2b(digest_size=12)
    for path in files_of(source):
        content.update(path.name.encode("utf-8", "replace"))
        content.update(path.read_bytes())
    return content.hexdigest()


EFFORTS = ("low", "medium", "high", "max")
LEAST_THINKING, MOST_THINKING = 1_000, 100_000
OF_CLAUDE = frozenset({"anthropic", "ollama", "bedrock"})
OF_OPENAI = frozenset({"openai", "openai-chat", "openai-responses", "azure", "azure-responses"})

ELSEWHERE = {
    "max_budget_usd": "limit what a whole run may cost with --budget instead",
    "permission_mode": "nobody is there to be asked in a test",
    "agents": "agents below this one are not built from a file; name one with 'agent' instead",
    "setting_sources": "settings of the person who runs the tests would change what is measured",
    "bash": "give the agent a tool of its own for that",
    "file_system": "give the agent a tool of its own for that",
    "web_search": "give the agent a tool of its own for that",
}
"""What these blocks may also say, and what to do instead of saying it."""


def read_vendor_options(root: Fields, model: ModelSpec, offered: Sequence[str]) -> VendorOptions:
    """What the block of the model's own vendor says; a block for another vendor is a mistake."""
    found = VendorOptions()
    for key, providers in (("claude", OF_CLAUDE), ("openai", OF_OPENAI)):
        inside = root.inside(key)
        if inside is None or not inside.valid:
            continue
        if model.provider not in providers:
            root.problem(key, f"has no meaning for a model of {model.provider}")
            continue
        found = _read(inside, claude=key == "claude")
        if not root.document.problems:
            _require_tools(inside, found, offered)
    return found


def _read(inside: Fields, *, claude: bool) -> VendorOptions:
    for key, instead in ELSEWHERE.items():
        if inside.take(key) is not None:
            inside.problem(key, f"is not used here; {instead}")
    permissions = None if claude else inside.inside("permissions")
    allowed = inside.texts("allowed_tools") if claude else None
    denied = inside.texts("disallowed_tools", ())
    if permissions is not None and permissions.valid:
        allowed = permissions.texts("allowed_tools")
        denied = (*denied, *permissions.texts("disallowed_tools", ()))
        permissions.done()
    vendor_options = VendorOptions(
        max_turns=inside.integer("max_turns", least=1),
        effort=inside.choice("effort", EFFORTS),
        thinking_tokens=_thinking(inside) if claude else None,
        fallback_model=inside.text("fallback_model", blank=False),
        allowed_tools=allowed,
        disallowed_tools=denied,
    )
    inside.done()
    return vendor_options


def _require_tools(inside: Fields, vendor_options: VendorOptions, offered: Sequence[str]) -> None:
    """A tool that is not there cannot be allowed; forbidding one does no harm, unless another was meant."""
    for name in vendor_options.allowed_tools or ():
        if not _is_offered(name, offered):
            message = f"allows {name!r}, which the agent does not have{nearest(name, offered)}"
            inside.document.problem(inside.pointer, message)
    for name in vendor_options.disallowed_tools:
        meant = "" if _is_offered(name, offered) else nearest(name, offered)
        if meant:
            inside.document.problem(inside.pointer, f"disallows {name!r}, which the agent does not have{meant}")


def _is_offered(name: str, offered: Sequence[str]) -> bool:
    """What a server offers is not known before it is asked, only how the names begin."""
    return name in offered or name.startswith(tuple(begin for begin in offered if begin.endswith("__")))


def _thinking(inside: Fields) -> int | None:
    block = inside.inside("extended_thinking")
    if block is None or not block.valid:
        return None
    enabled, tokens = block.flag("enabled", False), block.integer("budget_tokens", 10_000, least=LEAST_THINKING)
    if tokens > MOST_THINKING:
        block.problem("budget_tokens", f"must be at most {MOST_THINKING}, not {tokens}")
    block.done()
    return tokens if enabled else None


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
