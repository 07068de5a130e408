"""DeepEval's goldens: inputs, expectations, and metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from proctor.compat.deepeval.test_case import ConversationalTestCase, DeepEvalModel, LLMTestCase, Passages, Tools, Turn

METADATA = AliasChoices("additional_metadata", "additionalMetadata", "metadata")


class Golden(DeepEvalModel):
    """An input and what is known about it."""

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    context: Passages | None = None
    retrieval_context: Passages | None = None
    additional_metadata: dict[str, Any] | None = Field(default=None, validation_alias=METADATA)
    comments: str | None = None
    tools_called: Tools | None = None
    expected_tools: Tools | None = None
    token_cost: float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    source_file: str | None = None
    name: str | None = None
    custom_column_key_values: dict[str, str] | None = None

    def test_case(self, **changes: Any) -> LLMTestCase:
        """The test case for this golden, with `changes` such as the actual output."""
        fields = (
            "input actual_output expected_output context retrieval_context comments tools_called expected_tools name "
            "token_cost input_token_count output_token_count custom_column_key_values"
        )
        values = {field: getattr(self, field) for field in fields.split()}
        return LLMTestCase(**{**values, "metadata": self.additional_metadata, **changes})


def _parse_turns(value: Any) -> Any:
    """Turns as data; DeepEval's files have them as data or as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not valid JSON: {error}") from None


class InterruptionBehavior(DeepEvalModel):
    """How a simulated caller interrupts; data only, because Proctor does not simulate speech."""

    frequency: str = "normal"
    overlap: str = "adaptive"

    @field_validator("frequency")
    @classmethod
    def _check_frequency(cls, value: str) -> str:
        if value not in ("rare", "normal", "frequent"):
            raise ValueError(f"the interruption frequency must be rare, normal or frequent, not {value!r}")
        return value

    @field_validator("overlap")
    @classmethod
    def _check_overlap(cls, value: str) -> str:
        if value not in ("yield", "adaptive", "insist"):
            raise ValueError(f"the overlap behavior must be yield, adaptive or insist, not {value!r}")
        return value


class BackgroundNoiseSettings(DeepEvalModel):
    """The noise behind a simulated caller; data only."""

    audio: str
    volume: float = Field(default=0.3, ge=0, le=1)


class Persona(BaseModel):
    """Who the user is. `characteristics` is the user's description; the rest is data, also what DeepEval may add."""

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    characteristics: str = ""
    voice: str | None = None
    hold_timeout: float | None = Field(default=None, gt=0)
    interruption_behavior: InterruptionBehavior | None = None
    background_noise: BackgroundNoiseSettings | None = None


class ConversationalGolden(DeepEvalModel):
    """The scenario of a conversation."""

    scenario: str
    expected_outcome: str | None = None
    user_description: str | None = None
    context: Passages | None = None
    additional_metadata: dict[str, Any] | None = Field(default=None, validation_alias=METADATA)
    comments: str | None = None
    name: str | None = None
    turns: Annotated[list[Turn] | None, BeforeValidator(_parse_turns)] = None
    persona: Persona | None = None
    """The user's persona, as newer versions of DeepEval write it; its characteristics are the user's description."""
    custom_column_key_values: dict[str, str] | None = None

    @model_validator(mode="before")
    @classmethod
    def _describe_user(cls, data: Any) -> Any:
        """Take the user's description from the persona, which must not say something else."""
        persona = data.get("persona") if isinstance(data, Mapping) else None
        if persona is None:
            return data
        known = persona.get("characteristics") if isinstance(persona, Mapping) else persona.characteristics
        described = next((data[key] for key in ("user_description", "userDescription") if data.get(key)), known)
        if known and described != known:
            raise ValueError("persona and user_description have conflicting text; set one of them")
        return {**data, "user_description": described} if "userDescription" not in data else data


def convert_convo_goldens_to_convo_test_cases(goldens: Iterable[ConversationalGolden]) -> list[ConversationalTestCase]:
    """The conversations of goldens that have turns, as test cases."""
    fields = "turns scenario context name user_description expected_outcome comments".split()
    cases = (
        {name: getattr(golden, name) for name in fields} | {"metadata": golden.additional_metadata}
        for golden in goldens
    )
    return [ConversationalTestCase(**case) for case in cases]


def convert_convo_test_cases_to_convo_goldens(cases: Iterable[ConversationalTestCase]) -> list[ConversationalGolden]:
    """Test cases as goldens: what is expected, and the turns."""
    fields = "turns scenario context name user_description expected_outcome comments".split()
    goldens = []
    for case in cases:
        persona = None if case.user_description is None else Persona(characteristics=case.user_description)
        values = {name: getattr(case, name) for name in fields} | {"scenario": case.scenario or ""}
        goldens.append(ConversationalGolden(**values, persona=persona, additional_metadata=case.metadata))
    return goldens


Entry = Golden | ConversationalGolden | LLMTestCase | ConversationalTestCase
