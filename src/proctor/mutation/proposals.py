"""Suggests expectations that would kill survivors, as lines for a native suite.

For each turn with survivors, several strategies draft an expectation: facts that the survivors lack, the whole answer,
exact tool calls, limits. A draft is suggested only after it was run: every good answer must still pass with it, and at
least one survivor must fail. Without that check, suggestions would often reject the agent's own good answers.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import InvalidSuite, UsageError
from proctor.base.json_data import UNSET, Json, to_text
from proctor.cases.evaluator_specs import write_specs
from proctor.cases.formats.native.writer import write_expected, yaml_lines
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, Turn, with_implied
from proctor.evaluators.text.keywords import find_keywords
from proctor.mutation.call_mutants import accepts_value
from proctor.mutation.findings import Proposal
from proctor.mutation.mutants import Mutant
from proctor.mutation.scoring import MutantScorer
from proctor.mutation.text_changes import DATE, NUMBER, UNIT, number_value
from proctor.results.score import Outcome
from proctor.running.conversation import ConversationResult
from proctor.running.plan import PlannedSuite, PlannedTrial, make_plan
from proctor.running.settings import RunOptions

MAX_CASES = 50
"""Maximum turns with a suggestion, those with the most survivors first."""
MAX_FACTS = 6
MAX_CANDIDATES = 60
"""Maximum candidate phrases per mutant."""
MAX_ANSWER = 4_000
"""Characters of an answer; a longer one is too long to be written into a suite."""
ROUGE_THRESHOLDS = {"reference": 0.8, "close": 0.95}
"""The ROUGE threshold of each strategy that compares with the answer."""
CALL_KINDS = frozenset("call-dropped other-tool argument-number argument-date argument-id argument-text".split())
EXACT_CALL_KINDS = frozenset("call-repeated calls-reordered call-added argument-missing forbidden-tool".split())
_MEASURE = rf"{NUMBER}[ -]?[^\W\d]+"
_FIGURE = rf"[$€£]?{NUMBER}(?:\s?%)?"


@dataclass(frozen=True, slots=True)
class PassingTrial:
    """A passing trial that is mutated."""

    planned: PlannedTrial
    case: Case
    number: int
    answer: ConversationResult


@dataclass(frozen=True, slots=True)
class _Draft:
    """A case with the suggested expectation."""

    turn: int
    case: Case
    expected: Mapping[str, Json]
    added: tuple[EvaluatorSpec, ...]
    survivors: Sequence[Mutant]


async def propose(
    suite: PlannedSuite,
    options: RunOptions,
    subjects: Sequence[PassingTrial],
    survivors: Sequence[Mutant],
    scorer: MutantScorer,
) -> tuple[Proposal, ...]:
    """The best suggestion for each turn with survivors; every good answer passes with it."""
    by_case: dict[str, list[PassingTrial]] = {}
    for subject in subjects:
        by_case.setdefault(subject.case.id, []).append(subject)
    groups: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in survivors:
        groups.setdefault((mutant.case, mutant.turn), []).append(mutant)
    largest = sorted(groups.items(), key=lambda pair: -len(pair[1]))[:MAX_CASES]
    proposals = []
    for (case, turn), own in largest:
        best: Proposal | None = None
        await asyncio.sleep(0)
        for strategy in _strategies(by_case[case], turn, own):
            draft = _draft(by_case[case], turn, own, strategy)
            proposal = None if draft is None else await _check_draft(suite, options, draft, by_case[case], scorer)
            if proposal is not None and (best is None or proposal.kills > best.kills):
                best = proposal
            if best is not None and best.kills == best.of:
                break
        proposals += [] if best is None else [best]
    return tuple(proposals)


Strategy = Literal["exact", "reference", "close", "facts"]


def _strategies(subjects: Sequence[PassingTrial], at: int, survivors: Sequence[Mutant]) -> tuple[Strategy, ...]:
    """The strategies to try for a turn, the most promising first.

    If all answers equal the expected one, `ExactMatch` is enough. If a denial of the keywords survived, more keywords
    would not help, so the whole answer is compared first.
    """
    reference = subjects[0].case.turns[at].expected.output
    answers = [item.answer.replies[at].answer for item in subjects]
    if not all(isinstance(answer, str) for answer in answers):
        return ("reference",)
    if isinstance(reference, str) and all(answer == reference for answer in answers):
        return "exact", "facts"
    if any(mutant.kind == "keyword-denied" for mutant in survivors):
        return "reference", "close", "facts"
    return "facts", "reference"


def _draft(subjects: Sequence[PassingTrial], at: int, survivors: Sequence[Mutant], strategy: Strategy) -> _Draft | None:
    """The case with an expectation that the survivors should not meet, or `None` if the strategy finds none."""
    case, kinds = subjects[0].case, {mutant.kind for mutant in survivors}
    turn, replies = case.turns[at], [item.answer.replies[at] for item in subjects]
    expected, added = turn.expected, [*_trajectory_evaluator(case, kinds, replies), *_limit_evaluators(kinds, subjects)]
    if kinds & (CALL_KINDS | EXACT_CALL_KINDS):
        expected = replace(expected, tools=_expected_calls(expected.tools, replies[0].tool_calls))
    if any("answer" in mutant.parts for mutant in survivors):
        required = _require_answer(expected, turn, survivors, replies, strategy)
        if required is None:
            return None
        expected, added = required[0], [*added, *required[1]]
    if expected == turn.expected and not added:
        return None
    changed = replace(turn, expected=expected)
    if turn.evaluators is not None:
        changed = replace(changed, evaluators=with_implied((*turn.evaluators, *added), (changed,)))
    turns = (*case.turns[:at], changed, *case.turns[at + 1 :])
    specs = (*(case.evaluators or ()), *(added if turn.evaluators is None else ()))
    new = replace(case, turns=turns, evaluators=with_implied(specs, turns, final_state=case.final_state is not None))
    return _Draft(at, new, _changed_keys(turn.expected, expected), tuple(added), survivors)


def _require_answer(
    expected: Expected, turn: Turn, survivors: Sequence[Mutant], replies: Sequence[Reply], strategy: Strategy
) -> tuple[Expected, list[EvaluatorSpec]] | None:
    """The expectation and the evaluators that require what the good answers say; `None` if these differ too much."""
    if strategy == "exact":
        return expected, [EvaluatorSpec("ExactMatch")]
    reference = replies[0].answer
    if isinstance(reference, str) and (facts := _missing_facts(turn, survivors, replies)):
        expected = replace(expected, contains=_with_facts(expected.contains, facts))
    if strategy == "facts":
        return expected, []
    if any(reply.answer != reference for reply in replies) or len(to_text(reference)) > MAX_ANSWER:
        return None
    expected = replace(expected, output=reference if expected.output is UNSET else expected.output)
    return expected, [_similarity_evaluator(reference, ROUGE_THRESHOLDS[strategy])]


def _similarity_evaluator(reference: Json, threshold: float) -> EvaluatorSpec:
    if isinstance(reference, str):
        return EvaluatorSpec("ROUGE", threshold=threshold)
    return EvaluatorSpec("JSONDiff", threshold=1.0)


def _trajectory_evaluator(case: Case, kinds: set[str], replies: Sequence[Reply]) -> list[EvaluatorSpec]:
    known = {spec.name for spec in case.evaluators or ()}
    needed = kinds & EXACT_CALL_KINDS and any(reply.tool_calls for reply in replies)
    return [EvaluatorSpec("ToolTrajectory")] if needed and "ToolTrajectory" not in known else []


def _limit_evaluators(kinds: set[str], subjects: Sequence[PassingTrial]) -> list[EvaluatorSpec]:
    """Limits of 1.5 times the tokens of the most expensive good conversation, and 5 times the time of the slowest."""
    limits = []
    if "tokens-doubled" in kinds:
        used = [[r.usage.total_tokens or 0 for r in item.answer.replies if r.usage is not None] for item in subjects]
        limits.append(EvaluatorSpec("MaxTokens", {"total": math.ceil(1.5 * max(map(sum, used)))}))
    if "latency-tenfold" in kinds:
        slowest = max(sum(reply.duration_ms or 0.0 for reply in item.answer.replies) for item in subjects)
        limits.append(EvaluatorSpec("MaxLatency", {"seconds": float(f"{5 * slowest / 1000:.2g}")}))
    return limits


def _expected_calls(known: Sequence[ExpectedCall] | None, actual: Sequence[ToolCall]) -> tuple[ExpectedCall, ...]:
    """The actual calls as expected calls; expected calls that match them stay, with their matchers."""
    unmatched = [call for call in known or () if call.args is not None]
    calls: list[ExpectedCall] = []
    for call in actual:
        fits = (item for item in unmatched if item.accepts_name(call.name) and _accepts_arguments(item, call))
        if (match := next(fits, None)) is not None:
            unmatched.remove(match)
            calls.append(match)
        else:
            calls.append(ExpectedCall(call.name, dict(call.arguments)))
    return tuple(calls)


def _accepts_arguments(expected: ExpectedCall, call: ToolCall) -> bool:
    return all(
        name in (expected.args or {}) and accepts_value([expected], call, name, value)
        for name, value in call.arguments.items()
    )


def _with_facts(known: Keywords | None, facts: Sequence[str]) -> Keywords:
    if known is None:
        return Keywords(all=tuple(facts))
    return replace(known, all=tuple(dict.fromkeys([*known.all, *facts])))


def _missing_facts(turn: Turn, survivors: Sequence[Mutant], replies: Sequence[Reply]) -> list[str]:
    """Phrases that every good answer has and the mutants lack."""
    texts = [to_text(reply.answer) for reply in replies]
    if max(map(len, texts)) > MAX_ANSWER:
        return []
    facts: list[str] = []
    for mutant in survivors:
        if "answer" not in mutant.parts or mutant.kind == "keyword-denied":
            continue
        wrong = to_text(mutant.replies[mutant.turn].answer)
        candidates = list(
            islice(_candidates(texts[0], to_text(turn.input), _difference(texts[0], wrong)), MAX_CANDIDATES)
        )
        lacking = (fact for fact in candidates if fact not in facts and _is_missing_only_in(fact, wrong, texts))
        if any(_is_missing_only_in(fact, wrong, texts) for fact in facts):
            continue
        facts += [fact for fact, _ in zip(lacking, range(1), strict=False)]
    return facts[:MAX_FACTS]


def _is_missing_only_in(fact: str, wrong: str, texts: Sequence[str]) -> bool:
    there = all(find_keywords([fact], text, ignore_case=True)[0] for text in texts)
    return there and not find_keywords([fact], wrong, ignore_case=True)[0]


def _difference(text: str, wrong: str) -> tuple[int, int]:
    """The start and the end of the part of a text that differs from another text."""
    start = next((at for at, (a, b) in enumerate(zip(text, wrong, strict=False)) if a != b), min(len(text), len(wrong)))
    rest, other = text[start:], wrong[start:]
    same = next((n for n, (a, b) in enumerate(zip(rest[::-1], other[::-1], strict=False)) if a != b), None)
    shared = min(len(rest), len(other)) if same is None else same
    return start, len(text) - shared


def _candidates(text: str, question: str, place: tuple[int, int]) -> Iterable[str]:
    """Candidate phrases, the most telling first: dates and numbers in the changed part, then those around it."""
    start, end = place
    for pattern in (DATE, _MEASURE, _FIGURE):
        for match in re.finditer(pattern, text):
            is_near = match.start() < end + 1 and match.end() > start - 1
            if is_near and (pattern != _MEASURE or re.search(UNIT, match.group())):
                yield match.group().strip()
    words = list(re.finditer(r"\S+", text))
    near = [n for n, word in enumerate(words) if word.start() <= end and word.end() >= start]
    if near and end - start < 40:
        first, last = max(0, near[0] - 1), min(len(words) - 1, near[-1] + 1)
        yield text[words[first].start() : words[last].end()].strip(".,;:!?")
    question_numbers = {number_value(m.group()) for m in re.finditer(NUMBER, question)}
    for match in re.finditer(_FIGURE, text):
        digits = re.search(NUMBER, match.group())
        if digits and number_value(digits.group()) not in question_numbers:
            yield match.group()
    for size in (3, 4):
        for at in range(len(words) - size, -1, -1):
            yield text[words[at].start() : words[at + size - 1].end()].strip(".,;:!?")


def _changed_keys(old: Expected, new: Expected) -> dict[str, Json]:
    """The keys of `expected` that are new or changed; all of them if it was written as the answer alone."""
    written = write_expected(new)
    before = write_expected(old) if old else {}
    if not isinstance(before, dict):
        return dict(written)
    return {key: value for key, value in dict(written).items() if before.get(key, UNSET) != value} if new != old else {}


async def _check_draft(
    suite: PlannedSuite, options: RunOptions, draft: _Draft, subjects: Sequence[PassingTrial], scorer: MutantScorer
) -> Proposal | None:
    """The suggestion, if every good answer still passes with it and at least one survivor does not."""
    alone = replace(suite.suite, cases=(draft.case,), waivers=())
    try:
        plan = make_plan([alone], replace(options, fast=True))
    except (InvalidSuite, UsageError):
        return None
    planned = plan.trials[0]
    for subject in subjects:
        verdict = await scorer.score(planned, subject.answer, subject.answer.replies)
        if verdict.outcome is not Outcome.PASSED:
            return None
    kills = 0
    for mutant in draft.survivors:
        verdict = await scorer.score(planned, subjects[0].answer, mutant.replies)
        kills += verdict.outcome is Outcome.FAILED
    return _proposal(suite, draft, kills) if kills else None


def _proposal(suite: PlannedSuite, draft: _Draft, kills: int) -> Proposal:
    several = len(draft.case.turns) > 1
    turn = draft.case.turns[draft.turn]
    evaluators: list[Json] = []
    if draft.added:
        specs = draft.case.evaluators if turn.evaluators is None else turn.evaluators
        evaluators = write_specs(specs or (), defaults=suite.suite.evaluators)
    data: dict[str, Json] = {"expected": dict(draft.expected)} if draft.expected else {}
    data |= {"evaluators": evaluators} if evaluators else {}
    place = draft.turn if several else None
    return Proposal(
        draft.case.id, place, dict(draft.expected), tuple(evaluators), yaml_lines(data), kills, len(draft.survivors)
    )
