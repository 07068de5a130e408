"""The cases that wait for a person or a model, why, and the commands that settle them: once for all of them.

Every report lists pending cases with this: the same reason for 26 cases is one line, and the next command is complete.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.judging.judge import is_rule_based
from proctor.reporting.wording import plural
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import headline_reason
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict

MAX_READ = 200
"""Cases whose trials are read for their reasons."""
MAX_REASONS = 3
MAX_REASON = 300


@dataclass(frozen=True, slots=True)
class PendingCases:
    """The pending cases of a run."""

    names: Sequence[str]
    """Suite and id of each."""
    reasons: Sequence[str]
    """Why, the most frequent first, each with the number of cases if several share it."""
    commands: Sequence[tuple[str, str]]
    """What to do next and its command, such as `grade them` and `proctor grade 20260101-000000-cafe`."""

    @property
    def title(self) -> str:
        """`1 case is pending`, `26 cases are pending`."""
        return f"{plural(len(self.names), 'case')} {'is' if len(self.names) == 1 else 'are'} pending"


def pending_cases(run: Run, verdict: RunVerdict) -> PendingCases | None:
    """The cases without a verdict that a person or a model can settle; `None` if there are none."""
    cases = [case for suite in verdict.suites for case in suite.cases if case.outcome is Outcome.PENDING]
    if not cases:
        return None
    addresses = {(case.suite, case.case_id) for case in cases[:MAX_READ]}
    reasons: dict[str, set[tuple[str, str]]] = {}
    judges: Counter[str] = Counter()
    for trial in run.trials_of(addresses):
        if trial.outcome is Outcome.PENDING:
            reasons.setdefault(headline_reason(trial, MAX_REASON), set()).add((trial.suite, trial.case.id))
            judges.update(judge_name(score) for score in trial.scores if score.outcome is Outcome.PENDING)
    by_rules = any(judge and is_rule_based(judge) for judge in judges)
    return PendingCases(
        [f"{case.suite}/{case.case_id}" for case in cases],
        _reason_lines({reason: len(own) for reason, own in reasons.items() if reason}),
        _commands(run, "it" if len(cases) == 1 else "them", by_rules=by_rules),
    )


def _reason_lines(reasons: dict[str, int]) -> list[str]:
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    lines = [f"{plural(count, 'case')}: {reason}" if count > 1 else reason for reason, count in ordered[:MAX_REASONS]]
    more = len(ordered) - len(lines)
    return [*lines, f"and {plural(more, 'more reason')}"] if more else lines


def _commands(run: Run, them: str, *, by_rules: bool) -> list[tuple[str, str]]:
    """What comes next: a person grades a stored run, or a model judges what the rule-based judge left open."""
    if run.store is None:  # a run in Python, which no command can find
        return [(f"let a model judge {them}", 'run.rescore(judge="PROVIDER:MODEL")')] if by_rules else []
    store = "" if run.store == ".proctor" else f" --store {shlex.quote(run.store)}"
    commands = [(f"grade {them}", f"proctor grade {run.id}{store}")]
    if by_rules and any(info.path for info in run.suites):
        commands.append((f"let a model judge {them}", f"proctor rescore {run.id} --judge PROVIDER:MODEL{store}"))
    return commands
