"""What the plugin keeps at pytest's own configuration; light, because every session with several processes loads it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proctor.plugin.session import ProctorSession  # noqa: F401  named in a string below

SHARING = pytest.StashKey[dict[str, Any]]()
SESSION = pytest.StashKey["ProctorSession"]()
NAMED = pytest.StashKey[frozenset[Path]]()


def named_files(config: pytest.Config) -> frozenset[Path]:
    """What the command line names; pytest itself forgets of a file whose folder is named as well."""
    if NAMED not in config.stash:
        named = (config.invocation_params.dir / name.partition("::")[0] for name in config.args)
        config.stash[NAMED] = frozenset(Path(os.path.abspath(path)) for path in named)  # noqa: PTH100  links stay links
    return config.stash[NAMED]


def sharing_of(config: pytest.Config) -> dict[str, Any]:
    """A name for the session's run that no other has, as data that can be given to other processes."""
    if SHARING not in config.stash:
        moment = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(moment))}-{os.urandom(3).hex()}"
        config.stash[SHARING] = {"run_id": name, "started_at": moment}
    return config.stash[SHARING]
