"""What judges are asked about a conversation as a whole, each in one call."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from proctor.judging.judge import Question, Texts
from proctor.judging.questions import EachOnce, YesNo

LINES = (
    "The numbered lines are a conversation. Each says who speaks, in which turn; a turn is what the user said and what "
    "the agent answered to it."
)


class Fact(BaseModel):
    turn: int = Field(description="the number of the turn in which the user said it")
    text: str = Field(description="what the user told, in one short sentence")


class Retention(BaseModel):
    number: int = Field(description="the number of the turn")
    reason: str = Field(description="in one sentence, what was forgotten or contradicted, or that nothing was")
    forgot: YesNo


class Retentions(BaseModel):
    facts: list[Fact]
    verdicts: list[Retention]


def knowledge_retention(lines: Sequence[str], turns: int) -> Question[Retentions]:
    """What the user told, and in which turns the agent no longer knew it: one call for the whole conversation."""
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
            "First list the facts that the user told and that may matter later: names, numbers, places, dates, wishes, "
            "conditions, corrections of what they said before. Questions and greetings tell nothing.\n"
            "Then say of the agent's answer in each turn whether it forgot something that the user had told in that "
            "turn or before: 'yes' if it asks again for what it was told, contradicts it, or acts as if it had not "
            "been told; 'no' otherwise. Asking to confirm, and not mentioning what is not needed, is no forgetting. "
            "What the user corrected later counts in its corrected form from then on."
        ),
        material={"line": list(lines)},
        reply=Retentions,
        check=check,
    )


class Intention(BaseModel):
    text: str = Field(description="what the user wanted, in one sentence")
    reason: str = Field(description="in one sentence, what shows that it was satisfied, or what is lacking")
    satisfied: YesNo


class Intentions(BaseModel):
    intentions: list[Intention]


def completeness(material: dict[str, Texts]) -> Question[Intentions]:
    """What the user wanted, and whether each of it was satisfied by the end."""
    return Question(
        kind="conversation-completeness",
        version=1,
        instructions=(
            f"{LINES} Lines about tools show what the agent did.\n"
            "List what the user wanted from the conversation, each intention once and only what the user expressed. "
            "For each say whether it was satisfied when the conversation ended: 'yes' if the user has what they wanted "
            "or was told truthfully that it cannot be had; 'no' if it was passed over, left half done, or only "
            "promised. An intention that the user gave up is left out."
        ),
        material=material,
        reply=Intentions,
    )


ROLE = (
    "The role describes who the agent is to be. Say of the agent's answer in each turn whether it keeps to the role: "
    "'no' if it speaks, knows, offers or refuses something in a way that one in this role would not, or drops the "
    "role; 'yes' otherwise. What the role says nothing about is free, and so is saying what the user does not like. "
    "The number of a verdict is the number of the turn."
)

RELEVANT = (
    "Say of the agent's answer in each turn whether it is relevant to what the user said in that turn: 'yes' if it "
    "responds to it, given all that was said before; a question back that is needed, a plain refusal, and a courtesy "
    "for a courtesy are relevant. 'no' if it is about something else or passes over what the user said. Whether it is "
    "true or good does not matter here. The number of a verdict is the number of the turn; lines of `earlier`, if "
    "there are any, came before and get none."
)
