"""Names of another tool that can be imported but not used.

A test module imports many names and uses some of them. If one is missing, no test of the module runs. So a name that
Proctor does not replace is a class that can be imported, named in annotations and subclassed. Using it, by a call or by
an attribute, raises an error that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from proctor.base.errors import UsageError


class _Unavailable(type):
    """The type of such names."""

    reason: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(cls.reason)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(cls.reason)

    def __repr__(cls) -> str:
        return f"<{cls.__name__}, which is not available: {cls.reason}>"


def unavailable_names(module: str, groups: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` for a module of such names.

    `groups` maps a reason to the names that it holds for. The message is the name, a space and the reason.
    """
    reasons = {name: reason for reason, names in groups.items() for name in names.split()}
    classes: dict[str, type] = {}

    def get(name: str) -> Any:
        if name not in reasons:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in classes:
            bases = (Exception,) if name.endswith("Error") else ()
            body = {"reason": f"{name} {reasons[name]}", "__module__": module, "__test__": False}
            # An `except` clause accepts exceptions only, so the errors among these names are real ones.
            classes[name] = type(name, bases, body) if bases else _Unavailable(name, (), body)
        return classes[name]

    return list(reasons), get
