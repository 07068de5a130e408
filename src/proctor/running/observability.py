"""What Proctor will observe of an agent: its model calls, tool calls and tokens, and what would make them visible.

For `proctor doctor`, which runs no code: the imports and marked tools of Python code are read from its source, also of
the modules next to it that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent
from proctor.agents.command_agent import CommandAgent
from proctor.agents.frameworks import FrameworkAgent, adapters
from proctor.agents.http_agent import HttpAgent
from proctor.agents.resolve import check_agent, is_python_reference, resolve_agent
from proctor.agents.served_agent import ServedAgent
from proctor.base.json_data import Json
from proctor.base.references import locate
from proctor.tracing.hidden_calls import MARK_TOOLS
from proctor.tracing.instrumentation import CLIENTS, FRAMEWORKS, SELF_INSTRUMENTED, install_advice
from proctor.tracing.model_requests import CLIENT_MODULES

_MAX_FILES = 200
"""Of a large application, only this many files are read."""
_RECORDED_FUNCTIONS = "google.genai"
"""The client that calls Python functions itself, which are recorded without any mark."""


@dataclass(frozen=True, slots=True)
class Observability:
    """What is observed of an agent, in words."""

    model_calls: str
    tool_calls: str
    tokens: str

    def to_json(self) -> dict[str, Json]:
        return {"model calls": self.model_calls, "tool calls": self.tool_calls, "tokens": self.tokens}


def observability(reference: Any, base: Path | None, *, load: bool = False) -> Observability:
    """What Proctor will see of the agent at `reference`; raises `UsageError` if the agent does not exist.

    Only if `load` is set is the agent's code imported: then it is known whether it is an agent of a framework.
    """
    agent = resolve_agent(reference, base) if load else check_agent(reference, base)
    if isinstance(agent, (HttpAgent, CommandAgent, ServedAgent)):
        return _of_other_process(agent)
    if isinstance(agent, FrameworkAgent):
        return Observability(*[f"observed, by the adapter for {agent.adapter.title}"] * 3)
    if agent is not None and agent.reports_all_tool_calls:
        return Observability(*["observed"] * 3)
    return _of_source(_Source.read(_file_of(reference, base)))


def _of_other_process(agent: BaseAgent) -> Observability:
    path = agent.options.tool_calls if isinstance(agent, HttpAgent) else None
    where = "`tool_calls`" if path is None else path.text
    return Observability(
        "not observed: they happen in another process",
        f"those that each reply has in {where}, which is [] for none",
        "those that each reply has in `usage`",
    )


def _file_of(reference: Any, base: Path | None) -> Path | None:
    if isinstance(reference, Mapping):
        reference = reference.get("python")
    if not isinstance(reference, str) or not is_python_reference(reference.strip()):
        return None
    return locate(reference.strip().removesuffix("()"), base)


@dataclass(frozen=True, slots=True)
class _Source:
    """What the source code of an agent says about it."""

    modules: frozenset[str]
    """The known clients and frameworks that it imports."""
    marked: tuple[str, ...]
    """The functions that are marked with `@proctor.tool`."""

    @classmethod
    def read(cls, path: Path | None) -> _Source:
        known = {*CLIENT_MODULES, *CLIENTS, *FRAMEWORKS, *SELF_INSTRUMENTED}
        modules: set[str] = set()
        marked: dict[str, None] = {}
        waiting, visited = [] if path is None else [path], set[Path]()
        while waiting and len(visited) < _MAX_FILES:
            file = waiting.pop()
            visited.add(file)
            try:
                tree = ast.parse(file.read_bytes())
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
            for name in _imports(tree):
                parents = {name[: at if at >= 0 else None] for at in (-1, *_dots(name))}
                modules |= known & parents
                local = (file.parent / Path(*name.split("."))).with_suffix(".py")
                if local.is_file() and local not in visited:
                    waiting.append(local)
            marked |= dict.fromkeys(_marked_functions(tree))
        return cls(frozenset(modules), tuple(marked))


def _dots(name: str) -> Iterable[int]:
    return (index for index, character in enumerate(name) if character == ".")


def _imports(tree: ast.AST) -> Iterable[str]:
    """The modules that code imports, anywhere in it; `from a import b` may import the module `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{node.module}." if node.module else ""
            if node.module:
                yield node.module
            yield from (prefix + alias.name for alias in node.names)


def _marked_functions(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
            names = [ast.unparse(decorator) for decorator in decorators]
            if any(name in ("tool", "proctor.tool") for name in names):
                yield node.name


def _of_source(source: _Source) -> Observability:
    clients = sorted(source.modules & {*CLIENT_MODULES, *CLIENTS})
    observed = [name for name in clients if name in CLIENTS and not install_advice(name)]
    hidden = [name for name in clients if name not in observed]
    parts = [f"observed through {', '.join(observed)}"] if observed else []
    parts += [f"not observed through {', '.join(hidden)}"] if hidden else []
    frameworks = sorted(source.modules - set(clients))
    parts += [_framework_text(name) for name in frameworks if not clients]
    models = "; ".join(parts) or "no client of a model was found in the source"
    advice = install_advice(*hidden)
    return Observability(
        f"{models}: {advice}" if advice else models,
        _tool_calls_text(source, observed, hidden),
        f"{models}, but the agent may return its usage" if hidden else models,
    )


def _framework_text(module: str) -> str:
    title = next((adapter.title for adapter in adapters() if module in adapter.modules), "")
    return f"observed if the agent of {title} itself is named, not a function" if title else f"unknown for {module}"


def _tool_calls_text(source: _Source, observed: list[str], hidden: list[str]) -> str:
    parts = []
    if source.marked:
        parts.append(f"observed: {', '.join(source.marked)} (marked with @proctor.tool)")
    if observed:
        parts.append(f"observed through {', '.join(observed)}")
    if _RECORDED_FUNCTIONS in hidden:
        parts.append(f"observed for functions that {_RECORDED_FUNCTIONS} calls itself")
    if hidden and not source.marked:
        advice = install_advice(*hidden)
        parts.append(f"otherwise not observed: {f'{advice}, or ' if advice else ''}{MARK_TOOLS}")
    elif not parts:
        parts.append(f"not observed: {MARK_TOOLS}, or return them with the answer")
    return "; ".join(parts).removeprefix("otherwise ")
