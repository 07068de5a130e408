"""Suggests expectations that would kill survivors, as lines for a native suite in YAML or Python.

For the survivors of a turn, several expectations are drafted: phrases that the survivors lack, the whole answer, a
similar text, tools, their arguments, exact calls, limits. A draft is suggested only after it was run: every good answer
and the expected answer must still pass with it, and at least one survivor must fail. Without that check, suggestions
would often reject the agent's own good answers. Of the drafts that kill the most survivors, the shortest is suggested.
"""

from __future__ import annotations

import asyncio
import math
import pprint
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import InvalidSuite, UsageError
from proctor.base.json_data import UNSET, Json, to_text
from proctor.base.keywords import find_keywords
from proctor.cases.evaluator_specs import write_specs
from proctor.cases.formats.native.writer import write_expected, yaml_lines
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, Turn, with_implied
from proctor.mutation.call_mutants import ARGUMENT_CHANGES, CALL_CHANGES, accepts_value
from proctor.mutation.findings import Proposal
from proctor.mutation.mutants import Mutant
from proctor.mutation.scoring import MutantScorer, oracle_replies
from proctor.mutation.text_changes import DATE, NUMBER, UNIT, Edit, number_value
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
"""The ROUGE threshold of each level that compares with the answer."""
CALL_KINDS = frozenset({*CALL_CHANGES, *ARGUMENT_CHANGES, "argument-missing", "forbidden-tool"})
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


CallLevel = Literal["", "names", "arguments", "exact"]
"""What a draft requires of the calls: nothing, that these tools are called, their arguments, exactly these calls."""
AnswerLevel = Literal["", "facts", "exact", "reference", "close"]
"""What a draft requires of the answer: nothing, phrases, the whole answer, or a text that is similar to it."""


class ProposalSearch:
    """Finds the shortest expectation that kills survivors and passes every good answer, by running candidates."""

    def __init__(
        self, suite: PlannedSuite, options: RunOptions, subjects: Sequence[PassingTrial], scorer: MutantScorer
    ) -> None:
        self._suite = suite
        self._options = options
        self._scorer = scorer
        self._by_case: dict[str, list[PassingTrial]] = {}
        for subject in subjects:
            self._by_case.setdefault(subject.case.id, []).append(subject)

    async def for_cases(self, survivors: Sequence[Mutant]) -> tuple[Proposal, ...]:
        """The best suggestion for each turn with survivors, those with the most first.

        A suggestion for another turn of the same case builds on the first, so that both can be pasted.
        """
        proposals: list[Proposal] = []
        cases: dict[str, Case] = {}
        for case, turn, own in _largest_groups(survivors)[:MAX_CASES]:
            best = await self._best(cases.get(case, self._by_case[case][0].case), turn, own)
            if best is not None:
                proposals.append(best[0])
                cases[case] = best[1].case
        return tuple(proposals)

    async def for_kind(self, survivors: Sequence[Mutant]) -> Proposal | None:
        """The best suggestion for the turn that has the most of these survivors."""
        case, turn, own = _largest_groups(survivors)[0]
        best = await self._best(self._by_case[case][0].case, turn, own)
        return None if best is None else best[0]

    async def _best(self, case: Case, turn: int, survivors: Sequence[Mutant]) -> tuple[Proposal, _Draft] | None:
        """The draft that kills the most survivors; the shortest of those that kill as many.

        The strictest draft is run first. A shorter one is then given up at the first survivor that it misses.
        """
        subjects = self._by_case[case.id]
        await asyncio.sleep(0)
        drafts = [draft for draft in _drafts(case, subjects, turn, survivors) if draft is not None]
        lengths = [len(_lines(self._suite, draft)) for draft in drafts]
        order = sorted(range(len(drafts)), key=lambda at: (at != len(drafts) - 1, lengths[at]))
        best: tuple[Proposal, _Draft] | None = None
        for draft, length in ((drafts[at], lengths[at]) for at in order):
            missed = len(survivors) if best is None else best[0].of - best[0].kills
            if best is not None and not missed and length >= len(best[0].lines):
                continue
            proposal = await self._check(draft, subjects, missed)
            if proposal is not None and (best is None or _rank(proposal) < _rank(best[0])):
                best = proposal, draft
        return best

    async def _check(self, draft: _Draft, subjects: Sequence[PassingTrial], max_missed: int) -> Proposal | None:
        """The suggestion, if every good answer still passes with it and no more survivors than this do."""
        alone = replace(self._suite.suite, cases=(draft.case,), waivers=())
        try:
            plan = make_plan([alone], replace(self._options, fast=True))
        except (InvalidSuite, UsageError):
            return None
        planned = plan.trials[0]
        for subject in subjects:
            verdict = await self._scorer.score(planned, subject.answer, subject.answer.replies)
            if verdict.outcome is not Outcome.PASSED:
                return None
        if await self._oracle_fails(planned) and not await self._oracle_fails(subjects[0].planned):
            return None
        missed = 0
        for mutant in draft.survivors:
            verdict = await self._scorer.score(planned, subjects[0].answer, mutant.replies)
            missed += verdict.outcome is not Outcome.FAILED
            if missed > max_missed:
                return None
        kills = len(draft.survivors) - missed
        return _proposal(self._suite, draft, kills) if kills else None

    async def _oracle_fails(self, planned: PlannedTrial) -> bool:
        """Whether the expected answers of a case fail its own expectations."""
        replies = await oracle_replies(planned.case)
        if replies is None:
            return False
        answer = self._by_case[planned.case.id][0].answer
        return (await self._scorer.score(planned, answer, replies)).outcome is Outcome.FAILED


def _largest_groups(survivors: Sequence[Mutant]) -> list[tuple[str, int, list[Mutant]]]:
    """The survivors of each turn of each case, the largest group first."""
    groups: dict[tuple[str, int], list[Mutant]] = {}
    for mutant in survivors:
        groups.setdefault((mutant.case, mutant.turn), []).append(mutant)
    return [(*place, own) for place, own in sorted(groups.items(), key=lambda pair: -len(pair[1]))]


def _rank(proposal: Proposal) -> tuple[int, int]:
    return -proposal.kills, len(proposal.lines)


def _drafts(
    case: Case, subjects: Sequence[PassingTrial], at: int, survivors: Sequence[Mutant]
) -> Iterator[_Draft | None]:
    """The drafts for a turn, the strictest last."""
    call_levels: tuple[CallLevel, ...] = ("",)
    if any(mutant.kind in CALL_KINDS for mutant in survivors):
        call_levels = "names", "arguments", "exact"
    answer_levels: tuple[AnswerLevel, ...] = ("",)
    if any("answer" in mutant.parts for mutant in survivors):
        is_text = isinstance(subjects[0].answer.replies[at].answer, str)
        answer_levels = ("facts", "reference", "close", "exact") if is_text else ("reference", "exact")
    for answer_level in answer_levels:
        for call_level in call_levels:
            yield _draft(case, subjects, at, survivors, answer_level, call_level)


def _draft(
    case: Case,
    subjects: Sequence[PassingTrial],
    at: int,
    survivors: Sequence[Mutant],
    answer_level: AnswerLevel,
    call_level: CallLevel,
) -> _Draft | None:
    """The case with an expectation that the survivors should not meet, or `None` if these levels give none."""
    kinds = {mutant.kind for mutant in survivors}
    turn, replies = case.turns[at], [item.answer.replies[at] for item in subjects]
    expected, added = turn.expected, _limit_evaluators(kinds, subjects)
    if call_level:
        calls = _expected_calls(expected.tools, replies[0].tool_calls, with_arguments=call_level != "names")
        expected = replace(expected, tools=calls)
        added += [EvaluatorSpec("ToolTrajectory")] if call_level == "exact" and replies[0].tool_calls else []
    if answer_level:
        required = _require_answer(expected, turn, survivors, replies, answer_level)
        if required is None:
            return None
        expected, added = required[0], [*added, *required[1]]
    known = {spec.name for spec in (*(case.evaluators or ()), *(turn.evaluators or ()))}
    added = [spec for spec in added if spec.name not in known]
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
    expected: Expected, turn: Turn, survivors: Sequence[Mutant], replies: Sequence[Reply], level: AnswerLevel
) -> tuple[Expected, list[EvaluatorSpec]] | None:
    """The expectation and the evaluators that require what the good answers say; `None` if that is not possible."""
    reference = replies[0].answer
    if level != "exact" and isinstance(reference, str) and (facts := _missing_facts(turn, survivors, replies)):
        expected = replace(expected, contains=_with_facts(expected.contains, facts))
    if level == "facts":
        return expected, []
    if len(to_text(reference)) > MAX_ANSWER:
        return None
    expected = replace(expected, output=reference if expected.output is UNSET else expected.output)
    if level == "exact":
        return expected, [EvaluatorSpec("ExactMatch")]
    return expected, [_similarity_evaluator(reference, ROUGE_THRESHOLDS[level])]


def _similarity_evaluator(reference: Json, threshold: float) -> EvaluatorSpec:
    if isinstance(reference, str):
        return EvaluatorSpec("ROUGE", threshold=threshold)
    return EvaluatorSpec("JSONDiff", threshold=1.0)


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


def _expected_calls(
    known: Sequence[ExpectedCall] | None, actual: Sequence[ToolCall], *, with_arguments: bool
) -> tuple[ExpectedCall, ...]:
    """The actual calls as expected calls; expected calls that match them stay, with their matchers."""
    unmatched = [call for call in known or () if call.args is not None]
    calls: list[ExpectedCall] = []
    for call in actual:
        fits = (item for item in unmatched if item.accepts_name(call.name) and _accepts_arguments(item, call))
        if (match := next(fits, None)) is not None:
            unmatched.remove(match)
            calls.append(match)
        else:
            calls.append(ExpectedCall(call.name, dict(call.arguments) if with_arguments else None))
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
        if texts[0] in wrong:  # every phrase of the answer is still there
            continue
        candidates = list(
            islice(_candidates(texts[0], to_text(turn.input), _difference(texts[0], wrong)), MAX_CANDIDATES)
        )
        if any(_is_missing_only_in(fact, wrong, texts) for fact in facts):
            continue
        lacking = [fact for fact in candidates if _is_missing_only_in(fact, wrong, texts)]
        exact = [fact for fact in lacking if not lets_numbers_through(fact, texts[0], decimals=True)]
        # The good answers may share no word after `to 17:00`. It kills more than nothing does, and more than `17`.
        phrases = [fact for fact in lacking if not re.fullmatch(_FIGURE, fact)]
        facts += [*exact, *phrases, *lacking][:1]
    return facts[:MAX_FACTS]


def _is_missing_only_in(fact: str, wrong: str, texts: Sequence[str]) -> bool:
    """Whether all good answers have the phrase and the wrong one has not; a single word may be part of another word."""
    if fact.isalpha() or _has(fact, wrong) or not all(_has(fact, text) for text in texts):
        return False
    return not lets_numbers_through(fact, texts[0], decimals=False)


def _has(keyword: str, text: str) -> bool:
    return bool(find_keywords([keyword], text, ignore_case=True)[0])


def lets_numbers_through(keyword: str, text: str, *, decimals: bool) -> bool:
    """Whether the keyword is still found if a number of the text begins or ends with another digit.

    With `decimals`, also if it has other decimals: `5` is found in `5.7`, but `5 days` is not.
    """
    start = text.casefold().find(keyword.casefold())
    end = start + len(keyword)
    for match in re.finditer(NUMBER, text):
        if start < match.end() and match.start() < end and re.search(r"\d", keyword):
            has_decimals = "." in match.group()
            endings = [".7"] if decimals and not has_decimals else []
            endings += ["7"] if decimals or not has_decimals else []
            edits = [Edit(match.end(), match.end(), ending) for ending in endings]
            if any(_has(keyword, edit.apply_to(text)) for edit in (Edit(match.start(), match.start(), "7"), *edits)):
                return True
    return False


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
        before, after = max(0, near[0] - 1), min(len(words) - 1, near[-1] + 1)
        for first, last in ((near[0], after), (before, near[-1]), (before, after)):
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
    written, before = write_expected(new), write_expected(old) if old else {}
    keys: dict[str, Json] = written if isinstance(written, dict) else {"output": written}
    if not isinstance(before, dict):
        return keys if new != old else {}
    return {key: value for key, value in keys.items() if before.get(key, UNSET) != value}


def _lines(suite: PlannedSuite, draft: _Draft) -> str:
    """The draft as lines of a suite: new and changed keys in YAML, or whole arguments of `Case` in Python."""
    evaluators = _written_evaluators(suite, draft)
    path = suite.suite.path
    is_python = path is None or path.suffix == ".py"
    expected = write_expected(draft.case.turns[draft.turn].expected) if is_python else dict(draft.expected)
    data: dict[str, Json] = {"expected": expected} if draft.expected else {}
    data |= {"evaluators": evaluators} if evaluators else {}
    if not is_python:
        return yaml_lines(data)
    return "".join(f"{name}={pprint.pformat(value, width=76, sort_dicts=False)},\n" for name, value in data.items())


def _written_evaluators(suite: PlannedSuite, draft: _Draft) -> list[Json]:
    if not draft.added:
        return []
    turn = draft.case.turns[draft.turn]
    specs = draft.case.evaluators if turn.evaluators is None else turn.evaluators
    return write_specs(specs or (), defaults=suite.suite.evaluators)


def _proposal(suite: PlannedSuite, draft: _Draft, kills: int) -> Proposal:
    return Proposal(
        draft.case.id,
        draft.turn if len(draft.case.turns) > 1 else None,
        dict(draft.expected),
        tuple(_written_evaluators(suite, draft)),
        _lines(suite, draft),
        kills,
        len(draft.survivors),
    )
