"""Everything about HoloDeck: its `agent.yaml` files, the agents they describe, and its Python names.

`plugin.py` says what the folder adds to Proctor. A file comes in through `reader.py` and becomes a suite whose `agent`
is data; `agent.py` builds that agent when a run needs it. `reporter.py` writes a run as HoloDeck's report. To use
HoloDeck's Python names, import them from `proctor.compat.holodeck` and change nothing else. They are listed in `api.py`
and imported on first use.
"""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.compat.holodeck.api import *  # noqa: F403  the names are listed there

_API = "proctor.compat.holodeck.api"


def __getattr__(name: str) -> Any:
    api = import_module(_API)
    if name == "__all__":  # without names such as FileNotFoundError, which a star import must not replace
        return [name for name in api.__all__ if not hasattr(builtins, name)]
    if name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *import_module(_API).__all__]
