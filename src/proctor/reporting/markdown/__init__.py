"""The Markdown report, the analysis and the step summary."""
