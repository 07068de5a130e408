"""What a turn does is recorded once, in order, by whoever reports it."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from proctor.agents.reply import UNFINISHED_CALL, Reply, ToolCall, Usage
from proctor.agents.tool_mocks import NoMatchingMock, ToolFailed, ToolMocks
from proctor.agents.trial_context import (
    MockBypassed,
    TrialContext,
    check_stray_call,
    current_trial,
    current_turn,
    running_trial,
    take_stray_calls,
)
from proctor.agents.turn_recorder import TurnRecorder, patch_once
from proctor.cases.suite import ToolMock


def brief(calls: tuple[ToolCall, ...]) -> list[Any]:
    return [(call.name, dict(call.arguments), call.result, call.error) for call in calls]


def test_a_call_is_recorded_with_its_arguments_result_and_time() -> None:
    turn = TurnRecorder()
    assert turn.call_tool_sync("add", {"a": 1}, lambda: 2) == 2
    (call,) = turn.tool_calls
    assert brief(turn.tool_calls) == [("add", {"a": 1}, 2, None)]
    assert call.duration_ms is not None
    assert call.started_at is not None


def test_async_and_sync_tools_are_called_alike() -> None:
    async def later() -> str:
        return "later"

    turn = TurnRecorder()
    assert asyncio.run(turn.call_tool("a", '{"x": 1}', later)) == "later"
    assert asyncio.run(turn.call_tool("b", None, lambda: "now")) == "now"
    assert brief(turn.tool_calls) == [("a", {"x": 1}, "later", None), ("b", {}, "now", None)]


def test_a_tool_that_raises_is_recorded_and_still_raises() -> None:
    def fail() -> None:
        raise ValueError("no such order")

    turn = TurnRecorder()
    with pytest.raises(ValueError, match="no such order"):
        turn.call_tool_sync("find", {}, fail)
    assert brief(turn.tool_calls) == [("find", {}, None, "ValueError: no such order")]


def test_two_calls_with_the_same_vendor_id_in_one_turn_are_two_calls() -> None:
    turn = TurnRecorder()
    turn.call_tool_sync("find_order", {}, lambda: "found", id="call_0")
    turn.call_tool_sync("refund", {}, lambda: "refunded", id="call_0")
    turn.record_unexecuted_call("delete", {}, "it needs approval", id="call_0")
    assert [call.name for call in turn.tool_calls] == ["find_order", "refund", "delete"]
    assert len({call.id for call in turn.tool_calls}) == 3
    assert turn.tool_calls[0].id == "call_0"


def test_calls_within_a_call_name_it_as_their_parent_also_across_tasks() -> None:
    turn = TurnRecorder()

    async def inner(name: str) -> str:
        await asyncio.sleep(0)
        return str(await turn.call_tool(name, {}, lambda: name))

    async def outer() -> list[str]:
        return await asyncio.gather(inner("a"), inner("b"))

    async def main() -> None:
        await turn.call_tool("outer", {}, outer, id="o")
        await turn.call_tool("after", {}, lambda: 1)

    asyncio.run(main())
    assert [(call.name, call.parent) for call in turn.tool_calls] == [
        ("outer", None),
        ("a", "o"),
        ("b", "o"),
        ("after", None),
    ]


def test_calls_after_a_handoff_are_inside_it() -> None:
    turn = TurnRecorder()
    turn.record_handoff("transfer_to_billing", "{}", "billing", id="h")
    turn.call_tool_sync("refund", {}, lambda: 1)
    turn.record_handoff("transfer_back", "{}", "desk", id="h2")
    turn.call_tool_sync("greet", {}, lambda: 1)
    assert [(call.name, call.parent) for call in turn.tool_calls] == [
        ("transfer_to_billing", None),
        ("refund", "h"),
        ("transfer_back", "h"),
        ("greet", "h2"),
    ]


def test_calls_that_a_framework_reports_are_not_counted_again_by_the_mark() -> None:
    turn = TurnRecorder()
    turn.call_tool_sync("add", {"a": 1}, lambda: turn.call_tool_sync("add", {"a": 1}, lambda: 2, marked=True))
    assert [call.name for call in turn.tool_calls] == ["add"]


def test_a_tool_that_streams_is_recorded_when_it_is_drained() -> None:
    turn = TurnRecorder()

    def search() -> Iterator[str]:
        turn.call_tool_sync("inner", {}, lambda: 1)
        yield "a"
        yield "b"

    async def search_later() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def drain(stream: Any) -> list[Any]:
        return [item async for item in stream]

    assert list(turn.call_tool_sync("search", {}, search, id="s")) == ["a", "b"]
    assert asyncio.run(drain(turn.call_tool_sync("later", {}, search_later))) == [1, 2]
    assert [(call.name, call.result, call.parent) for call in turn.tool_calls] == [
        ("search", "ab", None),
        ("inner", 1, "s"),
        ("later", [1, 2], None),
    ]


def test_a_mock_answers_instead_of_the_tool() -> None:
    mocks = ToolMocks({"charge": (ToolMock(result="ok", times=1), ToolMock(error="card declined"))})
    turn = TurnRecorder(mocks=mocks)
    assert turn.call_tool_sync("charge", {"amount": 1}, pytest.fail) == "ok"
    with pytest.raises(ToolFailed, match="card declined"):
        asyncio.run(turn.call_tool("charge", {"amount": 2}, pytest.fail))
    assert brief(turn.tool_calls) == [
        ("charge", {"amount": 1}, "ok", None),
        ("charge", {"amount": 2}, None, "ToolFailed: card declined"),
    ]


def test_a_mock_still_answers_after_the_turn_but_nothing_is_recorded() -> None:
    turn = TurnRecorder(mocks=ToolMocks({"charge": (ToolMock(result="ok"),)}))
    turn.closed = True
    assert turn.call_tool_sync("charge", {}, pytest.fail) == "ok"
    assert turn.call_tool_sync("other", {}, lambda: "real") == "real"
    turn.add_output("plan", 1)
    turn.set_partial("text")
    turn.add_model_call(1, 1)
    assert (turn.tool_calls, turn.outputs, turn.partial_text, turn.usage) == ((), [], "", None)


def test_a_mocked_tool_called_with_other_arguments_reaches_nothing() -> None:
    turn = TurnRecorder(mocks=ToolMocks({"charge": ()}))
    with pytest.raises(NoMatchingMock):
        turn.call_tool_sync("charge", {}, pytest.fail)


def test_a_call_that_has_not_ended_is_kept_of_a_broken_turn() -> None:
    turn = TurnRecorder()
    turn.call_tool_sync("first", {}, lambda: 1)
    turn.begin_call("second", {"x": 1})
    turn.set_partial("Your order")
    assert brief(turn.partial_tool_calls) == [("first", {}, 1, None), ("second", {"x": 1}, None, UNFINISHED_CALL)]
    assert turn.partial_reply == Reply("Your order")


def test_tokens_of_model_calls_are_added_and_zero_is_unknown() -> None:
    turn = TurnRecorder()
    turn.add_model_call(10, 2, "m")
    turn.add_model_call(1, 1, "m")
    assert turn.usage == Usage(11, 3, model_calls=2, model="m")
    silent = TurnRecorder()
    silent.add_model_call(0, 0, "m")
    assert silent.usage == Usage(model_calls=1)


def test_a_recorder_elsewhere_repeats_every_event() -> None:
    near = TurnRecorder({"x": 1})
    far = TurnRecorder({"x": 1}, listener=lambda event: near.apply(pickle.loads(pickle.dumps(event))))
    far.call_tool_sync("add", {"a": 1}, lambda: 2)
    far.begin_call("slow", {})
    far.add_output("plan", [1])
    far.use_input("x")
    far.add_model_call(3, 4)
    far.append_text("Your ")
    far.append_text("order")
    assert near.partial_tool_calls == far.partial_tool_calls
    assert (near.outputs, near.used_inputs, near.usage) == (far.outputs, {"x"}, far.usage)
    assert near.partial_text == "Your order"
    far.set_partial(Reply("all of it", (ToolCall("a"),)))
    assert near.partial_reply == Reply("all of it", (ToolCall("a"),))


def test_many_threads_record_every_call() -> None:
    turn = TurnRecorder()
    threads = [
        threading.Thread(target=lambda: [turn.call_tool_sync("t", {}, lambda: 1, id="same") for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(turn.tool_calls) == len({call.id for call in turn.tool_calls}) == 200


def test_the_turn_of_a_trial_is_found_until_it_is_closed() -> None:
    assert current_turn() is None
    trial = TrialContext(turn=TurnRecorder())
    with running_trial(trial):
        assert current_turn() is trial.turn
        assert trial.turn is not None
        trial.turn.closed = True
        assert current_turn() is None
    assert current_trial.get() is None


def test_a_call_outside_every_trial_is_refused_if_a_running_case_mocks_the_tool() -> None:
    take_stray_calls()
    check_stray_call("charge")
    mocking, other = TrialContext(mocks=ToolMocks({"charge": ()})), TrialContext()
    with running_trial(mocking), running_trial(other):
        with pytest.raises(MockBypassed):
            check_stray_call("charge")
        check_stray_call("look_up")
    assert (mocking.bypassed_mocks, other.bypassed_mocks) == (["charge"], [])
    check_stray_call("look_up")
    assert take_stray_calls() == {"look_up": 1}
    assert take_stray_calls() == {}


class Vendor:
    def double(self, number: int) -> int:
        return 2 * number

    async def double_later(self, number: int) -> int:
        return 2 * number


def test_a_patched_method_passes_through_outside_a_trial_and_is_patched_once() -> None:
    def plus_one(original: Any, self: Vendor, number: int) -> int:
        return int(original(self, number)) + 1

    async def plus_one_later(original: Any, self: Vendor, number: int) -> int:
        return int(await original(self, number)) + 1

    for _ in range(2):
        patch_once(Vendor, "double", plus_one)
        patch_once(Vendor, "double_later", plus_one_later)
    assert (Vendor().double(2), asyncio.run(Vendor().double_later(2))) == (4, 4)
    with running_trial(TrialContext(turn=TurnRecorder())):
        assert (Vendor().double(2), asyncio.run(Vendor().double_later(2))) == (5, 5)
