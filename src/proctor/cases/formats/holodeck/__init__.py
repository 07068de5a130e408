"""HoloDeck's `agent.yaml`: an agent, the metrics it is measured by, and its tests.

A parsed document comes in and one suite goes out (`read`), or suites come in and `agent.yaml` files go out (`write`).
The loader of suites, `proctor.declared` and `proctor.compat.holodeck` are the callers.
"""

from proctor.cases.formats.holodeck.declaration import DECLARED, read, recognises, write
from proctor.cases.formats.holodeck.keys import EXTENSION, NAME

__all__ = ["DECLARED", "EXTENSION", "NAME", "read", "recognises", "write"]
