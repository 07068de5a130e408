"""AgentAssay decides on simulated suites; see `gate_lines.py` for input and output. Argument: `gate` or `compare`.

`gate`: each case is a scenario. `VerdictFunction.evaluate_regression` gives its verdict from the outcomes of the old
and of the new version (Fisher's test at 0.05, at least 30 trials on both sides), and `DeploymentGate.evaluate_suite`
decides about all of them. One BLOCK blocks the suite; an observed pass rate more than 5 % below the old one is a BLOCK
even if the test finds nothing. BLOCK exits with 1, WARN with 2, SKIP with 3.

`compare`: what `agentassay compare` does with two result files, which have no cases: `fisher_exact_regression` on the
passes of the whole suite. It exits with 1 if the difference is significant and is never inconclusive.
"""

from __future__ import annotations

import sys

from agentassay.statistics import fisher_exact_regression
from agentassay.verdicts import DeploymentGate, GateDecision, VerdictFunction
from gate_lines import GREEN, INCONCLUSIVE, RED, Outcomes, answer_lines, count

DECISIONS = {GateDecision.DEPLOY: GREEN, GateDecision.BLOCK: RED}


def gate(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    function = VerdictFunction()
    pairs = enumerate(zip(before, now, strict=True))
    verdicts = {f"case-{case}": function.evaluate_regression(old, new) for case, (old, new) in pairs}
    decision, _ = DeploymentGate().evaluate_suite(verdicts)
    return DECISIONS.get(decision, INCONCLUSIVE), count(now)


def compare(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    old, new = (sum(sum(case) for case in outcomes) for outcomes in (before, now))
    result = fisher_exact_regression(
        baseline_passes=old, baseline_n=count(before), current_passes=new, current_n=count(now), alpha=0.05
    )
    return (RED if result.significant else GREEN), count(now)


if __name__ == "__main__":
    answer_lines({"gate": gate, "compare": compare}[sys.argv[1]])
