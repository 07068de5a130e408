"""Maida decides on simulated suites; see `gate_lines.py` for input and output. Argument: `policy` or `rate`.

Maida compares the structure of runs (steps, tools, tokens), not answers, and its rules about passing have fixed limits:
what was recorded before does not matter to them. It gates one agent at a time, so each case is gated on its own, and
the suite gets the worst verdict (`aggregate_verdict`). FAIL exits with 1, PASS and INCONCLUSIVE with 0.

`policy`: `maida.gate.aggregate_metrics` with the policy that `maida init` writes. A failed trial is a run that did not
end with status `ok`, which violates its `stop_condition_reached`; steps and tokens are the same in all runs. As in that
policy, the trials of a case stop at its first violation.

`rate`: `maida.statistics.aggregate_outcomes`, its rule for `task_pass_rate` (FAIL if the upper Wilson bound is below
0.9), with the outcomes themselves. A policy cannot have this rule alone, since a run counts as failed for it only if it
violates an invariant, and then that fails the build already.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from gate_lines import GREEN, INCONCLUSIVE, RED, Outcomes, answer_lines, count
from maida.assertions import AssertionPolicy
from maida.gate import aggregate_metrics
from maida.policy import load_policy
from maida.scaffold import POLICY_TEMPLATE
from maida.statistics import GateVerdict, StatisticalResult, aggregate_outcomes, aggregate_verdict

VERDICTS = {GateVerdict.PASS: GREEN, GateVerdict.FAIL: RED, GateVerdict.INCONCLUSIVE: INCONCLUSIVE}
SAME_IN_ALL_RUNS = {"step_count": 2.0, "cost_tokens": 100.0}
BASELINE = {"trial_sample": {"metrics": {name: [value] for name, value in SAME_IN_ALL_RUNS.items()}}}


def starter_policy() -> AssertionPolicy:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(POLICY_TEMPLATE, encoding="utf-8")
        return load_policy(path)


STARTER_POLICY = starter_policy()


def until_first_failure(trials: list[bool]) -> list[bool]:
    return trials if all(trials) else trials[: trials.index(False) + 1]


def results_of_case(trials: list[bool]) -> list[StatisticalResult]:
    return aggregate_metrics(
        policy=STARTER_POLICY,
        trial_values=[SAME_IN_ALL_RUNS for _ in trials],
        trial_invariants=[{"stop_condition_reached": passed, "forbidden_tools": True} for passed in trials],
        process_outcomes=[True for _ in trials],
        baseline=BASELINE,
        trials_budgeted=STARTER_POLICY.trials,
        stopping_rule="fixed_n_fail_fast",
    )


def policy(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    used = [until_first_failure(trials[: STARTER_POLICY.trials]) for trials in now]
    results = [result for trials in used for result in results_of_case(trials)]
    return VERDICTS[aggregate_verdict(results)], count(used)


def rate(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    results = [aggregate_outcomes(f"case-{case}", trials) for case, trials in enumerate(now)]
    return VERDICTS[aggregate_verdict(results)], count(now)


if __name__ == "__main__":
    answer_lines({"policy": policy, "rate": rate}[sys.argv[1]])
