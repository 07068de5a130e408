"""Mutates a stored run: the controls first, then every mutant is scored by the suite's own evaluators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.agents.reply import Reply
from proctor.base.event_loops import run_sync
from proctor.base.json_data import UNSET, Json
from proctor.cases.suite import Case
from proctor.cases.threshold import passes
from proctor.evaluators.registry import ResolvedEvaluator
from proctor.judging.judges import Judges
from proctor.mutation.findings import (
    Controls,
    KindFinding,
    MutantResult,
    MutantStatus,
    MutationReport,
    SuiteFindings,
    summarize,
)
from proctor.mutation.mutants import MAX_SEARCHED, Material, Mutant, TrialMutants, answer_in, mutants_of
from proctor.mutation.proposals import PassingTrial, ProposalSearch
from proctor.mutation.scoring import (
    MutantScorer,
    MutantScores,
    asks_models,
    detections,
    failing_evaluators,
    judges_within_budget,
    observed_parts,
    oracle_replies,
)
from proctor.results.masking import masked_parts
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial
from proctor.running.rescore import RescorePlan, plan_rescore
from proctor.running.reuse import conversation_result
from proctor.running.settings import RunOptions
from proctor.running.timeouts import Watchdog

PARALLEL_MUTANTS = 64
"""Mutants that are scored at the same time."""
NOW_NOT_PASSING = "does not pass with the suite as it is now"
ONLY_MODELS = "all evaluators need a language model; use --budget to allow that"
SAME_ANSWER = "same answer as an earlier trial of the case"


MAX_PER_TRIAL = 500
MIN_PER_TRIAL = 24
MAX_TOTAL = 20_000
"""By default every place is tried, up to 500 per trial; with many trials, about 20,000 in all and 24 per trial, and
also 24 if language models judge them."""


@dataclass(frozen=True, slots=True)
class MutationRequest:
    """Which run, which mutants, and what they may cost."""

    store: Path
    run: str
    options: RunOptions
    suites: Sequence[str] = ()
    """Files whose expectations replace those of the run."""
    seed: int = 0
    max_per_trial: int | None = None
    """Maximum mutants per trial; `None` leaves it to `limit_of`."""
    ignore_controls: bool = False
    """Whether to continue with a suite that fails its expected answers or passes empty ones."""
    min_kill: float | None = None


def mutate(request: MutationRequest) -> MutationReport:
    """Mutate the passing trials of a run and score the mutants with its suites; the agent is not called."""
    options = request.options
    if options.budget_usd is None:
        options = replace(options, fast=True)
    with plan_rescore(request.store, request.run, options, suites=request.suites) as rescore:
        database = request.store / "results.db"
        stored_calls = database if database.is_file() else None
        with judges_within_budget(options.budget_usd, stored_calls, rescore.plan.suites) as judges:
            suites = run_sync(_mutate_suites(rescore, request, options, judges))
    return MutationReport(
        rescore.run.id, request.seed, limit_of(request, rescore.plan), tuple(suites), request.min_kill
    )


def limit_of(request: MutationRequest, plan: Plan) -> int:
    """How many mutants each trial gets: as many as requested; else fewer the more trials there are, or if they cost."""
    if request.max_per_trial is not None:
        return request.max_per_trial
    if request.options.budget_usd is not None and any(suite.asks_models for suite in plan.suites):
        return MIN_PER_TRIAL
    return max(MIN_PER_TRIAL, min(MAX_PER_TRIAL, MAX_TOTAL // max(1, len(plan.trials))))


async def _mutate_suites(
    rescore: RescorePlan, request: MutationRequest, options: RunOptions, judges: Judges | None
) -> list[SuiteFindings]:
    parallel = max((item.limits.fixed_parallel for item in rescore.plan.suites), default=1)
    suites = []
    with Watchdog() as watchdog:
        scorer = MutantScorer(watchdog, parallel, judges)
        for suite in rescore.plan.suites:
            trials = [trial for trial in rescore.plan.trials if trial.suite is suite]
            suites.append(await _SuiteMutation(suite, trials, rescore, request, options, scorer, judges).findings())
    return suites


class _SuiteMutation:
    """The mutation of one suite."""

    def __init__(
        self,
        suite: PlannedSuite,
        trials: Sequence[PlannedTrial],
        rescore: RescorePlan,
        request: MutationRequest,
        options: RunOptions,
        scorer: MutantScorer,
        judges: Judges | None,
    ) -> None:
        self._suite = suite
        self._trials = trials
        self._rescore = rescore
        self._request = request
        self._options = options
        self._scorer = scorer
        self._judges = judges
        self._observed = {bound.title: observed_parts(bound) for bound in suite.evaluators}
        self._limit = limit_of(request, rescore.plan)
        self._skipped: Counter[str] = Counter()
        self._unmutated: dict[str, str] = {}
        self._notes: list[str] = []

    async def findings(self) -> SuiteFindings:
        subjects = await self._subjects()
        controls = await self._controls(subjects)
        name = self._suite.suite.name
        if controls.broken and not self._request.ignore_controls:
            return SuiteFindings(
                name,
                controls,
                skipped_trials=dict(self._skipped),
                unmutated_cases=self._unmutated,
                notes=tuple(self._notes),
            )
        trial_mutants = await self._mutants(subjects)
        results = await self._score_mutants(
            [(subject, mutant) for subject, item in trial_mutants for mutant in item.mutants]
        )
        results, allowed = self._without_allowed(results, [kind for _, item in trial_mutants for kind in item.allowed])
        gating = {bound.title: not bound.spec.report_only for bound in self._in_force(subjects)}
        left_out: Counter[str] = Counter()
        for _, item in trial_mutants:
            left_out.update(item.left_out)
        summary = summarize(name, results, self._suite.suite.waivers, gating, controls, left_out)
        survivors = [item.mutant for item in summary.with_status(MutantStatus.SURVIVED)]
        search = ProposalSearch(self._suite, self._options, subjects, self._scorer)
        return replace(
            summary,
            proposals=await search.for_cases(survivors),
            kinds=await self._kinds_with_proposals(summary.kinds, search),
            allowed=dict(Counter(allowed)),
            skipped_trials=dict(self._skipped),
            unmutated_cases=self._unmutated,
            notes=tuple(self._notes),
        )

    async def _kinds_with_proposals(
        self, kinds: Sequence[KindFinding], search: ProposalSearch
    ) -> tuple[KindFinding, ...]:
        """The kinds, each with the shortest expectation that kills its survivors."""
        return tuple(
            [
                replace(kind, proposal=await search.for_kind([item.mutant for item in kind.survivors]))
                if kind.survivors
                else kind
                for kind in kinds
            ]
        )

    def _without_allowed(self, results: list[MutantResult], allowed: list[str]) -> tuple[list[MutantResult], list[str]]:
        """The results without reordered calls that survived a `Trajectory`, whose steps are a partial order."""
        partial = {bound.title for bound in self._suite.evaluators if bound.spec.name == "Trajectory"}
        remaining = []
        for item in results:
            if (
                item.mutant.kind == "calls-reordered"
                and item.status is MutantStatus.SURVIVED
                and partial & item.detections.keys()
            ):
                allowed.append(item.mutant.kind)
            else:
                remaining.append(item)
        return remaining, allowed

    def _in_force(self, subjects: Sequence[PassingTrial]) -> list[ResolvedEvaluator]:
        """The evaluators that scored something, in the order of the suite."""
        bounds = list(dict.fromkeys(bound for subject in subjects for bound in subject.planned.evaluators))
        return bounds if self._options.budget_usd is not None else [b for b in bounds if not self._needs_model(b)]

    def _needs_model(self, bound: ResolvedEvaluator) -> bool:
        return bound.needs_model

    async def _subjects(self) -> list[PassingTrial]:
        """The passing trials that still pass with the suite as it is now; equal answers of a case once."""
        subjects: list[PassingTrial] = []
        seen: dict[str, list[object]] = {}
        for planned in self._trials:
            stored = self._rescore.answer_to(planned)
            if stored.outcome is not Outcome.PASSED or planned.case.skip is not None:
                self._skip(planned.case.id, _skip_reason(planned.case, stored))
                continue
            await asyncio.sleep(0)
            answer = conversation_result(stored)
            case = planned.case if answer.turns is None else replace(planned.case, turns=answer.turns)
            subject = PassingTrial(planned, case, planned.number, answer)
            content = [_content(reply) for reply in answer.replies]
            if content in seen.setdefault(case.id, []):
                self._skipped[SAME_ANSWER] += 1
                continue
            if not await self._still_passes(subject):
                continue
            seen[case.id].append(content)
            subjects.append(subject)
        for subject in subjects:
            self._unmutated.pop(subject.case.id, None)
        long = sum(any(len(reply.text) > MAX_SEARCHED for reply in subject.answer.replies) for subject in subjects)
        if long:
            self._notes.append(f"{long} of the answers were changed only in their first {MAX_SEARCHED:,} characters")
        sources = [subject.answer.stored for subject in subjects]
        masked = sum(source is not None and bool(masked_parts(source)) for source in sources)
        if masked:
            self._notes.append(
                f"secrets are masked in {masked} of the answers; mutants are undecided for evaluators that read them"
            )
        return subjects

    def _skip(self, case: str, reason: str) -> None:
        self._skipped[reason] += 1
        self._unmutated.setdefault(case, reason)

    async def _still_passes(self, subject: PassingTrial) -> bool:
        verdict = await self._score(subject, subject.answer.replies)
        if verdict.outcome is Outcome.PASSED:
            return True
        if not verdict.scores and asks_models(subject.planned):
            if self._options.budget_usd is not None:
                return True
            self._skip(subject.case.id, ONLY_MODELS)
            return False
        self._skip(subject.case.id, NOW_NOT_PASSING)
        return False

    async def _score(self, subject: PassingTrial, replies: tuple[Reply, ...], *, models: bool = False) -> MutantScores:
        return await self._scorer.score(subject.planned, subject.answer, replies, models=models)

    async def _controls(self, subjects: Sequence[PassingTrial]) -> Controls:
        cases = {subject.case.id: subject for subject in subjects}
        fails, passed, failing_evaluator = [], [], ""
        for subject in cases.values():
            if (await self._score(subject, tuple(Reply() for _ in subject.case.turns))).outcome is Outcome.PASSED:
                passed.append(subject.case.id)
            if evaluator := await self._oracle_fails(subject):
                fails.append(subject.case.id)
                failing_evaluator = failing_evaluator or evaluator
        pct, count = self._suite.suite.criteria.pct, len(cases)
        broken = ""
        if count and not passes((count - len(fails)) / count, pct):
            broken = f"{_case_list(fails)} fails its own expected answer ({failing_evaluator})"
        elif count and passes(len(passed) / count, pct):
            broken = f"{_case_list(passed)} passes an empty answer"
        return Controls(tuple(fails), tuple(passed), broken)

    async def _oracle_fails(self, subject: PassingTrial) -> str:
        """The evaluator that fails the expected answer itself; "" if it passes or the case expects too little."""
        case = subject.case
        replies = await oracle_replies(case)
        if replies is None:
            return ""
        verdict = await self._score(subject, replies)
        if verdict.outcome is not Outcome.FAILED:
            return ""
        parts = _oracle_parts(case)
        return next(
            (name for name in failing_evaluators(verdict.scores) if self._observed.get(name, frozenset()) & parts), ""
        )

    async def _mutants(self, subjects: Sequence[PassingTrial]) -> list[tuple[PassingTrial, TrialMutants]]:
        answers: list[tuple[str, Json]] = [
            (subject.case.id, answer_in(subject.answer.replies[-1])) for subject in subjects if subject.answer.replies
        ]
        calls = (call.name for subject in subjects for reply in subject.answer.replies for call in reply.tool_calls)
        material = Material(answers, tuple(dict.fromkeys(calls)))
        trial_mutants = []
        for subject in subjects:
            await asyncio.sleep(
                0
            )  # lets the event loop run: the guard ends a process whose loop is blocked for too long
            trial_mutants.append((subject, self._of_one(subject, material)))
        return trial_mutants

    def _of_one(self, subject: PassingTrial, material: Material) -> TrialMutants:
        return mutants_of(
            subject.case,
            self._suite.suite.name,
            subject.number,
            subject.answer.replies,
            subject.case.evaluators or (),
            material,
            seed=self._request.seed,
            limit=self._limit,
        )

    async def _score_mutants(self, mutants: Sequence[tuple[PassingTrial, Mutant]]) -> list[MutantResult]:
        """Score the mutants, and return the results in their order."""
        results: list[MutantResult] = []
        for first in range(0, len(mutants), PARALLEL_MUTANTS):
            some = mutants[first : first + PARALLEL_MUTANTS]
            verdicts = await asyncio.gather(*(self._score(subject, mutant.replies) for subject, mutant in some))
            results += [self._result(mutant, verdict) for (_, mutant), verdict in zip(some, verdicts, strict=True)]
        return await self._score_with_models(results, [subject for subject, _ in mutants])

    def _result(self, mutant: Mutant, verdict: MutantScores) -> MutantResult:
        detected = detections(mutant.parts, verdict.scores, self._observed)
        status = {Outcome.FAILED: MutantStatus.KILLED, Outcome.PASSED: MutantStatus.SURVIVED}.get(
            verdict.outcome, MutantStatus.UNDECIDED
        )
        return MutantResult(mutant, status, detected, verdict.reason if status is MutantStatus.UNDECIDED else "")

    async def _score_with_models(
        self, results: list[MutantResult], subjects: Sequence[PassingTrial]
    ) -> list[MutantResult]:
        """Let judges score the mutants that nothing else killed, the shortest first, until the budget is spent.

        `subjects` has the trial of each mutant.
        """
        asking = {subject.case.id for subject in subjects if asks_models(subject.planned)}
        remaining = [
            at
            for at, item in enumerate(results)
            if item.status is not MutantStatus.KILLED and item.mutant.case in asking
        ]
        if not remaining or self._judges is None or self._judges.budget is None or self._options.budget_usd is None:
            if asking and remaining:
                self._notes.append(
                    f"{len(remaining)} mutants were not judged by language models; use --budget to allow that"
                )
            return results
        budget, over_budget, judged = self._judges.budget, 0, 0
        cheapest = sorted(remaining, key=lambda at: sum(len(reply.text) for reply in results[at].mutant.replies))
        width = self._suite.limits.fixed_parallel
        for some in (cheapest[first : first + width] for first in range(0, len(cheapest), width)):
            verdicts = await asyncio.gather(
                *(self._score(subjects[at], results[at].mutant.replies, models=True) for at in some)
            )
            for at, verdict in zip(some, verdicts, strict=True):
                over_budget += verdict.is_over_budget
                if not verdict.is_over_budget:
                    judged += 1
                    results[at] = self._result(results[at].mutant, verdict)
        note = f"judges scored {judged} of {len(remaining)} mutants, for ${budget.spent:.4f}"
        self._notes.append(note + (f"; the budget of ${budget.limit_usd:g} is spent" if over_budget else ""))
        return results


def _content(reply: Reply) -> tuple[Json, ...]:
    """The content of a reply, by which equal answers are recognized."""
    calls = [(call.name, call.arguments, call.result) for call in reply.tool_calls]
    return reply.text, reply.outputs, reply.structured, calls


def _skip_reason(case: Case, stored: Trial) -> str:
    if case.skip is not None or stored.outcome is Outcome.SKIPPED:
        return "the case is skipped"
    return "ended in an error" if stored.outcome is Outcome.ERROR else stored.outcome.value


def _oracle_parts(case: Case) -> frozenset[str]:
    """The parts that the case fully specifies: a failure of the oracle elsewhere is not a fault of the suite."""
    parts: set[str] = set()
    for turn in case.turns:
        if turn.expected.output is not UNSET or turn.expected.contains is not None:
            parts.add("answer")
        if turn.expected.tools is not None:
            parts.add("calls")
    return frozenset(parts)


def _case_list(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
