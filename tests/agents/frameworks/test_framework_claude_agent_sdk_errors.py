"""What the Claude Agent SDK reports if Claude Code cannot reach its model: with a program in place of Claude Code."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, run, suite

from proctor.results.score import Outcome

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk has an environment of its own: make frameworks-all")

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKError, query

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.process]

PROGRAM = """
import json, sys
TEXT, PROBLEM, STATUS = {text!r}, {problem!r}, {status!r}


def send(message):
    print(json.dumps(message), flush=True)


if "--version" in sys.argv or "-v" in sys.argv:
    print("9.9.9 (Claude Code)")
    raise SystemExit
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        response = {{"subtype": "success", "request_id": message["request_id"], "response": {{}}}}
        send({{"type": "control_response", "response": response}})
    elif message["type"] == "user":
        content = [{{"type": "text", "text": TEXT}}]
        reply = {{"role": "assistant", "model": "<synthetic>", "content": content, "id": "m"}}
        send({{"type": "assistant", "session_id": "s", "message": reply, "error": PROBLEM}})
        result = {{"type": "result", "subtype": "success", "is_error": True, "result": TEXT, "num_turns": 1}}
        times = {{"duration_ms": 1, "duration_api_ms": 1, "session_id": "s", "api_error_status": STATUS}}
        send({{**result, **times}})
"""


def options(folder: Path, text: str, problem: str | None = None, status: int | None = None) -> ClaudeAgentOptions:
    script, program = folder / "claude.py", folder / "claude"
    script.write_text(PROGRAM.format(text=text, problem=problem, status=status))
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return ClaudeAgentOptions(cli_path=str(program))


def outcome(agent: Any) -> tuple[Outcome, int, int]:
    found, verdict = run(suite([case("c")], retries=1), agent=agent)
    (trial,) = found.trials
    return trial.outcome, trial.attempts, verdict.exit_code


@pytest.mark.parametrize(
    ("text", "problem", "status", "attempts"),
    [
        ("Not logged in · Please run /login", None, None, 1),
        ("Not logged in · Please run /login", "authentication_failed", None, 1),
        ("Invalid API key · Fix external API key", "authentication_failed", 401, 1),
        ("Credit balance is too low", "billing_error", None, 1),
        ("API Error: 403 not allowed", None, 403, 1),
        ("API Error: Repeated 529 Overloaded errors", None, 529, 2),
        ("API Error: 429 slow down", "rate_limit", None, 2),
    ],
)
def test_claude_code_that_cannot_reach_its_model_is_an_error(
    tmp_path: Path, text: str, problem: str | None, status: int | None, attempts: int
) -> None:
    assert outcome(options(tmp_path, text, problem, status)) == (Outcome.ERROR, attempts, 4)


def test_claude_code_that_gives_up_by_itself_has_failed(tmp_path: Path) -> None:
    assert outcome(options(tmp_path, "I could not find the file")) == (Outcome.FAILED, 1, 1)


def test_claude_code_that_is_not_installed_is_an_error(tmp_path: Path) -> None:
    assert outcome(ClaudeAgentOptions(cli_path=str(tmp_path / "nowhere"))) == (Outcome.ERROR, 1, 4)


def test_a_function_that_calls_claude_code_itself_is_no_different(tmp_path: Path) -> None:
    chosen = options(tmp_path, "Not logged in · Please run /login", "authentication_failed")

    async def agent(question: str) -> str:
        answer = ""
        async for message in query(prompt=question, options=chosen):
            if getattr(message, "is_error", False):
                raise ClaudeSDKError(str(message.result))
            answer = str(getattr(message, "result", answer))
        return answer

    found, _ = run(suite([case("c")]), agent=agent)
    assert [trial.outcome for trial in found.trials] == [Outcome.ERROR]
