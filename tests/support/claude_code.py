"""Stands in for Claude Code: speaks its side of the protocol and lets rules decide, so that no process is started."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from claude_agent_sdk import Transport

Step = Callable[[list[str], Any], Any]
"""After these questions and, if there is one, this result: an object with `name` and `arguments`, or a text."""


class RuledClaudeCode(Transport):
    """One conversation. Tools are those of the application's in-process server `server`."""

    def __init__(self, server: str, step: Step) -> None:
        self._server = server
        self._step = step
        self._questions: list[str] = []
        self._hooks: list[str] = []
        self._frames: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._awaited: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._turns: set[asyncio.Task[None]] = set()
        self._cost = 0.0

    async def connect(self) -> None:
        return

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            for matcher in (message["request"].get("hooks") or {}).get("PreToolUse", []):
                self._hooks += matcher["hookCallbackIds"]
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            await self._frames.put({"type": "control_response", "response": response})
        elif message["type"] == "control_response":
            self._awaited.pop(message["response"]["request_id"]).set_result(message["response"].get("response"))
        else:
            self._questions.append(message["message"]["content"])
            turn = asyncio.create_task(self._answer())
            self._turns.add(turn)
            turn.add_done_callback(self._turns.discard)

    async def _answer(self) -> None:
        step, calls = self._step(self._questions, None), 1
        while not isinstance(step, str):
            step, calls = self._step(self._questions, await self._use(step)), calls + 1
        await self._say("assistant", [{"type": "text", "text": step}])
        self._cost += 0.01
        result = {"type": "result", "subtype": "success", "is_error": False, "result": step, "num_turns": calls}
        counts = {"input_tokens": 11 * calls, "output_tokens": 7 * calls}
        told = {"usage": counts, "total_cost_usd": self._cost, "duration_ms": 1, "duration_api_ms": 1}
        await self._frames.put({**result, **told, "session_id": "s"})

    async def _use(self, call: Any) -> str:
        """One call: the hooks are asked, then the application's server is, as Claude Code does it."""
        identity = f"toolu_{next(self._numbers)}"
        name = f"mcp__{self._server}__{call.name}" if call.name[0].islower() else call.name
        await self._say("assistant", [{"type": "tool_use", "id": identity, "name": name, "input": call.arguments}])
        text, failed = await self._refusal(name, call.arguments, identity), True
        if text is None:
            params = {"name": call.name, "arguments": call.arguments}
            done = (await self._ask_server("tools/call", params))["result"]
            text, failed = done["content"][0]["text"], bool(done.get("isError"))
        result = {"type": "tool_result", "tool_use_id": identity, "content": text, "is_error": failed}
        await self._say("user", [result])
        return str(text)

    async def _refusal(self, name: str, arguments: Any, identity: str) -> str | None:
        for hook in self._hooks:
            told = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": arguments}
            request = {"subtype": "hook_callback", "callback_id": hook, "input": told, "tool_use_id": identity}
            said = (await self._request(request)).get("hookSpecificOutput", {})
            if said.get("permissionDecision") == "deny":
                return str(said["permissionDecisionReason"])
        return None

    async def _ask_server(self, method: str, params: dict[str, Any]) -> Any:
        if method != "initialize":
            client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            await self._ask_server("initialize", client)
            await self._tell_server({"jsonrpc": "2.0", "method": "notifications/initialized"})
        number = next(self._numbers)
        answer = await self._tell_server({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return answer["mcp_response"]

    async def _tell_server(self, message: dict[str, Any]) -> Any:
        return await self._request({"subtype": "mcp_message", "server_name": self._server, "message": message})

    async def _request(self, request: dict[str, Any]) -> Any:
        number = f"r{next(self._numbers)}"
        self._awaited[number] = asyncio.get_running_loop().create_future()
        answered = self._awaited[number]
        await self._frames.put({"type": "control_request", "request_id": number, "request": request})
        return await answered

    async def _say(self, role: str, content: list[dict[str, Any]]) -> None:
        message = {"role": role, "model": "rules", "content": content, "id": f"msg_{next(self._numbers)}"}
        await self._frames.put({"type": role, "session_id": "s", "message": message})

    async def _read(self) -> AsyncIterator[dict[str, Any]]:
        while (frame := await self._frames.get()) is not None:
            yield frame

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        return self._read()

    async def close(self) -> None:
        await self._frames.put(None)

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        return
