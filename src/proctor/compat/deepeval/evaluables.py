"""DeepEval's test cases as Proctor's evaluators see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.agents.agent import Reply, Usage
from proctor.agents.agent import ToolCall as Call
from proctor.base.json_data import UNSET, plain
from proctor.cases.suite import ExpectedCall, NamedData
from proctor.cases.suite import Turn as Asked
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from proctor.evaluators.evaluation import Evaluable, Exchange


def evaluable_of(case: Any) -> Evaluable:
    """What is to be evaluated of a test case; raises `TypeError` for anything else."""
    if isinstance(case, LLMTestCase):
        return _single(case)
    if isinstance(case, ConversationalTestCase):
        return _conversation(case)
    raise TypeError(f"a test case is an LLMTestCase or a ConversationalTestCase, not {type(case).__name__}")


def _single(case: LLMTestCase) -> Evaluable:
    calls = _calls(case.tools_called)
    reply = Reply(case.actual_output or "", tool_calls=calls)
    return Evaluable(
        eval_input=(NamedData("input", case.input),),
        eval_output=(NamedData("output", case.actual_output or ""),),
        expectation=UNSET if case.expected_output is None else case.expected_output,
        eval_metadata=plain({**(case.custom_column_key_values or {}), **(case.metadata or {})}) or None,
        description=case.name,
        tool_calls=calls,
        expected_tool_calls=_expected(case.expected_tools),
        context=None if case.context is None else tuple(case.context),
        retrieval_context=None if case.retrieval_context is None else tuple(case.retrieval_context),
        turns=(Exchange(Asked(case.input), reply),),
        usage=_usage(case),
        duration_ms=None if case.completion_time is None else case.completion_time * 1000,
    )


def _usage(case: LLMTestCase) -> Usage | None:
    usage = Usage(case.input_token_count, case.output_token_count, case.token_cost)
    return None if usage == Usage() else usage


def _conversation(case: ConversationalTestCase) -> Evaluable:
    exchanges = _exchanges(case.turns)
    told = {"scenario": case.scenario, "chatbot_role": case.chatbot_role, "user_description": case.user_description}
    metadata = {name: value for name, value in told.items() if value is not None} | plain(case.metadata or {})
    passages = [passage for turn in case.turns for passage in turn.retrieval_context or ()]
    return Evaluable(
        eval_input=(NamedData("input", [exchange.turn.input for exchange in exchanges]),),
        eval_output=(NamedData("output", exchanges[-1].reply.text if exchanges else ""),),
        expectation=UNSET if case.expected_outcome is None else case.expected_outcome,
        eval_metadata=metadata or None,
        description=case.name,
        tool_calls=tuple(call for exchange in exchanges for call in exchange.reply.tool_calls),
        context=None if case.context is None else tuple(case.context),
        retrieval_context=tuple(passages) or None,
        turns=tuple(exchanges),
    )


def _exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """What the user said up to each answer, and the answer; messages without an answer at the end are left out."""
    found: list[Exchange] = []
    asked: list[str] = []
    for turn in turns:
        if turn.role == "user":
            asked.append(turn.content)
            continue
        passages = None if turn.retrieval_context is None else tuple(turn.retrieval_context)
        reply = Reply(turn.content, _calls(turn.tools_called), retrieval_context=passages)
        found.append(Exchange(Asked("\n".join(asked), metadata=plain(turn.metadata or {})), reply))
        asked = []
    return found


def _calls(tools: Sequence[ToolCall] | None) -> tuple[Call, ...]:
    return tuple(Call(tool.name, plain(tool.input_parameters or {}), plain(tool.output)) for tool in tools or ())


def _expected(tools: Sequence[ToolCall] | None) -> tuple[ExpectedCall, ...] | None:
    """Parameters that are not given say nothing; those that are given are meant as they stand."""
    if tools is None:
        return None
    return tuple(
        ExpectedCall(
            tool.name,
            None if tool.input_parameters is None else _literal(tool.input_parameters),
            result=UNSET if tool.output is None else plain(tool.output),
        )
        for tool in tools
    )


def _literal(given: dict[str, Any]) -> dict[str, Any]:
    from proctor.cases.matchers import Equals

    return {name: Equals(plain(value)) for name, value in given.items()}
