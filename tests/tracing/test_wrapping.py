from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import proctor
from proctor import Case, EvaluatorSpec, Expected, NamedData, Suite, Turn, wrap


def run(agent: Any, *inputs: NamedData, expected: Any = "out") -> Any:
    case = Case(id="one", turns=(Turn("hi", Expected(output=expected)),), inputs=inputs)
    [trial] = proctor.run(Suite("s", (case,), evaluators=(EvaluatorSpec("ExactMatch"),)), agent).trials
    return trial


def outputs(trial: Any) -> list[tuple[str, Any]]:
    return [(item.name, item.value) for reply in trial.replies for item in reply.outputs]


def test_outside_a_trial_wrap_returns_its_argument() -> None:
    value = {"a": 1}
    stream = iter([1, 2])
    assert wrap(value, purpose="input", name="x") is value
    assert wrap(stream, purpose="output", name="x") is stream
    assert wrap(lambda a: a + 1, purpose="state", name="x")(1) == 2


def test_an_input_comes_from_the_case() -> None:
    def agent(question: str) -> str:
        return wrap("from the database", purpose="input", name="profile")

    assert run(agent, NamedData("profile", "out")).outcome == "passed"


def test_an_input_function_returns_the_cases_value_whatever_it_is_called_with() -> None:
    def agent(question: str) -> str:
        fetch = wrap(lambda key: pytest.fail("the real thing was called"), purpose="input", name="profile")
        return fetch("anything")

    assert run(agent, NamedData("profile", "out")).outcome == "passed"


def test_an_async_input_function_can_be_awaited() -> None:
    async def agent(question: str) -> str:
        async def real(key: str) -> str:
            raise AssertionError("the real thing was called")

        return await wrap(real, purpose="input", name="profile")("x")

    assert run(agent, NamedData("profile", "out")).outcome == "passed"


def test_an_input_that_the_case_lacks_is_an_error_of_that_case_and_not_the_agents_failure() -> None:
    trial = run(lambda question: wrap("x", purpose="input", name="profil"), NamedData("profile", "out"))
    assert trial.outcome == "error"
    assert "'profil'" in trial.reason
    assert "did you mean 'profile'" in trial.reason


def test_an_unused_input_is_warned_about_only_if_others_are_used() -> None:
    def asks(question: str) -> str:
        return wrap("x", purpose="input", name="a")

    trial = run(asks, NamedData("a", "out"), NamedData("b", 1))
    assert trial.warnings == ("the application never read the input 'b'",)
    assert run(lambda question: "out", NamedData("a", 1)).warnings == ()


def test_the_application_uses_its_own_inputs_if_the_case_has_none() -> None:
    assert run(lambda question: wrap("out", purpose="input", name="a")).outcome == "passed"


def test_evaluators_get_wrapped_outputs_and_states() -> None:
    def agent(question: str) -> str:
        wrap("out", purpose="output", name="answer")
        return "something else"

    trial = run(agent)
    assert trial.outcome == "passed"
    assert outputs(trial) == [("answer", "out")]


def test_a_generator_is_recorded_only_as_it_is_read() -> None:
    drained: list[str] = []

    def chunks() -> Iterator[str]:
        for chunk in ("o", "ut"):
            drained.append(chunk)
            yield chunk

    def agent(question: str) -> str:
        stream = wrap(chunks(), purpose="output", name="answer")
        assert drained == []
        return "".join(stream)

    assert outputs(run(agent)) == [("answer", "out")]


def test_an_async_generator_is_recorded_too() -> None:
    async def chunks() -> AsyncIterator[str]:
        yield "o"
        yield "ut"

    async def agent(question: str) -> str:
        return "".join([chunk async for chunk in wrap(chunks(), purpose="output", name="answer")])

    assert outputs(run(agent)) == [("answer", "out")]


class Model:
    """Something that can be called and has methods besides."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, question: str) -> str:
        self.calls += 1
        return "out"

    def name(self) -> str:
        return "small"


def test_an_object_that_can_be_called_keeps_its_methods() -> None:
    def agent(question: str) -> str:
        model = wrap(Model(), purpose="output", name="answer")
        assert model.name() == "small"
        assert model(question) == "out"
        assert model.calls == 1
        return "ignored"

    assert outputs(run(agent)) == [("answer", "out")]


def test_partials_and_functions_that_return_awaitables_are_recorded() -> None:
    async def later(value: str) -> str:
        await asyncio.sleep(0)
        return value

    async def agent(question: str) -> str:
        await wrap(functools.partial(later, "first"), purpose="output", name="a")()
        await wrap(lambda: later("second"), purpose="state", name="b")()
        return "x"

    assert outputs(run(agent)) == [("a", "first"), ("b", "second")]


def test_values_are_recorded_as_plain_data() -> None:
    import dataclasses
    import datetime
    import decimal
    import enum

    class Colour(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Thing:
        when: datetime.date
        price: decimal.Decimal
        colour: Colour
        tags: set[str]

    def agent(question: str) -> str:
        thing = Thing(datetime.date(2026, 1, 2), decimal.Decimal("1.50"), Colour.RED, {"b", "a"})
        return wrap(thing, purpose="output", name="thing") and "x"

    expected = {"when": "2026-01-02", "price": 1.5, "colour": "red", "tags": ["a", "b"]}
    assert outputs(run(agent)) == [("thing", expected)]


def test_a_value_crafted_to_run_code_is_only_data() -> None:
    crafted = {"py/reduce": [{"py/function": "os.system"}, {"py/tuple": ["false"]}]}
    assert (
        run(lambda q: wrap("x", purpose="input", name="a"), NamedData("a", crafted), expected=crafted).outcome
        == "passed"
    )


def test_an_unknown_purpose_is_refused_in_a_trial() -> None:
    trial = run(lambda question: wrap("x", purpose="entry", name="a"))  # type: ignore[arg-type]
    assert trial.outcome == "failed"
    assert "purpose must be one of" in trial.reason
