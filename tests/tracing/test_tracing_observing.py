from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from proctor.tracing.capture import capture_traces
from proctor.tracing.observe import observe, start_observation
from proctor.tracing.spans import ObserveSpan


def observations(handler: Any) -> list[ObserveSpan]:
    return [span for span in handler.spans if isinstance(span, ObserveSpan)]


def test_a_step_has_its_arguments_by_name_and_its_result_as_data() -> None:
    class Desk:
        @observe("answering")
        def answer(self, question: str, *more: int, tone: str = "kind", **options: Any) -> dict[str, Any]:
            return {"said": (question, tone)}

    with capture_traces() as handler:
        assert Desk().answer("why", 1, 2, speed=3) == {"said": ("why", "kind")}
    [span] = observations(handler)
    assert span.name == "answering"
    assert span.input == {"question": "why", "more": [1, 2], "tone": "kind", "speed": 3}
    assert span.output == {"said": ["why", "kind"]}
    assert span.error is None
    assert span.ended_at >= span.started_at > 1e9
    assert span.duration_ms >= 0


@pytest.mark.parametrize("decorate", [observe, observe(), observe(None)])
def test_the_decorator_works_in_each_of_its_forms(decorate: Any) -> None:
    @decorate
    def work() -> int:
        """Does it."""
        return 1

    with capture_traces() as handler:
        assert work() == 1
    assert [span.name for span in observations(handler)] == ["work"]
    assert work.__doc__ == "Does it."


def test_async_functions_stay_async() -> None:
    @observe()
    async def work(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work(1)) == 2
    with capture_traces() as handler:
        assert asyncio.run(work(1)) == 2
    assert [(span.input, span.output) for span in observations(handler)] == [({"x": 1}, 2)]


def test_the_step_of_a_function_that_returns_a_coroutine_lasts_until_it_is_awaited() -> None:
    async def inner() -> str:
        with start_observation(input=None, name="inner"):
            return "done"

    @observe
    def work() -> Any:
        return inner()

    with capture_traces() as handler:
        assert asyncio.run(work()) == "done"
    assert [(span.name, span.output) for span in observations(handler)] == [("inner", None), ("work", "done")]
    assert observations(handler)[0].parent_span_id == observations(handler)[1].span_id


def test_an_exception_is_recorded_and_raised() -> None:
    @observe
    def work() -> None:
        raise ValueError("it  is\nbroken")

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @observe
    def worse() -> None:
        raise Unspeakable

    with capture_traces() as handler:
        with pytest.raises(ValueError, match="broken"):
            work()
        with pytest.raises(Unspeakable):
            worse()
    assert [(span.error, span.output) for span in observations(handler)] == [
        ("ValueError: it is broken", None),
        ("Unspeakable", None),
    ]


def test_wrong_arguments_raise_the_functions_own_error() -> None:
    @observe
    def work(x: int) -> int:
        return x

    with capture_traces() as handler, pytest.raises(TypeError, match="unexpected keyword"):
        work(1, y=2)  # type: ignore[call-arg]
    [span] = observations(handler)
    assert span.input == {"0": 1, "y": 2}
    assert span.error is not None


def test_a_cancelled_step_is_recorded() -> None:
    @observe
    async def work() -> None:
        await asyncio.sleep(60)

    async def cancelled() -> Any:
        with capture_traces() as handler:
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return handler

    assert [span.error for span in observations(asyncio.run(cancelled()))] == ["CancelledError"]


def test_a_generator_yields_chunk_by_chunk_and_is_recorded_as_a_whole() -> None:
    produced: list[str] = []

    @observe
    def words(n: int) -> Iterator[str]:
        for i in range(n):
            produced.append(str(i))
            with start_observation(input=i, name="chunk"):
                pass
            yield str(i)

    with capture_traces() as handler:
        stream = words(3)
        assert produced == []
        assert next(stream) == "0"
        with start_observation(input=None, name="between"):
            pass
        assert list(stream) == ["1", "2"]
    by_name = {span.name: span for span in observations(handler)}
    assert by_name["words"].output == "012"
    assert by_name["words"].input == {"n": 3}
    assert by_name["chunk"].parent_span_id == by_name["words"].span_id
    assert by_name["between"].parent_span_id is None


def test_a_generator_can_be_sent_to_thrown_into_and_returned_from() -> None:
    def dialog() -> Generator[Any, Any, str]:
        got = yield "first"
        try:
            yield got
        except KeyError:
            yield "caught"
        return "end"

    def conversation(stream: Generator[Any, Any, str]) -> list[Any]:
        values = [next(stream), stream.send("sent"), stream.throw(KeyError("k"))]
        try:
            next(stream)
        except StopIteration as done:
            values.append(done.value)
        return values

    with capture_traces() as handler:
        assert conversation(observe(dialog)()) == conversation(dialog())
    assert [span.output for span in observations(handler)] == ["firstsentcaught"]


def test_a_generator_that_is_closed_early_is_recorded_with_the_chunks_taken() -> None:
    closed: list[bool] = []

    @observe
    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    with capture_traces() as handler:
        stream: Any = numbers()
        next(stream)
        stream.close()
    assert closed == [True]
    assert [(span.output, span.error) for span in observations(handler)] == [([1], None)]


def test_a_generator_that_fails_is_recorded_with_its_chunks() -> None:
    @observe
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    with capture_traces() as handler, pytest.raises(ValueError, match="no more"):
        list(numbers())
    assert [(span.output, span.error) for span in observations(handler)] == [([1], "ValueError: no more")]


def test_an_async_generator_is_recorded_as_a_whole() -> None:
    @observe
    async def words() -> AsyncIterator[str]:
        for word in ("a", "b"):
            with start_observation(input=word, name="chunk"):
                await asyncio.sleep(0)
            yield word

    async def drain() -> list[str]:
        return [word async for word in words()]

    async def give_up() -> None:
        stream: Any = words()
        await stream.__anext__()
        await stream.aclose()

    with capture_traces() as handler:
        assert asyncio.run(drain()) == ["a", "b"]
        asyncio.run(give_up())
    found = [span for span in observations(handler) if span.name == "words"]
    assert [(span.output, span.error) for span in found] == [("ab", None), ("a", None)]
    chunks = [span.parent_span_id for span in observations(handler) if span.name == "chunk"]
    assert chunks == [found[0].span_id, found[0].span_id, found[1].span_id]


def test_a_stream_that_is_read_in_another_context_belongs_to_its_capture() -> None:
    import contextvars

    @observe
    def words() -> Iterator[str]:
        with start_observation(input=1, name="inside"):
            yield "a"

    with capture_traces() as handler:
        stream = words()
        assert contextvars.Context().run(list, stream) == ["a"]
    assert {span.name for span in observations(handler)} == {"inside", "words"}


def test_a_block_of_code_can_be_a_step() -> None:
    with capture_traces() as handler:
        with start_observation(input={"q": 1}, name="lookup") as step:
            found = [1]
            step.set_output(found)
            step.set_metadata("tier", {"gold"})
            found.append(2)
        with start_observation(input=None):
            pass
    first, second = observations(handler)
    assert (first.name, first.input, first.output, first.metadata) == ("lookup", {"q": 1}, [1], {"tier": ["gold"]})
    assert second.name == "(unnamed)"


def test_without_a_capture_nothing_is_recorded_and_nothing_changes() -> None:
    class Touchy:
        def __repr__(self) -> str:
            raise AssertionError("the argument was read")

    touchy = Touchy()
    stream = iter(())
    assert observe(lambda x: x)(touchy) is touchy
    assert observe(lambda: stream)() is stream
    with start_observation(input=touchy) as step:
        step.set_output(touchy)
        step.set_metadata("x", touchy)


@pytest.mark.parametrize("value", ["\ud800", float("nan"), {1: {2}}, b"\xff", [[]] * 50])
def test_any_value_can_be_an_argument_or_a_result(value: Any) -> None:
    with capture_traces() as handler:
        observe(lambda x: x)(value)
    assert len(observations(handler)) == 1


def test_partials_methods_and_builtins_can_be_observed() -> None:
    class Adder:
        def __call__(self, x: int) -> int:
            return x + 1

    with capture_traces() as handler:
        assert observe(functools.partial(max, 3))(4) == 4
        assert observe(Adder())(1) == 2
        assert observe(len)([1]) == 1
    assert [span.output for span in observations(handler)] == [4, 2, 1]
    assert [span.name for span in observations(handler)] == ["partial", "Adder", "len"]
