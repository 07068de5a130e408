"""Checks the options of a cluster before anything of Dask is loaded."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.running.settings import ClusterOptions
from proctor.version import install_command

MISSING = f"--workers and --cluster need Dask's distributed: {install_command('cluster')}"


def check_cluster_options(options: ClusterOptions) -> ClusterOptions:
    """The options, if they can be used here; raises `UsageError`."""
    if find_spec("distributed") is None:
        raise UsageError(MISSING)
    if options.workers:
        if options.upload or options.tls_ca or options.tls_cert or options.tls_key:
            raise UsageError("--upload and --tls-... are for --cluster: --workers are processes of this machine")
        return options
    if not re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}", options.address):
        raise UsageError(
            f"--cluster {options.address!r} is not the address of a scheduler; write tcp://host:8786 or tls://..."
        )
    files = {"--tls-ca": options.tls_ca, "--tls-cert": options.tls_cert, "--tls-key": options.tls_key}
    if any(files.values()) and not options.address.startswith("tls://"):
        raise UsageError("--tls-... are for a scheduler at tls://..., and this one is at tcp://...")
    for name, path in files.items():
        if path and not Path(path).is_file():
            raise UsageError(f"{name} {path}: there is no such file")
    return options
