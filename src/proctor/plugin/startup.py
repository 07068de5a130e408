"""The light part of the plugin, which any session may load: which files are suites, and the keys of pytest's stash."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.base.own_files import is_own_output
from proctor.base.source import ending
from proctor.cases.formats import JSON_LINES, formats, has_keys_of, is_named_like, shipped_formats
from proctor.plugins import Format

if TYPE_CHECKING:
    from proctor.plugin.session import ProctorSession  # noqa: F401  named in a string below

SESSION_DATA = pytest.StashKey[dict[str, Any]]()
SESSION = pytest.StashKey["ProctorSession"]()
NAMED_FILES = pytest.StashKey[frozenset[Path]]()


def named_files(config: pytest.Config) -> frozenset[Path]:
    """The paths on the command line. pytest itself drops a file whose folder is named as well."""
    if NAMED_FILES not in config.stash:
        paths = (config.invocation_params.dir / name.partition("::")[0] for name in config.args)
        config.stash[NAMED_FILES] = frozenset(Path(os.path.abspath(path)) for path in paths)  # noqa: PTH100  links stay links
    return config.stash[NAMED_FILES]


def shared_session_data(config: pytest.Config) -> dict[str, Any]:
    """A unique id for the session's run and its start, as data that can be sent to other processes."""
    if SESSION_DATA not in config.stash:
        moment = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(moment))}-{os.urandom(3).hex()}"
        config.stash[SESSION_DATA] = {"run_id": name, "started_at": moment}
    return config.stash[SESSION_DATA]


MAX_SEARCHED_BYTES = 65_536
"""The part of a file that is searched for the keys of a format."""
SUITE_INFIX = ".proctor."
COMPANION_SUFFIXES = (".baseline.jsonl", ".quarantine.jsonl")
"""Files that belong to a suite and are not suites."""


def is_suite(path: Path, root: Path, patterns: Sequence[str], *, named: bool) -> bool:
    """Whether pytest should collect the file; `named` if the command line names this file.

    A file whose name is typical of a format is collected if it has a key of that format. Formats of other packages are
    checked for named files only, because looking for such packages would delay every session.
    """
    if path.name.endswith(COMPANION_SUFFIXES) or (not named and is_own_output(path)):
        return False
    if SUITE_INFIX in path.name or _matches_pattern(path, root, patterns):
        return True
    if named and ending(path) in (".csv", *JSON_LINES):
        return True
    if named:
        return _has_key_of_format(path, tuple(formats()))
    likely = [known for known in shipped_formats() if is_named_like(known, path) or _has_collected_name(path, known)]
    return bool(likely) and (_has_key_of_format(path, likely) or _is_near_miss(path))


def _matches_pattern(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return any(fnmatch.fnmatchcase(path.name, pattern) or fnmatch.fnmatchcase(inside, pattern) for pattern in patterns)


def _has_collected_name(path: Path, known: Format) -> bool:
    return any(path.match(pattern) for pattern in known.collect_names)


def _has_key_of_format(path: Path, likely: Sequence[Format]) -> bool:
    text = _start(path)
    return any(has_keys_of(known, path, text) for known in likely)


def _is_near_miss(path: Path) -> bool:
    """Whether a file with the name of a suite was meant to be one, so that pytest reports what is wrong with it."""
    from proctor.cases.formats.near_misses import near_miss_in_text  # reads tables and cases; few sessions need it

    return near_miss_in_text(path, _start(path))


def _start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SEARCHED_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""
