"""The loan desk as nothing but a chat model with tools, described by a mapping: no framework is involved.

The model is a small server that speaks OpenAI's chat interface and thinks by rules; a real one has another `base_url`.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import proctor

sys.path.insert(0, str(Path(__file__).parents[1]))
from loan_desk import INSTRUCTIONS, next_step

FRAMEWORKS = Path(__file__).parents[1]


class Model(BaseHTTPRequestHandler):
    """Stands in for a model service."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = asked["messages"]
        questions = [message["content"] for message in messages if message["role"] == "user"]
        step = next_step(questions, messages[-1]["content"] if messages[-1]["role"] == "tool" else None)
        said: dict[str, object] = {"role": "assistant", "content": step if isinstance(step, str) else None}
        if not isinstance(step, str):
            function = {"name": step.name, "arguments": json.dumps(step.arguments)}
            said["tool_calls"] = [{"id": f"call_{len(messages)}", "type": "function", "function": function}]
        usage = {"prompt_tokens": 10 * len(messages), "completion_tokens": 8}
        body = json.dumps({"choices": [{"index": 0, "message": said}], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def run() -> proctor.Run:
    """The three cases, put to the model with its tools."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chat = {
        "base_url": f"http://127.0.0.1:{server.server_port}/v1",
        "model": "rules",
        "instructions": INSTRUCTIONS,
        "tools": [f"{FRAMEWORKS / 'loan_desk.py'}:TOOLS"],
        "temperature": 0,
    }
    try:
        return proctor.run(FRAMEWORKS / "cases.yaml", agent={"chat": chat})
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    for trial in run().trials:
        print(trial.outcome, trial.case.id)
