"""Answers that are stored already: of an earlier run, of an interrupted one, or of the run that is scored again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from proctor.cases.identity import TrialAddress, question_key
from proctor.results.masking import mask_case
from proctor.results.run import Outcome, TrialResult
from proctor.results.store.store import Store
from proctor.running.conversation import ConversationResult
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial

EarlierAnswer = Callable[[PlannedTrial], TrialResult | None]


def stored_answers(store: Store) -> EarlierAnswer:
    """The latest answer of the same agent to the same question, if there is one."""
    known = store.latest_answers()

    def earlier(planned: PlannedTrial) -> TrialResult | None:
        if planned.suite.not_reused_because:
            return None
        cases = (planned.case, mask_case(planned.case))
        keys = [(question_key(case), planned.suite.agent_fingerprint, planned.number) for case in cases]
        no = known.get(keys[0], known.get(keys[1]))
        past = None if no is None else store.trial(no)
        return None if past is None or past.ended_early else past

    return earlier


def with_reuse(plan: Plan) -> Plan:
    """The plan with a reason for each suite whose agent cannot be compared with that of an earlier run."""

    def change(item: PlannedSuite) -> PlannedSuite:
        if not item.agent.unfingerprinted_parts:
            return item
        parts = ", ".join(item.agent.unfingerprinted_parts)
        reason = f"asked anew: the agent holds {parts}, which cannot be compared with an earlier run"
        return replace(item, not_reused_because=reason)

    return plan.with_suites(change)


def resumed_answers_first(answers: Mapping[TrialAddress, TrialResult], earlier: EarlierAnswer | None) -> EarlierAnswer:
    """The answers of the interrupted run, before those of any other."""

    def known(planned: PlannedTrial) -> TrialResult | None:
        found = answers.get(planned.address)
        return found if found is not None or earlier is None else earlier(planned)

    return known


def same_question_or_error(planned: PlannedTrial, past: TrialResult) -> TrialResult:
    """The earlier trial if its case still asks the same, else an error: an answer counts only for its question."""
    asked = question_key(past.case)
    if question_key(planned.case) == asked or question_key(mask_case(planned.case)) == asked:
        return past
    if question_key(mask_case(planned.case)) == question_key(mask_case(past.case)):
        return past
    reason = "the case asks something else now than it did in the run whose answers are scored; run it again"
    return replace(past, outcome=Outcome.ERROR, reason=reason, replies=(), scores=(), spans=(), ended_early=True)


def conversation_result(past: TrialResult) -> ConversationResult:
    """The answer of an earlier trial; an agent that failed to answer then has failed now."""
    ended = past.outcome if past.ended_early else None
    went_on = ended is None and any(reply.error is not None for reply in past.replies)
    failed = None if not went_on else Outcome.ERROR if past.outcome is Outcome.ERROR else Outcome.FAILED
    return ConversationResult(
        past.replies,
        ended,
        past.reason if ended or failed else "",
        past.attempts,
        past.started_at,
        past.duration_ms,
        spans=past.spans,
        turns=None if past.case.scenario is None else past.case.turns,
        failed_turns=failed,
    )
