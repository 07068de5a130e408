"""A conversation with a simulated user: how it begins, what the user wants, and who the user is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from proctor.base.json_data import Json, to_text

DEFAULT_STOP = "</finished>"
"""What the user says when there is nothing more to say, unless the scenario sets another mark."""
DEFAULT_MAX_TURNS = 20
SIMULATION_KEY = "x-simulated"
"""Where the first turn of a simulated conversation says who played the user, on what calls, and how it ended."""
MAX_TURNS = 1000
"""Turns of a conversation whose file asks for no limit."""

PERSONAS: Final[Mapping[str, str]] = {
    "EXPERT": (
        "Knows the subject and the tools. Says what is wanted precisely and at once, with every detail that matters, "
        "in the terms of the trade. Answers questions in full, notices mistakes and says so, wastes no words, and has "
        "little patience with detours."
    ),
    "NOVICE": (
        "New to the subject. Says what is wanted in everyday words and a little at a time, leaves out details until "
        "asked for them, asks what unknown words mean, follows the agent's lead, and does not notice its mistakes "
        "unless they go against what was plainly wanted."
    ),
    "EVALUATOR": (
        "Wants to see whether the agent does its task. Keeps to the plan without adding or guessing anything, answers "
        "what is asked from the plan alone, in plain and neutral sentences, makes no small talk, and ends the "
        "conversation as soon as the plan is done or cannot go on."
    ),
}
"""The users that can be asked for by name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a simulated user needs to know; the conversation itself comes about when it is held."""

    start: str
    """The first message, word for word."""
    plan: str
    """What the user is after, and in which order."""
    persona: Json = None
    """Who the user is: one of `PERSONAS`, a text, or an object that describes a person."""
    max_turns: int = DEFAULT_MAX_TURNS
    """Messages of the user, the first included."""
    stop: str = DEFAULT_STOP
    """The mark by which the user ends the conversation."""
    model: Json = None
    """Who plays the user: `provider:model` or an object of options; `None` leaves it to the judge of the run."""
    instructions: str = ""
    """What else the user is told, with `{{ stop_signal }}`, `{{ conversation_plan }}` and the like in their places."""
    show_tools: bool = False
    """Whether the user sees which tools the agent used."""


def persona_text(persona: Json) -> str:
    """Who the user is, in words."""
    if persona is None:
        return ""
    if isinstance(persona, str):
        return PERSONAS.get(persona.upper(), persona)
    if not isinstance(persona, Mapping):
        return to_text(persona)
    lines = [str(persona.get("description") or persona.get("id") or "")]
    for behavior in persona.get("behaviors") or ():
        lines += _behavior_lines(behavior) if isinstance(behavior, Mapping) else [f"- {to_text(behavior)}"]
    return "\n".join(line for line in lines if line)


def _behavior_lines(behavior: Mapping[str, Any]) -> list[str]:
    told = behavior.get("behavior_instructions", behavior.get("behaviorInstructions")) or ()
    head = ": ".join(str(behavior[name]) for name in ("name", "description") if behavior.get(name))
    return [f"- {head}", *(f"  - {to_text(line)}" for line in told)]


def scenario_metadata(scenario: Scenario) -> dict[str, Json]:
    """A scenario as evaluators of simulated users look for it, under `conversation_scenario`."""
    told = {"starting_prompt": scenario.start, "conversation_plan": scenario.plan}
    persona = persona_text(scenario.persona)
    return {**told, "user_persona": persona} if persona else told
