"""Serves the viewer until Ctrl-C, and leaves no process running."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from ipaddress import ip_address
from types import FrameType

import uvicorn

from proctor.base.errors import UsageError
from proctor.viewer.app import make_app
from proctor.viewer.request_checks import LOOPBACK_NAMES, Access
from proctor.viewer.sources import Sources

LOOPBACK = "127.0.0.1"


class _Server(uvicorn.Server):
    """A server that reports when it is ready."""

    def __init__(self, config: uvicorn.Config, sources: Sources, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._sources = sources
        self._on_ready = on_ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._sources.is_closing = True  # otherwise the server would wait for pages that listen for events
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._on_ready()


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    sources: Sources, host: str, port: int, *, open_browser: bool, say: Callable[[str], None], person: str = ""
) -> None:
    """Serve until the user interrupts it. Every request needs the token, which is part of the address."""
    listening = _listen(host, port)
    token = secrets.token_urlsafe(24)
    local = is_loopback(host)
    bound_port = listening.getsockname()[1]
    access = Access(LOOPBACK_NAMES | {host} if local else None, token)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{bound_port}{sources.first_page()}?token={token}"
    config = uvicorn.Config(
        make_app(sources, access, person if local else ""),
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=3,
        ws="none",
        proxy_headers=False,
    )

    def ready() -> None:
        say(f"proctor view: {address} (Ctrl-C to stop)")
        if open_browser:
            # some browsers block their caller until they are closed
            threading.Thread(target=webbrowser.open, args=(address,), name="proctor-browser", daemon=True).start()

    try:
        _Server(config, sources, ready).run(sockets=[listening])
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror or error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return listening
