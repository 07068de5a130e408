"""A program in place of Claude Code's command line: it writes down how it was started and follows the question.

The Claude Agent SDK starts it as a process and talks to it over stdin and stdout, as with the real one. `call NAME
JSON` calls a tool of the application's server and answers with the result, `run NAME JSON` claims to have run one of
its own tools, and any other question is repeated. `install` puts it into a folder as `claude`.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

LOG = "SCRIPTED_CLAUDE_LOG"
"""The variable with the file in which it writes down how it was started, one line of JSON for each process."""
SERVER = "holodeck_tools"
NUMBERS = itertools.count(1)


def install(folder: Path) -> Path:
    """A program called `claude` in that folder."""
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def send(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def say(role: str, block: dict[str, Any]) -> None:
    message = {"role": role, "model": "script", "content": [block], "id": f"m{next(NUMBERS)}"}
    send({"type": role, "session_id": "s", "message": message})


def tell_server(method: str, params: dict[str, Any], **number: int) -> Any:
    """Send a message to the application's server and wait for its answer."""
    message = {"jsonrpc": "2.0", "method": method, "params": params, **number}
    request = {"subtype": "mcp_message", "server_name": SERVER, "message": message}
    send({"type": "control_request", "request_id": f"r{next(NUMBERS)}", "request": request})
    while (answer := receive())["type"] != "control_response":
        pass
    return answer["response"]["response"].get("mcp_response")


def call_tool(name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    tell_server("initialize", client, id=next(NUMBERS))
    tell_server("notifications/initialized", {})
    done = tell_server("tools/call", {"name": name, "arguments": arguments}, id=next(NUMBERS))["result"]
    return done["content"][0]["text"], bool(done.get("isError"))


def answer(question: str) -> str:
    verb, _, rest = question.partition(" ")
    if verb not in ("call", "run"):
        return question
    name, _, text = rest.partition(" ")
    arguments, use = json.loads(text or "{}"), f"t{next(NUMBERS)}"
    full_name = f"mcp__{SERVER}__{name}" if verb == "call" else name
    say("assistant", {"type": "tool_use", "id": use, "name": full_name, "input": arguments})
    result, failed = call_tool(name, arguments) if verb == "call" else ("done", False)
    say("user", {"type": "tool_result", "tool_use_id": use, "content": result, "is_error": failed})
    return f"It says {result}"


def write_start(request: dict[str, Any]) -> None:
    names = ("ANTHROPIC_", "CLAUDE_CODE_", "AWS_REGION")
    variables = {name: value for name, value in os.environ.items() if name.startswith(names)}
    start = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": variables, "initialize": request}
    with Path(os.environ[LOG]).open("a") as log:
        log.write(json.dumps(start) + "\n")


def main() -> None:
    if {"-v", "--version"} & {*sys.argv}:
        print("9.9.9 (Claude Code)")
        return
    while True:
        message = receive()
        if message["type"] == "control_request":
            if message["request"]["subtype"] == "initialize":
                write_start(message["request"])
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            send({"type": "control_response", "response": response})
        elif message["type"] == "user":
            text = answer(message["message"]["content"])
            say("assistant", {"type": "text", "text": text})
            result = {"type": "result", "subtype": "success", "is_error": False, "result": text, "num_turns": 1}
            usage = {"usage": {"input_tokens": 5, "output_tokens": 3}, "total_cost_usd": 0.01}
            send({**result, **usage, "duration_ms": 1, "duration_api_ms": 1, "session_id": "s"})


if __name__ == "__main__":
    main()
