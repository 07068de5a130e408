"""A project on disk whose runs are made, killed and continued in processes of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from engine_helpers import finish, spawn

from proctor.results.store.store import Store

AGENT = """
import asyncio, os, signal, sys

count = 0

async def agent(question):
    global count
    with open("asked", "ab", buffering=0) as asked:
        asked.write((question + "\\n").encode())
    count = mine = count + 1
    await asyncio.sleep(0)
    if mine == int(os.environ.get("DIE_AT", "0")):
        os.kill(os.getpid(), signal.SIGKILL)
    if mine >= int(os.environ.get("BLOCK_AT", "1000000")):
        if mine == int(os.environ["BLOCK_AT"]):
            os.write(1, b"blocked\\n")  # what an agent prints is captured
        await asyncio.Event().wait()
    if question in os.environ.get("OVERLOADED", "").split():
        raise ConnectionError("overloaded")
    return question
"""

RUN = """
import json, sys
from pathlib import Path
from proctor.cases.formats.loading import load
from proctor.cases.suite import Settings
from proctor.running.settings import RunOptions
from proctor.running.run import RunRequest, run_suites

options = RunOptions(overrides=Settings(retries=0), backoff=0.0)
flags = sys.argv[1:]
request = RunRequest(
    load(["suite.json"]), options, store=Path("store"), resume="resume" in flags, reuse="reuse" in flags
)
run, verdict = run_suites(request)
print(json.dumps({
    "id": run.id, "exit": verdict.exit_code, "note": run.note, "interrupted": run.interrupted,
    "trials": [[t.case.id, t.number, t.outcome, t.reused] for t in run.trials],
    "counts": verdict.counts,
}))
"""


def project(folder: Path, count: int, **changed: str) -> list[str]:
    """A suite and its agent on disk; returns the ids of its cases."""
    ids = [f"case-{number}" for number in range(count)]
    data = {
        "agent": "agent.py:agent",
        "evaluators": ["ExactMatch"],
        "cases": [
            {"id": name, "input": name, "expected": name, **({"description": changed[name]} if name in changed else {})}
            for name in ids
        ],
    }
    (folder / "suite.json").write_text(json.dumps(data))
    (folder / "agent.py").write_text(AGENT)
    return ids


def read_prompts(folder: Path) -> list[str]:
    """What the agent was asked since the last time somebody wanted to know."""
    path = folder / "asked"
    found = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def stored_cases(folder: Path) -> dict[str, list[str]]:
    """By run: the cases that are in the store."""
    store = Store(folder / "store")
    found = {row.id: [summary.case_id for summary in store.summaries(row.no)] for row in reversed(store.runs())}
    store.close()
    return found


def statuses(folder: Path) -> list[str]:
    store = Store(folder / "store")
    found = [row.status for row in reversed(store.runs())]
    store.close()
    return found


def run_to_end(folder: Path, *flags: str, **environment: str) -> dict[str, Any]:
    """A run in a process of its own, to its end."""
    code, out, err = finish(spawn(RUN, *flags, cwd=folder, **environment))
    assert code == 0, err
    assert err == ""
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def start_blocked_run(folder: Path, at: int, *flags: str) -> subprocess.Popen[str]:
    """A run that is under way, and whose agent does not answer any more."""
    process = spawn(RUN, *flags, cwd=folder, BLOCK_AT=str(at))
    assert process.stdout is not None
    assert process.stdout.readline() == "blocked\n"
    return process
