"""Judged by what an agent did, step by step or over a whole conversation."""
