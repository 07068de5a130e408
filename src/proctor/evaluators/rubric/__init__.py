"""Criteria in plain words that a judge holds an answer against."""
