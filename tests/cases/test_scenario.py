"""Scenarios: personas in words, and what CSV cannot say."""

from __future__ import annotations

from proctor.cases.formats import table
from proctor.cases.scenario import PERSONAS, Scenario, persona_text
from proctor.cases.suite import Case, EvaluatorSpec, Suite, ToolMock, Turn

SCENARIO = Scenario("Hi.", "Ask for a refund.")
CASE = Case(
    id="refund",
    turns=(Turn("Hi."),),
    evaluators=(EvaluatorSpec("Contains"),),
    scenario=SCENARIO,
    mocks={"refund": (ToolMock(result="done"),)},
)


def test_a_format_that_cannot_hold_a_scenario_says_so() -> None:
    losses = table.write([Suite("desk", (CASE,))]).losses
    assert any("scenario" in loss for loss in losses), losses
    assert any("mocks" in loss for loss in losses), losses


def test_a_persona_is_told_in_words_however_it_is_given() -> None:
    behavior = {"name": "Haste", "description": "is in a hurry", "behavior_instructions": ["Answer in one line."]}
    described = {"id": "courier", "description": "A courier.", "behaviors": [behavior, "odd"]}
    assert persona_text("novice") == PERSONAS["NOVICE"]
    assert persona_text("A hurried courier.") == "A hurried courier."
    assert persona_text(described) == "A courier.\n- Haste: is in a hurry\n  - Answer in one line.\n- odd"
    assert persona_text(None) == ""
    assert persona_text(7) == "7"


def test_a_case_as_it_was_planned_has_the_first_message_and_no_other() -> None:
    held = Case(id="refund", turns=(Turn("Hi."), Turn("More.")), scenario=SCENARIO)
    assert held.before_simulation.turns == (Turn("Hi."),)
    assert held.metadata_for_evaluators["conversation_scenario"]["starting_prompt"] == "Hi."
    written = Case(id="refund", turns=(Turn("Hi."), Turn("More.")))
    assert written.before_simulation is written
