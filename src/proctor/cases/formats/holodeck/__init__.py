"""HoloDeck's `agent.yaml`: an agent, the metrics it is measured by, and its tests.

A parsed document comes in and one suite goes out (`read`). The loader of suites, `proctor.declared` and
`proctor.compat.holodeck` are the callers.
"""

from proctor.cases.formats.holodeck.declaration import read, recognises
from proctor.cases.formats.holodeck.keys import EXTENSION, NAME

__all__ = ["EXTENSION", "NAME", "read", "recognises"]
