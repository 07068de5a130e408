"""The agent of a HoloDeck run: chosen by its file or brought along, and told of before each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from proctor.agents.model import Agent, Reply, Session, ToolCall
from proctor.agents.resolving import resolve_agent
from proctor.agents.threads import call_in_thread
from proctor.cases.attachments import with_files
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.model import Attachment, Case, Suite, Turn
from proctor.compat.holodeck_backends import BackendAgent
from proctor.compat.holodeck_params import build_retrieval_context_from_tools
from proctor.errors import AgentFailed
from proctor.plain import Json, show

STORES = ("vectorstore", "hierarchical_document")


def agent_for(suite: Suite, backend: Any) -> Agent | None:
    """The backend that was brought along, else the agent that the file names or describes; `None` if it does neither.

    What is wrong with a described agent is said by the plan, with everything else that is wrong.
    """
    if backend is not None:
        return BackendAgent(backend, suite.name)
    if suite.agent is not None:
        return resolve_agent(suite.agent, suite.base)
    from proctor.declarative.reading import describes_agent

    if not describes_agent(suite):
        return None
    from proctor.declarative.agent import declared_agent

    return declared_agent(suite)


class Driven:
    """An agent whose tests are announced, and whose files somebody else may read.

    It stays up from one run to the next, until it is closed.
    """

    def __init__(
        self, agent: Agent, suite: Suite, announce: Callable[[Case], None], read_file: Callable[[Any], Any] | None
    ) -> None:
        self.agent = agent
        self.name = agent.name
        self.fingerprint = getattr(agent, "fingerprint", "")
        self.takes_files = read_file is not None or getattr(agent, "takes_files", True)
        self._announce = announce
        self._announced: set[str] = set()
        self._read_file = read_file
        self._retrieves = _retrieving(suite)
        self._started = False

    async def start(self) -> None:
        self._announced.clear()
        if not self._started and (start := getattr(self.agent, "start", None)) is not None:
            await start()
        self._started = True

    async def close(self) -> None:
        stop = getattr(self.agent, "stop", None)
        if self._started and stop is not None:
            self._started = False
            await stop()

    def check(self, case: Case) -> str | None:
        check = getattr(self.agent, "check", None)
        return None if check is None else check(case)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[_DrivenSession]:
        if case.id not in self._announced:
            self._announced.add(case.id)
            self._announce(case)
        async with self.agent.session(case) as inner:
            yield _DrivenSession(inner, self._read_file, self._retrieves)


class _DrivenSession:
    def __init__(
        self, inner: Session, read_file: Callable[[Any], Any] | None, retrieves: Callable[[str], bool]
    ) -> None:
        self._inner = inner
        self._read_file = read_file
        self._retrieves = retrieves
        self._passages: list[str] = []

    async def send(self, turn: Turn) -> Reply:
        if self._read_file is not None and turn.attachments:
            texts = [(item, await self._read(self._read_file, item)) for item in turn.attachments]
            turn = replace(turn, input=with_files(turn.input, texts), attachments=())
        reply = await self._inner.send(turn)
        if reply.retrieval_context is not None:
            return reply
        told = [_told(call) for call in reply.tool_calls if call.error is None]
        names = {call.name for call in reply.tool_calls if self._retrieves(call.name)}
        found = build_retrieval_context_from_tools(told, names) or []
        self._passages += [passage for passage in found if passage not in self._passages]
        return replace(reply, retrieval_context=tuple(found or self._passages) or None)

    async def _read(self, read_file: Callable[[Any], Any], item: Attachment) -> str:
        processed = await call_in_thread(read_file, item)
        if error := getattr(processed, "error", None):
            raise AgentFailed(f"the file {item.path or item.url} could not be read: {error}")
        return processed if isinstance(processed, str) else str(processed.markdown_content)


def _told(call: ToolCall) -> dict[str, Json]:
    """Passages with a text of their own count by that text."""
    result = call.result
    if isinstance(result, list):
        result = [
            item["text"] if isinstance(item, dict) and isinstance(item.get("text"), str) else item for item in result
        ]
        result = [item if isinstance(item, str) or item is None else show(item) for item in result]
    return {"name": call.name, "result": result}


def _retrieving(suite: Suite) -> Callable[[str], bool]:
    """Which tools retrieve, by whatever name a backend calls them: `kb`, `kb_search`, `vectorstore-kb`."""
    kept = suite.extra.get(EXTENSION)
    tools = kept.get("tools") if isinstance(kept, Mapping) else None
    declared = [tool for tool in tools or () if isinstance(tool, Mapping) and isinstance(tool.get("name"), str)]
    stores = {str(tool["name"]) for tool in declared if tool.get("type") in STORES}
    servers = {str(tool["name"]) for tool in declared if tool.get("type") == "mcp" and tool.get("is_retrieval")}
    known = {name for store in stores for name in _names(store)} | servers
    prefixes = tuple(f"{mcp}{server}__" for server in servers for mcp in ("mcp__", "mcp_"))
    return lambda name: name in known or (bool(prefixes) and name.startswith(prefixes))


def _names(store: str) -> list[str]:
    kinds = [f"{kind}-{store}" for kind in STORES]
    return [store, f"{store}_search", f"mcp__holodeck_tools__{store}_search", *kinds]
