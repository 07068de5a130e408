"""The prompt for a model that simulates a user, and the check that its reply is a message of a user."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from proctor.agents.reply import Reply
from proctor.base.json_data import Json, to_text
from proctor.cases.scenario import Scenario, persona_text
from proctor.judging.judge import Question, Texts

MIN_ECHO_CHARS = 40
"""A message at least this long that repeats the agent word for word is rejected."""

INSTRUCTIONS = """You simulate a user who chats with an agent. Work out what this user would say next, and report it \
in the user's own words. You are not the agent: never answer for it, and never do its task.

The plan says what the user wants, in which order, and what the user knows. Follow it: bring up one step at a time, \
nothing that is not in the plan, and no step before its turn. Respond to what the agent just said: give what it asks \
for if the plan has it, say that you do not know if the plan does not, and correct the agent if it misunderstood what \
the user wants. Do not tell the agent how to do its work, and do not mention an error in more than one or two \
messages. {persona}Write as people write in a chat: no headings, no names before the text, no remarks about the plan \
or about being simulated.

The status is 'says' if the user says something, with the text in message. It is 'finished' if the plan is done, or \
cannot continue because the agent refuses or fails; message is then empty. It is 'cannot' only if you refuse or are \
unable to play this user, and reason says why."""

PERSONA = "The persona says who the user is: let what the user says, and how, reflect it. "


class NextMessage(BaseModel):
    reason: str = Field(description="where in the plan the conversation is, and what follows from that")
    status: Literal["says", "finished", "cannot"]
    message: str = Field("", description="what the user says, and nothing else")


def next_message(scenario: Scenario, messages: Sequence[Json], replies: Sequence[Reply]) -> Question[NextMessage]:
    """The question for the model: what the user says next, after these messages and replies."""
    persona = persona_text(scenario.persona)
    material: dict[str, Texts] = {"plan": scenario.plan}
    if persona:
        material["persona"] = persona
    return Question(
        kind="next-user-message",
        version=2,
        instructions=_instructions(scenario, bool(persona)),
        material={**material, "line": _transcript(messages, replies, tools=scenario.show_tools)},
        reply=NextMessage,
        check=_check(scenario, replies),
    )


def _instructions(scenario: Scenario, has_persona: bool) -> str:
    default = INSTRUCTIONS.format(persona=PERSONA if has_persona else "")
    if not scenario.instructions:
        return default
    placeholders = {
        "stop_signal": scenario.stop,
        "conversation_plan": "(the material called plan)",
        "conversation_history": "(the material called line)",
        "persona": "(the material called persona)",
    }
    own = re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: placeholders.get(match[1], match[0]), scenario.instructions)
    return (
        f"{default}\n\nThe author of the scenario adds the following about how to play the user. Where it says to "
        f"say {scenario.stop} at the end, the status 'finished' means the same.\n\n{own}"
    )


def _transcript(messages: Sequence[Json], replies: Sequence[Reply], *, tools: bool) -> list[str]:
    lines: list[str] = []
    for message, reply in zip(messages, replies, strict=False):
        lines.append(f"user: {to_text(message)}")
        if tools:
            used = (
                f"{call.name}({to_text(dict(call.arguments))}): {to_text(call.result)}" for call in reply.tool_calls
            )
            lines += [f"agent uses {call}" for call in used]
        lines.append(f"agent: {_answer(reply)}")
    return lines


def _answer(reply: Reply) -> str:
    if reply.text or reply.structured is None:
        return reply.text
    return to_text(reply.structured)


def _check(scenario: Scenario, replies: Sequence[Reply]) -> Callable[[NextMessage], str | None]:
    agent_texts = [" ".join(reply.text.split()) for reply in replies]

    def check(reply: NextMessage) -> str | None:
        message = " ".join(reply.message.split())
        if reply.status == "cannot":
            return f"the model did not play the user: {reply.reason.strip() or 'no reason given'}"
        if reply.status == "finished" or scenario.stop in reply.message:
            return None
        if not message:
            return "status is 'says' but message is empty; write what the user says"
        if _out_of_role().search(message):
            return "message is not what a user would say: it speaks as a model or as the agent. Stay in the user's role"
        if len(message) >= MIN_ECHO_CHARS and message in agent_texts:
            return "message repeats what the agent said, word for word; write what the user answers"
        return None

    return check


@functools.cache
def _out_of_role() -> re.Pattern[str]:
    return re.compile(
        r"^(?:agent|assistant|ai|bot|model|user)\s*:"
        r"|\bas an? (?:ai\b|artificial intelligence|(?:large )?language model)"
        r"|\b(?:i am|i'm|i’m) (?:only |just )?an? (?:ai|large language model|language model|user simulator)\b"
        r"|^(?:i'm |i’m |i am )?(?:sorry|afraid)[, ]+(?:but )?i (?:can't|can’t|cannot|am unable to) "
        r"(?:assist|help|comply|continue|play|pretend|take part)",
        re.IGNORECASE,
    )
