"""Finds the lines of a list of cases in a Python file, such as `TEST_CASES`.

The list itself comes from the module, which may build it in any way. Lines are known only if it is written as one list
literal: then the n-th case is the n-th element of that literal.
"""

from __future__ import annotations

import ast
from pathlib import Path

from proctor.base.positions import Lines, LineTree, line_at
from proctor.base.python_source import parse_python


def lines_in_module(path: Path, name: str, length: int) -> Lines:
    """A function from pointers, which begin with `name`, to the lines of the values in that list of a module."""
    try:
        module = parse_python(path)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return lambda pointer: None
    values = [value for statement in module.body if (value := _value_of(statement, name)) is not None]
    if not values:
        return lambda pointer: None
    line, inside = _place(values[-1])
    is_literal = isinstance(inside, list) and len(inside) == length
    root: LineTree = (line, {name: (line, inside if is_literal else None)})
    return lambda pointer: line_at(root, pointer)


def _value_of(statement: ast.stmt, name: str) -> ast.expr | None:
    """The value that a statement assigns to `name`, or `None`."""
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        return None
    return statement.value if any(isinstance(item, ast.Name) and item.id == name for item in targets) else None


def _place(node: ast.expr) -> LineTree:
    """The lines of an expression and of the values in it; a list with `*more` in it has no lines for its values."""
    if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(item, ast.Starred) for item in node.elts):
        return node.lineno, [_place(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        members: dict[str, LineTree] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                members[key.value] = (key.lineno, _place(value)[1])
        return node.lineno, members
    return node.lineno, None
