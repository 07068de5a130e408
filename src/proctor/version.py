"""The version, and the name under which pip knows Proctor. Importing this module costs nothing."""

__version__ = "0.1.0"

DISTRIBUTION = "agent-proctor"
"""The package that pip installs. The command and the import are both called `proctor`."""
