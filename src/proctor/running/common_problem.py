"""Stops a suite whose trials all hit the same problem, such as a missing key: the others would fail the same way.

A problem that is not the agent's and that lasts is nearly always one of the machine or the account. To run 500 trials
into it costs time, and sometimes money for the part before it. So once the first trials of a suite have hit the same
problem and no trial had another result, no new trial starts. Those that run already are waited for. If one of them ends
in any other way, the problem is not common, and the suite goes on; else the rest of it is not run.

It is decided for each suite: another one may have an agent that needs no key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST_TRIALS = 3
"""How many trials of a suite must hit the same problem before no other one starts."""


@dataclass(slots=True)
class _Findings:
    problem: str = ""
    trials: int = 0
    is_common: bool = True
    """Whether every trial so far had this problem."""


@dataclass(slots=True)
class CommonProblems:
    """What the trials of each suite, by its name, have in common."""

    _findings: dict[str, _Findings] = field(default_factory=dict)

    def record(self, suite: str, problem: str) -> None:
        """Count a finished trial; `problem` is empty unless it hit one that lasts."""
        findings = self._findings.setdefault(suite, _Findings(problem))
        findings.trials += 1
        findings.is_common = findings.is_common and bool(problem) and problem == findings.problem

    def of(self, suite: str) -> str:
        """The problem that all trials of a suite have hit so far, if there were enough of them; else nothing."""
        findings = self._findings.get(suite)
        is_common = findings is not None and findings.is_common and findings.trials >= FIRST_TRIALS
        return findings.problem if findings is not None and is_common else ""


def stop_note(problem: str, count: int) -> str:
    """Why the rest of a suite was not run."""
    others = f"the other {count:,} trials" if count > 1 else "the other trial"
    was = "were" if count > 1 else "was"
    return f"{problem}; {others} would fail the same way and {was} not run"
