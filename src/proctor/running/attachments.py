"""Puts the text of a turn's files into its input, for agents that do not read files themselves."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.agents.reply import Reply
from proctor.agents.user_code import call_user_function
from proctor.base.json_data import canonical, to_json
from proctor.cases.files.boundaries import allowed_folders
from proctor.cases.files.file_text import FileText, UnreadableFile
from proctor.cases.suite import AttachedFile, FileSettings, Suite, Turn
from proctor.evaluators.material import tool_results
from proctor.running.conversation import ConversationResult, User
from proctor.running.failures import ConversationInvalid
from proctor.running.plan import PlannedSuite, PlannedTrial

if TYPE_CHECKING:
    from proctor.cases.files.file_reader import FileReader

DOWNLOADS = ".proctor/files"


def file_settings_of(suite: Suite) -> FileSettings:
    """The settings for reading the files of a suite, with the folder for downloads."""
    return suite.file_settings or FileSettings(cache=(suite.base or Path.cwd()) / DOWNLOADS)


class AttachedFiles:
    """The files of a run; a file that several trials use is read once."""

    def __init__(self, read_file: Callable[[AttachedFile], Any] | None = None) -> None:
        """`read_file` reads every file, each time it is needed, instead of Proctor's own reader."""
        self._read_file = read_file
        self._readers: dict[PlannedSuite, FileReader] = {}
        self._texts: dict[tuple[PlannedSuite, str], asyncio.Task[FileText]] = {}

    def of(self, planned: PlannedTrial) -> TrialFiles | None:
        """The files of a trial, or `None` if it has none or the agent reads them itself."""
        if not any(turn.files for turn in planned.case.turns):
            return None
        if planned.suite.agent.reads_files and self._read_file is None:
            return None
        return TrialFiles(planned, self)

    async def text(self, planned: PlannedSuite, attachment: AttachedFile) -> FileText:
        if self._read_file is not None:
            return await _read(self._read_file, attachment, file_settings_of(planned.suite))
        if planned not in self._readers:
            from proctor.cases.files.file_reader import FileReader  # slow to import, and few turns have files

            suite = planned.suite
            self._readers[planned] = FileReader(
                suite.base or Path.cwd(), file_settings_of(suite), allowed_folders(suite)
            )
        reader = self._readers[planned]
        key = planned, canonical(to_json(attachment))
        if key not in self._texts or self._texts[key].cancelled():
            self._texts[key] = task = asyncio.create_task(_read(reader.read, attachment, reader.settings))
            task.add_done_callback(_consume_exception)
        return await asyncio.shield(self._texts[key])


class TrialFiles:
    """The files of one trial."""

    def __init__(self, planned: PlannedTrial, files: AttachedFiles) -> None:
        self._planned = planned
        self._files = files
        self._texts: dict[int, list[FileText]] = {}

    def user(self, new_user: Callable[[], User]) -> Callable[[], User]:
        """A factory of the same user with files in the input of each turn."""
        return lambda: _UserWithFiles(new_user(), self)

    async def with_file_text(self, turn: Turn, index: int) -> Turn:
        """The turn number `index` with the text of its files in its input."""
        if not turn.files or not isinstance(turn.input, str):
            return turn
        try:
            texts = [await self._files.text(self._planned.suite, item) for item in turn.files]
        except UnreadableFile as error:
            raise ConversationInvalid(f"a file of the case cannot be read: {error}") from error
        self._texts[index] = texts
        files = [(item, file_text.text) for item, file_text in zip(turn.files, texts, strict=True)]
        from proctor.cases.files.file_reader import with_files

        return replace(turn, input=with_files(turn.input, files), files=())

    def with_notes(self, answer: ConversationResult) -> ConversationResult:
        """The result with warnings about the files, and with their text as retrieval context of the replies."""
        notes = [note for texts in self._texts.values() for file_text in texts for note in file_text.notes]
        turns = self._planned.case.turns
        if any(turn.files and not isinstance(turn.input, str) for turn in turns):
            agent = self._planned.suite.agent.name
            notes.append(f"the files of case {self._planned.case.id!r} are not sent to {agent}: the input is not text")
        replies = tuple(self._with_context(reply, index) for index, reply in enumerate(answer.replies))
        return replace(answer, replies=replies, warnings=(*answer.warnings, *dict.fromkeys(notes)))

    def _with_context(self, reply: Reply, index: int) -> Reply:
        texts = tuple(file_text.text for file_text in self._texts.get(index, ()) if file_text.text.strip())
        if not texts or reply.retrieval_context is not None:
            return reply
        return replace(reply, retrieval_context=(*texts, *tool_results(reply.tool_calls)))


class _UserWithFiles:
    """A user whose turns contain the text of their files."""

    def __init__(self, user: User, files: TrialFiles) -> None:
        self._user = user
        self._files = files
        self._reading = 0.0
        self._since: float | None = None

    @property
    def thinking_seconds(self) -> float:
        reading_now = 0.0 if self._since is None else time.perf_counter() - self._since
        return self._user.thinking_seconds + self._reading + reading_now

    @property
    def turns(self) -> tuple[Turn, ...] | None:
        return self._user.turns

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        turn = await self._user.next_turn(replies)
        if turn is None:
            return None
        self._since = time.perf_counter()
        try:
            return await self._files.with_file_text(turn, len(replies))
        finally:
            self._reading, self._since = self._reading + time.perf_counter() - self._since, None


async def _read(read: Callable[[AttachedFile], Any], attachment: AttachedFile, settings: FileSettings) -> FileText:
    seconds = settings.read_seconds + (settings.fetch_seconds if attachment.url else 0.0)
    try:
        async with asyncio.timeout(seconds if math.isfinite(seconds) else None):
            text: FileText = await call_user_function(read, attachment)
            return text
    except TimeoutError:
        from proctor.cases.files.file_reader import file_title

        raise UnreadableFile(f"{file_title(attachment)} was not read within {seconds:g} s") from None


def _consume_exception(task: asyncio.Task[FileText]) -> None:
    """Mark the exception as handled: if the trial ended before its file proved unreadable, asyncio would log it."""
    if not task.cancelled():
        task.exception()
