"""statgate decides on simulated suites; see `gate_lines.py` for input and output.

`statgate.evaluate_gate` decides, as `statgate compare` calls it. Its input is one record per trial with `passed`; it
averages the trials of a case and looks at the difference per case. Settings are its defaults (margin 0.02, alpha 0.05),
with the seed of its README. BLOCK exits with 1; INCONCLUSIVE exits with 2, which its GitHub action lets pass by
default.
"""

from __future__ import annotations

from gate_lines import GREEN, INCONCLUSIVE, RED, Outcomes, answer_lines, count
from statgate import EvalRecord, GateSettings, Verdict, evaluate_gate

VERDICTS = {Verdict.SHIP: GREEN, Verdict.BLOCK: RED, Verdict.INCONCLUSIVE: INCONCLUSIVE}


def records(outcomes: Outcomes) -> list[EvalRecord]:
    return [
        EvalRecord(case_id=f"case-{case}", passed=passed, run_index=number)
        for case, trials in enumerate(outcomes)
        for number, passed in enumerate(trials)
    ]


def decide(before: Outcomes, now: Outcomes) -> tuple[str, int]:
    report = evaluate_gate(records(before), records(now), GateSettings(seed=42))
    return VERDICTS[report.verdict], count(now)


if __name__ == "__main__":
    answer_lines(decide)
