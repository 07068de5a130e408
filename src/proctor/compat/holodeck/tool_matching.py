"""HoloDeck's functions that compare tool calls with expected ones, for programs that call them directly.

A run uses `ExpectedTools`. These functions use the same matchers, so they agree with it about each argument.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Literal

from proctor.base.json_data import to_json
from proctor.cases.matchers import Equals, Fuzzy, accepts
from proctor.compat.holodeck.arg_matchers import ArgMatcher, FuzzyMatcher, LiteralMatcher
from proctor.compat.holodeck.backends import paired_calls
from proctor.compat.holodeck.eval_kwargs import tool_name_matches
from proctor.compat.holodeck.grader import invocation
from proctor.compat.holodeck.models import ExpectedTool
from proctor.compat.holodeck.test_results import UNMATCHED, ToolInvocation

NO_RESULT = "no result received"


def match_literal(expected: Any, actual: Any) -> bool:
    return accepts(Equals(to_json(expected)), to_json(actual))


def match_fuzzy(pattern: str, actual: Any) -> bool:
    return accepts(Fuzzy(pattern), str(actual))


def match_regex(compiled: re.Pattern[str], actual: Any) -> bool:
    return compiled.fullmatch(str(actual)) is not None


def match_arg(matcher: ArgMatcher, actual: Any) -> tuple[bool, str | None]:
    """Whether an argument matches, and if not, why."""
    if isinstance(matcher, LiteralMatcher):
        is_match, expected = match_literal(matcher.value, actual), repr(matcher.value)
    elif isinstance(matcher, FuzzyMatcher):
        is_match, expected = match_fuzzy(matcher.pattern, actual), f"about {matcher.pattern!r}"
    else:
        is_match, expected = match_regex(matcher.compiled, actual), f"a match of {matcher.compiled.pattern!r}"
    return is_match, None if is_match else f"expected {expected}, got {actual!r}"


def find_matching_call(invocations: Sequence[ToolInvocation], expected_tool: ExpectedTool) -> tuple[int, str | None]:
    """The index of the first call with the expected name and arguments, or -1 and the reason."""
    reason: str | None = f"no call to {expected_tool.name!r} found"
    for index, call in enumerate(invocations):
        if not tool_name_matches(expected_tool.name, call.name):
            continue
        reason = _wrong_argument(expected_tool, call)
        if reason is None:
            return index, None
    return UNMATCHED, reason


def evaluate_expected_tools(
    expected: Sequence[str | ExpectedTool], invocations: Sequence[ToolInvocation]
) -> tuple[bool, list[dict[str, Any]]]:
    """Whether every expected tool with arguments or a count was called often enough, with one record for each.

    Plain names are left to `validate_tool_calls`.
    """
    details = []
    for tool in expected:
        if isinstance(tool, str) or (tool.args is None and tool.count == 1):
            continue
        matching = [
            index
            for index, call in enumerate(invocations)
            if tool_name_matches(tool.name, call.name) and _wrong_argument(tool, call) is None
        ]
        reason = None
        if len(matching) < tool.count:
            reason = find_matching_call(invocations, tool)[1]
            reason = reason or f"expected {tool.count} matching call(s), got {len(matching)}"
        details.append(
            {
                "expected_tool": tool.name,
                "args_asserted": tool.model_dump()["args"] or {},
                "matched_call_index": matching[0] if reason is None else UNMATCHED,
                "unmatched_reason": reason,
            }
        )
    return all(item["unmatched_reason"] is None for item in details), details


def _wrong_argument(expected: ExpectedTool, call: ToolInvocation) -> str | None:
    """What is wrong with the first argument that is not as expected, or None."""
    for name, value in (expected.args or {}).items():
        if name not in call.args:
            return f"arg {name!r} missing"
        is_match, reason = match_arg(value, call.args[name])
        if not is_match:
            return f"arg {name!r} mismatch: {reason}"
    return None


def pair_tool_calls(
    tool_calls: Sequence[dict[str, Any]],
    tool_results: Sequence[dict[str, Any]],
    backend_kind: Literal["sk", "claude"] = "claude",
) -> list[ToolInvocation]:
    """Each call with its result, found by `call_id`, or else by name in their order, whatever the backend."""
    calls, left = paired_calls(tool_calls, tool_results)
    for result in left:
        logging.getLogger(__name__).warning("the result of %r has no call", result.get("call_id", result.get("name")))
    return [
        invocation(call).model_copy(update={"error": call.error if has_result else NO_RESULT})
        for call, has_result in calls
    ]
