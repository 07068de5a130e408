"""What an installed plugin costs a pytest run that does not use it, beside DeepEval's plugin in the same rounds.

One trivial test. Proctor is compared with its not being installed at all, since pytest also reads the list of files of
every plugin's distribution; DeepEval, which is not as easily taken away, with `-p no:deepeval`, to its advantage.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from environments import ROOT, Interpreter, install_apart, installed_version, peer
from measuring import Contender, Cost, clean_environment, compare
from table import Row

BUDGET_MS = 10
ROUNDS = 3
"""So many times as many rounds as elsewhere: a difference of a few milliseconds is to be seen."""
WITH, WITHOUT = "with", "without"


def measure_pytest(here: Interpreter | None, folder: Path, rounds: int, *, peers: bool) -> list[Row]:
    (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    ours = _taken_away(here, folder) if here else _installed_or_not(folder)
    deepeval = peer("deepeval") if peers else None
    theirs = _taken_away(deepeval, folder, "deepeval") if deepeval else []
    costs = compare([*ours, *theirs], ROUNDS * rounds)
    rows = [_our_row(costs) if ours else Row("- proctor's plugin", "not installed")]
    if peers:
        rows.append(_their_row(deepeval, costs))
    return rows


def _installed_or_not(folder: Path) -> list[Contender]:
    """pytest in an environment of its own, to which Proctor is added for one of the two."""
    place = peer("pytest")
    if place is None:
        return []
    apart = folder / "proctor-alone"
    install_apart(place, ROOT, apart)
    added = {WITH: clean_environment(PYTHONPATH=str(apart)), WITHOUT: clean_environment()}
    return [Contender(f"proctor {which}", _command(place), folder, environment) for which, environment in added.items()]


def _taken_away(place: Interpreter, folder: Path, name: str = "proctor") -> list[Contender]:
    environment = clean_environment(DEEPEVAL_TELEMETRY_OPT_OUT="YES")
    return [
        Contender(f"{name} {WITH}", _command(place), folder, environment),
        Contender(f"{name} {WITHOUT}", [*_command(place), "-p", f"no:{name}"], folder, environment),
    ]


def _command(place: Interpreter) -> list[str]:
    return [*place.module("pytest"), "-q", "test_nothing.py"]


def _added(name: str, costs: Mapping[str, Cost]) -> tuple[float, str]:
    with_it, without = (costs[f"{name} {which}"].cpu * 1000 for which in (WITH, WITHOUT))
    return with_it - without, f"{with_it - without:,.0f} ms to {without:.0f} ms"


def _our_row(costs: Mapping[str, Cost]) -> Row:
    added, measured = _added("proctor", costs)
    return Row("proctor's plugin, unused, adds to a pytest run", measured, f"below {BUDGET_MS} ms", added < BUDGET_MS)


def _their_row(place: Interpreter | None, costs: Mapping[str, Cost]) -> Row:
    if place is None:
        return Row("- deepeval's plugin, the same", "not installed")
    return Row(f"- deepeval {installed_version(place, 'deepeval')}'s plugin, the same", _added("deepeval", costs)[1])
