"""Names that a package imports when they are first used (PEP 562), so that importing the package itself stays cheap.

The names are listed once, in the package's `__init__.pyi`, with one import for each module that defines some of them:

    from proctor.agents.agent import Agent as Agent, Reply as Reply

Type checkers read that file directly. At run time the same lines say which module to import for a name. A table of
names in `__init__.py` would be a second list, next to the imports that type checkers need, and `__all__` a third.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proctor.base.python_source import parse_python


def names_in_stub(file: str, *, without: str = "") -> dict[str, str]:
    """The module of each name that the stub next to `file` (a package's `__init__.py`) imports, in order.

    `from module import *` is skipped, and so are imports from the package `without`: these lines are only for type
    checkers.
    """
    stub = Path(file).with_suffix(".pyi")
    imports = [node for node in parse_python(stub).body if isinstance(node, ast.ImportFrom)]
    if without:
        imports = [node for node in imports if not f"{node.module}.".startswith(f"{without}.")]
    return {alias.name: str(node.module) for node in imports for alias in node.names if alias.name != "*"}


def lazy_names(
    package: dict[str, Any],
    locations: Mapping[str, str],
    *,
    more: Callable[[], Mapping[str, str]] = dict,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package with these globals, whose names are at these locations.

    A location is a module, or `module:name` for a thing that has another name there. `more` returns further names. It
    is called only if a name is not in `locations`, or to list all names (`__all__`). `renamed` maps old names to new
    ones: the old ones still work, with a `DeprecationWarning`, and are not listed.
    """

    def get(name: str) -> Any:
        if name == "__all__":
            return [*locations, *(other for other in more() if other not in locations)]
        if renamed and name in renamed:
            warnings.warn(f"{name} is now called {renamed[name]}", DeprecationWarning, stacklevel=2)
            name = renamed[name]
        # Python itself looks for names such as `__path__`, which no module defines.
        location = locations.get(name) or (None if name.startswith("__") else more().get(name))
        if location is None:
            similar = [] if name.startswith("__") else difflib.get_close_matches(name, [*locations, *more()], n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}{hint}")
        module, _, attribute = location.partition(":")
        value = package[name] = getattr(importlib.import_module(module), attribute or name)
        return value

    return get, lambda: sorted({*locations, *more()})
