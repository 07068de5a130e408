"""Doubles for the tools of an in-process MCP server: calls of them are answered before they reach the server."""

from __future__ import annotations

from typing import Any

from proctor.agents.doubles import answer_async, is_doubled
from proctor.plain import show
from proctor.references import describe


class DoublingServer:
    """Stands before a server and passes everything on but calls of tools that are doubled."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def run(self, read: Any, write: Any, *args: Any, **kwargs: Any) -> None:
        import anyio
        from mcp.shared.memory import create_client_server_memory_streams

        streams = create_client_server_memory_streams()
        async with streams as ((_, inwards), (passed_on, _unused)), anyio.create_task_group() as tasks:
            tasks.start_soon(self._sort, read, write, inwards, tasks)
            await self._server.run(passed_on, write, *args, **kwargs)
            tasks.cancel_scope.cancel()

    async def _sort(self, read: Any, write: Any, inwards: Any, tasks: Any) -> None:
        async with inwards:
            async for message in read:
                request = _doubled_call(message)
                if request is None:
                    await inwards.send(message)
                else:
                    tasks.start_soon(_answer, message, request, write)


def _doubled_call(message: Any) -> Any:
    """The request, if it is a call of a tool that is doubled; older versions of mcp wrap it once more."""
    told = getattr(message, "message", None)
    request: Any = getattr(told, "root", told)
    if getattr(request, "method", None) != "tools/call" or not isinstance(request.params, dict):
        return None
    return request if is_doubled(str(request.params.get("name"))) else None


async def _answer(message: Any, request: Any, write: Any) -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCResponse

    try:
        said = await answer_async(request.params["name"], request.params.get("arguments") or {})
        text, failed = said if isinstance(said, str) else show(said), False
    except Exception as error:
        text, failed = describe(error), True
    result = {"content": [{"type": "text", "text": text}], "isError": failed}
    response: Any = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
    wrapped = type(message.message)(response) if hasattr(message.message, "root") else response
    await write.send(SessionMessage(wrapped))
