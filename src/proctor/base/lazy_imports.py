"""Names that a package imports when they are first used (PEP 562), so that importing the package itself stays cheap.

The names stand once, in the package's `__init__.pyi`, one import for each module that defines some of them:

    from proctor.agents.agent import Agent as Agent, Reply as Reply

Type checkers read that file as it is. At run time the same lines say which module to import for a name. A table of
names in `__init__.py` would be a second list beside the imports that type checkers need, and `__all__` a third.
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
    """The module of each name that the stub beside `file` (a package's `__init__.py`) imports, in its order.

    `from module import *` is for type checkers alone, and so are imports from the package `without`: what they stand
    for is known from elsewhere.
    """
    stub = Path(file).with_suffix(".pyi")
    imports = [node for node in parse_python(stub).body if isinstance(node, ast.ImportFrom)]
    if without:
        imports = [node for node in imports if not f"{node.module}.".startswith(f"{without}.")]
    return {alias.name: str(node.module) for node in imports for alias in node.names if alias.name != "*"}


def lazy_names(
    package: dict[str, Any],
    place_of: Mapping[str, str],
    *,
    more: Callable[[], Mapping[str, str]] = dict,
    renamed: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package with these globals, whose names are at these places.

    A place is a module, or `module:name` for a thing that has another name there. `more` finds further names, and is
    called only if a name is not in `place_of` or all are wanted (`__all__`). `renamed` maps former names to the ones of
    today: they still work, with a `DeprecationWarning`, and are not listed.
    """

    def get(name: str) -> Any:
        if name == "__all__":
            return [*place_of, *(other for other in more() if other not in place_of)]
        if renamed and name in renamed:
            warnings.warn(f"{name} is now called {renamed[name]}", DeprecationWarning, stacklevel=2)
            name = renamed[name]
        # Python itself looks for names such as `__path__`, which are nobody's.
        place = place_of.get(name) or (None if name.startswith("__") else more().get(name))
        if place is None:
            likely = [] if name.startswith("__") else difflib.get_close_matches(name, [*place_of, *more()], n=1)
            hint = f"; did you mean {likely[0]!r}?" if likely else ""
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}{hint}")
        module, _, attribute = place.partition(":")
        value = package[name] = getattr(importlib.import_module(module), attribute or name)
        return value

    return get, lambda: sorted({*place_of, *more()})
