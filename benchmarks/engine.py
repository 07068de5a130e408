"""What the framework itself costs: trivial cases, an agent that echoes, two deterministic evaluators, stored durably.

Every contender reads or is given the same cases and keeps its results on disk. Two sizes are run, so that the cost of
one more case (`marginal`) can be told from the cost of starting up (`total` has both, divided by the cases).

Proctor runs through the command line, with reading the file, printing a line a case and the report, and through
`proctor.run`; the agent is a plain function, which Proctor calls in a thread. Peers get the same function.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import HERE, PEERS, Interpreter, installed_version, peer
from material import pixie_dataset, question, write_jsonl
from measuring import Broken, Contender, Cost, clean_environment, compare
from table import Row, at_most

PARALLEL = 8
"""What Proctor does when nobody says anything."""

CACHED_CASES = 100
"""DeepEval's cache makes its cost grow with the square of the cases: more would take minutes."""


@dataclass(frozen=True, slots=True)
class PerCase:
    """CPU microseconds a case."""

    total: float
    marginal: float

    def __str__(self) -> str:
        return f"{self.marginal:,.0f} us marginal, {self.total:,.0f} us total"


def measure_engine(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    sizes = (cases, 2 * cases)
    own = [c for size in sizes for c in _proctor_contenders(proctor, folder, size)]
    found, missing = _peer_contenders(folder, sizes) if peers else ([], [])
    costs = compare([*own, *found], rounds)
    per_case = {title: per_case_of(costs, title, cases) for title in _titles(costs)}
    rows = _against_bare_loop(per_case)
    rows += [
        against_peer(f"proctor test / {title}", per_case["proctor test"], it)
        for title, it in per_case.items()
        if title in _peers(found)
    ]
    rows += [Row(f"- CPU a case: {title}", str(it)) for title, it in per_case.items()]
    rows += [Row(f"- CPU a case: {title}", "not installed") for title in missing]
    return rows + (_with_cache(folder) if peers else [])


def _proctor_contenders(proctor: Interpreter, folder: Path, cases: int) -> list[Contender]:
    sync = write_jsonl(folder / f"sync-{cases}.jsonl", cases, "echo").name
    later = write_jsonl(folder / f"async-{cases}.jsonl", cases, "echo_async").name
    driver, loop = str(HERE / "drive_proctor.py"), str(HERE / "bare_loop.py")
    python = str(proctor.python)
    commands = {
        "proctor test": [*proctor.module("proctor"), "test", sync, "--store", f"store-cli-{cases}"],
        "proctor.run": [python, driver, sync, f"store-sync-{cases}", str(PARALLEL)],
        "proctor.run, async agent": [python, driver, later, f"store-async-{cases}", str(PARALLEL)],
        "bare loop": [python, loop, sync, f"bare-sync-{cases}", "sync", str(PARALLEL), "store"],
        "bare loop, async agent": [python, loop, later, f"bare-async-{cases}", "async", str(PARALLEL), "store"],
        "script that writes JSON rows": [python, loop, sync, f"rows-{cases}", "sync", str(PARALLEL), "record"],
    }
    environment = clean_environment()
    return [Contender(f"{title}|{cases}", command, folder, environment) for title, command in commands.items()]


def _peer_contenders(folder: Path, sizes: Sequence[int]) -> tuple[list[Contender], list[str]]:
    found: list[Contender] = []
    missing: list[str] = []
    for name in PEERS:
        interpreter = peer(name)
        if interpreter is None:
            missing.append(name)
            continue
        title = f"{name} {installed_version(interpreter, name)}"
        found += [peer_contender(name, f"{title}|{size}", interpreter, folder, size) for size in sizes]
    return found, missing


def peer_contender(name: str, title: str, interpreter: Interpreter, folder: Path, cases: int) -> Contender:
    place = folder / f"{name}-{cases}"
    place.mkdir(exist_ok=True)
    suite = write_jsonl(place / "cases.jsonl", cases, "echo")
    environment = clean_environment(PIXIE_NO_TELEMETRY="1", DEEPEVAL_TELEMETRY_OPT_OUT="YES", PIXIE_ROOT=str(place))
    if name == "pixie-qa":
        dataset = pixie_dataset([question(n) for n in range(cases)], "pixie_agent.py:answer")
        (place / "pixie_agent.py").write_text(PIXIE_AGENT, encoding="utf-8")
        (place / "dataset.json").write_text(json.dumps(dataset), encoding="utf-8")
        return Contender(title, [*interpreter.script("pixie-test"), "dataset.json", "--no-open"], place, environment)
    script = HERE / "peers" / f"drive_{name.replace('-', '_')}.py"
    return Contender(title, [str(interpreter.python), str(script), suite.name], place, environment)


PIXIE_AGENT = '''"""Pixie hands its input over as one object, and records what is wrapped."""

import pixie

from agents import echo


async def answer(args):
    return pixie.wrap(echo(args["question"]), purpose="output", name="answer")
'''


def _against_bare_loop(per_case: dict[str, PerCase]) -> list[Row]:
    rows = []
    for kind in ("", ", async agent"):
        engine, bare = per_case[f"proctor.run{kind}"], per_case[f"bare loop{kind}"]
        ratio, whole = ratio_of(engine.marginal, bare.marginal), engine.total / bare.total
        rows.append(at_most(f"engine / bare loop{kind or ', sync agent'}", ratio, 2, f" ({whole:.2f}x with start-up)"))
    return rows


def against_peer(what: str, own: PerCase, its: PerCase) -> Row:
    """A case must cost less than the peer's, with start-up and without."""
    marginal, total = ratio_of(own.marginal, its.marginal), own.total / its.total
    measured = f"{marginal:.2f}x marginal, {total:.2f}x total"
    return Row(what, measured, "less than 1x", marginal < 1 and total < 1)


def _with_cache(folder: Path) -> list[Row]:
    """DeepEval as it comes, with its cache on; only informs."""
    interpreter = peer("deepeval")
    if interpreter is None:
        return []
    contenders = []
    for cases in (CACHED_CASES, 2 * CACHED_CASES):
        plain = peer_contender("deepeval", f"deepeval|{cases}", interpreter, folder, cases)
        contenders.append(Contender(plain.name, [*plain.command, "cached"], plain.folder, plain.environment))
    try:
        costs = compare(contenders, 1, warm_up=False)
    except Broken as error:
        return [Row("- deepeval, its cache on", f"broke: {str(error).splitlines()[0]}")]
    per_case = per_case_of(costs, "deepeval", CACHED_CASES)
    return [Row(f"- CPU a case: deepeval, its cache on, {CACHED_CASES} cases", str(per_case))]


def per_case_of(costs: dict[str, Cost], title: str, cases: int) -> PerCase:
    """The cost of a case from that of `cases` and of twice as many."""
    once, twice = costs[f"{title}|{cases}"].cpu, costs[f"{title}|{2 * cases}"].cpu
    return PerCase(once / cases * 1e6, (twice - once) / cases * 1e6)


def ratio_of(own: float, other: float) -> float:
    """Differences of few cases can drown in noise; what cannot be told is not a number, and not within any budget."""
    return own / other if own > 0 and other > 0 else float("nan")


def _titles(costs: dict[str, Cost]) -> list[str]:
    return list(dict.fromkeys(name.partition("|")[0] for name in costs))


def _peers(found: list[Contender]) -> set[str]:
    return {contender.name.partition("|")[0] for contender in found}
