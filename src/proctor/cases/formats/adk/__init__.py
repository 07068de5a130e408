"""ADK's EvalSets, as ADK-TS and adk-python write them, and the flat arrays that came before EvalSets.

A parsed document comes in and suites go out (`read`), scored by the `test_config.json` beside it. The loader of suites
and `proctor.compat.adk` are the callers.
"""

from proctor.cases.formats.adk.declaration import read, recognises
from proctor.cases.formats.adk.keys import CONFIG_NAME, NAME, SUITE_NAMES

__all__ = ["CONFIG_NAME", "NAME", "SUITE_NAMES", "read", "recognises"]
