"""What the plugin keeps at pytest's own configuration; light, because every session with several processes loads it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proctor.plugin.session import ProctorSession  # noqa: F401  named in a string below

SHARING = pytest.StashKey[dict[str, Any]]()
SESSION = pytest.StashKey["ProctorSession"]()


def sharing_of(config: pytest.Config) -> dict[str, Any]:
    """A name for the session's run that no other has, as data that can be given to other processes."""
    if SHARING not in config.stash:
        moment = time.time()
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(moment))}-{os.urandom(3).hex()}"
        config.stash[SHARING] = {"run_id": name, "started_at": moment}
    return config.stash[SHARING]
