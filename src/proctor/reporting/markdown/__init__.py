"""The Markdown report of a run, and what CI systems show of it."""
