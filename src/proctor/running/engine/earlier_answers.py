"""Answers that are there already: from an earlier run, from an interrupted one, or from the run that is scored anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from proctor.results.case_encoding import question_key
from proctor.results.encoding import mask_case
from proctor.results.run import Outcome, TrialResult
from proctor.results.store import Store
from proctor.results.verdict import NOTHING_SCORES
from proctor.running.engine.ask import Answer
from proctor.running.engine.plan import PlannedTrial

EarlierAnswer = Callable[[PlannedTrial], TrialResult | None]


def kept_answers(store: Store) -> EarlierAnswer:
    """The latest answer of the same agent to the same question, where there is one."""
    known = store.answers()

    def earlier(planned: PlannedTrial) -> TrialResult | None:
        if planned.suite.agent.unknown_parts:
            return None
        cases = (planned.case, mask_case(planned.case))
        keys = [(question_key(case), planned.suite.agent_fingerprint, planned.number) for case in cases]
        no = known.get(keys[0], known.get(keys[1]))
        past = None if no is None else store.trial(no)
        return None if past is None or broke_down(past) else past

    return earlier


def answers_first(answers: Mapping[tuple[str, str, int], TrialResult], earlier: EarlierAnswer | None) -> EarlierAnswer:
    """What the interrupted run heard already, before anything else."""

    def known(planned: PlannedTrial) -> TrialResult | None:
        found = answers.get(planned.address)
        return found if found is not None or earlier is None else earlier(planned)

    return known


def still_asked(planned: PlannedTrial, past: TrialResult) -> TrialResult:
    """An answer counts only for the question it was given to."""
    asked = question_key(past.case)
    if question_key(planned.case) == asked or question_key(mask_case(planned.case)) == asked:
        return past
    if question_key(mask_case(planned.case)) == question_key(mask_case(past.case)):
        return past
    reason = "the case asks something else now than it did in the run whose answers are scored; run it anew"
    return replace(past, outcome=Outcome.ERROR, reason=reason, replies=(), scores=(), spans=())


def broke_down(past: TrialResult) -> bool:
    """Whether an earlier trial ended before evaluators had the word."""
    return bool(past.reason) and not past.scores and past.reason != NOTHING_SCORES


def answer_of(past: TrialResult) -> Answer:
    """What an earlier trial heard; an agent that broke down then has still broken down."""
    broke = past.outcome if broke_down(past) else None
    went_on = broke is None and any(reply.error is not None for reply in past.replies)
    failed = None if not went_on else Outcome.ERROR if past.outcome is Outcome.ERROR else Outcome.FAILED
    reason = past.reason if broke or failed else ""
    said = None if past.case.scenario is None else past.case.turns
    times = past.attempts, past.started_at, past.duration_ms
    return Answer(past.replies, broke, reason, *times, spans=past.spans, turns=said, failed_turns=failed)
