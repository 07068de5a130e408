from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.tracing.spans import (
    AssistantMessage,
    ImageContent,
    LLMSpan,
    ObservationNode,
    ObserveSpan,
    TextContent,
    UserMessage,
    build_tree,
)


def step(span_id: str, parent: str | None = None, at: float = 0.0, trace: str = "t", **rest: object) -> ObserveSpan:
    return ObserveSpan(span_id, trace, parent, at, at + 1, 1000.0, name=span_id, **rest)  # type: ignore[arg-type]


def names(nodes: list[ObservationNode]) -> list[str]:
    return [node.name for node in nodes]


def test_children_are_under_their_parent_in_order_of_their_start() -> None:
    [root] = build_tree([step("late", "root", 3.0), step("early", "root", 2.0), step("root", at=1.0)])
    assert root.name == "root"
    assert names(root.children) == ["early", "late"]


def test_a_span_with_a_missing_parent_is_a_root() -> None:
    assert names(build_tree([step("b", "gone", 2.0), step("a", at=1.0)])) == ["a", "b"]


def test_one_span_id_in_two_traces_is_two_spans() -> None:
    roots = build_tree([step("a", trace="x"), step("b", "a", 1.0, trace="y")])
    assert names(roots) == ["a", "b"]


def test_spans_that_name_each_other_as_parents_are_all_kept() -> None:
    roots = build_tree([step("a", "b", 1.0), step("b", "a", 2.0), step("self", "self", 3.0)])
    assert names(roots) == ["a", "self"]
    assert names(roots[0].children) == ["b"]


def test_a_tree_may_be_deeper_than_pythons_stack() -> None:
    [root] = build_tree([step(str(i), str(i - 1) if i else None, float(i)) for i in range(3000)])
    assert len(root.find("2999")) == 1
    assert root.to_text().count("\n") == 2999


@given(st.lists(st.tuples(st.integers(0, 8), st.none() | st.integers(0, 8), st.integers(0, 3))))
def test_every_span_is_in_the_tree_exactly_once(rows: list[tuple[int, int | None, int]]) -> None:
    spans = [step(str(own), None if parent is None else str(parent), float(at)) for own, parent, at in rows]
    seen = [id(node.span) for root in build_tree(spans) for _, node in root.walk()]
    assert sorted(seen) == sorted(id(span) for span in spans)


def test_a_model_call_has_the_name_of_its_model() -> None:
    assert ObservationNode(LLMSpan("s", "t", request_model="gpt-x")).name == "gpt-x"
    assert ObservationNode(LLMSpan("s", "t", response_model="gpt-y")).name == "gpt-y"
    assert ObservationNode(LLMSpan("s", "t")).name == "(unnamed)"


def test_nodes_are_found_by_name_and_by_type() -> None:
    [root] = build_tree([step("root"), LLMSpan("llm", "t", "root", 1.0, request_model="root"), step("x", "llm", 2.0)])
    assert [type(node.span) for node in root.find("root")] == [ObserveSpan, LLMSpan]
    assert names(root.find_by_type(LLMSpan)) == ["root"]
    assert root.find("nobody") == []


def test_the_tree_as_text_has_inputs_and_outputs() -> None:
    answer = AssistantMessage((TextContent("hm"),), (ToolCall("search", {"q": "x"}),))
    call = LLMSpan(
        "llm",
        "t",
        "root",
        1.0,
        2.0,
        12.0,
        request_model="gpt-x",
        input_tokens=7,
        input_messages=(UserMessage.from_text("hello"),),
        output_messages=(answer,),
    )
    text = build_tree([step("root", input={"q": "x"}, output="y" * 500, error="ValueError: no"), call])[0].to_text()
    assert text.splitlines() == [
        "root [1000 ms] failed: ValueError: no",
        '  input: {"q": "x"}',
        f"  output: {'y' * 199}…",
        "  chat gpt-x [12 ms] tokens 7 in, ? out",
        "    user: hello",
        '    assistant: hm, search({"q": "x"})',
    ]


def test_the_text_of_a_message_leaves_its_images_out() -> None:
    assert UserMessage((TextContent("a"), ImageContent("http://x/y.png"), TextContent("b"))).text == "ab"
