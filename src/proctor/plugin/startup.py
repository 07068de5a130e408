"""The light part of the plugin, which any session may load: which files are suites, and what pytest's stash keeps."""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proctor.plugin.session import ProctorSession  # noqa: F401  named in a string below

SHARING = pytest.StashKey[dict[str, Any]]()
SESSION = pytest.StashKey["ProctorSession"]()
NAMED_FILES = pytest.StashKey[frozenset[Path]]()


def named_files(config: pytest.Config) -> frozenset[Path]:
    """What the command line names; pytest itself forgets of a file whose folder is named as well."""
    if NAMED_FILES not in config.stash:
        named = (config.invocation_params.dir / name.partition("::")[0] for name in config.args)
        config.stash[NAMED_FILES] = frozenset(Path(os.path.abspath(path)) for path in named)  # noqa: PTH100  links stay links
    return config.stash[NAMED_FILES]


def sharing_of(config: pytest.Config) -> dict[str, Any]:
    """A name for the session's run that no other has, as data that can be given to other processes."""
    if SHARING not in config.stash:
        moment = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(moment))}-{os.urandom(3).hex()}"
        config.stash[SHARING] = {"run_id": name, "started_at": moment}
    return config.stash[SHARING]


LOOKED_AT = 65_536

OWN = ".proctor."
NAMED = (".test.json", ".evalset.json")
BESIDE = (".baseline.jsonl", ".quarantine.jsonl")
"""Files about a suite that stand beside it."""
HOLODECK = ("agent.yaml", "agent.yml")
DATASET_FOLDERS = frozenset({"datasets", "pixie", "pixie_qa"})

JSON_WORDS = (
    rb'"(?:eval_?cases|eval_?set_?id|evalCases|evalSetId|cases|test_cases|TEST_CASES|expected_output_contains'
    rb'|expected_tool_use|expected_intermediate_agent_responses)"\s*:'
)
YAML_WORDS = rb"^[\"']?(?:test_cases|test_cases_file|cases)[\"']?\s*:"
DATASET_WORDS = rb'"(?:runnable|entry_kwargs|input_data|eval_input)"\s*:'


def is_suite(path: Path, root: Path, patterns: Sequence[str], *, named: bool) -> bool:
    """Whether pytest is to collect the file; `named` if the command line names this very file."""
    if path.name.endswith(BESIDE):
        return False
    if OWN in path.name or _fits(path, root, patterns):
        return True
    words = _words(path)
    if words is None and named:
        words = rb"|".join((JSON_WORDS, YAML_WORDS, DATASET_WORDS))
        return path.suffix in (".csv", ".jsonl", ".ndjson") or _mentions(path, words)
    return words is not None and _mentions(path, words)


def _words(path: Path) -> bytes | None:
    """What a file of this name has in it if it is a suite; `None` if its name says nothing."""
    if path.name.endswith(NAMED):
        return JSON_WORDS
    if path.name in HOLODECK:
        return YAML_WORDS
    if path.suffix == ".json" and ("dataset" in path.stem or path.parent.name in DATASET_FOLDERS):
        return DATASET_WORDS
    return None


def _fits(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return any(fnmatch.fnmatchcase(path.name, pattern) or fnmatch.fnmatchcase(inside, pattern) for pattern in patterns)


def _mentions(path: Path, words: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return _compiled(words).search(file.read(LOOKED_AT)) is not None
    except OSError:
        return False


@functools.cache
def _compiled(words: bytes) -> re.Pattern[bytes]:
    return re.compile(words, re.MULTILINE)
