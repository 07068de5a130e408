"""Compares two runs: pairs their cases, tests what changed, and sums it up in one sentence.

The pass rates of two runs differ by luck alone, so a lower rate is not yet a regression. The test compares each case
with itself (`significance.py`), because a comparison of two overall rates would drown a broken case in the differences
between easy and hard cases. A case that both passed and failed in one of the runs is called broken or fixed only if its
own flakiness does not explain the change. The arms of one run are compared in the same way (`arms.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError
from proctor.cases.identity import CaseAddress
from proctor.results.comparison.alignment import AlignedTrials, most_similar_trials
from proctor.results.comparison.comparison import (
    CaseChange,
    Change,
    ComparedRun,
    Comparison,
    ComparisonVerdict,
    EvaluatorChange,
    PassCount,
    ResourceRatio,
    ScoreChange,
)
from proctor.results.comparison.pairing import RESOURCES, CasePair, CasePredicate, CaseTrials, pair_cases, read_cases
from proctor.results.comparison.significance import (
    Effect,
    Pair,
    SignificanceTest,
    agreeing_interval,
    compare_pairs,
    holm,
    mean_difference,
    ratio_of_means,
    ratio_of_medians,
)
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial

ALPHA = 0.04
"""How often two runs of the same agent may be called different; below 0.05, so that the measured rate is as well."""
CASE_ALPHA = 0.05
"""How often the flakiness of one case may be taken for a change. This only sorts cases; the verdict uses `ALPHA`."""
MAX_DIVERGENCES = 20
"""Broken and fixed cases whose conversations are compared; for further ones only the scores are shown."""


class NoSuchCase(UsageError):
    """A case that is not in both runs."""


def compare_runs(
    before: Run,
    after: Run,
    *,
    before_agent: str | None = None,
    after_agent: str | None = None,
    select: CasePredicate | None = None,
    alpha: float = ALPHA,
) -> Comparison:
    """Compare two runs.

    `before_agent` and `after_agent` name one agent of a run that tested several. `select` chooses the cases to compare.
    """
    sides = read_side(before, before_agent, select), read_side(after, after_agent, select)
    for side in sides:
        if not side.cases:
            raise UsageError(
                f"no case of run {side.run.id} is selected" if select else f"run {side.run.id} has no trials"
            )
    return compare_sides(*sides, alpha=alpha)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a run, or one of its arms, and its cases."""

    run: Run
    agent: str | None
    """The arm, or `None` for the whole run."""
    suite_names: Mapping[str, str]
    """The suites of the arm, each with its name in its file; empty for the whole run."""
    cases: Mapping[CaseAddress, CaseTrials]


def read_side(run: Run, agent: str | None = None, select: CasePredicate | None = None) -> Side:
    """Read the cases of a run, or of one of its arms."""
    suite_names = _suites(run, agent)
    return Side(run, agent, suite_names, read_cases(run, suite_names, select))


def compare_sides(before: Side, after: Side, *, alpha: float = ALPHA, comparisons: int = 1) -> Comparison:
    """Compare two sides; raises `UsageError` if they have no case in common.

    `comparisons` is how many comparisons are made of the same data. p-values and intervals are corrected for it, so
    that each can be read as if it were the only one.
    """
    pairs = list(pair_cases(before.cases, after.cases))
    if not any(pair.before is not None and pair.after is not None for pair in pairs):
        raise UsageError(f"runs {before.run.id} and {after.run.id} have no case in common, by name or by content")
    one, other = (_compared_run(side.run, side.agent, side.suite_names) for side in (before, after))
    pairs = [_with_unfinished_side(pair, one, other) for pair in pairs]
    ends = (before.run, before.suite_names), (after.run, after.suite_names)
    changes = _with_divergences([_change(pair) for pair in pairs], pairs, *ends)
    return _comparison(one, other, pairs, changes, alpha, comparisons)


def _comparison(
    before: ComparedRun,
    after: ComparedRun,
    pairs: Sequence[CasePair],
    changes: Sequence[CaseChange],
    alpha: float,
    comparisons: int,
) -> Comparison:
    passes = [_values(pair) for pair in pairs if pair.is_comparable]
    test, confidence = compare_pairs(passes), 1 - 0.05 / comparisons
    if test is not None:
        test = replace(test, p_value=min(1.0, test.p_value * comparisons))
    difference = mean_difference(passes, confidence=confidence)
    if difference is not None and test is not None:
        difference = agreeing_interval(difference, test.p_value, alpha)
    rates = [fmean(fmean(side) for side in column) for column in zip(*passes, strict=True)] if passes else [None, None]
    verdict = _verdict(test, difference, alpha)
    order = {change: at for at, change in enumerate(Change)}
    comparison = Comparison(
        before=before,
        after=after,
        verdict=verdict,
        sentence="",
        compared=len(passes),
        before_rate=rates[0],
        after_rate=rates[1],
        difference=difference,
        test=test,
        cases=tuple(sorted(changes, key=lambda change: order[change.group])),
        evaluators=_evaluators(pairs, alpha, comparisons),
        resources=_resources(pairs, confidence),
    )
    comparison = replace(comparison, notes=tuple(_notes(comparison)))
    return replace(comparison, sentence=_sentence(comparison))


def _suites(run: Run, agent: str | None) -> dict[str, str]:
    """The suites of one agent of a run, each with its name in its file; empty for all agents."""
    if agent is None:
        return {}
    suites = {info.name: info.source or info.name for info in run.suites if info.agent == agent}
    if not suites:
        agents = ", ".join(dict.fromkeys(info.agent for info in run.suites))
        raise UsageError(f"run {run.id} has no agent {agent!r}; its agents are {agents}")
    return suites


def _compared_run(run: Run, agent: str | None, suite_names: Mapping[str, str]) -> ComparedRun:
    suites = [info for info in run.suites if not suite_names or info.name in suite_names]
    names = {info.name for info in suites}
    trials = sum(summary.suite in names for summary in run.summaries)
    planned = sum(info.planned for info in suites)
    agents = agent or ", ".join(dict.fromkeys(info.agent for info in suites))
    complete = not run.interrupted and trials >= planned
    return ComparedRun(run.id, run.name, agents, run.started_at, run.git, trials, planned, complete)


def _with_unfinished_side(pair: CasePair, before: ComparedRun, after: ComparedRun) -> CasePair:
    """A case that only one run has is new or gone if the other run is complete. If not, it may just not have run."""
    for name, side, run in (("first", pair.before, before), ("second", pair.after, after)):
        if side is None and not run.complete:
            return replace(pair, incomparable_because=(f"did not run in the {name} run, which is incomplete",))
    return pair


def _values(pair: CasePair) -> Pair:
    return ([] if pair.before is None else pair.before.passes), ([] if pair.after is None else pair.after.passes)


def _change(pair: CasePair) -> CaseChange:
    latest = pair.after or pair.before
    assert latest is not None, "a pair has at least one side"
    renamed = pair.before is not None and pair.after is not None and pair.before.address != pair.after.address
    group = case_change(pair)
    reasons = pair.incomparable_because
    if (
        group in (Change.BROKEN, Change.FLAKY, Change.STILL_FAILING, Change.NEW)
        and pair.after is not None
        and pair.after.reason
    ):
        reasons = (pair.after.reason,)
    return CaseChange(
        suite=latest.suite,
        case_id=latest.case.id,
        group=group,
        before=_pass_count(pair.before),
        after=_pass_count(pair.after),
        renamed_from="/".join(pair.before.address) if renamed and pair.before is not None else "",
        reasons=reasons,
        scores=tuple(_score_changes(pair)),
    )


def case_change(pair: CasePair) -> Change:
    """How a case changed. It is broken or fixed only if its own flakiness does not explain the change."""
    if pair.incomparable_because:
        return Change.NOT_COMPARABLE
    if pair.before is None or pair.after is None:
        return Change.NEW if pair.before is None else Change.GONE
    before, after = pair.before.passes, pair.after.passes
    if len({*before, *after}) == 1:
        return Change.STILL_PASSING if before[0] else Change.STILL_FAILING
    test = compare_pairs([(before, after)])
    is_flaky = len({*before}) > 1 or len({*after}) > 1
    if is_flaky and (test is None or test.p_value > CASE_ALPHA):
        return Change.FLAKY
    return Change.BROKEN if fmean(before) > fmean(after) else Change.FIXED


def _pass_count(trials: CaseTrials | None) -> PassCount | None:
    if trials is None:
        return None
    passed, failed = trials.outcomes[Outcome.PASSED], trials.outcomes[Outcome.FAILED]
    return PassCount(passed, passed + failed, trials.outcomes.total() - passed - failed)


def _score_changes(pair: CasePair) -> Iterable[ScoreChange]:
    if pair.before is None or pair.after is None:
        return
    for name in dict.fromkeys((*pair.before.scores, *pair.after.scores)):
        old, new = (fmean(side.scores[name]) if name in side.scores else None for side in (pair.before, pair.after))
        if old is None or new is None or abs(old - new) > 1e-9:
            yield ScoreChange(name, old, new)


def _with_divergences(
    changes: list[CaseChange],
    pairs: Sequence[CasePair],
    first: tuple[Run, Mapping[str, str]],
    second: tuple[Run, Mapping[str, str]],
) -> list[CaseChange]:
    """The changes, with the first difference of the conversations of broken and fixed cases."""
    chosen = [at for at, change in enumerate(changes) if change.group in (Change.BROKEN, Change.FIXED)]
    chosen = sorted(chosen, key=lambda at: changes[at].group is not Change.BROKEN)[:MAX_DIVERGENCES]
    befores = trials_by_case(*first, {pair.before.address for at in chosen if (pair := pairs[at]).before is not None})
    afters = trials_by_case(*second, {pair.after.address for at in chosen if (pair := pairs[at]).after is not None})
    for at in chosen:
        one, other = pairs[at].before, pairs[at].after
        if one is not None and other is not None:
            aligned = most_similar_trials(befores.get(one.address, ()), afters.get(other.address, ()))
            changes[at] = replace(changes[at], divergence=None if aligned is None else aligned.divergence)
    return changes


def trials_by_case(
    run: Run, suite_names: Mapping[str, str], cases: Iterable[CaseAddress]
) -> dict[CaseAddress, list[Trial]]:
    """The complete trials of some cases of a run; `suite_names` as in `read_cases`."""
    addresses = frozenset(cases)
    trials: dict[CaseAddress, list[Trial]] = {}
    if not addresses:
        return trials
    names_in_run = {name: in_run for in_run, name in suite_names.items()}
    in_run = frozenset((names_in_run.get(suite, suite), case_id) for suite, case_id in addresses)
    for trial in run.trials_of(in_run):
        address = suite_names.get(trial.suite, trial.suite), trial.case.id
        if address in addresses:
            trials.setdefault(address, []).append(trial)
    return trials


def _evaluators(pairs: Sequence[CasePair], alpha: float, comparisons: int) -> tuple[EvaluatorChange, ...]:
    """The change of each evaluator over the cases that it scored with the same settings in both runs."""
    values: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.before is None or pair.after is None or not pair.same_content:
            continue
        for name, scoring in pair.before.scoring.items():
            other = pair.after.scoring.get(name)
            is_same = other is not None and other.fingerprint == scoring.fingerprint
            if is_same and name in pair.before.scores and name in pair.after.scores:
                values.setdefault(name, []).append((pair.before.scores[name], pair.after.scores[name]))
    tests = {name: compare_pairs(pairs) for name, pairs in values.items()}
    adjusted = holm({name: 1.0 if test is None else test.p_value for name, test in tests.items()})
    return tuple(
        _evaluator_change(name, pairs, min(1.0, adjusted[name] * comparisons), alpha, 1 - 0.05 / comparisons)
        for name, pairs in values.items()
    )


def _evaluator_change(
    name: str, values: Sequence[Pair], p_value: float, alpha: float, confidence: float
) -> EvaluatorChange:
    before, after = (fmean(fmean(side) for side in column) for column in zip(*values, strict=True))
    effect = mean_difference(values, confidence=confidence) or Effect(0.0, 0.0, 0.0, 0)
    difference = agreeing_interval(effect, p_value, alpha)
    return EvaluatorChange(name, before, after, difference, p_value, p_value <= alpha)


def _resources(pairs: Sequence[CasePair], confidence: float) -> tuple[ResourceRatio, ...]:
    ratios = []
    for name in RESOURCES:
        values = [
            (pair.before.resources.get(name, []), pair.after.resources.get(name, []))
            for pair in pairs
            if pair.before is not None and pair.after is not None and pair.same_content
        ]
        quotient_of = ratio_of_medians if name == "duration_ms" else ratio_of_means
        quotient = quotient_of(values, confidence=confidence)
        if quotient is not None:
            estimated = name == "cost_usd" and any(
                side is not None and side.estimated for pair in pairs for side in (pair.before, pair.after)
            )
            ratios.append(ResourceRatio(name, quotient.before, quotient.after, quotient.effect, estimated))
    return tuple(ratios)


def _verdict(test: SignificanceTest | None, difference: Effect | None, alpha: float) -> ComparisonVerdict:
    if test is None or difference is None:
        return "not comparable"
    if test.p_value > alpha or not difference.value:
        return "no difference"
    return "regression" if difference.value < 0 else "improvement"


def _notes(comparison: Comparison) -> Iterable[str]:
    for side in (comparison.before, comparison.after):
        if not side.complete:
            yield f"run {side.run} is incomplete: {side.trials:,} of {side.planned:,} trials ran"
    incomparable = comparison.groups[Change.NOT_COMPARABLE]
    if incomparable:
        reasons = Counter(case.reasons[0] for case in incomparable if case.reasons)
        reason, count = reasons.most_common(1)[0] if reasons else ("", 0)
        why = f" ({count:,} of them: {reason})" if len(incomparable) > 1 and count else f" ({reason})" if reason else ""
        # The list of these cases has the reasons; here they matter only if nothing else can be said.
        yield f"{_cases(len(incomparable))} cannot be compared{why if comparison.test is None else ''}"


def _sentence(comparison: Comparison) -> str:
    """The result in one sentence, with the test that was used."""
    groups = comparison.groups
    if comparison.test is None or comparison.before_rate is None or comparison.after_rate is None:
        return f"Nothing can be compared: {'; '.join(comparison.notes) or 'no case passed or failed in both runs'}."
    head = {"regression": "Worse", "improvement": "Better"}.get(comparison.verdict, "No significant difference")
    broken, fixed, flaky = (len(groups[group]) for group in (Change.BROKEN, Change.FIXED, Change.FLAKY))
    if not (broken or fixed or flaky):
        head, changed = "No change", f"all {_cases(comparison.compared)} ended as before"
        if comparison.compared == 1:
            changed = "the one compared case ended as before"
    else:
        counts = ((broken, "broken"), (fixed, "fixed"), (flaky, "flaky"))
        (count, word), *others = [(count, word) for count, word in counts if count]
        rest_of_counts = "".join(f", {count:,} {word}" for count, word in others)
        changed = f"{count:,} of {_cases(comparison.compared)} {word}{rest_of_counts}"
    rest = f"; {'; '.join(comparison.notes)}" if comparison.notes else ""
    return f"{head}: {changed}, pass rate {comparison.rates_text}{rest}."


def _cases(count: int) -> str:
    return f"{count:,} case{'' if count == 1 else 's'}"


def align_case(
    before: Run,
    after: Run,
    case_id: str,
    *,
    before_agent: str | None = None,
    after_agent: str | None = None,
    select: CasePredicate | None = None,
) -> AlignedTrials:
    """The two trials of a case that differ least, if possible one that passed and one that failed.

    `case_id` is the id of the case, or `suite/id` if several suites have it. Raises `NoSuchCase` if it is not
    in both runs.
    """
    sides = [(before, _suites(before, before_agent)), (after, _suites(after, after_agent))]
    first, second = (read_cases(run, suite_names, select) for run, suite_names in sides)
    both = [(pair.before, pair.after) for pair in pair_cases(first, second)]
    in_both = [(one, other) for one, other in both if one is not None and other is not None]
    named = [
        (one, other)
        for one, other in in_both
        if case_id in (one.case.id, other.case.id, "/".join(one.address), "/".join(other.address))
    ]
    if not named:
        ids = [other.case.id for _, other in in_both]
        raise NoSuchCase(f"no case {case_id!r} is in both runs{did_you_mean(case_id, ids)}")
    if len(named) > 1:
        places = ", ".join("/".join(other.address) for _, other in named[:5])
        raise UsageError(f"several cases are called {case_id!r}; name one of {places}")
    [(one, other)] = named
    befores = trials_by_case(*sides[0], [one.address])[one.address]
    afters = trials_by_case(*sides[1], [other.address])[other.address]
    aligned = most_similar_trials(befores, afters)
    assert aligned is not None, "a case of a run has at least one trial"
    return aligned
