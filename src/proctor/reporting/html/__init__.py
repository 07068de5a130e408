"""The HTML report and scorecards."""
