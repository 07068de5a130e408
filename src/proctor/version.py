"""The version, and the name under which pip knows Proctor. Importing this module costs nothing."""

__version__ = "0.1.0"

DISTRIBUTION = "agent-proctor"
"""The package that pip installs. The command and the import are both called `proctor`."""


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra, such as `pip install 'agent-proctor[view]'`.

    It also works in an environment that has Proctor from a checkout: pip then adds only the packages of the extra.
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
