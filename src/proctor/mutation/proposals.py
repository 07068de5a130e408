"""What to add to a suite so that its survivors are killed: lines for a native file, tried before they are proposed."""

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
from proctor.cases.evaluator_specs import with_implied, write_specs
from proctor.cases.formats.native.writer import write_expected, yaml_lines
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, Turn
from proctor.evaluators.text.keywords import find_keywords
from proctor.mutation.call_mutants import accepts_value
from proctor.mutation.findings import Proposal
from proctor.mutation.mutants import Mutant
from proctor.mutation.scoring import MutantScorer
from proctor.mutation.text_changes import DATE, NUMBER, UNIT, number_value
from proctor.results.run import Outcome
from proctor.running.conversation import ConversationResult
from proctor.running.plan import PlannedSuite, PlannedTrial, make_plan
from proctor.running.settings import RunOptions

MAX_CASES = 50
"""Cases for which something is proposed, those with the most survivors first."""
MAX_FACTS = 6
MAX_CANDIDATES = 60
"""Words that are looked for in one mutant."""
MAX_ANSWER = 4_000
"""Characters: nothing is proposed about the words of a longer answer, which no line of a file could hold."""
ROUGE_THRESHOLDS = {"reference": 0.8, "close": 0.95}
"""How like the reference answer ROUGE wants an answer to be."""
CALL_KINDS = frozenset("call-dropped other-tool argument-number argument-date argument-id argument-text".split())
EXACT_CALL_KINDS = frozenset("call-repeated calls-reordered call-added argument-missing forbidden-tool".split())
_MEASURE = rf"{NUMBER}[ -]?[^\W\d]+"
_FIGURE = rf"[$€£]?{NUMBER}(?:\s?%)?"


@dataclass(frozen=True, slots=True)
class PassingTrial:
    """A passing trial of which mutants are made."""

    planned: PlannedTrial
    case: Case
    number: int
    answer: ConversationResult


@dataclass(frozen=True, slots=True)
class _Draft:
    """A case as it would be with what is proposed."""

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
    """For each turn with survivors what would kill them; only what leaves every good answer passing."""
    by_case: dict[str, list[PassingTrial]] = {}
    for subject in subjects:
        by_case.setdefault(subject.case.id, []).append(subject)
    groups: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in survivors:
        groups.setdefault((mutant.case, mutant.turn), []).append(mutant)
    largest = sorted(groups.items(), key=lambda pair: -len(pair[1]))[:MAX_CASES]
    found = []
    for (case, turn), own in largest:
        best: Proposal | None = None
        await asyncio.sleep(0)
        for manner in _strategies(by_case[case], turn, own):
            draft = _draft(by_case[case], turn, own, manner)
            tried = None if draft is None else await _check_draft(suite, options, draft, by_case[case], scorer)
            if tried is not None and (best is None or tried.kills > best.kills):
                best = tried
            if best is not None and best.kills == best.of:
                break
        found += [] if best is None else [best]
    return tuple(found)


Strategy = Literal["exact", "reference", "close", "facts"]


def _strategies(subjects: Sequence[PassingTrial], at: int, survivors: Sequence[Mutant]) -> tuple[Strategy, ...]:
    """How answers could be held to what they say, the most telling first.

    An agent that gives the expected answer to the letter can be held to it. Keywords are found in a denial as well.
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


def _draft(subjects: Sequence[PassingTrial], at: int, survivors: Sequence[Mutant], manner: Strategy) -> _Draft | None:
    """The case with an expectation that the survivors do not meet; `None` where none comes to mind."""
    case, kinds = subjects[0].case, {mutant.kind for mutant in survivors}
    turn, replies = case.turns[at], [item.answer.replies[at] for item in subjects]
    expected, added = turn.expected, [*_trajectory_evaluator(case, kinds, replies), *_limit_evaluators(kinds, subjects)]
    if kinds & (CALL_KINDS | EXACT_CALL_KINDS):
        expected = replace(expected, tools=_expected_calls(expected.tools, replies[0].tool_calls))
    if any("answer" in mutant.parts for mutant in survivors):
        held = _require_answer(expected, turn, survivors, replies, manner)
        if held is None:
            return None
        expected, added = held[0], [*added, *held[1]]
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
    expected: Expected, turn: Turn, survivors: Sequence[Mutant], replies: Sequence[Reply], manner: Strategy
) -> tuple[Expected, list[EvaluatorSpec]] | None:
    """The expectation, and evaluators, that hold an answer to what good ones say; `None` where they do not agree."""
    if manner == "exact":
        return expected, [EvaluatorSpec("ExactMatch")]
    reference = replies[0].answer
    if isinstance(reference, str) and (facts := _missing_facts(turn, survivors, replies)):
        expected = replace(expected, contains=_with_facts(expected.contains, facts))
    if manner == "facts":
        return expected, []
    if any(reply.answer != reference for reply in replies) or len(to_text(reference)) > MAX_ANSWER:
        return None
    expected = replace(expected, output=reference if expected.output is UNSET else expected.output)
    return expected, [_similarity_evaluator(reference, ROUGE_THRESHOLDS[manner])]


def _similarity_evaluator(reference: Json, alike: float) -> EvaluatorSpec:
    if isinstance(reference, str):
        return EvaluatorSpec("ROUGE", threshold=alike)
    return EvaluatorSpec("JSONDiff", threshold=1.0)


def _trajectory_evaluator(case: Case, kinds: set[str], replies: Sequence[Reply]) -> list[EvaluatorSpec]:
    known = {spec.name for spec in case.evaluators or ()}
    needed = kinds & EXACT_CALL_KINDS and any(reply.tool_calls for reply in replies)
    return [EvaluatorSpec("ToolTrajectory")] if needed and "ToolTrajectory" not in known else []


def _limit_evaluators(kinds: set[str], subjects: Sequence[PassingTrial]) -> list[EvaluatorSpec]:
    """Half as much again as the dearest good conversation, and five times as long as the slowest."""
    found = []
    if "tokens-doubled" in kinds:
        used = [[r.usage.total_tokens or 0 for r in item.answer.replies if r.usage is not None] for item in subjects]
        found.append(EvaluatorSpec("MaxTokens", {"total": math.ceil(1.5 * max(map(sum, used)))}))
    if "latency-tenfold" in kinds:
        slowest = max(sum(reply.duration_ms or 0.0 for reply in item.answer.replies) for item in subjects)
        found.append(EvaluatorSpec("MaxLatency", {"seconds": float(f"{5 * slowest / 1000:.2g}")}))
    return found


def _expected_calls(known: Sequence[ExpectedCall] | None, actual: Sequence[ToolCall]) -> tuple[ExpectedCall, ...]:
    """The calls that were made, with the arguments as they were; matchers that a case has for them stay."""
    left = [call for call in known or () if call.args is not None]
    found: list[ExpectedCall] = []
    for call in actual:
        fits = (item for item in left if item.accepts_name(call.name) and _accepts_arguments(item, call))
        if (kept := next(fits, None)) is not None:
            left.remove(kept)
            found.append(kept)
        else:
            found.append(ExpectedCall(call.name, dict(call.arguments)))
    return tuple(found)


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
    """What the mutants lack and every good answer says."""
    texts = [to_text(reply.answer) for reply in replies]
    if max(map(len, texts)) > MAX_ANSWER:
        return []
    wanted: list[str] = []
    for mutant in survivors:
        if "answer" not in mutant.parts or mutant.kind == "keyword-denied":
            continue
        wrong = to_text(mutant.replies[mutant.turn].answer)
        candidates = list(
            islice(_candidates(texts[0], to_text(turn.input), _difference(texts[0], wrong)), MAX_CANDIDATES)
        )
        lacking = (fact for fact in candidates if fact not in wanted and _is_missing_only_in(fact, wrong, texts))
        if any(_is_missing_only_in(fact, wrong, texts) for fact in wanted):
            continue
        wanted += [fact for fact, _ in zip(lacking, range(1), strict=False)]
    return wanted[:MAX_FACTS]


def _is_missing_only_in(fact: str, wrong: str, texts: Sequence[str]) -> bool:
    there = all(find_keywords([fact], text, ignore_case=True)[0] for text in texts)
    return there and not find_keywords([fact], wrong, ignore_case=True)[0]


def _difference(text: str, wrong: str) -> tuple[int, int]:
    """Where a text first differs from another, and where the difference ends."""
    start = next((at for at, (a, b) in enumerate(zip(text, wrong, strict=False)) if a != b), min(len(text), len(wrong)))
    rest, other = text[start:], wrong[start:]
    same = next((n for n, (a, b) in enumerate(zip(rest[::-1], other[::-1], strict=False)) if a != b), None)
    shared = min(len(rest), len(other)) if same is None else same
    return start, len(text) - shared


def _candidates(text: str, question: str, place: tuple[int, int]) -> Iterable[str]:
    """Words to look for, the most telling first: dates and figures at the changed place, then those around it."""
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
    asked = {number_value(m.group()) for m in re.finditer(NUMBER, question)}
    for match in re.finditer(_FIGURE, text):
        digits = re.search(NUMBER, match.group())
        if digits and number_value(digits.group()) not in asked:
            yield match.group()
    for size in (3, 4):
        for at in range(len(words) - size, -1, -1):
            yield text[words[at].start() : words[at + size - 1].end()].strip(".,;:!?")


def _changed_keys(old: Expected, new: Expected) -> dict[str, Json]:
    """The keys of `expected` that are new or other; all of them where it was written as the answer alone."""
    written = write_expected(new)
    before = write_expected(old) if old else {}
    if not isinstance(before, dict):
        return dict(written)
    return {key: value for key, value in dict(written).items() if before.get(key, UNSET) != value} if new != old else {}


async def _check_draft(
    suite: PlannedSuite, options: RunOptions, draft: _Draft, subjects: Sequence[PassingTrial], scorer: MutantScorer
) -> Proposal | None:
    """The proposal, if every good answer still passes with it and a survivor does not."""
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
