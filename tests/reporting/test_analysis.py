from __future__ import annotations

import io
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reporting_samples import (
    ERROR,
    FAILED,
    HOSTILE,
    PASSED,
    SKIPPED,
    OnePass,
    make_run,
    score,
    single,
    small_run,
    trial,
)

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import to_json
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, ExpectedCall, Turn
from proctor.reporting.analysis import Analysis, analyze, write_markdown
from proctor.reporting.failure_causes import error_class, normalize_reason
from proctor.results.run import Run
from proctor.results.verdict import verdict


def look(*trials: object, **rest: object) -> Analysis:
    run = make_run(list(trials), **rest)  # type: ignore[arg-type]
    return analyze(run, verdict(run))


def markdown(run: Run) -> str:
    out = io.StringIO()
    write_markdown(analyze(run, verdict(run)), out)
    return out.getvalue()


def failing(case: object, reason: str, evaluator: str = "ExactMatch", **rest: object) -> object:
    return trial(case, FAILED, "x", score(FAILED, 0.0, evaluator, reasoning=reason), **rest)  # type: ignore[arg-type]


def test_failures_with_one_cause_are_one_cluster() -> None:
    found = look(
        failing("a", "expected 'Paris', got 'Rome'"),
        failing("b", "expected 'Oslo', got 'Bergen, I think'"),
        failing("b", "expected 'Oslo', got ''", number=2),
        failing("c", "the answer is 12 words too long"),
        trial("d"),
    ).clusters

    assert [(cluster.trials, cluster.cases, cluster.cause) for cluster in found] == [
        (3, 2, "expected …, got …"),
        (1, 1, "the answer is N words too long"),
    ]
    assert [name.case_id for name in found[0].examples] == ["a", "b", "b"]
    assert found[0].sample == "ExactMatch 0.00 < 0.50: expected 'Paris', got 'Rome'"


def test_other_evaluators_or_another_turn_are_another_cluster() -> None:
    talk = Case(id="talk", turns=(Turn("one"), Turn("two")))
    replies = (Reply("x"), Reply("y"))
    found = look(
        failing("a", "wrong"),
        failing("b", "wrong", "Contains"),
        trial(talk, FAILED, None, score(FAILED, 0.0, reasoning="wrong", turn=0), replies=replies),
        trial(talk, FAILED, None, score(FAILED, 0.0, reasoning="wrong", turn=1), replies=replies, number=2),
    ).clusters

    assert [(cluster.evaluators, cluster.turn) for cluster in found] == [
        (("ExactMatch",), None),
        (("Contains",), None),
        (("ExactMatch",), 0),
        (("ExactMatch",), 1),
    ]


@pytest.mark.parametrize(
    ("calls", "cause"),
    [
        ((), "was not called"),
        ((ToolCall("book", {"day": "Sunday"}),), "was called with the wrong day"),
        ((ToolCall("book", {"day": "Friday", "x": 1}),), "was called with an unexpected x"),
        ((ToolCall("book"),), "was called without day"),
        ((ToolCall("book", raw_arguments="{"),), "was called with arguments that are not an object"),
        ((ToolCall("book", {"day": "Friday"}, error="KeyError: 'day'"),), "raised KeyError"),
    ],
)
def test_a_cluster_names_the_tool_and_what_was_wrong_with_it(calls: tuple[ToolCall, ...], cause: str) -> None:
    case = single("t", tools=(ExpectedCall("book", {"day": Equals("Friday")}),))
    wrong = trial(case, FAILED, None, score(FAILED, 0.0, reasoning="no"), replies=(Reply("x", calls),))

    (cluster,) = look(wrong).clusters
    assert (cluster.tool, cluster.cause) == ("book", cause)


ALIKE = {
    "other values at one place": (
        'expected {"id": 1, "a": {"b": 2}}, got {"id": 1, "a": {"b": 3}}; a.b is 3 instead of 2',
        'expected {"a": {"b": "x"}, "c": []}, got {"a": {"b": "y"}, "c": []}; a.b is 7 instead of 8',
    ),
    "other ids": ("order 4f3c2b1a99 is not there", "order 88aa77bb66cc is not there"),
    "other words that were quoted": ('missing "sent"; got "no"', 'missing "paid"; got ""'),
}
APART = {
    "another place": ("a.b is 3 instead of 2", "a.c is 3 instead of 2"),
    "another missing property": (
        'the document: "name" is a required property',
        'the document: "email" is a required property',
    ),
    "another line of the agent": (
        "the agent raised KeyError: 'a' (app.py:3)",
        "the agent raised KeyError: 'a' (app.py:9)",
    ),
    "another exception": ("the agent raised KeyError: 'a'", "the agent raised IndexError: 'a'"),
    "another file": ("no such file /a/b.txt", "no such file /c.txt"),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_failure_with_other_values_is_one_cluster(name: str) -> None:
    assert len(look(*(failing(case, reason) for case, reason in zip("ab", ALIKE[name], strict=True))).clusters) == 1


@pytest.mark.parametrize("name", APART)
def test_failures_that_have_nothing_to_do_with_each_other_are_not_lumped_together(name: str) -> None:
    assert len(look(*(failing(case, reason) for case, reason in zip("ab", APART[name], strict=True))).clusters) == 2


def test_arguments_that_differ_in_another_place_are_another_cluster() -> None:
    def called(name: str, tool: str, given: object) -> object:
        expected = [{"amount": 5, "currency": "EUR"}, {"amount": 5, "currency": "EUR"}]
        case = single(name, tools=(ExpectedCall(tool, {"parts": Equals(expected)}),))
        reply = Reply("x", (ToolCall(tool, {"parts": given}),))
        return trial(case, FAILED, None, score(FAILED, 0.0, reasoning="no"), replies=(reply,))

    right = {"amount": 5, "currency": "EUR"}
    found = look(
        called("a", "pay", [right, {"amount": 55, "currency": "EUR"}]),
        called("b", "pay", [{"amount": 7, "currency": "EUR"}, right]),
        called("c", "pay", [right, {"amount": 5, "currency": "USD"}]),
        called("d", "refund", [right, {"amount": 5, "currency": "USD"}]),
        called("e", "pay", [right, {"amount": 5}]),
    ).clusters
    assert [(cluster.tool, cluster.cause, cluster.trials) for cluster in found] == [
        ("pay", "was called with the wrong parts[].amount", 2),
        ("pay", "was called with the wrong parts[].currency", 1),
        ("refund", "was called with the wrong parts[].currency", 1),
        ("pay", "was called without parts[].currency", 1),
    ]


def test_a_tool_that_nobody_wanted_is_named() -> None:
    case = single("t", tools=())
    (cluster,) = look(
        trial(case, FAILED, None, score(FAILED, 0.0), replies=(Reply("x", (ToolCall("search"),)),))
    ).clusters
    assert (cluster.tool, cluster.cause) == ("search", "was called but no tool was expected")


def test_an_agent_that_breaks_is_known_by_its_error() -> None:
    found = look(
        trial("a", FAILED, None, reason="the agent raised KeyError: 'name'"),
        trial("b", FAILED, None, reason="the agent raised KeyError: 'city'"),
        trial("c", ERROR, None, score(ERROR, None, "Judge", reasoning="JudgeFailed: timed out after 30 s")),
    ).clusters

    assert [(cluster.outcome, cluster.cause, cluster.trials) for cluster in found] == [
        (FAILED, "KeyError: …", 2),
        (ERROR, "JudgeFailed: timed out after N s", 1),
    ]


def test_what_passed_or_was_skipped_is_in_no_cluster() -> None:
    assert look(trial("a"), trial("b", SKIPPED, None, reason="not today")).clusters == ()


@given(st.text(max_size=400))
def test_any_reason_can_be_normalised_and_stays_short(reason: str) -> None:
    short = normalize_reason(reason)
    assert len(short) <= 160
    assert "\n" not in short
    error_class(reason)


@given(st.integers(0, 10**9), st.floats(0, 1e6, allow_nan=False), st.text("ab c$", max_size=20))
def test_numbers_and_quoted_texts_make_no_difference(whole: int, number: float, words: str) -> None:
    assert normalize_reason(f"at {whole:,}: got {number:.3f} of {words!r}") == "at N: got N of …"


def test_apostrophes_are_not_quotes() -> None:
    assert normalize_reason("the agent's answer isn't the user's") == "the agent's answer isn't the user's"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_spread_of_scores_is_shown(values: list[float]) -> None:
    trials = [trial(f"c{n}", PASSED, "x", score(PASSED, value)) for n, value in enumerate(values)]
    (item,) = look(*trials).evaluators

    assert item.minimum == min(values)
    assert item.maximum == max(values)
    assert item.deviation == pytest.approx(statistics.stdev(values), abs=1e-9)
    assert item.mean is not None
    assert item.mean.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert item.mean.low <= item.mean.mean <= item.mean.high


def test_errors_and_scores_that_are_no_numbers_are_not_zeros() -> None:
    (item,) = look(
        trial("a", PASSED, "x", score(PASSED, 0.8)),
        trial("b", ERROR, "x", score(ERROR, None)),
        trial("c", PASSED, "x", score(PASSED, float("nan"))),
    ).evaluators

    assert item.minimum == item.maximum == 0.8
    assert item.deviation is None
    assert item.counts[ERROR] == 1
    assert item.pass_rate is not None
    assert item.pass_rate.mean == 1.0


def test_cases_that_vary_are_found_with_the_evaluators_that_changed() -> None:
    flaky = [
        trial("f", PASSED, "x", score(PASSED, 1.0), score(PASSED, 1.0, "Steady")),
        trial("f", FAILED, "x", score(FAILED, 0.0), score(PASSED, 1.0, "Steady"), number=2),
    ]
    found = look(*flaky, trial("s"), trial("s", number=2), trial("once", FAILED))

    assert [(case.case_id, case.passed, case.failed, case.evaluators) for case in found.flaky] == [
        ("f", 1, 1, ("ExactMatch",))
    ]
    assert found.repeated == 2


def test_an_error_does_not_make_a_case_vary() -> None:
    assert look(trial("a"), trial("a", ERROR, None, reason="429", number=2)).flaky == ()


def test_the_slowest_and_dearest_cases_come_first() -> None:
    def priced(case: str, milliseconds: float, cost: float | None) -> object:
        return trial(case, duration_ms=milliseconds, answer=None, replies=(Reply("x", usage=Usage(10, 5, cost)),))

    found = look(priced("a", 10, 0.5), priced("b", 900, 0.1), priced("c", 100, None))

    assert [cost.case_id for cost in found.slowest] == ["b", "c", "a"]
    assert [cost.case_id for cost in found.most_expensive] == ["a", "b"]
    assert found.totals.usage == Usage(30, 15, None), "one of the costs is not known"
    assert found.totals.median_ms == 100
    assert found.totals.p95_ms == 900


def test_without_prices_tokens_say_what_is_dear() -> None:
    trials = [trial(name, answer=None, replies=(Reply("x", usage=Usage(n, 1)),)) for name, n in (("a", 5), ("b", 50))]
    assert [cost.case_id for cost in look(*trials).most_expensive] == ["b", "a"]


def test_the_same_run_gives_the_same_analysis() -> None:
    assert markdown(small_run()) == markdown(small_run())
    assert to_json(analyze(small_run(), verdict(small_run()))) == to_json(analyze(small_run(), verdict(small_run())))


def test_an_empty_run_can_be_analysed() -> None:
    text = markdown(make_run([], finished_at=None))
    assert "No failures and no errors." in text
    assert "No scores." in text


def test_the_markdown_tells_everything_in_tables_that_line_up() -> None:
    text = markdown(small_run())
    assert "### 1. " in text
    assert "| greeting |" in " ".join(text.split())
    for table in text.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({len(line) for line in lines}) <= 1


def test_hostile_text_stays_text() -> None:
    bad = failing(f"id {HOSTILE}", HOSTILE, f"E {HOSTILE}")
    text = markdown(make_run([bad, replace(bad, number=2, outcome=PASSED)], id=HOSTILE))  # type: ignore[type-var]
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)

    assert "<script" not in rendered
    assert "<img" not in rendered
    assert "<a " not in rendered
    text.encode("utf-8")


def test_trials_are_read_once_and_one_at_a_time() -> None:
    trials = [trial(f"c{n}", FAILED, None, reason=f"broke at {n}") for n in range(500)]
    stream = OnePass(500, trials.__getitem__)
    found = look(*trials, stream=stream)

    assert stream.made == 500
    assert [cluster.trials for cluster in found.clusters] == [500]
    assert len(found.clusters[0].examples) == 5
