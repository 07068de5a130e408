"""`--timeout` of an agent that is described in a file: its model and its tools are held to it, its start is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says


def script(talk: Conversation) -> TextReply | ToolCallReply:
    if talk.user == "a slow model":
        time.sleep(3)
    if talk.user == "a slow tool" and not talk.results:
        return calls("nap", seconds=3)
    return says(talk.user)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_slow_model_and_a_slow_tool_are_stopped_in_time_and_the_others_finish(
    project: Path, proctor_process: Callable[..., Any], parallel: int
) -> None:
    (project / "tools.py").write_text(
        "import time\n\ndef nap(seconds: int) -> str:\n    time.sleep(seconds)\n    return 'x'\n"
    )
    names = ("one", "a slow model", "a slow tool", "two")
    with model_server(script) as server:
        data = {
            "name": "desk",
            "model": {"provider": "openai", "name": "gpt-4o", "endpoint": server.url},
            "instructions": {"inline": "Repeat what is said."},
            "tools": [{"name": "nap", "type": "function", "file": "tools.py", "function": "nap"}],
            "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
            "execution": {"parallel_test_cases": parallel},
            "test_cases": [{"name": name, "input": name, "ground_truth": name} for name in names],
        }
        (project / "agent.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        ended = proctor_process("test", "agent.yaml", "--timeout", "1", HOME=str(project))
    assert ended.code == 1, ended
    assert ended.out.count("the agent gave no answer within 1 s") == 2
    passed = [line.split("desk/")[1].split("  ")[0] for line in ended.out.splitlines() if line.startswith("PASS")]
    assert sorted(passed) == ["one", "two"]
