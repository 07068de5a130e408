from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import proctor
from proctor.agents.tool_mocks import NoMatchingMock, ToolFailed, ToolMocks
from proctor.base.errors import InvalidSuite
from proctor.cases.encoding import decode_case, encode_case
from proctor.cases.formats.loading import load
from proctor.cases.identity import question_key
from proctor.cases.suite import Case, Expected, ExpectedCall, ToolMock, Turn

TOUCHED: list[str] = []


@proctor.tool
def charge(card: str, amount: int) -> str:
    TOUCHED.append(card)
    return "charged for real"


@proctor.tool
async def look_up(order: int) -> str:
    TOUCHED.append(str(order))
    return "looked up for real"


def agent(question: str) -> str:
    try:
        return charge("4111", amount=12)
    except Exception as error:
        return f"could not: {error}"


async def two_tools(question: str) -> str:
    found = await look_up(7)
    try:
        return f"{found}; {charge('4111', amount=12)}"
    except Exception as error:
        return f"{found}; could not: {error}"


def ran(case: Case, function: object = agent) -> proctor.Trial:
    TOUCHED.clear()
    run = proctor.run(
        proctor.Suite("s", (case,), evaluators=(proctor.EvaluatorSpec("ToolCount", {"at_least": 0}),)),
        agent=function,
        store=None,
    )
    (trial,) = run.trials
    return trial


def case(**mocks: tuple[ToolMock, ...]) -> Case:
    return Case(id="c", turns=(Turn("pay"),), mocks=mocks)


def test_a_mocked_tool_is_never_called_and_its_mock_is_recorded_as_the_call() -> None:
    trial = ran(case(charge=(ToolMock(result="ok"),)))
    (reply,) = trial.replies
    assert TOUCHED == []
    assert reply.text == "ok"
    assert [(call.name, dict(call.arguments), call.result) for call in reply.tool_calls] == [
        ("charge", {"card": "4111", "amount": 12}, "ok")
    ]


def test_a_tool_without_a_mock_is_called_as_ever() -> None:
    trial = ran(case(charge=(ToolMock(result="ok"),)), two_tools)
    assert trial.replies[0].text == "looked up for real; ok"
    assert TOUCHED == ["7"]


def test_a_mock_may_fail_as_the_tool_would() -> None:
    trial = ran(case(charge=(ToolMock(error="card declined"),)))
    assert trial.replies[0].text == "could not: card declined"
    assert "card declined" in (trial.replies[0].tool_calls[0].error or "")


def test_a_call_for_which_the_case_has_no_answer_reaches_nothing_outside() -> None:
    trial = ran(case(charge=(ToolMock(args={"amount": proctor_matcher(99)}, result="ok"),)))
    assert TOUCHED == []
    assert "no mock of charge matches" in trial.replies[0].text


def proctor_matcher(value: int):  # type: ignore[no-untyped-def]
    return ExpectedCall("x", {"v": value}).args["v"]  # type: ignore[index]


def test_mocks_answer_by_arguments_and_in_turn() -> None:
    mocks = ToolMocks(
        {
            "t": (
                ToolMock(args={"n": proctor_matcher(1)}, result="one"),
                ToolMock(error="busy", times=1),
                ToolMock(result="later"),
            )
        }
    )
    assert mocks.result("t", {"n": 1, "other": True}) == "one"
    with pytest.raises(ToolFailed, match="busy"):
        mocks.result("t", {"n": 2})
    assert asyncio.run(mocks.result_async("t", {"n": 2})) == "later"
    with pytest.raises(NoMatchingMock):
        ToolMocks({"unknown": ()}).take("unknown", {})


def test_trials_count_their_mocks_apart() -> None:
    suite = proctor.Suite(
        "s",
        tuple(
            Case(id=f"c{i}", turns=(Turn("pay"),), mocks={"charge": (ToolMock(result=i, times=1),)}) for i in range(20)
        ),
        evaluators=(proctor.EvaluatorSpec("ToolCount", {"at_least": 0}),),
    )
    run = proctor.run(suite, agent=agent, store=None)
    assert [trial.replies[0].text for trial in run.trials] == [str(i) for i in range(20)]


def test_a_mock_that_was_never_asked_is_told_since_the_real_tool_may_have_been_called() -> None:
    trial = ran(case(chrage=(ToolMock(result="ok"),)))
    assert TOUCHED == ["4111"]
    assert trial.warnings == ("the mock of 'chrage' was never used; did you mean 'charge'?",)
    assert ran(case(charge=(ToolMock(result="ok"),))).warnings == ()
    expected = Expected("paid", tools=(ExpectedCall("charge"),))
    checked = [..., "ExactMatch"]
    told = Case(id="c", turns=[Turn("pay", expected)], evaluators=checked, mocks={"charge": [{"result": "ok"}]})
    assert ran(told, "oracle").warnings == ran(told, "nop").warnings == ()
    fails_every_time = case(charge=(ToolMock(args={"amount": proctor_matcher(99)}, result="ok"),))
    assert ran(fails_every_time).warnings == ()


def test_an_agent_that_reports_a_real_call_of_a_mocked_tool_is_told_of() -> None:
    def closed(question: str) -> proctor.Reply:
        return proctor.Reply("paid", (proctor.ToolCall("charge", {"amount": 12}),))

    trial = ran(case(charge=(ToolMock(result="ok"),)), closed)
    assert trial.warnings == ("'charge' was really called: the tools of this agent cannot be mocked",)


def test_what_an_agent_does_to_an_answer_is_not_seen_by_the_next_call() -> None:
    mocks = ToolMocks({"t": (ToolMock(result={"items": [1]}),)})
    mocks.result("t", {})["items"].append(2)
    assert mocks.result("t", {}) == {"items": [1]}


def test_however_many_threads_ask_a_mock_answers_as_often_as_it_says() -> None:
    mocks = ToolMocks({"t": (ToolMock(args={"n": Meeting()}, result="once", times=1), ToolMock(result="later"))})
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda _: mocks.take("t", {"n": 1}).result, range(2)))
    assert sorted(said) == ["later", "once"]


class Meeting:
    """A matcher in which two threads meet, if both are let in."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)

    def mismatch(self, actual: object) -> None:
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(0.2)

    def to_json(self) -> str:
        return "meeting"


SUITE = """
agent: oracle
cases:
  - id: a
    input: pay
    expected: ok
    mocks:
      charge:
        - {args: {amount: {$approx: 12}}, error: card declined, times: 1}
        - {result: {status: ok}, delay: 0.01}
      look_up: {result: null}
"""


def test_mocks_are_read_from_a_file_and_survive_the_way_back(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    (suite,) = load([tmp_path / "s.yaml"])
    (read_case,) = suite.cases
    assert read_case.mocks["charge"][1] == ToolMock(result={"status": "ok"}, delay=0.01)
    assert read_case.mocks["look_up"] == (ToolMock(),)
    again = decode_case(encode_case(read_case))
    assert again.mocks == read_case.mocks


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("{charge: 7}", "must be an object"),
        ("{charge: []}", "is empty"),
        ("{charge: {result: 1, error: x}}", "both"),
        ("{charge: {reslt: 1}}", "reslt"),
        ("{charge: {result: 1, times: 0}}", "at least 1"),
        ("{charge: {result: 1, args: {x: {$regex: '('}}}}", "regex"),
    ],
)
def test_a_mock_that_cannot_be_meant_is_refused_with_its_line(written: str, complaint: str, tmp_path: Path) -> None:
    text = f"agent: oracle\ncases:\n  - {{id: a, input: x, expected: y, mocks: {written}}}\n"
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(InvalidSuite) as caught:
        load([tmp_path / "s.yaml"])
    assert complaint in str(caught.value)
    assert "s.yaml:3:" in str(caught.value)


def test_other_mocks_are_another_question_to_the_agent() -> None:
    assert question_key(case(charge=(ToolMock(result=1),))) != question_key(case(charge=(ToolMock(result=2),)))
    assert question_key(case()) == question_key(Case(id="c", turns=(Turn("pay"),)))
