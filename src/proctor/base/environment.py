"""Variables of the environment: `.env` files, and `${NAME}` in texts."""

from __future__ import annotations

import contextlib
import io
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from dotenv import dotenv_values

from proctor.base.errors import UsageError
from proctor.base.masking import add_env_file_value

NAME = ".env"
MAX_ENV_FILE_BYTES = 1_000_000
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")

_lock = threading.Lock()
_holders: dict[str, int] = {}
"""How many contexts use a variable that came from a file."""


def env_files(*folders: Path) -> list[Path]:
    """The `.env` files of these folders that exist. The folder that matters most comes first."""
    found = [folder / NAME for folder in folders]
    return [path for path in dict.fromkeys(path.resolve() for path in found) if path.is_file()]


@contextlib.contextmanager
def environment_from(files: Iterable[Path]) -> Iterator[None]:
    """Set the variables of files that the environment does not have, for as long as the context lasts.

    The first file that has a variable wins. Contexts may overlap: a variable is removed by the last of them. Nothing
    stays in the environment of the process, but secrets are remembered, so that they are masked wherever they turn up.
    """
    names = _set(_read_all(files))
    try:
        yield
    finally:
        _unset(names)


def _read_all(files: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in files:
        for name, value in read_env_file(path).items():
            found.setdefault(name, value)
    return found


def _set(variables: Mapping[str, str]) -> list[str]:
    names = []
    with _lock:
        for name, value in variables.items():
            add_env_file_value(name, value)
            if name not in os.environ:
                os.environ[name] = value
                _holders[name] = 0
            if name in _holders:
                _holders[name] += 1
                names.append(name)
    return names


def _unset(names: Iterable[str]) -> None:
    with _lock:
        for name in names:
            _holders[name] -= 1
            if _holders[name] == 0:
                del _holders[name]
                os.environ.pop(name, None)


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a `.env` file, as `python-dotenv` reads it; lines that are not assignments are skipped."""
    try:
        if path.stat().st_size > MAX_ENV_FILE_BYTES:
            raise UsageError(f"{path}: is larger than any file of variables")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    variables = dotenv_values(stream=io.StringIO(text))
    return {
        name: value
        for name, value in variables.items()
        if value is not None and _NAME.fullmatch(name) and "\x00" not in value
    }


def variables_in(text: str) -> list[str]:
    """The environment variables that `text` refers to as `${NAME}`."""
    return VARIABLE.findall(text)


def expand_with(text: str, value_of: Callable[[str], str | None]) -> str:
    """`text` with each `${NAME}` replaced by `value_of(NAME)`; if that is `None`, it stays as it is written."""
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
    """The problem with a value that uses a variable which is not set."""
    return f"uses ${{{name}}}, which is not set in the environment"
