"""Pairs the cases of two runs by their content, and says of each pair whether its outcomes can be compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proctor.cases.identity import CaseAddress, content_key, question_key
from proctor.cases.suite import Case
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import headline_of_case, headline_reason
from proctor.results.run import Outcome, Run, Score, TrialResult

CasePredicate = Callable[[str, Case], bool]
"""Whether a case of a suite, by name, is to be compared."""

MAX_REASON = 300
RESOURCES = ("tokens", "cost_usd", "duration_ms", "tool_calls")


@dataclass(frozen=True, slots=True)
class Scoring:
    """What scored a case, as far as two runs can differ in it."""

    fingerprint: str
    threshold: float | None
    gates: bool
    judge: str


@dataclass(slots=True)
class CaseTrials:
    """All trials of one case in one run, added up."""

    suite: str
    case: Case
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    passes: list[float] = field(default_factory=list)
    """1 for each trial that passed and 0 for each that failed; trials without a verdict are left out."""
    scores: dict[str, list[float]] = field(default_factory=dict)
    """Per evaluator, the mean of each trial."""
    scorers: dict[str, Scoring] = field(default_factory=dict)
    used: dict[str, list[float]] = field(default_factory=dict)
    """Tokens, cost, time and tool calls of each trial, where they are known."""
    reasons: Counter[tuple[Outcome, str]] = field(default_factory=Counter)
    """Why trials did not pass, with their outcome, and how often."""
    estimated: bool = False
    """Whether any cost is an estimate from a price list."""

    @property
    def address(self) -> CaseAddress:
        return self.suite, self.case.id

    @property
    def reason(self) -> str:
        """Why the case does not pass."""
        return headline_of_case(self.reasons)

    def add(self, trial: TrialResult) -> None:
        self.outcomes[trial.outcome] += 1
        if trial.outcome in (Outcome.PASSED, Outcome.FAILED):
            self.passes.append(float(trial.outcome is Outcome.PASSED))
        if trial.outcome is not Outcome.PASSED:
            self.reasons[trial.outcome, headline_reason(trial, MAX_REASON)] += 1
        self._add_scores(trial.scores)
        if any(reply.error is None for reply in trial.replies):
            self._add_use(trial)

    def _add_scores(self, scores: Iterable[Score]) -> None:
        values: dict[str, list[float]] = {}
        for score in scores:
            if score.evaluator not in self.scorers or not self.scorers[score.evaluator].judge:
                known = Scoring(score.fingerprint, score.threshold, score.gates, judge_name(score))
                self.scorers[score.evaluator] = known
            if score.value is not None and math.isfinite(score.value):
                values.setdefault(score.evaluator, []).append(score.value)
        for name, found in values.items():
            self.scores.setdefault(name, []).append(math.fsum(found) / len(found))

    def _add_use(self, trial: TrialResult) -> None:
        usage = trial.usage
        calls = float(sum(len(reply.tool_calls) for reply in trial.replies))
        self.estimated = self.estimated or (usage is not None and usage.estimated)
        spent = (None, None) if usage is None else (usage.total_tokens, usage.cost_usd)
        for name, value in zip(RESOURCES, (*spent, trial.duration_ms, calls), strict=True):
            if value is not None and math.isfinite(value):
                self.used.setdefault(name, []).append(float(value))


@dataclass(frozen=True, slots=True)
class CasePair:
    """A case in both runs, or in one of them."""

    before: CaseTrials | None
    after: CaseTrials | None
    incomparable_because: tuple[str, ...] = ()
    """Why the outcomes cannot be compared; empty where they can."""
    same_content: bool = True

    @property
    def is_comparable(self) -> bool:
        return self.before is not None and self.after is not None and not self.incomparable_because


def read_cases(run: Run, rename: Mapping[str, str], choose: CasePredicate | None) -> dict[CaseAddress, CaseTrials]:
    """The cases of a run in the order of its plan.

    `rename` gives the names of the suites that are looked at; without any, all are.
    """
    found: dict[CaseAddress, CaseTrials] = {}
    left_out: set[CaseAddress] = set()
    for trial in run.trials:
        suite = rename.get(trial.suite, "") if rename else trial.suite
        address = suite, trial.case.id
        if not suite or address in left_out:
            continue
        if address not in found:
            if choose is not None and not choose(suite, trial.case):
                left_out.add(address)
                continue
            found[address] = CaseTrials(suite, trial.case)
        found[address].add(trial)
    return found


def pair_cases(before: Mapping[CaseAddress, CaseTrials], after: Mapping[CaseAddress, CaseTrials]) -> Iterator[CasePair]:
    """By name where the content is the same, else by content, so that a renamed case is the same case.

    A case whose name stayed and whose content changed is a pair that cannot be compared.
    """
    partner = _partners(before, after)
    taken = set(partner.values())
    for address, one in before.items():
        other = after.get(partner[address]) if address in partner else None
        if other is not None:
            yield CasePair(one, other, tuple(_obstacles(one, other)))
        elif address in after and address not in taken:
            yield CasePair(one, after[address], (_what_changed(one.case, after[address].case),), same_content=False)
        else:
            yield CasePair(one, None)
    for address, other in after.items():
        if address not in taken and (address not in before or address in partner):
            yield CasePair(None, other)


def _partners(
    before: Mapping[CaseAddress, CaseTrials], after: Mapping[CaseAddress, CaseTrials]
) -> dict[CaseAddress, CaseAddress]:
    """Which case of the second run each case of the first one is; most are equal, which is found out without keys."""
    found = {
        address: address for address, item in before.items() if address in after and _is_same(item, after[address])
    }
    waiting: dict[str, list[CaseAddress]] = {}
    for address, item in after.items():
        if address not in found:
            waiting.setdefault(content_key(item.case), []).append(address)
    for address, item in before.items():
        others = waiting.get(content_key(item.case)) if waiting and address not in found else None
        if not others:
            continue
        same_suite = [other for other in others if other[0] == address[0]]
        chosen = (same_suite or others)[0]
        others.remove(chosen)
        found[address] = chosen
    return found


def _is_same(before: CaseTrials, after: CaseTrials) -> bool:
    return before.case == after.case or content_key(before.case) == content_key(after.case)


def _obstacles(before: CaseTrials, after: CaseTrials) -> Iterator[str]:
    """Why the outcomes of one case cannot be compared: another way to score, or nothing measured."""
    for name, trials in (("before", before), ("after", after)):
        if not trials.passes:
            told = ", ".join(outcome.value for outcome in trials.outcomes)
            yield f"no verdict {name} ({told}{f': {trials.reason}' if trials.reason else ''})"
    if before.scorers and after.scorers:
        yield from _scoring_changes(before.scorers, after.scorers)


def _scoring_changes(before: Mapping[str, Scoring], after: Mapping[str, Scoring]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            gates = (old or new) is not None and (old or new).gates  # type: ignore[union-attr]
            if gates:
                yield f"the evaluator {name} {'was added' if old is None else 'is gone'}"
        elif old.gates or new.gates:
            yield from _scorer_change(name, old, new)


def _scorer_change(name: str, old: Scoring, new: Scoring) -> Iterator[str]:
    if old.threshold != new.threshold:
        yield f"the threshold of {name} changed from {_number(old.threshold)} to {_number(new.threshold)}"
    if old.gates != new.gates:
        yield f"{name} {'decides' if new.gates else 'no longer decides'} the case"
    if old.fingerprint != new.fingerprint:
        if old.judge != new.judge and old.judge and new.judge:
            yield f"the judge of {name} changed from {old.judge} to {new.judge}"
        else:
            yield f"the evaluator {name} changed"


def _number(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:g}"


def _what_changed(before: Case, after: Case) -> str:
    if question_key(before) != question_key(after):
        return "the case asks something else now"
    return "the case expects something else now"
