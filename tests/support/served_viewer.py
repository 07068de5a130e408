"""The viewer on a real server on loopback, in a thread of the test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import uvicorn

from proctor.viewer.app import make_app
from proctor.viewer.request_checks import LOOPBACK_NAMES, Access
from proctor.viewer.sources import open_sources

TOKEN = "a-token-of-the-test"
ACCESS = Access(LOOPBACK_NAMES, TOKEN)


@contextmanager
def serve_viewer(folder: Path, named: Sequence[str] = (), *, token: bool = True) -> Iterator[httpx2.Client]:
    """A client whose addresses start at the viewer, with the token; the server has ended when this is left."""
    sources = open_sources(named, folder)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    # uvicorn's own logging configuration closes every handler of the process. One of them, which rouge-score brings
    # along, then closes the stream that pytest captures standard error with, and every later test fails.
    config = uvicorn.Config(
        make_app(sources, ACCESS), log_config=None, log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(server, listening, ready)), name="viewer")
    thread.start()
    try:
        assert ready.wait(30)
        cookies = {ACCESS.cookie: TOKEN} if token else None
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, cookies=cookies) as client:
            yield client
    finally:
        sources.is_closing = True
        server.should_exit = True
        thread.join(30)
        listening.close()
        sources.close()
        assert not thread.is_alive()


async def _serve(server: uvicorn.Server, listening: socket.socket, ready: threading.Event) -> None:
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    ready.set()
    await serving
