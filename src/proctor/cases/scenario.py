"""A conversation with a simulated user: the first message, what the user wants, and who the user is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from proctor.base.json_data import Json, to_text

DEFAULT_STOP = "</finished>"
"""What the user says to end the conversation, unless the scenario sets another mark."""
DEFAULT_MAX_TURNS = 20
SIMULATION_KEY = "x-simulated"
"""The key in the first turn of a simulated conversation with the model, its calls, and how the conversation ended."""
MAX_TURNS = 1000
"""The most turns that a scenario may ask for."""

PERSONAS: Final[Mapping[str, str]] = {
    "EXPERT": (
        "Knows the subject and the tools. States the request precisely and at once, with every detail that matters, "
        "in the terms of the trade. Answers questions in full, notices mistakes and says so, wastes no words, and has "
        "little patience with detours."
    ),
    "NOVICE": (
        "New to the subject. States the request in everyday words and a little at a time, leaves out details until "
        "asked for them, asks what unknown words mean, follows the agent's lead, and does not notice its mistakes "
        "unless they go against the request itself."
    ),
    "EVALUATOR": (
        "Wants to see whether the agent does its task. Keeps to the plan without adding or guessing anything, answers "
        "questions from the plan alone, in plain and neutral sentences, makes no small talk, and ends the "
        "conversation as soon as the plan is done or cannot go on."
    ),
}
"""Descriptions of users that a scenario can name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a simulated user needs to know; the turns are generated when the case runs."""

    start: str
    """The first message, word for word."""
    plan: str
    """What the user wants, and in which order."""
    persona: Json = None
    """Who the user is: a name in `PERSONAS`, a text, or an object that describes a person."""
    max_turns: int = DEFAULT_MAX_TURNS
    """Messages of the user, the first included."""
    stop: str = DEFAULT_STOP
    """The text with which the user ends the conversation."""
    model: Json = None
    """The model that plays the user: `provider:model` or an object with options; `None` for the judge of the run."""
    instructions: str = ""
    """The prompt of the user, with placeholders such as `{{ stop_signal }}`; empty for the default prompt."""
    show_tools: bool = False
    """Whether the user sees which tools the agent used."""


def persona_text(persona: Json) -> str:
    """A persona as text for the prompt."""
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
    instructions = behavior.get("behavior_instructions", behavior.get("behaviorInstructions")) or ()
    head = ": ".join(str(behavior[name]) for name in ("name", "description") if behavior.get(name))
    return [f"- {head}", *(f"  - {to_text(line)}" for line in instructions)]


def scenario_metadata(scenario: Scenario) -> dict[str, Json]:
    """The scenario as evaluators of simulated users find it in the metadata, under `conversation_scenario`."""
    metadata = {"starting_prompt": scenario.start, "conversation_plan": scenario.plan}
    persona = persona_text(scenario.persona)
    return {**metadata, "user_persona": persona} if persona else metadata
