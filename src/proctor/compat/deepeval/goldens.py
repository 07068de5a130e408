"""DeepEval's goldens: inputs, expectations, and metadata."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

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
    persona: dict[str, Any] | None = None
    """The user's persona, as newer versions of DeepEval write it."""
    custom_column_key_values: dict[str, str] | None = None


Entry = Golden | ConversationalGolden | LLMTestCase | ConversationalTestCase
