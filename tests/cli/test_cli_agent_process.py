"""What an agent finds in the process that `proctor test` runs it in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_garbage_is_collected_while_an_agent_runs(project: Path, proctor_process: Callable[..., Any]) -> None:
    (project / "agent.py").write_text("import gc\n\n\ndef agent(question):\n    return str(gc.isenabled())\n")
    (project / "suite.yaml").write_text(
        "agent: agent.py:agent\nevaluators: [ExactMatch]\ncases: [{input: 'On?', expected: 'True'}]\n"
    )

    done = proctor_process("test", "suite.yaml")

    assert done.code == 0, done.out + done.err
