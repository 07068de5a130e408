"""DeepEval's goldens: what is asked, and what is known about it."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, Passages, Shape, Tools, Turn

METADATA = AliasChoices("additional_metadata", "additionalMetadata", "metadata")


class Golden(Shape):
    """A question, and what is known about it."""

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

    def test_case(self, **found: Any) -> LLMTestCase:
        """The test case it becomes with what the application answered."""
        fields = (
            "input actual_output expected_output context retrieval_context comments tools_called expected_tools name "
            "token_cost input_token_count output_token_count custom_column_key_values"
        )
        known = {field: getattr(self, field) for field in fields.split()}
        return LLMTestCase(**{**known, "metadata": self.additional_metadata, **found})


def _turns(given: Any) -> Any:
    """DeepEval's files have turns as data or as text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None


class ConversationalGolden(Shape):
    """A conversation that is to be held."""

    scenario: str
    expected_outcome: str | None = None
    user_description: str | None = None
    context: Passages | None = None
    additional_metadata: dict[str, Any] | None = Field(default=None, validation_alias=METADATA)
    comments: str | None = None
    name: str | None = None
    turns: Annotated[list[Turn] | None, BeforeValidator(_turns)] = None
    persona: dict[str, Any] | None = None
    """Who the user is, as newer versions of DeepEval write it."""
    custom_column_key_values: dict[str, str] | None = None


Entry = Golden | ConversationalGolden | LLMTestCase | ConversationalTestCase
