"""The examples of frameworks without an adapter, with the real packages and a scripted model on the loopback interface.

An example runs if its framework is installed, as in `nox -s "other_framework(strands)"`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT
from test_docs import Block, blocks

from proctor.agents.other_frameworks import FRAMEWORKS

PAGE = ROOT / "docs" / "other-frameworks.md"
EXAMPLES = {block.options["file"].removesuffix("_desk.py"): block for block in blocks(PAGE) if "needs" in block.options}
ASKED = os.environ.get("PROCTOR_OTHER_FRAMEWORK", "")


def dspy_answer(last: str) -> str:
    """The fields that DSPy asks for: a call of the tool, the end of the loop, or the answer."""
    fields = {"reasoning": "seen", "answer": "Your order is shipped."}
    if "next_tool_name" in last:
        is_first = "observation_0" not in last
        fields = {
            "next_thought": "look" if is_first else "done",
            "next_tool_name": "order_status" if is_first else "finish",
            "next_tool_args": '{"order": "A-17"}' if is_first else "{}",
        }
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**fields, "completed": ""}.items())


def message_for(request: dict[str, Any]) -> dict[str, Any]:
    """A call of the tool, then an answer with its result."""
    last = request["messages"][-1]
    text = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
    if last["role"] == "tool":
        return {"role": "assistant", "content": f"Your order is {'shipped' if 'shipped' in text else 'lost'}."}
    if request.get("tools"):
        function = {"name": "order_status", "arguments": '{"order": "A-17"}'}
        call = {"index": 0, "id": "call-1", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "assistant", "content": dspy_answer(text)}


class Model(BaseHTTPRequestHandler):
    """OpenAI's chat completions, streamed or not."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = message_for(request)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        common = {"id": "c", "created": 1, "model": request["model"]}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        choice = {"index": 0, "finish_reason": reason}
        self.send_response(200)
        if request.get("stream"):
            chunk = {**common, "object": "chat.completion.chunk"}
            sent = [
                {**chunk, "choices": [{**choice, "finish_reason": None, "delta": message}]},
                {**chunk, "choices": [{**choice, "delta": {}}]},
                {**chunk, "choices": [], "usage": usage},
            ]
            lines = [*map(json.dumps, sent), "[DONE]"]
            kind, body = "text/event-stream", "".join(f"data: {line}\n\n" for line in lines)
        else:
            answer = {
                **common,
                "object": "chat.completion",
                "choices": [{**choice, "message": message}],
                "usage": usage,
            }
            kind, body = "application/json", json.dumps(answer)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def model_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def run_proctor(folder: Path, address: str, agent: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": address,
        "OPENAI_API_BASE": address,
        # No requests to other servers.
        **dict.fromkeys(("CREWAI_DISABLE_TELEMETRY", "OTEL_SDK_DISABLED", "LITELLM_LOCAL_MODEL_COST_MAP"), "true"),
        **dict.fromkeys(("CREWAI_TRACING_ENABLED", "HAYSTACK_TELEMETRY_ENABLED"), "false"),
    }
    command = [sys.executable, "-m", "proctor", "test", "desk.yaml", "--agent", agent, "--timeout", "120"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_framework_works_and_its_object_is_refused_with_the_function(
    name: str, tmp_path: Path
) -> None:
    block = EXAMPLES[name]
    if ASKED and name != ASKED:
        pytest.skip(f"this environment is for {ASKED}")
    if find_spec(block.options["needs"]) is None:
        assert not ASKED, f"{block.options['needs']} is not installed"
        pytest.skip(f"{block.options['needs']} is not installed")
    for part in blocks(PAGE):
        if "file" in part.options:
            (tmp_path / part.options["file"]).write_text(part.text)
    with model_server() as address:
        done = run_proctor(tmp_path, address, f"{name}_desk.py:agent")
        assert done.returncode == 0, done.stdout + done.stderr
        (tmp_path / "object.py").write_text(f"{block.text}\n\n{_object_of(block)}\n")
        refused = run_proctor(tmp_path, address, "object.py:the_object")
    title = next(framework.title for framework in FRAMEWORKS if any(name in module for module in framework.modules))
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert f"of {title}, which has no adapter" in refused.stderr + refused.stdout
    assert "def agent(question):" in refused.stderr + refused.stdout


def _object_of(block: Block) -> str:
    """The line that names the framework's own object in an example."""
    if "\ndesk = " in block.text:
        return "the_object = desk"
    if "strands" in block.text:
        return "the_object = strands.Agent(OpenAIModel(model_id='m'))"
    return "the_object = AssistantAgent('desk', model)"


def test_every_framework_that_is_recognized_has_an_example() -> None:
    assert len(EXAMPLES) == len(FRAMEWORKS)
    page = PAGE.read_text()
    assert all(f"## {framework.title}\n" in page for framework in FRAMEWORKS)
