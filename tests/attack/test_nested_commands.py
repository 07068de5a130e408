"""An agent that calls Proctor's command line in its own process: the inner verdict is not that of the outer run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND

pytestmark = pytest.mark.process

AGENTS = """
import os, runpy, sys

def good(message):
    return "hello"

def call_main():
    from proctor.cli import main
    main()

def call_module():
    runpy.run_module("proctor", run_name="__main__")

def nested(call, ends):
    def agent(message):
        sys.argv = ["proctor", "test", "inner.yaml", "--store", "inner"]
        try:
            call()
        except SystemExit:
            pass
        if ends:
            os._exit(0)
        return "not what is expected"
    return agent

main_then_exit = nested(call_main, ends=True)
module_then_exit = nested(call_module, ends=True)
main_then_answer = nested(call_main, ends=False)
"""


@pytest.mark.parametrize(("agent", "code"), [("main_then_exit", 4), ("module_then_exit", 4), ("main_then_answer", 1)])
def test_the_verdict_of_a_nested_command_is_not_lent_to_the_outer_run(tmp_path: Path, agent: str, code: int) -> None:
    (tmp_path / "app.py").write_text(AGENTS)
    for name, function in (("inner", "good"), ("outer", agent)):
        case = "{id: a, input: hi, expected: hello}"
        (tmp_path / f"{name}.yaml").write_text(f"agent: app.py:{function}\ncases: [{case}]\n")
    done = subprocess.run(
        [*COMMAND, "test", "outer.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "inner").exists()
