"""The agent of a HoloDeck run, chosen by its file or brought along, and the files that its tests name.

`FileProcessor` reads such a file as Proctor reads attachments; what the agent was told of it, and what went wrong, is
kept for the report.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.reply import Reply, ToolCall
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import UsageError, one_line
from proctor.base.json_data import Json, plain, show
from proctor.base.threads import call_in_thread
from proctor.cases.files import FileReader, FileSettings, FileText, UnreadableFile, title, with_files
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.suite import Attachment, Case, Suite, Turn
from proctor.compat.holodeck.backends import BackendAgent
from proctor.compat.holodeck.eval_kwargs import build_retrieval_context_from_tools
from proctor.compat.holodeck.test_results import FileInput, ProcessedFileInput, TokenUsage
from proctor.declared.agent_reader import describes_agent
from proctor.declared.declared_agent import declared_agent
from proctor.running.attachments import files_of_turn
from proctor.running.failures import ConversationSpoiled

OPTIONS = ("pages", "sheet", "range", "cache")
FIRST_PAUSE_SECONDS = 0.2
"""Before a download is tried again; doubled each time."""


def file_input(item: Attachment) -> FileInput:
    """An attachment as HoloDeck's processors take it."""
    return FileInput(
        item.path, item.url, item.kind, item.description, **{key: item.options.get(key) for key in OPTIONS}
    )


class FileProcessor:
    """Reads files. What goes wrong is the `error` of what `process_file` returns; nothing is raised.

    Relative paths start from `base_dir`, else from the working folder; an executor starts from the agent's folder.
    """

    def __init__(
        self,
        cache_dir: str | None = None,
        download_timeout_ms: int = 30_000,
        max_retries: int = 3,
        processing_timeout_ms: int = 30_000,
        *,
        base_dir: str | Path | None = None,
        cache_enabled: bool = True,
    ) -> None:
        for name, value in (
            ("download_timeout_ms", download_timeout_ms),
            ("processing_timeout_ms", processing_timeout_ms),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise UsageError(f"{name} must be a number of milliseconds, more than 0, not {value!r}")
        self.cache_dir = Path(cache_dir or ".holodeck/cache")
        self.download_timeout_ms = download_timeout_ms
        self.max_retries = max_retries
        """How often a download is tried, at least once."""
        self.processing_timeout_ms = processing_timeout_ms
        self.base_dir = None if base_dir is None else Path(base_dir)
        self.cache_enabled = cache_enabled

    def process_file(self, file_input: FileInput) -> ProcessedFileInput:
        """The text of a file under `markdown_content`, or the reason why there is none under `error`."""
        clock = time.perf_counter()
        try:
            found = self._read(_attachment(file_input))
        except UnreadableFile as error:
            return ProcessedFileInput(file_input, "", processing_time_ms=_since(clock), error=str(error))
        metadata = dict(found.metadata) | ({"warning": "; ".join(found.notes)} if found.notes else {})
        return ProcessedFileInput(file_input, found.text.strip(), metadata, processing_time_ms=_since(clock))

    def _read(self, item: Attachment) -> FileText:
        base = self.base_dir or Path.cwd()
        cache = base / self.cache_dir if self.cache_enabled else None
        settings = FileSettings(self.processing_timeout_ms / 1000, self.download_timeout_ms / 1000, cache)
        reader = FileReader(base, settings)
        for attempt in range(self.max_retries - 1 if item.url else 0):
            try:
                return reader.read(item)
            except UnreadableFile:
                time.sleep(FIRST_PAUSE_SECONDS * 2**attempt)
        return reader.read(item)


def _attachment(file: Any) -> Attachment:
    """Anything with the fields of a `FileInput`."""
    options = {key: value for key in OPTIONS if (value := getattr(file, key, None)) is not None}
    kind = getattr(file, "type", None)
    return Attachment(
        getattr(file, "path", None), getattr(file, "url", None), kind, getattr(file, "description", None), options
    )


def _since(clock: float) -> int:
    return round((time.perf_counter() - clock) * 1000)


def read_by(processed: Any, item: Attachment, spent_ms: float) -> ProcessedFileInput:
    """What a file processor of the caller made of a file: HoloDeck's shape, or the text alone."""
    if isinstance(processed, str):
        return ProcessedFileInput(file_input(item), processed, processing_time_ms=round(spent_ms))
    if getattr(processed, "markdown_content", None) is None and getattr(processed, "error", None) is None:
        problem = f"the file processor returned {type(processed).__name__}, which has no text"
        return ProcessedFileInput(file_input(item), processing_time_ms=round(spent_ms), error=problem)
    metadata = plain(getattr(processed, "metadata", None))
    cached, spent = getattr(processed, "cached_path", None), getattr(processed, "processing_time_ms", None)
    return ProcessedFileInput(
        file_input(item),
        str(getattr(processed, "markdown_content", "") or ""),
        metadata if isinstance(metadata, dict) else None,
        None if cached is None else str(cached),
        round(spent_ms) if spent is None else int(spent),
        None if getattr(processed, "error", None) is None else str(processed.error),
    )


def read_here(attachments: Sequence[Attachment], found: Sequence[FileText]) -> tuple[ProcessedFileInput, ...]:
    """The files of a turn that Proctor read itself; none where the agent sees to them."""
    return tuple(_read_here(item, read) for item, read in zip(attachments, found, strict=True)) if found else ()


def _read_here(item: Attachment, read: FileText) -> ProcessedFileInput:
    metadata = dict(read.metadata) | ({"warning": "; ".join(read.notes)} if read.notes else {})
    spent = round(read.seconds * 1000)
    return ProcessedFileInput(file_input(item), read.text.strip(), metadata, processing_time_ms=spent)


def unread(attachments: Sequence[Attachment], told: Sequence[str]) -> tuple[ProcessedFileInput, ...]:
    """The files of a turn that was not asked, or of a run that is long over; `told` is what its trial says."""
    return tuple(ProcessedFileInput(file_input(item), error=_complaint(item, told)) for item in attachments)


def _complaint(item: Attachment, told: Sequence[str]) -> str | None:
    return next((words for words in told if words and title(item) in words), None)


STORES = ("vectorstore", "hierarchical_document")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a report tells of a turn and no trial keeps, by the id of the case and the index of the turn."""

    files: dict[tuple[str, int], tuple[ProcessedFileInput, ...]] = field(default_factory=dict)
    tokens: dict[tuple[str, int], TokenUsage] = field(default_factory=dict)
    """As a backend counted them, those of its caches included."""


def agent_for(suite: Suite, backend: Any) -> BaseAgent | None:
    """The backend that was brought along, else the agent that the file names or describes; `None` if it does neither.

    What is wrong with a described agent is said by the plan, with everything else that is wrong.
    """
    if backend is not None:
        return BackendAgent(backend, suite.name)
    if suite.agent is not None:
        return resolve_agent(suite.agent, suite.base)
    if not describes_agent(suite):
        return None
    return declared_agent(suite)


class Driven(BaseAgent):
    """An agent whose tests are announced, and whose files a processor of the caller may read.

    It stays up from one run to the next, until it is closed.
    """

    def __init__(
        self, agent: BaseAgent, suite: Suite, announce: Callable[[Case], None], read_file: Callable[[Any], Any] | None
    ) -> None:
        self.agent = agent
        self.name = agent.name
        self.fingerprint = agent.fingerprint
        self.start_seconds = agent.start_seconds
        self.takes_files = read_file is not None or agent.takes_files
        self._announce = announce
        self._announced: set[str] = set()
        self.seen = Seen()
        self._read_file = read_file
        self._retrieves = _retrieving(suite)
        self._started = False

    async def start(self) -> None:
        self._announced.clear()
        self.seen = Seen()
        if not self._started:
            await self.agent.start()
        self._started = True

    async def close(self) -> None:
        if self._started:
            self._started = False
            await self.agent.stop()

    def check(self, case: Case) -> str | None:
        return self.agent.check(case)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[_DrivenSession]:
        if case.id not in self._announced:
            self._announced.add(case.id)
            self._announce(case)
        async with self.agent.session(case) as inner:
            yield _DrivenSession(inner, case.id, self._read_file, self._retrieves, self.seen)


class _DrivenSession:
    def __init__(
        self,
        inner: Session,
        case_id: str,
        read_file: Callable[[Any], Any] | None,
        retrieves: Callable[[str], bool],
        seen: Seen,
    ) -> None:
        self._inner = inner
        self._case_id = case_id
        self._read_file = read_file
        self._retrieves = retrieves
        self._seen = seen
        self._turns = 0
        self._passages: list[str] = []

    async def send(self, turn: Turn) -> Reply:
        place = self._case_id, self._turns
        self._turns += 1
        read: tuple[ProcessedFileInput, ...] = ()
        if self._read_file is not None and turn.attachments:
            read = await self._read(self._read_file, turn, place)
            texts = [(item, file.markdown_content or "") for item, file in zip(turn.attachments, read, strict=True)]
            turn = replace(turn, input=with_files(turn.input, texts), attachments=())
        elif turn.attachments:
            self._seen.files[place] = read_here(turn.attachments, files_of_turn())
        reply = await self._inner.send(turn)
        spent = getattr(reply.raw, "token_usage", None)
        if isinstance(spent, TokenUsage) and spent != TokenUsage.zero():
            self._seen.tokens[place] = spent
        return self._grounded(reply, [file.markdown_content for file in read if file.markdown_content])

    def _grounded(self, reply: Reply, texts: list[str]) -> Reply:
        """With what the answer may rest on: what was retrieved, else the files."""
        if reply.retrieval_context is not None:
            return reply
        told = [_told(call) for call in reply.tool_calls if call.error is None]
        names = {call.name for call in reply.tool_calls if self._retrieves(call.name)}
        found = build_retrieval_context_from_tools(told, names) or []
        self._passages += [passage for passage in found if passage not in self._passages]
        return replace(reply, retrieval_context=tuple(found or self._passages or texts) or None)

    async def _read(
        self, read_file: Callable[[Any], Any], turn: Turn, place: tuple[str, int]
    ) -> tuple[ProcessedFileInput, ...]:
        """Every file of a turn; one that cannot be read leaves nothing to ask, which is not the agent's fault."""
        read = tuple([await _processed(read_file, item) for item in turn.attachments])
        self._seen.files[place] = read
        for file in read:
            if file.error:
                raise ConversationSpoiled(f"the file {file.original.name} could not be read: {file.error}")
        return read


async def _processed(read_file: Callable[[Any], Any], item: Attachment) -> ProcessedFileInput:
    clock = time.perf_counter()
    try:
        processed = await call_in_thread(read_file, file_input(item))
        processed = await processed if inspect.isawaitable(processed) else processed
    except Exception as error:
        raise ConversationSpoiled(f"the file {item.path or item.url} could not be read: {one_line(error)}") from error
    return read_by(processed, item, (time.perf_counter() - clock) * 1000)


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
