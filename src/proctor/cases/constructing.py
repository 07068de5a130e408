"""What the constructors of `Case`, `Suite` and their parts do with text, lists, mappings and objects: they read them.

A constructor that gets values in their final form, as readers of files and `dataclasses.replace` pass them, only stores
them. Anything else goes through the reader of the native format, as if it stood in a file: one parser and one set of
checks. A problem is raised at once, so that the traceback ends in the line that made it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from proctor.base.documents import Document, did_you_mean
from proctor.base.errors import InvalidSuite, Problem, is_user_file
from proctor.base.json_data import to_text
from proctor.base.positions import Pointer, Position, pointer_text
from proctor.base.source import Pointer as SourcePointer

P = ParamSpec("P")
T = TypeVar("T")
EXPECTED_PARTS = ("output", "contains", "tools", "context")
MAX_SUBJECT = 40
"""How many characters of an input a message quotes."""


class PythonDocument(Document):
    """Arguments that are being read. A problem is said without file and line, which the traceback shows."""

    is_python = True

    def __init__(self, data: Any, position: Position | None = None) -> None:
        path = Path("python") if position is None else position.path
        line = None if position is None else position.line
        super().__init__(path, "", data, lambda pointer: line)
        self._position = position

    def position(self, pointer: Pointer) -> Any:
        """The line of the call; `None` if it is not in a file."""
        return self._position

    def unknown_key(self, pointer: Pointer, hint: str) -> None:
        owner = f"{pointer_text(pointer[:-1])} has" if pointer[:-1] else "there is"
        self.problems.append(Problem(f"{owner} no key {str(pointer[-1])!r}{hint}", code="unknown key"))

    def _at(self, pointer: SourcePointer, message: str) -> Problem:
        return Problem(message, where=pointer_text(pointer))

    def raise_problems(self, subject: str) -> None:
        """Raise one `InvalidSuite` with every problem; each begins with what was called: `Case('q')`."""
        if self.problems:
            raise InvalidSuite([Problem(f"{subject}: {problem}", code=problem.code) for problem in self.problems])


def subject_of(kind: str, value: Any) -> str:
    """How a message calls an object that is being made: `Case('Where is my order?')`."""
    return f"{kind}({to_text(value, MAX_SUBJECT)!r})" if isinstance(value, str) else f"{kind}()"


def caller() -> Position | None:
    """The line of the user's code that is being executed; `None` for a cell of a notebook, which is not a file."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        name = frame.f_globals.get("__name__", "")
        if not name.startswith("proctor.") and name != "dataclasses":
            path = _path_in_messages(file)
            return None if path is None else Position(path, frame.f_lineno)
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=256)
def _path_in_messages(file: str) -> Path | None:
    """The path of a file of the user's, from the working folder if it is below it; `None` for anything else."""
    if "ipykernel" in file or not is_user_file(file):
        return None
    path = Path(file)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def plain(value: Any) -> Any:
    """A value with lists for tuples and dictionaries for other mappings, at any depth, as the reader expects them."""
    if type(value) in (str, int, float, bool) or value is None:
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [plain(item) for item in value]
    if isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "items") and not isinstance(value, type)):
        return {key: plain(item) for key, item in value.items()}
    return value


def checked_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """A decorator: a missing or unknown argument is a `TypeError` that says what to write."""
    parameters = inspect.signature(function).parameters.values()
    known = frozenset(parameter.name for parameter in parameters)
    required = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> T:
        if not known.issuperset(named):
            unknown = next(key for key in named if key not in known)
            is_part = "expected" in known and unknown in EXPECTED_PARTS
            hint = did_you_mean(unknown, sorted(known - {"self"}))
            hint = f'; write expected={{"{unknown}": ...}}' if is_part else hint
            raise TypeError(f"{name}() has no argument {unknown!r}{hint}")
        missing = next((key for key in required[len(args) :] if key not in named), None)
        if missing is not None:
            raise TypeError(f"{name}() needs {missing!r}")
        return function(*args, **named)

    return call
