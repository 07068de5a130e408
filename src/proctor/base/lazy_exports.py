"""Names that a module imports only when they are first used, so that importing the module stays cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def late_names(
    module: dict[str, Any], homes: Mapping[str, str], *, within: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a module with these globals; `homes` tells which module under `within` has what.

    The names of one home are words; `Mine=Theirs` offers what is called `Theirs` there as `Mine`.
    """
    home_of: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for word in names.split():
            name, _, own_name = word.partition("=")
            home_of[name] = f"{within}.{home}", own_name or name

    def fetch(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        from importlib import import_module

        home, own_name = home_of[name]
        value = module[name] = getattr(import_module(home), own_name)
        return value

    return fetch, lambda: sorted(module["__all__"])
