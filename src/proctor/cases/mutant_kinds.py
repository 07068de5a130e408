"""The kinds of mutants that `proctor mutate` makes of an answer, by name: suites waive them by these names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "answer-emptied": "the answer is empty",
    "answer-truncated": "the answer ends in the middle",
    "answer-refused": "the answer refuses",
    "question-repeated": "the answer repeats the question",
    "other-answer": "the answer is that of another case",
    "extra-turn": "the agent asks back instead of answering",
    "number-changed": "one digit of a number is another",
    "date-changed": "a date is another",
    "unit-changed": "the unit of a number is another",
    "name-changed": "a name is another",
    "negation-changed": "a statement says the opposite",
    "keyword-denied": "the expected keywords stand in a denial only",
    "result-ignored": "what the tools gave is not in the answer",
    "told-to-pass": "a refusal asks to be graded as correct",
    "field-missing": "a field of the answer is missing",
    "call-dropped": "a tool call is not made",
    "call-repeated": "a tool call is made twice",
    "calls-reordered": "two tool calls have changed places",
    "other-tool": "another tool is called instead",
    "call-added": "a tool is called though none is needed",
    "forbidden-tool": "a forbidden tool is called as well",
    "argument-number": "one digit of an argument is another",
    "argument-date": "a date in an argument is another",
    "argument-id": "an id in an argument is another",
    "argument-text": "the text of an argument is another",
    "argument-missing": "an argument is missing",
    "tokens-doubled": "the answer takes twice the tokens",
    "latency-tenfold": "the answer takes ten times as long",
}
