"""How often the gate is red, with and without a regression, and how many trials it takes.

Simulated agents with known pass rates drive the shipped gate, so the truth is known; the gates that people write by
hand are simulated for comparison. More tables show what a provider with good and bad days does to the gate, what the
gate with two versions of an agent (`--against`) does in such worlds, and how often `proctor compare` calls two runs of
the same agent different.

    python benchmarks/gate_accuracy.py                   # quick and rough
    python benchmarks/gate_accuracy.py --suites 1000     # the figures of benchmarks/gate.md; a few minutes
    python benchmarks/gate_accuracy.py --parts days --suites 1000
    python benchmarks/gate_accuracy.py --parts versions --suites 1000
    python benchmarks/gate_accuracy.py --parts comparison --pairs 2000
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from limits import FALSE_ALARMS, GATE_TRIALS
from proctor.agents.reply import Reply
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, Turn
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import Gate
from proctor.results.comparison.compare import compare_runs
from proctor.results.gate_result import GateVerdict
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.statistics import share_of
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from table import Row, at_most
from two_versions import Cell, Conditions, simulate_pairs

Rates = list[float]


def default_suite(rng: random.Random, cases: int) -> Rates:
    """Seven of ten cases nearly certain, three of ten flaky."""
    return [rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2) for _ in range(cases)]


MIXTURES: dict[str, Callable[[random.Random, int], Rates]] = {
    "70 % near-certain, 30 % flaky": default_suite,
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


def tenth_to_zero(rng: random.Random, rates: Rates) -> Rates:
    chosen = set(rng.sample(range(len(rates)), len(rates) // 10))
    return [0.0 if at in chosen else rate for at, rate in enumerate(rates)]


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
"""The verdict, and the trials per case."""


class Situation:
    """A suite with its recorded trials, and the agent as it is now."""

    def __init__(self, rng: random.Random, before: Rates, now: Rates, trials: list[int]) -> None:
        self.rng = rng
        self.now = now
        self.past = [[rng.random() < rate for _ in range(count)] for rate, count in zip(before, trials, strict=True)]

    def ask(self, case: int) -> bool:
        return self.rng.random() < self.now[case]


def proctor_gate(situation: Situation) -> Answer:
    records = {("suite", str(case)): BaselineRecord(len(past), sum(past)) for case, past in enumerate(situation.past)}
    gate = Gate(records)
    trials = 0
    while requests := gate.next_trials():
        for request in requests:
            passed = situation.ask(int(request.case[1]))
            gate.record(request.case, Outcome.PASSED if passed else Outcome.FAILED)
            trials += 1
    return gate.result().verdict, trials / len(situation.now)


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
    """The share of red and of inconclusive suites, and the trials per case."""
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
    default = next(iter(MIXTURES))
    yield "Red builds, and trials per case:\n"
    yield f"| cases | recorded | gate | {' | '.join(CHANGES)} |"
    yield "|---|---|---|" + "---|" * len(CHANGES)
    rows = [(cases, trials, gate) for cases in options.cases for trials in options.recorded for gate in GATES]
    settings = [
        (gate, default, change, cases, (trials,), options.suites, options.seed)
        for cases, trials, gate in rows
        for change in CHANGES
    ]
    results = pool.map(simulate, settings)
    for cases, trials, gate in rows:
        cells = (f"{100 * red:.1f} % · {runs:.2f}" for red, _, runs in (next(results) for _ in CHANGES))
        yield f"| {cases} | {trials} | {gate} | {' | '.join(cells)} |"


def false_alarm_table(suites: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield "\nNothing changed, other suites:\n"
    yield "| rates | cases | recorded | red | inconclusive | trials per case |"
    yield "|---|---|---|---|---|---|"
    uneven = (1, 2, 3, 5, 10, 40)
    rows: list[tuple[str, int, tuple[int, ...]]] = [(mixture, 50, (10,)) for mixture in MIXTURES]
    for mixture in ("70 % near-certain, 30 % flaky", "all flaky", "80 % at 99 %, 20 % at 50 %"):
        rows += [(mixture, 5, (10,)), (mixture, 10, (5,)), (mixture, 50, (3,)), (mixture, 50, uneven)]
    settings = [("**proctor**", mixture, "nothing changed", cases, past, suites, seed) for mixture, cases, past in rows]
    for (mixture, cases, past), (red, unsure, runs) in zip(rows, pool.map(simulate, settings), strict=True):
        recorded = past[0] if len(past) == 1 else f"{min(past)} to {max(past)}"
        yield f"| {mixture} | {cases} | {recorded} | {100 * red:.1f} % | {100 * unsure:.1f} % | {runs:.2f} |"


def on_a_day(rates: Rates, shift: float) -> Rates:
    """The rates on a day on which the provider moves the log odds of every case by the same amount."""
    certain = 1e-9
    odds = ((min(max(rate, certain), 1 - certain)) for rate in rates)
    return [1 / (1 + (1 - rate) / rate * math.exp(-shift)) for rate in odds]


def simulate_days(setting: tuple[float, int, int, int]) -> tuple[float, float]:
    """The share of red and of inconclusive suites if nothing changed but the day, with ten recorded trials per case."""
    spread, days, suites, _ = setting
    rng = random.Random(repr(setting))
    red = unsure = 0
    for _ in range(suites):
        rates = default_suite(rng, 50)
        situation = Situation(rng, rates, on_a_day(rates, rng.gauss(0, spread)), [0] * len(rates))
        for _ in range(days):
            recorded = on_a_day(rates, rng.gauss(0, spread))
            for past, rate in zip(situation.past, recorded, strict=True):
                past += [rng.random() < rate for _ in range(10 // days)]
        verdict, _ = proctor_gate(situation)
        red += verdict == GateVerdict.REGRESSION
        unsure += verdict == GateVerdict.INCONCLUSIVE
    return red / suites, unsure / suites


def day_table(suites: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield "\nNothing changed, but the provider has good and bad days (50 cases, 10 recorded trials per case):\n"
    yield "| standard deviation of a day's log odds | recorded on | red | inconclusive |"
    yield "|---|---|---|---|"
    settings = [(spread, days, suites, seed) for days in (1, 5) for spread in (0.0, 0.3, 0.5, 1.0)]
    for (spread, days, *_), (red, unsure) in zip(settings, pool.map(simulate_days, settings), strict=True):
        recorded = "1 day" if days == 1 else f"{days} days"
        yield f"| {spread} | {recorded} | {100 * red:.1f} % | {100 * unsure:.1f} % |"


VERSION_CHANGES: dict[str, Callable[[random.Random, Rates], Rates]] = {
    "nothing changed": unchanged,
    "a tenth broken to 0": tenth_to_zero,
    "a tenth to a fifth of their rate": tenth_broken,
    "one broken to 0": one_broken,
    "all 10 points down": partial(down, 0.1),
}


def outage(share: float, number: int, recorded: int) -> Conditions:
    return Conditions(recorded=recorded, outage=share, outage_round=number, is_burst=number > 0)


def situations(recorded: int) -> Iterator[tuple[str, str, Conditions]]:
    """Name, change and conditions of each row of the table about two versions."""
    for change in VERSION_CHANGES:
        for deviation in (0.0, 0.3, 0.6, 1.0):
            yield f"{change}, days {deviation}", change, Conditions(deviation, recorded)
    for share in (0.1, 0.2, 0.4):
        for number in (0, 1, 3):
            name = f"an outage fails {share:.0%} of round {number + 1}"
            yield name, "nothing changed", outage(share, number, recorded)
    yield "both versions 10 points down", "nothing changed", Conditions(recorded=recorded, world_drop=0.1)
    yield "errors: 10 % on both", "nothing changed", Conditions(recorded=recorded, errors=(0.1, 0.1))
    yield "errors: 30 % on the new version", "nothing changed", Conditions(recorded=recorded, errors=(0.3, 0.0))
    yield "answers from a cache, known", "nothing changed", Conditions(recorded=recorded, cached="known")
    yield "answers from a cache, unnoticed", "nothing changed", Conditions(recorded=recorded, cached="hidden")
    cold = Conditions(recorded=recorded, outage=0.3, outage_round=-1, is_burst=True)
    yield "cold start", "nothing changed", cold
    yield "cold start, the new version first", "nothing changed", replace(cold, is_interleaved=False)


def simulate_versions(setting: tuple[str, str, int, Conditions, int, str]) -> Cell:
    """Simulate the gate with two versions; functions have no name in another process, so the setting has their keys."""
    mixture, change, cases, conditions, suites, seed = setting
    return simulate_pairs(MIXTURES[mixture], VERSION_CHANGES[change], cases, conditions, suites, seed)


def version_table(suites: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    for recorded in (10, 0):
        with_what = f"with a baseline of {recorded} trials on 5 days" if recorded else "without a baseline"
        yield f"\nTwo versions of an agent side by side (`--against`), 50 cases, {with_what}:\n"
        yield "| situation | red [95 % interval] | inconclusive | world changed | trials per case, both versions |"
        yield "|---|---|---|---|---|"
        rows = list(situations(recorded))
        settings = [
            (next(iter(MIXTURES)), change, 50, conditions, suites, f"{seed} {recorded} {name}")
            for name, change, conditions in rows
        ]
        for (name, _, _), cell in zip(rows, pool.map(simulate_versions, settings), strict=True):
            red = share_of(cell.verdicts[GateVerdict.REGRESSION], suites)
            unsure, world = (cell.share(verdict) for verdict in (GateVerdict.INCONCLUSIVE, GateVerdict.WORLD_CHANGED))
            interval = f"{red.mean:.1%} [{red.low:.1%}, {red.high:.1%}]"
            yield f"| {name} | {interval} | {unsure:.1%} | {world:.1%} | {cell.trials:.2f} |"


def other_mixtures_table(suites: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield "\nTwo versions, nothing changed, other suites (days 0.6):\n"
    yield "| rates | cases | recorded | red | inconclusive | trials per case, both versions |"
    yield "|---|---|---|---|---|---|"
    rows = [(mixture, 50, recorded) for mixture in MIXTURES for recorded in (10, 0)]
    rows += [(mixture, cases, 3) for mixture in ("all flaky", "all near-certain") for cases in (5, 20, 200)]
    settings = [
        (mixture, "nothing changed", cases, Conditions(0.6, recorded, min(5, recorded or 5)), suites, f"{seed}")
        for mixture, cases, recorded in rows
    ]
    for (mixture, cases, recorded), cell in zip(rows, pool.map(simulate_versions, settings), strict=True):
        red, unsure = cell.share(GateVerdict.REGRESSION), cell.share(GateVerdict.INCONCLUSIVE)
        yield f"| {mixture} | {cases} | {recorded} | {red:.1%} | {unsure:.1%} | {cell.trials:.2f} |"


def run_of(name: str, cases: list[Case], rates: Rates, repeats: int, rng: random.Random) -> Run:
    """A run in memory whose trials pass with the rate of their case."""
    trials = []
    for case, rate in zip(cases, rates, strict=True):
        for number in range(1, repeats + 1):
            passed = rng.random() < rate
            outcome = Outcome.PASSED if passed else Outcome.FAILED
            score = Score("ExactMatch", outcome, float(passed), 0.5, fingerprint="f")
            reply = Reply("Right." if passed else "Wrong.")
            trials.append(
                Trial("suite", case, number, len(trials), outcome, replies=(reply,), scores=(score,), agent="a")
            )
    suite = SuiteInfo("suite", None, "native", "agent", "a", Criteria(), len(cases), len(trials))
    return Run(name, 0.0, (suite,), [TrialSummary.of(trial) for trial in trials], trials)


def false_differences(setting: tuple[int, int, int, int]) -> tuple[int, int]:
    """How often two runs of one agent are called worse or better, and how often an evaluator is said to differ."""
    count, repeats, pairs, _ = setting
    rng = random.Random(repr(setting))
    evaluators = (EvaluatorSpec("ExactMatch"),)
    cases = [
        Case(id=f"case-{n}", turns=(Turn("q", Expected(output="a")),), evaluators=evaluators) for n in range(count)
    ]
    worse_or_better = differing = 0
    for _ in range(pairs):
        rates = default_suite(rng, count)
        one, other = (run_of(name, cases, rates, repeats, rng) for name in ("one", "other"))
        comparison = compare_runs(one, other)
        worse_or_better += comparison.verdict in ("regression", "improvement")
        differing += any(item.differs for item in comparison.evaluators)
    return worse_or_better, differing


def comparison_table(pairs: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    yield f"\nTwo runs of one and the same agent, {pairs:,} pairs per row: how often they are called different\n"
    yield "| cases | trials per case | called worse or better | an evaluator is said to differ |"
    yield "|---|---|---|---|"
    settings = [(cases, repeats, pairs, seed) for cases, repeats in ((20, 1), (50, 1), (200, 1), (20, 3), (50, 5))]
    for (cases, repeats, *_), counts in zip(settings, pool.map(false_differences, settings), strict=True):
        called, differing = (count / pairs for count in counts)
        yield f"| {cases} | {repeats} | {called:.1%} | {differing:.1%} |"


def measure_gate_accuracy(suites: int) -> list[Row]:
    """False alarms and trials per case of the default suite: 50 cases with ten recorded trials each, no change."""
    red, _, trials = simulate(("**proctor**", next(iter(MIXTURES)), "nothing changed", 50, (10,), suites, 1))
    return [
        at_most(f"gate, nothing changed: red builds of {suites}", 100 * red, 100 * FALSE_ALARMS, " %"),
        at_most("gate, nothing changed: trials per case", trials, GATE_TRIALS, ""),
    ]


PARTS = ("gates", "mixtures", "days", "versions", "comparison")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", type=int, default=100, help="simulated suites for each cell (default 100)")
    parser.add_argument("--pairs", type=int, default=200, help="pairs of runs for each row of the comparison (200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--cases", type=int, nargs="*", default=[20, 50, 200], help="sizes of the suites")
    parser.add_argument("--recorded", type=int, nargs="*", default=[5, 10, 20], help="recorded trials per case")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="what to simulate (default: all)")
    options = parser.parse_args()
    print(f"{options.suites} simulated suites for each cell, seed {options.seed}.", flush=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        parts = {
            "gates": main_table(options, pool),
            "mixtures": false_alarm_table(options.suites, options.seed, pool),
            "days": day_table(options.suites, options.seed, pool),
            "versions": chain(
                version_table(options.suites, options.seed, pool),
                other_mixtures_table(options.suites, options.seed, pool),
            ),
            "comparison": comparison_table(options.pairs, options.seed, pool),
        }
        for part in options.parts:
            for line in parts[part]:
                print(line, flush=True)


if __name__ == "__main__":
    main()
