"""Cases that did not pass: their trials grouped by reason, and as JSON for programs that fix them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.json_data import Json, to_json
from proctor.base.positions import Position
from proctor.cases.formats.loading import case_positions
from proctor.cases.identity import CaseAddress
from proctor.reporting.call_pairs import CallFit, CallPair, pair_calls_of
from proctor.reporting.explain import answer_text, call_text, expected_call_text, expected_lines
from proctor.reporting.failure_causes import Signature, signature
from proctor.reporting.wording import passed_text
from proctor.results.reasons import deciding_score, headline_reason, reason_order
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial
from proctor.results.verdict import CaseVerdict, RunVerdict, suites_of_old_version

FAILED_OR_ERROR = (Outcome.FAILED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class DistinctReason:
    """One reason for which trials of a case failed or ended in an error. The JSON report lists these fields."""

    text: str
    """The reason of the first of these trials, on one line."""
    outcome: Outcome
    trials: int
    """How many trials have this reason."""
    number: int
    """The number of the trial that serves as the example."""
    position: int
    """The position of that trial in the run."""


@dataclass(frozen=True, slots=True)
class FailingCase:
    """A case of which at least one trial failed or ended in an error."""

    suite: str
    case_id: str
    outcome: Outcome
    """Of the case, by the criteria of its suite: a case may pass although one of its trials failed."""
    counts: Mapping[Outcome, int]
    """Its trials by outcome."""
    reasons: tuple[DistinctReason, ...] = ()
    """The most frequent first; empty for cases beyond the limit of `failing_cases`."""
    quarantined: bool = False
    is_flaky: bool = False
    """Whether it both passed and failed."""

    @property
    def example(self) -> DistinctReason | None:
        """The most frequent reason, with the trial that shows it."""
        return self.reasons[0] if self.reasons else None

    @property
    def headline(self) -> str:
        """The reason that is shown first, on one line."""
        return self.reasons[0].text if self.reasons else ""

    @property
    def share(self) -> str:
        """`0/5 passed`; see `trials_text`."""
        return trials_text(self.counts)


class ReasonCounter:
    """Counts the distinct reasons of one case, trial by trial, without keeping the trials."""

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._reasons: dict[Signature, DistinctReason] = {}

    def add(self, trial: Trial) -> bool:
        """Count a trial that failed or ended in an error; return whether it is now the example of its reason.

        The example is the first such trial in the run, whichever finished first.
        """
        key = signature(trial)
        reason = self._reasons.get(key)
        if reason is not None and reason.position < trial.position:
            self._reasons[key] = replace(reason, trials=reason.trials + 1)
            return False
        trials = 1 if reason is None else reason.trials + 1
        text = headline_reason(trial, self._limit)
        self._reasons[key] = DistinctReason(text, trial.outcome, trials, trial.number, trial.position)
        return True

    def reasons(self) -> tuple[DistinctReason, ...]:
        """Failures before errors, the most frequent first."""
        return tuple(sorted(self._reasons.values(), key=lambda item: reason_order(item.outcome, item.trials)))


def failing_cases(
    run: Run,
    verdict: RunVerdict,
    *,
    only: Collection[CaseAddress] | None = None,
    max_with_reasons: int | None = None,
    limit: int = 200,
) -> list[FailingCase]:
    """Every case with a trial that failed or ended in an error: failed cases first, then errors, each in suite order.

    Cases of an old version, with which a gate compares, are not among them. `only` restricts the result to these cases.
    Reasons are read for the first `max_with_reasons` cases, or for all, and cut at `limit` characters. No more trials
    are read than that takes.
    """
    counts: dict[CaseAddress, Counter[Outcome]] = {}
    last: dict[CaseAddress, int] = {}
    for summary in run.summaries:
        address = (summary.suite, summary.case_id)
        counts.setdefault(address, Counter())[summary.outcome] += 1
        if summary.outcome in FAILED_OR_ERROR:
            last[address] = max(last.get(address, 0), summary.position)
    addresses = last.keys() if only is None else last.keys() & set(only)
    old = suites_of_old_version(run)
    suites = [suite for suite in verdict.suites if suite.name not in old]
    cases = [case for suite in suites for case in suite.cases if (case.suite, case.case_id) in addresses]
    cases.sort(key=lambda case: case.outcome.rank)
    with_reasons = [(case.suite, case.case_id) for case in cases[:max_with_reasons]]
    trials = run.trials_of(set(with_reasons))
    reasons = _count_reasons(trials, {address: last[address] for address in with_reasons}, limit)
    return [_failing_case(case, counts, reasons) for case in cases]


def trials_text(counts: Mapping[Outcome, int]) -> str:
    """How many trials of a case passed: `0/5 passed`, `3/5 passed, 1 error`; empty for a single trial."""
    return passed_text(counts.get(Outcome.PASSED, 0), sum(counts.values()), counts.get(Outcome.ERROR, 0))


def _count_reasons(
    trials: Iterable[Trial], last: Mapping[CaseAddress, int], limit: int
) -> dict[CaseAddress, ReasonCounter]:
    """The reasons of the cases in `last`, which has the position of the last unsuccessful trial of each."""
    counters: dict[CaseAddress, ReasonCounter] = {}
    end = max(last.values(), default=-1)
    for trial in trials if last else ():
        address = (trial.suite, trial.case.id)
        if trial.outcome in FAILED_OR_ERROR and address in last:
            counters.setdefault(address, ReasonCounter(limit)).add(trial)
        if trial.position >= end:
            break
    return counters


def _failing_case(
    case: CaseVerdict,
    counts: Mapping[CaseAddress, Mapping[Outcome, int]],
    counters: Mapping[CaseAddress, ReasonCounter],
) -> FailingCase:
    address = (case.suite, case.case_id)
    reasons = counters[address].reasons() if address in counters else ()
    return FailingCase(*address, case.outcome, counts[address], reasons, case.quarantined, case.is_flaky)


MAX_TEXT = 2_000
"""Maximum characters of an expectation, an answer or a reason in the JSON report."""
MISMATCHES = (CallFit.DIFFERS, CallFit.MISSING, CallFit.OUT_OF_ORDER, CallFit.FORBIDDEN)


def failures(run: Run, verdict: RunVerdict) -> list[dict[str, Json]]:
    """One JSON object per case that did not pass, failures before errors."""
    cases = failing_cases(run, verdict, limit=MAX_TEXT)
    if not cases:
        return []
    suites = {info.name: info for info in run.suites}
    example_positions = {case.example.position for case in cases if case.example is not None}
    trials = run.trials_of({(case.suite, case.case_id) for case in cases})
    examples = {(trial.suite, trial.case.id): trial for trial in trials if trial.position in example_positions}
    positions = {suite: case_positions_in(suites[suite]) for suite in {case.suite for case in cases}}
    return [
        {
            "id": f"{case.suite}/{case.case_id}",
            "suite": case.suite,
            "case": case.case_id,
            "outcome": case.outcome.value,
            "flaky": case.is_flaky,
            "quarantined": case.quarantined,
            "counts": {outcome.value: count for outcome, count in case.counts.items()},
            **_location(positions[case.suite].get(case.case_id), suites[case.suite]),
            "reasons": [to_json(reason) for reason in case.reasons],
            "divergence": _divergence(examples.get((case.suite, case.case_id))),
            "reproduce": reproduce_command(run, suites[case.suite], case),
        }
        for case in cases
    ]


def _location(position: Position | None, info: SuiteInfo) -> dict[str, Json]:
    if position is None:
        return {"file": info.path, "line": None}
    return {"file": str(position.path), "line": position.line}


def case_positions_in(info: SuiteInfo) -> dict[str, Position]:
    """By case: its file and line, if the file still exists and still has the case."""
    return {} if info.path is None else case_positions(Path(info.path))


def reproduce_command(run: Run, info: SuiteInfo, case: FailingCase) -> str | None:
    """The command that runs only this case, or `None` for a suite built in Python."""
    if info.path is None or info.path.endswith(".py"):
        return None
    words = ["proctor", "test", f"{info.path}::{case.case_id}"]
    option = run.options.get("arms") or run.options.get("agents")  # its name in earlier versions
    arms = option if isinstance(option, dict) else {}
    if isinstance(arms.get(info.agent), str):
        words += ["--arms", f"{info.agent}={arms[info.agent]}"]
    for name in ("agent", "judge"):
        if isinstance(run.options.get(name), str):
            words += [f"--{name}", str(run.options[name])]
    return shlex.join(words)


def _divergence(trial: Trial | None) -> dict[str, Json] | None:
    """Where the trial first differs from what was expected: a tool call, or else the answer or that there is none."""
    if trial is None:
        return None
    for index in range(min(len(trial.case.turns), len(trial.replies))):
        for pair in pair_calls_of(trial, index):
            if pair.fit in MISMATCHES:
                return {"turn": index + 1, "kind": f"call {pair.fit}", **_sides(pair)}
    if trial.end_reason and not trial.is_answered:
        return {
            "turn": len(trial.replies) + 1,
            "kind": "no answer",
            "expected": None,
            "got": trial.end_reason[:MAX_TEXT],
        }
    score = deciding_score(trial)
    if score is None:
        return None
    index = len(trial.replies) - 1 if score.turn is None else score.turn
    if not 0 <= index < len(trial.replies):
        return None
    expected = "\n".join(expected_lines(trial.case.turns[index].expected, MAX_TEXT)) or None
    output = answer_text(trial.replies[index])[:MAX_TEXT]
    return {"turn": index + 1, "kind": f"score of {score.evaluator}", "expected": expected, "got": output}


def _sides(pair: CallPair) -> dict[str, Json]:
    expected = pair.expected_text if pair.expected is None else expected_call_text(pair.expected, MAX_TEXT)
    return {"expected": expected or None, "got": None if pair.call is None else call_text(pair.call, MAX_TEXT)}
