"""Cases that did not pass: their trials grouped by reason, and as data for programs that mend them."""

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
from proctor.reporting.call_pairs import CallFit, CallPair, call_findings, pair_calls
from proctor.reporting.explain import answer_text, call_text, expected_call_text, expected_lines
from proctor.reporting.failure_causes import Signature, signature
from proctor.reporting.wording import plural
from proctor.results.reasons import deciding_score, headline_reason, reason_order
from proctor.results.run import Outcome, Run, SuiteInfo, TrialResult
from proctor.results.verdict import CaseVerdict, RunVerdict

FAILED_OR_ERROR = (Outcome.FAILED, Outcome.ERROR)


@dataclass(frozen=True, slots=True)
class DistinctReason:
    """One way in which trials of a case went wrong."""

    text: str
    """The reason of the first of them, on one line."""
    outcome: Outcome
    trials: int
    """How many trials went wrong in this way."""
    number: int
    """The repetition that is the example of it."""
    position: int
    """The place of that trial in the plan."""


@dataclass(frozen=True, slots=True)
class FailingCase:
    """A case of which at least one trial failed or ended in an error."""

    suite: str
    case_id: str
    outcome: Outcome
    """Of the case, by the rule of its suite: it may have passed although a trial failed."""
    counts: Mapping[Outcome, int]
    """Its trials by outcome."""
    reasons: tuple[DistinctReason, ...] = ()
    """The most frequent first; empty where they were not asked for."""
    quarantined: bool = False
    is_flaky: bool = False
    """Whether it both passed and failed."""

    @property
    def example(self) -> DistinctReason | None:
        """Where to find the trial that shows what went wrong."""
        return self.reasons[0] if self.reasons else None

    @property
    def headline(self) -> str:
        """The reason that is shown first, on one line."""
        return self.reasons[0].text if self.reasons else ""

    @property
    def share(self) -> str:
        """`5 of 5`; see `share_text`."""
        return share_text(self.outcome, self.counts)


class ReasonCounter:
    """Counts the distinct reasons of one case while its trials come; it holds no trial."""

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._found: dict[Signature, DistinctReason] = {}

    def add(self, trial: TrialResult) -> bool:
        """Take a trial that went wrong; whether it is now the example of its reason, as the earliest in the plan."""
        key = signature(trial)
        known = self._found.get(key)
        if known is not None and known.position < trial.position:
            self._found[key] = replace(known, trials=known.trials + 1)
            return False
        trials = 1 if known is None else known.trials + 1
        text = headline_reason(trial, self._limit)
        self._found[key] = DistinctReason(text, trial.outcome, trials, trial.number, trial.position)
        return True

    def reasons(self) -> tuple[DistinctReason, ...]:
        """Failures before errors, the most frequent first."""
        return tuple(sorted(self._found.values(), key=lambda one: reason_order(one.outcome, one.trials)))


def failing_cases(
    run: Run,
    verdict: RunVerdict,
    *,
    only: Collection[CaseAddress] | None = None,
    most_reasons: int | None = None,
    limit: int = 200,
) -> list[FailingCase]:
    """Every case with a trial that went wrong: failed cases first, then errors, each in the order of the plan.

    `only` names the cases that are of interest, by suite and id. Reasons are looked up for the first `most_reasons` of
    them, or for all, and cut at `limit` characters; no more trials are read than that takes.
    """
    counts: dict[CaseAddress, Counter[Outcome]] = {}
    last: dict[CaseAddress, int] = {}
    for summary in run.summaries:
        address = (summary.suite, summary.case_id)
        counts.setdefault(address, Counter())[summary.outcome] += 1
        if summary.outcome in FAILED_OR_ERROR:
            last[address] = max(last.get(address, 0), summary.position)
    wanted = last.keys() if only is None else last.keys() & set(only)
    cases = [case for suite in verdict.suites for case in suite.cases if (case.suite, case.case_id) in wanted]
    cases.sort(key=lambda case: case.outcome.rank)
    chosen = [(case.suite, case.case_id) for case in cases[:most_reasons]]
    tallies = _count_reasons(run.trials, {address: last[address] for address in chosen}, limit)
    return [_failing_case(case, counts, tallies) for case in cases]


def share_text(outcome: Outcome, counts: Mapping[Outcome, int]) -> str:
    """How many trials of a case ended as the case did: `5 of 5`, `3 of 5, 1 error`; nothing for a single trial."""
    trials, errors = sum(counts.values()), counts.get(Outcome.ERROR, 0)
    if trials <= 1:
        return ""
    beside = f", {plural(errors, 'error')}" if errors and outcome is not Outcome.ERROR else ""
    return f"{counts.get(outcome, 0):,} of {trials:,}{beside}"


def _count_reasons(
    trials: Iterable[TrialResult], last: Mapping[CaseAddress, int], limit: int
) -> dict[CaseAddress, ReasonCounter]:
    """The reasons of the cases in `last`, which says where the last bad trial of each stands in the plan."""
    tallies: dict[CaseAddress, ReasonCounter] = {}
    end = max(last.values(), default=-1)
    for trial in trials if last else ():
        address = (trial.suite, trial.case.id)
        if trial.outcome in FAILED_OR_ERROR and address in last:
            tallies.setdefault(address, ReasonCounter(limit)).add(trial)
        if trial.position >= end:
            break
    return tallies


def _failing_case(
    case: CaseVerdict, counts: Mapping[CaseAddress, Mapping[Outcome, int]], tallies: Mapping[CaseAddress, ReasonCounter]
) -> FailingCase:
    address = (case.suite, case.case_id)
    reasons = tallies[address].reasons() if address in tallies else ()
    return FailingCase(*address, case.outcome, counts[address], reasons, case.quarantined, case.is_flaky)


MAX_TEXT = 2_000
"""Characters of an expectation or an answer."""
MISMATCHES = (CallFit.DIFFERS, CallFit.MISSING, CallFit.OUT_OF_ORDER, CallFit.FORBIDDEN)


def failures(run: Run, verdict: RunVerdict) -> list[dict[str, Json]]:
    """One entry a case, failures before errors; empty where every case passed."""
    cases = failing_cases(run, verdict, limit=MAX_TEXT)
    if not cases:
        return []
    suites = {info.name: info for info in run.suites}
    wanted = {case.example.position for case in cases if case.example is not None}
    examples = {(trial.suite, trial.case.id): trial for trial in run.trials if trial.position in wanted}
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
    """By case: where it is written, if the file is still there and still holds it."""
    return {} if info.path is None else case_positions(Path(info.path))


def reproduce_command(run: Run, info: SuiteInfo, case: FailingCase) -> str | None:
    """The command that runs this case alone; `None` for suites that were made in Python."""
    if info.path is None or info.path.endswith(".py"):
        return None
    words = ["proctor", "test", f"{info.path}::{case.case_id}"]
    given = run.options.get("agents")
    agents = given if isinstance(given, dict) else {}
    if isinstance(agents.get(info.agent), str):
        words += ["--agent", f"{info.agent}={agents[info.agent]}"]
    for name in ("agent", "judge"):
        if isinstance(run.options.get(name), str):
            words += [f"--{name}", str(run.options[name])]
    return shlex.join(words)


def _divergence(trial: TrialResult | None) -> dict[str, Json] | None:
    """Where the trial first does something else than was expected: a tool call; else the answer, or its absence."""
    if trial is None:
        return None
    for index, (turn, reply) in enumerate(zip(trial.case.turns, trial.replies, strict=False)):
        pairs = pair_calls(turn.expected.tools, reply.tool_calls, call_findings(trial, index))
        for pair in pairs:
            if pair.fit in MISMATCHES:
                return {"turn": index + 1, "kind": f"call {pair.fit}", **_sides(pair)}
    if trial.reason and not trial.is_answered:
        return {"turn": len(trial.replies) + 1, "kind": "no answer", "expected": None, "got": trial.reason[:MAX_TEXT]}
    score = deciding_score(trial.scores)
    if score is None:
        return None
    index = len(trial.replies) - 1 if score.turn is None else score.turn
    if not 0 <= index < len(trial.replies):
        return None
    expected = "\n".join(expected_lines(trial.case.turns[index].expected, MAX_TEXT)) or None
    got = answer_text(trial.replies[index])[:MAX_TEXT]
    return {"turn": index + 1, "kind": f"score of {score.evaluator}", "expected": expected, "got": got}


def _sides(pair: CallPair) -> dict[str, Json]:
    wanted = pair.expected_text if pair.expected is None else expected_call_text(pair.expected, MAX_TEXT)
    return {"expected": wanted or None, "got": None if pair.call is None else call_text(pair.call, MAX_TEXT)}
