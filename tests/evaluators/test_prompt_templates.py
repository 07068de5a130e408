"""Places in prompts: what the templates of each tool may name, and that a text never becomes part of a prompt."""

from __future__ import annotations

import pytest

from proctor.evaluators.marks import PLACEHOLDERS
from proctor.evaluators.prompt_evaluators import TEMPLATE_NAMES
from proctor.evaluators.templates import names_in, point_to_material


@pytest.mark.parametrize(
    ("template", "known", "names", "filled"),
    [
        (
            "{{output}} like {{ expected }}, {{{output}}}",
            None,
            ["output", "expected"],
            "<output> like <expected>, <output>",
        ),
        ("Is {{any_key-1}} or {output}?", None, ["any_key-1"], "Is <any_key-1> or {output}?"),
        (
            '{eval_output}; {"text": "no"}, {other}',
            TEMPLATE_NAMES,
            ["eval_output"],
            '<eval_output>; {"text": "no"}, {other}',
        ),
        ("{{ eval_input }} {eval_input}", TEMPLATE_NAMES, ["eval_input"], "<eval_input> <eval_input>"),
        ("{query} against {{ground_truth}}", PLACEHOLDERS, ["query", "ground_truth"], "<query> against <ground_truth>"),
        ("no places", PLACEHOLDERS, [], "no places"),
    ],
)
def test_names_are_found_and_replaced(template: str, known: list[str] | None, names: list[str], filled: str) -> None:
    assert names_in(template, known) == names
    assert point_to_material(template, lambda name: f"<{name}>", known) == filled


def test_what_is_put_in_is_not_searched_again() -> None:
    assert point_to_material("{{a}}", lambda name: "{{b}}") == "{{b}}"
