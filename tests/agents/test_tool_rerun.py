"""Tools called again with the agent's own arguments: fitted to their types, told call by call, never raising."""

from __future__ import annotations

import asyncio
import datetime
import enum
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Optional

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import proctor
from proctor.agents.reply import ToolCall
from proctor.agents.tool_rerun import MOCKED, ToolRerun, rerun_tools, results_as_context
from proctor.agents.tools import TOOL_ATTRIBUTE, InvalidArguments, bind_arguments, find_tools, registered_tools
from proctor.base.errors import UsageError
from proctor.base.json_data import to_json


class LoanRequest(BaseModel):
    loan_amount: Decimal
    loan_term_months: int


class Kind(enum.Enum):
    FIXED = "fixed"


@dataclass
class Offer:
    name: str
    kind: Kind
    until: datetime.date
    request: LoanRequest


class Opaque:
    """Says nothing about how it is made."""


def again(*calls: ToolCall, tools: Any, seconds: float = 30.0) -> list[ToolRerun]:
    return asyncio.run(rerun_tools(calls, find_tools(tools), seconds=seconds))


def test_a_tool_of_one_model_gets_the_model_made_of_all_arguments() -> None:
    def payment(request: LoanRequest) -> Decimal:
        return request.loan_amount / request.loan_term_months

    [found] = again(ToolCall("payment", {"loan_amount": 1000, "loan_term_months": "10"}), tools=[payment])
    assert found.result == 100


def test_nested_models_dataclasses_enums_dates_and_decimals_are_made_of_plain_data() -> None:
    seen: list[Any] = []

    def compare(offers: Sequence[Offer], best: Kind | None = None, mode: Literal["a", "b"] = "a") -> int:
        seen.extend([*offers, best, mode])
        return len(offers)

    offer = {"name": "A", "kind": "fixed", "until": "2026-01-31", "request": {"loan_amount": 5, "loan_term_months": 6}}
    [found] = again(ToolCall("compare", {"offers": [offer], "best": "fixed", "mode": "b"}), tools={"compare": compare})
    assert found.error is None
    assert seen[0] == Offer("A", Kind.FIXED, datetime.date(2026, 1, 31), LoanRequest(loan_amount=5, loan_term_months=6))
    assert seen[1:] == [Kind.FIXED, "b"]


def test_optional_starred_and_keyword_arguments_find_their_places() -> None:
    async def many(first: int, /, second: Optional[int] = None, *rest: int, flag: bool = False, **more: float) -> Any:  # noqa: UP045
        return [first, second, rest, flag, more]

    arguments = {"first": "1", "second": None, "rest": [3, "4"], "flag": True, "extra": 2}
    [found] = again(ToolCall("many", arguments), tools=[many])
    assert found.result == [1, None, [3, 4], True, {"extra": 2.0}]


def test_arguments_that_do_not_fit_are_told_and_the_tool_is_not_called() -> None:
    called: list[int] = []

    def count(number: int, other: int) -> None:
        called.append(number)

    [found] = again(ToolCall("count", {"number": "many", "unknown": 1}), tools=[count])
    assert not called
    assert found.error is not None
    for part in ("number: input should be a valid integer", "'other' is missing", "unknown parameter 'unknown'"):
        assert part in found.error


@pytest.mark.parametrize("raw", ["{bad", "[1, 2]", "\ud800"])
def test_arguments_that_are_no_object_are_told(raw: str) -> None:
    [found] = again(ToolCall("f", raw_arguments=raw), tools={"f": lambda: 1})
    assert found.error is not None
    assert "not a JSON object" in found.error


def test_annotations_that_cannot_be_understood_leave_the_value_as_it_is() -> None:
    def odd(value: NoSuchType) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return value

    def opaque(value: Opaque) -> Any:
        return value

    found = again(ToolCall("odd", {"value": 1}), ToolCall("opaque", {"value": 2}), tools=[odd, opaque])
    assert found[0].result == 1
    assert "value" in str(found[1].error)  # an object of a class cannot be made of a number


def test_a_tool_with_side_effects_is_never_called_again() -> None:
    sent: list[str] = []

    @proctor.tool(side_effects=True)
    def send_mail(to: str) -> str:
        sent.append(to)
        return "sent"

    for tools in ([send_mail], {"send_mail": send_mail}, True):
        [found] = again(ToolCall("send_mail", {"to": "ann"}, "sent"), tools=tools)
        assert found.skipped == "it has side effects"
        assert found.passage == "sent"
    assert sent == []
    assert send_mail("bob") == "sent"
    assert sent == ["bob"]


def test_a_marked_tool_is_known_by_its_name_and_stays_the_function_it_was() -> None:
    @proctor.tool
    def doubled_amount(amount: int) -> int:
        """Twice as much."""
        return amount * 2

    assert doubled_amount(2) == 4
    assert doubled_amount.__doc__ == "Twice as much."
    [found] = again(ToolCall("doubled_amount", {"amount": 4}, 8), tools=None)
    assert (found.result, found.changed) == (8, False)


def test_a_name_that_means_two_tools_is_neither_unless_the_folder_says_which(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "tools_of_two.py"
        path.write_text(f"import proctor\n@proctor.tool\ndef told_apart(): return {folder!r}\n")
        proctor.base.references.load_file(path)  # type: ignore[attr-defined]
    assert "told_apart" not in registered_tools()
    assert registered_tools(tmp_path / "two")["told_apart"].function() == "two"


def test_a_bound_method_is_called_on_its_own_object() -> None:
    class Desk:
        rate = 3

        @proctor.tool
        def quote(self, amount: int) -> int:
            return amount * self.rate

    desk = Desk()
    desk.rate = 5
    assert getattr(desk.quote, TOOL_ATTRIBUTE).name == "quote"
    [found] = again(ToolCall("quote", {"amount": 2}), tools={"quote": desk.quote})
    assert found.result == 10


def test_tools_are_taken_from_an_agent_that_lists_them() -> None:
    class FunctionTool:
        name = "look_up"

        @staticmethod
        def func(key: str) -> str:
            return key.upper()

    class Agent:
        tools = (FunctionTool(), "not a tool")

    found = find_tools(None, agent=Agent())["look_up"]
    assert found.function("a") == "A"


@pytest.mark.parametrize("given", [3, "nowhere", {"a": 3}, [None], {"a": "tools.py"}])
def test_what_is_no_tool_is_refused(given: Any) -> None:
    with pytest.raises(UsageError):
        find_tools(given)


def test_what_a_tool_gives_now_is_compared_with_what_the_agent_saw_in_whatever_form() -> None:
    def quote() -> LoanRequest:
        return LoanRequest(loan_amount=Decimal("1498.54"), loan_term_months=36)

    plain_result = {"loan_amount": 1498.54, "loan_term_months": 36}
    shapes = [plain_result, '{"loan_term_months": 36, "loan_amount": 1498.54}', str(quote()), None, {"loan_amount": 1}]
    found = again(*(ToolCall("quote", {}, shape) for shape in shapes), tools=[quote])
    assert [item.changed for item in found] == [False, False, False, None, True]
    assert all(item.passage == '{"loan_amount": 1498.54, "loan_term_months": 36}' for item in found)


def test_a_tool_that_failed_for_the_agent_and_fails_again_is_as_it_was() -> None:
    def refuse(score: int) -> None:
        if score < 300:
            raise ValueError("too low")

    found = again(
        ToolCall("refuse", {"score": 20}, error="ValueError: too low"),
        ToolCall("refuse", {"score": 400}, error="ValueError: too low"),
        ToolCall("refuse", {"score": 20}, "fine"),
        tools=[refuse],
    )
    assert [item.changed for item in found] == [False, True, None]
    assert found[0].passage == '{"error": "ValueError: too low"}'
    assert found[2].passage == "fine"


def test_a_tool_that_takes_too_long_or_ends_the_process_is_told_and_the_others_are_called() -> None:
    held = threading.Event()

    def stuck() -> None:
        held.wait(60)

    def leaves() -> None:
        raise SystemExit(3)

    async def cancels() -> None:
        raise asyncio.CancelledError

    def own_timeout() -> None:
        raise TimeoutError("of the database")

    calls = [ToolCall(name) for name in ("stuck", "leaves", "cancels", "own_timeout", "fine")]
    found = again(*calls, tools=[stuck, leaves, cancels, own_timeout, fine], seconds=0.05)
    held.set()
    assert [item.error is None for item in found] == [False, False, False, False, True]
    assert found[0].error == "no result within 0.05 s"
    assert found[3].error == "TimeoutError: of the database"


def fine() -> str:
    return "fine"


def test_what_the_case_answers_for_is_not_called() -> None:
    [found] = asyncio.run(rerun_tools([ToolCall("fine", {}, "mocked")], find_tools([fine]), exclude=["fine"]))
    assert found.skipped == MOCKED


class Frame:
    """As pandas has them: it knows how to become a dict."""

    def to_dict(self) -> dict[str, Any]:
        return {"rate": {0: 0.05}}


def test_results_of_every_kind_are_shown_whole() -> None:
    def everything() -> Any:
        when = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
        offer = Offer("A", Kind.FIXED, datetime.date(2026, 1, 31), LoanRequest(loan_amount=1, loan_term_months=2))
        return {"offer": offer, "when": when, "array": numpy.array([[1.5, 2]]), "frame": Frame(), "set": {1}}

    [passage] = results_as_context(again(ToolCall("everything"), tools=[everything]))
    for part in ('"fixed"', '"2026-01-31"', '"2026-01-02T03:04:00+00:00"', "[[1.5, 2.0]]", '"0": 0.05', '"set": [1]'):
        assert part in passage


def test_a_tool_that_yields_its_result_gives_all_of_it() -> None:
    def pieces(count: int) -> Any:
        yield from range(count)

    async def late(count: int) -> Any:
        for number in range(count):
            yield number

    calls = (ToolCall("pieces", {"count": 3}, [0, 1, 2]), ToolCall("late", {"count": "2"}))
    first, second = again(*calls, tools=[pieces, late])
    assert (first.result, first.changed, first.error) == ([0, 1, 2], False, None)
    assert (second.result, second.error) == ([0, 1], None)


def test_text_is_a_passage_as_it_stands() -> None:
    assert results_as_context(again(ToolCall("fine"), tools=[fine])) == ["fine"]


@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists), max_size=4)
)
def test_whatever_arguments_a_model_makes_up_nothing_is_raised(arguments: dict[str, Any]) -> None:
    def tool(request: LoanRequest, kind: Kind = Kind.FIXED) -> LoanRequest:
        return request

    [found] = again(ToolCall("tool", to_json(arguments)), tools=[tool])
    assert found.result is not None or found.error is not None


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(), max_size=5))
def test_arguments_without_types_reach_a_tool_unchanged(arguments: dict[str, int]) -> None:
    positional, named = bind_arguments(lambda **given: given, arguments)
    assert (positional, named) == ([], arguments)
    with pytest.raises(InvalidArguments):
        bind_arguments(lambda: None, {**arguments, "f": 1})
