"""Variables of the environment: `.env` files beside it, and `${NAME}` in texts; secrets stay out of what is kept."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.base.secrets import FILE_VALUES, is_secret_name
from proctor.base.source import Pointer

NAME = ".env"
LARGEST = 1_000_000
_LINE = r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*
    (?:'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\r\n]*))"""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

_lock = threading.Lock()
_holders: dict[str, int] = {}
"""How many contexts hold a variable that came from a file."""


def env_files(*folders: Path) -> list[Path]:
    """The `.env` files of these folders, as far as there are any; the first folder is the more particular one."""
    found = [folder / NAME for folder in folders]
    return [path for path in dict.fromkeys(path.resolve() for path in found) if path.is_file()]


@contextlib.contextmanager
def environment_from(files: Iterable[Path]) -> Iterator[None]:
    """The variables of files that the environment does not have, in it while the context lasts.

    The first file that has a variable wins. Contexts may overlap: a variable goes with the last of them. Nothing stays
    in the environment of the process, but values are remembered, to be masked wherever they turn up.
    """
    taken = _take(_read_all(files))
    try:
        yield
    finally:
        _give_back(taken)


def _read_all(files: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in files:
        for name, value in read_env_file(path).items():
            found.setdefault(name, value)
    return found


def _take(variables: Mapping[str, str]) -> list[str]:
    taken = []
    with _lock:
        for name, value in variables.items():
            if value:
                FILE_VALUES[name, value] = None
            if name not in os.environ:
                os.environ[name] = value
                _holders[name] = 0
            if name in _holders:
                _holders[name] += 1
                taken.append(name)
    return taken


def _give_back(taken: Iterable[str]) -> None:
    with _lock:
        for name in taken:
            _holders[name] -= 1
            if _holders[name] == 0:
                del _holders[name]
                os.environ.pop(name, None)


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file: `NAME=value`, in quotes or not, `export` before it or not, with `#` comments.

    `${OTHER}` stands for a variable of the environment or one that is further up, but not between single quotes.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path}: is larger than any file of variables")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    found: dict[str, str] = {}
    position = 0
    line = re.compile(_LINE, re.VERBOSE | re.DOTALL)
    while position < len(text):
        match = line.match(text, position)
        if match is not None:
            found[match["name"]] = _value(match, found)
            position = match.end()
        end = text.find("\n", position)
        position = len(text) if end < 0 else end + 1
    return {name: value for name, value in found.items() if "\x00" not in value}


def _value(match: re.Match[str], known: Mapping[str, str]) -> str:
    if match["literal"] is not None:
        return str(match["literal"])
    if match["quoted"] is not None:
        text = re.sub(r"\\(.)", lambda escape: _ESCAPED.get(escape[1], escape[1]), match["quoted"], flags=re.DOTALL)
    else:
        text = re.split(r"(?:^|\s)#", match["plain"], maxsplit=1)[0].strip()
    return _VARIABLE.sub(lambda named: os.environ.get(named[1], known.get(named[1], "")), text)


VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
CONCEALED = "***"
_DEEPEST = 150


def variables_in(text: str) -> list[str]:
    """The environment variables that `text` refers to as `${NAME}`."""
    return VARIABLE.findall(text)


def expand_with(text: str, value_of: Callable[[str], str | None]) -> str:
    """`text` with each `${NAME}` replaced by `value_of(NAME)`; where that is `None` it stays as it is written."""
    if "${" not in text:
        return text

    def replaced(found: re.Match[str]) -> str:
        value = value_of(found.group(1))
        return found.group() if value is None else value

    return VARIABLE.sub(replaced, text)


def expand(text: str, key: str) -> str:
    """`text` with each `${NAME}` replaced by that variable; raises `UsageError` that names `key` if it is not set."""

    def value(name: str) -> str:
        found = os.environ.get(name)
        if found is None:
            raise UsageError(f"{key} {unset(name)}")
        return found

    return expand_with(text, value)


def unset(name: str) -> str:
    """What is said of a value that uses a variable which is not there."""
    return f"uses ${{{name}}}, which is not set in the environment"


def substitute(
    document: Document,
    data: Json,
    *,
    conceals: Callable[[Pointer], bool],
    environment: Mapping[str, str] | None = None,
) -> Json:
    """`data` with its variables filled in; one that is not set is a problem.

    Below a place that `conceals`, secrets are never filled in: `${API_KEY}` stays as it is written, so that it can be
    looked up when it is needed, and a secret written out becomes `***`.
    """
    filling = _Filling(document, conceals, os.environ if environment is None else environment)
    return filling.value(data, (), secret=False)


class _Filling:
    def __init__(self, document: Document, conceals: Callable[[Pointer], bool], environment: Mapping[str, str]) -> None:
        self._document = document
        self._conceals = conceals
        self._environment = environment
        self._done: dict[tuple[int, bool, bool], Json] = {}
        self._open: set[int] = set()

    def value(self, value: Json, pointer: Pointer, *, secret: bool) -> Json:
        """`secret`: it stands under a key whose name says so."""
        if isinstance(value, str):
            return self._text(value, pointer, secret)
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                self._document.problem(pointer, "must be a finite number")
            return value
        if not isinstance(value, (dict, list)):
            self._document.problem(pointer, f"must be plain data, not {type(value).__name__}")
            return None
        return self._container(value, pointer, secret)

    def _container(self, value: dict[str, Json] | list[Json], pointer: Pointer, secret: bool) -> Json:
        """YAML's aliases may share a value many times over, or put it inside itself; each is walked once."""
        key = (id(value), secret, self._conceals(pointer))
        if key in self._done:
            return self._done[key]
        if id(value) in self._open or len(pointer) > _DEEPEST:
            self._document.problem(pointer[:_DEEPEST], "is nested too deeply, or inside itself")
            return None
        self._open.add(id(value))
        if isinstance(value, dict):
            filled: Json = {
                name: self.value(item, (*pointer, name), secret=is_secret_name(name, wide=True))
                for name, item in value.items()
            }
        else:
            filled = [self.value(item, (*pointer, index), secret=secret) for index, item in enumerate(value)]
        self._open.discard(id(value))
        self._done[key] = filled
        return filled

    def _text(self, text: str, pointer: Pointer, secret: bool) -> str:
        conceals = self._conceals(pointer)
        if conceals and secret:
            return text if not text or VARIABLE.search(text) else CONCEALED
        return expand_with(text, lambda name: self._variable(name, pointer, conceals))

    def _variable(self, name: str, pointer: Pointer, conceals: bool) -> str | None:
        if conceals and is_secret_name(name, wide=True):
            return None
        if name not in self._environment:
            self._document.problem(pointer, unset(name))
        return self._environment.get(name, "")


def conceal(name: str, value: Json) -> Json:
    """A value under `name` as it may be shown: of a secret, the variable that holds it and nothing else."""
    if not is_secret_name(name, wide=True) or not isinstance(value, str) or not value or VARIABLE.fullmatch(value):
        return value
    return CONCEALED
