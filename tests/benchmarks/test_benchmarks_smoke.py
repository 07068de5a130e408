"""The benchmark scripts do their work; what they measure is never asserted, because machines differ."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

BENCHMARKS = ROOT / "benchmarks"
CASES = 12

ROWS = {
    "adk": ["- 12 EvalSet cases: proctor, a function"],
    "peers": ["- 12 trivial cases: proctor"],
    "holodeck": ["- 12 tests with BLEU and ROUGE: proctor", "- what came of them: proctor"],
    "engine": [
        "engine / bare loop, sync agent",
        "engine / bare loop, async agent",
        "- CPU a case: proctor test",
        "- CPU a case: proctor.run",
        "- CPU a case: proctor.run, async agent",
        "- CPU a case: bare loop",
        "- CPU a case: bare loop, async agent",
        "- CPU a case: script that writes JSON rows",
    ],
    "wrap": [
        "wrap() outside a run, short string",
        "wrap() outside a run, 20-key dict",
        "wrap() outside a run, 1 MB string",
        "- CPU a case: proctor test, no wrap",
        "- CPU a case: proctor test, input and output",
        "- CPU a case: proctor test, and observe",
    ],
    "growth": [
        "120 cases against 12: time",
        "- 120 cases against 12: CPU time",
        "120 cases against 12: memory",
    ],
    "gated": [
        "12 cases: gated run / plain run",
        "- 12 cases: CPU of a plain run",
        "- 12 cases: CPU of a gated run",
        "- 12 cases: CPU of accepting a run",
    ],
    "mutants": [
        "12 trials: 10 mutants of each / scoring once",
        "- 12 trials: CPU of scoring once",
        "- 12 trials: CPU of 10 mutants of each",
    ],
    "concurrency": [
        "12 cases x 50 ms, async agent, -j 20",
        "12 cases x 50 ms, sync agent, -j 20",
    ],
    "view": [
        "- 12 trials: start of the server",
        "- 12 trials: first rows of the run",
        "- 12 trials: failed cases alone",
        "- 12 trials: a word that is in one case",
        "- 12 trials: slowest first, a page in the middle",
        "- 12 trials: what one evaluator failed",
        "- 12 trials: grouped by tag",
        "- 12 trials: grouped by cause",
        "- 12 trials: server memory",
    ],
    "pytest": ["proctor's plugin, unused, adds to a pytest run"],
}


@pytest.mark.parametrize("group", ROWS)
def test_a_group_of_benchmarks_prints_its_rows_with_budget_and_result(group: str, tmp_path: Path) -> None:
    finished = run("--quick", "--here", "--rounds", "1", "--cases", str(CASES), "--only", group, cwd=tmp_path)

    rows = table(finished.stdout)
    assert finished.stderr == ""
    assert [row[0] for row in rows] == ROWS[group]
    for what, budget, measured, word in rows:
        informs = what.startswith("- ")
        assert measured, what
        assert (budget == "") is informs, what
        assert word == "" if informs else word in ("ok", "over"), what
    assert finished.returncode == int(any(row[3] == "over" for row in rows))


def test_a_command_that_breaks_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    measuring = importlib.import_module("measuring")
    command = [sys.executable, "-c", "raise SystemExit('nobody at home')"]

    with pytest.raises(measuring.Broken, match="nobody at home"):
        measuring.measure(measuring.Contender("broken", command, tmp_path, measuring.clean_environment()))


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "run.py"), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def table(printed: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line for line in printed.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
