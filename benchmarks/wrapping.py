"""What it costs to leave `wrap()` in an application: one call while nothing is tested, and cases that use it.

The cases are those of `engine.py` as a pixie dataset, whose application asks for one input and shows one output through
`wrap()`. Both command lines read the same file and keep their results on disk. pixie-qa 0.8 has no `observe` any more,
so what that adds is only told for Proctor.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from engine import against_peer, per_case_of
from environments import HERE, Interpreter, installed_version, peer
from material import write_agents, write_wrapped
from measuring import Contender, clean_environment, compare, measure
from table import Row

PEER = "pixie-qa"
BUDGET_US = 1.0
QUIET = {"PIXIE_NO_TELEMETRY": "1"}


def measure_wrap(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    other = peer(PEER) if peers else None
    title = "" if other is None else f"{PEER} {installed_version(other, PEER)}"
    return [*_idle(proctor, other, title, folder, rounds), *_in_cases(proctor, other, title, folder, cases, rounds)]


def _idle(proctor: Interpreter, other: Interpreter | None, title: str, folder: Path, rounds: int) -> list[Row]:
    contenders = [_driver("proctor", proctor, folder)]
    if other is not None:
        contenders.append(_driver("pixie", other, folder))
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for contender in contenders:
            found = json.loads(measure(contender).printed.splitlines()[-1])
            known = best.setdefault(contender.name, found)
            best[contender.name] = {kind: min(seconds, known[kind]) for kind, seconds in found.items()}
    own, its = best["proctor"], best.get("pixie", {})
    rows = [
        Row(f"wrap() outside a run, {kind}", f"{us:.2f} us", f"below {BUDGET_US:g} us", us < BUDGET_US)
        for kind, us in ((kind, seconds * 1e6) for kind, seconds in own.items())
    ]
    for kind, seconds in its.items():
        ratio = own[kind] / seconds
        measured = f"{Decimal(f'{ratio:.1e}'):f}x ({seconds * 1e6:,.0f} us there)"
        rows.append(Row(f"the same / {title}, {kind}", measured, "less than 1x", ratio < 1))
    return rows


def _driver(library: str, interpreter: Interpreter, folder: Path) -> Contender:
    command = [str(interpreter.python), str(HERE / "drive_wrap.py"), library]
    return Contender(library, command, folder, clean_environment(**QUIET))


def _in_cases(
    proctor: Interpreter, other: Interpreter | None, title: str, folder: Path, cases: int, rounds: int
) -> list[Row]:
    sizes = (cases, 2 * cases)
    contenders = [c for size in sizes for c in _own(proctor, folder, size)]
    if other is not None:
        contenders += [c for size in sizes for c in _theirs(other, title, folder, size)]
    costs = compare(contenders, rounds)
    names = dict.fromkeys(name.partition("|")[0] for name in costs)
    found = {name: per_case_of(costs, name, cases) for name in names}
    rows = []
    if other is not None:
        own, its = found["proctor test, input and output"], found[f"{title}, input and output"]
        rows.append(against_peer(f"cases with wraps: proctor test / {title}", own, its))
    rows += [Row(f"- CPU a case: {name}", str(cost)) for name, cost in found.items()]
    return rows


def _own(proctor: Interpreter, folder: Path, cases: int) -> list[Contender]:
    found = []
    for kind, name in {"no wrap": "plain", "input and output": "wrapped", "and observe": "observed"}.items():
        place = _place(folder / f"proctor-{name}-{cases}", "proctor", name, cases)
        command = [*proctor.module("proctor"), "test", "dataset.json", "--store", "store"]
        found.append(Contender(f"proctor test, {kind}|{cases}", command, place, clean_environment()))
    return found


def _theirs(other: Interpreter, title: str, folder: Path, cases: int) -> list[Contender]:
    found = []
    for kind, name in {"no wrap": "plain", "input and output": "wrapped"}.items():
        place = _place(folder / f"pixie-{name}-{cases}", "pixie", name, cases)
        environment = clean_environment(**QUIET, PIXIE_ROOT=str(place))
        command = [*other.script("pixie-test"), "dataset.json", "--no-open"]
        found.append(Contender(f"{title}, {kind}|{cases}", command, place, environment))
    return found


def _place(place: Path, library: str, name: str, cases: int) -> Path:
    place.mkdir()
    write_agents(place)
    write_wrapped(place, library, name, cases)
    return place
