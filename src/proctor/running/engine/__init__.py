"""The engine: plan, ask, score and keep the trials of a run."""
