from __future__ import annotations

from pathlib import Path

import pytest
from engine_helpers import case, cases, run, suite
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proctor.base.errors import UsageError
from proctor.cases.suite import Suite
from proctor.results.store.store import Store
from proctor.running.selection import CaseFilter, last_failed, parse_expression, parse_tags

WORDS = st.sampled_from(
    ["and", "or", "not", "(", ")", "a", "b", '"a b"', '"', "refund", "é", "\ud800", "AND", "-", "''"]
)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(WORDS, max_size=30).map(" ".join), st.text(alphabet='()"andortb ')))
@example("(" * 5000)
@example("not " * 5000 + "a")
@example("a or " * 5000 + "a")
@example("a and " * 5000 + "a")
@example("(a or " * 3000 + "a" + ")" * 3000)
@example("\x00")
def test_any_text_is_an_expression_or_a_usage_error(text: str) -> None:
    try:
        predicate = parse_expression(text)
    except UsageError:
        return
    assert predicate("refund a b") in (True, False)


TREES = st.recursive(
    st.sampled_from(["apple", "pear", "fig"]),
    lambda inner: st.one_of(st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["and", "or"]), inner, inner)),
    max_leaves=8,
)
Tree = str | tuple["Tree", ...]


def written(tree: Tree) -> str:
    match tree:
        case str():
            return tree
        case ("not", inner):
            return f"not ({written(inner)})"
        case (sign, left, right):
            return f"({written(left)}) {sign} ({written(right)})"
    raise AssertionError(tree)


def holds(tree: Tree, text: str) -> bool:
    match tree:
        case str():
            return tree in text
        case ("not", inner):
            return not holds(inner, text)
        case ("and", left, right):
            return holds(left, text) and holds(right, text)
        case (_, left, right):
            return holds(left, text) or holds(right, text)
    raise AssertionError(tree)


@given(TREES, st.sets(st.sampled_from(["apple", "pear", "fig"])))
def test_expressions_mean_what_logic_says(tree: Tree, present: set[str]) -> None:
    text = " ".join(sorted(present))

    assert parse_expression(written(tree))(text) is holds(tree, text)


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("refund", {"refund-late", "refund-early"}),
        ("refund and not late", {"refund-early"}),
        ("refund not late", {"refund-early"}),
        ("late or greeting", {"refund-late", "greeting"}),
        ("greeting or refund and late", {"refund-late", "greeting"}),
        ("(greeting or refund) and late", {"refund-late"}),
        ("REFUND", {"refund-late", "refund-early"}),
        ("slow", {"refund-late"}),
        ('"says hello"', {"greeting"}),
        ("shop/greeting", {"greeting"}),
        ('"and"', set()),
    ],
)
def test_words_are_looked_for_in_address_description_and_tags(expression: str, chosen: set[str]) -> None:
    assert selected(CaseFilter(parse_expression(expression))) == chosen


def shop() -> Suite:
    return suite(
        [
            case("refund-late", tags=("slow", "money")),
            case("refund-early", tags=("money",)),
            case("greeting", description="Says hello"),
        ],
        name="shop",
    )


def selected(chosen: CaseFilter) -> set[str]:
    return {item.id for item in shop().cases if chosen(shop(), item)}


def test_a_case_needs_one_of_the_selected_tags() -> None:
    assert selected(CaseFilter(tags=parse_tags(["slow"]))) == {"refund-late"}
    assert selected(CaseFilter(tags=parse_tags(["slow, money", ""]))) == {"refund-late", "refund-early"}
    assert selected(CaseFilter(tags=parse_tags(["sl"]))) == set()


@pytest.mark.parametrize(
    "expression", ["", "   ", "and", "a and", "a or", "not", "(", ")", "(a", "a)", "a or and b", "()"]
)
def test_a_half_written_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="-k"):
        parse_expression(expression)


def test_what_failed_last_time_is_what_did_not_pass_in_the_latest_run(tmp_path: Path) -> None:
    def agent(question: str) -> object:
        return {"case-1": "wrong", "case-2": object()}.get(question, question)

    store = Store(tmp_path)
    assert last_failed(store) == frozenset()
    run(suite(cases(4)), agent=agent, store=tmp_path)
    assert last_failed(store) == {("suite", "case-1"), ("suite", "case-2")}
    run(suite(cases(4)), agent=lambda question: question, store=tmp_path)
    assert last_failed(store) == frozenset()
    store.close()


def test_a_case_with_an_unusual_id_can_fail_last_time(tmp_path: Path) -> None:
    odd = ["\ud800", "a\x00b", "\\ud800", "x" * 5000, "ünï"]
    run(suite([case(name, "no") for name in odd], name="\udc80"), agent=lambda question: question, store=tmp_path)
    store = Store(tmp_path)

    assert last_failed(store) == {("\udc80", name) for name in odd}
    store.close()
