"""pixie's data classes behave like the pydantic models and dataclasses that they are in pixie."""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.compat.pixie import (
    UNSET,
    AutoevalsAdapter,
    Dataset,
    DatasetStore,
    Evaluable,
    Evaluation,
    LLMSpan,
    MemoryTraceHandler,
    NamedData,
    ObservationNode,
    ObserveSpan,
    TestCase,
    build_tree,
    evaluate_sync,
    observe,
    run_and_evaluate_sync,
    validate_dataset_file,
)
from proctor.evaluators.evaluation import Evaluable as EngineEvaluable
from proctor.evaluators.evaluation import Evaluation as EngineEvaluation

WHOLE = Evaluable(
    eval_input=[NamedData("question", "Where?"), NamedData("tone", ["calm"])],
    eval_output=[NamedData("answer", {"city": "Paris"})],
    expectation=None,
    eval_metadata={"m": 1},
    description="A city",
)


@pytest.mark.parametrize("item", [WHOLE, Evaluable(eval_input="q"), Evaluable(), Evaluable(expected_output="x")])
def test_what_is_dumped_can_be_validated_again(item: Evaluable) -> None:
    for dumped in (item.model_dump(), item.model_dump(mode="json")):
        assert Evaluable.model_validate(dumped) == item
    assert Evaluable.model_validate_json(item.model_dump_json()) == item
    dataset = Dataset(name="cities", items=(item,))
    assert Dataset.model_validate(dataset.model_dump(mode="json")) == dataset
    assert Dataset.model_validate_json(dataset.model_dump_json()) == dataset


def test_a_dump_has_the_fields_that_pixie_documents() -> None:
    assert WHOLE.model_dump() == {
        "eval_input": [{"name": "question", "value": "Where?"}, {"name": "tone", "value": ["calm"]}],
        "expectation": None,
        "eval_metadata": {"m": 1},
        "description": "A city",
        "eval_output": [{"name": "answer", "value": {"city": "Paris"}}],
    }
    assert Evaluable(eval_input="q").model_dump()["expectation"] is UNSET


def test_a_copy_has_the_new_values_and_leaves_the_original_unchanged() -> None:
    changed = WHOLE.model_copy(update={"expected_output": "Paris", "description": "Another"})
    assert (changed.expectation, changed.description, changed.eval_input) == ("Paris", "Another", WHOLE.eval_input)
    assert (WHOLE.expectation, WHOLE.description) == (None, "A city")
    assert Evaluable(eval_output="x").model_copy() == Evaluable(eval_output="x")
    assert Dataset(name="a").model_copy(update={"name": "b"}).name == "b"
    assert Evaluation(0.5, "why").model_copy(update={"score": 1.0}) == Evaluation(1.0, "why")


def test_the_evaluables_of_the_engine_can_be_dumped_and_copied_too() -> None:
    seen: list[Any] = []

    def check(evaluable: Evaluable) -> Evaluation:
        seen.append(evaluable.model_copy(update={"expectation": "HI"}).model_dump())
        return Evaluation(score=1.0, reasoning="ok")

    run_and_evaluate_sync(check, observe(str.upper), "hi")
    assert (seen[0]["eval_output"], seen[0]["expectation"]) == ([{"name": "output", "value": "HI"}], "HI")


@pytest.mark.parametrize(
    ("thing", "field"),
    [(WHOLE, "description"), (TestCase(eval_input="q"), "eval_input"), (Dataset(name="x"), "name")],
)
def test_an_assignment_to_a_frozen_model_is_pydantics_error(thing: Any, field: str) -> None:
    with pytest.raises(ValidationError, match="frozen") as caught:
        setattr(thing, field, "changed")
    assert caught.value.errors()[0]["type"] == "frozen_instance"
    assert caught.value.errors()[0]["loc"] == (field,)


def test_an_evaluation_is_a_frozen_dataclass_as_in_pixie() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Evaluation(0.5, "why").score = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("arguments", [{"score": 0.5}, {"reasoning": "why"}, {}])
def test_an_evaluation_needs_a_score_and_a_reasoning(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="required"):
        Evaluation(**arguments)
    with pytest.raises(ValidationError):
        Evaluation.model_validate(arguments)


def test_evaluations_of_the_engine_are_evaluations() -> None:
    assert isinstance(EngineEvaluation(1.0), Evaluation)
    assert isinstance(EngineEvaluable(), TestCase)
    assert not isinstance(1.0, Evaluation)
    whole = Evaluation(0.5, "why", {"k": 1})
    assert Evaluation.model_validate(whole.model_dump()) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert pickle.loads(pickle.dumps(WHOLE)) == WHOLE


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_dataset_without_a_name_is_refused(name: Any) -> None:
    with pytest.raises(ValidationError, match="name must be a non-empty string"):
        Dataset(name=name)


def test_a_description_must_be_a_string() -> None:
    with pytest.raises(ValidationError, match="description must be a string"):
        TestCase(eval_input="q", description=3)


def test_a_single_value_equals_itself_in_a_list_of_named_values() -> None:
    """Evaluators for pixie 0.4 compare `eval_output` with a value; a list would never be equal."""
    evaluable = Evaluable(eval_input="Where?", eval_output="It is Paris.")
    assert evaluable.eval_input == "Where?"
    assert evaluable.eval_output != "It is Rome."
    assert "Paris" in evaluable.eval_output
    assert "Rome" not in evaluable.eval_output
    assert 3 not in evaluable.eval_output
    assert [evaluable.eval_output] == ["It is Paris."]
    assert evaluable.eval_output[0].value == "It is Paris."
    several = Evaluable(eval_input="q", eval_output=[NamedData("a", "x"), NamedData("b", "y")])
    assert several.eval_output != "x"
    assert "x" not in several.eval_output
    with pytest.raises(AttributeError, match=r"use \.input or \.output"):
        evaluable.eval_output.lower()  # type: ignore[attr-defined]


def test_handlers_can_be_called_with_and_without_an_event_loop() -> None:
    handler = MemoryTraceHandler()
    step, call = ObserveSpan("1", "t"), LLMSpan("2", "t", "1")
    asyncio.run(handler.on_observe(step))  # type: ignore[arg-type]
    asyncio.run(handler.on_llm(call))  # type: ignore[arg-type]
    handler.on_observe(step)
    assert handler.spans == [step, call, step]
    assert handler.get_trace("t")[0].children[0].span is call


def test_a_scorer_may_be_async_only() -> None:
    class Score:
        name, score, metadata = "mine", 0.75, {"rationale": "close"}

    class Scorer:
        async def eval_async(self, output: Any, expected: Any = None, **arguments: Any) -> Score:
            assert (output, expected, arguments) == ("a", "b", {"input": "q"})
            return Score()

    evaluable = Evaluable(eval_input="q", eval_output="a", expected_output="b")
    result = evaluate_sync(AutoevalsAdapter(Scorer()), evaluable)
    assert result is not None
    assert (result.score, result.reasoning) == (0.75, "close")


def test_a_dataset_is_created_with_items(tmp_path: Any) -> None:
    store = DatasetStore(tmp_path)
    dataset = store.create("cities", items=[Evaluable(eval_input="Where?", expected_output="Paris")])
    assert dataset.items[0].eval_input == "Where?"
    assert store.get("cities") == dataset
    assert validate_dataset_file(tmp_path / "cities.json") != []  # no runnable and no evaluators yet


def test_a_tree_is_printed_as_in_pixie() -> None:
    spans = [
        ObserveSpan("1", "t", None, 1.0, 2.0, 1000.0, "desk", {"q": "x"}, "y", {"env": "test"}),
        LLMSpan("2", "t", "1", 1.0, 2.0, 350.0, provider="openai", request_model="m", input_tokens=3, output_tokens=4),
    ]
    [root] = build_tree(spans)
    assert isinstance(root, ObservationNode)
    assert root.to_text().splitlines() == [
        "desk [1000ms]",
        '  input: {"q": "x"}',
        "  output: y",
        '  metadata: {"env": "test"}',
        "  m [openai, 350ms]",
        "    tokens: 3 in / 4 out",
    ]
    assert [node.name for node in (root, root.children[0])] == ["desk", "m"]
    handler = MemoryTraceHandler()
    handler.add(spans[0])
    assert isinstance(handler.get_trace("t")[0], ObservationNode)
