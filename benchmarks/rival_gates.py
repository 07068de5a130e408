"""How often the gates of other packages are red on the same simulated suites as Proctor's, and what they cost.

Each rival is installed from PyPI, in the version below, into its own environment. A driver in `drivers/` runs there and
passes the outcomes to the function with which the rival decides, with its default settings. The suites are those of
`gate_accuracy.py` (50 cases, seven of ten nearly certain, three of ten flaky), in the worlds of `two_versions.py`. In
the same circumstances all gates get suites with the same rates.

A rival that cannot be installed, or fails, has a row that says so.

    python benchmarks/rival_gates.py                  # the tables of benchmarks/gate.md; about five minutes
    python benchmarks/rival_gates.py --suites 20      # quick and rough
    python benchmarks/rival_gates.py --environments /tmp/rivals
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from environments import HERE, VENVS, Interpreter, environment_with, installed_version
from gate_accuracy import VERSION_CHANGES, default_suite
from measuring import clean_environment
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import Gate, TrialRequest
from proctor.results.gate_result import NEW_ARM, OLD_ARM, GateVerdict
from proctor.results.score import Outcome
from proctor.results.statistics import share_of
from two_versions import Conditions, World, decide

CASES = 50
DAYS = 5

RIVALS = {
    "statgate": ("statgate==0.1.1",),
    "agentassay": ("agentassay==0.2.3",),
    "maida-ai": ("maida-ai==0.5.3.post1",),
    "regression-substrate": ("regression-substrate==0.3.0",),
}
DRIVERS = {
    "statgate": "drive_gate_statgate.py",
    "agentassay": "drive_gate_agentassay.py",
    "maida-ai": "drive_gate_maida.py",
    "regression-substrate": "drive_gate_regression_substrate.py",
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """A change of the agent, and the spread of the provider's days."""

    name: str
    change: str
    day_deviation: float = 0.0


ALL_CIRCUMSTANCES = (
    Circumstances("nothing changed", "nothing changed"),
    Circumstances("nothing changed, days of sd 0.6", "nothing changed", 0.6),
    Circumstances("a tenth to a fifth of their rate", "a tenth to a fifth of their rate"),
    Circumstances("one broken to 0", "one broken to 0"),
    Circumstances("all 10 points down", "all 10 points down"),
)


@dataclass(frozen=True, slots=True)
class Participant:
    """A gate, and the trials that it gets."""

    gate: str
    """`baseline` and `versions` are Proctor's; the others are names on PyPI."""
    rule: str = ""
    """The argument of the driver, for a package with several rules."""
    recorded: int = 10
    """Trials per case of the old version, recorded on five days before."""
    new: int = 1
    """Trials per case of the new version. Proctor's gates request their own."""
    old: int = 0
    """Trials per case of the old version at the same time as those of the new one, which replace the recorded ones."""


PARTICIPANTS = (
    Participant("baseline"),
    Participant("versions"),
    # The job in statgate's README runs both versions and has one record per case; a cached baseline is described too.
    Participant("statgate", old=1),
    Participant("statgate"),
    Participant("statgate", old=10, new=10),
    # AgentAssay runs 30 trials per scenario by default and has no verdict about fewer, on either side.
    Participant("agentassay", "gate", recorded=30, new=30),
    Participant("agentassay", "gate", new=30),
    Participant("agentassay", "compare"),
    Participant("agentassay", "compare", new=30),
    # `maida init` writes a policy with 3 trials and says that the rule about the pass rate needs 25.
    Participant("maida-ai", "policy", new=3),
    Participant("maida-ai", "rate", new=25),
    # The template of regression-substrate runs each question once with both versions.
    Participant("regression-substrate", old=1),
    Participant("regression-substrate"),
    Participant("regression-substrate", old=10, new=10),
)


@dataclass(frozen=True, slots=True)
class Tally:
    """The verdicts and trials of one gate in the same circumstances."""

    verdicts: Counter[str]
    trials: float
    """Per case, those of both versions that run now."""

    def share(self, verdict: str) -> str:
        estimate = share_of(self.verdicts[verdict], self.verdicts.total())
        return f"{100 * estimate.mean:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def worlds(circumstances: Circumstances, recorded: int, suites: int, seed: int) -> Iterator[World]:
    """Simulated suites. The rates, and the outcomes of equally many recorded trials, are the same for all gates."""
    for suite in range(suites):
        rng = random.Random(f"{seed} {circumstances.name} {suite}")
        before = default_suite(rng, CASES)
        now = VERSION_CHANGES[circumstances.change](rng, before)
        yield World(rng, before, now, Conditions(circumstances.day_deviation, recorded, DAYS))


def recorded_outcomes(world: World) -> list[list[int]]:
    cases = zip(*world.runs, strict=True)
    return [[int(n < c.passes) for c in counts for n in range(c.trials)] for counts in cases]


def outcomes_now(world: World, arm: str, trials: int) -> list[list[int]]:
    """The outcomes of trials that run now, for each case."""
    requests = [TrialRequest(("suite", str(case)), arm) for case in range(CASES)]
    rounds = [world.run(requests) for _ in range(trials)]
    return [[int(outcome is Outcome.PASSED) for _, outcome, _ in results] for results in zip(*rounds, strict=True)]


def gate_with_baseline(world: World, seed: int) -> tuple[GateVerdict, int]:
    """The verdict of Proctor's gate with a baseline, and its trials."""
    records = {
        ("suite", str(case)): BaselineRecord(len(past), sum(past)) for case, past in enumerate(recorded_outcomes(world))
    }
    gate = Gate(records)
    trials = 0
    while requests := gate.next_trials():
        trials += len(requests)
        for request, outcome, _ in world.run(requests):
            gate.record(request.case, outcome)
    return gate.result().verdict, trials


def gate_with_versions(world: World, seed: int) -> tuple[GateVerdict, int]:
    """The verdict of Proctor's gate with two versions, and its trials."""
    return decide(world, CASES, seed)


PROCTOR: dict[str, Callable[[World, int], tuple[GateVerdict, int]]] = {
    "baseline": gate_with_baseline,
    "versions": gate_with_versions,
}
COLOURS = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.PENDING: "inconclusive"}


def measure_proctor(participant: Participant, circumstances: Circumstances, suites: int, seed: int) -> Tally:
    verdicts: Counter[str] = Counter()
    trials = 0
    for suite, world in enumerate(worlds(circumstances, participant.recorded, suites, seed)):
        verdict, count = PROCTOR[participant.gate](world, suite)
        verdicts[COLOURS[verdict.outcome]] += 1
        trials += count
    return Tally(verdicts, trials / suites / CASES)


def measure_rival(
    participant: Participant, python: Path, circumstances: Circumstances, suites: int, seed: int
) -> Tally | str:
    """The verdicts of a rival, or the last line of its error."""
    lines = []
    for world in worlds(circumstances, participant.recorded, suites, seed):
        before = outcomes_now(world, OLD_ARM, participant.old) if participant.old else recorded_outcomes(world)
        lines.append(json.dumps({"before": before, "now": outcomes_now(world, NEW_ARM, participant.new)}))
    command = [str(python), str(HERE / "drivers" / DRIVERS[participant.gate]), participant.rule]
    process = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=False, env=clean_environment()
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    if process.returncode or len(answers) != suites:
        return f"failed: {(process.stderr.strip() or 'no output').splitlines()[-1]}"
    trials = sum(answer["trials"] for answer in answers) / suites / CASES
    return Tally(Counter(answer["verdict"] for answer in answers), trials + participant.old)


Result = Tally | str
"""What was measured, or why there is nothing."""


def measure(
    participant: Participant, environment: Interpreter | None, circumstances: Circumstances, suites: int, seed: int
) -> Result:
    if participant.gate in PROCTOR:
        return measure_proctor(participant, circumstances, suites, seed)
    if environment is None:
        return "could not be installed"
    return measure_rival(participant, environment.python, circumstances, suites, seed)


def title(participant: Participant, environment: Interpreter | None) -> str:
    if participant.gate in PROCTOR:
        return {"baseline": "**Proctor**, `--gate`", "versions": "**Proctor**, `--gate --against`"}[participant.gate]
    version = f" {installed_version(environment, participant.gate)}" if environment else ""
    return f"{participant.gate}{version}{f', {participant.rule}' if participant.rule else ''}"


def inputs(participant: Participant) -> str:
    """The trials per case that a gate gets, in words."""
    old = f"{participant.old} old now" if participant.old else f"{participant.recorded} recorded"
    return f"{old}, {'new as requested' if participant.gate in PROCTOR else f'{participant.new} new'}"


def table(rows: dict[str, list[Result]], show: Callable[[Tally], str]) -> Iterator[str]:
    yield f"| gate | trials per case | {' | '.join(item.name for item in ALL_CIRCUMSTANCES)} |"
    yield "|---|---|" + "---|" * len(ALL_CIRCUMSTANCES)
    for head, results in rows.items():
        cells = (show(result) if isinstance(result, Tally) else result for result in results)
        yield f"| {head} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", type=int, default=200, help="simulated suites for each cell (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--environments", type=Path, default=VENVS, help="folder of the rivals' environments")
    options = parser.parse_args()
    environments = {name: environment_with(name, packages, options.environments) for name, packages in RIVALS.items()}
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = {}
        for participant in PARTICIPANTS:
            environment = environments.get(participant.gate)
            futures[f"{title(participant, environment)} | {inputs(participant)}"] = [
                pool.submit(measure, participant, environment, item, options.suites, options.seed)
                for item in ALL_CIRCUMSTANCES
            ]
        rows = {head: [future.result() for future in cells] for head, cells in futures.items()}
    print(f"{options.suites} simulated suites for each cell, seed {options.seed}.\n")
    print("Red builds [95 % interval] · trials per case:\n")
    print("\n".join(table(rows, lambda tally: f"{tally.share('red')} · {tally.trials:.2f}")))
    print("\nInconclusive:\n")
    print("\n".join(table(rows, lambda tally: tally.share("inconclusive"))))


if __name__ == "__main__":
    main()
