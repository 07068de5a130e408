"""How often the gate is red, with and without a regression, and what it costs: simulated agents drive the shipped gate.

Run as `python benchmarks/gate.py [--suites N] [--seed N] [--jobs N]`. A few minutes at `--suites 1000`; the default is
quick and rough. Beside it stand the gates that people write by hand.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from proctor.results.comparison_statistics import compare_pairs, mean_difference
from proctor.results.gate import Gate, GateVerdict, Past

Rates = list[float]


def usual_suite(rng: random.Random, cases: int) -> Rates:
    """Seven of ten cases nearly certain, three of ten flaky."""
    return [rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2) for _ in range(cases)]


MIXTURES: dict[str, Callable[[random.Random, int], Rates]] = {
    "70 % near-certain, 30 % flaky": usual_suite,
    "all near-certain": lambda rng, cases: [rng.betavariate(60, 1) for _ in range(cases)],
    "all always pass": lambda rng, cases: [1.0] * cases,
    "all flaky": lambda rng, cases: [rng.betavariate(5, 2) for _ in range(cases)],
    "all at 50 %": lambda rng, cases: [0.5] * cases,
    "all at 60 %": lambda rng, cases: [0.6] * cases,
    "all at 90 %": lambda rng, cases: [0.9] * cases,
    "anything between 0 and 1": lambda rng, cases: [rng.random() for _ in range(cases)],
    "80 % at 99 %, 20 % at 50 %": lambda rng, cases: [0.99 if rng.random() < 0.8 else 0.5 for _ in range(cases)],
    "all at 99 %, but a tenth at 50 %": lambda rng, cases: [0.5 if at % 10 == 0 else 0.99 for at in range(cases)],
    "thirds at 98, 80 and 55 %": lambda rng, cases: [rng.choice((0.98, 0.8, 0.55)) for _ in range(cases)],
    "half pass, half fail": lambda rng, cases: [rng.choice((0.97, 0.03)) for _ in range(cases)],
}


def unchanged(rng: random.Random, rates: Rates) -> Rates:
    return rates


def tenth_broken(rng: random.Random, rates: Rates) -> Rates:
    chosen = set(rng.sample(range(len(rates)), len(rates) // 10))
    return [rate * 0.2 if at in chosen else rate for at, rate in enumerate(rates)]


def one_broken(rng: random.Random, rates: Rates) -> Rates:
    chosen = rng.randrange(len(rates))
    return [0.0 if at == chosen else rate for at, rate in enumerate(rates)]


def down(points: float, rng: random.Random, rates: Rates) -> Rates:
    return [max(0.0, rate - points) for rate in rates]


CHANGES: dict[str, Callable[[random.Random, Rates], Rates]] = {
    "nothing changed": unchanged,
    "a tenth broken": tenth_broken,
    "one broken outright": one_broken,
    "10 points down": partial(down, 0.1),
    "20 points down": partial(down, 0.2),
}

Answer = tuple[str, float]
"""The verdict, and the runs a case."""


class Situation:
    """A suite with its recorded trials, and an agent to ask now."""

    def __init__(self, rng: random.Random, before: Rates, now: Rates, trials: list[int]) -> None:
        self.rng = rng
        self.now = now
        self.past = [[rng.random() < rate for _ in range(count)] for rate, count in zip(before, trials, strict=True)]

    def ask(self, case: int) -> bool:
        return self.rng.random() < self.now[case]


def proctor_gate(situation: Situation) -> Answer:
    gate = Gate({str(case): Past(len(past), sum(past)) for case, past in enumerate(situation.past)})
    runs = 0
    while cases := gate.next_cases():
        for case in cases:
            gate.record(case, situation.ask(int(case)))
            runs += 1
    return gate.report().verdict, runs / len(situation.now)


def _answer(red: bool, runs: float) -> Answer:
    return (GateVerdict.REGRESSION if red else GateVerdict.NO_REGRESSION), runs


def any_flip(situation: Situation) -> Answer:
    return _answer(any(past[-1] and not situation.ask(case) for case, past in enumerate(situation.past)), 1)


def rate_below_last(situation: Situation) -> Answer:
    now = sum(situation.ask(case) for case in range(len(situation.now)))
    return _answer(now < sum(past[-1] for past in situation.past), 1)


def two_of_three(situation: Situation) -> Answer:
    return _answer(any(sum(situation.ask(case) for _ in range(3)) < 2 for case in range(len(situation.now))), 3)


def rerun_once(situation: Situation) -> Answer:
    flips = [case for case, past in enumerate(situation.past) if past[-1] and not situation.ask(case)]
    return _answer(any(not situation.ask(case) for case in flips), 1 + len(flips) / len(situation.now))


GATES: dict[str, Callable[[Situation], Answer]] = {
    "**proctor**": proctor_gate,
    "any flip": any_flip,
    "suite rate below last": rate_below_last,
    "2 of 3": two_of_three,
    "rerun once": rerun_once,
}

Setting = tuple[str, str, str, int, tuple[int, ...], int, int]
"""Gate, mixture, change, cases, recorded trials to choose from, suites, seed."""


def simulate(setting: Setting) -> tuple[float, float, float]:
    """Share of red and of inconclusive suites, and runs a case."""
    gate, mixture, change, cases, trials, suites, seed = setting
    rng = random.Random(repr((gate, mixture, change, cases, trials, seed)))
    red = unsure = 0
    spent = 0.0
    for _ in range(suites):
        before = MIXTURES[mixture](rng, cases)
        now = CHANGES[change](rng, before)
        verdict, runs = GATES[gate](Situation(rng, before, now, [rng.choice(trials) for _ in before]))
        red += verdict == GateVerdict.REGRESSION
        unsure += verdict == GateVerdict.INCONCLUSIVE
        spent += runs
    return red / suites, unsure / suites, spent / suites


def main_table(options: argparse.Namespace, pool: ProcessPoolExecutor) -> Iterator[str]:
    usual = next(iter(MIXTURES))
    yield "Red builds, and runs a case:\n"
    yield f"| cases | recorded | gate | {' | '.join(CHANGES)} |"
    yield "|---|---|---|" + "---|" * len(CHANGES)
    rows = [(cases, trials, gate) for cases in options.cases for trials in options.recorded for gate in GATES]
    settings = [
        (gate, usual, change, cases, (trials,), options.suites, options.seed)
        for cases, trials, gate in rows
        for change in CHANGES
    ]
    results = pool.map(simulate, settings)
    for cases, trials, gate in rows:
        cells = (f"{100 * red:.1f} % · {runs:.2f}" for red, _, runs in (next(results) for _ in CHANGES))
        yield f"| {cases} | {trials} | {gate} | {' | '.join(cells)} |"


def false_alarm_table(suites: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield "\nNothing changed, other suites:\n"
    yield "| rates | cases | recorded | red | inconclusive | runs a case |"
    yield "|---|---|---|---|---|---|"
    uneven = (1, 2, 3, 5, 10, 40)
    rows: list[tuple[str, int, tuple[int, ...]]] = [(mixture, 50, (10,)) for mixture in MIXTURES]
    for mixture in ("70 % near-certain, 30 % flaky", "all flaky", "80 % at 99 %, 20 % at 50 %"):
        rows += [(mixture, 5, (10,)), (mixture, 10, (5,)), (mixture, 50, (3,)), (mixture, 50, uneven)]
    settings = [("**proctor**", mixture, "nothing changed", cases, past, suites, seed) for mixture, cases, past in rows]
    for (mixture, cases, past), (red, unsure, runs) in zip(rows, pool.map(simulate, settings), strict=True):
        recorded = past[0] if len(past) == 1 else f"{min(past)} to {max(past)}"
        yield f"| {mixture} | {cases} | {recorded} | {100 * red:.1f} % | {100 * unsure:.1f} % | {runs:.2f} |"


def compare_share(setting: tuple[int, int, int]) -> float:
    """How often two runs of one agent are told apart at 5 %."""
    repeats, pairs_of_runs, seed = setting
    rng = random.Random(repr(setting))
    told = 0
    for _ in range(pairs_of_runs):
        rates = usual_suite(rng, 50)
        runs = [[[float(rng.random() < rate) for _ in range(repeats)] for rate in rates] for _ in range(2)]
        result = compare_pairs(list(zip(*runs, strict=True)), seed=seed)
        told += result is not None and result.p_value <= 0.05
    return told / pairs_of_runs


def comparison_lines(seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield "\nTwo runs of one agent, 50 cases, 2,000 pairs of runs; told to differ at 5 %:\n"
    for repeats, share in zip((1, 3, 5), pool.map(compare_share, [(n, 2000, seed) for n in (1, 3, 5)]), strict=True):
        yield f"- each case {'once' if repeats == 1 else f'{repeats} times'}: {100 * share:.1f} %"


def own_work_lines(seed: int) -> Iterator[str]:
    """What the statistics themselves cost with 10,000 cases, in CPU seconds."""
    rng = random.Random(seed)
    rates = usual_suite(rng, 10_000)
    situation = Situation(rng, rates, rates, [rng.randrange(5, 21) for _ in rates])
    made = time.process_time()
    _, runs = proctor_gate(situation)
    gated = time.process_time()
    yield "\n10,000 cases, CPU seconds:\n"
    yield f"- gate: {gated - made:.1f} ({runs:.2f} runs a case)"
    pairs = [([float(rng.random() < r) for _ in range(3)], [float(rng.random() < r) for _ in range(3)]) for r in rates]
    made = time.process_time()
    compare_pairs(pairs)
    mean_difference(pairs)
    yield f"- compare, 3 repeats: {time.process_time() - made:.1f}"


PARTS = ("gates", "mixtures", "comparison", "cost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=100, help="simulated suites a cell (default 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
    parser.add_argument("--cases", type=int, nargs="*", default=[20, 50, 200], help="sizes of the suites")
    parser.add_argument("--recorded", type=int, nargs="*", default=[5, 10, 20], help="recorded trials a case")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="what to simulate (default: all)")
    options = parser.parse_args()
    print(f"{options.suites} simulated suites a cell, seed {options.seed}.", flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        parts = {
            "gates": main_table(options, pool),
            "mixtures": false_alarm_table(options.suites, options.seed, pool),
            "comparison": comparison_lines(options.seed, pool),
            "cost": own_work_lines(options.seed),
        }
        for part in options.parts:
            for line in parts[part]:
                print(line, flush=True)


if __name__ == "__main__":
    main()
