"""What a run was made with; nothing that names a person, a machine or a secret."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from proctor.version import __version__


def environment() -> Mapping[str, str]:
    return {
        "proctor_version": __version__,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "os": f"{os.uname().sysname} {os.uname().machine}" if hasattr(os, "uname") else sys.platform,
    }
