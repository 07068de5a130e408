"""Checks the options for workers before Dask is imported."""

from __future__ import annotations

import ipaddress
import re
import socket
from importlib.util import find_spec
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.base.installation import install_command
from proctor.running.settings import ClusterOptions

_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[\w.-]+):(\d{1,5})")


def check_cluster_options(options: ClusterOptions) -> ClusterOptions:
    """Return the options if they are valid, else raise `UsageError`."""
    if find_spec("distributed") is None:
        raise UsageError(f"--workers and --cluster need Dask's distributed: {install_command('cluster')}")
    if options.workers:
        if options.upload or options.tls_ca or options.tls_cert or options.tls_key:
            raise UsageError("--upload and --tls-... need --cluster; --workers starts processes on this machine")
        return options
    match = _ADDRESS.fullmatch(options.address)
    if match is None:
        raise UsageError(
            f"--cluster {options.address!r} is not the address of a scheduler, such as tcp://host:8786 or tls://host:8786"
        )
    scheme, host, port = match.groups()
    if scheme == "tcp" and not options.allow_plain_tcp and (public := _public_address(host.strip("[]"))):
        raise UsageError(
            f"--cluster {options.address} is a public address ({public}) without TLS: anyone on the way could run code "
            f"here and on the workers. Use tls://{host}:{port} with certificates, or a tunnel to an address of this "
            "machine. If the network is private all the same, set allow_plain_tcp = true under [tool.proctor.cluster]"
        )
    files = {"--tls-ca": options.tls_ca, "--tls-cert": options.tls_cert, "--tls-key": options.tls_key}
    if any(files.values()) and not options.address.startswith("tls://"):
        raise UsageError("--tls-... need a scheduler at tls://..., but --cluster is tcp://...")
    for name, path in files.items():
        if path and not Path(path).is_file():
            raise UsageError(f"{name} {path}: no such file")
    return options


def _public_address(host: str) -> str:
    """The first address of a host that is reached over the internet; empty if it has none, or cannot be found.

    Everything else is in a network that somebody runs: loopback, private and link-local addresses, and those that
    providers and VPNs share (100.64.0.0/10).
    """
    try:
        found = [str(item[4][0]) for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except OSError:
        return ""  # connecting will say what is wrong
    return next((address for address in found if ipaddress.ip_address(address).is_global), "")
