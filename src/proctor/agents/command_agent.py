"""An agent that is a program: it reads a turn as JSON from its standard input and prints its answer.

Each program runs in its own process group, so that its child processes can be ended with it.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess as streams
import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.conversation import Conversation
from proctor.agents.http_config import AgentConfig, invalid_value, one_of, read_config
from proctor.agents.reply import Reply
from proctor.agents.reply_limits import HEAD_BYTES, ReplyTooLarge, read_limited
from proctor.agents.reply_reader import to_reply
from proctor.agents.trial_context import current_turn, max_reply_bytes, trial_number
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.json_data import Json, fingerprint, to_json
from proctor.base.process_tree import MARK_VARIABLE, kill_tree, new_mark
from proctor.cases.suite import Case, Turn

_CHUNK_BYTES = 65536
_GRACE_SECONDS = 2.0
_OUTPUT_GRACE_SECONDS = 0.25
"""How long to wait for output after a program has ended; its children may keep the pipe open forever."""
_MAX_STDERR_LINES = 8


@dataclass(frozen=True, slots=True)
class Program:
    """A command line with its folder and environment."""

    argv: tuple[str, ...]
    cwd: Path | None
    env: Mapping[str, str]

    @property
    def title(self) -> str:
        return shlex.join(self.argv)[:120]

    def __repr__(self) -> str:
        return f"Program({self.title})"


async def launch(program: Program, *, stderr: Any) -> asyncio.subprocess.Process:
    """Start the program, in its own process group and without a shell; raises `AgentFailed` if that is not possible."""
    mark = new_mark()
    try:
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=program.cwd,
            env={**program.env, MARK_VARIABLE: mark},
            start_new_session=True,
        )
        process.mark = mark  # type: ignore[attr-defined]
        return process
    except (OSError, ValueError) as error:
        raise AgentFailed(f"{program.title} could not be started: {error}") from None


async def terminate(process: asyncio.subprocess.Process, *, graceful: bool = False) -> None:
    """End the program and its children; if `graceful`, first close its input and give it time to exit."""
    try:
        if graceful and process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            await _wait(process)
    finally:
        kill_group(process)
        _close_output(process)
    if process.returncode is None:
        await _wait(process)


def kill_group(process: asyncio.subprocess.Process) -> None:
    if hasattr(os, "killpg"):
        kill_tree(process.pid, getattr(process, "mark", ""))
    elif process.returncode is None:
        process.kill()


def _close_output(process: asyncio.subprocess.Process) -> None:
    """Stop reading: asyncio waits for the end of the output, which never comes if the pipe is full."""
    for number in (1, 2):
        pipe = process._transport.get_pipe_transport(number)  # type: ignore[attr-defined]
        if pipe is not None:
            pipe.close()


async def _wait(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()


def exit_reason(program: Program, status: int | None, stderr: bytes) -> str:
    """How the program ended, with the last lines that it wrote to stderr."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()][-_MAX_STDERR_LINES:]
    last_lines = ": " + "\n".join(lines) if lines else ""
    return f"{program.title} {_exit_status_text(status)}{last_lines}"


def _exit_status_text(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return f"was killed by signal {name}"


EXAMPLE = '{"command": ["python", "my_agent.py"], "session": false, "cwd": "agents", "env": {"MODE": "test"}}'


class CommandAgent(BaseAgent):
    """Starts one process per turn or, with `session`, one per conversation, with a JSON line in and out per turn."""

    reads_files = False

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
        # Without the folder: the same script in another checkout is the same agent.
        self.fingerprint = fingerprint(list(argv), dict(env or {}), session, _script_hashes(argv, cwd))
        _check_program_exists(self.program)

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
        process = await launch(self._program, stderr=streams.PIPE)
        output = _Output(process)
        with _record_partial_answer(output):
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    process.stdin.write(_turn_message(self._conversation, turn))  # type: ignore[union-attr]
                    await process.stdin.drain()  # type: ignore[union-attr]
                    process.stdin.close()  # type: ignore[union-attr]
                out = await output.all()
            finally:
                output.close()
                await terminate(process)
            if process.returncode:
                raise AgentFailed(exit_reason(self._program, process.returncode, output.stderr))
            return self._conversation.record(turn, _read_answer(out))


class _Output:
    """Reads the output of a program: stdout up to the limit of a reply, and the last part of stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.stderr = b""
        self.stdout = bytearray()
        """The output of the current turn."""
        self._process = process
        self._rest = b""
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._next: asyncio.Task[bytes] | None = None

    def close(self) -> None:
        self._stderr_reader.cancel()
        if self._next is not None:
            self._next.cancel()

    async def all(self) -> bytes:
        """All output, until the pipe is closed or the program has ended and nothing more arrives."""
        self.stdout = bytearray()
        out = await read_limited(self._chunks(), "the program's output", self.stdout)
        if self._process.returncode is None:
            await self._process.wait()
        await asyncio.wait({self._stderr_reader}, timeout=_OUTPUT_GRACE_SECONDS)
        return out

    async def line(self) -> bytes:
        """The next line; empty at the end of the output."""
        limit, received = max_reply_bytes(), bytearray(self._rest)
        self.stdout = received
        chunks = self._chunks()
        while b"\n" not in received:
            chunk = await anext(chunks, b"")
            if not chunk:
                break
            received += chunk
            if len(received) > limit and b"\n" not in received[: limit + 1]:
                head = bytes(received[:HEAD_BYTES]).decode("utf-8", "replace")
                raise ReplyTooLarge("a line of the program's output", head)
        line, newline, self._rest = bytes(received).partition(b"\n")
        return line + newline

    async def _chunks(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        while True:
            self._next = self._next or asyncio.create_task(self._process.stdout.read(_CHUNK_BYTES))
            done, _ = await asyncio.wait({self._next}, timeout=_OUTPUT_GRACE_SECONDS)
            if done:
                chunk, self._next = self._next.result(), None
                if not chunk:
                    return
                yield chunk
            elif self._process.returncode is not None:
                return

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK_BYTES):
            self.stderr = (self.stderr + chunk)[-_CHUNK_BYTES:]


class ProcessSession:
    """One process for the whole conversation, with one line in and one line out per turn."""

    def __init__(self, agent: CommandAgent, case: Case) -> None:
        self._program = agent.program
        self._conversation = Conversation(case)
        self._process: Any = None
        self._output: Any = None
        self._is_in_sync = True

    async def __aenter__(self) -> ProcessSession:
        self._process = await launch(self._program, stderr=streams.PIPE)
        self._output = _Output(self._process)
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        try:
            await terminate(self._process, graceful=self._is_in_sync and kind is None)
        finally:
            self._output.close()

    async def send(self, turn: Turn) -> Reply:
        if not self._is_in_sync:
            raise AgentFailed(f"{self._program.title} did not answer an earlier turn, so no further turn is sent")
        self._is_in_sync = False
        with _record_partial_answer(self._output):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._process.stdin.write(_turn_message(self._conversation, turn))
                await self._process.stdin.drain()
            line = await self._output.line()
            if not line:
                await self._output.all()
                reason = exit_reason(self._program, self._process.returncode, self._output.stderr)
                raise AgentFailed(f"{reason} (in turn {len(self._conversation.history) + 1} of the conversation)")
            self._is_in_sync = True
            return self._conversation.record(turn, _read_answer(line))


class CommandConfig(AgentConfig):
    """The keys of an agent that is a program."""

    command: Annotated[Any, one_of("a list of the program and its arguments", list, str)]
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    session: bool = False
    name: str = ""

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: Json) -> Json:
        if not command:
            raise invalid_value("is empty")
        if any(not isinstance(word, str) for word in command):
            raise invalid_value("must be a list of strings")
        return command


def read_command(data: Mapping[str, Json], base: Path | None) -> CommandAgent:
    """The agent of a mapping with the key `command`; the other keys may be next to it or inside it."""
    inner = data.get("command")
    mapping = inner if isinstance(inner, Mapping) and len(data) == 1 else data
    config = read_config(CommandConfig, mapping, "command", EXAMPLE)
    return CommandAgent(
        split_command_line(config.command) if isinstance(config.command, str) else config.command,
        cwd=_folder(config.cwd, base),
        env=config.env,
        session=config.session,
        name=config.name,
    )


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


def _check_program_exists(program: Program) -> None:
    name = program.argv[0]
    if os.sep in name:
        exists = ((program.cwd or Path.cwd()) / name).is_file()
    else:
        exists = shutil.which(name, path=program.env.get("PATH")) is not None
    if not exists:
        raise UsageError(f"there is no program {name!r}; write its path, or install it in a folder of PATH")


def _script_hashes(argv: Sequence[str], cwd: Path | None) -> list[str]:
    """Hashes of the files that the command line names, so that a changed script counts as a changed agent."""
    files = [(cwd or Path.cwd()) / word for word in argv[1:] if not word.startswith("-")]
    readable = [file for file in files if len(str(file)) < 4096 and "\0" not in str(file) and file.is_file()]
    return [hashlib.blake2b(file.read_bytes(), digest_size=12).hexdigest() for file in readable]


def _turn_message(conversation: Conversation, turn: Turn) -> bytes:
    message = {
        "input": to_json(turn.input),
        "history": conversation.messages(),
        "case_id": conversation.case.id,
        "state": to_json(conversation.state),
        "session_id": conversation.id,
        "turn": len(conversation.history),
        "trial": trial_number(),
    }
    return json.dumps(message).encode() + b"\n"


@contextlib.contextmanager
def _record_partial_answer(output: _Output) -> Iterator[None]:
    """If the turn breaks off, also because it takes too long, record the program's output up to then."""
    try:
        yield
    except BaseException:
        recorder = current_turn()
        if recorder is not None:
            recorder.set_partial(_read_partial_answer(output.stdout))
        raise


def _read_partial_answer(output: bytearray) -> Reply:
    """The answer as far as it has arrived; it may be complete if the program failed afterwards."""
    try:
        return _read_answer(bytes(output))
    except UnreadableReply:
        return Reply(output.decode("utf-8", "replace").strip())


def _read_answer(out: bytes) -> Reply:
    """Read an answer: a JSON object, list or string, or else plain text."""
    text = out.decode("utf-8", "replace").strip()
    if not text.startswith(("{", "[", '"')):
        return Reply(text)
    try:
        data = json.loads(text)
    except RecursionError:
        raise UnreadableReply("the answer is nested too deeply to be read") from None
    except ValueError:
        return Reply(text)
    return to_reply(to_json(data))
