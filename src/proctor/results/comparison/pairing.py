"""Pairs the cases of two runs, and decides for each pair whether its outcomes can be compared.

A case is the same case if its content is the same, even if it was renamed. Pairing by name alone would compare answers
to two different questions whenever someone edits a case. Outcomes of the same case are comparable only if it is scored
in the same way in both runs: same evaluators, thresholds and judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proctor.cases.identity import CaseAddress, content_key, question_key
from proctor.cases.suite import Case
from proctor.results.judge_usage import judge_name
from proctor.results.reasons import headline_of_case, headline_reason
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial

CasePredicate = Callable[[str, Case], bool]
"""Whether to compare a case, from the name of its suite and the case."""

MAX_REASON = 300
RESOURCES = ("tokens", "cost_usd", "duration_ms", "tool_calls")


@dataclass(frozen=True, slots=True)
class Scoring:
    """How one evaluator scored a case, as far as two runs can differ in that."""

    fingerprint: str
    threshold: float | None
    report_only: bool
    judge: str


@dataclass(slots=True)
class CaseTrials:
    """The figures of all trials of one case in one run."""

    suite: str
    case: Case
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    passes: list[float] = field(default_factory=list)
    """1 for each trial that passed and 0 for each that failed; other trials are not in it."""
    scores: dict[str, list[float]] = field(default_factory=dict)
    """By evaluator: its mean score in each trial."""
    scoring: dict[str, Scoring] = field(default_factory=dict)
    resources: dict[str, list[float]] = field(default_factory=dict)
    """By resource: what each trial used, if it is known."""
    reasons: Counter[tuple[Outcome, str]] = field(default_factory=Counter)
    """How often each outcome and reason occurred among the trials that did not pass."""
    estimated: bool = False
    """Whether any cost is an estimate from a price list."""

    @property
    def address(self) -> CaseAddress:
        return self.suite, self.case.id

    @property
    def reason(self) -> str:
        """Why the case does not pass."""
        return headline_of_case(self.reasons)

    def add(self, trial: Trial) -> None:
        """Count one more trial."""
        self.outcomes[trial.outcome] += 1
        if trial.outcome in (Outcome.PASSED, Outcome.FAILED):
            self.passes.append(float(trial.outcome is Outcome.PASSED))
        if trial.outcome is not Outcome.PASSED:
            self.reasons[trial.outcome, headline_reason(trial, MAX_REASON)] += 1
        self._add_scores(trial.scores)
        if any(reply.error is None for reply in trial.replies):
            self._add_resources(trial)

    def _add_scores(self, scores: Iterable[Score]) -> None:
        values: dict[str, list[float]] = {}
        for score in scores:
            if score.evaluator not in self.scoring or not self.scoring[score.evaluator].judge:
                scoring = Scoring(score.fingerprint, score.threshold, score.report_only, judge_name(score))
                self.scoring[score.evaluator] = scoring
            if score.value is not None and math.isfinite(score.value):
                values.setdefault(score.evaluator, []).append(score.value)
        for name, of_turns in values.items():
            self.scores.setdefault(name, []).append(math.fsum(of_turns) / len(of_turns))

    def _add_resources(self, trial: Trial) -> None:
        usage = trial.usage
        calls = float(sum(len(reply.tool_calls) for reply in trial.replies))
        self.estimated = self.estimated or (usage is not None and usage.estimated)
        tokens_and_cost = (None, None) if usage is None else (usage.total_tokens, usage.cost_usd)
        for name, value in zip(RESOURCES, (*tokens_and_cost, trial.duration_ms, calls), strict=True):
            if value is not None and math.isfinite(value):
                self.resources.setdefault(name, []).append(float(value))


@dataclass(frozen=True, slots=True)
class CasePair:
    """A case in both runs, or in one of them."""

    before: CaseTrials | None
    after: CaseTrials | None
    incomparable_because: tuple[str, ...] = ()
    """Why the outcomes cannot be compared; empty if they can."""
    same_content: bool = True
    """Whether the case asks and expects the same in both runs."""

    @property
    def is_comparable(self) -> bool:
        return self.before is not None and self.after is not None and not self.incomparable_because


def read_cases(run: Run, suite_names: Mapping[str, str], select: CasePredicate | None) -> dict[CaseAddress, CaseTrials]:
    """The cases of a run, in the order of its plan.

    `suite_names` maps the suites to read to the names to give them; if it is empty, all are read under their own names.
    """
    cases: dict[CaseAddress, CaseTrials] = {}
    unselected: set[CaseAddress] = set()
    for trial in run.trials:
        suite = suite_names.get(trial.suite, "") if suite_names else trial.suite
        address = suite, trial.case.id
        if not suite or address in unselected:
            continue
        if address not in cases:
            if select is not None and not select(suite, trial.case):
                unselected.add(address)
                continue
            cases[address] = CaseTrials(suite, trial.case)
        cases[address].add(trial)
    return cases


def pair_cases(before: Mapping[CaseAddress, CaseTrials], after: Mapping[CaseAddress, CaseTrials]) -> Iterator[CasePair]:
    """Pair cases by name if their content is the same, otherwise by content, which finds renamed cases.

    A case with the same name and another content is a pair that cannot be compared.
    """
    partner = _partners(before, after)
    taken = set(partner.values())
    for address, one in before.items():
        other = after.get(partner[address]) if address in partner else None
        if other is not None:
            yield CasePair(one, other, tuple(_incomparable_because(one, other)))
        elif address in after and address not in taken:
            yield CasePair(one, after[address], (_content_change(one.case, after[address].case),), same_content=False)
        else:
            yield CasePair(one, None)
    for address, other in after.items():
        if address not in taken and (address not in before or address in partner):
            yield CasePair(None, other)


def _partners(
    before: Mapping[CaseAddress, CaseTrials], after: Mapping[CaseAddress, CaseTrials]
) -> dict[CaseAddress, CaseAddress]:
    """By case of the first run: the same case in the second one.

    Most cases are equal, which is cheap to find out; content keys are computed only for the others.
    """
    partners = {
        address: address for address, item in before.items() if address in after and _is_same(item, after[address])
    }
    unpaired: dict[str, list[CaseAddress]] = {}
    for address, item in after.items():
        if address not in partners:
            unpaired.setdefault(content_key(item.case), []).append(address)
    for address, item in before.items():
        candidates = unpaired.get(content_key(item.case)) if unpaired and address not in partners else None
        if not candidates:
            continue
        same_suite = [candidate for candidate in candidates if candidate[0] == address[0]]
        partner = (same_suite or candidates)[0]
        candidates.remove(partner)
        partners[address] = partner
    return partners


def _is_same(before: CaseTrials, after: CaseTrials) -> bool:
    return before.case == after.case or content_key(before.case) == content_key(after.case)


def _incomparable_because(before: CaseTrials, after: CaseTrials) -> Iterator[str]:
    """Why the outcomes of a case cannot be compared: nothing passed or failed, or it is scored in another way."""
    open_sides = {
        name: _outcomes_text(trials) for name, trials in (("first", before), ("second", after)) if not trials.passes
    }
    if len(open_sides) == 2 and len(set(open_sides.values())) == 1:
        yield f"no result in either run ({open_sides['first']})"
    else:
        yield from (f"no result in the {name} run ({text})" for name, text in open_sides.items())
    if before.scoring and after.scoring:
        yield from _scoring_changes(before.scoring, after.scoring)


def _outcomes_text(trials: CaseTrials) -> str:
    """The outcomes of trials that neither passed nor failed, and why: `pending: a person reads the poem`."""
    outcomes = ", ".join(outcome.value for outcome in trials.outcomes)
    return f"{outcomes}: {trials.reason}" if trials.reason else outcomes


def _scoring_changes(before: Mapping[str, Scoring], after: Mapping[str, Scoring]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            only = old or new
            if only is not None and not only.report_only:
                yield f"the evaluator {name} was {'added' if old is None else 'removed'}"
        elif not (old.report_only and new.report_only):
            yield from _scoring_change(name, old, new)


def _scoring_change(name: str, old: Scoring, new: Scoring) -> Iterator[str]:
    if old.threshold != new.threshold:
        yield f"the threshold of {name} changed from {_number(old.threshold)} to {_number(new.threshold)}"
    if old.report_only != new.report_only:
        yield f"{name} {'is now report only' if new.report_only else 'now counts'}"
    if old.fingerprint != new.fingerprint:
        if old.judge != new.judge and old.judge and new.judge:
            yield f"the judge of {name} changed from {old.judge} to {new.judge}"
        else:
            yield f"the evaluator {name} changed"


def _number(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:g}"


def _content_change(before: Case, after: Case) -> str:
    if question_key(before) != question_key(after):
        return "the input of the case changed"
    return "the expectation of the case changed"
