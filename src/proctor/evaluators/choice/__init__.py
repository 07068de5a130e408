"""Judged by one choice with a reason, each choice worth a score."""
