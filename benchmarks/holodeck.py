"""The tests of agent.yaml files with BLEU and ROUGE, beside HoloDeck's own TestExecutor on the same files and backend.

The backend gives the message back and says that it called the expected tool, so that what is left is the framework and
its metrics. Both read the files, run the tests one after another and write their reports in Markdown and JSON. Both
must have measured every test and arrive at the same BLEU and ROUGE; if not, nothing is reported. HoloDeck takes at
most 1,000 tests from a file, so there are as many files as it needs. Its ROUGE is measured as it ships, and without
the bootstrap that `evaluate` puts even a single pair through. The peer's environment is 1.6 GB; it is made only when
this group is asked for by name.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import HERE, Interpreter, installed_version, peer
from measuring import Broken, Contender, clean_environment
from one_and_many import OneAndMany, Spent, compare_both
from table import Row

PEER = "holodeck-ai"
MOST = 1000
"""How many tests HoloDeck takes from a file."""
ROUNDS = 2
"""At most: a round takes HoloDeck minutes."""
WHAT = "tests with BLEU and ROUGE"
METRICS = ("bleu", "rouge")

HEAD = """\
name: desk
model: {provider: ollama, name: none, endpoint: "http://127.0.0.1:9", api_key: none}
instructions: {inline: Answer.}
evaluations:
  metrics:
    - {type: standard, metric: bleu, threshold: 0.5}
    - {type: standard, metric: rouge, threshold: 0.5}
test_cases:
"""
TEST = """\
  - name: case {number}
    input: The balance of account {number} is 100 euros and it was opened on the first day of the year
    ground_truth: The balance of account {number} is 100 euros and it was opened on the second day of the year
    expected_tools: [look_up]
"""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a report says of its tests, and the mean scores that were computed before the report was made."""

    passed: int
    reported: dict[str, float]
    computed: dict[str, float]

    def __str__(self) -> str:
        means = ", ".join(f"mean {metric} {mean:.4f}" for metric, mean in self.reported.items())
        lost = [metric for metric in METRICS if not math.isclose(self.reported[metric], self.computed[metric])]
        return f"{self.passed} passed, {means}" + "".join(
            f"; its runner loses the {metric} of {self.computed[metric]:.4f} that it computed" for metric in lost
        )


def measure_holodeck(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    files = {size: write_tests(folder, size) for size in (1, cases)}
    contenders = [_contender("proctor", [str(proctor.python), str(HERE / "drive_holodeck.py")], folder, files)]
    other = peer(PEER) if peers else None
    if other is not None:
        contenders += _peer_contenders(other, folder, files)
    spent = compare_both(contenders, cases, min(rounds, ROUNDS))
    found = {it.title: _findings(it.many.folder, spent[it.title], cases) for it in contenders}
    _require_the_same_scores(found)
    rows = _against(*spent.values()) if other is not None else []
    if peers and other is None:
        rows.append(Row(f"- {PEER}", "not installed"))
    rows += [it.told(WHAT) for it in spent.values()]
    return rows + [Row(f"- what came of them: {title}", str(findings)) for title, findings in found.items()]


def write_tests(folder: Path, cases: int) -> list[str]:
    """Files of agents as small as HoloDeck accepts them; their model is never asked."""
    paths = []
    for start in range(0, cases, MOST):
        tests = (TEST.format(number=number) for number in range(start, min(start + MOST, cases)))
        path = folder / f"agent-{cases}-from-{start}.yaml"
        path.write_text(HEAD + "".join(tests), encoding="utf-8")
        paths.append(str(path))
    return paths


def _peer_contenders(interpreter: Interpreter, folder: Path, files: dict[int, list[str]]) -> list[OneAndMany]:
    title = f"{PEER} {installed_version(interpreter, PEER)}"
    driver = [str(interpreter.python), str(HERE / "peers" / "drive_holodeck.py")]
    return [
        _contender(title, [*driver, "bootstrap"], folder, files),
        _contender(f"{title}, no bootstrap", [*driver, "plain"], folder, files),
    ]


def _contender(title: str, driver: Sequence[str], folder: Path, files: dict[int, list[str]]) -> OneAndMany:
    environment = clean_environment(DEEPEVAL_TELEMETRY_OPT_OUT="YES", HF_HUB_OFFLINE="1", HF_HOME=str(folder))
    sizes = []
    for size, paths in files.items():
        place = folder / f"{title}, {size}"
        place.mkdir()
        sizes.append(Contender(place.name, [*driver, *paths], place, environment))
    return OneAndMany(title, *sizes)


def _findings(folder: Path, spent: Spent, cases: int) -> Findings:
    """From the report that was written last; a metric that could not be measured is not compared with one that was."""
    results = json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]
    scores: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for metric in (metric for result in results for metric in result["metric_results"] if metric["error"] is None):
        scores[metric["metric_name"]].append(metric["score"])
    called = sum(result["tools_matched"] is True for result in results)
    if {len(results), called, *map(len, scores.values())} != {cases}:
        raise Broken(f"{spent.title} did not measure all of {cases} tests; see what it printed:\n{spent.many.printed}")
    reported = {metric: statistics.fmean(each) for metric, each in scores.items()}
    said = spent.many.printed.splitlines()
    return Findings(
        sum(result["passed"] for result in results), reported, reported | json.loads(said[-1] if said else "{}")
    )


def _require_the_same_scores(found: dict[str, Findings]) -> None:
    for metric in METRICS:
        means = {title: findings.computed[metric] for title, findings in found.items()}
        if not math.isclose(min(means.values()), max(means.values()), rel_tol=1e-9):
            raise Broken(f"{metric} is not the same everywhere, so that its cost says nothing: {means}")


def _against(own: Spent, shipped: Spent, without_bootstrap: Spent) -> list[Row]:
    what = "same agent.yaml"
    note = "by rouge_score in evaluate on this machine, in place of the script that evaluate downloads"
    return [
        *own.against(shipped, what),
        own.case_against(without_bootstrap, what),
        Row(f"- ROUGE of {PEER}", note),
    ]
