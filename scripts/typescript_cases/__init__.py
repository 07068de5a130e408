"""Cases for an agent in TypeScript, run through the template adk_ts; see `__main__.py`."""
