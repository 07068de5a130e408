"""Which keys of an agent.yaml are read at all: found by watching the readers, so that none can be forgotten."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from declared_projects import project

from proctor.base.errors import InvalidSuite
from proctor.base.fields import Fields
from proctor.base.source import Pointer
from proctor.cases.formats.loading import load
from proctor.declared.agent_reader import read_agent
from proctor.judging.judge_specs import read_panel

NOWHERE = "http://127.0.0.1:1/v1"
MODEL = {"provider": "openai", "name": "m", "endpoint": NOWHERE}
CLAUDE = {"provider": "anthropic", "name": "m", "endpoint": NOWHERE}
FREE = ("env", "headers")
"""Objects whose keys are anybody's own."""

TOOLS = [
    {"name": "a", "type": "function", "file": "tools.py", "function": "rate"},
    {"name": "b", "type": "prompt", "template": "x", "model": MODEL},
    {"name": "c", "type": "mcp", "command": "python3"},
    {"name": "d", "type": "mcp", "transport": "http", "url": NOWHERE},
    {"name": "e", "type": "vectorstore", "source": "tools.py"},
    {"name": "f", "type": "hierarchical_document", "source": "tools.py"},
]
METRICS = [
    {"type": "standard", "metric": "equality"},
    {"type": "geval", "name": "n", "criteria": "c"},
    {"type": "rag", "metric_type": "faithfulness"},
    {"type": "code", "grader": "tools.py:rate"},
]
TURN = {
    "input": "q",
    "expected_tools": [{"name": "t", "args": {"a": {"regex": "x"}}}],
    "files": [{"path": "tools.py", "type": "text"}],
}
DOCUMENTS: list[dict[str, Any]] = [
    {"tools": TOOLS, "embedding_provider": MODEL, "openai": {"permissions": {}}},
    {"model": CLAUDE, "claude": {"extended_thinking": {}}, "instructions": {"file": "tools.py"}},
    {"evaluations": {"metrics": METRICS, "model": MODEL}, "execution": {}},
    {"test_cases": [TURN, {"turns": [TURN]}]},
    {"test_cases": None, "test_cases_file": "tests.yaml"},
]


def keys_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """By level, every key that a reader looks for, whether it is there or not."""
    seen: dict[str, set[str]] = defaultdict(set)
    take = Fields.take

    def watched(self: Fields, name: str, default: Any = None) -> Any:
        seen[level(self.pointer, self._data)].add(name)
        return take(self, name, default)

    monkeypatch.setattr(Fields, "take", watched)
    (folder / "tests.yaml").write_text("[{input: q, expected_tools: [t]}]")
    for document in DOCUMENTS:
        try:
            [suite] = load([project(folder, NOWHERE, **document)])
            if suite.judge is not None:
                read_panel(suite.judge)
            read_agent(suite)
        except InvalidSuite:
            continue  # what is refused has been read as well
    for free in FREE:
        seen.pop(free, None)
    return dict(seen)


def level(pointer: Pointer, data: Any) -> str:
    """What an object is, wherever it stands: `tools.mcp`, `metrics.geval`, `turns`, `model`."""
    names = [part for part in pointer if isinstance(part, str)]
    if not names:
        return "test_cases" if pointer else "agent"
    last, sort = names[-1], data.get("type")
    listed = isinstance(pointer[-1], int)
    if names[0] == "judge":
        return "evaluations.model"
    if last == "tools":
        return f"tools.{sort}"
    if last == "metrics" or (last == "evaluations" and listed):
        return f"metrics.{sort or 'standard'}"
    return last
