"""`.env` files: variables that hold while files are read and runs last, beside the real environment, which comes first.

Nothing of them stays in the environment of the process. What they hold is kept to be masked wherever it turns up.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.base.secrets import FILE_VALUES

NAME = ".env"
LARGEST = 1_000_000
_LINE = r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*
    (?:'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\r\n]*))"""
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
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

    The first file that has a variable wins. Contexts may overlap: a variable goes with the last of them.
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
    return re.sub(_VARIABLE, lambda named: os.environ.get(named[1], known.get(named[1], "")), text)
