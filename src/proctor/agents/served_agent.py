"""An agent that is an HTTP service which Proctor starts from a command, and ends with the run.

One process answers all conversations, so a program that takes seconds to start takes them once. The command gets a free
port in the environment variable `PORT` and counts as started as soon as something accepts connections there. If the
address names a port, that port must be free: otherwise the answers could come from another version of the agent that is
still running. If the service ends during a run, the turns that it was answering are errors, and the next conversation
starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import shlex
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from proctor.agents.agent import BaseAgent
from proctor.agents.http_agent import HttpAgent, HttpSession
from proctor.agents.http_config import HttpOptions, read_http_options
from proctor.agents.program_files import ProgramFiles
from proctor.agents.programs import OUTPUT_GRACE_SECONDS, HeadAndTail, Process, Program
from proctor.agents.reply import Reply
from proctor.base.clock import Clock
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.json_data import Json, fingerprint
from proctor.cases.suite import Case, Turn

PORT_VARIABLE = "PORT"
_PLACEHOLDER = "${PORT}"
_CHECKED_PORT = "65535"
"""Replaces the placeholder while the address is checked."""
_HOST = "127.0.0.1"
_START_SECONDS = 60.0
"""How long the program may take until it accepts connections."""
_POLL_SECONDS = 0.05


class ServedAgent(BaseAgent):
    """Starts a service once and sends the turns of all sessions to it."""

    reads_files = False
    runs_here = False
    start_timeout = _START_SECONDS + 10.0

    def __init__(
        self,
        argv: Sequence[str],
        *,
        serve: Json = True,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """`serve` is true, the path of the service, or an object with the keys of `http`."""
        if not argv or not argv[0]:
            raise UsageError("the command is empty; for example serve:node server.mjs")
        self.program = Program(tuple(argv), cwd, {**os.environ, **(env or {})})
        self.name = name or shlex.join(argv)
        self._url, self._options = _read_serve(serve)
        files = ProgramFiles.of(argv, cwd)
        self.fingerprint = fingerprint(
            list(argv), dict(env or {}), self._url, HttpAgent(self._options).fingerprint, files.digests
        )
        self.unfingerprinted_parts = files.unknown
        self._service: _Service | None = None
        self._lock: asyncio.Lock | None = None
        self.program.check_exists()

    def __repr__(self) -> str:
        return f"ServedAgent({shlex.join(self.program.argv)})"

    async def start(self) -> None:
        self._lock = asyncio.Lock()
        self._service = await self._start_service()

    async def stop(self) -> None:
        service, self._service, self._lock = self._service, None, None
        if service is not None:
            await service.stop()

    def check(self, case: Case) -> str | None:
        return HttpAgent(self._options).check(case)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[ServedSession]:
        """A session with the service. If `start` was not called, a service is started for this session alone."""
        own = await self._start_service() if self._lock is None else None
        try:
            service = own or await self._running_service()
            async with service.agent.session(case) as session:
                yield ServedSession(service, session)
        finally:
            if own is not None:
                await own.stop()

    async def _running_service(self) -> _Service:
        """The service, started again if it has ended."""
        assert self._lock is not None
        async with self._lock:
            if self._service is None or self._service.process.returncode is not None:
                ended, self._service = self._service, None
                if ended is not None:
                    await ended.stop()
                self._service = await self._start_service()
            return self._service

    async def _start_service(self) -> _Service:
        port = _free_port() if _PLACEHOLDER in self._url else urlsplit(self._url).port or 80
        options = dataclasses.replace(self._options, url=self._url.replace(_PLACEHOLDER, str(port)))
        host = urlsplit(options.url).hostname or _HOST
        if await _accepts_connections(host, port):
            raise AgentFailed(
                f"port {port} is already in use, so {self.program.title} cannot be started there; end the program that "
                f"uses it, or write {_PLACEHOLDER} in the URL to get a free port",
                infrastructure=True,
            )
        program = dataclasses.replace(self.program, env={**self.program.env, PORT_VARIABLE: str(port)})
        service = _Service(await Process.start(program), HttpAgent(options))
        try:
            await service.wait_until_ready(host, port)
        except BaseException:
            await service.stop()
            raise
        return service


class _Service:
    """A running service: its process, and the agent that sends requests to it."""

    def __init__(self, process: Process, agent: HttpAgent) -> None:
        self.process = process
        self.agent = agent
        self._output = HeadAndTail()
        self._reader = asyncio.create_task(self._read_output())

    async def wait_until_ready(self, host: str, port: int) -> None:
        """Wait until it accepts connections; raises `AgentFailed` if it ends before, or takes too long."""
        end = Clock.monotonic() + _START_SECONDS
        while not await _accepts_connections(host, port):
            if Clock.monotonic() > end:
                output = " | ".join([*self._output.lines(2, 2), *self.process.stderr.lines(2, 2)])
                raise AgentFailed(
                    f"{self.process.program.title} accepted no connection at port {port} within {_START_SECONDS:g} s; "
                    f"listen at the port in ${PORT_VARIABLE}, or write the URL of the service as `serve`"
                    + (f". It printed: {output}" if output else ""),
                    infrastructure=True,
                )
            if await self.has_ended(_POLL_SECONDS):
                when = f"before it accepted connections at port {port}, which is in ${PORT_VARIABLE}"
                raise AgentFailed(f"{self.exit_reason()} ({when})", infrastructure=True)
        await self.agent.start()

    async def has_ended(self, seconds: float = OUTPUT_GRACE_SECONDS) -> bool:
        """Whether it has ended, or ends within this time; then all that it printed is read."""
        if not await self.process.has_ended(seconds):
            return False
        await asyncio.wait({self._reader}, timeout=2 * OUTPUT_GRACE_SECONDS)
        return True

    def exit_reason(self) -> str:
        """How it ended, with what it wrote to stdout if it wrote nothing to stderr."""
        lines = [] if self.process.stderr.lines(1, 1) else self._output.lines(6, 8)
        return self.process.exit_reason() + (": " + "\n".join(lines) if lines else "")

    async def stop(self) -> None:
        self._reader.cancel()
        try:
            await self.agent.stop()
        finally:
            await self.process.end()

    async def _read_output(self) -> None:
        async for chunk in self.process.chunks():
            self._output.add(chunk)


class ServedSession:
    """One conversation with the service; if the service ends, the reason says how."""

    def __init__(self, service: _Service, session: HttpSession) -> None:
        self._service = service
        self._session = session

    async def send(self, turn: Turn) -> Reply:
        try:
            return await self._session.send(turn)
        except AgentFailed as error:
            if error.transient and await self._service.has_ended():
                # Another conversation may have ended it, so this one is held again.
                raise AgentFailed(f"{self._service.exit_reason()} (while it answered)", transient=True) from None
            raise


def _read_serve(serve: Json) -> tuple[str, HttpOptions]:
    """The URL, with a placeholder if Proctor chooses the port, and the options of the requests."""
    if serve is True:
        serve = "/"
    keys = {"url": serve} if isinstance(serve, str) else dict(serve)
    url = str(keys.get("url", "/"))
    if url.startswith("/"):
        url = f"http://{_HOST}:{_PLACEHOLDER}{url}"
    options = read_http_options({**keys, "url": url.replace(_PLACEHOLDER, _CHECKED_PORT)})
    host = urlsplit(options.url).hostname
    if host not in (_HOST, "localhost", "::1"):
        raise UsageError(f"command.serve: the service runs on this machine, so its URL cannot be at {host}")
    return url, options


def _free_port() -> int:
    """A port that nothing uses now; the service takes it a moment later."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
    return port


async def _accepts_connections(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True
