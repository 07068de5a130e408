"""Records the functions that google-genai calls itself, as if they were marked with `@proctor.tool`.

With automatic function calling, an application passes Python functions as tools, and the client calls those that the
model asks for, until the model answers. An instrumentation of the client reports one model call and its final answer.
Models, chats and their async twins all look the functions up in the table that `get_function_map` returns; the obvious
place, the arguments of `generate_content`, is not enough, because a chat has the functions in its own settings.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from proctor.agents.tools import TOOL_ATTRIBUTE
from proctor.agents.trial_context import current_turn
from proctor.tracing.patching import patch
from proctor.tracing.tool import recording_wrapper

MODULE = "google.genai._extra_utils"
_PATCH_MARK = "__proctor_records_functions__"


def record_functions(module: ModuleType) -> None:
    """Record the functions that google-genai calls from now on; `module` is the one that is named `MODULE`."""
    if hasattr(module, "get_function_map"):
        patch(module, "get_function_map", _with_recorded_functions, _PATCH_MARK)


def _with_recorded_functions(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def get_function_map(*args: Any, **kwargs: Any) -> dict[str, Any]:
        functions, turn = original(*args, **kwargs), current_turn()
        if turn is None:
            return functions
        plain = {name for name, function in functions.items() if _is_plain_function(function)}
        turn.recorded_tools.update(plain)
        return {
            name: recording_wrapper(function, name) if name in plain else function
            for name, function in functions.items()
        }

    return get_function_map


def _is_plain_function(tool: Any) -> bool:
    """Whether it is a function or method, and not recorded yet; a tool of an MCP server is neither."""
    return callable(tool) and hasattr(tool, "__name__") and not hasattr(tool, TOOL_ATTRIBUTE)
