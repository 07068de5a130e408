from __future__ import annotations

import pytest
from reporting_samples import ERROR, FAILED, PASSED, score, single, small_run, trial

from proctor.agents.reply import Reply, ToolCall
from proctor.cases.matchers import Approx, Equals, Regex
from proctor.cases.suite import Case, ExpectedCall, NamedData, Turn
from proctor.reporting.call_pairs import pair_calls
from proctor.reporting.explain import (
    FULL,
    answer_text,
    as_text,
    call_text,
    expected_call_text,
    explain,
    input_text,
    missing_and_extra_tools,
)
from proctor.reporting.wording import duration, money, score_texts
from proctor.results.reasons import headline_reason


def labels(trial: object, *rest: object) -> list[str]:
    return [fact.label for fact in explain(trial, *rest)]


def test_only_the_turn_that_failed_is_shown_unless_everything_is_requested() -> None:
    conversation = small_run().trials[7]

    assert labels(conversation).count("turn") == 1
    assert labels(conversation, FULL).count("turn") == 3


def test_the_turn_at_which_the_agent_broke_is_shown() -> None:
    turns = (Turn("one"), Turn("two"), Turn("three"))
    broken = trial(Case(id="c", turns=turns), FAILED, "first answer", reason="the agent raised KeyError: 'x'")

    text = as_text(explain(broken))

    assert "turn    2 of 3" in text
    assert "input   two" in text
    assert "KeyError" in text


def test_an_empty_answer_is_said_to_be_one() -> None:
    assert "output      (empty)" in as_text(explain(trial("a", FAILED, "")))


def test_no_tool_call_where_none_was_allowed_or_made_is_shown() -> None:
    text = as_text(explain(trial(single("a", tools=(ExpectedCall("search"),)), FAILED, "x")))

    assert "search   | (not called)" in text
    assert "no calls, as expected" in as_text(explain(trial(single("a", tools=()), FAILED, "x")))


def test_expected_and_actual_calls_stand_side_by_side_and_what_differs_is_pointed_at() -> None:
    expected = (ExpectedCall("lookup", {"order": 7}), ExpectedCall("refund", {"order": 7, "amount": 12}))
    made = (ToolCall("lookup", {"order": 7}), ToolCall("refund", {"order": 7, "amount": 10}), ToolCall("search"))
    text = as_text(explain(trial(single("a", tools=expected), FAILED, "x", replies=(Reply("x", made),))))

    assert "lookup(order=7)            | lookup(order=7)" in text
    assert "refund(order=7, amount=12) | refund(order=7, amount=10)  <- amount" in text
    assert "(not expected)             | search()" in text


def test_named_inputs_and_outputs_are_what_is_shown() -> None:
    case = Case(id="c", turns=(Turn(None),), inputs=(NamedData("question", "why?"),))

    assert input_text(case, case.turns[0]) == '{"question": "why?"}'
    assert answer_text(Reply("ignored", outputs=(NamedData("verdict", [1, 2]),))) == "[1, 2]"
    assert answer_text(Reply(structured={"a": 1})) == '{"a": 1}'


def test_calls_read_like_code() -> None:
    assert call_text(ToolCall("f", {"a": 1, "b": "x"}, [1]), 50) == 'f(a=1, b="x") -> [1]'
    assert call_text(ToolCall("f", raw_arguments="{oops"), 50) == "f({oops)"
    assert call_text(ToolCall("f", error="E"), 50) == "f() raised E"
    assert call_text(ToolCall("f", {"a": "x" * 99}), 10) == 'f(a="xxxxxxxxx... (101 characters in all))'


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (ExpectedCall("f"), "f"),
        (ExpectedCall("f", {}), "f()"),
        (ExpectedCall("f", {"a": Equals(1), "b": Regex("x+")}, extra_args=True), "f(a=1, b=/x+/, ...)"),
        (ExpectedCall("f", {"a": Approx(1.5)}), "f(a=1.5 ± 1e-06)"),
        (ExpectedCall("f", count=3, substring=True, result="ok"), '*f* x3 -> "ok"'),
    ],
)
def test_expected_calls_read_like_code(call: ExpectedCall, text: str) -> None:
    assert expected_call_text(call, 50) == text


def test_missing_and_extra_tools_are_found_by_name() -> None:
    expected = (ExpectedCall("search", substring=True, count=2), ExpectedCall("search_web"), ExpectedCall("book"))
    calls = [ToolCall("search_web"), ToolCall("db-search"), ToolCall("pay"), ToolCall("pay")]

    assert missing_and_extra_tools(expected, calls) == (["book", "search"], ["pay"])
    assert missing_and_extra_tools((ExpectedCall("a", count=10**12),), []) == ([f"a x{10**12}"], [])


def test_the_reason_in_one_line_names_the_deciding_score() -> None:
    scores = (
        score(FAILED, 0.1, "Tone", report_only=True),
        score(ERROR, None, "Judge"),
        score(FAILED, 0.2, reasoning="a\nb"),
    )

    assert headline_reason(trial("a", FAILED, "x", *scores)) == "ExactMatch 0.20 < 0.50: a b"


def test_scores_of_several_turns_become_one_text() -> None:
    passing = [score(PASSED, value, turn=turn) for turn, value in enumerate((0.8, 1.0))]

    assert score_texts(passing) == [("ExactMatch 0.80..1.00 over 2 turns", PASSED)]
    assert score_texts([*passing, score(FAILED, 0.0, turn=2)]) == [("ExactMatch 0.00 < 0.50 at turn 3", FAILED)]


def test_durations_and_money_are_said_briefly() -> None:
    assert [duration(ms) for ms in (0, 12.3, 59_994, 59_996, 3_600_000)] == [
        "0.00s",
        "0.01s",
        "59.99s",
        "1m 00s",
        "1h 00m",
    ]
    assert [money(usd) for usd in (0, 0.00001, 0.0123, 1234.5)] == ["$0.00", "<$0.0001", "$0.0123", "$1,234.50"]


def test_a_pattern_of_a_file_is_never_run_for_display() -> None:
    expected = (ExpectedCall("search", {"query": Regex("(a+)+$")}),)
    hostile = ToolCall("search", {"query": "a" * 60 + "!"})
    assert [pair.fit for pair in pair_calls(expected, [hostile])] == [None]
    found = {"pairs": [], "missing": [], "different": [{"expected": 0, "actual": 0, "reasons": ["query is another"]}]}
    [pair] = pair_calls(expected, [hostile], found)
    assert (pair.fit, pair.wrong) == ("differs", {"query": "is another"})
    broken = {"pairs": [[7, 0]], "missing": [], "different": []}
    assert [pair.fit for pair in pair_calls(expected, [hostile], broken)] == [None]
