"""Objects that are not agents: of frameworks without an adapter, and of classes that nobody knows.

Some of them can be called, but not with a question, or they keep their conversation on the object, so that trials would
share it. The message shows the function to write instead. `docs/other-frameworks.md` has a whole example for each
framework, which `nox -s other_framework` runs with the real packages.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class OtherFramework:
    """A framework whose agents are tested through a function."""

    title: str
    modules: tuple[str, ...]
    wrapper: str
    """The function to write; `{name}` stands for the object."""


FRAMEWORKS = (
    OtherFramework(
        "AutoGen",
        ("autogen_agentchat", "autogen_core", "autogen_ext"),
        "async def agent(question):\n"
        "    result = await {name}.run(task=question)\n"
        "    return result.messages[-1].content",
    ),
    OtherFramework(
        "Microsoft Agent Framework",
        ("agent_framework", "agent_framework_openai"),
        "async def agent(question):\n    return (await {name}.run(question)).text",
    ),
    OtherFramework(
        "Haystack",
        ("haystack",),
        "def agent(question):\n"
        "    result = {name}.run(messages=[ChatMessage.from_user(question)])\n"
        '    return result["last_message"].text',
    ),
    OtherFramework(
        "CrewAI",
        ("crewai",),
        'def agent(question):\n    return {name}.kickoff(inputs={{"question": question}}).raw',
    ),
    OtherFramework(
        "Strands Agents",
        ("strands",),
        "async def agent(question):\n    return str(await {name}.invoke_async(question))",
    ),
    OtherFramework(
        "DSPy",
        ("dspy",),
        "async def agent(question):\n    return (await {name}.acall(question=question)).answer",
    ),
)

_METHODS = (
    *("arun", "ainvoke", "run_async", "invoke_async", "run", "invoke", "kickoff", "chat", "ask", "query"),
    *("generate", "complete", "predict", "answer", "respond", "execute", "call"),
)
"""Methods with which an object might be asked, in the order in which they are proposed."""


def framework_of(target: Any) -> OtherFramework | None:
    """The framework without an adapter that defines the class of this object; a subclass of the user's is not meant."""
    module = _module(target)
    roots = ((framework, root) for framework in FRAMEWORKS for root in framework.modules)
    return next((framework for framework, root in roots if module == root or module.startswith(f"{root}.")), None)


def wrapper_advice(target: Any, name: str = "") -> str:
    """What the object is and the function that makes an agent of it, for an object that is not one.

    `name` is the reference to it, such as `app.py:desk`.
    """
    kind = target if isinstance(target, type) else type(target)
    what = f"{'the class' if isinstance(target, type) else 'an object of the class'} {kind.__name__}"
    own_name = name.rpartition(":")[2] or "it"
    own_name = own_name.partition("(")[0] if own_name.partition("(")[0].replace(".", "_").isidentifier() else "it"
    framework = framework_of(target)
    if framework is not None:
        return (
            f"{what} of {framework.title}, which has no adapter. Write a function that asks it, and name the function:"
            f"\n\n{_indented(framework.wrapper.format(name=own_name))}\n\n"
            f"docs/other-frameworks.md has a whole example, with tool calls and one object per conversation"
        )
    return (
        f"{what} from {_origin(target)}, which Proctor does not know. Write a function that asks it, and name the "
        f"function:\n\n{_indented(_general_wrapper(target, own_name))}\n"
    )


def _general_wrapper(target: Any, name: str) -> str:
    method = next((item for item in _METHODS if callable(getattr(target, item, None))), None)
    name = f"{name}()" if isinstance(target, type) else name
    if method is None:
        return f"def agent(question):\n    return {name}.ask(question)  # whatever returns the answer as text"
    if inspect.iscoroutinefunction(getattr(target, method)):
        return f"async def agent(question):\n    return await {name}.{method}(question)"
    return f"def agent(question):\n    return {name}.{method}(question)"


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())


def _origin(target: Any) -> str:
    """Where the class of an object is defined: a module, or the file if it was loaded by its path."""
    module = _module(target)
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).name if file and module.startswith("_proctor_") else f"the module {module}"


def _module(target: Any) -> str:
    kind = target if isinstance(target, type) else type(target)
    return str(getattr(kind, "__module__", ""))
