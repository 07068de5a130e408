"""The probabilities of each verdict, from the log-probabilities of its tokens."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logit_server import pieces_of

from proctor.judging.logprobs import Token, choice_probabilities, with_partial_credit
from proctor.judging.prompts import schema_of
from proctor.judging.questions import ClaimVerdicts, choose, claims

WORDS = ("supported", "contradicted", "unmentioned")
CLAIMS = schema_of(claims(["one", "two"], ["text"]))


def reply(*verdicts: str, reason: str = "so") -> str:
    data = [{"number": n, "reason": reason, "verdict": verdict} for n, verdict in enumerate(verdicts, 1)]
    return json.dumps({"verdicts": data}, ensure_ascii=False)


def tokens_of(pieces: list[str], alternatives: dict[int, dict[str, float]] | None = None) -> list[Token]:
    found, start = [], 0
    for number, piece in enumerate(pieces):
        found.append(Token(piece, start, (alternatives or {}).get(number, {}) | {piece: 1.0}))
        start += len(piece)
    return found


def at_verdict(text: str, chances: dict[str, float], written: str) -> list[Token]:
    """The reply with one token for the verdict, whose alternatives are given."""
    before, _, after = text.rpartition(written)
    tokens = tokens_of([before, written, after])
    return [tokens[0], Token(written, tokens[1].start, chances), tokens[2]]


def test_the_probabilities_are_those_of_the_token_that_decides() -> None:
    chances = {"supported": 0.6, "contr": 0.3, "un": 0.05, "Supported": 0.05}
    probabilities = choice_probabilities(
        reply("supported"), at_verdict(reply("supported"), chances, "supported"), CLAIMS
    )
    assert probabilities["/verdicts/0/verdict"] == pytest.approx(
        {"supported": 0.6 / 0.95, "contradicted": 0.3 / 0.95, "unmentioned": 0.05 / 0.95}
    )


def test_choices_that_begin_alike_are_told_apart_where_they_part() -> None:
    schema = schema_of(choose("which", "choose", {"north": "", "northern": "", "south": ""}, {}))
    text = '{"reason": "so", "choice": "north"}'
    tokens = [
        Token('{"reason": "so", "choice": "', 0, {'{"reason": "so", "choice": "': 1.0}),
        Token("north", 28, {"north": 0.8, "south": 0.2}),
        Token('"}', 33, {'"}': 0.75, "ern": 0.25}),
    ]
    probabilities = choice_probabilities(text, tokens, schema)["/choice"]
    assert probabilities == pytest.approx({"north": 0.6, "northern": 0.2, "south": 0.2})


def test_every_verdict_has_its_own_probabilities() -> None:
    text = reply("supported", "unmentioned")
    probabilities = choice_probabilities(text, tokens_of([text]), CLAIMS)
    assert [max(each, key=each.__getitem__) for each in probabilities.values()] == ["supported", "unmentioned"]
    assert list(probabilities) == ["/verdicts/0/verdict", "/verdicts/1/verdict"]


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{", '{"verdicts": 3}', "[" * 5000, '{"verdicts": [{"verdict": "other"}]}']
)
def test_a_reply_without_choices_has_no_probabilities(text: str) -> None:
    assert choice_probabilities(text, tokens_of([text]), CLAIMS) == {}


def test_tokens_of_another_text_give_no_probabilities() -> None:
    assert choice_probabilities(reply("supported"), tokens_of(["something else"]), CLAIMS) == {}
    assert choice_probabilities(reply("supported"), [], CLAIMS) == {}


@given(
    verdicts=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
    reason=st.text(max_size=30),
    cuts=st.lists(st.integers(0, 300), max_size=40),
    noise=st.dictionaries(st.integers(0, 40), st.dictionaries(st.text(max_size=6), st.floats(0, 1), max_size=4)),
)
def test_probabilities_are_a_distribution_however_the_reply_is_cut_into_tokens(
    verdicts: list[str], reason: str, cuts: list[int], noise: dict[int, dict[str, float]]
) -> None:
    text = reply(*verdicts, reason=reason)
    probabilities = choice_probabilities(text, tokens_of(pieces_of(text, cuts), noise), CLAIMS)
    assert len(probabilities) == len(verdicts)
    for chances, verdict in zip(probabilities.values(), verdicts, strict=True):
        assert math.isclose(math.fsum(chances.values()), 1.0)
        assert all(0 <= chance <= 1 for chance in chances.values())
        assert verdict in chances


@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_no_text_is_too_ugly(text: str, cuts: list[int]) -> None:
    assert isinstance(choice_probabilities(text, tokens_of(pieces_of(text, cuts)), CLAIMS), dict)


def test_partial_credit_comes_from_probabilities_and_never_from_what_a_model_wrote() -> None:
    written: Any = {"partial_credit": 1.0, "number": 1, "reason": "so", "verdict": "unmentioned"}
    said = ClaimVerdicts.model_validate({"partial_credit": 0.9, "verdicts": [written, {**written, "number": 2}]})
    graded = with_partial_credit(said, {"/verdicts/1/verdict": {"supported": 0.25, "unmentioned": 0.75}})
    assert (graded.partial_credit, graded.verdicts[0].partial_credit, graded.verdicts[1].partial_credit) == (
        None,
        None,
        0.25,
    )


@pytest.mark.parametrize("probabilities", [None, 3, "x", [], {"/choice": None}, {"/other": {"a": 1.0}}])
def test_damaged_probabilities_of_a_kept_answer_give_no_partial_credit(probabilities: Any) -> None:
    question = choose("which", "choose", {"a": "", "b": ""}, {}, choice_scores={"a": 1.0, "b": 0.0})
    said = question.reply.model_validate({"reason": "so", "choice": "a"})
    assert with_partial_credit(said, probabilities).partial_credit is None


def test_a_choice_has_the_score_that_the_evaluator_gives_it() -> None:
    question = choose("which", "choose", {"a": "", "b": ""}, {}, choice_scores={"a": 1.0, "b": 0.5})
    said = question.reply.model_validate({"reason": "so", "choice": "a"})
    assert with_partial_credit(said, {"/choice": {"a": 0.5, "b": 0.5}}).partial_credit == pytest.approx(0.75)
    assert "choice_scores" not in json.dumps(schema_of(question))
