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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proctor.base.python_source import parse_python


def names_in_stub(file: str) -> dict[str, str]:
    """The module of each name that the stub beside `file` (a package's `__init__.py`) imports, in its order."""
    stub = Path(file).with_suffix(".pyi")
    imports = [node for node in parse_python(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def lazy_names(
    package: dict[str, Any], module_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package with these globals, whose names are defined by these modules."""

    def get(name: str) -> Any:
        if name not in module_of:
            likely = difflib.get_close_matches(name, module_of, n=1)
            hint = f"; did you mean {likely[0]!r}?" if likely and not name.startswith("__") else ""
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}{hint}")
        value = package[name] = getattr(importlib.import_module(module_of[name]), name)
        return value

    return get, lambda: sorted(module_of)
