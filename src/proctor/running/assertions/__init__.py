"""Evaluating from Python code: AgentRunner, assert_pass and their kin."""
