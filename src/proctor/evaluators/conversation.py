"""Evaluators of a conversation: role, memory, satisfied requests and relevance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from proctor.agents.reply import Reply
from proctor.cases.suite import Turn
from proctor.evaluators.declaration import evaluator
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.judge_questions import verdicts_in_order, yes_no_questions
from proctor.evaluators.judged_evaluator import Finding, JudgedEvaluator, mean_of_findings
from proctor.evaluators.material import answer_of, answer_text, transcript
from proctor.evaluators.values import as_text, require_int, require_text
from proctor.judging.judge import Judge, Question, Texts
from proctor.judging.questions import EachOnce, YesNo

ROLE_KEYS = ("chatbot_role", "chatbotRole")
"""The metadata keys that hold the role of the agent."""


@evaluator(family="agent", needs="role", judge="model", scope="case")
@dataclass(frozen=True, kw_only=True)
class RoleAdherence(JudgedEvaluator):
    """The share of the agent's answers that stay in its role.

    The role is `role`, or `chatbot_role` in the case's metadata. Skipped if all answers are empty.
    """

    role: str | None = None
    """The role of the agent; without it, `chatbot_role` of the metadata."""

    def __post_init__(self) -> None:
        require_text("role", self.role)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        role, turns = self._role(evaluable), exchanges_with_answers(evaluable)
        material: dict[str, Texts] = {"role": role, "line": lines_of(turns)}
        reply = await judge.ask(yes_no_questions("role-adherence", f"{LINES}\n{ROLE}", material, len(turns)))
        findings = [
            Finding(answer_of(exchange), "in role" if holds else "out of role", holds, reason)
            for exchange, (holds, reason) in zip(turns, verdicts_in_order(reply), strict=True)
        ]
        return mean_of_findings(findings, "answers stay in the role", role=role)

    def _role(self, evaluable: Evaluable) -> str:
        metadata = evaluable.eval_metadata or {}
        named = self.role or next((metadata[key] for key in ROLE_KEYS if metadata.get(key)), None)
        if named is None or not as_text(named).strip():
            raise NothingToCompare("needs the agent's role: set `role`, or `chatbot_role` in the metadata")
        return as_text(named)


@evaluator(family="agent", judge="model", scope="case")
@dataclass(frozen=True, kw_only=True)
class KnowledgeRetention(JudgedEvaluator):
    """The share of the agent's answers that forget nothing the user said.

    Counted from the first fact that the user states. Skipped if the user states no facts, or all answers are empty.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        turns = exchanges_with_answers(evaluable)
        reply = await judge.ask(knowledge_retention(lines_of(turns), len(turns)))
        if not reply.facts:
            raise NothingToCompare("the user stated no facts")
        first = min(fact.turn for fact in reply.facts)
        findings = [
            Finding(answer_of(turns[item.number - 1]), _RETAINED[item.forgot], item.forgot == "no", item.reason)
            for item in sorted(reply.verdicts, key=lambda verdict: verdict.number)
            if item.number >= first
        ]
        facts = [{"turn": fact.turn, "text": fact.text} for fact in reply.facts]
        return mean_of_findings(findings, "answers forget nothing", facts=facts)


_RETAINED = {"yes": "forgot", "no": "remembers"}


@evaluator(family="agent", judge="model", scope="case")
@dataclass(frozen=True, kw_only=True)
class ConversationCompleteness(JudgedEvaluator):
    """The share of the user's requests that were satisfied by the end of the conversation.

    Skipped if the user requested nothing.
    """

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        reply = await judge.ask(completeness({"line": transcript(exchanges_of(evaluable))}))
        if not reply.intentions:
            raise NothingToCompare("the user requested nothing")
        findings = [
            Finding(item.text, _SATISFIED[item.satisfied], item.satisfied == "yes", item.reason)
            for item in reply.intentions
        ]
        return mean_of_findings(findings, "requests were satisfied")


_SATISFIED = {"yes": "satisfied", "no": "not satisfied"}


@evaluator(family="agent", judge="model", scope="case")
@dataclass(frozen=True, kw_only=True)
class TurnRelevancy(JudgedEvaluator):
    """The share of the agent's answers that respond to the user's message, given the conversation so far.

    An empty answer does not respond. Skipped without a conversation.
    """

    window: int = 10
    """How many turns one question to the judge covers. It also shows up to as many turns before them."""

    def __post_init__(self) -> None:
        require_int("window", self.window, least=1)

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        turns = exchanges_of(evaluable)
        starts = range(0, len(turns), self.window)
        parts = await asyncio.gather(*(self._part(turns, start, judge) for start in starts))
        return mean_of_findings([item for part in parts for item in part], "answers are relevant to their turn")

    async def _part(self, turns: Sequence[Exchange], start: int, judge: Judge) -> list[Finding]:
        part = turns[start : start + self.window]
        if not any(answer_of(exchange).strip() for exchange in part):
            return [_relevance(exchange, False, "") for exchange in part]
        before = turns[max(0, start - self.window) : start]
        material: dict[str, Texts] = {"earlier": lines_of(before)} if before else {}
        material["line"] = lines_of(part)
        reply = await judge.ask(yes_no_questions("turn-relevancy", f"{LINES}\n{RELEVANT}", material, len(part)))
        return [
            _relevance(exchange, *verdict) for exchange, verdict in zip(part, verdicts_in_order(reply), strict=True)
        ]


def _relevance(exchange: Exchange, relevant: bool, reason: str) -> Finding:
    text = answer_of(exchange)
    if not text.strip():
        return Finding(as_text(exchange.turn.input), "unanswered", False, "the answer is empty")
    return Finding(text, "relevant" if relevant else "irrelevant", relevant, reason)


def exchanges_of(evaluable: Evaluable) -> list[Exchange]:
    """The turns of the conversation; a single question and answer is one turn. Raises `NothingToCompare` if empty."""
    if evaluable.turns:
        return list(evaluable.turns)
    if not evaluable.eval_input and not evaluable.eval_output:
        raise NothingToCompare("needs a conversation, and it is empty")
    reply = Reply(answer_text(evaluable), tool_calls=evaluable.tool_calls)
    return [Exchange(Turn(evaluable.input), reply)]


def exchanges_with_answers(evaluable: Evaluable) -> list[Exchange]:
    """The turns of the conversation; raises `NothingToCompare` if all answers are empty."""
    turns = exchanges_of(evaluable)
    if not any(answer_of(exchange).strip() for exchange in turns):
        raise NothingToCompare("all answers of the agent are empty")
    return turns


def lines_of(exchanges: Sequence[Exchange]) -> list[str]:
    """The transcript without tool calls."""
    return transcript([Exchange(each.turn, replace(each.reply, tool_calls=())) for each in exchanges])


LINES = (
    "The numbered lines are a conversation. Each line says who speaks and in which turn. A turn is a message of the "
    "user and the agent's answer to it."
)


class Fact(BaseModel):
    turn: int = Field(description="the number of the turn in which the user said it")
    text: str = Field(description="the fact, in one short sentence")


class Retention(BaseModel):
    number: int = Field(description="the number of the turn")
    reason: str = Field(description="in one sentence, what was forgotten or contradicted, or that nothing was")
    forgot: YesNo


class Retentions(BaseModel):
    facts: list[Fact]
    verdicts: list[Retention]


def knowledge_retention(lines: Sequence[str], turns: int) -> Question[Retentions]:
    """The facts that the user stated, and the turns in which the agent forgot one: one call per conversation."""
    numbered = EachOnce(turns)

    def check(reply: Retentions) -> str | None:
        strange = [fact.turn for fact in reply.facts if not 1 <= fact.turn <= turns]
        complaint: str | None = numbered(reply)
        if complaint is None and strange:
            complaint = f"facts name turn {strange[0]}; the turns are numbered from 1 to {turns}"
        return complaint

    return Question(
        kind="knowledge-retention",
        version=1,
        instructions=(
            f"{LINES}\n"
            "First list the facts that the user stated and that may matter later: names, numbers, places, dates, "
            "wishes, conditions, and corrections of earlier statements. Questions and greetings are not facts.\n"
            "Then say for the agent's answer in each turn whether it forgot a fact that the user stated in that turn "
            "or earlier: 'yes' if it asks for the fact again, contradicts it, or acts as if the user had not stated "
            "it; 'no' otherwise. Asking for confirmation, or not mentioning a fact that is not needed, is not "
            "forgetting. Once the user corrects a fact, only the correction counts."
        ),
        material={"line": list(lines)},
        reply=Retentions,
        check=check,
    )


class Intention(BaseModel):
    text: str = Field(description="what the user wanted, in one sentence")
    reason: str = Field(description="in one sentence, what shows that it was satisfied, or what is missing")
    satisfied: YesNo


class Intentions(BaseModel):
    intentions: list[Intention]


def completeness(material: dict[str, Texts]) -> Question[Intentions]:
    """The user's requests, and whether each was satisfied by the end."""
    return Question(
        kind="conversation-completeness",
        version=1,
        instructions=(
            f"{LINES} Lines about tools show what the agent did.\n"
            "List what the user wanted from the conversation. List each intention once, and only intentions that the "
            "user expressed. For each, say whether it was satisfied by the end of the conversation: 'yes' if the user "
            "got what they wanted or was truthfully told that it is not possible; 'no' if the agent ignored it, left "
            "it half done, or only promised it. Leave out an intention that the user gave up."
        ),
        material=material,
        reply=Intentions,
    )


ROLE = (
    "The role describes who the agent should be. For the agent's answer in each turn, say whether it stays in the "
    "role: 'no' if it speaks, knows, offers or refuses something that someone in this role would not, or if it drops "
    "the role; 'yes' otherwise. The agent may do anything that the role does not mention, and may say things that the "
    "user does not like. The number of a verdict is the number of the turn."
)


RELEVANT = (
    "For the agent's answer in each turn, say whether it is relevant to what the user said in that turn: 'yes' if it "
    "responds to it, considering the conversation so far. A necessary question back, a plain refusal, and a courtesy "
    "in reply to a courtesy are relevant. 'no' if it is about something else or ignores what the user said. Whether "
    "the answer is true or good does not matter here. The number of a verdict is the number of the turn. Lines of "
    "`earlier`, if any, came before and get no verdict."
)
