"""Checks the options for workers before Dask is imported."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.base.installation import install_command
from proctor.running.settings import ClusterOptions


def check_cluster_options(options: ClusterOptions) -> ClusterOptions:
    """Return the options if they are valid, else raise `UsageError`."""
    if find_spec("distributed") is None:
        raise UsageError(f"--workers and --cluster need Dask's distributed: {install_command('cluster')}")
    if options.workers:
        if options.upload or options.tls_ca or options.tls_cert or options.tls_key:
            raise UsageError("--upload and --tls-... need --cluster; --workers starts processes on this machine")
        return options
    if not re.fullmatch(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[\w.-]+):\d{1,5}", options.address):
        raise UsageError(
            f"--cluster {options.address!r} is not the address of a scheduler, such as tcp://host:8786 or tls://host:8786"
        )
    files = {"--tls-ca": options.tls_ca, "--tls-cert": options.tls_cert, "--tls-key": options.tls_key}
    if any(files.values()) and not options.address.startswith("tls://"):
        raise UsageError("--tls-... need a scheduler at tls://..., but --cluster is tcp://...")
    for name, path in files.items():
        if path and not Path(path).is_file():
            raise UsageError(f"{name} {path}: no such file")
    return options
