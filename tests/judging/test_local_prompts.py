"""How models on this machine are asked: in few words, for the verdict first, and yet safe from the material."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_server import judge_server
from logit_server import with_logits
from test_prompt_fences import ATTACKS, inside, mark_of, outside

from proctor.base.errors import UsageError
from proctor.evaluators.judge_questions import mark_question
from proctor.judging.judge import Prompt, Question
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.judge_replies import read_reply
from proctor.judging.logprobs import with_partial_credit
from proctor.judging.prompts import (
    prompt_of,
    schema_of,
    short_prompt_of,
    short_prompt_with_reason_first,
    short_schema_of,
    verdict_first,
    with_short_reasons,
)
from proctor.judging.questions import choose, claims, statements

Wording = Callable[[Question[Any]], Prompt]

every_wording = pytest.mark.parametrize("wording", [prompt_of, short_prompt_of, short_prompt_with_reason_first])


def right(answer: str) -> Question[Any]:
    choices = {"Y": "it is right", "N": "it is not"}
    return choose("right", "Say whether it is right.", choices, {"answer": answer}, choice_scores={"Y": 1.0, "N": 0.0})


@every_wording
def test_whatever_all_answers_share_comes_first_so_that_it_is_read_once(wording: Wording) -> None:
    one, other = wording(right("Paris")), wording(right("Lyon"))
    instructions_end = one.system.index("Say whether it is right.") + len("Say whether it is right.")
    assert one.system[:instructions_end] == other.system[:instructions_end]
    assert one.user != other.user


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_stands_inside_a_brief_prompts_fence_and_nowhere_else(attack: str) -> None:
    prompt = short_prompt_of(right(attack))
    assert inside(prompt) == [attack]
    assert attack not in outside(prompt)
    assert mark_of(prompt) not in attack


@given(answer=st.text(st.characters(exclude_categories=["Cs"])), statement=st.from_regex(r"\A</answer-[0-9a-f]{4}>\Z"))
def test_no_text_leaves_the_fence_of_a_brief_prompt(answer: str, statement: str) -> None:
    prompt = short_prompt_of(claims([statement, answer], [answer]))
    assert inside(prompt) == [answer, statement, answer]


def test_a_text_that_contains_every_short_mark_gets_a_longer_one() -> None:
    every = " ".join("".join(digits) for digits in itertools.product("0123456789abcdef", repeat=4))
    prompt = short_prompt_of(right(every))
    assert len(mark_of(prompt)) > 4
    assert mark_of(prompt) not in every


@pytest.mark.parametrize(
    "question", [right("Paris"), claims(["one", "two"], ["text"]), statements("Why?", "Because.")], ids=lambda q: q.kind
)
def test_a_small_model_is_told_the_shape_of_its_reply_and_spared_the_schema(question: Question[Any]) -> None:
    brief, full = short_prompt_of(question), prompt_of(question)
    assert len(brief.system + brief.user) < 0.7 * len(full.system + full.user)
    assert "$defs" not in brief.user
    for word in re.findall(r'"enum": \[([^\]]+)\]', json.dumps(schema_of(question))):
        assert word.replace(", ", " or ") in brief.user


def test_the_verdict_comes_before_the_reason_however_deep() -> None:
    schema: Any = with_short_reasons(verdict_first(schema_of(claims(["one"], ["text"]))), 80)
    properties = schema["$defs"]["ClaimVerdict"]["properties"]
    assert list(properties) == ["number", "verdict", "reason"]
    assert properties["reason"]["maxLength"] == 80
    assert "maxLength" not in json.dumps(schema_of(claims(["one"], ["text"])))
    shown = short_prompt_of(claims(["one"], ["text"])).user
    assert shown.index('"verdict"') < shown.index('"reason"')


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["properties", "reason", "type", "items", "verdict"]), inner, max_size=4)
        ),
    )
)
def test_no_schema_loses_anything_but_its_order(schema: Any) -> None:
    assert verdict_first(schema) == schema


AFTER, BEFORE = ["choice", "reason"], ["reason", "choice"]


@pytest.mark.parametrize(
    ("given", "order", "longest"),
    [
        ({}, AFTER, 200),
        ({"reasons": "after"}, AFTER, 200),
        ({"reasons": "none"}, AFTER, 0),
        ({"reasons": "before"}, BEFORE, 200),
    ],
)
def test_a_verdict_is_explained_where_the_options_say_so(given: Any, order: list[str], longest: int) -> None:
    parts = {"choice": '"choice": "', "reason": '"reason": "'}
    first = parts[order[0]]
    said: list[Any] = ["{", first, ("Y", {"Y": 0.8, "N": 0.2}), '", ', parts[order[1]], '"}']
    if order == BEFORE:
        said = ["{", first, '", ', parts["choice"], ("Y", {"Y": 0.8, "N": 0.2}), '"}']
    with judge_server(with_logits(*said)) as server:
        judge = SharedJudges().panel({"model": f"local:{server.root}", **given}).judges[0]
        reply = asyncio.run(judge.ask(right("Paris")))
        (request,) = server.requests
    held = request.body["response_format"]["json_schema"]["schema"]["properties"]
    assert (list(held), held["reason"]["maxLength"]) == (order, longest)
    assert reply.partial_credit == pytest.approx(0.8)
    shown = request.prompt.rpartition("Reply with JSON")[2]
    assert (shown.index("choice") < shown.index("reason")) is (order == AFTER)


def test_another_place_for_reasons_is_refused() -> None:
    with pytest.raises(UsageError, match="reasons"):
        SharedJudges().panel({"model": "local:http://127.0.0.1:1", "reasons": "during"})
    with pytest.raises(UsageError, match="reasons has no meaning for the judge embedded"):
        SharedJudges().panel({"model": "embedded", "reasons": "none"})


def test_a_list_of_verdicts_ends_after_the_last_item() -> None:
    schema = short_schema_of(claims(["one", "two"], ["text"]))
    verdicts = schema["properties"]["verdicts"]
    assert (verdicts["minItems"], verdicts["maxItems"]) == (2, 2)
    listed = short_schema_of(statements("How long?", "Refunds take 5 days and shipping is free."))["properties"]
    assert (listed["statements"]["minItems"], listed["statements"]["maxItems"]) == (1, 6)


def test_what_a_text_is_to_say_does_not_stand_where_it_is_to_be_written() -> None:
    told = short_prompt_of(statements("Why?", "Because.")).user
    assert '"text": "..."' in told
    assert "\ntext: the statement, understandable on its own" in told


def test_marks_are_words_so_that_their_probabilities_are_known() -> None:
    question = mark_question("geval", "Mark it.", {"answer": "Hello."}, 0, 10)
    assert short_schema_of(question)["properties"]["mark"] == {"enum": [str(number) for number in range(11)]}
    reply = with_partial_credit(read_reply('{"mark": "7", "reason": ""}', question), {"/mark": {"7": 0.5, "9": 0.5}})
    assert reply.mark == 7
    assert reply.share(0, 10) == pytest.approx(0.8)
