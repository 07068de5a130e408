"""Stored answers, used instead of calling the agent: of an earlier run, of an interrupted run, or when rescoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from proctor.agents.opened_files import has_changed
from proctor.cases.identity import TrialAddress, content_key, question_key
from proctor.cases.suite import Case
from proctor.results.masking import has_other_secret, mask_case
from proctor.results.score import NO_SCORES, Outcome
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.running.conversation import ConversationResult
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial

UNKNOWN_FILES = (
    "stored answers were reused, but {agent} runs in another process, so --reuse cannot know whether its prompts and "
    "other files have changed; list them under `depends_on` in the suite, or run without --reuse"
)
"""The warning for an agent whose files cannot be observed."""

EarlierAnswer = Callable[[PlannedTrial], Trial | None]
"""Finds the stored trial whose answer to use for a planned one, if there is one."""


def stored_answers(store: Store) -> EarlierAnswer:
    """Finds the latest stored answer of the same agent to the same input, of the same case if there is one: its scores
    are about that case.

    An input with a secret, which is masked in the store, has none: another secret of the same kind and length has the
    same mask. A digest of the input would tell them apart, but a short secret could be guessed from it.
    """
    numbers = store.latest_answers()

    def earlier(planned: PlannedTrial) -> Trial | None:
        if planned.suite.not_reused_because:
            return None
        key = question_key(planned.case), planned.suite.agent_fingerprint, planned.number
        by_case = numbers.get(key)
        if by_case is None:
            return None
        stored = store.trial(by_case.get(planned.case.id) or next(reversed(by_case.values())))
        if stored.ended_early or has_changed(stored.files_read) is not None:
            return None
        return stored

    return earlier


def with_reuse(plan: Plan) -> Plan:
    """The plan, with the reason for each suite whose agent has no reliable fingerprint and so cannot reuse answers."""

    def change(item: PlannedSuite) -> PlannedSuite:
        if not item.agent.unfingerprinted_parts:
            is_known = item.agent.runs_here or bool(item.suite.depends_on)
            return item if is_known else replace(item, unknown_to_reuse=UNKNOWN_FILES.format(agent=item.agent.name))
        parts = ", ".join(item.agent.unfingerprinted_parts)
        reason = f"no stored answer was reused: the agent holds {parts}, which cannot be compared with an earlier run"
        return replace(item, not_reused_because=reason)

    return plan.with_suites(change)


def resumed_answers_first(answers: Mapping[TrialAddress, Trial], earlier: EarlierAnswer | None) -> EarlierAnswer:
    """Finds answers of the interrupted run first, then those that `earlier` finds."""

    def find(planned: PlannedTrial) -> Trial | None:
        answer = answers.get(planned.address)
        return answer if answer is not None or earlier is None else earlier(planned)

    return find


def is_same_question(case: Case, stored: Case) -> bool:
    """Whether a stored case, in which secrets may be masked, has the input of a case."""
    masked = mask_case(case)
    keys = (question_key(stored), question_key(mask_case(stored)))
    return question_key(case) == keys[0] or question_key(masked) in keys


def _has_other_secret_in_input(case: Case, stored: Trial) -> bool:
    """Whether a secret has changed in a case that has one in its input and is otherwise the same."""
    is_input_masked = any(part.endswith((".input", ".inputs", ".state")) for part in stored.masked or ())
    masked = mask_case(case)
    is_same = (content_key(masked), masked.description) == (content_key(stored.case), stored.case.description)
    return is_input_masked and is_same and has_other_secret(case, stored.masked_case)


def same_question_or_error(planned: PlannedTrial, stored: Trial) -> Trial:
    """The stored trial if the input of its case has not changed, else an error: the answer is to another input."""
    if is_same_question(planned.case, stored.case) and not _has_other_secret_in_input(planned.case, stored):
        return stored
    reason = "the input of the case has changed since the run whose answers are scored; run it again"
    return replace(
        stored, outcome=Outcome.ERROR, end_reason=reason, replies=(), scores=NO_SCORES, spans=(), ended_early=True
    )


def conversation_result(stored: Trial) -> ConversationResult:
    """The conversation of a stored trial, as if it had just been held; an agent that failed then has failed now."""
    ended = stored.outcome if stored.ended_early else None
    continued = ended is None and any(reply.error is not None for reply in stored.replies)
    failed = None if not continued else Outcome.ERROR if stored.outcome is Outcome.ERROR else Outcome.FAILED
    return ConversationResult(
        stored.replies,
        ended,
        stored.end_reason if ended or failed else "",
        stored.attempts,
        stored.started_at,
        stored.duration_ms,
        spans=stored.spans,
        turns=None if stored.case.scenario is None else stored.case.turns,
        failed_turns=failed,
        captured=replace(stored.captured, evaluators=""),
        stored=stored,
        files_read=stored.files_read,
    )
