"""Environment variables: reads `.env` files, and replaces `${NAME}` in texts."""

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

ENV_FILE_NAME = ".env"
MAX_ENV_FILE_BYTES = 1_000_000
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")

_lock = threading.Lock()
_use_counts: dict[str, int] = {}
"""How many contexts use each variable that came from a file."""


def env_files(*folders: Path) -> list[Path]:
    """The `.env` files of these folders that exist. The order stays: the first file with a variable wins."""
    paths = [(folder / ENV_FILE_NAME).resolve() for folder in folders]
    return [path for path in dict.fromkeys(paths) if path.is_file()]


@contextlib.contextmanager
def environment_from(files: Iterable[Path], variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Set variables and those of files that the environment does not have, for as long as the context lasts.

    The first file that has a variable wins. Contexts may overlap: a variable is removed by the last of them. Nothing
    stays in the environment of the process, but secrets are remembered, so that they are masked wherever they turn up.
    """
    names = _set({**_read_all(files), **(variables or {})})
    try:
        yield
    finally:
        _unset(names)


def _read_all(files: Iterable[Path]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for path in files:
        for name, value in read_env_file(path).items():
            variables.setdefault(name, value)
    return variables


def _set(variables: Mapping[str, str]) -> list[str]:
    names = []
    with _lock:
        for name, value in variables.items():
            add_env_file_value(name, value)
            if name not in os.environ:
                os.environ[name] = value
                _use_counts[name] = 0
            if name in _use_counts:
                _use_counts[name] += 1
                names.append(name)
    return names


def _unset(names: Iterable[str]) -> None:
    with _lock:
        for name in names:
            _use_counts[name] -= 1
            if _use_counts[name] == 0:
                del _use_counts[name]
                os.environ.pop(name, None)


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a `.env` file, as `python-dotenv` reads it; lines that are not assignments are skipped."""
    try:
        if path.stat().st_size > MAX_ENV_FILE_BYTES:
            raise UsageError(f"{path}: is too large for a .env file ({MAX_ENV_FILE_BYTES / 1e6:g} MB is the limit)")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    variables = dotenv_values(stream=io.StringIO(text))
    return {
        name: value
        for name, value in variables.items()
        if value is not None and _VARIABLE_NAME.fullmatch(name) and "\x00" not in value
    }


def variables_in(text: str) -> list[str]:
    """The environment variables that `text` refers to as `${NAME}`."""
    return VARIABLE.findall(text)


def expand_with(text: str, value_of: Callable[[str], str | None]) -> str:
    """`text` with each `${NAME}` replaced by `value_of(NAME)`; if that is `None`, `${NAME}` stays."""
    if "${" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        value = value_of(match.group(1))
        return match.group() if value is None else value

    return VARIABLE.sub(replacement, text)


def expand(text: str, key: str) -> str:
    """`text` with each `${NAME}` replaced by that variable; raises a `UsageError` with `key` if it is not set."""

    def value(name: str) -> str:
        variable = os.environ.get(name)
        if variable is None:
            raise UsageError(f"{key} {unset_variable_message(name)}")
        return variable

    return expand_with(text, value)


def unset_variable_message(name: str) -> str:
    """The end of a message about a value that uses a variable which is not set."""
    return f"uses ${{{name}}}, which is not set in the environment"
