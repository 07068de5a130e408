"""The example suites are tests worth having: whichever seed chooses the mutants, they notice nine of ten."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

from proctor import Reply, ToolCall
from proctor.base.references import load_file
from proctor.cases.formats.loading import load
from proctor.running.mutation.examine import MutationRequest, mutate
from proctor.running.mutation.findings import MutationReport
from proctor.running.options import RunOptions
from proctor.running.run_suites import Request, run_suites

EXAMPLE = ROOT / "examples" / "loan_advisor"
DESK = ROOT / "examples" / "frameworks"
SEEDS = (0, 1, 2)
SIBLINGS = ("agent", "app", "checks", "figures", "money", "tools")
SUITES = {
    "native": (EXAMPLE / "suite.yaml", None),
    "keywords": (EXAMPLE / "keywords.json", f"{EXAMPLE}/agent.py:agent"),
    "python": (f"{EXAMPLE}/test_cases.py:TEST_CASES", f"{EXAMPLE}/agent.py:agent"),
    "adk": (EXAMPLE / "adk", f"{EXAMPLE}/agent.py:agent"),
    "pixie": (EXAMPLE / "pixie" / "dataset.json", None),
    "holodeck": (EXAMPLE / "holodeck" / "agent.yaml", None),
}


@pytest.fixture(scope="module", autouse=True)
def own_modules() -> Iterator[None]:
    """Other examples have modules of the same names, and one process has room for one of each."""
    before = {name: sys.modules.pop(name) for name in SIBLINGS if name in sys.modules}
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))
    for name in SIBLINGS:
        sys.modules.pop(name, None)
    sys.modules.update(before)


def desk() -> Callable[[str, dict[str, Any]], Reply]:
    """The mind that all frameworks of the example share, without a framework."""
    loan_desk = load_file(DESK / "loan_desk.py")
    tools = {tool.__name__: tool for tool in loan_desk.TOOLS}

    def agent(question: str, state: dict[str, Any]) -> Reply:
        state["questions"] = [*state.get("questions", []), question]
        step = loan_desk.next_step(state["questions"])
        if isinstance(step, str):
            return Reply(step)
        result = tools[step.name](**step.arguments)
        said = loan_desk.next_step(state["questions"], result)
        return Reply(said, tool_calls=(ToolCall(step.name, step.arguments, result),))

    return agent


def examined(place: Any, agent: Any, folder: Path) -> list[MutationReport]:
    """The mutants of one run, by several seeds."""
    run, verdict = run_suites(Request(load([str(place)]), agent=agent, store=folder))
    assert verdict.exit_code == 0, verdict.reason
    return [mutate(MutationRequest(folder, run.id, RunOptions(), seed=seed)) for seed in SEEDS]


@pytest.mark.parametrize("name", SUITES)
def test_the_suite_notices_nine_of_ten_mutants(name: str, tmp_path: Path) -> None:
    place, agent = SUITES[name]

    reports = examined(place, agent, tmp_path)

    assert [report.broken for report in reports] == [[]] * len(SEEDS)
    assert all(report.rate.total > 90 for report in reports)
    assert min(report.rate.share for report in reports) >= 0.9, [report.rate for report in reports]


def test_the_suite_for_frameworks_notices_nine_of_ten_mutants(tmp_path: Path) -> None:
    reports = examined(DESK / "cases.yaml", desk(), tmp_path)

    assert min(report.rate.share for report in reports) >= 0.9, [report.rate for report in reports]
