"""Compares two runs: pairs their cases, tests what changed, and says what it amounts to in one sentence.

Several agents of one run are compared in the same way: `agent_tables`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from proctor.base.errors import UsageError
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
    p_text,
    percent,
)
from proctor.results.comparison.pairing import RESOURCES, CasePair, CasePredicate, CaseTrials, pair_cases, read_cases
from proctor.results.comparison.significance import (
    Effect,
    Pair,
    SignificanceTest,
    compare_pairs,
    holm,
    mean_difference,
    ratio,
)
from proctor.results.run import Outcome, Run, TrialResult

ALPHA = 0.04
"""How often runs of one and the same agent may be called different: below 5 % also in a sample of comparisons."""
CASE_ALPHA = 0.05
"""How often the flakiness of one case may be taken for a change; groups only sort cases, the sentence decides."""
MAX_DIVERGENCES = 20
"""Broken and fixed cases whose conversations are compared; the others show their scores alone."""


def compare_runs(
    before: Run,
    after: Run,
    *,
    before_agent: str | None = None,
    after_agent: str | None = None,
    choose: CasePredicate | None = None,
    alpha: float = ALPHA,
) -> Comparison:
    """Pair the cases of two runs and say what changed; with an agent's name, only what that agent answered."""
    sides = [(before, _suites(before, before_agent)), (after, _suites(after, after_agent))]
    first, second = (read_cases(run, rename, choose) for run, rename in sides)
    for (run, _), found in zip(sides, (first, second), strict=True):
        if not found:
            raise UsageError(f"no case of run {run.id} is selected" if choose else f"run {run.id} has no trials")
    pairs = list(pair_cases(first, second))
    if not any(pair.before is not None and pair.after is not None for pair in pairs):
        raise UsageError(f"runs {before.id} and {after.id} have no case in common, by name or by content")
    told = [_side(run, agent, rename) for (run, rename), agent in zip(sides, (before_agent, after_agent), strict=True)]
    changes = _with_divergences([_change(pair) for pair in pairs], pairs, *sides)
    return _compared(told[0], told[1], pairs, changes, alpha)


def _compared(
    before: ComparedRun, after: ComparedRun, pairs: Sequence[CasePair], changes: Sequence[CaseChange], alpha: float
) -> Comparison:
    passes = [_values(pair) for pair in pairs if pair.is_comparable]
    test = compare_pairs(passes)
    difference = mean_difference(passes)
    rates = [fmean(fmean(side) for side in column) for column in zip(*passes, strict=True)] if passes else [None, None]
    verdict = _verdict(test, difference, alpha)
    order = {group: at for at, group in enumerate(Change)}
    whole = Comparison(
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
        evaluators=_evaluators(pairs, alpha),
        resources=_resources(pairs),
    )
    whole = replace(whole, notes=tuple(_notes(whole)))
    return replace(whole, sentence=_sentence(whole))


def _suites(run: Run, agent: str | None) -> dict[str, str]:
    """The suites that one agent of a run answered, by the names that their files give them; empty for all."""
    if agent is None:
        return {}
    found = {info.name: info.source or info.name for info in run.suites if info.agent == agent}
    if not found:
        known = ", ".join(dict.fromkeys(info.agent for info in run.suites))
        raise UsageError(f"no agent of run {run.id} is called {agent!r}; there are {known}")
    return found


def _side(run: Run, agent: str | None, rename: Mapping[str, str]) -> ComparedRun:
    suites = [info for info in run.suites if not rename or info.name in rename]
    names = {info.name for info in suites}
    made = sum(summary.suite in names for summary in run.summaries)
    planned = sum(info.planned for info in suites)
    agents = agent or ", ".join(dict.fromkeys(info.agent for info in suites))
    complete = not run.interrupted and made >= planned
    return ComparedRun(run.id, run.name, agents, run.started_at, run.git, made, planned, complete)


def _values(pair: CasePair) -> Pair:
    return ([] if pair.before is None else pair.before.passes), ([] if pair.after is None else pair.after.passes)


def _change(pair: CasePair) -> CaseChange:
    known = pair.after or pair.before
    if known is None:
        raise ValueError("a pair has at least one side")
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
        suite=known.suite,
        case_id=known.case.id,
        group=group,
        before=_passes(pair.before),
        after=_passes(pair.after),
        renamed_from="/".join(pair.before.address) if renamed and pair.before is not None else "",
        reasons=reasons,
        scores=tuple(_score_changes(pair)),
    )


def case_change(pair: CasePair) -> Change:
    """Broken and fixed are changes that the case's own flakiness does not explain."""
    if pair.before is None or pair.after is None:
        return Change.NEW if pair.before is None else Change.GONE
    if pair.incomparable_because:
        return Change.NOT_COMPARABLE
    before, after = pair.before.passes, pair.after.passes
    if len({*before, *after}) == 1:
        return Change.STILL_PASSING if before[0] else Change.STILL_FAILING
    test = compare_pairs([(before, after)])
    mixed = len({*before}) > 1 or len({*after}) > 1
    if mixed and (test is None or test.p_value > CASE_ALPHA):
        return Change.FLAKY
    return Change.BROKEN if fmean(before) > fmean(after) else Change.FIXED


def _passes(trials: CaseTrials | None) -> PassCount | None:
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
    """Where the first broken and fixed cases went another way."""
    wanted = [at for at, change in enumerate(changes) if change.group in (Change.BROKEN, Change.FIXED)]
    wanted = sorted(wanted, key=lambda at: changes[at].group is not Change.BROKEN)[:MAX_DIVERGENCES]
    befores = trials_by_case(*first, {pair.before.address for at in wanted if (pair := pairs[at]).before is not None})
    afters = trials_by_case(*second, {pair.after.address for at in wanted if (pair := pairs[at]).after is not None})
    for at in wanted:
        one, other = pairs[at].before, pairs[at].after
        if one is not None and other is not None:
            nearest = most_similar_trials(befores.get(one.address, ()), afters.get(other.address, ()))
            changes[at] = replace(changes[at], divergence=None if nearest is None else nearest.divergence)
    return changes


def trials_by_case(
    run: Run, rename: Mapping[str, str], wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], list[TrialResult]]:
    """The whole trials of some cases of a run, by the names that suites go by here."""
    addresses = frozenset(wanted)
    found: dict[tuple[str, str], list[TrialResult]] = {}
    if not addresses:
        return found
    originals = {name: own for own, name in rename.items()}
    own = frozenset((originals.get(suite, suite), case_id) for suite, case_id in addresses)
    for trial in run.trials_of(own):
        address = rename.get(trial.suite, trial.suite), trial.case.id
        if address in addresses:
            found.setdefault(address, []).append(trial)
    return found


def _evaluators(pairs: Sequence[CasePair], alpha: float) -> tuple[EvaluatorChange, ...]:
    """Each evaluator over the cases that it scored alike, whatever else scored them."""
    values: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.before is None or pair.after is None or not pair.same_content:
            continue
        for name, scorer in pair.before.scorers.items():
            other = pair.after.scorers.get(name)
            alike = other is not None and other.fingerprint == scorer.fingerprint
            if alike and name in pair.before.scores and name in pair.after.scores:
                values.setdefault(name, []).append((pair.before.scores[name], pair.after.scores[name]))
    tests = {name: compare_pairs(found) for name, found in values.items()}
    adjusted = holm({name: 1.0 if test is None else test.p_value for name, test in tests.items()})
    return tuple(_evaluator(name, found, adjusted[name], alpha) for name, found in values.items())


def _evaluator(name: str, values: Sequence[Pair], p_value: float, alpha: float) -> EvaluatorChange:
    before, after = (fmean(fmean(side) for side in column) for column in zip(*values, strict=True))
    difference = mean_difference(values) or Effect(0.0, 0.0, 0.0, 0)
    return EvaluatorChange(name, before, after, difference, p_value, p_value <= alpha)


def _resources(pairs: Sequence[CasePair]) -> tuple[ResourceRatio, ...]:
    found = []
    for name in RESOURCES:
        values = [
            (pair.before.used.get(name, []), pair.after.used.get(name, []))
            for pair in pairs
            if pair.before is not None and pair.after is not None and pair.same_content
        ]
        known = [(a, b) for a, b in values if a and b]
        effect = ratio(known)
        if effect is not None:
            before, after = (fmean(fmean(side) for side in column) for column in zip(*known, strict=True))
            estimated = name == "cost_usd" and any(
                side is not None and side.estimated for pair in pairs for side in (pair.before, pair.after)
            )
            found.append(ResourceRatio(name, before, after, effect, estimated))
    return tuple(found)


def _verdict(test: SignificanceTest | None, difference: Effect | None, alpha: float) -> ComparisonVerdict:
    if test is None or difference is None:
        return "not comparable"
    if test.p_value > alpha or not difference.value:
        return "no difference"
    return "regression" if difference.value < 0 else "improvement"


def _notes(comparison: Comparison) -> Iterable[str]:
    for side in (comparison.before, comparison.after):
        if not side.complete:
            yield f"run {side.run} is not complete: {side.trials:,} of {side.planned:,} trials were made"
    apart = comparison.groups[Change.NOT_COMPARABLE]
    if apart:
        reasons = Counter(case.reasons[0] for case in apart if case.reasons)
        most, count = reasons.most_common(1)[0] if reasons else ("", 0)
        each = f" ({count:,} of them: {most})" if len(apart) > 1 and count else f" ({most})" if most else ""
        yield f"{_cases(len(apart))} cannot be compared{each}"


def _sentence(comparison: Comparison) -> str:
    """What the comparison amounts to, in one sentence that names its test."""
    groups = comparison.groups
    if comparison.test is None or comparison.before_rate is None or comparison.after_rate is None:
        return f"Nothing can be compared: {'; '.join(comparison.notes) or 'no case has a verdict in both runs'}."
    head = {"regression": "Worse", "improvement": "Better"}.get(comparison.verdict, "No difference shown")
    broken, fixed, flaky = (len(groups[group]) for group in (Change.BROKEN, Change.FIXED, Change.FLAKY))
    if not (broken or fixed or flaky):
        head, moved = "No change", f"all {_cases(comparison.compared)} ended as before"
        if comparison.compared == 1:
            moved = "the one case that was compared ended as before"
    else:
        parts = [
            f"{count:,} {word}" for count, word in ((broken, "broken"), (fixed, "fixed"), (flaky, "flaky")) if count
        ]
        moved = f"of {_cases(comparison.compared)} {', '.join(parts)}"
    rates = f"passes {percent(comparison.before_rate)} → {percent(comparison.after_rate)}"
    rest = f"; {'; '.join(comparison.notes)}" if comparison.notes else ""
    return f"{head}: {moved}; {rates} ({_test_text(comparison.test)}){rest}."


def _test_text(test: SignificanceTest) -> str:
    names = {"mcnemar mid-p": "McNemar's test, mid-p"}
    drawn = "" if test.exact else ", drawn at random"
    return f"{names.get(test.method, test.method)}{drawn}, {p_text(test.p_value)}"


def _cases(count: int) -> str:
    return f"{count:,} case{'' if count == 1 else 's'}"


def align_case(
    before: Run,
    after: Run,
    case_id: str,
    *,
    before_agent: str | None = None,
    after_agent: str | None = None,
    choose: CasePredicate | None = None,
) -> AlignedTrials | list[str]:
    """Two trials of one case that differ least, one passing and one failing if there are such.

    A case is named by its id, or by `suite/id` where several suites have it. Without such a case, all ids there are.
    """
    sides = [(before, _suites(before, before_agent)), (after, _suites(after, after_agent))]
    first, second = (read_cases(run, rename, choose) for run, rename in sides)
    both = [(pair.before, pair.after) for pair in pair_cases(first, second)]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    named = [
        (one, other)
        for one, other in known
        if case_id in (one.case.id, other.case.id, "/".join(one.address), "/".join(other.address))
    ]
    if not named:
        return [other.case.id for _, other in known]
    if len(named) > 1:
        places = ", ".join("/".join(other.address) for _, other in named[:5])
        raise UsageError(f"more than one case is called {case_id!r}: name it as one of {places}")
    [(one, other)] = named
    befores = trials_by_case(*sides[0], [one.address])[one.address]
    afters = trials_by_case(*sides[1], [other.address])[other.address]
    found = most_similar_trials(befores, afters)
    return [] if found is None else found


@dataclass(frozen=True, slots=True)
class AgentTable:
    """One suite that several agents were asked."""

    suite: str
    agents: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PassCount | None, ...]], ...]
    """Each case with the passes of each agent; `None` where it was not asked."""
    comparisons: tuple[Comparison, ...]
    """Each further agent against the first one; fewer where nothing can be compared."""


def agent_tables(run: Run) -> tuple[AgentTable, ...]:
    """A table for each suite that was put to several agents; none for an ordinary run."""
    sources = dict.fromkeys(info.source for info in run.suites if info.source)
    return tuple(_table(run, source) for source in sources)


def _table(run: Run, source: str) -> AgentTable:
    infos = [info for info in run.suites if info.source == source]
    places = {info.name: at for at, info in enumerate(infos)}
    counts: dict[str, list[list[int]]] = {}
    for summary in run.summaries:
        if summary.suite in places:
            row = counts.setdefault(summary.case_id, [[0, 0, 0] for _ in infos])[places[summary.suite]]
            settled = summary.outcome in (Outcome.PASSED, Outcome.FAILED)
            row[0] += summary.outcome is Outcome.PASSED
            row[1] += settled
            row[2] += not settled
    agents = tuple(info.agent for info in infos)
    rows = tuple(
        (case_id, tuple(PassCount(*row) if any(row) else None for row in found)) for case_id, found in counts.items()
    )
    compared = (_against_first(run, source, agents[0], other) for other in agents[1:])
    return AgentTable(source, agents, rows, tuple(found for found in compared if found is not None))


def _against_first(run: Run, source: str, first: str, other: str) -> Comparison | None:
    try:
        return compare_runs(run, run, before_agent=first, after_agent=other, choose=lambda suite, _: suite == source)
    except UsageError:  # one of them was asked nothing, as in a run that was interrupted
        return None
