"""The engine: plan, execute, resume, rescore."""
