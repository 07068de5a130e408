"""ADK's `per_turn_user_simulator_quality_v1`: whether a simulated user kept to the scenario it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from proctor.base.json_data import Json
from proctor.cases.suite import SIMULATED
from proctor.evaluators.adk.judge_samples import AdkJudged, Tally
from proctor.evaluators.agent.transcript import dialogue_of
from proctor.evaluators.evaluation import Evaluable, Evaluation, Exchange, NothingToCompare
from proctor.evaluators.judged_evaluator import as_text
from proctor.judging.judge import Judge, Texts

KEY = "conversation_scenario"
"""Where the metadata of a case keeps the scenario."""

INSTRUCTIONS = (
    "A program played the user in a conversation with an agent, following a plan. Assess the user's part, never the "
    "agent's. For each item below say 'yes' or 'no'.\n"
    "A message of the user is in order ('yes') if all of this holds: it follows the plan and brings up nothing the "
    "plan does not have; it serves the user's aim; it responds to what the agent just said, and gives what the agent "
    "asked for if the plan has it; it puts right what the agent got wrong about the user's wishes; it does not go on "
    "for long about an error that the agent cannot mend; it sounds like a person, and like the persona if there is "
    "one.\n"
    "The end is in order ('yes') if the user ended the conversation, by the mark {stop_signal}, when the plan was "
    "done or could not go on, neither sooner nor later. The agent is not shown what is said with the mark. If the "
    "conversation ends without the mark, the end is in order if the plan was then done."
)


@dataclass(frozen=True, kw_only=True)
class UserSimulatorQuality(AdkJudged):
    """The share of the simulated user's messages that keep to the scenario; the first must be its starting prompt."""

    stop_signal: str = "</finished>"
    scope: ClassVar[Literal["turn", "case"]] = "case"

    def __post_init__(self) -> None:
        AdkJudged.__post_init__(self)
        if not isinstance(self.stop_signal, str) or not self.stop_signal:
            raise ValueError("stop_signal must be the text by which the user ends the conversation")

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.general_questions import verdicts_in_order, yes_no_questions

        scenario = scenario_of(evaluable)
        said = [as_text(exchange.turn.input) for exchange in evaluable.turns]
        start = str(scenario["starting_prompt"]).strip()
        first = (said[0].strip() == start, "" if said[0].strip() == start else "it is not the starting prompt")
        items = [f"the user's message of turn {number}" for number in range(2, len(said) + 1)] + ["the end"]
        listed = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        instructions = f"{INSTRUCTIONS.format(stop_signal=self.stop_signal)}\n\n{listed}"
        question = yes_no_questions("simulated-user", instructions, self._material(scenario, evaluable), len(items))
        *later, end = await self.vote(judge, question, verdicts_in_order)
        return scenario_score(first, later, end)

    def _material(self, scenario: Mapping[str, Json], evaluable: Evaluable) -> dict[str, Texts]:
        persona: Any = scenario.get("user_persona")
        return {
            "plan": as_text(scenario["conversation_plan"]),
            **({"persona": as_text(persona)} if persona else {}),
            "line": [*dialogue_of(evaluable.turns), *self._end(evaluable.turns)],
        }

    def _end(self, turns: Sequence[Exchange]) -> list[str]:
        """How the conversation ended, where that is known: the stop signal itself is never sent to the agent."""
        account = turns[0].turn.extra.get(SIMULATED)
        if not isinstance(account, Mapping) or "ended" not in account:
            return []
        if "closing" not in account:
            return [f"(the conversation ended here: {account['ended']})"]
        said = f"{account['closing']} {self.stop_signal}".strip()
        return [f"user, after turn {len(turns)}: {said}"]


def scenario_of(evaluable: Evaluable) -> Mapping[str, Json]:
    """The scenario of the case, in ADK's spelling or with capitals; without one there is nothing to keep to."""
    metadata = evaluable.eval_metadata or {}
    given = metadata.get(KEY, metadata.get("conversationScenario"))
    if not isinstance(given, Mapping) or not evaluable.turns:
        raise NothingToCompare(f"needs a conversation with `{KEY}` in the metadata of the case, and there is none")
    names = {
        "startingPrompt": "starting_prompt",
        "conversationPlan": "conversation_plan",
        "userPersona": "user_persona",
    }
    scenario = {names.get(str(name), str(name)): value for name, value in given.items()}
    missing = [name for name in ("starting_prompt", "conversation_plan") if not scenario.get(name)]
    if missing:
        raise NothingToCompare(f"needs `{missing[0]}` in `{KEY}`, and it has none")
    return scenario


def scenario_score(first: tuple[bool, str], later: Sequence[Tally], end: Tally) -> Evaluation:
    """The share of turns that are in order; a wrong end counts against the last of them."""
    turns = [first, *((tally.carried, tally.reason) for tally in later)]
    if not end.carried:
        turns[-1] = (False, f"the end: {end.reason}")
    found = [{"turn": number, "kept": good, "reason": reason} for number, (good, reason) in enumerate(turns, 1)]
    wrong = [f"turn {entry['turn']} ({entry['reason']})" for entry in found if not entry["kept"]]
    said = f"not in order: {'; '.join(wrong)}" if wrong else "every turn keeps to the scenario"
    return Evaluation((len(found) - len(wrong)) / len(found), said, {"turns": found})
