"""The example suites are tests worth having: whichever seed chooses the mutants, they notice nine of ten."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

from proctor.cases.formats.loading import load
from proctor.mutation.findings import MutationReport
from proctor.mutation.mutate import MutationRequest, mutate
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

EXAMPLE = ROOT / "examples" / "loan_advisor"
SEEDS = (0, 1)
PER_TRIAL = 24
"""A sample of all places, to be quick."""
SIBLINGS = ("agent", "app", "checks", "figures", "money", "tools")
# The keyword lists are not here: they check words only, so no wrong tool call can be noticed.
SUITES = {
    "native": (EXAMPLE / "suite.yaml", None),
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


def examined(place: Any, agent: Any, folder: Path) -> list[MutationReport]:
    """The mutants of one run, by several seeds."""
    run, verdict = run_suites(RunRequest(load([str(place)]), agent=agent, store=folder))
    assert verdict.exit_code == 0, verdict.reason
    return [mutate(MutationRequest(folder, run.id, RunOptions(), seed=seed, max_per_trial=PER_TRIAL)) for seed in SEEDS]


@pytest.mark.parametrize("name", SUITES)
def test_the_suite_notices_nine_of_ten_mutants(name: str, tmp_path: Path) -> None:
    place, agent = SUITES[name]

    reports = examined(place, agent, tmp_path)

    assert [report.broken for report in reports] == [[]] * len(SEEDS)
    assert all(report.rate.total > 90 for report in reports)
    assert min(report.rate.share for report in reports) >= 0.9, [report.rate for report in reports]
