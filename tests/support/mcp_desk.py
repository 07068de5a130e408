"""An order desk behind the real `mcp` package: started over stdio, or served over HTTP and SSE by this process."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAME = "desk"


def desk() -> Any:
    """The server and its tools."""
    import asyncio

    from mcp.server import MCPServer

    server = MCPServer(NAME)

    @server.tool()
    def status(order: str) -> str:
        """Where an order is."""
        greeting, secret = os.environ.get("GREETING", "no greeting"), os.environ.get("SECRET", "no secret")
        return f"{order} is shipped, {greeting}, {secret}"

    @server.tool()
    def fails() -> str:
        """Never works."""
        raise ValueError("the warehouse is closed")

    @server.tool()
    async def hangs() -> str:
        """Never answers."""
        await asyncio.Event().wait()
        return ""

    return server


def stdio(**more: Any) -> dict[str, Any]:
    """The desk as a program; `None` leaves a key out."""
    tool = {
        "name": NAME,
        "type": "mcp",
        "transport": "stdio",
        "command": sys.executable,
        "args": [__file__],
        **more,
    }
    return {key: value for key, value in tool.items() if value is not None}


class ServedDesk:
    """Where the desk is, and with which headers it was asked."""

    def __init__(self, port: int) -> None:
        self.http = f"http://127.0.0.1:{port}/mcp"
        self.sse = f"http://127.0.0.1:{port}/sse"
        self.seen: list[dict[str, str]] = []

    def tool(self, transport: str = "http", **more: Any) -> dict[str, Any]:
        url = self.sse if transport == "sse" else self.http
        return {"name": NAME, "type": "mcp", "transport": transport, "url": url, **more}


@contextmanager
def serve_desk() -> Iterator[ServedDesk]:
    """The desk at addresses of this machine, for as many tests as like."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    where = ServedDesk(listener.getsockname()[1])
    config = uvicorn.Config(_app(where), log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield where
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _app(where: ServedDesk) -> Any:
    server = desk()
    over_sse, over_http = server.sse_app(), server.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            where.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        old = scope.get("path", "").startswith(("/sse", "/messages"))
        await (over_sse if old else over_http)(scope, receive, send)

    return app


@contextmanager
def unresponsive_address() -> Iterator[str]:
    """An address where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


if __name__ == "__main__":
    desk().run("stdio")
