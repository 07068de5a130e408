"""How Proctor was installed, and the commands that install more in the same way.

Pip records where a package came from in `direct_url.json` (PEP 610): a folder, a file, a repository or an address.
Without that file it came from a package index. Advice that fits one of these fails for another: the name
`agent-proctor` means nothing to an index that does not have it, and a path means nothing on another machine.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from proctor.version import DISTRIBUTION, __version__


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the installed Proctor came from."""

    address: str = ""
    """What pip gets it from, on any machine: `git+https://…@commit` or `https://….whl`; empty if there is none."""
    folder: Path | None = None
    """The checkout that it was installed from, if it was and still exists."""
    is_editable: bool = False
    """Whether the files of that checkout are used as they are."""
    is_local: bool = False
    """Whether it came from a folder or a file of this machine, so that no other machine can install it by name."""

    def requirement(self, extra: str = "") -> str:
        """What pip installs Proctor by on this machine, with an extra: a requirement, or the path of a folder."""
        extras = f"[{extra}]" if extra else ""
        if self.folder is not None:
            return f"{self.folder}{extras}"
        return f"{DISTRIBUTION}{extras} @ {self.address}" if self.address else f"{DISTRIBUTION}{extras}"

    def portable_requirement(self) -> str | None:
        """The requirement of exactly this version for another machine; None if it came from this machine."""
        if self.is_local:
            return None
        return self.requirement() if self.address else f"{DISTRIBUTION}=={__version__}"


@cache
def installation() -> Installation:
    """How Proctor was installed here."""
    own = own_distribution()
    text = None if own is None else own.read_text("direct_url.json")
    return read_direct_url(json.loads(text)) if text else Installation(is_local=own is None)


def own_distribution() -> Distribution | None:
    """What pip knows about Proctor; None if its files are used without being installed."""
    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def read_direct_url(record: Mapping[str, Any]) -> Installation:
    """The installation that the contents of a `direct_url.json` describe."""
    url = str(record.get("url", ""))
    parts = urlsplit(url)
    if parts.scheme == "file":
        folder = Path(url2pathname(parts.path))
        is_editable = bool((record.get("dir_info") or {}).get("editable"))
        is_checkout = "dir_info" in record and folder.is_dir()
        return Installation(folder=folder if is_checkout else None, is_editable=is_editable, is_local=True)
    source = record.get("vcs_info")
    if source is not None:
        return Installation(f"{source.get('vcs', 'git')}+{url}@{source.get('commit_id', 'HEAD')}")
    return Installation(url)


def pip_command(*requirements: str) -> str:
    """The command that installs these; in an environment without pip, as uv makes them, it is `uv pip install`."""
    program = "pip install" if find_spec("pip") is not None else "uv pip install"
    return f"{program} {' '.join(map(shlex.quote, requirements))}"


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra, such as `pip install 'agent-proctor[view]'`.

    It installs from where Proctor came from: the checkout, the repository, or the package index.
    """
    return pip_command(*extra_arguments(extra))


def extra_arguments(extra: str) -> tuple[str, ...]:
    """The arguments by which pip installs the packages of an extra."""
    own = installation()
    return ("--editable",) * (own.folder is not None and own.is_editable) + (own.requirement(extra),)
