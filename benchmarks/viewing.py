"""How long the pages of `proctor view` take, and how much memory its server, for runs of different sizes."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import Broken, clean_environment
from proctor.agents.agent import Reply, ToolCall, Usage
from proctor.cases.suite import Case, Criteria, Expected, Turn
from proctor.results.run import Outcome, Score, SuiteInfo, TrialResult
from proctor.results.run_info import RunInfo, RunRow
from proctor.results.store import Store
from table import Row

REPEATS = 5
ROUNDS = 5
START = 1_767_225_600.0
RUN = "20260101-000000-cafe01"
PAGES = {
    "first rows of the run": "",
    "failed cases alone": "?show=failed",
    "a word that is in one case": "?q=Question+7+about",
    "slowest first, a page in the middle": "?sort=slowest&page=2",
    "what one evaluator failed": "?evaluator=ExactMatch",
    "grouped by tag": "?group=tag",
    "grouped by cause": "?group=cluster",
}


def measure_view(folder: Path, sizes: Sequence[int]) -> list[Row]:
    rows: list[Row] = []
    for trials in sizes:
        store = folder / f"store-{trials}"
        write_run(store, max(1, trials // REPEATS), min(REPEATS, trials))
        rows += _measured(store, trials)
    return rows


def write_run(store: Path, cases: int, repeats: int) -> None:
    """A finished run in which cases fail more or less often, always the same ones."""
    suite = SuiteInfo("large", "large.yaml", "native", "bot", "f00d", Criteria(), cases, cases * repeats)
    row = RunRow(0, RUN, START, START + 60, "finished", "plan", RunInfo(suites=(suite,), planned=cases * repeats))
    kept = Store(store)
    kept.add_whole_run(row, _trials(cases, repeats))
    kept.close()


def _trials(cases: int, repeats: int) -> Iterator[TrialResult]:
    source = random.Random(1)
    for position in range(cases * repeats):
        index, number = divmod(position, repeats)
        question = Turn(f"Question {index} about refunds and orders?", Expected(output="Five days."))
        case = Case(f"case-{index:05d}", (question,), tags=(f"tag-{index % 7}",))
        outcome = Outcome.PASSED if source.random() > 0.3 * (index % 10) / 10 else Outcome.FAILED
        scores = (
            Score("ExactMatch", outcome, float(outcome is Outcome.PASSED), 0.5, "it differs"),
            Score("Contains", Outcome.PASSED, 1.0, 0.5),
        )
        call = ToolCall("lookup", {"id": index}, result={"days": 5})
        reply = Reply("Five days. " * 20, tool_calls=(call,), usage=Usage(100, 20, 0.0012))
        times = {"started_at": START + position / 1000, "duration_ms": 100 + 100 * source.random()}
        yield TrialResult(
            "large", case, number + 1, position, outcome, replies=(reply,), scores=scores, agent="f00d", **times
        )


def _measured(store: Path, trials: int) -> list[Row]:
    command = [sys.executable, "-m", "proctor", "view", "--no-open", "--store", str(store)]
    began = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment())
    try:
        found = re.search(r"http://\S+", server.stdout.readline() if server.stdout else "")
        if found is None:
            raise Broken("proctor view did not start")
        rows = [Row(f"- {trials:,} trials: start of the server", f"{(time.perf_counter() - began) * 1000:,.0f} ms")]
        for name, query in PAGES.items():
            before = _cpu(server.pid)
            first = _milliseconds(f"{found.group()}runs/{RUN}{query}")
            between = _cpu(server.pid)
            again = min(_milliseconds(f"{found.group()}runs/{RUN}{query}") for _ in range(ROUNDS))
            cpu = f"CPU {between - before:,.0f} ms, then {(_cpu(server.pid) - between) / ROUNDS:,.0f} ms"
            rows.append(Row(f"- {trials:,} trials: {name}", f"{first:,.0f} ms, then {again:,.0f} ms ({cpu})"))
        rows.append(Row(f"- {trials:,} trials: server memory", _memory(server.pid)))
        return rows
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def _milliseconds(address: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=120) as page:
        page.read()
    return (time.perf_counter() - began) * 1000


def _memory(pid: int) -> str:
    """The most that the server and the process that watches over it ever took, where the system tells."""
    found = [re.search(r"VmHWM:\s+(\d+) kB", _read(process / "status")) for process in _processes(pid)]
    kilobytes = sum(int(match.group(1)) for match in found if match)
    return f"{kilobytes / 1024:,.0f} MB at most" if kilobytes else "not known here"


def _cpu(pid: int) -> float:
    """Milliseconds of CPU that the server has taken so far, which other work on the machine does not change."""
    ticks = 0
    for process in _processes(pid):
        fields = _read(process / "stat").rpartition(")")[2].split()
        ticks += sum(int(field) for field in fields[11:13])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def _processes(pid: int) -> list[Path]:
    """The process and all below it."""
    found: list[Path] = []
    waiting = [pid]
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        found.append(process)
        for children in process.glob("task/*/children"):
            waiting += map(int, _read(children).split())
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
