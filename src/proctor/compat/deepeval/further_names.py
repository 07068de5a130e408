"""Smaller names of DeepEval: images, MCP calls and contestants as data, errors, and switches without an effect here."""

from __future__ import annotations

import base64
import copy
import enum
import mimetypes
import uuid
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlparse

from pydantic import AnyUrl, BaseModel

from proctor.compat.deepeval.metric_base import DeepEvalError, MissingTestCaseParamsError
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCallType, Turn

F = TypeVar("F", bound=Callable[..., Any])


class ContextWindowExceededError(DeepEvalError):
    """The prompt was longer than the model accepts."""


class MismatchedTestCaseInputsError(DeepEvalError):
    """Contestants have different inputs."""


class NoMetricsError(DeepEvalError):
    """There is nothing to measure with."""


class UserAppError(DeepEvalError):
    """The application under test raised an exception."""


class TestRunResultDisplay(enum.Enum):
    """Which test cases are printed."""

    __test__ = False

    ALL = "all"
    FAILING = "failing"
    PASSING = "passing"


@dataclass
class MLLMImage:
    """An image or a PDF. In a text it becomes a placeholder; a metric that meets one raises an error.

    `url` is an address or the path of a file. Otherwise, pass the content as `dataBase64`, with its `mimeType`.
    """

    dataBase64: str | None = None  # noqa: N815  DeepEval's name
    mimeType: str | None = None  # noqa: N815  DeepEval's name
    url: str | None = None
    local: bool | None = None
    filename: str | None = None
    _id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        if self.dataBase64 is not None:
            if self.mimeType is None:
                raise ValueError("MLLMImage: dataBase64 needs a mimeType, such as image/png")
            return
        if not self.url:
            raise ValueError("MLLMImage needs a url, or dataBase64 and mimeType")
        is_local = self.is_local_path(self.url)
        if self.local is not None and self.local != is_local:
            place = "local" if is_local else "remote"
            raise ValueError(f"MLLMImage: Local path mismatch: local={self.local}, and the url {self.url!r} is {place}")
        if not is_local and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"MLLMImage: {self.url!r} is neither a file nor an http address")
        self.local = is_local
        path = Path(self.url if is_local else urlparse(self.url).path)
        self.filename = path.name
        self.mimeType = mimetypes.guess_type(path.name)[0] or ("image/jpeg" if is_local else None)
        if is_local:
            self.dataBase64 = base64.b64encode(path.read_bytes()).decode("ascii")

    @staticmethod
    def is_local_path(url: str) -> bool:
        """Whether it is the path of a file that exists; an address such as `file:///x` is not."""
        return "://" not in url and Path(url).is_file()

    def __str__(self) -> str:
        kind = "PDF" if self.mimeType == "application/pdf" else "IMAGE"
        return f"[DEEPEVAL:{kind}:{self._id}]"

    __repr__ = __str__

    def __format__(self, format_spec: str) -> str:
        return str(self)


class MCPToolCall(BaseModel):
    """A call of an MCP tool."""

    name: str
    args: dict[str, Any]
    result: Any


class MCPPromptCall(BaseModel):
    """A prompt that was read from an MCP server."""

    name: str
    result: Any


class MCPResourceCall(BaseModel):
    """A resource that was read from an MCP server."""

    uri: AnyUrl
    result: Any


@dataclass
class MCPServer:
    """An MCP server that the agent may use."""

    server_name: str
    transport: Literal["stdio", "sse", "streamable-http"] | None = None
    available_tools: list[Any] | None = None
    available_resources: list[Any] | None = None
    available_prompts: list[Any] | None = None


def get_available_mcp_tool_names(mcp_servers: Iterable[MCPServer] | None) -> set[str]:
    """The names of the tools of some servers; tools without a name are left out."""
    tools = [tool for server in mcp_servers or () for tool in server.available_tools or ()]
    names = (tool.get("name") if isinstance(tool, dict) else getattr(tool, "name", None) for tool in tools)
    return {str(name) for name in names if name}


def process_mcp_servers(test_cases: Iterable[Any], mcp_servers: list[MCPServer] | None = None) -> None:
    """Mark the calls of MCP tools: those of the test case's own servers, or else of `mcp_servers`."""
    for case in test_cases:
        servers = case.mcp_servers or mcp_servers
        if not servers:
            continue
        case.mcp_servers = servers
        names = get_available_mcp_tool_names(servers)
        parts = case.turns if isinstance(case, ConversationalTestCase) else [case]
        calls = [getattr(part, name, None) or () for part in parts for name in ("tools_called", "expected_tools")]
        for call in (call for group in calls for call in group if call.name in names):
            call.type = ToolCallType.MCP


def get_unit_interactions(turns: Iterable[Turn]) -> list[list[Turn]]:
    """The exchanges of a conversation: messages of the user up to the last answer before the next message.

    Messages without an answer at the end are left out.
    """
    units: list[list[Turn]] = [[]]
    for turn in turns:
        is_asked = any(earlier.role == "user" for earlier in units[-1])
        if turn.role == "user" and is_asked and units[-1][-1].role == "assistant":
            units.append([])
        units[-1].append(turn)
    return [unit for unit in units if unit and unit[-1].role == "assistant" and len({turn.role for turn in unit}) == 2]


def check_llm_test_case_params(test_case: Any, test_case_params: Iterable[Any], *rest: Any, metric: Any = None) -> None:
    """Raise `MissingTestCaseParamsError` if the test case lacks one of the fields; the last argument is the metric."""
    metric = metric or next((item for item in reversed(rest) if item is not None), None)
    missing = [param.value for param in test_case_params if getattr(test_case, param.value, None) is None]
    if missing:
        name = getattr(metric, "__name__", "the metric")
        raise MissingTestCaseParamsError(f"{name} needs {' and '.join(missing)} in the test case")


def copy_metrics(metrics: Iterable[Any]) -> list[Any]:
    """Copies of metrics, because metrics store their results in themselves."""
    return [copy.copy(metric) for metric in metrics]


class TestRunManager:
    """DeepEval's manager of the upload; there is nothing to reset or to upload here."""

    __test__ = False

    def reset(self) -> None:
        """Nothing."""


global_test_run_manager = TestRunManager()


class Contestant(BaseModel):
    """One agent's test case in a comparison."""

    name: str
    test_case: LLMTestCase
    hyperparameters: dict[str, Any] | None = None


@dataclass
class ArenaTestCase:
    """Test cases of several agents for one input."""

    contestants: list[Contestant]
    multimodal: bool = False

    def __post_init__(self) -> None:
        if len(self.contestants) < 2:
            raise ValueError("An arena test case must have at least two contestants.")
        names = [contestant.name for contestant in self.contestants]
        if len(set(names)) != len(names):
            raise ValueError("All contestant names must be unique.")
        for field_name in ("input", "expected_output"):
            if len({getattr(contestant.test_case, field_name) for contestant in self.contestants}) > 1:
                raise ValueError(f"All contestants must have the same '{field_name}'.")


def log_hyperparameters(function: F | None = None, **hyperparameters: Any) -> Any:
    """Leave the decorated function as it is. Hyperparameters are not stored; name runs with `proctor test --name`."""
    return function if function is not None else lambda decorated: decorated


def on_test_run_end(function: F) -> F:
    """Warn that the function is not called: there is no such hook here."""
    warnings.warn(f"{function.__name__} is not called: on_test_run_end has no effect; use a pytest hook", stacklevel=2)
    return function


def login(*args: Any, **kwargs: Any) -> None:
    """Warn that there is nothing to log in to: results stay on this machine."""
    warnings.warn("deepeval.login has no effect: no account is needed, and results stay on this machine", stacklevel=2)


def flush_traces(*args: Any, **kwargs: Any) -> None:
    """Nothing: traces are recorded at once."""


async def a_flush_traces(*args: Any, **kwargs: Any) -> None:
    """Nothing: traces are recorded at once."""
