"""What an installed plugin costs a pytest run that does not use it, beside DeepEval's plugin in the same rounds.

One trivial test: the CPU time of a run with the plugin, less that of a run with `-p no:NAME` in the same environment,
which holds pytest and the plugin's distribution with its dependencies, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from environments import ROOT, Interpreter, install_here, installed_version, peer
from measuring import Contender, Cost, clean_environment, compare
from table import Row

BUDGET_MS = 10
ROUNDS = 3
"""So many times as many rounds as elsewhere: a difference of a few milliseconds is to be seen."""


def measure_pytest(here: Interpreter | None, folder: Path, rounds: int, *, peers: bool) -> list[Row]:
    (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    places = {"proctor": here or _proctor_beside_pytest()}
    if peers:
        places["deepeval"] = peer("deepeval")
    environment = clean_environment(DEEPEVAL_TELEMETRY_OPT_OUT="YES")
    contenders = [
        Contender(title, [*place.module("pytest"), "-q", "test_nothing.py", *rest], folder, environment)
        for name, place in places.items()
        if place is not None
        for title, rest in ((name, []), (_without(name), ["-p", f"no:{name}"]))
    ]
    costs = compare(contenders, ROUNDS * rounds)
    return [_row(name, place, costs) for name, place in places.items()]


def _proctor_beside_pytest() -> Interpreter | None:
    place = peer("pytest")
    if place is not None:
        install_here(place, ROOT)
    return place


def _without(name: str) -> str:
    return f"no {name}"


def _row(name: str, place: Interpreter | None, costs: Mapping[str, Cost]) -> Row:
    what = f"{name}'s plugin, unused, adds to a pytest run"
    is_ours = name == "proctor"
    if place is None:
        return Row(f"- {what}", "not installed")
    with_it, without = costs[name].cpu * 1000, costs[_without(name)].cpu * 1000
    measured = f"{with_it - without:.0f} ms to {without:.0f} ms"
    if is_ours:
        return Row(what, measured, f"below {BUDGET_MS} ms", with_it - without < BUDGET_MS)
    return Row(f"- {name} {installed_version(place, name)}'s plugin, the same", measured)
