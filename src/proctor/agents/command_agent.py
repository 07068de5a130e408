"""An agent that is a program: it reads a turn as a line of JSON from its standard input and prints its answer.

Without `session` a program is started for every turn, and everything it prints is the answer. With `session` one
program answers the whole conversation, so its output has to be divided into replies. The obvious version, one line per
turn, is wrong: a library that prints a line shifts every answer to the next turn. So a reply is a JSON
object that belongs to its turn. It repeats the `id` of the request, or the program uses no ids at all. Other lines are
output of the program: they are noted and never scored. More replies than turns are an error, and so is a program that
ends before its reply is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.conversation import Conversation
from proctor.agents.http_config import AgentConfig, invalid_value, one_of, read_config
from proctor.agents.program_files import ProgramFiles
from proctor.agents.programs import GRACE_SECONDS, Process, Program
from proctor.agents.reply import Reply
from proctor.agents.reply_limits import ReplyTooLarge
from proctor.agents.reply_reader import TEXT_KEYS, read_envelope, to_reply
from proctor.agents.served_agent import ServedAgent
from proctor.agents.trial_context import current_turn, max_reply_bytes
from proctor.agents.wire_format import parse_answer, read_answer, turn_line
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.json_data import Json, fingerprint, to_json, to_text
from proctor.base.output_capture import current_capture
from proctor.cases.suite import Case, Turn

_MAX_NOTED_LINES = 5
_MAX_NOTED_CHARS = 300
_REQUEST_KEYS = frozenset({"input", "history", "session_id"})
_LOG_KEYS = ("level", "severity")
"""Keys of log messages in JSON, which may have a `message` as well."""

EXAMPLE = '{"command": ["python", "my_agent.py"], "session": false, "cwd": "agents", "env": {"MODE": "test"}}'


class CommandAgent(BaseAgent):
    """Starts one process per turn or, with `session`, one per conversation, with a JSON line in and out per turn."""

    reads_files = False
    runs_here = False
    starts_processes = True

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        session: bool = False,
        name: str = "",
    ) -> None:
        if not argv or not argv[0]:
            raise UsageError("the command is empty; for example cmd:python my_agent.py")
        self.program = Program(tuple(argv), cwd, {**os.environ, **(env or {})})
        self.is_session = session
        self.name = name or shlex.join(argv)
        files = ProgramFiles.of(argv, cwd)
        # Without the folder: the same script in another checkout is the same agent.
        self.fingerprint = fingerprint(list(argv), dict(env or {}), session, files.digests)
        self.unfingerprinted_parts = files.unknown
        self.program.check_exists()

    def __repr__(self) -> str:
        return f"CommandAgent({shlex.join(self.program.argv)})"

    def session(self, case: Case) -> ProcessPerTurnSession | ProcessSession:
        return ProcessSession(self, case) if self.is_session else ProcessPerTurnSession(self, case)


class ProcessPerTurnSession(BaseSession):
    """A new process for every turn, which reads the whole conversation so far."""

    def __init__(self, agent: CommandAgent, case: Case) -> None:
        super().__init__(case)
        self._program = agent.program
        self._conversation = Conversation(case)

    async def send(self, turn: Turn) -> Reply:
        process = await Process.start(self._program)
        with _record_partial_answer(process):
            try:
                await process.write(turn_line(self._conversation, turn, len(self._conversation.history) + 1))
                process.close_input()
                out = await process.read_all()
            finally:
                await process.end()
            if process.returncode:
                raise process.exit_failure()
            return self._conversation.record(turn, read_answer(parse_answer(_decode(out))))


class ProcessSession:
    """One process for the whole conversation, with one line in and one line out per turn."""

    def __init__(self, agent: CommandAgent, case: Case) -> None:
        self._program = agent.program
        self._conversation = Conversation(case)
        self._process: Any = None
        self._is_in_sync = True
        self._requests = 0
        self._uses_ids = False
        """Whether the program has repeated the id of a request; it then has to repeat every one."""

    async def __aenter__(self) -> ProcessSession:
        self._process = await Process.start(self._program)
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        is_graceful = self._is_in_sync and kind is None
        try:
            if is_graceful and self._process.returncode:
                raise self._process.exit_failure(" (after its last answer)", infrastructure=True)
            surplus = await self._surplus_reply() if is_graceful else None
        finally:
            await self._process.end(graceful=is_graceful)
        if surplus is not None:
            raise self._error(f"wrote one more reply after its last one: {to_text(surplus, 200)}; {_ONE_REPLY}")

    async def send(self, turn: Turn) -> Reply:
        if not self._is_in_sync:
            raise AgentFailed(
                f"{self._program.title} did not answer an earlier turn, so no further turn is sent", infrastructure=True
            )
        self._is_in_sync = False
        for line in self._process.lines_received():
            if (reply := self._reply_in(line)) is not None:
                raise self._error(f"wrote two replies to one turn, the second one {to_text(reply, 200)}; {_ONE_REPLY}")
        self._requests += 1
        other_lines: list[bytes] = []
        with _record_partial_answer(self._process):
            try:
                await self._process.write(turn_line(self._conversation, turn, self._requests))
                data = await self._read_reply(other_lines)
            finally:
                _note_output(other_lines)
            self._is_in_sync = True
            return self._conversation.record(turn, read_answer(data))

    async def _read_reply(self, other_lines: list[bytes]) -> Json:
        """The reply to the current request; adds the other lines before it to `other_lines`."""
        size, limit = 0, max_reply_bytes()
        while True:
            line: bytes = await self._process.read_line()
            if not line.endswith(b"\n"):
                await self._process.wait()
                part = f" in the middle of a line ({to_text(_decode(line), 200)})" if line.strip() else ""
                turn = len(self._conversation.history) + 1
                raise self._process.exit_failure(f" (before it answered turn {turn}{part})", infrastructure=True)
            if (reply := self._reply_in(line)) is not None:
                return reply
            other_lines.append(line)
            size += len(line)
            if size > limit:
                head = b"".join(other_lines[:100]).decode("utf-8", "replace")
                raise ReplyTooLarge("the program's output before its reply", head)

    def _reply_in(self, line: bytes) -> dict[str, Json] | None:
        """The reply in a line, without its id; `None` if the line is other output.

        Raises `AgentFailed` if it is a reply to another request.
        """
        data, has_prefix = _object_in(_decode(line))
        if data is None or data.keys() >= _REQUEST_KEYS:  # a program may print what it reads
            return None
        if "id" not in data:
            return None if self._uses_ids or has_prefix or _is_log_line(data) else data
        reply = {key: value for key, value in data.items() if key != "id"}
        if str(data["id"]) == str(self._requests) and self._requests:
            self._uses_ids = True
            return reply
        if has_prefix or _is_log_line(reply) or ("error" not in reply and read_envelope(reply) is None):
            return None
        raise self._error(
            f"replied to the request {to_text(data['id'], 80)} instead of {self._requests}; "
            "a reply repeats the id of the request that it answers"
        )

    async def _surplus_reply(self) -> Json:
        """A reply after the last one, for which the program gets some time after its input is closed."""
        self._process.close_input()
        received = bytearray(b"\n".join(self._process.lines_received()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                async for chunk in self._process.chunks():
                    received += chunk
                    if len(received) > max_reply_bytes():
                        break
        return next((reply for line in bytes(received).splitlines() if (reply := self._reply_in(line))), None)

    def _error(self, what: str) -> AgentFailed:
        return AgentFailed(f"{self._program.title} {what}", infrastructure=True)


_ONE_REPLY = (
    "it must write one reply per turn, which repeats the id of the request, and log elsewhere than to standard output"
)


def _object_in(text: str) -> tuple[dict[str, Json] | None, bool]:
    """The JSON object that a line is or ends with, and whether other output precedes it in the line."""
    start = text.find("{")
    if start < 0 or not text.endswith("}"):
        return None, False
    for begin in {start: None, text.find('{"'): None, text.find('{"id"'): None}:
        try:
            data = json.loads(text[begin:]) if begin >= 0 else None
        except RecursionError:
            raise UnreadableReply("the answer is nested too deeply to be read") from None
        except ValueError:
            continue
        if isinstance(data, dict):
            return to_json(data), begin > 0
    return None, False


def _is_log_line(data: Mapping[str, Json]) -> bool:
    """Whether an object is a log message: it has a level, and nothing but `message` that could be an answer."""
    return any(key in data for key in _LOG_KEYS) and not any(key in data for key in TEXT_KEYS if key != "message")


def _note_output(lines: Sequence[bytes]) -> None:
    """Add a warning to the trial with the lines that the program wrote before its reply."""
    if (capture := current_capture()) is not None:
        capture.add_bytes("stdout", b"".join(lines))
    recorder = current_turn()
    if recorder is None or not lines:
        return
    is_one = len(lines) == 1
    what = (
        "1 line to standard output that is not a reply"
        if is_one
        else (f"{len(lines):,} lines to standard output that are not replies")
    )
    shown = [to_text(_decode(line), _MAX_NOTED_CHARS) for line in lines[:_MAX_NOTED_LINES]]
    more = "" if len(lines) <= _MAX_NOTED_LINES else " …"
    recorder.add_note(f"the program wrote {what} (a reply is one line with a JSON object): " + " | ".join(shown) + more)


class CommandConfig(AgentConfig):
    """The keys of an agent that is a program."""

    command: Annotated[Any, one_of("a list of the program and its arguments", list, str)]
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    session: bool = False
    serve: Annotated[Any, one_of("true, a path, or an object with the keys of http", bool, str, dict)] = False
    name: str = ""

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: Json) -> Json:
        if not command:
            raise invalid_value("is empty")
        if any(not isinstance(word, str) for word in command):
            raise invalid_value("must be a list of strings")
        return command


def read_command(data: Mapping[str, Json], base: Path | None) -> BaseAgent:
    """The agent of a mapping with the key `command`; the other keys may be next to it or inside it."""
    inner = data.get("command")
    mapping = inner if isinstance(inner, Mapping) and len(data) == 1 else data
    config = read_config(CommandConfig, mapping, "command", EXAMPLE)
    argv = split_command_line(config.command) if isinstance(config.command, str) else config.command
    folder = _folder(config.cwd, base)
    if config.serve and config.session:
        raise UsageError("command cannot have session and serve at once: with serve, one program answers all sessions")
    if config.serve:
        return ServedAgent(argv, serve=config.serve, cwd=folder, env=config.env, name=config.name)
    return CommandAgent(argv, cwd=folder, env=config.env, session=config.session, name=config.name)


def split_command_line(text: str) -> list[str]:
    """The words of a command line by the quoting rules of the shell; nothing else of the shell is supported."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be split into words: {error}") from None


def _folder(cwd: str | None, base: Path | None) -> Path | None:
    if cwd is None:
        return base
    folder = (base or Path.cwd()) / Path(cwd).expanduser()
    if not folder.is_dir():
        raise UsageError(f"command.cwd: no such folder: {folder}")
    return folder


@contextlib.contextmanager
def _record_partial_answer(process: Process) -> Iterator[None]:
    """If the turn breaks off, also because it takes too long, record the program's output up to then."""
    try:
        yield
    except BaseException:
        recorder = current_turn()
        if recorder is not None:
            recorder.set_partial(_read_partial_answer(_decode(process.stdout)))
        raise


def _read_partial_answer(text: str) -> Reply:
    """The answer as far as it has arrived; it may be complete if the program failed afterwards."""
    try:
        data = parse_answer(text)
        if isinstance(data, dict) and not data.keys().isdisjoint({"error", "id"}):
            data = {key: value for key, value in data.items() if key not in ("error", "id")} or None
        return to_reply(to_json(data))
    except UnreadableReply:
        return Reply(text)


def _decode(output: bytes | bytearray) -> str:
    return bytes(output).decode("utf-8", "replace").strip()
