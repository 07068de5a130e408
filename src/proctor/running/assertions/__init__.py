"""Evaluation from Python code and tests: `AgentRunner`, `assert_pass`, `run_and_evaluate` and their `_sync` versions.

Input is an agent or any callable, inputs or cases, and evaluators. Output is an `AgentRun` per case, an `Evaluation`,
or an `EvalAssertionError` with all scores. The engine holds the conversations (`running.conversation`); nothing is
stored. Users import these names from `proctor`; the pytest plugin and the compat packages build on them.
"""
